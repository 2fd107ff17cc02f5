//! What a policy would say, on objects that are given or on those of a cluster, which is only asked.
//!
//! The policy only informs, whatever it says. [`Given`] objects nothing defaults or refuses, so what
//! differs is what the policy says differs.

mod given;

use alloc::borrow::ToOwned as _;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use cleat_api::configurationpolicy::{
    ConfigurationPolicySpec, ConfigurationPolicyStatus, EvaluationInterval, HistoryEvent,
    PruneObjectBehavior, state,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use serde_json::Value;

use super::compare::diff;
use super::evaluate::{self, Evaluation};
use super::finding::{self, Finding};
use super::memory::Memory;
use super::observed::{
    Cluster, Controller, Definition, Departure, Kind, KindName, ListOf, Namespace, Observed, Pick,
    Policy, Read, Resolution, Say, Seen, Subject, Template, Templates, TerminatingNamespaces,
    Trial, TrialAnswer,
};
use super::reader::{Question, Reader, Tried};
use super::report::{self, Progress};
use super::status;
use crate::id::Target;

pub use given::Given;

/// What there is to try a policy on. Every answer holds for the whole of a dry run.
pub trait World {
    fn kind(&self, name: &KindName) -> Kind;
    fn object(&self, target: &Target) -> Seen;
    fn namespaces(&self) -> Result<Vec<Namespace>, String>;
    fn list(&self, of: &ListOf) -> Result<Vec<Arc<Value>>, String>;
    /// What would be stored; nothing is.
    fn trial(&self, question: &Question) -> TrialAnswer;
}

/// What to try.
pub struct Input<'a> {
    pub name: String,
    pub namespace: String,
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
    pub spec: ConfigurationPolicySpec,
    pub templates: Templates,
    pub world: &'a dyn World,
    pub now: Timestamp,
    pub say: Say,
    /// Says what the definition of a template is for an object; asked only about templated ones.
    pub resolve: &'a mut dyn FnMut(usize, &Pick) -> Resolution,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct DryRun {
    pub status: ConfigurationPolicyStatus,
    /// What the policy would tell its owner, in order.
    pub messages: Vec<String>,
    /// Each object it is about, and how it differs.
    pub diffs: Vec<Diffed>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diffed {
    /// `v1 Pod default/web`
    pub object: String,
    /// As it would be recorded.
    pub recorded: String,
    /// Without any cuts; empty if it may not be told.
    pub full: String,
}

impl DryRun {
    /// 0 if the policy holds, 2 if it does not.
    pub fn exit_code(&self) -> u8 {
        if self.status.compliant.as_deref() == Some(state::COMPLIANT) { 0 } else { 2 }
    }

    /// The section about differences.
    pub fn shown_diffs(&self, full_diffs: bool) -> String {
        let mut out = "# Diffs:\n".to_owned();
        for Diffed { object, recorded, full } in &self.diffs {
            let text = if full_diffs && !full.is_empty() { full } else { recorded };
            out.push_str(&format!("{object}:\n{}\n", text.strip_suffix('\n').unwrap_or(text)));
        }
        out
    }

    /// The section about messages.
    pub fn shown_messages(&self) -> String {
        let mut out = "# Compliance messages:\n".to_owned();
        for message in &self.messages {
            out.push_str(message);
            out.push('\n');
        }
        out
    }
}

/// Reading one thing may show that another has to be read; more rounds than these, nothing needs.
const ROUNDS: usize = 8;

/// Tries a policy. `None`: the world did not keep still for long enough.
pub fn dry_run(mut input: Input<'_>) -> Option<DryRun> {
    let mut spec = input.spec.clone();
    if spec.remediation().is_some() {
        spec.remediation_action = "inform".to_owned();
    }
    let (seen, evaluation) = settle(&mut input, spec)?;
    let policy = match &seen.policy {
        Subject::Policy(policy) => (**policy).clone(),
        Subject::Absent | Subject::Unknown(_) => fresh(&input),
    };
    let told = report::status(&seen, &policy, &evaluation, Progress::Finished);
    let mut messages = Vec::new();
    if evaluation.earlier.iter().any(Option::is_some) {
        let first: Vec<Finding> = evaluation
            .findings
            .iter()
            .zip(&evaluation.earlier)
            .map(|(last, first)| first.clone().unwrap_or_else(|| last.clone()))
            .collect();
        let first = Evaluation { findings: first, ..evaluation.clone() };
        messages.push(message(&seen, &policy, &first));
    }
    messages.push(message(&seen, &policy, &evaluation));
    let told = remembered(&seen, told, &messages);
    let diffs = told.related_objects.iter().map(|entry| diffed(entry, &evaluation)).collect();
    Some(DryRun { status: told, messages, diffs })
}

/// The status with all that was said, as it would be written.
fn remembered(
    seen: &Observed,
    mut status: ConfigurationPolicyStatus,
    messages: &[String],
) -> ConfigurationPolicyStatus {
    let event = |message: &String| HistoryEvent {
        last_timestamp: MicroTime(seen.now),
        message: message.clone(),
    };
    status.history = messages.iter().rev().map(event).collect();
    status
}

fn message(seen: &Observed, policy: &Policy, evaluation: &Evaluation) -> String {
    let told = report::status(seen, policy, evaluation, Progress::Finished);
    let usual = finding::policy_message(told.compliant.as_deref(), &status::said(&told));
    finding::cut(status::custom(seen, policy, &told, &usual))
}

fn diffed(
    entry: &cleat_api::configurationpolicy::RelatedObject,
    evaluation: &Evaluation,
) -> Diffed {
    let object = &entry.object;
    let who = match object.metadata.namespace.as_str() {
        "" => object.metadata.name.clone(),
        namespace => format!("{namespace}/{}", object.metadata.name),
    };
    let recorded = entry.properties.as_ref().map(|known| known.diff.clone()).unwrap_or_default();
    let judged = evaluation.judged.iter().find(|judged| judged.object == *object);
    let full = judged.and_then(|judged| judged.diff.as_ref());
    let full = full.filter(|shown| shown.record == diff::RecordDiff::InStatus);
    Diffed {
        object: format!("{} {} {who}", object.api_version, object.kind),
        recorded,
        full: full.map(|shown| shown.full.clone()).unwrap_or_default(),
    }
}

/// Evaluates, filling in whatever turns out to be needed.
fn settle(input: &mut Input<'_>, spec: ConfigurationPolicySpec) -> Option<(Observed, Evaluation)> {
    let mut seen = observed(input, spec);
    for _ in 0..ROUNDS {
        let Subject::Policy(policy) = seen.policy.clone() else { break };
        let mut reader = Reader::new(&seen.cluster);
        let evaluation = evaluate::evaluate(&seen, &policy, &mut reader);
        let (unread, questions) = (reader.unread, reader.questions);
        if let Some(evaluation) = evaluation {
            return Some((seen, evaluation));
        }
        for read in unread {
            fill(input, &mut seen, read);
        }
        for question in questions {
            let answer = input.world.trial(&question);
            if answer == TrialAnswer::Stale {
                seen.cluster.objects.remove(&question.target.id);
                continue;
            }
            let trial = Trial { asked: question.object, answer };
            match question.of {
                Tried::Update => seen.cluster.trials.insert(question.target.id, trial),
                Tried::Creation => seen.cluster.creations.insert(question.target.id, trial),
            };
        }
    }
    None
}

fn observed(input: &Input<'_>, mut spec: ConfigurationPolicySpec) -> Observed {
    spec.prune_object_behavior = PruneObjectBehavior::None;
    let often = Some("10s".to_owned());
    spec.evaluation_interval = EvaluationInterval { compliant: often.clone(), noncompliant: often };
    let policy = Policy { spec, ..fresh(input) };
    Observed {
        now: input.now,
        controller: Controller {
            departure: Departure::Staying,
            terminating_namespaces: TerminatingNamespaces::Included,
            instance: String::new(),
            say: input.say,
        },
        policy: Subject::Policy(Box::new(policy)),
        templates: input.templates.clone(),
        cluster: Cluster::default(),
        memory: Memory::default(),
    }
}

fn fresh(input: &Input<'_>) -> Policy {
    Policy {
        namespace: input.namespace.clone(),
        name: input.name.clone(),
        uid: String::new(),
        resource_version: String::new(),
        generation: 1,
        labels: input.labels.clone(),
        annotations: input.annotations.clone(),
        finalizers: Vec::new(),
        deleting: false,
        stopped: false,
        owner: None,
        spec: input.spec.clone(),
        status: ConfigurationPolicyStatus::default(),
    }
}

fn fill(input: &mut Input<'_>, seen: &mut Observed, read: Read) {
    let world = input.world;
    match read {
        Read::Kind(name) => {
            let kind = world.kind(&name);
            seen.cluster.kinds.insert(name, kind);
        }
        Read::Object(target) => {
            let found = world.object(&target);
            seen.cluster.objects.insert(target.id, found);
        }
        Read::Namespaces => seen.cluster.namespaces = Some(world.namespaces()),
        // Only who lets go of something asks.
        Read::Contents(_) | Read::Unwatched(_) => {}
        Read::List(of) => {
            let all = world.list(&of);
            seen.cluster.lists.insert(of, all);
        }
        Read::Resolution { index, pick } => {
            let resolution = (input.resolve)(index, &pick);
            let Templates::Known(templates) = &mut seen.templates else { return };
            let template = templates.get_mut(index);
            if let Some(Template { definition: Definition::Templated { resolved, .. }, .. }) =
                template
            {
                resolved.insert(pick, resolution);
            }
        }
    }
}
