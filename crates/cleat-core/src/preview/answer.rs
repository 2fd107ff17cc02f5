//! One cluster's answer: verdicts, effects and predicted blockers.

use alloc::borrow::ToOwned as _;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec;
use alloc::vec::Vec;

use cleat_api::removalpreview::{
    MOST_OBJECTS, PreviewVerdict, PreviewedObject, RemovalPreviewStatus,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::digest::{incarnations, weight};
use super::unlisted::{Unlisted, unlisted};
use crate::id::Id;
use crate::number::number;
use crate::work::contents::Found;
use crate::work::outlook::{Foreseen, Prospect};

/// How many samples are named.
const NAMED: usize = 3;

/// How many objects are named of which nobody can see what goes along.
const MOST_UNSEEN: usize = 20;

/// What came of a write that was only tried.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Tried {
    #[default]
    NotTried,
    /// It would be accepted, and then wait for these finalizers.
    Accepted {
        finalizers: Vec<String>,
    },
    Refused(String),
    Unknown(String),
}

/// What was found out about an object that would be deleted or written.
#[derive(Clone, Debug)]
pub struct Inquiry {
    pub tried: Tried,
    /// What is to be said of finalizers that nobody would take off, by name.
    pub unserved: BTreeMap<String, String>,
    /// The same of objects that go along with it: those in it, or of its kind.
    pub unserved_along: BTreeMap<Id, BTreeMap<String, String>>,
    /// Where it would be another than it is, if it is there and would be written.
    pub changes: Vec<String>,
    /// What is in it, if it is a namespace.
    pub inside: Option<Result<Vec<Found>, String>>,
    /// The objects of it, if it defines a kind.
    pub instances: Option<Result<Kindred, String>>,
    /// What the collector would remove after it; an error where that cannot be seen.
    pub owned: Result<Vec<Id>, String>,
}

/// The objects of a kind that goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kindred {
    pub count: u64,
    /// Which they are, as far as they were listed.
    pub uids: Vec<String>,
}

impl Default for Inquiry {
    fn default() -> Self {
        Self {
            tried: Tried::NotTried,
            unserved: BTreeMap::new(),
            unserved_along: BTreeMap::new(),
            changes: Vec::new(),
            inside: None,
            instances: None,
            owned: Ok(Vec::new()),
        }
    }
}

/// The objects of one work or policy. `planned` is everything that the same removal deletes, of any.
pub fn objects(
    source: &str,
    foreseen: Vec<Foreseen>,
    inquiries: &BTreeMap<Id, Inquiry>,
    planned: &BTreeSet<Id>,
) -> Vec<PreviewedObject> {
    let nothing = Inquiry::default();
    let previewed = |one: Foreseen| {
        let inquiry = inquiries.get(&one.id).unwrap_or(&nothing);
        let Effects { along, which, followed, told } = match one.prospect {
            Prospect::Delete | Prospect::Recreate => effects(inquiry, planned),
            Prospect::Change | Prospect::Adopt => {
                Effects { told: changed(&inquiry.changes), ..Effects::default() }
            }
            _ => Effects::default(),
        };
        let blockers = match one.prospect {
            Prospect::Delete
            | Prospect::Recreate
            | Prospect::Create
            | Prospect::Change
            | Prospect::Adopt => blockers(&one, inquiry),
            _ => Vec::new(),
        };
        let Foreseen { id, version, uid, prospect, why, decided_by, adopted, finalizers: _ } = one;
        PreviewedObject {
            group: id.group,
            version,
            resource: id.resource,
            namespace: id.namespace,
            name: id.name,
            uid,
            source: source.to_owned(),
            verdict: prospect.into(),
            why,
            decided_by: decided_by.to_owned(),
            adopted,
            takes_along: i64::try_from(along).unwrap_or(i64::MAX),
            along_digest: which,
            followed: i64::try_from(followed).unwrap_or(i64::MAX),
            effects: told,
            blockers,
        }
    };
    foreseen.into_iter().map(previewed).collect()
}

/// Of which objects nobody can see what goes along, and why. It is not nothing, so an answer with
/// any is not whole.
pub fn unseen(inquiries: &BTreeMap<Id, Inquiry>) -> Vec<String> {
    let mut lines = BTreeSet::new();
    let mut ids = BTreeSet::new();
    for (id, inquiry) in inquiries {
        let inside = inquiry.inside.as_ref().and_then(|inside| inside.as_ref().err());
        let instances = inquiry.instances.as_ref().and_then(|count| count.as_ref().err());
        for why in [inside, instances, inquiry.owned.as_ref().err()].into_iter().flatten() {
            ids.insert(id);
            if ids.len() <= MOST_UNSEEN {
                lines.insert(format!("what goes along with {id} cannot be seen: {why}"));
            }
        }
    }
    let mut lines: Vec<String> = lines.into_iter().collect();
    let more = ids.len().saturating_sub(MOST_UNSEEN);
    if more > 0 {
        let others = number(more, "other object", "other objects");
        lines.push(format!("what goes along with {others} cannot be seen either"));
    }
    lines
}

/// What people are told of each prospect, and back.
macro_rules! verdicts {
    ($($name:ident)*) => {
        impl From<Prospect> for PreviewVerdict {
            fn from(prospect: Prospect) -> Self {
                match prospect {
                    $(Prospect::$name => Self::$name,)*
                }
            }
        }

        impl From<PreviewVerdict> for Prospect {
            fn from(verdict: PreviewVerdict) -> Self {
                match verdict {
                    $(PreviewVerdict::$name => Self::$name,)*
                }
            }
        }
    };
}

verdicts! {
    Delete Recreate Create Change Adopt Orphan Keep StripMarks Gone Stuck Unchanged Unknown
}

/// What goes with an object.
#[derive(Default)]
struct Effects {
    /// How much goes along that nobody listed.
    along: u64,
    /// Stands for which objects these are.
    which: String,
    /// How much the collector removes that neither anybody listed nor goes along with anything.
    followed: usize,
    /// All of it in words.
    told: Vec<String>,
}

fn effects(inquiry: &Inquiry, planned: &BTreeSet<Id>) -> Effects {
    let (mut along, mut followed, mut which) = (0, 0, Vec::new());
    let mut effects = Vec::new();
    match &inquiry.inside {
        Some(Ok(found)) => {
            let Unlisted { roots, followers } = unlisted(found, planned);
            let ids = |all: &[&'_ Found]| all.iter().map(|one| one.id.clone()).collect::<Vec<_>>();
            if !roots.is_empty() {
                along += roots.len() as u64;
                which.extend(roots.iter().map(|one| one.uid.as_str()));
                effects.push(format!("takes along {} that nobody lists", counted(&ids(&roots))));
            }
            if !followers.is_empty() {
                followed += followers.len();
                let told = counted(&ids(&followers));
                effects.push(format!("takes along {told} that others in it own"));
            }
        }
        Some(Err(why)) => effects.push(format!("what is in it cannot be seen: {why}")),
        None => {}
    }
    match &inquiry.instances {
        Some(Ok(Kindred { count, uids })) if *count > 0 => {
            along += count;
            which.extend(uids.iter().map(|uid| uid.as_str()));
            effects.push(match count {
                1 => "takes along the one object of this kind".to_owned(),
                count => format!("takes along all {count} objects of this kind"),
            });
        }
        Some(Ok(_)) | None => {}
        Some(Err(why)) => effects.push(format!("its objects cannot be counted: {why}")),
    }
    if let Err(why) = &inquiry.owned {
        effects.push(format!("what it owns cannot be seen: {why}"));
    }
    let owned = inquiry.owned.iter().flatten();
    let mut owned: Vec<Id> = owned.filter(|id| !planned.contains(*id)).cloned().collect();
    owned.sort();
    if !owned.is_empty() {
        effects.push(format!("is followed by {} that it owns", counted(&owned)));
    }
    followed += owned.iter().filter(|id| !goes_along(id, planned)).count();
    Effects { along, which: incarnations(which), followed, told: effects }
}

/// Whether an object is counted already with its namespace or its definition.
fn goes_along(id: &Id, planned: &BTreeSet<Id>) -> bool {
    let holder = |group: &str, resource: &str, name: String| {
        let (group, resource) = (group.to_owned(), resource.to_owned());
        planned.contains(&Id { group, resource, namespace: String::new(), name })
    };
    let definition = format!("{}.{}", id.resource, id.group);
    holder("", "namespaces", id.namespace.clone())
        || holder("apiextensions.k8s.io", "customresourcedefinitions", definition)
}

/// `changes data.prices, spec.replicas and 2 more`.
fn changed(changes: &[String]) -> Vec<String> {
    if changes.is_empty() {
        return Vec::new();
    }
    let some: Vec<&str> = changes.iter().take(NAMED).map(|one| one.as_str()).collect();
    let more = match changes.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    vec![format!("changes {}{more}", some.join(", "))]
}

/// `2 objects (pods a/b, pods a/c)`.
fn counted(ids: &[Id]) -> String {
    let some: Vec<String> = ids.iter().take(NAMED).map(|id| id.to_string()).collect();
    let dots = if ids.len() > NAMED { ", …" } else { "" };
    let objects = number(ids.len(), "object", "objects");
    format!("{objects} ({}{dots})", some.join(", "))
}

fn blockers(one: &Foreseen, inquiry: &Inquiry) -> Vec<String> {
    let held = |finalizers: &[String]| -> Vec<String> {
        let told = |finalizer: &String| match inquiry.unserved.get(finalizer) {
            Some(told) => told.clone(),
            None => format!("waits for finalizer {finalizer}"),
        };
        finalizers.iter().map(told).collect()
    };
    let mut blockers = match &inquiry.tried {
        Tried::Accepted { finalizers } => held(finalizers),
        Tried::Refused(message) => vec![format!("would be refused: {message}")],
        Tried::Unknown(why) => vec![format!("whether it would be accepted is not known: {why}")],
        Tried::NotTried => held(&one.finalizers),
    };
    blockers.extend(held_along(&inquiry.unserved_along));
    blockers
}

/// It is not gone before everything that goes along is.
fn held_along(unserved: &BTreeMap<Id, BTreeMap<String, String>>) -> Vec<String> {
    let told = |(id, finalizers): (&Id, &BTreeMap<String, String>)| -> Vec<String> {
        finalizers.values().map(|line| format!("{id} {line}")).collect()
    };
    let mut lines: Vec<String> = unserved.iter().take(NAMED).flat_map(told).collect();
    let more = unserved.len().saturating_sub(NAMED);
    if more > 0 {
        let others = number(more, "other object", "other objects");
        lines.push(format!("{others} that would go along could not go either"));
    }
    lines
}

/// The answer as it is written down: bounded, and in an order that does not change.
pub fn listed(
    mut objects: Vec<PreviewedObject>,
    problems: Vec<String>,
    notes: Vec<String>,
    now: Timestamp,
) -> RemovalPreviewStatus {
    objects.sort_by(|a, b| place(a).cmp(&place(b)));
    let words = problems.iter().chain(&notes).map(|line| line.len()).sum();
    let fits = fitting(&objects, MOST_BYTES.saturating_sub(words)).min(MOST_OBJECTS);
    let more = objects.len().saturating_sub(fits);
    // What is cut off counts all the same.
    let digest = if more > 0 { weight(&objects) } else { String::new() };
    objects.truncate(fits);
    RemovalPreviewStatus {
        answered_at: at(now),
        problems,
        notes,
        objects,
        more: i64::try_from(more).unwrap_or(i64::MAX),
        digest,
    }
}

/// Servers take no object that is much longer.
const MOST_BYTES: usize = 900 << 10;

/// How many of the first objects are written down in so many bytes.
fn fitting(objects: &[PreviewedObject], mut room: usize) -> usize {
    let written = |one: &PreviewedObject| serde_json::to_string(one).map_or(0, |text| text.len());
    for (index, one) in objects.iter().enumerate() {
        match room.checked_sub(written(one)) {
            Some(left) => room = left,
            None => return index,
        }
    }
    objects.len()
}

/// What is written down of an answer that the hub did not take.
pub fn not_taken(refusal: &str, now: Timestamp) -> RemovalPreviewStatus {
    let short: String = refusal.chars().take(MOST_REFUSAL).collect();
    RemovalPreviewStatus {
        answered_at: at(now),
        problems: vec![format!("the hub did not take the answer: {short}")],
        ..RemovalPreviewStatus::default()
    }
}

/// How much of a refusal is told.
const MOST_REFUSAL: usize = 300;

fn at(now: Timestamp) -> Option<Time> {
    Some(Time(Timestamp::from_second(now.as_second()).unwrap_or(now)))
}

/// What is done something about comes first.
pub(super) fn place(one: &PreviewedObject) -> (PreviewVerdict, &str, &str, &str, &str, &str) {
    (one.verdict, &one.source, &one.group, &one.resource, &one.namespace, &one.name)
}
