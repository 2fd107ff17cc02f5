//! The differences that are known, each with its reason, and what came of a comparison.
//!
//! A file of entries: `# ` and the reason, `$ ` and the command, then the differing lines, `-` for
//! the real server's and `+` for ours. An entry holds exactly: neither more nor less may differ.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use anyhow::{Context as _, Result, bail};

use super::lines::difference;
use super::{Printed, Session};

/// By the command's name.
pub struct Differences(BTreeMap<String, Entry>);

#[derive(Default)]
struct Entry {
    reason: String,
    lines: Vec<String>,
}

/// What came of a comparison.
pub struct Report {
    commands: usize,
    equal: usize,
    listed: usize,
    /// What differs and is not listed so, in the format of the file.
    unlisted: Vec<String>,
    /// Commands that are listed and no longer differ, or no longer exist.
    vanished: Vec<String>,
}

impl Differences {
    pub fn load(folder: &Path) -> Result<Self> {
        let path = folder.join("differences.txt");
        let text =
            std::fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
        Self::parse(&text)
    }

    fn parse(text: &str) -> Result<Self> {
        let mut entries = BTreeMap::new();
        let mut reason = String::new();
        let mut current: Option<(String, Entry)> = None;
        for line in text.lines() {
            if let Some(more) = line.strip_prefix("# ") {
                entries.extend(current.take());
                if !reason.is_empty() {
                    reason.push(' ');
                }
                reason.push_str(more);
            } else if let Some(command) = line.strip_prefix("$ ") {
                entries.extend(current.take());
                if reason.is_empty() {
                    bail!("the difference of `{command}` has no reason");
                }
                let entry = Entry { reason: std::mem::take(&mut reason), lines: Vec::new() };
                current = Some((command.to_owned(), entry));
            } else if line.starts_with(['-', '+']) {
                let Some((_, entry)) = &mut current else { bail!("`{line}` is of no command") };
                entry.lines.push(line.to_owned());
            } else if !line.is_empty() {
                bail!("`{line}` is neither reason nor command nor difference");
            }
        }
        entries.extend(current);
        Ok(Self(entries))
    }

    pub fn compare(&self, session: &Session, real: &Printed, ours: &Printed) -> Report {
        let mut report = Report {
            commands: session.commands.len(),
            equal: 0,
            listed: 0,
            unlisted: Vec::new(),
            vanished: Vec::new(),
        };
        let pairs = real.0.iter().zip(&ours.0);
        for (command, (real, ours)) in session.commands.iter().zip(pairs) {
            let differs = difference(real, ours);
            let known = self.0.get(&command.name);
            match known {
                None if differs.is_empty() => report.equal += 1,
                Some(entry) if entry.lines == differs => report.listed += 1,
                Some(_) if differs.is_empty() => report.vanished.push(command.name.clone()),
                _ => {
                    let reason = known.map_or("", |entry| &entry.reason);
                    let lines = differs.join("\n");
                    report.unlisted.push(format!("# {reason}\n$ {}\n{lines}\n", command.name));
                }
            }
        }
        let names = |name: &&String| !session.commands.iter().any(|one| one.name == **name);
        report.vanished.extend(self.0.keys().filter(names).cloned());
        report
    }
}

impl Report {
    pub fn passed(&self) -> bool {
        self.unlisted.is_empty() && self.vanished.is_empty()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for one in &self.unlisted {
            writeln!(f, "{one}")?;
        }
        for one in &self.vanished {
            writeln!(f, "listed, but does not differ: {one}")?;
        }
        let Self { commands, equal, listed, .. } = self;
        write!(f, "commands {commands}, equal {equal}, listed differences {listed}")?;
        if !self.passed() {
            let (more, gone) = (self.unlisted.len(), self.vanished.len());
            write!(f, ", unlisted differences {more}, listed ones that vanished {gone}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(names: &[&str]) -> Session {
        let text: String = names.iter().map(|name| format!("$ {name}\n")).collect();
        Session { manifests: "".into(), commands: super::super::parse(&text) }
    }

    fn printed(all: &[&str]) -> Printed {
        Printed(all.iter().map(|one| one.lines().map(str::to_owned).collect()).collect())
    }

    #[test]
    fn what_is_listed_passes_and_nothing_else() {
        let listed = Differences::parse("# because\n# of this\n$ b\n-x\n+y\n").unwrap();
        let session = session(&["a", "b"]);
        let real = printed(&["same", "x"]);
        assert!(listed.compare(&session, &real, &printed(&["same", "y"])).passed());
        for ours in [["other", "y"], ["same", "x"], ["same", "z"]] {
            assert!(!listed.compare(&session, &real, &printed(&ours)).passed(), "{ours:?}");
        }
        assert!(Differences::parse("$ b\n-x\n").is_err());
    }
}
