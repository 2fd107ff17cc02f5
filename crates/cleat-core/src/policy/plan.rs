//! What to do next about one policy: the whole of its life on a cluster, read top to bottom.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec;
use alloc::vec::Vec;

use cleat_api::configurationpolicy::{FINALIZER, PruneObjectBehavior};
use serde_json::json;

use super::evaluate::{self, Evaluation};
use super::interval::{self, Due};
use super::judge::Fix;
use super::observed::{Departure, Observed, Policy, Read, Subject};
use super::prune::{self, Fates};
use super::reader::{Question, Reader};
use super::report;
use super::select;
use super::spare;
use super::status;
use super::tracking;
use crate::work::kind_order;
use crate::write::{Action, Plan, Propagation, Side, Write};

/// The next steps. Empty: nothing to do until something changes or [`super::report`] says when.
///
/// It is asked again after every execution, so it only has to be right about what comes next. An
/// observation that lacks something ([`reads`], [`questions`]) gives an empty plan.
pub fn plan(seen: &Observed) -> Plan {
    let Subject::Policy(policy) = &seen.policy else { return vec![] };
    match seen.controller.departure {
        // Whoever leaves lets go and touches nothing.
        Departure::Leaving if policy.has_finalizer() => return vec![vec![drop_finalizer(policy)]],
        Departure::Leaving => return vec![],
        Departure::Unknown(_) if policy.deleting => return vec![],
        Departure::Unknown(_) | Departure::Staying | Departure::Emptying => {}
    }
    if policy.deleting {
        return leave(seen, policy);
    }
    match (policy.spec.prune_object_behavior, policy.has_finalizer()) {
        (PruneObjectBehavior::DeleteAll | PruneObjectBehavior::DeleteIfCreated, false) => {
            return vec![vec![add_finalizer(policy)]];
        }
        (PruneObjectBehavior::None, true) => return vec![vec![drop_finalizer(policy)]],
        _ => {}
    }
    if due(seen, policy) != Due::Now {
        return vec![];
    }
    let mut reader = Reader::new(&seen.cluster);
    match evaluate::evaluate(seen, policy, &mut reader) {
        None => vec![],
        Some(evaluation) => converge(seen, policy, &evaluation),
    }
}

/// Puts right what is wrong and takes away what left, after saying so.
fn converge(seen: &Observed, policy: &Policy, evaluation: &Evaluation) -> Plan {
    let deletions = prune::deletions(&evaluation.leaving, &seen.memory, seen.now);
    if evaluation.fixes.is_empty() && deletions.is_empty() {
        return vec![];
    }
    // What is wrong is shown before it is put right, and what will be made is claimed: both are in
    // the one status that is written first.
    let mut plan = match evaluation.fixes.is_empty() {
        true => vec![],
        false => {
            let status = report::status(seen, policy, evaluation, report::Progress::Begun);
            status::publish(seen, policy, status)
        }
    };
    let mut ranks: BTreeMap<u16, Vec<Action>> = BTreeMap::new();
    for (target, kind, fix) in &evaluation.fixes {
        let write = match fix {
            Fix::Create(object) => Write::Create(object.clone()),
            Fix::Replace(object) => Write::Replace(object.clone()),
            Fix::Delete { uid, resource_version } => Write::Delete {
                uid: uid.clone(),
                resource_version: resource_version.clone(),
                propagation: Propagation::Background,
            },
        };
        let action = Action { side: Side::Cluster, target: target.clone(), write };
        ranks.entry(kind_order::rank(&target.id.group, kind)).or_default().push(action);
    }
    plan.extend(ranks.into_values());
    if !deletions.is_empty() {
        plan.push(deletions);
    }
    plan
}

/// Whether a plan is not to be made from watches, which may be behind each other, but from what servers
/// say when they are asked: a policy that stays would delete something that may be wanted again, or one
/// of a cluster that is to be emptied would be let go of because everything it made is gone.
pub fn must_be_sure(seen: &Observed, plan: &Plan) -> bool {
    let Subject::Policy(policy) = &seen.policy else { return false };
    let mut writes = plan.iter().flatten().map(|action| &action.write);
    match policy.deleting {
        false => writes.any(|write| matches!(write, Write::Delete { .. })),
        true => {
            let empties = seen.controller.departure == Departure::Emptying;
            empties && writes.any(|write| matches!(write, Write::Merge(_)))
        }
    }
}

/// The policy is deleted: it goes when everything it has to take with it is gone.
fn leave(seen: &Observed, policy: &Policy) -> Plan {
    if !policy.has_finalizer() {
        return vec![];
    }
    let fates = fates_of_all(seen, policy, &mut Reader::new(&seen.cluster));
    if fates.iter().all(|one| spare::is_over(seen, policy, one)) {
        return vec![vec![drop_finalizer(policy)]];
    }
    let deletions = prune::deletions(&fates, &seen.memory, seen.now);
    if deletions.is_empty() { vec![] } else { vec![deletions] }
}

/// What becomes of everything a deleted policy lists.
pub(crate) fn fates_of_all(seen: &Observed, policy: &Policy, reader: &mut Reader<'_>) -> Fates {
    let all = policy.status.related_objects.iter();
    let mut fates = prune::fates(all, policy, prune::pruning(policy), reader);
    if seen.controller.departure == Departure::Emptying {
        spare::spare(&mut fates, policy, &seen.memory, reader);
    }
    fates
}

pub(crate) fn due(seen: &Observed, policy: &Policy) -> Due {
    if policy.stopped {
        return Due::Never;
    }
    let listed = &policy.status.related_objects;
    let unfinished = !seen.memory.deeds.is_empty()
        || seen.memory.troubles.values().any(|trouble| trouble.retry_at <= seen.now)
        || listed.iter().any(|entry| tracking::is_claim(entry.properties.as_ref()))
        // Something has left and is not gone.
        || listed.iter().any(|entry| entry.reason == cleat_api::configurationpolicy::reason::CLEANUP_ERROR);
    let moved = match (&seen.memory.namespaces, namespaces(seen)) {
        (Some(before), Some(now)) => *before != now,
        _ => false,
    };
    interval::due(policy, seen.now, unfinished, moved)
}

/// Whether the policy is evaluated now. If not, its templates need not be resolved.
pub fn is_due(seen: &Observed) -> bool {
    let Subject::Policy(policy) = &seen.policy else { return false };
    let leaving = policy.deleting || seen.controller.departure == Departure::Leaving;
    !leaving && due(seen, policy) == Due::Now
}

/// The namespaces the policy's selector chooses now, to be remembered until the next evaluation.
/// `None`: nobody can tell, or it has no selector.
pub fn namespaces(seen: &Observed) -> Option<Vec<alloc::string::String>> {
    let Subject::Policy(policy) = &seen.policy else { return None };
    let selector = &policy.spec.namespace_selector;
    let all = seen.cluster.namespaces.as_ref()?.as_ref().ok()?;
    if selector.is_empty() {
        return None;
    }
    select::namespaces(selector, seen.controller.terminating_namespaces, all).ok()
}

/// Everything the policy depends on now, and the part of it that this observation lacks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reads {
    pub all: BTreeSet<Read>,
    pub missing: BTreeSet<Read>,
    /// Updates to be tried without being stored.
    pub questions: Vec<Question>,
}

/// What has to be known of the cluster to decide anything about this policy.
pub fn reads(seen: &Observed) -> Reads {
    let Subject::Policy(policy) = &seen.policy else { return Reads::default() };
    let mut reader = Reader::new(&seen.cluster);
    if seen.controller.departure == Departure::Leaving {
        return Reads::default();
    }
    if policy.deleting {
        fates_of_all(seen, policy, &mut reader);
    } else if due(seen, policy) == Due::Now {
        evaluate::evaluate(seen, policy, &mut reader);
    } else if !policy.spec.namespace_selector.is_empty() {
        // A change in what is chosen wakes the policy whatever its interval.
        drop(reader.namespaces());
    }
    let Reader { asked, unread, questions, .. } = reader;
    Reads { all: asked, missing: unread, questions }
}

fn add_finalizer(policy: &Policy) -> Action {
    let others = policy.finalizers.iter().map(|one| one.as_str());
    set_finalizers(policy, others.chain([FINALIZER]).collect())
}

fn drop_finalizer(policy: &Policy) -> Action {
    let others = policy.finalizers.iter().map(|one| one.as_str());
    set_finalizers(policy, others.filter(|one| *one != FINALIZER).collect())
}

fn set_finalizers(policy: &Policy, finalizers: Vec<&str>) -> Action {
    let patch = json!({ "metadata": {
        "uid": policy.uid,
        "resourceVersion": policy.resource_version,
        "finalizers": finalizers,
    }});
    Action { side: Side::Cluster, target: status::target(policy), write: Write::Merge(patch) }
}
