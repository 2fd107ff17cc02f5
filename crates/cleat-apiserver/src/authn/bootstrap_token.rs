//! Bootstrap tokens: short shared secrets kept in `kube-system`, for machines that join.

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use jiff::Timestamp;
use serde_json::Value;

use super::Lookup;
use crate::user::User;

/// `None` for whatever is no valid bootstrap token; which part was wrong is not told.
pub(crate) fn authenticate(token: &str, now: Timestamp, lookup: &dyn Lookup) -> Option<User> {
    let (id, secret) = token.split_once('.')?;
    if !is_part(id, 6) || !is_part(secret, 16) {
        return None;
    }
    let object = lookup.get("secrets", "kube-system", &format!("bootstrap-token-{id}"))?;
    let deleted = object.pointer("/metadata/deletionTimestamp").is_some_and(|t| !t.is_null());
    let kind = object.get("type").and_then(Value::as_str);
    if deleted || kind != Some("bootstrap.kubernetes.io/token") {
        return None;
    }
    let same_secret = same(data(&object, "token-secret").as_bytes(), secret.as_bytes());
    let expiration = data(&object, "expiration");
    let expired = !expiration.is_empty()
        && expiration.parse::<Timestamp>().map_or(true, |expiration| expiration <= now);
    if !same_secret
        || data(&object, "token-id") != id
        || expired
        || data(&object, "usage-bootstrap-authentication") != "true"
    {
        return None;
    }
    let mut groups = vec!["system:bootstrappers".to_owned()];
    let extra = data(&object, "auth-extra-groups");
    if !extra.is_empty() {
        for group in extra.split(',') {
            if !is_group(group) {
                return None;
            }
            groups.push(group.to_owned());
        }
    }
    groups.sort();
    groups.dedup();
    Some(User { name: format!("system:bootstrap:{id}"), groups, ..User::default() })
}

fn is_part(text: &str, length: usize) -> bool {
    text.len() == length && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
}

fn is_group(group: &str) -> bool {
    let Some(rest) = group.strip_prefix("system:bootstrappers:") else { return false };
    let alphanumeric = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    rest.len() <= 256
        && rest.bytes().all(|b| alphanumeric(b) || b == b':' || b == b'-')
        && rest.bytes().last().is_some_and(alphanumeric)
}

/// A decoded member of the secret; empty when absent or not text.
fn data(secret: &Value, key: &str) -> String {
    let encoded = secret.get("data").and_then(|data| data.get(key)).and_then(Value::as_str);
    let decoded = encoded.and_then(|encoded| BASE64.decode(encoded).ok());
    decoded.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default()
}

/// Takes as long wherever the two differ.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}
