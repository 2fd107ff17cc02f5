//! What a work brings back from its objects.

use anyhow::Result;
use cleat_agent::work::Config;
use cleat_api::manifestwork::ManifestWork;
use cleat_world::fleet::{Fleet, manifest_condition};
use jiff::SignedDuration;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

/// The spec of a work that wants this from one of its objects.
fn wants(fleet: &Fleet, resource: &str, name: &str, rule: Value, scrape: &str) -> Value {
    let identifier = json!({ "resource": resource, "namespace": fleet.name, "name": name });
    json!({ "manifestConfigs": [{
        "resourceIdentifier": identifier,
        "feedbackRules": [rule],
        "feedbackScrapeType": scrape,
    }]})
}

fn paths(paths: &[(&str, &str)]) -> Value {
    let paths: Vec<Value> =
        paths.iter().map(|(name, path)| json!({ "name": name, "path": path })).collect();
    json!({ "type": "JSONPaths", "jsonPaths": paths })
}

/// The values of the first manifest, as name and JSON.
fn values(work: &ManifestWork) -> Vec<(String, Value)> {
    let manifests = work.status.as_ref().map(|status| &status.resource_status.manifests);
    let Some(first) = manifests.and_then(|all| all.first()) else { return vec![] };
    let values = first.status_feedback.values.iter();
    values.map(|value| (value.name.clone(), json!(value.field_value))).collect()
}

fn text(value: &str) -> Value {
    json!({ "type": "String", "string": value })
}

#[tokio::test]
async fn paths_select_values_and_what_is_missing_gives_none() -> Result<()> {
    let fleet = Fleet::start("paths").await?;
    let rule = paths(&[("key", ".data.key"), ("none", ".data.none"), ("name", ".metadata.name")]);
    let spec = wants(&fleet, "configmaps", "a", rule, "Poll");
    fleet.work("one", vec![fleet.map("a", "1")], spec).await?;
    let full = |work: &ManifestWork| values(work).len() == 2;
    let work = fleet.seen(&fleet.works(), "one", full).await?;
    let expected = [("key".to_owned(), text("1")), ("name".to_owned(), text("a"))];
    assert_eq!(values(&work), expected);
    assert_eq!(manifest_condition(&work, 0, "StatusFeedbackSynced").0, "True");
    Ok(())
}

#[tokio::test]
async fn a_rule_that_cannot_be_followed_is_told_and_the_others_give_theirs() -> Result<()> {
    let fleet = Fleet::start("broken").await?;
    let rule = paths(&[("bad", ".data[?("), ("key", ".data.key"), ("deep", ".data")]);
    let spec = wants(&fleet, "configmaps", "a", rule, "Poll");
    fleet.work("one", vec![fleet.map("a", "1")], spec).await?;
    let full = |work: &ManifestWork| values(work).len() == 1;
    let work = fleet.seen(&fleet.works(), "one", full).await?;
    let (status, message) = manifest_condition(&work, 0, "StatusFeedbackSynced");
    assert_eq!(status, "False");
    assert!(message.contains("bad") && message.contains("deep"), "{message}");
    Ok(())
}

#[tokio::test]
async fn nothing_is_well_known_of_other_kinds() -> Result<()> {
    let fleet = Fleet::start("unknown").await?;
    let rule = json!({ "type": "WellKnownStatus" });
    let spec = wants(&fleet, "configmaps", "a", rule, "Poll");
    fleet.work("one", vec![fleet.map("a", "1")], spec).await?;
    let told = |work: &ManifestWork| {
        manifest_condition(work, 0, "StatusFeedbackSynced").1.contains("no status is well known")
    };
    fleet.seen(&fleet.works(), "one", told).await?;
    Ok(())
}

async fn becomes(fleet: &Fleet, value: &str) -> Result<()> {
    fleet.rewrite("one", vec![fleet.map("a", value)]).await?;
    let told = |work: &ManifestWork| values(work) == [("key".to_owned(), text(value))];
    fleet.seen(&fleet.works(), "one", told).await?;
    Ok(())
}

#[tokio::test]
async fn watched_values_follow_the_object_and_not_a_clock() -> Result<()> {
    let mut fleet = Fleet::without_agent("watched").await?;
    let status_interval = SignedDuration::from_hours(1);
    fleet.start_agent(Config { status_interval, ..fleet.config() });
    let spec = wants(&fleet, "configmaps", "a", paths(&[("key", ".data.key")]), "Watch");
    fleet.work("one", vec![fleet.map("a", "1")], spec).await?;
    for value in ["2", "3", "4"] {
        becomes(&fleet, value).await?;
    }
    Ok(())
}

#[tokio::test]
async fn polled_values_follow_within_the_interval() -> Result<()> {
    let mut fleet = Fleet::without_agent("polled").await?;
    let status_interval = SignedDuration::from_millis(200);
    fleet.start_agent(Config { status_interval, ..fleet.config() });
    let spec = wants(&fleet, "configmaps", "a", paths(&[("key", ".data.key")]), "Poll");
    fleet.work("one", vec![fleet.map("a", "1")], spec).await?;
    for value in ["2", "3"] {
        becomes(&fleet, value).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_pod_tells_its_phase() -> Result<()> {
    let fleet = Fleet::start("phase").await?;
    let pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": "p", "namespace": fleet.name },
        "spec": { "containers": [{ "name": "c", "image": "example.com/c" }] },
    });
    let rule = json!({ "type": "WellKnownStatus" });
    let spec = wants(&fleet, "pods", "p", rule, "Watch");
    fleet.work("one", vec![pod], spec).await?;
    fleet.told("one", "Applied", "True").await?;
    let pods = fleet.there::<Pod>();
    let ready = json!({ "type": "Ready", "status": "True" });
    let status = json!({ "phase": "Running", "conditions": [ready] });
    pods.patch_status("p", &PatchParams::default(), &Patch::Merge(json!({ "status": status })))
        .await?;
    let expected =
        [("PodPhase".to_owned(), text("Running")), ("PodReady".to_owned(), text("True"))];
    let told = |work: &ManifestWork| {
        let mut values = values(work);
        values.sort_by(|a, b| a.0.cmp(&b.0));
        values == expected
    };
    fleet.seen(&fleet.works(), "one", told).await?;
    Ok(())
}

#[tokio::test]
async fn a_complete_work_is_frozen() -> Result<()> {
    let fleet = Fleet::start("frozen").await?;
    fleet.work("one", vec![fleet.map("a", "1")], json!({})).await?;
    let work = fleet.told("one", "Applied", "True").await?;
    let mut conditions = work.status.unwrap().conditions;
    let mut complete = conditions[0].clone();
    complete.type_ = "Complete".into();
    conditions.push(complete);
    let patch = Patch::Merge(json!({ "status": { "conditions": conditions } }));
    fleet.works().patch_status("one", &PatchParams::default(), &patch).await?;
    fleet.rewrite("one", vec![fleet.map("a", "2"), fleet.map("b", "2")]).await?;
    fleet.work("two", vec![fleet.map("c", "1")], json!({})).await?;
    fleet.told("two", "Applied", "True").await?;
    assert_eq!(fleet.maps().get("a").await?.data.unwrap()["key"], "1");
    assert!(fleet.maps().get_opt("b").await?.is_none());
    fleet.end("one").await?;
    assert!(fleet.maps().get_opt("a").await?.is_none());
    Ok(())
}
