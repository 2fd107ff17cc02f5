//! Tokens of service accounts: issuing them, and recognising them while what they are bound to
//! still exists.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{
    Authenticated, Lookup,
    jwt::{self, SigningKey, SigningKeyError},
    secret_token,
};
use crate::{
    quote::{quoted, quoted_list},
    rules::read::text_at as text,
    user::{CREDENTIAL_ID, User, service_account_groups, service_account_name},
};

/// Clocks may differ by this much.
const LEEWAY: i64 = 60;

/// Issues and recognises the tokens of one server's service accounts.
#[derive(Debug)]
pub struct ServiceAccountTokens {
    key: SigningKey,
    issuer: String,
    /// What tokens are for when nothing else is said.
    audiences: Vec<String>,
}

/// A token somebody wants.
#[derive(Clone, Debug)]
pub struct TokenAsk<'a> {
    pub namespace: &'a str,
    pub name: &'a str,
    pub uid: &'a str,
    /// Empty: this server's own.
    pub audiences: &'a [String],
    pub seconds: i64,
    pub bound: Option<Bound>,
}

/// The object a token dies with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// `pod`, `secret` or `node`, as in the claims.
    pub kind: &'static str,
    pub name: String,
    pub uid: String,
    /// The node a bound pod runs on.
    pub node: Option<(String, String)>,
}

impl ServiceAccountTokens {
    pub fn new(key: SigningKey, issuer: &str) -> Self {
        Self { key, issuer: issuer.to_owned(), audiences: vec![issuer.to_owned()] }
    }

    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    pub fn audiences(&self) -> &[String] {
        &self.audiences
    }

    pub fn key(&self) -> &SigningKey {
        &self.key
    }

    /// For `/.well-known/openid-configuration`.
    pub fn openid_configuration(&self, jwks_uri: &str) -> Value {
        json!({
            "issuer": self.issuer,
            "jwks_uri": jwks_uri,
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["ES256"],
        })
    }

    pub fn issue(&self, ask: &TokenAsk<'_>, now: Timestamp) -> Result<String, SigningKeyError> {
        let seconds = now.as_second();
        let audiences = if ask.audiences.is_empty() { &self.audiences } else { ask.audiences };
        let mut kubernetes = Map::new();
        kubernetes.insert("namespace".into(), ask.namespace.into());
        kubernetes.insert("serviceaccount".into(), reference(ask.name, ask.uid));
        if let Some(Bound { kind, name, uid, node }) = &ask.bound {
            kubernetes.insert((*kind).into(), reference(name, uid));
            if let Some((name, uid)) = node {
                kubernetes.insert("node".into(), reference(name, uid));
            }
        }
        self.key.sign(&json!({
            "aud": audiences,
            "exp": seconds.saturating_add(ask.seconds),
            "iat": seconds,
            "iss": self.issuer,
            "jti": uuid::Uuid::new_v4().to_string(),
            "kubernetes.io": kubernetes,
            "nbf": seconds,
            "sub": service_account_name(ask.namespace, ask.name),
        }))
    }

    /// `None` for tokens of another making; an error for ours that are no longer good.
    pub(crate) fn authenticate(
        &self,
        token: &str,
        audiences: &[String],
        now: Timestamp,
        lookup: &dyn Lookup,
    ) -> Result<Option<Authenticated>, String> {
        let claims = jwt::unverified_claims(token).unwrap_or_default();
        let from_secret = text(&claims, "/iss") == secret_token::ISSUER;
        if !from_secret && text(&claims, "/iss") != self.issuer {
            return Ok(None);
        }
        let claims = self.key.verify(token)?;
        let wanted = if audiences.is_empty() { &self.audiences } else { audiences };
        let given = match claims.get("aud") {
            Some(Value::String(one)) => vec![one.clone()],
            Some(Value::Array(many)) => {
                many.iter().filter_map(Value::as_str).map(str::to_owned).collect()
            }
            _ => self.audiences.clone(),
        };
        let audiences: Vec<String> =
            given.iter().filter(|audience| wanted.contains(audience)).cloned().collect();
        if audiences.is_empty() {
            return Err(format!(
                "token audiences {} is invalid for the target audiences {}",
                quoted_list(&given),
                quoted_list(wanted)
            ));
        }
        check_times(&claims, now)?;
        let user = match from_secret {
            true => secret_token::live_user(token, &claims, now, lookup)?,
            false => live_user(&claims, now, lookup)?,
        };
        Ok(Some(Authenticated { user, audiences }))
    }
}

fn check_times(claims: &Value, now: Timestamp) -> Result<(), String> {
    let now = now.as_second();
    let at = |key: &str| claims.get(key).and_then(Value::as_i64);
    if at("nbf").is_some_and(|nbf| now.saturating_add(LEEWAY) < nbf) {
        return Err("service account token is not valid yet".to_owned());
    }
    if at("exp").is_some_and(|exp| now.saturating_sub(LEEWAY) > exp) {
        return Err("service account token has expired".to_owned());
    }
    if at("iat").is_some_and(|iat| now.saturating_add(LEEWAY) < iat) {
        return Err("service account token is issued in the future".to_owned());
    }
    Ok(())
}

/// The user, provided that account and bound object are still those the token was issued for.
fn live_user(claims: &Value, now: Timestamp, lookup: &dyn Lookup) -> Result<User, String> {
    let none = Value::Null;
    let private = claims.get("kubernetes.io").unwrap_or(&none);
    let namespace = text(private, "/namespace");
    let name = text(private, "/serviceaccount/name");
    let uid = text(private, "/serviceaccount/uid");
    let account = lookup
        .get("serviceaccounts", namespace, name)
        .ok_or_else(|| format!("serviceaccounts {} not found", quoted(name)))?;
    let live = text(&account, "/metadata/uid");
    if live != uid {
        return Err(format!("service account UID ({live}) does not match claim ({uid})"));
    }
    if gone(&account, now) {
        return Err(format!("service account {namespace}/{name} has been deleted"));
    }
    let mut user = User {
        name: service_account_name(namespace, name),
        uid: uid.to_owned(),
        groups: service_account_groups(namespace),
        ..User::default()
    };
    let mut note = |key: &str, value: &str| {
        if !value.is_empty() {
            let key = format!("authentication.kubernetes.io/{key}");
            user.extra.insert(key, vec![value.to_owned()]);
        }
    };
    for (kind, resource) in [("secret", "secrets"), ("pod", "pods"), ("node", "nodes")] {
        let Some(bound) = private.get(kind) else { continue };
        let (bound_name, bound_uid) = (text(bound, "/name"), text(bound, "/uid"));
        // Beside a pod, the node is only information.
        if kind != "node" || private.get("pod").is_none() {
            let namespace = if kind == "node" { "" } else { namespace };
            check_bound(
                lookup.get(resource, namespace, bound_name).as_deref(),
                kind,
                bound_uid,
                now,
            )?;
        }
        if kind != "secret" {
            note(&format!("{kind}-name"), bound_name);
            note(&format!("{kind}-uid"), bound_uid);
        }
    }
    let jti = text(claims, "/jti");
    if !jti.is_empty() {
        user.extra.insert(CREDENTIAL_ID.to_owned(), vec![format!("JTI={jti}")]);
    }
    Ok(user)
}

fn check_bound(
    object: Option<&Value>,
    kind: &str,
    uid: &str,
    now: Timestamp,
) -> Result<(), String> {
    let invalidated = || "service account token has been invalidated".to_owned();
    let object = object.ok_or_else(invalidated)?;
    let live = text(object, "/metadata/uid");
    if live != uid {
        let title = match kind {
            "secret" => "secret",
            "pod" => "pod",
            _ => "node",
        };
        return Err(format!(
            "{title} UID ({live}) does not match service account {kind} ref claim ({uid})"
        ));
    }
    if gone(object, now) { Err(invalidated()) } else { Ok(()) }
}

/// Deleted for longer than clocks may differ.
pub(super) fn gone(object: &Value, now: Timestamp) -> bool {
    let deleted = text(object, "/metadata/deletionTimestamp").parse::<Timestamp>();
    deleted.is_ok_and(|at| at.as_second() < now.as_second().saturating_sub(LEEWAY))
}

fn reference(name: &str, uid: &str) -> Value {
    let mut reference = Map::new();
    for (key, value) in [("name", name), ("uid", uid)] {
        if !value.is_empty() {
            reference.insert(key.into(), value.into());
        }
    }
    Value::Object(reference)
}
