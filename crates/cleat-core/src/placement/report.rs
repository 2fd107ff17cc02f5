//! What users are told of a placement, and when to look again.

use alloc::string::{String, ToString as _};
use alloc::vec::Vec;
use alloc::{format, vec};

use cleat_api::placement::{PlacementStatus, condition as kind, reason};
use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::{Value, json};

use super::decision::{settled, slices};
use super::doubt::{Doubt, doubt};
use super::{Misconfigured, Observed, Selection};
use crate::condition::{Said, Status, say};
use crate::write::{Action, Outcome, Plan, Side, Write};

#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The write of the status, if it is to say something else.
    pub status: Option<Action>,
    /// Look again after this long, even if nothing changes.
    pub wake: Option<SignedDuration>,
    /// All decisions were found to be as they should.
    pub settled: bool,
}

/// When to try again what did not work.
const RETRY: SignedDuration = SignedDuration::from_secs(2);
/// When to look again at what somebody has to put right.
const RECHECK: SignedDuration = SignedDuration::from_secs(10);

/// `done`: what came of `plan`, which was made from `seen` and `selection`.
pub fn report(
    seen: &Observed,
    selection: Result<&Selection, &Misconfigured>,
    plan: &Plan,
    done: &[Vec<Outcome>],
) -> Verdict {
    let wish = &seen.wish;
    if wish.elsewhere || wish.deleting {
        return Verdict { status: None, wake: None, settled: false };
    }
    let failed = done.iter().flatten().any(|outcome| {
        // After these, what is new is on its way to us.
        !matches!(outcome, Outcome::Done(_) | Outcome::Conflict(_) | Outcome::NotFound)
    });
    let until = selection.ok().and_then(|selection| selection.until);
    let until = until.map(|until| until.duration_since(seen.now).max(SignedDuration::ZERO));
    let doubt = selection.ok().and_then(|selection| doubt(seen, selection));
    let again = doubt.as_ref().map(|doubt| match doubt {
        Doubt::Unasked => RETRY,
        // No watch tells that a definition is back.
        Doubt::Lasting(_) => RECHECK,
    });
    let wake = [until, again, failed.then_some(RETRY)].into_iter().flatten().min();

    let settled = plan.is_empty()
        && doubt.is_none()
        && selection.is_ok_and(|selection| settled(seen, selection));

    let before: PlacementStatus = serde_json::from_value(wish.status.clone()).unwrap_or_default();
    let mut conditions = before.conditions.clone();
    let told = match selection {
        Err(Misconfigured(why)) => {
            say(&mut conditions, misconfigured(why), wish.generation, seen.now);
            json!({ "conditions": conditions })
        }
        Ok(_) if let Some(Doubt::Lasting(why)) = &doubt => {
            say(&mut conditions, misconfigured(why), wish.generation, seen.now);
            json!({ "conditions": conditions })
        }
        // Whoever reads the count takes decisions that list fewer for unfinished.
        Ok(selection) if settled => {
            say(&mut conditions, satisfied(seen, selection), wish.generation, seen.now);
            say(&mut conditions, configured(), wish.generation, seen.now);
            status(seen, selection, &conditions)
        }
        Ok(_) => return Verdict { status: None, wake, settled },
    };
    let same = told
        .as_object()
        .is_some_and(|told| told.iter().all(|(key, value)| wish.status.get(key) == Some(value)));
    if same {
        return Verdict { status: None, wake, settled };
    }
    let metadata = json!({ "uid": wish.uid, "resourceVersion": wish.resource_version });
    let patch = json!({ "metadata": metadata, "status": told });
    let write = Write::MergeStatus(patch);
    let status = Some(Action { side: Side::Hub, target: wish.target(), write });
    Verdict { status, wake, settled }
}

fn status(seen: &Observed, selection: &Selection, conditions: &[Condition]) -> Value {
    let slices = slices(&seen.wish, selection);
    let mut groups = vec![];
    for (index, group) in selection.groups.iter().enumerate() {
        let names = slices.iter().filter(|slice| slice.group.0 == index).map(|slice| &slice.name);
        let names: Vec<&String> = names.collect();
        let mut told = json!({
            "decisionGroupIndex": index,
            "decisions": names,
            "clusterCount": group.clusters.len(),
        });
        if let (false, Some(told)) = (group.name.is_empty(), told.as_object_mut()) {
            told.insert("decisionGroupName".to_string(), group.name.clone().into());
        }
        groups.push(told);
    }
    json!({
        "numberOfSelectedClusters": selection.len(),
        "decisionGroups": groups,
        "conditions": conditions,
    })
}

fn satisfied(seen: &Observed, selection: &Selection) -> Said {
    let said =
        |status, reason, message: String| Said { kind: kind::SATISFIED, status, reason, message };
    let asked = seen.wish.spec.as_ref().map(|spec| some(&spec.cluster_sets)).unwrap_or_default();
    if selection.bound == 0 {
        let text = "No valid ManagedClusterSetBindings found in placement namespace";
        return said(Status::False, reason::NO_MANAGED_CLUSTER_SET_BINDINGS, text.to_string());
    }
    if selection.sets.is_empty() {
        let text = format!("None of ManagedClusterSets [{asked}] is bound to placement namespace");
        return said(Status::False, reason::NO_INTERSECTION, text);
    }
    if selection.available == 0 {
        let sets = some(&selection.sets);
        let text = format!("All ManagedClusterSets [{sets}] have no member ManagedCluster");
        return said(Status::False, reason::ALL_MANAGED_CLUSTER_SETS_EMPTY, text);
    }
    if selection.feasible == 0 {
        let text = "No ManagedCluster matches any of the cluster predicate";
        return said(Status::False, reason::NO_MANAGED_CLUSTER_MATCHED, text.to_string());
    }
    match selection.missing {
        0 => {
            let text = "All cluster decisions scheduled";
            said(Status::True, reason::ALL_DECISIONS_SCHEDULED, text.to_string())
        }
        missing => {
            let text = format!("{missing} cluster decisions unscheduled");
            said(Status::False, reason::NOT_ALL_DECISIONS_SCHEDULED, text)
        }
    }
}

fn configured() -> Said {
    Said {
        kind: kind::MISCONFIGURED,
        status: Status::False,
        reason: reason::SUCCEEDCONFIGURED,
        message: "Placement configurations check pass".to_string(),
    }
}

fn misconfigured(why: &str) -> Said {
    Said {
        kind: kind::MISCONFIGURED,
        status: Status::True,
        reason: reason::MISCONFIGURED,
        message: format!("{why}. Its decisions stay as they are until this is put right."),
    }
}

/// Names as a list that stays short.
fn some(names: &[String]) -> String {
    const SHOWN: usize = 20;
    let shown = names.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(",");
    match names.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
