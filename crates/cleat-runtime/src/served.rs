//! One object, read in whatever version its server prefers; and what it means that there is none.

use cleat_core::id::{Id, Target};
use cleat_core::write::Side;

use crate::execute::{Executor, Read};
use crate::kinds::{Kinds, Mapping};

/// Reads an object of the cluster. One whose kind has neither a definition nor a server any more is
/// gone; one whose kind is only not served, or not now, may well be there.
pub async fn read(executor: &Executor, kinds: &Kinds, id: &Id) -> Read {
    let mapped = match kinds.preferred(&id.group, &id.resource).await {
        Mapping::Mapped(mapped) => mapped,
        Mapping::NoSuchKind => return unserved(executor, id).await,
        Mapping::Unknown(message) => return Read::Unknown { message },
    };
    let target = Target { version: mapped.version, id: id.clone() };
    let read = executor.read(Side::Cluster, &target).await;
    if read != Read::NoSuchKind {
        return read;
    }
    // What is served changed since it was discovered.
    kinds.forget();
    match kinds.preferred(&id.group, &id.resource).await {
        Mapping::NoSuchKind => unserved(executor, id).await,
        Mapping::Mapped(_) => Read::NoSuchKind,
        Mapping::Unknown(message) => Read::Unknown { message },
    }
}

/// Kinds of groups without a dot are Kubernetes' own and have no definition.
async fn unserved(executor: &Executor, id: &Id) -> Read {
    if !id.group.contains('.') {
        return Read::Absent;
    }
    let definition = Target {
        version: "v1".to_owned(),
        id: Id {
            group: "apiextensions.k8s.io".to_owned(),
            resource: "customresourcedefinitions".to_owned(),
            namespace: String::new(),
            name: format!("{}.{}", id.resource, id.group),
        },
    };
    match executor.read(Side::Cluster, &definition).await {
        Read::Absent => Read::Absent,
        Read::Present(_) | Read::NoSuchKind => Read::NoSuchKind,
        unknown @ Read::Unknown { .. } => unknown,
    }
}
