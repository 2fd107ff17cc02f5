//! Which resource serves a kind; and that none does only where that is proven.

use cleat_core::policy::observed::{Kind, KindName, Policy, Served};
use cleat_runtime::kinds::{Kinds, Mapped, Mapping};
use kube::Client;
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
    versions: Vec<Version>,
}

#[derive(Deserialize)]
struct Version {
    name: String,
    served: bool,
}

#[derive(Deserialize)]
struct Names {
    kind: String,
}

impl Context {
    /// `wanted`: a template may say so, and means this version.
    pub(super) async fn kind(&self, name: &KindName, policy: &Policy, wanted: bool) -> Kind {
        let server = Server { client: &self.config.cluster_client, kinds: &self.kinds };
        server.kind(name, policy, wanted).await
    }
}

/// Who is asked.
pub(crate) struct Server<'a> {
    pub(crate) client: &'a Client,
    pub(crate) kinds: &'a Kinds,
}

impl Server<'_> {
    pub(super) async fn kind(&self, name: &KindName, policy: &Policy, wanted: bool) -> Kind {
        match self.kinds.map(&name.api_version, &name.kind).await {
            Mapping::Mapped(mapped) => served(mapped),
            Mapping::Unknown(message) => Kind::Unknown(message),
            Mapping::NoSuchKind if !lists(policy, name) => Kind::Absent,
            // What the policy made of this kind may be there though nobody serves it.
            Mapping::NoSuchKind => match self.defined(name).await {
                Ok(None) => Kind::Absent,
                Ok(Some(spec)) if !wanted => self.in_another_version(name, &spec).await,
                Ok(Some(_)) => Kind::Unknown(format!(
                    "the cluster defines {} but does not serve it as {} now",
                    name.kind, name.api_version
                )),
                Err(message) => Kind::Unknown(message),
            },
        }
    }

    /// How to look at what was made of a kind, in whichever version.
    pub(crate) async fn kind_of_made(&self, name: &KindName) -> Kind {
        match self.kinds.map(&name.api_version, &name.kind).await {
            Mapping::Mapped(mapped) => served(mapped),
            Mapping::Unknown(message) => Kind::Unknown(message),
            Mapping::NoSuchKind => match self.defined(name).await {
                Ok(None) => Kind::Absent,
                Ok(Some(spec)) => self.in_another_version(name, &spec).await,
                Err(message) => Kind::Unknown(message),
            },
        }
    }

    /// An object is the same one in every version of its kind, so that any of them will do to look at
    /// it and to delete it.
    async fn in_another_version(&self, name: &KindName, spec: &Spec) -> Kind {
        let all = spec.versions.iter().filter(|version| version.served);
        for version in all {
            let api_version = format!("{}/{}", spec.group, version.name);
            match self.kinds.map(&api_version, &name.kind).await {
                Mapping::Mapped(mapped) => return served(mapped),
                Mapping::Unknown(message) => return Kind::Unknown(message),
                Mapping::NoSuchKind => {}
            }
        }
        Kind::Unknown(format!("the cluster defines {} but does not serve it now", name.kind))
    }

    async fn defined(&self, name: &KindName) -> Result<Option<Spec>, String> {
        let Some((group, _)) = name.api_version.split_once('/') else { return Ok(None) };
        let uri = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let request =
            http::Request::get(uri).body(Vec::new()).map_err(|error| error.to_string())?;
        let all: Definitions = self
            .client
            .request(request)
            .await
            .map_err(|error| format!("the definitions of kinds cannot be read: {error}"))?;
        let mut specs = all.items.into_iter().map(|definition| definition.spec);
        Ok(specs.find(|spec| spec.group == group && spec.names.kind == name.kind))
    }
}

fn served(mapped: Mapped) -> Kind {
    let Mapped { group, version, resource, namespaced } = mapped;
    Kind::Served(Served { group, version, resource, namespaced })
}

/// Whether anything of this kind is on record.
fn lists(policy: &Policy, name: &KindName) -> bool {
    let mut all = policy.status.related_objects.iter().map(|entry| &entry.object);
    all.any(|object| object.api_version == name.api_version && object.kind == name.kind)
}
