//! Asking somebody before much is removed.

use std::io::{BufRead as _, IsTerminal as _, Write as _};

use anyhow::{Context as _, Result};
use cleat_core::preview::{Limits, large};

use crate::Refused;
use crate::preview::{Foreseen, Subject, colours, summary, text};

/// What goes without a question.
#[derive(clap::Args, Clone, Copy, Debug)]
pub(crate) struct Thresholds {
    /// Ask if more objects than this would be deleted
    #[arg(long, default_value_t = 20, env = "CLEAT_ASK_ABOVE_OBJECTS")]
    ask_above_objects: usize,
    /// Ask if more clusters than this are concerned. One that does not answer is asked about always
    #[arg(long, default_value_t = 1, env = "CLEAT_ASK_ABOVE_CLUSTERS")]
    ask_above_clusters: usize,
    /// Ask if more namespaces than this would be deleted
    #[arg(long, default_value_t = 0, env = "CLEAT_ASK_ABOVE_NAMESPACES")]
    ask_above_namespaces: usize,
}

impl Thresholds {
    /// Shows what would go and asks, if it is much; whether somebody was asked. Where nobody can be, it
    /// refuses.
    pub(crate) fn confirm(self, subject: &Subject, foreseen: &Foreseen) -> Result<bool> {
        let limits = Limits {
            objects: self.ask_above_objects,
            clusters: self.ask_above_clusters,
            namespaces: self.ask_above_namespaces,
        };
        let reasons = large(&foreseen.parts(), limits);
        if reasons.is_empty() {
            return Ok(false);
        }
        let reasons = reasons.join("; ");
        if !std::io::stdin().is_terminal() {
            let hint = format!(
                "{subject} is not let go of without a question ({reasons}): {sum}. Nobody is there \
                 to ask; add --plan {} or --yes",
                foreseen.plan,
                sum = summary(foreseen)
            );
            return Err(Refused(hint).into());
        }
        let question = match subject {
            Subject::Leave { .. } => "Let it leave?",
            _ => "Delete it?",
        };
        let mut out = std::io::stderr().lock();
        // Nobody can agree to what they did not see.
        out.write_all(text(foreseen, colours(&out)).as_bytes())?;
        write!(out, "{subject}: {reasons}.\n{question} [y/N] ")?;
        out.flush()?;
        drop(out);
        let mut line = String::new();
        std::io::stdin().lock().read_line(&mut line).context("read the answer")?;
        match line.trim() {
            "y" | "Y" | "yes" => Ok(true),
            _ => Err(Refused("nothing was done".to_owned()).into()),
        }
    }
}
