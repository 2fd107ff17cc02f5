//! One policy rule: what it allows, and what of another rule it covers.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{Attributes, Target};
use crate::quote::quoted_list;

/// `PolicyRule` of `rbac.authorization.k8s.io`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rule {
    pub(crate) verbs: Vec<Box<str>>,
    pub(crate) api_groups: Vec<Box<str>>,
    pub(crate) resources: Vec<Box<str>>,
    pub(crate) resource_names: Vec<Box<str>>,
    pub(crate) non_resource_urls: Vec<Box<str>>,
}

impl Rule {
    /// Members that are not lists of strings count as absent.
    pub fn from_json(rule: &Value) -> Self {
        Self {
            verbs: texts(rule.get("verbs")),
            api_groups: texts(rule.get("apiGroups")),
            resources: texts(rule.get("resources")),
            resource_names: texts(rule.get("resourceNames")),
            non_resource_urls: texts(rule.get("nonResourceURLs")),
        }
    }

    pub fn to_json(&self) -> Value {
        let mut rule = Map::new();
        // Verbs are written even when there are none; the rest is not.
        rule.insert("verbs".into(), list(&self.verbs));
        for (key, texts) in [
            ("apiGroups", &self.api_groups),
            ("resources", &self.resources),
            ("resourceNames", &self.resource_names),
            ("nonResourceURLs", &self.non_resource_urls),
        ] {
            if !texts.is_empty() {
                rule.insert(key.into(), list(texts));
            }
        }
        Value::Object(rule)
    }

    pub(crate) fn allows(&self, attributes: &Attributes<'_>) -> bool {
        if !has(&self.verbs, "*") && !has(&self.verbs, attributes.verb) {
            return false;
        }
        match attributes.target {
            Target::Path(path) => self.non_resource_urls.iter().any(|url| url_covers(url, path)),
            Target::Resource(target) => {
                (has(&self.api_groups, "*") || has(&self.api_groups, target.group))
                    && self
                        .resources
                        .iter()
                        .any(|rule| resource_covers(rule, target.resource, target.subresource))
                    && (self.resource_names.is_empty() || has(&self.resource_names, target.name))
            }
        }
    }

    /// The rule as several, each of one verb on one thing.
    pub(crate) fn split(&self) -> Vec<Self> {
        let one = |text: &str| vec![Box::from(text)];
        let mut parts = Vec::new();
        for group in &self.api_groups {
            for resource in &self.resources {
                for verb in &self.verbs {
                    let part = Self {
                        verbs: one(verb),
                        api_groups: one(group),
                        resources: one(resource),
                        ..Self::default()
                    };
                    if self.resource_names.is_empty() {
                        parts.push(part);
                        continue;
                    }
                    for name in &self.resource_names {
                        parts.push(Self { resource_names: one(name), ..part.clone() });
                    }
                }
            }
        }
        for url in &self.non_resource_urls {
            for verb in &self.verbs {
                parts.push(Self {
                    verbs: one(verb),
                    non_resource_urls: one(url),
                    ..Self::default()
                });
            }
        }
        parts
    }

    /// Whether everything a part (see [`Self::split`]) allows is allowed by this rule alone.
    pub(crate) fn covers(&self, part: &Self) -> bool {
        let all = |own: &[Box<str>], wanted: &[Box<str>]| {
            has(own, "*") || wanted.iter().all(|text| has(own, text))
        };
        let resources = has(&self.resources, "*")
            || part.resources.iter().all(|resource| match resource.split_once('/') {
                _ if has(&self.resources, resource) => true,
                Some((_, subresource)) => {
                    self.resources.iter().any(|own| own.strip_prefix("*/") == Some(subresource))
                }
                None => false,
            });
        let urls = part
            .non_resource_urls
            .iter()
            .all(|url| self.non_resource_urls.iter().any(|own| url_covers(own, url)));
        let names = self.resource_names.is_empty()
            || (!part.resource_names.is_empty()
                && part.resource_names.iter().all(|name| has(&self.resource_names, name)));
        all(&self.verbs, &part.verbs)
            && all(&self.api_groups, &part.api_groups)
            && resources
            && urls
            && names
    }

    /// How escalation messages show a rule.
    pub(crate) fn compact(&self) -> String {
        let mut members = Vec::new();
        for (name, texts) in [
            ("APIGroups", &self.api_groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.non_resource_urls),
            ("ResourceNames", &self.resource_names),
            ("Verbs", &self.verbs),
        ] {
            if !texts.is_empty() {
                members.push(format!("{name}:{}", quoted_list(texts)));
            }
        }
        format!("{{{}}}", members.join(", "))
    }
}

/// `rules` of a role.
pub(crate) fn rules_of(role: &Value) -> Vec<Rule> {
    let rules = role.get("rules").and_then(Value::as_array);
    rules.into_iter().flatten().map(Rule::from_json).collect()
}

/// The parts of `wanted` that no rule of `held` covers.
pub(crate) fn uncovered<'a>(
    held: impl Iterator<Item = &'a Rule> + Clone,
    wanted: &[Rule],
) -> Vec<Rule> {
    let mut missing = Vec::new();
    for part in wanted.iter().flat_map(Rule::split) {
        if !held.clone().any(|rule| rule.covers(&part)) {
            missing.push(part);
        }
    }
    missing
}

/// Joins parts that differ only in their verbs.
pub(crate) fn compacted(parts: Vec<Rule>) -> Vec<Rule> {
    let mut simple: BTreeMap<Rule, Vec<Box<str>>> = BTreeMap::new();
    let mut rules = Vec::new();
    for mut part in parts {
        if part.resources.is_empty() {
            rules.push(part);
        } else {
            let verbs = std::mem::take(&mut part.verbs);
            simple.entry(part).or_default().extend(verbs);
        }
    }
    rules.extend(simple.into_iter().map(|(rule, verbs)| Rule { verbs, ..rule }));
    rules
}

fn resource_covers(rule: &str, resource: &str, subresource: &str) -> bool {
    if rule == "*" {
        return true;
    }
    if subresource.is_empty() {
        return rule == resource;
    }
    match rule.split_once('/') {
        Some((first, rest)) => rest == subresource && (first == "*" || first == resource),
        None => false,
    }
}

/// Behind this path is everything there is, secrets too: a rule gives it by name or not at all.
const BACKUP: &str = "/backup";

/// `*` at the end stands for any continuation.
fn url_covers(rule: &str, path: &str) -> bool {
    if path.trim_end_matches('/') == BACKUP {
        return rule == BACKUP;
    }
    rule == path || (rule.ends_with('*') && path.starts_with(rule.trim_end_matches('*')))
}

fn has(texts: &[Box<str>], wanted: &str) -> bool {
    texts.iter().any(|text| **text == *wanted)
}

fn texts(value: Option<&Value>) -> Vec<Box<str>> {
    let values = value.and_then(Value::as_array);
    values.into_iter().flatten().filter_map(Value::as_str).map(Into::into).collect()
}

fn list(texts: &[Box<str>]) -> Value {
    texts.iter().map(|text| Value::from(&**text)).collect()
}
