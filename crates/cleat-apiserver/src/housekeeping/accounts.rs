//! What every namespace is given: a `default` service account and the cluster's root certificate.

use std::sync::Arc;

use serde_json::{Value, json};

use super::Outcome;
use crate::object;
use crate::query::WriteOptions;
use crate::server::Inner;
use crate::status::Status;
use crate::user::User;
use crate::verbs::{Call, create};

const ROOT_CERTIFICATE: &str = "kube-root-ca.crt";

/// Whether losing this object means it has to be made again.
pub(super) fn keeps(plural: &str, name: &str) -> bool {
    matches!((plural, name), ("serviceaccounts", "default") | ("configmaps", ROOT_CERTIFICATE))
}

pub(super) async fn provide(server: &Arc<Inner>, namespace: &str) -> Result<Outcome, Status> {
    let found = server.objects.get(&server.namespaces, "v1", "", namespace)?;
    if found.is_none_or(|found| object::deletion_timestamp(&found.value).is_some()) {
        return Ok(Outcome::Done);
    }
    let account = json!({ "metadata": { "name": "default", "namespace": namespace } });
    ensure(server, "serviceaccounts", "service-account-controller", account).await?;
    if let Some(certificate) = server.root_certificate() {
        let map = json!({
            "metadata": { "name": ROOT_CERTIFICATE, "namespace": namespace, "annotations": {
                "kubernetes.io/description": "The certificate authority of this cluster's API server.",
            } },
            "data": { "ca.crt": certificate },
        });
        ensure(server, "configmaps", "root-ca-cert-publisher", map).await?;
    }
    Ok(Outcome::Done)
}

async fn ensure(server: &Inner, plural: &str, user: &str, mut new: Value) -> Result<(), Status> {
    let types = server.types();
    let Some(ty) = types.get("", plural) else { return Ok(()) };
    let (namespace, name) = (object::namespace(&new).to_owned(), object::name(&new).to_owned());
    if server.objects.entry(ty, &namespace, &name).is_some() {
        return Ok(());
    }
    let map = object::as_map(&mut new);
    map.insert("apiVersion".into(), "v1".into());
    map.insert("kind".into(), (*ty.kind).into());
    let user = User::service_account("kube-system", user);
    let mut call = Call::internal(server, &user, ty, &namespace, &name);
    call.agent = "kube-controller-manager".to_owned();
    match create::create(&mut call, new, &WriteOptions::default()).await {
        // Somebody else made it, or the namespace began to go: either way there is nothing to do.
        Err(status) if matches!(status.code, 403 | 404 | 409) => Ok(()),
        other => other.map(drop),
    }
}
