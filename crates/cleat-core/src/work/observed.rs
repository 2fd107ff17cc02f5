//! Everything the planner of a work may look at.
//!
//! The IO half fills these from the hub and the cluster; nothing here reads anything. What could
//! not be read is `Unknown` with the reason, never left out and never taken for absent.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use cleat_api::leftoverrecord::LeftObject;
use cleat_api::managedcluster::RemoveStrategy;
use cleat_api::manifestwork::{FeedbackValue, Keep, ManifestWorkStatus};
use jiff::Timestamp;
use serde_json::Value;

use super::contents::Contents;
use super::trouble::Trouble;
use crate::id::{Id, Target};

/// One work, its ledger and its objects at one moment.
#[derive(Clone, Debug)]
pub struct Observed {
    pub now: Timestamp,
    pub agent: Agent,
    /// The name of the work; its ledger is named after it.
    pub name: String,
    pub hub: Hub,
    pub ledger: Ledger,
    /// The manifests of the work, in its order.
    pub wanted: Vec<Wanted>,
    /// Every object that is wanted or in the ledger.
    pub live: BTreeMap<Id, Seen>,
    /// The version in which the cluster serves each of them.
    pub versions: BTreeMap<Id, String>,
    /// Objects that others keep changing back: not before then are they repaired again.
    pub pauses: BTreeMap<Id, Timestamp>,
    /// Those of them about which nobody gives in, and until when that counts.
    pub quarrels: BTreeMap<Id, Timestamp>,
    /// What failed lately, by the object it was about, and when to try again.
    pub troubles: BTreeMap<Id, Trouble>,
    /// The cluster is leaving its hub, and this is to become of what was carried to it.
    pub leaving: Option<RemoveStrategy>,
    /// What is inside namespaces that are about to go because the cluster leaves.
    pub contents: BTreeMap<Id, Contents>,
    /// What the hub has heard to stay of what it has no work or policy for any more.
    pub told: Vec<LeftObject>,
    /// What the ledgers of other works of this hub say to keep, by the incarnation they know, or why
    /// that cannot be seen. Only looked for when the cluster leaves and is to be emptied, and only
    /// of what is in this ledger.
    pub kept_elsewhere: Result<BTreeMap<Id, String>, String>,
}

/// Whose passes these are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// SHA-256 of the hub's address, in hex.
    pub hub_hash: String,
    /// Several agents share a cluster by having different ones.
    pub id: String,
    /// How long a ledger without a work is left alone; `None` for ever.
    pub eviction_grace: Option<jiff::SignedDuration>,
}

/// The work as the hub has it.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one per pass")]
pub enum Hub {
    Work(Work),
    /// The hub answered, knows us, and has no such work.
    Absent,
    Unknown(String),
}

impl Hub {
    pub fn work(&self) -> Option<&Work> {
        match self {
            Self::Work(work) => Some(work),
            Self::Absent | Self::Unknown(_) => None,
        }
    }
}

impl Observed {
    /// The manifest for an object: the first, if there are several.
    pub fn wanted_by_id(&self) -> BTreeMap<&Id, &Wanted> {
        let placed = self.wanted.iter().rev();
        placed.filter_map(|wanted| Some((wanted.place.id()?, wanted))).collect()
    }

    pub fn is_as_wanted(&self, id: &Id) -> bool {
        let seen = self.live.get(id);
        matches!(seen, Some(Seen::Present(Present { content: Content::AsWanted, .. })))
    }

    /// Whether the last attempt about this object failed too recently to try again.
    pub(crate) fn must_wait(&self, id: &Id) -> bool {
        self.troubles.get(id).is_some_and(|trouble| trouble.retry_at > self.now)
    }
}

#[derive(Clone, Debug)]
pub struct Work {
    pub namespace: String,
    pub uid: String,
    pub resource_version: String,
    pub generation: i64,
    pub labels: BTreeMap<String, String>,
    /// All of them; ours is among them once we may touch the cluster.
    pub finalizers: Vec<String>,
    pub deleting: bool,
    /// What stays when the work goes. The error says why that cannot be told.
    pub keep: Result<Keep, String>,
    /// Objects that were there before the work are let go of, not deleted.
    pub keep_adopted: bool,
    /// What of it the hub has written down as staying, if it says so.
    pub on_record: Option<String>,
    /// Objects named by a `ReadOnly` update strategy: never touched, so never ours.
    pub read_only: ReadOnly,
    pub status: ManifestWorkStatus,
}

/// The objects a work only looks at, as `manifestConfigs` names them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadOnly(pub BTreeSet<Id>);

/// The `AppliedManifestWork`: what we wrote down before touching it.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one per pass")]
pub enum Ledger {
    /// The look is under way, and whoever looks will tell.
    NotYet,
    Absent,
    Present(Book),
    Unknown(String),
}

#[derive(Clone, Debug, Default)]
pub struct Book {
    pub uid: String,
    pub resource_version: String,
    pub deleting: bool,
    pub finalizers: Vec<String>,
    pub labels: BTreeMap<String, String>,
    pub hub_hash: String,
    pub work_name: String,
    pub agent_id: String,
    /// Written before the object is touched.
    pub claims: BTreeMap<Id, Claim>,
    /// Written after the object was seen.
    pub applied: BTreeMap<Id, Applied>,
    pub eviction_start: Option<Timestamp>,
    /// Not written: the incarnations that the servers' own answers call made by this agent. It may be
    /// forgotten at any time; what is forgotten counts as somebody else's.
    pub made: BTreeMap<Id, String>,
}

/// What was written down about an object before it was touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    pub origin: Origin,
    /// The work said to keep it, so it bears no mark of ours.
    pub kept: bool,
}

/// How an object came to be ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    Created,
    Adopted,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    pub version: String,
    /// Empty while nobody knows.
    pub uid: String,
}

impl Book {
    /// Everything this ledger ever promised to look after and has not let go of.
    pub fn ids(&self) -> BTreeSet<&Id> {
        self.claims.keys().chain(self.applied.keys()).collect()
    }

    /// The incarnation that was ours when it was last seen.
    pub fn recorded_uid(&self, id: &Id) -> Option<&str> {
        self.applied.get(id).map(|applied| applied.uid.as_str()).filter(|uid| !uid.is_empty())
    }

    /// Ledgers of other agents have no claims; what they list was created, as far as anyone knows.
    pub fn origin(&self, id: &Id) -> Option<Origin> {
        let recorded = || self.applied.contains_key(id).then_some(Origin::Created);
        self.claims.get(id).map(|claim| claim.origin).or_else(recorded)
    }

    /// Whether an object bears no mark because the work said, when it was last applied, to keep it.
    pub fn is_kept(&self, id: &Id) -> bool {
        self.claims.get(id).is_some_and(|claim| claim.kept)
    }
}

/// One manifest and how it is to be applied.
#[derive(Clone, Debug)]
pub struct Wanted {
    pub place: Place,
    pub api_version: String,
    pub kind: String,
    pub manifest: Arc<Value>,
    pub strategy: Strategy,
    /// Stands for the manifest and the strategy together.
    pub digest: u64,
    /// Whether this exact manifest is the last one that was applied, so that what the live object
    /// has beyond it comes from elsewhere.
    pub previous: Previous,
    /// Its own `Complete` condition holds: it is left as it is.
    pub complete: bool,
    pub permission: Permission,
    pub judged: Judged,
}

/// What the work's rules made of the object when it was last read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Judged {
    pub feedback: Feedback,
    pub conditions: Vec<Finding>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub enum Feedback {
    /// Nothing was asked for.
    #[default]
    NoRules,
    /// The object was not read, so what was reported last still stands.
    Unread,
    Values {
        values: Vec<FeedbackValue>,
        /// Rules that could not be followed.
        problem: Option<String>,
    },
}

/// One condition that a rule gives a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub condition: String,
    pub status: &'static str,
    pub reason: &'static str,
    pub message: String,
}

/// Where a manifest goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    At(Target),
    /// The cluster answered, and has no place for it: no such kind, or a namespace is missing.
    Nowhere {
        group: String,
        namespace: String,
        name: String,
        message: String,
    },
    /// The cluster could not say which resource the kind is.
    Unknown {
        group: String,
        namespace: String,
        name: String,
        message: String,
    },
    /// Not even a name to look for.
    Malformed(String),
}

impl Place {
    pub fn id(&self) -> Option<&Id> {
        match self {
            Self::At(target) => Some(&target.id),
            _ => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Strategy {
    Update,
    CreateOnly,
    ServerSideApply { manager: String, force: bool, ignore: Vec<super::ignore::IgnoreField> },
    ReadOnly,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Previous {
    Same,
    Unknown,
}

/// Whether the work's executor may do what the manifest asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Permission {
    Granted,
    Denied(String),
    Unknown(String),
}

/// Our last knowledge of one object on the cluster.
#[derive(Clone, Debug)]
pub enum Seen {
    /// The first look is under way, and whoever looks will tell.
    NotYet,
    Absent,
    Present(Present),
    Unknown(String),
}

#[derive(Clone, Debug)]
pub struct Present {
    pub uid: String,
    pub resource_version: String,
    /// Accepted for deletion, and what holds it back.
    pub terminating: Option<Vec<String>>,
    pub owners: Vec<Owner>,
    pub content: Content,
}

/// An owner reference, whole: rewriting the list must lose nothing of others'.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    pub api_version: String,
    pub kind: String,
    pub name: String,
    pub uid: String,
    pub controller: Option<bool>,
    pub block_owner_deletion: Option<bool>,
}

#[derive(Clone, Debug)]
pub enum Content {
    /// Nobody looked; enough for letting go.
    Unread,
    /// Unchanged since it was found to be as wanted.
    AsWanted,
    Read(Arc<Value>),
}
