//! What is known of kinds: nothing that cannot be told counts as satisfied.

use anyhow::Result;
use cleat_api::criticalservice::CriterionState;
use futures::{StreamExt as _, TryStreamExt as _};
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;

use super::*;
use crate::delete;

#[tokio::test]
async fn a_kind_that_is_defined_but_not_served_is_unknown() -> Result<()> {
    let guarded = Guarded::new("unserved").await?;
    guarded.define().await?;
    guarded.provider().await?;
    let finalizer = json!({ "criteria": [{ "type": "Finalizer", "finalizer": {
        "group": group(&guarded.name), "resource": "cools", "finalizerName": FINALIZER } }] });
    guarded.service(finalizer).await?;
    guarded.told(|status| states(status) == [CriterionState::Satisfied]).await?;
    let definition = definition_name(&guarded.name);
    let mut versions = guarded.definitions().get(&definition).await?.spec.versions;
    versions[0].served = false;
    let unserved = Patch::Merge(json!({ "spec": { "versions": versions } }));
    guarded.definitions().patch(&definition, &PatchParams::default(), &unserved).await?;
    let dry = DeleteParams { dry_run: true, ..DeleteParams::default() };
    let status = eventually("the kind to be unknown", || async {
        let answer = guarded.deployments().delete("server", &dry).await;
        Ok(answer.is_err().then(|| refusal(answer)))
    })
    .await?;
    let message = &status.message;
    assert!(message.contains("cannot be told: the kind is defined but not served"), "{message}");
    versions[0].served = true;
    let served = Patch::Merge(json!({ "spec": { "versions": versions } }));
    guarded.definitions().patch(&definition, &PatchParams::default(), &served).await?;
    guarded.passes().await?;
    guarded.end().await
}

#[tokio::test]
async fn a_kind_that_never_was_satisfies_and_one_that_comes_is_counted() -> Result<()> {
    let guarded = Guarded::new("comes").await?;
    guarded.provider().await?;
    let any = json!({ "criteria": [{ "type": "AnyInstance", "anyInstance": {
        "group": group(&guarded.name), "resource": "cools" } }] });
    guarded.service(any).await?;
    guarded.told(|status| states(status) == [CriterionState::Satisfied]).await?;
    guarded.define().await?;
    guarded.consumer("one").await?;
    let told = guarded.told(|status| states(status) == [CriterionState::Unsatisfied]).await?;
    let criterion = told.status.unwrap().criteria[0].clone();
    assert_eq!((criterion.count, criterion.samples), (1, vec![format!("{}/one", guarded.name)]));
    let status = guarded.refused().await;
    assert!(status.message.contains("1 cools."), "{}", status.message);
    guarded.set_finalizers("one", json!(null)).await?;
    delete(&guarded.consumers(), "one").await?;
    guarded.passes().await?;
    guarded.end().await
}

#[tokio::test]
async fn objects_without_the_finalizer_need_nobody() -> Result<()> {
    let guarded = Guarded::new("free").await?;
    guarded.define().await?;
    guarded.provider().await?;
    for number in 0..3 {
        let name = format!("c{number}");
        guarded.consumer(&name).await?;
        guarded.set_finalizers(&name, json!(["cleat.example/another"])).await?;
    }
    let finalizer = json!({ "criteria": [{ "type": "Finalizer", "finalizer": {
        "group": group(&guarded.name), "resource": "cools", "finalizerName": FINALIZER } }] });
    guarded.service(finalizer).await?;
    guarded.passes().await?;
    guarded.end().await
}

/// So many that they are not read one by one to prove that none of them has the finalizer.
#[tokio::test]
async fn one_of_very_many_objects_that_gets_the_finalizer_is_noticed_at_once() -> Result<()> {
    let guarded = Guarded::new("many").await?;
    guarded.define().await?;
    guarded.provider().await?;
    let names = (0..2100).map(|number| format!("c{number}"));
    let made = futures::stream::iter(names).map(|name| {
        let (api, mut object) = (guarded.consumers(), consumer(&guarded.name, &name));
        object["metadata"]["finalizers"] = json!([]);
        async move { create(&api, object).await.map(drop) }
    });
    made.buffer_unordered(32).try_collect::<()>().await?;
    let finalizer = json!({ "criteria": [{ "type": "Finalizer", "finalizer": {
        "group": group(&guarded.name), "resource": "cools", "finalizerName": FINALIZER } }] });
    guarded.service(finalizer).await?;
    guarded.told(|status| states(status) == [CriterionState::Satisfied]).await?;
    let dry = DeleteParams { dry_run: true, ..DeleteParams::default() };
    for name in ["c7", "c1999", "c2099"] {
        guarded.deployments().delete("server", &dry).await?;
        guarded.set_finalizers(name, json!([FINALIZER])).await?;
        let status = guarded.refused().await;
        assert!(status.message.contains(&format!("/{name}")), "{}", status.message);
        guarded.set_finalizers(name, json!(null)).await?;
        // A refusal may be behind.
        guarded.told(|status| states(status) == [CriterionState::Satisfied]).await?;
    }
    guarded.passes().await?;
    guarded.end().await
}
