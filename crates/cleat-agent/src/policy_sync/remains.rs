//! Policies that a leaving cluster has not let go of yet.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use cleat_api::policy::Policy;
use cleat_core::policy_sync::HOLD;
use kube::Client;
use kube::api::{Api, ListParams};

use crate::leave::Remains;

/// What the hub's copies say: those that prune are held until the cluster has let go.
pub fn remains(hub_client: Client, cluster: &str) -> Arc<dyn Remains> {
    Arc::new(Held { policies: Api::namespaced(hub_client, cluster) })
}

struct Held {
    policies: Api<Policy>,
}

impl Remains for Held {
    fn remains(&self) -> Pin<Box<dyn Future<Output = Result<Option<String>, String>> + Send + '_>> {
        Box::pin(async move {
            let all = match self.policies.list_metadata(&ListParams::default()).await {
                Ok(all) => all,
                // A hub without policies sent none.
                Err(kube::Error::Api(status)) if status.code == 404 => return Ok(None),
                Err(error) => return Err(format!("policies on the hub cannot be read: {error}")),
            };
            let held = all.items.iter().filter(|policy| {
                policy.metadata.finalizers.iter().flatten().any(|one| one == HOLD)
            });
            Ok(match held.count() {
                0 => None,
                1 => Some("1 policy".to_owned()),
                more => Some(format!("{more} policies")),
            })
        })
    }
}
