//! Making the cluster hold what a work asks for: claim, apply in the order of kinds, record, and
//! let go of what left the manifests.
//!
//! A manifest that cannot be applied never stops the others, and whatever it stood for is left in
//! peace: what cannot be told apart from an object in the ledger is not taken away.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;
use alloc::{format, vec};

use serde_json::{Value, json};

use super::kind_order;
use super::merge::{self, Merge};
use super::observed::{
    Applied, Book, Claim, Content, Observed, Origin, Permission, Place, Present, Previous, Seen,
    Strategy, Wanted, Work,
};
use super::ownership::{Ownership, origin, ownership, reference};
use super::plan::only;
use super::{ignore, ledger, retire};
use crate::id::{Id, Target};
use crate::write::{Action, Plan, Propagation, Side, Write};

/// What one manifest needs now.
#[derive(Clone, Debug, PartialEq)]
pub enum Need {
    Nothing,
    /// It cannot go on; for users, why.
    Stuck(Stuck),
    /// Nothing to tell anyone: a look that was out of date, or an attempt that comes again soon.
    Later,
    Touch {
        claim: Claim,
        write: Write,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub enum Stuck {
    Failed(String),
    /// `ignoreFields` cannot be followed.
    IgnoreFields(String),
    Denied(String),
    /// The cluster could not be asked.
    Unknown(String),
}

/// There is no ledger yet: one is made, with the first claims in it.
pub(crate) fn begin(seen: &Observed, work: &Work) -> Plan {
    let book = Book::default();
    let needs = needs(seen, work, &book);
    let claims = claims(seen, work, &book, &needs, &BTreeSet::new());
    vec![vec![ledger::create(seen, work, &claims)]]
}

pub(crate) fn plan(seen: &Observed, work: &Work, book: &Book) -> Plan {
    let needs = needs(seen, work, book);
    let leaving = leaving(seen, book);
    let fates = retire::fates(seen, book, leaving.iter());
    let settled = retire::forgettable(seen, book, &fates);

    let claims = claims(seen, work, book, &needs, &settled);
    // An object about to be made anew is struck off first: what is recorded for it would make the
    // new one look like somebody else's after a crash.
    let making: BTreeSet<&Id> = needs
        .iter()
        .filter(|(target, _, need)| match need {
            Need::Touch { write: Write::Delete { .. }, .. } => true,
            Need::Touch { .. } => matches!(seen.live.get(&target.id), Some(Seen::Absent)),
            _ => false,
        })
        .map(|(target, _, _)| &target.id)
        .collect();
    let struck = |id: &Id| making.contains(id) || settled.contains(id);
    let mut applied = book.applied.clone();
    applied.retain(|id, _| !struck(id));
    if needs.iter().all(|(_, _, need)| !matches!(need, Need::Touch { .. })) {
        applied.extend(sightings(seen, book, &claims, &needs));
    }

    let mut steps: Plan = vec![];
    let struck_off = book.applied.keys().any(struck);
    let record = ledger::record(seen, book, &applied, None);
    let amend = ledger::amend(seen, work, book, &claims);
    if let Some(amend) = amend {
        // The next look sees the new resourceVersion of the ledger; everything else follows then.
        return vec![vec![amend]];
    }
    if struck_off && let Some(record) = record {
        return vec![vec![record]];
    }
    let mut ranks: BTreeMap<u16, Vec<Action>> = BTreeMap::new();
    for (target, wanted, need) in needs {
        if let Need::Touch { write, .. } = need {
            let rank = kind_order::rank(&target.id.group, &wanted.kind);
            let action = Action { side: Side::Cluster, target: target.clone(), write };
            ranks.entry(rank).or_default().push(action);
        }
    }
    steps.extend(ranks.into_values());
    if steps.is_empty()
        && let Some(record) = record
    {
        return vec![vec![record]];
    }
    steps.extend(only(retire::let_go(seen, book, &fates)));
    steps
}

/// A completed work is left as it is, but what it says about what stays is kept on record, as is that
/// the hub has it.
pub(crate) fn keep_books(seen: &Observed, work: &Work, book: &Book) -> Plan {
    let mut claims = book.claims.clone();
    for (id, claim) in &mut claims {
        if let Some(now) = standing(seen, work, book, id) {
            *claim = now;
        }
    }
    let amend = ledger::amend(seen, work, book, &claims);
    let record = || ledger::record(seen, book, &book.applied, None);
    only(amend.or_else(record).into_iter().collect())
}

/// The manifests that have a place, and what each needs. The first of two for one object counts.
pub fn needs<'a>(
    seen: &'a Observed,
    work: &Work,
    book: &Book,
) -> Vec<(&'a Target, &'a Wanted, Need)> {
    let mut taken = BTreeSet::new();
    let mut needs = Vec::new();
    for wanted in &seen.wanted {
        let Place::At(target) = &wanted.place else { continue };
        if taken.insert(&target.id) {
            needs.push((target, wanted, need(seen, work, book, target, wanted)));
        }
    }
    needs
}

/// What a manifest needs, given what is there.
pub(crate) fn need(
    seen: &Observed,
    work: &Work,
    book: &Book,
    target: &Target,
    wanted: &Wanted,
) -> Need {
    let id = &target.id;
    if wanted.complete {
        return Need::Nothing;
    }
    let need = match seen.live.get(id) {
        None => Need::Stuck(Stuck::Unknown("it was not looked at".into())),
        Some(Seen::NotYet) => Need::Later,
        Some(Seen::Unknown(reason)) => Need::Stuck(Stuck::Unknown(reason.clone())),
        Some(Seen::Absent) if wanted.strategy == Strategy::ReadOnly => Need::Nothing,
        Some(Seen::Absent) => creation(seen, work, book, id, wanted),
        Some(Seen::Present(present)) if present.terminating.is_some() => match wanted.strategy {
            Strategy::ReadOnly => Need::Nothing,
            _ => Need::Stuck(Stuck::Failed(format!(
                "{id} is being deleted; it is made anew when it is gone"
            ))),
        },
        Some(Seen::Present(present)) => change(seen, work, book, id, wanted, present),
    };
    match (&need, &wanted.permission) {
        (Need::Touch { .. }, Permission::Denied(why)) => Need::Stuck(Stuck::Denied(why.clone())),
        (Need::Touch { .. }, Permission::Unknown(why)) => Need::Stuck(Stuck::Unknown(why.clone())),
        (Need::Touch { .. }, Permission::Granted) if seen.must_wait(id) => Need::Later,
        // That it is there as wanted does not mean that this executor could have brought it.
        (Need::Nothing, Permission::Denied(why)) if wanted.strategy != Strategy::ReadOnly => {
            Need::Stuck(Stuck::Denied(why.clone()))
        }
        (Need::Nothing, Permission::Unknown(_)) if wanted.strategy != Strategy::ReadOnly => {
            Need::Later
        }
        _ => need,
    }
}

fn creation(seen: &Observed, work: &Work, book: &Book, id: &Id, wanted: &Wanted) -> Need {
    let owned = match ownership(work, id, Origin::Created) {
        Ownership::Owned => true,
        Ownership::Kept(_) => false,
        Ownership::Undecided(problem) => return Need::Stuck(Stuck::Failed(problem)),
    };
    let mut body = match &wanted.strategy {
        Strategy::ServerSideApply { ignore, .. } => {
            match ignore::body(&wanted.manifest, false, ignore) {
                Ok(body) => merge::fresh(&body.object),
                Err(problem) => return Need::Stuck(Stuck::IgnoreFields(format!("{problem}"))),
            }
        }
        _ => merge::fresh(&wanted.manifest),
    };
    if owned {
        set_references(&mut body, json!([reference(&seen.ledger_name(), &book.uid)]));
    }
    let write = match &wanted.strategy {
        Strategy::ServerSideApply { manager, force, .. } => {
            Write::Apply { object: body, manager: manager.clone(), force: *force }
        }
        _ => Write::Create(body),
    };
    Need::Touch { claim: Claim { origin: Origin::Created, kept: !owned }, write }
}

/// What a present object needs.
fn change(
    seen: &Observed,
    work: &Work,
    book: &Book,
    id: &Id,
    wanted: &Wanted,
    present: &Present,
) -> Need {
    let ledger = seen.ledger_name();
    let origin = origin(book, id, present);
    let owned = match ownership(work, id, origin) {
        Ownership::Owned => true,
        Ownership::Kept(_) => false,
        Ownership::Undecided(problem) => return Need::Stuck(Stuck::Failed(problem)),
    };
    let claim = Claim { origin, kept: stays(book, id, present, owned) };
    let references = present.references(&ledger, book, owned);
    let content = match (&wanted.strategy, &present.content) {
        (Strategy::ReadOnly | Strategy::CreateOnly, _) | (_, Content::AsWanted) => None,
        (_, Content::Unread) => return Need::Later,
        (Strategy::Update, Content::Read(existing)) => update(existing, wanted),
        (Strategy::ServerSideApply { manager, force, ignore }, Content::Read(existing)) => {
            let own = owned.then(|| json!([reference(&ledger, &book.uid)]));
            match apply(existing, wanted, manager, *force, ignore, own) {
                Ok(write) => write,
                Err(stuck) => return Need::Stuck(stuck),
            }
        }
    };
    let governor = content.is_some().then(|| present.governed_by_other(&ledger)).flatten();
    let paused = seen.pauses.get(id).is_some_and(|until| *until > seen.now);
    let mut write = match content {
        Some(write) if governor.is_none() && !paused => write,
        // Taking hold needs no agreement about the content: when the other lets go, it stays.
        content => {
            return match (references, governor) {
                (Some(references), _) => Need::Touch { claim, write: mark(present, references) },
                (None, None) if content.is_none() => Need::Nothing,
                (None, None) => Need::Later,
                (None, Some(other)) => Need::Stuck(Stuck::Failed(format!(
                    "{id} is held by AppliedManifestWork {} with other content; it is changed when \
                     that work lets go of it",
                    other.name
                ))),
            };
        }
    };
    match &mut write {
        Write::Replace(object) => {
            if let Some(references) = references {
                set_references(object, references);
            }
        }
        // This incarnation, or none: applying would make anew what somebody just deleted.
        Write::Apply { object, .. } => set_uid(object, &present.uid),
        // Only an object of ours is thrown away to make it anew.
        Write::Delete { .. } if !owned => {
            return Need::Stuck(Stuck::Failed(format!(
                "{id} would have to be deleted and made anew, and the work says to keep it"
            )));
        }
        Write::Delete { uid, resource_version, .. } => {
            if let Some(other) = present.other_holder(&ledger) {
                return Need::Stuck(Stuck::Failed(format!(
                    "{id} would have to be deleted and made anew, and AppliedManifestWork {} holds it \
                     as well",
                    other.name
                )));
            }
            uid.clone_from(&present.uid);
            *resource_version = Some(present.resource_version.clone());
        }
        _ => {}
    }
    Need::Touch { claim, write }
}

fn set_references(object: &mut Value, references: Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("ownerReferences".into(), references);
    }
}

fn set_uid(object: &mut Value, uid: &str) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("uid".into(), uid.into());
    }
}

fn mark(present: &Present, references: Value) -> Write {
    Write::Merge(json!({ "metadata": {
        "uid": present.uid,
        "resourceVersion": present.resource_version,
        "ownerReferences": references,
    }}))
}

fn update(existing: &Value, wanted: &Wanted) -> Option<Write> {
    let merged = match wanted.previous {
        Previous::Same => merge::update(existing, &wanted.manifest, Some(&wanted.manifest)),
        Previous::Unknown => merge::restate(existing, &wanted.manifest),
    };
    match merged {
        Merge::Same => None,
        Merge::Replace(object) => Some(Write::Replace(object)),
        Merge::Recreate => Some(Write::Delete {
            uid: String::new(),
            resource_version: None,
            propagation: Propagation::Background,
        }),
    }
}

fn apply(
    existing: &Value,
    wanted: &Wanted,
    manager: &str,
    force: bool,
    ignore: &[ignore::IgnoreField],
    own: Option<Value>,
) -> Result<Option<Write>, Stuck> {
    let mut body = ignore::body(&wanted.manifest, true, ignore)
        .map_err(|problem| Stuck::IgnoreFields(format!("{problem}")))?;
    body.object = merge::fresh(&body.object);
    // Applied references merge with those of others, and go when they are applied no more.
    if let Some(own) = own {
        set_references(&mut body.object, own);
    }
    // A manifest of unknown history is applied once, since servers forget what lists said before;
    // but where fields are left to others the hash alone decides.
    let known = wanted.previous == Previous::Same || !ignore.is_empty();
    if known && body.was_applied_by(existing, manager) {
        return Ok(None);
    }
    let object = body.object;
    Ok(Some(Write::Apply { object, manager: manager.into(), force }))
}

/// The claims as they must stand before anything is touched.
pub(super) fn claims(
    seen: &Observed,
    work: &Work,
    book: &Book,
    needs: &[(&Target, &Wanted, Need)],
    settled: &BTreeSet<&Id>,
) -> BTreeMap<Id, Claim> {
    let mut claims = book.claims.clone();
    claims.retain(|id, _| !settled.contains(id));
    for (target, wanted, need) in needs {
        let claim = match need {
            Need::Touch { claim, .. } => Some(*claim),
            Need::Nothing if wanted.strategy == Strategy::ReadOnly => None,
            Need::Nothing => standing(seen, work, book, &target.id),
            Need::Stuck(_) | Need::Later => {
                let claimed = book.claims.contains_key(&target.id);
                claimed.then(|| standing(seen, work, book, &target.id)).flatten()
            }
        };
        claims.extend(claim.map(|claim| (target.id.clone(), claim)));
    }
    claims
}

/// Whether the claim says that the object stays. One that was kept counts as kept until our mark was
/// seen on it: without mark and without this, nobody could tell it from one that was given up.
fn stays(book: &Book, id: &Id, present: &Present, owned: bool) -> bool {
    !owned || (book.is_kept(id) && !present.is_held_by(book))
}

/// What the claim to a present object has to say.
fn standing(seen: &Observed, work: &Work, book: &Book, id: &Id) -> Option<Claim> {
    let Some(Seen::Present(present)) = seen.live.get(id) else { return None };
    let origin = origin(book, id, present);
    match ownership(work, id, origin) {
        Ownership::Owned => Some(Claim { origin, kept: stays(book, id, present, true) }),
        Ownership::Kept(_) => Some(Claim { origin, kept: true }),
        Ownership::Undecided(_) => None,
    }
}

/// What the ledger holds that no manifest asks for any more.
pub(crate) fn leaving(seen: &Observed, book: &Book) -> BTreeSet<Id> {
    // An empty or unreadable set of manifests is a fault, not a wish.
    let unreadable = |wanted: &Wanted| matches!(wanted.place, Place::Malformed(_));
    if seen.wanted.is_empty() || seen.wanted.iter().any(unreadable) {
        return BTreeSet::new();
    }
    let wanted: BTreeSet<&Id> = seen.wanted.iter().filter_map(|wanted| wanted.place.id()).collect();
    let may_be_wanted = |id: &Id| seen.wanted.iter().any(|wanted| wanted.place.may_be(id));
    let ids = book.ids().into_iter();
    ids.filter(|id| !wanted.contains(*id) && !may_be_wanted(id)).cloned().collect()
}

impl Place {
    /// Whether a manifest without a known resource may stand for this object.
    pub(super) fn may_be(&self, id: &Id) -> bool {
        match self {
            Self::At(_) | Self::Malformed(_) => false,
            Self::Nowhere { group, namespace, name, .. }
            | Self::Unknown { group, namespace, name, .. } => {
                *group == id.group
                    && *name == id.name
                    && (id.namespace.is_empty() || *namespace == id.namespace)
            }
        }
    }
}

/// What of the wanted was seen and is as we left it, for the record.
fn sightings(
    seen: &Observed,
    book: &Book,
    claims: &BTreeMap<Id, Claim>,
    needs: &[(&Target, &Wanted, Need)],
) -> BTreeMap<Id, Applied> {
    let mut sightings = BTreeMap::new();
    for (target, _, need) in needs {
        let known = claims.contains_key(&target.id) || book.applied.contains_key(&target.id);
        let Some(Seen::Present(present)) = seen.live.get(&target.id) else { continue };
        // Somebody else's object of that name, which we could not take hold of, is not recorded.
        let ours = *need == Need::Nothing || present.is_held_by(book);
        if known && ours && present.terminating.is_none() {
            let applied = Applied { version: target.version.clone(), uid: present.uid.clone() };
            sightings.insert(target.id.clone(), applied);
        }
    }
    sightings
}
