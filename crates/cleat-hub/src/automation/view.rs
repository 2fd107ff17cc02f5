//! What is kept of automations and of jobs, and what is read of policies.

use cleat_api::policyautomation::{AUTOMATION_LABEL, PolicyAutomation};
use cleat_core::automation::{Job, Policy, Sight, label_value};
use cleat_core::propagation::Root;
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

/// How a policy stands; unknown if that is not understood.
pub(super) fn sight(root: &Root) -> Sight {
    Policy::read(root).map_or_else(
        || {
            let name = key_of(&root.namespace, &root.name);
            tracing::warn!(name, "the status of a policy is not understood");
            Sight::Unknown
        },
        Sight::Present,
    )
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
