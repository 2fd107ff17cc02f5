//! A ManifestWorkReplicaSet, read once into what its story needs.
//!
//! The template is kept as it was written, not as our types see it: a hub may know fields of works
//! that we do not, and dropping them on the way would be a silent change.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use cleat_api::manifestworkreplicaset as api;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;

use super::template;
use crate::id::{Id, Target};
use crate::rollout::{Amount, Invalid, Kind, Pick, Strategy};

#[derive(Clone, Debug, PartialEq)]
pub struct Set {
    pub namespace: String,
    pub name: String,
    pub uid: String,
    pub resource_version: String,
    pub generation: i64,
    pub labels: BTreeMap<String, String>,
    pub finalizers: Vec<String>,
    pub deleting: bool,
    pub cascade: Cascade,
    pub template: Value,
    pub(super) digest: String,
    /// The template has rules for the condition Progressing.
    pub(super) reports_progress: bool,
    pub placements: Vec<Reference>,
    pub status: Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cascade {
    Background,
    Foreground,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Reference {
    pub name: String,
    pub strategy: Result<Strategy, Invalid>,
}

impl Set {
    /// `data`: the object without its metadata.
    pub fn read(metadata: &ObjectMeta, data: &Value) -> Self {
        let spec = data.get("spec").unwrap_or(&Value::Null);
        let template = spec.get("manifestWorkTemplate").cloned().unwrap_or_default();
        let references = spec.get("placementRefs").and_then(Value::as_array);
        let mut placements: Vec<Reference> = Vec::new();
        for reference in references.into_iter().flatten() {
            let name = text(reference, "name");
            // One placement named twice is one placement; the first says how.
            if !placements.iter().any(|known| known.name == name) {
                let strategy = reference.get("rolloutStrategy");
                let strategy = strategy.map_or_else(|| Ok(Strategy::default()), read_strategy);
                placements.push(Reference { name: name.to_string(), strategy });
            }
        }
        Self {
            namespace: metadata.namespace.clone().unwrap_or_default(),
            name: metadata.name.clone().unwrap_or_default(),
            uid: metadata.uid.clone().unwrap_or_default(),
            resource_version: metadata.resource_version.clone().unwrap_or_default(),
            generation: metadata.generation.unwrap_or_default(),
            labels: metadata.labels.clone().unwrap_or_default(),
            finalizers: metadata.finalizers.clone().unwrap_or_default(),
            deleting: metadata.deletion_timestamp.is_some(),
            // What we do not know of a later version waits for its works, the safer of the two.
            cascade: match text(spec, "cascadeDeletionPolicy") {
                "" | "Background" => Cascade::Background,
                _ => Cascade::Foreground,
            },
            digest: template::digest(&template),
            reports_progress: reports_progress(&template),
            template,
            placements,
            status: data.get("status").cloned().unwrap_or_default(),
        }
    }

    /// How its works name it.
    pub fn key(&self) -> String {
        api::key(&self.namespace, &self.name)
    }

    pub(super) fn has_finalizer(&self) -> bool {
        self.finalizers.iter().any(|name| name == api::FINALIZER)
    }

    /// Labels cannot say more.
    pub(super) fn is_too_long(&self) -> bool {
        self.key().len() > api::LONGEST_KEY
            || self.placements.iter().any(|placement| placement.name.len() > api::LONGEST_KEY)
    }

    pub(super) fn target(&self) -> Target {
        let id = Id {
            group: "work.open-cluster-management.io".into(),
            resource: "manifestworkreplicasets".into(),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
        };
        Target { version: "v1alpha1".into(), id }
    }
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn reports_progress(template: &Value) -> bool {
    let configs = template.get("manifestConfigs").and_then(Value::as_array);
    let rules =
        configs.into_iter().flatten().filter_map(|one| one.get("conditionRules")?.as_array());
    rules.flatten().any(|rule| text(rule, "condition") == "Progressing")
}

fn read_strategy(value: &Value) -> Result<Strategy, Invalid> {
    let nothing = Value::Null;
    let part = |key: &str| value.get(key).unwrap_or(&nothing);
    let (config, kind) = match text(value, "type") {
        "" | "All" => (part("all"), Kind::All),
        "Progressive" => {
            let config = part("progressive");
            let at_once = config.get("maxConcurrency").filter(|amount| !amount.is_null());
            let at_once = at_once.map(amount).transpose()?;
            (config, Kind::Progressive { at_once, mandatory: picks(config) })
        }
        "ProgressivePerGroup" => {
            let config = part("progressivePerGroup");
            (config, Kind::ProgressivePerGroup { mandatory: picks(config) })
        }
        other => return Err(Invalid::Kind(other.to_string())),
    };
    Ok(Strategy {
        kind,
        min_success: match text(config, "minSuccessTime") {
            "" => Strategy::default().min_success,
            text => Strategy::parse_duration(text)?,
        },
        deadline: Strategy::parse_deadline(text(config, "progressDeadline"))?,
        max_failures: match config.get("maxFailures") {
            None | Some(Value::Null) => Amount::NONE,
            Some(value) => amount(value)?,
        },
    })
}

fn amount(value: &Value) -> Result<Amount, Invalid> {
    match value {
        Value::String(text) => Amount::parse(text),
        other => Amount::parse(&other.to_string()),
    }
}

fn picks(config: &Value) -> Vec<Pick> {
    let groups = config.get("mandatoryDecisionGroups").and_then(Value::as_array);
    let pick = |group: &Value| match text(group, "groupName") {
        "" => Pick::Index(group.get("groupIndex").and_then(Value::as_i64).unwrap_or_default()),
        name => Pick::Name(name.to_string()),
    };
    groups.into_iter().flatten().map(pick).collect()
}
