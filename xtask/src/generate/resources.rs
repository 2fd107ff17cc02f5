//! `resources.json`: which resources Kubernetes serves, from its recorded discovery documents.
//!
//! ```text
//! { "kubernetes": "v1.36.4",
//!   "resources": [            in the order of /apis, the core group first
//!     { "group", "plural", "singular", "kind", "namespaced", "shortNames"?, "categories"?,
//!       "storage": VERSION,
//!       "storageVersionHash"?: only where it is not the hash of group, storage and kind, because
//!                              Kubernetes keeps the objects in a form that is not served here
//!       "versions": [         most preferred first
//!         { "name", "schema"?, "verbs",
//!           "subresources"?: [ { "name", "group"?, "version"?, "kind", "verbs" } ] } ] } ] }
//! ```
//!
//! Only stable versions are taken, and dynamic resource allocation is left out: nothing in a fleet
//! without nodes allocates devices.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use base64::Engine;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::modules::KUBERNETES;
use super::read_json;

const LEFT_OUT: [&str; 1] = ["resource.k8s.io"];

#[derive(Serialize)]
pub(super) struct Served {
    kubernetes: &'static str,
    resources: Vec<Resource>,
    #[serde(skip)]
    pub(super) group_versions: Vec<(String, String)>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Resource {
    group: String,
    plural: String,
    singular: String,
    kind: String,
    namespaced: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    short_names: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    categories: Vec<String>,
    storage: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    storage_version_hash: Option<String>,
    versions: Vec<Version>,
}

#[derive(Serialize)]
struct Version {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    schema: Option<String>,
    verbs: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    subresources: Vec<Subresource>,
}

#[derive(Serialize)]
struct Subresource {
    name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    group: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    version: String,
    kind: String,
    verbs: Vec<String>,
}

/// `APIGroupList`, as far as it matters here.
#[derive(Deserialize)]
struct Groups {
    groups: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    name: String,
    versions: Vec<GroupVersion>,
}

#[derive(Deserialize)]
struct GroupVersion {
    version: String,
}

/// `APIResourceList`, likewise.
#[derive(Deserialize)]
struct Listed {
    resources: Vec<ListedResource>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListedResource {
    name: String,
    singular_name: String,
    namespaced: bool,
    #[serde(default)]
    group: String,
    #[serde(default)]
    version: String,
    kind: String,
    verbs: Vec<String>,
    #[serde(default)]
    short_names: Vec<String>,
    #[serde(default)]
    categories: Vec<String>,
    storage_version_hash: Option<String>,
}

impl Served {
    pub(super) fn to_json(&self) -> Result<String> {
        let mut lines = Vec::new();
        for resource in &self.resources {
            lines.push(serde_json::to_string(resource)?);
        }
        let all = lines.join(",\n");
        Ok(format!("{{\"kubernetes\":\"{}\",\"resources\":[\n{all}\n]}}\n", self.kubernetes))
    }

    /// Notes which definition describes the objects of each resource.
    pub(super) fn set_schemas(&mut self, find: impl Fn(&str, &str, &str) -> Option<String>) {
        for resource in &mut self.resources {
            for version in &mut resource.versions {
                version.schema = find(&resource.group, &version.name, &resource.kind);
            }
        }
    }
}

/// Reads `api/discovery` of the Kubernetes at `root`.
pub(super) fn read(root: &Path) -> Result<Served> {
    let folder = root.join("api/discovery");
    let groups: Groups = serde_json::from_value(read_json(&folder.join("apis.json"))?)?;
    let core = Group { name: String::new(), versions: vec![GroupVersion { version: "v1".into() }] };
    let mut resources: Vec<Resource> = Vec::new();
    let mut group_versions = Vec::new();
    for group in std::iter::once(core).chain(groups.groups) {
        if LEFT_OUT.contains(&&*group.name) {
            continue;
        }
        let stable: Vec<&str> =
            group.versions.iter().map(|v| &*v.version).filter(|v| is_stable(v)).collect();
        let first = resources.len();
        for version in &stable {
            group_versions.push((group.name.clone(), (*version).to_owned()));
            let file = match &*group.name {
                "" => format!("api__{version}.json"),
                name => format!("apis__{name}__{version}.json"),
            };
            let listed: Listed = serde_json::from_value(read_json(&folder.join(file))?)?;
            for entry in listed.resources {
                add(&mut resources, first, &group.name, version, &stable, entry)?;
            }
        }
    }
    Ok(Served { kubernetes: KUBERNETES, resources, group_versions })
}

/// `v1`, `v2`, but not `v1beta1`.
fn is_stable(version: &str) -> bool {
    version.strip_prefix('v').is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()))
}

fn add(
    resources: &mut Vec<Resource>,
    first: usize,
    group: &str,
    version: &str,
    versions: &[&str],
    entry: ListedResource,
) -> Result<()> {
    let of_group = resources.get_mut(first..).unwrap_or_default();
    if let Some((plural, name)) = entry.name.split_once('/') {
        let parent = of_group
            .iter_mut()
            .find(|resource| resource.plural == plural)
            .and_then(|resource| resource.versions.iter_mut().find(|v| v.name == version))
            .with_context(|| format!("{} comes before {plural}", entry.name))?;
        let ListedResource { group, version, kind, verbs, .. } = entry;
        parent.subresources.push(Subresource { name: name.into(), group, version, kind, verbs });
        return Ok(());
    }
    let stored = entry.verbs.iter().any(|verb| verb == "watch");
    ensure!(
        stored == entry.storage_version_hash.is_some(),
        "whether {group}/{} is stored cannot be told from its verbs",
        entry.name
    );
    // What hashes to none of our versions is kept in the most preferred one.
    let hashed = |version: &&&str| {
        entry.storage_version_hash == Some(storage_version_hash(group, version, &entry.kind))
    };
    let found = versions.iter().find(hashed);
    let preferred = versions.first().copied().unwrap_or(version);
    let storage = found.copied().unwrap_or(preferred).to_owned();
    let storage_version_hash = entry.storage_version_hash.filter(|_| found.is_none());
    let served = Version {
        name: version.into(),
        schema: None,
        verbs: entry.verbs,
        subresources: Vec::new(),
    };
    if let Some(known) = of_group.iter_mut().find(|resource| resource.plural == entry.name) {
        ensure!(known.storage == storage, "{group}/{} is stored in two versions", entry.name);
        known.versions.push(served);
        return Ok(());
    }
    resources.push(Resource {
        group: group.into(),
        plural: entry.name,
        singular: entry.singular_name,
        kind: entry.kind,
        namespaced: entry.namespaced,
        short_names: entry.short_names,
        categories: entry.categories,
        storage,
        storage_version_hash,
        versions: vec![served],
    });
    Ok(())
}

fn storage_version_hash(group: &str, version: &str, kind: &str) -> String {
    let digest = Sha256::digest(format!("{group}/{version}/{kind}"));
    let first = digest.get(..8).unwrap_or_default();
    base64::engine::general_purpose::STANDARD.encode(first)
}
