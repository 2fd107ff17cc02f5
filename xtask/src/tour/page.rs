//! A page with commands in it, and what they print. Pure.

use std::fmt::{self, Write as _};

use anyhow::{Result, bail};

/// The command that starts the fleet.
pub(super) const START: &str = "cleat up";

const FENCE: &str = "```console";
const END: &str = "```";

/// A page: what is shown, and the prose around it.
pub(super) struct Page {
    pub(super) shown: Vec<Shown>,
    /// Each line of prose, or the place of a block.
    lines: Vec<Line>,
}

enum Line {
    Prose(String),
    /// As many of what is shown, in one block.
    Block(usize),
}

/// A command, and what it prints.
pub(super) struct Shown {
    pub(super) command: String,
    pub(super) output: Vec<String>,
}

impl Page {
    pub(super) fn parse(text: &str) -> Result<Self> {
        let mut page = Self { shown: Vec::new(), lines: Vec::new() };
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            if line != FENCE {
                page.lines.push(Line::Prose(line.to_owned()));
                continue;
            }
            let mut block: Vec<Shown> = Vec::new();
            for line in lines.by_ref().take_while(|line| *line != END) {
                match (line.strip_prefix("$ "), block.last_mut()) {
                    (Some(command), _) => {
                        block.push(Shown { command: command.to_owned(), output: Vec::new() });
                    }
                    (None, Some(shown)) => shown.output.push(line.to_owned()),
                    (None, None) => {
                        bail!("a block of the tour does not begin with a command: {line}")
                    }
                }
            }
            for shown in &mut block {
                // An empty line between two commands is for the reader.
                while shown.output.last().is_some_and(String::is_empty) {
                    shown.output.pop();
                }
            }
            page.lines.push(Line::Block(block.len()));
            page.shown.extend(block);
        }
        Ok(page)
    }
}

impl fmt::Display for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = self.shown.iter();
        for line in &self.lines {
            match line {
                Line::Prose(text) => writeln!(f, "{text}")?,
                Line::Block(count) => {
                    writeln!(f, "{FENCE}")?;
                    for one in shown.by_ref().take(*count) {
                        writeln!(f, "$ {}", one.command)?;
                        one.output.iter().try_for_each(|line| writeln!(f, "{line}"))?;
                    }
                    writeln!(f, "{END}")?;
                }
            }
        }
        Ok(())
    }
}

impl Shown {
    /// Whether playing it twice changes nothing that once would not.
    pub(super) fn only_looks(&self) -> bool {
        let mut words = self.command.split(' ');
        match (words.next(), words.find(|word| LOOKS.contains(word))) {
            (Some("cat"), _) => true,
            (Some("cleat" | "kubectl"), Some(_)) => true,
            (_, _) => false,
        }
    }

    /// Whether it shows how something fails.
    pub(super) fn may_fail(&self) -> bool {
        self.command.ends_with("2>&1")
    }

    pub(super) fn is_like(&self, printed: &[String]) -> bool {
        are_like(&self.output, printed)
    }

    pub(super) fn difference(&self, printed: &[String]) -> String {
        let mut text = format!("$ {}\n", self.command);
        for (who, lines) in [("the tour says", &self.output[..]), ("it printed", printed)] {
            let _ = writeln!(text, "-- {who}");
            for line in lines {
                let _ = writeln!(text, "{line}");
            }
        }
        text
    }
}

/// Whether two prints are the same but for what differs from run to run.
pub(super) fn are_like(one: &[String], other: &[String]) -> bool {
    one.iter().map(|line| masked(line)).eq(other.iter().map(|line| masked(line)))
}

/// Verbs that change nothing.
const LOOKS: [&str; 6] = ["get", "explain", "preview", "clusters", "leftovers", "history"];

/// The words of a line, without what clings to them.
pub(super) fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split_whitespace().map(|word| word.trim_matches(['(', ')', ',', ';', ':']))
}

/// The hash of a plan.
pub(super) fn is_hash(word: &str) -> bool {
    word.len() == 16 && word.chars().all(|c| c.is_ascii_hexdigit())
}

/// The hash of a plan that somebody saw, and not one that is made up.
pub(super) fn is_plan(word: &str) -> bool {
    is_hash(word) && word.chars().any(|c| c != '0')
}

/// A line without what differs from run to run: ages, times, ports and hashes, and the width of the
/// columns that they are in.
fn masked(line: &str) -> String {
    let mask = |word: &str| {
        let plain = word.trim_matches(['(', ')', ',', ';', ':']);
        let kind = match plain {
            plain if is_hash(plain) => "HASH",
            plain if is_age(plain) => "AGE",
            plain if is_time(plain) => "TIME",
            plain if is_uid(plain) => "UID",
            plain if is_run(plain) => "RUN",
            plain if plain.starts_with("https://127.0.0.1:") => "ADDRESS",
            _ => return word.to_owned(),
        };
        word.replace(plain, kind)
    };
    let words: Vec<String> = line.split_whitespace().map(mask).collect();
    let line = words.join(" ");
    match line.strip_prefix("ready in ") {
        Some(_) => "ready in a moment".to_owned(),
        None => line,
    }
}

/// As in `0a996143-85ab-4384-abe4-725146847dcd`.
fn is_uid(word: &str) -> bool {
    let lengths = word.split('-').map(str::len);
    lengths.eq([8, 4, 4, 4, 12]) && word.chars().all(|c| c == '-' || c.is_ascii_hexdigit())
}

/// The name of a job, which ends in ten digits that say what it is about.
fn is_run(word: &str) -> bool {
    let end = word.rsplit_once('-').map(|(_, end)| end);
    end.is_some_and(|end| end.len() == 10 && end.chars().all(|c| c.is_ascii_hexdigit()))
}

/// As in `5s`, `2m10s`.
fn is_age(word: &str) -> bool {
    let known = |c: char| c.is_ascii_digit() || matches!(c, 's' | 'm' | 'h' | 'd');
    word.starts_with(|c: char| c.is_ascii_digit())
        && word.ends_with(['s', 'm', 'h', 'd'])
        && word.chars().all(known)
}

/// As in `2026-11-16T10:00:00Z`.
fn is_time(word: &str) -> bool {
    let shape = |c: char| if c.is_ascii_digit() { '0' } else { c };
    word.chars().map(shape).collect::<String>().starts_with("0000-00-00T00:00:00")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOUR: &str =
        "# A tour\n\n```console\n$ cleat clusters\nNAME  AGE\nc1    5s\n$ true\n```\nend\n";

    #[test]
    fn a_page_is_written_as_it_was_read() {
        assert_eq!(Page::parse(TOUR).unwrap().to_string(), TOUR);
    }

    #[test]
    fn what_differs_from_run_to_run_is_not_compared_and_all_else_is() {
        let page = Page::parse(TOUR).unwrap();
        let like = |lines: [&str; 2]| page.shown[0].is_like(&lines.map(str::to_owned));
        assert!(like(["NAME   AGE", "c1     2m10s"]));
        assert!(!like(["NAME  AGE", "c2    5s"]));
        assert!(!like(["NAME  AGE", "c1    five"]));
    }

    #[test]
    fn a_block_without_a_command_is_refused() {
        assert!(Page::parse("```console\nNAME\n```\n").is_err());
    }
}
