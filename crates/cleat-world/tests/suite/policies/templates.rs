//! Templates in policies: lookups are answered from watches, and what they read wakes the policy.

use anyhow::Result;
use cleat_core::policy::compare::diff::REDACTED;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret, ServiceAccount};
use kube::api::{Api, Patch};
use serde_json::json;

use super::{Site, enforce, inform, messages, musthave, related};
use crate::{create, delete, seen};

fn holds(map: &ConfigMap, value: &str) -> bool {
    map.data.as_ref().and_then(|data| data.get("key")).is_some_and(|found| found == value)
}

#[tokio::test]
async fn what_a_template_reads_is_watched() -> Result<()> {
    let site = Site::start("policy-lookup").await?;
    create(&site.maps(), json!({ "metadata": { "name": "source" }, "data": { "v": "1" } })).await?;
    let value = format!("{{{{ fromConfigMap \"{}\" \"source\" \"v\" }}}}", site.name);
    site.policy("p", enforce(vec![musthave(site.map("a", &value))])).await?;
    seen(&site.maps(), "a", |map| holds(map, "1")).await?;
    let patch = Patch::Merge(json!({ "data": { "v": "2" } }));
    site.maps().patch("source", &Default::default(), &patch).await?;
    seen(&site.maps(), "a", |map| holds(map, "2")).await?;
    site.stands("p", "Compliant").await?;
    Ok(())
}

#[tokio::test]
async fn templates_as_one_text_make_as_many_objects_as_a_list_has() -> Result<()> {
    let site = Site::start("policy-raw").await?;
    for name in ["x", "y"] {
        let labels = json!({ "copy": "yes" });
        create(&site.maps(), json!({ "metadata": { "name": name, "labels": labels } })).await?;
    }
    let raw = format!(
        r#"
{{{{- range (lookup "v1" "ConfigMap" "{namespace}" "" "copy=yes").items }}}}
- complianceType: musthave
  objectDefinition:
    apiVersion: v1
    kind: ConfigMap
    metadata:
      name: copy-{{{{ .metadata.name }}}}
      namespace: {namespace}
    data:
      key: "1"
{{{{- end }}}}
"#,
        namespace = site.name
    );
    let spec = json!({ "remediationAction": "enforce", "object-templates-raw": raw });
    site.policy("p", spec).await?;
    seen(&site.maps(), "copy-x", |map| holds(map, "1")).await?;
    seen(&site.maps(), "copy-y", |map| holds(map, "1")).await?;
    create(&site.maps(), json!({ "metadata": { "name": "z", "labels": { "copy": "yes" } } }))
        .await?;
    seen(&site.maps(), "copy-z", |map| holds(map, "1")).await?;
    Ok(())
}

#[tokio::test]
async fn a_bad_template_says_what_is_wrong_with_it() -> Result<()> {
    let site = Site::start("policy-bad").await?;
    site.policy("p", inform(vec![musthave(site.map("a", "{{ nonsense }}"))])).await?;
    site.says("p", "function \"nonsense\" not defined").await?;
    site.policy("hub", inform(vec![musthave(site.map("a", "{{hub .ManagedClusterName hub}}"))]))
        .await?;
    let policy = site.stands("hub", "NonCompliant").await?;
    assert!(messages(&policy)[0].contains("governance-standalone-hub-templating"));
    Ok(())
}

#[tokio::test]
async fn a_custom_message_takes_the_place_of_the_usual() -> Result<()> {
    let site = Site::start("policy-said").await?;
    let mut spec = inform(vec![musthave(site.map("a", "1"))]);
    spec["customMessage"] = json!({ "noncompliant": "look at {{ .Policy.metadata.name }}" });
    site.policy("p", spec).await?;
    let policy = site.stands("p", "NonCompliant").await?;
    let history = policy.status.map(|status| status.history).unwrap_or_default();
    assert_eq!(history[0].message, "NonCompliant; look at p");
    Ok(())
}

/// What a text with all templates read was not remembered, and secrets were shown in differences.
#[tokio::test]
async fn secrets_in_templates_as_one_text_are_not_shown() -> Result<()> {
    let site = Site::start("policy-raw-secret").await?;
    let secrets: Api<Secret> = Api::namespaced(site.cluster.clone(), &site.name);
    let secret = json!({ "metadata": { "name": "s" }, "stringData": { "word": "hush" } });
    create(&secrets, secret).await?;
    let accounts: Api<ServiceAccount> = Api::namespaced(site.cluster.clone(), &site.name);
    create(&accounts, json!({ "metadata": { "name": "told" } })).await?;
    let raw = format!(
        r#"
- complianceType: musthave
  objectDefinition:
    apiVersion: v1
    kind: ServiceAccount
    metadata:
      name: told
      namespace: {namespace}
      annotations:
        word: '{{{{ fromSecret "{namespace}" "s" "word" | base64dec }}}}'
"#,
        namespace = site.name
    );
    let spec = json!({ "remediationAction": "inform", "object-templates-raw": raw });
    site.policy("p", spec).await?;
    let policy = site.stands("p", "NonCompliant").await?;
    let known = related(&policy, "told").and_then(|entry| entry.properties.clone());
    assert_eq!(known.unwrap_or_default().diff, REDACTED);
    assert!(!serde_json::to_string(&policy.status)?.contains("hush"));
    Ok(())
}

/// Every namespace took another round of reading, of which there are only so many.
#[tokio::test]
async fn templates_for_many_namespaces_are_resolved_at_once() -> Result<()> {
    let site = Site::start("policy-many").await?;
    let namespaces: Api<Namespace> = Api::all(site.cluster.clone());
    let names: Vec<String> = (0..40).map(|index| format!("{}-{index}", site.name)).collect();
    for name in &names {
        let labels = json!({ "many": site.name });
        create(&namespaces, json!({ "metadata": { "name": name, "labels": labels } })).await?;
    }
    let definition = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "of-many" },
        "data": { "place": "{{ .ObjectNamespace }}" },
    });
    let mut spec = inform(vec![musthave(definition)]);
    spec["namespaceSelector"] = json!({ "matchLabels": { "many": site.name } });
    site.policy("p", spec).await?;
    let policy = site.stands("p", "NonCompliant").await?;
    let found = policy.status.map(|status| status.related_objects.len());
    assert_eq!(found, Some(names.len()));
    for name in &names {
        delete(&namespaces, name).await?;
    }
    Ok(())
}
