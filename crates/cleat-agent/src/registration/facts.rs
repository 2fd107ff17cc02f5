//! What there is to know about this cluster. It only reads.

use std::collections::BTreeMap;

use cleat_api::clusterclaim::ClusterClaim;
use cleat_api::managedcluster::ManagedClusterClaim;
use cleat_core::registration::agent::{Facts, Node};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Node as KubernetesNode;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt as _};

/// Nodes come and go slowly, and a list of them is long.
const NODES: SignedDuration = SignedDuration::from_mins(5);

/// What was found out so far.
pub(super) struct Scout {
    cluster_client: Client,
    facts: Facts,
    counted: Option<Timestamp>,
}

impl Scout {
    /// `facts` are those that do not change.
    pub(super) fn new(cluster_client: Client, facts: Facts) -> Self {
        Self { cluster_client, facts, counted: None }
    }

    /// Looks again. What cannot be read stays as it was.
    pub(super) async fn look(&mut self, now: Timestamp) -> &Facts {
        match self.cluster_client.apiserver_version().await {
            Ok(version) => {
                self.facts.version = Some(version.git_version);
                self.facts.failing = None;
            }
            Err(error) => {
                let since = self.facts.failing.take().map_or(now, |(since, _)| since);
                self.facts.failing = Some((since, error.to_string()));
                return &self.facts;
            }
        }
        if let Some(claims) = self.claims().await {
            self.facts.claims = Some(claims);
        }
        if self.counted.is_none_or(|at| now.duration_since(at) >= NODES)
            && let Some(nodes) = self.nodes().await
        {
            self.facts.nodes = Some(nodes);
            self.counted = Some(now);
        }
        &self.facts
    }

    async fn claims(&self) -> Option<Vec<ManagedClusterClaim>> {
        let api: Api<ClusterClaim> = Api::all(self.cluster_client.clone());
        let list = match api.list(&ListParams::default()).await {
            Ok(list) => list,
            // A cluster without the kind makes no claims of its own.
            Err(kube::Error::Api(status)) if status.code == 404 => return Some(Vec::new()),
            Err(error) => {
                tracing::debug!(%error, "the cluster's claims cannot be read");
                return None;
            }
        };
        let claim = |claim: ClusterClaim| ManagedClusterClaim {
            name: claim.name_any(),
            value: claim.spec.value,
        };
        Some(list.items.into_iter().map(claim).collect())
    }

    async fn nodes(&self) -> Option<Vec<Node>> {
        let api: Api<KubernetesNode> = Api::all(self.cluster_client.clone());
        match api.list(&ListParams::default()).await {
            Ok(list) => Some(list.items.into_iter().map(node).collect()),
            Err(error) => {
                tracing::debug!(%error, "the cluster's nodes cannot be read");
                None
            }
        }
    }
}

fn node(node: KubernetesNode) -> Node {
    let status = node.status.unwrap_or_default();
    let all = |resources: Option<BTreeMap<String, Quantity>>| resources.unwrap_or_default();
    Node { capacity: all(status.capacity), allocatable: all(status.allocatable) }
}
