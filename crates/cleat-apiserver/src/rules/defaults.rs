//! What kube-apiserver fills in when a field of a built-in kind is left out.
//!
//! Defaults belong to Go types, not to kinds: a container gets the same ones in a Pod, a Deployment
//! and a CronJob. So there is one function per type, called for every struct of the object, parents
//! first. Defaults of custom resources come from their schemas and are not here.

mod core;
mod other;
mod pod;
mod workloads;

use cleat_dialect::gotypes::types;
use serde_json::{Map, Value};

use super::normal;

type Object = Map<String, Value>;

/// Brings a built-in object into the form kube-apiserver would have decoded it to: normal form and
/// defaults. Nothing happens to kinds that are not built in. Applying it twice changes nothing.
pub(crate) fn default(api_version: &str, kind: &str, object: &mut Value) {
    let Some(root) = types().root(api_version, kind) else { return };
    let Value::Object(object) = object else { return };
    normal::tidy(root, object);
    normal::complete(root, object, &mut |name, object| {
        let Some((package, name)) = name.split_once('.') else { return };
        match package {
            "core/v1" => {
                constant(CORE, name, object);
                core::default(name, object);
                pod::default(name, object);
            }
            "apps/v1" | "batch/v1" => workloads::default(name, object),
            _ => {
                constant(OTHER, name, object);
                other::default(package, name, object);
            }
        }
    });
}

/// A default that depends on nothing else.
enum Constant {
    Text(&'static str),
    Number(i64),
    Flag(bool),
    /// An empty object.
    Empty,
}

use Constant::{Empty, Flag, Number, Text};

type Table = &'static [(&'static str, &'static [(&'static str, Constant)])];

fn constant(table: Table, name: &str, object: &mut Object) {
    let rows = table.iter().filter(|(of, _)| *of == name).flat_map(|(_, fields)| *fields);
    for (field, value) in rows {
        // A pointer to an empty string or zero is a value; the table holds no such field, so that
        // whatever is empty here is missing.
        let missing = match object.get(*field) {
            None | Some(Value::Null) => true,
            Some(Value::String(text)) => text.is_empty(),
            Some(_) => false,
        };
        if missing {
            let value = match value {
                Text(text) => Value::from(*text),
                Number(number) => Value::from(*number),
                Flag(flag) => Value::from(*flag),
                Empty => Value::Object(Map::new()),
            };
            object.insert((*field).to_owned(), value);
        }
    }
}

const CORE: Table = &[
    ("AzureDiskVolumeSource", AZURE_DISK),
    ("ConfigMapVolumeSource", &[("defaultMode", Number(0o644))]),
    ("Container", CONTAINER),
    ("ContainerPort", &[("protocol", Text("TCP"))]),
    ("DownwardAPIVolumeSource", &[("defaultMode", Number(0o644))]),
    ("EndpointPort", &[("protocol", Text("TCP"))]),
    ("EphemeralContainer", CONTAINER),
    ("FileKeySelector", &[("optional", Flag(false))]),
    ("GRPCAction", &[("service", Text(""))]),
    ("HTTPGetAction", &[("path", Text("/")), ("scheme", Text("HTTP"))]),
    ("HostPathVolumeSource", &[("type", Text(""))]),
    ("ISCSIPersistentVolumeSource", &[("iscsiInterface", Text("default"))]),
    ("ISCSIVolumeSource", &[("iscsiInterface", Text("default"))]),
    ("NamespaceStatus", &[("phase", Text("Active"))]),
    ("ObjectFieldSelector", &[("apiVersion", Text("v1"))]),
    ("PersistentVolumeClaimSpec", &[("volumeMode", Text("Filesystem"))]),
    (
        "PersistentVolumeSpec",
        &[("persistentVolumeReclaimPolicy", Text("Retain")), ("volumeMode", Text("Filesystem"))],
    ),
    (
        "PodSpec",
        &[
            ("dnsPolicy", Text("ClusterFirst")),
            ("restartPolicy", Text("Always")),
            ("securityContext", Empty),
            ("terminationGracePeriodSeconds", Number(30)),
            ("schedulerName", Text("default-scheduler")),
        ],
    ),
    (
        "Probe",
        &[
            ("timeoutSeconds", Number(1)),
            ("periodSeconds", Number(10)),
            ("successThreshold", Number(1)),
            ("failureThreshold", Number(3)),
        ],
    ),
    ("ProjectedVolumeSource", &[("defaultMode", Number(0o644))]),
    ("RBDPersistentVolumeSource", RBD),
    ("RBDVolumeSource", RBD),
    ("ReplicationControllerSpec", &[("replicas", Number(1))]),
    ("ScaleIOPersistentVolumeSource", SCALE_IO),
    ("ScaleIOVolumeSource", SCALE_IO),
    ("Secret", &[("type", Text("Opaque"))]),
    ("SecretVolumeSource", &[("defaultMode", Number(0o644))]),
    ("ServiceAccountTokenProjection", &[("expirationSeconds", Number(3600))]),
];

const CONTAINER: &[(&str, Constant)] = &[
    ("terminationMessagePath", Text("/dev/termination-log")),
    ("terminationMessagePolicy", Text("File")),
];

const AZURE_DISK: &[(&str, Constant)] = &[
    ("cachingMode", Text("ReadWrite")),
    ("fsType", Text("ext4")),
    ("kind", Text("Shared")),
    ("readOnly", Flag(false)),
];

const RBD: &[(&str, Constant)] =
    &[("pool", Text("rbd")), ("user", Text("admin")), ("keyring", Text("/etc/ceph/keyring"))];

const SCALE_IO: &[(&str, Constant)] =
    &[("storageMode", Text("ThinProvisioned")), ("fsType", Text("xfs"))];

const WEBHOOK: &[(&str, Constant)] = &[
    ("failurePolicy", Text("Fail")),
    ("matchPolicy", Text("Equivalent")),
    ("namespaceSelector", Empty),
    ("objectSelector", Empty),
    ("timeoutSeconds", Number(10)),
];

const OTHER: Table = &[
    ("CSIDriverSpec", CSI_DRIVER),
    ("EndpointPort", &[("name", Text("")), ("protocol", Text("TCP"))]),
    (
        "ExemptPriorityLevelConfiguration",
        &[("nominalConcurrencyShares", Number(0)), ("lendablePercent", Number(0))],
    ),
    ("HorizontalPodAutoscalerSpec", &[("minReplicas", Number(1))]),
    (
        "LimitedPriorityLevelConfiguration",
        &[("nominalConcurrencyShares", Number(30)), ("lendablePercent", Number(0))],
    ),
    (
        "MatchResources",
        &[
            ("matchPolicy", Text("Equivalent")),
            ("namespaceSelector", Empty),
            ("objectSelector", Empty),
        ],
    ),
    ("MutatingAdmissionPolicySpec", &[("failurePolicy", Text("Fail"))]),
    ("MutatingWebhook", WEBHOOK),
    ("MutatingWebhook", &[("reinvocationPolicy", Text("Never"))]),
    ("NamedRuleWithOperations", &[("scope", Text("*"))]),
    ("NetworkPolicyPort", &[("protocol", Text("TCP"))]),
    ("PriorityClass", &[("preemptionPolicy", Text("PreemptLowerPriority"))]),
    ("RoleRef", &[("apiGroup", Text("rbac.authorization.k8s.io"))]),
    ("RuleWithOperations", &[("scope", Text("*"))]),
    ("ServiceReference", &[("port", Number(443))]),
    (
        "StorageClass",
        &[("reclaimPolicy", Text("Delete")), ("volumeBindingMode", Text("Immediate"))],
    ),
    ("TokenRequestSpec", &[("expirationSeconds", Number(3600))]),
    ("ValidatingAdmissionPolicySpec", &[("failurePolicy", Text("Fail"))]),
    ("ValidatingWebhook", WEBHOOK),
];

const CSI_DRIVER: &[(&str, Constant)] = &[
    ("attachRequired", Flag(true)),
    ("podInfoOnMount", Flag(false)),
    ("storageCapacity", Flag(false)),
    ("fsGroupPolicy", Text("ReadWriteOnceWithFSType")),
    ("requiresRepublish", Flag(false)),
    ("seLinuxMount", Flag(false)),
];

#[cfg(test)]
mod tests;
