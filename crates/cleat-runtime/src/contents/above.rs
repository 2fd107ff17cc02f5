//! Who owns what was found, where that is not among it: each is read, with its own owners, since what
//! belongs to something that lives waits for nobody. What it means is not judged here.

use std::collections::{BTreeMap, BTreeSet};

use cleat_core::id::{Id, Target};
use cleat_core::work::contents::{Above, Found};
use cleat_core::work::observed::Owner;
use cleat_core::write::Side;
use futures::StreamExt as _;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Client;
use serde::Deserialize as _;
use serde_json::Value;

use super::{AT_ONCE, owner};
use crate::execute::{self, Executor, Read};
use crate::kinds::{Kinds, Mapping};

/// Owners of owners are not followed further than this; nobody knows then how they stand.
const GENERATIONS: usize = 8;

/// An owner, and the namespace of what it owns: it is there as well, or in none.
type Reference = (Owner, String);

/// Notes in everything that was found how the owners stand that are not among it.
pub(super) async fn look(client: &Client, kinds: &Kinds, found: &mut [Found]) {
    let here: BTreeSet<String> = found.iter().map(|one| one.uid.clone()).collect();
    let mut known: BTreeMap<String, Above> = BTreeMap::new();
    // What is on its way out is waited for, whoever owns it.
    let staying = found.iter().filter(|one| !one.terminating);
    let mut open: BTreeMap<String, Reference> =
        staying.flat_map(|one| missing(&one.owners, &one.id.namespace, &here, &known)).collect();
    let cluster = Some(client.clone());
    let executor = Executor::new(execute::Config { cluster, ..execute::Config::default() });
    for _ in 0..GENERATIONS {
        let reads = std::mem::take(&mut open).into_iter().map(|(uid, reference)| {
            let executor = &executor;
            async move { (uid, read(executor, kinds, reference).await) }
        });
        let reads: Vec<_> = futures::stream::iter(reads).buffer_unordered(AT_ONCE).collect().await;
        let spaces: Vec<(String, String)> = reads
            .into_iter()
            .map(|(uid, (above, namespace))| {
                known.insert(uid.clone(), above);
                (uid, namespace)
            })
            .collect();
        for (uid, namespace) in spaces {
            if let Some(Above::There { terminating: false, owners }) = known.get(&uid) {
                open.extend(missing(owners, &namespace, &here, &known));
            }
        }
        if open.is_empty() {
            break;
        }
    }
    for one in found.iter_mut().filter(|one| !one.terminating) {
        one.above = reached(&one.owners, &known);
    }
}

/// The owners of which nothing is known yet. A ledger says by its name whose it is.
fn missing(
    owners: &[Owner],
    namespace: &str,
    here: &BTreeSet<String>,
    known: &BTreeMap<String, Above>,
) -> Vec<(String, Reference)> {
    let unknown = |owner: &&Owner| {
        !owner.is_ledger() && !here.contains(&owner.uid) && !known.contains_key(&owner.uid)
    };
    let missing = owners.iter().filter(unknown);
    missing.map(|owner| (owner.uid.clone(), (owner.clone(), namespace.to_owned()))).collect()
}

/// How an owner stands, and in which namespace it is.
async fn read(executor: &Executor, kinds: &Kinds, reference: Reference) -> (Above, String) {
    let (owner, namespace) = reference;
    let mapped = match kinds.in_any_version(&owner.api_version, &owner.kind).await {
        Mapping::Mapped(mapped) => mapped,
        Mapping::NoSuchKind => return (unserved(&owner), namespace),
        Mapping::Unknown(why) => return (Above::Unknown(why), namespace),
    };
    if mapped.namespaced && namespace.is_empty() {
        // The collector never finds such an owner, and leaves alone what names it.
        return (Above::There { terminating: false, owners: Vec::new() }, namespace);
    }
    let namespace = if mapped.namespaced { namespace } else { String::new() };
    let id = Id {
        group: mapped.group,
        resource: mapped.resource,
        namespace: namespace.clone(),
        name: owner.name.clone(),
    };
    let target = Target { version: mapped.version, id };
    let above = match executor.read(Side::Cluster, &target).await {
        Read::Present(object) => standing(&owner, &object),
        Read::Absent => Above::Gone,
        Read::NoSuchKind => {
            // What is served changed since it was discovered.
            kinds.forget();
            unserved(&owner)
        }
        Read::Unknown { message } => Above::Unknown(message),
    };
    (above, namespace)
}

fn unserved(owner: &Owner) -> Above {
    Above::Unknown(format!("{} is not served in {} now", owner.kind, owner.api_version))
}

fn standing(reference: &Owner, object: &Value) -> Above {
    let metadata = object.get("metadata").map(ObjectMeta::deserialize);
    match metadata {
        Some(Ok(metadata)) if metadata.uid.as_deref() == Some(&reference.uid) => Above::There {
            terminating: metadata.deletion_timestamp.is_some(),
            owners: metadata.owner_references.unwrap_or_default().into_iter().map(owner).collect(),
        },
        // Another of the same name owns nothing of what its predecessor did.
        Some(Ok(_)) => Above::Gone,
        Some(Err(error)) => Above::Unknown(error.to_string()),
        None => Above::Unknown("it has no metadata".to_owned()),
    }
}

/// What is known of the owners, and of theirs.
fn reached(owners: &[Owner], known: &BTreeMap<String, Above>) -> BTreeMap<String, Above> {
    let mut reached = BTreeMap::new();
    let mut open: Vec<&str> = owners.iter().map(|owner| owner.uid.as_str()).collect();
    while let Some(uid) = open.pop() {
        let Some(above) = known.get(uid) else { continue };
        if reached.insert(uid.to_owned(), above.clone()).is_none()
            && let Above::There { owners, .. } = above
        {
            open.extend(owners.iter().map(|owner| owner.uid.as_str()));
        }
    }
    reached
}
