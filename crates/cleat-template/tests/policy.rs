//! Resolving policies, against what the library of shipped policies answered
//! (`oracle/policy/answers.json`).

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that is wrong must fail"
)]

use std::collections::BTreeMap;
use std::path::Path;

use cleat_template::{
    ClusterScoped, Context, Encryption, Keys, LookupError, Lookups, Query, ResolveOptions, Scope,
    Source, resolve,
};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct File {
    kinds: Vec<Kind>,
    objects: Vec<Value>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Kind {
    api_version: String,
    kind: String,
    plural: String,
    namespaced: bool,
}

#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct Case {
    object: Option<Value>,
    yaml: String,
    context: Option<Value>,
    hub: bool,
    namespace: String,
    allow: Vec<String>,
    deny: Vec<String>,
    indent: usize,
    skip: bool,
    encryption: String,
    key: String,
    previous: String,
    iv: String,
    result: Value,
    error: String,
    sensitive: bool,
    skipped: bool,
    differs: String,
    ours: String,
}

/// Objects in a file, with just enough of label selectors.
struct Cluster<'a> {
    file: &'a File,
}

impl Cluster<'_> {
    fn kind(&self, api_version: &str, kind: &str) -> Result<&Kind, LookupError> {
        let mut kinds = self.file.kinds.iter();
        let found = kinds.find(|known| known.api_version == api_version && known.kind == kind);
        found.ok_or(LookupError::MissingApi)
    }

    fn objects<'q>(&'q self, query: &'q Query) -> impl Iterator<Item = &'q Value> {
        self.file.objects.iter().filter(|object| {
            object["apiVersion"] == query.api_version.as_str()
                && object["kind"] == query.kind.as_str()
                && (query.namespace.is_empty()
                    || object["metadata"]["namespace"] == query.namespace.as_str())
        })
    }
}

fn selected(object: &Value, selector: &str) -> bool {
    let label = |key: &str| object["metadata"]["labels"].get(key).and_then(Value::as_str);
    if let Some((key, values)) = selector.split_once(" in ") {
        let values: Vec<&str> = values.trim_matches(['(', ')']).split(',').collect();
        return label(key).is_some_and(|label| values.contains(&label));
    }
    selector.split(',').all(|part| match part.split_once('=') {
        Some((key, value)) => label(key) == Some(value),
        None => part.is_empty() || label(part).is_some(),
    })
}

impl Lookups for Cluster<'_> {
    fn get(&self, query: &Query) -> Result<Value, LookupError> {
        let kind = self.kind(&query.api_version, &query.kind)?;
        let group = query.api_version.split_once('/').map(|(group, _)| format!(".{group}"));
        self.objects(query)
            .find(|object| object["metadata"]["name"] == query.name.as_str())
            .cloned()
            .ok_or_else(|| {
                let group = group.unwrap_or_default();
                LookupError::NotFound(format!("{}{group} {:?} not found", kind.plural, query.name))
            })
    }

    fn list(&self, query: &Query) -> Result<Vec<Value>, LookupError> {
        self.kind(&query.api_version, &query.kind)?;
        let mut found: Vec<Value> = self
            .objects(query)
            .filter(|object| selected(object, &query.selector))
            .cloned()
            .collect();
        found.sort_by_key(|object| {
            let name = |key: &str| object["metadata"][key].as_str().unwrap_or("").to_owned();
            (name("namespace"), name("name"))
        });
        Ok(found)
    }

    fn scope(&self, api_version: &str, kind: &str) -> Result<Scope, LookupError> {
        let namespaced = self.kind(api_version, kind)?.namespaced;
        Ok(if namespaced { Scope::Namespaced } else { Scope::Cluster })
    }
}

fn context(data: Option<&Value>) -> Context {
    let fields = data.and_then(Value::as_object).into_iter().flatten();
    fields.fold(Context::empty(), |context, (name, value)| match value {
        Value::String(text) => context.text(name, text),
        Value::Object(labels) if name.ends_with("Labels") => {
            let labels: BTreeMap<String, String> = labels
                .iter()
                .map(|(key, label)| (key.clone(), label.as_str().unwrap().to_owned()))
                .collect();
            context.labels(name, &labels)
        }
        object => context.object(name, object),
    })
}

fn options(case: &Case) -> ResolveOptions {
    let now = "2026-03-04T05:06:07Z".parse().unwrap();
    let mut options = ResolveOptions::managed(now);
    if case.hub {
        options = ResolveOptions::hub(now, &case.namespace);
    }
    options.lookup_namespace.clone_from(&case.namespace);
    options.denied.clone_from(&case.deny);
    options.additional_indentation = case.indent;
    options.skip_object = case.skip;
    options.cluster_scoped = case
        .allow
        .iter()
        .map(|allowed| {
            let parts: Vec<&str> = allowed.split('/').collect();
            ClusterScoped {
                group: parts[0].to_owned(),
                kind: parts[1].to_owned(),
                name: parts[2].to_owned(),
            }
        })
        .collect();
    let keys = Keys {
        key: case.key.clone().into_bytes(),
        previous: (!case.previous.is_empty()).then(|| case.previous.clone().into_bytes()),
        iv: case.iv.clone().into_bytes(),
    };
    options.encryption = match case.encryption.as_str() {
        "encrypt" => Encryption::Encrypt(keys),
        "decrypt" => Encryption::Decrypt(keys),
        _ => Encryption::Off,
    };
    options
}

fn file() -> File {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("oracle/policy/answers.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn policies_resolve_as_shipped() {
    let file = file();
    let cluster = Cluster { file: &file };
    let mut different = Vec::new();
    for (index, case) in file.cases.iter().enumerate() {
        let source = match &case.object {
            Some(object) => Source::Object(object),
            None => Source::Yaml(&case.yaml),
        };
        let given = resolve(source, &context(case.context.as_ref()), &cluster, &options(case));
        let given = match given {
            Ok(resolution) if resolution.skip => "skipped".to_owned(),
            Ok(resolution) => format!("{} sensitive={}", resolution.value, resolution.sensitive),
            Err(error) => error.message(),
        };
        let expected = match case {
            Case { skipped: true, .. } => "skipped".to_owned(),
            Case { error, .. } if !error.is_empty() => error.clone(),
            Case { result, sensitive, .. } => format!("{result} sensitive={sensitive}"),
        };
        if !case.differs.is_empty() {
            assert_eq!(given, case.ours, "case {index}");
            assert_ne!(given, expected, "case {index} no longer differs");
            continue;
        }
        if given != expected {
            different
                .push(format!("{index}: {source:?}\n  shipped: {expected}\n  ours:    {given}"));
        }
    }
    let count = file.cases.len();
    assert!(count > 100, "only {count} cases");
    assert!(
        different.is_empty(),
        "{} of {count} differ\n{}",
        different.len(),
        different.join("\n")
    );
}
