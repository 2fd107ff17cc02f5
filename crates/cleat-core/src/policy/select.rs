//! Which namespaces and which objects a policy's selectors choose.
//!
//! A selector that cannot be read chooses nothing and says so; it is never the same as one that
//! matches nothing.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use cleat_api::configurationpolicy::{NamespaceSelector, TerminatingInclusion};
use cleat_dialect::filepath::Pattern;
use cleat_dialect::quote;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

use super::observed::{Namespace, TerminatingNamespaces};
use crate::selector;

/// The names of the chosen namespaces, sorted. The error is for users.
pub fn namespaces(
    selector: &NamespaceSelector,
    default: TerminatingNamespaces,
    all: &[Namespace],
) -> Result<Vec<String>, String> {
    if selector.is_empty() {
        return Ok(Vec::new());
    }
    let labels = selector.label_selector();
    if let Some(labels) = &labels {
        let valid = text(labels);
        valid.map_err(|why| format!("error parsing namespace LabelSelector: {why}"))?;
    }
    let include = patterns("include", &selector.include)?;
    let exclude = patterns("exclude", &selector.exclude)?;
    let terminating = match selector.terminating_inclusion {
        TerminatingInclusion::IfMatch => true,
        TerminatingInclusion::Never => false,
        TerminatingInclusion::Default | TerminatingInclusion::Unknown => {
            default == TerminatingNamespaces::Included
        }
    };
    let chosen = all.iter().filter(|namespace| {
        labels.as_ref().is_none_or(|labels| selector::selects(labels, &namespace.labels))
            && (include.is_empty() || include.iter().any(|one| one.matches(&namespace.name)))
            && !exclude.iter().any(|one| one.matches(&namespace.name))
            && (terminating || !namespace.terminating)
    });
    let mut names: Vec<String> = chosen.map(|namespace| namespace.name.clone()).collect();
    names.sort();
    Ok(names)
}

fn patterns(field: &str, texts: &[String]) -> Result<Vec<Pattern>, String> {
    let parse = |text: &String| {
        Pattern::parse(text)
            .map_err(|why| format!("error parsing '{field}' pattern '{text}': {why}"))
    };
    texts.iter().map(parse).collect()
}

/// A selector as requests write it. The error says what Kubernetes would say.
pub fn text(selector: &LabelSelector) -> Result<String, String> {
    let mut parts: Vec<String> = Vec::new();
    for (key, value) in selector.match_labels.iter().flatten() {
        check(key, core::slice::from_ref(value))?;
        parts.push(format!("{key}={value}"));
    }
    for LabelSelectorRequirement { key, operator, values } in
        selector.match_expressions.iter().flatten()
    {
        let values = values.as_deref().unwrap_or_default();
        check(key, values)?;
        let mut sorted = values.to_vec();
        sorted.sort();
        let list = sorted.join(",");
        parts.push(match (operator.as_str(), values.is_empty()) {
            ("In", false) => format!("{key} in ({list})"),
            ("NotIn", false) => format!("{key} notin ({list})"),
            ("Exists", true) => key.clone(),
            ("DoesNotExist", true) => format!("!{key}"),
            ("In" | "NotIn", true) => {
                return Err("values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty".into());
            }
            ("Exists" | "DoesNotExist", false) => {
                let shown = quote::string_slice(values);
                return Err(format!(
                    "values: Invalid value: {shown}: values set must be empty for exists and does not exist"
                ));
            }
            _ => return Err(format!("{} is not a valid label selector operator", quote::quoted(operator))),
        });
    }
    parts.sort();
    Ok(parts.join(","))
}

fn check(key: &str, values: &[String]) -> Result<(), String> {
    let plain = |text: &str| {
        text.len() <= 63
            && text.bytes().all(|c| c.is_ascii_alphanumeric() || b"-_.".contains(&c))
            && text.bytes().next().is_none_or(|c| c.is_ascii_alphanumeric())
            && text.bytes().last().is_none_or(|c| c.is_ascii_alphanumeric())
    };
    let (prefix, name) = key.rsplit_once('/').unwrap_or(("", key));
    let subdomain = |text: &str| {
        text.len() <= 253
            && text
                .bytes()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || b"-.".contains(&c))
    };
    if name.is_empty()
        || !plain(name)
        || !subdomain(prefix)
        || (key.contains('/') && prefix.is_empty())
    {
        return Err(format!(
            "key: Invalid value: {}: name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
            quote::quoted(key)
        ));
    }
    match values.iter().find(|value| !plain(value)) {
        None => Ok(()),
        Some(value) => Err(format!(
            "values[0][{key}]: Invalid value: {}: a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
            quote::quoted(value)
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn check(selector: Value, expected: Result<&[&str], &str>) {
        let namespace = |name: &str, team: &str, terminating| Namespace {
            name: name.into(),
            labels: [(String::from("team"), String::from(team))].into(),
            terminating,
        };
        let all = [
            namespace("web", "a", false),
            namespace("kube-system", "a", false),
            namespace("db", "b", false),
            namespace("going", "b", true),
        ];
        let read: NamespaceSelector = serde_json::from_value(selector.clone()).unwrap();
        let found = namespaces(&read, TerminatingNamespaces::Included, &all);
        let expected = expected.map_err(String::from);
        let expected = expected.map(|names| names.iter().map(|name| String::from(*name)).collect());
        assert_eq!(found, expected, "{selector}");
    }

    #[test]
    fn namespaces_are_chosen_by_name_and_label() {
        check(json!({}), Ok(&[]));
        check(json!({ "exclude": ["kube-*"] }), Ok(&[]));
        check(json!({ "include": ["*"] }), Ok(&["db", "going", "kube-system", "web"]));
        check(json!({ "include": ["*"], "exclude": ["kube-*"] }), Ok(&["db", "going", "web"]));
        check(json!({ "matchLabels": {} }), Ok(&["db", "going", "kube-system", "web"]));
        check(json!({ "matchLabels": { "team": "a" } }), Ok(&["kube-system", "web"]));
        check(json!({ "matchLabels": { "team": "a" }, "include": ["w*"] }), Ok(&["web"]));
        check(
            json!({ "include": ["*"], "terminatingInclusion": "Never", "exclude": ["?eb"] }),
            Ok(&["db", "kube-system"]),
        );
        check(
            json!({ "include": ["["] }),
            Err("error parsing 'include' pattern '[': syntax error in pattern"),
        );
        check(
            json!({ "include": ["*"], "exclude": ["a["] }),
            Err("error parsing 'exclude' pattern 'a[': syntax error in pattern"),
        );
        check(
            json!({ "matchExpressions": [{ "key": "a", "operator": "Like" }] }),
            Err(
                "error parsing namespace LabelSelector: \"Like\" is not a valid label selector operator",
            ),
        );
    }

    #[test]
    fn selectors_are_written_as_requests_write_them() {
        let selector = |value: Value| serde_json::from_value::<LabelSelector>(value).unwrap();
        let all = selector(json!({
            "matchLabels": { "b": "1" },
            "matchExpressions": [
                { "key": "a", "operator": "In", "values": ["y", "x"] },
                { "key": "c", "operator": "DoesNotExist" },
                { "key": "example.com/d", "operator": "Exists" },
                { "key": "e", "operator": "NotIn", "values": ["z"] },
            ],
        }));
        assert_eq!(text(&all).unwrap(), "!c,a in (x,y),b=1,e notin (z),example.com/d");
        for bad in [
            json!({ "matchLabels": { "": "1" } }),
            json!({ "matchLabels": { "a": "b c" } }),
            json!({ "matchLabels": { "-a": "b" } }),
            json!({ "matchExpressions": [{ "key": "a", "operator": "In", "values": [] }] }),
            json!({ "matchExpressions": [{ "key": "a", "operator": "Exists", "values": ["b"] }] }),
        ] {
            assert!(text(&selector(bad.clone())).is_err(), "{bad}");
        }
    }
}
