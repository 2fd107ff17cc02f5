//! A cluster small enough to hold in one hand: one policy, a few objects, somebody who meddles.
//!
//! It knows what nobody in the code under test may know for certain: who is answerable for each
//! object. Whatever a plan does against that is an error at once.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::sync::Arc;
use alloc::vec::Vec;

use cleat_api::configurationpolicy::{
    ConfigurationPolicySpec, ConfigurationPolicyStatus, FINALIZER, ObjectTemplate, Properties,
    PruneObjectBehavior, RecreateOption, reason,
};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::id::Id;
use crate::policy::memory::Memory;
use crate::policy::observed::*;
use crate::policy::{Question, Tried, reads};
use crate::write::{Action, Outcome, Refusal, Write};

use super::chosen::Chosen;
use super::faults::Fault;
use super::space::{SPACE, target_of};

/// The policy under test, and another one of the same controller.
pub(super) const US: &str = "policy";
const RIVAL: &str = "rival";
/// What nothing of the team may be like.
pub(super) const BAD: u8 = 7;

pub(super) type Checked<T = ()> = Result<T, String>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answerable {
    Policy,
    Others,
}

#[derive(Clone, Debug)]
pub(super) struct Object {
    pub(super) uid: u32,
    pub(super) version: u32,
    pub(super) content: u8,
    /// The policies that wrote it.
    pub(super) writers: BTreeSet<&'static str>,
    pub(super) labelled: bool,
    pub(super) answerable: Answerable,
    pub(super) dying: Option<Timestamp>,
}

pub(super) struct World {
    pub(super) fault: Fault,
    pub(super) now: Timestamp,
    pub(super) spec: ConfigurationPolicySpec,
    pub(super) wanted: BTreeMap<&'static str, u8>,
    pub(super) chosen: Chosen,
    pub(super) recreate: RecreateOption,
    /// Content cannot be changed in place.
    pub(super) immutable: bool,
    pub(super) leaving: bool,
    /// The cluster leaves its hub with nothing.
    pub(super) emptying: bool,
    pub(super) generation: i64,
    version: u32,
    pub(super) finalizer: bool,
    pub(super) deleting: bool,
    pub(super) gone: bool,
    pub(super) status: ConfigurationPolicyStatus,
    pub(super) objects: BTreeMap<String, Object>,
    /// Deleted by us only to be made anew, and for whom.
    recreating: BTreeMap<String, Answerable>,
    pub(super) memory: Memory,
    last_uid: u32,
    trials: BTreeMap<Id, Trial>,
    creations: BTreeMap<Id, Trial>,
    /// What is wanted makes no sense to the server.
    pub(super) unmakeable: bool,
    /// Deletes and creates are refused.
    pub(super) guarded: bool,
    /// Deletes take a while.
    pub(super) slow: bool,
}

pub(super) fn kind() -> Served {
    Served { group: "".into(), version: "v1".into(), resource: "things".into(), namespaced: true }
}

fn no_say(_: &str, _: &Value) -> Result<String, String> {
    Err("no custom messages here".into())
}

pub(super) struct Sight {
    pub(super) objects: Vec<bool>,
    pub(super) templates: bool,
    /// Of all objects, and of those with the labels.
    pub(super) lists: (bool, bool),
}

impl Sight {
    pub(super) fn all() -> Self {
        Self { objects: alloc::vec![true], templates: true, lists: (true, true) }
    }
}

impl World {
    pub(super) fn new(fault: Fault, behavior: PruneObjectBehavior) -> Self {
        let spec = ConfigurationPolicySpec {
            remediation_action: "enforce".into(),
            prune_object_behavior: behavior,
            ..ConfigurationPolicySpec::default()
        };
        Self {
            fault,
            now: Timestamp::from_second(1_700_000_000).unwrap(),
            spec,
            wanted: BTreeMap::new(),
            chosen: Chosen::default(),
            recreate: RecreateOption::None,
            immutable: false,
            leaving: false,
            emptying: false,
            generation: 1,
            version: 1,
            finalizer: false,
            deleting: false,
            gone: false,
            status: ConfigurationPolicyStatus::default(),
            objects: BTreeMap::new(),
            recreating: BTreeMap::new(),
            memory: Memory::default(),
            last_uid: 0,
            trials: BTreeMap::new(),
            creations: BTreeMap::new(),
            unmakeable: false,
            guarded: false,
            slow: false,
        }
    }

    pub(super) fn body(name: &str, object: &Object) -> Value {
        let mut body = json!({
            "apiVersion": "v1",
            "kind": if name == SPACE { "Namespace" } else { "Thing" },
            "metadata": {
                "name": name,
                "namespace": target_of(name).id.namespace,
                "uid": format!("u{}", object.uid),
                "resourceVersion": object.version.to_string(),
            },
            "data": { "content": object.content.to_string() },
        });
        if object.labelled {
            body["metadata"]["labels"] = json!({ "team": "a" });
        }
        if let Some(since) = object.dying {
            body["metadata"]["deletionTimestamp"] = json!(since.to_string());
            body["metadata"]["finalizers"] = json!(["example.com/hold"]);
        }
        body
    }

    fn definition(name: &str, content: u8) -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "Thing",
            "metadata": { "name": name, "namespace": "n" },
            "data": { "content": content.to_string() },
        })
    }

    pub(super) fn observe(&self, sight: &Sight) -> Observed {
        let mut cluster = Cluster {
            trials: self.trials.clone(),
            creations: self.creations.clone(),
            ..Cluster::default()
        };
        let name = KindName { api_version: "v1".into(), kind: "Thing".into() };
        cluster.kinds.insert(name, Kind::Served(kind()));
        let listed =
            self.status.related_objects.iter().map(|entry| entry.object.metadata.name.clone());
        let names =
            self.wanted.keys().map(|name| name.to_string()).chain(listed).collect::<BTreeSet<_>>();
        let names: BTreeSet<String> =
            names.into_iter().chain(self.objects.keys().cloned()).collect();
        for (index, name) in names.into_iter().enumerate() {
            let visible = sight.objects.get(index % sight.objects.len().max(1)).copied();
            let seen = match self.objects.get(&name) {
                _ if visible == Some(false) => Seen::Unknown("it is dark".into()),
                None => Seen::Absent,
                Some(object) => Seen::Present(Present {
                    object: Arc::new(Self::body(&name, object)),
                    writers: object.writers.iter().map(|one| one.to_string()).collect(),
                }),
            };
            cluster.objects.insert(target_of(&name).id, seen);
        }
        self.lists(sight, &mut cluster);
        let template = |(name, content): (&&'static str, &u8)| Template {
            spec: ObjectTemplate {
                compliance_type: "musthave".into(),
                object_definition: Self::definition(name, *content),
                recreate_option: self.recreate,
                ..ObjectTemplate::default()
            },
            definition: Definition::Plain,
        };
        let templates = match sight.templates {
            true => {
                let (named, chosen) = (self.wanted.iter().map(template), self.chosen_templates());
                Templates::Known(match self.chosen.first {
                    true => chosen.into_iter().chain(named).collect(),
                    false => named.chain(chosen).collect(),
                })
            }
            false => Templates::Failed {
                reason: "Error processing template",
                message: "it failed".into(),
                passing: false,
            },
        };
        let policy = Policy {
            namespace: "managed".into(),
            name: "p".into(),
            uid: US.into(),
            resource_version: self.version.to_string(),
            generation: self.generation,
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            finalizers: if self.finalizer { alloc::vec![FINALIZER.into()] } else { Vec::new() },
            deleting: self.deleting,
            stopped: false,
            owner: None,
            spec: self.spec.clone(),
            status: self.status.clone(),
        };
        self.look_into_space(&policy, &mut cluster);
        Observed {
            now: self.now,
            controller: Controller {
                departure: match (self.leaving, self.emptying) {
                    (true, _) => Departure::Leaving,
                    (false, true) => Departure::Emptying,
                    (false, false) => Departure::Staying,
                },
                terminating_namespaces: TerminatingNamespaces::Included,
                instance: "test".into(),
                say: no_say,
            },
            policy: if self.gone { Subject::Absent } else { Subject::Policy(Box::new(policy)) },
            templates,
            cluster,
            memory: self.memory.clone(),
        }
    }

    /// Fills in what the server would say to updates.
    pub(super) fn ask(&mut self, seen: &mut Observed) {
        // What is said of an update may ask for what would be said of a new object.
        for _ in 0..2 {
            self.ask_once(seen);
        }
    }

    fn ask_once(&mut self, seen: &mut Observed) {
        for question in reads(seen).questions {
            self.try_out(question);
        }
        self.heard(seen);
    }

    /// What the server says to one update, or to one new object.
    pub(super) fn try_out(&mut self, question: Question) {
        let name = question.target.id.name.clone();
        let stale = |object: &Object| {
            question.object["metadata"]["resourceVersion"] != json!(object.version.to_string())
        };
        let answer = match self.objects.get(&name) {
            _ if question.of == Tried::Creation && self.unmakeable => {
                TrialAnswer::Invalid("it makes no sense".into())
            }
            _ if question.of == Tried::Creation => TrialAnswer::Accepted(question.object.clone()),
            None => TrialAnswer::NotFound,
            Some(object) if stale(object) => TrialAnswer::Stale,
            Some(_) if self.immutable => TrialAnswer::Invalid("field is immutable".into()),
            Some(_) => TrialAnswer::Accepted(question.object.clone()),
        };
        let trial = Trial { asked: question.object, answer };
        match question.of {
            Tried::Update => self.trials.insert(question.target.id, trial),
            Tried::Creation => self.creations.insert(question.target.id, trial),
        };
    }

    /// The server may say something else by now.
    pub(super) fn unheard(&mut self) {
        self.trials.clear();
        self.creations.clear();
    }

    /// Everything that the server has said lately.
    pub(super) fn heard(&self, seen: &mut Observed) {
        seen.cluster.trials = self.trials.clone();
        seen.cluster.creations = self.creations.clone();
    }

    /// Somebody else puts an object of their own under that name.
    pub(super) fn meddle(&mut self, name: &str, content: u8) {
        self.put(name, content, BTreeSet::new());
    }

    /// Another policy makes the object, by the same controller.
    pub(super) fn rival(&mut self, name: &str, content: u8) {
        if !self.objects.contains_key(name) {
            self.put(name, content, [RIVAL].into());
        }
    }

    fn put(&mut self, name: &str, content: u8, writers: BTreeSet<&'static str>) {
        self.last_uid += 1;
        let object = Object {
            uid: self.last_uid,
            version: 1,
            content,
            writers,
            labelled: self.last_uid.is_multiple_of(2),
            answerable: Answerable::Others,
            dying: None,
        };
        self.objects.insert(name.to_string(), object);
        self.recreating.remove(name);
    }

    pub(super) fn vanish(&mut self, name: &str) {
        self.objects.remove(name);
        if name == SPACE {
            self.objects.clear();
        }
    }

    pub(super) fn edited(&mut self) {
        self.generation += 1;
        self.version += 1;
    }

    /// Performs one action, made from what was seen.
    pub(super) fn perform(&mut self, seen: &Observed, action: &Action) -> Checked<Outcome> {
        let Subject::Policy(then) = &seen.policy else {
            return Err("acts without a policy".into());
        };
        let name = &action.target.id.name;
        let outcome = match (&action.write, action.target.id.resource.as_str()) {
            (Write::Create(_), "events") => Outcome::Done(Value::Null),
            (Write::Create(body), _) => self.create(then, name, body)?,
            (Write::Replace(body), _) => self.replace(name, body)?,
            (Write::Delete { uid, resource_version, .. }, _) => {
                self.delete(seen, then, name, uid, resource_version.as_deref())?
            }
            (Write::Merge(patch), _) => self.finalizers(seen, then, patch)?,
            (Write::ReplaceStatus(object), _) => self.write_status(then, object)?,
            (write, resource) => return Err(format!("nobody asked for {write:?} of {resource}")),
        };
        self.memory = core::mem::take(&mut self.memory).after(action, &outcome, self.now);
        self.trials.remove(&action.target.id);
        self.creations.remove(&action.target.id);
        Ok(outcome)
    }

    fn entry(&self, name: &str) -> Option<&Properties> {
        let mut all = self.status.related_objects.iter();
        all.find(|entry| entry.object.metadata.name == name)?.properties.as_ref()
    }

    fn create(&mut self, then: &Policy, name: &str, body: &Value) -> Checked<Outcome> {
        let prunes = then.spec.prune_object_behavior != PruneObjectBehavior::None;
        if prunes && !self.finalizer {
            return Err(format!("{name} made while nothing holds the policy"));
        }
        let claim = self.entry(name);
        if !claim.is_some_and(|claim| claim.created_by_policy.is_some() && claim.uid.is_empty()) {
            return Err(format!("{name} made before it was claimed"));
        }
        if self.guarded || self.unmakeable {
            return Ok(refused());
        }
        if self.objects.contains_key(name) {
            return Ok(Outcome::AlreadyExists);
        }
        self.last_uid += 1;
        let answerable = self.recreating.remove(name).unwrap_or(Answerable::Policy);
        let object = Object {
            uid: self.last_uid,
            version: 1,
            content: content(body),
            writers: [US].into(),
            labelled: false,
            answerable,
            dying: None,
        };
        self.objects.insert(name.to_string(), object);
        Ok(Outcome::Done(Value::Null))
    }

    fn replace(&mut self, name: &str, body: &Value) -> Checked<Outcome> {
        let Some(object) = self.objects.get_mut(name) else { return Ok(Outcome::NotFound) };
        if body["metadata"]["resourceVersion"] != json!(object.version.to_string())
            || body["metadata"]["uid"] != json!(format!("u{}", object.uid))
        {
            return Ok(Outcome::Conflict("changed meanwhile".into()));
        }
        if self.immutable {
            return Ok(refused());
        }
        object.version += 1;
        object.content = content(body);
        object.writers.insert(US);
        Ok(Outcome::Done(Value::Null))
    }

    fn delete(
        &mut self,
        seen: &Observed,
        then: &Policy,
        name: &str,
        uid: &str,
        version: Option<&str>,
    ) -> Checked<Outcome> {
        let enforced = then.spec.remediation_action == "enforce";
        if !enforced {
            return Err(format!("{name} deleted by a policy that only informs"));
        }
        if seen.controller.departure == Departure::Leaving {
            return Err(format!("{name} deleted by a controller that leaves"));
        }
        let (was_bad, chosen, blind) =
            (self.was_bad(seen, name), self.was_chosen(seen, name), self.was_blind(seen));
        let along = self.may_take_along(name);
        let Some(object) = self.objects.get_mut(name) else { return Ok(Outcome::NotFound) };
        if !uid.is_empty() && uid != format!("u{}", object.uid) {
            return Ok(Outcome::Conflict("another incarnation".into()));
        }
        if version.is_some_and(|version| version != object.version.to_string()) {
            return Ok(Outcome::Conflict("changed meanwhile".into()));
        }
        if !then.deleting && self.chosen.selected == Some(false) && was_bad {
            Self::may_go(name, object)?;
        }
        let wanted = matches!(&seen.templates, Templates::Known(all) if all.iter().any(
            |template| template.spec.object_definition["metadata"]["name"] == json!(name)));
        let recreates = wanted && !then.deleting;
        if was_bad && !then.deleting {
            // What must not be there goes, whoever made it.
        } else if recreates {
            let all = &self.status.related_objects;
            let entry = all.iter().find(|entry| entry.object.metadata.name == name);
            let claim = entry.and_then(|entry| entry.properties.as_ref());
            let ours =
                claim.and_then(|claim| claim.created_by_policy.filter(|_| claim.uid.is_empty()));
            match (ours, object.answerable) {
                (None, _) => {
                    return Err(format!("{name} thrown away before that was written down"));
                }
                _ if self.unmakeable => {
                    return Err(format!("{name} thrown away though it cannot be made anew"));
                }
                (Some(true), Answerable::Others) => {
                    return Err(format!("{name} was not ours, and will be when it is made anew"));
                }
                _ => {}
            }
        } else {
            if matches!(seen.templates, Templates::Failed { .. }) && !then.deleting {
                return Err(format!("{name} pruned though nobody knew what is wanted"));
            }
            if blind && !then.deleting {
                return Err(format!("{name} pruned though not everything chosen was seen"));
            }
            if chosen && !then.deleting && object.answerable == Answerable::Others {
                return Err(format!("{name} pruned though it never left"));
            }
            match then.spec.prune_object_behavior {
                PruneObjectBehavior::DeleteAll
                    if !then.deleting
                        && selects(&seen.templates)
                        && object.answerable == Answerable::Others =>
                {
                    return Err(format!("{name} pruned though perhaps only its label went"));
                }
                PruneObjectBehavior::DeleteAll => {}
                PruneObjectBehavior::DeleteIfCreated if object.answerable == Answerable::Policy => {
                }
                PruneObjectBehavior::DeleteIfCreated => {
                    return Err(format!("{name} was not ours to delete"));
                }
                _ => return Err(format!("{name} deleted though nothing is to be pruned")),
            }
        }
        along?;
        if self.guarded {
            return Ok(refused());
        }
        if self.slow {
            object.dying.get_or_insert(self.now);
            object.version += 1;
        } else {
            self.vanish(name);
        }
        Ok(Outcome::Done(Value::Null))
    }

    fn precondition(&self, patch: &Value) -> bool {
        patch["metadata"]["resourceVersion"] == json!(self.version.to_string())
    }

    fn finalizers(&mut self, seen: &Observed, then: &Policy, patch: &Value) -> Checked<Outcome> {
        if !self.precondition(patch) {
            return Ok(Outcome::Conflict("changed meanwhile".into()));
        }
        self.version += 1;
        self.finalizer = patch["metadata"]["finalizers"] == json!([FINALIZER]);
        if !self.finalizer && self.deleting {
            self.gone = true;
            let prunes = then.spec.remediation_action == "enforce" && !self.leaving;
            let behavior = then.spec.prune_object_behavior;
            let stays = |name: &str| name == SPACE && self.may_take_along(name).is_err();
            for (name, object) in self.objects.iter().filter(|(name, _)| !stays(name)) {
                let ours = object.answerable == Answerable::Policy;
                let listed = then.status.related_objects.iter().any(|entry| {
                    entry.object.metadata.name == *name
                        && entry.reason != reason::MISSING_AS_EXPECTED
                }) && seen
                    .cluster
                    .objects
                    .get(&target_of(name).id)
                    .is_some_and(|then| !matches!(then, Seen::Absent));
                let left = match behavior {
                    PruneObjectBehavior::DeleteIfCreated => ours,
                    PruneObjectBehavior::DeleteAll => ours || listed,
                    _ => false,
                };
                if prunes && left {
                    return Err(format!("the policy went while {name} was there"));
                }
            }
        }
        Ok(Outcome::Done(Value::Null))
    }

    fn write_status(&mut self, then: &Policy, object: &Value) -> Checked<Outcome> {
        if !self.precondition(object) {
            return Ok(Outcome::Conflict("changed meanwhile".into()));
        }
        let mut status: ConfigurationPolicyStatus =
            serde_json::from_value(object["status"].clone()).unwrap();
        // Whose an object will be that is made next.
        for entry in &status.related_objects {
            let name = &entry.object.metadata.name;
            match entry.properties.as_ref().filter(|known| known.uid.is_empty()) {
                Some(Properties { created_by_policy: Some(false), .. }) => {
                    self.recreating.insert(name.clone(), Answerable::Others);
                }
                _ => drop(self.recreating.remove(name)),
            }
        }
        match self.fault {
            Fault::ForgottenLeavers => status
                .related_objects
                .retain(|entry| entry.reason != "Error cleaning up child objects"),
            Fault::RecreatedIsOurs => {
                for known in
                    status.related_objects.iter_mut().filter_map(|one| one.properties.as_mut())
                {
                    if known.uid.is_empty() {
                        known.created_by_policy = Some(true);
                    }
                }
            }
            _ => {}
        }
        let prunes = then.spec.remediation_action == "enforce"
            && then.spec.prune_object_behavior != PruneObjectBehavior::None;
        for (name, object) in &mut self.objects {
            if object.answerable != Answerable::Policy {
                continue;
            }
            let entry = status.related_objects.iter().find(|one| one.object.metadata.name == *name);
            match entry.map(|entry| entry.properties.as_ref()) {
                None if prunes => return Err(format!("{name} forgotten while it was there")),
                // Let go of on purpose: from now on it is whoever's.
                None => object.answerable = Answerable::Others,
                Some(Some(known))
                    if known.created_by_policy == Some(true)
                        && (known.uid.is_empty() || known.uid == format!("u{}", object.uid)) => {}
                Some(known) => return Err(format!("{name} is ours, and its entry says {known:?}")),
            }
        }
        self.version += 1;
        self.status = status;
        Ok(Outcome::Done(Value::Null))
    }

    /// Time passes, and what was on its way out may be out.
    pub(super) fn tick(&mut self, mut goes: impl FnMut() -> bool) {
        self.now = self.now.checked_add(SignedDuration::from_secs(11)).unwrap();
        let gone = self.objects.iter().filter(|(_, one)| one.dying.is_some() && goes());
        let gone: Vec<String> = gone.map(|(name, _)| name.clone()).collect();
        gone.iter().for_each(|name| self.vanish(name));
        self.trials.clear();
        self.creations.clear();
    }

    /// One reconcile that dies after `budget` actions. `false`: it died.
    pub(super) fn pass(&mut self, seen: &Observed, mut budget: usize) -> Checked<bool> {
        let mut steps = self.plan(seen);
        let reporting = steps.is_empty();
        if reporting {
            steps = self.report(seen).publish;
        }
        for step in steps {
            let mut failed = false;
            for action in &step {
                if budget == 0 {
                    return Ok(false);
                }
                budget -= 1;
                let outcome = self.perform(seen, action)?;
                failed |= !matches!(outcome, Outcome::Done(_) | Outcome::NotFound);
            }
            if failed {
                return Ok(true);
            }
        }
        if reporting {
            let memory = core::mem::take(&mut self.memory);
            self.memory = memory.reported(&seen.cluster, self.now);
        }
        Ok(true)
    }

    /// A quiet world: everything can be seen, nothing is refused, nobody meddles.
    pub(super) fn settle(&mut self) -> Checked {
        (self.guarded, self.unmakeable) = (false, false);
        for _ in 0..40 {
            self.tick(|| true);
            let mut seen = self.observe(&Sight::all());
            self.ask(&mut seen);
            if self.gone || (self.plan(&seen).is_empty() && self.report(&seen).publish.is_empty()) {
                return Ok(());
            }
            self.pass(&seen, usize::MAX)?;
        }
        let mut seen = self.observe(&Sight::all());
        self.ask(&mut seen);
        Err(format!("did not settle: {:?} {:?}", self.plan(&seen), self.report(&seen)))
    }
}

/// Whether some template chooses by labels.
fn selects(templates: &Templates) -> bool {
    let Templates::Known(all) = templates else { return false };
    all.iter().any(|template| template.spec.object_selector.is_some())
}

pub(super) fn content(body: &Value) -> u8 {
    body["data"]["content"].as_str().and_then(|text| text.parse().ok()).unwrap_or(u8::MAX)
}

fn refused() -> Outcome {
    Outcome::Refused(Refusal {
        code: 403,
        reason: "Forbidden".into(),
        message: "admission webhook \"guard\" denied the request".into(),
    })
}
