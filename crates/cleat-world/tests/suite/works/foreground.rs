//! A deleted work goes when everything it owned was seen gone, and not before.

use anyhow::Result;
use cleat_agent::work::Config;
use cleat_api::appliedmanifestwork::Claim;
use cleat_world::fleet::{Agent, Fleet, condition_of, holders};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::ResourceExt as _;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};

use super::guard::Guard;
use super::widgets::Widgets;
use crate::{create, delete};

async fn set_finalizers(fleet: &Fleet, map: &str, finalizers: Value) -> Result<()> {
    let patch = Patch::Merge(json!({ "metadata": { "finalizers": finalizers } }));
    fleet.maps().patch(map, &PatchParams::default(), &patch).await?;
    Ok(())
}

#[tokio::test]
async fn a_finalizer_holds_the_work_and_is_named() -> Result<()> {
    let fleet = Fleet::start("held").await?;
    fleet.work("one", vec![fleet.map("a", "1"), fleet.map("b", "1")], json!({})).await?;
    fleet.told("one", "Applied", "True").await?;
    set_finalizers(&fleet, "a", json!(["example.com/hold"])).await?;
    fleet.delete("one").await?;
    let work = fleet.says("one", "Deleting", "1 object remains").await?;
    let condition = condition_of(&work, "Deleting").unwrap();
    assert_eq!((&*condition.status, &*condition.reason), ("True", "WorkDeleting"));
    let expected = format!(
        "ManifestWork is being deleted; 1 object remains: configmaps {}/a (waiting for finalizer \
         example.com/hold)",
        fleet.name
    );
    assert_eq!(condition.message, expected);
    assert!(fleet.maps().get_opt("b").await?.is_none());
    assert!(fleet.ledger("one").await?.metadata.deletion_timestamp.is_some());
    set_finalizers(&fleet, "a", json!(null)).await?;
    fleet.absent(&fleet.works(), "one").await?;
    assert!(fleet.maps().get_opt("a").await?.is_none());
    Ok(())
}

#[tokio::test]
async fn a_work_that_stays_says_what_holds_what_left_it() -> Result<()> {
    let fleet = Fleet::start("held-alone").await?;
    fleet.work("one", vec![fleet.map("a", "1"), fleet.map("b", "1")], json!({})).await?;
    fleet.told("one", "Applied", "True").await?;
    set_finalizers(&fleet, "a", json!(["example.com/hold"])).await?;
    fleet.rewrite("one", vec![fleet.map("b", "1")]).await?;
    let work = fleet.says("one", "Removed", "waiting for finalizer example.com/hold").await?;
    let condition = condition_of(&work, "Removed").unwrap();
    assert_eq!((&*condition.status, &*condition.reason), ("False", "ObjectsRemain"));
    set_finalizers(&fleet, "a", json!(null)).await?;
    let works = fleet.works();
    fleet.seen(&works, "one", |work| condition_of(work, "Removed").is_none()).await?;
    Ok(())
}

#[tokio::test]
async fn a_namespace_that_does_not_empty_says_what_it_holds() -> Result<()> {
    let fleet = Fleet::start("filled").await?;
    let name = fleet.world.unique("filled-inner");
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name },
    });
    fleet.work("one", vec![namespace], json!({})).await?;
    fleet.told("one", "Applied", "True").await?;
    let maps: Api<ConfigMap> = Api::namespaced(fleet.cluster.clone(), &name);
    let finalizers = json!(["example.com/hold"]);
    create(&maps, json!({ "metadata": { "name": "theirs", "finalizers": finalizers } })).await?;
    fleet.delete("one").await?;
    let work = fleet.says("one", "Deleting", "example.com/hold in 1 resource instances").await?;
    let message = &condition_of(&work, "Deleting").unwrap().message;
    let begun = format!(
        "ManifestWork is being deleted; 1 object remains: namespaces {name} (terminating: "
    );
    assert!(message.starts_with(&begun), "{message}");
    assert!(message.contains("configmaps. has 1 resource instances"), "{message}");
    let none = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    maps.patch("theirs", &PatchParams::default(), &none).await?;
    fleet.absent(&fleet.works(), "one").await?;
    Ok(())
}

#[tokio::test]
async fn a_refused_delete_is_kept_told_and_tried_again() -> Result<()> {
    let fleet = Fleet::start("denied").await?;
    fleet.work("one", vec![fleet.map("a", "1"), fleet.map("b", "1")], json!({})).await?;
    fleet.told("one", "Applied", "True").await?;
    let guard = Guard::install(&fleet).await?;
    guard.refuse("a", "wait for the owner");
    fleet.delete("one").await?;
    let work = fleet.says("one", "Deleting", "1 object remains").await?;
    let message = &condition_of(&work, "Deleting").unwrap().message;
    let expected = format!(
        "configmaps {}/a (admission webhook \"guard.cleat.example\" denied the request: wait for \
         the owner)",
        fleet.name
    );
    assert!(message.contains(&expected), "{message}");
    let ledger = fleet.ledger("one").await?;
    assert!(ledger.status.unwrap().applied_resources.iter().any(|applied| applied.name == "a"));
    guard.allow();
    fleet.absent(&fleet.works(), "one").await?;
    assert!(fleet.maps().get_opt("a").await?.is_none());
    guard.remove().await
}

#[tokio::test]
async fn a_refused_delete_of_what_left_the_manifests_is_tried_again() -> Result<()> {
    let fleet = Fleet::start("pruned").await?;
    fleet.work("one", vec![fleet.map("a", "1"), fleet.map("b", "1")], json!({})).await?;
    fleet.told("one", "Applied", "True").await?;
    let guard = Guard::install(&fleet).await?;
    guard.refuse("a", "not yet");
    fleet.rewrite("one", vec![fleet.map("b", "2")]).await?;
    guard.refused().await?;
    let claims = fleet.ledger("one").await?.spec.claims;
    assert!(claims.iter().flat_map(Claim::all_names).any(|name| name == "a"));
    guard.allow();
    fleet.absent(&fleet.maps(), "a").await?;
    guard.remove().await
}

/// Makes the map anew as somebody else would, while no agent looks.
async fn made_anew(fleet: &mut Fleet, with_marks: bool) -> Result<ConfigMap> {
    fleet.stop_agent().await;
    let old = fleet.maps().get("a").await?;
    delete(&fleet.maps(), "a").await?;
    let mut new = fleet.map("a", "theirs");
    if with_marks {
        new["metadata"]["ownerReferences"] = json!(old.metadata.owner_references);
    }
    create(&fleet.maps(), new).await
}

#[tokio::test]
async fn what_somebody_made_anew_is_not_deleted() -> Result<()> {
    for (topic, with_marks) in [("anew", false), ("anew-marked", true)] {
        let mut fleet = Fleet::start(topic).await?;
        fleet.work("one", vec![fleet.map("a", "1")], json!({})).await?;
        fleet.told("one", "Applied", "True").await?;
        let theirs = made_anew(&mut fleet, with_marks).await?;
        fleet.delete("one").await?;
        fleet.start_agent(fleet.config());
        fleet.absent(&fleet.works(), "one").await?;
        let map = fleet.maps().get("a").await?;
        assert_eq!(map.uid(), theirs.uid());
        assert_eq!((map.data, holders(&fleet.maps().get("a").await?)), (theirs.data, vec![]));
    }
    Ok(())
}

#[tokio::test]
async fn custom_resources_go_before_their_definition_and_namespaces_last() -> Result<()> {
    let fleet = Fleet::start("order").await?;
    let widgets = Widgets::new(&fleet);
    let inner = format!("{}-inner", fleet.name);
    let namespace =
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": inner } });
    let mut map = fleet.map("a", "1");
    map["metadata"]["namespace"] = inner.as_str().into();
    let manifests = vec![map, widgets.manifest("w"), namespace, widgets.definition()];
    fleet.work("one", manifests, json!({})).await?;
    fleet.told("one", "Applied", "True").await?;
    let hold =
        |finalizers: Value| Patch::Merge(json!({ "metadata": { "finalizers": finalizers } }));
    let params = PatchParams::default();
    widgets.api.patch("w", &params, &hold(json!(["example.com/hold"]))).await?;
    fleet.delete("one").await?;
    let work = fleet.says("one", "Deleting", "example.com/hold").await?;
    let message = &condition_of(&work, "Deleting").unwrap().message;
    assert!(message.contains("3 others go after these"), "{message}");
    let namespaces: Api<Namespace> = Api::all(fleet.cluster.clone());
    let maps: Api<ConfigMap> = Api::namespaced(fleet.cluster.clone(), &inner);
    assert!(maps.get("a").await?.metadata.deletion_timestamp.is_none());
    assert!(namespaces.get(&inner).await?.metadata.deletion_timestamp.is_none());
    assert!(widgets.defined().await?.unwrap().metadata.deletion_timestamp.is_none());
    widgets.api.patch("w", &params, &hold(json!(null))).await?;
    fleet.absent(&fleet.works(), "one").await?;
    assert!(namespaces.get_opt(&inner).await?.is_none());
    assert!(widgets.defined().await?.is_none());
    Ok(())
}

#[tokio::test]
async fn a_shared_object_is_handed_over_without_a_gap() -> Result<()> {
    let fleet = Fleet::start("shared").await?;
    for work in ["one", "two"] {
        fleet.work(work, vec![fleet.map("a", "1")], json!({})).await?;
        fleet.told(work, "Applied", "True").await?;
    }
    let before = fleet.seen(&fleet.maps(), "a", |map| holders(map).len() == 2).await?;
    fleet.end("one").await?;
    let after = fleet.maps().get("a").await?;
    assert_eq!(holders(&after), [fleet.ledger_name("two")]);
    assert_eq!(after.uid(), before.uid());
    fleet.end("two").await?;
    assert!(fleet.maps().get_opt("a").await?.is_none());
    Ok(())
}

#[tokio::test]
async fn an_object_that_moves_from_one_work_to_another_is_the_same_object() -> Result<()> {
    let fleet = Fleet::start("moves").await?;
    fleet.work("one", vec![fleet.map("a", "1"), fleet.map("b", "1")], json!({})).await?;
    fleet.told("one", "Applied", "True").await?;
    let before = fleet.maps().get("a").await?;
    fleet.work("two", vec![fleet.map("a", "2")], json!({})).await?;
    fleet.seen(&fleet.maps(), "a", |map| holders(map).len() == 2).await?;
    fleet.rewrite("one", vec![fleet.map("b", "1")]).await?;
    fleet.told("two", "Applied", "True").await?;
    let after = fleet.maps().get("a").await?;
    assert_eq!((after.uid(), holders(&after)), (before.uid(), vec![fleet.ledger_name("two")]));
    assert_eq!(after.data.unwrap()["key"], "2");
    Ok(())
}

#[tokio::test]
async fn agents_of_two_hubs_share_a_cluster() -> Result<()> {
    let fleet = Fleet::start("hubs").await?;
    let other = format!("{}-other", fleet.name);
    crate::make_namespace(&fleet.world.hub, &other).await?;
    let config = Config {
        cluster: other.clone(),
        hub_address: format!("https://another.hub.of.{}", fleet.name),
        agent_id: other.clone(),
        eviction_grace: Some(jiff::SignedDuration::ZERO),
        ..fleet.config()
    };
    let mut agent = Agent::default();
    agent.start(config);
    let manifests = vec![fleet.map("a", "1")];
    fleet.work("one", manifests.clone(), json!({})).await?;
    fleet.told("one", "Applied", "True").await?;
    let works: Api<cleat_api::manifestwork::ManifestWork> =
        Api::namespaced(fleet.hub.clone(), &other);
    let spec = json!({ "workload": { "manifests": manifests } });
    create(&works, json!({ "metadata": { "name": "one" }, "spec": spec })).await?;
    let before = fleet.seen(&fleet.maps(), "a", |map| holders(map).len() == 2).await?;
    fleet.end("one").await?;
    let after = fleet.maps().get("a").await?;
    assert_eq!((after.uid(), holders(&after).len()), (before.uid(), 1));
    delete(&works, "one").await?;
    fleet.absent(&works, "one").await?;
    assert!(fleet.maps().get_opt("a").await?.is_none());
    agent.stop().await;
    Ok(())
}
