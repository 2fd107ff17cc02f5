//! Lookups of templates, answered from the given objects.

use std::collections::BTreeMap;

use cleat_core::selector;
use cleat_template::{LookupError, Lookups, Query, Scope};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use serde_json::Value;

use super::kinds::Kinds;

pub(super) struct Objects<'a> {
    all: &'a [Value],
    kinds: &'a Kinds,
}

impl<'a> Objects<'a> {
    pub(super) fn new(all: &'a [Value], kinds: &'a Kinds) -> Self {
        Self { all, kinds }
    }

    fn of(&self, api_version: &str, kind: &str) -> impl Iterator<Item = &'a Value> {
        let wanted = (api_version.to_owned(), kind.to_owned());
        self.all.iter().filter(move |object| {
            field(object, "/apiVersion") == wanted.0 && field(object, "/kind") == wanted.1
        })
    }

    /// The object of the same kind as the definition.
    pub(super) fn named(&self, definition: &Value, namespace: &str, name: &str) -> Option<Value> {
        let namespaced = self.kinds.of(definition)?.namespaced;
        let mut all = self.of(field(definition, "/apiVersion"), field(definition, "/kind"));
        all.find(|object| is_at(object, namespaced, namespace, name)).cloned()
    }
}

impl Lookups for Objects<'_> {
    fn get(&self, query: &Query) -> Result<Value, LookupError> {
        let served = self.kinds.named(&query.api_version, &query.kind);
        let served = served.ok_or(LookupError::MissingApi)?;
        let mut all = self.of(&query.api_version, &query.kind);
        let found = all.find(|one| is_at(one, served.namespaced, &query.namespace, &query.name));
        found.cloned().ok_or_else(|| {
            let kind = match served.group.as_str() {
                "" => served.resource.clone(),
                group => format!("{}.{group}", served.resource),
            };
            LookupError::NotFound(format!("{kind} \"{}\" not found", query.name))
        })
    }

    fn list(&self, query: &Query) -> Result<Vec<Value>, LookupError> {
        let served = self.kinds.named(&query.api_version, &query.kind);
        let served = served.ok_or(LookupError::MissingApi)?;
        let labels = parsed(&query.selector).map_err(LookupError::Refused)?;
        let everywhere = query.namespace.is_empty() || !served.namespaced;
        let mut found: Vec<Value> = self
            .of(&query.api_version, &query.kind)
            .filter(|one| everywhere || field(one, "/metadata/namespace") == query.namespace)
            .filter(|one| selector::selects(&labels, &labels_of(one)))
            .cloned()
            .collect();
        found.sort_by(|one, other| place(one).cmp(&place(other)));
        Ok(found)
    }

    fn scope(&self, api_version: &str, kind: &str) -> Result<Scope, LookupError> {
        match self.kinds.named(api_version, kind) {
            None => Err(LookupError::MissingApi),
            Some(served) if served.namespaced => Ok(Scope::Namespaced),
            Some(_) => Ok(Scope::Cluster),
        }
    }
}

fn field<'v>(object: &'v Value, pointer: &str) -> &'v str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn place(object: &Value) -> (&str, &str) {
    (field(object, "/metadata/namespace"), field(object, "/metadata/name"))
}

fn is_at(object: &Value, namespaced: bool, namespace: &str, name: &str) -> bool {
    let own = match field(object, "/metadata/namespace") {
        "" if namespaced => "default",
        own => own,
    };
    field(object, "/metadata/name") == name && (!namespaced || own == namespace)
}

fn labels_of(object: &Value) -> BTreeMap<String, String> {
    let all = object.pointer("/metadata/labels").and_then(Value::as_object);
    let all = all.into_iter().flatten();
    all.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

/// A selector as `kubectl get -l` takes it. The error is for users.
fn parsed(text: &str) -> Result<LabelSelector, String> {
    let mut all = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        // A comma inside parentheses separates values.
        let depth = |end: usize| {
            let before = rest.get(..end).unwrap_or_default();
            before.matches('(').count() > before.matches(')').count()
        };
        let end = rest.match_indices(',').map(|(at, _)| at).find(|at| !depth(*at));
        let (one, after) = match end {
            Some(end) => (rest.get(..end).unwrap_or_default(), rest.get(end + 1..)),
            None => (rest, None),
        };
        all.push(requirement(one.trim())?);
        rest = after.unwrap_or_default().trim();
    }
    Ok(LabelSelector { match_labels: None, match_expressions: Some(all) })
}

fn requirement(text: &str) -> Result<LabelSelectorRequirement, String> {
    let made = |key: &str, operator: &str, values: Option<Vec<String>>| {
        let key = key.trim();
        if key.is_empty() || key.contains(char::is_whitespace) {
            return Err(format!("unable to parse requirement: {text}"));
        }
        let (key, operator) = (key.to_owned(), operator.to_owned());
        Ok(LabelSelectorRequirement { key, operator, values })
    };
    let one = |value: &str| Some(vec![value.trim().to_owned()]);
    if let Some((key, value)) = text.split_once("!=") {
        return made(key, "NotIn", one(value));
    }
    if let Some((key, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
        return made(key, "In", one(value));
    }
    if let Some((head, values)) = text.split_once('(') {
        let values = values.trim_end().trim_end_matches(')').split(',');
        let values = Some(values.map(|value| value.trim().to_owned()).collect());
        return match head.trim().rsplit_once(' ') {
            Some((key, "in")) => made(key, "In", values),
            Some((key, "notin")) => made(key, "NotIn", values),
            _ => Err(format!("unable to parse requirement: {text}")),
        };
    }
    match text.strip_prefix('!') {
        Some(key) => made(key, "DoesNotExist", None),
        None => made(text, "Exists", None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_are_read_as_kubectl_reads_them() {
        let labels = |text: &str| -> BTreeMap<String, String> {
            let pairs = text.split_whitespace().filter_map(|pair| pair.split_once('='));
            pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
        };
        for (selector, object, selected) in [
            ("", "a=1", true),
            ("a=1", "a=1 b=2", true),
            ("a==2", "a=1", false),
            ("a!=2", "a=1", true),
            ("a in (1, 2),b", "a=2 b=x", true),
            ("a notin (1,2)", "a=2", false),
            ("!b", "a=2", true),
        ] {
            let parsed = parsed(selector).unwrap();
            assert_eq!(selector::selects(&parsed, &labels(object)), selected, "{selector}");
        }
        for bad in ["a like (b)", "a b", "=1"] {
            assert!(parsed(bad).is_err(), "{bad}");
        }
    }
}
