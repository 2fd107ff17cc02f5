//! Policies as they are stored, read into what the planner knows.

use std::collections::BTreeMap;

use cleat_api::configurationpolicy::{ConfigurationPolicy, STOPPED};
use cleat_core::policy::observed::{Owner, Policy, Subject};
use cleat_core::write::Outcome;
use cleat_runtime::follow::Held;
use serde_json::Value;

/// The policy, and what is written on it.
pub(super) fn subject(held: &Held) -> (Subject, BTreeMap<String, String>) {
    let object = match held {
        Held::Absent => return (Subject::Absent, BTreeMap::new()),
        Held::Unknown(reason) => return (Subject::Unknown(reason.to_string()), BTreeMap::new()),
        Held::Present(object) => object,
    };
    let policy: ConfigurationPolicy = match object.parse() {
        Ok(policy) => policy,
        // What a later version of the kind may say must not be guessed at.
        Err(error) => {
            tracing::warn!(policy = %object.name, %error, "the policy cannot be read");
            let message = format!("the policy cannot be read: {error}");
            return (Subject::Unknown(message), BTreeMap::new());
        }
    };
    let annotations = policy.metadata.annotations.clone().unwrap_or_default();
    (Subject::Policy(Box::new(known(policy))), annotations)
}

/// A policy as the planner knows it.
pub(super) fn known(policy: ConfigurationPolicy) -> Policy {
    let ConfigurationPolicy { metadata, spec, status } = policy;
    let annotations = metadata.annotations.unwrap_or_default();
    let stopped = annotations.contains_key(STOPPED);
    let owner = metadata.owner_references.unwrap_or_default().into_iter().next();
    Policy {
        namespace: metadata.namespace.unwrap_or_default(),
        name: metadata.name.unwrap_or_default(),
        uid: metadata.uid.unwrap_or_default(),
        resource_version: metadata.resource_version.unwrap_or_default(),
        generation: metadata.generation.unwrap_or_default(),
        labels: metadata.labels.unwrap_or_default(),
        annotations,
        finalizers: metadata.finalizers.unwrap_or_default(),
        deleting: metadata.deletion_timestamp.is_some(),
        stopped,
        owner: owner.map(|owner| Owner {
            api_version: owner.api_version,
            kind: owner.kind,
            name: owner.name,
            uid: owner.uid,
        }),
        spec,
        status: status.unwrap_or_default(),
    }
}

/// Which incarnation ended, if the answer to a patch is of one that nothing holds any more.
pub(crate) fn end_of(outcome: &Outcome) -> Option<String> {
    let Outcome::Done(object) = outcome else { return None };
    let metadata = object.get("metadata")?;
    metadata.get("deletionTimestamp").filter(|time| time.is_string())?;
    let held =
        metadata.get("finalizers").and_then(Value::as_array).is_some_and(|all| !all.is_empty());
    if held { None } else { Some(metadata.get("uid")?.as_str()?.to_owned()) }
}
