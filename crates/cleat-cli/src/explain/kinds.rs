//! What a server serves, and what people mean by the name of a kind.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResource;
use kube::Client;
use kube::core::{ApiResource, GroupVersionKind};

use crate::Refused;
use crate::discovery::{Discovery, Version};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Served {
    pub(super) group: String,
    pub(super) version: String,
    pub(super) resource: String,
    pub(super) kind: String,
    singular: String,
    short: Vec<String>,
    pub(super) namespaced: bool,
    verbs: Vec<String>,
}

impl Served {
    pub(super) fn api_resource(&self) -> ApiResource {
        let kind = GroupVersionKind::gvk(&self.group, &self.version, &self.kind);
        ApiResource::from_gvk_with_plural(&kind, &self.resource)
    }

    /// Whether objects of it are stored, listed and deleted one by one.
    pub(super) fn is_content(&self) -> bool {
        ["list", "delete"].iter().all(|verb| self.verbs.iter().any(|one| one == verb))
    }

    /// `deployments.apps`
    pub(super) fn full_name(&self) -> String {
        let dot = if self.group.is_empty() { "" } else { "." };
        format!("{}{dot}{}", self.resource, self.group)
    }

    fn is_called(&self, name: &str) -> bool {
        let kind = self.kind.to_lowercase();
        [&self.resource, &self.singular, &kind].contains(&&name.to_owned())
            || self.short.iter().any(|one| one == name)
    }
}

/// All that is served, each resource once per group, in the version the server prefers.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    pub(super) all: Vec<Served>,
    /// Groups that did not say what they serve, and why.
    pub(super) stale: Vec<(String, String)>,
}

impl Table {
    pub(super) async fn read(client: &Client) -> Result<Self, kube::Error> {
        let Discovery { versions, stale } = Discovery::read(client).await?;
        let mut table = Self { all: Vec::new(), stale };
        for Version { group, version, resources } in versions {
            table.add(&group, &version, resources);
        }
        Ok(table)
    }

    fn add(&mut self, group: &str, version: &str, resources: Vec<APIResource>) {
        for one in resources {
            let known = |served: &Served| served.group == group && served.resource == one.name;
            if self.all.iter().any(known) {
                continue;
            }
            self.all.push(Served {
                group: group.to_owned(),
                version: version.to_owned(),
                resource: one.name,
                kind: one.kind,
                singular: one.singular_name,
                short: one.short_names.unwrap_or_default(),
                namespaced: one.namespaced,
                verbs: one.verbs,
            });
        }
    }

    pub(super) fn resource(&self, group: &str, resource: &str) -> Option<&Served> {
        self.all.iter().find(|one| one.group == group && one.resource == resource)
    }

    pub(super) fn kind(&self, group: &str, kind: &str) -> Option<&Served> {
        self.all.iter().find(|one| one.group == group && one.kind == kind)
    }

    /// Why nothing may be concluded from a group's silence.
    pub(super) fn stale(&self, group: &str) -> Option<&str> {
        let prefix = format!("{group}/");
        self.stale.iter().find(|(name, _)| name.starts_with(&prefix)).map(|(_, why)| why.as_str())
    }

    /// What people mean: `deploy`, `Deployment`, `deployments`, `deployments.apps`,
    /// `deployments.v1.apps`.
    pub(super) fn meant(&self, name: &str) -> Result<&Served, Refused> {
        let lower = name.to_lowercase();
        let mut found: Vec<&Served> = self.all.iter().filter(|one| one.is_called(&lower)).collect();
        if let (true, Some((kind, group))) = (found.is_empty(), lower.split_once('.')) {
            let in_group = |one: &&Served| {
                let versioned = group.strip_prefix(&format!("{}.", one.version));
                one.is_called(kind) && (one.group == group || versioned == Some(&*one.group))
            };
            found = self.all.iter().filter(in_group).collect();
        }
        // Where the core group serves it, that is what is meant, as with `kubectl`.
        if let Some(core) = found.iter().position(|one| one.group.is_empty()) {
            found = vec![found.swap_remove(core)];
        }
        match found.as_slice() {
            [one] => Ok(one),
            [] => Err(self.unknown(name, &lower)),
            several => {
                let names: Vec<String> = several.iter().map(|one| one.full_name()).collect();
                Err(Refused(format!("{name} may be any of {}; say which", names.join(", "))))
            }
        }
    }

    fn unknown(&self, name: &str, lower: &str) -> Refused {
        let stem = lower.trim_end_matches('s');
        let near: Vec<String> = self
            .all
            .iter()
            .filter(|one| stem.len() > 2 && one.resource.contains(stem))
            .take(5)
            .map(Served::full_name)
            .collect();
        let mut text = format!("this server serves no kind {name}");
        if near.is_empty() {
            text.push_str("; `kubectl api-resources` shows all");
        } else {
            text.push_str(&format!("; did you mean {}?", near.join(", ")));
        }
        let groups: Vec<&str> = self.stale.iter().map(|(group, _)| group.as_str()).collect();
        if !groups.is_empty() {
            text.push_str(&format!(
                " It cannot tell now what it serves in {}; `cleat explain apiservice/…` says why",
                groups.join(", ")
            ));
        }
        Refused(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(group: &str, resource: &str, kind: &str, short: &str) -> Served {
        let [group, resource, kind] = [group, resource, kind].map(ToOwned::to_owned);
        let singular = kind.to_lowercase();
        let short = vec![short.to_owned()];
        let version = "v1".to_owned();
        Served { group, version, resource, kind, singular, short, ..Served::default() }
    }

    #[test]
    fn a_kind_is_found_by_any_name_it_has() {
        let table = Table {
            all: vec![
                served("", "namespaces", "Namespace", "ns"),
                served("", "events", "Event", "ev"),
                served("events.k8s.io", "events", "Event", "ev"),
                served("apps", "deployments", "Deployment", "deploy"),
                served("a.example", "policies", "Policy", "pol"),
                served("b.example", "policies", "Policy", "plc"),
            ],
            stale: Vec::new(),
        };
        for (name, expected) in [
            ("ns", "namespaces"),
            ("Namespace", "namespaces"),
            ("events", "events"),
            ("events.events.k8s.io", "events.events.k8s.io"),
            ("deployments.apps", "deployments.apps"),
            ("deploy.apps", "deployments.apps"),
            ("deployments.v1.apps", "deployments.apps"),
            ("plc", "policies.b.example"),
            ("policy.a.example", "policies.a.example"),
        ] {
            let found = table.meant(name).map(Served::full_name);
            assert_eq!(found.map_err(|error| error.0), Ok(expected.to_owned()), "{name}");
        }
        let says = |name: &str| table.meant(name).unwrap_err().0;
        assert!(says("policies").contains("policies.a.example, policies.b.example"));
        assert!(says("deploymentz").contains("serves no kind"));
        assert!(says("polic").contains("did you mean policies.a.example"));
    }
}
