//! What a request is about, from its method, path and query alone: verb, resource, name.
//!
//! Whether such a resource exists, and whether it knows the verb, is decided later. The rules are
//! those of kube-apiserver, because authorization and audit depend on them.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

use crate::names;
use crate::query::{ListOptions, Query};
use crate::quote::quoted;

/// A request as authorization and dispatch see it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestInfo {
    /// False for `/healthz`, `/apis` and the like; then only `path` and `verb` are filled.
    pub is_resource: bool,
    /// Decoded.
    pub path: String,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`, or the
    /// method in lower case for what is no resource. Empty for methods resources do not have.
    pub verb: Cow<'static, str>,
    /// Empty for the core group.
    pub group: String,
    pub version: String,
    pub namespace: String,
    pub resource: String,
    pub subresource: String,
    /// From the path, or else the only one a field selector allows.
    pub name: String,
    /// The name is not in the path, but in the field selector of a list or watch.
    pub name_from_selector: bool,
    /// The path from the resource on: `pods/x/log/more`.
    pub parts: Vec<String>,
    /// The old form `/api/v1/watch/pods`, which takes no selectors into account when authorizing.
    pub watch_in_path: bool,
    /// The method reads, whatever the verb that the path makes of it.
    pub reads: bool,
}

/// A path that cannot be understood at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PathError {
    /// Percent signs with no digits behind them; 400.
    #[error("400 Bad Request")]
    Malformed,
    /// Kubernetes answers 500 with this as plain text.
    #[error(
        "Internal Server Error: {}: failed to create RequestInfo: unable to determine kind and \
         namespace from url, {url}",
        quoted(url)
    )]
    NoKind { url: String },
}

/// `path` is as on the wire, percent-encoded and without the query.
pub fn request_info(method: &str, path: &str, query: &Query) -> Result<RequestInfo, PathError> {
    let decoded = decoded(path)?;
    let parts: Vec<&str> = match decoded.trim_matches('/') {
        "" => Vec::new(),
        trimmed => trimmed.split('/').collect(),
    };
    let other = || RequestInfo {
        path: decoded.clone(),
        verb: Cow::Owned(method.to_lowercase()),
        reads: matches!(method, "GET" | "HEAD"),
        ..RequestInfo::default()
    };
    let (group, version, parts) = match parts.as_slice() {
        ["api", version, parts @ ..] if !parts.is_empty() => ("", *version, parts),
        ["apis", group, version, parts @ ..] if !parts.is_empty() => (*group, *version, parts),
        _ => return Ok(other()),
    };
    let (verb, parts) = match parts {
        [verb @ ("watch" | "proxy"), parts @ ..] => {
            if parts.is_empty() {
                return Err(PathError::NoKind { url: path.to_owned() });
            }
            (if *verb == "watch" { "watch" } else { "proxy" }, parts)
        }
        parts => (verb(method), parts),
    };
    let mut info = RequestInfo {
        is_resource: true,
        verb: Cow::Borrowed(verb),
        group: group.to_owned(),
        version: version.to_owned(),
        watch_in_path: verb == "watch",
        ..other()
    };
    let parts = match parts {
        ["namespaces", namespace, rest @ ..] => {
            info.namespace = (*namespace).to_owned();
            match rest {
                [] | ["status" | "finalize", ..] => parts,
                rest => rest,
            }
        }
        parts => parts,
    };
    info.parts = parts.iter().map(|part| (*part).to_owned()).collect();
    let mut names = parts.iter().map(|part| (*part).to_owned());
    info.resource = names.next().unwrap_or_default();
    info.name = names.next().unwrap_or_default();
    if verb != "proxy" {
        info.subresource = names.next().unwrap_or_default();
    }
    if info.name.is_empty() {
        match verb {
            "get" => list_or_watch(&mut info, query),
            "delete" => info.verb = Cow::Borrowed("deletecollection"),
            _ => {}
        }
    }
    Ok(info)
}

fn verb(method: &str) -> &'static str {
    match method {
        "POST" => "create",
        "GET" | "HEAD" => "get",
        "PUT" => "update",
        "PATCH" => "patch",
        "DELETE" => "delete",
        _ => "",
    }
}

fn list_or_watch(info: &mut RequestInfo, query: &Query) {
    // Options that cannot be read are refused later; until then they say nothing but `watch`.
    let options = ListOptions::read(query).ok();
    let watch = query.flag("watch").unwrap_or(false);
    info.verb = Cow::Borrowed(if watch { "watch" } else { "list" });
    let name = options.as_ref().and_then(|options| options.selector.single_name());
    if let Some(name) = name.filter(|name| !name.is_empty() && names::path_segment(name).is_empty())
    {
        info.name = name.to_owned();
        info.name_from_selector = true;
    }
}

fn decoded(path: &str) -> Result<String, PathError> {
    let mut bytes = path.bytes();
    while let Some(byte) = bytes.next() {
        let digits = |one: Option<u8>| one.is_some_and(|byte| byte.is_ascii_hexdigit());
        if byte == b'%' && !(digits(bytes.next()) && digits(bytes.next())) {
            return Err(PathError::Malformed);
        }
    }
    Ok(percent_decode_str(path).decode_utf8_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// `verb group/version namespace resource/name/subresource`, with `-` for what is empty.
    fn check(method: &str, url: &str) -> String {
        let (path, query) = url.split_once('?').unwrap_or((url, ""));
        let info = request_info(method, path, &Query::parse(query)).unwrap();
        if !info.is_resource {
            return format!("{} {}", info.verb, info.path);
        }
        let or_dash = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
        format!(
            "{} {}/{} {} {}/{}/{}",
            or_dash(&info.verb),
            or_dash(&info.group),
            info.version,
            or_dash(&info.namespace),
            info.resource,
            or_dash(&info.name),
            or_dash(&info.subresource)
        )
    }

    #[test]
    fn requests_are_understood() {
        for (method, url, expected) in [
            ("GET", "/", "get /"),
            ("GET", "/healthz", "get /healthz"),
            ("GET", "/api", "get /api"),
            ("GET", "/api/v1", "get /api/v1"),
            ("GET", "/apis/apps", "get /apis/apps"),
            ("GET", "/apis/apps/v1", "get /apis/apps/v1"),
            ("POST", "/other/a/b/c/d", "post /other/a/b/c/d"),
            ("GET", "/api/v1/pods", "list -/v1 - pods/-/-"),
            ("HEAD", "/api/v1/pods", "list -/v1 - pods/-/-"),
            ("GET", "/api/v1/pods?watch=true", "watch -/v1 - pods/-/-"),
            ("GET", "/api/v1/pods?watch=0", "list -/v1 - pods/-/-"),
            ("GET", "/api/v1/pods?watch", "watch -/v1 - pods/-/-"),
            ("GET", "/api/v1/pods?watch=1&limit=x", "watch -/v1 - pods/-/-"),
            ("GET", "/api/v1/pods?fieldSelector=metadata.name%3Da", "list -/v1 - pods/a/-"),
            ("GET", "/api/v1/pods?fieldSelector=metadata.name%3Da/b", "list -/v1 - pods/-/-"),
            ("GET", "/api/v1/watch/pods", "watch -/v1 - pods/-/-"),
            ("GET", "/api/v1/watch/namespaces/a/pods/b", "watch -/v1 a pods/b/-"),
            ("POST", "/api/v1/namespaces", "create -/v1 - namespaces/-/-"),
            ("GET", "/api/v1/namespaces/a", "get -/v1 a namespaces/a/-"),
            ("PUT", "/api/v1/namespaces/a/status", "update -/v1 a namespaces/a/status"),
            ("PUT", "/api/v1/namespaces/a/finalize", "update -/v1 a namespaces/a/finalize"),
            ("GET", "/api/v1/namespaces/a/pods/", "list -/v1 a pods/-/-"),
            ("GET", "/api/v1/namespaces/a/pods/b/log", "get -/v1 a pods/b/log"),
            (
                "PATCH",
                "/apis/apps/v1/namespaces/a/deployments/b",
                "patch apps/v1 a deployments/b/-",
            ),
            ("DELETE", "/apis/a.b/v2/things/x", "delete a.b/v2 - things/x/-"),
            ("DELETE", "/apis/a.b/v2/namespaces/n/things", "deletecollection a.b/v2 n things/-/-"),
            ("OPTIONS", "/api/v1/pods", "- -/v1 - pods/-/-"),
            ("GET", "/api/v1/namespaces/a/pods/b%20c", "get -/v1 a pods/b c/-"),
        ] {
            assert_eq!(check(method, url), expected, "{method} {url}");
        }
    }

    #[test]
    fn paths_without_sense_are_refused() {
        let empty = Query::default();
        assert_eq!(request_info("GET", "/api/v1/%zz", &empty), Err(PathError::Malformed));
        assert_eq!(
            request_info("GET", "/api/v1/watch", &empty).unwrap_err().to_string(),
            "Internal Server Error: \"/api/v1/watch\": failed to create RequestInfo: unable to \
             determine kind and namespace from url, /api/v1/watch"
        );
    }

    proptest! {
        #[test]
        fn no_request_breaks_it(
            method in "GET|POST|DELETE|.*",
            path in "(/(api|apis|v1|namespaces|watch|proxy|status|%2[0-9a-f]|é|))*|.*",
            query in "((watch|fieldSelector|limit)=[a-z0-9.%=]*&?)*|.*",
        ) {
            let _ = request_info(&method, &path, &Query::parse(&query));
        }
    }
}
