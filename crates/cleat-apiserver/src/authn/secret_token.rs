//! Tokens of the old kind, which live in a secret, never expire, and are good as long as the secret
//! holds them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::service_account::{ServiceAccountTokens, gone};
use super::{Lookup, SigningKeyError};
use crate::quote::quoted;
use crate::rules::read::text_at as text;
use crate::user::{User, service_account_groups, service_account_name};

/// The type of such secrets.
pub(crate) const TOKEN_SECRET: &str = "kubernetes.io/service-account-token";
/// The annotations that say whose token it is.
pub(crate) const ACCOUNT_NAME: &str = "kubernetes.io/service-account.name";
pub(crate) const ACCOUNT_UID: &str = "kubernetes.io/service-account.uid";

pub(super) const ISSUER: &str = "kubernetes/serviceaccount";

impl ServiceAccountTokens {
    pub(crate) fn issue_for_secret(
        &self,
        namespace: &str,
        account: &str,
        uid: &str,
        secret: &str,
    ) -> Result<String, SigningKeyError> {
        self.key().sign(&json!({
            "iss": ISSUER,
            "kubernetes.io/serviceaccount/namespace": namespace,
            "kubernetes.io/serviceaccount/secret.name": secret,
            "kubernetes.io/serviceaccount/service-account.name": account,
            "kubernetes.io/serviceaccount/service-account.uid": uid,
            "sub": service_account_name(namespace, account),
        }))
    }
}

/// The user of such a token. `claims` are verified.
pub(super) fn live_user(
    token: &str,
    claims: &Value,
    now: Timestamp,
    lookup: &dyn Lookup,
) -> Result<User, String> {
    let claim = |name: &str| {
        let key = format!("kubernetes.io/serviceaccount/{name}");
        claims.get(&key).and_then(Value::as_str).unwrap_or_default()
    };
    let (namespace, secret) = (claim("namespace"), claim("secret.name"));
    let (account, uid) = (claim("service-account.name"), claim("service-account.uid"));
    if text(claims, "/sub") != service_account_name(namespace, account) {
        return Err("sub claim is invalid".to_owned());
    }
    let invalidated = || "Token has been invalidated".to_owned();
    let stored = lookup.get("secrets", namespace, secret).ok_or_else(invalidated)?;
    if gone(&stored, now) {
        return Err(invalidated());
    }
    let held = STANDARD.decode(text(&stored, "/data/token")).unwrap_or_default();
    if held != token.as_bytes() {
        return Err("Token does not match server's copy".to_owned());
    }
    let found = lookup
        .get("serviceaccounts", namespace, account)
        .ok_or_else(|| format!("serviceaccounts {} not found", quoted(account)))?;
    if gone(&found, now) {
        return Err(format!("ServiceAccount {namespace}/{account} has been deleted"));
    }
    let live = text(&found, "/metadata/uid");
    if live != uid {
        return Err(format!("ServiceAccount UID ({live}) does not match claim ({uid})"));
    }
    Ok(User {
        name: service_account_name(namespace, account),
        uid: uid.to_owned(),
        groups: service_account_groups(namespace),
        ..User::default()
    })
}
