//! A set of policies: what it holds, and how it stands.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::{String, ToString as _};
use alloc::sync::Arc;
use alloc::vec::Vec;
use alloc::{format, vec};

use cleat_api::policy::GROUP;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Map, Value, json};

use super::bind::{Binding, Source};
use super::report::together;
use crate::id::{Id, Target};
use crate::replicaset::Decided;
use crate::write::{Action, Side, Write};

#[derive(Clone, Debug, PartialEq)]
pub struct PolicySet {
    pub namespace: String,
    pub name: String,
    pub uid: String,
    pub resource_version: String,
    /// In the order of the set.
    pub policies: Vec<String>,
    /// Clusters left out, by policy.
    pub exclusions: BTreeMap<String, BTreeSet<String>>,
    pub status: Value,
}

impl PolicySet {
    /// `data`: the object without its metadata.
    pub fn read(metadata: &ObjectMeta, data: &Value) -> Self {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let texts = |value: Option<&Value>| {
            let list = value.and_then(Value::as_array).into_iter().flatten();
            list.filter_map(|one| Some(one.as_str()?.to_string())).collect::<Vec<String>>()
        };
        let mut policies: Vec<String> = vec![];
        for name in texts(data.pointer("/spec/policies")) {
            if !policies.contains(&name) {
                policies.push(name);
            }
        }
        let mut exclusions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let listed = data.pointer("/spec/exclusions").and_then(Value::as_array);
        for one in listed.into_iter().flatten() {
            let policy = one.get("policyName").and_then(Value::as_str).unwrap_or_default();
            let clusters = texts(one.get("clusterNames"));
            exclusions.entry(policy.to_string()).or_default().extend(clusters);
        }
        Self {
            namespace: text(&metadata.namespace),
            name: text(&metadata.name),
            uid: text(&metadata.uid),
            resource_version: text(&metadata.resource_version),
            policies,
            exclusions,
            status: data.get("status").cloned().unwrap_or_default(),
        }
    }
}

/// How a policy of a set stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    Gone,
    Disabled,
    /// What its clusters say, where they say anything.
    Spread(BTreeMap<String, String>),
}

/// What is said of a set, if it is news. `bindings`: those of its namespace. None while some
/// placement is not known, for then nobody knows.
pub fn report_set(
    set: &PolicySet,
    bindings: &[Arc<Binding>],
    decided: &BTreeMap<Source, Decided>,
    standings: &BTreeMap<String, Standing>,
) -> Option<Action> {
    let bound = bindings.iter().filter(|binding| binding.sets.contains(&set.name));
    let mut bound: Vec<(&Binding, &Source)> =
        bound.filter_map(|binding| Some((&**binding, binding.source.as_ref()?))).collect();
    bound.sort_by(|one, other| (&one.0.name, one.1).cmp(&(&other.0.name, other.1)));
    let mut clusters: BTreeSet<&str> = BTreeSet::new();
    for (binding, source) in &bound {
        let decided = decided.get(source)?;
        if matches!(decided, Decided::Unknown | Decided::Unsettled { .. }) {
            return None;
        }
        if !binding.restricted {
            clusters.extend(decided.clusters());
        }
    }
    let mut told = Told::default();
    let mut found: Vec<Option<String>> = vec![];
    for policy in &set.policies {
        let excluded = set.exclusions.get(policy);
        let left_out: Vec<&str> = clusters
            .iter()
            .copied()
            .filter(|name| excluded.is_some_and(|all| all.contains(*name)))
            .collect();
        if !left_out.is_empty() {
            told.exclusions.push(json!({ "policyName": policy, "clusters": left_out }));
        }
        match standings.get(policy) {
            None | Some(Standing::Gone) => told.gone.push(policy),
            Some(Standing::Disabled) => told.disabled.push(policy),
            Some(Standing::Spread(says)) => {
                let counted = clusters.iter().filter(|name| !left_out.contains(name));
                let all: Vec<Option<String>> =
                    counted.map(|name| says.get(*name).cloned()).collect();
                match together(&all) {
                    None => told.unknown.push(policy),
                    Some(state) => {
                        if state == "Pending" {
                            told.pending.push(policy);
                        }
                        found.push(Some(state.to_string()));
                    }
                }
            }
        }
    }
    let compliant = if told.unknown.is_empty() { together(&found) } else { None };
    let placement: Vec<Value> =
        bound.iter().map(|(binding, source)| way(binding, source)).collect();
    told.write(set, placement, compliant)
}

#[derive(Default)]
struct Told<'a> {
    pending: Vec<&'a str>,
    disabled: Vec<&'a str>,
    unknown: Vec<&'a str>,
    gone: Vec<&'a str>,
    exclusions: Vec<Value>,
}

impl Told<'_> {
    fn message(&self) -> String {
        let lists = [
            ("Policies awaiting pending dependencies", &self.pending),
            ("Disabled policies", &self.disabled),
            ("No status provided while awaiting policy status", &self.unknown),
            ("Deleted policies", &self.gone),
        ];
        let lists = lists.into_iter().filter(|(_, names)| !names.is_empty());
        let mut parts: Vec<String> =
            lists.map(|(text, names)| format!("{text}: {}", names.join(", "))).collect();
        if !self.exclusions.is_empty() {
            let text = "One or more policies were excluded. For details, see status.exclusions.";
            parts.push(text.to_string());
        }
        if parts.is_empty() {
            "All policies are reporting status".to_string()
        } else {
            parts.join("; ")
        }
    }

    fn write(
        self,
        set: &PolicySet,
        placement: Vec<Value>,
        compliant: Option<&'static str>,
    ) -> Option<Action> {
        let message = self.message();
        let list =
            |list: Vec<Value>| if list.is_empty() { Value::Null } else { Value::Array(list) };
        let fields = [
            ("placement", list(placement)),
            ("compliant", compliant.map(Value::from).unwrap_or_default()),
            ("statusMessage", message.into()),
            ("exclusions", list(self.exclusions)),
        ];
        let told: Map<String, Value> =
            fields.into_iter().map(|(key, value)| (key.to_string(), value)).collect();
        let same = told.iter().all(|(key, value)| match set.status.get(key) {
            Some(before) => before == value,
            None => value.is_null(),
        });
        if same {
            return None;
        }
        let metadata = json!({ "uid": set.uid, "resourceVersion": set.resource_version });
        let patch = json!({ "metadata": metadata, "status": told });
        let id = Id {
            group: GROUP.to_string(),
            resource: "policysets".to_string(),
            namespace: set.namespace.clone(),
            name: set.name.clone(),
        };
        let target = Target { version: "v1beta1".to_string(), id };
        Some(Action { side: Side::Hub, target, write: Write::MergeStatus(patch) })
    }
}

fn way(binding: &Binding, source: &Source) -> Value {
    let field = match source {
        Source::Placement(_) => "placement",
        Source::Rule(_) => "placementRule",
    };
    json!({ "placementBinding": binding.name, field: source.name() })
}
