//! ConfigMaps, Secrets, namespaces, claims, volumes, nodes, endpoints.
//!
//! Left out: node affinity of volumes.

use std::{borrow::Cow, collections::BTreeSet};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Map, Value};

use super::check::{Errors, data_key, shown_struct};
use super::{net, volume};
use crate::names;
use crate::quantity::Quantity;
use crate::resource::ResourceType;
use crate::rules::read::{Read, child, fill, object as object_of};
use crate::status::FieldError;

const SEALED: &str = "field is immutable when `immutable` is set";
/// What the values of one ConfigMap or Secret may take together.
const MOST_BYTES: usize = 1024 * 1024;

const ACCESS_MODES: [&str; 4] =
    ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

pub(super) fn config_map(errors: &mut Errors, object: &Value) {
    let mut total = 0;
    for (key, value) in object.map("data").into_iter().flatten() {
        let path = format!("data[{key}]");
        errors.complaints(&path, key, data_key(key));
        if object.map("binaryData").is_some_and(|binary| binary.contains_key(key)) {
            errors.invalid(path, key.as_str(), "duplicate of key present in binaryData");
        }
        total += value.as_str().unwrap_or("").len();
    }
    for (key, value) in object.map("binaryData").into_iter().flatten() {
        errors.complaints(&format!("binaryData[{key}]"), key, data_key(key));
        total += decoded_len(value);
    }
    if total > MOST_BYTES {
        errors.too_long("[]", MOST_BYTES);
    }
}

pub(super) fn secret(errors: &mut Errors, object: &Value) {
    let mut total = 0;
    for (key, value) in object.map("data").into_iter().flatten() {
        errors.complaints(&format!("data[{key}]"), key, data_key(key));
        total += decoded_len(value);
    }
    if total > MOST_BYTES {
        errors.too_long("data", MOST_BYTES);
    }
    let data = object.at("data");
    let mut needs = |key: &str| {
        if !data.has(key) {
            errors.required(format!("data[{key}]"), "");
        }
    };
    match object.text("type") {
        "kubernetes.io/service-account-token" => {
            const KEY: &str = "kubernetes.io/service-account.name";
            if object.path(&["metadata", "annotations", KEY]).as_str().is_none_or(str::is_empty) {
                errors.required(format!("metadata.annotations[{KEY}]"), "");
            }
        }
        "kubernetes.io/dockercfg" => docker(errors, data, ".dockercfg"),
        "kubernetes.io/dockerconfigjson" => docker(errors, data, ".dockerconfigjson"),
        "kubernetes.io/basic-auth" if !data.has("username") && !data.has("password") => {
            needs("username");
            needs("password");
        }
        "kubernetes.io/ssh-auth" if data.text("ssh-privatekey").is_empty() => {
            errors.required("data[ssh-privatekey]", "");
        }
        "kubernetes.io/tls" => {
            needs("tls.crt");
            needs("tls.key");
        }
        _ => {}
    }
}

fn docker(errors: &mut Errors, data: &Value, key: &str) {
    let path = format!("data[{key}]");
    let Some(text) = data.at(key).as_str() else { return errors.required(path, "") };
    let bytes = STANDARD.decode(text).unwrap_or_default();
    if let Err(error) = serde_json::from_slice::<Map<String, Value>>(&bytes) {
        let why = if bytes.is_empty() || error.is_eof() {
            "unexpected end of JSON input".to_owned()
        } else {
            let first = String::from_utf8_lossy(&bytes).chars().next().unwrap_or(' ');
            format!("invalid character '{first}' looking for beginning of value")
        };
        errors.invalid(path, "<secret contents redacted>", why);
    }
}

const TEMPLATE_LABELS: &str = "/spec/template/metadata/labels";

/// Where an object has something, but empty, and that is not the same as nothing.
pub(crate) fn left_empty(ty: &ResourceType, object: &Value) -> Vec<&'static str> {
    let places: &[&str] = match (&*ty.group, &*ty.plural) {
        // Its `data` is empty by default, and so never absent.
        ("", "configmaps") => &["/binaryData"],
        ("", "secrets") => &["/data"],
        ("", "replicationcontrollers") | ("apps" | "batch", _) => &[TEMPLATE_LABELS],
        ("rbac.authorization.k8s.io", _) => &["/rules"],
        _ => &[],
    };
    let empty = |place: &&&str| match object.pointer(place) {
        Some(Value::Object(map)) => map.is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        _ => false,
    };
    places.iter().filter(empty).copied().collect()
}

/// To have none becomes to have an empty one, which a sealed object must not, though nobody would
/// see it in what is stored.
pub(crate) fn emptied(old: &Value, left_empty: &[&'static str]) -> Vec<FieldError> {
    let sealed = old.flag("immutable");
    let new = left_empty.iter().filter_map(|place| place.strip_prefix('/'));
    let new = new.filter(|field| sealed && !old.has(field));
    new.map(|field| FieldError::forbidden(field, SEALED)).collect()
}

/// The object with the labels of its template empty rather than absent, if they were left so: that
/// is how they are shown when they are refused.
pub(crate) fn with_empty_labels<'v>(
    object: &'v Value,
    left_empty: &[&'static str],
) -> Cow<'v, Value> {
    if !left_empty.contains(&TEMPLATE_LABELS) {
        return Cow::Borrowed(object);
    }
    let mut object = object.clone();
    if let Some(metadata) = object.pointer_mut("/spec/template/metadata") {
        fill(object_of(metadata), "labels", Map::new());
    }
    Cow::Owned(object)
}

/// What may not change once `immutable` was set.
pub(super) fn sealed(errors: &mut Errors, old: &Value, new: &Value, fields: &[&str]) {
    if !old.flag("immutable") {
        return;
    }
    if !new.flag("immutable") {
        errors.forbidden("immutable", SEALED);
    }
    for field in fields {
        if old.at(field) != new.at(field) {
            errors.forbidden(*field, SEALED);
        }
    }
}

pub(super) fn namespace(errors: &mut Errors, object: &Value) {
    for finalizer in object.at("spec").list("finalizers") {
        let name = finalizer.as_str().unwrap_or("");
        errors.complaints("spec.finalizers", name, names::label_key(name));
        if !name.contains('/') && name != "kubernetes" {
            let why = "name is neither a standard finalizer name nor is it fully qualified";
            errors.invalid("spec.finalizers", name, why);
        }
    }
}

pub(super) fn namespace_status(errors: &mut Errors, object: &Value) {
    let phase = object.at("status").text("phase");
    match (object.at("metadata").has("deletionTimestamp"), phase) {
        (false, "Active") | (true, "Terminating") => {}
        (false, _) => errors.invalid(
            "status.Phase",
            phase,
            "may only be 'Active' if `deletionTimestamp` is empty",
        ),
        (true, _) => errors.invalid(
            "status.Phase",
            phase,
            "may only be 'Terminating' if `deletionTimestamp` is not empty",
        ),
    }
}

pub(super) fn claim_spec(errors: &mut Errors, path: &str, spec: &Value) {
    let at = |field: &str| format!("{path}.{field}");
    if spec.list("accessModes").is_empty() {
        errors.required(at("accessModes"), "at least 1 access mode is required");
    }
    errors.selector(&at("selector"), spec.at("selector"));
    access_modes(errors, &at("accessModes"), spec.list("accessModes"));
    let storage = at("resources[storage]");
    match spec.path(&["resources", "requests", "storage"]) {
        Value::Null => errors.required(storage, ""),
        amount => positive(errors, &storage, amount),
    }
    if !spec.text("storageClassName").is_empty() {
        errors.subdomain(&at("storageClassName"), spec.text("storageClassName"));
    }
    errors.maybe_one_of(at("volumeMode"), spec.at("volumeMode"), &["Block", "Filesystem"]);
}

pub(super) fn claim_update(errors: &mut Errors, old: &Value, new: &Value) {
    let (before, spec) = (old.at("spec"), new.at("spec"));
    let bound = new.at("status").text("phase") == "Bound";
    let rest = |spec: &Value| {
        let mut spec = spec.clone();
        let object = object_of(&mut spec);
        if before.text("volumeName").is_empty() {
            object.remove("volumeName");
        }
        if !before.has("storageClassName") {
            object.remove("storageClassName");
        }
        if bound {
            child(child(object, "resources"), "requests").remove("storage");
            object.remove("volumeAttributesClassName");
        }
        spec
    };
    if rest(before) != rest(spec) {
        let why = "spec is immutable after creation except resources.requests and \
                   volumeAttributesClassName for bound claims\n";
        errors.forbidden("spec", why);
    }
    let size = |object: &Value, keys: &[&str]| {
        Quantity::from_json(object.path(keys)).unwrap_or(Quantity::ZERO)
    };
    let wanted = size(new, &["spec", "resources", "requests", "storage"]);
    if wanted < size(old, &["spec", "resources", "requests", "storage"])
        && wanted <= size(old, &["status", "capacity", "storage"])
    {
        let why = "field can not be less than status.capacity";
        errors.forbidden("spec.resources.requests.storage", why);
    }
    errors.immutable("", before, spec, &["volumeMode"]);
}

pub(super) fn persistent_volume(errors: &mut Errors, object: &Value) {
    let spec = object.at("spec");
    if spec.list("accessModes").is_empty() {
        errors.required("spec.accessModes", "");
    }
    access_modes(errors, "spec.accessModes", spec.list("accessModes"));
    let capacity = spec.map("capacity").cloned().unwrap_or_default();
    if capacity.is_empty() {
        errors.required("spec.capacity", "");
    }
    if !capacity.contains_key("storage") || capacity.len() > 1 {
        let shown = if capacity.is_empty() { Value::Null } else { capacity.clone().into() };
        errors.not_supported("spec.capacity", shown, &["storage"]);
    }
    for (name, amount) in &capacity {
        positive(errors, &format!("spec.capacity[{name}]"), amount);
    }
    let policies = ["Delete", "Recycle", "Retain"];
    let policy = spec.at("persistentVolumeReclaimPolicy");
    errors.maybe_one_of("spec.persistentVolumeReclaimPolicy", policy, &policies);
    volume::source(errors, "spec", spec);
    if spec.has("csi") && spec.at("csi").text("volumeHandle").is_empty() {
        errors.required("spec.csi.volumeHandle", "");
    }
    if spec.has("local") && !spec.has("nodeAffinity") {
        errors.required("spec.nodeAffinity", "Local volume requires node affinity");
    }
    if !spec.text("storageClassName").is_empty() {
        errors.subdomain("spec.storageClassName", spec.text("storageClassName"));
    }
    errors.maybe_one_of("spec.volumeMode", spec.at("volumeMode"), &["Block", "Filesystem"]);
}

/// Where a volume lies never changes.
pub(super) fn persistent_volume_update(errors: &mut Errors, old: &Value, new: &Value) {
    if volume::differs(old.at("spec"), new.at("spec")) {
        let path = "spec.persistentvolumesource";
        errors.forbidden(path, format!("{path} is immutable after creation\n"));
    }
}

pub(super) fn node(errors: &mut Errors, object: &Value) {
    let mut seen = BTreeSet::new();
    for (index, taint) in object.at("spec").list("taints").iter().enumerate() {
        // Upstream looks for taints below metadata when it reports them.
        let path = format!("metadata.taints[{index}]");
        let (key, value, effect) = (taint.text("key"), taint.text("value"), taint.text("effect"));
        errors.complaints(&format!("{path}.key"), key, names::label_key(key));
        let complaints = names::label_value(value);
        if !complaints.is_empty() {
            errors.invalid(format!("{path}.value"), value, complaints.join(";"));
        }
        let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
        errors.one_of(format!("{path}.effect"), effect, &effects);
        if !seen.insert((effect, key)) {
            let shown = shown_struct(&[
                ("Key", taint.at("key")),
                ("Value", &value.into()),
                ("Effect", taint.at("effect")),
                ("TimeAdded", taint.at("timeAdded")),
            ]);
            errors.duplicate(path, shown);
        }
    }
    for (index, range) in object.at("spec").list("podCIDRs").iter().enumerate() {
        net::range(errors, &format!("spec.podCIDRs[{index}]"), range.as_str().unwrap_or(""));
    }
}

pub(super) fn node_update(errors: &mut Errors, old: &Value, new: &Value) {
    let (before, spec) = (old.at("spec"), new.at("spec"));
    if !before.list("podCIDRs").is_empty() && before.at("podCIDRs") != spec.at("podCIDRs") {
        let why = "node updates may not change podCIDR except from \"\" to valid";
        errors.forbidden("spec.podCIDRs", why);
    }
    if !before.text("providerID").is_empty() && before.at("providerID") != spec.at("providerID") {
        let why = "node updates may not change providerID except from \"\" to valid";
        errors.forbidden("spec.providerID", why);
    }
}

pub(super) fn endpoints(errors: &mut Errors, object: &Value) {
    for (index, subset) in object.list("subsets").iter().enumerate() {
        let path = format!("subsets[{index}]");
        if subset.list("addresses").is_empty() && subset.list("notReadyAddresses").is_empty() {
            errors.required(&*path, "must specify `addresses` or `notReadyAddresses`");
        }
        for field in ["addresses", "notReadyAddresses"] {
            for (place, address) in subset.list(field).iter().enumerate() {
                net::endpoint(errors, &format!("{path}.{field}[{place}].ip"), address.text("ip"));
                if !address.text("hostname").is_empty() {
                    let path = format!("{path}.{field}[{place}].hostname");
                    errors.label(&path, address.text("hostname"));
                }
            }
        }
        let ports = subset.list("ports");
        for (place, port) in ports.iter().enumerate() {
            let path = format!("{path}.ports[{place}]");
            match port.text("name") {
                "" if ports.len() > 1 => errors.required(format!("{path}.name"), ""),
                "" => {}
                name => errors.label(&format!("{path}.name"), name),
            }
            errors.port_number(&format!("{path}.port"), port.number("port").unwrap_or(0));
            errors.protocol(format!("{path}.protocol"), port.text("protocol"));
        }
    }
}

fn access_modes(errors: &mut Errors, path: &str, modes: &[Value]) {
    for mode in modes {
        let mode = mode.as_str().unwrap_or("");
        if !ACCESS_MODES.contains(&mode) {
            errors.not_supported(path, mode, &ACCESS_MODES);
        }
    }
    let one_pod = modes.iter().any(|mode| mode == "ReadWriteOncePod");
    let others = modes
        .iter()
        .filter_map(Value::as_str)
        .any(|mode| mode != "ReadWriteOncePod" && ACCESS_MODES.contains(&mode));
    if one_pod && others {
        errors.forbidden(path, "may not use ReadWriteOncePod with other access modes");
    }
}

fn positive(errors: &mut Errors, path: &str, amount: &Value) {
    if let Ok(amount) = Quantity::from_json(amount)
        && (amount.is_negative() || amount.is_zero())
    {
        errors.invalid(path, amount.to_string(), "must be greater than zero");
    }
}

fn decoded_len(value: &Value) -> usize {
    STANDARD.decode(value.as_str().unwrap_or("")).map_or(0, |bytes| bytes.len())
}
