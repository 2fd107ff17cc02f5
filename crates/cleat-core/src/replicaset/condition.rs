//! Conditions of a set: replaced only when they say something else.

use alloc::string::String;
use alloc::vec::Vec;

use cleat_api::manifestworkreplicaset::reason as api;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::child::stamp;

/// A condition to be. What speaks well is True, all else is False.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Condition {
    pub(super) kind: &'static str,
    pub(super) reason: &'static str,
    pub(super) message: String,
}

/// The condition of a set that is being deleted.
pub(super) const DELETING: &str = "Deleting";
pub(super) const WAITING: &str = "WaitingForWorks";

impl Condition {
    fn status(&self) -> &'static str {
        let good = [api::AS_EXPECTED, api::COMPLETE, WAITING].contains(&self.reason);
        if good { "True" } else { "False" }
    }

    /// The time is that of the last change of status, not of wording.
    pub(super) fn put(self, all: &mut Vec<Value>, generation: i64, now: Timestamp) {
        let status = self.status();
        let old = all.iter_mut().find(|old| old.get("type").is_some_and(|kind| kind == self.kind));
        let kept = old.as_ref().filter(|old| old.get("status").is_some_and(|was| was == status));
        let since = kept.and_then(|old| old.get("lastTransitionTime").cloned());
        let new = json!({
            "type": self.kind,
            "status": status,
            "reason": self.reason,
            "message": self.message,
            "observedGeneration": generation,
            "lastTransitionTime": since.unwrap_or_else(|| stamp(now).into()),
        });
        match old {
            Some(old) => *old = new,
            None => all.push(new),
        }
    }
}

pub(super) fn exists(all: &[Value], kind: &str) -> bool {
    all.iter().any(|old| old.get("type").is_some_and(|at| at == kind))
}
