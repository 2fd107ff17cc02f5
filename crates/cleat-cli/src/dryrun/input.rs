//! What people give: policies and objects, in files, folders and standard input.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use cleat_api::configurationpolicy::ConfigurationPolicySpec;
use serde_json::Value;

use super::kinds::Kinds;
use super::spelling;

const POLICIES: &str = "policy.open-cluster-management.io/v1";

pub(super) fn text(path: &Path) -> Result<String> {
    if path == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).context("read standard input")?;
        return Ok(text);
    }
    std::fs::read_to_string(path).with_context(|| format!("read {}", path.display()))
}

/// The documents in a file.
pub(super) fn documents(path: &Path) -> Result<Vec<Value>> {
    let text = text(path)?;
    let all: Vec<Value> = serde_saphyr::from_multiple(&text)
        .with_context(|| format!("read the YAML in {}", path.display()))?;
    Ok(all.into_iter().filter(|one| !one.is_null()).collect())
}

/// The objects in files, and in those of folders; lists are taken apart.
pub(crate) fn objects(paths: &[PathBuf]) -> Result<Vec<Value>> {
    let mut objects = Vec::new();
    for path in paths {
        for file in files(path)? {
            for one in documents(&file)? {
                match one.get("items").and_then(Value::as_array) {
                    Some(items) if one.get("kind").is_some_and(|kind| kind == "List") => {
                        objects.extend(items.iter().cloned());
                    }
                    _ => objects.push(one),
                }
            }
        }
    }
    Ok(objects)
}

/// The file itself, or what is in a folder, but not what is in folders in it.
fn files(path: &Path) -> Result<Vec<PathBuf>> {
    if path == Path::new("-") || !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    let entries = path.read_dir().with_context(|| format!("read {}", path.display()))?;
    for entry in entries {
        let entry = entry.with_context(|| format!("read {}", path.display()))?.path();
        if !entry.is_dir() {
            files.push(entry);
        }
    }
    files.sort();
    Ok(files)
}

/// Objects as a cluster has them: of kinds that there are, in namespaces, and without what only a
/// server can have said of them.
pub(super) fn placed(objects: &mut [Value], kinds: &Kinds) -> Result<()> {
    for object in objects {
        let field = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
        let (api_version, kind) = (field("apiVersion"), field("kind"));
        let Some(served) = kinds.named(api_version, kind) else {
            bail!(
                "there is no kind {api_version} {kind}; if it is a custom one, add its definition \
                 to the objects, or list it in a file for --mappings-file"
            );
        };
        let namespaced = served.namespaced;
        let kind = kind.to_owned();
        let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
            bail!("there is an object of kind {kind} that has no metadata");
        };
        for field in ["resourceVersion", "creationTimestamp", "selfLink", "uid"] {
            metadata.remove(field);
        }
        let nowhere = metadata.get("namespace").and_then(Value::as_str).is_none_or(str::is_empty);
        if namespaced && nowhere {
            metadata.insert("namespace".to_owned(), Value::String("default".to_owned()));
        }
    }
    Ok(())
}

/// One policy to try.
pub(super) struct Tried {
    pub(super) name: String,
    pub(super) namespace: String,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) annotations: BTreeMap<String, String>,
    pub(super) spec: ConfigurationPolicySpec,
    /// What a server would not take as it is taken here.
    pub(super) doubts: Vec<String>,
}

/// The ConfigurationPolicies in a file, and those in its Policies.
pub(super) fn policies(path: &Path) -> Result<Vec<Tried>> {
    let mut all = Vec::new();
    for object in objects(&[path.to_owned()])? {
        if object.get("apiVersion").is_none_or(|version| version != POLICIES) {
            continue;
        }
        match object.get("kind").and_then(Value::as_str) {
            Some("ConfigurationPolicy") => all.push(Tried::read(&object, None)?),
            Some("Policy") => {
                let action = object.pointer("/spec/remediationAction").and_then(Value::as_str);
                let templates = object.pointer("/spec/policy-templates").and_then(Value::as_array);
                let definitions = templates.into_iter().flatten();
                for one in definitions.filter_map(|template| template.get("objectDefinition")) {
                    if one.get("kind").is_some_and(|kind| kind == "ConfigurationPolicy") {
                        all.push(Tried::read(one, action)?);
                    }
                }
            }
            _ => {}
        }
    }
    if all.is_empty() {
        bail!("{} has no ConfigurationPolicy in it", path.display());
    }
    Ok(all)
}

impl Tried {
    fn read(object: &Value, action: Option<&str>) -> Result<Self> {
        let text = |pointer: &str| {
            object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let name = text("/metadata/name");
        let mut spec = object.get("spec").cloned().unwrap_or_default();
        let doubts = spelling::meant("ConfigurationPolicy", &mut spec)
            .with_context(|| format!("understand the ConfigurationPolicy {name}"))?;
        if let Some(fields) = spec.as_object_mut() {
            let own = fields.get("remediationAction").and_then(Value::as_str).unwrap_or_default();
            let said = match own.eq_ignore_ascii_case("informonly") {
                true => Some("inform"),
                false => action,
            };
            if let Some(said) = said {
                fields.insert("remediationAction".to_owned(), Value::String(said.to_owned()));
            }
        }
        let spec = serde_json::from_value(spec)
            .with_context(|| format!("understand the ConfigurationPolicy {name}"))?;
        let namespace = text("/metadata/namespace");
        let marks = |field: &str| {
            let all = object.pointer(&format!("/metadata/{field}")).and_then(Value::as_object);
            let texts = all.into_iter().flatten();
            let texts =
                texts.filter_map(|(name, text)| Some((name.clone(), text.as_str()?.to_owned())));
            texts.collect::<BTreeMap<String, String>>()
        };
        let (labels, annotations) = (marks("labels"), marks("annotations"));
        Ok(Self { name, namespace, labels, annotations, spec, doubts })
    }

    pub(super) fn annotation(&self, name: &str) -> Option<&str> {
        self.annotations.get(name).map(String::as_str)
    }
}
