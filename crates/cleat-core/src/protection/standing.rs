//! How a CriticalService stands towards those it refused: what of it makes asking again worth while.
//!
//! Its status changes with every object that is counted and with every refusal. Whoever waits and
//! asked again each time would be refused each time, and that is told in the status once more.

use alloc::borrow::ToOwned as _;
use alloc::collections::BTreeSet;
use alloc::string::String;

use cleat_api::criticalservice::CriterionState;
use serde_json::Value;

/// What of a CriticalService matters to whoever it refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    uid: String,
    /// Another one: somebody asks for something else now, or releases it.
    generation: i64,
    terminating: bool,
    /// Which criteria are not satisfied.
    unmet: BTreeSet<String>,
    /// The provider, by phase and incarnation: the CriticalService itself waits for it.
    provider: [String; 2],
    latched: bool,
}

impl Standing {
    /// What is not understood of an object is taken for not being there.
    pub fn read(object: &Value) -> Self {
        let at = |path: &str| object.pointer(path).filter(|value| !value.is_null());
        let text = |path: &str| at(path).and_then(Value::as_str).unwrap_or_default().to_owned();
        let criteria = at("/status/criteria").and_then(Value::as_array).into_iter().flatten();
        let unmet = criteria.filter(|one| {
            let state = one.get("state").cloned().map(serde_json::from_value);
            !matches!(state, Some(Ok(CriterionState::Satisfied)))
        });
        let subject = |one: &Value| one.get("subject").and_then(Value::as_str).map(str::to_owned);
        Self {
            uid: text("/metadata/uid"),
            generation: at("/metadata/generation").and_then(Value::as_i64).unwrap_or_default(),
            terminating: at("/metadata/deletionTimestamp").is_some(),
            unmet: unmet.filter_map(subject).collect(),
            provider: [text("/status/provider/phase"), text("/status/provider/uid")],
            latched: at("/status/latch").is_some(),
        }
    }

    /// Whether something that it refused when it stood like this may pass now. `None`: it is gone.
    pub fn may_have_let_go(&self, now: Option<&Self>) -> bool {
        let Some(now) = now else { return true };
        let Self { uid, generation, terminating, unmet, provider, latched } = self;
        *uid != now.uid
            || *generation != now.generation
            || *terminating != now.terminating
            || *provider != now.provider
            || (*latched && !now.latched)
            || !unmet.is_subset(&now.unmet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn service() -> Value {
        json!({
            "metadata": { "uid": "u", "generation": 1, "resourceVersion": "7" },
            "status": {
                "criteria": [
                    { "subject": "cools.x.y", "state": "Unsatisfied", "count": 5000 },
                    { "subject": "pods", "state": "Unknown", "count": 0 },
                ],
                "provider": { "phase": "Present", "uid": "p" },
                "latch": { "uid": "p", "late": [] },
                "denials": [],
            },
        })
    }

    /// Whether a change of the service is worth asking again.
    fn wakes(change: impl Fn(&mut Value)) -> bool {
        let before = service();
        let mut after = before.clone();
        change(&mut after);
        Standing::read(&before).may_have_let_go(Some(&Standing::read(&after)))
    }

    #[test]
    fn whoever_waited_was_woken_by_every_count_and_every_refusal() {
        assert!(!wakes(|_| {}));
        assert!(!wakes(|service| service["metadata"]["resourceVersion"] = json!("8")));
        assert!(!wakes(|service| service["status"]["criteria"][0]["count"] = json!(4999)));
        assert!(!wakes(|service| service["status"]["denials"] = json!([{ "user": "a" }])));
        assert!(!wakes(|service| service["status"]["latch"]["late"] = json!(["pods: a/b"])));
        assert!(!wakes(|service| service["status"]["criteria"][1]["state"] = json!("Unsatisfied")));
    }

    #[test]
    fn whoever_waits_is_woken_when_it_may_pass() {
        assert!(wakes(|service| service["status"]["criteria"][0]["state"] = json!("Satisfied")));
        assert!(wakes(|service| service["status"]["criteria"][1]["state"] = json!("Satisfied")));
        assert!(wakes(|service| service["metadata"]["generation"] = json!(2)));
        assert!(wakes(|service| service["metadata"]["uid"] = json!("another")));
        assert!(wakes(|service| service["metadata"]["deletionTimestamp"] = json!("2026-01-01")));
        assert!(wakes(|service| service["status"]["provider"]["phase"] = json!("Gone")));
        assert!(wakes(|service| service["status"]["latch"] = Value::Null));
        assert!(Standing::read(&service()).may_have_let_go(None));
    }
}
