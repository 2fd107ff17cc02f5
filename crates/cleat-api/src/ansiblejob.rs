//! AnsibleJob: what the automation platform's operator runs. Its definition is that operator's;
//! ours is for hubs where it is absent.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_derive::CustomResource;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The label of our definition. Where another one is served, jobs are another's to run.
pub const OURS: (&str, &str) = ("app.kubernetes.io/managed-by", "cleat");

/// As whom our definition is written.
const MANAGER: &str = "cleat";

/// Why a definition of AnsibleJobs is another's, if it is: an automation platform brings its own. Ours
/// may have been here first, so our label on it does not suffice.
pub fn is_anothers(found: &CustomResourceDefinition) -> Option<String> {
    let labels = found.metadata.labels.clone().unwrap_or_default();
    // Operators that the lifecycle manager installs are marked so.
    let operator =
        labels.keys().find(|key| *key == "olm.managed" || key.starts_with("operators.coreos.com/"));
    if let Some(key) = operator {
        return Some(format!("its definition has the label {key}"));
    }
    let (key, value) = OURS;
    if labels.get(key).is_none_or(|found| found != value) {
        return Some(format!("its definition lacks the label {key}={value}"));
    }
    let ours = crate::hub_definitions();
    let same = ours.iter().any(|ours| {
        ours.metadata.name == found.metadata.name && ours.spec.versions == found.spec.versions
    });
    let mut managers = found.metadata.managed_fields.iter().flatten();
    let other = managers.find(|entry| {
        let fields = entry.fields_v1.as_ref().map(|fields| &fields.0);
        entry.subresource.as_deref().unwrap_or_default().is_empty()
            && entry.manager.as_deref() != Some(MANAGER)
            && fields.is_some_and(|fields| fields.pointer("/f:spec/f:versions").is_some())
    });
    let manager = other.and_then(|entry| entry.manager.clone()).filter(|_| !same)?;
    Some(format!("its definition was written by {manager}"))
}

/// Which job, and with what.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "tower.ansible.com",
    version = "v1alpha1",
    kind = "AnsibleJob",
    plural = "ansiblejobs",
    namespaced,
    status = "AnsibleJobStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "A job for the automation platform to run.",
    crates(kube_core = "::kube_core")
)]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct AnsibleJobSpec {
    /// The job template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_template_name: Option<String>,
    /// The secret with the credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tower_auth_secret: Option<String>,
    /// Seconds after which the finished job is removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_ttl: Option<i64>,
    /// What is passed to the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "object")]
    pub extra_vars: Option<Map<String, Value>>,
}

fn object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}

/// Whatever the operator says.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct AnsibleJobStatus {}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_definition_that_a_platform_wrote_over_ours_is_the_platforms() {
        let ours = crate::hub_definitions();
        let ours = ours.into_iter().find(|one| one.spec.group == "tower.ansible.com").unwrap();
        assert_eq!(is_anothers(&ours), None);
        let labelled = |key: &str| {
            let mut found = ours.clone();
            found.metadata.labels.get_or_insert_default().insert(key.to_owned(), String::new());
            found
        };
        assert!(is_anothers(&labelled("operators.coreos.com/aap.aap")).is_some());
        let mut bare = ours.clone();
        bare.metadata.labels = None;
        assert!(is_anothers(&bare).is_some());
        // Applied over ours, which leaves our label where it was.
        let wrote = |manager: &str| {
            serde_json::from_value(json!([{
                "manager": manager, "operation": "Update", "apiVersion": "apiextensions.k8s.io/v1",
                "fieldsType": "FieldsV1", "fieldsV1": { "f:spec": { "f:versions": {} } },
            }]))
            .unwrap()
        };
        let mut taken = ours.clone();
        taken.metadata.managed_fields = wrote("kubectl-client-side-apply");
        // The same, whoever wrote it, is ours.
        assert_eq!(is_anothers(&taken), None);
        taken.spec.versions[0].schema = None;
        assert!(is_anothers(&taken).unwrap().contains("kubectl-client-side-apply"));
        // An earlier version of ours is ours.
        taken.metadata.managed_fields = wrote("cleat");
        assert_eq!(is_anothers(&taken), None);
    }
}
