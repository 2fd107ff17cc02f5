//! Any object: gone, going, or there; and which story it is part of.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec;
use alloc::vec::Vec;

use jiff::Timestamp;
use serde_json::Value;

use super::question::{Found, Look, Place};
use super::tree::{Node, Reason, Weight, kubectl, name};
use super::{
    Wish, ago, cluster, conditions, critical, denial, finalizer, namespace, owner, pod, policy,
    ready, set, work, workload,
};
use crate::id::Id;

/// How long a chain may get: whatever is deeper is left for people to ask about.
const DEEPEST: usize = 8;

/// What was told on the way here; nothing is told twice in one chain.
#[derive(Clone, Default)]
pub(super) struct Trail(Vec<(Place, Id)>);

impl Trail {
    fn with(&self, place: Place, id: &Id) -> Self {
        let mut longer = self.clone();
        longer.0.push((place, id.clone()));
        longer
    }

    fn has(&self, place: Place, id: &Id) -> bool {
        self.0.iter().any(|(at, one)| *at == place && one == id)
    }

    /// Whether nothing led here: this is what people asked about.
    pub(super) fn is_beginning(&self) -> bool {
        self.0.len() <= 1
    }
}

/// An object that is there.
#[derive(Clone)]
pub(super) struct Thing<'a> {
    pub(super) place: Place,
    pub(super) id: Id,
    pub(super) object: &'a Value,
}

impl<'a> Thing<'a> {
    pub(super) fn text(&self, pointer: &str) -> &'a str {
        text(self.object, pointer)
    }

    pub(super) fn number(&self, pointer: &str) -> Option<i64> {
        self.object.pointer(pointer).and_then(Value::as_i64)
    }

    pub(super) fn list(&self, pointer: &str) -> &'a [Value] {
        list(self.object, pointer)
    }

    pub(super) fn uid(&self) -> &'a str {
        self.text("/metadata/uid")
    }

    pub(super) fn deleting(&self) -> Option<Timestamp> {
        self.text("/metadata/deletionTimestamp").parse().ok()
    }

    pub(super) fn finalizers(&self) -> Vec<&'a str> {
        self.list("/metadata/finalizers").iter().filter_map(Value::as_str).collect()
    }

    pub(super) fn is(&self, group: &str, resource: &str) -> bool {
        self.id.group == group && self.id.resource == resource
    }

    pub(super) fn name(&self) -> String {
        name(self.place, &self.id)
    }
}

pub(super) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn list<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object.pointer(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// An object of a resource, by its own metadata.
pub(super) fn id_of(group: &str, resource: &str, object: &Value) -> Id {
    Id {
        group: group.to_owned(),
        resource: resource.to_owned(),
        namespace: text(object, "/metadata/namespace").to_owned(),
        name: text(object, "/metadata/name").to_owned(),
    }
}

pub(super) fn id(group: &str, resource: &str, namespace: &str, name: &str) -> Id {
    let [group, resource, namespace, name] =
        [group, resource, namespace, name].map(ToOwned::to_owned);
    Id { group, resource, namespace, name }
}

/// What people asked about is not there: whether it can be, and what they may have meant.
pub(super) fn absent(look: &Look<'_>, id: &Id) -> Node {
    let mut node = Node::note(format!("{id} is not there")).about(Place::Here, id);
    if id.namespace.is_empty() {
        return node;
    }
    let home = self::id("", "namespaces", "", &id.namespace);
    match look.object(Place::Here, &home) {
        Found::Absent => {
            node.children.push(Node::note(format!("neither is its namespace {}", id.namespace)));
        }
        Found::Present(object) => {
            let home = Thing { place: Place::Here, id: home, object };
            if let Some(since) = home.deleting() {
                let what = format!("`cleat explain namespace/{}` says what is left", id.namespace);
                node.children.push(
                    Node::note(format!(
                        "its namespace {} is being deleted, for {}: the object went already",
                        id.namespace,
                        ago(since, look.now)
                    ))
                    .act("you", &what, None),
                );
            }
        }
        Found::Unread(unread) => node.children.push(Node::unread("its namespace", unread)),
        Found::NoSuchKind | Found::Pending => {}
    }
    node
}

/// Tells of one object, by where it is.
pub(super) fn tell(look: &Look<'_>, place: Place, id: &Id, wish: Wish, trail: &Trail) -> Node {
    if trail.has(place, id) {
        return Node::note(format!("{}, see above", name(place, id))).about(place, id);
    }
    match look.object(place, id) {
        Found::Pending => Node::default(),
        Found::Present(object) => {
            let thing = Thing { place, id: id.clone(), object };
            present(look, &thing, wish, &trail.with(place, id))
        }
        Found::Absent if wish == Wish::There => {
            Node::blocks(Reason::Missing, format!("{} is missing", name(place, id)))
                .about(place, id)
                .act("whoever should make it", "make it, or see what keeps them from it", None)
        }
        Found::Absent => Node::note(format!("{} is gone", name(place, id))).about(place, id),
        Found::NoSuchKind => Node {
            weight: Weight::Unread,
            reason: Some(Reason::Unreadable),
            ..Node::note(format!(
                "{}: the server does not serve this kind, which does not prove that it is gone",
                name(place, id)
            ))
        }
        .about(place, id),
        Found::Unread(unread) => Node::unread(&name(place, id), unread).about(place, id),
    }
}

fn present(look: &Look<'_>, thing: &Thing<'_>, wish: Wish, trail: &Trail) -> Node {
    let mut node = match thing.deleting() {
        Some(since) => {
            let since = pod::asked(thing).unwrap_or(since);
            let text = format!("{} is being deleted, for {}", thing.name(), ago(since, look.now));
            Node { weight: Weight::Blocks, ..Node::note(text) }
        }
        None if wish == Wish::Gone => {
            Node { weight: Weight::Blocks, ..Node::note(format!("{} is there", thing.name())) }
        }
        None => Node::note(format!("{} is there", thing.name())),
    }
    .about(thing.place, &thing.id);
    if trail.0.len() > DEEPEST {
        let what = "ask about it by itself; the chain is long";
        return node.act("you", what, Some(format!("cleat explain {}", asked(&thing.id))));
    }
    node.children = if thing.deleting().is_some() {
        going(look, thing, trail)
    } else {
        let mut children = standing(look, thing, trail);
        children.extend(owner::going(look, thing));
        match wish {
            Wish::Gone => children.extend(denial::of_delete(look, thing, Weight::Blocks, trail)),
            Wish::Whatever if trail.is_beginning() => {
                children.extend(denial::of_delete(look, thing, Weight::Note, trail));
            }
            Wish::Whatever | Wish::There => {}
        }
        children
    };
    if node.weight == Weight::Note && !node.is_blocking() && node.children.is_empty() {
        node.text.push_str(", and nothing it says of itself is amiss");
    }
    node
}

/// `resource.group/name -n namespace`, as the command takes it.
pub(super) fn asked(id: &Id) -> String {
    let Id { group, resource, namespace, name } = id;
    let dot = if group.is_empty() { "" } else { "." };
    let within = if namespace.is_empty() { String::new() } else { format!(" -n {namespace}") };
    format!("{resource}{dot}{group}/{name}{within}")
}

/// What a deletion waits for.
fn going(look: &Look<'_>, thing: &Thing<'_>, trail: &Trail) -> Vec<Node> {
    let mut children = Vec::new();
    if thing.is("", "namespaces") {
        children.extend(namespace::going(look, thing, trail));
    }
    if thing.is("", "pods") {
        children.extend(pod::going(look, thing));
    }
    children.extend(cluster::leaving(look, thing, trail));
    children.extend(namespace::definition_going(look, thing));
    for one in thing.finalizers() {
        children.push(finalizer::tell(look, thing, one, trail));
    }
    if children.is_empty() {
        let text = "nothing holds it any more; the server takes it away by itself";
        children.push(Node::note(text).act("nobody", "look again", None));
    }
    children
}

/// What keeps something that stays from being as it should be.
fn standing(look: &Look<'_>, thing: &Thing<'_>, trail: &Trail) -> Vec<Node> {
    let Id { group, resource, .. } = &thing.id;
    match (group.as_str(), resource.as_str()) {
        ("work.open-cluster-management.io", "manifestworks") => work::standing(look, thing, trail),
        ("work.open-cluster-management.io", "appliedmanifestworks") => {
            work::ledger_standing(look, thing, trail)
        }
        ("work.open-cluster-management.io", "manifestworkreplicasets") => {
            set::standing(look, thing, trail)
        }
        ("cluster.open-cluster-management.io", "managedclusters") => {
            cluster::standing(look, thing, trail)
        }
        ("policy.open-cluster-management.io", "policies") => policy::standing(look, thing, trail),
        ("policy.open-cluster-management.io", "configurationpolicies") => {
            policy::configuration(look, thing, trail)
        }
        ("policy.open-cluster-management.io", "policyautomations") => {
            policy::automation(look, thing, trail)
        }
        ("protection.open-cluster-management.io", "criticalservices") => {
            critical::standing(look, thing, trail)
        }
        ("certificates.k8s.io", "certificatesigningrequests") => vec_of(cluster::request(thing)),
        ("apiregistration.k8s.io", "apiservices") => vec_of(namespace::api_service(look, thing)),
        ("apps", "deployments" | "statefulsets" | "daemonsets" | "replicasets") => {
            let health = workload::health(look, thing);
            let mut children = health.children;
            if health.weight != Weight::Note {
                children.insert(0, Node { children: Vec::new(), ..health });
            }
            children
        }
        ("", "pods") => vec_of(pod::standing(look, thing)),
        ("", "persistentvolumeclaims") => vec_of(ready::claim(look, thing)),
        ("batch", "jobs") => vec_of(ready::job(thing)),
        _ => {
            let mut children = conditions::unmet(look, thing);
            children.extend(conditions::unobserved(look, thing));
            children
        }
    }
}

fn vec_of(node: Option<Node>) -> Vec<Node> {
    node.map(|node| vec![node]).unwrap_or_default()
}

/// How a person takes a finalizer off by hand, which is nobody's first choice.
pub(super) fn without_finalizer(thing: &Thing<'_>, finalizer: &str) -> String {
    let rest: Vec<String> = thing
        .finalizers()
        .into_iter()
        .filter(|one| *one != finalizer)
        .map(|one| format!("\"{one}\""))
        .collect();
    let list = if rest.is_empty() { "null".to_string() } else { format!("[{}]", rest.join(",")) };
    let patch = format!("--type=merge -p '{{\"metadata\":{{\"finalizers\":{list}}}}}'");
    kubectl(thing.place, "patch", &thing.id, &patch)
}
