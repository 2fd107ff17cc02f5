//! What a world with nodes would report about workloads, computed at once.
//!
//! Each function gives the next status of one object, or None when there is nothing new to say, so
//! that calling it again settles. No other object is looked at and none is made: a Deployment is
//! simply as ready as it wishes to be.

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::read::Read;
use super::time;
use crate::resource::ResourceType;

/// The next status of a built-in workload; None for other kinds, and when nothing changed.
pub(crate) fn status(ty: &ResourceType, object: &Value, now: Timestamp) -> Option<Value> {
    let next = match (&*ty.group, &*ty.plural) {
        ("apps", "deployments") => deployment(object, now),
        ("apps", "replicasets") | ("", "replicationcontrollers") => replica_set(object),
        ("apps", "statefulsets") => stateful_set(object),
        ("apps", "daemonsets") => daemon_set(object, 1),
        ("batch", "jobs") => job(object, now)?,
        ("", "pods") => pod(object, now)?,
        ("", "persistentvolumeclaims") => claim(object),
        _ => return None,
    };
    let next = without_nulls(next);
    (next != *object.at("status")).then_some(next)
}

pub(crate) fn deployment(object: &Value, now: Timestamp) -> Value {
    let wanted = replicas(object);
    let name = object.at("metadata").text("name");
    let set = format!("{name}-{}", template_hash(object));
    let conditions = [
        ("Available", "MinimumReplicasAvailable", "Deployment has minimum availability.".into()),
        (
            "Progressing",
            "NewReplicaSetAvailable",
            format!("ReplicaSet \"{set}\" has successfully progressed."),
        ),
    ];
    let conditions = conditions.map(|(kind, reason, message): (_, _, String)| {
        let (since, updated) = since(object, kind, reason, &message, now);
        json!({
            "type": kind, "status": "True", "reason": reason, "message": message,
            "lastTransitionTime": since, "lastUpdateTime": updated
        })
    });
    json!({
        "observedGeneration": generation(object),
        "replicas": some(wanted),
        "updatedReplicas": some(wanted),
        "readyReplicas": some(wanted),
        "availableReplicas": some(wanted),
        "conditions": conditions
    })
}

pub(crate) fn replica_set(object: &Value) -> Value {
    let wanted = replicas(object);
    json!({
        "observedGeneration": generation(object),
        "replicas": wanted,
        "fullyLabeledReplicas": some(wanted),
        "readyReplicas": some(wanted),
        "availableReplicas": some(wanted)
    })
}

pub(crate) fn stateful_set(object: &Value) -> Value {
    let wanted = replicas(object);
    let revision = format!("{}-{}", object.at("metadata").text("name"), template_hash(object));
    json!({
        "observedGeneration": generation(object),
        "replicas": wanted,
        "readyReplicas": some(wanted),
        "currentReplicas": some(wanted),
        "updatedReplicas": some(wanted),
        "availableReplicas": wanted,
        "currentRevision": revision,
        "updateRevision": revision,
        "collisionCount": 0
    })
}

/// One pod on each of `nodes`.
pub(crate) fn daemon_set(object: &Value, nodes: i64) -> Value {
    json!({
        "observedGeneration": generation(object),
        "currentNumberScheduled": nodes,
        "desiredNumberScheduled": nodes,
        "numberMisscheduled": 0,
        "numberReady": nodes,
        "updatedNumberScheduled": some(nodes),
        "numberAvailable": some(nodes)
    })
}

/// A Job is done as soon as it may run, and stays done.
pub(crate) fn job(object: &Value, now: Timestamp) -> Option<Value> {
    let status = object.at("status");
    let done = |condition: &Value| {
        ["Complete", "Failed"].contains(&condition.text("type"))
            && condition.text("status") == "True"
    };
    if status.list("conditions").iter().any(done) {
        return None;
    }
    let spec = object.at("spec");
    let time = time::seconds(now);
    let condition = |kind: &str, reason: &str, message: &str| {
        let (since, _) = since(object, kind, reason, message, now);
        json!({
            "type": kind, "status": "True", "reason": reason, "message": message,
            "lastProbeTime": since, "lastTransitionTime": since
        })
    };
    if spec.flag("suspend") {
        return Some(json!({
            "conditions": [condition("Suspended", "JobSuspended", "Job suspended")]
        }));
    }
    let reached = "Reached expected number of succeeded pods";
    Some(json!({
        "startTime": time,
        "completionTime": time,
        "succeeded": spec.number("completions").unwrap_or(1),
        "ready": 0,
        "terminating": 0,
        "uncountedTerminatedPods": {},
        "conditions": [
            condition("SuccessCriteriaMet", "CompletionsReached", reached),
            condition("Complete", "CompletionsReached", reached)
        ]
    }))
}

/// A pod that restarts runs; one that does not has succeeded. A finished pod stays finished.
pub(crate) fn pod(object: &Value, now: Timestamp) -> Option<Value> {
    let (spec, before) = (object.at("spec"), object.at("status"));
    if ["Succeeded", "Failed"].contains(&before.text("phase"))
        || object.at("metadata").has("deletionTimestamp")
        || !spec.list("schedulingGates").is_empty()
    {
        return None;
    }
    let runs = spec.text("restartPolicy") == "Always";
    let began = match before.text("startTime") {
        "" => time::seconds(now),
        began => began.to_owned(),
    };
    let mut conditions = Vec::new();
    for kind in
        ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"]
    {
        let stopped = !runs && kind != "Initialized" && kind != "PodScheduled";
        let reason = if !runs && kind != "PodScheduled" { "PodCompleted" } else { "" };
        let reason = if kind == "PodReadyToStartContainers" { "" } else { reason };
        let (since, _) = since(object, kind, reason, "", now);
        conditions.push(without_nulls(json!({
            "type": kind,
            "status": if stopped { "False" } else { "True" },
            "reason": if reason.is_empty() { Value::Null } else { reason.into() },
            "lastTransitionTime": since,
            "observedGeneration": some(generation(object).as_i64().unwrap_or(0)),
        })));
    }
    // The probe time is always written, and never known.
    for condition in conditions.iter_mut().filter_map(Value::as_object_mut) {
        condition.insert("lastProbeTime".into(), Value::Null);
    }
    let containers = |list: &str, runs: bool| -> Value {
        let all = spec.list(list).iter();
        let all: Vec<Value> = all.map(|container| state(container, runs, &began)).collect();
        if all.is_empty() { Value::Null } else { all.into() }
    };
    Some(json!({
        "observedGeneration": some(generation(object).as_i64().unwrap_or(0)),
        "phase": if runs { "Running" } else { "Succeeded" },
        "qosClass": before.at("qosClass"),
        "hostIP": "192.0.2.1",
        "hostIPs": [{ "ip": "192.0.2.1" }],
        "podIP": address(object),
        "podIPs": [{ "ip": address(object) }],
        "startTime": began,
        "conditions": conditions,
        "initContainerStatuses": containers("initContainers", false),
        "containerStatuses": containers("containers", runs)
    }))
}

/// A claim gets exactly what it asked for. Whoever stores this also gives the claim the name of a
/// volume, which is part of its spec.
pub(crate) fn claim(object: &Value) -> Value {
    json!({
        "phase": "Bound",
        "accessModes": object.at("spec").at("accessModes"),
        "capacity": { "storage": object.path(&["spec", "resources", "requests", "storage"]) }
    })
}

fn state(container: &Value, runs: bool, began: &str) -> Value {
    let image = container.at("image");
    let state = match runs {
        true => json!({ "running": { "startedAt": began } }),
        false => json!({ "terminated": {
            "exitCode": 0, "reason": "Completed", "startedAt": began, "finishedAt": began
        } }),
    };
    json!({
        "name": container.at("name"), "image": image, "imageID": "", "ready": true,
        "restartCount": 0, "started": runs, "state": state, "lastState": {}
    })
}

/// An address nobody has, the same for the same pod.
fn address(object: &Value) -> String {
    let digest = Sha256::digest(object.at("metadata").text("uid").as_bytes());
    let mut bytes = digest.iter();
    let mut byte = || bytes.next().copied().unwrap_or(1).clamp(1, 254);
    format!("10.244.{}.{}", byte(), byte())
}

/// Ten letters that change with the template.
fn template_hash(object: &Value) -> String {
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let digest = Sha256::digest(object.at("spec").at("template").to_string().as_bytes());
    let letter = |byte: &u8| LETTERS.get(usize::from(*byte) % LETTERS.len()).copied();
    digest.iter().take(10).filter_map(letter).map(char::from).collect()
}

/// When a condition began, and when it was last written: what it said before stays.
fn since(
    object: &Value,
    kind: &str,
    reason: &str,
    message: &str,
    now: Timestamp,
) -> (String, String) {
    let conditions = object.at("status").list("conditions");
    let before = conditions
        .iter()
        .find(|condition| condition.text("type") == kind && condition.text("status") != "Unknown");
    let now = time::seconds(now);
    let Some(before) = before else { return (now.clone(), now) };
    let same = before.text("reason") == reason && before.text("message") == message;
    let kept = |field: &str| match before.text(field) {
        "" => now.clone(),
        text => text.to_owned(),
    };
    let updated = if same { kept("lastUpdateTime") } else { now.clone() };
    (kept("lastTransitionTime"), updated)
}

fn replicas(object: &Value) -> i64 {
    object.at("spec").number("replicas").unwrap_or(1)
}

fn generation(object: &Value) -> Value {
    object.at("metadata").at("generation").clone()
}

/// Counts of zero are not written.
fn some(count: i64) -> Value {
    if count == 0 { Value::Null } else { count.into() }
}

/// Takes away fields without a value, on the first level only.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let kept: Map<String, Value> =
                map.into_iter().filter(|(_, value)| !value.is_null()).collect();
            Value::Object(kept)
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin;

    fn resource(group: &str, plural: &str) -> &'static ResourceType {
        let all = builtin::resources().iter();
        all.map(|ty| &**ty).find(|ty| &*ty.group == group && &*ty.plural == plural).unwrap()
    }

    fn settle(group: &str, plural: &str, mut object: Value) -> Value {
        let ty = resource(group, plural);
        let now = "2026-11-15T21:07:54Z".parse().unwrap();
        let later = "2026-11-15T21:08:54Z".parse().unwrap();
        object["status"] = status(ty, &object, now).unwrap();
        assert_eq!(status(ty, &object, later), None, "it must settle");
        object
    }

    #[test]
    fn a_deployment_becomes_available_and_follows_its_spec() {
        let object = settle(
            "apps",
            "deployments",
            json!({ "metadata": { "name": "web", "generation": 1 },
                "spec": { "replicas": 2, "template": { "spec": {} } } }),
        );
        assert_eq!(object["status"]["availableReplicas"], json!(2));
        assert_eq!(object["status"]["conditions"][0]["type"], json!("Available"));
        let mut scaled = object.clone();
        scaled["spec"]["replicas"] = json!(0);
        scaled["metadata"]["generation"] = json!(2);
        let later = "2026-11-15T22:00:00Z".parse().unwrap();
        let next = status(resource("apps", "deployments"), &scaled, later).unwrap();
        assert_eq!(next.get("replicas"), None);
        assert_eq!(next["observedGeneration"], json!(2));
        assert_eq!(next["conditions"], object["status"]["conditions"]);
    }

    #[test]
    fn sets_settle() {
        for plural in ["statefulsets", "daemonsets", "replicasets"] {
            let object = json!({ "metadata": { "name": "a", "generation": 3 }, "spec": {} });
            let object = settle("apps", plural, object);
            assert_eq!(object["status"]["observedGeneration"], json!(3));
        }
    }

    #[test]
    fn a_job_completes_once() {
        let object =
            settle("batch", "jobs", json!({ "metadata": {}, "spec": { "completions": 3 } }));
        assert_eq!(object["status"]["succeeded"], json!(3));
        assert_eq!(object["status"]["conditions"][1]["type"], json!("Complete"));
        let asleep = settle("batch", "jobs", json!({ "spec": { "suspend": true } }));
        assert_eq!(asleep["status"].get("startTime"), None);
    }

    #[test]
    fn pods_run_or_finish() {
        let pod = |policy: &str| {
            json!({ "metadata": { "uid": "u", "generation": 1 },
                "spec": { "restartPolicy": policy, "containers": [{ "name": "a", "image": "b" }] },
                "status": { "phase": "Pending", "qosClass": "BestEffort" } })
        };
        let running = settle("", "pods", pod("Always"));
        assert_eq!(running["status"]["phase"], json!("Running"));
        assert_eq!(running["status"]["conditions"][2]["status"], json!("True"));
        assert_eq!(running["status"]["qosClass"], json!("BestEffort"));
        let done = settle("", "pods", pod("Never"));
        assert_eq!(done["status"]["phase"], json!("Succeeded"));
        assert_eq!(done["status"]["conditions"][2]["reason"], json!("PodCompleted"));
    }

    #[test]
    fn a_claim_is_bound() {
        let claim = json!({ "spec": { "accessModes": ["ReadWriteOnce"],
            "resources": { "requests": { "storage": "1Gi" } } } });
        let claim = settle("", "persistentvolumeclaims", claim);
        assert_eq!(claim["status"]["capacity"], json!({ "storage": "1Gi" }));
    }
}
