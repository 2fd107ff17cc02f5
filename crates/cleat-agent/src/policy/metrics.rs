//! Numbers about the policies of a cluster, for whoever serves them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use cleat_api::configurationpolicy::ConfigurationPolicy;
use cleat_core::metrics::{self, OnCluster};
use cleat_runtime::follow::Follow;

use super::Key;

/// Its clones are the same.
#[derive(Clone, Default)]
pub struct Metrics {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    policies: OnceLock<Vec<Follow>>,
    evaluated: Mutex<BTreeMap<Key, (u64, Duration)>>,
}

impl Metrics {
    /// The text that Prometheus reads.
    pub fn text(&self) -> String {
        let evaluated = self.lock().clone();
        let followed = self.shared.policies.get().into_iter().flatten().flat_map(Follow::all);
        let policies: Vec<(Key, ConfigurationPolicy)> = followed
            .filter_map(|object| {
                Some((
                    (object.namespace.to_string(), object.name.to_string()),
                    object.parse().ok()?,
                ))
            })
            .collect();
        let told = policies.iter().map(|(key, policy)| {
            let (evaluations, took) = evaluated.get(key).copied().unwrap_or_default();
            OnCluster {
                namespace: &key.0,
                policy: &key.1,
                severity: policy.spec.severity.as_deref().unwrap_or_default(),
                compliant: policy.status.as_ref().and_then(|status| status.compliant.as_deref()),
                evaluations,
                seconds: took.as_secs_f64(),
            }
        });
        metrics::of_cluster(&told.collect::<Vec<_>>())
    }

    /// These are what it is about.
    pub(super) fn about(&self, policies: &[Follow]) {
        self.shared.policies.get_or_init(|| policies.to_vec());
    }

    pub(super) fn evaluated(&self, key: &Key, took: Duration) {
        let mut evaluated = self.lock();
        let (times, total) = evaluated.entry(key.clone()).or_default();
        *times = times.saturating_add(1);
        *total = total.saturating_add(took);
    }

    pub(super) fn forget(&self, key: &Key) {
        self.lock().remove(key);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, (u64, Duration)>> {
        self.shared.evaluated.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
