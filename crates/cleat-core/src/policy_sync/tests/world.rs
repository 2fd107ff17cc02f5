//! A hub and a cluster of a few maps, for one policy.

use alloc::borrow::ToOwned as _;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use cleat_api::leftoverrecord::LeftObject;
use cleat_api::managedcluster::RemoveStrategy;
use cleat_api::policy::{PolicySpec, PolicyStatus};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::policy::observed::{Kind, KindName, Served};
use crate::policy_sync::observed::*;
use crate::policy_sync::{
    Depends, Told, dependencies, made_kinds, plan, report, template_ids, told,
};
use crate::write::{Action, Outcome, Side, Write};

pub(super) const NAME: &str = "root.p";
pub(super) const CLUSTER: &str = "c1";

pub(super) fn served() -> Served {
    Served {
        group: "policy.open-cluster-management.io".into(),
        version: "v1".into(),
        resource: "configurationpolicies".into(),
        namespaced: true,
    }
}

pub(super) fn template(name: &str, prune: &str) -> Value {
    json!({ "objectDefinition": {
        "apiVersion": "policy.open-cluster-management.io/v1", "kind": "ConfigurationPolicy",
        "metadata": { "name": name },
        "spec": {
            "remediationAction": "inform", "pruneObjectBehavior": prune, "object-templates": [],
        },
    }})
}

#[derive(Default)]
pub(super) struct World {
    pub(super) seconds: i64,
    revision: u64,
    pub(super) hub: Option<Value>,
    pub(super) local: Option<Value>,
    pub(super) templates: BTreeMap<String, Value>,
    pub(super) events: Vec<Value>,
    pub(super) states: BTreeMap<String, Option<String>>,
    pub(super) blind: bool,
    /// Templates stay until somebody lets them go.
    pub(super) sticky: bool,
    /// How the cluster leaves its hub, if it does.
    pub(super) leaving: Option<RemoveStrategy>,
    /// What the hub has heard to stay of policies that it does not have.
    pub(super) heard: Vec<LeftObject>,
    /// Not all templates can be seen.
    pub(super) unmarked: bool,
    /// The hub loses the kind.
    pub(super) undefined: bool,
    /// It lost the policy with the kind, and has not sent it since.
    pub(super) lost: bool,
    /// What the agent remembers of a policy that the hub does not have.
    pub(super) vanished: Option<Vanished>,
}

impl World {
    pub(super) fn now(&self) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + self.seconds).unwrap()
    }

    fn stamp(&mut self, mut object: Value, uid: Option<String>) -> Value {
        self.revision += 1;
        let uid = uid.unwrap_or_else(|| format!("u{}", self.revision));
        object["metadata"]["uid"] = json!(uid);
        object["metadata"]["resourceVersion"] = json!(self.revision.to_string());
        object
    }

    /// The hub sends this, in place of what it sent before.
    pub(super) fn send(&mut self, spec: Value) {
        let before = self.hub.take();
        let uid = before.as_ref().map(|old| old["metadata"]["uid"].as_str().unwrap().to_owned());
        let mut object = before.unwrap_or_else(|| {
            json!({
                "apiVersion": "policy.open-cluster-management.io/v1", "kind": "Policy",
                "metadata": {
                    "name": NAME, "namespace": CLUSTER,
                    "labels": { "policy.open-cluster-management.io/cluster-name": CLUSTER },
                },
            })
        });
        object["spec"] = spec;
        self.hub = Some(self.stamp(object, uid));
        self.lost = false;
    }

    /// The definition of policies is deleted on the hub, and all policies with it.
    pub(super) fn lose(&mut self) {
        (self.undefined, self.lost) = (true, true);
        self.recall();
    }

    /// The hub lets go.
    pub(super) fn recall(&mut self) {
        let held = self.hub.as_ref().is_some_and(|hub| {
            hub["metadata"]["finalizers"].as_array().is_some_and(|all| !all.is_empty())
        });
        match self.hub.as_mut() {
            Some(hub) if held => {
                hub["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z")
            }
            _ => self.hub = None,
        }
    }

    pub(super) fn observe(&self) -> Observed {
        let copy = |object: &Option<Value>| match object {
            None => Copy::Absent,
            Some(object) => Copy::Present(Box::new(policy(object))),
        };
        let local = copy(&self.local);
        let replica = if self.blind { Copy::Unknown("dark".into()) } else { copy(&self.hub) };
        let spec = self.local.as_ref().map(|local| policy(local).spec).unwrap_or_default();
        let live = template_ids(&spec).into_iter().map(|id| {
            let found = self.templates.get(&id.name);
            let live = found.map_or(Live::Absent, |object| Live::Present(object.clone()));
            (id, live)
        });
        let kinds =
            template_ids(&spec).into_iter().map(|id| (id.kind, TemplateKind::Template(served())));
        let marked = self.templates.values().map(|object| {
            let target = served().target(CLUSTER, object["metadata"]["name"].as_str().unwrap());
            Marked::read(target, "ConfigurationPolicy".into(), object)
        });
        let marked: Vec<Marked> = marked.collect();
        let maps = Served {
            group: String::new(),
            version: "v1".into(),
            resource: "configmaps".into(),
            namespaced: true,
        };
        let resources =
            made_kinds(&marked).into_iter().map(|kind| (kind, Kind::Served(maps.clone())));
        let states = dependencies(&spec).into_iter().map(|Depends(one)| {
            let state = self.states.get(&one.name).cloned().flatten();
            (Depends(one), Standing::Is(state))
        });
        let uid = self.local.as_ref().map(|local| local["metadata"]["uid"].clone());
        let mut said: BTreeMap<String, Vec<Told>> = BTreeMap::new();
        for event in &self.events {
            if Some(&event["involvedObject"]["uid"]) == uid.as_ref()
                && let Some((template, one)) = told(event)
            {
                said.entry(template).or_default().push(one);
            }
        }
        Observed {
            now: self.now(),
            place: Place {
                cluster_namespace: CLUSTER.into(),
                hub_namespace: CLUSTER.into(),
                own_hub: false,
                lacks_namespace: false,
                forgets: false,
            },
            name: NAME.into(),
            replica,
            local,
            kinds: kinds.collect::<BTreeMap<KindName, TemplateKind>>(),
            live: live.collect(),
            resources: resources.collect(),
            marked: match self.unmarked {
                true => Err("configurationpolicies were not read yet".into()),
                false => Ok(marked),
            },
            still: Ok(Vec::new()),
            leaving: Ok(self.leaving),
            heard: self.heard.clone(),
            defined: if self.undefined { Defined::Goes } else { Defined::Stands },
            vanished: self.vanished,
            states: states.collect(),
            told: said,
            troubles: BTreeMap::new(),
            instance: "test".into(),
        }
    }

    pub(super) fn perform(&mut self, action: &Action) -> Outcome {
        let name = action.target.id.name.clone();
        match (action.target.id.resource.as_str(), action.side) {
            ("events", _) => {
                if let Write::Create(event) = &action.write {
                    self.events.push(event.clone());
                }
                Outcome::Done(Value::Null)
            }
            ("policies", Side::Hub) => {
                let object = self.hub.take();
                let (object, outcome) = self.write(object, &action.write);
                self.hub = object;
                outcome
            }
            ("policies", Side::Cluster) => {
                let object = self.local.take();
                let (object, outcome) = self.write(object, &action.write);
                self.local = object;
                outcome
            }
            ("configurationpolicies", _) => {
                let object = self.templates.remove(&name);
                let deletes = matches!(action.write, Write::Delete { .. });
                if self.sticky && deletes {
                    let mut object = object.unwrap();
                    object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
                    self.templates.insert(name, object);
                    return Outcome::Done(Value::Null);
                }
                let (object, outcome) = self.write(object, &action.write);
                self.templates.extend(object.map(|object| (name, object)));
                outcome
            }
            other => panic!("nobody asked for {other:?}"),
        }
    }

    fn write(&mut self, object: Option<Value>, write: &Write) -> (Option<Value>, Outcome) {
        let done = |object: Value| (Some(object.clone()), Outcome::Done(object));
        let uid = |object: &Value| object["metadata"]["uid"].as_str().unwrap().to_owned();
        match (write, object) {
            (Write::Create(wanted), None) => done(self.stamp(wanted.clone(), None)),
            (Write::Create(_), object) => (object, Outcome::AlreadyExists),
            (Write::Replace(wanted), Some(object)) => {
                let uid = uid(&object);
                done(self.stamp(wanted.clone(), Some(uid)))
            }
            (Write::Merge(patch) | Write::MergeStatus(patch), Some(mut object)) => {
                merge(&mut object, patch);
                let uid = uid(&object);
                let finalizers = object["metadata"]["finalizers"].as_array();
                let free = finalizers.is_none_or(Vec::is_empty);
                if free && object["metadata"].get("deletionTimestamp").is_some() {
                    return (None, Outcome::Done(Value::Null));
                }
                done(self.stamp(object, Some(uid)))
            }
            (Write::Delete { uid: wanted, .. }, Some(object)) if *wanted == uid(&object) => {
                (None, Outcome::Done(Value::Null))
            }
            (_, object) => (object, Outcome::Conflict("stale".into())),
        }
    }

    /// Takes note of a policy that the hub does not have.
    pub(super) fn miss(&mut self) {
        let lacks = self.hub.is_none() && self.local.is_some() && !self.blind;
        let first = Vanished { since: self.now(), told: false };
        self.vanished = lacks.then_some(self.vanished.unwrap_or(first));
    }

    /// Passes until nothing is left to do or to say.
    pub(super) fn settle(&mut self) {
        for _ in 0..30 {
            self.seconds += 1;
            self.miss();
            let seen = self.observe();
            let mut steps = plan(&seen);
            if steps.is_empty() {
                steps = report(&seen).publish;
                self.vanished.iter_mut().for_each(|vanished| vanished.told = true);
            }
            if steps.is_empty() {
                return;
            }
            for action in steps.iter().flatten() {
                self.perform(action);
            }
        }
        panic!("did not settle: {:?}", plan(&self.observe()));
    }

    /// A template speaks for itself.
    pub(super) fn say(&mut self, template: &str, message: &str) {
        self.seconds += 1;
        let nanoseconds = u64::try_from(self.now().as_nanosecond()).unwrap();
        let uid = self.local.as_ref().unwrap()["metadata"]["uid"].clone();
        let event = json!({
            "metadata": { "name": format!("{NAME}.{nanoseconds:x}") },
            "involvedObject": { "uid": uid },
            "reason": format!("policy: {CLUSTER}/{template}"), "message": message,
        });
        self.events.push(event);
    }

    pub(super) fn advance(&mut self, time: SignedDuration) {
        self.seconds += time.as_secs();
    }

    pub(super) fn status(object: &Option<Value>) -> PolicyStatus {
        object.as_ref().map(|object| policy(object).status).unwrap_or_default()
    }
}

fn merge(object: &mut Value, patch: &Value) {
    match (object, patch) {
        (Value::Object(object), Value::Object(patch)) => {
            for (key, value) in patch {
                if value.is_null() {
                    object.remove(key);
                } else {
                    merge(object.entry(key.clone()).or_insert(Value::Null), value);
                }
            }
        }
        (object @ Value::Null, Value::Object(_)) => {
            *object = json!({});
            merge(object, patch);
        }
        (object, patch) => *object = patch.clone(),
    }
}

fn policy(object: &Value) -> Policy {
    let spec: PolicySpec = serde_json::from_value(object["spec"].clone()).unwrap();
    let status = object.get("status").cloned().unwrap_or(json!({}));
    let finalizers = object["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
    Policy {
        uid: object["metadata"]["uid"].as_str().unwrap().into(),
        resource_version: object["metadata"]["resourceVersion"].as_str().unwrap().into(),
        deleting: object["metadata"].get("deletionTimestamp").is_some(),
        finalizers: finalizers.iter().map(|one| one.as_str().unwrap().into()).collect(),
        spec,
        status: serde_json::from_value(status).unwrap(),
        object: object.clone(),
    }
}
