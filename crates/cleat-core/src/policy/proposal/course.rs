//! How things would go: the planner's own steps, carried out in an imagined cluster until it comes to
//! rest. Servers are taken to do what they said they would do; whatever is on its way out goes.
//!
//! Nothing is read here. What the planner asks for on the way is handed back to be read first.

use alloc::borrow::ToOwned;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use cleat_api::configurationpolicy::ConfigurationPolicyStatus;
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::lacks;
use crate::id::Id;
use crate::policy::Tried;
use crate::policy::desired::{field, metadata};
use crate::policy::memory::Memory;
use crate::policy::observed::{
    Kind, KindName, ListOf, Namespace, Observed, Present, Read, Seen, Served, Subject, Trial,
    TrialAnswer,
};
use crate::policy::plan::{Reads, plan};
use crate::policy::reader::Question;
use crate::policy::report::report;
use crate::selector;
use crate::write::{Action, Outcome, Plan, Write};

/// More rounds than any policy needs whose templates do not contradict each other.
const MOST_ROUNDS: usize = 100;

/// Kinds and how they would be served.
pub(super) type Kinds = BTreeMap<KindName, Served>;

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Did {
    Create,
    Change,
    Delete,
    /// It was on its way out already.
    End,
}

/// What happened until nothing was left to do.
pub(super) struct Course {
    /// The cluster and the policy as they are then.
    pub(super) seen: Observed,
    /// By object, in the order in which it happened.
    pub(super) did: BTreeMap<Id, Vec<Did>>,
    /// What would be the first write about an object.
    pub(super) writes: BTreeMap<Id, Write>,
    /// It never came to rest.
    pub(super) restless: bool,
    /// Kinds that came to be served on the way.
    new_kinds: BTreeSet<(String, String)>,
    incarnations: u32,
}

/// A world with what comes to be beside the policy.
pub(super) struct Begun {
    pub(super) seen: Observed,
    new_kinds: BTreeSet<(String, String)>,
}

/// The world in which these kinds are served, of which there can be no objects yet. `Err`: something has
/// to be read first.
pub(super) fn begin(seen: &Observed, kinds: &Kinds) -> Result<Begun, Reads> {
    let begun = Begun { seen: seen.clone(), new_kinds: BTreeSet::new() };
    if kinds.is_empty() {
        return Ok(begun);
    }
    let mut course = Course::new(&begun);
    course.serve(kinds);
    course.know()?;
    let Course { seen: now, new_kinds, .. } = course;
    Ok(Begun { seen: Observed { memory: begun.seen.memory, ..now }, new_kinds })
}

/// Follows the policy until there is nothing left to do. `Err`: something has to be read first.
pub(super) fn follow(begun: &Begun) -> Result<Course, Reads> {
    let mut course = Course::new(begun);
    for _ in 0..MOST_ROUNDS {
        course.know()?;
        let next = plan(&course.seen);
        if !next.is_empty() {
            course.perform(next);
            continue;
        }
        // What was done is told, and forgotten.
        let told = report(&course.seen).publish;
        course.seen.memory = Memory::default();
        if !told.is_empty() {
            course.perform(told);
            continue;
        }
        if !course.wait() {
            return Ok(course);
        }
    }
    course.know()?;
    course.restless = true;
    Ok(course)
}

impl Course {
    fn new(begun: &Begun) -> Self {
        Self {
            seen: Observed { memory: Memory::default(), ..begun.seen.clone() },
            did: BTreeMap::new(),
            writes: BTreeMap::new(),
            restless: false,
            new_kinds: begun.new_kinds.clone(),
            incarnations: 0,
        }
    }

    /// Has the planner know everything it asks for. What only a cluster can say is handed back.
    fn know(&mut self) -> Result<(), Reads> {
        loop {
            let Reads { all, missing, questions } = lacks(&self.seen);
            let (own, missing): (Vec<Read>, BTreeSet<Read>) =
                apart(missing, |read| self.is_own(read));
            let (known, questions): (Vec<Question>, Vec<Question>) =
                questions.into_iter().partition(|question| self.was_written(&question.target.id));
            if !missing.is_empty() || !questions.is_empty() {
                return Err(Reads { all, missing, questions });
            }
            if own.is_empty() && known.is_empty() {
                return Ok(());
            }
            own.into_iter().for_each(|read| self.answer(read));
            known.into_iter().for_each(|question| self.say(question));
        }
    }

    fn was_written(&self, id: &Id) -> bool {
        self.did.contains_key(id)
    }

    /// Whether it is about a kind that nobody can have objects of yet.
    fn is_own(&self, read: &Read) -> bool {
        let is_new = |group: &String, resource: &String| {
            self.new_kinds.contains(&(group.clone(), resource.clone()))
        };
        match read {
            Read::Object(target) | Read::Unwatched(target) => {
                is_new(&target.id.group, &target.id.resource)
            }
            Read::List(of) => is_new(&of.kind.group, &of.kind.resource),
            Read::Kind(_) | Read::Namespaces | Read::Contents(_) | Read::Resolution { .. } => false,
        }
    }

    fn answer(&mut self, read: Read) {
        let cluster = &mut self.seen.cluster;
        match read {
            Read::Object(target) => drop(cluster.objects.insert(target.id, Seen::Absent)),
            Read::Unwatched(target) => drop(cluster.unwatched.insert(target.id, Seen::Absent)),
            Read::List(of) => drop(cluster.lists.insert(of, Ok(Vec::new()))),
            Read::Kind(_) | Read::Namespaces | Read::Contents(_) | Read::Resolution { .. } => {}
        }
    }

    /// What was written is what was asked for: a server that changed it on the way makes the same of
    /// it again.
    fn say(&mut self, Question { target, object, of }: Question) {
        let cluster = &mut self.seen.cluster;
        let live = match cluster.objects.get(&target.id) {
            Some(Seen::Present(present)) => Arc::clone(&present.object),
            _ => Arc::clone(&object),
        };
        match of {
            Tried::Update => {
                let trial = Trial { asked: object, answer: TrialAnswer::Accepted(live) };
                cluster.trials.insert(target.id, trial);
            }
            Tried::Creation => {
                let answer = TrialAnswer::Accepted(Arc::clone(&object));
                cluster.creations.insert(target.id, Trial { asked: object, answer });
            }
        }
    }

    fn perform(&mut self, plan: Plan) {
        for action in plan.into_iter().flatten() {
            self.act(action);
        }
    }

    fn act(&mut self, action: Action) {
        let id = action.target.id.clone();
        if id.group.is_empty() && id.resource == "events" {
            return;
        }
        let done = Outcome::Done(Value::Null);
        self.seen.memory =
            core::mem::take(&mut self.seen.memory).after(&action, &done, self.seen.now);
        let write = action.write.clone();
        let did = match action.write {
            Write::Create(object) => {
                self.make(&id, object);
                Did::Create
            }
            Write::Replace(object) => {
                self.change(&id, object);
                Did::Change
            }
            Write::Delete { .. } => {
                self.take(&id);
                Did::Delete
            }
            Write::Merge(patch) => return self.hold(&patch),
            Write::ReplaceStatus(object) => return self.tell(&object),
            _ => return,
        };
        self.seen.cluster.trials.remove(&id);
        self.seen.cluster.creations.remove(&id);
        self.writes.entry(id.clone()).or_insert(write);
        self.did.entry(id).or_default().push(did);
    }

    fn policy_uid(&self) -> String {
        match &self.seen.policy {
            Subject::Policy(policy) => policy.uid.clone(),
            Subject::Absent | Subject::Unknown(_) => String::new(),
        }
    }

    fn make(&mut self, id: &Id, mut object: Value) {
        self.incarnations += 1;
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            // No server gives such a one.
            metadata.insert("uid".to_owned(), json!(format!("imagined {}", self.incarnations)));
        }
        self.take_in(&object);
        let writers = alloc::vec![self.policy_uid()];
        self.show(id, Present { object: Arc::new(object), writers });
    }

    fn change(&mut self, id: &Id, object: Value) {
        let asked = self.seen.cluster.trials.get(id).filter(|trial| *trial.asked == object);
        let stored = match asked.map(|trial| &trial.answer) {
            Some(TrialAnswer::Accepted(stored)) => Arc::clone(stored),
            _ => Arc::new(object),
        };
        let mut writers = match self.seen.cluster.objects.get(id) {
            Some(Seen::Present(present)) => present.writers.clone(),
            _ => Vec::new(),
        };
        writers.push(self.policy_uid());
        self.show(id, Present { object: stored, writers });
    }

    fn show(&mut self, id: &Id, present: Present) {
        self.unlist(id);
        for (of, list) in &mut self.seen.cluster.lists {
            if let Ok(list) = list
                && lists(of, id, &present.object)
            {
                list.push(Arc::clone(&present.object));
            }
        }
        self.seen.cluster.objects.insert(id.clone(), Seen::Present(present));
    }

    fn take(&mut self, id: &Id) {
        self.unlist(id);
        self.seen.cluster.objects.insert(id.clone(), Seen::Absent);
        if id.group.is_empty()
            && id.resource == "namespaces"
            && let Some(Ok(all)) = &mut self.seen.cluster.namespaces
        {
            all.retain(|one| one.name != id.name);
        }
    }

    fn unlist(&mut self, id: &Id) {
        let of_kind = |of: &ListOf| of.kind.group == id.group && of.kind.resource == id.resource;
        let is = |object: &Value| {
            metadata(object, "name") == id.name && metadata(object, "namespace") == id.namespace
        };
        for (_, list) in self.seen.cluster.lists.iter_mut().filter(|(of, _)| of_kind(of)) {
            if let Ok(list) = list {
                list.retain(|object| !is(object));
            }
        }
    }

    /// What a new object makes possible.
    fn take_in(&mut self, object: &Value) {
        match (field(object, "apiVersion"), field(object, "kind")) {
            ("v1", "Namespace") => {
                if let Some(Ok(all)) = &mut self.seen.cluster.namespaces {
                    all.push(Namespace::read(object));
                }
            }
            (_, "CustomResourceDefinition") => self.serve(&defined(object)),
            _ => {}
        }
    }

    /// Kinds that nobody served come to be.
    fn serve(&mut self, kinds: &Kinds) {
        for (name, served) in kinds {
            if let Some(kind) = self.seen.cluster.kinds.get_mut(name)
                && *kind == Kind::Absent
            {
                *kind = Kind::Served(served.clone());
                self.new_kinds.insert((served.group.clone(), served.resource.clone()));
            }
        }
    }

    fn hold(&mut self, patch: &Value) {
        let Subject::Policy(policy) = &mut self.seen.policy else { return };
        let all = patch.pointer("/metadata/finalizers").and_then(Value::as_array);
        let all = all.into_iter().flatten().filter_map(Value::as_str);
        policy.finalizers = all.map(ToOwned::to_owned).collect();
    }

    fn tell(&mut self, object: &Value) {
        let Subject::Policy(policy) = &mut self.seen.policy else { return };
        let status = object.get("status").map(ConfigurationPolicyStatus::deserialize);
        if let Some(Ok(status)) = status {
            policy.status = status;
        }
    }

    /// Time passes: what is on its way out is gone. Whether anything was.
    fn wait(&mut self) -> bool {
        let going =
            |seen: &Seen| matches!(seen, Seen::Present(present) if present.terminating().is_some());
        let all = self.seen.cluster.objects.iter();
        let going: Vec<Id> =
            all.filter(|(_, seen)| going(seen)).map(|(id, _)| id.clone()).collect();
        for id in &going {
            self.take(id);
            self.seen.cluster.trials.remove(id);
            self.seen.cluster.creations.remove(id);
            self.did.entry(id.clone()).or_default().push(Did::End);
        }
        !going.is_empty()
    }
}

/// The kinds that a definition defines.
pub(super) fn defined(definition: &Value) -> Kinds {
    let text = |pointer: &str| {
        definition.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let (group, resource) = (text("/spec/group"), text("/spec/names/plural"));
    let versions = definition.pointer("/spec/versions").and_then(Value::as_array);
    let served = versions.into_iter().flatten().filter(|one| one["served"] == true);
    served
        .map(|version| {
            let version = field(version, "name");
            let name = KindName {
                api_version: format!("{group}/{version}"),
                kind: text("/spec/names/kind"),
            };
            let served = Served {
                group: group.clone(),
                version: version.to_owned(),
                resource: resource.clone(),
                namespaced: text("/spec/scope") == "Namespaced",
            };
            (name, served)
        })
        .collect()
}

fn apart(all: BTreeSet<Read>, is: impl Fn(&Read) -> bool) -> (Vec<Read>, BTreeSet<Read>) {
    let (own, rest): (Vec<Read>, Vec<Read>) = all.into_iter().partition(is);
    (own, rest.into_iter().collect())
}

/// Whether an object is in a list.
fn lists(of: &ListOf, id: &Id, object: &Value) -> bool {
    if of.kind.group != id.group
        || of.kind.resource != id.resource
        || !(of.namespace.is_empty() || of.namespace == id.namespace)
    {
        return false;
    }
    let labels = object.pointer("/metadata/labels").and_then(Value::as_object);
    let labels: BTreeMap<String, String> = labels
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect();
    selector::parsed(&of.labels).is_ok_and(|selector| selector::selects(&selector, &labels))
}
