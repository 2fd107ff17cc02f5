//! What a dry run asked, and what it was answered: a line each, in order.

use std::cell::RefCell;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use cleat_core::id::Target;
use cleat_core::policy::dryrun::World;
use cleat_core::policy::observed::{Kind, KindName, ListOf, Namespace, Seen, TrialAnswer};
use cleat_core::policy::{Question, Tried};
use serde_json::Value;

/// Where the lines go; nowhere, unless somebody wants them.
#[derive(Default)]
pub(super) struct Log {
    out: RefCell<Option<Box<dyn Write>>>,
}

impl Log {
    /// Beside the results, which scripts read from standard output.
    pub(super) fn console() -> Self {
        Self { out: RefCell::new(Some(Box::new(std::io::stderr()))) }
    }

    /// At the end of a file.
    pub(super) fn file(path: &Path) -> Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path);
        let file = file.with_context(|| format!("open the log {}", path.display()))?;
        Ok(Self { out: RefCell::new(Some(Box::new(file))) })
    }

    pub(super) fn say(&self, line: &str) {
        if let Some(out) = self.out.borrow_mut().as_mut() {
            // A log that cannot be written is no reason to judge a policy otherwise.
            let _ = writeln!(out, "{line}");
        }
    }
}

/// A world that tells what it was asked.
pub(super) struct Logged<'a> {
    pub(super) world: &'a dyn World,
    pub(super) log: &'a Log,
}

impl World for Logged<'_> {
    fn kind(&self, name: &KindName) -> Kind {
        let kind = self.world.kind(name);
        let answer = match &kind {
            Kind::Served(served) if served.namespaced => {
                format!("{}, in namespaces", served.resource)
            }
            Kind::Served(served) => format!("{}, in no namespace", served.resource),
            Kind::Absent => "not served".to_owned(),
            Kind::Unknown(why) => format!("unknown: {why}"),
        };
        self.log.say(&format!("kind {} {}: {answer}", name.api_version, name.kind));
        kind
    }

    fn object(&self, target: &Target) -> Seen {
        let seen = self.world.object(target);
        let answer = match &seen {
            Seen::Present(_) => "found".to_owned(),
            Seen::Absent => "not there".to_owned(),
            Seen::Unknown(why) => format!("unknown: {why}"),
            Seen::Unwatchable => "cannot be watched".to_owned(),
        };
        self.log.say(&format!("object {}: {answer}", target.id));
        seen
    }

    fn namespaces(&self) -> Result<Vec<Namespace>, String> {
        let found = self.world.namespaces();
        let answer = match &found {
            Ok(all) => {
                let names: Vec<&str> = all.iter().map(|one| one.name.as_str()).collect();
                names.join(", ")
            }
            Err(why) => format!("unknown: {why}"),
        };
        self.log.say(&format!("namespaces: {answer}"));
        found
    }

    fn list(&self, of: &ListOf) -> Result<Vec<Arc<Value>>, String> {
        let found = self.world.list(of);
        let answer = match &found {
            Ok(all) => format!("{} found", all.len()),
            Err(why) => format!("unknown: {why}"),
        };
        let place = if of.namespace.is_empty() { "everywhere" } else { of.namespace.as_str() };
        let labels = if of.labels.is_empty() { "any labels" } else { of.labels.as_str() };
        self.log.say(&format!("list {} {place}, {labels}: {answer}", of.kind.resource));
        found
    }

    fn trial(&self, question: &Question) -> TrialAnswer {
        let answer = self.world.trial(question);
        let said = match &answer {
            TrialAnswer::Accepted(_) => "accepted".to_owned(),
            TrialAnswer::Invalid(why) => format!("invalid: {why}"),
            TrialAnswer::Stale => "it changed meanwhile".to_owned(),
            TrialAnswer::NotFound => "not there".to_owned(),
            TrialAnswer::Refused(why) => format!("refused: {why}"),
            TrialAnswer::Failed(why) => format!("failed: {why}"),
        };
        let of = match question.of {
            Tried::Update => "update",
            Tried::Creation => "creation",
        };
        self.log.say(&format!("dry run of the {of} of {}: {said}", question.target.id));
        answer
    }
}
