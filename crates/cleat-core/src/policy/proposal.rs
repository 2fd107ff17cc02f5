//! What a policy would make of objects if it said something else, or came to be, before it does.
//!
//! The policy's own planner is followed through an imagined cluster until it comes to rest
//! ([`course`]), and what became of each object on the way is told. So a preview cannot say anything but
//! what the execution does, as far as servers keep to what they answered to dry runs.

mod course;

use alloc::borrow::ToOwned;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use cleat_api::configurationpolicy::{ObjectResource, PruneObjectBehavior, Remediation, reason};
use serde_json::Value;

use self::course::{Course, Did};
use super::compare::Compliance;
use super::desired::{self, Desired, Scope, field, metadata};
use super::evaluate::{self, Evaluation};
use super::finding::State;
use super::judge::{Judged, Listed, Need};
use super::observed::{
    Definition, Departure, Kind, KindName, Observed, Policy, Present, Seen, Served, Subject,
    Template, Templates,
};
use super::outlook::{spared, was_there};
use super::plan::{Reads, reads};
use super::prune::Fate;
use super::reader::Reader;
use crate::id::{Id, Target};
use crate::work::along::take_along;
use crate::work::outlook::{Foreseen, Prospect};
use crate::write::Write;

const TEMPLATES: &str = "spec.object-templates";
const REMEDIATION: &str = "spec.remediationAction";
const BEHAVIOR: &str = "spec.pruneObjectBehavior";
const COMPLIANCE: &str = "complianceType";

/// What a policy would do.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Proposal {
    pub objects: Vec<Proposed>,
    /// What of it nobody can tell.
    pub problems: Vec<String>,
}

/// One object, and the write that would be the first about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Proposed {
    pub foreseen: Foreseen,
    pub write: Option<Write>,
    /// As it is, if it is there.
    pub before: Option<Arc<Value>>,
}

/// What other templates of the same policy bring that this one may need: the kinds they define.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Beside {
    kinds: course::Kinds,
}

impl Beside {
    /// What these writes bring.
    pub fn of<'a>(writes: impl Iterator<Item = &'a Write>) -> Self {
        let written = writes.filter_map(|write| match write {
            Write::Create(object) | Write::Replace(object) => Some(object),
            _ => None,
        });
        let definitions =
            written.filter(|object| field(object, "kind") == "CustomResourceDefinition");
        Self { kinds: definitions.flat_map(course::defined).collect() }
    }

    pub fn is_nothing(&self) -> bool {
        self.kinds.is_empty()
    }
}

/// The outlook for everything that the policy is about or has on record. `Err`: something has to be
/// read, or tried, first.
///
/// `seen` is the world in which the cluster has the proposed policy, with what is on record of it.
pub fn proposal(seen: &Observed, beside: &Beside) -> Result<Proposal, Reads> {
    let begun = course::begin(seen, &beside.kinds)?;
    let seen = &begun.seen;
    let policy = match &seen.policy {
        Subject::Policy(policy) => policy,
        Subject::Absent => return Ok(cannot("there is no such policy")),
        Subject::Unknown(why) => return Ok(cannot(why)),
    };
    if policy.deleting {
        return Ok(cannot("it is being deleted, and is made anew when it is gone"));
    }
    if seen.controller.departure == Departure::Leaving {
        return Ok(cannot("whoever looks after policies is being taken away, and touches nothing"));
    }
    let Some(first) = evaluated(seen, policy) else { return Err(lacks(seen)) };
    let course = course::follow(&begun)?;
    let Subject::Policy(then) = &course.seen.policy else { return Ok(Proposal::default()) };
    let Some(last) = evaluated(&course.seen, then) else { return Err(lacks(&course.seen)) };
    let view = View { seen, policy, first: &first, course: &course, last: &last };
    Ok(view.told())
}

fn cannot(why: &str) -> Proposal {
    Proposal { objects: Vec::new(), problems: vec![why.to_owned()] }
}

/// What has to be known, whether or not the policy is due: more than the execution asks for.
pub(super) fn lacks(seen: &Observed) -> Reads {
    let Reads { mut all, mut missing, mut questions } = reads(seen);
    if let Subject::Policy(policy) = &seen.policy {
        let mut reader = Reader::new(&seen.cluster);
        evaluate::evaluate(seen, policy, &mut reader);
        // Also of what it leaves alone is told whether it is there.
        for entry in &policy.status.related_objects {
            if let Some(target) = place(&entry.object, &mut reader) {
                let _ = reader.object(&target);
            }
        }
        all.extend(reader.asked);
        missing.extend(reader.unread);
        for question in reader.questions {
            if !questions.contains(&question) {
                questions.push(question);
            }
        }
    }
    Reads { all, missing, questions }
}

fn evaluated(seen: &Observed, policy: &Policy) -> Option<Evaluation> {
    let lacks = lacks(seen);
    if !lacks.missing.is_empty() || !lacks.questions.is_empty() {
        return None;
    }
    evaluate::evaluate(seen, policy, &mut Reader::new(&seen.cluster))
}

/// Where an object is, if it is one and its kind is served.
fn place(object: &ObjectResource, reader: &mut Reader<'_>) -> Option<Target> {
    let ObjectResource { api_version, kind, metadata } = object;
    if metadata.name.is_empty() || metadata.name == "-" {
        return None;
    }
    match reader.kind(api_version, kind) {
        Some(Kind::Served(served)) => Some(served.target(&metadata.namespace, &metadata.name)),
        _ => None,
    }
}

/// Where an object may be whose kind cannot be told.
fn unseen(object: &ObjectResource, reader: &mut Reader<'_>) -> Option<Target> {
    let ObjectResource { api_version, kind, metadata } = object;
    let named = !metadata.name.is_empty() && metadata.name != "-";
    match reader.kind(api_version, kind) {
        Some(Kind::Unknown(_)) if named => {
            let served = Served::unknown(api_version, kind);
            Some(served.target(&metadata.namespace, &metadata.name))
        }
        _ => None,
    }
}

/// What was, what happened and what is then.
struct View<'a> {
    seen: &'a Observed,
    policy: &'a Policy,
    first: &'a Evaluation,
    course: &'a Course,
    last: &'a Evaluation,
}

/// What is said of one object.
struct Told {
    prospect: Prospect,
    why: String,
    decided_by: &'static str,
}

fn told(prospect: Prospect, why: &str, decided_by: &'static str) -> Told {
    Told { prospect, why: why.to_owned(), decided_by }
}

impl View<'_> {
    fn told(&self) -> Proposal {
        let mut all: BTreeMap<Id, Proposed> = BTreeMap::new();
        let judged = self.last.judged.iter().chain(&self.first.judged).map(|one| &one.object);
        let listed = self.policy.status.related_objects.iter().map(|entry| &entry.object);
        let mut problems = self.problems();
        let mut reader = Reader::new(&self.course.seen.cluster);
        for object in judged.chain(listed) {
            let Some(target) = place(object, &mut reader).or_else(|| unseen(object, &mut reader))
            else {
                continue;
            };
            if all.contains_key(&target.id) {
                continue;
            }
            if let Some(told) = self.of(object, &target) {
                all.insert(target.id.clone(), self.about(told, object, target));
            }
        }
        let mut objects: Vec<Proposed> = all.into_values().collect();
        objects.extend(self.unplaced(&mut problems));
        self.take_along(&mut objects);
        Proposal { objects, problems }
    }

    /// The course takes a namespace or a definition away without what is in it; servers do not.
    fn take_along(&self, objects: &mut [Proposed]) {
        let enforces = self.policy.spec.remediation() == Some(Remediation::Enforce);
        let is_asked_for = |one: &Foreseen| match one.prospect {
            Prospect::Change | Prospect::Adopt | Prospect::Recreate => true,
            Prospect::Unchanged => enforces && one.decided_by == TEMPLATES,
            _ => false,
        };
        let asked = objects.iter().map(|one| &one.foreseen).filter(|one| is_asked_for(one));
        let asked: BTreeSet<Id> = asked.map(|one| one.id.clone()).collect();
        let mut each: Vec<&mut Foreseen> =
            objects.iter_mut().map(|one| &mut one.foreseen).collect();
        let taken = take_along(&mut each, |id| asked.contains(id));
        for one in objects.iter_mut().filter(|one| taken.contains(&one.foreseen.id)) {
            one.write = None;
        }
    }

    fn about(&self, told: Told, object: &ObjectResource, target: Target) -> Proposed {
        let Told { prospect, why, decided_by } = told;
        let Target { version, id } = target;
        let present = present(self.seen, &id);
        let origin = self.policy.entry(object).and_then(|entry| entry.properties.as_ref());
        let adopted = match origin.and_then(|known| known.created_by_policy) {
            Some(ours) => !ours,
            None => {
                let taken = matches!(prospect, Prospect::Change | Prospect::Adopt);
                present.is_some() && taken
            }
        };
        let going = present.filter(|present| present.terminating().is_some());
        let write = self.course.writes.get(&id).cloned();
        let write = write
            .filter(|_| matches!(prospect, Prospect::Create | Prospect::Change) && going.is_none());
        let finalizers = going.map(|going| going.finalizers().into_iter().map(ToOwned::to_owned));
        let foreseen = Foreseen {
            id,
            version,
            uid: present.map(|present| present.uid().to_owned()).unwrap_or_default(),
            prospect,
            why,
            decided_by,
            adopted: adopted && prospect != Prospect::Gone,
            finalizers: finalizers.map_or_else(Vec::new, Iterator::collect),
        };
        let before = present.map(|present| Arc::clone(&present.object));
        Proposed { foreseen, write, before }
    }

    /// `None`: there is nothing to tell of.
    fn of(&self, object: &ObjectResource, target: &Target) -> Option<Told> {
        let id = &target.id;
        let did = self.course.did.get(id).map_or(&[][..], Vec::as_slice);
        let (before, after) = (present(self.seen, id), present(&self.course.seen, id));
        let contrary = || {
            told(
                Prospect::Stuck,
                "its templates contradict each other, and none of them wins",
                TEMPLATES,
            )
        };
        if did.len() > 1 && self.course.restless {
            return Some(contrary());
        }
        let going = before.is_some_and(|before| before.terminating().is_some());
        Some(match (before, after) {
            _ if did.is_empty() => return self.untouched(object, id),
            (None, Some(_)) => {
                told(Prospect::Create, "there is nothing of that name yet", TEMPLATES)
            }
            (None, None) => contrary(),
            (Some(_), Some(_)) if going => {
                let why = "it is being deleted already, and is made anew when it is gone";
                told(Prospect::Recreate, why, TEMPLATES)
            }
            (Some(_), Some(_)) if did.contains(&Did::Delete) => {
                let why = "it is not as its template says, and is made anew";
                told(Prospect::Recreate, why, "recreateOption")
            }
            (Some(_), Some(_)) => {
                told(Prospect::Change, "it is not as its template says", TEMPLATES)
            }
            (Some(_), None) if going => told(Prospect::Delete, "it is being deleted already", ""),
            (Some(_), None) => match self.first.leaving.contains_key(object) {
                true => told(Prospect::Delete, "no template asks for it any more", BEHAVIOR),
                false => told(Prospect::Delete, "it must not be there", COMPLIANCE),
            },
        })
    }

    /// Of an object that nothing is done about.
    fn untouched(&self, object: &ObjectResource, id: &Id) -> Option<Told> {
        let of_object = |one: &&Judged| one.object == *object;
        let said = self.last.judged.iter().filter(of_object).max_by_key(|one| one.result.state);
        match said {
            Some(judged) => Some(self.judged(judged, id)),
            None => self.left(object, id),
        }
    }

    fn judged(&self, judged: &Judged, id: &Id) -> Told {
        let is_there = present(self.seen, id).is_some();
        let enforces = self.policy.spec.remediation() == Some(Remediation::Enforce);
        let said = |otherwise: &str| {
            let said = judged.result.message.clone();
            said.unwrap_or_else(|| otherwise.to_owned())
        };
        let unchanged = |why: &str, field| told(Prospect::Unchanged, why, field);
        if judged.result.state == State::Compliant {
            return match (judged.result.reason, is_there) {
                (reason::MISSING_AS_EXPECTED, true) => {
                    unchanged("it is not what must not be there", COMPLIANCE)
                }
                (_, false) => told(Prospect::Gone, "it must not be there, and is not", COMPLIANCE),
                (_, true) if self.takes_over(judged) => {
                    let why = "it was there before, and goes with the policy from now on";
                    told(Prospect::Adopt, why, BEHAVIOR)
                }
                (_, true) => unchanged("it is as its template says", TEMPLATES),
            };
        }
        match judged.result.reason {
            reason::API_ERROR | reason::UNWATCHABLE => {
                let why = said("it cannot be read");
                Told { prospect: Prospect::Unknown, why, decided_by: "" }
            }
            reason::NOT_FOUND if !enforces => {
                told(Prospect::Gone, "it is missing, which is only reported", REMEDIATION)
            }
            reason::UNWANTED if !enforces => {
                unchanged("it must not be there, which is only reported", REMEDIATION)
            }
            _ if !enforces => {
                unchanged("it is not as its template says, which is only reported", REMEDIATION)
            }
            // There is something to do, and it is not done: the policy is not evaluated.
            _ if judged.need != Need::Nothing => {
                unchanged("its policy does not look at it now", "spec.evaluationInterval")
            }
            reason::UNWANTED => {
                let why = "it must not be there, and a template without a name deletes nothing";
                unchanged(why, "metadata.name")
            }
            reason::MISMATCH => unchanged("only its status is not as its template says", TEMPLATES),
            _ => {
                let why = said("it cannot be put right");
                Told { prospect: Prospect::Stuck, why, decided_by: TEMPLATES }
            }
        }
    }

    /// Whether the policy will take something with it that it did not make and had not on record.
    fn takes_over(&self, judged: &Judged) -> bool {
        let spec = &self.policy.spec;
        let known = self.policy.entry(&judged.object).and_then(|entry| entry.properties.as_ref());
        spec.prune_object_behavior == PruneObjectBehavior::DeleteAll
            && spec.remediation() == Some(Remediation::Enforce)
            && known.is_none()
            && matches!(judged.listed, Listed::With(Some(_)))
    }

    /// Of an object on record that no template is about.
    fn left(&self, object: &ObjectResource, id: &Id) -> Option<Told> {
        if matches!(self.seen.cluster.objects.get(id), Some(Seen::Absent)) {
            let told = told(Prospect::Gone, "there is nothing of that name", "");
            return was_there(self.policy, object).then_some(told);
        }
        Some(match self.first.leaving.get(object) {
            Some(Fate::Settled(left)) => {
                let (prospect, why, decided_by) = spared(*left);
                Told { prospect, why, decided_by }
            }
            Some(Fate::Unknown(why) | Fate::Held { why, .. }) => told(Prospect::Unknown, why, ""),
            Some(Fate::Kept { why, .. }) => told(Prospect::Keep, why, BEHAVIOR),
            Some(Fate::Unread) => told(Prospect::Unknown, "it was not looked at", ""),
            Some(Fate::Delete { .. } | Fate::Terminating { .. }) => {
                let why = "its policy does not look at it now";
                told(Prospect::Unchanged, why, "spec.evaluationInterval")
            }
            None => {
                let why = "not all templates say what they are about, so nothing is taken away";
                told(Prospect::Keep, why, TEMPLATES)
            }
        })
    }

    /// What is wrong with the policy as a whole.
    fn problems(&self) -> Vec<String> {
        let whole = matches!(self.course.seen.templates, Templates::Failed { .. })
            || self.policy.spec.remediation().is_none();
        let findings = self.last.findings.iter().filter(|_| whole);
        findings.map(|finding| finding.message.clone()).collect()
    }

    /// Templates that cannot be told the objects of.
    fn unplaced(&self, problems: &mut Vec<String>) -> Vec<Proposed> {
        let Templates::Known(templates) = &self.course.seen.templates else { return Vec::new() };
        let scope = Scope {
            policy_name: &self.policy.name,
            selector: &self.policy.spec.namespace_selector,
            terminating: self.seen.controller.terminating_namespaces,
        };
        let mut reader = Reader::new(&self.course.seen.cluster);
        let mut stuck = Vec::new();
        for (index, template) in templates.iter().enumerate() {
            let message = match desired::desired(&scope, index, template, &mut reader) {
                Desired::Undetermined { finding, .. } => finding.message,
                Desired::Unread => "it was not looked at".to_owned(),
                Desired::Known { .. } => match Compliance::parse(&template.spec.compliance_type) {
                    Some(_) => continue,
                    None => format!(
                        "its complianceType is not known: {}",
                        template.spec.compliance_type
                    ),
                },
            };
            match self.kindless(template) {
                Some(target) => {
                    let resource = resource(template);
                    let told = told(Prospect::Stuck, &message, TEMPLATES);
                    stuck.push(self.about(told, &resource, target));
                }
                None => problems.push(format!("object template {index}: {message}")),
            }
        }
        stuck
    }

    /// The object that a template names outright, if its kind is not served.
    fn kindless(&self, template: &Template) -> Option<Target> {
        let object = resource(template);
        let name = KindName { api_version: object.api_version.clone(), kind: object.kind.clone() };
        let absent = self.course.seen.cluster.kinds.get(&name) == Some(&Kind::Absent);
        let plain = matches!(template.definition, Definition::Plain);
        if !absent || !plain || object.metadata.name.is_empty() {
            return None;
        }
        // Which resource it is nobody knows, so it is called by its kind.
        let served = Served {
            resource: object.kind.clone(),
            ..Served::unknown(&object.api_version, &object.kind)
        };
        Some(served.target(&object.metadata.namespace, &object.metadata.name))
    }
}

fn resource(template: &Template) -> ObjectResource {
    let definition = &template.spec.object_definition;
    let mut object = ObjectResource {
        api_version: field(definition, "apiVersion").to_owned(),
        kind: field(definition, "kind").to_owned(),
        ..ObjectResource::default()
    };
    object.metadata.namespace = metadata(definition, "namespace").to_owned();
    object.metadata.name = metadata(definition, "name").to_owned();
    object
}

fn present<'a>(seen: &'a Observed, id: &Id) -> Option<&'a Present> {
    match seen.cluster.objects.get(id) {
        Some(Seen::Present(present)) => Some(present),
        _ => None,
    }
}
