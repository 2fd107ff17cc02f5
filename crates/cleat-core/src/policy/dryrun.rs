//! What a policy would say and do, on objects that are given rather than on a cluster.
//!
//! Nothing defaults or refuses the objects, so what differs is what the policy says differs. The
//! policy only informs for its messages, whatever it says; what enforcing would leave is told too.

use alloc::borrow::ToOwned as _;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use cleat_api::configurationpolicy::{
    ConfigurationPolicySpec, ConfigurationPolicyStatus, EvaluationInterval, PruneObjectBehavior,
    Remediation, state,
};
use jiff::Timestamp;
use serde_json::Value;

use super::compare::diff;
use super::desired::{field, metadata};
use super::evaluate::{self, Evaluation};
use super::finding::{self, Finding};
use super::judge::Fix;
use super::memory::Memory;
use super::observed::{
    Cluster, Controller, Definition, Departure, Kind, KindName, ListOf, Namespace, Observed, Pick,
    Policy, Present, Read, Resolution, Say, Seen, Subject, Template, Templates,
    TerminatingNamespaces, Trial, TrialAnswer,
};
use super::reader::{Reader, Tried};
use super::report::{self, Progress};
use super::{select, status};
use crate::id::Id;
use crate::selector;

/// What to try.
pub struct Input<'a> {
    pub name: String,
    pub namespace: String,
    pub spec: ConfigurationPolicySpec,
    pub templates: Templates,
    pub objects: Vec<Value>,
    /// The kinds there are.
    pub kinds: BTreeMap<KindName, super::observed::Served>,
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
    /// All objects as enforcing would leave them; as they are for a policy that only informs.
    pub objects: Vec<Value>,
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

    /// The sections that the command prints.
    pub fn render(&self, full_diffs: bool) -> String {
        let mut out = "# Diffs:\n".to_owned();
        for Diffed { object, recorded, full } in &self.diffs {
            let text = if full_diffs && !full.is_empty() { full } else { recorded };
            out.push_str(&format!("{object}:\n{}\n", text.trim_end_matches('\n')));
        }
        out.push_str("# Compliance messages:\n");
        for message in &self.messages {
            out.push_str(message);
            out.push('\n');
        }
        out
    }
}

/// Reading one thing may show that another has to be read; more rounds than these, nothing needs.
const ROUNDS: usize = 8;

/// Tries a policy.
pub fn dry_run(mut input: Input<'_>) -> DryRun {
    let enforce = input.spec.remediation() == Some(Remediation::Enforce);
    let mut spec = input.spec.clone();
    if spec.remediation().is_some() {
        spec.remediation_action = "inform".to_owned();
    }
    let (seen, evaluation) = settle(&mut input, spec);
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
    let diffs = told.related_objects.iter().map(|entry| diffed(entry, &evaluation)).collect();
    let objects = if enforce { enforced(&mut input) } else { input.objects.clone() };
    DryRun { status: told, messages, diffs, objects }
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
    let full = full.filter(|shown| shown.record != diff::RecordDiff::Redacted);
    Diffed {
        object: format!("{} {} {who}", object.api_version, object.kind),
        recorded,
        full: full.map(|shown| shown.full.clone()).unwrap_or_default(),
    }
}

/// The objects after every fix of one enforcing evaluation.
fn enforced(input: &mut Input<'_>) -> Vec<Value> {
    let spec = input.spec.clone();
    let (seen, evaluation) = settle(input, spec);
    let mut objects: BTreeMap<Id, Value> = BTreeMap::new();
    let mut unknown = Vec::new();
    for object in &input.objects {
        match id(&seen.cluster, object) {
            Some(id) => drop(objects.insert(id, object.clone())),
            None => unknown.push(object.clone()),
        }
    }
    for (target, _, fix) in evaluation.fixes {
        match fix {
            Fix::Create(object) | Fix::Replace(object) => {
                objects.insert(target.id, object);
            }
            Fix::Delete { .. } => drop(objects.remove(&target.id)),
        }
    }
    unknown.into_iter().chain(objects.into_values()).collect()
}

/// Evaluates, filling in whatever turns out to be needed.
fn settle(input: &mut Input<'_>, spec: ConfigurationPolicySpec) -> (Observed, Evaluation) {
    let mut seen = observed(input, spec);
    for _ in 0..ROUNDS {
        let Subject::Policy(policy) = seen.policy.clone() else { break };
        let mut reader = Reader::new(&seen.cluster);
        let evaluation = evaluate::evaluate(&seen, &policy, &mut reader);
        let (unread, questions) = (reader.unread, reader.questions);
        if let Some(evaluation) = evaluation {
            return (seen, evaluation);
        }
        for read in unread {
            fill(input, &mut seen, read);
        }
        for question in questions {
            let answer = TrialAnswer::Accepted(question.object.clone());
            let trial = Trial { asked: question.object, answer };
            match question.of {
                Tried::Update => seen.cluster.trials.insert(question.target.id, trial),
                Tried::Creation => seen.cluster.creations.insert(question.target.id, trial),
            };
        }
    }
    (seen, Evaluation::default())
}

fn observed(input: &Input<'_>, mut spec: ConfigurationPolicySpec) -> Observed {
    spec.prune_object_behavior = PruneObjectBehavior::None;
    let often = Some("10s".to_owned());
    spec.evaluation_interval = EvaluationInterval { compliant: often.clone(), noncompliant: often };
    let mut cluster = Cluster::default();
    for (name, served) in &input.kinds {
        cluster.kinds.insert(name.clone(), Kind::Served(served.clone()));
    }
    for object in &input.objects {
        if let Some(id) = id(&cluster, object) {
            let present = Present { object: Arc::new(object.clone()), writers: Vec::new() };
            cluster.objects.insert(id, Seen::Present(present));
        }
    }
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
        cluster,
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
        finalizers: Vec::new(),
        deleting: false,
        stopped: false,
        owner: None,
        spec: input.spec.clone(),
        status: ConfigurationPolicyStatus::default(),
    }
}

fn id(cluster: &Cluster, object: &Value) -> Option<Id> {
    let name = KindName {
        api_version: field(object, "apiVersion").to_owned(),
        kind: field(object, "kind").to_owned(),
    };
    let Some(Kind::Served(served)) = cluster.kinds.get(&name) else { return None };
    let namespace = match (served.namespaced, metadata(object, "namespace")) {
        (false, _) => "",
        (true, "") => "default",
        (true, namespace) => namespace,
    };
    Some(served.target(namespace, metadata(object, "name")).id)
}

fn fill(input: &mut Input<'_>, seen: &mut Observed, read: Read) {
    match read {
        Read::Kind(name) => drop(seen.cluster.kinds.insert(name, Kind::Absent)),
        Read::Object(target) => drop(seen.cluster.objects.insert(target.id, Seen::Absent)),
        Read::Namespaces => seen.cluster.namespaces = Some(Ok(namespaces(input))),
        Read::List(of) => {
            let all = listed(input, &seen.cluster, &of);
            seen.cluster.lists.insert(of, Ok(all));
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

/// The namespaces among the objects, and those that objects are in.
fn namespaces(input: &Input<'_>) -> Vec<Namespace> {
    let mut all: BTreeMap<String, Namespace> = BTreeMap::new();
    for object in &input.objects {
        let inside = metadata(object, "namespace");
        if !inside.is_empty() {
            all.entry(inside.to_owned()).or_insert_with(|| bare(inside));
        }
    }
    for object in &input.objects {
        if field(object, "kind") == "Namespace" && field(object, "apiVersion") == "v1" {
            let name = metadata(object, "name");
            let namespace = Namespace { labels: labels(object), ..bare(name) };
            all.insert(name.to_owned(), namespace);
        }
    }
    // A name that is spelled out is meant to be there.
    for name in &input.spec.namespace_selector.include {
        if !name.contains(['*', '?', '[', '\\']) {
            all.entry(name.clone()).or_insert_with(|| bare(name));
        }
    }
    all.into_values().collect()
}

fn bare(name: &str) -> Namespace {
    let own = ("kubernetes.io/metadata.name".to_owned(), name.to_owned());
    Namespace { name: name.to_owned(), labels: [own].into(), terminating: false }
}

fn labels(object: &Value) -> BTreeMap<String, String> {
    let all = object.get("metadata").and_then(|metadata| metadata.get("labels"));
    let all = all.and_then(Value::as_object).into_iter().flatten();
    all.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

fn listed(input: &Input<'_>, cluster: &Cluster, of: &ListOf) -> Vec<Arc<Value>> {
    let selector = match &input.templates {
        Templates::Known(templates) => templates
            .iter()
            .filter_map(|template| template.spec.object_selector.as_ref())
            .find(|one| select::text(one).is_ok_and(|text| text == of.labels)),
        Templates::Failed { .. } => None,
    };
    let fits = |object: &&Value| {
        id(cluster, object).is_some_and(|id| {
            id.group == of.kind.group
                && id.resource == of.kind.resource
                && (of.namespace.is_empty() || id.namespace == of.namespace)
        }) && (of.labels.is_empty()
            || selector.is_some_and(|one| selector::selects(one, &labels(object))))
    };
    input.objects.iter().filter(fits).map(|object| Arc::new(object.clone())).collect()
}
