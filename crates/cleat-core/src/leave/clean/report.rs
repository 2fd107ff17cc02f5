//! What people are told about a record that was worked off.

use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use cleat_api::leftoverrecord::{Part, condition};

use super::{Fate, Observed, fates, id};
use crate::condition::{Said, Status};
use crate::id::Id;

/// How far it got.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    pub objects: usize,
    pub gone: usize,
    /// What stays, and why.
    pub stays: Vec<(Id, String)>,
    /// What is there of the agent itself, which goes only if somebody asks for it.
    pub agent: Vec<Id>,
    /// What should have gone and has not, and why.
    pub stuck: Vec<(Id, String)>,
}

pub fn report(seen: &Observed) -> Report {
    let (fates, refused) = (fates(seen), &seen.refused);
    let mut report = Report { objects: fates.len(), ..Report::default() };
    for (object, fate) in fates {
        let id = id(&object);
        let said = refused.get(&id).cloned();
        match fate {
            Fate::Gone => report.gone += 1,
            Fate::Stays(_) if object.part == Some(Part::Agent) => report.agent.push(id),
            Fate::Stays(why) => match said {
                // Our mark is still on it, and it would go with the ledger.
                Some(said) => report.stuck.push((id, format!("our mark cannot come off: {said}"))),
                None => report.stays.push((id, why)),
            },
            Fate::Delete => {
                let why = said.unwrap_or_else(|| "it was not deleted".to_string());
                report.stuck.push((id, why));
            }
            Fate::Going(held) if held.is_empty() => {
                report.stuck.push((id, "it is going".to_string()));
            }
            Fate::Going(held) => report.stuck.push((id, format!("held by {}", held.join(", ")))),
            Fate::Unknown(why) => report.stuck.push((id, why)),
        }
    }
    for ledger in &seen.ledgers {
        let target =
            crate::work::ownership::ledger_named(ledger.metadata.name.clone().unwrap_or_default());
        let held = ledger.metadata.finalizers.iter().flatten().cloned().collect::<Vec<_>>();
        if report.stuck.is_empty() || refused.contains_key(&target.id) {
            let why = refused.get(&target.id).cloned();
            let why = why.unwrap_or_else(|| format!("held by {}", held.join(", ")));
            report.stuck.push((target.id, why));
        }
    }
    report
}

/// The same as a condition of the records.
pub fn said(report: &Report) -> Said {
    let kind = condition::CLEANED;
    if report.stuck.is_empty() {
        let message = match report.stays.len() {
            0 => "Everything is gone.".to_string(),
            1 => "Everything is gone but one object, which stays.".to_string(),
            some => format!("Everything is gone but {some} objects, which stay."),
        };
        return Said { kind, status: Status::True, reason: "Cleaned", message };
    }
    let named: Vec<String> =
        report.stuck.iter().map(|(id, why)| format!("{id}: {why}")).take(NAMED).collect();
    let mut message = named.join("; ");
    if report.stuck.len() > NAMED {
        message = format!("{message}; and {} more", report.stuck.len() - NAMED);
    }
    Said { kind, status: Status::False, reason: "ObjectsRemain", message }
}

/// How many objects a condition names.
const NAMED: usize = 20;
