//! A mutating webhook changes what is written, and what it made is judged like anything else.

use anyhow::Result;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use cleat_world::{Webhook, eventually};
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::{Place, create, delete, parse, refusal, webhooks};

/// An answer that patches.
fn patch(operations: &Value) -> Value {
    let patch = BASE64.encode(operations.to_string());
    json!({ "allowed": true, "patchType": "JSONPatch", "patch": patch })
}

/// Adds `name` to the data of a config map that has some.
fn adds(name: &'static str) -> impl Fn(&Value) -> Value + Send + Sync + 'static {
    move |request| match request["object"]["data"].is_object() {
        true => patch(&json!([{ "op": "add", "path": format!("/data/{name}"), "value": "yes" }])),
        false => json!({ "allowed": true }),
    }
}

/// Configures webhooks for the place alone, and waits until the last of them is asked.
async fn install(place: &Place, hooks: &[(&Webhook, Value)], resource: &str) -> Result<()> {
    let only_here = json!({ "kubernetes.io/metadata.name": place.namespace });
    let entries = hooks.iter().enumerate().map(|(index, (webhook, policy))| {
        json!({
            "name": format!("hook{index}.cleat.example"),
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "reinvocationPolicy": policy,
            "clientConfig": { "url": webhook.url, "caBundle": BASE64.encode(&webhook.authority) },
            "namespaceSelector": { "matchLabels": only_here },
            "rules": [{
                "operations": ["CREATE", "UPDATE", "DELETE"],
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "resources": [resource, "configmaps"],
            }],
        })
    });
    let configuration = json!({
        "metadata": { "name": place.namespace }, "webhooks": entries.collect::<Vec<_>>(),
    });
    let configurations: Api<MutatingWebhookConfiguration> = Api::all(place.client.clone());
    create(&configurations, configuration).await?;
    let maps: Api<ConfigMap> = place.api();
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    let probe: ConfigMap = parse(json!({ "metadata": { "generateName": "probe-" } }));
    eventually("the webhooks to be asked", || async {
        maps.create(&dry, &probe).await.ok();
        Ok(hooks.iter().all(|(webhook, _)| !webhook.asked().is_empty()).then_some(()))
    })
    .await?;
    for (webhook, _) in hooks {
        webhook.forget();
    }
    Ok(())
}

async fn uninstall(place: &Place) -> Result<()> {
    let configurations: Api<MutatingWebhookConfiguration> = Api::all(place.client.clone());
    delete(&configurations, &place.namespace).await
}

fn with_data(name: &str) -> Value {
    json!({ "metadata": { "name": name }, "data": { "mine": "yes" } })
}

fn keys(map: &ConfigMap) -> Vec<&str> {
    map.data.iter().flatten().map(|(key, _)| key.as_str()).collect()
}

#[tokio::test]
async fn what_it_adds_is_stored_on_every_way_of_writing() -> Result<()> {
    let place = Place::new("mutating").await?;
    let maps: Api<ConfigMap> = place.api();
    let webhook = Webhook::answering(adds("theirs")).await?;
    install(&place, &[(&webhook, json!("Never"))], "configmaps").await?;

    let created: ConfigMap = create(&maps, with_data("a")).await?;
    assert_eq!(keys(&created), ["mine", "theirs"]);
    assert_eq!(keys(&maps.get("a").await?), ["mine", "theirs"]);
    let asked = webhook.asked().pop().unwrap();
    assert_eq!(asked["operation"], "CREATE");
    assert_eq!(asked["object"]["metadata"].get("uid"), None);

    let replaced = maps.replace("a", &PostParams::default(), &parse(with_data("a"))).await?;
    assert_eq!(keys(&replaced), ["mine", "theirs"]);
    let merge = Patch::Merge(json!({ "data": { "theirs": null, "more": "yes" } }));
    let patched = maps.patch("a", &PatchParams::default(), &merge).await?;
    assert_eq!(keys(&patched), ["mine", "more", "theirs"]);
    let applied = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "b" }, "data": { "mine": "yes" },
    });
    let params = PatchParams::apply("suite");
    let applied = maps.patch("b", &params, &Patch::Apply(applied)).await?;
    assert_eq!(keys(&applied), ["mine", "theirs"]);

    let dry = PostParams { dry_run: true, ..PostParams::default() };
    let rehearsed = maps.create(&dry, &parse(with_data("c"))).await?;
    assert_eq!(keys(&rehearsed), ["mine", "theirs"]);
    assert_eq!(webhook.asked().pop().unwrap()["dryRun"], true);
    assert!(maps.get_opt("c").await?.is_none());
    uninstall(&place).await
}

#[tokio::test]
async fn nobody_owns_what_a_webhook_added() -> Result<()> {
    let place = Place::new("mutating").await?;
    let maps: Api<ConfigMap> = place.api();
    let webhook = Webhook::answering(adds("theirs")).await?;
    install(&place, &[(&webhook, json!("Never"))], "configmaps").await?;
    let created = create(&maps, with_data("a")).await?;
    let owned = serde_json::to_string(&created.metadata.managed_fields)?;
    assert!(owned.contains("f:mine") && !owned.contains("f:theirs"), "{owned}");
    uninstall(&place).await
}

#[tokio::test]
async fn one_that_asked_for_it_is_shown_what_came_after_it() -> Result<()> {
    let place = Place::new("mutating").await?;
    let maps: Api<ConfigMap> = place.api();
    let first = Webhook::answering(adds("first")).await?;
    let second = Webhook::answering(adds("second")).await?;
    let hooks = [(&first, json!("IfNeeded")), (&second, json!("Never"))];
    install(&place, &hooks, "configmaps").await?;
    let created = create(&maps, with_data("a")).await?;
    assert_eq!(keys(&created), ["first", "mine", "second"]);
    let shown: Vec<Value> =
        first.asked().iter().map(|request| request["object"]["data"].clone()).collect();
    let whole = json!({ "first": "yes", "mine": "yes", "second": "yes" });
    assert_eq!(shown, [json!({ "mine": "yes" }), whole]);
    assert_eq!(second.asked().len(), 1);
    uninstall(&place).await
}

#[tokio::test]
async fn what_it_makes_is_validated_and_shown_to_those_who_validate() -> Result<()> {
    let place = Place::new("mutating").await?;
    let maps: Api<ConfigMap> = place.api();
    let guard = Webhook::start(webhooks::guard).await?;
    webhooks::install(&place, &guard, json!(["CREATE"])).await?;
    let webhook =
        Webhook::answering(|request| match request["object"]["metadata"]["name"].as_str() {
            Some("labelled") => patch(&json!([
                { "op": "add", "path": "/metadata/labels", "value": { "keep": "yes" } }])),
            Some("broken") => patch(&json!([
                { "op": "add", "path": "/metadata/labels", "value": { "not a label": "" } }])),
            Some("misses") => patch(&json!([{ "op": "remove", "path": "/data/none" }])),
            _ => json!({ "allowed": true }),
        })
        .await?;
    install(&place, &[(&webhook, json!("Never"))], "configmaps").await?;
    let status = refusal(maps.create(&PostParams::default(), &parse(with_data("labelled"))).await);
    assert!(status.message.ends_with("denied the request: it is kept"), "{}", status.message);
    let status = refusal(maps.create(&PostParams::default(), &parse(with_data("broken"))).await);
    assert_eq!((status.code, &*status.reason), (422, "Invalid"));
    let status = refusal(maps.create(&PostParams::default(), &parse(with_data("misses"))).await);
    assert_eq!((status.code, &*status.reason), (500, "InternalError"));
    for name in ["labelled", "broken", "misses"] {
        assert!(maps.get_opt(name).await?.is_none());
    }
    uninstall(&place).await?;
    let validating: Api<ValidatingWebhookConfiguration> = Api::all(place.client.clone());
    delete(&validating, &place.namespace).await
}

#[tokio::test]
async fn a_pod_gets_a_container_and_the_container_what_all_containers_get() -> Result<()> {
    let place = Place::new("mutating").await?;
    let pods: Api<Pod> = place.api();
    let webhook = Webhook::answering(|request| match request["operation"].as_str() {
        Some("CREATE") => patch(&json!([{
            "op": "add", "path": "/spec/containers/-",
            "value": { "name": "sidecar", "image": "sidecar" },
        }])),
        _ => json!({ "allowed": true }),
    })
    .await?;
    install(&place, &[(&webhook, json!("Never"))], "pods").await?;
    let pod = json!({
        "metadata": { "name": "a" },
        "spec": { "containers": [{ "name": "main", "image": "main" }] },
    });
    let pod: Pod = eventually("the account that pods run as", || async {
        Ok(create(&pods, pod.clone()).await.ok())
    })
    .await?;
    let spec = pod.spec.unwrap();
    let asked = webhook.asked().pop().unwrap();
    // The account's token was mounted before it was asked, and again into what it added.
    assert_eq!(asked["object"]["spec"]["serviceAccountName"], "default");
    assert_eq!(spec.volumes.unwrap_or_default().len(), 1);
    let [main, sidecar] = &*spec.containers else { panic!("{:?}", spec.containers) };
    assert_eq!(sidecar.termination_message_policy.as_deref(), Some("File"));
    assert_eq!(main.volume_mounts, sidecar.volume_mounts);
    pods.delete("a", &DeleteParams::default().grace_period(0)).await?;
    uninstall(&place).await
}
