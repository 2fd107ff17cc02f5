//! What every cluster has from its first moment: the system namespaces, the default roles, the
//! priorities of the system and the service that is the server itself.
//!
//! Runs at every start: what is missing is made, what a person changed on purpose stays.

use futures::future::try_join_all;
use serde_json::{Value, json};

use crate::authz;
use crate::object;
use crate::query::WriteOptions;
use crate::server::{Inner, StartError};
use crate::status::Status;
use crate::user::{MASTERS, User};
use crate::verbs::{Call, create};

const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

pub(crate) async fn provide(server: &Inner) -> Result<(), StartError> {
    let namespaces = NAMESPACES.map(
        |name| json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } }),
    );
    try_join_all(namespaces.into_iter().map(|new| ensure(server, new))).await?;
    try_join_all(authz::bootstrap_objects().iter().map(|new| ensure(server, new.clone()))).await?;
    try_join_all(furniture().into_iter().map(|new| ensure(server, new))).await?;
    Ok(())
}

fn furniture() -> [Value; 3] {
    let priority = |name: &str, value: u32, description: &str| {
        json!({
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": { "name": name },
            "value": value,
            "description": description,
        })
    };
    // Nothing listens at this address. It is there because clusters have it.
    let service = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": { "component": "apiserver", "provider": "kubernetes" },
        },
        "spec": {
            "type": "ClusterIP",
            "clusterIP": "10.96.0.1",
            "ports": [{ "name": "https", "port": 443, "targetPort": 443 }],
        },
    });
    [
        priority("system-node-critical", 2_000_001_000, "For pods a node cannot do without."),
        priority("system-cluster-critical", 2_000_000_000, "For pods a cluster cannot do without."),
        service,
    ]
}

async fn ensure(server: &Inner, new: Value) -> Result<(), StartError> {
    let what = format!(
        "{} {}",
        new.get("kind").and_then(Value::as_str).unwrap_or_default(),
        object::name(&new)
    );
    let failed = |why: Status| StartError::Bootstrap { what: what.clone(), why: why.message };
    let api_version = new.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let kind = new.get("kind").and_then(Value::as_str).unwrap_or_default();
    let types = server.types();
    let Some(ty) = types.by_kind(group, kind) else {
        return Err(failed(Status::no_such_path()));
    };
    let (namespace, name) = (object::namespace(&new), object::name(&new));
    if let Some(existing) =
        server.objects.get(ty, &ty.storage_version, namespace, name).map_err(failed)?
    {
        let Some(wanted) = authz::reconciled_bootstrap_object(&existing.value, &new) else {
            return Ok(());
        };
        let written = server.objects.replace(ty, &ty.storage_version, wanted, &existing).await;
        return written.map(drop).map_err(|_| failed(Status::internal("the store refused it")));
    }
    let user = User::new("system:apiserver", [MASTERS]);
    let mut call = Call::internal(server, &user, ty, namespace, name);
    call.agent = "kube-apiserver".to_owned();
    create::create(&mut call, new, &WriteOptions::default()).await.map(drop).map_err(failed)
}
