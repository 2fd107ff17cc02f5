//! What the hub's stories keep of objects.

use std::sync::Arc;

use cleat_api::managedclusterset::{
    ClusterSetSelector, ManagedClusterSet, ManagedClusterSetSpec, SelectorType,
};
use cleat_api::manifestworkreplicaset::SET_LABEL;
use cleat_api::placement::PLACEMENT_LABEL;
use cleat_core::placement as placing;
use cleat_core::replicaset as core;
use cleat_core::stranded::{Leaving, Silent};
use cleat_core::ttl::Finished;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::DynamicObject;
use serde_json::{Value, json};

use crate::followed::{Kept, Key};

pub(crate) struct Set(pub(crate) core::Set);

impl Set {
    pub(crate) fn key(&self) -> Key {
        (self.0.namespace.clone(), self.0.name.clone())
    }

    /// Whether a placement, or all of them, matter to it.
    pub(crate) fn looks_at(&self, placement: Option<&Key>) -> bool {
        placement.is_none_or(|(namespace, name)| {
            self.0.namespace == *namespace && self.0.placements.iter().any(|one| one.name == *name)
        })
    }
}

impl Kept for Set {
    fn keep(object: DynamicObject) -> Option<Self> {
        Some(Self(core::Set::read(&object.metadata, &object.data)))
    }

    fn group(&self) -> Option<String> {
        None
    }
}

/// What the stories about works need of one. A work that is nobody's business is not kept.
pub(crate) struct Work {
    child: Option<(String, Arc<core::Child>)>,
    finished: Option<Finished>,
    leaving: Option<Leaving>,
}

impl Work {
    /// The set it is of. A namespace has no dot in it, so the first one ends it.
    pub(crate) fn set(&self) -> Option<Key> {
        let (namespace, name) = self.child.as_ref()?.0.split_once('.')?;
        Some((namespace.to_owned(), name.to_owned()))
    }

    pub(crate) fn child(&self) -> Option<Arc<core::Child>> {
        self.child.as_ref().map(|(_, child)| Arc::clone(child))
    }

    /// That it is done and to be deleted some day.
    pub(crate) fn finished(&self) -> Option<&Finished> {
        self.finished.as_ref()
    }

    /// That it waits for its agent to let it go.
    pub(crate) fn leaving(&self) -> Option<&Leaving> {
        self.leaving.as_ref()
    }
}

impl Kept for Work {
    fn keep(object: DynamicObject) -> Option<Self> {
        let DynamicObject { metadata, data, .. } = object;
        let set = metadata.labels.as_ref().and_then(|labels| labels.get(SET_LABEL));
        let child = set.map(|set| (set.clone(), Arc::new(core::Child::read(&metadata, &data))));
        let finished = Finished::read(&metadata, &data);
        let leaving = Leaving::read(&metadata, &data);
        let wanted = child.is_some() || finished.is_some() || leaving.is_some();
        wanted.then_some(Self { child, finished, leaving })
    }

    fn group(&self) -> Option<String> {
        self.child.as_ref().map(|(set, _)| set.clone())
    }
}

pub(crate) struct Placement {
    pub(crate) metadata: ObjectMeta,
    /// Nothing but the status.
    pub(crate) data: Value,
    pub(crate) wish: placing::Wish,
}

impl Placement {
    pub(crate) fn key(&self) -> Key {
        let ObjectMeta { namespace, name, .. } = &self.metadata;
        (namespace.clone().unwrap_or_default(), name.clone().unwrap_or_default())
    }
}

impl Kept for Placement {
    fn keep(object: DynamicObject) -> Option<Self> {
        let wish = placing::Wish::read(&object.metadata, &object.data);
        let (metadata, data) = slim(object);
        Some(Self { metadata, data, wish })
    }

    fn group(&self) -> Option<String> {
        None
    }
}

pub(crate) struct Decision {
    pub(crate) metadata: ObjectMeta,
    pub(crate) data: Value,
    pub(crate) decision: Arc<placing::Decision>,
    placement: String,
}

impl Decision {
    pub(crate) fn placement(&self) -> Key {
        (self.metadata.namespace.clone().unwrap_or_default(), self.placement.clone())
    }

    /// How the decisions of a placement are asked for.
    pub(crate) fn group_of(namespace: &str, placement: &str) -> String {
        format!("{namespace}/{placement}")
    }
}

impl Kept for Decision {
    fn keep(object: DynamicObject) -> Option<Self> {
        let labels = object.metadata.labels.as_ref();
        let placement = labels.and_then(|labels| labels.get(PLACEMENT_LABEL))?.clone();
        let decision = Arc::new(placing::Decision::read(&object.metadata, &object.data));
        let (metadata, data) = slim(object);
        Some(Self { metadata, data, decision, placement })
    }

    fn group(&self) -> Option<String> {
        let namespace = self.metadata.namespace.as_deref().unwrap_or_default();
        Some(Self::group_of(namespace, &self.placement))
    }
}

/// A cluster as placements, policies and the works of one that is silent see it.
pub(crate) struct Cluster {
    pub(crate) seen: Arc<placing::Cluster>,
    /// If it is.
    pub(crate) silent: Option<Silent>,
}

impl Kept for Cluster {
    fn keep(object: DynamicObject) -> Option<Self> {
        let silent = Silent::read(&object.data);
        let seen = Arc::new(placing::Cluster::read(&object.metadata, &object.data));
        Some(Self { seen, silent })
    }

    fn group(&self) -> Option<String> {
        None
    }
}

/// A set of clusters, whether or not it could be read.
pub(crate) struct ClusterSet(pub(crate) Arc<ManagedClusterSet>);

impl Kept for ClusterSet {
    fn keep(object: DynamicObject) -> Option<Self> {
        let mut metadata = object.metadata;
        metadata.managed_fields = None;
        let spec = object.data.get("spec").cloned().unwrap_or_else(|| json!({}));
        // One that cannot be read is still a set that is there; which clusters it has is not known.
        let spec = serde_json::from_value(spec).unwrap_or_else(|_| unreadable());
        Some(Self(Arc::new(ManagedClusterSet { metadata, spec, status: None })))
    }

    fn group(&self) -> Option<String> {
        None
    }
}

fn unreadable() -> ManagedClusterSetSpec {
    let selector_type = SelectorType::Unknown;
    let cluster_selector = ClusterSetSelector { selector_type, label_selector: None };
    ManagedClusterSetSpec { cluster_selector, managed_namespaces: Vec::new() }
}

/// Lets a namespace choose from a set.
pub(crate) struct SetBinding {
    namespace: String,
    pub(crate) set: String,
}

impl Kept for SetBinding {
    fn keep(object: DynamicObject) -> Option<Self> {
        // One that is being deleted binds no more.
        if object.metadata.deletion_timestamp.is_some() {
            return None;
        }
        let set = object.data.pointer("/spec/clusterSet").and_then(Value::as_str)?;
        let namespace = object.metadata.namespace.clone().unwrap_or_default();
        Some(Self { namespace, set: set.to_owned() })
    }

    fn group(&self) -> Option<String> {
        Some(self.namespace.clone())
    }
}

pub(crate) struct Scores(pub(crate) Arc<placing::Scores>);

impl Kept for Scores {
    fn keep(object: DynamicObject) -> Option<Self> {
        Some(Self(Arc::new(placing::Scores::read(&object.metadata, &object.data))))
    }

    fn group(&self) -> Option<String> {
        None
    }
}

fn slim(object: DynamicObject) -> (ObjectMeta, Value) {
    let mut metadata = object.metadata;
    metadata.managed_fields = None;
    let mut data = object.data;
    let status = data.get_mut("status").map(Value::take).unwrap_or_default();
    (metadata, json!({ "status": status }))
}
