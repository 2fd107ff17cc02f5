//! What the story of policies keeps of objects.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use cleat_api::policy::name::ROOT_POLICY;
use cleat_core::propagation::{Binding, PolicySet, Replica, Root, Source, sets_depended_on};
use cleat_core::replicaset::Decided;
use kube::api::DynamicObject;
use serde_json::Value;

use crate::followed::{Kept, Key};

/// A root, or a copy of one.
pub(crate) enum Policy {
    Root {
        root: Arc<Root>,
        /// The sets of policies it depends on.
        depends: Vec<Key>,
    },
    Replica {
        root: Key,
        replica: Arc<Replica>,
        /// Another one when its cluster has said again that it complies.
        complied: u64,
    },
}

impl Policy {
    /// The root it is, or is a copy of.
    pub(crate) fn root(&self) -> Key {
        match self {
            Self::Root { root, .. } => (root.namespace.clone(), root.name.clone()),
            Self::Replica { root, .. } => root.clone(),
        }
    }

    /// None of a copy.
    pub(crate) fn as_root(&self) -> Option<&Arc<Root>> {
        match self {
            Self::Root { root, .. } => Some(root),
            Self::Replica { .. } => None,
        }
    }
}

impl Kept for Policy {
    fn keep(object: DynamicObject) -> Option<Self> {
        let labels = object.metadata.labels.as_ref();
        match labels.and_then(|labels| labels.get(ROOT_POLICY)) {
            Some(label) => {
                // A namespace has no dot in it, so the first one ends it.
                let (namespace, name) = label.split_once('.')?;
                if object.metadata.name.as_ref() != Some(label) {
                    return None;
                }
                let replica = Arc::new(Replica::read(&object.metadata, &object.data));
                let root = (namespace.to_owned(), name.to_owned());
                Some(Self::Replica { root, replica, complied: complied(&object.data) })
            }
            None => {
                let root = Root::read(&object.metadata, &object.data);
                let depends = sets_depended_on(&root.namespace, &root.spec);
                Some(Self::Root { root: Arc::new(root), depends })
            }
        }
    }

    /// Copies by `<namespace>.<name>` of their root; roots by their namespace, which has no dot.
    fn group(&self) -> Option<String> {
        match self {
            Self::Root { root, .. } => Some(root.namespace.clone()),
            Self::Replica { root, .. } => Some(format!("{}.{}", root.0, root.1)),
        }
    }
}

/// The last messages by which its templates complied, as a digest.
fn complied(data: &Value) -> u64 {
    let details = data.pointer("/status/details").and_then(Value::as_array);
    let mut hash = DefaultHasher::new();
    for detail in details.into_iter().flatten() {
        let lines = detail.get("history").and_then(Value::as_array).into_iter().flatten();
        let message = |line: &Value| Some(line.get("message")?.as_str()?.to_owned());
        let mut well = lines.filter(|line| {
            message(line).is_some_and(|text| {
                text.split(';').next().unwrap_or_default().trim() == "Compliant"
            })
        });
        let last = well.next().and_then(|line| line.get("eventName")?.as_str());
        last.hash(&mut hash);
    }
    hash.finish()
}

pub(crate) struct PolicyBinding(pub(crate) Arc<Binding>);

impl Kept for PolicyBinding {
    fn keep(object: DynamicObject) -> Option<Self> {
        // One that is being deleted binds no more.
        let gone = object.metadata.deletion_timestamp.is_some();
        (!gone).then(|| Self(Arc::new(Binding::read(&object.metadata, &object.data))))
    }

    fn group(&self) -> Option<String> {
        Some(self.0.namespace.clone())
    }
}

pub(crate) struct Set(pub(crate) Arc<PolicySet>);

impl Set {
    pub(crate) fn key(&self) -> Key {
        (self.0.namespace.clone(), self.0.name.clone())
    }
}

impl Kept for Set {
    fn keep(object: DynamicObject) -> Option<Self> {
        let gone = object.metadata.deletion_timestamp.is_some();
        (!gone).then(|| Self(Arc::new(PolicySet::read(&object.metadata, &object.data))))
    }

    fn group(&self) -> Option<String> {
        Some(self.0.namespace.clone())
    }
}

/// A placement rule, which is its own decision.
pub(crate) struct Rule {
    namespace: String,
    name: String,
    pub(crate) decided: Decided,
}

impl Rule {
    pub(crate) fn key(&self) -> Key {
        (self.namespace.clone(), self.name.clone())
    }
}

impl Kept for Rule {
    fn keep(object: DynamicObject) -> Option<Self> {
        Some(Self {
            namespace: object.metadata.namespace.clone().unwrap_or_default(),
            name: object.metadata.name.clone().unwrap_or_default(),
            decided: Source::of_rule(Some((&object.metadata, &object.data))),
        })
    }

    fn group(&self) -> Option<String> {
        None
    }
}
