//! Answers for programs, in one of the forms they read.

use std::io::Write as _;

use anyhow::Result;
use clap::ValueEnum;
use serde_json::{Value, json};

use crate::{PlanChanged, Refused};

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    Json,
    Yaml,
}

impl Output {
    pub(crate) fn written(self, value: &Value) -> Result<String> {
        Ok(match self {
            Self::Json => serde_json::to_string_pretty(value)? + "\n",
            Self::Yaml => serde_saphyr::to_string(value)?,
        })
    }

    pub(crate) fn print(self, value: &Value) -> Result<()> {
        let mut out = std::io::stdout().lock();
        out.write_all(self.written(value)?.as_bytes())?;
        Ok(out.flush()?)
    }
}

/// Says to a program why it was refused, if it was, and passes on what came of it.
pub(crate) fn told<T>(output: Option<Output>, done: Result<T>) -> Result<T> {
    if let (Some(output), Err(error)) = (output, &done)
        && let Some(refusal) = refusal(error)
    {
        output.print(&refusal)?;
    }
    done
}

/// What programs are told of a refusal. A failure is none.
fn refusal(error: &anyhow::Error) -> Option<Value> {
    let reason = if error.chain().any(|one| one.is::<PlanChanged>()) {
        "PlanChanged"
    } else if error.chain().any(|one| one.is::<Refused>()) {
        "Refused"
    } else {
        return None;
    };
    let message = format!("{error:#}");
    let message = message.replacen("PlanChanged: ", "", 1);
    Some(json!({ "refused": { "reason": reason, "message": message } }))
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    /// Scripts had to look for a word in a sentence.
    #[test]
    fn a_plan_that_changed_was_told_only_in_prose() {
        let changed = anyhow::Error::from(PlanChanged("this is not plan a any more".to_owned()));
        let expected = json!({ "refused": {
            "reason": "PlanChanged", "message": "look again: this is not plan a any more",
        } });
        assert_eq!(refusal(&changed.context("look again")), Some(expected));
        let refused = anyhow::Error::from(Refused("there is no such work".to_owned()));
        let told = refusal(&refused).map(|one| one["refused"]["reason"].clone());
        assert_eq!(told, Some(json!("Refused")));
        assert_eq!(refusal(&anyhow!("no connection")), None);
    }
}
