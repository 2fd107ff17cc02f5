//! Pods, whose one-word status is worked out from their containers.

use serde_json::{Value, json};

use super::age as times;
use super::cell::{Cell, Column, Row, age, at, name, number_at, text, text_at, wide};

pub(super) const PODS: &[Column] = &[
    name(),
    text("Ready", Cell::Made(|row| Summary::of(row).ready(), "Ready containers, of all.")),
    text("Status", Cell::Made(|row| Summary::of(row).reason.into(), "What the pod is doing.")),
    text("Restarts", Cell::Made(|row| Summary::of(row).restarts(row), "Restarts of containers.")),
    age(),
    wide("IP", Cell::Made(ip, "The pod's address.")),
    wide("Node", Cell::Text("spec.nodeName", "<none>")),
    wide("Nominated Node", Cell::Text("status.nominatedNodeName", "<none>")),
    wide("Readiness Gates", Cell::Made(gates, "Readiness gates passed, of all.")),
];

/// A row's conditions: whether the pod has run to its end.
pub(super) fn conditions(row: &Row<'_>) -> Option<Value> {
    let (reason, message) = match row.text("status.phase") {
        "Succeeded" => ("Succeeded", "The pod has completed successfully."),
        "Failed" => ("Failed", "The pod failed."),
        _ => return None,
    };
    Some(json!([{
        "type": "Completed", "status": "True", "reason": reason, "message": message,
    }]))
}

fn ip(row: &Row<'_>) -> Value {
    let first = row.list("status.podIPs").first().map(|ip| text_at(ip, "ip")).unwrap_or_default();
    Value::from(match row.text_or("status.podIP", first) {
        "" => "<none>",
        ip => ip,
    })
}

fn gates(row: &Row<'_>) -> Value {
    let gates = row.list("spec.readinessGates");
    if gates.is_empty() {
        return Value::from("<none>");
    }
    let passed = gates
        .iter()
        .filter(|gate| row.condition(text_at(gate, "conditionType")) == Some("True"))
        .count();
    Value::from(format!("{passed}/{}", gates.len()))
}

/// What the containers add up to.
struct Summary {
    ready: usize,
    total: usize,
    reason: String,
    restarts: i64,
    /// When a container was last restarted, as written.
    last_restart: String,
}

impl Summary {
    fn of(row: &Row<'_>) -> Self {
        let init = row.list("spec.initContainers");
        let mut summary = Self {
            ready: 0,
            total: row.count("spec.containers")
                + init.iter().filter(|container| is_sidecar(container)).count(),
            reason: row.text_or("status.reason", row.text("status.phase")).to_owned(),
            restarts: 0,
            last_restart: String::new(),
        };
        let gated = row.list("status.conditions").iter().any(|condition| {
            text_at(condition, "type") == "PodScheduled"
                && text_at(condition, "reason") == "SchedulingGated"
        });
        if gated {
            summary.reason = "SchedulingGated".to_owned();
        }
        let sidecars = summary.count_init(row, init);
        let initialized = row.condition("Initialized") == Some("True");
        if let Init::Done { restarts, last_restart } = sidecars.or_done(initialized) {
            summary.restarts = restarts;
            summary.last_restart = last_restart;
            summary.count_main(row);
        }
        if row.is_deleting() {
            if row.text("status.reason") == "NodeLost" {
                summary.reason = "Unknown".to_owned();
            } else if !matches!(row.text("status.phase"), "Failed" | "Succeeded") {
                summary.reason = "Terminating".to_owned();
            }
        }
        summary
    }

    fn count_init(&mut self, row: &Row<'_>, init: &[Value]) -> Init {
        let mut sidecar_restarts: i64 = 0;
        let mut sidecar_last = String::new();
        for (index, status) in row.list("status.initContainerStatuses").iter().enumerate() {
            self.restarted(status);
            let declared = init.iter().find(|one| text_at(one, "name") == text_at(status, "name"));
            let sidecar = declared.is_some_and(is_sidecar);
            if sidecar {
                sidecar_restarts =
                    number_at(status, "restartCount").saturating_add(sidecar_restarts);
                later(&mut sidecar_last, last_finished(status));
            }
            let terminated = at(status, "state.terminated");
            if terminated.is_some_and(|state| number_at(state, "exitCode") == 0) {
                continue;
            }
            if sidecar && at(status, "started") == Some(&Value::Bool(true)) {
                self.ready += usize::from(is_ready(status));
                continue;
            }
            let waiting = text_at(status, "state.waiting.reason");
            self.reason = match terminated {
                Some(state) => format!("Init:{}", end_reason(state)),
                None if !waiting.is_empty() && waiting != "PodInitializing" => {
                    format!("Init:{waiting}")
                }
                None => format!("Init:{index}/{}", init.len()),
            };
            return Init::Running { restarts: sidecar_restarts, last_restart: sidecar_last };
        }
        Init::Done { restarts: sidecar_restarts, last_restart: sidecar_last }
    }

    fn count_main(&mut self, row: &Row<'_>) {
        let (mut running, mut error) = (false, String::new());
        for status in row.list("status.containerStatuses").iter().rev() {
            self.restarted(status);
            let waiting = text_at(status, "state.waiting.reason");
            if !waiting.is_empty() {
                waiting.clone_into(&mut self.reason);
            } else if let Some(state) = at(status, "state.terminated") {
                self.reason = end_reason(state);
                if number_at(state, "exitCode") != 0 {
                    self.reason.clone_into(&mut error);
                }
            } else if is_ready(status) && at(status, "state.running").is_some() {
                running = true;
                self.ready += 1;
            }
        }
        if self.reason == "Completed" {
            if running && row.condition("Ready") == Some("True") {
                "Running".clone_into(&mut self.reason);
            } else if !error.is_empty() {
                self.reason = error;
            } else if running {
                "NotReady".clone_into(&mut self.reason);
            }
        }
    }

    fn restarted(&mut self, status: &Value) {
        self.restarts = self.restarts.saturating_add(number_at(status, "restartCount"));
        later(&mut self.last_restart, last_finished(status));
    }

    fn ready(&self) -> Value {
        Value::from(format!("{}/{}", self.ready, self.total))
    }

    fn restarts(&self, row: &Row<'_>) -> Value {
        let restarts = self.restarts;
        if restarts == 0 || self.last_restart.is_empty() {
            return Value::from(restarts.to_string());
        }
        let ago = times::since(Some(&Value::from(&*self.last_restart)), row.now);
        Value::from(format!("{restarts} ({ago} ago)"))
    }
}

/// How far the init containers are, with what their sidecars count for afterwards.
enum Init {
    Running { restarts: i64, last_restart: String },
    Done { restarts: i64, last_restart: String },
}

impl Init {
    /// A pod that says it is initialized is, whatever its init containers look like.
    fn or_done(self, initialized: bool) -> Self {
        match self {
            Self::Running { restarts, last_restart } if initialized => {
                Self::Done { restarts, last_restart }
            }
            other => other,
        }
    }
}

fn is_sidecar(container: &Value) -> bool {
    text_at(container, "restartPolicy") == "Always"
}

fn is_ready(status: &Value) -> bool {
    at(status, "ready") == Some(&Value::Bool(true))
}

fn last_finished(status: &Value) -> &str {
    text_at(status, "lastState.terminated.finishedAt")
}

/// Times in RFC 3339 and UTC are in order as texts.
fn later(last: &mut String, time: &str) {
    if time > last.as_str() {
        time.clone_into(last);
    }
}

fn end_reason(terminated: &Value) -> String {
    match (text_at(terminated, "reason"), number_at(terminated, "signal")) {
        ("", 0) => format!("ExitCode:{}", number_at(terminated, "exitCode")),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}
