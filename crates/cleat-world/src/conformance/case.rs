//! What a conformance case says: a sequence of raw HTTP requests, without expectations.
//!
//! The expectation is always the same: both servers answer alike. A case is one YAML file below
//! `cases/AREA/`; steps that several cases begin with are files in `shared/`.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One file below `cases/`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// `area/file-name`; not in the file.
    #[serde(skip)]
    pub name: String,
    /// What the case looks at, for people.
    pub about: String,
    #[serde(default)]
    pub namespace: Namespace,
    /// Names of files in `shared/` whose steps come first; their answers are not compared.
    #[serde(default)]
    pub before: Vec<String>,
    /// Values that templates can use, such as long paths.
    #[serde(default, rename = "let")]
    pub values: BTreeMap<String, Value>,
    pub steps: Vec<Step>,
    /// Paths to DELETE afterwards, whatever happened; the case's namespace needs no mention.
    #[serde(default)]
    pub cleanup: Vec<String>,
}

/// A file in `shared/`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Shared {
    #[serde(default, rename = "let")]
    pub(crate) values: BTreeMap<String, Value>,
    pub(crate) steps: Vec<Step>,
    #[serde(default)]
    pub(crate) cleanup: Vec<String>,
}

/// Whether the case has a namespace of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Namespace {
    /// It exists, and so do its default service account and root certificate.
    #[default]
    Fresh,
    None,
}

/// One request, or one look at what came in meanwhile. Exactly one of the first group is set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Step {
    #[serde(skip_serializing_if = "unsaid")]
    pub get: Option<String>,
    #[serde(skip_serializing_if = "unsaid")]
    pub head: Option<String>,
    #[serde(skip_serializing_if = "unsaid")]
    pub options: Option<String>,
    #[serde(skip_serializing_if = "unsaid")]
    pub post: Option<String>,
    #[serde(skip_serializing_if = "unsaid")]
    pub put: Option<String>,
    #[serde(skip_serializing_if = "unsaid")]
    pub patch: Option<String>,
    #[serde(skip_serializing_if = "unsaid")]
    pub delete: Option<String>,
    /// Opens a watch under the step's name.
    #[serde(skip_serializing_if = "unsaid")]
    pub watch: Option<String>,
    /// Reads events of the watch of this name.
    #[serde(skip_serializing_if = "unsaid")]
    pub collect: Option<String>,
    /// What webhooks were asked so far, by the path below the case's own.
    #[serde(skip_serializing_if = "unsaid")]
    pub webhooks: Option<String>,

    /// For templates, and for the list of differences.
    #[serde(skip_serializing_if = "unsaid")]
    pub name: Option<String>,
    #[serde(rename = "as", skip_serializing_if = "unsaid")]
    pub who: Who,
    #[serde(skip_serializing_if = "unsaid")]
    pub headers: BTreeMap<String, String>,
    /// The body's media type: `json`, `merge`, `strategic`, `apply`, `json-patch`, `protobuf`,
    /// `yaml`, or spelled out.
    #[serde(rename = "type", skip_serializing_if = "unsaid")]
    pub media: Option<String>,
    #[serde(skip_serializing_if = "unsaid")]
    pub body: Option<Value>,
    #[serde(skip_serializing_if = "unsaid")]
    pub raw: Option<String>,
    /// How often `raw` stands in the body: for bodies that are too long.
    #[serde(skip_serializing_if = "unsaid")]
    pub times: Option<usize>,
    #[serde(skip_serializing_if = "unsaid")]
    pub base64: Option<String>,

    /// Repeats the request until all hold: JSON pointer into the answer (`/code`, `/body/…`) and
    /// value; null means absent. Of a `collect`: pointers into the event that is the last.
    #[serde(skip_serializing_if = "unsaid")]
    pub until: Option<BTreeMap<String, Value>>,
    /// Seconds that `until` may take.
    #[serde(skip_serializing_if = "unsaid")]
    pub within: Option<u64>,
    /// How many events to collect.
    #[serde(skip_serializing_if = "unsaid")]
    pub events: Option<usize>,
    /// Keep also the bookmarks that come by the clock.
    #[serde(skip_serializing_if = "unsaid")]
    pub bookmarks: bool,

    /// Compare only these parts of the body.
    #[serde(skip_serializing_if = "unsaid")]
    pub keep: Vec<String>,
    /// Do not compare these parts of the body.
    #[serde(skip_serializing_if = "unsaid")]
    pub drop: Vec<String>,
    /// Of the list at a pointer, compare only the entries whose field has one of the values.
    #[serde(skip_serializing_if = "unsaid")]
    pub only: BTreeMap<String, BTreeMap<String, Vec<Value>>>,
    /// The list at a pointer has no order: sort it by this field.
    #[serde(skip_serializing_if = "unsaid")]
    pub sort: BTreeMap<String, String>,
    /// Send it, but do not compare the answer.
    #[serde(skip_serializing_if = "unsaid")]
    pub silent: bool,
}

/// Whether a step says nothing of this: it is then not written either.
fn unsaid<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Who sends a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Who {
    /// `admin`, `nobody`, or a user the administrator impersonates.
    Name(String),
    Token {
        token: String,
    },
    Impersonated {
        user: String,
        #[serde(default)]
        groups: Vec<String>,
    },
}

impl Default for Who {
    fn default() -> Self {
        Self::Name("admin".to_owned())
    }
}

/// What a step does.
pub(crate) enum Action<'a> {
    Send { method: &'static str, path: &'a str },
    Watch { path: &'a str },
    Collect { watch: &'a str },
    Webhooks { path: &'a str },
}

impl Step {
    pub(crate) fn action(&self) -> Result<Action<'_>> {
        let mut actions = Vec::new();
        for (method, path) in [
            ("GET", &self.get),
            ("HEAD", &self.head),
            ("OPTIONS", &self.options),
            ("POST", &self.post),
            ("PUT", &self.put),
            ("PATCH", &self.patch),
            ("DELETE", &self.delete),
        ] {
            actions.extend(path.as_ref().map(|path| Action::Send { method, path }));
        }
        actions.extend(self.watch.as_ref().map(|path| Action::Watch { path }));
        actions.extend(self.collect.as_ref().map(|watch| Action::Collect { watch }));
        actions.extend(self.webhooks.as_ref().map(|path| Action::Webhooks { path }));
        match (actions.pop(), actions.is_empty()) {
            (Some(action), true) => Ok(action),
            _ => bail!("a step must have exactly one of get, post, …, watch, collect, webhooks"),
        }
    }

    /// The step's name in answers and in the list of differences.
    #[must_use]
    pub fn label(&self, index: usize) -> String {
        self.name.clone().unwrap_or_else(|| (index + 1).to_string())
    }
}

/// All cases below `folder`, in order of name, and the shared beginnings.
pub(crate) fn load(folder: &Path) -> Result<(Vec<Case>, BTreeMap<String, Shared>)> {
    let mut cases = Vec::new();
    for (name, text) in texts(&folder.join("cases"), "yaml")? {
        let mut case: Case = yaml(&text).with_context(|| format!("read case {name}"))?;
        for (index, step) in case.steps.iter().enumerate() {
            step.action().with_context(|| format!("case {name}, step {}", index + 1))?;
        }
        case.name = name;
        cases.push(case);
    }
    let mut shared = BTreeMap::new();
    for (name, text) in texts(&folder.join("shared"), "yaml")? {
        let beginning: Shared = yaml(&text).with_context(|| format!("read shared {name}"))?;
        shared.insert(name, beginning);
    }
    for case in &cases {
        if let Some(missing) = case.before.iter().find(|name| !shared.contains_key(*name)) {
            bail!("case {} begins with {missing}, which is not in shared/", case.name);
        }
    }
    Ok((cases, shared))
}

/// A plain `y` or `no` is a text, as in YAML 1.2.
pub(crate) fn yaml<T: serde::de::DeserializeOwned>(text: &str) -> Result<T> {
    let options = serde_saphyr::options! { strict_booleans: true };
    Ok(serde_saphyr::from_str_with_options(text, options)?)
}

/// The files below `folder` with this extension: path without extension, and text.
pub(crate) fn texts(folder: &Path, extension: &str) -> Result<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(current) = folders.pop() {
        if !current.exists() {
            continue;
        }
        let entries =
            std::fs::read_dir(&current).with_context(|| format!("read {}", current.display()))?;
        for entry in entries {
            let path = entry.with_context(|| format!("read {}", current.display()))?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|found| found == extension) {
                let text = std::fs::read_to_string(&path)
                    .with_context(|| format!("read {}", path.display()))?;
                let name = path.strip_prefix(folder).unwrap_or(&path).with_extension("");
                found.insert(name.to_string_lossy().into_owned(), text);
            }
        }
    }
    Ok(found)
}
