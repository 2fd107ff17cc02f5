//! Everything the planner of a policy may look at.
//!
//! The IO half fills these; nothing here reads anything. What could not be read says why; what was
//! never asked for is not there, and [`super::reads`] names it. Neither is ever taken for absent.

use alloc::borrow::ToOwned as _;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use cleat_api::configurationpolicy::{
    ConfigurationPolicySpec, ConfigurationPolicyStatus, ObjectResource, ObjectTemplate,
    RelatedObject,
};
use cleat_api::leftoverrecord::LeftObject;
use jiff::Timestamp;
use serde_json::Value;

use super::memory::Memory;
use crate::id::{Id, Target};
use crate::work::contents::Contents;

/// One policy and all it depends on at one moment.
#[derive(Clone, Debug)]
pub struct Observed {
    pub now: Timestamp,
    pub controller: Controller,
    pub policy: Subject,
    pub templates: Templates,
    pub cluster: Cluster,
    pub memory: Memory,
}

/// Turns the template of a custom message and its data into text; the error is for users.
pub type Say = fn(template: &str, data: &Value) -> Result<String, String>;

/// Whose passes these are.
#[derive(Clone, Debug)]
pub struct Controller {
    pub departure: Departure,
    /// What `terminatingInclusion: Default` stands for.
    pub terminating_namespaces: TerminatingNamespaces,
    /// The name of this process in events.
    pub instance: String,
    pub say: Say,
}

/// Whether the controller, or the kind of policies, is about to go. Then policies are let go of, and
/// nothing of theirs is touched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Departure {
    Staying,
    /// The cluster leaves its hub and is to be emptied: policies prune, but for namespaces that hold
    /// what is not theirs.
    Emptying,
    Leaving,
    Unknown(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TerminatingNamespaces {
    Included,
    Dropped,
}

#[derive(Clone, Debug)]
pub enum Subject {
    Policy(Box<Policy>),
    Absent,
    Unknown(String),
}

#[derive(Clone, Debug)]
pub struct Policy {
    pub namespace: String,
    pub name: String,
    pub uid: String,
    pub resource_version: String,
    pub generation: i64,
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
    /// All of them; ours is among them while anything may have to be pruned.
    pub finalizers: Vec<String>,
    pub deleting: bool,
    /// Whoever it is part of says that it must not go on for now.
    pub stopped: bool,
    /// The first owner, which hears of every change.
    pub owner: Option<Owner>,
    pub spec: ConfigurationPolicySpec,
    pub status: ConfigurationPolicyStatus,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    pub api_version: String,
    pub kind: String,
    pub name: String,
    pub uid: String,
}

/// The policy's object templates, after what stands in `object-templates-raw` was resolved.
#[derive(Clone, Debug)]
pub enum Templates {
    Known(Vec<Template>),
    /// They cannot be told; for users, why.
    Failed {
        reason: &'static str,
        message: String,
        /// Something could not be read for it, and trying again may help.
        passing: bool,
    },
}

#[derive(Clone, Debug)]
pub struct Template {
    pub spec: ObjectTemplate,
    pub definition: Definition,
}

#[derive(Clone, Debug)]
pub enum Definition {
    /// What is written is what is meant.
    Plain,
    /// There are templates in it, which say something else for every object.
    Templated { name: bool, namespace: bool, resolved: BTreeMap<Pick, Resolution> },
}

/// The object that a definition is resolved for; empty where nothing was picked.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pick {
    pub namespace: String,
    pub name: String,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Resolution {
    Object {
        object: Value,
        /// Secrets went into it.
        read_secrets: bool,
    },
    Skipped,
    Failed {
        /// For users.
        message: String,
        /// Something could not be read for it, and trying again may help.
        passing: bool,
    },
}

/// What is known of the cluster.
#[derive(Clone, Debug, Default)]
pub struct Cluster {
    pub kinds: BTreeMap<KindName, Kind>,
    pub namespaces: Option<Result<Vec<Namespace>, String>>,
    pub objects: BTreeMap<Id, Seen>,
    /// What the server said of objects whose kind cannot be watched, when it was asked because they
    /// are let go of. No change of them is told.
    pub unwatched: BTreeMap<Id, Seen>,
    pub lists: BTreeMap<ListOf, Result<Vec<Arc<Value>>, String>>,
    /// What the server would make of an update. An answer holds for the passes of one waking, and
    /// until the object is written: a server may change its mind.
    pub trials: BTreeMap<Id, Trial>,
    /// What the server would make of the object if it were made anew, under another name.
    pub creations: BTreeMap<Id, Trial>,
    /// What the namespaces and definitions hold that would go next, while the cluster leaves its hub.
    pub contents: BTreeMap<Id, Contents>,
    /// What the hub has heard to stay here.
    pub heard: Vec<LeftObject>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KindName {
    pub api_version: String,
    pub kind: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    Served(Served),
    /// The server answered, and neither serves the kind nor has a definition of it, so there can be
    /// no objects of it either.
    Absent,
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Served {
    pub group: String,
    pub version: String,
    pub resource: String,
    pub namespaced: bool,
}

impl Served {
    pub fn target(&self, namespace: &str, name: &str) -> Target {
        let id = Id {
            group: self.group.clone(),
            resource: self.resource.clone(),
            namespace: namespace.into(),
            name: name.into(),
        };
        Target { version: self.version.clone(), id }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespace {
    pub name: String,
    pub labels: BTreeMap<String, String>,
    pub terminating: bool,
}

impl Namespace {
    pub fn read(object: &Value) -> Self {
        let field = |name: &str| object.get("metadata").and_then(|metadata| metadata.get(name));
        let labels = field("labels").and_then(Value::as_object).into_iter().flatten();
        Self {
            name: field("name").and_then(Value::as_str).unwrap_or_default().to_owned(),
            labels: labels
                .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
                .collect(),
            terminating: field("deletionTimestamp").is_some_and(Value::is_string),
        }
    }
}

/// Objects of a kind in a namespace, or in all of them if it is empty.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListOf {
    pub kind: Served,
    pub namespace: String,
    /// As a request would write it; empty for all.
    pub labels: String,
}

impl ListOf {
    /// All namespaces.
    pub fn namespaces() -> Self {
        let kind = Served {
            group: String::new(),
            version: "v1".to_owned(),
            resource: "namespaces".to_owned(),
            namespaced: false,
        };
        Self { kind, namespace: String::new(), labels: String::new() }
    }
}

/// Our knowledge of one object.
#[derive(Clone, Debug)]
pub enum Seen {
    Absent,
    Present(Present),
    Unknown(String),
    /// It can be read, but not be watched.
    Unwatchable,
}

#[derive(Clone, Debug)]
pub struct Present {
    pub object: Arc<Value>,
    /// The policies that made it or changed it, by their uids, as its managed fields name them.
    pub writers: Vec<String>,
}

impl Present {
    /// Whether this policy made it or changed it.
    pub(crate) fn is_written_by(&self, policy: &str) -> bool {
        self.writers.iter().any(|writer| writer == policy)
    }

    fn metadata(&self, field: &str) -> Option<&Value> {
        self.object.get("metadata")?.get(field)
    }

    pub fn uid(&self) -> &str {
        self.metadata("uid").and_then(Value::as_str).unwrap_or_default()
    }

    pub fn resource_version(&self) -> Option<&str> {
        self.metadata("resourceVersion").and_then(Value::as_str)
    }

    /// When it was accepted for deletion.
    pub fn terminating(&self) -> Option<Timestamp> {
        let since = self.metadata("deletionTimestamp")?.as_str()?;
        Some(since.parse().unwrap_or(Timestamp::UNIX_EPOCH))
    }

    pub fn finalizers(&self) -> Vec<&str> {
        let all = self.metadata("finalizers").and_then(Value::as_array);
        all.into_iter().flatten().filter_map(Value::as_str).collect()
    }
}

/// An update that was tried without being stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// What was sent. An answer about anything else says nothing.
    pub asked: Arc<Value>,
    pub answer: TrialAnswer,
}

#[derive(Clone, Debug, PartialEq)]
pub enum TrialAnswer {
    /// What would be stored.
    Accepted(Arc<Value>),
    /// It would be refused as invalid, most likely for a field that cannot change.
    Invalid(String),
    /// The object changed or went meanwhile.
    Stale,
    NotFound,
    /// The server said no, for another reason.
    Refused(String),
    /// There was no proper answer.
    Failed(String),
}

/// Something that has to be known before anything can be decided.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Read {
    Kind(KindName),
    Namespaces,
    Object(Target),
    /// An object that cannot be watched, from the server.
    Unwatched(Target),
    List(ListOf),
    /// What a namespace or a definition holds.
    Contents(Target),
    /// What the definition at this index says for this object.
    Resolution {
        index: usize,
        pick: Pick,
    },
}

impl Policy {
    pub(crate) fn has_finalizer(&self) -> bool {
        self.finalizers.iter().any(|one| one == cleat_api::configurationpolicy::FINALIZER)
    }

    /// What the status says of an object, in whichever version of its kind it was listed.
    pub(crate) fn entry(&self, object: &ObjectResource) -> Option<&RelatedObject> {
        let all = &self.status.related_objects;
        let exact = all.iter().find(|entry| entry.object == *object);
        exact.or_else(|| all.iter().find(|entry| is_same(&entry.object, object)))
    }
}

/// Whether two entries are about one object: versions are only ways to look at it.
pub(crate) fn is_same(one: &ObjectResource, other: &ObjectResource) -> bool {
    let group = |object: &ObjectResource| {
        object.api_version.rsplit_once('/').map(|(group, _)| String::from(group))
    };
    one.kind == other.kind && one.metadata == other.metadata && group(one) == group(other)
}
