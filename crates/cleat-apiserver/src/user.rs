//! Who makes a request.
//!
//! How that is found out is `authn`'s business, what it permits `authz`'s.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::names::{dns_label, dns_subdomain};

pub const ANONYMOUS: &str = "system:anonymous";
pub const AUTHENTICATED: &str = "system:authenticated";
pub const UNAUTHENTICATED: &str = "system:unauthenticated";
/// Members may do anything, whatever RBAC says.
pub const MASTERS: &str = "system:masters";
/// The key of [`User::extra`] that tells one credential of a user from another.
pub const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

const SERVICE_ACCOUNT_PREFIX: &str = "system:serviceaccount:";

/// A user as authentication sees them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    pub name: String,
    pub uid: String,
    pub groups: Vec<String>,
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    pub fn new<const N: usize>(name: &str, groups: [&str; N]) -> Self {
        let groups = groups.into_iter().map(str::to_owned).collect();
        Self { name: name.to_owned(), groups, ..Self::default() }
    }

    pub fn anonymous() -> Self {
        Self::new(ANONYMOUS, [UNAUTHENTICATED])
    }

    /// A service account without any particular token, as controllers inside the server act.
    pub fn service_account(namespace: &str, name: &str) -> Self {
        let mut user = Self {
            name: service_account_name(namespace, name),
            groups: service_account_groups(namespace),
            ..Self::default()
        };
        user.add_group(AUTHENTICATED);
        user
    }

    pub fn in_group(&self, group: &str) -> bool {
        self.groups.iter().any(|other| other == group)
    }

    pub(crate) fn add_group(&mut self, group: &str) {
        if !self.in_group(group) {
            self.groups.push(group.to_owned());
        }
    }

    /// `UserInfo`, as reviews and admission requests carry it.
    pub fn to_json(&self) -> Value {
        let mut info = Map::new();
        if !self.name.is_empty() {
            info.insert("username".into(), self.name.clone().into());
        }
        if !self.uid.is_empty() {
            info.insert("uid".into(), self.uid.clone().into());
        }
        if !self.groups.is_empty() {
            info.insert("groups".into(), json!(self.groups));
        }
        if !self.extra.is_empty() {
            info.insert("extra".into(), json!(self.extra));
        }
        Value::Object(info)
    }
}

pub(crate) fn service_account_name(namespace: &str, name: &str) -> String {
    format!("{SERVICE_ACCOUNT_PREFIX}{namespace}:{name}")
}

pub(crate) fn service_account_groups(namespace: &str) -> Vec<String> {
    vec!["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")]
}

/// Namespace and name, if `username` is that of a service account.
pub(crate) fn split_service_account(username: &str) -> Option<(&str, &str)> {
    let (namespace, name) = username.strip_prefix(SERVICE_ACCOUNT_PREFIX)?.split_once(':')?;
    let valid = dns_label(namespace).is_empty() && dns_subdomain(name).is_empty();
    valid.then_some((namespace, name))
}

/// The node's name, if `username` is that of a node.
pub(crate) fn split_node(username: &str) -> Option<&str> {
    username.strip_prefix("system:node:").filter(|name| dns_subdomain(name).is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn service_account_names_split_only_when_whole() {
        assert_eq!(split_service_account("system:serviceaccount:ns:a.b"), Some(("ns", "a.b")));
        for bad in [
            "system:serviceaccount:ns",
            "system:serviceaccount:ns:a:b",
            "ns:a",
            "system:serviceaccount:Ns:a",
        ] {
            assert_eq!(split_service_account(bad), None, "{bad}");
        }
    }
}
