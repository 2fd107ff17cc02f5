//! How a leave goes, for people: a bar on a terminal, a line per change elsewhere.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use cleat_api::managedcluster::{ManagedCluster, condition, reason};
use cleat_core::condition::find;
use cleat_core::leave::carried::Carried;
use cleat_core::leave::{beyond, counts};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::bar::{self, Line};

/// How many kinds are named on a line.
const KINDS: usize = 4;
/// How much of what it waits for fits on a line.
const WAITS: usize = 60;

pub(super) struct Progress {
    name: String,
    terminal: bool,
    most: i64,
    line: Line,
}

impl Progress {
    pub(super) fn new(name: &str, terminal: bool) -> Self {
        Self { name: name.to_owned(), terminal, most: 0, line: Line::new(terminal) }
    }

    pub(super) fn show(&mut self, cluster: &ManagedCluster, carried: &[Carried]) {
        let counts = counts(carried);
        self.most = self.most.max(counts.values().sum());
        let said = cluster.status.as_ref().and_then(|status| {
            find(&status.conditions, condition::UNJOINING).map(|said| said.message.clone())
        });
        let said = said.unwrap_or_else(|| "waits for the hub to begin".to_owned());
        self.line.show(match self.terminal {
            true => bar(&self.name, &counts, self.most, carried, &said),
            false => format!("{}: {said}", self.name),
        });
    }

    /// The hub does not answer, which changes nothing about what it does.
    pub(super) fn silent(&mut self, why: &str) {
        self.line.show(format!("{}: waits for the hub to answer: {why}", self.name));
    }

    pub(super) fn end(&mut self) {
        self.line.end();
    }
}

fn bar(
    name: &str,
    counts: &BTreeMap<String, i64>,
    most: i64,
    carried: &[Carried],
    said: &str,
) -> String {
    let left: i64 = counts.values().sum();
    let count = |count: i64| usize::try_from(count).unwrap_or_default();
    let done = bar::bar(count(most.saturating_sub(left)), count(most));
    let mut line = format!("{name} {done} objects");
    let kinds: Vec<String> =
        counts.iter().take(KINDS).map(|(kind, count)| format!("{count} {kind}")).collect();
    if !kinds.is_empty() {
        let more = counts.len().saturating_sub(KINDS);
        let more = if more > 0 { format!(", {more} more kinds") } else { String::new() };
        let _ = write!(line, " · {}{more}", kinds.join(", "));
    }
    let blocked = carried.iter().flat_map(|one| &one.blocked).next();
    let waits = match blocked {
        Some(block) => format!("{} ({})", block.object, block.why),
        None if left == 0 => said.to_owned(),
        None => String::new(),
    };
    if !waits.is_empty() {
        let short: String = waits.chars().take(WAITS).collect();
        let dots = if waits.chars().count() > WAITS { "…" } else { "" };
        let _ = write!(line, " · {short}{dots}");
    }
    line
}

/// What stands in the way, as a list: what the hub says, unless that is what the list says.
pub(super) fn list(name: &str, said: Option<&Condition>, carried: &[Carried]) -> String {
    let mut text = format!("{name} cannot leave yet:");
    let remains = said.is_some_and(|said| said.reason == reason::RESOURCES_REMAIN);
    if let Some(said) = said.filter(|_| !remains) {
        let _ = write!(text, "\n  {}", said.message);
    }
    for one in carried {
        for block in &one.blocked {
            let _ = write!(
                text,
                "\n  {} {}\n    {}\n      {}",
                one.kind.as_str(),
                one.name,
                block.object,
                block.why
            );
        }
    }
    if let Some(more) = said.filter(|_| remains).and_then(|said| beyond(&said.message, carried)) {
        let _ = write!(text, "\n  {more}");
    }
    text.push_str("\nThe hub goes on by itself once the cause is gone; `cleat unjoin ");
    let _ = write!(text, "{name}` shows how.");
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use cleat_api::manifestwork::BlockedObject;
    use cleat_core::leave::carried::Kind;

    #[test]
    fn a_bar_says_how_much_and_what_it_waits_for() {
        let counts =
            BTreeMap::from([("configmaps".to_owned(), 3), ("deployments.apps".to_owned(), 1)]);
        let line = bar("c1", &counts, 8, &[], "");
        assert_eq!(
            line,
            "c1 [############------------] 4/8 objects · 3 configmaps, 1 deployments.apps"
        );
        assert!(bar("c1", &BTreeMap::new(), 0, &[], "its place goes").ends_with("its place goes"));
    }

    #[test]
    fn what_stands_in_the_way_is_listed_by_work() {
        let mut work = Carried::bare(Kind::Work, &Default::default());
        work.name = "web".to_owned();
        work.blocked = vec![BlockedObject {
            object: "configmaps shop/keep".to_owned(),
            why: "denied: not yet".to_owned(),
            refused: true,
            since: None,
        }];
        let listed = "\n  work web\n    configmaps shop/keep\n      denied: not yet\n";
        let named = "work web: configmaps shop/keep (denied: not yet)";
        let text = list("c1", Some(&said(reason::RESOURCES_REMAIN, named)), &[work.clone()]);
        assert!(text.starts_with(&format!("c1 cannot leave yet:{listed}The hub")), "{text}");
        // What no work or policy tells of itself is said as well.
        let more =
            format!("policy p: its agent has not said what stays of it; {named}; and 2 more");
        let text = list("c1", Some(&said(reason::RESOURCES_REMAIN, &more)), &[work.clone()]);
        let lacked = "  policy p: its agent has not said what stays of it\nThe hub";
        assert!(text.contains(&format!("{listed}{lacked}")), "{text}");
        let held = said(reason::RESOURCES_REMAIN, "namespace c1: held by x");
        assert!(list("c1", Some(&held), &[]).contains("\n  namespace c1: held by x\n"));
    }

    #[test]
    fn that_a_cluster_is_unreachable_was_hidden_by_what_it_had_last_told() {
        let mut work = Carried::bare(Kind::Work, &Default::default());
        work.blocked = vec![BlockedObject {
            object: "configmaps shop/keep".to_owned(),
            why: "denied: not yet".to_owned(),
            refused: true,
            since: None,
        }];
        let away = said(reason::CLUSTER_UNREACHABLE, "The cluster is unreachable since yesterday.");
        let text = list("c1", Some(&away), &[work]);
        let begins = "c1 cannot leave yet:\n  The cluster is unreachable since yesterday.\n  work ";
        assert!(text.starts_with(begins), "{text}");
        assert!(text.contains("denied: not yet"), "{text}");
    }

    fn said(reason: &str, message: &str) -> Condition {
        Condition {
            type_: condition::UNJOIN_FAILED.to_owned(),
            status: "True".to_owned(),
            reason: reason.to_owned(),
            message: message.to_owned(),
            last_transition_time: k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(
                jiff::Timestamp::UNIX_EPOCH,
            ),
            observed_generation: None,
        }
    }
}
