//! One evaluation of a policy: what is found of each template, what its objects need, and which
//! objects left it.
//!
//! Objects leave only if every template could say for certain which objects it is about, and
//! everything it needed to know was read.

use alloc::borrow::ToOwned as _;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use cleat_api::configurationpolicy::{ObjectResource, RelatedObject, Remediation, reason, state};

use super::compare::{self, Compliance, Rule};
use super::desired::{self, Desired, Scope, Wanted};
use super::finding::{self, Finding, State};
use super::judge::{self, Ask, Fix, Judged, Listed, Need};
use super::observed::{Observed, Policy, Seen, Served, Template, Templates, is_same};
use super::prune::{self, Fates};
use super::reader::Reader;
use crate::id::Target;

#[derive(Clone, Debug, Default)]
pub(crate) struct Evaluation {
    /// One per template.
    pub(crate) findings: Vec<Finding>,
    /// What was found before the last word; only dry runs tell.
    pub(crate) earlier: Vec<Option<Finding>>,
    /// What the status lists, sorted: the objects of the templates and those not yet let go of.
    pub(crate) related: Vec<RelatedObject>,
    pub(crate) judged: Vec<Judged>,
    /// What has to be done, each object once, in the order of templates.
    pub(crate) fixes: Vec<(Target, String, Fix)>,
    /// What becomes of objects that left.
    pub(crate) leaving: Fates,
}

impl Evaluation {
    /// An evaluation that ended before it began: what was known of objects stays.
    fn failed(policy: &Policy, finding: Finding) -> Self {
        Self {
            findings: vec![finding],
            earlier: vec![None],
            related: policy.status.related_objects.clone(),
            ..Self::default()
        }
    }
}

/// `None`: something has to be read first; the reader knows what.
pub(crate) fn evaluate(
    seen: &Observed,
    policy: &Policy,
    reader: &mut Reader<'_>,
) -> Option<Evaluation> {
    let Some(remediation) = policy.spec.remediation() else {
        let message = "Policy does not have a RemediationAction specified";
        let finding = Finding::new(State::NonCompliant, reason::INVALID_SPEC, message);
        return Some(Evaluation::failed(policy, finding));
    };
    let templates = match &seen.templates {
        Templates::Failed { reason, message } => {
            let finding = Finding::new(State::NonCompliant, *reason, message.clone());
            return Some(Evaluation::failed(policy, finding));
        }
        Templates::Known(templates) => templates,
    };
    let mut all = Gathered::default();
    for (index, template) in templates.iter().enumerate() {
        let enforce = remediation == Remediation::Enforce;
        one_template(seen, policy, index, template, enforce, reader, &mut all);
    }
    if templates.is_empty() {
        let name = &policy.name;
        let message =
            format!("{name} contains no object templates to check, and thus has no violations");
        all.said(Finding::new(State::Compliant, reason::NO_TEMPLATES, message));
    }
    let leaving = leaving(policy, &all, reader);
    if !reader.is_complete() {
        return None;
    }
    Some(all.into_evaluation(policy, leaving))
}

/// What the templates gave so far.
#[derive(Default)]
struct Gathered {
    findings: Vec<Finding>,
    earlier: Vec<Option<Finding>>,
    judged: Vec<Judged>,
    targets: Vec<Target>,
    /// Some template could not say which objects it is about.
    undetermined: bool,
}

impl Gathered {
    fn said(&mut self, finding: Finding) {
        self.findings.push(finding);
        self.earlier.push(None);
    }

    fn into_evaluation(self, policy: &Policy, leaving: Option<Fates>) -> Evaluation {
        let Self { findings, earlier, judged, targets, undetermined: _ } = self;
        let mut related: BTreeMap<ObjectResource, RelatedObject> = BTreeMap::new();
        let mut kept = BTreeSet::new();
        let mut fixes: Vec<(Target, String, Fix)> = Vec::new();
        for (judged, target) in judged.iter().zip(targets) {
            match judged.entry() {
                None => drop(kept.insert(&judged.object)),
                // Two templates about one object: the worse of what they say is listed.
                Some(entry) => match related.get(&judged.object) {
                    Some(other) if other.compliant != state::COMPLIANT => {}
                    _ => drop(related.insert(judged.object.clone(), entry)),
                },
            }
            let taken = fixes.iter().any(|(other, _, _)| other.id == target.id);
            if let Need::Fix(fix) = &judged.need
                && !taken
            {
                fixes.push((target, judged.object.kind.clone(), fix.clone()));
            }
        }
        for entry in &policy.status.related_objects {
            let object = &entry.object;
            let stays = match &leaving {
                None => true,
                Some(_) if kept.contains(object) => true,
                Some(leaving) => leaving.get(object).is_some_and(|fate| !fate.is_settled()),
            };
            if stays && !related.contains_key(object) {
                let mut entry = entry.clone();
                if leaving.as_ref().is_some_and(|leaving| leaving.contains_key(object)) {
                    state::NONCOMPLIANT.clone_into(&mut entry.compliant);
                    reason::CLEANUP_ERROR.clone_into(&mut entry.reason);
                }
                related.insert(object.clone(), entry);
            }
        }
        let related = related.into_values().collect();
        let leaving = leaving.unwrap_or_default();
        Evaluation { findings, earlier, related, judged, fixes, leaving }
    }
}

/// What becomes of objects that left. `None`: nobody can tell which did.
fn leaving(policy: &Policy, all: &Gathered, reader: &mut Reader<'_>) -> Option<Fates> {
    if all.undetermined || !reader.is_complete() {
        return None;
    }
    let wanted: BTreeSet<&ObjectResource> = all.judged.iter().map(|one| &one.object).collect();
    let old = policy.status.related_objects.iter();
    // The same object in another version of its kind has not left.
    let left = old.filter(|entry| !wanted.iter().any(|wanted| is_same(wanted, &entry.object)));
    Some(prune::fates(left, prune::pruning(policy), reader))
}

fn one_template(
    seen: &Observed,
    policy: &Policy,
    index: usize,
    template: &Template,
    enforce: bool,
    reader: &mut Reader<'_>,
    all: &mut Gathered,
) {
    let Some(compliance) = Compliance::parse(&template.spec.compliance_type) else {
        let said = &template.spec.compliance_type;
        let message = format!(
            "The complianceType of the object template at index {index} is not known: {said}"
        );
        all.undetermined = true;
        return all.said(Finding::new(State::NonCompliant, reason::INVALID_SPEC, message));
    };
    let metadata = template.spec.metadata_compliance_type.as_deref().and_then(Compliance::parse);
    let rule = Rule { compliance, metadata: metadata.unwrap_or(compliance) };
    let scope = Scope {
        policy_name: &policy.name,
        selector: &policy.spec.namespace_selector,
        terminating: seen.controller.terminating_namespaces,
    };
    let (kind, objects, otherwise) = match desired::desired(&scope, index, template, reader) {
        Desired::Unread => return all.undetermined = true,
        Desired::Undetermined(finding) => {
            all.undetermined = true;
            return all.said(finding);
        }
        Desired::Known { kind, objects, otherwise } => (kind, objects, otherwise),
    };
    let ask = Ask {
        policy,
        memory: &seen.memory,
        now: seen.now,
        index,
        template: &template.spec,
        rule,
        enforce,
        kind: &kind,
    };
    let selected = objects.iter().any(|wanted| wanted.selected);
    let judged = match compliance == Compliance::MustNotHave && selected {
        true => selected_unwanted(&ask, &objects, reader),
        false => judge_all(&ask, &objects, reader),
    };
    let Some(judged) = judged else { return all.undetermined = true };
    if judged.is_empty() {
        return all.said(otherwise);
    }
    let results: Vec<finding::Result> = judged.iter().map(|one| one.result.clone()).collect();
    let first: Vec<finding::Result> =
        judged.iter().map(|one| one.before.clone().unwrap_or_else(|| one.result.clone())).collect();
    all.findings.push(finding::summary(&kind.resource, &results));
    let earlier = judged.iter().any(|one| one.before.is_some());
    all.earlier.push(earlier.then(|| finding::summary(&kind.resource, &first)));
    for one in judged {
        all.targets.push(target(&kind, &one.object));
        all.judged.push(one);
    }
}

fn target(kind: &Served, object: &ObjectResource) -> Target {
    kind.target(&object.metadata.namespace, &object.metadata.name)
}

fn judge_all(ask: &Ask<'_>, objects: &[Wanted], reader: &mut Reader<'_>) -> Option<Vec<Judged>> {
    let mut all = Vec::new();
    // Everything is looked at even if something is missing, so that one round of reading is enough.
    let mut complete = true;
    for wanted in objects {
        if wanted.target.id.name.is_empty() {
            match judge::unnamed(ask, wanted, reader) {
                Some(judged) => all.extend(judged),
                None => complete = false,
            }
        } else {
            match judge::named(ask, wanted, reader) {
                Some(judged) => all.push(judged),
                None => complete = false,
            }
        }
    }
    complete.then_some(all)
}

/// Objects chosen by labels must not be there only if they are also as the template says. If none
/// is, all are listed as not being there, as shipped.
fn selected_unwanted(
    ask: &Ask<'_>,
    objects: &[Wanted],
    reader: &mut Reader<'_>,
) -> Option<Vec<Judged>> {
    let mut complete = true;
    let mut matching = Vec::new();
    for wanted in objects {
        match reader.object(&wanted.target) {
            None => complete = false,
            Some(Seen::Present(present)) => {
                if compare::matches(&wanted.definition, &present.object, ask.rule) {
                    matching.push(wanted.clone());
                }
            }
            Some(Seen::Absent) => {}
            Some(Seen::Unknown(_) | Seen::Unwatchable) => matching.push(wanted.clone()),
        }
    }
    if !complete {
        return None;
    }
    let gone = |wanted: &&Wanted| {
        ask.memory.deeds.get(&wanted.target.id) == Some(&super::memory::Deed::Deleted)
    };
    matching.extend(objects.iter().filter(gone).cloned());
    if !matching.is_empty() {
        return judge_all(ask, &matching, reader);
    }
    let all = objects.iter().map(|wanted| {
        let namespace = wanted.target.id.namespace.clone();
        let metadata = cleat_api::configurationpolicy::ObjectMetadata {
            namespace: namespace.clone(),
            name: wanted.target.id.name.clone(),
        };
        Judged {
            object: ObjectResource {
                kind: wanted.kind.clone(),
                metadata,
                api_version: wanted.api_version.clone(),
            },
            result: finding::Result {
                state: State::Compliant,
                reason: reason::MISSING_AS_EXPECTED,
                message: None,
                namespace,
                name: String::new(),
            },
            before: None,
            listed: Listed::With(None),
            need: Need::Nothing,
            diff: None,
        }
    });
    Some(all.collect())
}
