//! What every cluster has from its first moment: the system namespaces and the default roles.
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
    Ok(())
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
