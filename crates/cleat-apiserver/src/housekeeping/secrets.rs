//! Secrets of type `kubernetes.io/service-account-token`: filled with a token of the account they
//! name, and deleted when there is no such account.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{ObjectRef, Outcome, delete_as, rewrite};
use crate::authn::{ACCOUNT_NAME, ACCOUNT_UID, TOKEN_SECRET};
use crate::object;
use crate::query::Propagation;
use crate::resource::ResourceType;
use crate::server::Inner;
use crate::status::Status;
use crate::user::User;

/// Whose token a secret is for; None for secrets of other types.
pub(super) fn account(secret: &Value) -> Option<&str> {
    (object::at(secret, "/type") == Some(TOKEN_SECRET)).then(|| named(secret, ACCOUNT_NAME))
}

/// Looks after the secrets of one account, which may be gone.
pub(super) async fn provide(
    server: &Arc<Inner>,
    namespace: &str,
    name: &str,
) -> Result<Outcome, Status> {
    let types = server.types();
    let Some(ty) = types.get("", "secrets") else { return Ok(Outcome::Done) };
    for secret in server.objects.all(ty, "v1", namespace)? {
        if account(&secret) == Some(name) && object::deletion_timestamp(&secret).is_none() {
            fill(server, ty, &secret).await?;
        }
    }
    Ok(Outcome::Done)
}

async fn fill(server: &Inner, ty: &Arc<ResourceType>, secret: &Value) -> Result<(), Status> {
    let Some(tokens) = server.authenticator.service_accounts() else { return Ok(()) };
    let at = ObjectRef::of(ty, secret);
    let (account, uid) = (named(secret, ACCOUNT_NAME), named(secret, ACCOUNT_UID));
    let types = server.types();
    let Some(accounts) = types.get("", "serviceaccounts") else { return Ok(()) };
    let found = server.objects.get(accounts, "v1", &at.namespace, account)?;
    let found = found.filter(|found| uid.is_empty() || object::uid(&found.value) == uid);
    let Some(found) = found else {
        let user = User::service_account("kube-system", "tokens-controller");
        return delete_as(server, &user, ty, secret, Propagation::Background).await;
    };
    let uid = object::uid(&found.value).to_owned();
    let authority = server.root_certificate();
    let token = tokens
        .issue_for_secret(&at.namespace, account, &uid, &at.name)
        .map_err(|error| Status::internal(error.to_string()))?;
    rewrite(server, ty, &at, ("kube-controller-manager", ""), |secret| {
        let meta = object::metadata_mut(secret);
        let annotations = meta.entry("annotations").or_insert_with(|| json!({}));
        object::as_map(annotations).insert(ACCOUNT_UID.into(), uid.as_str().into());
        let map = object::as_map(secret);
        let data = object::as_map(map.entry("data").or_insert_with(|| json!({})));
        if let Some(authority) = &authority {
            data.insert("ca.crt".into(), STANDARD.encode(authority).into());
        }
        data.insert("namespace".into(), STANDARD.encode(&*at.namespace).into());
        // A token that is there is kept, whoever made it.
        data.entry("token").or_insert_with(|| STANDARD.encode(&token).into());
        true
    })
    .await
}

fn named<'a>(secret: &'a Value, annotation: &str) -> &'a str {
    let annotations = object::metadata(secret).and_then(|meta| meta.get("annotations"));
    annotations.and_then(|all| all.get(annotation)?.as_str()).unwrap_or_default()
}
