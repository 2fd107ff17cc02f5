//! Letting go: what a policy made goes when it leaves the policy, or with it, and nothing else does.

use anyhow::Result;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PostParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};

use super::{Site, enforce, inform, is_created, musthave, pruning, related};
use crate::protection::Kept;
use crate::{create, delete, seen};

const HELD: &str = "example.com/hold";

async fn release(maps: &Api<ConfigMap>, name: &str) -> Result<()> {
    let patch = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    maps.patch(name, &Default::default(), &patch).await?;
    Ok(())
}

#[tokio::test]
async fn what_the_policy_made_goes_with_it_and_what_it_found_stays() -> Result<()> {
    let site = Site::start("prune-created").await?;
    create(&site.maps(), json!({ "metadata": { "name": "theirs" } })).await?;
    let templates = vec![musthave(site.map("ours", "1")), musthave(site.map("theirs", "1"))];
    site.policy("p", pruning(enforce(templates), "DeleteIfCreated")).await?;
    site.stands("p", "Compliant").await?;
    site.end("p").await?;
    assert!(site.maps().get_opt("ours").await?.is_none());
    assert!(site.maps().get_opt("theirs").await?.is_some());
    Ok(())
}

#[tokio::test]
async fn everything_the_policy_is_about_goes_if_it_says_so() -> Result<()> {
    let site = Site::start("prune-all").await?;
    create(&site.maps(), json!({ "metadata": { "name": "theirs" } })).await?;
    create(&site.maps(), json!({ "metadata": { "name": "bystander" } })).await?;
    let templates = vec![musthave(site.map("ours", "1")), musthave(site.map("theirs", "1"))];
    site.policy("p", pruning(enforce(templates), "DeleteAll")).await?;
    site.stands("p", "Compliant").await?;
    site.end("p").await?;
    assert!(site.maps().get_opt("ours").await?.is_none());
    assert!(site.maps().get_opt("theirs").await?.is_none());
    assert!(site.maps().get_opt("bystander").await?.is_some());
    Ok(())
}

#[tokio::test]
async fn nothing_goes_without_being_asked_for_or_by_a_policy_that_informs() -> Result<()> {
    let site = Site::start("prune-none").await?;
    site.policy("none", enforce(vec![musthave(site.map("a", "1"))])).await?;
    site.stands("none", "Compliant").await?;
    site.end("none").await?;
    site.policy("told", pruning(inform(vec![musthave(site.map("a", "1"))]), "DeleteAll")).await?;
    site.stands("told", "Compliant").await?;
    site.end("told").await?;
    assert!(site.maps().get_opt("a").await?.is_some());
    Ok(())
}

#[tokio::test]
async fn an_object_that_leaves_the_policy_goes() -> Result<()> {
    let site = Site::start("prune-left").await?;
    let spec = pruning(enforce(vec![musthave(site.map("old", "1"))]), "DeleteIfCreated");
    site.policy("p", spec).await?;
    site.stands("p", "Compliant").await?;
    let templates = vec![musthave(site.map("new", "1"))];
    site.patch("p", json!({ "spec": { "object-templates": templates } })).await?;
    site.absent(&site.maps(), "old").await?;
    let policy = site.stands("p", "Compliant").await?;
    assert!(site.maps().get_opt("new").await?.is_some());
    assert_eq!(is_created(&policy, "new"), Some(true));
    Ok(())
}

/// §2.12: upstream forgets it, and nobody ever hears.
#[tokio::test]
async fn an_object_that_left_and_hangs_is_kept_on_record_until_it_is_gone() -> Result<()> {
    let site = Site::start("prune-hangs").await?;
    let mut held = site.map("old", "1");
    held["metadata"]["finalizers"] = json!([HELD]);
    create(&site.maps(), held.clone()).await?;
    let spec = pruning(enforce(vec![musthave(site.map("old", "1"))]), "DeleteAll");
    site.policy("p", spec).await?;
    site.stands("p", "Compliant").await?;
    let templates = vec![musthave(site.map("new", "1"))];
    site.patch("p", json!({ "spec": { "object-templates": templates } })).await?;
    seen(&site.maps(), "old", |map: &ConfigMap| map.metadata.deletion_timestamp.is_some()).await?;
    let policy = site.stands("p", "Compliant").await?;
    assert!(related(&policy, "old").is_some(), "forgotten while it was there");
    release(&site.maps(), "old").await?;
    let forgotten = |policy: &cleat_api::configurationpolicy::ConfigurationPolicy| {
        related(policy, "old").is_none() && related(policy, "new").is_some()
    };
    seen(&site.policies(), "p", forgotten).await?;
    Ok(())
}

#[tokio::test]
async fn a_stuck_policy_says_what_is_left_and_why_and_goes_when_it_can() -> Result<()> {
    let site = Site::start("prune-stuck").await?;
    let spec = pruning(enforce(vec![musthave(site.map("a", "1"))]), "DeleteIfCreated");
    site.policy("p", spec).await?;
    site.stands("p", "Compliant").await?;
    let patch = Patch::Merge(json!({ "metadata": { "finalizers": [HELD] } }));
    site.maps().patch("a", &Default::default(), &patch).await?;
    delete(&site.policies(), "p").await?;
    site.stands("p", "Terminating").await?;
    let left = format!(
        "Failed to delete objects: /v1, Kind=ConfigMap \"a\" in namespace {} (waiting for finalizer {HELD})",
        site.name
    );
    site.says("p", &left).await?;
    release(&site.maps(), "a").await?;
    site.absent(&site.policies(), "p").await?;
    assert!(site.maps().get_opt("a").await?.is_none());
    Ok(())
}

#[tokio::test]
async fn what_a_critical_service_keeps_is_pruned_when_nothing_needs_it() -> Result<()> {
    let site = Site::start("prune-kept").await?;
    let spec = pruning(enforce(vec![musthave(site.map("kept", "1"))]), "DeleteIfCreated");
    site.policy("p", spec).await?;
    site.stands("p", "Compliant").await?;
    let protected = Kept::start(&site.world, &site.cluster, &site.name).await?;
    delete(&site.policies(), "p").await?;
    site.says("p", &protected.says()).await?;
    assert!(site.maps().get_opt("kept").await?.is_some());
    protected.release().await?;
    site.absent(&site.policies(), "p").await?;
    assert!(site.maps().get_opt("kept").await?.is_none());
    protected.end().await
}

/// The seed: a policy reports others that cannot go. It is the one in docs/samples, which looks at all
/// namespaces; other tests have some.
#[tokio::test]
async fn the_sample_policy_reports_policies_that_cannot_go() -> Result<()> {
    let site = Site::start("prune-sample").await?;
    let sample = include_str!("../../../../../docs/samples/stuck-deletions.yaml");
    let sample: Value = serde_saphyr::from_str(sample)?;
    let mut spec = sample["spec"]["policy-templates"][0]["objectDefinition"]["spec"].clone();
    spec["namespaceSelector"]["include"] = json!([site.name]);
    site.policy("no-stuck-deletions", spec).await?;
    let stuck = pruning(enforce(vec![musthave(site.map("a", "1"))]), "DeleteIfCreated");
    site.policy("p", stuck).await?;
    site.stands("p", "Compliant").await?;
    site.stands("no-stuck-deletions", "Compliant").await?;
    let patch = Patch::Merge(json!({ "metadata": { "finalizers": [HELD] } }));
    site.maps().patch("a", &Default::default(), &patch).await?;
    delete(&site.policies(), "p").await?;
    let told = site.stands("no-stuck-deletions", "NonCompliant").await?;
    assert!(related(&told, "p").is_some());
    let said = told.status.iter().flat_map(|status| &status.history);
    let named = format!("{}/p", site.name);
    assert!(said.into_iter().any(|one| one.message.contains(&named)), "{told:?}");
    release(&site.maps(), "a").await?;
    site.absent(&site.policies(), "p").await?;
    site.stands("no-stuck-deletions", "Compliant").await?;
    Ok(())
}

/// The seed: responsibility is passed on to whoever made it anew.
#[tokio::test]
async fn an_object_that_somebody_else_made_anew_is_theirs() -> Result<()> {
    let mut site = Site::start("prune-anew").await?;
    let spec = pruning(enforce(vec![musthave(site.map("a", "1"))]), "DeleteIfCreated");
    site.policy("p", spec).await?;
    site.stands("p", "Compliant").await?;
    site.stop().await;
    delete(&site.maps(), "a").await?;
    site.absent(&site.maps(), "a").await?;
    let theirs = create(&site.maps(), site.map("a", "1")).await?;
    site.run(site.config());
    site.passes("other").await?;
    site.end("p").await?;
    assert_eq!(site.maps().get("a").await?.metadata.uid, theirs.metadata.uid);
    Ok(())
}

/// §2.12: a selector that matches nothing pruned everything the template owned.
#[tokio::test]
async fn a_selector_that_chooses_nothing_prunes_nothing() -> Result<()> {
    let site = Site::start("prune-selector").await?;
    let namespaces: Api<Namespace> = Api::all(site.cluster.clone());
    let label = json!({ "metadata": { "labels": { "team": site.name } } });
    namespaces.patch(&site.name, &Default::default(), &Patch::Merge(label)).await?;
    let mut definition = site.map("a", "1");
    definition["metadata"] = json!({ "name": "a" });
    let mut spec = pruning(enforce(vec![musthave(definition)]), "DeleteIfCreated");
    spec["namespaceSelector"] = json!({ "matchLabels": { "team": site.name } });
    site.policy("p", spec).await?;
    site.stands("p", "Compliant").await?;
    let bare = json!({ "metadata": { "labels": { "team": null } } });
    namespaces.patch(&site.name, &Default::default(), &Patch::Merge(bare)).await?;
    site.says("p", "has no namespace specified from the policy namespaceSelector").await?;
    site.passes("other").await?;
    let policy = site.policies().get("p").await?;
    assert!(site.maps().get_opt("a").await?.is_some());
    assert_eq!(is_created(&policy, "a"), Some(true), "ownership must not be forgotten");
    Ok(())
}

/// §6 row 2: a template error pruned.
#[tokio::test]
async fn a_template_that_fails_prunes_nothing() -> Result<()> {
    let site = Site::start("prune-template").await?;
    create(&site.maps(), json!({ "metadata": { "name": "source" }, "data": { "name": "a" } }))
        .await?;
    let mut definition = site.map("", "1");
    definition["metadata"]["name"] =
        json!(format!("{{{{ fromConfigMap \"{}\" \"source\" \"name\" }}}}", site.name));
    let spec = pruning(enforce(vec![musthave(definition)]), "DeleteIfCreated");
    site.policy("p", spec).await?;
    site.stands("p", "Compliant").await?;
    assert!(site.maps().get_opt("a").await?.is_some());
    delete(&site.maps(), "source").await?;
    site.says("p", "failed getting the ConfigMap source").await?;
    site.passes("other").await?;
    assert!(site.maps().get_opt("a").await?.is_some());
    // And a template that says something else moves the object.
    create(&site.maps(), json!({ "metadata": { "name": "source" }, "data": { "name": "b" } }))
        .await?;
    site.absent(&site.maps(), "a").await?;
    site.stands("p", "Compliant").await?;
    assert!(site.maps().get_opt("b").await?.is_some());
    Ok(())
}

/// A crash between claim and creation, and one between creation and its report, lose nothing.
#[tokio::test]
async fn a_claimed_object_is_ours_after_a_restart_if_we_made_it() -> Result<()> {
    let mut site = Site::without_controller("prune-claim").await?;
    let spec = pruning(enforce(vec![musthave(site.map("a", "1"))]), "DeleteIfCreated");
    let uid = site.policy("p", spec).await?.metadata.uid.unwrap_or_default();
    let entry = json!({
        "object": {
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": "a", "namespace": site.name },
        },
        "compliant": "NonCompliant", "reason": "Resource not found but should exist",
        "properties": { "createdByPolicy": true },
    });
    let status = json!({ "status": { "compliant": "NonCompliant", "relatedObjects": [entry] } });
    site.policies().patch_status("p", &Default::default(), &Patch::Merge(status)).await?;
    let ours = PostParams {
        field_manager: Some(cleat_agent::policy::field_manager(&uid)),
        ..PostParams::default()
    };
    site.maps().create(&ours, &crate::parse(site.map("a", "1"))).await?;
    site.run(site.config());
    let policy = site.stands("p", "Compliant").await?;
    assert_eq!(is_created(&policy, "a"), Some(true));
    site.end("p").await?;
    assert!(site.maps().get_opt("a").await?.is_none());
    Ok(())
}

/// The version of a kind in which an object was listed is not served any more; the object is there.
#[tokio::test]
async fn an_object_goes_though_its_version_of_the_kind_went_first() -> Result<()> {
    let site = Site::start("prune-version").await?;
    let definitions: Api<CustomResourceDefinition> = Api::all(site.cluster.clone());
    let group = format!("{}.example.com", site.name);
    let name = format!("widgets.{group}");
    let versions = |old: bool| {
        let version = |name: &str, served: bool, storage: bool| {
            json!({
                "name": name, "served": served, "storage": storage,
                "schema": { "openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                } },
            })
        };
        json!([version("v1", true, true), version("v1beta1", old, false)])
    };
    let names = json!({ "plural": "widgets", "singular": "widget", "kind": "Widget" });
    let definition = json!({
        "metadata": { "name": name },
        "spec": { "group": group, "names": names, "scope": "Namespaced", "versions": versions(true) },
    });
    create(&definitions, definition).await?;
    let widget = json!({
        "apiVersion": format!("{group}/v1beta1"), "kind": "Widget",
        "metadata": { "name": "w", "namespace": site.name },
    });
    site.policy("p", pruning(enforce(vec![musthave(widget)]), "DeleteIfCreated")).await?;
    site.stands("p", "Compliant").await?;
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(&group, "v1", "Widget"));
    let widgets: Api<DynamicObject> = Api::namespaced_with(site.cluster.clone(), &site.name, &kind);
    assert!(widgets.get_opt("w").await?.is_some());
    let patch = Patch::Merge(json!({ "spec": { "versions": versions(false) } }));
    definitions.patch(&name, &Default::default(), &patch).await?;
    site.end("p").await?;
    assert!(widgets.get_opt("w").await?.is_none());
    delete(&definitions, &name).await
}
