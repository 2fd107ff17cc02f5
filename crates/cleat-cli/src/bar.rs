//! A line that says how far something got: rewritten in place on a terminal, one for each change
//! elsewhere. It goes to standard error, so that what is printed stays what was asked for.

use std::io::Write as _;

/// How wide a bar is.
const WIDTH: usize = 24;

pub(crate) struct Line {
    terminal: bool,
    last: String,
}

impl Line {
    pub(crate) fn new(terminal: bool) -> Self {
        Self { terminal, last: String::new() }
    }

    /// Shows it, unless it is what was shown last.
    pub(crate) fn show(&mut self, line: String) {
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

    /// What was shown last stays to be read.
    pub(crate) fn end(&mut self) {
        if self.terminal && !self.last.is_empty() {
            let _ = writeln!(std::io::stderr());
        }
        self.last.clear();
    }

    /// Makes room for what comes next.
    pub(crate) fn erase(&mut self) {
        if self.terminal && !self.last.is_empty() {
            let mut out = std::io::stderr().lock();
            let _ = write!(out, "\r\x1b[2K");
            let _ = out.flush();
        }
        self.last.clear();
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.erase();
    }
}

/// `[############------------] 4/8`.
pub(crate) fn bar(done: usize, most: usize) -> String {
    let filled = match most {
        0 => WIDTH,
        most => (done * WIDTH / most).min(WIDTH),
    };
    format!("[{}{}] {done}/{most}", "#".repeat(filled), "-".repeat(WIDTH - filled))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_full_as_it_says() {
        assert_eq!(bar(4, 8), "[############------------] 4/8");
        assert_eq!(bar(0, 3), "[------------------------] 0/3");
        assert_eq!(bar(0, 0), "[########################] 0/0");
        assert_eq!(bar(9, 8), "[########################] 9/8");
    }
}
