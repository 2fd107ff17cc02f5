//! Which records are worked off, and which ledgers on the cluster are theirs.

use alloc::borrow::ToOwned as _;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use cleat_api::appliedmanifestwork::AppliedManifestWork;
use cleat_api::leftoverrecord::{LeftoverRecord, Reason, condition};

use crate::condition::holds;

/// The records of one name that are worked off on one cluster.
#[derive(Clone, Debug, Default)]
pub struct Chosen {
    pub records: Vec<LeftoverRecord>,
    /// Names of those that were worked off before.
    pub done: Vec<String>,
    /// Names and ids of those that are of other clusters.
    pub others: Vec<(String, String)>,
}

/// Why nothing is worked off. Each says what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    #[error(
        "the record {record} is of the cluster with the id {id}, and this one has the id {here}; \
         choose it with --cluster-kubeconfig or --cluster-context"
    )]
    OtherCluster { record: String, id: String, here: String },
    #[error(
        "what {record} lists stays because somebody declared so ({}); add --include-kept to remove \
         it", .reason.as_str()
    )]
    Kept { record: String, reason: Reason },
    #[error(
        "{record} does not say which ledgers on this cluster are its own, and there are those of \
         {hubs} hubs; say with --hub-server by which address its agent knew this hub"
    )]
    Ambiguous { record: String, hubs: usize },
    #[error(
        "this cluster is joined as {name}, and --agent would take its agent away; `cleat unjoin \
         {name}` first, or clean without --agent"
    )]
    Joined { name: String },
    #[error(
        "what is in the namespace {namespace} of this cluster is the agent of {server}, and the records \
         are of another hub; say with --agent-namespace where the agent of the records is, or clean \
         without --agent. If {server} is this hub by another address, add --hub-server {server}"
    )]
    AgentOfOtherHub { namespace: String, server: String },
    #[error(
        "what is in the namespace {namespace} of this cluster is the agent of {server}, and no record \
         says by which address its agent knew this hub; add --hub-server {server} if that is this hub, \
         or clean without --agent"
    )]
    AgentOfSomeHub { namespace: String, server: String },
}

impl Refusal {
    /// Whose agent it is where that of the records was, if it is another's.
    pub fn another_agent(&self) -> Option<String> {
        match self {
            Self::Joined { name } => {
                Some(format!("it is of the agent of today: this cluster is joined as {name}"))
            }
            Self::AgentOfOtherHub { server, .. } => Some(format!("it is of the agent of {server}")),
            Self::AgentOfSomeHub { .. }
            | Self::OtherCluster { .. }
            | Self::Kept { .. }
            | Self::Ambiguous { .. } => None,
        }
    }
}

/// The records that are this cluster's and not done yet. A cluster of the same name may have left
/// more than once, and need not have been this one every time.
pub fn choose(
    records: Vec<LeftoverRecord>,
    here: &str,
    include_kept: bool,
) -> Result<Chosen, Refusal> {
    let mut chosen = Chosen::default();
    for record in records {
        let name = record.metadata.name.clone().unwrap_or_default();
        let status = record.status.clone().unwrap_or_default();
        if record.spec.cluster_id != here {
            chosen.others.push((name, record.spec.cluster_id));
        } else if holds(&status.conditions, condition::CLEANED) && !include_kept {
            chosen.done.push(name);
        } else {
            chosen.records.push(record);
        }
    }
    let settled = |one: &LeftoverRecord| matches!(one.spec.reason, Reason::Needless | Reason::Kept);
    match chosen.records.first() {
        None => match chosen.others.first().cloned() {
            Some((record, id)) if chosen.done.is_empty() => {
                Err(Refusal::OtherCluster { record, id, here: here.to_owned() })
            }
            _ => Ok(chosen),
        },
        // There our marks are off already.
        Some(first) if !include_kept && chosen.records.iter().all(settled) => Err(Refusal::Kept {
            record: first.metadata.name.clone().unwrap_or_default(),
            reason: first.spec.reason,
        }),
        Some(_) => Ok(chosen),
    }
}

/// Those of all ledgers on the cluster that belong to the works on record.
///
/// A ledger of another hub is never ours, whatever its work is called; and neither is that of a work
/// in `wanted`, which the hub has for this cluster again. `told` is the hash of the hub's address for
/// records that lack it.
pub fn ledgers(
    records: &[LeftoverRecord],
    all: Vec<AppliedManifestWork>,
    wanted: &BTreeSet<String>,
    told: Option<&str>,
) -> Result<Vec<AppliedManifestWork>, Refusal> {
    let hubs: BTreeSet<String> = all.iter().map(|one| one.spec.hub_hash.clone()).collect();
    let mut hashes = BTreeSet::new();
    for record in records {
        let hash = Some(record.spec.hub_hash.as_str()).filter(|hash| !hash.is_empty()).or(told);
        match hash {
            Some(hash) => hashes.insert(hash.to_owned()),
            None if hubs.len() > 1 => {
                let record = record.metadata.name.clone().unwrap_or_default();
                return Err(Refusal::Ambiguous { record, hubs: hubs.len() });
            }
            None => hubs.first().is_some_and(|only| hashes.insert(only.clone())),
        };
    }
    // A policy may have the name of a work, and has no ledger.
    let listed = records.iter().flat_map(|one| &one.spec.objects);
    let listed = listed.filter(|one| !one.unmarked && one.part.is_none()).map(|one| &*one.source);
    let untold = records.iter().flat_map(|one| &one.spec.untold);
    let untold = untold.filter(|one| !one.policy).map(|one| &*one.source);
    let sources: BTreeSet<&str> = listed.chain(untold).collect();
    let ours = all.into_iter().filter(|ledger| {
        let spec = &ledger.spec;
        hashes.contains(&spec.hub_hash)
            && sources.contains(spec.manifest_work_name.as_str())
            && !wanted.contains(&spec.manifest_work_name)
    });
    Ok(ours.collect())
}
