//! Placements: which clusters they choose, and how that is written down. There are no agents: the
//! test makes clusters and says how they are.

use anyhow::Result;
use cleat_api::addonplacementscore::AddOnPlacementScore;
use cleat_api::managedcluster::ManagedCluster;
use cleat_api::managedclusterset::ManagedClusterSet;
use cleat_api::managedclustersetbinding::ManagedClusterSetBinding;
use cleat_api::placement::{self, Placement, PlacementDecision};
use cleat_hub::{hub, prepare};
use cleat_runtime::tasks::Tasks;
use kube::ResourceExt as _;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};

use crate::{Place, create, delete, gone, make_namespace, seen};

const LABEL: &str = "cleat.dev/test";

struct Hub {
    place: Place,
    set: String,
    tasks: Tasks,
}

impl Hub {
    /// A hub with a set of clusters that is bound to the test's namespace.
    async fn new(topic: &str) -> Result<Self> {
        let place = Place::new(topic).await?;
        prepare::prepare_hub(&place.client).await?;
        let set = place.namespace.clone();
        let sets: Api<ManagedClusterSet> = Api::all(place.client.clone());
        let selector = json!({
            "selectorType": "LabelSelector",
            "labelSelector": { "matchLabels": { LABEL: set } },
        });
        create(
            &sets,
            json!({ "metadata": { "name": set }, "spec": { "clusterSelector": selector } }),
        )
        .await?;
        let hub = Self { place, set, tasks: Tasks::new() };
        hub.bind().await?;
        hub.start();
        Ok(hub)
    }

    fn start(&self) {
        let config = hub::Config {
            namespace: Some(self.place.namespace.clone()),
            ..hub::Config::new(self.place.client.clone())
        };
        self.tasks.spawn("hub", hub::run(config, self.tasks.stop()));
    }

    async fn bind(&self) -> Result<()> {
        let bindings: Api<ManagedClusterSetBinding> = self.place.api();
        let binding =
            json!({ "metadata": { "name": self.set }, "spec": { "clusterSet": self.set } });
        create(&bindings, binding).await?;
        Ok(())
    }

    fn clusters(&self) -> Api<ManagedCluster> {
        Api::all(self.place.client.clone())
    }

    fn name(&self, short: &str) -> String {
        format!("{short}-{}", self.set)
    }

    async fn cluster(&self, short: &str, labels: Value) -> Result<()> {
        let mut object = json!({
            "metadata": { "name": self.name(short), "labels": { LABEL: self.set } }, "spec": {},
        });
        for (key, value) in labels.as_object().unwrap() {
            object["metadata"]["labels"][key] = value.clone();
        }
        create(&self.clusters(), object).await?;
        Ok(())
    }

    async fn change(&self, short: &str, patch: Value) -> Result<()> {
        let patch = Patch::Merge(patch);
        self.clusters().patch(&self.name(short), &PatchParams::default(), &patch).await?;
        Ok(())
    }

    async fn placement(&self, name: &str, spec: Value) -> Result<()> {
        let placements: Api<Placement> = self.place.api();
        create(&placements, json!({ "metadata": { "name": name }, "spec": spec })).await?;
        Ok(())
    }

    /// The placement as soon as it reads so: reason, and number of clusters.
    async fn satisfied(&self, name: &str, reason: &str, count: i32) -> Result<Placement> {
        let placements: Api<Placement> = self.place.api();
        seen(&placements, name, |placement: &Placement| {
            says(placement, placement::condition::SATISFIED) == reason
                && placement.status.as_ref().unwrap().number_of_selected_clusters == count
        })
        .await
    }

    /// The clusters of a decision as soon as they are these.
    async fn decided(&self, decision: &str, clusters: &[&str]) -> Result<PlacementDecision> {
        let decisions: Api<PlacementDecision> = self.place.api();
        let wanted: Vec<String> = clusters.iter().map(|short| self.name(short)).collect();
        seen(&decisions, decision, |decision: &PlacementDecision| {
            let status = decision.status.as_ref();
            status.is_some_and(|status| {
                status.decisions.iter().map(|one| &one.cluster_name).eq(&wanted)
            })
        })
        .await
    }
}

fn says(placement: &Placement, kind: &str) -> String {
    let all = placement.status.iter().flat_map(|status| &status.conditions);
    all.filter(|one| one.type_ == kind).map(|one| one.reason.clone()).collect()
}

#[tokio::test]
async fn clusters_are_chosen_as_they_come_change_and_go() -> Result<()> {
    let hub = Hub::new("place").await?;
    let spec = json!({ "predicates": [{ "requiredClusterSelector": {
        "labelSelector": { "matchLabels": { "env": "prod" } } } }] });
    hub.placement("p", spec).await?;
    // An answer for nobody is an answer.
    let decision = hub.decided("p-decision-1", &[]).await?;
    assert_eq!(decision.labels()[placement::PLACEMENT_LABEL], "p");
    assert_eq!(decision.labels()[placement::GROUP_INDEX_LABEL], "0");
    assert_eq!(decision.owner_references()[0].kind, "Placement");
    hub.satisfied("p", "AllManagedClusterSetsEmpty", 0).await?;

    hub.cluster("a", json!({ "env": "prod" })).await?;
    hub.cluster("b", json!({ "env": "dev" })).await?;
    hub.decided("p-decision-1", &["a"]).await?;
    hub.satisfied("p", "AllDecisionsScheduled", 1).await?;
    let env = |value: &str| json!({ "metadata": { "labels": { "env": value } } });
    hub.change("b", env("prod")).await?;
    hub.decided("p-decision-1", &["a", "b"]).await?;
    hub.change("a", env("dev")).await?;
    hub.decided("p-decision-1", &["b"]).await?;
    delete(&hub.clusters(), &hub.name("b")).await?;
    hub.decided("p-decision-1", &[]).await?;
    hub.satisfied("p", "NoManagedClusterMatched", 0).await?;

    let bindings: Api<ManagedClusterSetBinding> = hub.place.api();
    delete(&bindings, &hub.set).await?;
    hub.satisfied("p", "NoManagedClusterSetBindings", 0).await?;
    hub.tasks.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn taints_expressions_and_numbers_choose() -> Result<()> {
    let hub = Hub::new("taints").await?;
    for short in ["a", "b", "c"] {
        hub.cluster(short, json!({ "size": short })).await?;
    }
    // By default it would also count how often others chose each, and they choose at the same time.
    let steady =
        json!({ "scoreCoordinate": { "type": "BuiltIn", "builtIn": "Steady" }, "weight": 1 });
    let steadily = json!({ "mode": "Exact", "configurations": [steady] });
    let two = json!({ "numberOfClusters": 2, "prioritizerPolicy": steadily });
    hub.placement("two", two).await?;
    hub.decided("two-decision-1", &["a", "b"]).await?;
    let expression = r#"managedCluster.metadata.labels["size"] > "a""#;
    let cel = json!({ "predicates": [{ "requiredClusterSelector": {
        "celSelector": { "celExpressions": [expression] } } }] });
    hub.placement("cel", cel).await?;
    hub.decided("cel-decision-1", &["b", "c"]).await?;
    let tolerating = json!({ "tolerations": [{ "key": "down", "operator": "Exists" }] });
    hub.placement("all", tolerating).await?;
    hub.decided("all-decision-1", &["a", "b", "c"]).await?;

    let taints = json!([{ "key": "down", "effect": "NoSelect" }]);
    hub.change("a", json!({ "spec": { "taints": taints } })).await?;
    hub.decided("two-decision-1", &["b", "c"]).await?;
    hub.placement("late", json!({})).await?;
    hub.decided("late-decision-1", &["b", "c"]).await?;
    hub.decided("all-decision-1", &["a", "b", "c"]).await?;
    // Whoever was chosen in its place stays.
    hub.change("a", json!({ "spec": { "taints": [] } })).await?;
    hub.decided("late-decision-1", &["a", "b", "c"]).await?;
    hub.decided("two-decision-1", &["b", "c"]).await?;
    hub.tasks.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn claims_resources_and_scores_choose_and_tolerations_end() -> Result<()> {
    let hub = Hub::new("scores").await?;
    for (short, cpu) in [("a", "2"), ("b", "16"), ("c", "4")] {
        hub.cluster(short, json!({})).await?;
        let claims =
            json!([{ "name": "zone", "value": if short == "b" { "far" } else { "near" } }]);
        let resources = json!({ "cpu": cpu, "memory": "1Gi" });
        let status = json!({
            "clusterClaims": claims, "allocatable": resources, "capacity": resources,
        });
        let status = Patch::Merge(json!({ "status": status }));
        let name = hub.name(short);
        hub.clusters().patch_status(&name, &PatchParams::default(), &status).await?;
    }
    let claim = json!({ "key": "zone", "operator": "In", "values": ["near"] });
    let near = json!({ "predicates": [{ "requiredClusterSelector": {
        "claimSelector": { "matchExpressions": [claim] } } }] });
    hub.placement("near", near).await?;
    hub.decided("near-decision-1", &["a", "c"]).await?;

    // The largest, and the one that an add-on likes best.
    let first = |coordinate: Value| {
        let configurations = json!([{ "scoreCoordinate": coordinate, "weight": 1 }]);
        let policy = json!({ "mode": "Exact", "configurations": configurations });
        json!({ "numberOfClusters": 1, "prioritizerPolicy": policy })
    };
    let largest = json!({ "type": "BuiltIn", "builtIn": "ResourceAllocatableCPU" });
    hub.placement("largest", first(largest)).await?;
    hub.decided("largest-decision-1", &["b"]).await?;
    for (short, value) in [("a", 10), ("b", -20), ("c", 30)] {
        let name = hub.name(short);
        make_namespace(&hub.place.world.hub, &name).await?;
        let scores: Api<AddOnPlacementScore> = Api::namespaced(hub.place.client.clone(), &name);
        create(&scores, json!({ "metadata": { "name": "load" } })).await?;
        let status = json!({ "status": { "scores": [{ "name": "free", "value": value }] } });
        scores.patch_status("load", &PatchParams::default(), &Patch::Merge(status)).await?;
    }
    let liked =
        json!({ "type": "AddOn", "addOn": { "resourceName": "load", "scoreName": "free" } });
    hub.placement("liked", first(liked)).await?;
    hub.decided("liked-decision-1", &["c"]).await?;

    let patient = json!({ "key": "down", "operator": "Exists", "tolerationSeconds": 2 });
    hub.placement("patient", json!({ "tolerations": [patient] })).await?;
    hub.decided("patient-decision-1", &["a", "b", "c"]).await?;
    let now = jiff::Timestamp::from_second(jiff::Timestamp::now().as_second())?;
    let taints = json!([{ "key": "down", "effect": "NoSelect", "timeAdded": now.to_string() }]);
    hub.change("a", json!({ "spec": { "taints": taints } })).await?;
    hub.decided("near-decision-1", &["c"]).await?;
    hub.decided("patient-decision-1", &["b", "c"]).await?;
    hub.tasks.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn a_placement_nobody_understands_keeps_its_decisions() -> Result<()> {
    let hub = Hub::new("wrong").await?;
    hub.cluster("a", json!({})).await?;
    hub.placement("p", json!({})).await?;
    hub.decided("p-decision-1", &["a"]).await?;
    hub.satisfied("p", "AllDecisionsScheduled", 1).await?;
    let placements: Api<Placement> = hub.place.api();
    let predicates = |expression: &str| {
        json!({ "spec": { "predicates": [{ "requiredClusterSelector": {
            "celSelector": { "celExpressions": [expression] } } }] } })
    };
    let patch = Patch::Merge(predicates("managedCluster."));
    placements.patch("p", &PatchParams::default(), &patch).await?;
    let told = seen(&placements, "p", |placement: &Placement| {
        says(placement, placement::condition::MISCONFIGURED) == "Misconfigured"
    })
    .await?;
    assert_eq!(told.status.unwrap().number_of_selected_clusters, 1);
    hub.decided("p-decision-1", &["a"]).await?;
    let patch = Patch::Merge(predicates("false"));
    placements.patch("p", &PatchParams::default(), &patch).await?;
    hub.decided("p-decision-1", &[]).await?;
    seen(&placements, "p", |placement: &Placement| {
        says(placement, placement::condition::MISCONFIGURED) == "Succeedconfigured"
    })
    .await?;
    hub.tasks.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn groups_get_decisions_of_their_own_and_meddling_is_undone() -> Result<()> {
    let hub = Hub::new("groups").await?;
    for short in ["a", "b", "c"] {
        let canary = (short == "c").to_string();
        hub.cluster(short, json!({ "canary": canary })).await?;
    }
    let strategy = json!({ "groupStrategy": {
        "decisionGroups": [{ "groupName": "canary", "groupClusterSelector": {
            "labelSelector": { "matchLabels": { "canary": "true" } } } }],
        "clustersPerDecisionGroup": 1,
    } });
    hub.placement("p", json!({ "decisionStrategy": strategy })).await?;
    let first = hub.decided("p-decision-1", &["c"]).await?;
    assert_eq!(first.labels()[placement::GROUP_NAME_LABEL], "canary");
    hub.decided("p-decision-2", &["a"]).await?;
    let third = hub.decided("p-decision-3", &["b"]).await?;
    assert_eq!(third.labels()[placement::GROUP_INDEX_LABEL], "2");
    let told = hub.satisfied("p", "AllDecisionsScheduled", 3).await?;
    let groups = told.status.unwrap().decision_groups;
    let groups: Vec<_> =
        groups.iter().map(|one| (&*one.decision_group_name, &*one.decisions[0])).collect();
    assert_eq!(groups, [("canary", "p-decision-1"), ("", "p-decision-2"), ("", "p-decision-3")]);

    let decisions: Api<PlacementDecision> = hub.place.api();
    let patch = Patch::Merge(json!({ "status": { "decisions": [] } }));
    decisions.patch_status("p-decision-2", &PatchParams::default(), &patch).await?;
    hub.decided("p-decision-2", &["a"]).await?;
    delete(&decisions, "p-decision-1").await?;
    gone(&decisions, &first).await?;
    hub.decided("p-decision-1", &["c"]).await?;

    // Fewer groups, fewer decisions.
    let placements: Api<Placement> = hub.place.api();
    let patch = Patch::Merge(json!({ "spec": { "decisionStrategy": null } }));
    placements.patch("p", &PatchParams::default(), &patch).await?;
    hub.decided("p-decision-1", &["a", "b", "c"]).await?;
    gone(&decisions, &third).await?;
    hub.tasks.shutdown().await;
    Ok(())
}
