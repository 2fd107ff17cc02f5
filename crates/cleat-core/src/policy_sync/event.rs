//! Events on a policy: about its templates where they cannot speak for themselves, and about what was
//! done for it.

use alloc::borrow::ToOwned as _;
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec;
use alloc::vec::Vec;

use cleat_api::policy::GROUP;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::adrift;
use super::history::event_name;
use super::observed::{Observed, Policy};
use crate::id::{Id, Target};
use crate::write::{Action, Outcome, Plan, Side, Write};

const TEMPLATE_SYNC: &str = "policy-template-sync";
const SPEC_SYNC: &str = "policy-spec-sync";

/// What an event says, and who.
struct Said<'a> {
    component: &'static str,
    reason: &'a str,
    message: &'a str,
    action: &'static str,
    good: bool,
}

/// The event that says this of a template at that moment.
pub(crate) fn about(
    seen: &Observed,
    local: &Policy,
    template: &str,
    message: &str,
    at: Timestamp,
) -> Action {
    let reason = format!("policy: {}/{template}", seen.place.cluster_namespace);
    let said = Said {
        component: TEMPLATE_SYNC,
        reason: &reason,
        message,
        action: "ComplianceStateUpdate",
        good: message.starts_with("Compliant"),
    };
    event(seen, &local.uid, &said, at)
}

/// The event that warns of a policy that is gone from the hub.
pub(crate) fn vanished(seen: &Observed, local: &Policy, at: Timestamp) -> Action {
    let minutes = adrift::PATIENCE.as_mins();
    let message = format!(
        "Policy {} is gone from the hub, which did not let go of it; it is removed in {minutes} minutes unless it is back",
        seen.name
    );
    event(seen, &local.uid, &synced(&message, false), at)
}

fn synced(message: &str, good: bool) -> Said<'_> {
    Said { component: SPEC_SYNC, reason: "PolicySpecSync", message, action: "PolicySpecSync", good }
}

/// The events that say what was done for a policy.
pub fn announce(seen: &Observed, plan: &Plan, outcomes: &[Vec<Outcome>]) -> Plan {
    let mut events = Vec::new();
    for (action, outcome) in plan.iter().flatten().zip(outcomes.iter().flatten()) {
        let Outcome::Done(object) = outcome else { continue };
        // No two of one pass may be of the same moment.
        let offset = SignedDuration::from_nanos(i64::try_from(events.len()).unwrap_or_default());
        let at = seen.now.checked_add(offset).unwrap_or(seen.now);
        events.extend(done(seen, action, object, at));
    }
    if events.is_empty() { vec![] } else { vec![events] }
}

fn done(seen: &Observed, action: &Action, object: &Value, at: Timestamp) -> Option<Action> {
    let Target { id: Id { group, resource, namespace, name }, .. } = &action.target;
    if action.side == Side::Hub || group.is_empty() {
        return None;
    }
    let known = seen.local.policy().map(|local| local.uid.as_str());
    if (group.as_str(), resource.as_str()) == (GROUP, "policies") {
        let made = object.pointer("/metadata/uid").and_then(Value::as_str);
        let (message, good) = match &action.write {
            Write::Create(_) => {
                (format!("Policy {name} was synchronized to cluster namespace {namespace}"), true)
            }
            Write::Replace(_) => {
                (format!("Policy {name} was updated in cluster namespace {namespace}"), true)
            }
            Write::Delete { .. } => {
                (format!("Policy {name} was removed from cluster namespace {namespace}"), true)
            }
            Write::Merge(patch) if adrift::marks(patch) => (
                format!(
                    "Policy {name} stays in cluster namespace {namespace}: the hub lost the definition of policies"
                ),
                false,
            ),
            _ => return None,
        };
        return Some(event(seen, known.or(made)?, &synced(&message, good), at));
    }
    let message = match &action.write {
        Write::Create(_) => format!("Policy template {name} created successfully"),
        Write::Replace(_) => format!("Policy template {name} was updated successfully"),
        _ => return None,
    };
    let said = Said {
        component: TEMPLATE_SYNC,
        reason: "PolicyTemplateSync",
        message: &message,
        action: "PolicyTemplateSync",
        good: true,
    };
    Some(event(seen, known?, &said, at))
}

fn event(seen: &Observed, uid: &str, said: &Said<'_>, at: Timestamp) -> Action {
    let Said { component, reason, message, action, good } = said;
    let namespace = &seen.place.cluster_namespace;
    let name = event_name(&seen.name, at);
    let time = Timestamp::from_second(at.as_second()).unwrap_or(at).to_string();
    let event = json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": { "name": name, "namespace": namespace },
        "involvedObject": {
            "apiVersion": "policy.open-cluster-management.io/v1",
            "kind": "Policy",
            "name": seen.name,
            "namespace": namespace,
            "uid": uid,
        },
        "reason": reason,
        "message": message,
        "type": if *good { "Normal" } else { "Warning" },
        "action": action,
        "source": { "component": component, "host": seen.instance },
        "reportingComponent": component,
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
