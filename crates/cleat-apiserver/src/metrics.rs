//! What `/metrics` says, under the names that dashboards for Kubernetes already use.
//!
//! Labels come from what the server knows, never from what a client makes up, so that nobody can make
//! the table grow.

mod durations;
mod exposition;
mod flowcontrol;
mod process;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::header;

pub(crate) use self::durations::Durations;
use crate::http::Asked;
use crate::resource::ResourceType;
use crate::server::Inner;
use crate::types::Types;

/// Upper bounds of the duration buckets, in seconds: those of kube-apiserver.
const BUCKETS: [f64; 23] = [
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0,
    10.0, 15.0, 20.0, 30.0, 45.0, 60.0,
];

/// Counters of one server.
#[derive(Default)]
pub(crate) struct Metrics {
    requests: Mutex<BTreeMap<(Arc<Labels>, u16), u64>>,
    durations: Mutex<BTreeMap<Arc<Labels>, Durations<{ BUCKETS.len() }>>>,
    lasting: Mutex<BTreeMap<Arc<Labels>, i64>>,
    /// Shared with the watches, which count without asking for the table.
    watched: Mutex<BTreeMap<Watched, Arc<AtomicU64>>>,
    reading: AtomicI64,
    writing: AtomicI64,
    /// For which types the tables were gone through.
    types: AtomicU64,
}

/// What a request was about.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Labels {
    verb: &'static str,
    group: String,
    version: String,
    resource: String,
    subresource: String,
    scope: &'static str,
    dry_run: &'static str,
}

/// What a watch is of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Watched {
    group: Box<str>,
    version: Box<str>,
    resource: Box<str>,
}

/// A request that is being worked on, until this is dropped.
pub(crate) struct InFlight {
    server: Arc<Inner>,
    /// Shared with the tables, so that nothing is copied while they are locked.
    labels: Arc<Labels>,
}

/// A request that lasts, such as a watch, until this is dropped.
pub(crate) struct Lasting {
    server: Arc<Inner>,
    labels: Arc<Labels>,
}

impl Metrics {
    /// A request has arrived. One that lasts is not counted here: it would look like one that hangs.
    pub(crate) fn begin(server: &Arc<Inner>, asked: &Asked) -> InFlight {
        let types = server.types();
        let labels = Arc::new(Labels::of(&types, asked));
        if server.metrics.types.swap(types.generation(), Ordering::Relaxed) != types.generation() {
            server.metrics.keep(&types);
        }
        if let Some(gauge) = server.metrics.in_flight(labels.verb) {
            gauge.fetch_add(1, Ordering::Relaxed);
        }
        InFlight { server: Arc::clone(server), labels }
    }

    /// Forgets what was counted of kinds and versions that there are no more, so that who makes
    /// definitions and deletes them makes no table grow. What is still going on stays until the next time.
    fn keep(&self, types: &Types) {
        // Whatever is about no resource is about none that could go.
        let known = |labels: &Arc<Labels>| {
            let Labels { group, version, resource, .. } = &**labels;
            resource.is_empty() || is_known(types, group, version, resource)
        };
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        requests.retain(|(labels, _), _| known(labels));
        drop(requests);
        let mut durations = self.durations.lock().unwrap_or_else(PoisonError::into_inner);
        durations.retain(|labels, _| known(labels));
        drop(durations);
        let mut lasting = self.lasting.lock().unwrap_or_else(PoisonError::into_inner);
        lasting.retain(|labels, count| *count != 0 || known(labels));
        drop(lasting);
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        watched.retain(|of, _| is_known(types, &of.group, &of.version, &of.resource));
    }

    /// Where a watch counts what it tells.
    pub(crate) fn watch_events(&self, ty: &ResourceType, version: &str) -> Arc<AtomicU64> {
        let (group, resource) = (ty.group.clone(), ty.plural.clone());
        let of = Watched { group, version: version.into(), resource };
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(watched.entry(of).or_default())
    }

    fn in_flight(&self, verb: &str) -> Option<&AtomicI64> {
        match verb {
            "WATCH" => None,
            "POST" | "PUT" | "PATCH" | "APPLY" | "DELETE" | "DELETECOLLECTION" => {
                Some(&self.writing)
            }
            _ => Some(&self.reading),
        }
    }
}

impl InFlight {
    /// The request was answered.
    pub(crate) fn answered(&self, code: u16, took: Duration) {
        let (metrics, labels) = (&self.server.metrics, &self.labels);
        let mut requests = metrics.requests.lock().unwrap_or_else(PoisonError::into_inner);
        *requests.entry((Arc::clone(labels), code)).or_default() += 1;
        drop(requests);
        // How long a watch lasts says nothing about how fast the server is.
        if labels.verb == "WATCH" {
            return;
        }
        let mut durations = metrics.durations.lock().unwrap_or_else(PoisonError::into_inner);
        durations.entry(Arc::clone(labels)).or_default().note(&BUCKETS, took);
    }

    /// Its answer has only begun.
    pub(crate) fn lasts(&self) -> Lasting {
        let mut lasting =
            self.server.metrics.lasting.lock().unwrap_or_else(PoisonError::into_inner);
        *lasting.entry(Arc::clone(&self.labels)).or_default() += 1;
        Lasting { server: Arc::clone(&self.server), labels: Arc::clone(&self.labels) }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if let Some(gauge) = self.server.metrics.in_flight(self.labels.verb) {
            gauge.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Lasting {
    fn drop(&mut self) {
        let metrics = &self.server.metrics;
        let mut lasting = metrics.lasting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = lasting.get_mut(&self.labels) {
            *count -= 1;
        }
    }
}

impl Labels {
    fn of(types: &Types, asked: &Asked) -> Self {
        let info = &asked.info;
        let verb = verb(&info.verb, asked.header(header::CONTENT_TYPE));
        let dry_run = if asked.query.text("dryRun") == "All" { "All" } else { "" };
        let known = types.get(&info.group, &info.resource).filter(|_| info.is_resource);
        let Some(ty) = known else {
            return Self { verb, dry_run, ..Self::default() };
        };
        let version = ty.version(&info.version);
        let subresource = version.and_then(|version| version.subresource(&info.subresource));
        let scope = match (info.name.is_empty() && info.verb != "create", &*info.namespace) {
            (false, _) => "resource",
            (true, "") => "cluster",
            (true, _) => "namespace",
        };
        Self {
            verb,
            group: ty.group.to_string(),
            version: version.map(|version| version.name.to_string()).unwrap_or_default(),
            resource: ty.plural.to_string(),
            subresource: subresource.map(|found| found.name.to_string()).unwrap_or_default(),
            scope,
            dry_run,
        }
    }
}

/// Whether a resource is served, in this version if there is one.
fn is_known(types: &Types, group: &str, version: &str, resource: &str) -> bool {
    let ty = types.get(group, resource);
    ty.is_some_and(|ty| version.is_empty() || ty.version(version).is_some())
}

/// Verbs as they are counted: by method where there is one.
fn verb(verb: &str, content_type: &str) -> &'static str {
    match verb {
        "get" => "GET",
        "head" => "HEAD",
        "list" => "LIST",
        "watch" => "WATCH",
        "create" | "post" => "POST",
        "update" | "put" => "PUT",
        "patch" if content_type.starts_with("application/apply-patch") => "APPLY",
        "patch" => "PATCH",
        "delete" => "DELETE",
        "deletecollection" => "DELETECOLLECTION",
        _ => "other",
    }
}
