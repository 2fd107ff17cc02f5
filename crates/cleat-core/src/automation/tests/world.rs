//! A hub of a few maps: one policy, one automation, its jobs, and a clock that stands still.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use cleat_api::policyautomation::PolicyAutomation;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::super::*;
use crate::propagation::Root;
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
    /// Their names, and when exactly each was made.
    pub(super) made_as: Vec<(String, Timestamp)>,
    pub(super) revision: u64,
    /// What a process knows until it dies.
    pub(super) setback: Option<Setback>,
    pub(super) glimpses: BTreeMap<String, u64>,
    pub(super) hints: BTreeSet<String>,
    /// How long a write takes.
    pub(super) tick: SignedDuration,
    /// What each cluster has said of the policy, the newest first, as its copy there tells.
    said: BTreeMap<String, Vec<(Timestamp, String)>>,
    /// A runner ends and deletes jobs while the process is dead.
    pub(super) reaps: bool,
    /// And asks nobody before it does.
    pub(super) careless: bool,
    /// Whether this life of the process has asked clusters what it may have missed.
    listens: bool,
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
            made_as: Vec::new(),
            revision: 2,
            setback: None,
            glimpses: BTreeMap::new(),
            hints: BTreeSet::new(),
            tick: SignedDuration::from_millis(1),
            said: BTreeMap::new(),
            reaps: false,
            careless: false,
            listens: false,
        }
    }

    pub(super) fn status(&self) -> PolicyAutomationStatus {
        status(&self.parsed())
    }

    pub(super) fn parsed(&self) -> PolicyAutomation {
        serde_json::from_value(self.automation.clone()).unwrap()
    }

    fn read_policy(&self) -> Policy {
        let metadata = serde_json::from_value(self.policy["metadata"].clone()).unwrap();
        Policy::read(&Root::read(&metadata, &self.policy)).unwrap()
    }

    fn revise(&mut self) -> String {
        self.revision += 1;
        self.revision.to_string()
    }

    /// Changes the policy as the propagator would; a watch tells of it.
    pub(super) fn change_policy(&mut self, change: impl FnOnce(&mut Value), watched: bool) {
        self.show(change, watched);
        self.hear();
    }

    fn show(&mut self, change: impl FnOnce(&mut Value), watched: bool) {
        let before = self.policy.clone();
        change(&mut self.policy);
        self.policy["metadata"]["resourceVersion"] = json!(self.revise());
        let listed = before["status"]["status"].as_array().unwrap().clone();
        for name in listed.iter().map(|one| one["clustername"].as_str().unwrap()) {
            if watched && !is_over(&before, name) && is_over(&self.policy, name) {
                self.glimpses.insert(name.into(), self.revision);
            }
        }
    }

    /// The policy shows late how a cluster stands, and a watch tells of it.
    pub(super) fn shows(&mut self, cluster: &str, compliant: Option<&str>) {
        self.show(|policy| set(policy, cluster, compliant), true);
    }

    /// A cluster says how it stands, and the policy shows nothing of it.
    pub(super) fn says(&mut self, cluster: &str, compliant: &str) {
        let said = self.said.entry(cluster.into()).or_default();
        said.insert(0, (self.now, compliant.into()));
        if compliant == "Compliant" {
            self.hints.insert(cluster.into());
        }
    }

    /// Each cluster says what changed; whose copy goes takes with it what was said.
    fn hear(&mut self) {
        let listed = self.policy["status"]["status"].as_array().unwrap();
        let word = |name: &str| {
            let one = listed.iter().find(|one| one["clustername"] == name)?;
            Some(one["compliant"].as_str().unwrap_or_default().to_string())
        };
        self.said.retain(|name, _| word(name).is_some());
        let at = self.now + SignedDuration::from_nanos(i64::try_from(self.revision).unwrap());
        for name in listed.iter().map(|one| one["clustername"].as_str().unwrap()) {
            let Some(word) = word(name).filter(|word| !word.is_empty()) else { continue };
            let said = self.said.entry(name.into()).or_default();
            if said.first().is_none_or(|(_, last)| *last != word) {
                said.insert(0, (at, word));
                said.truncate(10);
            }
        }
    }

    /// None: the policy does not concern the cluster.
    pub(super) fn stands(&mut self, cluster: &str, compliant: Option<&str>, watched: bool) {
        self.change_policy(|policy| set(policy, cluster, compliant), watched);
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
        let mut seen = Observed {
            now: self.now,
            policy: Sight::Present(self.read_policy()),
            jobs,
            glimpses: self.glimpses.clone(),
            hints: self.hints.clone(),
            told: BTreeMap::new(),
            context: Context::Read { hub_cluster: String::new(), violations: violations.collect() },
            setback: self.setback.clone(),
            automation,
        };
        let told = asks(&seen, !self.listens).into_iter();
        seen.told = told.filter_map(|name| Some((name.clone(), self.told(&name)?))).collect();
        seen
    }

    /// What the policy's copy of that cluster says.
    fn told(&self, cluster: &str) -> Option<Told> {
        let history = self.said.get(cluster)?.iter().map(|(at, word)| {
            let event = format!("p.{:x}", at.as_nanosecond());
            json!({ "message": format!("{word}; so it is"), "eventName": event })
        });
        let details = json!([{ "history": history.collect::<Vec<Value>>() }]);
        let spec = json!({ "disabled": false, "policy-templates": [] });
        let status = json!({ "compliant": self.said.get(cluster)?.first()?.1, "details": details });
        let copy = json!({ "metadata": {}, "spec": spec, "status": status });
        Told::read(&serde_json::from_value(copy).unwrap())
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
        self.listens = true;
        let pending = self.status().pending_jobs;
        let promised = |name: &String| pending.iter().any(|job| job.clusters.contains_key(name));
        self.glimpses.retain(|name, _| promised(name));
        self.hints.retain(promised);
        let verdict = (brain.report)(&self.observe());
        let later = verdict.wake.map(|after| self.now + after);
        if let Some(status) = verdict.status {
            self.perform(&status);
        }
        Ended::Well([wake, later].into_iter().flatten().min())
    }

    pub(super) fn die(&mut self) -> Ended {
        self.setback = None;
        self.glimpses.clear();
        self.hints.clear();
        self.listens = false;
        if self.reaps {
            let names: Vec<String> = self.jobs.keys().cloned().collect();
            for name in names {
                self.end_job(&name, "successful");
            }
            self.reap();
        }
        Ended::Died
    }

    /// A job that has not ended does so now.
    pub(super) fn end_job(&mut self, name: &str, result: &str) {
        let job = self.jobs.get_mut(name).unwrap();
        if job["status"].is_null() {
            let result = json!({ "status": result, "finished": self.now.to_string() });
            job["status"] = json!({ "ansibleJobResult": result });
        }
    }

    /// Jobs that have ended have lived long enough; a runner deletes what it may.
    pub(super) fn reap(&mut self) {
        let (automation, careless) = (self.parsed(), self.careless);
        self.jobs.retain(|_, job| {
            let ended = !job["status"].is_null();
            let status = job["status"].clone();
            let job = serde_json::from_value(job.clone()).unwrap();
            !(ended && (careless || crate::ansiblejob::is_noted(&job, &status, Some(&automation))))
        });
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
        self.made_as.push((name.into(), self.now));
        self.made.push(Made { second, why: why.into(), clusters });
        self.jobs.insert(name.into(), object.clone());
        Outcome::Done(object)
    }
}

fn set(policy: &mut Value, cluster: &str, compliant: Option<&str>) {
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
}

/// Whether a cluster is known to comply, or is none of the policy's concern.
fn is_over(policy: &Value, name: &str) -> bool {
    let listed = policy["status"]["status"].as_array().unwrap();
    let one = listed.iter().find(|one| one["clustername"] == name);
    policy["spec"]["disabled"] == true || one.is_none_or(|one| one["compliant"] == "Compliant")
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
