//! A policy all the way, on a cluster that is heard of and then is not: the hub's own scheduler, the
//! taints its leases lead to, a real agent, and a policy that prunes.

use std::sync::Arc;

use anyhow::Result;
use cleat_agent::leave::Presence;
use cleat_agent::registration::{Live, live};
use cleat_agent::{policy, policy_sync};
use cleat_api::managedclusterset::ManagedClusterSet;
use cleat_api::managedclustersetbinding::ManagedClusterSetBinding;
use cleat_api::placement::{Placement, PlacementDecision};
use cleat_api::placementbinding::PlacementBinding;
use cleat_api::policy::Policy;
use cleat_core::registration::agent::apply;
use cleat_core::write::Write;
use cleat_hub::hub;
use cleat_runtime::clock::Clock;
use cleat_runtime::tasks::Tasks;
use cleat_world::{eventually, within};
use k8s_openapi::api::core::v1::{ConfigMap, Event};
use kube::ResourceExt as _;
use kube::api::{Api, ListParams, Patch, PatchParams};
use kube::runtime::wait::await_condition;
use serde_json::json;

use crate::clusters::Fleet;
use crate::{create, make_namespace, seen};

struct Reach {
    fleet: Fleet,
    /// The cluster, and the test's namespace on it.
    name: String,
    /// The policy's namespace on the hub.
    namespace: String,
    hub: Tasks,
    agent: Tasks,
}

impl Reach {
    /// A cluster that its placement chose, with what the policy wants there.
    async fn new(topic: &str) -> Result<Self> {
        let fleet = Fleet::new(topic).await?;
        let name = fleet.world.unique(&format!("{topic}-c"));
        let namespace = fleet.world.unique(&format!("{topic}-policies"));
        make_namespace(&fleet.world.hub, &namespace).await?;
        make_namespace(&fleet.world.clusters[0], &name).await?;
        let application = fleet.application(&name);
        let labels = json!(application.labels);
        let Write::Create(mut object) = apply(&application).write else { panic!() };
        object["spec"]["hubAcceptsClient"] = json!(true);
        create(&fleet.clusters(), object).await?;
        let mut reach = Self { fleet, name, namespace, hub: Tasks::new(), agent: Tasks::new() };
        reach.start_agent();
        reach.fleet.until(&reach.name, "ManagedClusterConditionAvailable", "True").await?;
        reach.place(labels).await?;
        let config = hub::Config {
            namespace: Some(reach.namespace.clone()),
            ..hub::Config::new(reach.fleet.hub.clone())
        };
        reach.hub.spawn("hub", hub::run(config, reach.hub.stop()));
        Ok(reach)
    }

    async fn place(&self, labels: serde_json::Value) -> Result<()> {
        let hub = &self.fleet.hub;
        let sets: Api<ManagedClusterSet> = Api::all(hub.clone());
        let selector = json!({
            "selectorType": "LabelSelector", "labelSelector": { "matchLabels": labels },
        });
        let set = &self.namespace;
        let spec = json!({ "clusterSelector": selector });
        create(&sets, json!({ "metadata": { "name": set }, "spec": spec })).await?;
        let bindings: Api<ManagedClusterSetBinding> = self.api();
        create(&bindings, json!({ "metadata": { "name": set }, "spec": { "clusterSet": set } }))
            .await?;
        let predicates = json!([{ "requiredClusterSelector": { "labelSelector": {
            "matchExpressions": [{ "key": "unwanted", "operator": "DoesNotExist" }] } } }]);
        let placements: Api<Placement> = self.api();
        let spec = json!({ "predicates": predicates });
        create(&placements, json!({ "metadata": { "name": "all" }, "spec": spec })).await?;
        let bound: Api<PlacementBinding> = self.api();
        let binding = json!({
            "metadata": { "name": "p" },
            "placementRef": {
                "apiGroup": "cluster.open-cluster-management.io", "kind": "Placement", "name": "all",
            },
            "subjects": [{
                "apiGroup": "policy.open-cluster-management.io", "kind": "Policy", "name": "p",
            }],
        });
        create(&bound, binding).await?;
        let template = json!({
            "apiVersion": "policy.open-cluster-management.io/v1", "kind": "ConfigurationPolicy",
            "metadata": { "name": "greeting" },
            "spec": {
                "remediationAction": "enforce", "pruneObjectBehavior": "DeleteAll",
                "object-templates": [{ "complianceType": "musthave", "objectDefinition": {
                    "apiVersion": "v1", "kind": "ConfigMap",
                    "metadata": { "name": "greeting", "namespace": self.name },
                    "data": { "word": "hello" },
                } }],
            },
        });
        let templates = json!([{ "objectDefinition": template }]);
        let spec = json!({ "disabled": false, "policy-templates": templates });
        create(&self.roots(), json!({ "metadata": { "name": "p" }, "spec": spec })).await?;
        Ok(())
    }

    fn start_agent(&mut self) {
        let (hub_client, cluster_client) = (self.fleet.hub.clone(), self.fleet.cluster_client());
        self.agent = Tasks::new();
        live(
            Live {
                name: self.name.clone(),
                cluster_id: format!("id-of-{}", self.name),
                hub_address: format!("https://hub.of.{}", self.name),
                hub_client: hub_client.clone(),
                cluster_client: cluster_client.clone(),
                clock: Clock::system(),
                dice: Arc::new(|| 0),
                rotation: None,
                presence: Presence::default(),
            },
            &self.agent,
        );
        policy::start(policy::Config::of_member(cluster_client.clone(), &self.name), &self.agent);
        let config = policy_sync::Config::new(hub_client, cluster_client, &self.name);
        policy_sync::start(config, &self.agent);
    }

    fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.fleet.hub.clone(), &self.namespace)
    }

    fn roots(&self) -> Api<Policy> {
        self.api()
    }

    /// The cluster's copy on the hub.
    async fn copy(&self) -> Result<Policy> {
        let copies: Api<Policy> = Api::namespaced(self.fleet.hub.clone(), &self.name);
        Ok(copies.get(&format!("{}.p", self.namespace)).await?)
    }

    fn maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.fleet.cluster_client(), &self.name)
    }

    async fn stands(&self, state: &str) -> Result<Policy> {
        seen(&self.roots(), "p", |root: &Policy| {
            let said = root.status.as_ref().and_then(|status| status.compliant.as_deref());
            said == Some(state)
        })
        .await
    }

    /// The root, once this is said of the cluster.
    async fn told(&self, words: &str) -> Result<Policy> {
        seen(&self.roots(), "p", |root: &Policy| {
            let clusters = root.status.iter().flat_map(|status| &status.status);
            clusters.into_iter().any(|one| one.message.iter().any(|text| text.contains(words)))
        })
        .await
    }

    /// As soon as the scheduler listed so many clusters.
    async fn decided(&self, count: usize) -> Result<()> {
        let decisions: Api<PlacementDecision> = self.api();
        seen(&decisions, "all-decision-1", |decision: &PlacementDecision| {
            decision.status.as_ref().is_some_and(|status| status.decisions.len() == count)
        })
        .await?;
        Ok(())
    }

    async fn warned(&self, words: &str) -> Result<()> {
        let events: Api<Event> = self.api();
        eventually("the event", || async {
            let all = events.list(&ListParams::default()).await?;
            let told = |one: &&Event| one.message.as_ref().is_some_and(|text| text.contains(words));
            Ok(all.items.iter().find(told).map(|_| ()))
        })
        .await
    }

    async fn end(self) {
        self.agent.shutdown().await;
        self.hub.shutdown().await;
        self.fleet.tasks.shutdown().await;
    }
}

#[tokio::test]
async fn a_cluster_that_falls_silent_keeps_what_a_policy_enforces_until_it_is_back() -> Result<()> {
    let mut reach = Reach::new("silent").await?;
    reach.stands("Compliant").await?;
    let (copy, map) = (reach.copy().await?, reach.maps().get("greeting").await?);

    // Its agent stops, the lease runs out, the taint takes it out of the decision.
    std::mem::take(&mut reach.agent).shutdown().await;
    reach.decided(0).await?;
    reach.told("unreachable").await?;
    reach.warned("unreachable").await?;
    let held = reach.copy().await?;
    assert_eq!((held.uid(), held.metadata.deletion_timestamp), (copy.uid(), None));

    // It is back, chosen again, and nothing was taken from it.
    reach.start_agent();
    reach.decided(1).await?;
    reach.stands("Compliant").await?;
    assert_eq!(reach.copy().await?.uid(), copy.uid());
    assert_eq!(reach.maps().get("greeting").await?.uid(), map.uid());
    reach.end().await;
    Ok(())
}

#[tokio::test]
async fn what_cannot_be_pruned_is_told_by_the_root_as_long_as_it_hangs() -> Result<()> {
    let reach = Reach::new("stuck").await?;
    reach.stands("Compliant").await?;
    let finalizers =
        |list: serde_json::Value| Patch::Merge(json!({ "metadata": { "finalizers": list } }));
    let hold = finalizers(json!(["example.com/hold"]));
    reach.maps().patch("greeting", &PatchParams::default(), &hold).await?;
    reach
        .fleet
        .patch(&reach.name, json!({ "metadata": { "labels": { "unwanted": "yes" } } }))
        .await?;
    let root = reach.told("example.com/hold").await?;
    let status = root.status.unwrap();
    assert_eq!(status.status[0].cluster_name, reach.name);
    let message = status.status[0].message.clone().unwrap();
    assert!(message.contains("Terminating"), "{message}");
    assert_eq!(status.compliant.as_deref(), Some("NonCompliant"));
    reach.warned("example.com/hold").await?;

    reach.maps().patch("greeting", &PatchParams::default(), &finalizers(json!([]))).await?;
    let absent = |map: Option<&ConfigMap>| map.is_none();
    within("the object to go", await_condition(reach.maps(), "greeting", absent)).await??;
    seen(&reach.roots(), "p", |root: &Policy| {
        root.status.as_ref().is_some_and(|status| status.status.is_empty())
    })
    .await?;
    reach.end().await;
    Ok(())
}
