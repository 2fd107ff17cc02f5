//! What a deleting work says: how much remains, what the first of it is, and what each waits for.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use cleat_api::manifestwork::{ManifestWorkStatus, Removal, condition as kinds, reason};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::Value;

use super::{Conditions, Found};
use crate::id::Id;
use crate::protection::denial::PROTECTED_BY;
use crate::work::contents::is_namespace;
use crate::work::observed::{Content, Ledger, Observed, Present, Seen, Work};
use crate::work::ownership::ledger_target;
use crate::work::retire::{self, Fate, Unmarked};
use crate::work::trouble::{Trouble, TroubleKind, shortened};

/// How many objects are named.
const NAMED: usize = 5;

/// The status of a deleting work: all that was said before, and how the deletion stands.
pub(super) fn status(seen: &Observed, work: &Work) -> Option<ManifestWorkStatus> {
    let unwritten = super::removal::unwritten(seen, work);
    let (message, held) = match &seen.ledger {
        Ledger::Absent if unwritten.is_some() => (BEGUN.to_string(), false),
        Ledger::Absent | Ledger::NotYet => return None,
        Ledger::Unknown(why) => (format!("{BEGUN}; the cluster cannot be asked: {why}"), false),
        Ledger::Present(book) => {
            let fates = retire::fates(seen, book, book.ids().into_iter());
            (message(seen, &fates), is_held(seen, &fates))
        }
    };
    let why = if held { PROTECTED_BY } else { reason::WORK_DELETING };
    let old = &work.status.conditions;
    let mut conditions = Conditions { old, now: seen.now, generation: work.generation };
    let found = Found::new(kinds::DELETING, "True", why, message);
    // Everything leaves now, and this says so of all of it.
    let ours = [kinds::DELETING, kinds::REMOVED];
    let others = old.iter().filter(|condition| !ours.contains(&&*condition.type_));
    let mut conditions: Vec<Condition> = others.cloned().chain(conditions.set(found)).collect();
    conditions.sort_by(|a, b| a.type_.cmp(&b.type_));
    let removal = match &seen.ledger {
        Ledger::Present(book) if seen.leaving.is_some() => {
            Some(super::removal::removal(seen, work, book))
        }
        Ledger::Absent => {
            let before = work.status.removal.clone().unwrap_or_default();
            Some(Removal { blocked: unwritten.into_iter().collect(), ..before })
        }
        _ => work.status.removal.clone(),
    };
    Some(ManifestWorkStatus { conditions, removal, ..work.status.clone() })
}

/// Whether all that could go now is protected: then somebody else must act, here or elsewhere.
fn is_held(seen: &Observed, fates: &BTreeMap<&Id, Fate>) -> bool {
    let turn = retire::turn(fates);
    let protected = retire::protected(seen, fates);
    let mut going = fates.iter().filter(|(id, fate)| {
        fate.remains() && (Some(retire::rank(id)) == turn || retire::is_awaited(&protected, id))
    });
    !protected.is_empty() && going.all(|(id, _)| protected.contains_key(*id))
}

const BEGUN: &str = "ManifestWork is being deleted";

fn message(seen: &Observed, fates: &BTreeMap<&Id, Fate>) -> String {
    let turn = retire::turn(fates);
    let protected = retire::protected(seen, fates);
    let mut first = Vec::new();
    let mut queued = 0_usize;
    let mut unsettled = 0_usize;
    for (id, fate) in fates {
        if fate.is_settled() {
            continue;
        }
        unsettled += 1;
        // What waits for its turn has no reason of its own.
        let waits = Some(retire::rank(id)) != turn && !retire::is_awaited(&protected, id);
        if fate.remains() && waits {
            queued += 1;
            continue;
        }
        first.push(format!("{id} ({})", waits_for(seen, id, fate)));
    }
    let ledger = ledger_target(&seen.agent.hub_hash, &seen.name).id;
    let trouble = seen.troubles.get(&ledger).filter(|trouble| trouble.kind != TroubleKind::Stale);
    if let Some(trouble) = trouble {
        return format!("{BEGUN}; its AppliedManifestWork cannot be written: {}", trouble.message);
    }
    if unsettled == 0 {
        return BEGUN.to_string();
    }
    let more = first.len().saturating_sub(NAMED);
    first.truncate(NAMED);
    let mut message = match unsettled {
        1 => format!("{BEGUN}; 1 object remains: {}", first.join("; ")),
        many => format!("{BEGUN}; {many} objects remain: {}", first.join("; ")),
    };
    if more > 0 {
        message.push_str(&format!("; and {more} more"));
    }
    if queued > 0 {
        message.push_str(&format!("; {queued} others go after these"));
    }
    message
}

pub(super) fn waits_for(seen: &Observed, id: &Id, fate: &Fate) -> String {
    let trouble = seen.troubles.get(id).filter(|trouble| trouble.kind != TroubleKind::Stale);
    match (fate, trouble) {
        (Fate::Terminating(finalizers), _) if finalizers.is_empty() => match held_up(seen, id) {
            Some(why) => format!("terminating: {why}"),
            None => "terminating".into(),
        },
        (Fate::Terminating(finalizers), _) => match finalizers.as_slice() {
            [one] => format!("waiting for finalizer {one}"),
            many => format!("waiting for finalizers {}", many.join(", ")),
        },
        (Fate::Unknown(why), _) => format!("cannot be seen: {why}"),
        (Fate::Undecided(why), _) => format!("neither deleted nor kept: {why}"),
        (_, Some(trouble)) => said(trouble),
        (Fate::Unmark { why: Unmarked::Kept(field), .. }, None) => {
            format!("kept by {field}; mark to be taken off")
        }
        (Fate::Unmark { why: Unmarked::HoldsKept, .. }, None) => {
            "kept because it holds kept objects; mark to be taken off".into()
        }
        (Fate::Unmark { why: Unmarked::HoldsForeign, .. }, None) => {
            "kept because it holds what is not ours; mark to be taken off".into()
        }
        (Fate::Unmark { .. }, None) => "kept; mark to be taken off".into(),
        (Fate::Delete { .. } | Fate::Settled(_), None) => "to be deleted".into(),
    }
}

/// What a namespace that is going waits for: it says so in its status, and has no finalizers in its
/// metadata.
pub(super) fn held_up(seen: &Observed, id: &Id) -> Option<String> {
    let Some(Seen::Present(Present { content: Content::Read(object), .. })) = seen.live.get(id)
    else {
        return None;
    };
    if !is_namespace(id) {
        return None;
    }
    let text = |one: &Value, field| one.get(field).and_then(Value::as_str).map(String::from);
    let tells = |one: &&Value| {
        let kind = text(one, "type").unwrap_or_default();
        let of_deletion = kind.starts_with("NamespaceDeletion")
            || ["NamespaceContentRemaining", "NamespaceFinalizersRemaining"].contains(&&*kind);
        of_deletion && text(one, "status").is_some_and(|status| status == "True")
    };
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array)?;
    let messages = conditions.iter().filter(tells).filter_map(|one| text(one, "message"));
    let messages: Vec<String> = messages.filter(|message| !message.is_empty()).collect();
    (!messages.is_empty()).then(|| shortened(&messages.join("; ")))
}

/// What a server said; of a CriticalService's refusal only that one's words: which webhook it was is
/// of no interest.
pub(super) fn said(trouble: &Trouble) -> String {
    let message = &trouble.message;
    let begin = trouble.protected().and_then(|_| message.find(PROTECTED_BY)).unwrap_or_default();
    message.get(begin..).unwrap_or_default().to_string()
}
