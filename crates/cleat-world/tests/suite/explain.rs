//! What `cleat explain` tells of things that are stuck on servers.

use anyhow::{Context as _, Result};
use cleat_cli::explain::ask;
use cleat_core::explain::{Explanation, Node, Reason, Style, Verdict, Wish, text};
use cleat_hub::prepare::prepare_protection;
use cleat_world::world::Credentials;
use cleat_world::{Fleet, Webhook, eventually};
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::runtime::wait::{await_condition, conditions};
use serde_json::{Value, json};

use crate::{Place, create, delete, make_namespace, parse, seen, webhooks};

/// The reasons of a tree, from the outside in, along the first branch that has any.
fn reasons(node: &Node) -> Vec<Reason> {
    let mut reasons: Vec<Reason> = node.reason.into_iter().collect();
    for child in &node.children {
        let below = self::reasons(child);
        if !below.is_empty() {
            reasons.extend(below);
            break;
        }
    }
    reasons
}

fn shown(explanation: &Explanation) -> String {
    text(&explanation.tree, Style::Plain)
}

async fn explain(client: &Client, kind: &str, namespace: &str, name: &str) -> Result<Explanation> {
    ask(client.clone(), None, (kind, namespace, name), Wish::Whatever).await
}

/// A config map with a finalizer that this manager set.
async fn held(client: &Client, namespace: &str, name: &str, manager: &str) -> Result<ConfigMap> {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let params = PostParams { field_manager: Some(manager.to_owned()), ..PostParams::default() };
    let object = json!({ "metadata": { "name": name, "finalizers": ["cleat.example/archive"] } });
    Ok(maps.create(&params, &parse(object)).await?)
}

async fn release(client: &Client, namespace: &str, name: &str) -> Result<()> {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let off = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    maps.patch(name, &PatchParams::default(), &off).await?;
    Ok(())
}

async fn going(client: &Client, namespace: &str, name: &str) -> Result<()> {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    seen(&maps, name, |map: &ConfigMap| map.metadata.deletion_timestamp.is_some()).await?;
    Ok(())
}

fn deployment(name: &str, replicas: u32) -> Value {
    let labels = json!({ "app": name });
    json!({
        "metadata": { "name": name },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": { "containers": [{ "name": "main", "image": "example/main" }] },
            },
        },
    })
}

#[tokio::test]
async fn a_namespace_leads_to_the_deployment_that_is_scaled_to_zero() -> Result<()> {
    let place = Place::new("explain-ns").await?;
    let (client, shop) = (&place.client, &place.namespace);
    let (home, manager) = (place.world.unique("explain-home"), place.world.unique("auditor"));
    make_namespace(&place.world.hub, &home).await?;
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), &home);
    create(&deployments, deployment(&manager, 0)).await?;
    held(client, shop, "orders", &manager).await?;
    held(client, shop, "prices", &manager).await?;

    let namespaces: Api<Namespace> = Api::all(client.clone());
    delete(&namespaces, shop).await?;
    going(client, shop, "orders").await?;
    going(client, shop, "prices").await?;
    let told = eventually("only what is held to be left", || async {
        let told = explain(client, "ns", "", shop).await?;
        Ok(shown(&told).contains("2 objects are left in it: 2 configmaps").then_some(told))
    })
    .await?;
    assert_eq!(told.verdict, Verdict::Blocked, "{}", shown(&told));
    assert_eq!(
        reasons(&told.tree).as_slice(),
        [Reason::NamespaceContent, Reason::FinalizerOwnerUnhealthy, Reason::NotReady],
        "{}",
        shown(&told)
    );
    let said = shown(&told);
    assert!(said.contains("1 more like it"), "{said}");
    assert!(said.contains(&format!("set by {manager}")), "{said}");
    assert!(said.contains(&format!("deployments.apps {home}/{manager} has 0 replicas")), "{said}");
    let command = format!("kubectl -n {home} scale deployments.apps/{manager} --replicas=1");
    assert_eq!(told.actions.last().and_then(|act| act.command.clone()), Some(command), "{said}");

    let absent = explain(client, "configmap", shop, "nothing").await?;
    assert_eq!(absent.verdict, Verdict::Absent);
    assert!(shown(&absent).contains("is being deleted"), "{}", shown(&absent));
    release(client, shop, "orders").await?;
    release(client, shop, "prices").await?;
    delete(&namespaces, &home).await
}

#[tokio::test]
async fn a_refused_delete_leads_to_the_webhook_and_deletes_nothing() -> Result<()> {
    let place = Place::new("explain-denial").await?;
    let (client, namespace) = (&place.client, &place.namespace);
    let webhook = Webhook::start(webhooks::guard).await?;
    webhooks::install(&place, &webhook, json!(["DELETE"])).await?;
    let maps: Api<ConfigMap> = place.api();
    let object = json!({ "metadata": { "name": "orders", "labels": { "keep": "yes" } } });
    let orders = create(&maps, object).await?;
    webhook.forget();

    let what = ("configmap", namespace.as_str(), "orders");
    let told = ask(client.clone(), None, what, Wish::Gone).await?;
    assert_eq!(told.verdict, Verdict::Blocked, "{}", shown(&told));
    assert_eq!(reasons(&told.tree), [Reason::WebhookDenied], "{}", shown(&told));
    let said = shown(&told);
    assert!(said.contains("guard.cleat.example refuses its deletion: it is kept"), "{said}");
    assert!(
        said.contains(&format!(
            "validatingwebhookconfigurations.admissionregistration.k8s.io {namespace}"
        )),
        "{said}"
    );
    // Nobody wants it deleted: then it is good to know, and no more.
    let told = ask(client.clone(), None, what, Wish::Whatever).await?;
    assert_eq!(told.verdict, Verdict::Fine, "{}", shown(&told));
    assert!(shown(&told).contains("if deleted: webhook"), "{}", shown(&told));

    assert!(webhook.asked().iter().all(|request| request["dryRun"] == true));
    assert!(!webhook.asked().is_empty());
    assert_eq!(maps.get("orders").await?, orders);
    webhooks::uninstall(&place).await
}

#[tokio::test]
async fn a_webhook_without_its_service_is_named() -> Result<()> {
    let place = Place::new("explain-down").await?;
    let (client, namespace) = (&place.client, &place.namespace);
    place.config_map("orders").await?;
    let configurations: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    let service = json!({ "namespace": namespace, "name": "nowhere" });
    let only_here = json!({ "kubernetes.io/metadata.name": namespace });
    create(
        &configurations,
        json!({
            "metadata": { "name": namespace },
            "webhooks": [{
                "name": "down.cleat.example", "admissionReviewVersions": ["v1"],
                "sideEffects": "None", "clientConfig": { "service": service },
                "namespaceSelector": { "matchLabels": only_here },
                "rules": [{
                    "operations": ["DELETE"], "apiGroups": [""], "apiVersions": ["v1"],
                    "resources": ["configmaps"],
                }],
            }],
        }),
    )
    .await?;
    let told = eventually("the webhook to be asked", || async {
        let told = ask(client.clone(), None, ("cm", namespace, "orders"), Wish::Gone).await?;
        let found = reasons(&told.tree).contains(&Reason::WebhookUnavailable);
        Ok(found.then_some(told))
    })
    .await?;
    assert_eq!(reasons(&told.tree), [Reason::WebhookUnavailable, Reason::Missing]);
    let said = shown(&told);
    assert!(said.contains(&format!("services {namespace}/nowhere is not there")), "{said}");
    delete(&configurations, namespace).await
}

#[tokio::test]
async fn a_protected_deployment_leads_to_who_needs_it() -> Result<()> {
    let place = Place::new("explain-critical").await?;
    let (client, namespace) = (&place.client, &place.namespace);
    prepare_protection(client).await?;
    let maps: Api<ConfigMap> = place.api();
    let provider = json!({ "metadata": { "name": "server", "labels": { "keep": "yes" } } });
    create(&maps, provider).await?;
    held(client, namespace, "consumer", "kubectl-edit").await?;
    let kind = GroupVersionKind::gvk(
        "protection.open-cluster-management.io",
        "v1alpha1",
        "CriticalService",
    );
    let kind = ApiResource::from_gvk_with_plural(&kind, "criticalservices");
    let services: Api<DynamicObject> = Api::all_with(client.clone(), &kind);
    let criterion = json!({ "resource": "configmaps", "finalizerName": "cleat.example/archive" });
    let service = json!({
        "apiVersion": "protection.open-cluster-management.io/v1alpha1", "kind": "CriticalService",
        "metadata": { "name": namespace },
        "spec": {
            "provider": { "resource": "configmaps", "namespace": namespace, "name": "server" },
            "criteria": [{ "type": "Finalizer", "finalizer": criterion }],
        },
    });
    create(&services, service).await?;
    let status = Patch::Merge(json!({ "status": { "criteria": [{
        "type": "Finalizer", "subject": "configmaps", "state": "Unsatisfied", "count": 1,
        "samples": [format!("{namespace}/consumer")],
    }] } }));
    services.patch_status(namespace, &PatchParams::default(), &status).await?;
    let webhook = Webhook::start(webhooks::guard).await?;
    webhooks::install(&place, &webhook, json!(["DELETE"])).await?;

    let told = ask(client.clone(), None, ("cm", namespace, "server"), Wish::Gone).await?;
    let said = shown(&told);
    assert_eq!(reasons(&told.tree), [Reason::ProtectedBy; 4], "{said}");
    assert!(said.contains("1 configmaps have finalizer cleat.example/archive"), "{said}");
    let command = format!("kubectl -n {namespace} delete configmaps/consumer");
    assert_eq!(told.actions.last().and_then(|act| act.command.clone()), Some(command), "{said}");
    webhooks::uninstall(&place).await?;
    release(client, namespace, "consumer").await?;
    services.delete(namespace, &DeleteParams::default()).await?;
    Ok(())
}

#[tokio::test]
async fn a_definition_and_an_owner_lead_to_what_they_wait_for() -> Result<()> {
    let place = Place::new("explain-crd").await?;
    let (client, namespace) = (&place.client, &place.namespace);
    let group = format!("{namespace}.cleat.example");
    let name = format!("widgets.{group}");
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let any = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    create(
        &definitions,
        json!({
            "metadata": { "name": name },
            "spec": {
                "group": group, "scope": "Namespaced",
                "names": { "plural": "widgets", "singular": "widget", "kind": "Widget" },
                "versions": [{
                    "name": "v1", "served": true, "storage": true,
                    "schema": { "openAPIV3Schema": any },
                }],
            },
        }),
    )
    .await?;
    await_condition(definitions.clone(), &name, conditions::is_crd_established()).await?;
    let kind = GroupVersionKind::gvk(&group, "v1", "Widget");
    let kind = ApiResource::from_gvk_with_plural(&kind, "widgets");
    let widgets: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &kind);
    let widget = json!({
        "apiVersion": format!("{group}/v1"), "kind": "Widget",
        "metadata": { "name": "one", "finalizers": ["cleat.example/archive"] },
    });
    eventually("widgets to be served", || async {
        Ok(create(&widgets, widget.clone()).await.ok())
    })
    .await?;
    delete(&definitions, &name).await?;
    seen(&definitions, &name, |one: &CustomResourceDefinition| {
        one.metadata.deletion_timestamp.is_some()
    })
    .await?;
    let told = eventually("the widget to be going", || async {
        let told = explain(client, "crd", "", &name).await?;
        Ok(shown(&told).contains("one is being deleted").then_some(told))
    })
    .await?;
    let said = shown(&told);
    let found = reasons(&told.tree);
    assert_eq!(found.first(), Some(&Reason::CrdTerminating), "{said}");
    assert!(said.contains("finalizer cleat.example/archive"), "{said}");
    assert!(said.contains("[FinalizerNoOwner]"), "{said}");
    let off = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    widgets.patch("one", &PatchParams::default(), &off).await?;

    let maps: Api<ConfigMap> = place.api();
    let owner = place.config_map("owner").await?;
    held(client, namespace, "owned", "kubectl-edit").await?;
    let reference = json!([{
        "apiVersion": "v1", "kind": "ConfigMap", "name": "owner",
        "uid": owner.metadata.uid, "blockOwnerDeletion": true,
    }]);
    let patch = Patch::Merge(json!({ "metadata": { "ownerReferences": reference } }));
    maps.patch("owned", &PatchParams::default(), &patch).await?;
    maps.delete("owner", &DeleteParams::foreground()).await?;
    going(client, namespace, "owned").await?;
    let told = explain(client, "configmaps", namespace, "owner").await?;
    assert_eq!(
        reasons(&told.tree),
        [Reason::OwnerForeground, Reason::FinalizerNoOwner],
        "{}",
        shown(&told)
    );
    release(client, namespace, "owned").await
}

#[tokio::test]
async fn a_work_leads_to_the_object_on_the_cluster() -> Result<()> {
    let fleet = Fleet::start("explain-work").await?;
    let name = fleet.name.clone();
    fleet.work("shop", vec![fleet.map("orders", "1")], json!({})).await?;
    fleet.told("shop", "Applied", "True").await?;
    let finalizer = json!({ "metadata": { "finalizers": ["cleat.example/archive"] } });
    let params =
        PatchParams { field_manager: Some("kubectl-edit".into()), ..PatchParams::default() };
    fleet.maps().patch("orders", &params, &Patch::Merge(finalizer)).await?;
    fleet.delete("shop").await?;
    fleet.told("shop", "Deleting", "True").await?;
    going(&fleet.cluster, &name, "orders").await?;

    let there = Some((name.clone(), fleet.cluster.clone()));
    let what = ("manifestwork", name.as_str(), "shop");
    let told = ask(fleet.hub.clone(), there, what, Wish::Whatever).await?;
    let said = shown(&told);
    assert_eq!(told.verdict, Verdict::Blocked, "{said}");
    assert!(said.contains(&format!("configmaps {name}/orders (on the cluster)")), "{said}");
    assert!(said.contains("set by kubectl-edit"), "{said}");
    assert!(said.contains("[FinalizerNoOwner]"), "{said}");
    // Without a way to the cluster that is said, and nothing is guessed.
    let told = ask(fleet.hub.clone(), None, what, Wish::Whatever).await?;
    let said = shown(&told);
    assert!(said.contains("it was not said how the cluster is reached"), "{said}");
    assert_eq!(told.verdict, Verdict::Blocked, "{said}");

    let ledger = fleet.ledger_name("shop");
    let told = explain(&fleet.cluster, "appliedmanifestwork", "", &ledger).await?;
    assert!(shown(&told).contains("cleat.example/archive"), "{}", shown(&told));
    release(&fleet.cluster, &name, "orders").await?;
    fleet.absent(&fleet.works(), "shop").await
}

#[tokio::test]
async fn what_one_must_not_read_is_said_and_kinds_are_looked_for() -> Result<()> {
    let place = Place::new("explain-unread").await?;
    let nobody = place.world.hub.client_with(Credentials::Nobody).await?;
    place.config_map("orders").await?;
    let refused = explain(&nobody, "configmap", &place.namespace, "orders").await;
    // Whether strangers may ask what is served differs; that they learn nothing does not.
    if let Ok(told) = refused {
        assert_eq!(told.verdict, Verdict::Unknown, "{}", shown(&told));
        assert_eq!(told.tree.reason, Some(Reason::CredentialInvalid), "{}", shown(&told));
    }
    let unknown = explain(&place.client, "configmapz", "", "x").await.unwrap_err();
    assert!(unknown.to_string().contains("serves no kind configmapz"), "{unknown:#}");
    let fine = explain(&place.client, "configmap", &place.namespace, "orders").await?;
    assert_eq!(fine.verdict, Verdict::Fine, "{}", shown(&fine));
    fine.tree.object.as_ref().context("it says which object it is about")?;
    Ok(())
}
