//! What users are told about a policy on a cluster, there and on the hub, and when to look again.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use cleat_api::configurationpolicy::state;
use cleat_api::policy::{PolicySpec, PolicyStatus, TemplateDetail};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use super::adrift::{self, Adrift};
use super::event;
use super::gone;
use super::history::{self, Told};
use super::observed::{Copy, Defined, Live, Marked, Observed, Policy, Standing, TemplateKind};
use super::plan::{hub_side, left, target};
use super::removal::{self, There};
use super::template;
use crate::policy::observed::Kind;
use crate::write::{Action, Plan, Side, Write};

/// How long until something that could not be read is looked at again.
const UNKNOWN_PAUSE: SignedDuration = SignedDuration::from_secs(5);

/// What to tell and when to look again.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    /// Events, then the policy on the cluster, then the one on the hub; empty if nothing is new.
    pub publish: Plan,
    /// `None`: when something changes.
    pub wake: Option<Timestamp>,
}

/// What to say about what was seen, once there is nothing more to do about it now.
pub fn report(seen: &Observed) -> Verdict {
    let retry = seen.troubles.values().map(|trouble| trouble.retry_at).min();
    let blind = matches!(seen.replica, Copy::Unknown(_))
        || matches!(seen.local, Copy::Unknown(_))
        || seen.states.values().any(|one| matches!(one, Standing::Unknown(_)))
        || seen.live.values().any(|one| matches!(one, Live::Unknown(_) | Live::Refused(_)))
        || seen.kinds.values().any(|one| matches!(one, TemplateKind::Unknown(_)))
        || seen.resources.values().any(|one| matches!(one, Kind::Unknown(_)))
        || seen.marked.is_err()
        || !gone::is_seen(seen)
        || seen.leaving.is_err()
        || matches!(seen.defined, Defined::Unknown(_));
    let look = blind.then(|| seen.now.checked_add(UNKNOWN_PAUSE).unwrap_or(seen.now));
    let adrift = match (&seen.replica, seen.local.policy()) {
        (Copy::Absent, Some(local)) => adrift::of(seen, local),
        _ => Adrift::No,
    };
    let end = match adrift {
        Adrift::Until(end) => Some(end),
        Adrift::No | Adrift::Kept => None,
    };
    let wake = [retry, look, end].into_iter().flatten().min();
    let Some(local) = seen.local.policy() else {
        let publish = seen.replica.policy().and_then(|replica| {
            let mut status = extras(seen, replica).unwrap_or_default();
            status.extend(orphaned(seen, replica));
            (!status.is_empty()).then(|| vec![vec![said(seen, replica, hub_side(seen), status)]])
        });
        return Verdict { publish: publish.unwrap_or_default(), wake };
    };
    let mut publish: Plan = Vec::new();
    let mut events = Vec::new();
    if end.is_some() && seen.vanished.is_some_and(|vanished| !vanished.told) {
        events.push(event::vanished(seen, local, seen.now));
    }
    let mut details = Vec::new();
    let going = local.deleting || seen.replica.policy().is_some_and(|replica| replica.deleting);
    for (index, judged) in template::judged(seen, local).into_iter().enumerate() {
        let before = detail_of(&local.status, &judged.name);
        let mut told = known(seen, local, index, &judged.name);
        let last = history::merged(told.clone(), before);
        let said = judged.say.filter(|_| !going);
        if let Some(message) =
            said.filter(|message| last.first().map(|one| &one.message) != Some(message))
        {
            // Names of events are moments, so no two of one pass may be of the same.
            let offset = SignedDuration::from_nanos(i64::try_from(events.len()).unwrap_or(0));
            let at = seen.now.checked_add(offset).unwrap_or(seen.now);
            events.push(event::about(seen, local, &judged.name, &message, at));
            let event = history::event_name(&seen.name, at);
            told.push(Told { at, message, event });
        }
        details.push(history::detail(&judged.name, history::merged(told, before)));
    }
    details.extend(leftovers(seen, &local.spec, &local.status));
    if !events.is_empty() {
        publish.push(events);
    }
    let status = PolicyStatus {
        compliant: overall(&details, local.status.compliant.as_deref()),
        details,
        ..PolicyStatus::default()
    };
    publish.extend(published(seen, local, &status).map(|action| [action].into()));
    Verdict { publish, wake }
}

/// What is said of templates that left the policy and do not go.
fn leftovers(seen: &Observed, spec: &PolicySpec, before: &PolicyStatus) -> Vec<TemplateDetail> {
    let stuck = left(seen, spec).flatten().filter(|one| one.deleting);
    stuck.map(|one| going(seen, one, before)).collect()
}

fn going(seen: &Observed, one: &Marked, before: &PolicyStatus) -> TemplateDetail {
    let name = &one.target.id.name;
    let mut told = seen.told.get(name).cloned().unwrap_or_default();
    told.extend(one.told.iter().cloned());
    history::detail(name, history::merged(told, detail_of(before, name)))
}

/// What the hub is told while the copy is gone and templates of it are not.
fn orphaned(seen: &Observed, replica: &Policy) -> Map<String, Value> {
    let stuck = seen.marked.iter().flatten().filter(|one| one.deleting);
    let details: Vec<_> = stuck.map(|one| going(seen, one, &replica.status)).collect();
    let mut fields = Map::new();
    if !details.is_empty() && details != replica.status.details {
        let compliant = overall(&details, replica.status.compliant.as_deref());
        fields.insert("compliant".to_owned(), json!(compliant));
        fields.insert("details".to_owned(), json!(details));
    }
    fields
}

fn detail_of<'a>(status: &'a PolicyStatus, name: &str) -> Option<&'a TemplateDetail> {
    status.details.iter().find(|detail| detail.template_meta.name == name)
}

/// What events and the template itself say.
fn known(seen: &Observed, local: &Policy, index: usize, name: &str) -> Vec<Told> {
    let mut told = seen.told.get(name).cloned().unwrap_or_default();
    let id = local.spec.policy_templates.get(index).and_then(template::id);
    // What is on its way out may have been another copy's, and still is what stands in the way.
    if let Some(Live::Present(live)) = id.and_then(|id| seen.live.get(&id))
        && (super::desired::owner_uid(live) == Some(local.uid.as_str())
            || template::is_deleting(live))
    {
        told.extend(history::of_object(&seen.name, live));
    }
    told
}

/// What the templates amount to; as before while nobody can tell.
fn overall(details: &[TemplateDetail], before: Option<&str>) -> Option<String> {
    let any = |state: &str| details.iter().any(|detail| detail.compliant.as_deref() == Some(state));
    if any(state::NONCOMPLIANT) {
        return Some(state::NONCOMPLIANT.to_owned());
    }
    if any(state::PENDING) {
        return Some(state::PENDING.to_owned());
    }
    let all = details.iter().all(|detail| detail.compliant.as_deref() == Some(state::COMPLIANT));
    match all && !details.is_empty() {
        true => Some(state::COMPLIANT.to_owned()),
        false => before.map(ToOwned::to_owned),
    }
}

/// Writes a status wherever it is not what is there.
fn published<'a>(
    seen: &'a Observed,
    local: &'a Policy,
    status: &'a PolicyStatus,
) -> impl Iterator<Item = Action> + 'a {
    let replica = seen.replica.policy().filter(|_| !seen.place.own_hub);
    let both = [Some((local, Side::Cluster)), replica.map(|replica| (replica, hub_side(seen)))];
    both.into_iter().flatten().filter_map(move |(policy, side)| {
        // On a cluster that is its own hub, what the hub says there of a root is not ours.
        let same =
            policy.status.compliant == status.compliant && policy.status.details == status.details;
        let is_hub = seen.place.own_hub || side == Side::Hub;
        let mut fields = if is_hub { extras(seen, policy) } else { None };
        if !same {
            let fields = fields.get_or_insert_default();
            fields.insert("compliant".to_owned(), json!(status.compliant));
            fields.insert("details".to_owned(), json!(status.details));
        }
        Some(said(seen, policy, side, fields?))
    })
}

/// What only the hub is told, if it does not know: what the templates are and what they made, and how
/// far their end is.
fn extras(seen: &Observed, replica: &Policy) -> Option<Map<String, Value>> {
    let mut fields = Map::new();
    let before = &replica.status;
    if replica.deleting {
        let removal =
            removal::removal(seen, replica).filter(|one| before.removal.as_ref() != Some(one));
        fields.extend(removal.map(|removal| ("removal".to_owned(), json!(removal))));
    } else if let Some(There { objects, copies, untold }) = removal::there(seen) {
        if objects != before.objects {
            fields.insert("objects".to_owned(), json!(objects));
        }
        if copies != before.copies {
            fields.insert("copies".to_owned(), json!(copies));
        }
        if untold != before.untold {
            fields.insert("untold".to_owned(), json!(untold));
        }
    }
    (!fields.is_empty()).then_some(fields)
}

fn said(seen: &Observed, policy: &Policy, side: Side, status: Map<String, Value>) -> Action {
    let patch = json!({
        "metadata": { "uid": policy.uid, "resourceVersion": policy.resource_version },
        "status": status,
    });
    Action { side, target: target(seen, side), write: Write::MergeStatus(patch) }
}
