//! One policy, and a cluster that answers every question about it.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use cleat_api::configurationpolicy::{ConfigurationPolicySpec, ConfigurationPolicyStatus};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::id::Id;
use crate::policy::memory::Memory;
use crate::policy::observed::*;
use crate::policy::{Tried, reads, report};
use crate::write::{Plan, Write};

pub(super) fn say(template: &str, data: &Value) -> Result<String, String> {
    match template {
        "bad" => Err("template: tmpl:1: unexpected".into()),
        _ => {
            Ok(template.replace("{{ .DefaultMessage }}", data["DefaultMessage"].as_str().unwrap()))
        }
    }
}

pub(super) fn now() -> Timestamp {
    Timestamp::from_second(1_700_000_000).unwrap()
}

pub(super) fn pods() -> Served {
    Served { group: "".into(), version: "v1".into(), resource: "pods".into(), namespaced: true }
}

pub(super) fn pod_id(name: &str) -> Id {
    pods().target("default", name).id
}

/// A policy as its YAML would be, and a cluster that answers every question.
pub(super) fn observed(spec: Value, objects: &[Value]) -> Observed {
    let spec: ConfigurationPolicySpec = serde_json::from_value(spec).unwrap();
    let templates = spec.object_templates.clone().unwrap_or_default();
    let templates =
        templates.into_iter().map(|spec| Template { spec, definition: Definition::Plain });
    let mut cluster = Cluster::default();
    let kinds = [("v1", "Pod", pods())];
    for (api_version, kind, served) in kinds {
        let name = KindName { api_version: api_version.into(), kind: kind.into() };
        cluster.kinds.insert(name, Kind::Served(served));
    }
    let namespace =
        |name: &str| Namespace { name: name.into(), labels: [].into(), terminating: false };
    cluster.namespaces = Some(Ok(vec![namespace("default"), namespace("other")]));
    let policy = Policy {
        namespace: "managed".into(),
        name: "p".into(),
        uid: "policy-uid".into(),
        resource_version: "1".into(),
        generation: 1,
        labels: [].into(),
        annotations: [].into(),
        finalizers: vec![],
        deleting: false,
        stopped: false,
        owner: None,
        spec,
        status: ConfigurationPolicyStatus::default(),
    };
    let mut seen = Observed {
        now: now(),
        controller: Controller {
            departure: Departure::Staying,
            terminating_namespaces: TerminatingNamespaces::Included,
            instance: "pod".into(),
            say,
        },
        policy: Subject::Policy(Box::new(policy)),
        templates: Templates::Known(templates.collect()),
        cluster,
        memory: Memory::default(),
    };
    for object in objects {
        let metadata = &object["metadata"];
        let target = pods().target(
            metadata["namespace"].as_str().unwrap_or_default(),
            metadata["name"].as_str().unwrap(),
        );
        let present = Present { object: Arc::new(object.clone()), writers: vec![] };
        seen.cluster.objects.insert(target.id, Seen::Present(present));
    }
    answer(&mut seen, objects);
    seen
}

/// Answers whatever is asked: absent is what is not among the objects, and updates are accepted.
pub(super) fn answer(seen: &mut Observed, objects: &[Value]) {
    for _ in 0..5 {
        let asked = reads(seen);
        for read in asked.missing {
            match read {
                Read::Kind(name) => drop(seen.cluster.kinds.insert(name, Kind::Absent)),
                Read::Object(target) => drop(seen.cluster.objects.insert(target.id, Seen::Absent)),
                Read::List(of) => {
                    let here =
                        |object: &&Value| object["metadata"]["namespace"] == json!(of.namespace);
                    let all =
                        objects.iter().filter(here).map(|one| Arc::new(one.clone())).collect();
                    seen.cluster.lists.insert(of, Ok(all));
                }
                Read::Unwatched(target) => {
                    seen.cluster.unwatched.insert(target.id, Seen::Absent);
                }
                Read::Namespaces | Read::Contents(_) | Read::Resolution { .. } => {}
            }
        }
        for question in asked.questions {
            let answer = TrialAnswer::Accepted(question.object.clone());
            let trial = Trial { asked: question.object, answer };
            match question.of {
                Tried::Update => seen.cluster.trials.insert(question.target.id, trial),
                Tried::Creation => seen.cluster.creations.insert(question.target.id, trial),
            };
        }
    }
}

pub(super) fn policy(seen: &mut Observed) -> &mut Policy {
    match &mut seen.policy {
        Subject::Policy(policy) => policy,
        _ => panic!("there is no policy"),
    }
}

/// State, reason and message of the first template, as a status would show them.
pub(super) fn told(seen: &Observed) -> (String, String, String) {
    let status = status(&report(seen).publish);
    let condition = &status.compliancy_details[0].conditions[0];
    (
        status.compliant.clone().unwrap_or_default(),
        condition.reason.clone().unwrap_or_default(),
        condition.message.clone().unwrap_or_default(),
    )
}

pub(super) fn status(plan: &Plan) -> ConfigurationPolicyStatus {
    let written = plan.iter().flatten().find_map(|action| match &action.write {
        Write::ReplaceStatus(object) => Some(object["status"].clone()),
        _ => None,
    });
    serde_json::from_value(written.expect("a status is written")).unwrap()
}

pub(super) fn verbs(plan: &Plan) -> Vec<Vec<String>> {
    let verb = |write: &Write| match write {
        Write::Create(_) => "create",
        Write::Replace(_) => "replace",
        Write::Delete { .. } => "delete",
        Write::Merge(_) => "patch",
        Write::ReplaceStatus(_) => "status",
        _ => "other",
    };
    let step = |step: &Vec<crate::write::Action>| {
        step.iter().map(|one| format!("{} {}", verb(&one.write), one.target.id.resource)).collect()
    };
    plan.iter().map(step).collect()
}

pub(super) fn pod(name: &str, namespace: &str, image: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": name, "namespace": namespace, "uid": format!("uid-{name}"), "resourceVersion": "5" },
        "spec": { "containers": [{ "name": "nginx", "image": image }] },
    })
}

pub(super) fn definition(name: &str, namespace: &str) -> Value {
    let mut pod = pod(name, namespace, "nginx:1.7.9");
    let metadata = pod["metadata"].as_object_mut().unwrap();
    for field in ["uid", "resourceVersion"] {
        metadata.remove(field);
    }
    metadata.retain(|_, value| value != "");
    pod
}

pub(super) fn spec(action: &str, compliance: &str, definition: Value) -> Value {
    json!({
        "remediationAction": action,
        "object-templates": [{ "complianceType": compliance, "objectDefinition": definition }],
    })
}

/// Puts the namespace of the pods on the cluster.
pub(super) fn with_namespace(mut seen: Observed) -> Observed {
    let name = KindName { api_version: "v1".into(), kind: "Namespace".into() };
    let served = Served {
        group: "".into(),
        version: "v1".into(),
        resource: "namespaces".into(),
        namespaced: false,
    };
    let object = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": { "name": "default", "uid": "uid-default", "resourceVersion": "5" },
    });
    let present = Present { object: Arc::new(object), writers: vec![] };
    seen.cluster.objects.insert(served.target("", "default").id, Seen::Present(present));
    seen.cluster.kinds.insert(name, Kind::Served(served));
    seen
}

/// What a policy's status says of one pod.
pub(super) fn entry(name: &str, created: bool, uid: &str) -> Value {
    json!({
        "object": { "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name, "namespace": "default" } },
        "compliant": "Compliant",
        "reason": "Resource found as expected",
        "properties": { "createdByPolicy": created, "uid": uid },
    })
}
