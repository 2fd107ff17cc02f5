//! What is kept of automations, of root policies and of jobs.

use cleat_api::policy::{self as api, name::ROOT_POLICY};
use cleat_api::policyautomation::{AUTOMATION_LABEL, PolicyAutomation};
use cleat_core::automation::{Job, Policy, label_value};
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use serde::de::DeserializeOwned;

use crate::followed::{Kept, Key};

/// How what belongs together in a namespace is asked for.
pub(super) fn key_of(namespace: &str, name: &str) -> String {
    format!("{namespace}/{name}")
}

pub(super) struct Automation(pub(super) PolicyAutomation);

impl Automation {
    pub(super) fn key(&self) -> Key {
        (self.0.namespace().unwrap_or_default(), self.0.name_any())
    }
}

impl Kept for Automation {
    fn keep(object: DynamicObject) -> Option<Self> {
        let mut automation: PolicyAutomation = typed(object)?;
        automation.metadata.managed_fields = None;
        Some(Self(automation))
    }

    /// By policy.
    fn group(&self) -> Option<String> {
        Some(key_of(&self.0.namespace().unwrap_or_default(), &self.0.spec.policy_ref))
    }
}

/// A policy that users wrote; copies for clusters are none.
pub(super) struct Root(pub(super) Policy);

impl Kept for Root {
    fn keep(object: DynamicObject) -> Option<Self> {
        policy(object).map(Self)
    }

    fn group(&self) -> Option<String> {
        None
    }
}

pub(super) fn policy(object: DynamicObject) -> Option<Policy> {
    if object.labels().contains_key(ROOT_POLICY) {
        return None;
    }
    let policy: api::Policy = typed(object)?;
    Some(Policy::read(&policy))
}

pub(super) struct AutomationJob {
    pub(super) automation: Key,
    pub(super) job: Job,
}

impl Kept for AutomationJob {
    fn keep(object: DynamicObject) -> Option<Self> {
        object.labels().get(AUTOMATION_LABEL)?;
        let owners = object.metadata.owner_references.iter().flatten();
        let owner = owners.into_iter().find(|owner| owner.kind == "PolicyAutomation")?;
        let automation = (object.namespace().unwrap_or_default(), owner.name.clone());
        Some(Self { automation, job: Job::read(&object.metadata, &object.data) })
    }

    fn group(&self) -> Option<String> {
        let (namespace, name) = &self.automation;
        Some(key_of(namespace, &label_value(name)))
    }
}

fn typed<T: DeserializeOwned>(object: DynamicObject) -> Option<T> {
    let name = key_of(&object.namespace().unwrap_or_default(), &object.name_any());
    let read = serde_json::to_value(object).and_then(serde_json::from_value);
    match read {
        Ok(read) => Some(read),
        Err(error) => {
            tracing::warn!(name, %error, "an object is not understood and left alone");
            None
        }
    }
}
