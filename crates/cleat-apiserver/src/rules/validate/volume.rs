//! Volumes of pods. Sources that need a cloud or a storage system are only counted.

use std::collections::BTreeSet;

use serde_json::Value;

use super::check::Errors;
use super::container::no_back_steps;
use crate::quantity::Quantity;
use crate::rules::read::Read;

const MODE: &str = "must be a number between 0 and 0777 (octal), both inclusive";
const ONLY_ONE: &str = "may not specify more than 1 volume type";

/// In the order in which kube-apiserver looks at them.
const SOURCES: [&str; 31] = [
    "emptyDir",
    "hostPath",
    "gitRepo",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "secret",
    "nfs",
    "iscsi",
    "glusterfs",
    "flocker",
    "persistentVolumeClaim",
    "rbd",
    "cinder",
    "cephfs",
    "quobyte",
    "downwardAPI",
    "fc",
    "flexVolume",
    "configMap",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "storageos",
    "projected",
    "scaleIO",
    "csi",
    "ephemeral",
    "image",
    "local",
];

/// Checks the volumes and gives the names of the good ones, which alone can be mounted.
pub(super) fn volumes<'a>(
    errors: &mut Errors,
    path: &str,
    volumes: &'a [Value],
    replaced: &BTreeSet<&str>,
) -> BTreeSet<&'a str> {
    let mut good = BTreeSet::new();
    for (index, volume) in volumes.iter().enumerate() {
        let name = volume.text("name");
        if replaced.contains(name) {
            continue;
        }
        let path = format!("{path}[{index}]");
        let before = errors.0.len();
        source(errors, &path, volume);
        match name {
            "" => errors.required(format!("{path}.name"), ""),
            name => errors.label(&format!("{path}.name"), name),
        }
        if good.contains(name) {
            errors.duplicate(format!("{path}.name"), name);
        }
        if errors.0.len() == before {
            good.insert(name);
        }
    }
    good
}

/// Exactly one source; also that of a PersistentVolume, whose fields have the same names.
pub(super) fn source(errors: &mut Errors, path: &str, volume: &Value) {
    let mut found = false;
    for field in SOURCES {
        let source = volume.at(field);
        if source.is_null() {
            continue;
        }
        let path = format!("{path}.{field}");
        if found {
            errors.forbidden(path, ONLY_ONE);
            continue;
        }
        found = true;
        one(errors, &path, field, source);
    }
    if !found {
        errors.required(path, "must specify a volume type");
    }
}

/// Whether two volumes have different sources.
pub(super) fn differs(one: &Value, other: &Value) -> bool {
    SOURCES.iter().any(|source| one.at(source) != other.at(source))
}

fn one(errors: &mut Errors, path: &str, kind: &str, source: &Value) {
    match kind {
        "emptyDir" => {
            let limit = Quantity::from_json(source.at("sizeLimit"));
            if limit.is_ok_and(Quantity::is_negative) {
                let why = "SizeLimit field must be a valid resource quantity";
                errors.forbidden(format!("{path}.sizeLimit"), why);
            }
        }
        "hostPath" => match source.text("path") {
            "" => errors.required(format!("{path}.path"), ""),
            target => {
                no_back_steps(errors, &format!("{path}.path"), target);
                let kinds = [
                    "",
                    "BlockDevice",
                    "CharDevice",
                    "Directory",
                    "DirectoryOrCreate",
                    "File",
                    "FileOrCreate",
                    "Socket",
                ];
                errors.maybe_one_of(format!("{path}.type"), source.at("type"), &kinds);
            }
        },
        "secret" | "configMap" => {
            let field = if kind == "secret" { "secretName" } else { "name" };
            if source.text(field).is_empty() {
                errors.required(format!("{path}.{field}"), "");
            }
            mode(errors, &format!("{path}.defaultMode"), source.at("defaultMode"));
            items(errors, &format!("{path}.items"), source.list("items"));
        }
        "persistentVolumeClaim" if source.text("claimName").is_empty() => {
            errors.required(format!("{path}.claimName"), "");
        }
        "nfs" => {
            for field in ["server", "path"] {
                if source.text(field).is_empty() {
                    errors.required(format!("{path}.{field}"), "");
                }
            }
            let target = source.text("path");
            if !target.is_empty() && !target.starts_with('/') {
                errors.invalid(format!("{path}.path"), target, "must be an absolute path");
            }
        }
        "csi" if source.text("driver").is_empty() => errors.required(format!("{path}.driver"), ""),
        "projected" => {
            mode(errors, &format!("{path}.defaultMode"), source.at("defaultMode"));
            projected(errors, path, source.list("sources"));
        }
        _ => {}
    }
}

fn projected(errors: &mut Errors, path: &str, sources: &[Value]) {
    for (index, source) in sources.iter().enumerate() {
        let path = format!("{path}.sources[{index}]");
        for kind in ["secret", "configMap"] {
            let part = source.at(kind);
            if !part.is_null() {
                if part.text("name").is_empty() {
                    errors.required(format!("{path}.{kind}.name"), "");
                }
                items(errors, &format!("{path}.{kind}.items"), part.list("items"));
            }
        }
        let token = source.at("serviceAccountToken");
        if !token.is_null() {
            let path = format!("{path}.serviceAccountToken");
            if token.number("expirationSeconds").is_some_and(|seconds| seconds < 600) {
                let why = "may not specify a duration less than 10 minutes";
                let seconds = token.at("expirationSeconds").clone();
                errors.invalid(format!("{path}.expirationSeconds"), seconds, why);
            }
            if token.text("path").is_empty() {
                errors.required(format!("{path}.path"), "");
            }
        }
    }
}

fn items(errors: &mut Errors, path: &str, items: &[Value]) {
    for (index, item) in items.iter().enumerate() {
        let path = format!("{path}[{index}]");
        for field in ["key", "path"] {
            if item.text(field).is_empty() {
                errors.required(format!("{path}.{field}"), "");
            }
        }
        let target = item.text("path");
        if target.starts_with('/') {
            errors.invalid(format!("{path}.path"), target, "must be a relative path");
        }
        no_back_steps(errors, &format!("{path}.path"), target);
        if target.starts_with("..") && !target.starts_with("../") && target != ".." {
            errors.invalid(format!("{path}.path"), target, "must not start with '..'");
        }
        mode(errors, &format!("{path}.mode"), item.at("mode"));
    }
}

fn mode(errors: &mut Errors, path: &str, mode: &Value) {
    if let Some(bits) = mode.as_i64()
        && !(0..=0o777).contains(&bits)
    {
        errors.invalid(path, bits, MODE);
    }
}
