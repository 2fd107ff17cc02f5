//! Seeing that what a policy made is gone before the policy is let go of on a cluster that is emptied.
//!
//! Templates prune, and whoever looks after them says when they are done. That may be somebody else's
//! controller, and somebody may take a template's hold away; so the server is asked once more, for each
//! object by its uid, when no template is left. What to ask about is noted in the hub's own policy, or in
//! the copy on the cluster where the hub has lost it, which goes last.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use cleat_api::leftoverrecord::LeftObject;
use cleat_api::managedcluster::RemoveStrategy;
use cleat_api::manifestwork::{BlockedObject, Removal};
use serde_json::{Value, json};

use super::observed::{Copy, Observed, Policy};
use super::plan::{hub_side, target};
use super::removal::{self, MOST, key};
use crate::leave::clean::id;
use crate::leave::record;
use crate::write::{Action, Side, Write};

/// What the server is to be asked about, when nothing else holds the policy any more.
pub fn to_be_seen_gone(seen: &Observed) -> Vec<LeftObject> {
    let none = seen.marked.as_ref().is_ok_and(Vec::is_empty);
    let (Ok(Some(_)), true) = (&seen.leaving, none) else { return Vec::new() };
    let (noted, left): (&Policy, BTreeSet<[String; 5]>) = match (&seen.replica, &seen.local) {
        (Copy::Present(replica), local) => {
            let gone = matches!(local, Copy::Absent) || seen.place.own_hub;
            if !replica.deleting || !gone {
                return Vec::new();
            }
            let left = replica.status.removal.iter().flat_map(|removal| &removal.left);
            (replica, left.map(key).collect())
        }
        (Copy::Absent, Copy::Present(local)) => (local, removal::heard(seen).map(key).collect()),
        (Copy::Absent | Copy::Unknown(_), _) => return Vec::new(),
    };
    let due = |one: &&LeftObject| is_due(one) && !left.contains(&key(one));
    noted.status.objects.iter().filter(due).cloned().collect()
}

/// Whether everything was seen gone.
pub(super) fn is_seen(seen: &Observed) -> bool {
    seen.still.as_ref().is_ok_and(Vec::is_empty)
}

/// Tells the hub what the templates made, where it does not know it yet: it is looked for at the end.
pub(super) fn tell(seen: &Observed, replica: &Policy) -> Option<Action> {
    note(seen, replica, hub_side(seen))
}

/// The same in the copy of a policy that the hub has lost, if the cluster stores it there.
pub(super) fn keep(seen: &Observed, local: &Policy) -> Option<Action> {
    if seen.place.forgets { None } else { note(seen, local, Side::Cluster) }
}

fn note(seen: &Observed, policy: &Policy, side: Side) -> Option<Action> {
    let (due, others) = listed(seen, policy)?;
    // What has to be seen gone goes before what is told elsewhere.
    let mut all: Vec<LeftObject> = due.into_iter().chain(others).take(MOST).collect();
    all.sort_by_key(key);
    let mut before = policy.status.objects.clone();
    before.sort_by_key(key);
    if before == all {
        return None;
    }
    let patch = json!({
        "metadata": { "uid": policy.uid, "resourceVersion": policy.resource_version },
        "status": { "objects": all },
    });
    Some(Action { side, target: target(seen, side), write: Write::MergeStatus(patch) })
}

/// Everything that the templates made or once made, as far as anybody knows, on a cluster that is to be
/// emptied: what has to be seen gone, and the rest. `None`: it is not so, or that cannot be told.
fn listed(seen: &Observed, policy: &Policy) -> Option<(Vec<LeftObject>, Vec<LeftObject>)> {
    let Ok(Some(RemoveStrategy::Required)) = seen.leaving else { return None };
    let now = removal::everything_declared(seen).ok()?;
    let all = policy.status.objects.iter().cloned().chain(now);
    let all: BTreeMap<[String; 5], LeftObject> = all.map(|one| (key(&one), one)).collect();
    Some(all.into_values().partition(is_due))
}

fn is_due(one: &LeftObject) -> bool {
    !one.uid.is_empty() && one.stays.is_none()
}

/// How many objects have to be seen gone and cannot be noted: there their templates are believed, and the
/// record says how many.
pub(super) fn unnoted(seen: &Observed, policy: &Policy) -> i64 {
    let due = listed(seen, policy).map(|(due, _)| due.len()).unwrap_or_default();
    i64::try_from(due.saturating_sub(MOST)).unwrap_or(i64::MAX)
}

/// Whether a copy does not have what was just noted in it: the cluster's definition of policies is older
/// than the agent, or another's.
pub fn is_forgotten(write: &Write, answer: &Value) -> bool {
    let Write::MergeStatus(patch) = write else { return false };
    let count = |object: &Value| {
        let all = object.pointer("/status/objects").and_then(Value::as_array);
        all.map(Vec::len).unwrap_or_default()
    };
    answer.is_object() && count(patch) > 0 && count(answer) == 0
}

/// What a policy that the hub has lost waits for, for people.
pub(super) fn awaits(seen: &Observed) -> Option<String> {
    let Copy::Absent = seen.replica else { return None };
    let blocked = blocked(seen, None);
    let more = blocked.len().saturating_sub(1);
    let BlockedObject { object, why, .. } = blocked.into_iter().next()?;
    let more = if more > 0 { format!(" (and {more} more)") } else { String::new() };
    Some(format!("waits for {object}{more}: {why}"))
}

/// What is in the way of that.
pub(super) fn blocked(seen: &Observed, before: Option<&Removal>) -> Vec<BlockedObject> {
    let waits = |object: &str, why: &str| record::waits(object, why.to_string(), before, seen.now);
    match &seen.still {
        Ok(still) => {
            let why = "it is there though its template is gone: delete it, or let it stay with \
                       --remove-strategy Needless";
            let each = still.iter().map(|one| waits(&id(one).to_string(), why));
            each.take(NAMED).collect()
        }
        Err(why) => [waits("what it made, which has to be seen gone", why)].into(),
    }
}

/// How many objects that are still there are named.
const NAMED: usize = 50;
