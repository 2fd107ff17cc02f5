//! What would become of everything if a work said something else, before it says so.
//!
//! It asks what the planner asks ([`converge`] about what is wanted, [`retire`] about what no manifest
//! wants any more), about a world in which the hub has the other work and the ledger says what it will
//! say before anything is touched. What is only put off is foreseen as done.

use alloc::borrow::ToOwned as _;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use serde_json::Value;

use super::along::take_along;
use super::converge::{self, Need, Stuck};
use super::observed::{
    Book, Claim, Hub, Ledger, Observed, Origin, Place, Present, Seen, Strategy, Wanted, Work,
};
use super::outlook::{DELETE_OPTION, Foreseen, Goes, Prospect, field_of, foreseen};
use super::ownership::{Ownership, origin, ownership};
use super::retire;
use crate::id::{Id, Target};
use crate::write::Write;

/// The field by which a work asks for an object.
pub(crate) const MANIFESTS: &str = "spec.workload.manifests";
const CONFIGS: &str = "spec.manifestConfigs";

/// What a work would do.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Proposal {
    pub objects: Vec<Proposed>,
    /// What of it nobody can make sense of.
    pub problems: Vec<String>,
}

/// One object, and the write that would be the first about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Proposed {
    pub foreseen: Foreseen,
    pub write: Option<Write>,
}

/// The outlook for everything that the work wants or has on the cluster, or why there is none.
///
/// `seen` is the world in which the hub has the proposed work; what is wanted and there was read whole.
pub fn proposal(seen: &Observed) -> Result<Proposal, String> {
    let seen = patient(seen);
    let work = match &seen.hub {
        Hub::Work(work) => work,
        Hub::Unknown(why) => return Err(format!("the hub cannot be seen: {why}")),
        Hub::Absent => return Err("there is no such work".to_owned()),
    };
    let blank = Book::default();
    let book = match &seen.ledger {
        Ledger::Present(book) => book,
        Ledger::Absent => &blank,
        Ledger::NotYet => return Err("the ledger was not read yet".to_owned()),
        Ledger::Unknown(why) => return Err(format!("the ledger cannot be read: {why}")),
    };
    if work.deleting {
        return Err("it is being deleted, and what it says changes nothing any more".to_owned());
    }
    if book.deleting {
        return Err("an earlier work of this name is still being let go of".to_owned());
    }
    if seen.leaving.is_some() && !work.is_of_add_on() {
        return Err("the cluster leaves, and gets nothing new".to_owned());
    }
    let mut all = match work.is_complete() {
        true => frozen(&seen, book),
        false => whole(&seen, work, book),
    };
    let mut each: Vec<&mut Foreseen> =
        all.objects.iter_mut().map(|one| &mut one.foreseen).collect();
    let wanted = seen.wanted_by_id();
    let taken = take_along(&mut each, |id| {
        let made = |wanted: &&Wanted| !wanted.complete && wanted.strategy != Strategy::ReadOnly;
        !work.is_complete() && wanted.get(id).is_some_and(made)
    });
    for one in all.objects.iter_mut().filter(|one| taken.contains(&one.foreseen.id)) {
        one.write = None;
    }
    Ok(all)
}

/// The world in which nothing has to wait for its next try.
fn patient(seen: &Observed) -> Observed {
    let mut seen = seen.clone();
    seen.troubles.clear();
    seen.pauses.clear();
    seen
}

fn whole(seen: &Observed, work: &Work, book: &Book) -> Proposal {
    let mut all = Proposal::default();
    let known = book.ids();
    let ended = ended(seen);
    let later = converge::needs(&ended, work, book);
    let claims = converge::claims(&ended, work, book, &later, &BTreeSet::new());
    let written_down = Book { claims, ..book.clone() };
    for (target, wanted, need) in converge::needs(seen, work, book) {
        let present = present(seen, &target.id);
        let going = present.is_some_and(|present| present.terminating.is_some());
        let anew = going && !wanted.complete && wanted.strategy != Strategy::ReadOnly;
        let told = match anew {
            true => after_its_end(converge::need(&ended, work, book, target, wanted), work),
            false => told(seen, work, known.contains(&target.id), target, wanted, need, present),
        };
        all.objects.push(told.about(target, book, present));
    }
    for (index, wanted) in seen.wanted.iter().enumerate() {
        match unplaced(seen, wanted, &known) {
            None => {}
            Some(Ok(one)) => all.objects.push(one),
            Some(Err(problem)) => all.problems.push(format!("manifest {}: {problem}", index + 1)),
        }
    }
    let leaving = converge::leaving(seen, book);
    let goes = Goes { why: "no manifest asks for it any more", decided_by: MANIFESTS };
    for (id, fate) in retire::fates(&ended, &written_down, leaving.iter()) {
        let foreseen = foreseen(seen, &written_down, id, fate, goes);
        all.objects.push(Proposed { foreseen, write: None });
    }
    let wanted = seen.wanted_by_id();
    for id in known {
        if !wanted.contains_key(id) && !leaving.contains(id) {
            all.objects.push(in_peace(seen, book, id));
        }
    }
    all
}

/// A completed work is left as it is, whatever it says.
fn frozen(seen: &Observed, book: &Book) -> Proposal {
    let wanted = seen.wanted.iter().filter_map(|wanted| wanted.place.id());
    let ids: BTreeSet<&Id> = wanted.chain(book.ids()).collect();
    let why = "the work is complete, and nothing of it is touched";
    let told = |id: &Id| still(seen, book, id, Prospect::Unchanged, why, "status.conditions");
    let objects = ids.into_iter().map(|id| Proposed { foreseen: told(id), write: None }).collect();
    Proposal { objects, problems: Vec::new() }
}

fn present<'a>(seen: &'a Observed, id: &Id) -> Option<&'a Present> {
    match seen.live.get(id) {
        Some(Seen::Present(present)) => Some(present),
        _ => None,
    }
}

/// The world in which everything is gone that is on its way out.
fn ended(seen: &Observed) -> Observed {
    let mut seen = seen.clone();
    for live in seen.live.values_mut() {
        if matches!(live, Seen::Present(Present { terminating: Some(_), .. })) {
            *live = Seen::Absent;
        }
    }
    seen
}

/// What is said of one object.
struct Told {
    prospect: Prospect,
    why: String,
    decided_by: &'static str,
    write: Option<Write>,
}

impl Told {
    fn new(prospect: Prospect, why: &str, decided_by: &'static str) -> Self {
        Self { prospect, why: why.to_owned(), decided_by, write: None }
    }

    fn about(self, target: &Target, book: &Book, present: Option<&Present>) -> Proposed {
        let Self { prospect, why, decided_by, write } = self;
        let Target { version, id } = target.clone();
        let adopted = present.is_some_and(|present| origin(book, &id, present) == Origin::Adopted);
        let finalizers = present.and_then(|present| present.terminating.clone());
        let foreseen = Foreseen {
            id,
            version,
            uid: present.map(|present| present.uid.clone()).unwrap_or_default(),
            prospect,
            why,
            decided_by,
            adopted,
            finalizers: finalizers.unwrap_or_default(),
        };
        Proposed { foreseen, write }
    }
}

/// Of an object that is on its way out already: whether another takes its place.
fn after_its_end(need: Need, work: &Work) -> Told {
    match need {
        Need::Touch { .. } => {
            let why = "it is being deleted already, and is made anew when it is gone";
            Told::new(Prospect::Recreate, why, MANIFESTS)
        }
        Need::Stuck(stuck) => stuck_at(stuck, work),
        Need::Nothing | Need::Later => {
            Told::new(Prospect::Delete, "it is being deleted already", "")
        }
    }
}

fn stuck_at(stuck: Stuck, work: &Work) -> Told {
    match stuck {
        Stuck::Unknown(why) => Told::new(Prospect::Unknown, &why, ""),
        Stuck::Denied(why) => Told::new(Prospect::Stuck, &why, "spec.executor"),
        Stuck::IgnoreFields(why) => Told::new(Prospect::Stuck, &why, CONFIGS),
        Stuck::Failed(why) if work.keep.is_err() => Told::new(Prospect::Stuck, &why, DELETE_OPTION),
        Stuck::Failed(why) => Told::new(Prospect::Stuck, &why, ""),
    }
}

/// Of an object that a manifest wants. `known`: the ledger has it already.
fn told(
    seen: &Observed,
    work: &Work,
    known: bool,
    target: &Target,
    wanted: &Wanted,
    need: Need,
    present: Option<&Present>,
) -> Told {
    let (claim, write) = match need {
        Need::Touch { claim, write } => (claim, write),
        Need::Stuck(stuck) => return stuck_at(stuck, work),
        Need::Later => return Told::new(Prospect::Unknown, "it was not looked at", ""),
        Need::Nothing => return untouched(known, wanted, present),
    };
    let Some(present) = present else {
        let told = Told::new(Prospect::Create, "there is nothing of that name yet", MANIFESTS);
        return Told { write: Some(write), ..told };
    };
    let governed = present.governed_by_other(&seen.ledger_name()).is_some();
    let told = match &write {
        Write::Delete { .. } => {
            Told::new(Prospect::Recreate, "it cannot be changed as it is", MANIFESTS)
        }
        Write::Merge(_) if !known && governed => {
            let why = "it was there before, and another work decides its content";
            Told::new(Prospect::Adopt, why, MANIFESTS)
        }
        Write::Merge(_) if !known => Told::new(Prospect::Adopt, &taken(claim, false), MANIFESTS),
        _ if !known => Told::new(Prospect::Adopt, &taken(claim, true), MANIFESTS),
        Write::Merge(_) => marked(work, &target.id, claim),
        _ => Told::new(Prospect::Change, "it is not as its manifest says", MANIFESTS),
    };
    Told { write: Some(write), ..told }
}

fn taken(claim: Claim, changed: bool) -> String {
    let how = if changed { "taken over and changed" } else { "taken over as it is" };
    let end = if claim.kept { ", and stays when the work goes" } else { "" };
    format!("it was there before, is {how}{end}")
}

/// Only our mark comes onto an object, or off it.
fn marked(work: &Work, id: &Id, claim: Claim) -> Told {
    match ownership(work, id, claim.origin) {
        Ownership::Kept(field) => {
            let why = "it is declared to stay when the work goes";
            Told::new(Prospect::Change, why, field_of(field))
        }
        Ownership::Owned | Ownership::Undecided(_) => {
            Told::new(Prospect::Change, "it goes with the work from now on", DELETE_OPTION)
        }
    }
}

fn untouched(known: bool, wanted: &Wanted, present: Option<&Present>) -> Told {
    match (&wanted.strategy, present) {
        (Strategy::ReadOnly, None) => {
            Told::new(Prospect::Gone, "it is only looked at, and is not there", CONFIGS)
        }
        (Strategy::ReadOnly, Some(_)) => {
            Told::new(Prospect::Unchanged, "it is only looked at", CONFIGS)
        }
        _ if wanted.complete => {
            Told::new(Prospect::Unchanged, "it is complete", "status.resourceStatus")
        }
        (_, Some(_)) if !known => {
            Told::new(Prospect::Adopt, "it was there before, and is as it should be", MANIFESTS)
        }
        (Strategy::CreateOnly, _) => {
            Told::new(Prospect::Unchanged, "it is made once and then left alone", CONFIGS)
        }
        _ => Told::new(Prospect::Unchanged, "it is as its manifest says", MANIFESTS),
    }
}

/// A manifest that has no place on the cluster now, unless an object of the ledger may be meant.
fn unplaced(
    seen: &Observed,
    wanted: &Wanted,
    known: &BTreeSet<&Id>,
) -> Option<Result<Proposed, String>> {
    let (group, namespace, name, prospect, message) = match &wanted.place {
        Place::At(_) => return None,
        Place::Malformed(problem) => return Some(Err(problem.clone())),
        Place::Nowhere { group, namespace, name, message } => {
            (group, namespace, name, Prospect::Stuck, message)
        }
        Place::Unknown { group, namespace, name, message } => {
            (group, namespace, name, Prospect::Unknown, message)
        }
    };
    if known.iter().any(|id| wanted.place.may_be(id)) {
        return None;
    }
    if let Some(target) = once_defined(seen, wanted) {
        let why = "the work brings the definition of its kind";
        let told = Told::new(Prospect::Create, why, MANIFESTS);
        return Some(Ok(told.about(&target, &Book::default(), None)));
    }
    let id = Id {
        group: group.clone(),
        // Which resource it is nobody knows, so it is called by its kind.
        resource: wanted.kind.clone(),
        namespace: namespace.clone(),
        name: name.clone(),
    };
    let target = Target { version: version(wanted), id };
    Some(Ok(Told::new(prospect, message, MANIFESTS).about(&target, &Book::default(), None)))
}

fn version(wanted: &Wanted) -> String {
    let version = wanted.api_version.rsplit_once('/').map(|(_, version)| version);
    version.unwrap_or(&wanted.api_version).to_string()
}

/// What a manifest stands for whose kind the cluster lacks, if the same work brings it.
fn once_defined(seen: &Observed, wanted: &Wanted) -> Option<Target> {
    let Place::Nowhere { group, namespace, name, .. } = &wanted.place else { return None };
    let version = version(wanted);
    let definitions = seen.wanted.iter().filter(|one| one.kind == "CustomResourceDefinition");
    definitions.filter_map(|one| one.manifest.get("spec")).find_map(|spec| {
        let text = |pointer: &str| spec.pointer(pointer).and_then(Value::as_str);
        let versions = spec.get("versions").and_then(Value::as_array);
        let served = versions
            .into_iter()
            .flatten()
            .any(|one| one["name"] == version.as_str() && one["served"] == true);
        let same = text("/group") == Some(group.as_str())
            && text("/names/kind") == Some(wanted.kind.as_str());
        let namespaced = text("/scope") == Some("Namespaced");
        if !served || !same || (namespaced && namespace.is_empty()) {
            return None;
        }
        let id = Id {
            group: group.clone(),
            resource: text("/names/plural")?.to_owned(),
            namespace: if namespaced { namespace.clone() } else { String::new() },
            name: name.clone(),
        };
        Some(Target { version: version.clone(), id })
    })
}

/// An object of the ledger that no manifest is known to want, and that is not taken away either.
fn in_peace(seen: &Observed, book: &Book, id: &Id) -> Proposed {
    let meant = seen.wanted.iter().any(|wanted| wanted.place.may_be(id));
    let (prospect, why) = match meant {
        true => (Prospect::Unknown, "it may be what a manifest means that has no place now"),
        false => (Prospect::Keep, "not all manifests can be read, so nothing is taken away"),
    };
    Proposed { foreseen: still(seen, book, id, prospect, why, MANIFESTS), write: None }
}

/// Of an object about which nothing is done.
fn still(
    seen: &Observed,
    book: &Book,
    id: &Id,
    prospect: Prospect,
    why: &str,
    decided_by: &'static str,
) -> Foreseen {
    let present = present(seen, id);
    let told = match (seen.live.get(id), present) {
        (Some(Seen::Absent), _) => Told::new(Prospect::Gone, "there is nothing of that name", ""),
        (_, Some(present)) if present.terminating.is_some() => {
            Told::new(Prospect::Delete, "it is being deleted already", "")
        }
        _ => Told::new(prospect, why, decided_by),
    };
    let recorded = book.applied.get(id).map(|applied| applied.version.clone());
    let version = seen.versions.get(id).cloned().or(recorded).unwrap_or_default();
    told.about(&Target { version, id: id.clone() }, book, present).foreseen
}
