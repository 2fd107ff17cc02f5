//! Clusters and bindings of their sets, as `cleat_core::registration::admission` judges them. Pure.

use cleat_api::managedcluster::ManagedCluster;
use cleat_api::managedclustersetbinding::ManagedClusterSetBinding;
use cleat_core::registration::admission::{
    Right, accepts, binding_objections, binding_rights, objections, rights,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// What must hold for a write to be let through.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Demand {
    /// What is wrong with it for everybody.
    pub(crate) objections: Vec<String>,
    /// What the writer must be allowed.
    pub(crate) rights: Vec<Right>,
    /// A namespace that must not be on its way out.
    pub(crate) lasting: Option<String>,
}

pub(crate) fn cluster(object: &Value, old: Option<&Value>) -> Demand {
    judge(object, old, |new: &ManagedCluster, old| Demand {
        objections: objections(new, old),
        rights: rights(new, old),
        lasting: accepts(new, old).then(|| new.metadata.name.clone()).flatten(),
    })
}

pub(crate) fn binding(object: &Value, old: Option<&Value>) -> Demand {
    judge(object, old, |new: &ManagedClusterSetBinding, old| Demand {
        objections: binding_objections(new, old),
        rights: binding_rights(new, old),
        lasting: None,
    })
}

/// What cannot be read cannot be judged, so it is refused.
fn judge<K: DeserializeOwned>(
    object: &Value,
    old: Option<&Value>,
    demand: impl FnOnce(&K, Option<&K>) -> Demand,
) -> Demand {
    match (K::deserialize(object), old.map(K::deserialize).transpose()) {
        (Ok(new), Ok(old)) => demand(&new, old.as_ref()),
        (Err(error), _) | (_, Err(error)) => {
            Demand { objections: vec![format!("it cannot be read: {error}")], ..Demand::default() }
        }
    }
}
