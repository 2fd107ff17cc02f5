//! A work of a set, as far as the set cares.
//!
//! Its manifests are kept only as a digest: a hub holds thousands of works, and each may be half a
//! megabyte.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString as _};

use cleat_api::manifestworkreplicaset::{PLACEMENT_LABEL, SET_LABEL};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Map, Value, json};

use super::set::Set;
use super::template;
use crate::id::{Id, Target};
use crate::rollout::Progress;
use crate::write::{Action, Propagation, Side, Write};

/// On a work: the digest of the template it was last given. A work that has this and another
/// content was changed by somebody else.
pub const TEMPLATE: &str = "cleat.dev/template";
/// On a work: when it was given that template, so that a cluster which never answers runs out of
/// time too.
pub const TEMPLATE_SINCE: &str = "cleat.dev/template-since";

#[derive(Clone, Debug, PartialEq)]
pub struct Child {
    /// The namespace of a work is its cluster.
    pub cluster: String,
    pub name: String,
    pub uid: String,
    pub created: Option<Timestamp>,
    pub deleting: bool,
    pub generation: i64,
    pub labels: BTreeMap<String, String>,
    /// The digest in [`TEMPLATE`].
    pub given: Option<String>,
    pub given_since: Option<Timestamp>,
    pub spec: String,
    pub outline: Value,
    pub applied: Option<Told>,
    pub available: Option<Told>,
    pub progressing: Option<Told>,
    pub degraded: Option<Told>,
}

/// A condition, as the agent told it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    pub status: Truth,
    pub generation: i64,
    pub since: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truth {
    True,
    False,
    Unknown,
}

impl Child {
    /// `data`: the object without its metadata.
    pub fn read(metadata: &ObjectMeta, data: &Value) -> Self {
        let annotation = |key: &str| metadata.annotations.as_ref().and_then(|all| all.get(key));
        let spec = data.get("spec").unwrap_or(&Value::Null);
        let told = |kind: &str| Told::read(data, kind);
        Self {
            cluster: metadata.namespace.clone().unwrap_or_default(),
            name: metadata.name.clone().unwrap_or_default(),
            uid: metadata.uid.clone().unwrap_or_default(),
            created: metadata.creation_timestamp.as_ref().map(|time| time.0),
            deleting: metadata.deletion_timestamp.is_some(),
            generation: metadata.generation.unwrap_or_default(),
            labels: metadata.labels.clone().unwrap_or_default(),
            given: annotation(TEMPLATE).cloned(),
            given_since: annotation(TEMPLATE_SINCE).and_then(|text| text.parse().ok()),
            spec: template::digest(spec),
            outline: template::outline(spec),
            applied: told("Applied"),
            available: told("Available"),
            progressing: told("Progressing"),
            degraded: told("Degraded"),
        }
    }

    pub(super) fn placement(&self) -> &str {
        self.labels.get(PLACEMENT_LABEL).map(|name| &**name).unwrap_or_default()
    }

    /// The agent has said of this very content that it is applied.
    pub(super) fn is_applied(&self) -> bool {
        self.applied.is_some_and(|told| told.is(Truth::True) && told.generation == self.generation)
    }

    pub(super) fn says(told: Option<Told>) -> bool {
        told.is_some_and(|told| told.is(Truth::True))
    }

    /// Somebody else changed what we gave it.
    pub(super) fn is_altered(&self, set: &Set) -> bool {
        self.spec != set.digest && self.given.as_ref() == Some(&set.digest)
    }

    pub(super) fn progress(&self, set: &Set) -> Progress {
        if self.deleting || self.is_altered(set) {
            return Progress::Applying { since: self.given_since.filter(|_| !self.deleting) };
        }
        if self.spec != set.digest {
            return Progress::Pending;
        }
        let current = |told: Option<Told>| told.filter(|told| told.generation == self.generation);
        let applying = Progress::Applying { since: self.given_since };
        // A rule for Degraded that has not been heard yet may still turn success into failure.
        if !self.is_applied() || (self.degraded.is_some() && current(self.degraded).is_none()) {
            return applying;
        }
        let degraded = self.degraded.filter(|told| told.is(Truth::True));
        // Only without rules of its own does a work count as done once its objects exist.
        if self.progressing.is_none() && !set.reports_progress {
            return match (current(self.available), degraded) {
                (_, Some(told)) => Progress::Failed { since: told.since },
                (Some(told), None) if told.is(Truth::True) => {
                    Progress::Succeeded { since: told.since }
                }
                (Some(told), None) => Progress::Progressing { since: told.since },
                (None, None) => applying,
            };
        }
        match (current(self.progressing), degraded) {
            (None, _) => applying,
            (Some(told), _) if told.is(Truth::False) => Progress::Succeeded { since: told.since },
            (Some(_), Some(told)) => Progress::Failed { since: told.since },
            (Some(told), None) => Progress::Progressing { since: told.since },
        }
    }

    pub(super) fn target(&self) -> Target {
        target(&self.cluster, &self.name)
    }

    pub(super) fn delete(&self) -> Action {
        let propagation = Propagation::Background;
        let write = Write::Delete { uid: self.uid.clone(), resource_version: None, propagation };
        Action { side: Side::Hub, target: self.target(), write }
    }

    /// Whether anything is to be written, without writing it out.
    pub(super) fn needs(&self, set: &Set, placement: &str, content: Content) -> bool {
        let labelled = wanted_labels(set, placement)
            .iter()
            .all(|(key, value)| self.labels.get(key) == Some(value));
        !labelled || self.rewrites(set, content) || self.lacks_mark(set)
    }

    fn rewrites(&self, set: &Set, content: Content) -> bool {
        content != Content::Leave && self.spec != set.digest
    }

    /// It has the template without saying so, as works do that OCM made.
    fn lacks_mark(&self, set: &Set) -> bool {
        self.spec == set.digest && self.given.as_ref() != Some(&set.digest)
    }

    /// What it takes to be as the set wants it: its labels and mark at once, its content only when
    /// `content` says so.
    pub(super) fn repair(
        &self,
        set: &Set,
        placement: &str,
        content: Content,
        now: Timestamp,
    ) -> Option<Action> {
        if !self.needs(set, placement, content) {
            return None;
        }
        let rewrites = self.rewrites(set, content);
        let mut annotations = Map::new();
        if rewrites || self.lacks_mark(set) {
            annotations.insert(TEMPLATE.into(), set.digest.clone().into());
        }
        if rewrites && content == Content::New {
            annotations.insert(TEMPLATE_SINCE.into(), stamp(now).into());
        }
        let mut patch = Map::new();
        let labels = wanted_labels(set, placement);
        let metadata = json!({ "uid": self.uid, "labels": labels, "annotations": annotations });
        patch.insert("metadata".into(), metadata);
        if rewrites {
            patch.insert("spec".into(), template::rewrite(&self.outline, &set.template));
        }
        let write = Write::Merge(Value::Object(patch));
        Some(Action { side: Side::Hub, target: self.target(), write })
    }
}

/// Whether a work's content may be written, and as what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    Leave,
    /// The template it already had, put back.
    Restore,
    /// A template whose turn it is.
    New,
}

impl Told {
    fn is(self, truth: Truth) -> bool {
        self.status == truth
    }

    fn read(data: &Value, kind: &str) -> Option<Self> {
        let conditions = data.get("status")?.get("conditions")?.as_array()?;
        let told = conditions.iter().find(|told| told.get("type").is_some_and(|at| at == kind))?;
        let status = match told.get("status")?.as_str()? {
            "True" => Truth::True,
            "False" => Truth::False,
            _ => Truth::Unknown,
        };
        let generation = told.get("observedGeneration").and_then(Value::as_i64);
        let since = told.get("lastTransitionTime").and_then(Value::as_str);
        Some(Self {
            status,
            generation: generation.unwrap_or_default(),
            since: since.and_then(|text| text.parse().ok()),
        })
    }
}

/// A new work of the set. Its name follows from what it is for, so that whoever makes it twice, be
/// it after a crash or from an old view, meets the first.
pub(super) fn create(set: &Set, placement: &str, cluster: &str, now: Timestamp) -> Action {
    let name = name(set, placement);
    let object = json!({
        "apiVersion": "work.open-cluster-management.io/v1",
        "kind": "ManifestWork",
        "metadata": {
            "namespace": cluster,
            "name": name,
            "labels": wanted_labels(set, placement),
            "annotations": { TEMPLATE: set.digest, TEMPLATE_SINCE: stamp(now) },
        },
        "spec": set.template,
    });
    Action { side: Side::Hub, target: target(cluster, &name), write: Write::Create(object) }
}

/// Like a generated name, but always the same one for the same set and placement.
pub(super) fn name(set: &Set, placement: &str) -> String {
    let whose = json!([set.namespace, set.name, placement]);
    let digest = template::digest(&whose);
    format!("{}-{}", set.name, digest.get(..10).unwrap_or_default())
}

pub(super) fn wanted_labels(set: &Set, placement: &str) -> BTreeMap<String, String> {
    let mut labels = set.labels.clone();
    labels.insert(SET_LABEL.to_string(), set.key());
    labels.insert(PLACEMENT_LABEL.to_string(), placement.to_string());
    labels
}

fn target(cluster: &str, name: &str) -> Target {
    let id = Id {
        group: "work.open-cluster-management.io".into(),
        resource: "manifestworks".into(),
        namespace: cluster.into(),
        name: name.into(),
    };
    Target { version: "v1".into(), id }
}

/// Kubernetes keeps whole seconds.
pub(super) fn stamp(now: Timestamp) -> String {
    Timestamp::from_second(now.as_second()).unwrap_or(now).to_string()
}
