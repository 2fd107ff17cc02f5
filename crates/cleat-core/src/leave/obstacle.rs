//! What stands in the way of a leave: the condition `UnjoinFailed`.
//!
//! It is true while something will not go on by itself soon, and never ends the leave. What may be
//! over in a moment, such as an answer that was lost, is in doubt first: people act on what is true.

use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use cleat_api::managedcluster::{condition as kind, reason};
use cleat_api::manifestwork::BlockedObject;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::carried::{Carried, Kind};
use super::finish;
use super::hub::{Observed, Way, is_finishing, way};
use super::report::carried;
use crate::condition::{self, Said, Status};
use crate::lease::Pulse;

/// How long what nobody refused may take before it counts as stuck.
pub(super) const PATIENCE: SignedDuration = SignedDuration::from_secs(30);
/// How long what may be over in a moment has to last.
const DOUBT: SignedDuration = SignedDuration::from_secs(10);
/// How many things are named.
const NAMED: usize = 20;

struct Obstacle {
    reason: &'static str,
    message: String,
    /// It may be over in a moment.
    doubtful: bool,
}

/// What to say of what stands in the way. `failures` is what just did not work.
pub(super) fn said(seen: &Observed, failures: &[String]) -> Option<Said> {
    let conditions = seen.status().conditions;
    let before = condition::find(&conditions, kind::UNJOIN_FAILED);
    let kind = kind::UNJOIN_FAILED;
    let Some(Obstacle { reason, message, doubtful }) = obstacle(seen, failures) else {
        let message = "What stood in the way is gone.".to_string();
        let (status, reason) = (Status::False, reason::UNJOIN_GOES_ON);
        return before.map(|_| Said { kind, status, reason, message });
    };
    let status = match before {
        _ if !doubtful => Status::True,
        // What was true is not less so because something else did not work.
        Some(before) if before.status == "True" && before.reason != reason => return None,
        Some(before) if before.status == "True" => Status::True,
        Some(before) if before.status == "Unknown" && has_lasted(seen, before) => Status::True,
        Some(_) | None => Status::Unknown,
    };
    Some(Said { kind, status, reason, message })
}

fn has_lasted(seen: &Observed, before: &Condition) -> bool {
    is_old(seen, before.last_transition_time.0, DOUBT)
}

fn is_old(seen: &Observed, since: Timestamp, patience: SignedDuration) -> bool {
    seen.now.duration_since(since) >= patience
}

/// Why it does not go on by itself, if so: the surest first.
fn obstacle(seen: &Observed, failures: &[String]) -> Option<Obstacle> {
    let sure = |(reason, message)| Obstacle { reason, message, doubtful: false };
    let doubtful = |message| Obstacle { reason: reason::ERROR, message, doubtful: true };
    unreachable(seen)
        .or_else(|| stuck(seen))
        .or_else(|| unfinished(seen))
        .map(sure)
        .or_else(|| unanswered(seen))
        .or_else(|| unseen(seen, failures).map(doubtful))
}

fn needs_agent(seen: &Observed) -> bool {
    matches!(way(seen), Way::Telling | Way::WithAgent) && !seen.is_released()
}

fn unreachable(seen: &Observed) -> Option<(&'static str, String)> {
    if !needs_agent(seen) || seen.pulse() != Pulse::Stopped {
        return None;
    }
    let name = seen.name();
    let since = seen.silent_since().map(|since| format!(" since {since:.0}")).unwrap_or_default();
    let message = format!(
        "The cluster is unreachable{since}, and what is not seen gone is not gone. It goes on when \
         the cluster is back; if its certificate has expired by then, after `cleat join {name} \
         --again` there. If it never will be: `cleat unjoin {name} --cluster-destroyed`."
    );
    Some((reason::CLUSTER_UNREACHABLE, message))
}

/// What was carried there and does not go.
fn stuck(seen: &Observed) -> Option<(&'static str, String)> {
    let way = way(seen);
    let mut stuck: Vec<String> = Vec::new();
    for one in carried(seen) {
        let name = format!("{} {}", one.kind.as_str(), one.name);
        let held = || format!("{name}: held by {}", one.finalizers.join(", "));
        // Nobody but others holds what agent and hub have let go of.
        let let_go = one.deleting && !one.is_held() && !one.is_with_agent();
        if one.is_others() || (way == Way::WithAgent && let_go) {
            let old = one.since.is_some_and(|since| is_old(seen, since, PATIENCE));
            stuck.extend((old && !one.finalizers.is_empty()).then(held));
        } else if way == Way::WithAgent {
            let blocks = one.blocked.iter().filter(|block| {
                let old = |since: Timestamp| is_old(seen, since, PATIENCE);
                block.refused || block.since.as_ref().is_some_and(|since| old(since.0))
            });
            stuck.extend(blocks.map(|block| named(one, block)));
            stuck.extend(unsaid(seen, one).map(|why| format!("{name}: {why}")));
        } else if one.deleting && !one.finalizers.is_empty() {
            stuck.push(held());
        }
    }
    if stuck.is_empty() || matches!(way, Way::WithoutAgent(_)) && ours_alone(seen) {
        return None;
    }
    stuck.sort();
    let more = stuck.len().saturating_sub(NAMED);
    stuck.truncate(NAMED);
    let mut message = stuck.join("; ");
    if more > 0 {
        message.push_str(&format!("; and {more} more"));
    }
    Some((reason::RESOURCES_REMAIN, message))
}

fn named(one: &Carried, block: &BlockedObject) -> String {
    format!("{} {}: {} ({})", one.kind.as_str(), one.name, block.object, block.why)
}

/// What is said to stand in the way beyond what everything carried tells of itself.
pub fn beyond(said: &str, carried: &[Carried]) -> Option<String> {
    let mut rest = said.to_string();
    for one in carried {
        for block in &one.blocked {
            rest = rest.replacen(&named(one, block), "", 1);
        }
    }
    // How many more there are is seen from the list.
    let is_number = |part: &str| part.starts_with("and ") && part.ends_with(" more");
    let parts = rest.split("; ").filter(|part| !part.is_empty() && !is_number(part));
    let parts: Vec<&str> = parts.collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// Why nothing is known of a policy that is to go, if its agent has had the time to say something: it
/// cannot write into one that it cannot read.
fn unsaid(seen: &Observed, one: &Carried) -> Option<String> {
    let asked = one.deleting && one.is_with_agent() && one.kind == Kind::Policy;
    let old = one.since.is_some_and(|since| is_old(seen, since, PATIENCE));
    if !asked || !old || one.remaining.is_some() {
        return None;
    }
    let conditions = seen.status().conditions;
    let told = condition::find(&conditions, kind::RELEASED);
    let told = told.map(|told| format!(". It says: {}", told.message)).unwrap_or_default();
    Some(format!("its agent has not said what stays of it{told}"))
}

/// Whether nothing but our own finalizers holds what is left; they go next.
fn ours_alone(seen: &Observed) -> bool {
    let others = |one: &Carried| {
        let ours = usize::from(one.is_held()) + usize::from(one.is_with_agent());
        one.deleting && one.finalizers.len() > ours
    };
    !carried(seen).iter().any(others)
}

/// The cluster's place on the hub does not go: something else is in it, and holds it.
fn unfinished(seen: &Observed) -> Option<(&'static str, String)> {
    if !is_finishing(seen) {
        return None;
    }
    let waits = finish::waits(seen).into_iter();
    let old = |since: Option<Timestamp>| since.is_some_and(|since| is_old(seen, since, PATIENCE));
    let waits: Vec<String> = waits.filter(|(_, since)| old(*since)).map(|(what, _)| what).collect();
    (!waits.is_empty()).then(|| (reason::RESOURCES_REMAIN, waits.join("; ")))
}

/// The agent lives, and does not say what the hub waits for.
fn unanswered(seen: &Observed) -> Option<Obstacle> {
    if !needs_agent(seen) {
        return None;
    }
    let name = seen.name();
    let old = |since: Timestamp| is_old(seen, since, PATIENCE);
    let conditions = seen.status().conditions;
    let told = condition::find(&conditions, kind::RELEASED);
    let reason = reason::AGENT_DOES_NOT_ANSWER;
    match (way(seen), told) {
        (Way::Telling, None) => {
            let since = seen.since(kind::UNJOINING).filter(|since| old(*since))?;
            let message = format!(
                "The cluster's agent has not said since {since:.0} that it heard of this: it is not \
                 running, or one that does not know how to leave, such as another version or \
                 OCM's. Run `cleat agent` there. If nobody ever will: `cleat unjoin {name} \
                 --cluster-destroyed`."
            );
            Some(Obstacle { reason, message, doubtful: false })
        }
        (Way::Telling, Some(_)) => {
            let strategy = seen.strategy().as_str();
            let message =
                format!("The cluster's agent has not said yet that it heard of {strategy}.");
            Some(Obstacle { reason, message, doubtful: true })
        }
        (Way::WithAgent, Some(told)) if carried(seen).is_empty() && seen.carried.is_ok() => {
            // Since nothing is left of what the hub carried there.
            let ended = condition::find(&conditions, kind::DELETING)?;
            let ended = Some(ended).filter(|one| one.status == "True")?;
            let since = ended.last_transition_time.0.max(told.last_transition_time.0);
            let message = format!("The cluster's agent says: {}", told.message);
            let reason = reason::RESOURCES_REMAIN;
            old(since).then_some(Obstacle { reason, message, doubtful: false })
        }
        _ => None,
    }
}

/// What could not be seen or done just now.
fn unseen(seen: &Observed, failures: &[String]) -> Option<String> {
    if let Err(why) = &seen.carried {
        return Some(format!("What was carried there cannot be listed: {why}"));
    }
    if let Err(why) = &seen.records {
        return Some(format!("The leftover records cannot be listed: {why}"));
    }
    if !failures.is_empty() {
        return Some(failures.join("; "));
    }
    if !is_finishing(seen) {
        return None;
    }
    let waits = finish::waits(seen).into_iter().filter(|(_, since)| since.is_none());
    let waits: Vec<String> = waits.map(|(what, _)| what).collect();
    (!waits.is_empty()).then(|| waits.join("; "))
}
