//! Works: what the agent says of one on the hub, and what its ledger says on the cluster.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

use cleat_api::manifestwork::{GROUP, condition};
use serde_json::Value;

use super::object::{self, Thing, Trail, id, id_of, list, text};
use super::question::{Look, Place};
use super::tree::{Node, Reason};
use super::{Wish, ago, cluster, conditions};
use crate::id::Id;

const LEDGERS: (&str, &str) = (GROUP, "appliedmanifestworks");

/// How many objects of a work are told; the rest is counted.
const MOST: usize = 5;

/// A work that stays: what of it is not on the cluster, or not well there.
pub(super) fn standing(look: &Look<'_>, thing: &Thing<'_>, trail: &Trail) -> Vec<Node> {
    let cluster = &thing.id.namespace;
    let mut children: Vec<Node> = cluster::reach(look, cluster).into_iter().collect();
    let reached = children.is_empty();
    let Some(applied) = conditions::find(thing, condition::APPLIED) else {
        let node = Node::blocks(Reason::NotObserved, "no agent has looked at it yet");
        children.push(match reached {
            true => node.act("the agent of the cluster", "see that it runs", None),
            false => node,
        });
        return children;
    };
    let behind = thing.number("/metadata/generation").unwrap_or_default()
        > applied.pointer("/observedGeneration").and_then(Value::as_i64).unwrap_or(i64::MAX);
    if behind {
        let text = "the agent has not looked at its latest change yet";
        let node = Node::blocks(Reason::NotObserved, text);
        children.push(match reached {
            true => node.act("the agent of the cluster", "see that it runs", None),
            false => node,
        });
    }
    let available = conditions::find(thing, condition::AVAILABLE);
    for one in [Some(applied), available].into_iter().flatten() {
        if text(one, "/status") != "True" {
            let node = Node::blocks(Reason::NotReady, conditions::sentence(look, one));
            let amiss = manifests(look, thing, text(one, "/type"), trail);
            children.push(match amiss.is_empty() {
                true => node.act("whoever wrote the work", "do what it says", None),
                false => node.with(amiss),
            });
        }
    }
    let degraded =
        conditions::find(thing, condition::DEGRADED).filter(|one| text(one, "/status") == "True");
    children.extend(degraded.map(|one| conditions::said(look, thing, one)));
    children
}

/// The manifests of which a condition does not hold.
fn manifests(look: &Look<'_>, thing: &Thing<'_>, kind: &str, trail: &Trail) -> Vec<Node> {
    let elsewhere = cluster::identity(look, thing);
    let mut children = Vec::new();
    let mut beyond = 0_usize;
    for manifest in thing.list("/status/resourceStatus/manifests") {
        let found = list(manifest, "/conditions").iter().find(|one| text(one, "/type") == kind);
        let Some(found) = found.filter(|one| text(one, "/status") != "True") else { continue };
        if children.len() == MOST {
            beyond += 1;
            continue;
        }
        let field = |name: &str| text(manifest, &format!("/resourceMeta/{name}"));
        let id = id(field("group"), field("resource"), field("namespace"), field("name"));
        let says = format!("{id}: {}", text(found, "/message"));
        let node = Node::blocks(Reason::NotReady, says).about(Place::Cluster, &id);
        let may_look = elsewhere.is_none() && kind == condition::AVAILABLE && !id.name.is_empty();
        children.push(match may_look {
            true => node.with(vec![object::tell(look, Place::Cluster, &id, Wish::There, trail)]),
            false => node.act("whoever wrote the work", "do what it says", None),
        });
    }
    if beyond > 0 {
        children.push(Node::note(format!("and {beyond} more")));
    }
    children
}

/// A work that is being deleted, and is held by its agent.
pub(super) fn going(look: &Look<'_>, thing: &Thing<'_>, trail: &Trail) -> Node {
    let cluster = &thing.id.namespace;
    let says = format!("the agent of {cluster} holds it until what it must take along is gone");
    let mut children: Vec<Node> = cluster::reach(look, cluster).into_iter().collect();
    let reached = children.is_empty();
    match conditions::find(thing, condition::DELETING) {
        Some(one) => children.push(Node::note(conditions::sentence(look, one))),
        None if reached => {
            children.push(Node::blocks(Reason::NotObserved, "no agent has begun to remove it").act(
                "the agent of the cluster",
                "see that it runs",
                None,
            ))
        }
        None => {}
    }
    for one in thing.list("/status/removal/blocked").iter().take(MOST) {
        let mut says = format!("{}: {}", text(one, "/object"), text(one, "/why"));
        if let Ok(since) = text(one, "/since").parse() {
            says.push_str(&format!(", for {}", ago(since, look.now)));
        }
        children.push(Node::blocks(Reason::RemovalPending, says));
    }
    children.extend(match cluster::identity(look, thing) {
        Some(unknown) => vec![unknown],
        None => on_the_cluster(look, thing, trail),
    });
    Node::blocks(Reason::RemovalPending, says).with(children)
}

/// Its ledger on the cluster, and the objects on it.
fn on_the_cluster(look: &Look<'_>, thing: &Thing<'_>, trail: &Trail) -> Vec<Node> {
    let all = look.list(Place::Cluster, LEDGERS, ("", ""));
    if let Some(unread) = all.unread {
        return vec![Node::unread("its ledger on the cluster", unread)];
    }
    let of_work = |ledger: &&Value| text(ledger, "/spec/manifestWorkName") == thing.id.name;
    let ledgers: Vec<Node> = all
        .items
        .iter()
        .filter(of_work)
        .flat_map(|object| {
            let id = id_of(LEDGERS.0, LEDGERS.1, object);
            objects(look, &Thing { place: Place::Cluster, id, object }, trail)
        })
        .collect();
    if ledgers.is_empty() {
        let text = "its ledger is gone from the cluster, or holds nothing that must go";
        return vec![Node::note(text).act("the agent", "it lets go of the work by itself", None)];
    }
    ledgers
}

/// Everything on a ledger that must go and is there.
fn objects(look: &Look<'_>, ledger: &Thing<'_>, trail: &Trail) -> Vec<Node> {
    let mut kept: BTreeSet<Id> = BTreeSet::new();
    let mut must_go: BTreeSet<Id> = BTreeSet::new();
    let named = |one: &Value, name: &str| {
        let field = |name: &str| text(one, name);
        id(field("/group"), field("/resource"), field("/namespace"), name)
    };
    for claim in ledger.list("/spec/claims") {
        let names = claim.get("names").and_then(Value::as_array).into_iter().flatten();
        let names = names.chain(claim.get("name")).filter_map(Value::as_str);
        let stays = claim.get("kept").and_then(Value::as_bool) == Some(true);
        let side = if stays { &mut kept } else { &mut must_go };
        side.extend(names.map(|name| named(claim, name)));
    }
    let applied = ledger.list("/status/appliedResources").iter();
    must_go.extend(applied.map(|one| named(one, text(one, "/name"))));
    let must_go: Vec<&Id> = must_go.difference(&kept).collect();
    let mut children: Vec<Node> = must_go
        .iter()
        .take(MOST)
        .map(|id| object::tell(look, ledger.place, id, Wish::Gone, trail))
        .collect();
    if must_go.len() > MOST {
        children.push(Node::note(format!("and {} more", must_go.len() - MOST)));
    }
    children
}

/// The hub's own hold on a work of a cluster that leaves.
pub(super) fn recorded(thing: &Thing<'_>) -> Node {
    let left = thing.list("/status/removal/left").len();
    let says = format!("the hub writes down what stays of it ({left} objects), then lets it go");
    Node::blocks(Reason::RemovalPending, says).act("cleat hub", "see that it runs", None)
}

/// A ledger that is going, on its cluster.
pub(super) fn ledger_going(look: &Look<'_>, thing: &Thing<'_>, trail: &Trail) -> Node {
    let work = thing.text("/spec/manifestWorkName");
    let says = format!("the agent holds it until what work {work} brought is gone");
    let children = objects(look, thing, trail);
    let node = Node::blocks(Reason::RemovalPending, says);
    if children.is_empty() || !children.iter().any(Node::is_blocking) {
        return node
            .act("the agent of this cluster", "nothing is left; see that it runs", None)
            .with(children);
    }
    node.with(children)
}

/// A ledger that stays: whether its work is still there, as far as the agent said.
pub(super) fn ledger_standing(look: &Look<'_>, thing: &Thing<'_>, _trail: &Trail) -> Vec<Node> {
    let Ok(since) = thing.text("/status/evictionStartTime").parse() else { return Vec::new() };
    let work = thing.text("/spec/manifestWorkName");
    let text = format!("its work {work} is missing on the hub, for {}", ago(since, look.now));
    vec![Node::blocks(Reason::RemovalPending, text).act(
        "the agent of this cluster",
        "it removes the objects after a while, unless the work comes back",
        None,
    )]
}
