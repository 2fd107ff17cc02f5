//! What is known of single kinds: which only have their metadata kept up, of which it is known what
//! servers add, and which never change some of their fields.
//!
//! A kind that is not here is compared and laid over by the general rule.

use alloc::string::String;

use cleat_dialect::gotypes::{Shape, types};
use serde_json::{Map, Value, json};

use super::compare::Comparison;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kind<'a> {
    api_version: &'a str,
    pub(super) group: &'a str,
    pub(super) name: &'a str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Treatment {
    /// The rest of the object belongs to its controllers.
    MetadataOnly,
    /// Maps may hold more than was stated.
    Open,
    /// Maps may hold these fields without their being stated, and no others; a difference is mended
    /// by stating the manifest afresh.
    Closed(&'static [&'static str]),
}

const ADMISSION: &[&str] = &[
    "failurePolicy",
    "matchPolicy",
    "namespaceSelector",
    "objectSelector",
    "port",
    "reinvocationPolicy",
    "scope",
    "timeoutSeconds",
];

impl<'a> Kind<'a> {
    pub(super) fn of(manifest: &'a Value) -> Self {
        let text = |field| manifest.get(field).and_then(Value::as_str).unwrap_or_default();
        let api_version = text("apiVersion");
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        Self { api_version, group, name: text("kind") }
    }

    pub(super) fn is(self, group: &str, name: &str) -> bool {
        self.group == group && self.name == name
    }

    /// The Go type into which servers read objects of this kind, if it is one of Kubernetes' own.
    pub(super) fn shape(self) -> Option<&'static Shape> {
        types().shape(self.api_version, self.name)
    }

    pub(super) fn treatment(self) -> Treatment {
        use Treatment::{Closed, MetadataOnly, Open};
        match (self.group, self.name) {
            ("", "Namespace" | "Pod" | "ServiceAccount") => MetadataOnly,
            ("", "ConfigMap") => Closed(&["immutable"]),
            ("", "Secret") => Closed(&["immutable", "type"]),
            ("", "ResourceQuota") => Closed(&[]),
            ("", "LimitRange") => Closed(&["default", "defaultRequest"]),
            ("rbac.authorization.k8s.io", _) => Closed(&["apiGroup"]),
            ("policy", "PodDisruptionBudget") => Closed(&[]),
            ("networking.k8s.io", "NetworkPolicy") => Closed(&["policyTypes", "protocol"]),
            ("networking.k8s.io", "Ingress") => Closed(&["ingressClassName", "pathType"]),
            ("scheduling.k8s.io", "PriorityClass") => Closed(&["preemptionPolicy"]),
            ("storage.k8s.io", "StorageClass") => Closed(&[]),
            ("admissionregistration.k8s.io", _) => Closed(ADMISSION),
            ("apiextensions.k8s.io", "CustomResourceDefinition") => {
                Closed(&["conversion", "listKind", "port", "singular", "strategy"])
            }
            _ => Open,
        }
    }

    /// Whether something else is stated of a field that servers never let change, on a kind that can
    /// be made anew without harm.
    pub(super) fn must_be_made_anew(
        self,
        comparison: Comparison,
        existing: &Map<String, Value>,
        wanted: &Map<String, Value>,
    ) -> bool {
        let differs = |key: &str| !comparison.exactly(key, existing.get(key), wanted.get(key));
        match (self.group, self.name) {
            ("", "Secret") => {
                let immutable = existing.get("immutable") == Some(&json!(true));
                let released = wanted.get("immutable") == Some(&json!(false));
                differs("type") || immutable && (released || differs("data"))
            }
            ("storage.k8s.io", "StorageClass") => {
                ["provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"]
                    .into_iter()
                    .any(differs)
            }
            ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => {
                differs("roleRef")
            }
            _ => false,
        }
    }

    /// Whether a field must stay although it is ours and not stated: the server has assigned it, or
    /// refuses to change it.
    pub(super) fn keeps(self, field: &str) -> bool {
        match (self.group, self.name) {
            ("batch", "Job") | ("", "PersistentVolume" | "PersistentVolumeClaim") => true,
            ("", "Service") => matches!(
                field,
                "clusterIP"
                    | "clusterIPs"
                    | "ipFamilies"
                    | "ipFamilyPolicy"
                    | "healthCheckNodePort"
                    | "selector"
            ),
            _ => false,
        }
    }
}

/// Selectors and schemas mean something by what they do not hold.
pub(super) fn is_exact(typed: bool, key: &str) -> bool {
    match key {
        "matchLabels" => true,
        "labelSelector" | "namespaceSelector" | "nodeSelector" | "objectSelector"
        | "openAPIV3Schema" | "podSelector" | "selector" => typed,
        _ => false,
    }
}

/// Alternatives that exclude each other, so that what was there before must not shine through.
pub(super) fn is_whole(typed: bool, key: &str) -> bool {
    is_exact(typed, key)
        || typed
            && matches!(
                key,
                "lifecycle"
                    | "livenessProbe"
                    | "readinessProbe"
                    | "startupProbe"
                    | "strategy"
                    | "updateStrategy"
            )
}

/// Zero values and empty lists for which servers put a default.
pub(super) fn is_filled_when_zero(key: &str) -> bool {
    matches!(
        key,
        "apiGroup"
            | "clusterIP"
            | "clusterIPs"
            | "concurrencyPolicy"
            | "dnsPolicy"
            | "externalTrafficPolicy"
            | "failureThreshold"
            | "imagePullPolicy"
            | "ipFamilies"
            | "metrics"
            | "nodePort"
            | "periodSeconds"
            | "persistentVolumeReclaimPolicy"
            | "podManagementPolicy"
            | "policyTypes"
            | "protocol"
            | "restartPolicy"
            | "schedulerName"
            | "scheme"
            | "sessionAffinity"
            | "successThreshold"
            | "targetPort"
            | "terminationMessagePath"
            | "terminationMessagePolicy"
            | "timeoutSeconds"
            | "type"
    )
}
