//! Events on a policy about its templates, where they cannot speak for themselves.

use alloc::borrow::ToOwned as _;
use alloc::format;
use alloc::string::{String, ToString as _};

use jiff::Timestamp;
use serde_json::json;

use super::history::event_name;
use super::observed::{Observed, Policy};
use crate::id::{Id, Target};
use crate::write::{Action, Side, Write};

const COMPONENT: &str = "policy-template-sync";

/// The event that says this of a template at that moment.
pub(crate) fn about(
    seen: &Observed,
    local: &Policy,
    template: &str,
    message: &str,
    at: Timestamp,
) -> Action {
    let namespace = &seen.place.cluster_namespace;
    let name = event_name(&seen.name, at);
    let time = Timestamp::from_second(at.as_second()).unwrap_or(at).to_string();
    let good = message.starts_with("Compliant");
    let event = json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": { "name": name, "namespace": namespace },
        "involvedObject": {
            "apiVersion": "policy.open-cluster-management.io/v1",
            "kind": "Policy",
            "name": seen.name,
            "namespace": namespace,
            "uid": local.uid,
        },
        "reason": format!("policy: {namespace}/{template}"),
        "message": message,
        "type": if good { "Normal" } else { "Warning" },
        "action": "ComplianceStateUpdate",
        "source": { "component": COMPONENT, "host": seen.instance },
        "reportingComponent": COMPONENT,
        "reportingInstance": seen.instance,
        "firstTimestamp": time,
        "lastTimestamp": time,
        "count": 1,
    });
    let id = Id {
        group: String::new(),
        resource: "events".to_owned(),
        namespace: namespace.clone(),
        name,
    };
    let target = Target { version: "v1".to_owned(), id };
    Action { side: Side::Cluster, target, write: Write::Create(event) }
}
