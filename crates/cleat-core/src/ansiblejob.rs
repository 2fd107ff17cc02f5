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
use cleat_api::policyautomation::PolicyAutomation;
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

/// How long after it last said that it lives a runner counts as gone.
const LEASE: SignedDuration = SignedDuration::from_secs(180);
/// How often a runner says so.
pub const RENEW: SignedDuration = SignedDuration::from_secs(30);
/// So long before others take it for gone a runner that cannot say so ends its playbook.
const MARGIN: SignedDuration = SignedDuration::from_secs(30);

/// The time by which a runner that said then that it lives must have said so again.
pub fn fence(said: Timestamp) -> Timestamp {
    said.checked_add(LEASE.saturating_sub(MARGIN)).unwrap_or(said)
}

fn deadline(now: Timestamp) -> String {
    now.checked_add(LEASE).unwrap_or(now).to_string()
}

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
    if told("/runner/session") == Some(&runner.session) {
        return Next::Ours;
    }
    // Of another runner, of whatever name, only its own word counts.
    let told = |path| told(path).and_then(|at: &str| at.parse::<Timestamp>().ok());
    let old = || {
        let patience = runner.timeout.saturating_add(LEASE);
        told("/ansibleJobResult/started")?.checked_add(patience).ok()
    };
    match told("/runner/deadline").or_else(old) {
        Some(end) if now < end => Next::Wait(end),
        _ => Next::GiveUp(give_up(job, name, now)),
    }
}

/// The write that says that the runner lives.
pub fn renew(job: &AnsibleJob, now: Timestamp) -> Action {
    let metadata = json!({ "uid": job.metadata.uid });
    let patch = json!({
        "metadata": metadata, "status": { "runner": { "deadline": deadline(now) } },
    });
    Action { side: Side::Hub, target: target(job), write: Write::MergeStatus(patch) }
}

/// Whether the job, as it is now, is still this runner's.
pub fn is_ours(status: &Value, runner: &Runner) -> bool {
    let told = |path: &str| status.pointer(path).and_then(Value::as_str);
    told("/runner/session") == Some(&runner.session)
        && told("/ansibleJobResult/status") == Some("running")
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
        "runner": {
            "name": runner.name, "session": runner.session, "deadline": deadline(now),
        },
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

/// Whether whoever made a job knows how it ended, so that it may go. Nobody else made one without an
/// automation as its owner. An automation that has it written down as not made yet would make it
/// again; one that has not noted how it ended would never know.
///
/// `automation`: its owner, if that still exists.
pub fn is_noted(job: &AnsibleJob, status: &Value, automation: Option<&PolicyAutomation>) -> bool {
    let Some(automation) = automation else { return true };
    let name = job.metadata.name.as_deref().unwrap_or_default();
    let told = automation.status.clone().unwrap_or_default();
    let result = status.pointer("/ansibleJobResult/status").and_then(Value::as_str);
    let pending = told.pending_jobs.iter().any(|pending| pending.name == name);
    // Of those made long ago, some are not remembered; that they were noted is certain.
    let recent = told.recent_jobs.iter().find(|recent| recent.name == name);
    !pending && recent.is_none_or(|recent| recent.result.as_deref() == result)
}

/// The automation that owns it: its name and uid.
pub fn automation_of(job: &AnsibleJob) -> Option<(&str, &str)> {
    let owners = job.metadata.owner_references.iter().flatten();
    let mut owners = owners.filter(|owner| owner.kind == "PolicyAutomation");
    owners.next().map(|owner| (&*owner.name, &*owner.uid))
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
        let deadline = "2026-01-01T00:03:00Z";
        json!({
            "runner": { "name": name, "session": session, "deadline": deadline },
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
        let now = at("2026-01-01T00:03:00Z");
        assert_eq!(next(&job(None), &running("one", "today"), &runner(), now), Next::Ours);
        let Next::GiveUp(action) = next(&job(None), &running("one", "before"), &runner(), now)
        else {
            panic!("it is gone")
        };
        let Write::MergeStatus(patch) = action.write else { panic!("a status") };
        assert_eq!(patch["metadata"]["resourceVersion"], "7");
        assert_eq!(patch["status"]["ansibleJobResult"]["status"], "error");
    }

    /// Two that were given the same name, or have different patience, do each other no harm.
    #[test]
    fn no_runner_gives_up_the_job_of_one_that_lives() {
        let (early, end) = (at("2026-01-01T00:02:59Z"), at("2026-01-01T00:03:00Z"));
        let impatient = Runner { timeout: SignedDuration::from_secs(1), ..runner() };
        for other in [running("one", "other"), running("two", "other")] {
            assert_eq!(next(&job(None), &other, &impatient, early), Next::Wait(end));
            assert!(matches!(next(&job(None), &other, &impatient, end), Next::GiveUp(_)));
        }
        let Write::MergeStatus(patch) = renew(&job(None), end).write else { panic!("a status") };
        assert_eq!(patch["status"]["runner"]["deadline"], "2026-01-01T00:06:00Z");
        assert_eq!(patch["metadata"], json!({ "uid": "u" }));
        // Who cannot say so in time ends its playbook before anybody gives it up.
        assert!(fence(end) < at("2026-01-01T00:06:00Z"));
        assert!(is_ours(&running("one", "today"), &runner()));
        assert!(!is_ours(&running("one", "other"), &runner()));
        // One of before says nothing of the kind.
        let mut old = running("two", "ever");
        old["runner"].as_object_mut().unwrap().remove("deadline");
        let end = at("2026-01-01T00:13:00Z");
        assert_eq!(next(&job(None), &old, &runner(), early), Next::Wait(end));
    }

    #[test]
    fn no_job_goes_before_its_automation_has_noted_how_it_ended() {
        let status = json!({ "ansibleJobResult": { "status": "failed" } });
        let noted = |told: Value| {
            let automation = json!({
                "metadata": { "name": "a" }, "status": told,
                "spec": {
                    "mode": "everyEvent", "policyRef": "p",
                    "automationDef": { "name": "t", "secret": "s" },
                },
            });
            let automation: PolicyAutomation = serde_json::from_value(automation).unwrap();
            is_noted(&job(None), &status, Some(&automation))
        };
        assert!(is_noted(&job(None), &status, None));
        assert!(!noted(json!({ "pendingJobs": [{ "name": "j", "mode": "once" }] })));
        let recent = |result: Value| {
            json!({ "recentJobs": [{
                "name": "j", "mode": "once", "automationStartTime": "x", "clusterCount": 1,
                "result": result,
            }] })
        };
        assert!(!noted(recent(Value::Null)) && !noted(recent(json!("running"))));
        assert!(noted(recent(json!("failed"))));
        // Those of long ago are not remembered.
        assert!(noted(json!({})));
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
