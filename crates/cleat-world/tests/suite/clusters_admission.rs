//! Clusters and bindings that a hub must not take, asked of the real webhook by real and embedded
//! servers.

use anyhow::Result;
use cleat_api::admission::Rules;
use cleat_api::managedcluster::ManagedCluster;
use cleat_api::managedclustersetbinding::ManagedClusterSetBinding;
use cleat_hub::prepare::install_webhooks;
use cleat_webhook::{Judge, Reach, configuration};
use cleat_world::eventually;
use cleat_world::webhook::serve;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use kube::Client;
use kube::api::{Api, PostParams};
use kube::core::Status;
use serde_json::{Value, json};

use crate::access::{let_robots, robot};
use crate::clusters::Fleet;
use crate::works_api::place;
use crate::{Place, delete, parse, refusal};

const SET: &str = "cluster.open-cluster-management.io/clusterset";

/// A hub whose clusters are judged.
struct Court {
    fleet: Fleet,
    name: String,
}

impl Court {
    async fn new(topic: &str) -> Result<Self> {
        let fleet = Fleet::new(topic).await?;
        let name = fleet.world.unique(topic);
        let served = serve(Judge::new(fleet.hub.clone(), Rules::default()).router()).await?;
        let mut here = configuration(Some(&served.authority), &Reach::Url(served.url));
        here.metadata.name = Some(name.clone());
        here.webhooks.iter_mut().for_each(|all| all.retain(|one| one.name.contains("clusters.")));
        for webhook in here.webhooks.iter_mut().flatten() {
            webhook.object_selector = Some(parse(json!({ "matchLabels": fleet.label() })));
        }
        install_webhooks(&fleet.hub, &here).await?;
        let court = Self { fleet, name };
        eventually("the webhook to be asked", || async {
            let asked = court.try_cluster(&court.fleet.hub, "managed-clusters", json!({}), false);
            Ok(asked.await.err().filter(|status| status.message.contains("metadata.name")))
        })
        .await?;
        Ok(court)
    }

    /// Asks without storing anything.
    async fn try_cluster(
        &self,
        client: &Client,
        name: &str,
        labels: Value,
        accepts: bool,
    ) -> Result<ManagedCluster, Status> {
        let mut object = json!({
            "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
            "metadata": { "name": name, "labels": self.fleet.label() },
            "spec": { "hubAcceptsClient": accepts },
        });
        if let (Some(all), Value::Object(more)) =
            (object["metadata"]["labels"].as_object_mut(), labels)
        {
            all.extend(more);
        }
        let clusters: Api<ManagedCluster> = Api::all(client.clone());
        let dry_run = PostParams { dry_run: true, ..PostParams::default() };
        match clusters.create(&dry_run, &parse(object)).await {
            Ok(made) => Ok(made),
            Err(error) => Err(refusal::<ManagedCluster>(Err(error))),
        }
    }

    async fn close(&self) -> Result<()> {
        let configurations: Api<ValidatingWebhookConfiguration> = Api::all(self.fleet.hub.clone());
        delete(&configurations, &self.name).await
    }
}

#[tokio::test]
async fn a_bootstrap_token_could_accept_itself() -> Result<()> {
    let court = Court::new("accepting").await?;
    let stranger = court.fleet.bootstrap().await?;
    let refused = court.try_cluster(&stranger, &court.name, json!({}), true).await.unwrap_err();
    assert_eq!(refused.code, 403, "{refused:?}");
    assert!(refused.message.contains("managedclusters/accept"), "{refused:?}");
    // It may ask.
    assert!(court.try_cluster(&stranger, &court.name, json!({}), false).await.is_ok());
    let into_a_set = json!({ SET: "prod" });
    let refused = court.try_cluster(&stranger, &court.name, into_a_set.clone(), false).await;
    let refused = refused.unwrap_err();
    assert!(refused.message.contains("managedclustersets/join"), "{refused:?}");
    // The hub's administrator may do all of it.
    let administrator = &court.fleet.hub;
    assert!(court.try_cluster(administrator, &court.name, into_a_set, true).await.is_ok());
    let reserved = court.try_cluster(administrator, "managed-clusters", json!({}), true).await;
    assert_eq!(reserved.unwrap_err().code, 400);
    court.close().await
}

#[tokio::test]
async fn a_cluster_that_is_judged_joins_and_lives_as_any_other() -> Result<()> {
    let court = Court::new("judging").await?;
    let member = court.fleet.joined("judged").await?;
    court.fleet.patch(&member.name, json!({ "metadata": { "labels": { SET: "other" } } })).await?;
    let moved = court.fleet.clusters().get(&member.name).await?;
    assert_eq!(moved.metadata.labels.unwrap_or_default().get(SET).map(|s| &**s), Some("other"));
    member.tasks.shutdown().await;
    court.close().await
}

#[tokio::test]
async fn whoever_may_bind_in_a_namespace_could_use_every_set() -> Result<()> {
    let place = place("binding").await?;
    let served = serve(Judge::new(place.client.clone(), Rules::default()).router()).await?;
    let mut here = configuration(Some(&served.authority), &Reach::Url(served.url));
    here.metadata.name = Some(place.namespace.clone());
    here.webhooks.iter_mut().for_each(|all| all.retain(|one| one.name.contains("bindings.")));
    let only_here = json!({ "matchLabels": { "kubernetes.io/metadata.name": place.namespace } });
    for webhook in here.webhooks.iter_mut().flatten() {
        webhook.namespace_selector = Some(parse(only_here.clone()));
    }
    install_webhooks(&place.client, &here).await?;
    let robot = robot(&place).await?;
    let rules = json!([{
        "apiGroups": ["cluster.open-cluster-management.io"],
        "resources": ["managedclustersetbindings"], "verbs": ["create"],
    }]);
    let_robots(&place, rules).await?;
    // Neither rights nor webhooks count at once.
    let refused = eventually("the webhook to be asked", || async {
        let refused = bind(&place, &robot, "prod", "prod").await.err();
        Ok(refused.filter(|status| status.message.contains("managedclustersets/bind")))
    })
    .await?;
    assert_eq!(refused.code, 403, "{refused:?}");
    assert!(bind(&place, &place.client, "prod", "prod").await.is_ok());
    let other = bind(&place, &place.client, "prod", "test").await.unwrap_err();
    assert!(other.message.contains("the name of the set"), "{other:?}");
    let configurations: Api<ValidatingWebhookConfiguration> = Api::all(place.client.clone());
    delete(&configurations, &place.namespace).await
}

/// Asks without storing anything.
async fn bind(place: &Place, client: &Client, name: &str, set: &str) -> Result<(), Status> {
    let bindings: Api<ManagedClusterSetBinding> = Api::namespaced(client.clone(), &place.namespace);
    let object = parse(json!({
        "apiVersion": "cluster.open-cluster-management.io/v1beta2",
        "kind": "ManagedClusterSetBinding",
        "metadata": { "name": name }, "spec": { "clusterSet": set },
    }));
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    match bindings.create(&dry_run, &object).await {
        Ok(_) => Ok(()),
        Err(error) => Err(refusal::<ManagedClusterSetBinding>(Err(error))),
    }
}
