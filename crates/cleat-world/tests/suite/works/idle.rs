//! What costs nothing: a work that is as it should be.

use anyhow::Result;
use cleat_agent::work::Config;
use cleat_world::fleet::Fleet;
use k8s_openapi::api::apps::v1::Deployment;
use kube::ResourceExt as _;
use kube::api::{DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};

use crate::counting::Counting;
use crate::{definitions, delete};

fn watch_over(counting: &Counting, config: Config) -> Config {
    Config {
        hub_client: counting.client(&config.hub_client),
        cluster_client: counting.client(&config.cluster_client),
        ..config
    }
}

/// A fleet whose agent's requests are counted.
async fn counted(topic: &str) -> Result<(Fleet, Counting)> {
    let mut fleet = Fleet::without_agent(topic).await?;
    let counting = Counting::default();
    fleet.start_agent(watch_over(&counting, fleet.config()));
    Ok((fleet, counting))
}

/// Returns when the agent has carried another work and let go of it.
async fn another_work(fleet: &Fleet, name: &str) -> Result<()> {
    fleet.work(name, vec![fleet.map(name, "1")], json!({})).await?;
    fleet.told(name, "Applied", "True").await?;
    fleet.end(name).await
}

fn deployment(fleet: &Fleet) -> Value {
    let labels = json!({ "app": "still" });
    let container = json!({ "name": "still", "image": "example.com/still" });
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": "still", "namespace": fleet.name },
        "spec": {
            "replicas": 0,
            "selector": { "matchLabels": labels },
            "template": { "metadata": { "labels": labels }, "spec": { "containers": [container] } },
        },
    })
}

/// Everything that was asked about a thing of this name.
fn about(asked: Vec<String>, name: &str) -> Vec<String> {
    asked.into_iter().filter(|request| request.contains(name)).collect()
}

#[tokio::test]
async fn a_settled_work_is_not_asked_about() -> Result<()> {
    let (fleet, counting) = counted("idle").await?;
    fleet.work("still", vec![deployment(&fleet), fleet.map("still", "1")], json!({})).await?;
    fleet.told("still", "Available", "True").await?;
    another_work(&fleet, "first").await?;
    counting.take();
    another_work(&fleet, "second").await?;
    assert_eq!(about(counting.take(), "still"), [] as [String; 0]);
    Ok(())
}

#[tokio::test]
async fn a_change_of_status_costs_neither_read_nor_write() -> Result<()> {
    let (fleet, counting) = counted("status").await?;
    fleet.work("still", vec![deployment(&fleet)], json!({})).await?;
    fleet.told("still", "Available", "True").await?;
    let deployments = fleet.there::<Deployment>();
    // On a real server its controller writes a status of its own first.
    let observed = |deployment: &Deployment| {
        fleet.world.is_embedded()
            || deployment.status.as_ref().is_some_and(|status| status.observed_generation.is_some())
    };
    fleet.seen(&deployments, "still", observed).await?;
    another_work(&fleet, "first").await?;
    counting.take();
    let condition = json!({
        "type": "Example", "status": "True", "reason": "Test", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z", "lastUpdateTime": "2026-01-01T00:00:00Z",
    });
    let patch = Patch::Merge(json!({ "status": { "conditions": [condition] } }));
    deployments.patch_status("still", &PatchParams::default(), &patch).await?;
    another_work(&fleet, "second").await?;
    assert_eq!(about(counting.take(), "still"), [] as [String; 0]);
    Ok(())
}

#[tokio::test]
async fn a_new_agent_writes_nothing_when_nothing_changed() -> Result<()> {
    let mut fleet = Fleet::start("restart").await?;
    let identifier =
        json!({ "resource": "configmaps", "namespace": fleet.name, "name": "applied" });
    let apply = json!({ "manifestConfigs": [{
        "resourceIdentifier": identifier, "updateStrategy": { "type": "ServerSideApply" },
    }]});
    let manifests = vec![deployment(&fleet), fleet.map("still", "1"), fleet.map("applied", "1")];
    fleet.work("still", manifests, apply).await?;
    fleet.told("still", "Available", "True").await?;
    another_work(&fleet, "first").await?;
    fleet.stop_agent().await;
    let before = fleet.works().get("still").await?.metadata.resource_version;
    let counting = Counting::default();
    fleet.start_agent(watch_over(&counting, fleet.config()));
    another_work(&fleet, "second").await?;
    let asked = counting.take();
    let mut writes = asked.iter().filter(|request| !request.starts_with("GET"));
    let ours = writes.find(|request| request.contains("still") || request.contains("applied?"));
    assert_eq!(ours, None);
    assert_eq!(fleet.works().get("still").await?.metadata.resource_version, before);
    Ok(())
}

/// Each object was read by itself, by every agent that was started. Of a kind of its own: of one that
/// others use as well, most objects may be nobody's.
#[tokio::test]
async fn a_new_agent_does_not_read_once_more_what_it_listed() -> Result<()> {
    let mut fleet = Fleet::without_agent("first-list").await?;
    let kind = definitions::define_for(&fleet.cluster, &fleet.name).await?;
    let widget = |number: u32| {
        json!({
            "apiVersion": kind.api_version,
            "kind": "Widget",
            "metadata": { "name": format!("w{number}"), "namespace": fleet.name },
            "spec": { "size": 1 },
        })
    };
    let manifests = (10..60).map(widget).collect();
    fleet.start_agent(fleet.config());
    fleet.work("many", manifests, json!({})).await?;
    fleet.told("many", "Available", "True").await?;
    fleet.stop_agent().await;
    let counting = Counting::default();
    fleet.start_agent(watch_over(&counting, fleet.config()));
    // Something to wait for: whatever it reads before it plans, it has read by then.
    let patch = Patch::Merge(json!({ "spec": { "size": 2 } }));
    kind.objects.patch("w12", &PatchParams::default(), &patch).await?;
    let put_right = |widget: &DynamicObject| widget.data["spec"]["size"] == 1;
    fleet.seen(&kind.objects, "w12", put_right).await?;
    let read = |one: &&String| one.starts_with("GET") && one.contains("/widgets/");
    let asked = counting.take();
    let others: Vec<&String> =
        asked.iter().filter(read).filter(|one| !one.ends_with("/w12")).collect();
    assert_eq!(others, [] as [&String; 0]);
    fleet.end("many").await?;
    delete(&kind.definitions, &kind.definition.name_any()).await
}
