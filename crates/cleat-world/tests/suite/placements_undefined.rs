//! Definitions that go, with all their objects, and return without them: no cluster leaves a decision
//! for that, and nothing is taken from any.

use anyhow::Result;
use cleat_api::managedcluster::ManagedCluster;
use cleat_api::managedclusterset::ManagedClusterSet;
use cleat_api::managedclustersetbinding::ManagedClusterSetBinding;
use cleat_api::manifestwork::ManifestWork;
use cleat_api::manifestworkreplicaset::ManifestWorkReplicaSet;
use cleat_api::placement::{Placement, PlacementDecision};
use cleat_api::policy::Policy;
use cleat_hub::{hub, prepare};
use cleat_runtime::tasks::Tasks;
use cleat_world::eventually;
use jiff::Timestamp;
use kube::ResourceExt as _;
use kube::api::{Api, ListParams};
use serde_json::{Value, json};

use crate::undefine::undefine;
use crate::{Place, create, gone, make_namespace, seen};

const LABEL: &str = "cleat.dev/test";

struct Hub {
    place: Place,
    cluster: String,
    tasks: Tasks,
}

impl Hub {
    /// A cluster that a placement chose, a policy and a set of works that went there.
    async fn new(topic: &str) -> Result<Self> {
        let place = Place::alone(topic).await?;
        prepare::prepare_hub(&place.client).await?;
        let cluster = place.world.unique(&format!("{topic}-c"));
        make_namespace(&place.world.hub, &cluster).await?;
        let hub = Self { place, cluster, tasks: Tasks::new() };
        hub.join().await?;
        hub.make_set().await?;
        hub.bind().await?;
        let placements: Api<Placement> = hub.place.api();
        create(&placements, json!({ "metadata": { "name": "all" }, "spec": {} })).await?;
        let config = hub::Config {
            namespace: Some(hub.place.namespace.clone()),
            ..hub::Config::new(hub.place.client.clone())
        };
        hub.tasks.spawn("hub", hub::run(config, hub.tasks.stop()));
        hub.spread().await?;
        Ok(hub)
    }

    async fn join(&self) -> Result<()> {
        let clusters: Api<ManagedCluster> = Api::all(self.place.client.clone());
        let labels = json!({ LABEL: self.place.namespace });
        let metadata = json!({ "name": self.cluster, "labels": labels });
        create(&clusters, json!({ "metadata": metadata, "spec": {} })).await?;
        Ok(())
    }

    async fn make_set(&self) -> Result<()> {
        let sets: Api<ManagedClusterSet> = Api::all(self.place.client.clone());
        let name = &self.place.namespace;
        let selector = json!({
            "selectorType": "LabelSelector", "labelSelector": { "matchLabels": { LABEL: name } },
        });
        let spec = json!({ "clusterSelector": selector });
        create(&sets, json!({ "metadata": { "name": name }, "spec": spec })).await?;
        Ok(())
    }

    async fn bind(&self) -> Result<()> {
        let bindings: Api<ManagedClusterSetBinding> = self.place.api();
        let name = &self.place.namespace;
        create(&bindings, json!({ "metadata": { "name": name }, "spec": { "clusterSet": name } }))
            .await?;
        Ok(())
    }

    async fn spread(&self) -> Result<()> {
        let policies: Api<Policy> = self.place.api();
        create(&policies, json!({ "metadata": { "name": "p" }, "spec": policy() })).await?;
        let bindings: Api<cleat_api::placementbinding::PlacementBinding> = self.place.api();
        let binding = json!({
            "metadata": { "name": "p" },
            "placementRef": {
                "apiGroup": "cluster.open-cluster-management.io", "kind": "Placement", "name": "all",
            },
            "subjects": [{
                "apiGroup": "policy.open-cluster-management.io", "kind": "Policy", "name": "p",
            }],
        });
        create(&bindings, binding).await?;
        self.make_works().await?;
        seen(&self.copies(), &self.copied(), |_: &Policy| true).await?;
        self.work().await?;
        Ok(())
    }

    async fn make_works(&self) -> Result<ManifestWorkReplicaSet> {
        let sets: Api<ManifestWorkReplicaSet> = self.place.api();
        let manifest = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": "greeting", "namespace": "default" },
        });
        let spec = json!({
            "manifestWorkTemplate": { "workload": { "manifests": [manifest] } },
            "placementRefs": [{ "name": "all" }],
        });
        create(&sets, json!({ "metadata": { "name": "web" }, "spec": spec })).await
    }

    fn copies(&self) -> Api<Policy> {
        Api::namespaced(self.place.client.clone(), &self.cluster)
    }

    fn copied(&self) -> String {
        format!("{}.p", self.place.namespace)
    }

    async fn work(&self) -> Result<ManifestWork> {
        let works: Api<ManifestWork> = Api::namespaced(self.place.client.clone(), &self.cluster);
        eventually("the work", || async {
            Ok(works.list(&ListParams::default()).await?.items.into_iter().next())
        })
        .await
    }

    async fn decision(&self) -> Result<PlacementDecision> {
        let decisions: Api<PlacementDecision> = self.place.api();
        Ok(decisions.get("all-decision-1").await?)
    }

    /// Everything that must stay: the uids of the copy and the work, and that both are not going.
    async fn carried(&self) -> Result<[Option<String>; 2]> {
        let (copy, work) = (self.copies().get(&self.copied()).await?, self.work().await?);
        assert!(copy.metadata.deletion_timestamp.is_none());
        assert!(work.metadata.deletion_timestamp.is_none());
        Ok([copy.uid(), work.uid()])
    }

    fn listed(decision: &PlacementDecision) -> Vec<&str> {
        let all = decision.status.iter().flat_map(|status| &status.decisions);
        all.map(|one| &*one.cluster_name).collect()
    }

    async fn undefine(&self, plural: &str) -> Result<()> {
        // Times are whole seconds: what is made anew must be younger.
        let made = self.decision().await?.creation_timestamp().unwrap().0.as_second();
        eventually("another second", || async {
            Ok((Timestamp::now().as_second() > made).then_some(()))
        })
        .await?;
        undefine(&self.place.client, plural, &[&self.cluster, &self.place.namespace]).await
    }

    /// The placement, once it says this of why it stays as it is.
    async fn misconfigured(&self, words: &str) -> Result<()> {
        let placements: Api<Placement> = self.place.api();
        seen(&placements, "all", |placement: &Placement| {
            let all = placement.status.iter().flat_map(|status| &status.conditions);
            let mut found = all.filter(|one| one.type_ == "PlacementMisconfigured");
            found.any(|one| match words {
                "" => one.status == "False",
                _ => one.status == "True" && one.message.contains(words),
            })
        })
        .await?;
        Ok(())
    }
}

fn policy() -> Value {
    json!({
        "disabled": false, "remediationAction": "inform",
        "policy-templates": [{ "objectDefinition": {
            "apiVersion": "policy.open-cluster-management.io/v1", "kind": "ConfigurationPolicy",
            "metadata": { "name": "t" }, "spec": { "severity": "low" },
        } }],
    })
}

#[tokio::test]
async fn sets_bindings_and_clusters_that_go_with_their_definition_empty_no_decision() -> Result<()>
{
    let hub = Hub::new("undefined-kinds").await?;
    let (carried, decision) = (hub.carried().await?, hub.decision().await?);
    let group = "cluster.open-cluster-management.io";
    for (plural, missing) in [
        ("managedclustersetbindings", "there is no ManagedClusterSetBinding"),
        ("managedclustersets", "there is no ManagedClusterSet "),
        ("managedclusters", "there is no ManagedCluster "),
    ] {
        hub.undefine(&format!("{plural}.{group}")).await?;
        hub.misconfigured("is going or gone").await?;
        assert_eq!(hub.carried().await?, carried);
        prepare::prepare_hub(&hub.place.client).await?;
        hub.misconfigured(missing).await?;
        let now = hub.decision().await?;
        assert_eq!((now.uid(), Hub::listed(&now)), (decision.uid(), vec![&*hub.cluster]));
        match plural {
            "managedclustersetbindings" => hub.bind().await?,
            "managedclustersets" => hub.make_set().await?,
            _ => hub.join().await?,
        }
        hub.misconfigured("").await?;
        assert_eq!(hub.carried().await?, carried);
    }
    // What a human takes away goes.
    let clusters: Api<ManagedCluster> = Api::all(hub.place.client.clone());
    let patch = kube::api::Patch::Merge(json!({ "metadata": { "labels": { LABEL: null } } }));
    let copy = hub.copies().get(&hub.copied()).await?;
    clusters.patch(&hub.cluster, &kube::api::PatchParams::default(), &patch).await?;
    gone(&hub.copies(), &copy).await?;
    hub.tasks.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn sets_of_works_that_go_with_their_definition_leave_their_works() -> Result<()> {
    let hub = Hub::new("undefined-works").await?;
    let before = hub.carried().await?;
    hub.undefine("manifestworkreplicasets.work.open-cluster-management.io").await?;
    assert_eq!(hub.carried().await?, before);
    prepare::prepare_hub(&hub.place.client).await?;
    let made = hub.make_works().await?;
    let sets: Api<ManifestWorkReplicaSet> = hub.place.api();
    // A set of the same name finds them.
    seen(&sets, "web", |set: &ManifestWorkReplicaSet| {
        let summary = set.status.as_ref().and_then(|status| status.summary.as_ref());
        set.uid() == made.uid() && summary.is_some_and(|summary| summary.total == 1)
    })
    .await?;
    assert_eq!(hub.carried().await?, before);
    hub.tasks.shutdown().await;
    Ok(())
}
