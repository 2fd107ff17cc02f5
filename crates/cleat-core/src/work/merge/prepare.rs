//! A manifest as the server would understand it, where the general rule does not: encoded secrets,
//! defaults that matter, and what others inject into fields that are otherwise ours.

use alloc::borrow::Cow;
use alloc::string::{String, ToString as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::kinds::Kind;

/// Keys in which controllers of OpenShift inject authorities, and what asks them to.
const INJECTED: [(&str, &str, &str); 2] = [
    ("labels", "config.openshift.io/inject-trusted-cabundle", "ca-bundle.crt"),
    ("annotations", "service.beta.openshift.io/inject-cabundle", "service-ca.crt"),
];

/// What the controller of service accounts fills into their tokens.
const TOKEN_KEYS: [&str; 4] = ["token", "ca.crt", "namespace", "service-ca.crt"];

pub(super) fn prepared<'a>(
    kind: Kind<'_>,
    manifest: &'a Map<String, Value>,
    existing: &Map<String, Value>,
) -> Cow<'a, Map<String, Value>> {
    match (kind.group, kind.name) {
        ("", "Secret") => Cow::Owned(secret(manifest, existing)),
        ("", "ConfigMap") => config_map(manifest, existing),
        ("storage.k8s.io", "StorageClass") => Cow::Owned(storage_class(manifest)),
        ("rbac.authorization.k8s.io", "ClusterRole") => cluster_role(manifest, existing),
        (
            "admissionregistration.k8s.io",
            "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration",
        ) => Cow::Owned(webhooks(manifest, existing)),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            let at = ["spec", "conversion", "webhook", "clientConfig"];
            authority(manifest, existing, &at)
        }
        ("apiregistration.k8s.io", "APIService") => authority(manifest, existing, &["spec"]),
        _ => Cow::Borrowed(manifest),
    }
}

fn secret(manifest: &Map<String, Value>, existing: &Map<String, Value>) -> Map<String, Value> {
    let mut secret = manifest.clone();
    let plain = secret.remove("stringData");
    let mut data = match secret.remove("data") {
        Some(Value::Object(data)) => data,
        _ => Map::new(),
    };
    for (key, value) in plain.as_ref().and_then(Value::as_object).into_iter().flatten() {
        if let Some(text) = value.as_str() {
            data.insert(key.clone(), Value::String(STANDARD.encode(text)));
        }
    }
    secret.entry("type").or_insert_with(|| json!("Opaque"));
    if secret.get("type").and_then(Value::as_str) == Some("kubernetes.io/service-account-token") {
        let filled = existing.get("data").and_then(Value::as_object);
        for key in TOKEN_KEYS {
            if let Some(value) = filled.and_then(|data| data.get(key)) {
                data.entry(key).or_insert_with(|| value.clone());
            }
        }
    }
    secret.insert("data".to_string(), Value::Object(data));
    secret
}

fn config_map<'a>(
    manifest: &'a Map<String, Value>,
    existing: &Map<String, Value>,
) -> Cow<'a, Map<String, Value>> {
    let mut map = Cow::Borrowed(manifest);
    for (field, name, key) in INJECTED {
        let asked = manifest
            .get("metadata")
            .and_then(|metadata| metadata.get(field)?.get(name)?.as_str())
            .is_some_and(|value| value == "true");
        let injected = existing.get("data").and_then(|data| data.get(key));
        if let (true, Some(injected)) = (asked, injected) {
            let data = map.to_mut().entry("data").or_insert_with(|| json!({}));
            if let Some(data) = data.as_object_mut() {
                data.entry(key).or_insert_with(|| injected.clone());
            }
        }
    }
    map
}

/// A class whose defaults are written out: that one is no longer stated is a change of a field that
/// never changes.
fn storage_class(manifest: &Map<String, Value>) -> Map<String, Value> {
    let mut class = manifest.clone();
    for (field, default) in [("reclaimPolicy", "Delete"), ("volumeBindingMode", "Immediate")] {
        let value = class.entry(field).or_insert(Value::Null);
        if value.is_null() || value == "" {
            *value = json!(default);
        }
    }
    class
}

/// The rules of an aggregated role are its controller's.
fn cluster_role<'a>(
    manifest: &'a Map<String, Value>,
    existing: &Map<String, Value>,
) -> Cow<'a, Map<String, Value>> {
    let mut role = Cow::Borrowed(manifest);
    if manifest.get("aggregationRule").is_some_and(|rule| !rule.is_null()) {
        role.to_mut().remove("rules");
        if let Some(rules) = existing.get("rules") {
            role.to_mut().insert("rules".to_string(), rules.clone());
        }
    }
    role
}

/// Webhooks that name no authority keep the one they were given.
fn webhooks(manifest: &Map<String, Value>, existing: &Map<String, Value>) -> Map<String, Value> {
    let mut configuration = manifest.clone();
    let given = existing.get("webhooks").and_then(Value::as_array);
    let wanted = configuration.get_mut("webhooks").and_then(Value::as_array_mut);
    for webhook in wanted.into_iter().flatten() {
        let given = given
            .into_iter()
            .flatten()
            .find(|other| other.get("name") == webhook.get("name"))
            .and_then(|other| other.get("clientConfig")?.get("caBundle"));
        if let (Some(given), Some(client)) = (given, webhook.get_mut("clientConfig")) {
            fill(client, given);
        }
    }
    configuration
}

/// The same for an authority at one place.
fn authority<'a>(
    manifest: &'a Map<String, Value>,
    existing: &Map<String, Value>,
    at: &[&str],
) -> Cow<'a, Map<String, Value>> {
    let Some((first, rest)) = at.split_first() else { return Cow::Borrowed(manifest) };
    let given = rest
        .iter()
        .try_fold(existing.get(*first), |value, key| Some(value?.get(*key)))
        .flatten()
        .and_then(|place| place.get("caBundle"));
    let Some(given) = given else { return Cow::Borrowed(manifest) };
    let mut manifest = Cow::Borrowed(manifest);
    let place = rest
        .iter()
        .try_fold(manifest.to_mut().get_mut(*first), |value, key| Some(value?.get_mut(*key)))
        .flatten();
    if let Some(place) = place {
        fill(place, given);
    }
    manifest
}

fn fill(place: &mut Value, given: &Value) {
    let Some(place) = place.as_object_mut() else { return };
    if place.get("insecureSkipTLSVerify") == Some(&json!(true)) {
        return;
    }
    // A line break alone is what people write where something must be written.
    let empty = |value: &Value| value.is_null() || value == "" || value == "Cg==";
    if place.get("caBundle").is_none_or(empty) {
        place.insert("caBundle".to_string(), given.clone());
    }
}
