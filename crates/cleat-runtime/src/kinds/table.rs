//! What discovery documents say, in a form to look things up in. Pure.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::Mapped;

/// All that a server serves.
#[derive(Default)]
pub(super) struct Table {
    /// By group, its versions, preferred ones first.
    versions: BTreeMap<String, Vec<String>>,
    /// By group, version and kind.
    kinds: BTreeMap<(String, String, String), Resource>,
    /// Groups of which the server itself does not know now what they hold.
    stale: BTreeSet<String>,
}

struct Resource {
    name: String,
    namespaced: bool,
}

pub(super) enum Found {
    Mapped(Mapped),
    Nothing,
    /// Nothing, but the group's discovery is incomplete.
    Stale(String),
}

impl Table {
    pub(super) fn kind(&self, group: &str, version: &str, kind: &str) -> Found {
        let key = (group.to_owned(), version.to_owned(), kind.to_owned());
        match self.kinds.get(&key) {
            Some(resource) => {
                let (group, version, _) = key;
                let Resource { name, namespaced } = resource;
                let (resource, namespaced) = (name.clone(), *namespaced);
                Found::Mapped(Mapped { group, version, resource, namespaced })
            }
            None => self.nothing(group),
        }
    }

    /// The same, in the first version of its group that has it, if this one has not.
    pub(super) fn kind_in_any_version(&self, group: &str, version: &str, kind: &str) -> Found {
        let others = self.versions.get(group).into_iter().flatten();
        let versions = [version].into_iter().chain(others.map(String::as_str));
        let mut found = versions.map(|version| self.kind(group, version, kind));
        found.find(|one| matches!(one, Found::Mapped(_))).unwrap_or_else(|| self.nothing(group))
    }

    pub(super) fn resource(&self, group: &str, resource: &str) -> Found {
        let versions = self.versions.get(group).into_iter().flatten();
        for version in versions {
            let first = (group.to_owned(), version.clone(), String::new());
            let of_version =
                self.kinds.range(first..).take_while(|((g, v, _), _)| g == group && v == version);
            for (_, served) in of_version {
                if served.name == resource {
                    return Found::Mapped(Mapped {
                        group: group.to_owned(),
                        version: version.clone(),
                        resource: resource.to_owned(),
                        namespaced: served.namespaced,
                    });
                }
            }
        }
        self.nothing(group)
    }

    /// Everything that lives in namespaces, each once, in the version the server prefers; or a group
    /// of which that is not known.
    pub(super) fn namespaced(&self) -> Result<Vec<Mapped>, String> {
        let all = self.everything()?;
        Ok(all.into_iter().filter(|mapped| mapped.namespaced).collect())
    }

    /// The same of everything, in namespaces or not.
    pub(super) fn everything(&self) -> Result<Vec<Mapped>, String> {
        if let Some(group) = self.stale.first() {
            return Err(group.clone());
        }
        let mut found: BTreeMap<(String, String), Mapped> = BTreeMap::new();
        for (group, versions) in &self.versions {
            for version in versions {
                let first = (group.clone(), version.clone(), String::new());
                let of_version = self
                    .kinds
                    .range(first..)
                    .take_while(|((g, v, _), _)| g == group && v == version);
                for (_, served) in of_version {
                    found.entry((group.clone(), served.name.clone())).or_insert_with(|| Mapped {
                        group: group.clone(),
                        version: version.clone(),
                        resource: served.name.clone(),
                        namespaced: served.namespaced,
                    });
                }
            }
        }
        Ok(found.into_values().collect())
    }

    fn nothing(&self, group: &str) -> Found {
        if self.stale.contains(group) { Found::Stale(group.to_owned()) } else { Found::Nothing }
    }

    pub(super) fn mark_stale(&mut self, group: &str, version: &str) {
        tracing::debug!(group, version, "discovery is incomplete");
        self.stale.insert(group.to_owned());
    }

    /// Reads what `/api` or `/apis` answered, in any of three forms. What must be asked for alone is
    /// given back.
    pub(super) fn read(&mut self, body: &[u8]) -> serde_json::Result<Vec<(String, String)>> {
        let Root { items, groups, versions } = serde_json::from_slice(body)?;
        let mut alone = Vec::new();
        for group in items {
            self.read_group(group);
        }
        for Group { name, versions, preferred_version } in groups {
            let mut names: Vec<String> = versions.into_iter().map(|one| one.version).collect();
            let preferred = preferred_version.version;
            names.sort_by_key(|version| *version != preferred);
            alone.extend(names.iter().map(|version| (name.clone(), version.clone())));
            self.versions.insert(name, names);
        }
        if !versions.is_empty() {
            alone.extend(versions.iter().map(|version| (String::new(), version.clone())));
            self.versions.insert(String::new(), versions);
        }
        Ok(alone)
    }

    /// Reads what one version of a group answered for itself.
    pub(super) fn read_version(
        &mut self,
        group: &str,
        version: &str,
        body: &[u8],
    ) -> serde_json::Result<()> {
        let Resources { resources } = serde_json::from_slice(body)?;
        for PlainResource { name, kind, namespaced } in resources {
            // Subresources come as resources with a slash.
            if !name.contains('/') {
                self.insert(group, version, kind, Resource { name, namespaced });
            }
        }
        Ok(())
    }

    fn read_group(&mut self, group: AggregatedGroup) {
        let name = group.metadata.name;
        let mut names = Vec::new();
        for AggregatedVersion { version, freshness, resources } in group.versions {
            if freshness == "Stale" {
                self.mark_stale(&name, &version);
            }
            for AggregatedResource { resource, response_kind, scope } in resources {
                // One without a kind has only subresources.
                if let Some(kind) = response_kind.filter(|kind| !kind.kind.is_empty()) {
                    let namespaced = scope == "Namespaced";
                    self.insert(
                        &name,
                        &version,
                        kind.kind,
                        Resource { name: resource, namespaced },
                    );
                }
            }
            names.push(version);
        }
        self.versions.insert(name, names);
    }

    fn insert(&mut self, group: &str, version: &str, kind: String, resource: Resource) {
        let key = (group.to_owned(), version.to_owned(), kind);
        self.kinds.entry(key).or_insert(resource);
    }
}

/// Three documents in one: aggregated groups, plain groups, versions of the core group.
#[derive(Deserialize)]
struct Root {
    #[serde(default)]
    items: Vec<AggregatedGroup>,
    #[serde(default)]
    groups: Vec<Group>,
    #[serde(default)]
    versions: Vec<String>,
}

#[derive(Deserialize)]
struct AggregatedGroup {
    #[serde(default)]
    metadata: GroupName,
    #[serde(default)]
    versions: Vec<AggregatedVersion>,
}

/// The core group's name is empty, and then not sent.
#[derive(Deserialize, Default)]
struct GroupName {
    #[serde(default)]
    name: String,
}

#[derive(Deserialize)]
struct AggregatedVersion {
    version: String,
    #[serde(default)]
    freshness: String,
    #[serde(default)]
    resources: Vec<AggregatedResource>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AggregatedResource {
    resource: String,
    response_kind: Option<ResponseKind>,
    #[serde(default)]
    scope: String,
}

#[derive(Deserialize)]
struct ResponseKind {
    #[serde(default)]
    kind: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Group {
    name: String,
    #[serde(default)]
    versions: Vec<GroupVersion>,
    #[serde(default)]
    preferred_version: GroupVersion,
}

#[derive(Deserialize, Default)]
struct GroupVersion {
    version: String,
}

#[derive(Deserialize)]
struct Resources {
    resources: Vec<PlainResource>,
}

#[derive(Deserialize)]
struct PlainResource {
    name: String,
    kind: String,
    #[serde(default)]
    namespaced: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn mapped(found: Found) -> String {
        match found {
            Found::Mapped(Mapped { group, version, resource, namespaced }) => {
                format!("{resource}.{version}.{group} {namespaced}")
            }
            Found::Nothing => "nothing".to_owned(),
            Found::Stale(group) => format!("stale {group}"),
        }
    }

    fn check(table: &Table) {
        let kinds = [
            ("", "v1", "Pod", "pods.v1. true"),
            ("", "v1", "Namespace", "namespaces.v1. false"),
            ("apps", "v1", "Deployment", "deployments.v1.apps true"),
            ("apps", "v1beta1", "Deployment", "deployments.v1beta1.apps true"),
            ("apps", "v2", "Deployment", "nothing"),
            ("metrics", "v1", "PodMetrics", "stale metrics"),
            ("other", "v1", "Pod", "nothing"),
        ];
        for (group, version, kind, expected) in kinds {
            assert_eq!(mapped(table.kind(group, version, kind)), expected);
        }
        let any = |group: &str, version: &str| {
            mapped(table.kind_in_any_version(group, version, "Deployment"))
        };
        assert_eq!(any("apps", "v1beta1"), "deployments.v1beta1.apps true");
        assert_eq!(any("apps", "v1alpha1"), "deployments.v1.apps true");
        assert_eq!([any("other", "v1"), any("metrics", "v1")], ["nothing", "stale metrics"]);
        assert_eq!(mapped(table.resource("apps", "deployments")), "deployments.v1.apps true");
        assert_eq!(mapped(table.resource("apps", "old")), "old.v1beta1.apps false");
        assert_eq!(mapped(table.resource("apps", "pods")), "nothing");
        assert_eq!(mapped(table.resource("metrics", "pods")), "stale metrics");
    }

    #[test]
    fn aggregated_documents_tell_everything_at_once() {
        let one = |resource: &str, kind: &str, scope: &str| {
            json!({ "resource": resource, "responseKind": { "group": "", "kind": kind },
                    "scope": scope, "subresources": [{ "subresource": "status" }] })
        };
        let core = json!({ "kind": "APIGroupDiscoveryList", "items": [{
            "metadata": { "creationTimestamp": null },
            "versions": [{ "version": "v1", "freshness": "Current", "resources": [
                one("pods", "Pod", "Namespaced"), one("namespaces", "Namespace", "Cluster"),
                { "resource": "only-subresources", "scope": "Cluster" },
            ] }],
        }] });
        let groups = json!({ "kind": "APIGroupDiscoveryList", "items": [
            { "metadata": { "name": "apps" }, "versions": [
                { "version": "v1", "resources": [one("deployments", "Deployment", "Namespaced")] },
                { "version": "v1beta1", "resources": [
                    one("deployments", "Deployment", "Namespaced"), one("old", "Old", "Cluster"),
                ] },
            ] },
            { "metadata": { "name": "metrics" }, "versions": [{ "version": "v1", "freshness": "Stale" }] },
        ] });
        let mut table = Table::default();
        for document in [core, groups] {
            assert_eq!(table.read(document.to_string().as_bytes()).unwrap(), []);
        }
        check(&table);
    }

    #[test]
    fn plain_documents_say_what_to_ask_for() {
        let mut table = Table::default();
        let core = br#"{ "kind": "APIVersions", "versions": ["v1"] }"#;
        let groups = br#"{ "kind": "APIGroupList", "groups": [
            { "name": "apps", "preferredVersion": { "groupVersion": "apps/v1", "version": "v1" },
              "versions": [{ "version": "v1beta1" }, { "version": "v1" }] },
            { "name": "metrics", "versions": [{ "version": "v1" }] } ] }"#;
        let mut alone = table.read(core).unwrap();
        alone.extend(table.read(groups).unwrap());
        let deployments = r#"{ "name": "deployments", "kind": "Deployment", "namespaced": true }"#;
        for (group, version) in alone {
            let resources = match (group.as_str(), version.as_str()) {
                ("", "v1") => {
                    r#"{ "name": "pods", "kind": "Pod", "namespaced": true },
                       { "name": "pods/eviction", "kind": "Eviction", "namespaced": true },
                       { "name": "namespaces", "kind": "Namespace", "namespaced": false }"#
                }
                ("apps", "v1") => deployments,
                ("apps", "v1beta1") => {
                    &format!(r#"{deployments}, {{ "name": "old", "kind": "Old" }}"#)
                }
                _ => {
                    table.mark_stale(&group, &version);
                    continue;
                }
            };
            let body = format!(r#"{{ "kind": "APIResourceList", "resources": [{resources}] }}"#);
            table.read_version(&group, &version, body.as_bytes()).unwrap();
        }
        check(&table);
    }
}
