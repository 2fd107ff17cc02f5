//! Which clusters fit: predicates, then taints.

use alloc::format;
use alloc::string::String;

use cleat_api::managedcluster::Taint;
use cleat_api::placement::{
    ClusterClaimSelector, ClusterPredicate, TaintEffect, Toleration, TolerationOperator,
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

use super::cluster::Cluster;
use super::{Holds, Misconfigured, Unfit};
use crate::selector::selects;

/// Whether a cluster fits one of the predicates. Without any, all fit.
pub(super) fn fits(
    predicates: &[ClusterPredicate],
    cluster: &Cluster,
    holds: Holds<'_>,
) -> Result<bool, Misconfigured> {
    for predicate in predicates {
        if fits_one(predicate, cluster, holds)? {
            return Ok(true);
        }
    }
    Ok(predicates.is_empty())
}

fn fits_one(
    predicate: &ClusterPredicate,
    cluster: &Cluster,
    holds: Holds<'_>,
) -> Result<bool, Misconfigured> {
    let Some(selector) = &predicate.required_cluster_selector else { return Ok(true) };
    let labels = selector.label_selector.as_ref();
    if !labels.is_none_or(|labels| selects(labels, &cluster.labels)) {
        return Ok(false);
    }
    if !selector.claim_selector.as_ref().is_none_or(|claims| claims_fit(claims, cluster)) {
        return Ok(false);
    }
    for expression in selector.cel_selector.iter().flat_map(|all| &all.cel_expressions) {
        match holds(expression, cluster) {
            Ok(true) => {}
            Ok(false) | Err(Unfit::Unanswered) => return Ok(false),
            Err(Unfit::Invalid(why)) => {
                let shown: String = expression.chars().take(100).collect();
                return Err(Misconfigured(format!("the CEL expression {shown:?} is wrong: {why}")));
            }
        }
    }
    Ok(true)
}

pub(super) fn claims_fit(claims: &ClusterClaimSelector, cluster: &Cluster) -> bool {
    let selector = LabelSelector {
        match_labels: None,
        match_expressions: Some(claims.match_expressions.clone()),
    };
    selects(&selector, &cluster.claims)
}

/// Something an operator asks that no cluster could answer.
pub(super) fn check(predicates: &[ClusterPredicate]) -> Result<(), Misconfigured> {
    for selector in predicates.iter().filter_map(|one| one.required_cluster_selector.as_ref()) {
        let labels = selector.label_selector.iter();
        let labels = labels.flat_map(|one| one.match_expressions.iter().flatten());
        let claims = selector.claim_selector.iter().flat_map(|one| &one.match_expressions);
        labels.chain(claims).try_for_each(requirement)?;
    }
    Ok(())
}

pub(super) fn requirement(one: &LabelSelectorRequirement) -> Result<(), Misconfigured> {
    let LabelSelectorRequirement { key, operator, values } = one;
    let many = values.as_ref().is_some_and(|values| !values.is_empty());
    match (operator.as_str(), many) {
        ("In" | "NotIn", true) | ("Exists" | "DoesNotExist", false) => Ok(()),
        ("In" | "NotIn", false) => {
            Err(Misconfigured(format!("the selector of {key} with {operator} names no values")))
        }
        ("Exists" | "DoesNotExist", true) => {
            Err(Misconfigured(format!("the selector of {key} with {operator} may name no values")))
        }
        _ => Err(Misconfigured(format!("{operator} of {key} is not a valid selector operator"))),
    }
}

/// What taints make of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tainted {
    Out,
    /// It may be chosen, at least until then.
    In(Option<Timestamp>),
}

pub(super) fn taints(
    cluster: &Cluster,
    tolerations: &[Toleration],
    already: bool,
    now: Timestamp,
) -> Tainted {
    let mut until: Option<Timestamp> = None;
    for taint in &cluster.taints {
        match taint.effect {
            TaintEffect::PreferNoSelect => continue,
            // An effect that nobody knows yet takes nothing away.
            TaintEffect::NoSelectIfNew | TaintEffect::Unknown if already => continue,
            TaintEffect::NoSelect | TaintEffect::NoSelectIfNew | TaintEffect::Unknown => {}
        }
        let mut best: Option<Option<Timestamp>> = None;
        for toleration in tolerations.iter().filter(|one| matches(one, taint)) {
            let end = end(toleration, taint);
            if end.is_none_or(|end| end > now) {
                best = Some(match best {
                    // For ever beats any time, and of two times the later counts.
                    Some(Some(before)) => end.map(|end| end.max(before)),
                    Some(None) => None,
                    None => end,
                });
            }
        }
        match best {
            None => return Tainted::Out,
            Some(None) => {}
            Some(Some(end)) => until = Some(until.map_or(end, |before| before.min(end))),
        }
    }
    Tainted::In(until)
}

fn matches(toleration: &Toleration, taint: &Taint) -> bool {
    let effect = toleration.effect.is_none_or(|effect| effect == taint.effect);
    let key = toleration.key == taint.key;
    effect
        && match toleration.operator {
            TolerationOperator::Equal => key && toleration.value == taint.value,
            TolerationOperator::Exists => key || toleration.key.is_empty(),
            TolerationOperator::Unknown => false,
        }
}

/// When the toleration ends. A taint that does not say since when it is there has just been added:
/// the hub fills that in.
fn end(toleration: &Toleration, taint: &Taint) -> Option<Timestamp> {
    let (seconds, added) = (toleration.toleration_seconds?, taint.time_added.as_ref()?.0);
    added.checked_add(SignedDuration::from_secs(seconds)).ok()
}
