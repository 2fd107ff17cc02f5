//! Events about a root, for people who describe it.

use alloc::string::{String, ToString as _};
use alloc::vec::Vec;
use alloc::{format, vec};

use cleat_api::policy::GROUP;
use jiff::Timestamp;
use serde_json::json;

use super::Observed;
use crate::id::{Id, Target};
use crate::write::{Action, Side, Write};

const REASON: &str = "PolicyPropagation";
const COMPONENT: &str = "policy-propagator";

/// How long an event's message may be, by Kubernetes' own rule.
const LONGEST: usize = 1024;

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Event {
    pub warning: bool,
    pub message: String,
    /// Whom it is about; none if about all.
    pub cluster: Option<String>,
}

impl Event {
    pub(super) fn normal(message: String) -> Self {
        Self { warning: false, message, cluster: None }
    }

    pub(super) fn warning(message: String, cluster: Option<String>) -> Self {
        Self { warning: true, message, cluster }
    }
}

/// What an event is attached to, which must be in the event's own namespace.
struct About<'a> {
    namespace: &'a str,
    name: &'a str,
    uid: Option<&'a str>,
}

impl<'a> About<'a> {
    /// The root; once that is gone, perhaps with its namespace, the copy that is left of it.
    fn of(seen: &'a Observed, event: &Event) -> Self {
        let left = event.cluster.as_ref().and_then(|cluster| seen.replicas.get(cluster));
        match (&seen.root, left) {
            (None, Some(copy)) => {
                Self { namespace: &copy.cluster, name: &copy.name, uid: Some(&copy.uid) }
            }
            (root, _) => {
                let uid = root.as_ref().map(|root| &*root.uid);
                Self { namespace: &seen.key.0, name: &seen.key.1, uid }
            }
        }
    }
}

/// The writes that tell of them.
pub fn events(seen: &Observed, events: &[Event]) -> Vec<Action> {
    let nanos = u64::try_from(seen.now.as_nanosecond()).unwrap_or_default();
    let time = Timestamp::from_second(seen.now.as_second()).unwrap_or(seen.now).to_string();
    let mut actions = vec![];
    for (offset, event) in (0_u64..).zip(events) {
        let About { namespace, name, uid } = About::of(seen, event);
        let called = format!("{name}.{:x}", nanos.saturating_add(offset));
        let message: String = event.message.chars().take(LONGEST).collect();
        let object = json!({
            "apiVersion": "v1", "kind": "Event",
            "metadata": { "name": called, "namespace": namespace },
            "involvedObject": {
                "apiVersion": format!("{GROUP}/v1"), "kind": "Policy",
                "namespace": namespace, "name": name, "uid": uid,
            },
            "reason": REASON, "message": message,
            "type": if event.warning { "Warning" } else { "Normal" },
            "source": { "component": COMPONENT }, "reportingComponent": COMPONENT,
            "firstTimestamp": time, "lastTimestamp": time, "count": 1,
        });
        let id = Id {
            group: String::new(),
            resource: "events".to_string(),
            namespace: namespace.to_string(),
            name: called,
        };
        let target = Target { version: "v1".to_string(), id };
        actions.push(Action { side: Side::Hub, target, write: Write::Create(object) });
    }
    actions
}
