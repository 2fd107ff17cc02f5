//! Saying what is wrong, and putting it right.

use anyhow::Result;
use cleat_world::eventually;
use k8s_openapi::api::core::v1::{ConfigMap, Event, Namespace};
use kube::api::{Api, ListParams, Patch};
use serde_json::json;

use super::{Site, enforce, inform, is_created, messages, musthave, mustnothave, related};
use crate::{create, delete, seen};

fn holds(map: &ConfigMap, value: &str) -> bool {
    map.data.as_ref().and_then(|data| data.get("key")).is_some_and(|found| found == value)
}

#[tokio::test]
async fn a_missing_object_is_told_of_or_made() -> Result<()> {
    let site = Site::start("policy-make").await?;
    site.policy("told", inform(vec![musthave(site.map("a", "1"))])).await?;
    let told = site.stands("told", "NonCompliant").await?;
    let expected = format!("configmaps [a] not found in namespace {}", site.name);
    assert_eq!(messages(&told), [expected]);
    assert!(site.maps().get_opt("a").await?.is_none());
    site.policy("made", enforce(vec![musthave(site.map("b", "1"))])).await?;
    let made = site.stands("made", "Compliant").await?;
    let map = site.maps().get("b").await?;
    assert!(holds(&map, "1"));
    assert_eq!(is_created(&made, "b"), Some(true));
    let known = related(&made, "b").and_then(|entry| entry.properties.clone());
    assert_eq!(known.map(|known| known.uid), map.metadata.uid);
    // What was wrong is in the history, before that it was put right.
    let history = made.status.map(|status| status.history).unwrap_or_default();
    assert!(history.last().is_some_and(|first| first.message.starts_with("NonCompliant; ")));
    Ok(())
}

#[tokio::test]
async fn what_others_change_is_put_right_and_what_they_made_stays_theirs() -> Result<()> {
    let site = Site::start("policy-repair").await?;
    create(&site.maps(), json!({ "metadata": { "name": "a" }, "data": { "own": "x" } })).await?;
    site.policy("p", enforce(vec![musthave(site.map("a", "1"))])).await?;
    let policy = site.stands("p", "Compliant").await?;
    assert_eq!(is_created(&policy, "a"), Some(false));
    let patch = Patch::Merge(json!({ "data": { "key": "2" } }));
    site.maps().patch("a", &Default::default(), &patch).await?;
    let map = seen(&site.maps(), "a", |map| holds(map, "1")).await?;
    assert_eq!(map.data.and_then(|data| data.get("own").cloned()), Some("x".to_owned()));
    delete(&site.maps(), "a").await?;
    seen(&site.maps(), "a", |map| holds(map, "1")).await?;
    Ok(())
}

#[tokio::test]
async fn an_unwanted_object_counts_until_it_is_gone() -> Result<()> {
    let site = Site::start("policy-unwanted").await?;
    let held = json!({ "metadata": { "name": "a", "finalizers": ["example.com/hold"] } });
    create(&site.maps(), held).await?;
    site.policy("p", enforce(vec![mustnothave(site.map("a", "1"))])).await?;
    let dying = |map: &ConfigMap| map.metadata.deletion_timestamp.is_some();
    seen(&site.maps(), "a", dying).await?;
    site.passes("other").await?;
    let policy = site.stands("p", "NonCompliant").await?;
    assert!(messages(&policy)[0].contains("configmaps [a] found in namespace"));
    let patch = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    site.maps().patch("a", &Default::default(), &patch).await?;
    site.stands("p", "Compliant").await?;
    assert!(site.maps().get_opt("a").await?.is_none());
    Ok(())
}

#[tokio::test]
async fn selectors_choose_namespaces_and_follow_them() -> Result<()> {
    let site = Site::start("policy-select").await?;
    let namespaces: Api<Namespace> = Api::all(site.cluster.clone());
    let (one, two) = (format!("{}-1", site.name), format!("{}-2", site.name));
    let labels = json!({ "team": site.name });
    create(&namespaces, json!({ "metadata": { "name": one, "labels": labels } })).await?;
    let mut definition = site.map("a", "1");
    definition["metadata"] = json!({ "name": "a" });
    let mut spec = enforce(vec![musthave(definition)]);
    spec["namespaceSelector"] = json!({ "matchLabels": labels });
    site.policy("p", spec).await?;
    site.stands("p", "Compliant").await?;
    let maps =
        |namespace: &str| -> Api<ConfigMap> { Api::namespaced(site.cluster.clone(), namespace) };
    assert!(maps(&one).get_opt("a").await?.is_some());
    create(&namespaces, json!({ "metadata": { "name": two, "labels": labels } })).await?;
    seen(&maps(&two), "a", |map| holds(map, "1")).await?;
    delete(&namespaces, &one).await?;
    delete(&namespaces, &two).await?;
    Ok(())
}

#[tokio::test]
async fn objects_without_a_name_are_looked_for_and_never_changed() -> Result<()> {
    let site = Site::start("policy-unnamed").await?;
    let definition = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "namespace": site.name }, "data": { "wanted": "yes" },
    });
    site.policy("p", enforce(vec![musthave(definition)])).await?;
    site.stands("p", "NonCompliant").await?;
    create(&site.maps(), json!({ "metadata": { "name": "x" }, "data": { "wanted": "yes" } }))
        .await?;
    let policy = site.stands("p", "Compliant").await?;
    assert!(related(&policy, "x").is_some());
    delete(&site.maps(), "x").await?;
    site.stands("p", "NonCompliant").await?;
    Ok(())
}

#[tokio::test]
async fn an_owner_hears_of_every_change() -> Result<()> {
    let site = Site::start("policy-owner").await?;
    let owner = create(&site.maps(), json!({ "metadata": { "name": "owner" } })).await?;
    let policy = json!({
        "metadata": { "name": "p", "ownerReferences": [{
            "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner.metadata.uid,
        }]},
        "spec": enforce(vec![musthave(site.map("a", "1"))]),
    });
    create(&site.policies(), policy).await?;
    site.stands("p", "Compliant").await?;
    let events: Api<Event> = Api::namespaced(site.cluster.clone(), &site.name);
    let about = ListParams::default().fields("involvedObject.name=owner");
    let told = events.list(&about).await?.items;
    let reason = format!("policy: {}/p", site.name);
    assert!(told.iter().all(|event| event.reason.as_deref() == Some(&reason)));
    let said = |start: &str| {
        told.iter().any(|event| event.message.as_deref().is_some_and(|m| m.starts_with(start)))
    };
    assert!(said("NonCompliant; violation - ") && said("Compliant; notification - "));
    Ok(())
}

/// Nothing waits for it, and it is said all the same: of what was wrong, and of what is right.
#[tokio::test]
async fn people_are_told_as_well() -> Result<()> {
    let site = Site::start("policy-people").await?;
    site.policy("p", enforce(vec![musthave(site.map("a", "1"))])).await?;
    site.stands("p", "Compliant").await?;
    let events: Api<Event> = Api::namespaced(site.cluster.clone(), &site.name);
    let about = ListParams::default().fields("involvedObject.name=p");
    for (reason, kind) in ["PolicyUpdate", "PolicyInfo"]
        .into_iter()
        .flat_map(|reason| ["Warning", "Normal"].map(|kind| (reason, kind)))
    {
        eventually(reason, || async {
            let all = events.list(&about).await?.items;
            let said = |event: &&Event| {
                event.reason.as_deref() == Some(reason) && event.type_.as_deref() == Some(kind)
            };
            Ok(all.iter().find(said).map(|_| ()))
        })
        .await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_kind_that_comes_later_is_noticed() -> Result<()> {
    let site = Site::start("policy-kind").await?;
    let group = format!("{}.example.com", site.name);
    let widget = json!({
        "apiVersion": format!("{group}/v1"), "kind": "Gadget",
        "metadata": { "name": "a", "namespace": site.name }, "spec": { "size": 1 },
    });
    site.policy("p", enforce(vec![musthave(widget)])).await?;
    site.says("p", "couldn't find mapping resource with kind Gadget").await?;
    let definitions: Api<
        k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    > = Api::all(site.cluster.clone());
    create(&definitions, gadgets(&group)).await?;
    site.stands("p", "Compliant").await?;
    delete(&definitions, &format!("gadgets.{group}")).await?;
    Ok(())
}

pub(super) fn gadgets(group: &str) -> serde_json::Value {
    json!({
        "metadata": { "name": format!("gadgets.{group}") },
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": { "plural": "gadgets", "singular": "gadget", "kind": "Gadget" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": {
                "openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                },
            }}],
        },
    })
}

#[tokio::test]
async fn numbers_say_how_policies_stand_and_how_often_they_were_looked_at() -> Result<()> {
    let mut site = Site::without_controller("numbers").await?;
    let config = site.config();
    let metrics = config.metrics.clone();
    site.run(config);
    let mut spec = enforce(vec![musthave(site.map("a", "1"))]);
    spec["severity"] = json!("high");
    site.policy("p", spec).await?;
    site.stands("p", "Compliant").await?;
    let stands = format!(
        "cluster_policy_governance_info{{kind=\"ConfigurationPolicy\",policy=\"p\",\
         policy_namespace=\"{}\",severity=\"high\"}} 0\n",
        site.name
    );
    eventually("the numbers", || async {
        let text = metrics.text();
        let counted = text.contains("config_policy_evaluation_total{name=\"p\"} ")
            && !text.contains("config_policy_evaluation_total{name=\"p\"} 0\n");
        Ok((counted && text.contains(&stands)).then_some(()))
    })
    .await?;
    site.end("p").await?;
    eventually("its numbers to go", || async {
        Ok((!metrics.text().contains("name=\"p\"")).then_some(()))
    })
    .await
}
