//! Events about a policy: one for its owner, by which hubs learn of compliance, and some for people
//! who look at the policy itself.

use alloc::borrow::ToOwned as _;
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec;
use alloc::vec::Vec;

use cleat_api::configurationpolicy::{ConfigurationPolicyStatus, state};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::observed::{Observed, Policy};
use super::status::{said, whole_seconds_text};
use crate::id::{Id, Target};
use crate::write::{Action, Plan, Side, Write};

const COMPONENT: &str = "configuration-policy-controller";
const UPDATE: &str = "PolicyUpdate";
const INFO: &str = "PolicyInfo";

/// `None`: the policy has no owner to tell.
pub(crate) fn to_owner(
    seen: &Observed,
    policy: &Policy,
    status: &ConfigurationPolicyStatus,
    message: &str,
) -> Option<Action> {
    let owner = policy.owner.as_ref()?;
    let good = status.compliant.as_deref() == Some(state::COMPLIANT);
    let involved = json!({
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        "name": owner.name,
        "namespace": policy.namespace,
        "uid": owner.uid,
    });
    let mut event = event(seen, policy, &owner.name, 0, involved);
    let reason = format!("policy: {}/{}", policy.namespace, policy.name);
    set(&mut event, "reason", &reason);
    set(&mut event, "message", message);
    set(&mut event, "type", if good { "Normal" } else { "Warning" });
    set(&mut event, "action", "ComplianceStateUpdate");
    if let Some(fields) = event.as_object_mut() {
        fields.insert("related".to_owned(), reference(policy));
    }
    Some(create(policy, event))
}

/// What people see when they describe the policy.
pub(crate) fn about_policy(
    seen: &Observed,
    policy: &Policy,
    status: &ConfigurationPolicyStatus,
    usual: &str,
) -> Vec<Action> {
    let state = status.compliant.as_deref().unwrap_or("UnknownCompliancy");
    let messages: Vec<String> = said(status).into_iter().map(|(_, message)| message).collect();
    let note = super::finding::cut(format!("Policy status is {state}: {}", messages.join("; ")));
    let bad = state != state::COMPLIANT;
    let both = [(UPDATE, note), (INFO, usual.to_owned())];
    let mut events = vec![];
    for (offset, (reason, message)) in both.into_iter().enumerate() {
        let mut event = event(seen, policy, &policy.name, offset, reference(policy));
        set(&mut event, "reason", reason);
        set(&mut event, "message", &message);
        set(&mut event, "type", if bad { "Warning" } else { "Normal" });
        events.push(create(policy, event));
    }
    events
}

/// What a plan only says to people who look at a policy, and how many steps of the rest of it have to
/// be done before.
#[derive(Clone, Debug, PartialEq)]
pub struct Remark {
    pub action: Action,
    pub after: usize,
}

/// A plan without its remarks, and those. Nothing depends on them, so nobody has to wait for them:
/// hubs hear of a policy by the event for its owner, and an object that must be put right is waiting.
pub fn apart(plan: Plan) -> (Plan, Vec<Remark>) {
    let (mut rest, mut remarks): (Plan, Vec<Remark>) = (vec![], vec![]);
    for step in plan {
        let (said, kept): (Vec<Action>, Vec<Action>) = step.into_iter().partition(is_remark);
        let after = rest.len();
        remarks.extend(said.into_iter().map(|action| Remark { action, after }));
        if !kept.is_empty() {
            rest.push(kept);
        }
    }
    (rest, remarks)
}

/// Only events of our own are: what a template wants to be there may be an event too.
fn is_remark(action: &Action) -> bool {
    let Write::Create(event) = &action.write else { return false };
    let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let id = &action.target.id;
    id.group.is_empty()
        && id.resource == "events"
        && [UPDATE, INFO].contains(&text("/reason"))
        && text("/source/component") == COMPONENT
        && text("/involvedObject/kind") == "ConfigurationPolicy"
}

fn reference(policy: &Policy) -> Value {
    json!({
        "apiVersion": "policy.open-cluster-management.io/v1",
        "kind": "ConfigurationPolicy",
        "name": policy.name,
        "namespace": policy.namespace,
        "uid": policy.uid,
    })
}

/// `offset` tells apart events of one moment about one object.
fn event(seen: &Observed, policy: &Policy, about: &str, offset: usize, involved: Value) -> Value {
    let nanos = nanoseconds(seen.now).saturating_add(u64::try_from(offset).unwrap_or(0));
    let time = whole_seconds_text(seen.now);
    json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": { "name": format!("{about}.{nanos:x}"), "namespace": policy.namespace },
        "involvedObject": involved,
        "source": { "component": COMPONENT, "host": seen.controller.instance },
        "reportingComponent": COMPONENT,
        "reportingInstance": seen.controller.instance,
        "firstTimestamp": time,
        "lastTimestamp": time,
        "count": 1,
    })
}

fn nanoseconds(now: Timestamp) -> u64 {
    u64::try_from(now.as_nanosecond()).unwrap_or(0)
}

fn set(event: &mut Value, field: &str, text: &str) {
    if let Some(fields) = event.as_object_mut() {
        fields.insert(field.to_owned(), Value::String(text.to_string()));
    }
}

fn create(policy: &Policy, event: Value) -> Action {
    let name = super::desired::metadata(&event, "name").to_owned();
    let id = Id {
        group: String::new(),
        resource: "events".to_owned(),
        namespace: policy.namespace.clone(),
        name,
    };
    let target = Target { version: "v1".to_owned(), id };
    Action { side: Side::Cluster, target, write: Write::Create(event) }
}
