//! Policies: on which cluster one does not hold and why, what is left of one that goes, and why an
//! automation does nothing.

use alloc::borrow::ToOwned as _;
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec;
use alloc::vec::Vec;

use cleat_api::configurationpolicy::{reason, state};
use cleat_api::policy::{GROUP, name};
use cleat_api::policyautomation::condition;
use serde_json::Value;

use super::object::{self, Thing, Trail, id, id_of, list, text};
use super::question::{Answer, Found, Look, Place, Question};
use super::tree::{Node, Reason, Weight};
use super::{Wish, cluster, conditions};
use crate::id::Id;

/// How many clusters or objects are told; the rest is counted.
const MOST: usize = 3;

/// The root that a replica or a copy is of, as `<namespace>.<name>`.
fn root_of<'a>(thing: &Thing<'a>) -> Option<&'a str> {
    let labels = thing.object.pointer("/metadata/labels")?;
    labels.get(name::ROOT_POLICY).and_then(Value::as_str)
}

pub(super) fn standing(look: &Look<'_>, thing: &Thing<'_>, trail: &Trail) -> Vec<Node> {
    if thing.object.pointer("/spec/disabled").and_then(Value::as_bool) == Some(true) {
        let node = Node::blocks(Reason::Suspended, "it is disabled, and so on no cluster");
        return vec![node.act("whoever wrote it", "set spec.disabled to false", None)];
    }
    if root_of(thing).is_some() {
        return copy(look, thing, trail);
    }
    if thing.list("/status/placement").is_empty() {
        let node = Node::blocks(Reason::PlacementEmpty, "no PlacementBinding binds it to clusters");
        return vec![node.act("whoever wrote it", "bind it to a placement", None)];
    }
    let clusters = thing.list("/status/status");
    if clusters.is_empty() {
        let node =
            Node::blocks(Reason::PlacementEmpty, "the placements it is bound to choose none");
        return vec![node.act("whoever wrote the placements", "see what they choose", None)];
    }
    let amiss = |one: &&Value| {
        text(one, "/compliant") != state::COMPLIANT || !text(one, "/message").is_empty()
    };
    let amiss: Vec<&Value> = clusters.iter().filter(amiss).collect();
    let mut children: Vec<Node> =
        amiss.iter().take(MOST).map(|one| on_cluster(look, thing, one, trail)).collect();
    if amiss.len() > MOST {
        children.push(Node::note(format!("and {} clusters more", amiss.len() - MOST)));
    }
    children
}

/// How a root stands on one cluster.
fn on_cluster(look: &Look<'_>, thing: &Thing<'_>, told: &Value, trail: &Trail) -> Node {
    let cluster = text(told, "/clustername");
    let stands = match text(told, "/compliant") {
        "" => "it is not known whether it holds",
        state::NONCOMPLIANT => "it does not hold",
        state::PENDING => "it waits for what it depends on",
        _ => "it holds",
    };
    let mut says = format!("on {cluster} {stands}");
    if !text(told, "/message").is_empty() {
        says.push_str(&format!(": {}", text(told, "/message")));
    }
    let namespace = match text(told, "/clusternamespace") {
        "" => cluster,
        namespace => namespace,
    };
    let name = format!("{}.{}", thing.id.namespace, thing.id.name);
    let replica = id(GROUP, "policies", namespace, &name);
    let mut children: Vec<Node> = cluster::reach(look, cluster).into_iter().collect();
    children.push(object::tell(look, Place::Here, &replica, Wish::There, trail));
    Node::blocks(Reason::NonCompliant, says).with(children)
}

/// A replica on the hub, or the copy on the cluster: what each template said last.
fn copy(look: &Look<'_>, thing: &Thing<'_>, trail: &Trail) -> Vec<Node> {
    let mut children = Vec::new();
    let details = thing.list("/status/details");
    if details.is_empty() {
        let text = "no agent has said anything of it yet";
        let node = Node::blocks(Reason::NotObserved, text);
        children.push(node.act("the agent of the cluster", "see that it runs", None));
    }
    let annotations = thing.object.pointer("/metadata/annotations");
    let error = annotations.and_then(|all| all.get(name::HUB_TEMPLATES_ERROR));
    if let Some(error) = error.and_then(Value::as_str).filter(|error| !error.is_empty()) {
        let text = format!("its templates cannot be resolved on the hub: {error}");
        let node = Node::blocks(Reason::NotReady, text);
        children.push(node.act("whoever wrote it", "correct the template", None));
    }
    for detail in details.iter().filter(|one| text(one, "/compliant") != state::COMPLIANT) {
        let template = text(detail, "/templateMeta/name");
        let said = list(detail, "/history").first().map(|one| text(one, "/message"));
        let state = match text(detail, "/compliant") {
            "" => "Unknown",
            state => state,
        };
        let says = format!("template {template} is {state}: {}", said.unwrap_or("nothing said"));
        let node = Node::blocks(Reason::NonCompliant, says);
        children.push(node.with(template_there(look, thing, template, trail)));
    }
    children
}

/// The template's own object, where the cluster can be asked.
fn template_there(look: &Look<'_>, thing: &Thing<'_>, name: &str, trail: &Trail) -> Vec<Node> {
    let namespace = &thing.id.namespace;
    let at_home = id(GROUP, "configurationpolicies", namespace, name);
    // On the cluster itself the template is beside its policy; on the hub there is none.
    if let Found::Present(_) = look.object(thing.place, &at_home) {
        return vec![object::tell(look, thing.place, &at_home, Wish::There, trail)];
    }
    if thing.place == Place::Cluster || is_cluster(look, namespace) != Some(true) {
        return Vec::new();
    }
    match cluster::identity(look, thing) {
        Some(unknown) => vec![Node { weight: Weight::Note, ..unknown }],
        None => vec![object::tell(look, Place::Cluster, &at_home, Wish::There, trail)],
    }
}

/// Whether this server is a hub that has a cluster of that name.
fn is_cluster(look: &Look<'_>, name: &str) -> Option<bool> {
    match look.object(Place::Here, &id(cluster::GROUP, "managedclusters", "", name)) {
        Found::Present(_) => Some(true),
        Found::Absent | Found::NoSuchKind => Some(false),
        Found::Pending | Found::Unread(_) => None,
    }
}

/// Why a configuration policy does not hold.
pub(super) fn configuration(look: &Look<'_>, thing: &Thing<'_>, trail: &Trail) -> Vec<Node> {
    let compliant = thing.text("/status/compliant");
    if compliant == state::COMPLIANT {
        return Vec::new();
    }
    if compliant.is_empty() {
        let node = Node::blocks(Reason::NotObserved, "nobody has evaluated it yet");
        return vec![node.act("the agent of the cluster", "see that it runs", None)];
    }
    let action = thing.text("/spec/remediationAction");
    let informs = action.eq_ignore_ascii_case("inform");
    let mut children = Vec::new();
    for detail in thing.list("/status/compliancyDetails") {
        if text(detail, "/Compliant") == state::COMPLIANT {
            continue;
        }
        for one in list(detail, "/conditions") {
            let says = text(one, "/message").to_string();
            let node = Node::blocks(Reason::NonCompliant, says);
            children.push(match informs {
                true => node.act(
                    "whoever wrote the policy",
                    "it only informs: change what it found, or let it enforce",
                    None,
                ),
                false => node.act(
                    "the agent of the cluster",
                    "it tries again; take away what keeps it from it",
                    None,
                ),
            });
        }
    }
    for related in thing.list("/status/relatedObjects") {
        if children.len() > MOST {
            break;
        }
        let why = text(related, "/reason");
        if text(related, "/compliant") != state::NONCOMPLIANT || informs {
            continue;
        }
        let Some(id) = related_id(look, thing.place, related) else { continue };
        let wish = if why == reason::UNWANTED { Wish::Gone } else { Wish::There };
        children.push(object::tell(look, thing.place, &id, wish, trail));
    }
    children
}

/// The object of a related object; its resource has to be asked for.
fn related_id(look: &Look<'_>, place: Place, related: &Value) -> Option<Id> {
    let api_version = text(related, "/object/apiVersion");
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let kind = text(related, "/object/kind");
    let question = Question::Kind { place, group: group.to_owned(), kind: kind.to_owned() };
    let Some(Answer::Kind(found)) = look.ask(question) else { return None };
    let name = text(related, "/object/metadata/name");
    let namespace = match found.namespaced {
        true => text(related, "/object/metadata/namespace"),
        false => "",
    };
    (name != "-" && !name.is_empty()).then(|| id(group, &found.resource, namespace, name))
}

/// A configuration policy that prunes is held until what it made is gone.
pub(super) fn pruning(look: &Look<'_>, thing: &Thing<'_>, trail: &Trail) -> Node {
    let prunes = thing.text("/spec/pruneObjectBehavior");
    let says = format!("it is held until what it made is gone (pruneObjectBehavior: {prunes})");
    let all = prunes == "DeleteAll";
    let related: Vec<&Value> = thing
        .list("/status/relatedObjects")
        .iter()
        .filter(|one| {
            let made = one.pointer("/properties/createdByPolicy").and_then(Value::as_bool);
            all || made == Some(true)
        })
        .collect();
    let children: Vec<Node> = related
        .iter()
        .take(MOST)
        .filter_map(|one| related_id(look, thing.place, one))
        .map(|id| object::tell(look, thing.place, &id, Wish::Gone, trail))
        .collect();
    let node = Node::blocks(Reason::RemovalPending, says);
    if children.iter().any(Node::is_blocking) {
        return node.with(children);
    }
    let what = "nothing of it is left; see that it runs";
    node.act("the agent of the cluster", what, None).with(children)
}

/// A policy that goes and is held while templates of it are left.
pub(super) fn going(look: &Look<'_>, thing: &Thing<'_>, finalizer: &str, trail: &Trail) -> Node {
    let says = format!("finalizer {finalizer}: it is held while something of it is left");
    let node = Node::blocks(Reason::RemovalPending, says);
    let labels = format!("{}={}", name::PARENT_POLICY, thing.id.name);
    let of = (GROUP, "configurationpolicies");
    let mut children = Vec::new();
    let hub_copy = is_cluster(look, &thing.id.namespace) == Some(true);
    let (place, unknown) = if hub_copy && thing.place == Place::Here {
        children.extend(cluster::reach(look, &thing.id.namespace));
        (Place::Cluster, cluster::identity(look, thing))
    } else {
        (thing.place, None)
    };
    if let Some(unknown) = unknown {
        children.push(unknown);
    } else {
        let left = look.list(place, of, (&thing.id.namespace, &labels));
        children.extend(left.unread.map(|unread| Node::unread("its templates", unread)));
        for one in left.items.iter().take(MOST) {
            children.push(object::tell(look, place, &id_of(of.0, of.1, one), Wish::Gone, trail));
        }
    }
    for detail in thing.list("/status/details") {
        let said = list(detail, "/history").first().map(|one| text(one, "/message"));
        if let Some(said) = said.filter(|said| said.contains(state::TERMINATING)) {
            children.push(Node::note(said));
        }
    }
    if children.iter().any(|one| one.is_blocking() || one.weight == Weight::Unread) {
        return node.with(children);
    }
    node.act("the agent of the cluster", "see that it runs", None).with(children)
}

/// Why an automation does nothing.
pub(super) fn automation(look: &Look<'_>, thing: &Thing<'_>, _trail: &Trail) -> Vec<Node> {
    let mut children = Vec::new();
    if thing.text("/spec/mode") == "disabled" {
        let node = Node::blocks(Reason::Suspended, "its mode is disabled");
        let rerun = format!("annotate it with {}=true to run it once", RERUN);
        children.push(node.act("whoever wrote it", &format!("set another mode, or {rerun}"), None));
    }
    let policy = id(GROUP, "policies", &thing.id.namespace, thing.text("/spec/policyRef"));
    match look.object(thing.place, &policy) {
        Found::Absent => {
            let node = Node::blocks(Reason::Missing, format!("{policy} is not there"));
            children.push(node.act("whoever wrote it", "name a policy that is", None));
        }
        Found::Unread(unread) => children.push(Node::unread(&format!("{policy}"), unread)),
        Found::Present(object) if text(object, "/status/compliant") == state::COMPLIANT => {
            children.push(Node::note(format!("{policy} holds, so there is nothing to run for")));
        }
        _ => {}
    }
    for (kind, good) in [
        (condition::JOBS_CREATED, "True"),
        (condition::JOBS_SUCCEED, "True"),
        (condition::HELD_BACK, "False"),
    ] {
        let found = conditions::find(thing, kind).filter(|one| text(one, "/status") != good);
        children.extend(found.map(|one| conditions::said(look, thing, one)));
    }
    let pending: Vec<&str> =
        thing.list("/status/pendingJobs").iter().map(|one| text(one, "/name")).collect();
    if !pending.is_empty() {
        let jobs: String = pending.join(", ");
        let node = Node::blocks(Reason::NotObserved, format!("jobs have yet to be made: {jobs}"));
        children.push(node.act("cleat hub", "see that it runs", None));
    }
    children
}

/// The annotation that runs an automation now.
const RERUN: &str = cleat_api::policyautomation::RERUN;
