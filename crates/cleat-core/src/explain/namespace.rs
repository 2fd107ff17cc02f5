//! What holds many: namespaces and definitions, and the API services that can keep both.

use alloc::borrow::ToOwned as _;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use serde_json::Value;

use super::object::{self, Thing, Trail, id, id_of, list, text};
use super::question::{Answer, Found, Look, Place, Question, Unread};
use super::tree::{Node, Reason, Weight, kubectl};
use super::{Wish, conditions, denial, webhook};
use crate::id::Id;
use crate::number::number;

/// How long it pauses at most after failures in a row.
const WITHIN: &str = "by itself, after at most a minute";

/// How many kinds of trouble are told; the rest is counted.
const GROUPS: usize = 6;

/// Why a namespace does not end: what its conditions say, and what is left in it.
pub(super) fn going(look: &Look<'_>, thing: &Thing<'_>, trail: &Trail) -> Vec<Node> {
    let mut children = Vec::new();
    let is_true =
        |kind: &str| conditions::find(thing, kind).filter(|one| text(one, "/status") == "True");
    for kind in ["NamespaceDeletionDiscoveryFailure", "NamespaceDeletionGroupVersionParsingFailure"]
    {
        if let Some(one) = is_true(kind) {
            let services = stale(look, thing.place);
            let node = Node::blocks(Reason::DiscoveryFailed, text(one, "/message"));
            let node = if services.is_empty() {
                node.act("whoever serves that group", "make it answer", None)
            } else {
                node.with(services)
            };
            children.push(node);
        }
    }
    if let Some(one) = is_true("NamespaceDeletionContentFailure") {
        let message = text(one, "/message");
        let says = format!("{message}; the namespace controller tries again {WITHIN}");
        let node = Node::blocks(Reason::Backoff, says);
        children.push(match denial::by_message(look, thing, message) {
            Some(denied) => node.with(vec![denied]),
            None => node.act("whoever owns what is in it", "do what it says", None),
        });
    }
    children.extend(contents(look, thing, trail));
    let others = thing.list("/spec/finalizers").iter().filter_map(Value::as_str);
    for other in others.filter(|one| *one != "kubernetes") {
        let text = format!("its spec has finalizer {other}");
        children.push(Node::blocks(Reason::FinalizerNoOwner, text).act(
            "whoever knows what it stands for",
            "start its controller, or take it off through the namespace's finalize subresource",
            None,
        ));
    }
    if children.is_empty() {
        let text = "nothing is left in it; the namespace controller lets it go by itself";
        children.push(Node::note(text).act("kube-controller-manager", "see that it runs", None));
    }
    children
}

fn contents(look: &Look<'_>, thing: &Thing<'_>, trail: &Trail) -> Vec<Node> {
    let question = Question::Contents { place: thing.place, namespace: thing.id.name.clone() };
    let contents = match look.ask(question) {
        Some(Answer::Contents(contents)) => contents,
        Some(Answer::Unread(unread)) => return vec![Node::unread("what it holds", unread)],
        _ => return Vec::new(),
    };
    // Events go last and by themselves.
    let left: Vec<(Id, &Value)> = contents
        .items
        .iter()
        .filter(|(id, _)| id.resource != "events")
        .map(|(id, object)| (id.clone(), object))
        .collect();
    let mut children = Vec::new();
    if !left.is_empty() {
        let more = if contents.more.is_empty() { "" } else { "at least " };
        let objects = number(left.len(), "object is", "objects are");
        let text = format!("{more}{objects} left in it: {}", counts(&left));
        let node = Node::blocks(Reason::NamespaceContent, text);
        children.push(node.with(grouped(look, thing.place, &left, trail)));
    }
    for (resource, why) in &contents.unread {
        let unread = Unread { why: why.clone(), forbidden: false };
        children.push(Node::unread(&format!("{resource} in it"), &unread));
    }
    children
}

/// `2 configmaps, 1 widgets.shop.example`.
fn counts(left: &[(Id, &Value)]) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for (id, _) in left {
        let dot = if id.group.is_empty() { "" } else { "." };
        *counts.entry(format!("{}{dot}{}", id.resource, id.group)).or_default() += 1;
    }
    let counts: Vec<String> =
        counts.iter().map(|(resource, count)| format!("{count} {resource}")).collect();
    counts.join(", ")
}

/// Objects that have to go, one told for all that wait for the same.
pub(super) fn grouped(
    look: &Look<'_>,
    place: Place,
    objects: &[(Id, &Value)],
    trail: &Trail,
) -> Vec<Node> {
    type Alike<'a> = (&'a str, &'a str, bool, Vec<&'a str>);
    let mut groups: BTreeMap<Alike<'_>, Vec<&Id>> = BTreeMap::new();
    for (id, object) in objects {
        let going = !text(object, "/metadata/deletionTimestamp").is_empty();
        let finalizers = list(object, "/metadata/finalizers").iter().filter_map(Value::as_str);
        // Those with finalizers come first: they are what is waited for.
        let key = (id.group.as_str(), id.resource.as_str(), !going, finalizers.collect());
        groups.entry(key).or_default().push(id);
    }
    let mut groups: Vec<(Alike<'_>, Vec<&Id>)> = groups.into_iter().collect();
    groups.sort_by_key(|((_, _, stays, finalizers), _)| (finalizers.is_empty(), *stays));
    let beyond: usize = groups.iter().skip(GROUPS).map(|(_, ids)| ids.len()).sum();
    let mut children = Vec::new();
    for (_, ids) in groups.iter().take(GROUPS) {
        let Some(first) = ids.first() else { continue };
        let mut node = object::tell(look, place, first, Wish::Gone, trail);
        if ids.len() > 1 {
            node.text.push_str(&format!("; {} more like it", ids.len() - 1));
        }
        children.push(node);
    }
    if beyond > 0 {
        children.push(Node::note(format!("and {beyond} more of other kinds")));
    }
    children
}

/// The objects that a definition waits for.
pub(super) fn instances(look: &Look<'_>, thing: &Thing<'_>, trail: &Trail) -> Node {
    let (group, resource) = (thing.text("/spec/group"), thing.text("/spec/names/plural"));
    let found = look.list(thing.place, (group, resource), ("", ""));
    let said = conditions::find(thing, "Terminating").map(|one| text(one, "/message"));
    let node = |says: String| Node::blocks(Reason::CrdTerminating, says);
    if let Some(unread) = found.unread {
        return node("its objects go first".to_owned())
            .with(vec![Node::unread(&format!("{resource}.{group}"), unread)]);
    }
    if found.unserved {
        let says = format!("its objects go first; they are not served: {}", said.unwrap_or("-"));
        return node(says).act("kube-apiserver", "it looks again by itself", None);
    }
    if found.items.is_empty() {
        let says = "none of its objects is left; the server lets it go by itself";
        return node(says.to_owned()).act("kube-apiserver", "look again", None);
    }
    let objects: Vec<(Id, &Value)> =
        found.items.iter().map(|one| (id_of(group, resource, one), one)).collect();
    let least = if found.more { "at least " } else { "" };
    node(format!("its objects go first, and {least}{} are left", objects.len())).with(grouped(
        look,
        thing.place,
        &objects,
        trail,
    ))
}

/// The definition of an object that goes is going as well.
pub(super) fn definition_going(look: &Look<'_>, thing: &Thing<'_>) -> Option<Node> {
    let Id { group, resource, .. } = &thing.id;
    // Kubernetes' own groups have a definition nowhere, or are none of anybody's business.
    if !group.contains('.') || group.ends_with(".k8s.io") {
        return None;
    }
    let name = format!("{resource}.{group}");
    let definition = id("apiextensions.k8s.io", "customresourcedefinitions", "", &name);
    let Found::Present(object) = look.object(thing.place, &definition) else { return None };
    let going = !text(object, "/metadata/deletionTimestamp").is_empty();
    going.then(|| {
        let text = format!("its definition {name} is being deleted as well");
        let note = Node::note(text).about(thing.place, &definition);
        Node { reason: Some(Reason::CrdTerminating), ..note }
    })
}

/// API services that do not answer.
fn stale(look: &Look<'_>, place: Place) -> Vec<Node> {
    let group = "apiregistration.k8s.io";
    let all = look.list(place, (group, "apiservices"), ("", ""));
    if let Some(unread) = all.unread {
        return vec![Node::unread("apiservices", unread)];
    }
    let things = all.items.iter().map(|object| Thing {
        place,
        id: id_of(group, "apiservices", object),
        object,
    });
    things.filter_map(|thing| api_service(look, &thing)).collect()
}

/// Why an API service does not answer.
pub(super) fn api_service(look: &Look<'_>, thing: &Thing<'_>) -> Option<Node> {
    let available = conditions::find(thing, "Available")?;
    if text(available, "/status") == "True" {
        return None;
    }
    let sentence = conditions::sentence(look, available);
    let says = format!("{}: {sentence}", thing.name());
    let service =
        id("", "services", thing.text("/spec/service/namespace"), thing.text("/spec/service/name"));
    let mut node = Node::blocks(Reason::DiscoveryFailed, says).about(thing.place, &thing.id);
    if !service.name.is_empty() {
        node = node.with(webhook::behind(look, thing.place, &service));
    }
    if node.children.iter().all(|child| child.weight == Weight::Note) {
        node = node.act(
            "whoever installed it",
            "make it answer; or delete it, if what it served is not needed any more",
            Some(kubectl(thing.place, "delete", &thing.id, "")),
        );
    }
    Some(node)
}
