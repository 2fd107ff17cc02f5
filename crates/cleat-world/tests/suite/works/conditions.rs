//! Conditions that a work's rules give it: well known, or in CEL.

use anyhow::Result;
use cleat_world::fleet::{Fleet, condition_of, manifest_condition};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

fn rules(fleet: &Fleet, resource: &str, name: &str, rules: Value) -> Value {
    let identifier = json!({ "resource": resource, "namespace": fleet.name, "name": name });
    json!({ "manifestConfigs": [{ "resourceIdentifier": identifier, "conditionRules": rules }] })
}

#[tokio::test]
async fn an_expression_gives_a_condition_and_follows_the_object() -> Result<()> {
    let mut fleet = Fleet::without_agent("expression").await?;
    let status_interval = jiff::SignedDuration::from_millis(100);
    fleet.start_agent(cleat_agent::work::Config { status_interval, ..fleet.config() });
    let rule = json!([{
        "condition": "Degraded",
        "type": "CEL",
        "celExpressions": [{ "expression": "object.data.key == 'bad'" }],
        "messageExpression": "'the key is ' + object.data.key",
    }]);
    let spec = rules(&fleet, "configmaps", "a", rule);
    fleet.work("one", vec![fleet.map("a", "good"), fleet.map("b", "1")], spec).await?;
    let work = fleet.told("one", "Degraded", "False").await?;
    assert_eq!(condition_of(&work, "Degraded").unwrap().reason, "ConditionRulesAggregated");
    assert_eq!(manifest_condition(&work, 0, "Degraded").1, "the key is good");
    assert_eq!(manifest_condition(&work, 1, "Degraded").0, "");
    fleet.rewrite("one", vec![fleet.map("a", "bad"), fleet.map("b", "1")]).await?;
    let work = fleet.told("one", "Degraded", "True").await?;
    assert_eq!(condition_of(&work, "Degraded").unwrap().message, "the key is bad");
    Ok(())
}

#[tokio::test]
async fn a_rule_that_is_taken_back_takes_its_condition_along() -> Result<()> {
    let fleet = Fleet::start("taken-back").await?;
    let rule = json!([{ "condition": "Mine", "type": "CEL", "celExpressions": [{ "expression": "true" }] }]);
    fleet.work("one", vec![fleet.map("a", "1")], rules(&fleet, "configmaps", "a", rule)).await?;
    fleet.told("one", "Mine", "True").await?;
    fleet.patch("one", json!({ "spec": { "manifestConfigs": null } })).await?;
    let without = |work: &cleat_api::manifestwork::ManifestWork| {
        condition_of(work, "Mine").is_none() && condition_of(work, "Applied").is_some()
    };
    fleet.seen(&fleet.works(), "one", without).await?;
    Ok(())
}

#[tokio::test]
async fn an_expression_that_fails_says_so_and_harms_nothing() -> Result<()> {
    let fleet = Fleet::start("fails").await?;
    let rule = json!([
        { "condition": "Broken", "type": "CEL", "celExpressions": [{ "expression": "object.data." }] },
        { "condition": "Missing", "type": "CEL", "celExpressions": [{ "expression": "object.data.none == '1'" }] },
        { "condition": "Fine", "type": "CEL", "celExpressions": [{ "expression": "object.data.key == '1'" }] },
    ]);
    fleet.work("one", vec![fleet.map("a", "1")], rules(&fleet, "configmaps", "a", rule)).await?;
    let work = fleet.told("one", "Fine", "True").await?;
    assert_ne!(manifest_condition(&work, 0, "Broken").0, "True");
    assert_ne!(manifest_condition(&work, 0, "Missing").0, "True");
    fleet.told("one", "Applied", "True").await?;
    Ok(())
}

#[tokio::test]
async fn a_finished_pod_completes_its_work_and_freezes_it() -> Result<()> {
    let mut fleet = Fleet::without_agent("finished").await?;
    let status_interval = jiff::SignedDuration::from_millis(100);
    fleet.start_agent(cleat_agent::work::Config { status_interval, ..fleet.config() });
    let pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": "p", "namespace": fleet.name },
        "spec": { "containers": [{ "name": "c", "image": "example.com/c" }] },
    });
    let rule = json!([{ "condition": "Complete", "type": "WellKnownConditions" }]);
    let spec = rules(&fleet, "pods", "p", rule);
    fleet.work("one", vec![pod.clone()], spec).await?;
    fleet.told("one", "Complete", "False").await?;
    let succeeded = Patch::Merge(json!({ "status": { "phase": "Succeeded" } }));
    fleet.there::<Pod>().patch_status("p", &PatchParams::default(), &succeeded).await?;
    fleet.told("one", "Complete", "True").await?;
    fleet.rewrite("one", vec![pod, fleet.map("late", "1")]).await?;
    fleet.work("two", vec![fleet.map("c", "1")], json!({})).await?;
    fleet.told("two", "Applied", "True").await?;
    assert!(fleet.maps().get_opt("late").await?.is_none());
    // How it stands is told all the same, and that it is complete stays true.
    fleet.there::<Pod>().delete("p", &DeleteParams::default().grace_period(0)).await?;
    let work = fleet.told("one", "Available", "False").await?;
    assert_eq!(condition_of(&work, "Complete").unwrap().status, "True");
    assert!(fleet.there::<Pod>().get_opt("p").await?.is_none());
    fleet.end("one").await?;
    assert!(fleet.there::<Pod>().get_opt("p").await?.is_none());
    Ok(())
}

/// It was frozen then, so what was refused at first never came; a time to live deleted the rest.
#[tokio::test]
async fn a_work_is_not_complete_while_a_manifest_of_it_is_refused() -> Result<()> {
    let mut fleet = Fleet::without_agent("half-finished").await?;
    let status_interval = jiff::SignedDuration::from_millis(100);
    fleet.start_agent(cleat_agent::work::Config { status_interval, ..fleet.config() });
    let pod = |name: &str, image: Value| {
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": { "name": name, "namespace": fleet.name },
            "spec": { "containers": [{ "name": "c", "image": image }] },
        })
    };
    let good = json!("example.com/c");
    let rule = json!([{ "condition": "Complete", "type": "WellKnownConditions" }]);
    let spec = rules(&fleet, "pods", "*", rule);
    let refused = pod("b", json!(""));
    fleet.work("one", vec![pod("a", good.clone()), refused], spec).await?;
    fleet.told("one", "Applied", "False").await?;
    let succeeded = Patch::Merge(json!({ "status": { "phase": "Succeeded" } }));
    let pods = fleet.there::<Pod>();
    pods.patch_status("a", &PatchParams::default(), &succeeded).await?;
    let work = fleet.told("one", "Complete", "Unknown").await?;
    let complete = condition_of(&work, "Complete").unwrap();
    assert_eq!(complete.message, "1 manifest is not applied");
    fleet.rewrite("one", vec![pod("a", good.clone()), pod("b", good)]).await?;
    fleet.told("one", "Complete", "False").await?;
    pods.patch_status("b", &PatchParams::default(), &succeeded).await?;
    fleet.told("one", "Complete", "True").await?;
    Ok(())
}
