//! Values that travel encrypted: from the hub to an object on the cluster, and nowhere in clear on the
//! way; and the keys for that.

use anyhow::Result;
use cleat_api::configurationpolicy::ConfigurationPolicy;
use cleat_api::policy::{Policy, name};
use cleat_runtime::tasks::Tasks;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::ResourceExt as _;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};

use super::fleet::{Fleet, compliance, enforced};
use crate::{create, make_namespace, seen};

/// What must not be read on the way: a secret of the hub, as it is and as secrets are written, and what
/// a template protects.
const CLEAR: [&str; 3] = ["hush", "aHVzaA==", "murmur"];

fn key(secret: &Secret, which: &str) -> Option<ByteString> {
    secret.data.as_ref().and_then(|all| all.get(which).cloned())
}

/// The encrypted values in a definition, none of which may be in clear.
fn sealed(definition: &Value) -> Vec<String> {
    let text = definition.to_string();
    assert!(!CLEAR.iter().any(|word| text.contains(word)), "in clear: {text}");
    let found = text.split("$ocm_encrypted:").skip(1);
    found.map(|rest| rest.split('"').next().unwrap_or_default().to_owned()).collect()
}

fn of_copy(copy: &Policy) -> Vec<String> {
    sealed(&copy.spec.policy_templates[0].object_definition)
}

#[tokio::test]
async fn secrets_of_the_hub_arrive_on_the_cluster_and_their_key_is_exchanged() -> Result<()> {
    let mut fleet = Fleet::new("encrypted", 1).await?;
    let (cluster, namespace) = (fleet.clusters[0].clone(), fleet.place.namespace.clone());
    let client = fleet.place.world.clusters[0].client();
    make_namespace(&fleet.place.world.clusters[0], &namespace).await?;
    let agents = Tasks::new();
    fleet.agent(0, &client, &agents).await?;
    let secrets: Api<Secret> = fleet.place.api();
    create(&secrets, json!({ "metadata": { "name": "quiet" }, "stringData": { "key": "hush" } }))
        .await?;
    let words: Api<ConfigMap> = fleet.place.api();
    create(&words, json!({ "metadata": { "name": "words" }, "data": { "key": "murmur" } })).await?;
    let mut template = enforced("quiet", &namespace, "None", "");
    template["objectDefinition"]["spec"]["object-templates"][0]["objectDefinition"]["data"] = json!({
        "word": "{{hub fromSecret \"\" \"quiet\" \"key\" hub}}",
        "other": "{{hub fromConfigMap \"\" \"words\" \"key\" | protect hub}}",
    });
    fleet.policy("p", json!({ "disabled": false, "policy-templates": [template] })).await?;
    fleet.bind("p", "all").await?;
    fleet.decide("all", &[0]).await?;
    fleet.root_when("p", |root| compliance(root) == "Compliant").await?;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &namespace);
    let said = |map: &ConfigMap, word: &str, other: &str| {
        let data = map.data.as_ref();
        data.is_some_and(|data| data["word"] == word && data["other"] == other)
    };
    // As it is in the secret: base64.
    assert!(said(&maps.get("quiet").await?, "aHVzaA==", "murmur"));

    // On neither side does a copy or a template say it, nor what differs.
    let before = of_copy(&fleet.copy(0, "p").await?);
    assert_eq!(before.len(), 2);
    let copies: Api<Policy> = Api::namespaced(client.clone(), &cluster);
    assert_eq!(of_copy(&copies.get(&fleet.copied("p")).await?), before);
    let templates: Api<ConfigurationPolicy> = Api::namespaced(client.clone(), &cluster);
    let spoil = Patch::Merge(json!({ "data": { "word": "spoilt" } }));
    maps.patch("quiet", &PatchParams::default(), &spoil).await?;
    seen(&maps, "quiet", |map: &ConfigMap| said(map, "aHVzaA==", "murmur")).await?;
    let policy = serde_json::to_value(templates.get("quiet").await?)?;
    assert_eq!(sealed(&policy["spec"]), before);
    assert_eq!(sealed(&policy["status"]), Vec::<String>::new());

    // The key was exchanged, and the hub has not sealed anew: the previous one opens it.
    fleet.tasks.shutdown().await;
    let keys: Api<Secret> = Api::namespaced(fleet.place.client.clone(), &cluster);
    let there: Api<Secret> = Api::namespaced(client.clone(), &cluster);
    let old = keys.get(name::ENCRYPTION_KEY_SECRET).await?;
    assert_eq!(there.get(name::ENCRYPTION_KEY_SECRET).await?.data, old.data);
    let next = ByteString(vec![7; 32]);
    let exchanged = json!({ "data": { "key": next, "previousKey": key(&old, "key") } });
    let params = PatchParams::default();
    keys.patch(name::ENCRYPTION_KEY_SECRET, &params, &Patch::Merge(exchanged)).await?;
    seen(&there, name::ENCRYPTION_KEY_SECRET, |secret: &Secret| {
        key(secret, "key").as_ref() == Some(&next)
    })
    .await?;
    maps.patch("quiet", &params, &spoil).await?;
    seen(&maps, "quiet", |map: &ConfigMap| said(map, "aHVzaA==", "murmur")).await?;
    assert_eq!(of_copy(&fleet.copy(0, "p").await?), before);

    // The hub is back, and seals with the key that is.
    fleet.start();
    let anew = |than: Vec<String>| {
        move |copy: &Policy| {
            let sealed = of_copy(copy);
            sealed.len() == 2 && sealed.iter().zip(&than).all(|(new, old)| new != old)
        }
    };
    let copied = fleet.copied("p");
    let second = of_copy(&seen(&fleet.copies(0), &copied, anew(before)).await?);

    // A key that is older than it may be is exchanged, and what was sealed with it is sealed anew.
    let aged =
        json!({ "metadata": { "annotations": { name::LAST_ROTATED: "2020-01-01T00:00:00Z" } } });
    keys.patch(name::ENCRYPTION_KEY_SECRET, &params, &Patch::Merge(aged)).await?;
    let rotated = seen(&keys, name::ENCRYPTION_KEY_SECRET, |secret: &Secret| {
        key(secret, "previousKey").as_ref() == Some(&next)
    })
    .await?;
    assert_ne!(key(&rotated, "key"), Some(next));
    assert_ne!(rotated.annotations()[name::LAST_ROTATED], "2020-01-01T00:00:00Z");
    seen(&fleet.copies(0), &copied, anew(second)).await?;
    // What comes after arrives as before.
    let patch = Patch::Merge(json!({ "stringData": { "key": "louder" } }));
    secrets.patch("quiet", &params, &patch).await?;
    seen(&maps, "quiet", |map: &ConfigMap| said(map, "bG91ZGVy", "murmur")).await?;
    fleet.root_when("p", |root| compliance(root) == "Compliant").await?;
    agents.shutdown().await;
    fleet.tasks.shutdown().await;
    Ok(())
}
