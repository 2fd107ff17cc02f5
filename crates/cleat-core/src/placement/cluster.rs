//! What a placement sees of a cluster.

use alloc::borrow::ToOwned as _;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use cleat_api::addonplacementscore::AddOnPlacementScoreStatus;
use cleat_api::managedcluster::{Taint, condition, taint};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

/// Two that are equal are chosen alike.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cluster {
    pub name: String,
    pub labels: BTreeMap<String, String>,
    /// What the cluster says of itself.
    pub claims: BTreeMap<String, String>,
    pub taints: Vec<Taint>,
    /// What it has for workloads, as quantities.
    pub allocatable: BTreeMap<String, String>,
    pub deleting: bool,
    /// All of it that an expression may ask for.
    pub object: Value,
}

impl Cluster {
    /// `data`: the object without its metadata. What cannot be read is as if it were not said.
    pub fn read(metadata: &ObjectMeta, data: &Value) -> Self {
        let name = metadata.name.clone().unwrap_or_default();
        let at = |path: &str| data.pointer(path);
        let taints = at("/spec/taints").and_then(Value::as_array).into_iter().flatten();
        let taints = taints.filter_map(|taint| serde_json::from_value(taint.clone()).ok());
        let claims = at("/status/clusterClaims").and_then(Value::as_array).into_iter().flatten();
        let claims = claims.filter_map(|claim| {
            let text = |field: &str| Some(claim.get(field)?.as_str()?.to_owned());
            Some((text("name")?, text("value")?))
        });
        let allocatable =
            at("/status/allocatable").and_then(Value::as_object).into_iter().flatten();
        let allocatable = allocatable.filter_map(|(key, quantity)| match quantity {
            Value::String(text) => Some((key.clone(), text.clone())),
            Value::Number(number) => Some((key.clone(), alloc::format!("{number}"))),
            _ => None,
        });
        let object = json!({
            "apiVersion": "cluster.open-cluster-management.io/v1",
            "kind": "ManagedCluster",
            "metadata": {
                "name": name,
                "labels": metadata.labels.clone().unwrap_or_default(),
                "annotations": metadata.annotations.clone().unwrap_or_default(),
            },
            "spec": data.get("spec").cloned().unwrap_or_else(|| json!({})),
            "status": data.get("status").cloned().unwrap_or_else(|| json!({})),
        });
        Self {
            labels: metadata.labels.clone().unwrap_or_default(),
            claims: claims.collect(),
            taints: taints.collect(),
            allocatable: allocatable.collect(),
            deleting: metadata.deletion_timestamp.is_some(),
            object,
            name,
        }
    }
}

/// What those ask who carry things to clusters.
impl Cluster {
    /// Whether the hub does not hear of it, or hears that it is not well.
    pub fn is_away(&self) -> bool {
        let tainted = self
            .taints
            .iter()
            .any(|one| one.key == taint::UNREACHABLE || one.key == taint::UNAVAILABLE);
        tainted || self.available().is_some_and(|(status, _)| status != "True")
    }

    /// Since when it is available, if it is.
    pub fn available_since(&self) -> Option<Timestamp> {
        let (status, since) = self.available()?;
        since.filter(|_| status == "True")
    }

    /// Whether what is carried to it is the same for both.
    pub fn carries_like(&self, other: &Self) -> bool {
        self.name == other.name
            && self.labels == other.labels
            && self.deleting == other.deleting
            && self.is_away() == other.is_away()
            && self.available_since() == other.available_since()
    }

    fn available(&self) -> Option<(&str, Option<Timestamp>)> {
        let conditions = self.object.pointer("/status/conditions")?.as_array()?;
        let found = conditions
            .iter()
            .find(|one| one.get("type").and_then(Value::as_str) == Some(condition::AVAILABLE))?;
        let since = found.get("lastTransitionTime").and_then(Value::as_str);
        Some((found.get("status")?.as_str()?, since.and_then(|since| since.parse().ok())))
    }
}

/// What one add-on says of one cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scores {
    pub cluster: String,
    pub name: String,
    pub values: BTreeMap<String, i64>,
    pub valid_until: Option<Timestamp>,
}

impl Scores {
    /// What cannot be read scores nothing.
    pub fn read(metadata: &ObjectMeta, data: &Value) -> Self {
        let status = data.get("status").cloned().unwrap_or_default();
        let status: AddOnPlacementScoreStatus = serde_json::from_value(status).unwrap_or_default();
        let values = status.scores.into_iter();
        Self {
            cluster: metadata.namespace.clone().unwrap_or_default(),
            name: metadata.name.clone().unwrap_or_default(),
            values: values
                .map(|item| (item.name, i64::from(item.value.clamp(-100, 100))))
                .collect(),
            valid_until: status.valid_until.map(|time| time.0),
        }
    }
}
