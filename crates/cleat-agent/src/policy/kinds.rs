//! Which resource serves a kind; and that none does only where that is proven.

use cleat_core::policy::observed::{Kind, KindName, Policy, Served};
use cleat_runtime::kinds::Mapping;
use serde::Deserialize;

use super::Context;

/// As much of the definitions as says which kinds they define.
#[derive(Deserialize)]
struct Definitions {
    items: Vec<Definition>,
}

#[derive(Deserialize)]
struct Definition {
    spec: Spec,
}

#[derive(Deserialize)]
struct Spec {
    group: String,
    names: Names,
}

#[derive(Deserialize)]
struct Names {
    kind: String,
}

impl Context {
    pub(super) async fn kind(&self, name: &KindName, policy: &Policy) -> Kind {
        match self.kinds.map(&name.api_version, &name.kind).await {
            Mapping::Mapped(mapped) => Kind::Served(Served {
                group: mapped.group,
                version: mapped.version,
                resource: mapped.resource,
                namespaced: mapped.namespaced,
            }),
            Mapping::Unknown(message) => Kind::Unknown(message),
            Mapping::NoSuchKind if !lists(policy, name) => Kind::Absent,
            // What the policy made of this kind may be there though nobody serves it.
            Mapping::NoSuchKind => match self.is_defined(name).await {
                Ok(false) => Kind::Absent,
                Ok(true) => Kind::Unknown(format!(
                    "the cluster defines {} but does not serve it as {} now",
                    name.kind, name.api_version
                )),
                Err(message) => Kind::Unknown(message),
            },
        }
    }

    async fn is_defined(&self, name: &KindName) -> Result<bool, String> {
        let Some((group, _)) = name.api_version.split_once('/') else { return Ok(false) };
        let uri = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let request =
            http::Request::get(uri).body(Vec::new()).map_err(|error| error.to_string())?;
        let all: Definitions = self
            .config
            .cluster_client
            .request(request)
            .await
            .map_err(|error| format!("the definitions of kinds cannot be read: {error}"))?;
        let mut specs = all.items.iter().map(|definition| &definition.spec);
        Ok(specs.any(|spec| spec.group == group && spec.names.kind == name.kind))
    }
}

/// Whether anything of this kind is on record.
fn lists(policy: &Policy, name: &KindName) -> bool {
    let mut all = policy.status.related_objects.iter().map(|entry| &entry.object);
    all.any(|object| object.api_version == name.api_version && object.kind == name.kind)
}
