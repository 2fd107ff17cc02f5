//! Policies that the hub does not have any more though nobody let go of them there: their kind went
//! with its definition, or they vanished while this cluster held them (a hub that was restored from an
//! older copy of itself, a finalizer taken off by hand).
//!
//! What went with its kind stays until the hub sends it again or somebody removes it from the cluster.
//! What vanished alone stays for a while, in case it comes back.

use alloc::borrow::ToOwned as _;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::observed::{Observed, Policy};
use super::plan::{prunes, target};
use crate::write::{Action, Side, Write};

/// On the copy of a policy: the hub lost its kind, and did not let go of it. What the hub sends again
/// has other annotations, so that the mark goes by itself.
pub(crate) const ADRIFT: &str = "policy.open-cluster-management.io/lost-with-definition";

/// How long a policy that was held and is gone is waited for before what it made is pruned.
pub(crate) const PATIENCE: SignedDuration = SignedDuration::from_mins(5);

/// What becomes of a copy that the hub has no policy for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Adrift {
    /// It goes.
    No,
    /// It goes then.
    Until(Timestamp),
    Kept,
}

pub(crate) fn of(seen: &Observed, local: &Policy) -> Adrift {
    // A cluster that leaves keeps or drops what the hub says, and waits for nothing.
    if local.deleting || seen.leaving != Ok(None) {
        return Adrift::No;
    }
    if is_adrift(local) {
        return Adrift::Kept;
    }
    let takes_away = prunes(&local.spec)
        || !seen.marked.as_ref().is_ok_and(|all| all.iter().all(|one| !one.prunes));
    let since = seen.vanished.map_or(seen.now, |vanished| vanished.since);
    let end = since.checked_add(PATIENCE).unwrap_or(seen.now);
    match takes_away && end > seen.now {
        true => Adrift::Until(end),
        false => Adrift::No,
    }
}

/// Whether a copy is marked as one that the hub did not let go of.
pub fn is_adrift(local: &Policy) -> bool {
    let annotations = local.object.pointer("/metadata/annotations");
    annotations.and_then(|all| all.get(ADRIFT)).and_then(Value::as_str) == Some("true")
}

/// Marks the copy as one that the hub did not let go of. `None`: it is.
pub(crate) fn mark(seen: &Observed, local: &Policy) -> Option<Action> {
    if is_adrift(local) {
        return None;
    }
    let patch = json!({ "metadata": {
        "uid": local.uid,
        "resourceVersion": local.resource_version,
        "annotations": { ADRIFT.to_owned(): "true" },
    }});
    let target = target(seen, Side::Cluster);
    Some(Action { side: Side::Cluster, target, write: Write::Merge(patch) })
}

/// Whether a patch is such a mark.
pub(crate) fn marks(patch: &Value) -> bool {
    patch.pointer("/metadata/annotations").is_some_and(|all| all.get(ADRIFT).is_some())
}
