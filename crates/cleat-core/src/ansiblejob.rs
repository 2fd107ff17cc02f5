//! The story of one AnsibleJob that Cleat itself runs, where no automation platform does.
//!
//! What users may rely on: *a job is run at most once*. A runner writes its name on the job before it
//! begins. If it dies, the job is not begun again by anybody: how far its playbook came is unknown,
//! and the job says so. A job that anybody else has said something of is left alone.
//!
//! Not decided here: how a playbook is found and run.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString as _};

use cleat_api::ansiblejob::AnsibleJob;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use crate::id::{Id, Target};
use crate::write::{Action, Propagation, Side, Write};

/// Who runs jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Runner {
    /// The same after a restart.
    pub name: String,
    /// Another one after a restart.
    pub session: String,
    /// How long a playbook may take.
    pub timeout: SignedDuration,
}

/// What to do with a job.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    Leave,
    /// Write this; if it was done, begin.
    Claim(Action),
    /// It is this runner's own, and under way.
    Ours,
    /// Its runner is gone.
    GiveUp(Action),
    /// It has ended and lived long enough.
    Delete(Action),
    /// Look again then.
    Wait(Timestamp),
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    pub result: Ended,
    pub exit_code: Option<i32>,
    /// Why, in a sentence; empty if there is nothing to say.
    pub message: String,
    /// The end of what was printed.
    pub log: String,
    pub finished: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    Successful,
    /// The playbook said no.
    Failed,
    /// It could not be run, or not to its end.
    Error,
}

/// How long after its time a runner that says nothing counts as gone.
const GRACE: SignedDuration = SignedDuration::from_secs(120);

pub fn next(job: &AnsibleJob, status: &Value, runner: &Runner, now: Timestamp) -> Next {
    if job.metadata.deletion_timestamp.is_some() {
        return Next::Leave;
    }
    let told = |path: &str| status.pointer(path).and_then(Value::as_str);
    let Some(name) = told("/runner/name") else {
        return if is_untouched(status) {
            Next::Claim(claim(job, runner, now))
        } else {
            Next::Leave
        };
    };
    let result = told("/ansibleJobResult/status").unwrap_or_default();
    if result != "running" {
        return expire(job, told("/ansibleJobResult/finished"), now);
    }
    if name == runner.name {
        if told("/runner/session") == Some(&runner.session) {
            return Next::Ours;
        }
        return Next::GiveUp(give_up(job, name, now));
    }
    let started: Option<Timestamp> =
        told("/ansibleJobResult/started").and_then(|at| at.parse().ok());
    let patience = runner.timeout.saturating_add(GRACE);
    match started.and_then(|started| started.checked_add(patience).ok()) {
        Some(end) if now < end => Next::Wait(end),
        _ => Next::GiveUp(give_up(job, name, now)),
    }
}

/// Whether nobody has said anything of it.
fn is_untouched(status: &Value) -> bool {
    match status {
        Value::Null => true,
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

fn expire(job: &AnsibleJob, finished: Option<&str>, now: Timestamp) -> Next {
    let finished: Option<Timestamp> = finished.and_then(|at| at.parse().ok());
    let ttl = job.spec.job_ttl.and_then(|ttl| u32::try_from(ttl).ok());
    let (Some(finished), Some(ttl)) = (finished, ttl) else { return Next::Leave };
    let Ok(end) = finished.checked_add(SignedDuration::from_secs(i64::from(ttl))) else {
        return Next::Leave;
    };
    if now < end {
        return Next::Wait(end);
    }
    let write = Write::Delete {
        uid: job.metadata.uid.clone().unwrap_or_default(),
        resource_version: job.metadata.resource_version.clone(),
        propagation: Propagation::Background,
    };
    Next::Delete(Action { side: Side::Hub, target: target(job), write })
}

/// Nothing is begun for a job that changed in between.
fn claim(job: &AnsibleJob, runner: &Runner, now: Timestamp) -> Action {
    let status = json!({
        "runner": { "name": runner.name, "session": runner.session },
        "ansibleJobResult": { "status": "running", "started": now.to_string() },
    });
    let metadata = json!({
        "uid": job.metadata.uid, "resourceVersion": job.metadata.resource_version,
    });
    let patch = json!({ "metadata": metadata, "status": status });
    Action { side: Side::Hub, target: target(job), write: Write::MergeStatus(patch) }
}

fn give_up(job: &AnsibleJob, name: &str, now: Timestamp) -> Action {
    let ending = Ending {
        result: Ended::Error,
        exit_code: None,
        message: format!(
            "the runner {name} ended while the playbook ran; how far it came is unknown, and it is \
             not run again"
        ),
        log: String::new(),
        finished: now,
    };
    // Should it have been told meanwhile how it ended, that is right.
    let precondition = job.metadata.resource_version.clone();
    finish(job, None, &ending, precondition)
}

/// The write that says how a job ended.
pub fn ended(job: &AnsibleJob, started: Timestamp, ending: &Ending) -> Action {
    finish(job, Some(started), ending, None)
}

fn finish(
    job: &AnsibleJob,
    started: Option<Timestamp>,
    ending: &Ending,
    version: Option<String>,
) -> Action {
    let Ending { result, exit_code, message, log, finished } = ending;
    let word = match result {
        Ended::Successful => "successful",
        Ended::Failed => "failed",
        Ended::Error => "error",
    };
    let mut outcome = Map::new();
    let mut say = |key: &str, value: Value| drop(outcome.insert(key.to_owned(), value));
    say("status", json!(word));
    say("failed", json!(*result != Ended::Successful));
    say("finished", json!(finished.to_string()));
    for (key, text) in [("message", message), ("log", log)] {
        if !text.is_empty() {
            say(key, json!(text));
        }
    }
    if let Some(code) = exit_code {
        say("exitCode", json!(code));
    }
    if let Some(started) = started {
        let took = finished.duration_since(started).max(SignedDuration::ZERO);
        say("elapsed", json!(format!("{}.{:03}", took.as_secs(), took.subsec_millis())));
    }
    let mut metadata = Map::from_iter([("uid".to_owned(), json!(job.metadata.uid))]);
    if let Some(version) = version {
        metadata.insert("resourceVersion".to_owned(), json!(version));
    }
    let patch = json!({ "metadata": metadata, "status": { "ansibleJobResult": outcome } });
    Action { side: Side::Hub, target: target(job), write: Write::MergeStatus(patch) }
}

fn target(job: &AnsibleJob) -> Target {
    let id = Id {
        group: "tower.ansible.com".to_owned(),
        resource: "ansiblejobs".to_owned(),
        namespace: job.metadata.namespace.clone().unwrap_or_default(),
        name: job.metadata.name.clone().unwrap_or_default(),
    };
    Target { version: "v1alpha1".to_string(), id }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(ttl: Option<i64>) -> AnsibleJob {
        serde_json::from_value(json!({
            "apiVersion": "tower.ansible.com/v1alpha1", "kind": "AnsibleJob",
            "metadata": { "name": "j", "namespace": "n", "uid": "u", "resourceVersion": "7" },
            "spec": { "job_template_name": "t", "job_ttl": ttl },
        }))
        .unwrap()
    }

    fn runner() -> Runner {
        Runner {
            name: "one".to_owned(),
            session: "today".to_owned(),
            timeout: SignedDuration::from_secs(600),
        }
    }

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn running(name: &str, session: &str) -> Value {
        json!({
            "runner": { "name": name, "session": session },
            "ansibleJobResult": { "status": "running", "started": "2026-01-01T00:00:00Z" },
        })
    }

    #[test]
    fn a_job_is_claimed_before_it_is_run_and_only_if_nobody_spoke_of_it() {
        let now = at("2026-01-01T00:00:00Z");
        for status in [Value::Null, json!({})] {
            let Next::Claim(action) = next(&job(None), &status, &runner(), now) else {
                panic!("{status}")
            };
            let Write::MergeStatus(patch) = action.write else { panic!("a status") };
            assert_eq!(patch["metadata"], json!({ "uid": "u", "resourceVersion": "7" }));
            assert_eq!(patch["status"], running("one", "today"));
        }
        for status in [
            json!({ "k8sJob": { "created": true } }),
            json!({ "conditions": [] }),
            json!({ "ansibleJobResult": { "status": "running" } }),
            json!(7),
        ] {
            assert_eq!(next(&job(Some(0)), &status, &runner(), now), Next::Leave, "{status}");
        }
        let mut leaving = job(None);
        leaving.metadata.deletion_timestamp = serde_json::from_value(json!(now.to_string())).ok();
        assert_eq!(next(&leaving, &Value::Null, &runner(), now), Next::Leave);
    }

    #[test]
    fn what_a_runner_left_behind_is_never_run_again() {
        let now = at("2026-01-01T00:05:00Z");
        assert_eq!(next(&job(None), &running("one", "today"), &runner(), now), Next::Ours);
        let Next::GiveUp(action) = next(&job(None), &running("one", "before"), &runner(), now)
        else {
            panic!("it is gone")
        };
        let Write::MergeStatus(patch) = action.write else { panic!("a status") };
        assert_eq!(patch["metadata"]["resourceVersion"], "7");
        assert_eq!(patch["status"]["ansibleJobResult"]["status"], "error");
        // Another runner has its time, and a little more.
        let other = running("two", "today");
        let end = at("2026-01-01T00:12:00Z");
        assert_eq!(next(&job(None), &other, &runner(), now), Next::Wait(end));
        assert!(matches!(next(&job(None), &other, &runner(), end), Next::GiveUp(_)));
    }

    #[test]
    fn a_job_that_ended_lives_as_long_as_it_says() {
        let mut status = running("two", "ever");
        status["ansibleJobResult"] =
            json!({ "status": "failed", "finished": "2026-01-01T00:00:00Z" });
        let look = |ttl, now: &str| next(&job(ttl), &status, &runner(), at(now));
        assert_eq!(look(None, "2027-01-01T00:00:00Z"), Next::Leave);
        assert_eq!(look(Some(-1), "2027-01-01T00:00:00Z"), Next::Leave);
        let end = at("2026-01-01T00:00:09Z");
        assert_eq!(look(Some(9), "2026-01-01T00:00:08Z"), Next::Wait(end));
        let Next::Delete(action) = look(Some(9), "2026-01-01T00:00:09Z") else { panic!("over") };
        let Write::Delete { uid, resource_version, .. } = action.write else { panic!("a delete") };
        assert_eq!((&*uid, resource_version.as_deref()), ("u", Some("7")));
    }

    #[test]
    fn an_ending_is_told_as_platforms_do() {
        let ending = Ending {
            result: Ended::Failed,
            exit_code: Some(2),
            message: "the playbook failed".to_owned(),
            log: "boom".to_owned(),
            finished: at("2026-01-01T00:00:01.5Z"),
        };
        let Write::MergeStatus(patch) =
            ended(&job(None), at("2026-01-01T00:00:00Z"), &ending).write
        else {
            panic!("a status")
        };
        assert_eq!(
            patch,
            json!({ "metadata": { "uid": "u" }, "status": { "ansibleJobResult": {
                "status": "failed", "failed": true, "finished": "2026-01-01T00:00:01.5Z",
                "elapsed": "1.500", "exitCode": 2, "message": "the playbook failed", "log": "boom",
            } } })
        );
    }
}
