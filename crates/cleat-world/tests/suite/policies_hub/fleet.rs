//! A hub, its controllers, and clusters that are only names and namespaces.

use anyhow::Result;
use cleat_agent::{policy, policy_sync};
use cleat_api::managedcluster::ManagedCluster;
use cleat_api::placement::{self, Placement, PlacementDecision};
use cleat_api::placementbinding::PlacementBinding;
use cleat_api::policy::Policy;
use cleat_hub::{Metrics, hub, prepare};
use cleat_runtime::tasks::Tasks;
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};

use crate::{Place, create, delete, make_namespace, seen};

pub(super) struct Fleet {
    pub(super) place: Place,
    pub(super) clusters: Vec<String>,
    pub(super) tasks: Tasks,
    pub(super) metrics: Metrics,
}

impl Fleet {
    pub(super) async fn new(topic: &str, clusters: usize) -> Result<Self> {
        Self::of(Place::new(topic).await?, topic, clusters).await
    }

    /// For a test that takes away what others need.
    pub(super) async fn alone(topic: &str, clusters: usize) -> Result<Self> {
        Self::of(Place::alone(topic).await?, topic, clusters).await
    }

    async fn of(place: Place, topic: &str, clusters: usize) -> Result<Self> {
        prepare::prepare_hub(&place.client).await?;
        let all: Api<ManagedCluster> = Api::all(place.client.clone());
        let mut names = Vec::new();
        for number in 1..=clusters {
            let name = place.world.unique(&format!("{topic}-c{number}"));
            make_namespace(&place.world.hub, &name).await?;
            create(&all, json!({ "metadata": { "name": name }, "spec": {} })).await?;
            names.push(name);
        }
        let metrics = Metrics::default();
        let mut fleet = Self { place, clusters: names, tasks: Tasks::new(), metrics };
        fleet.start();
        Ok(fleet)
    }

    pub(super) fn start(&mut self) {
        self.start_denying(Vec::new());
    }

    /// With a hub whose templates may not use these functions.
    pub(super) fn start_denying(&mut self, denied_functions: Vec<String>) {
        let config = hub::Config {
            namespace: Some(self.place.namespace.clone()),
            denied_functions,
            ..hub::Config::new(self.place.client.clone())
        };
        self.metrics = config.metrics.clone();
        self.tasks = Tasks::new();
        self.tasks.spawn("hub", hub::run(config, self.tasks.stop()));
    }

    /// An agent for a cluster, which is this server, until the tasks end.
    pub(super) async fn agent(&self, cluster: usize, on: &Client, tasks: &Tasks) -> Result<()> {
        prepare::prepare_cluster(on).await?;
        let name = &self.clusters[cluster];
        policy::start(policy::Config::of_member(on.clone(), name), tasks);
        let hub_client = self.place.client.clone();
        policy_sync::start(policy_sync::Config::new(hub_client, on.clone(), name), tasks);
        Ok(())
    }

    pub(super) fn roots(&self) -> Api<Policy> {
        self.place.api()
    }

    pub(super) fn copies(&self, cluster: usize) -> Api<Policy> {
        Api::namespaced(self.place.client.clone(), &self.clusters[cluster])
    }

    /// What a policy's copies are called.
    pub(super) fn copied(&self, policy: &str) -> String {
        format!("{}.{policy}", self.place.namespace)
    }

    /// The copy as soon as it is there.
    pub(super) async fn copy(&self, cluster: usize, policy: &str) -> Result<Policy> {
        seen(&self.copies(cluster), &self.copied(policy), |copy: &Policy| {
            copy.metadata.deletion_timestamp.is_none()
        })
        .await
    }

    pub(super) async fn policy(&self, name: &str, spec: Value) -> Result<Policy> {
        create(&self.roots(), json!({ "metadata": { "name": name }, "spec": spec })).await
    }

    /// A binding of the policy's name.
    pub(super) async fn bind(&self, policy: &str, placement: &str) -> Result<()> {
        self.bind_with(policy, placement, "Policy", json!({})).await
    }

    pub(super) async fn bind_with(
        &self,
        subject: &str,
        placement: &str,
        kind: &str,
        more: Value,
    ) -> Result<()> {
        let bindings: Api<PlacementBinding> = self.place.api();
        let mut binding = json!({
            "metadata": { "name": subject },
            "placementRef": {
                "apiGroup": "cluster.open-cluster-management.io", "kind": "Placement",
                "name": placement,
            },
            "subjects": [{
                "apiGroup": "policy.open-cluster-management.io", "kind": kind, "name": subject,
            }],
        });
        for (key, value) in more.as_object().unwrap() {
            binding[key] = value.clone();
        }
        create(&bindings, binding).await?;
        Ok(())
    }

    /// The test is who schedules.
    pub(super) async fn decide(&self, placement: &str, clusters: &[usize]) -> Result<()> {
        let placements: Api<Placement> = self.place.api();
        if placements.get_opt(placement).await?.is_none() {
            let ours = json!({ placement::SCHEDULING_DISABLED: "true" });
            let metadata = json!({ "name": placement, "annotations": ours });
            create(&placements, json!({ "metadata": metadata, "spec": {} })).await?;
        }
        let decisions: Api<PlacementDecision> = self.place.api();
        let name = format!("{placement}-decision-1");
        if decisions.get_opt(&name).await?.is_none() {
            let labels = json!({ placement::PLACEMENT_LABEL: placement });
            create(&decisions, json!({ "metadata": { "name": name, "labels": labels } })).await?;
        }
        let list: Vec<Value> = clusters
            .iter()
            .map(|index| json!({ "clusterName": self.clusters[*index], "reason": "" }))
            .collect();
        let patch = Patch::Merge(json!({ "status": { "decisions": list } }));
        decisions.patch_status(&name, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    pub(super) async fn undecide(&self, placement: &str) -> Result<()> {
        let decisions: Api<PlacementDecision> = self.place.api();
        delete(&decisions, &format!("{placement}-decision-1")).await
    }

    /// Answers for a cluster's agent.
    pub(super) async fn says(&self, cluster: usize, policy: &str, state: &str) -> Result<()> {
        self.copy(cluster, policy).await?;
        let patch = Patch::Merge(json!({ "status": { "compliant": state } }));
        let copies = self.copies(cluster);
        copies.patch_status(&self.copied(policy), &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// Says whether a cluster is available, and for a while already.
    pub(super) async fn available(&self, cluster: usize, status: &str) -> Result<()> {
        let since = Timestamp::now() - SignedDuration::from_mins(5);
        let since = Timestamp::from_second(since.as_second())?;
        let condition = json!({
            "type": "ManagedClusterConditionAvailable", "status": status, "reason": "Told",
            "message": "", "lastTransitionTime": since.to_string(),
        });
        let patch = Patch::Merge(json!({ "status": { "conditions": [condition] } }));
        let clusters: Api<ManagedCluster> = Api::all(self.place.client.clone());
        clusters.patch_status(&self.clusters[cluster], &PatchParams::default(), &patch).await?;
        Ok(())
    }

    pub(super) async fn root_when(
        &self,
        policy: &str,
        holds: impl Fn(&Policy) -> bool,
    ) -> Result<Policy> {
        seen(&self.roots(), policy, holds).await
    }
}

pub(super) fn compliance(root: &Policy) -> &str {
    root.status.as_ref().and_then(|status| status.compliant.as_deref()).unwrap_or_default()
}

/// What is said of the cluster in this place of the status.
pub(super) fn message(root: &Policy, index: usize) -> &str {
    let clusters = root.status.as_ref().map(|status| status.status.as_slice());
    let entry = clusters.and_then(|clusters| clusters.get(index));
    entry.and_then(|entry| entry.message.as_deref()).unwrap_or_default()
}

pub(super) fn spec() -> Value {
    json!({
        "disabled": false, "remediationAction": "inform",
        "policy-templates": [{ "objectDefinition": {
            "apiVersion": "policy.open-cluster-management.io/v1", "kind": "ConfigurationPolicy",
            "metadata": { "name": "t" }, "spec": { "severity": "low" },
        } }],
    })
}

/// A template that enforces a map of its own name.
pub(super) fn enforced(name: &str, namespace: &str, prune: &str, word: &str) -> Value {
    json!({ "objectDefinition": {
        "apiVersion": "policy.open-cluster-management.io/v1", "kind": "ConfigurationPolicy",
        "metadata": { "name": name },
        "spec": {
            "remediationAction": "enforce", "pruneObjectBehavior": prune,
            "object-templates": [{ "complianceType": "musthave", "objectDefinition": {
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": { "name": name, "namespace": namespace }, "data": { "word": word },
            }}],
        },
    }})
}
