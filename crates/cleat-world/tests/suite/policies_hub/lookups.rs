//! What templates read on the hub, with whose rights, and what becomes of copies when they cannot.

use anyhow::Result;
use cleat_api::policy::{Policy, name};
use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::ResourceExt as _;
use kube::api::{Api, ApiResource, DynamicObject, PostParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};

use super::fleet::{Fleet, message, spec};
use crate::{create, delete, make_namespace, parse, seen};
use cleat_world::within;

fn definition(copy: &Policy) -> &Value {
    &copy.spec.policy_templates[0].object_definition
}

fn broken(copy: &Policy) -> bool {
    definition(copy)["metadata"]["annotations"][name::HUB_TEMPLATES_ERROR].is_string()
}

/// A name that is not resolved is that of another object, and its cluster would take away the one
/// that bears the old name.
#[tokio::test]
async fn a_template_whose_name_cannot_be_resolved_any_more_keeps_the_one_it_had() -> Result<()> {
    let fleet = Fleet::new("hub-names", 1).await?;
    let maps: Api<ConfigMap> = fleet.place.api();
    let words = json!({ "metadata": { "name": "words" }, "data": { "key": "one" } });
    create(&maps, words.clone()).await?;
    let mut spec = spec();
    let template = &mut spec["policy-templates"][0]["objectDefinition"];
    template["metadata"]["name"] = json!("t-{{hub .ManagedClusterName hub}}");
    template["spec"]["severity"] = json!("{{hub fromConfigMap \"\" \"words\" \"key\" hub}}");
    fleet.policy("p", spec).await?;
    fleet.bind("p", "all").await?;
    fleet.decide("all", &[0]).await?;
    let named = json!(format!("t-{}", fleet.clusters[0]));
    let copy = fleet.copy(0, "p").await?;
    assert_eq!((&definition(&copy)["metadata"]["name"], broken(&copy)), (&named, false));
    delete(&maps, "words").await?;
    let copy = seen(&fleet.copies(0), &fleet.copied("p"), broken).await?;
    assert_eq!(definition(&copy)["metadata"]["name"], named);
    assert_eq!(definition(&copy)["spec"]["severity"], "one");
    fleet.root_when("p", |root| message(root, 0).contains("Failed to resolve")).await?;
    create(&maps, words).await?;
    let copy = seen(&fleet.copies(0), &fleet.copied("p"), |copy| !broken(copy)).await?;
    assert_eq!(definition(&copy)["metadata"]["name"], named);
    fleet.tasks.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn lookups_have_the_rights_of_the_service_account_they_are_given() -> Result<()> {
    let fleet = Fleet::new("hub-account", 1).await?;
    let elsewhere = fleet.place.world.unique("hub-elsewhere");
    make_namespace(&fleet.place.world.hub, &elsewhere).await?;
    let client = &fleet.place.client;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &elsewhere);
    create(&maps, json!({ "metadata": { "name": "words" }, "data": { "key": "one" } })).await?;
    let mut spec = spec();
    spec["hubTemplateOptions"] = json!({ "serviceAccountName": "reader" });
    spec["policy-templates"][0]["objectDefinition"]["spec"]["severity"] =
        json!(format!("{{{{hub fromConfigMap \"{elsewhere}\" \"words\" \"key\" hub}}}}"));
    fleet.policy("p", spec).await?;
    fleet.bind("p", "all").await?;
    fleet.decide("all", &[0]).await?;
    // There is no such account; then it may not; then it may.
    fleet.root_when("p", |root| message(root, 0).contains("does not exist")).await?;
    let accounts: Api<ServiceAccount> = fleet.place.api();
    create(&accounts, json!({ "metadata": { "name": "reader" } })).await?;
    let refused = |copy: &Policy| {
        let annotations = &definition(copy)["metadata"]["annotations"];
        annotations[name::HUB_TEMPLATES_ERROR].as_str().is_some_and(|why| why.contains("forbidden"))
    };
    seen(&fleet.copies(0), &fleet.copied("p"), refused).await?;
    let roles: Api<Role> = Api::namespaced(client.clone(), &elsewhere);
    let rules = json!([{
        "apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"],
    }]);
    create(&roles, json!({ "metadata": { "name": "reader" }, "rules": rules })).await?;
    let bindings: Api<RoleBinding> = Api::namespaced(client.clone(), &elsewhere);
    let subject = json!({
        "kind": "ServiceAccount", "name": "reader", "namespace": fleet.place.namespace,
    });
    let role = json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader" });
    let binding =
        json!({ "metadata": { "name": "reader" }, "roleRef": role, "subjects": [subject] });
    create(&bindings, binding).await?;
    // Nobody hears that a right was given; whoever gave it says so.
    let trigger = json!({ "metadata": { "annotations": { name::TRIGGER_UPDATE: "now" } } });
    let patch = kube::api::Patch::Merge(trigger);
    fleet.roots().patch("p", &kube::api::PatchParams::default(), &patch).await?;
    let copy = seen(&fleet.copies(0), &fleet.copied("p"), |copy| !broken(copy)).await?;
    assert_eq!(definition(&copy)["spec"]["severity"], "one");
    assert!(!copy.annotations().contains_key(name::TRIGGER_UPDATE));
    fleet.tasks.shutdown().await;
    Ok(())
}

/// It was once taken for wrong for good, for nothing of a kind that is not there can be watched.
#[tokio::test]
async fn a_template_that_looks_up_a_kind_that_is_defined_later_is_resolved_then() -> Result<()> {
    let fleet = Fleet::new("hub-kinds", 1).await?;
    let group = format!("{}.cleat.dev", fleet.place.world.unique("later"));
    let mut spec = spec();
    spec["policy-templates"][0]["objectDefinition"]["spec"]["severity"] =
        json!(format!("{{{{hub (lookup \"{group}/v1\" \"Word\" \"\" \"one\").spec hub}}}}"));
    fleet.policy("p", spec).await?;
    fleet.bind("p", "all").await?;
    fleet.decide("all", &[0]).await?;
    let lacks = |copy: &Policy| why(copy).contains("not installed");
    seen(&fleet.copies(0), &fleet.copied("p"), lacks).await?;

    let client = &fleet.place.client;
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let schema = json!({ "type": "object", "properties": { "spec": { "type": "string" } } });
    let definition = json!({
        "metadata": { "name": format!("words.{group}") },
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": { "kind": "Word", "plural": "words", "singular": "word", "listKind": "WordList" },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": schema },
            }],
        },
    });
    create(&definitions, definition).await?;
    let kind = GroupVersionKind::gvk(&group, "v1", "Word");
    let kind = ApiResource::from_gvk_with_plural(&kind, "words");
    let words: Api<DynamicObject> =
        Api::namespaced_with(client.clone(), &fleet.place.namespace, &kind);
    let word: DynamicObject = parse(json!({
        "apiVersion": format!("{group}/v1"), "kind": "Word",
        "metadata": { "name": "one" }, "spec": "high",
    }));
    within("the kind", async {
        while let Err(error) = words.create(&PostParams::default(), &word).await {
            let kube::Error::Api(status) = &error else { return Err(error) };
            if status.code != 404 {
                return Err(error);
            }
            tokio::task::yield_now().await;
        }
        Ok(())
    })
    .await??;
    let resolved = |copy: &Policy| severity(copy) == "high" && !broken(copy);
    seen(&fleet.copies(0), &fleet.copied("p"), resolved).await?;
    delete(&definitions, &format!("words.{group}")).await?;
    fleet.tasks.shutdown().await;
    Ok(())
}

fn why(copy: &Policy) -> &str {
    let annotations = &definition(copy)["metadata"]["annotations"];
    annotations[name::HUB_TEMPLATES_ERROR].as_str().unwrap_or_default()
}

fn severity(copy: &Policy) -> &str {
    definition(copy)["spec"]["severity"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn a_function_that_is_denied_is_not_resolved_on_the_hub() -> Result<()> {
    let mut fleet = Fleet::new("hub-denied", 1).await?;
    fleet.tasks.shutdown().await;
    fleet.start_denying(vec!["upper".to_owned()]);
    let mut spec = spec();
    spec["policy-templates"][0]["objectDefinition"]["spec"]["severity"] =
        json!("{{hub upper \"low\" hub}}");
    fleet.policy("p", spec).await?;
    fleet.bind("p", "all").await?;
    fleet.decide("all", &[0]).await?;
    let denied = |copy: &Policy| why(copy).contains("denylisted");
    seen(&fleet.copies(0), &fleet.copied("p"), denied).await?;
    // Whoever allows it again resolves it.
    fleet.tasks.shutdown().await;
    fleet.start();
    let resolved = |copy: &Policy| severity(copy) == "LOW" && !broken(copy);
    seen(&fleet.copies(0), &fleet.copied("p"), resolved).await?;
    fleet.tasks.shutdown().await;
    Ok(())
}
