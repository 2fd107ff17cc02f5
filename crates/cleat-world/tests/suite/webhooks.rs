//! A validating webhook has its say before anything is written.

use anyhow::Result;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use cleat_world::{Webhook, eventually};
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use serde_json::{Value, json};

use crate::{Place, create, delete, parse, refusal};

/// Configures `webhook` for config maps of the place alone.
pub(super) async fn install(place: &Place, webhook: &Webhook, operations: Value) -> Result<()> {
    let only_here = json!({ "kubernetes.io/metadata.name": place.namespace });
    let configuration = json!({
        "metadata": { "name": place.namespace },
        "webhooks": [{
            "name": "guard.cleat.example",
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "clientConfig": { "url": webhook.url, "caBundle": BASE64.encode(&webhook.authority) },
            "namespaceSelector": { "matchLabels": only_here },
            "rules": [{
                "operations": operations,
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "resources": ["configmaps"],
            }],
        }],
    });
    let configurations: Api<ValidatingWebhookConfiguration> = Api::all(place.client.clone());
    create(&configurations, configuration).await?;
    let maps: Api<ConfigMap> = place.api();
    place.config_map("probe").await.ok();
    let probe = DeleteParams { dry_run: true, ..DeleteParams::default() };
    let probe_create = PostParams { dry_run: true, ..PostParams::default() };
    let object: ConfigMap = parse(json!({ "metadata": { "generateName": "probe-" } }));
    eventually("the webhook to be asked", || async {
        maps.delete("probe", &probe).await.ok();
        maps.create(&probe_create, &object).await.ok();
        Ok((!webhook.asked().is_empty()).then_some(()))
    })
    .await?;
    Ok(())
}

pub(super) async fn uninstall(place: &Place) -> Result<()> {
    let configurations: Api<ValidatingWebhookConfiguration> = Api::all(place.client.clone());
    delete(&configurations, &place.namespace).await
}

/// Refuses whatever concerns an object with the label `keep`.
pub(super) fn guard(request: &Value) -> Result<(), String> {
    let kept = |field: &str| request[field]["metadata"]["labels"]["keep"] == "yes";
    if kept("object") || kept("oldObject") { Err("it is kept".to_owned()) } else { Ok(()) }
}

pub(super) fn kept(name: &str) -> Value {
    json!({ "metadata": { "name": name, "labels": { "keep": "yes", "set": "one" } } })
}

#[tokio::test]
async fn it_keeps_an_object_from_deletion() -> Result<()> {
    let place = Place::new("webhooks").await?;
    let maps: Api<ConfigMap> = place.api();
    create(&maps, kept("a")).await?;
    let webhook = Webhook::start(guard).await?;
    install(&place, &webhook, json!(["DELETE"])).await?;
    webhook.forget();

    let dry = DeleteParams { dry_run: true, ..DeleteParams::default() };
    for (params, dry_run) in [(DeleteParams::default(), false), (dry, true)] {
        let status = refusal(maps.delete("a", &params).await);
        assert_eq!(status.code, 403);
        let expected = r#"admission webhook "guard.cleat.example" denied the request: it is kept"#;
        assert_eq!(status.message, expected);
        let asked = webhook.asked().pop().unwrap();
        assert_eq!(asked["operation"], "DELETE");
        assert_eq!(asked["name"], "a");
        assert_eq!(asked["namespace"], json!(place.namespace));
        assert_eq!(asked["oldObject"]["metadata"]["name"], "a");
        assert_eq!(asked["object"], Value::Null);
        assert_eq!(asked["dryRun"], dry_run);
    }
    assert!(maps.get_opt("a").await?.is_some());
    maps.delete("probe", &DeleteParams::default()).await?;
    uninstall(&place).await
}

#[tokio::test]
async fn deleting_a_collection_asks_for_each_object_without_a_name() -> Result<()> {
    let place = Place::new("webhooks").await?;
    let maps: Api<ConfigMap> = place.api();
    create(&maps, kept("kept")).await?;
    for name in ["a", "b"] {
        let metadata = json!({ "name": name, "labels": { "set": "one" } });
        create(&maps, json!({ "metadata": metadata })).await?;
    }
    let webhook = Webhook::start(guard).await?;
    install(&place, &webhook, json!(["DELETE"])).await?;
    webhook.forget();
    let set = ListParams::default().labels("set=one");
    let status = refusal(maps.delete_collection(&DeleteParams::default(), &set).await);
    assert!(status.message.ends_with("denied the request: it is kept"), "{}", status.message);
    let asked = webhook.asked();
    assert!(!asked.is_empty());
    for request in &asked {
        assert_eq!(request.get("name"), None);
        assert!(request["oldObject"]["metadata"]["name"].is_string());
    }
    assert!(maps.get_opt("kept").await?.is_some());
    uninstall(&place).await
}

#[tokio::test]
async fn a_refused_creation_leaves_nothing() -> Result<()> {
    let place = Place::new("webhooks").await?;
    let maps: Api<ConfigMap> = place.api();
    let webhook = Webhook::start(guard).await?;
    install(&place, &webhook, json!(["CREATE", "UPDATE"])).await?;
    let status = refusal(maps.create(&PostParams::default(), &parse(kept("a"))).await);
    assert_eq!(status.code, 403);
    assert_eq!(maps.get_opt("a").await?, None);
    create(&maps, json!({ "metadata": { "name": "a" } })).await?;
    webhook.forget();
    let status = refusal(maps.replace("a", &PostParams::default(), &parse(kept("a"))).await);
    assert_eq!(status.code, 403);
    let asked = webhook.asked().pop().unwrap();
    assert_eq!(asked["operation"], "UPDATE");
    assert_eq!(asked["oldObject"]["metadata"].get("labels"), None);
    assert_eq!(asked["object"]["metadata"]["labels"]["keep"], "yes");
    uninstall(&place).await
}

#[tokio::test]
async fn when_it_cannot_be_reached_nothing_passes() -> Result<()> {
    let place = Place::new("webhooks").await?;
    let maps: Api<ConfigMap> = place.api();
    place.config_map("a").await?;
    let webhook = Webhook::start(guard).await?;
    install(&place, &webhook, json!(["DELETE"])).await?;
    let configurations: Api<ValidatingWebhookConfiguration> = Api::all(place.client.clone());
    // A port that nobody listens on once this is dropped.
    let nobody = std::net::TcpListener::bind("127.0.0.1:0")?;
    let mut configuration = configurations.get(&place.namespace).await?;
    for one in configuration.webhooks.iter_mut().flatten() {
        one.client_config.url = Some(format!("https://{}/", nobody.local_addr()?));
    }
    drop(nobody);
    configurations.replace(&place.namespace, &PostParams::default(), &configuration).await?;
    let dry = DeleteParams { dry_run: true, ..DeleteParams::default() };
    let status = eventually("the change to count", || async {
        let answer = maps.delete("a", &dry).await;
        Ok(answer.is_err().then(|| refusal(answer)))
    })
    .await?;
    assert_eq!((status.code, &*status.reason), (500, "InternalError"));
    assert!(status.message.contains("failed calling webhook"), "{}", status.message);
    uninstall(&place).await?;
    eventually("the deletion", || async {
        Ok(maps.delete("a", &DeleteParams::default()).await.ok())
    })
    .await?;
    Ok(())
}
