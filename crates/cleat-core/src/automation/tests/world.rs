//! A hub of a few maps: one policy, one automation, its jobs, and a clock that stands still.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use cleat_api::policyautomation::PolicyAutomation;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::super::*;
use crate::write::{Outcome, Refusal};

/// A replayable stream of choices (SplitMix64): a failing seed is a failing test.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % sides as u64) as usize
    }
}

/// What is tried: the real thing, or one with a fault in it.
#[derive(Clone, Copy)]
pub(super) struct Brain {
    pub(super) plan: fn(&Observed) -> Plan,
    pub(super) report: fn(&Observed) -> Verdict,
}

pub(super) const SOUND: Brain = Brain { plan, report };

/// What may befall one write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Luck {
    Good,
    /// The process dies before it, or after it and before the answer.
    DiesBefore,
    DiesAfter,
    /// The answer does not come; it happened, or not.
    LostBefore,
    LostAfter,
    /// Somebody else changed the automation just before.
    Meddled,
    Refused,
}

/// A job that was made at some time, whatever became of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Made {
    pub(super) second: i64,
    pub(super) why: String,
    pub(super) clusters: Vec<String>,
}

pub(super) struct World {
    pub(super) now: Timestamp,
    pub(super) automation: Value,
    pub(super) policy: Value,
    pub(super) jobs: BTreeMap<String, Value>,
    pub(super) made: Vec<Made>,
    pub(super) revision: u64,
    /// What a process knows until it dies.
    pub(super) setback: Option<Setback>,
    pub(super) glimpses: BTreeMap<String, u64>,
    /// How long a write takes.
    pub(super) tick: SignedDuration,
}

pub(super) enum Ended {
    Died,
    /// And wants to look again then.
    Well(Option<Timestamp>),
}

impl World {
    pub(super) fn new(now: Timestamp, automation: Value) -> Self {
        let mut automation = automation;
        automation["metadata"]["namespace"] = json!("policies");
        automation["metadata"]["uid"] = json!("automation-uid");
        automation["metadata"]["generation"] = json!(1);
        automation["metadata"]["resourceVersion"] = json!("1");
        let policy = json!({
            "apiVersion": "policy.open-cluster-management.io/v1",
            "kind": "Policy",
            "metadata": {
                "name": automation["spec"]["policyRef"], "namespace": "policies",
                "uid": "policy-uid", "resourceVersion": "2",
            },
            "spec": { "disabled": false, "policy-templates": [] },
            "status": { "status": [] },
        });
        Self {
            now,
            automation,
            policy,
            jobs: BTreeMap::new(),
            made: Vec::new(),
            revision: 2,
            setback: None,
            glimpses: BTreeMap::new(),
            tick: SignedDuration::from_millis(1),
        }
    }

    pub(super) fn status(&self) -> PolicyAutomationStatus {
        status(&self.parsed())
    }

    pub(super) fn parsed(&self) -> PolicyAutomation {
        serde_json::from_value(self.automation.clone()).unwrap()
    }

    fn read_policy(&self) -> Policy {
        Policy::read(&serde_json::from_value(self.policy.clone()).unwrap())
    }

    fn revise(&mut self) -> String {
        self.revision += 1;
        self.revision.to_string()
    }

    /// Changes the policy as the propagator would; a watch tells of it.
    pub(super) fn change_policy(&mut self, change: impl FnOnce(&mut Value), watched: bool) {
        let before = self.read_policy();
        change(&mut self.policy);
        self.policy["metadata"]["resourceVersion"] = json!(self.revise());
        let after = self.read_policy();
        if watched {
            for name in before.recovered(&after) {
                self.glimpses.insert(name.into(), self.revision);
            }
        }
    }

    /// None: the policy does not concern the cluster.
    pub(super) fn stands(&mut self, cluster: &str, compliant: Option<&str>, watched: bool) {
        self.change_policy(
            |policy| {
                let all = policy["status"]["status"].as_array_mut().unwrap();
                all.retain(|one| one["clustername"] != cluster);
                if let Some(compliant) = compliant {
                    let mut one = json!({ "clustername": cluster, "clusternamespace": cluster });
                    if !compliant.is_empty() {
                        one["compliant"] = json!(compliant);
                    }
                    all.push(one);
                    all.sort_by_key(|one| one["clustername"].to_string());
                }
            },
            watched,
        );
    }

    /// Changes the automation as a user would.
    pub(super) fn edit(&mut self, patch: Value) {
        let before = self.automation["spec"].clone();
        merge(&mut self.automation, &patch);
        if self.automation["spec"] != before {
            let generation = self.automation["metadata"]["generation"].as_i64().unwrap();
            self.automation["metadata"]["generation"] = json!(generation + 1);
        }
        self.automation["metadata"]["resourceVersion"] = json!(self.revise());
    }

    pub(super) fn observe(&self) -> Observed {
        let automation = self.parsed();
        let read = |job: &Value| {
            let metadata = serde_json::from_value(job["metadata"].clone()).unwrap();
            Sighting::Present(Job::read(&metadata, job))
        };
        let mut jobs: BTreeMap<String, Sighting> =
            self.jobs.iter().map(|(name, job)| (name.clone(), read(job))).collect();
        for name in unsettled(&automation) {
            jobs.entry(name).or_insert(Sighting::Absent);
        }
        let violations = targets(&automation).into_iter().map(|name| {
            let message = format!("NonCompliant; violation on {name}");
            (name, json!({ "violation_message": message }))
        });
        Observed {
            now: self.now,
            policy: Sight::Present(self.read_policy()),
            jobs,
            glimpses: self.glimpses.clone(),
            context: Context::Read { hub_cluster: String::new(), violations: violations.collect() },
            setback: self.setback.clone(),
            automation,
        }
    }

    /// One pass, with the luck of each write. The IO half does the same with a real server.
    pub(super) fn pass(&mut self, brain: Brain, mut luck: impl FnMut() -> Luck) -> Ended {
        let mut wake = None;
        for round in 0.. {
            let seen = self.observe();
            let plan = (brain.plan)(&seen);
            if plan.is_empty() {
                self.setback = judge(&seen, &plan, &[]);
                break;
            }
            if round == 40 {
                // Nothing tells that somebody else changed it back; look again some time later.
                wake = Some(self.now + SignedDuration::from_secs(1));
                break;
            }
            let mut done = Vec::new();
            for action in &plan[0] {
                let luck = luck();
                if luck == Luck::DiesBefore {
                    return self.die();
                }
                if luck == Luck::Meddled {
                    self.edit(json!({ "metadata": { "labels": { "meddled": "yes" } } }));
                }
                let outcome = match luck {
                    Luck::LostBefore => Outcome::Lost("no answer".into()),
                    Luck::Refused => Outcome::Refused(Refusal {
                        code: 403,
                        reason: "Forbidden".into(),
                        message: "no".into(),
                    }),
                    _ => self.perform(action),
                };
                match luck {
                    Luck::DiesAfter => return self.die(),
                    Luck::LostAfter => done.push(Outcome::Lost("no answer".into())),
                    _ => done.push(outcome),
                }
            }
            let failed = done.iter().any(|one| {
                !matches!(one, Outcome::Done(_) | Outcome::AlreadyExists | Outcome::Conflict(_))
            });
            self.setback = judge(&seen, &plan, &[done]);
            if failed {
                break;
            }
        }
        let pending = self.status().pending_jobs;
        let promised = |name: &String| pending.iter().any(|job| job.clusters.contains_key(name));
        self.glimpses.retain(|name, _| promised(name));
        let verdict = (brain.report)(&self.observe());
        let later = verdict.wake.map(|after| self.now + after);
        if let Some(status) = verdict.status {
            self.perform(&status);
        }
        Ended::Well([wake, later].into_iter().flatten().min())
    }

    fn die(&mut self) -> Ended {
        self.setback = None;
        self.glimpses.clear();
        Ended::Died
    }

    fn perform(&mut self, action: &Action) -> Outcome {
        self.now += self.tick;
        match &action.write {
            Write::Create(object) => self.create(&action.target.id.name, object),
            Write::Merge(patch) | Write::MergeStatus(patch) => {
                let of = |key: &str| self.automation["metadata"][key].clone();
                if patch["metadata"]["uid"] != of("uid")
                    || patch["metadata"]["resourceVersion"] != of("resourceVersion")
                {
                    return Outcome::Conflict("changed".into());
                }
                let before = self.automation.clone();
                let part = match &action.write {
                    Write::MergeStatus(patch) => json!({ "status": patch["status"] }),
                    _ => patch.clone(),
                };
                self.edit(part);
                let typed: PolicyAutomation = self.parsed();
                let mut typed = serde_json::to_value(typed).unwrap();
                typed["metadata"] = self.automation["metadata"].clone();
                self.automation = typed;
                if self.automation["spec"] == before["spec"]
                    && self.automation["status"] == before["status"]
                    && matches!(action.write, Write::MergeStatus(_))
                {
                    self.automation["metadata"]["resourceVersion"] =
                        before["metadata"]["resourceVersion"].clone();
                }
                Outcome::Done(self.automation.clone())
            }
            other => panic!("{other:?}"),
        }
    }

    fn create(&mut self, name: &str, object: &Value) -> Outcome {
        if self.jobs.contains_key(name) {
            return Outcome::AlreadyExists;
        }
        let mut object = object.clone();
        assert_eq!(object["metadata"]["name"], name);
        let second = self.now.as_second();
        object["metadata"]["creationTimestamp"] =
            json!(Timestamp::from_second(second).unwrap().to_string());
        let base = "ticket-";
        let why = name.strip_prefix(base).unwrap_or(name).split('-').next().unwrap();
        let clusters = object["spec"]["extra_vars"]["target_clusters"].as_array().unwrap();
        let clusters = clusters.iter().map(|one| one.as_str().unwrap().into()).collect();
        self.made.push(Made { second, why: why.into(), clusters });
        self.jobs.insert(name.into(), object.clone());
        Outcome::Done(object)
    }
}

/// A JSON merge patch, as servers apply it.
pub(super) fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (key, value) in patch {
        if value.is_null() {
            target.as_object_mut().unwrap().remove(key);
        } else {
            merge(&mut target[key], value);
        }
    }
}
