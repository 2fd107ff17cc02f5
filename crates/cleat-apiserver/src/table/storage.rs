//! Volumes, claims and their classes.

use serde_json::Value;

use super::Tables;
use super::cell::{
    Cell, Row, age, boolean, entry, int_or_string, integer, name, text, text_at, wide,
};

pub(super) const CORE: Tables = &[
    (
        "persistentvolumes",
        &[
            name(),
            text("Capacity", Cell::Made(|row| storage(row, "spec.capacity"), "Its size.")),
            text("Access Modes", Cell::Made(|row| modes(row, "spec.accessModes"), MODES)),
            text("Reclaim Policy", Cell::Text("spec.persistentVolumeReclaimPolicy", "")),
            text("Status", Cell::Made(phase, "What becomes of it.")),
            text("Claim", Cell::Made(claim, "Who has it.")),
            text("StorageClass", Cell::Made(class, "Its class.")),
            text("VolumeAttributesClass", Cell::Text("spec.volumeAttributesClassName", "<unset>")),
            text("Reason", Cell::Text("status.reason", "")),
            age(),
            wide("VolumeMode", Cell::Text("spec.volumeMode", "<unset>")),
        ],
    ),
    (
        "persistentvolumeclaims",
        &[
            name(),
            text("Status", Cell::Made(phase, "Whether it is bound.")),
            text("Volume", Cell::Text("spec.volumeName", "")),
            text("Capacity", Cell::Made(claimed_capacity, "The size of the volume.")),
            text("Access Modes", Cell::Made(claimed_modes, MODES)),
            text("StorageClass", Cell::Made(class, "Its class.")),
            text("VolumeAttributesClass", Cell::Text("spec.volumeAttributesClassName", "<unset>")),
            age(),
            wide("VolumeMode", Cell::Text("spec.volumeMode", "<unset>")),
        ],
    ),
];

pub(super) const STORAGE: Tables = &[
    (
        "storageclasses",
        &[
            text("Name", Cell::Made(storage_class_name, "The class, and whether it is default.")),
            text("Provisioner", Cell::Text("provisioner", "")),
            text("ReclaimPolicy", Cell::Text("reclaimPolicy", "Delete")),
            text("VolumeBindingMode", Cell::Text("volumeBindingMode", "Immediate")),
            text("AllowVolumeExpansion", Cell::Flag("allowVolumeExpansion", false)),
            age(),
        ],
    ),
    ("volumeattributesclasses", &[name(), text("DriverName", Cell::Text("driverName", "")), age()]),
    (
        "volumeattachments",
        &[
            name(),
            text("Attacher", Cell::Text("spec.attacher", "")),
            text("PV", Cell::Text("spec.source.persistentVolumeName", "")),
            text("Node", Cell::Text("spec.nodeName", "")),
            boolean("Attached", Cell::Flag("status.attached", false)),
            age(),
        ],
    ),
    ("csinodes", &[name(), integer("Drivers", Cell::Count(&["spec.drivers"])), age()]),
    (
        "csidrivers",
        &[
            name(),
            boolean("AttachRequired", Cell::Flag("spec.attachRequired", true)),
            boolean("PodInfoOnMount", Cell::Flag("spec.podInfoOnMount", false)),
            boolean("StorageCapacity", Cell::Flag("spec.storageCapacity", false)),
            text("TokenRequests", Cell::Made(audiences, "Audiences of the tokens it asks for.")),
            boolean("RequiresRepublish", Cell::Flag("spec.requiresRepublish", false)),
            text("Modes", Cell::Joined("spec.volumeLifecycleModes", "<none>")),
            age(),
        ],
    ),
    (
        "csistoragecapacities",
        &[
            name(),
            text("StorageClassName", Cell::Text("storageClassName", "")),
            text("Capacity", Cell::Text("capacity", "<unset>")),
        ],
    ),
];

const MODES: &str = "How it may be mounted.";

fn storage(row: &Row<'_>, path: &str) -> Value {
    Value::from(int_or_string(entry(row.at(path), "storage"), "0"))
}

/// Each mode once, in a fixed order.
fn modes(row: &Row<'_>, path: &str) -> Value {
    const SHORT: [(&str, &str); 4] = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let given = row.list(path);
    let shown: Vec<&str> = SHORT
        .into_iter()
        .filter(|(mode, _)| given.iter().any(|one| one == mode))
        .map(|(_, short)| short)
        .collect();
    Value::from(shown.join(","))
}

fn phase(row: &Row<'_>) -> Value {
    Value::from(if row.is_deleting() { "Terminating" } else { row.text("status.phase") })
}

fn claim(row: &Row<'_>) -> Value {
    Value::from(match row.at("spec.claimRef") {
        None => String::new(),
        Some(claim) => format!("{}/{}", text_at(claim, "namespace"), text_at(claim, "name")),
    })
}

fn class(row: &Row<'_>) -> Value {
    let annotated = row.annotation("volume.beta.kubernetes.io/storage-class");
    Value::from(annotated.unwrap_or_else(|| row.text("spec.storageClassName")))
}

fn claimed_capacity(row: &Row<'_>) -> Value {
    if row.text("spec.volumeName").is_empty() {
        return Value::from("");
    }
    storage(row, "status.capacity")
}

fn claimed_modes(row: &Row<'_>) -> Value {
    if row.text("spec.volumeName").is_empty() {
        return Value::from("");
    }
    modes(row, "status.accessModes")
}

fn storage_class_name(row: &Row<'_>) -> Value {
    let name = row.text("metadata.name");
    let default = ["storageclass.kubernetes.io", "storageclass.beta.kubernetes.io"]
        .into_iter()
        .any(|group| row.annotation(&format!("{group}/is-default-class")) == Some("true"));
    Value::from(if default { format!("{name} (default)") } else { name.to_owned() })
}

fn audiences(row: &Row<'_>) -> Value {
    if row.at("spec.tokenRequests").is_none() {
        return Value::from("<unset>");
    }
    let audiences: Vec<&str> =
        row.list("spec.tokenRequests").iter().map(|one| text_at(one, "audience")).collect();
    Value::from(audiences.join(","))
}
