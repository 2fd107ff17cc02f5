//! What a work asks for, manifest by manifest, as the planner wants it.
//!
//! Which resource a kind is only a cluster can say; everything else is here.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::sync::Arc;
use alloc::vec::Vec;

use cleat_api::manifestwork::{
    ConditionRule, FeedbackRule, FeedbackScrapeType, ManifestConfigOption, ManifestResourceMeta,
    ManifestWorkSpec, ManifestWorkStatus, ServerSideApplyConfig, UpdateStrategyType, condition,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::matching;
use super::observed::{Judged, Permission, Place, Previous, ReadOnly, Strategy, Wanted};
use crate::id::{Id, Target};

/// A manifest by what it says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    pub api_version: String,
    pub kind: String,
    pub namespace: String,
    pub name: String,
}

/// What a cluster says a kind is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mapping {
    Mapped { group: String, version: String, resource: String, namespaced: bool },
    NoSuchKind,
    Unknown(String),
}

/// Reads what a manifest says of itself. The error is for users.
pub fn ask(manifest: &Value) -> Result<Asked, String> {
    let text =
        |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_string();
    let metadata = manifest.get("metadata");
    let field = |name: &str| text(metadata.and_then(|metadata| metadata.get(name)));
    let asked = Asked {
        api_version: text(manifest.get("apiVersion")),
        kind: text(manifest.get("kind")),
        namespace: field("namespace"),
        name: field("name"),
    };
    for (what, value) in
        [("apiVersion", &asked.api_version), ("kind", &asked.kind), ("metadata.name", &asked.name)]
    {
        if value.is_empty() {
            return Err(format!("the manifest has no {what}"));
        }
    }
    Ok(asked)
}

/// Where a manifest goes, now that the cluster has said what its kind is.
pub fn place(asked: &Asked, mapping: Mapping) -> Place {
    let Asked { api_version, kind, namespace, name } = asked.clone();
    let group = api_version.split_once('/').map_or("", |(group, _)| group).to_string();
    match mapping {
        Mapping::Mapped { namespaced: true, resource, .. } if namespace.is_empty() => {
            Place::Nowhere {
                group,
                namespace,
                name,
                message: format!(
                    "{resource} are namespaced, and the manifest has no metadata.namespace"
                ),
            }
        }
        Mapping::Mapped { group, version, resource, namespaced } => {
            let namespace = if namespaced { namespace } else { String::new() };
            Place::At(Target { version, id: Id { group, resource, namespace, name } })
        }
        Mapping::NoSuchKind => Place::Nowhere {
            group,
            namespace,
            name,
            message: format!("the server doesn't have a resource type {kind:?} in {api_version}"),
        },
        Mapping::Unknown(message) => Place::Unknown { group, namespace, name, message },
    }
}

/// The rules that apply to one object.
#[derive(Clone, Debug, Default)]
pub struct Rules<'a> {
    pub feedback: &'a [FeedbackRule],
    pub conditions: &'a [ConditionRule],
    pub scrape: FeedbackScrapeType,
}

/// The rules that a work has for an object.
pub fn rules<'a>(configs: &'a [ManifestConfigOption], id: &Id) -> Rules<'a> {
    let some = |list: &'a [FeedbackRule]| (!list.is_empty()).then_some(list);
    let feedback = matching::first(configs, id, identifier, |config| some(&config.feedback_rules));
    let conditions = matching::first(configs, id, identifier, |config| {
        (!config.condition_rules.is_empty()).then_some(config.condition_rules.as_slice())
    });
    let scrape =
        matching::last(configs, id, identifier, |config| Some(config.feedback_scrape_type));
    Rules {
        feedback: feedback.unwrap_or_default(),
        conditions: conditions.unwrap_or_default(),
        scrape: scrape.unwrap_or_default(),
    }
}

/// Whether a work only looks at an object.
pub fn is_read_only(configs: &[ManifestConfigOption], id: &Id) -> bool {
    matches!(strategy(configs, id), Ok(Strategy::ReadOnly))
}

/// Those of `ids` that a work only looks at.
pub fn read_only<'a>(
    configs: &[ManifestConfigOption],
    ids: impl Iterator<Item = &'a Id>,
) -> ReadOnly {
    ReadOnly(ids.filter(|id| is_read_only(configs, id)).cloned().collect())
}

fn strategy(configs: &[ManifestConfigOption], id: &Id) -> Result<Strategy, String> {
    let found = matching::first(configs, id, identifier, |config| config.update_strategy.as_ref());
    let Some(found) = found else { return Ok(Strategy::Update) };
    match found.type_ {
        UpdateStrategyType::Update => Ok(Strategy::Update),
        UpdateStrategyType::CreateOnly => Ok(Strategy::CreateOnly),
        UpdateStrategyType::ReadOnly => Ok(Strategy::ReadOnly),
        UpdateStrategyType::ServerSideApply => {
            let default = ServerSideApplyConfig::default();
            let config = found.server_side_apply.as_ref().unwrap_or(&default);
            Ok(Strategy::ServerSideApply {
                manager: config.field_manager.clone(),
                force: config.force,
                ignore: config.ignore_fields.clone(),
            })
        }
        UpdateStrategyType::Unknown => {
            Err("updateStrategy has a type that this agent does not know".into())
        }
    }
}

fn identifier(config: &ManifestConfigOption) -> Id {
    let named = &config.resource_identifier;
    Id {
        group: named.group.clone(),
        resource: named.resource.clone(),
        namespace: named.namespace.clone(),
        name: named.name.clone(),
    }
}

/// All manifests of a work. `mappings` says what their kinds are, by apiVersion and kind.
pub fn wanted(
    spec: ManifestWorkSpec,
    status: &ManifestWorkStatus,
    mappings: &BTreeMap<(String, String), Mapping>,
) -> Vec<Wanted> {
    let ManifestWorkSpec { workload, manifest_configs, .. } = spec;
    let complete = complete(status);
    let manifests = workload.manifests.into_iter();
    manifests.map(|manifest| one(manifest.0, &manifest_configs, &complete, mappings)).collect()
}

fn one(
    manifest: Value,
    configs: &[ManifestConfigOption],
    complete: &BTreeSet<Id>,
    mappings: &BTreeMap<(String, String), Mapping>,
) -> Wanted {
    let (api_version, kind, mut place) = match ask(&manifest) {
        Err(problem) => (String::new(), String::new(), Place::Malformed(problem)),
        Ok(asked) => {
            let key = (asked.api_version.clone(), asked.kind.clone());
            let unasked = || Mapping::Unknown("the cluster was not asked about the kind".into());
            let mapping = mappings.get(&key).cloned().unwrap_or_else(unasked);
            let place = place(&asked, mapping);
            (asked.api_version, asked.kind, place)
        }
    };
    let strategy = match place.id().map(|id| strategy(configs, id)) {
        Some(Ok(strategy)) => strategy,
        None => Strategy::Update,
        Some(Err(message)) => {
            if let Place::At(Target { id: Id { group, namespace, name, .. }, .. }) = place {
                place = Place::Nowhere { group, namespace, name, message };
            }
            Strategy::ReadOnly
        }
    };
    Wanted {
        digest: digest(&manifest, &strategy),
        complete: place.id().is_some_and(|id| complete.contains(id)),
        place,
        api_version,
        kind,
        manifest: Arc::new(manifest),
        strategy,
        previous: Previous::Unknown,
        permission: Permission::Granted,
        judged: Judged::default(),
    }
}

fn digest(manifest: &Value, strategy: &Strategy) -> u64 {
    let mut hash = Sha256::new();
    hash.update(manifest.to_string());
    hash.update(format!("{strategy:?}"));
    hash.finalize().iter().take(8).fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

/// The objects of which a manifest's own condition says that it is complete.
fn complete(status: &ManifestWorkStatus) -> BTreeSet<Id> {
    let says = |c: &Condition| c.type_ == condition::COMPLETE && c.status == "True";
    let manifests = status.resource_status.manifests.iter();
    manifests
        .filter(|manifest| manifest.conditions.iter().any(says))
        .map(|manifest| {
            let ManifestResourceMeta { group, resource, namespace, name, .. } =
                manifest.resource_meta.clone();
            Id { group, resource, namespace, name }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_manifest_says_what_it_lacks() {
        for (manifest, lacks) in [
            (json!(null), "apiVersion"),
            (json!([]), "apiVersion"),
            (json!({ "apiVersion": "v1" }), "kind"),
            (
                json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "generateName": "x" } }),
                "metadata.name",
            ),
        ] {
            assert_eq!(ask(&manifest), Err(format!("the manifest has no {lacks}")));
        }
    }

    #[test]
    fn a_namespace_is_asked_for_where_it_is_needed_and_dropped_where_not() {
        let asked = |namespace: &str| Asked {
            api_version: "v1".into(),
            kind: "X".into(),
            namespace: namespace.into(),
            name: "x".into(),
        };
        let mapped = |namespaced| Mapping::Mapped {
            group: String::new(),
            version: "v1".into(),
            resource: "xs".into(),
            namespaced,
        };
        assert!(matches!(place(&asked(""), mapped(true)), Place::Nowhere { .. }));
        let at = place(&asked("n"), mapped(false));
        assert_eq!(at.id().map(|id| id.namespace.as_str()), Some(""));
        assert_eq!(
            place(&asked("n"), mapped(true)).id().map(|id| id.namespace.as_str()),
            Some("n")
        );
    }
}
