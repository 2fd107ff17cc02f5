//! Everything the planner of a policy on a cluster may look at.
//!
//! The IO half fills these; nothing here reads anything. What could not be read says why, and is
//! never taken for absent.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use cleat_api::leftoverrecord::LeftObject;
use cleat_api::managedcluster::RemoveStrategy;
use cleat_api::policy::{PolicySpec, PolicyStatus};
use jiff::Timestamp;
use serde_json::Value;

use super::history::Told;
use super::plan::Depends;
use crate::id::{Id, Target};
use crate::policy::observed::{Kind, KindName, Served};
use crate::work::trouble::Trouble;

/// One policy of the hub, its copy on the cluster, and what the templates in it became.
#[derive(Clone, Debug)]
pub struct Observed {
    pub now: Timestamp,
    pub place: Place,
    pub name: String,
    /// What the hub says.
    pub replica: Copy,
    /// What the cluster has. On a cluster that is its own hub this is the replica itself.
    pub local: Copy,
    pub kinds: BTreeMap<KindName, TemplateKind>,
    /// The objects that the templates of the policy are, or would be.
    pub live: BTreeMap<TemplateId, Live>,
    /// Everything that is marked as a template of this policy, whether or not it still is one; or why
    /// not all of it was read.
    pub marked: Result<Vec<Marked>, String>,
    /// How the kinds are served that those say they made ([`super::made_kinds`]).
    pub resources: BTreeMap<KindName, Kind>,
    /// What the server says is there of what has to be gone before the policy is let go of
    /// ([`super::to_be_seen_gone`]), or why that cannot be told.
    pub still: Result<Vec<LeftObject>, String>,
    /// How the cluster is leaving its hub, if it is; or why that cannot be told.
    pub leaving: Result<Option<RemoveStrategy>, String>,
    /// What the hub has heard to stay of what it has no work or policy for any more.
    pub heard: Vec<LeftObject>,
    /// Whether the hub still has the kind of the policy. Asked only about one that seems to go.
    pub defined: Defined,
    /// The hub does not have the policy any more, and did not say that it lets go of it.
    pub vanished: Option<Vanished>,
    /// How what the templates depend on stands.
    pub states: BTreeMap<Depends, Standing>,
    /// What was said about each template, by its name.
    pub told: BTreeMap<String, Vec<Told>>,
    /// What failed lately, by the object it was about.
    pub troubles: BTreeMap<Id, Trouble>,
    /// The name of this process in events.
    pub instance: String,
}

/// Where all this takes place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub cluster_namespace: String,
    pub hub_namespace: String,
    /// Both are one API server and one namespace: nothing has to be copied.
    pub own_hub: bool,
    /// The cluster does not have the namespace.
    pub lacks_namespace: bool,
    /// The cluster does not store what is noted in the copy.
    pub forgets: bool,
}

/// Whether the hub has the definition of policies. With it go all policies, and nobody deleted any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Defined {
    Stands,
    /// It is gone, or being deleted.
    Goes,
    Unknown(String),
}

/// What is remembered of a policy that is gone from the hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vanished {
    pub since: Timestamp,
    /// Whether that was said.
    pub told: bool,
}

#[derive(Clone, Debug)]
pub enum Copy {
    Absent,
    Present(Box<Policy>),
    Unknown(String),
}

impl Copy {
    pub fn policy(&self) -> Option<&Policy> {
        match self {
            Self::Present(policy) => Some(policy),
            Self::Absent | Self::Unknown(_) => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// As it is stored, without managed fields.
    pub object: Value,
    pub uid: String,
    pub resource_version: String,
    pub deleting: bool,
    pub finalizers: Vec<String>,
    pub spec: PolicySpec,
    pub status: PolicyStatus,
}

/// Whether a kind may stand in a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TemplateKind {
    Template(Served),
    /// It is served, and is no kind of policy.
    Other,
    Missing,
    Unknown(String),
}

/// A template as a policy names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TemplateId {
    pub kind: KindName,
    pub name: String,
}

/// What is known of a template's object.
#[derive(Clone, Debug, PartialEq)]
pub enum Live {
    Absent,
    Present(Value),
    /// The server does not let it be read, or what it says is no object.
    Refused(String),
    /// Nobody can tell now.
    Unknown(String),
}

/// An object that is marked as a template of the policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marked {
    pub target: Target,
    pub kind: String,
    pub uid: String,
    pub resource_version: String,
    pub deleting: bool,
    /// Since when it is deleted.
    pub since: Option<Timestamp>,
    pub finalizers: Vec<String>,
    /// Deleting it may delete more than itself.
    pub prunes: bool,
    /// Why what it made stays when it is deleted; `None`: it does not.
    pub keeps: Option<&'static str>,
    /// Or why that cannot be read.
    pub made: Result<Vec<Made>, String>,
    /// What it says of itself.
    pub says: Option<String>,
    /// What it said of itself before, if it is on its way out.
    pub told: Vec<Told>,
}

/// An object that a template made, or would take away with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    pub kind: KindName,
    pub namespace: String,
    pub name: String,
    /// Empty if it was not seen since.
    pub uid: String,
    /// Why it stays though its template prunes, if whoever looks after that said so.
    pub kept: Option<String>,
}

/// How an object stands that others depend on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// `None` while it does not say, or is not there.
    Is(Option<String>),
    /// It could not be read, which decides nothing.
    Unknown(String),
}
