//! One evaluation of a policy: what is found of each template, what its objects need, and which
//! objects left it.
//!
//! Objects leave only if every template could say for certain which objects it is about, and
//! everything it needed to know was read. An object that a template without a name still chooses has
//! not left, whatever became of its content.

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
use super::observed::{Observed, Policy, Seen, Served, Template, Templates};
use super::prune::{self, Fates, Pruning};
use super::reader::Reader;
use super::tracking;
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
    /// Something failed that may well succeed if it is tried again, and that no watch tells of.
    pub(crate) again: Again,
}

/// When to try again what failed, though nothing was seen to change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Again {
    #[default]
    Never,
    /// A server said no; it may change its mind.
    Later,
    /// A server did not answer properly.
    Soon,
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
        Templates::Failed { reason, message, passing } => {
            let finding = Finding::new(State::NonCompliant, *reason, message.clone());
            let again = if *passing { Again::Soon } else { Again::Never };
            return Some(Evaluation { again, ..Evaluation::failed(policy, finding) });
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
    /// The objects that templates are about, to have them or to be rid of them.
    held: BTreeSet<Identity>,
    /// What templates without names choose from.
    chosen: BTreeSet<Identity>,
    /// Where templates choose by labels, whatever has them now: kinds in namespaces.
    selecting: BTreeSet<Identity>,
    again: Again,
    /// Some template could not say which objects it is about.
    undetermined: bool,
}

impl Gathered {
    fn said(&mut self, finding: Finding) {
        self.findings.push(finding);
        self.earlier.push(None);
    }

    fn into_evaluation(self, policy: &Policy, leaving: Option<Fates>) -> Evaluation {
        let Self { findings, earlier, judged, targets, again, .. } = self;
        let mut related: BTreeMap<ObjectResource, RelatedObject> = BTreeMap::new();
        let mut unseen = BTreeSet::new();
        let mut fixes: Vec<(Target, String, Fix)> = Vec::new();
        for (judged, target) in judged.iter().zip(targets) {
            match judged.entry() {
                None => drop(unseen.insert(Identity::of(&judged.object))),
                Some(entry) => list(&mut related, entry),
            }
            let taken = fixes.iter().any(|(other, _, _)| other.id == target.id);
            if let Need::Fix(fix) = &judged.need
                && !taken
            {
                fixes.push((target, judged.object.kind.clone(), fix.clone()));
            }
        }
        let listed: BTreeSet<Identity> = related.keys().map(Identity::of).collect();
        for entry in &policy.status.related_objects {
            let identity = Identity::of(&entry.object);
            let goes = match &leaving {
                None => false,
                Some(leaving) => match leaving.get(&entry.object) {
                    Some(fate) if !fate.is_settled() => true,
                    _ if unseen.contains(&identity) => false,
                    _ => continue,
                },
            };
            if goes {
                let mut entry = entry.clone();
                state::NONCOMPLIANT.clone_into(&mut entry.compliant);
                reason::CLEANUP_ERROR.clone_into(&mut entry.reason);
                related.insert(entry.object.clone(), entry);
            } else if !listed.contains(&identity) {
                related.insert(entry.object.clone(), entry.clone());
            }
        }
        let related = related.into_values().collect();
        let leaving = leaving.unwrap_or_default();
        Evaluation { findings, earlier, related, judged, fixes, leaving, again }
    }
}

/// Lists an object. Where two templates are about one, the worse of what they say is listed, and
/// what either knows of whose it is.
fn list(related: &mut BTreeMap<ObjectResource, RelatedObject>, entry: RelatedObject) {
    let Some(other) = related.get_mut(&entry.object) else {
        related.insert(entry.object.clone(), entry);
        return;
    };
    let known = tracking::of_both(other.properties.take(), entry.properties.clone());
    if other.compliant == state::COMPLIANT {
        *other = entry;
    }
    other.properties = known;
}

/// What an object is, whichever version of its kind is spoken of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Identity {
    group: String,
    kind: String,
    namespace: String,
    /// Empty for all objects of the kind in the namespace.
    name: String,
}

impl Identity {
    fn of(object: &ObjectResource) -> Self {
        let group = object.api_version.rsplit_once('/').map_or("", |(group, _)| group);
        Self {
            group: group.to_owned(),
            kind: object.kind.clone(),
            namespace: object.metadata.namespace.clone(),
            name: object.metadata.name.clone(),
        }
    }

    fn of_wanted(wanted: &Wanted) -> Self {
        let id = &wanted.target.id;
        Self {
            group: id.group.clone(),
            kind: wanted.kind.clone(),
            namespace: id.namespace.clone(),
            name: id.name.clone(),
        }
    }
}

/// What becomes of objects that left. `None`: nobody can tell which did.
fn leaving(policy: &Policy, all: &Gathered, reader: &mut Reader<'_>) -> Option<Fates> {
    if all.undetermined || !reader.is_complete() {
        return None;
    }
    let old = policy.status.related_objects.iter();
    let left = old.filter(|entry| !all.held.contains(&Identity::of(&entry.object)));
    let (seen, left): (Vec<_>, Vec<_>) = left.partition(|entry| is_only_seen(entry, all));
    let mut fates = prune::fates(left.into_iter(), policy, prune::pruning(policy), reader);
    // Of what it only looked at, a policy lets go of what it made, and forgets the rest.
    let careful = match prune::pruning(policy) {
        Pruning::All => Pruning::Created,
        other => other,
    };
    fates.extend(prune::fates(seen.into_iter(), policy, careful, reader));
    Some(fates)
}

/// Whether an object was never more than looked at, or is one that a template still looks at. What
/// has lost its labels may have been chosen by them only, and is whose it was.
fn is_only_seen(entry: &RelatedObject, all: &Gathered) -> bool {
    let one = Identity::of(&entry.object);
    let every = Identity { name: String::new(), ..one.clone() };
    let anywhere = Identity { namespace: String::new(), ..every.clone() };
    entry.properties.is_none()
        || all.chosen.contains(&one)
        || all.chosen.contains(&every)
        || all.selecting.contains(&every)
        || all.selecting.contains(&anywhere)
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
    let (kind, objects, selects_in, otherwise) =
        match desired::desired(&scope, index, template, reader) {
            Desired::Unread => return all.undetermined = true,
            Desired::Undetermined { finding, passing } => {
                all.undetermined = true;
                if passing {
                    all.again = Again::Soon;
                }
                return all.said(finding);
            }
            Desired::Known { kind, objects, selects_in, otherwise } => {
                (kind, objects, selects_in, otherwise)
            }
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
    // What has a name, templated or not, must not be there whatever it is like.
    let nameless = desired::metadata(&template.spec.object_definition, "name").is_empty();
    let by_content = nameless && objects.iter().any(|wanted| wanted.selected);
    let judged = match compliance == Compliance::MustNotHave && by_content {
        true => selected_unwanted(&ask, &objects, reader),
        false => judge_all(&ask, &objects, reader),
    };
    let Some(judged) = judged else { return all.undetermined = true };
    let nameless = |wanted: &&Wanted| wanted.selected || wanted.target.id.name.is_empty();
    all.chosen.extend(objects.iter().filter(nameless).map(Identity::of_wanted));
    all.selecting.extend(selects_in.into_iter().map(|namespace| Identity {
        group: kind.group.clone(),
        kind: desired::field(&template.spec.object_definition, "kind").to_owned(),
        namespace,
        name: String::new(),
    }));
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
        all.undetermined |= one.listed == Listed::Unlisted;
        all.again = all.again.max(one.again);
        // What only must not be there is not kept by that.
        if compliance != Compliance::MustNotHave
            || one.need != Need::Nothing
            || one.listed == Listed::Missing
        {
            all.held.insert(Identity::of(&one.object));
        }
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
    let mut unknown = false;
    let mut there = Vec::new();
    for wanted in objects {
        match reader.object(&wanted.target) {
            None => complete = false,
            Some(Seen::Present(present)) => {
                if compare::matches(&wanted.definition, &present.object, ask.rule) {
                    matching.push(wanted.clone());
                }
                there.push((wanted, Some(present)));
            }
            Some(Seen::Absent) => there.push((wanted, None)),
            Some(Seen::Unknown(_) | Seen::Unwatchable) => {
                unknown = true;
                matching.push(wanted.clone());
            }
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
        let mut judged = judge_all(ask, &matching, reader)?;
        // Nobody knows what the unread ones are, so nobody knows all that must not be there.
        let unread = judged.iter_mut().filter(|one| unknown && one.listed == Listed::Missing);
        unread.for_each(|one| one.listed = Listed::Unlisted);
        return Some(judged);
    }
    let all = there.into_iter();
    let all = all.map(|(wanted, present)| judge::rightly_missing(ask, wanted, present));
    Some(all.collect())
}
