//! Seeing that what a policy made is gone before the policy is let go of on a cluster that is emptied.
//!
//! Templates prune, and whoever looks after them says when they are done. That may be somebody else's
//! controller, and somebody may take a template's hold away; so the server is asked once more, for each
//! object by its uid, when no template is left.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use cleat_api::leftoverrecord::LeftObject;
use cleat_api::managedcluster::RemoveStrategy;
use cleat_api::manifestwork::{BlockedObject, Removal};
use serde_json::json;

use super::observed::{Copy, Observed, Policy};
use super::plan::{hub_side, target};
use super::removal::{self, MOST, key};
use crate::leave::clean::id;
use crate::leave::record;
use crate::write::{Action, Write};

/// What the server is to be asked about, when nothing else holds the policy any more.
pub fn to_be_seen_gone(seen: &Observed) -> Vec<LeftObject> {
    let (Ok(Some(_)), Copy::Present(replica)) = (&seen.leaving, &seen.replica) else {
        return Vec::new();
    };
    let gone = matches!(seen.local, Copy::Absent) || seen.place.own_hub;
    let none = seen.marked.as_ref().is_ok_and(Vec::is_empty);
    if !replica.deleting || !gone || !none {
        return Vec::new();
    }
    let left = replica.status.removal.iter().flat_map(|removal| &removal.left);
    let left: Vec<[String; 5]> = left.map(key).collect();
    let due =
        |one: &&LeftObject| !one.uid.is_empty() && one.stays.is_none() && !left.contains(&key(one));
    replica.status.objects.iter().filter(due).cloned().collect()
}

/// Whether everything was seen gone.
pub(super) fn is_seen(seen: &Observed) -> bool {
    seen.still.as_ref().is_ok_and(Vec::is_empty)
}

/// Tells the hub what the templates made, where it does not know it yet: it is looked for at the end.
pub(super) fn tell(seen: &Observed, replica: &Policy) -> Option<Action> {
    let known = &replica.status.objects;
    let Ok(Some(RemoveStrategy::Required)) = seen.leaving else { return None };
    let now = removal::everything_declared(seen).ok()?;
    let all = known.iter().cloned().chain(now);
    let all: BTreeMap<[String; 5], LeftObject> = all.map(|one| (key(&one), one)).collect();
    let all: Vec<LeftObject> = all.into_values().take(MOST).collect();
    let mut before = known.clone();
    before.sort_by_key(key);
    if before == all {
        return None;
    }
    let patch = json!({
        "metadata": { "uid": replica.uid, "resourceVersion": replica.resource_version },
        "status": { "objects": all },
    });
    let side = hub_side(seen);
    Some(Action { side, target: target(seen, side), write: Write::MergeStatus(patch) })
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
