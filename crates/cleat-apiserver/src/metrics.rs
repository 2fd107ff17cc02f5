//! What `/metrics` says, under the names that dashboards for Kubernetes already use.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::http::Asked;
use crate::server::Inner;

/// Upper bounds of the duration buckets, in seconds.
const BUCKETS: [f64; 8] = [0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 5.0, 60.0];

/// Counters of one server.
#[derive(Default)]
pub(crate) struct Metrics {
    requests: Mutex<BTreeMap<Labels, Requests>>,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Labels {
    verb: String,
    group: String,
    resource: String,
    code: u16,
}

#[derive(Clone, Default)]
struct Requests {
    count: u64,
    seconds: f64,
    buckets: [u64; BUCKETS.len()],
}

impl Metrics {
    /// Counts an answered request. Unknown resources share one row, so that clients cannot make
    /// the table grow.
    pub(crate) fn count(&self, asked: &Asked, code: u16, took: Duration) {
        let unknown = code == 404 && asked.info.is_resource;
        let or_none = |text: &str| if unknown { String::new() } else { text.to_owned() };
        let labels = Labels {
            verb: asked.info.verb.to_uppercase(),
            group: or_none(&asked.info.group),
            resource: or_none(&asked.info.resource),
            code,
        };
        let seconds = took.as_secs_f64();
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        let row = requests.entry(labels).or_default();
        row.count += 1;
        row.seconds += seconds;
        for (bound, bucket) in BUCKETS.iter().zip(&mut row.buckets) {
            *bucket += u64::from(seconds <= *bound);
        }
    }

    pub(crate) fn render(&self, server: &Inner) -> String {
        let mut out = String::new();
        let rows = self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone();
        out.push_str("# TYPE apiserver_request_total counter\n");
        for (labels, row) in &rows {
            let Labels { verb, group, resource, code } = labels;
            // Writing into a string cannot fail.
            let _ = writeln!(
                out,
                "apiserver_request_total{{code=\"{code}\",group=\"{group}\",resource=\"{resource}\",\
                 verb=\"{verb}\"}} {}",
                row.count
            );
        }
        out.push_str("# TYPE apiserver_request_duration_seconds histogram\n");
        for (labels, row) in &rows {
            let Labels { verb, group, resource, .. } = labels;
            let base = format!("group=\"{group}\",resource=\"{resource}\",verb=\"{verb}\"");
            for (bound, count) in BUCKETS.iter().zip(&row.buckets) {
                let _ = writeln!(
                    out,
                    "apiserver_request_duration_seconds_bucket{{{base},le=\"{bound}\"}} {count}"
                );
            }
            let name = "apiserver_request_duration_seconds";
            let _ = writeln!(out, "{name}_bucket{{{base},le=\"+Inf\"}} {}", row.count);
            let _ = writeln!(out, "{name}_sum{{{base}}} {}", row.seconds);
            let _ = writeln!(out, "{name}_count{{{base}}} {}", row.count);
        }
        out.push_str("# TYPE apiserver_storage_objects gauge\n");
        let store = server.objects.store();
        for bucket in store.buckets() {
            let (group, plural) = bucket.split_once('/').unwrap_or(("", &bucket));
            let resource = match group {
                "" => plural.to_owned(),
                group => format!("{plural}.{group}"),
            };
            let count = store.count(&bucket, "");
            let _ = writeln!(out, "apiserver_storage_objects{{resource=\"{resource}\"}} {count}");
        }
        out
    }
}
