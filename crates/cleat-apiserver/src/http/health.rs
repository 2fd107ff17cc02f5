//! `/healthz`, `/livez` and `/readyz`, and the single checks below them.
//!
//! A server that answers is well: what else could be checked has failed before it could answer. The
//! checks are named for those who ask for one, or for a list of them.

use axum::response::Response;

use super::{Asked, respond};

/// Our parts, under the names by which kube-apiserver's are asked for.
const CHECKS: [&str; 3] = ["ping", "log", "etcd"];
const READINESS: [&str; 3] = ["etcd-readiness", "informer-sync", "shutdown"];

/// Answers `/PROBE` or `/PROBE/CHECK`. None when there is no such check.
pub(super) fn answer(asked: &Asked, probe: &str, check: &[&str]) -> Option<Response> {
    let ready: &[&str] = if probe == "readyz" { &READINESS } else { &[] };
    let mut known = CHECKS.iter().chain(ready);
    match check {
        [] if asked.query.all("verbose").next().is_none() => Some(respond::text(200, "ok")),
        [] => {
            let excluded: Vec<&str> = asked.query.all("exclude").collect();
            let mut lines: Vec<String> = known
                .map(|name| match excluded.contains(name) {
                    true => format!("[+]{name} excluded: ok\n"),
                    false => format!("[+]{name} ok\n"),
                })
                .collect();
            lines.push(format!("{probe} check passed\n"));
            Some(respond::text(200, &lines.concat()))
        }
        [name] => known.any(|known| known == name).then(|| respond::text(200, "ok")),
        _ => None,
    }
}
