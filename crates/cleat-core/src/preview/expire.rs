//! Questions that nobody waits for any more are deleted.

use alloc::string::String;
use alloc::vec;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;

use crate::id::{Id, Target};
use crate::write::{Action, Plan, Propagation, Side, Write};

/// A question that is of no interest from some moment on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expiring {
    pub namespace: String,
    pub name: String,
    pub uid: String,
    pub due: Timestamp,
}

impl Expiring {
    /// `None` of a question that stays until somebody deletes it.
    pub fn read(metadata: &ObjectMeta, data: &Value) -> Option<Self> {
        if metadata.deletion_timestamp.is_some() {
            return None;
        }
        let due = data.get("spec")?.get("expiresAt")?.as_str()?.parse().ok()?;
        Some(Self {
            namespace: metadata.namespace.clone()?,
            name: metadata.name.clone()?,
            uid: metadata.uid.clone()?,
            due,
        })
    }
}

/// Deletes it if it is time.
pub fn expire(question: &Expiring, now: Timestamp) -> Plan {
    if now < question.due {
        return vec![];
    }
    let id = Id {
        group: "cleat.dev".into(),
        resource: "removalpreviews".into(),
        namespace: question.namespace.clone(),
        name: question.name.clone(),
    };
    let write = Write::Delete {
        uid: question.uid.clone(),
        resource_version: None,
        propagation: Propagation::Background,
    };
    let target = Target { version: "v1alpha1".into(), id };
    vec![vec![Action { side: Side::Hub, target, write }]]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_question_goes_when_its_time_is_over_and_not_before() {
        let metadata: ObjectMeta =
            serde_json::from_value(json!({ "namespace": "c1", "name": "q", "uid": "u" })).unwrap();
        let data = json!({ "spec": { "expiresAt": "2026-01-01T00:00:00Z" } });
        let question = Expiring::read(&metadata, &data).unwrap();
        let before = Timestamp::from_second(question.due.as_second() - 1).unwrap();
        assert_eq!(expire(&question, before), Plan::new());
        assert_eq!(expire(&question, question.due).len(), 1);
        assert_eq!(Expiring::read(&metadata, &json!({ "spec": {} })), None);
    }
}
