//! PolicySet: policies that are placed and looked at together.

use std::collections::BTreeSet;

use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Which policies.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "policy.open-cluster-management.io",
    version = "v1beta1",
    kind = "PolicySet",
    plural = "policysets",
    shortname = "plcset",
    namespaced,
    status = "PolicySetStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "Policies that are placed and looked at together.",
    printcolumn = r#"{"name": "Compliance state", "type": "string", "jsonPath": ".status.compliant"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#,
    crates(kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
pub struct PolicySetSpec {
    /// What the set is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Names of policies in the set's namespace.
    #[schemars(extend("items" = { "type": "string", "minLength": 1 }))]
    pub policies: Vec<String>,
    /// Clusters on which single policies of the set are left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclusions: Vec<PolicyExclusion>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicyExclusion {
    /// Which policy.
    #[schemars(length(min = 1))]
    pub policy_name: String,
    /// Why, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// On which clusters.
    #[schemars(length(min = 1))]
    pub cluster_names: Vec<String>,
}

/// Why a set is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Problem {
    #[error("policy in spec.exclusions is not listed in spec.policies: {0}")]
    NotListed(String),
    #[error("policy in spec.exclusions has a duplicate entry: {0}")]
    Duplicate(String),
}

impl PolicySetSpec {
    /// What a schema cannot say.
    pub fn validate(&self) -> Result<(), Problem> {
        let mut seen = BTreeSet::new();
        for exclusion in &self.exclusions {
            let name = &exclusion.policy_name;
            if !self.policies.contains(name) {
                return Err(Problem::NotListed(name.clone()));
            }
            if !seen.insert(name) {
                return Err(Problem::Duplicate(name.clone()));
            }
        }
        Ok(())
    }
}

/// What is known of a set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicySetStatus {
    /// What binds it to clusters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub placement: Vec<PolicySetPlacement>,
    /// How its policies stand on the clusters it is bound to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compliant: Option<String>,
    /// What stands in the way of an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_message: Option<String>,
    /// Clusters on which single policies are left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclusions: Vec<ExclusionStatus>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicySetPlacement {
    /// The binding.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub placement_binding: String,
    /// The placement it names,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub placement: String,
    /// or the placement rule.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub placement_rule: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExclusionStatus {
    /// Which policy.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub policy_name: String,
    /// On which clusters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clusters: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exclusion_must_be_of_a_listed_policy_and_only_once() {
        let exclusion = |name: &str| PolicyExclusion {
            policy_name: name.into(),
            reason: None,
            cluster_names: vec!["c".into()],
        };
        let set = |exclusions: Vec<PolicyExclusion>| PolicySetSpec {
            policies: vec!["a".into(), "b".into()],
            exclusions,
            ..PolicySetSpec::default()
        };
        assert_eq!(set(vec![exclusion("a"), exclusion("b")]).validate(), Ok(()));
        let text = |set: PolicySetSpec| set.validate().unwrap_err().to_string();
        assert_eq!(
            text(set(vec![exclusion("x")])),
            "policy in spec.exclusions is not listed in spec.policies: x"
        );
        assert_eq!(
            text(set(vec![exclusion("a"), exclusion("a")])),
            "policy in spec.exclusions has a duplicate entry: a"
        );
    }
}
