//! The text that Prometheus reads.

use std::fmt::Write as _;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use serde_json::Value;

use super::{BUCKETS, Durations, Labels, Metrics, Watched, flowcontrol, process};
use crate::admission::{ANSWERS, Phase, Row};
use crate::http::paths;
use crate::server::Inner;
use crate::status::GroupResource;

const DURATION: &str = "apiserver_request_duration_seconds";

impl Metrics {
    pub(crate) fn render(&self, server: &Inner) -> String {
        let mut page = Page::default();
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone();
        page.head("apiserver_request_total", "counter", "Requests, by what they were answered");
        for ((labels, code), count) in &requests {
            let labels = format!("code=\"{code}\",{labels}");
            page.sample("apiserver_request_total", &labels, count);
        }
        self.durations(&mut page);
        page.head(
            "apiserver_current_inflight_requests",
            "gauge",
            "Requests being worked on, without those that last",
        );
        for (kind, gauge) in [("mutating", &self.writing), ("readOnly", &self.reading)] {
            let labels = format!("request_kind=\"{kind}\"");
            let count = gauge.load(Ordering::Relaxed);
            page.sample("apiserver_current_inflight_requests", &labels, &count);
        }
        let lasting = self.lasting.lock().unwrap_or_else(PoisonError::into_inner).clone();
        page.head("apiserver_longrunning_requests", "gauge", "Watches that are open");
        for (labels, count) in &lasting {
            page.sample("apiserver_longrunning_requests", &labels.to_string(), count);
        }
        self.watched(&mut page);
        if let Some(audit) = &server.audit {
            let name = "apiserver_audit_event_total";
            page.head(name, "counter", "Events that went into the audit log");
            page.sample(name, "", &audit.written());
        }
        flowcontrol::tell(&server.priority, &mut page);
        stored(server, &mut page);
        webhooks(server, &mut page);
        build(&mut page);
        process::tell(&mut page);
        page.0
    }

    fn watched(&self, page: &mut Page) {
        let name = "apiserver_watch_events_total";
        page.head(name, "counter", "Events that watches were told, and bookmarks");
        let counts = self.watched.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for (Watched { group, version, resource }, count) in &counts {
            let labels = format!("group=\"{group}\",resource=\"{resource}\",version=\"{version}\"");
            page.sample(name, &labels, &count.load(Ordering::Relaxed));
        }
    }

    fn durations(&self, page: &mut Page) {
        let durations = self.durations.lock().unwrap_or_else(PoisonError::into_inner).clone();
        page.head(DURATION, "histogram", "How long requests took");
        for (labels, row) in &durations {
            page.histogram(DURATION, &labels.to_string(), &BUCKETS, row);
        }
    }
}

fn stored(server: &Inner, page: &mut Page) {
    let store = server.objects.store();
    let buckets = store.buckets();
    let counts: Vec<(&str, &str, usize)> = buckets
        .iter()
        .map(|bucket| {
            let (group, plural) = bucket.split_once('/').unwrap_or(("", bucket));
            (group, plural, store.count(bucket, ""))
        })
        .collect();
    // The second has taken the place of the first upstream; dashboards ask for either.
    page.head("apiserver_storage_objects", "gauge", "Objects that are stored");
    for (group, plural, count) in &counts {
        let resource = GroupResource { group, resource: plural };
        page.sample("apiserver_storage_objects", &format!("resource=\"{resource}\""), count);
    }
    page.head("apiserver_resource_objects", "gauge", "Objects that are stored");
    for (group, plural, count) in &counts {
        let labels = format!("group=\"{group}\",resource=\"{plural}\"");
        page.sample("apiserver_resource_objects", &labels, count);
    }
    if let Some(size) = store.size_on_disk() {
        let name = "apiserver_storage_size_bytes";
        page.head(name, "gauge", "The size of the file behind the store");
        page.sample(name, "storage_cluster_id=\"etcd-0\"", &size);
    }
}

/// The API is that of a Kubernetes release; which one, dashboards show beside the rest.
fn build(page: &mut Page) {
    let name = "kubernetes_build_info";
    page.head(name, "gauge", "The release of Kubernetes whose API this is");
    let version = paths::version();
    let labels = [
        ("build_date", "buildDate"),
        ("compiler", "compiler"),
        ("git_commit", "gitCommit"),
        ("git_tree_state", "gitTreeState"),
        ("git_version", "gitVersion"),
        ("go_version", "goVersion"),
        ("major", "major"),
        ("minor", "minor"),
        ("platform", "platform"),
    ];
    let labels = labels.map(|(label, key)| {
        let value = version.get(key).and_then(Value::as_str).unwrap_or_default();
        format!("{label}=\"{}\"", escaped(value))
    });
    page.sample(name, &labels.join(","), &1);
}

fn webhooks(server: &Inner, page: &mut Page) {
    let name = "apiserver_admission_webhook_admission_duration_seconds";
    page.head(name, "histogram", "How long webhooks took to answer");
    for (row, durations) in server.admission().answers() {
        let Row { webhook, phase, operation, rejected } = row;
        let phase = match phase {
            Phase::Mutating => "admit",
            Phase::Validating => "validating",
        };
        let labels = format!(
            "name=\"{}\",operation=\"{operation}\",rejected=\"{rejected}\",type=\"{phase}\"",
            escaped(&webhook)
        );
        page.histogram(name, &labels, &ANSWERS, &durations);
    }
}

/// A text inside the quotes of a label.
fn escaped(text: &str) -> String {
    text.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n")
}

impl std::fmt::Display for Labels {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { verb, group, version, resource, subresource, scope, dry_run } = self;
        write!(
            f,
            "component=\"apiserver\",dry_run=\"{dry_run}\",group=\"{group}\",\
             resource=\"{resource}\",scope=\"{scope}\",subresource=\"{subresource}\",\
             verb=\"{verb}\",version=\"{version}\""
        )
    }
}

#[derive(Default)]
pub(super) struct Page(String);

// Writing into a string cannot fail.
impl Page {
    pub(super) fn head(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}.\n# TYPE {name} {kind}");
    }

    pub(super) fn sample(&mut self, name: &str, labels: &str, value: &dyn std::fmt::Display) {
        let _ = match labels {
            "" => writeln!(self.0, "{name} {value}"),
            labels => writeln!(self.0, "{name}{{{labels}}} {value}"),
        };
    }

    pub(super) fn histogram<const N: usize>(
        &mut self,
        name: &str,
        labels: &str,
        bounds: &[f64; N],
        row: &Durations<N>,
    ) {
        let bucket = format!("{name}_bucket");
        for (bound, count) in bounds.iter().zip(&row.buckets) {
            self.sample(&bucket, &format!("{labels},le=\"{bound}\""), count);
        }
        self.sample(&bucket, &format!("{labels},le=\"+Inf\""), &row.count);
        self.sample(&format!("{name}_sum"), labels, &row.seconds);
        self.sample(&format!("{name}_count"), labels, &row.count);
    }
}
