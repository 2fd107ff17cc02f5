//! The resource type a CustomResourceDefinition stands for.

use std::{cmp::Ordering, sync::Arc};

use serde_json::Value;

use super::{flag, storage_version, text_at, texts_at, versions};
use crate::{
    discovery::newer_first,
    resource::{Column, Origin, ResourceType, Root, ScalePaths, Subresource, Version},
    schema::{LoadError, Schemas},
};

const VERBS: [&str; 8] =
    ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
/// What is left of a resource that is going away.
const VERBS_WHILE_TERMINATING: [&str; 5] = ["delete", "deletecollection", "get", "list", "watch"];

/// Describes the resource of a definition for the registry, under the names it was accepted with.
pub fn resource_type(crd: &Value) -> Result<ResourceType, LoadError> {
    let name = |key: &str| match text_at(crd, &format!("/status/acceptedNames/{key}")) {
        "" => text_at(crd, &format!("/spec/names/{key}")).into(),
        accepted => accepted.into(),
    };
    let list = |key: &str| -> Vec<Box<str>> {
        let accepted = texts_at(crd, &format!("/status/acceptedNames/{key}"));
        accepted.into_iter().map(Box::from).collect()
    };
    let kind: Box<str> = name("kind");
    let mut all = versions(crd)
        .iter()
        .map(|version| one_version(crd, version, &kind))
        .collect::<Result<Vec<_>, _>>()?;
    all.sort_by(|left, right| by_priority(&left.name, &right.name));
    Ok(ResourceType {
        group: text_at(crd, "/spec/group").into(),
        plural: name("plural"),
        singular: name("singular"),
        list_kind: name("listKind"),
        short_names: list("shortNames"),
        categories: list("categories"),
        namespaced: text_at(crd, "/spec/scope") == "Namespaced",
        versions: all,
        storage_version: storage_version(crd).unwrap_or_default().into(),
        origin: Origin::Custom {
            name: text_at(crd, "/metadata/name").into(),
            uid: text_at(crd, "/metadata/uid").into(),
        },
        kind,
    })
}

fn one_version(crd: &Value, version: &Value, kind: &str) -> Result<Version, LoadError> {
    let schema = match version.pointer("/schema/openAPIV3Schema") {
        None | Some(Value::Null) => None,
        Some(schema) => {
            let (arena, id) = Schemas::from_single(schema)?;
            Some(Root { schemas: Arc::new(arena), id })
        }
    };
    let name = text_at(version, "/name");
    let deprecation =
        flag(version, "deprecated").then(|| match text_at(version, "/deprecationWarning") {
            "" => deprecated(crd, name, kind).into(),
            warning => warning.into(),
        });
    let scale = version.pointer("/subresources/scale").filter(|scale| !scale.is_null());
    let status = version.pointer("/subresources/status").filter(|status| !status.is_null());
    let subresource = |name: &str, group: &str, version: &str, kind: &str| Subresource {
        name: name.into(),
        group: group.into(),
        version: version.into(),
        kind: kind.into(),
        verbs: ["get", "patch", "update"].map(Box::from).into(),
    };
    let mut subresources = Vec::new();
    subresources.extend(status.map(|_| subresource("status", "", "", kind)));
    subresources.extend(scale.map(|_| subresource("scale", "autoscaling", "v1", "Scale")));
    let columns = version.get("additionalPrinterColumns").and_then(Value::as_array);
    let selectable = version.get("selectableFields").and_then(Value::as_array);
    Ok(Version {
        name: name.into(),
        served: flag(version, "served"),
        deprecation,
        schema,
        verbs: match is_terminating(crd) {
            true => VERBS_WHILE_TERMINATING.map(Box::from).into(),
            false => VERBS.map(Box::from).into(),
        },
        subresources,
        scale: scale.map(|scale| ScalePaths {
            spec_replicas: text_at(scale, "/specReplicasPath").into(),
            status_replicas: text_at(scale, "/statusReplicasPath").into(),
            label_selector: Some(text_at(scale, "/labelSelectorPath"))
                .filter(|path| !path.is_empty())
                .map(Box::from),
        }),
        columns: columns.into_iter().flatten().map(column).collect(),
        selectable_fields: selectable
            .into_iter()
            .flatten()
            .map(|field| text_at(field, "/jsonPath").into())
            .collect(),
    })
}

fn column(column: &Value) -> Column {
    let priority = column.get("priority").and_then(Value::as_i64).unwrap_or(0);
    Column {
        name: text_at(column, "/name").into(),
        kind: text_at(column, "/type").into(),
        format: text_at(column, "/format").into(),
        description: text_at(column, "/description").into(),
        priority: i32::try_from(priority).unwrap_or(i32::MAX),
        json_path: text_at(column, "/jsonPath").into(),
    }
}

fn is_terminating(crd: &Value) -> bool {
    let conditions = crd.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().any(|condition| {
        text_at(condition, "/type") == "Terminating" && text_at(condition, "/status") == "True"
    })
}

/// `v2` before `v1` before `v2beta1` before `v1alpha2`, and other names last, in order of name.
pub(super) fn by_priority(left: &str, right: &str) -> Ordering {
    match (rank(left), rank(right)) {
        (Some(left), Some(right)) => right.cmp(&left),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => left.cmp(right),
    }
}

/// How stable, which major, which minor.
fn rank(version: &str) -> Option<(u8, u64, u64)> {
    let rest = version.strip_prefix('v')?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (major, rest) = rest.split_at(end);
    let major = major.parse().ok().filter(|major| *major > 0)?;
    let minor = |text: &str| text.parse().ok().filter(|minor| *minor > 0);
    match (rest, rest.strip_prefix("beta"), rest.strip_prefix("alpha")) {
        ("", _, _) => Some((3, major, 0)),
        (_, Some(rest), _) => Some((2, major, minor(rest)?)),
        (_, _, Some(rest)) => Some((1, major, minor(rest)?)),
        _ => None,
    }
}

/// The warning for a deprecated version that brings none of its own.
fn deprecated(crd: &Value, name: &str, kind: &str) -> String {
    let group = text_at(crd, "/spec/group");
    let mut newer: Vec<&str> = crd
        .pointer("/spec/versions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter(|version| flag(version, "served") && !flag(version, "deprecated"))
        .map(|version| text_at(version, "/name"))
        .filter(|other| newer_first(other, name).is_lt())
        .collect();
    newer.sort_by(|a, b| newer_first(a, b));
    match newer.first() {
        Some(newest) => {
            format!("{group}/{name} {kind} is deprecated; use {group}/{newest} {kind}")
        }
        None => format!("{group}/{name} {kind} is deprecated"),
    }
}
