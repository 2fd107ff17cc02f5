//! What may be on a cluster though its agent never told of it: what the manifests of a work and the
//! object templates of a policy name, and no status does.
//!
//! The hub's status may be older than the cluster. Should nobody ever ask the cluster again, this is all
//! that is known. Which resource serves a kind only the cluster can say, so the kind is noted with it.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use cleat_api::leftoverrecord::{LeftObject, Stays};
use cleat_api::manifestwork::{Keep, ManifestWork, ManifestWorkStatus};
use cleat_api::policy::PolicySpec;
use serde_json::Value;

use super::clean::id;
use super::keeping;
use crate::id::Id;
use crate::work::ownership::declared;

/// Of the manifests of a work what nobody told to be there; `known` was told.
pub(super) fn of_work(
    work: &ManifestWork,
    status: &ManifestWorkStatus,
    known: &[LeftObject],
) -> Vec<LeftObject> {
    let mut found = BTreeSet::new();
    for manifest in &work.spec.workload.manifests {
        let Some(mut object) = named(&manifest.0) else { continue };
        // Of its other objects the agent may have told how the kind is served.
        let told = status.resource_status.manifests.iter().map(|one| &one.resource_meta);
        let mut alike = told.filter(|meta| meta.group == object.group && meta.kind == object.kind);
        let alike = alike.find(|meta| !meta.resource.is_empty());
        if let Some(meta) = alike {
            object.resource.clone_from(&meta.resource);
        }
        if known.iter().any(|one| is_same(one, &object)) {
            continue;
        }
        object.stays = match alike {
            Some(_) => declared(work, &id(&object)),
            None => declared_of_any(work, &object),
        };
        object.source = work.metadata.name.clone().unwrap_or_default();
        found.insert(object);
    }
    found.into_iter().collect()
}

/// What a work declares about an object whose resource is a guess. Whatever it says of one of the same
/// group, namespace and name may mean it, and must not be the reason to delete it.
fn declared_of_any(work: &ManifestWork, object: &LeftObject) -> Option<Stays> {
    let keep = work.spec.delete_option.as_ref().and_then(|option| option.parse().ok());
    let rules = match &keep {
        Some(Keep::Listed(rules)) => rules.as_slice(),
        _ => &[],
    };
    let rules = rules.iter().map(|rule| &rule.resource);
    let configs = work.spec.manifest_configs.iter().map(|config| &config.resource_identifier);
    // A pattern means many, so that it has to be about the kind.
    let configs = configs
        .filter(|one| !one.name.contains('*') || keeping::is_plural(&one.resource, &object.kind));
    let named = rules.chain(configs.map(|one| &one.resource)).chain([&object.resource]);
    let said =
        named.map(|resource| declared(work, &Id { resource: resource.clone(), ..id(object) }));
    said.max().flatten()
}

/// Of the object templates of a policy what nobody told to be there. What is named only on the cluster,
/// or in namespaces that are chosen there, nobody here can know.
pub(super) fn of_policy(policy: &str, spec: &PolicySpec, known: &[LeftObject]) -> Vec<LeftObject> {
    let mut found = BTreeSet::new();
    for template in spec.policy_templates.iter().map(|one| &one.object_definition) {
        if spec.disabled || !keeping::enforces(spec, template) {
            continue;
        }
        let wanted = template.pointer("/spec/object-templates").and_then(Value::as_array);
        for wanted in wanted.into_iter().flatten() {
            let kind = text(wanted, "/complianceType");
            let object = wanted.get("objectDefinition").and_then(named);
            let Some(object) = object.filter(|_| !kind.eq_ignore_ascii_case("mustnothave")) else {
                continue;
            };
            for namespace in namespaces(&object, template) {
                let object = LeftObject {
                    namespace,
                    source: policy.to_owned(),
                    unmarked: true,
                    ..object.clone()
                };
                let stays = keeping::declared(Some(spec), &object);
                if !known.iter().any(|one| is_same(one, &object)) {
                    found.insert(LeftObject { stays, ..object });
                }
            }
        }
    }
    found.into_iter().collect()
}

/// What a manifest names, if it does.
fn named(manifest: &Value) -> Option<LeftObject> {
    let [api_version, kind] = ["/apiVersion", "/kind"].map(|pointer| text(manifest, pointer));
    let [name, namespace] = ["/metadata/name", "/metadata/namespace"].map(|at| text(manifest, at));
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let all = [api_version, kind, name];
    // What is in braces is made of something on the cluster.
    if all.contains(&"") || all.iter().chain([&namespace]).any(|one| one.contains("{{")) {
        return None;
    }
    Some(LeftObject {
        group: group.to_owned(),
        version: version.to_owned(),
        resource: plural(kind),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        kind: kind.to_owned(),
        believed: true,
        ..LeftObject::default()
    })
}

/// In which namespaces a template wants an object: the one it says, or those that its selector names.
fn namespaces(object: &LeftObject, template: &Value) -> Vec<String> {
    let Some(selector) = template.pointer("/spec/namespaceSelector") else {
        return vec![object.namespace.clone()];
    };
    if !object.namespace.is_empty() {
        return vec![object.namespace.clone()];
    }
    let list = |field: &str| selector.get(field).and_then(Value::as_array).into_iter().flatten();
    let plain = |name: &&str| !name.contains(['*', '?', '[', '{']);
    let named = list("include").filter_map(Value::as_str).filter(plain);
    named.map(ToOwned::to_owned).collect()
}

/// Whether what was told is what is supposed. Of one of them only the kind may be known.
fn is_same(told: &LeftObject, supposed: &LeftObject) -> bool {
    let unsaid = [&told.namespace, &supposed.namespace].into_iter().any(String::is_empty);
    told.group == supposed.group
        && told.name == supposed.name
        && (unsaid || told.namespace == supposed.namespace)
        && (told.resource == supposed.resource
            || keeping::is_plural(&told.resource, &supposed.kind))
}

/// How the resource of a kind is most likely called.
fn plural(kind: &str) -> String {
    let kind = kind.to_ascii_lowercase();
    let ends = |all: &[&str]| all.iter().any(|end| kind.ends_with(end));
    match kind.strip_suffix('y') {
        Some(stem) if !ends(&["ay", "ey", "oy", "uy"]) => format!("{stem}ies"),
        _ if ends(&["s", "x", "z", "ch", "sh"]) => format!("{kind}es"),
        _ => format!("{kind}s"),
    }
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString as _;

    use serde_json::json;

    use super::*;

    fn places(all: &[LeftObject]) -> Vec<String> {
        assert!(all.iter().all(|one| one.believed && one.uid.is_empty() && !one.kind.is_empty()));
        all.iter().map(|one| super::super::clean::id(one).to_string()).collect()
    }

    #[test]
    fn resources_are_called_after_their_kinds() {
        for (kind, resource) in [
            ("ConfigMap", "configmaps"),
            ("NetworkPolicy", "networkpolicies"),
            ("Ingress", "ingresses"),
            ("Gateway", "gateways"),
            ("Box", "boxes"),
        ] {
            assert_eq!(plural(kind), resource);
        }
    }

    #[test]
    fn what_a_work_brought_and_nobody_told_was_on_no_record_of_a_lost_cluster() {
        let manifest = |kind: &str, name: &str| {
            json!({
                "apiVersion": "v1", "kind": kind,
                "metadata": { "name": name, "namespace": "shop" },
            })
        };
        let work: ManifestWork = serde_json::from_value(json!({
            "metadata": { "name": "w", "finalizers": [crate::work::WORK_FINALIZER] },
            "spec": {
                "workload": { "manifests": [
                    manifest("ConfigMap", "told"), manifest("ConfigMap", "untold"),
                    manifest("Secret", "kept"),
                    { "apiVersion": "v1", "kind": "Pod", "metadata": { "generateName": "p" } },
                ] },
                "deleteOption": {
                    "propagationPolicy": "SelectivelyOrphan",
                    "selectivelyOrphans": { "orphaningRules": [
                        { "resource": "secrets", "namespace": "shop", "name": "kept" },
                    ] },
                },
            },
            "status": { "resourceStatus": { "manifests": [{ "conditions": [], "resourceMeta": {
                "ordinal": 0, "version": "v1", "kind": "ConfigMap", "resource": "configmaps",
                "namespace": "shop", "name": "told", "uid": "u",
            } }] } },
        }))
        .unwrap();
        let carried = super::super::carried::Carried::work(&work);
        assert_eq!(carried.objects.len(), 1);
        assert_eq!(places(&carried.supposed), ["configmaps shop/untold", "secrets shop/kept"]);
        assert!(carried.supposed[1].stays.is_some() && carried.supposed[0].stays.is_none());
        // What no agent has taken up is nowhere.
        let mut new = work;
        new.metadata.finalizers = None;
        assert_eq!(super::super::carried::Carried::work(&new).supposed, []);
    }

    #[test]
    fn what_was_declared_to_stay_was_to_go_where_its_plural_was_guessed_wrong() {
        let manifest = |name: &str| {
            json!({
                "apiVersion": "v1", "kind": "Endpoints",
                "metadata": { "name": name, "namespace": "shop" },
            })
        };
        let rule =
            |name: &str| json!({ "resource": "endpoints", "namespace": "shop", "name": name });
        let work: ManifestWork = serde_json::from_value(json!({
            "metadata": { "name": "w", "finalizers": [crate::work::WORK_FINALIZER] },
            "spec": {
                "workload": { "manifests": [manifest("goes"), manifest("kept"), manifest("seen")] },
                "deleteOption": {
                    "propagationPolicy": "SelectivelyOrphan",
                    "selectivelyOrphans": { "orphaningRules": [rule("kept")] },
                },
                "manifestConfigs": [
                    { "resourceIdentifier": rule("s*"), "updateStrategy": { "type": "ReadOnly" } },
                ],
            },
        }))
        .unwrap();
        let supposed = super::super::carried::Carried::work(&work).supposed;
        let stays: Vec<_> = supposed.iter().map(|one| (&*one.name, one.stays)).collect();
        let (kept, seen) = (Some(Stays::Declared), Some(Stays::NotOurs));
        assert_eq!(stays, [("goes", None), ("kept", kept), ("seen", seen)]);
    }

    #[test]
    fn what_a_policy_made_and_nobody_told_was_on_no_record_of_a_lost_cluster() {
        let template = |action: &str, prune: &str, compliance: &str, name: &str, more: Value| {
            let mut spec = json!({
                "remediationAction": action, "pruneObjectBehavior": prune,
                "object-templates": [{ "complianceType": compliance, "objectDefinition": {
                    "apiVersion": "v1", "kind": "ConfigMap",
                    "metadata": { "name": name, "namespace": "shop" },
                } }],
            });
            if !more.is_null() {
                let object = spec.pointer_mut("/object-templates/0/objectDefinition/metadata");
                object.unwrap().as_object_mut().unwrap().remove("namespace");
                spec["namespaceSelector"] = more;
            }
            json!({ "objectDefinition": { "spec": spec } })
        };
        let spec: PolicySpec = serde_json::from_value(json!({
            "disabled": false,
            "policy-templates": [
                template("enforce", "DeleteAll", "musthave", "told", Value::Null),
                template("enforce", "DeleteAll", "musthave", "goes", Value::Null),
                template("enforce", "None", "mustonlyhave", "stays", Value::Null),
                template("enforce", "None", "mustnothave", "never", Value::Null),
                template("inform", "None", "musthave", "looked-at", Value::Null),
                template("enforce", "None", "musthave", "{{ .x }}", Value::Null),
                template("enforce", "None", "musthave", "in", json!({ "include": ["a", "b*"] })),
            ],
        }))
        .unwrap();
        let known = LeftObject {
            resource: "configmaps".to_string(),
            namespace: "shop".to_string(),
            name: "told".to_string(),
            ..LeftObject::default()
        };
        let all = of_policy("root.p", &spec, &[known]);
        let expected = ["configmaps a/in", "configmaps shop/goes", "configmaps shop/stays"];
        assert_eq!(places(&all), expected);
        let stays: Vec<bool> = all.iter().map(|one| one.stays.is_some()).collect();
        assert_eq!(stays, [true, false, true]);
        assert!(all.iter().all(|one| one.unmarked && one.source == "root.p"));
        let disabled = PolicySpec { disabled: true, ..spec };
        assert_eq!(of_policy("root.p", &disabled, &[]), []);
    }
}
