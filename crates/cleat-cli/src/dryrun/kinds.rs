//! The kinds there are, where no server can be asked: Kubernetes' own, ours, those that a given
//! definition defines, and those that a file lists.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use cleat_core::policy::observed::{KindName, Served};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// `apiVersion Kind plural`, and a star where no namespace holds it.
const BUILT_IN: &str = "\
v1 ConfigMap configmaps
v1 Endpoints endpoints
v1 Event events
v1 LimitRange limitranges
v1 Namespace namespaces *
v1 Node nodes *
v1 PersistentVolume persistentvolumes *
v1 PersistentVolumeClaim persistentvolumeclaims
v1 Pod pods
v1 PodTemplate podtemplates
v1 ReplicationController replicationcontrollers
v1 ResourceQuota resourcequotas
v1 Secret secrets
v1 Service services
v1 ServiceAccount serviceaccounts
admissionregistration.k8s.io/v1 MutatingWebhookConfiguration mutatingwebhookconfigurations *
admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy validatingadmissionpolicies *
admissionregistration.k8s.io/v1 ValidatingAdmissionPolicyBinding validatingadmissionpolicybindings *
admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration validatingwebhookconfigurations *
apiextensions.k8s.io/v1 CustomResourceDefinition customresourcedefinitions *
apiregistration.k8s.io/v1 APIService apiservices *
apps/v1 ControllerRevision controllerrevisions
apps/v1 DaemonSet daemonsets
apps/v1 Deployment deployments
apps/v1 ReplicaSet replicasets
apps/v1 StatefulSet statefulsets
autoscaling/v1 HorizontalPodAutoscaler horizontalpodautoscalers
autoscaling/v2 HorizontalPodAutoscaler horizontalpodautoscalers
batch/v1 CronJob cronjobs
batch/v1 Job jobs
certificates.k8s.io/v1 CertificateSigningRequest certificatesigningrequests *
coordination.k8s.io/v1 Lease leases
discovery.k8s.io/v1 EndpointSlice endpointslices
events.k8s.io/v1 Event events
flowcontrol.apiserver.k8s.io/v1 FlowSchema flowschemas *
flowcontrol.apiserver.k8s.io/v1 PriorityLevelConfiguration prioritylevelconfigurations *
networking.k8s.io/v1 Ingress ingresses
networking.k8s.io/v1 IngressClass ingressclasses *
networking.k8s.io/v1 NetworkPolicy networkpolicies
node.k8s.io/v1 RuntimeClass runtimeclasses *
policy/v1 PodDisruptionBudget poddisruptionbudgets
rbac.authorization.k8s.io/v1 ClusterRole clusterroles *
rbac.authorization.k8s.io/v1 ClusterRoleBinding clusterrolebindings *
rbac.authorization.k8s.io/v1 Role roles
rbac.authorization.k8s.io/v1 RoleBinding rolebindings
scheduling.k8s.io/v1 PriorityClass priorityclasses *
storage.k8s.io/v1 CSIDriver csidrivers *
storage.k8s.io/v1 CSINode csinodes *
storage.k8s.io/v1 StorageClass storageclasses *
storage.k8s.io/v1 VolumeAttachment volumeattachments *
";

pub(super) struct Kinds {
    all: BTreeMap<KindName, Served>,
}

/// An entry of a file of kinds. Fields may be written in any case, as the original reads and writes
/// them.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(super) struct Mapping {
    #[serde(default)]
    pub(super) group: String,
    pub(super) kind: String,
    pub(super) plural: String,
    #[serde(default)]
    pub(super) scope: String,
    #[serde(default)]
    pub(super) singular: String,
    /// None stand for the usual ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) verbs: Vec<String>,
    pub(super) version: String,
}

impl Kinds {
    pub(super) fn known() -> Self {
        let mut kinds = Self { all: BTreeMap::new() };
        for line in BUILT_IN.lines() {
            let mut words = line.split(' ');
            let (Some(api_version), Some(kind), Some(plural)) =
                (words.next(), words.next(), words.next())
            else {
                continue;
            };
            let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
            kinds.add(group, version, kind, plural, words.next().is_none());
        }
        let definitions = cleat_api::hub_definitions().into_iter();
        for definition in definitions.chain(cleat_api::cluster_definitions()) {
            kinds.define(&serde_json::to_value(definition).unwrap_or_default());
        }
        kinds
    }

    fn add(&mut self, group: &str, version: &str, kind: &str, plural: &str, namespaced: bool) {
        let api_version = match group {
            "" => version.to_owned(),
            group => format!("{group}/{version}"),
        };
        let served = Served {
            group: group.to_owned(),
            version: version.to_owned(),
            resource: plural.to_owned(),
            namespaced,
        };
        self.all.insert(KindName { api_version, kind: kind.to_owned() }, served);
    }

    /// Takes in the definitions among objects.
    pub(super) fn learn(&mut self, objects: &[Value]) {
        for object in objects {
            if object.get("kind").is_some_and(|kind| kind == "CustomResourceDefinition") {
                self.define(object);
            }
        }
    }

    fn define(&mut self, definition: &Value) {
        let text = |pointer: &str| {
            definition.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let (group, kind) = (text("/spec/group"), text("/spec/names/kind"));
        let (plural, namespaced) = (text("/spec/names/plural"), text("/spec/scope") != "Cluster");
        let versions = definition.pointer("/spec/versions").and_then(Value::as_array);
        for version in versions.into_iter().flatten() {
            if let Some(version) = version.get("name").and_then(Value::as_str) {
                self.add(&group, version, &kind, &plural, namespaced);
            }
        }
    }

    /// Takes in a file of kinds.
    pub(super) fn read(&mut self, text: &str) -> Result<()> {
        let all: Vec<BTreeMap<String, Value>> =
            serde_saphyr::from_str(text).context("understand the kinds")?;
        for fields in all {
            let fields = fields.into_iter().map(|(name, value)| (name.to_lowercase(), value));
            let mapping = serde_json::from_value(Value::Object(fields.collect()));
            let mapping: Mapping = mapping.context("understand the kinds")?;
            let Mapping { group, kind, plural, scope, singular: _, verbs, version } = mapping;
            // Some resources take objects of a kind without having any.
            if verbs.is_empty() || verbs.iter().any(|verb| verb == "get") {
                let namespaced = !matches!(&*scope, "root" | "Cluster");
                self.add(&group, &version, &kind, &plural, namespaced);
            }
        }
        Ok(())
    }

    pub(super) fn all(&self) -> &BTreeMap<KindName, Served> {
        &self.all
    }

    pub(super) fn named(&self, api_version: &str, kind: &str) -> Option<&Served> {
        let name = KindName { api_version: api_version.to_owned(), kind: kind.to_owned() };
        self.all.get(&name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_come_from_everywhere() {
        let mut kinds = Kinds::known();
        kinds
            .read("- {Group: example.com, Version: v1, Kind: Thing, Plural: things, Scope: root}")
            .unwrap();
        for (api_version, kind, namespaced) in [
            ("v1", "Pod", true),
            ("v1", "Namespace", false),
            ("example.com/v1", "Thing", false),
            ("policy.open-cluster-management.io/v1", "ConfigurationPolicy", true),
            ("cluster.open-cluster-management.io/v1", "ManagedCluster", false),
        ] {
            let served = kinds.named(api_version, kind).unwrap();
            assert_eq!(served.namespaced, namespaced, "{kind}");
        }
        assert!(kinds.named("v1", "Nothing").is_none());
        let two = "\
- {group: example.com, version: v1, kind: Other, plural: others, scope: namespace}
- {group: example.com, version: v1, kind: Other, plural: tried, scope: root, verbs: [create]}
";
        kinds.read(two).unwrap();
        assert_eq!(kinds.named("example.com/v1", "Other").unwrap().resource, "others");
    }
}
