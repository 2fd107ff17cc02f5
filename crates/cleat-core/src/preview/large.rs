//! Which removals are so large that somebody is asked first.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use cleat_api::managedcluster::{ManagedCluster, RemoveStrategy, condition};
use cleat_api::removalpreview::{PreviewVerdict, PreviewedObject};

use super::Part;
use crate::condition::find;
use crate::number::number;

/// What goes without a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub objects: usize,
    pub clusters: usize,
    pub namespaces: usize,
}

/// What makes a removal one to ask about, in words; nothing of a small one.
///
/// Of a cluster that did not answer nobody knows how much would go there, so it is never small; and
/// neither is an answer that is not whole.
pub fn large(parts: &[Part], limits: Limits) -> Vec<String> {
    let mut reasons = Vec::new();
    let answers = || parts.iter().filter_map(|part| part.answer.as_ref());
    let objects = || answers().flat_map(|answer| &answer.objects);
    let going = || objects().filter(|one| may_go(one));
    let namespaces =
        going().filter(|one| one.group.is_empty() && one.resource == "namespaces").count();
    let with = |one: &PreviewedObject| one.takes_along.saturating_add(one.followed);
    let along = objects().map(with).fold(0, i64::saturating_add);
    let more: i64 = answers().map(|answer| answer.more).sum();
    let unlisted = usize::try_from(along.saturating_add(more)).unwrap_or(usize::MAX);
    let count = going().count().saturating_add(unlisted);
    if count > limits.objects {
        reasons.push(format!("{} may go", number(count, "object", "objects")));
    }
    if namespaces > limits.namespaces {
        let counted = number(namespaces, "namespace", "namespaces");
        reasons.push(format!("{counted} may go with everything inside"));
    }
    if parts.len() > limits.clusters {
        reasons.push(format!("{} are concerned", number(parts.len(), "cluster", "clusters")));
    }
    for part in parts {
        let cluster = &part.cluster;
        match &part.answer {
            None => {
                reasons.push(format!("{cluster} did not answer, so nobody knows what is there"))
            }
            Some(answer) if !answer.problems.is_empty() => {
                reasons.push(format!("{cluster} could not tell everything"));
            }
            Some(_) => {}
        }
    }
    reasons
}

/// Whether letting a cluster leave now begins to delete what was not going already. `strategy`: the one
/// it is to leave by, if that is not its own.
///
/// A cluster that leaves with everything loses nothing; one that leaves already was asked about; and
/// where no agent ever was, nothing was carried.
pub fn deletes_anew(cluster: &ManagedCluster, strategy: Option<RemoveStrategy>) -> bool {
    let has = cluster.spec.remove_strategy;
    let begun = cluster.metadata.deletion_timestamp.is_some();
    let conditions = cluster.status.as_ref().map(|status| status.conditions.as_slice());
    let joined = find(conditions.unwrap_or_default(), condition::JOINED).is_some();
    joined
        && strategy.unwrap_or(has) == RemoveStrategy::Required
        && (!begun || has != RemoveStrategy::Required)
}

/// What cannot be seen now goes as soon as it can be, if it is to go.
fn may_go(one: &PreviewedObject) -> bool {
    matches!(one.verdict, PreviewVerdict::Delete | PreviewVerdict::Unknown)
}

#[cfg(test)]
mod tests {
    use std::vec;

    use cleat_api::removalpreview::RemovalPreviewStatus;
    use serde_json::json;

    use super::super::Believed;
    use super::*;

    const LIMITS: Limits = Limits { objects: 2, clusters: 1, namespaces: 0 };

    fn object(resource: &str, verdict: PreviewVerdict) -> PreviewedObject {
        PreviewedObject { resource: resource.into(), verdict, ..PreviewedObject::default() }
    }

    fn answered(cluster: &str, objects: Vec<PreviewedObject>) -> Part {
        let answer = RemovalPreviewStatus { objects, ..RemovalPreviewStatus::default() };
        Part { cluster: cluster.into(), answer: Some(answer), believed: Believed::default() }
    }

    #[test]
    fn small_removals_go_without_a_question_and_large_ones_say_what_makes_them_so() {
        let map = |verdict| object("configmaps", verdict);
        let two = || vec![map(PreviewVerdict::Delete), map(PreviewVerdict::Delete)];
        assert_eq!(large(&[answered("c1", two())], LIMITS), [] as [String; 0]);
        let mut kept = two();
        kept.extend([map(PreviewVerdict::Orphan), object("namespaces", PreviewVerdict::Keep)]);
        assert_eq!(large(&[answered("c1", kept)], LIMITS), [] as [String; 0]);
        let mut unseen = two();
        unseen.push(map(PreviewVerdict::Unknown));
        assert_eq!(large(&[answered("c1", unseen)], LIMITS), ["3 objects may go"]);
        let mut holder = map(PreviewVerdict::Delete);
        holder.takes_along = 7;
        assert_eq!(large(&[answered("c1", vec![holder])], LIMITS), ["8 objects may go"]);
        let mut owner = map(PreviewVerdict::Delete);
        owner.followed = 2;
        assert_eq!(large(&[answered("c1", vec![owner])], LIMITS), ["3 objects may go"]);
        let namespace = || vec![object("namespaces", PreviewVerdict::Delete)];
        let told = ["1 namespace may go with everything inside"];
        assert_eq!(large(&[answered("c1", namespace())], LIMITS), told);
        let generous = Limits { namespaces: 1, ..LIMITS };
        assert_eq!(large(&[answered("c1", namespace())], generous), [] as [String; 0]);
        let both = [answered("c1", vec![]), answered("c2", vec![])];
        assert_eq!(large(&both, LIMITS), ["2 clusters are concerned"]);
    }

    #[test]
    fn only_leaves_that_begin_to_delete_are_asked_about() {
        use RemoveStrategy::{Needless, Required};
        let cluster = |strategy: RemoveStrategy, joined: bool, leaving: bool| -> ManagedCluster {
            let said = json!([{
                "type": condition::JOINED, "status": "True", "reason": "Joined", "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }]);
            let since = leaving.then_some("2026-01-01T00:00:00Z");
            let conditions = if joined { said } else { json!([]) };
            serde_json::from_value(json!({
                "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
                "metadata": { "name": "c1", "deletionTimestamp": since },
                "spec": { "removeStrategy": strategy.as_str(), "hubAcceptsClient": true },
                "status": { "conditions": conditions },
            }))
            .unwrap()
        };
        for (has, joined, leaving, by, expected) in [
            (Required, true, false, None, true),
            (Needless, true, false, Some(Required), true),
            (Needless, true, true, Some(Required), true),
            (Required, true, false, Some(Needless), false),
            (Needless, true, false, None, false),
            (Required, true, true, None, false),
            (Required, true, true, Some(Required), false),
            (Required, false, false, None, false),
        ] {
            let said = deletes_anew(&cluster(has, joined, leaving), by);
            assert_eq!(said, expected, "{has:?} {joined} {leaving} {by:?}");
        }
    }

    #[test]
    fn a_silent_cluster_was_taken_for_a_small_one() {
        let silent = Part { answer: None, ..answered("c1", vec![]) };
        let boundless =
            Limits { objects: usize::MAX, clusters: usize::MAX, namespaces: usize::MAX };
        let told = ["c1 did not answer, so nobody knows what is there"];
        assert_eq!(large(&[silent], boundless), told);
        let mut halting = answered("c1", vec![]);
        if let Some(answer) = &mut halting.answer {
            answer.problems.push("the ledger cannot be read".into());
        }
        assert_eq!(large(&[halting], boundless), ["c1 could not tell everything"]);
    }
}
