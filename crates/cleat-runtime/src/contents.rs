//! Everything a namespace holds, read from the server, whatever its kind; and every object of a
//! definition.
//!
//! For a namespace that is one request per kind that the server serves; so only whoever is about to delete
//! it asks. What it means is not judged here.

mod above;

use std::collections::BTreeMap;

use cleat_core::id::Id;
use cleat_core::work::contents::{Contents, Found, judge};
use cleat_core::work::observed::Owner;
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, ListParams};
use kube::core::GroupVersionKind;

use crate::kinds::{Kinds, Mapped};
use crate::wire;

/// Kinds asked for at the same time.
const AT_ONCE: usize = 8;
const PAGE: u32 = 500;
/// The service account a secret's token is for.
const ACCOUNT: &str = "kubernetes.io/service-account.name";

/// What a namespace or a definition holds, as far as deleting it is concerned. `hub_hash` is that of our
/// hub's address; marks for it are ours.
pub async fn contents(client: &Client, kinds: &Kinds, holder: &Id, hub_hash: &str) -> Contents {
    match held(client, kinds, holder).await {
        Ok(found) => judge(&found, hub_hash),
        Err(why) => Contents::Unknown(format!("what it holds cannot be seen: {why}")),
    }
}

/// Everything in a namespace or of a definition, and how its owners stand; or why that cannot be told.
pub async fn held(client: &Client, kinds: &Kinds, holder: &Id) -> Result<Vec<Found>, String> {
    match holder.resource.as_str() {
        "customresourcedefinitions" => defined(client, kinds, &holder.name).await,
        _ => found(client, kinds, &holder.name).await,
    }
}

/// Everything in a namespace, and how its owners stand; or why that cannot be told.
pub async fn found(client: &Client, kinds: &Kinds, namespace: &str) -> Result<Vec<Found>, String> {
    let mut found = lists(client, kinds.namespaced().await?, Some(namespace)).await?;
    above::look(client, kinds, &mut found).await;
    Ok(found)
}

/// The same of a definition.
async fn defined(client: &Client, kinds: &Kinds, name: &str) -> Result<Vec<Found>, String> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let definition = match tokio::time::timeout(wire::PATIENCE, definitions.get_opt(name)).await {
        Ok(Ok(Some(definition))) => definition,
        // Everything of its kind went with it.
        Ok(Ok(None)) => return Ok(Vec::new()),
        Ok(Err(error)) => return Err(format!("{name}: {}", wire::causes(&error))),
        Err(_) => return Err(format!("{name}: the server does not answer")),
    };
    if !is_established(&definition) {
        // Nobody could make anything of it yet.
        return Ok(Vec::new());
    }
    let kind = served(&definition).ok_or_else(|| format!("{name}: no version of it is served"))?;
    let listed = list_some(client, &kind, None, usize::MAX).await?;
    let (mut found, _) = listed.ok_or_else(|| format!("{name}: it is not served now"))?;
    above::look(client, kinds, &mut found).await;
    Ok(found)
}

fn is_established(definition: &CustomResourceDefinition) -> bool {
    let conditions = definition.status.iter().flat_map(|status| &status.conditions).flatten();
    conditions.into_iter().any(|one| one.type_ == "Established" && one.status == "True")
}

/// The kind that a definition defines, in the version that is stored if that is served.
fn served(definition: &CustomResourceDefinition) -> Option<Mapped> {
    let spec = &definition.spec;
    let served = spec.versions.iter().filter(|version| version.served);
    let version = served.max_by_key(|version| version.storage)?;
    Some(Mapped {
        group: spec.group.clone(),
        version: version.name.clone(),
        resource: spec.names.plural.clone(),
        namespaced: spec.scope == "Namespaced",
    })
}

/// Everything on the server, in namespaces or not, or why that cannot be told.
pub async fn found_anywhere(client: &Client, kinds: &Kinds) -> Result<Vec<Found>, String> {
    lists(client, kinds.everything().await?, None).await
}

/// The objects of one kind.
pub struct Instances {
    /// No more of them than somebody wanted to look at.
    pub found: Vec<Found>,
    pub count: u64,
}

/// How many objects there are of one kind, and what at least `most` of them are, if there are so many.
pub async fn instances(client: &Client, kind: &Mapped, most: usize) -> Result<Instances, String> {
    let (found, more) = list_some(client, kind, None, most).await?.unwrap_or_default();
    let count = (found.len() as u64).saturating_add(more);
    Ok(Instances { found, count })
}

async fn lists(
    client: &Client,
    kinds: Vec<Mapped>,
    namespace: Option<&str>,
) -> Result<Vec<Found>, String> {
    let lists = kinds.into_iter().map(|kind| {
        let (client, namespace) = (client.clone(), namespace.map(ToOwned::to_owned));
        async move { list(&client, &kind, namespace.as_deref()).await }
    });
    let lists: Vec<Vec<Found>> =
        futures::stream::iter(lists).buffer_unordered(AT_ONCE).try_collect().await?;
    Ok(lists.into_iter().flatten().collect())
}

async fn list(
    client: &Client,
    kind: &Mapped,
    namespace: Option<&str>,
) -> Result<Vec<Found>, String> {
    // What cannot be listed holds nothing, such as reviews; what is served no more, neither.
    let listed = list_some(client, kind, namespace, usize::MAX).await?;
    Ok(listed.unwrap_or_default().0)
}

/// The first pages of a list, until there are at least `most` objects, and how many come after them.
/// `None`: it is not served, or not to be listed.
async fn list_some(
    client: &Client,
    kind: &Mapped,
    namespace: Option<&str>,
    most: usize,
) -> Result<Option<(Vec<Found>, u64)>, String> {
    let Mapped { group, version, resource, namespaced: _ } = kind;
    let named =
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, ""), resource);
    let api: Api<DynamicObject> = match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &named),
        None => Api::all_with(client.clone(), &named),
    };
    let mut params = ListParams::default().limit(PAGE);
    let mut found = Vec::new();
    let more = loop {
        let asked = tokio::time::timeout(wire::PATIENCE, api.list_metadata(&params)).await;
        let page = match asked {
            Ok(Ok(page)) => page,
            Ok(Err(kube::Error::Api(status))) if matches!(status.code, 404 | 405) => {
                return Ok(None);
            }
            Ok(Err(error)) => return Err(format!("{resource}: {}", wire::causes(&error))),
            Err(_) => return Err(format!("{resource}: the server does not answer")),
        };
        found.extend(page.items.into_iter().map(|one| read(kind, one.metadata)));
        let more = page.metadata.remaining_item_count.unwrap_or_default();
        match page.metadata.continue_.filter(|next| !next.is_empty()) {
            Some(next) if found.len() < most => params.continue_token = Some(next),
            _ => break more,
        }
    };
    Ok(Some((found, u64::try_from(more).unwrap_or_default())))
}

fn read(kind: &Mapped, metadata: ObjectMeta) -> Found {
    let account = metadata.annotations.as_ref().and_then(|all| all.get(ACCOUNT)).cloned();
    Found {
        id: Id {
            group: kind.group.clone(),
            resource: kind.resource.clone(),
            namespace: metadata.namespace.unwrap_or_default(),
            name: metadata.name.unwrap_or_default(),
        },
        uid: metadata.uid.unwrap_or_default(),
        terminating: metadata.deletion_timestamp.is_some(),
        owners: metadata.owner_references.unwrap_or_default().into_iter().map(owner).collect(),
        above: BTreeMap::new(),
        account,
        labels: metadata.labels.unwrap_or_default(),
        finalizers: metadata.finalizers.unwrap_or_default(),
    }
}

fn owner(reference: OwnerReference) -> Owner {
    let OwnerReference { api_version, kind, name, uid, controller, block_owner_deletion } =
        reference;
    Owner { api_version, kind, name, uid, controller, block_owner_deletion }
}
