//! Whether a list of manifests can be carried to a cluster at all.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::io;

use serde_json::Value;

use super::text;

/// An object as users see it named. What two manifests must not share.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Identity<'a> {
    api_version: &'a str,
    kind: &'a str,
    namespace: &'a str,
    name: &'a str,
}

/// Adds everything wrong with the manifests to `problems`, in their order.
pub(super) fn check(
    path: &str,
    manifests: Option<&Value>,
    limit: usize,
    problems: &mut Vec<String>,
) {
    let none = Vec::new();
    let manifests = manifests.and_then(Value::as_array).unwrap_or(&none);
    if manifests.is_empty() {
        problems.push(format!("{path} is empty; a work needs at least one manifest"));
        return;
    }
    let mut seen = BTreeMap::new();
    let mut size = Size(0);
    for (index, manifest) in manifests.iter().enumerate() {
        // Counting cannot fail, and what cannot be written counts for nothing.
        drop(serde_json::to_writer(&mut size, manifest));
        match identity(manifest) {
            Err(wrong) => problems.push(format!("{path}[{index}] {wrong}")),
            Ok(identity) => match seen.entry(identity) {
                Entry::Vacant(free) => {
                    free.insert(index);
                }
                Entry::Occupied(first) => problems.push(format!(
                    "{path}[{index}] is the same object as {path}[{}], {identity}; keep one of them",
                    first.get()
                )),
            },
        }
    }
    if size.0 > limit {
        problems.push(format!(
            "{path} has {} bytes, the limit is {limit}; divide the manifests among several works",
            size.0
        ));
    }
}

fn identity(manifest: &Value) -> Result<Identity<'_>, String> {
    if !manifest.is_object() {
        return Err("is not an object; give a whole Kubernetes manifest".to_owned());
    }
    let api_version = text(manifest, "/apiVersion");
    let kind = text(manifest, "/kind");
    if api_version.is_empty() {
        return Err("has no apiVersion; add it".to_owned());
    }
    let mut parts = api_version.split('/');
    let wellformed = parts.by_ref().take(2).all(|part| !part.is_empty()) && parts.next().is_none();
    if !wellformed {
        return Err(format!(
            "has the apiVersion {}; write <version> or <group>/<version>",
            shown(api_version)
        ));
    }
    if kind.is_empty() {
        return Err("has no kind; add it".to_owned());
    }
    if !text(manifest, "/metadata/generateName").is_empty() {
        return Err("has metadata.generateName, by which it could not be found again; \
                    give it a metadata.name instead"
            .to_owned());
    }
    let name = text(manifest, "/metadata/name");
    if name.is_empty() {
        return Err("has no metadata.name; add it".to_owned());
    }
    Ok(Identity { api_version, kind, namespace: text(manifest, "/metadata/namespace"), name })
}

impl fmt::Display for Identity<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ", shown(self.api_version), shown(self.kind))?;
        if !self.namespace.is_empty() {
            write!(f, "{}/", shown(self.namespace))?;
        }
        f.write_str(&shown(self.name))
    }
}

/// No more of a text than fits into a message.
fn shown(text: &str) -> String {
    const MOST: usize = 80;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Counts what is written and keeps none of it.
struct Size(usize);

impl io::Write for Size {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.saturating_add(bytes.len());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
