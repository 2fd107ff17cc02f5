//! What a replica says: the root's spec, with what differs from cluster to cluster.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString as _};
use alloc::sync::Arc;
use alloc::vec::Vec;
use alloc::{format, vec};

use cleat_api::policy::GROUP;
use serde_json::{Map, Value, json};

use super::{Observed, Root};
use crate::digest::digest;

/// What stands where a template is to be resolved on the hub.
const HUB: &str = "{{hub";

/// The root's templates for one cluster.
#[derive(Clone, Debug, PartialEq)]
pub enum Resolved {
    Known {
        /// One per template of the root; none if whoever resolved them found that the replica has
        /// them already.
        definitions: Option<Vec<Value>>,
        /// Of all of them, as [`definitions`] makes it.
        digest: String,
        /// The base64 of the vector that values were encrypted with.
        iv: Option<String>,
        /// What was wrong with some of them. They say so themselves.
        problem: Option<String>,
    },
    /// Something could not be read. Trying again may help.
    Unknown(String),
}

/// Whether a policy has anything to resolve on the hub.
pub fn has_hub_templates(spec: &Value) -> bool {
    match spec {
        Value::String(text) => text.contains(HUB),
        Value::Array(items) => items.iter().any(has_hub_templates),
        Value::Object(fields) => {
            fields.iter().any(|(key, value)| key.contains(HUB) || has_hub_templates(value))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// The objects of a spec's templates, and the digest of all of them.
pub fn definitions(spec: &Value) -> (Vec<Value>, String) {
    let templates = spec.get("policy-templates").and_then(Value::as_array).into_iter().flatten();
    let objects = templates.map(|one| one.get("objectDefinition").cloned().unwrap_or_default());
    let objects: Vec<Value> = objects.collect();
    let digest = digest_of(&objects);
    (objects, digest)
}

pub(super) fn digest_of(definitions: &[Value]) -> String {
    digest(&Value::Array(definitions.to_vec()))
}

/// A spec without the objects of its templates, and their digest.
pub(super) fn rest(spec: &Value) -> Value {
    let mut rest = spec.clone();
    for template in
        rest.get_mut("policy-templates").and_then(Value::as_array_mut).into_iter().flatten()
    {
        if let Some(template) = template.as_object_mut() {
            template.remove("objectDefinition");
        }
    }
    rest
}

/// What one replica is to say, and how to tell whether it does.
#[derive(Clone, Debug)]
pub(super) struct Content<'a> {
    pub(super) rest: Arc<(Value, String)>,
    pub(super) definitions: Option<Definitions<'a>>,
    pub(super) digest: String,
}

#[derive(Clone, Debug)]
pub(super) enum Definitions<'a> {
    OfRoot(Arc<Vec<Value>>),
    Resolved(&'a [Value]),
}

impl Content<'_> {
    /// The whole spec, if its objects are at hand.
    pub(super) fn spec(&self) -> Option<Value> {
        let objects: &[Value] = match self.definitions.as_ref()? {
            Definitions::OfRoot(objects) => objects,
            Definitions::Resolved(objects) => objects,
        };
        let mut spec = self.rest.0.clone();
        let templates = spec.get_mut("policy-templates").and_then(Value::as_array_mut);
        for (template, object) in templates.into_iter().flatten().zip(objects) {
            if let Some(template) = template.as_object_mut() {
                template.insert("objectDefinition".to_string(), object.clone());
            }
        }
        Some(spec)
    }
}

/// The contents of all replicas of a root. What they share is made once.
pub(super) struct Contents<'a> {
    seen: &'a Observed,
    root: &'a Root,
    templated: bool,
    base: Value,
    objects: (Arc<Vec<Value>>, String),
    rests: BTreeMap<Option<&'a str>, Arc<(Value, String)>>,
}

impl<'a> Contents<'a> {
    pub(super) fn new(seen: &'a Observed, root: &'a Root) -> Self {
        let (objects, digest) = definitions(&root.spec);
        let mut base = rest(&root.spec);
        depend(&mut base, seen);
        let templated = has_hub_templates(&root.spec);
        let objects = (Arc::new(objects), digest);
        Self { seen, root, templated, base, objects, rests: BTreeMap::new() }
    }

    /// The content for a cluster, and the vector it was encrypted with. None while it is not known.
    pub(super) fn of(
        &mut self,
        cluster: &str,
        enforce: Option<&'a str>,
    ) -> Option<(Content<'a>, Option<&'a str>)> {
        let enforce = enforce.filter(|_| !self.root.enforces());
        let rest = match self.rests.get(&enforce) {
            Some(rest) => Arc::clone(rest),
            None => {
                let mut rest = self.base.clone();
                if let (Some(enforce), Some(rest)) = (enforce, rest.as_object_mut()) {
                    rest.insert("remediationAction".to_string(), enforce.into());
                }
                let digest = digest(&rest);
                let rest = Arc::new((rest, digest));
                self.rests.insert(enforce, Arc::clone(&rest));
                rest
            }
        };
        if !self.templated {
            let (objects, digest) = &self.objects;
            let definitions = Some(Definitions::OfRoot(Arc::clone(objects)));
            return Some((Content { rest, definitions, digest: digest.clone() }, None));
        }
        match self.seen.resolved.get(cluster)? {
            Resolved::Unknown(_) => None,
            Resolved::Known { definitions, digest, iv, problem: _ } => {
                let definitions = definitions.as_deref().map(Definitions::Resolved);
                Some((Content { rest, definitions, digest: digest.clone() }, iv.as_deref()))
            }
        }
    }
}

/// Makes dependencies on roots those on their replicas.
fn depend(spec: &mut Value, seen: &Observed) {
    let Some(spec) = spec.as_object_mut() else { return };
    translate(spec, "dependencies", seen);
    let templates = spec.get_mut("policy-templates").and_then(Value::as_array_mut);
    for template in templates.into_iter().flatten().filter_map(Value::as_object_mut) {
        translate(template, "extraDependencies", seen);
    }
}

fn translate(holder: &mut Map<String, Value>, field: &str, seen: &Observed) {
    let Some(list) = holder.get_mut(field).and_then(Value::as_array_mut) else { return };
    *list = list.iter().flat_map(|one| dependency(one, seen)).collect();
}

fn dependency(one: &Value, seen: &Observed) -> Vec<Value> {
    let text = |field: &str| one.get(field).and_then(Value::as_str).unwrap_or_default();
    let ours = text("apiVersion").split_once('/').is_some_and(|(group, _)| group == GROUP);
    let (kind, name, namespace) = (text("kind"), text("name"), text("namespace"));
    let here = if namespace.is_empty() { &*seen.key.0 } else { namespace };
    let on = |name: &str| {
        json!({
            "apiVersion": format!("{GROUP}/v1"), "kind": "Policy",
            "name": format!("{here}.{name}"), "compliance": text("compliance"),
        })
    };
    match kind {
        "Policy" if ours && (!namespace.is_empty() || !name.contains('.')) => {
            let mut told = on(name);
            if let Some(told) = told.as_object_mut() {
                told.insert("apiVersion".to_string(), text("apiVersion").into());
            }
            vec![told]
        }
        "PolicySet" if ours => match seen.sets.get(&(here.to_string(), name.to_string())) {
            Some(set) => set.policies.iter().map(|name| on(name)).collect(),
            None => vec![one.clone()],
        },
        _ => vec![one.clone()],
    }
}

/// The sets of policies that a spec depends on, by namespace and name.
pub fn sets_depended_on(namespace: &str, spec: &Value) -> Vec<(String, String)> {
    let templates = spec.get("policy-templates").and_then(Value::as_array).into_iter().flatten();
    let extra = templates.filter_map(|one| one.get("extraDependencies"));
    let all = spec.get("dependencies").into_iter().chain(extra).filter_map(Value::as_array);
    let mut sets = vec![];
    for one in all.flatten() {
        let text = |field: &str| one.get(field).and_then(Value::as_str).unwrap_or_default();
        if text("kind") == "PolicySet" {
            let within = Some(text("namespace")).filter(|name| !name.is_empty());
            sets.push((within.unwrap_or(namespace).to_string(), text("name").to_string()));
        }
    }
    sets
}
