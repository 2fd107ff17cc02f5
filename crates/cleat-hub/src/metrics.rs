//! Numbers about the policies of a hub, for whoever serves them.

use std::sync::{Arc, OnceLock};

use cleat_core::metrics::{self, OnHub};
use serde_json::Value;

use crate::followed::Followed;
use crate::propagation::view::Policy;

/// Its clones are the same.
#[derive(Clone, Default)]
pub struct Metrics {
    policies: Arc<OnceLock<Followed<Policy>>>,
}

impl Metrics {
    /// The text that Prometheus reads.
    pub fn text(&self) -> String {
        let Some(policies) = self.policies.get() else { return metrics::of_hub([]) };
        let all = policies.all();
        // A policy that is disabled stands nowhere.
        let told = all.iter().filter_map(|policy| match &**policy {
            Policy::Root { root, .. } => (!root.disabled).then(|| OnHub {
                namespace: &root.namespace,
                policy: &root.name,
                cluster: None,
                compliant: root.status.get("compliant").and_then(Value::as_str),
            }),
            Policy::Replica { root, replica, .. } => Some(OnHub {
                namespace: &root.0,
                policy: &root.1,
                cluster: Some(&replica.cluster),
                compliant: replica.compliant.as_deref(),
            }),
        });
        metrics::of_hub(told)
    }

    /// These are what it is about.
    pub(crate) fn about(&self, policies: &Followed<Policy>) {
        self.policies.get_or_init(|| policies.clone());
    }
}
