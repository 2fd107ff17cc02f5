//! Where on an API server an object is.
//!
//! A name that would change the meaning of a path is refused here, before anything is sent: an empty
//! one would turn the deletion of an object into that of a collection, and `..` would climb.

use cleat_core::id::Target;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Everything but what RFC 3986 calls unreserved.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A part of a target that no path can carry.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{part} {value:?} cannot be part of a path")]
pub(crate) struct BadSegment {
    part: &'static str,
    value: String,
}

/// The object itself.
pub(crate) fn object(target: &Target) -> Result<String, BadSegment> {
    let mut path = collection(target)?;
    push(&mut path, "name", &target.id.name)?;
    Ok(path)
}

/// The objects of its kind in its namespace, where they are created.
pub(crate) fn collection(target: &Target) -> Result<String, BadSegment> {
    let id = &target.id;
    let mut path = version(&id.group, &target.version)?;
    if !id.namespace.is_empty() {
        path.push_str("/namespaces");
        push(&mut path, "namespace", &id.namespace)?;
    }
    push(&mut path, "resource", &id.resource)?;
    Ok(path)
}

/// The objects of a kind in all namespaces.
pub(crate) fn everywhere(
    group: &str,
    api_version: &str,
    resource: &str,
) -> Result<String, BadSegment> {
    let mut path = version(group, api_version)?;
    push(&mut path, "resource", resource)?;
    Ok(path)
}

/// One version of a group.
pub(crate) fn version(group: &str, version: &str) -> Result<String, BadSegment> {
    let mut path = String::with_capacity(96);
    if group.is_empty() {
        path.push_str("/api");
    } else {
        path.push_str("/apis");
        push(&mut path, "group", group)?;
    }
    push(&mut path, "version", version)?;
    Ok(path)
}

/// A value as a query carries it.
pub(crate) fn query_value(value: &str) -> impl std::fmt::Display + '_ {
    utf8_percent_encode(value, SEGMENT)
}

/// The rule is Kubernetes' own for names that are path segments.
fn push(path: &mut String, part: &'static str, value: &str) -> Result<(), BadSegment> {
    if matches!(value, "" | "." | "..") || value.contains(['/', '%']) {
        return Err(BadSegment { part, value: value.chars().take(64).collect() });
    }
    path.push('/');
    path.extend(utf8_percent_encode(value, SEGMENT));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use cleat_core::id::Id;

    fn target(group: &str, resource: &str, namespace: &str, name: &str) -> Target {
        let [group, resource, namespace, name] =
            [group, resource, namespace, name].map(ToOwned::to_owned);
        Target { version: "v1".to_owned(), id: Id { group, resource, namespace, name } }
    }

    #[test]
    fn objects_are_where_kubernetes_has_them() {
        let paths = [
            (target("", "namespaces", "", "a"), "/api/v1/namespaces/a"),
            (target("", "configmaps", "n", "a"), "/api/v1/namespaces/n/configmaps/a"),
            (target("apps", "deployments", "n", "a"), "/apis/apps/v1/namespaces/n/deployments/a"),
            (
                target("rbac.authorization.k8s.io", "clusterroles", "", "system:a b"),
                "/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Aa%20b",
            ),
        ];
        for (target, path) in paths {
            assert_eq!(object(&target).unwrap(), path);
        }
        let all = target("apps", "deployments", "n", "");
        assert_eq!(collection(&all).unwrap(), "/apis/apps/v1/namespaces/n/deployments");
    }

    #[test]
    fn no_name_changes_the_meaning_of_a_path() {
        for name in ["", ".", "..", "a/b", "%2e%2e", "a%2fb"] {
            assert!(object(&target("", "configmaps", "n", name)).is_err(), "{name:?}");
            assert!(object(&target("", name, "n", "a")).is_err(), "resource {name:?}");
        }
        assert!(object(&target("", "configmaps", "..", "a")).is_err());
        let mut no_version = target("", "configmaps", "n", "a");
        no_version.version.clear();
        assert!(object(&no_version).is_err());
    }
}
