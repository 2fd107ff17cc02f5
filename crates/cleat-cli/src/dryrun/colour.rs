//! Colours, for people only.

use std::io::IsTerminal as _;

#[derive(Clone, Copy)]
pub(super) struct Colours(bool);

const GREEN: &str = "\u{1b}[32m";
const RED: &str = "\u{1b}[31m";
const YELLOW: &str = "\u{1b}[33m";
const BOLD: &str = "\u{1b}[1m";
const RESET: &str = "\u{1b}[0m";

impl Colours {
    #[cfg(test)]
    pub(super) const NONE: Self = Self(false);

    /// On a terminal, unless somebody wants none; elsewhere only if `CLICOLOR_FORCE` says so.
    pub(super) fn wanted(unwanted: bool) -> Self {
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let forced = set("CLICOLOR_FORCE");
        Self(!unwanted && (forced || (std::io::stdout().is_terminal() && !set("NO_COLOR"))))
    }

    fn paint(self, text: &str, colour: &str) -> String {
        if self.0 { format!("{colour}{text}{RESET}") } else { text.to_owned() }
    }

    pub(super) fn good(self, text: &str) -> String {
        self.paint(text, GREEN)
    }

    pub(super) fn bad(self, text: &str) -> String {
        self.paint(text, RED)
    }

    pub(super) fn doubtful(self, text: &str) -> String {
        self.paint(text, YELLOW)
    }

    pub(super) fn bold(self, text: &str) -> String {
        self.paint(text, BOLD)
    }

    /// A unified diff: what goes, and what comes.
    pub(super) fn diff(self, text: &str) -> String {
        let line = |line: &str| match line {
            _ if line.starts_with("---") || line.starts_with("+++") => line.to_owned(),
            _ if line.starts_with('-') => self.bad(line),
            _ if line.starts_with('+') => self.good(line),
            _ => line.to_owned(),
        };
        let lines: Vec<String> = text.split('\n').map(line).collect();
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_lines_are_coloured_and_headers_are_not() {
        let text = "--- a\n+++ b\n-x\n+y\n z\n";
        let painted = "--- a\n+++ b\n\u{1b}[31m-x\u{1b}[0m\n\u{1b}[32m+y\u{1b}[0m\n z\n";
        assert_eq!(Colours(true).diff(text), painted);
        assert_eq!(Colours::NONE.diff(text), text);
    }
}
