//! What to do next about one work: the whole of its life on a cluster, read top to bottom.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use serde_json::json;

use super::converge;
use super::ledger;
use super::observed::{Applied, Book, Hub, Ledger, Observed, Seen, Work};
use super::ownership::{Ownership, ledger_target, origin, ownership};
use super::report::{is_stranded_told, tell_left};
use super::retire::{self, Fate};
use super::trouble::Trouble;
use crate::id::{Id, Target};
use crate::leave::record::is_receipted;
use crate::write::{Action, Plan, Side, Write};

/// Holds the work on the hub while anything of it may be on the cluster.
pub const WORK_FINALIZER: &str = "cluster.open-cluster-management.io/manifest-work-cleanup";

/// On works that managers of add-ons make, as OCM's do.
const ADD_ON_LABEL: &str = "open-cluster-management.io/addon-name";

/// The next steps. Empty: nothing to do until something changes or [`super::report`] says when.
///
/// It is asked again after every execution, so it only has to be right about what comes next.
pub fn plan(seen: &Observed) -> Plan {
    // Everything hinges on the ledger: while it cannot be written, nothing is touched.
    if seen.must_wait(&ledger_target(&seen.agent.hub_hash, &seen.name).id) {
        return vec![];
    }
    if let Hub::Work(work) = &seen.hub
        && seen.must_wait(&work_target(seen, work).id)
        && (!work.has_finalizer() || work.deleting)
    {
        return vec![];
    }
    match (&seen.hub, &seen.ledger) {
        (_, Ledger::Unknown(_) | Ledger::NotYet) => vec![],
        // Even a deletion that has begun waits: what is to be kept is for the hub to say.
        (Hub::Unknown(_), _) => vec![],

        (Hub::Work(work), ledger) if work.deleting => leave(seen, work, ledger),
        (Hub::Work(_), Ledger::Present(book)) if book.deleting => retire_all(seen, book, vec![]),
        // A cluster that leaves gets nothing new, and nothing back that somebody took away. But what
        // takes an add-on off may come as a work, and works are deleted after the add-ons are gone.
        (Hub::Work(work), _) if seen.leaving.is_some() && !work.is_of_add_on() => vec![],
        (Hub::Work(work), ledger) if !work.has_finalizer() => take_in(seen, work, ledger),
        (Hub::Work(work), Ledger::Absent) if work.is_complete() => vec![],
        (Hub::Work(work), Ledger::Present(book)) if work.is_complete() => {
            converge::keep_books(seen, work, book)
        }
        (Hub::Work(work), Ledger::Absent) => converge::begin(seen, work),
        (Hub::Work(work), Ledger::Present(book)) => converge::plan(seen, work, book),

        (Hub::Absent, Ledger::Absent) => vec![],
        (Hub::Absent, Ledger::Present(book)) => evict(seen, book),
    }
}

/// A new work is held on the hub before anything is written down on the cluster, and a work that
/// cannot be held is not begun.
fn take_in(seen: &Observed, work: &Work, ledger: &Ledger) -> Plan {
    let mut steps = vec![vec![add_finalizer(seen, work)]];
    if let Ledger::Absent = ledger
        && !work.is_complete()
    {
        steps.extend(converge::begin(seen, work));
    }
    steps
}

/// The work is deleted: the hub object goes when everything of it is settled on the cluster.
fn leave(seen: &Observed, work: &Work, ledger: &Ledger) -> Plan {
    let last = if work.has_finalizer() { vec![remove_finalizer(seen, work)] } else { vec![] };
    match ledger {
        Ledger::Unknown(_) | Ledger::NotYet => vec![],
        Ledger::Absent if is_unwritten(seen, work) => vec![],
        Ledger::Absent => only(last),
        Ledger::Present(book) => retire_all(seen, book, last),
    }
}

/// Lets go of everything in the ledger, then of the ledger; `last` once that is gone.
fn retire_all(seen: &Observed, book: &Book, last: Vec<Action>) -> Plan {
    let ids = book.ids();
    let fates = retire::fates(seen, book, ids.into_iter());
    if !book.deleting {
        if !ledger::is_held(book) {
            return vec![vec![ledger::hold(seen, book)]];
        }
        if let Some(wish) = last_wish(seen, book, &fates) {
            return vec![vec![wish]];
        }
        // Marks come off while the ledger is not yet going, so that whoever finishes the job from
        // the marks alone keeps what was declared to be kept. What is to go does not wait for that.
        if fates.iter().any(|(id, fate)| goes_before_the_ledger(seen, book, id, fate)) {
            return only(retire::let_go(seen, book, &fates));
        }
        // At the same time: everything is on record, and whoever goes on from here finds the work going.
        let mut step = vec![ledger::delete(seen, book)];
        step.extend(retire::delete(seen, book, &fates));
        return vec![step];
    }
    if !fates.values().all(Fate::is_settled) {
        let go = retire::let_go(seen, book, &fates);
        let release = release(seen, book, &fates).into_iter().collect();
        return [go, release].into_iter().filter(|step| !step.is_empty()).collect();
    }
    if !ledger::is_held(book) {
        // Somebody else holds the ledger now; the work waits for it to go.
        return vec![];
    }
    // Whoever leaves says what stays before it is forgotten here.
    if let Some(tell) = tell_left(seen, book) {
        return if seen.must_wait(&Trouble::about(&tell)) { vec![] } else { vec![vec![tell]] };
    }
    if seen.hub.work().is_some_and(|work| work.deleting && is_unwritten(seen, work)) {
        return vec![];
    }
    if !is_stranded_told(seen, book) {
        return vec![];
    }
    let mut steps = vec![vec![ledger::close(seen, book)]];
    if book.finalizers.len() == 1 && !last.is_empty() {
        steps.push(last);
    }
    steps
}

/// Whether the hub could not hold the work and has not yet written down what stays of it.
pub(super) fn is_unwritten(seen: &Observed, work: &Work) -> bool {
    let removal = work.status.removal.as_ref();
    let written = is_receipted(&work.finalizers, removal, work.on_record.as_deref());
    seen.leaving.is_some() && !written
}

/// Whether this has to be done with before the ledger is marked as going. From then on an object without
/// our mark counts as given up.
fn goes_before_the_ledger(seen: &Observed, book: &Book, id: &Id, fate: &Fate) -> bool {
    match fate {
        Fate::Unmark { .. } => !retire::goes_with_others(seen, id, fate),
        Fate::Undecided(_) => true,
        // It may be without our mark.
        Fate::Unknown(_) => {
            let says = || Some(ownership(seen.hub.work()?, id, book.origin(id)?));
            match says() {
                Some(Ownership::Undecided(_)) => true,
                Some(Ownership::Owned) => book.is_kept(id),
                Some(Ownership::Kept(_)) | None => false,
            }
        }
        _ => is_unmarked_and_goes(seen, book, id, fate),
    }
}

/// Whether it goes although it does not bear our mark: the work kept it once, and does not any more.
fn is_unmarked_and_goes(seen: &Observed, book: &Book, id: &Id, fate: &Fate) -> bool {
    let goes = matches!(fate, Fate::Delete { .. } | Fate::Terminating(_));
    let marked =
        matches!(seen.live.get(id), Some(Seen::Present(present)) if present.is_held_by(book));
    goes && !marked
}

/// What the work said last about what stays and what goes, on record before anything is done about it:
/// should the work be changed or forced away meanwhile, nobody else can tell.
fn last_wish(seen: &Observed, book: &Book, fates: &BTreeMap<&Id, Fate>) -> Option<Action> {
    let work = seen.hub.work()?;
    let mut claims = book.claims.clone();
    for (id, claim) in &mut claims {
        let says = |origin| ownership(work, id, origin);
        match (seen.live.get(id), fates.get(id)) {
            // It goes before the ledger, and is ours only by this.
            (_, Some(fate)) if is_unmarked_and_goes(seen, book, id, fate) => {}
            (Some(Seen::Present(present)), _) => match says(origin(book, id, present)) {
                Ownership::Kept(_) => claim.kept = true,
                Ownership::Owned => claim.kept = false,
                Ownership::Undecided(_) => {}
            },
            (Some(Seen::Unknown(_) | Seen::NotYet) | None, _) => {
                claim.kept |= matches!(says(claim.origin), Ownership::Kept(_));
            }
            (Some(Seen::Absent), _) => {}
        }
    }
    if claims == book.claims { None } else { ledger::amend(seen, work, book, &claims) }
}

/// What of the ledger is settled is struck off when the objects of a rank are all settled, so that
/// progress is durable without a write per object.
fn release(seen: &Observed, book: &Book, fates: &BTreeMap<&Id, Fate>) -> Option<Action> {
    let turn = retire::turn(fates)?;
    let settled = |id: &Id| fates.get(id).is_some_and(Fate::is_settled) && retire::rank(id) < turn;
    let applied: BTreeMap<Id, Applied> = book
        .applied
        .iter()
        .filter(|(id, _)| !settled(id))
        .map(|(id, a)| (id.clone(), a.clone()))
        .collect();
    ledger::record(seen, book, &applied, book.eviction_start)
}

/// A ledger whose work the hub does not have: forced away there, or the hub is another one.
fn evict(seen: &Observed, book: &Book) -> Plan {
    // A hub that says to leave means everything it ever sent, whatever became of its works and
    // whichever agent took them up.
    if seen.leaving.is_some() {
        return retire_all(seen, book, vec![]);
    }
    if book.agent_id != seen.agent.id {
        return vec![];
    }
    if book.deleting {
        return retire_all(seen, book, vec![]);
    }
    let Some(grace) = seen.agent.eviction_grace else {
        return only(ledger::record(seen, book, &book.applied, None).into_iter().collect());
    };
    let Some(start) = book.eviction_start else {
        let began = ledger::record(seen, book, &book.applied, Some(seen.now));
        return only(began.into_iter().collect());
    };
    match start.checked_add(grace) {
        Ok(end) if end <= seen.now => retire_all(seen, book, vec![]),
        _ => vec![],
    }
}

/// A plan of one step, or none if there is nothing in it.
pub(crate) fn only(step: Vec<Action>) -> Plan {
    if step.is_empty() { vec![] } else { vec![step] }
}

pub(crate) fn work_target(seen: &Observed, work: &Work) -> Target {
    let id = Id {
        group: super::ownership::GROUP.into(),
        resource: "manifestworks".into(),
        namespace: work.namespace.clone(),
        name: seen.name.clone(),
    };
    Target { version: "v1".into(), id }
}

fn set_finalizers(seen: &Observed, work: &Work, finalizers: Vec<&str>) -> Action {
    let patch = json!({ "metadata": {
        "uid": work.uid,
        "resourceVersion": work.resource_version,
        "finalizers": finalizers,
    }});
    Action { side: Side::Hub, target: work_target(seen, work), write: Write::Merge(patch) }
}

fn add_finalizer(seen: &Observed, work: &Work) -> Action {
    let others = work.finalizers.iter().map(|finalizer| finalizer.as_str());
    set_finalizers(seen, work, others.chain([WORK_FINALIZER]).collect())
}

pub(crate) fn remove_finalizer(seen: &Observed, work: &Work) -> Action {
    let others = work.finalizers.iter().map(|finalizer| finalizer.as_str());
    set_finalizers(seen, work, others.filter(|finalizer| *finalizer != WORK_FINALIZER).collect())
}

impl Work {
    pub fn has_finalizer(&self) -> bool {
        self.finalizers.iter().any(|finalizer| finalizer == WORK_FINALIZER)
    }

    /// Whether the manager of an add-on made it.
    pub(super) fn is_of_add_on(&self) -> bool {
        self.labels.contains_key(ADD_ON_LABEL)
    }

    /// A completed work is frozen: nothing of it is applied or taken back until it is deleted. How it
    /// stands is told all the same.
    pub fn is_complete(&self) -> bool {
        self.status.conditions.iter().any(|c| c.type_ == "Complete" && c.status == "True")
    }
}
