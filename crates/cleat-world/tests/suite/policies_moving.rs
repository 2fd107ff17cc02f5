//! A policy all the way: a placement chooses, the hub spreads, agents enforce, report and prune. Three
//! clusters; where there are only two servers, two of them share one.

use anyhow::Result;
use cleat_agent::{policy, policy_sync};
use cleat_api::managedcluster::ManagedCluster;
use cleat_api::managedclusterset::ManagedClusterSet;
use cleat_api::managedclustersetbinding::ManagedClusterSetBinding;
use cleat_api::placement::Placement;
use cleat_api::placementbinding::PlacementBinding;
use cleat_api::policy::Policy;
use cleat_hub::{hub, prepare};
use cleat_runtime::tasks::Tasks;
use cleat_world::within;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use kube::runtime::wait::await_condition;
use serde_json::{Value, json};

use crate::{Place, create, delete, make_namespace, seen};

const LABEL: &str = "cleat.dev/test";

struct Member {
    name: String,
    client: Client,
}

impl Member {
    /// What the policy wants here.
    fn maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), &self.name)
    }

    async fn has(&self) -> Result<ConfigMap> {
        seen(&self.maps(), "greeting", |_: &ConfigMap| true).await
    }

    async fn has_not(&self) -> Result<()> {
        let absent = |map: Option<&ConfigMap>| map.is_none();
        within(&self.name, await_condition(self.maps(), "greeting", absent)).await??;
        Ok(())
    }
}

async fn choose(clusters: &Api<ManagedCluster>, member: &Member, chosen: bool) -> Result<()> {
    let patch = Patch::Merge(json!({ "metadata": { "labels": { "chosen": chosen.to_string() } } }));
    clusters.patch(&member.name, &PatchParams::default(), &patch).await?;
    Ok(())
}

fn greeting() -> Value {
    json!({
        "disabled": false, "remediationAction": "enforce",
        "policy-templates": [{ "objectDefinition": {
            "apiVersion": "policy.open-cluster-management.io/v1", "kind": "ConfigurationPolicy",
            "metadata": { "name": "greeting" },
            "spec": {
                "remediationAction": "inform", "pruneObjectBehavior": "DeleteIfCreated",
                "object-templates": [{ "complianceType": "musthave", "objectDefinition": {
                    "apiVersion": "v1", "kind": "ConfigMap",
                    "metadata": { "name": "greeting", "namespace": "{{hub .ManagedClusterName hub}}" },
                    "data": { "word": "hello" },
                } }],
            },
        } }],
    })
}

#[tokio::test]
async fn a_placement_that_changes_moves_what_a_policy_enforces() -> Result<()> {
    let place = Place::new("moving").await?;
    prepare::prepare_hub(&place.client).await?;
    let tasks = Tasks::new();
    let clusters: Api<ManagedCluster> = Api::all(place.client.clone());
    let mut members = Vec::new();
    for (number, server) in [0, 1, 0].into_iter().enumerate() {
        let name = place.world.unique(&format!("moving-c{number}"));
        let client = place.world.clusters[server].client();
        prepare::prepare_cluster(&client).await?;
        make_namespace(&place.world.hub, &name).await?;
        let labels = json!({ LABEL: place.namespace });
        let metadata = json!({ "name": name, "labels": labels });
        create(&clusters, json!({ "metadata": metadata, "spec": {} })).await?;
        policy::start(policy::Config::of_member(client.clone(), &name), &tasks);
        let config = policy_sync::Config::new(place.client.clone(), client.clone(), &name);
        policy_sync::start(config, &tasks);
        members.push(Member { name, client });
    }
    let set = &place.namespace;
    let sets: Api<ManagedClusterSet> = Api::all(place.client.clone());
    let selector = json!({
        "selectorType": "LabelSelector", "labelSelector": { "matchLabels": { LABEL: set } },
    });
    create(&sets, json!({ "metadata": { "name": set }, "spec": { "clusterSelector": selector } }))
        .await?;
    let bindings: Api<ManagedClusterSetBinding> = place.api();
    create(&bindings, json!({ "metadata": { "name": set }, "spec": { "clusterSet": set } }))
        .await?;
    let placements: Api<Placement> = place.api();
    let predicates = json!([{ "requiredClusterSelector": {
        "labelSelector": { "matchLabels": { "chosen": "true" } } } }]);
    create(
        &placements,
        json!({ "metadata": { "name": "some" }, "spec": { "predicates": predicates } }),
    )
    .await?;
    let config = hub::Config {
        namespace: Some(place.namespace.clone()),
        ..hub::Config::new(place.client.clone())
    };
    tasks.spawn("hub", hub::run(config, tasks.stop()));

    choose(&clusters, &members[0], true).await?;
    let roots: Api<Policy> = place.api();
    create(&roots, json!({ "metadata": { "name": "greeting" }, "spec": greeting() })).await?;
    let binding: Api<PlacementBinding> = place.api();
    let bound = json!({
        "metadata": { "name": "greeting" },
        "placementRef": {
            "apiGroup": "cluster.open-cluster-management.io", "kind": "Placement", "name": "some",
        },
        "subjects": [{
            "apiGroup": "policy.open-cluster-management.io", "kind": "Policy", "name": "greeting",
        }],
    });
    create(&binding, bound).await?;
    let reported = async |names: Vec<&str>| {
        seen(&roots, "greeting", |root: &Policy| {
            root.status.as_ref().is_some_and(|status| {
                let found: Vec<&str> = status.status.iter().map(|one| &*one.cluster_name).collect();
                status.compliant.as_deref() == Some("Compliant") && found == names
            })
        })
        .await
    };
    members[0].has().await?;
    reported(vec![&members[0].name]).await?;

    choose(&clusters, &members[1], true).await?;
    choose(&clusters, &members[2], true).await?;
    choose(&clusters, &members[0], false).await?;
    members[1].has().await?;
    members[2].has().await?;
    members[0].has_not().await?;
    reported(vec![&members[1].name, &members[2].name]).await?;

    delete(&roots, "greeting").await?;
    for member in &members {
        member.has_not().await?;
        let copies: Api<Policy> = Api::namespaced(place.client.clone(), &member.name);
        let name = format!("{}.greeting", place.namespace);
        let absent = |copy: Option<&Policy>| copy.is_none();
        within(&member.name, await_condition(copies, &name, absent)).await??;
    }
    tasks.shutdown().await;
    Ok(())
}
