//! What people are told about a record that was worked off.

use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use cleat_api::leftoverrecord::{LeftoverRecord, Part, condition};
use serde_json::Value;

use super::{Fate, Look, Observed, fates, id};
use crate::condition::{Said, Status, find};
use crate::id::Id;
use crate::leave::parts::Remaining;

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

impl Report {
    /// What is there of an agent is not that of the records, so nobody is to take it away for them.
    pub fn disown_agent(&mut self, why: &str) {
        self.stays.extend(self.agent.drain(..).map(|id| (id, why.to_string())));
    }

    /// The agent was to go as well, and this is what the server still has of it.
    pub fn take_agent_away(&mut self, remaining: Vec<Remaining>) {
        let is_gone = |id: &Id| remaining.iter().all(|one| one.id != *id);
        self.gone += self.agent.iter().filter(|id| is_gone(id)).count();
        self.agent.clear();
        for Remaining { id, why, stays } in remaining {
            if stays { self.stays.push((id, why)) } else { self.stuck.push((id, why)) }
        }
    }
}

/// How much there is yet to do, in a number that falls with whatever is done: what is there, what of it
/// was not accepted for deletion, and who holds it.
pub fn to_do(seen: &Observed) -> usize {
    let of = |look: &Look| match look {
        Look::Absent => 0,
        Look::Unknown(_) => 1,
        Look::Present(live) => {
            let owners = live.pointer("/metadata/ownerReferences").and_then(Value::as_array);
            let asked = live.pointer("/metadata/deletionTimestamp").is_some();
            1 + usize::from(!asked) + owners.map(Vec::len).unwrap_or_default()
        }
    };
    seen.live.values().map(of).sum::<usize>() + seen.ledgers.len()
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
        let stays = match report.stays.len() {
            0 => None,
            1 => Some("one object, which stays".to_string()),
            some => Some(format!("{some} objects, which stay")),
        };
        let agent: Vec<String> = report.agent.iter().map(|id| id.to_string()).collect();
        let remains = (!agent.is_empty()).then(|| format!("the agent's own: {}", agent.join(", ")));
        let but: Vec<String> = stays.into_iter().chain(remains).collect();
        let message = match but.as_slice() {
            [] => "Everything is gone.".to_string(),
            but => format!("Everything is gone but {}.", but.join(", and ")),
        };
        if agent.is_empty() {
            return Said { kind, status: Status::True, reason: "Cleaned", message };
        }
        let message = format!(
            "{message} `cleat leftovers clean --agent` takes the agent away; whoever wants it to stay \
             deletes this record."
        );
        return Said { kind, status: Status::False, reason: AGENT_REMAINS, message };
    }
    let named: Vec<String> =
        report.stuck.iter().map(|(id, why)| format!("{id}: {why}")).take(NAMED).collect();
    let mut message = named.join("; ");
    if report.stuck.len() > NAMED {
        message = format!("{message}; and {} more", report.stuck.len() - NAMED);
    }
    Said { kind, status: Status::False, reason: "ObjectsRemain", message }
}

/// The reason of a record of which nothing but the agent is left.
const AGENT_REMAINS: &str = "AgentRemains";

/// Whether a record was worked off but perhaps for the agent: what stayed then stayed for a reason.
pub(super) fn is_settled(record: &LeftoverRecord) -> bool {
    let conditions = record.status.as_ref().map(|status| status.conditions.as_slice());
    find(conditions.unwrap_or_default(), condition::CLEANED)
        .is_some_and(|said| said.status == "True" || said.reason == AGENT_REMAINS)
}

/// How many objects a condition names.
const NAMED: usize = 20;

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn what_went_of_the_agent_was_not_counted() {
        let id = |name: &str| Id { resource: "secrets".into(), name: name.into(), ..Id::default() };
        let remaining = |name: &str, stays| Remaining { id: id(name), why: "so".into(), stays };
        let agent = ["gone", "shared", "held"].map(id).to_vec();
        let mut report = Report { objects: 5, gone: 2, agent, ..Report::default() };
        report.take_agent_away(vec![remaining("shared", true), remaining("held", false)]);
        assert_eq!((report.gone, report.agent.len()), (3, 0));
        assert_eq!(report.stays, [(id("shared"), "so".into())]);
        assert_eq!(report.stuck, [(id("held"), "so".into())]);
    }

    #[test]
    fn a_record_said_that_all_was_gone_while_the_agent_was_there() {
        let id = |name: &str| Id { resource: "secrets".into(), name: name.into(), ..Id::default() };
        let (stays, agent) = ((id("kept"), String::new()), id("agent"));
        for (staying, agents, expected) in [
            (0, 0, "Everything is gone."),
            (1, 0, "Everything is gone but one object, which stays."),
            (
                0,
                1,
                "Everything is gone but the agent's own: secrets agent. `cleat leftovers clean \
                 --agent` takes the agent away; whoever wants it to stay deletes this record.",
            ),
            (
                2,
                1,
                "Everything is gone but 2 objects, which stay, and the agent's own: secrets agent. \
                 `cleat leftovers clean --agent` takes the agent away; whoever wants it to stay \
                 deletes this record.",
            ),
        ] {
            let report = Report {
                stays: vec![stays.clone(); staying],
                agent: vec![agent.clone(); agents],
                ..Report::default()
            };
            let (status, reason) = match agents {
                0 => (Status::True, "Cleaned"),
                _ => (Status::False, AGENT_REMAINS),
            };
            let said = said(&report);
            assert_eq!((said.status, said.reason, &*said.message), (status, reason, expected));
        }
    }

    #[test]
    fn a_record_ends_though_the_agent_of_another_hub_is_where_its_own_was() {
        let id = Id { resource: "secrets".into(), name: "agent".into(), ..Id::default() };
        let mut report = Report { agent: vec![id.clone()], ..Report::default() };
        report.disown_agent("it is another's");
        assert_eq!(report.stays, [(id, "it is another's".into())]);
        assert_eq!(said(&report).status, Status::True);
    }
}
