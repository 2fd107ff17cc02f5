//! Sets of works: which placement, cluster or work one waits for.

use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

use cleat_api::manifestwork::condition as of_work;
use cleat_api::manifestworkreplicaset::{SET_LABEL, condition, key};
use serde_json::Value;

use super::object::{self, Thing, Trail, id, id_of, list, text};
use super::question::{Found, Look, Place};
use super::tree::{Node, Reason};
use super::{Wish, cluster, conditions};

const WORKS: (&str, &str) = ("work.open-cluster-management.io", "manifestworks");

/// How many works are told; the rest is counted.
const MOST: usize = 3;

pub(super) fn standing(look: &Look<'_>, thing: &Thing<'_>, trail: &Trail) -> Vec<Node> {
    let mut children = Vec::new();
    let Some(verified) = conditions::find(thing, condition::PLACEMENT_VERIFIED) else {
        let node = Node::blocks(Reason::NotObserved, "no hub has looked at it yet");
        return vec![node.act("cleat hub", "see that it runs", None)];
    };
    for reference in thing.list("/spec/placementRefs") {
        children.extend(placement(look, thing, text(reference, "/name")));
    }
    if text(verified, "/status") != "True" && children.is_empty() {
        children.push(conditions::said(look, thing, verified));
    }
    let unmet = |kind| conditions::find(thing, kind).filter(|one| text(one, "/status") != "True");
    let rolling = unmet(condition::PLACEMENT_ROLLED_OUT);
    let applying = unmet(condition::MANIFESTWORK_APPLIED);
    if rolling.is_none() && applying.is_none() {
        return children;
    }
    let count = |field: &str| thing.number(&format!("/status/summary/{field}")).unwrap_or_default();
    let says = format!(
        "of {} works, {} carry the current template, {} are applied and {} available",
        count("desiredTotal"),
        count("updated"),
        count("applied"),
        count("available"),
    );
    let mut waits = Node::blocks(Reason::RolloutWaiting, says);
    let told = rolling.or(applying).into_iter();
    waits.children.extend(told.map(|one| Node::note(conditions::sentence(look, one))));
    let works = works(look, thing, trail, |work| {
        let conditions = list(work, "/status/conditions");
        let holds = |kind: &str| {
            let found = conditions.iter().find(|one| text(one, "/type") == kind);
            found.is_some_and(|one| text(one, "/status") == "True")
        };
        !holds(of_work::APPLIED) || !holds(of_work::AVAILABLE)
    });
    waits.children.extend(works);
    if waits.children.iter().all(|child| !child.is_blocking()) {
        waits =
            waits.act("cleat hub", "the others follow when the rollout strategy lets them", None);
    }
    children.push(waits);
    children
}

/// Why a placement chooses nothing.
fn placement(look: &Look<'_>, thing: &Thing<'_>, name: &str) -> Option<Node> {
    let placement_id = id(cluster::GROUP, "placements", &thing.id.namespace, name);
    let object = match look.object(Place::Here, &placement_id) {
        Found::Present(object) => object,
        Found::Absent => {
            let text = format!("{placement_id}, which it names, is not there");
            let node = Node::blocks(Reason::Missing, text).about(Place::Here, &placement_id);
            return Some(node.act("whoever wrote the set", "make the placement", None));
        }
        Found::Unread(unread) => return Some(Node::unread(&format!("{placement_id}"), unread)),
        Found::Pending | Found::NoSuchKind => return None,
    };
    let labels = format!("cluster.open-cluster-management.io/placement={name}");
    let of = (cluster::GROUP, "placementdecisions");
    let decisions = look.list(Place::Here, of, (&thing.id.namespace, &labels));
    if let Some(unread) = decisions.unread {
        return Some(Node::unread("placementdecisions", unread));
    }
    let chosen: usize =
        decisions.items.iter().map(|one| list(one, "/status/decisions").len()).sum();
    if chosen > 0 {
        return None;
    }
    let placement = Thing { place: Place::Here, id: placement_id.clone(), object };
    let why = conditions::unmet(look, &placement);
    let text = format!("{placement_id} chooses no cluster");
    let node = Node::blocks(Reason::PlacementEmpty, text).about(Place::Here, &placement_id);
    if why.is_empty() {
        let what = "bind a set of clusters to the namespace, or choose differently";
        return Some(node.act("whoever wrote the placement", what, None));
    }
    Some(node.with(why))
}

/// A set that is being deleted waits for its works.
pub(super) fn going(look: &Look<'_>, thing: &Thing<'_>, trail: &Trail) -> Node {
    let node = Node::blocks(Reason::RemovalPending, "the hub deletes its works first");
    let works = works(look, thing, trail, |_| true);
    if works.is_empty() {
        return node.act("cleat hub", "none is left; see that it runs", None);
    }
    node.with(works)
}

fn works(
    look: &Look<'_>,
    thing: &Thing<'_>,
    trail: &Trail,
    told: impl Fn(&Value) -> bool,
) -> Vec<Node> {
    let labels = format!("{SET_LABEL}={}", key(&thing.id.namespace, &thing.id.name));
    let all = look.list(Place::Here, WORKS, ("", &labels));
    if let Some(unread) = all.unread {
        return vec![Node::unread("its works", unread)];
    }
    let wish = if thing.deleting().is_some() { Wish::Gone } else { Wish::There };
    let chosen: Vec<&Value> = all.items.iter().filter(|work| told(work)).collect();
    let mut children: Vec<Node> = chosen
        .iter()
        .take(MOST)
        .map(|work| object::tell(look, Place::Here, &id_of(WORKS.0, WORKS.1, work), wish, trail))
        .collect();
    if chosen.len() > MOST {
        let least = if all.more { "at least " } else { "" };
        children.push(Node::note(format!("and {least}{} works more", chosen.len() - MOST)));
    }
    children
}
