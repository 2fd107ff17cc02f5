//! Everything a namespace holds, read from the server, whatever its kind.
//!
//! One request per kind that the server serves; so only whoever is about to delete a namespace asks.
//! What it means is not judged here.

use cleat_core::id::Id;
use cleat_core::work::contents::{Contents, Found, judge};
use cleat_core::work::observed::Owner;
use futures::{StreamExt as _, TryStreamExt as _};
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

/// What a namespace holds, as far as deleting it is concerned. `hub_hash` is that of our hub's
/// address; marks for it are ours.
pub async fn contents(client: &Client, kinds: &Kinds, namespace: &str, hub_hash: &str) -> Contents {
    match found(client, kinds, namespace).await {
        Ok(found) => judge(&found, hub_hash),
        Err(why) => Contents::Unknown(format!("what it holds cannot be seen: {why}")),
    }
}

/// Everything in a namespace, or why that cannot be told.
pub async fn found(client: &Client, kinds: &Kinds, namespace: &str) -> Result<Vec<Found>, String> {
    lists(client, kinds.namespaced().await?, Some(namespace)).await
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
    let (found, more) = list_some(client, kind, None, most).await?;
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
    list_some(client, kind, namespace, usize::MAX).await.map(|(found, _)| found)
}

/// The first pages of a list, until there are at least `most` objects, and how many come after them.
async fn list_some(
    client: &Client,
    kind: &Mapped,
    namespace: Option<&str>,
    most: usize,
) -> Result<(Vec<Found>, u64), String> {
    let Mapped { group, version, resource, namespaced: _ } = kind;
    let named =
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, ""), resource);
    let api: Api<DynamicObject> = match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &named),
        None => Api::all_with(client.clone(), &named),
    };
    let mut params = ListParams::default().limit(PAGE);
    let (mut found, mut more) = (Vec::new(), 0);
    loop {
        let asked = tokio::time::timeout(wire::PATIENCE, api.list_metadata(&params)).await;
        let page = match asked {
            Ok(Ok(page)) => page,
            // What cannot be listed holds nothing, such as reviews; what is served no more, neither.
            Ok(Err(kube::Error::Api(status))) if matches!(status.code, 404 | 405) => break,
            Ok(Err(error)) => return Err(format!("{resource}: {}", wire::causes(&error))),
            Err(_) => return Err(format!("{resource}: the server does not answer")),
        };
        found.extend(page.items.into_iter().map(|one| read(kind, one.metadata)));
        more = page.metadata.remaining_item_count.unwrap_or_default();
        match page.metadata.continue_.filter(|next| !next.is_empty()) {
            Some(next) if found.len() < most => params.continue_token = Some(next),
            _ => break,
        }
    }
    Ok((found, u64::try_from(more).unwrap_or_default()))
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
