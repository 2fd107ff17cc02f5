//! Takes what the agent made for policies off its cluster: `cleat_core::leave::ground` says what, and
//! what stays.

use cleat_api::leftoverrecord::LeftObject;
use cleat_api::managedcluster::ManagedCluster;
use cleat_core::id::Target;
use cleat_core::leave::agent::Held;
use cleat_core::leave::ground::{Next, Observed, key, left, namespace, next, wants_look};
use cleat_core::registration::hub::Seen;
use cleat_core::work::contents::{Contents, judge};
use cleat_core::write::Side;
use cleat_runtime::contents::found;
use cleat_runtime::execute::Read;

use super::Context;

impl Context {
    /// One step further, when nothing else is held.
    pub(super) async fn clear_ground(&self, cluster: &ManagedCluster) -> Held {
        let told = cluster.status.clone().unwrap_or_default().left;
        let seen = self.observe_ground(cluster, told).await;
        let mut left = left(&seen);
        let what = match next(&seen) {
            Next::Done => None,
            Next::Wait(what) => Some(what),
            Next::Unknown(why) => {
                return Held { what: None, unknown: Some(why), left };
            }
            Next::Tell(object) => {
                left.push(object);
                Some("the namespace of policies".to_owned())
            }
            Next::Do(action) => {
                // Whatever came of it, the next look begins with what is there.
                self.executor.execute(vec![vec![action]]).await;
                Some("the namespace of policies".to_owned())
            }
        };
        Held { what, unknown: None, left }
    }

    async fn observe_ground(&self, cluster: &ManagedCluster, told: Vec<LeftObject>) -> Observed {
        let name = &self.leave.name;
        let mut seen = Observed {
            name: name.clone(),
            strategy: cluster.spec.remove_strategy,
            namespace: self.see(&namespace(name)).await,
            key: self.see(&key(name)).await,
            contents: None,
            told,
        };
        if wants_look(&seen) {
            let found = found(&self.leave.cluster_client, &self.kinds, name).await;
            seen.contents = Some(match found {
                Ok(found) => judge(&found, &self.leave.hub_hash),
                Err(why) => Contents::Unknown(format!("what it holds cannot be seen: {why}")),
            });
        }
        seen
    }

    async fn see(&self, target: &Target) -> Seen {
        match self.executor.read(Side::Cluster, target).await {
            Read::Present(object) => Seen::Present(object),
            Read::Absent => Seen::Absent,
            Read::NoSuchKind | Read::Unknown { .. } => Seen::Unknown,
        }
    }
}
