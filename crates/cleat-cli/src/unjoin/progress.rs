//! How a leave goes, for people: a bar on a terminal, a line per change elsewhere.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;

use cleat_api::managedcluster::{ManagedCluster, condition};
use cleat_core::condition::find;
use cleat_core::leave::carried::Carried;
use cleat_core::leave::counts;

/// How wide the bar is.
const WIDTH: usize = 24;
/// How many kinds are named on a line.
const KINDS: usize = 4;
/// How much of what it waits for fits on a line.
const WAITS: usize = 60;

pub(super) struct Progress {
    name: String,
    terminal: bool,
    most: i64,
    last: String,
}

impl Progress {
    pub(super) fn new(name: &str, terminal: bool) -> Self {
        Self { name: name.to_owned(), terminal, most: 0, last: String::new() }
    }

    pub(super) fn show(&mut self, cluster: &ManagedCluster, carried: &[Carried]) {
        let counts = counts(carried);
        self.most = self.most.max(counts.values().sum());
        let said = cluster.status.as_ref().and_then(|status| {
            find(&status.conditions, condition::UNJOINING).map(|said| said.message.clone())
        });
        let said = said.unwrap_or_else(|| "waits for the hub to begin".to_owned());
        let line = match self.terminal {
            true => bar(&self.name, &counts, self.most, carried, &said),
            false => format!("{}: {said}", self.name),
        };
        if line == self.last {
            return;
        }
        let mut out = std::io::stderr().lock();
        // Nothing depends on whether somebody reads it.
        let _ = match self.terminal {
            true => write!(out, "\r\x1b[2K{line}"),
            false => writeln!(out, "{line}"),
        };
        let _ = out.flush();
        self.last = line;
    }

    pub(super) fn end(&mut self) {
        if self.terminal && !self.last.is_empty() {
            let _ = writeln!(std::io::stderr());
        }
        self.last.clear();
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
    let done = most.saturating_sub(left).max(0);
    let filled = match most {
        0 => WIDTH,
        most => usize::try_from(done * i64::try_from(WIDTH).unwrap_or(0) / most).unwrap_or(0),
    };
    let mut line = format!(
        "{name} [{}{}] {done}/{most} objects",
        "#".repeat(filled.min(WIDTH)),
        "-".repeat(WIDTH.saturating_sub(filled))
    );
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

/// What stands in the way, as a list.
pub(super) fn list(name: &str, said: &str, carried: &[Carried]) -> String {
    let mut text = format!("{name} cannot leave yet:");
    let mut any = false;
    for one in carried {
        for block in &one.blocked {
            any = true;
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
    if !any {
        let _ = write!(text, "\n  {said}");
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
        let text = list("c1", "said", &[work]);
        assert!(
            text.contains("work web\n    configmaps shop/keep\n      denied: not yet"),
            "{text}"
        );
        assert!(!text.contains("said"));
        assert!(list("c1", "said", &[]).contains("said"));
    }
}
