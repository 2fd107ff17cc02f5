//! What is found of one object, and what it needs.
//!
//! Every text is said here only once something was looked at; what was not read is not judged.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec;
use alloc::vec::Vec;

use cleat_api::configurationpolicy::{
    ObjectMetadata, ObjectResource, ObjectTemplate, Properties, RecreateOption, RelatedObject,
    reason,
};
use jiff::Timestamp;
use serde_json::Value;

use super::compare::diff::{self, RecordDiff};
use super::compare::{self, Comparison, Compliance, Difference, Rule};
use super::desired::{Wanted, metadata};
use super::evaluate::Again;
use super::finding::{self, State, subject};
use super::memory::{Deed, Memory};
use super::observed::{ListOf, Policy, Present, Seen, Served, TrialAnswer};
use super::reader::{Gap, Reader};
use super::tracking;
use crate::work::trouble::{Trouble, TroubleKind};

/// What one object is judged by.
pub(crate) struct Ask<'a> {
    pub(crate) policy: &'a Policy,
    pub(crate) memory: &'a Memory,
    pub(crate) now: Timestamp,
    pub(crate) index: usize,
    pub(crate) template: &'a ObjectTemplate,
    pub(crate) rule: Rule,
    pub(crate) enforce: bool,
    pub(crate) kind: &'a Served,
}

/// What is known and to be done of one object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Judged {
    pub(crate) object: ObjectResource,
    pub(crate) result: finding::Result,
    /// What was found before the last word; only dry runs tell.
    pub(crate) before: Option<finding::Result>,
    pub(crate) listed: Listed,
    pub(crate) need: Need,
    /// When to look again at what failed.
    pub(crate) again: Again,
    pub(crate) diff: Option<Shown>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Listed {
    With(Option<Properties>),
    /// It could not be looked at, so what was known of it stays.
    Missing,
    /// It could not even be told which objects this is about, so what was known of any stays.
    Unlisted,
}

/// How an object differs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Shown {
    pub(crate) record: RecordDiff,
    pub(crate) full: String,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Need {
    Nothing,
    /// The last attempt failed, or the object is on its way out.
    Wait,
    Fix(Fix),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Fix {
    Create(Value),
    Replace(Value),
    /// This incarnation, in this state.
    Delete {
        uid: String,
        resource_version: Option<String>,
    },
}

impl Judged {
    fn new(object: ObjectResource, state: State, reason: &'static str) -> Self {
        let result = finding::Result {
            state,
            reason,
            message: None,
            namespace: object.metadata.namespace.clone(),
            name: object.metadata.name.clone(),
        };
        Self {
            object,
            result,
            before: None,
            listed: Listed::With(None),
            need: Need::Nothing,
            again: Again::Never,
            diff: None,
        }
    }

    fn saying(mut self, message: impl Into<String>) -> Self {
        self.result.message = Some(message.into());
        self
    }

    fn with(mut self, properties: Properties) -> Self {
        self.listed = Listed::With(Some(properties));
        self
    }

    fn needing(mut self, need: Need) -> Self {
        self.need = need;
        self
    }

    fn missing(mut self) -> Self {
        self.listed = Listed::Missing;
        self
    }

    /// The entry in the status; `None` if what was known stays.
    pub(crate) fn entry(&self) -> Option<RelatedObject> {
        let Listed::With(properties) = &self.listed else { return None };
        Some(RelatedObject {
            object: self.object.clone(),
            compliant: self.result.state.as_str().to_owned(),
            reason: self.result.reason.to_owned(),
            properties: properties.clone(),
        })
    }
}

/// Judges a named object. `None`: something has to be read first.
pub(crate) fn named(ask: &Ask<'_>, wanted: &Wanted, reader: &mut Reader<'_>) -> Option<Judged> {
    let object = resource(wanted, &wanted.target.id.name);
    let index = ask.index;
    match reader.object(&wanted.target)? {
        Seen::Unknown(why) => {
            let message =
                format!("Error retrieving an object for object-template at index [{index}]: {why}");
            let judged = Judged::new(object, State::NonCompliant, reason::API_ERROR);
            Some(judged.saying(message).missing())
        }
        Seen::Unwatchable => {
            let message = format!(
                "Error with object-template at index [{index}], it may require evaluationInterval to be set: watch not supported on this resource"
            );
            let judged = Judged::new(object, State::NonCompliant, reason::UNWATCHABLE);
            Some(judged.saying(message).missing())
        }
        Seen::Absent if ask.rule.compliance == Compliance::MustNotHave => {
            Some(match ask.deed(wanted) {
                Some(Deed::Deleted) => Judged::new(object, State::Compliant, reason::DELETED),
                _ => Judged::new(object, State::Compliant, reason::MISSING_AS_EXPECTED),
            })
        }
        Seen::Absent => Some(absent(ask, wanted, object)),
        Seen::Present(present) if ask.rule.compliance == Compliance::MustNotHave => {
            Some(unwanted(ask, wanted, object, present))
        }
        Seen::Present(present) => compared(ask, wanted, object, present, reader),
    }
}

impl Ask<'_> {
    fn trouble(&self, wanted: &Wanted) -> Option<&Trouble> {
        let trouble = self.memory.troubles.get(&wanted.target.id);
        trouble.filter(|trouble| trouble.kind != TroubleKind::Stale)
    }

    fn deed(&self, wanted: &Wanted) -> Option<Deed> {
        self.memory.deeds.get(&wanted.target.id).copied()
    }

    /// What is on record of an object that is there and that the policy made: that is not forgotten
    /// because the policy now wants something else of it.
    fn made(&self, object: &ObjectResource, present: &Present) -> Option<Properties> {
        let old = self.policy.entry(object)?.properties.as_ref()?;
        let known = tracking::existing(Some(old), present, &self.policy.uid);
        (known.created_by_policy == Some(true)).then_some(known)
    }

    fn fix(&self, wanted: &Wanted, fix: Fix) -> Need {
        if self.memory.must_wait(&wanted.target.id, self.now) { Need::Wait } else { Need::Fix(fix) }
    }

    fn subject(&self, wanted: &Wanted) -> String {
        let id = &wanted.target.id;
        subject(&self.kind.resource, &id.namespace, &id.name)
    }
}

/// One of many objects none of which is what must not be there. As shipped, it is listed as missing.
pub(crate) fn rightly_missing(ask: &Ask<'_>, wanted: &Wanted, present: Option<&Present>) -> Judged {
    let object = resource(wanted, &wanted.target.id.name);
    let ours = present.and_then(|present| ask.made(&object, present));
    let mut judged = Judged::new(object, State::Compliant, reason::MISSING_AS_EXPECTED);
    judged.result.name = String::new();
    judged.listed = Listed::With(ours);
    judged
}

fn resource(wanted: &Wanted, name: &str) -> ObjectResource {
    ObjectResource {
        kind: wanted.kind.clone(),
        metadata: ObjectMetadata {
            namespace: wanted.target.id.namespace.clone(),
            name: name.to_owned(),
        },
        api_version: wanted.api_version.clone(),
    }
}

/// A wanted object that is not there.
fn absent(ask: &Ask<'_>, wanted: &Wanted, object: ObjectResource) -> Judged {
    if !ask.enforce {
        return Judged::new(object, State::NonCompliant, reason::NOT_FOUND);
    }
    let old = ask.policy.entry(&object).and_then(|entry| entry.properties.as_ref());
    let claim = tracking::before_creation(old);
    let recreating = tracking::is_claim(old) && ask.deed(wanted) == Some(Deed::Deleted);
    let need = ask.fix(wanted, Fix::Create(wanted.definition.clone()));
    let judged = match ask.trouble(wanted) {
        Some(trouble) if recreating => {
            let who = ask.subject(wanted);
            Judged::new(object, State::NonCompliant, reason::UPDATE_ERROR)
                .saying(format!("{who} failed to recreate with the error `{}`", trouble.message))
        }
        Some(trouble) => {
            let who = ask.subject(wanted);
            Judged::new(object, State::NonCompliant, reason::CREATION_ERROR).saying(format!(
                "{who} is missing, and cannot be created, reason: `{}`",
                trouble.message
            ))
        }
        // It was taken away only to be made anew; that it is gone is no news.
        None if recreating => Judged::new(object, State::NonCompliant, reason::MISMATCH),
        None => Judged::new(object, State::NonCompliant, reason::NOT_FOUND),
    };
    judged.with(claim).needing(need)
}

/// An object that must not be there.
fn unwanted(ask: &Ask<'_>, wanted: &Wanted, object: ObjectResource, present: &Present) -> Judged {
    let ours = ask.made(&object, present);
    let mut found = Judged::new(object.clone(), State::NonCompliant, reason::UNWANTED);
    found.listed = Listed::With(ours.clone());
    if !ask.enforce {
        return found;
    }
    if present.terminating().is_some() {
        // Accepted is not done: it is there until it is seen gone.
        return found.needing(Need::Wait);
    }
    // What was judged by its content is deleted only with that content.
    let judged_by = wanted.selected.then(|| present.resource_version().map(ToOwned::to_owned));
    let fix = Fix::Delete { uid: present.uid().to_owned(), resource_version: judged_by.flatten() };
    let need = ask.fix(wanted, fix);
    match ask.trouble(wanted) {
        None => found.needing(need),
        Some(trouble) => {
            let who = ask.subject(wanted);
            let message =
                format!("{who} exists, and cannot be deleted, reason: `{}`", trouble.message);
            let mut failing = Judged::new(object, State::NonCompliant, reason::DELETION_ERROR);
            failing.listed = Listed::With(ours);
            failing.saying(message).needing(need)
        }
    }
}

/// A wanted object that is there.
fn compared(
    ask: &Ask<'_>,
    wanted: &Wanted,
    object: ObjectResource,
    present: &Present,
    reader: &mut Reader<'_>,
) -> Option<Judged> {
    let old = ask.policy.entry(&object).and_then(|entry| entry.properties.as_ref());
    if tracking::is_claim(old) && present.terminating().is_some() && ask.enforce {
        let who = ask.subject(wanted);
        let message = format!(
            "{who} timed out waiting for the object to delete during recreate, will retry on the next policy evaluation"
        );
        let claim = old.cloned().unwrap_or_default();
        let judged = Judged::new(object, State::NonCompliant, reason::UPDATE_ERROR);
        return Some(judged.saying(message).with(claim).needing(Need::Wait));
    }
    let known = tracking::existing(old, present, &ask.policy.uid);
    let live = &present.object;
    let difference = match compare::compare(&wanted.definition, live, ask.rule) {
        Comparison::Same => return Some(as_wanted(ask, wanted, object, known)),
        Comparison::Impossible(why) => {
            let first = Judged::new(object.clone(), State::NonCompliant, reason::MISMATCH);
            let mut judged = Judged::new(object, State::NonCompliant, reason::UPDATE_ERROR);
            judged.before = Some(first.result);
            return Some(judged.saying(why).with(known));
        }
        Comparison::Differs(difference) => difference,
    };
    if !difference.content {
        return Some(Judged::new(object, State::NonCompliant, reason::MISMATCH).with(known));
    }
    let trial = reader.trial(&wanted.target, &difference.merged)?;
    let name = &wanted.target.id.name;
    let error = |message: String| {
        Judged::new(object.clone(), State::NonCompliant, reason::UPDATE_ERROR)
            .saying(message)
            .with(known.clone())
    };
    Some(match &trial.answer {
        TrialAnswer::Stale => return None,
        TrialAnswer::NotFound => {
            error(format!("`{}` is not present and must be created", wanted.kind))
        }
        TrialAnswer::Refused(why) if why.contains("strict decoding error:") => {
            error(format!("Error validating the object {name}, the error is `{why}`"))
        }
        TrialAnswer::Refused(why) | TrialAnswer::Failed(why) => {
            let again = match &trial.answer {
                TrialAnswer::Failed(_) => Again::Soon,
                _ => Again::Later,
            };
            let message = format!(
                "Error issuing a dry run update request for the object `{name}`, the error is `{why}`"
            );
            Judged { again, ..error(message) }
        }
        TrialAnswer::Accepted(stored) if compare::same_to_a_server(live, stored) => {
            if difference.status {
                Judged::new(object, State::NonCompliant, reason::MISMATCH).with(known)
            } else {
                let known = Properties { matches_after_dry_run: true, ..known };
                as_wanted(ask, wanted, object, known)
            }
        }
        TrialAnswer::Accepted(stored) => {
            let recreate = ask.template.recreate_option == RecreateOption::Always;
            if recreate && let Some(stop) = unmakeable(ask, wanted, present, reader)? {
                return Some(stop.with(known));
            }
            differing(ask, wanted, object, present, known, &difference, stored, Some(recreate))
        }
        TrialAnswer::Invalid(_) => {
            let recreate = matches!(
                ask.template.recreate_option,
                RecreateOption::IfRequired | RecreateOption::Always
            );
            if recreate && let Some(stop) = unmakeable(ask, wanted, present, reader)? {
                return Some(stop.with(known));
            }
            let merged = &difference.merged;
            let recreate = recreate.then_some(true);
            differing(ask, wanted, object, present, known, &difference, merged, recreate)
        }
    })
}

/// An object is thrown away only if the server would take the one that is to replace it. `Some(None)`:
/// it would, or nothing is to be thrown away.
fn unmakeable(
    ask: &Ask<'_>,
    wanted: &Wanted,
    present: &Present,
    reader: &mut Reader<'_>,
) -> Option<Option<Judged>> {
    if !ask.enforce || present.terminating().is_some() {
        return Some(None);
    }
    let (why, again) = match &reader.creation(&wanted.target, &wanted.definition)?.answer {
        TrialAnswer::Accepted(_) => return Some(None),
        TrialAnswer::Stale => return None,
        TrialAnswer::Invalid(why) => (why.as_str(), Again::Never),
        TrialAnswer::Refused(why) => (why.as_str(), Again::Later),
        TrialAnswer::Failed(why) => (why.as_str(), Again::Soon),
        TrialAnswer::NotFound => ("its namespace is not there", Again::Soon),
    };
    let who = ask.subject(wanted);
    let message = format!("{who} cannot be recreated, it would be refused with the error `{why}`");
    let object = resource(wanted, &wanted.target.id.name);
    let judged = Judged::new(object, State::NonCompliant, reason::UPDATE_ERROR).saying(message);
    Some(Some(Judged { again, ..judged }))
}

fn as_wanted(ask: &Ask<'_>, wanted: &Wanted, object: ObjectResource, known: Properties) -> Judged {
    let (state, reason) = match ask.deed(wanted) {
        Some(Deed::Created) if wanted.definition.get("status").is_some() => {
            (State::NonCompliant, reason::CREATED_STATUS_UNCHECKED)
        }
        Some(Deed::Created) => (State::Compliant, reason::CREATED),
        Some(Deed::Updated) => (State::Compliant, reason::UPDATED),
        _ => (State::Compliant, reason::FOUND),
    };
    Judged::new(object, state, reason).with(known)
}

/// An object whose content is not as wanted, also to the server. `recreate`: whether it is made
/// anew rather than changed; `None` if it can only be made anew and must not be.
#[expect(clippy::too_many_arguments, reason = "they are what was found out on the way here")]
fn differing(
    ask: &Ask<'_>,
    wanted: &Wanted,
    object: ObjectResource,
    present: &Present,
    known: Properties,
    difference: &Difference,
    updated: &Value,
    recreate: Option<bool>,
) -> Judged {
    let record = RecordDiff::of(
        ask.template.record_diff.as_deref(),
        &wanted.definition,
        wanted.read_secrets,
    );
    let full = diff::full(&present.object, updated);
    let text = match record {
        RecordDiff::InStatus => diff::shortened(&full),
        RecordDiff::Redacted => diff::REDACTED.to_owned(),
        RecordDiff::Log | RecordDiff::None => String::new(),
    };
    let known = Properties { diff: text, ..known };
    let shown = Some(Shown { record, full });
    let mismatch = Judged {
        diff: shown.clone(),
        ..Judged::new(object.clone(), State::NonCompliant, reason::MISMATCH).with(known.clone())
    };
    if !ask.enforce {
        return mismatch;
    }
    let failing = |message: String, need: Need| Judged {
        diff: shown.clone(),
        ..Judged::new(object.clone(), State::NonCompliant, reason::UPDATE_ERROR)
            .saying(message)
            .with(known.clone())
            .needing(need)
    };
    let who = ask.subject(wanted);
    let trouble = ask.trouble(wanted);
    match recreate {
        None => failing(
            format!(
                "{who} cannot be updated, likely due to immutable fields not matching, you may set spec[\"object-templates\"][].recreateOption to recreate the object"
            ),
            Need::Nothing,
        ),
        Some(true) if present.terminating().is_some() => mismatch.needing(Need::Wait),
        Some(true) => {
            let fix = Fix::Delete {
                uid: present.uid().to_owned(),
                resource_version: present.resource_version().map(ToOwned::to_owned),
            };
            let claim = Properties {
                diff: known.diff.clone(),
                ..tracking::before_recreation(&known, present)
            };
            let need = ask.fix(wanted, fix);
            match trouble {
                None => mismatch.with(claim).needing(need),
                Some(trouble) => {
                    let why = &trouble.message;
                    let message =
                        format!("{who} failed to delete when recreating with the error {why}");
                    failing(message, need).with(claim)
                }
            }
        }
        Some(false) => {
            let need = ask.fix(wanted, Fix::Replace(difference.merged.clone()));
            match trouble {
                None => mismatch.needing(need),
                Some(trouble) => {
                    let why = &trouble.message;
                    failing(format!("{who} failed to update with the error `{why}`"), need)
                }
            }
        }
    }
}

/// Judges all objects of a kind in a namespace by a template without a name. Nothing is ever
/// changed over it: a template that forgot its name must not delete everything.
pub(crate) fn unnamed(
    ask: &Ask<'_>,
    wanted: &Wanted,
    reader: &mut Reader<'_>,
) -> Option<Vec<Judged>> {
    let of = ListOf {
        kind: ask.kind.clone(),
        namespace: wanted.target.id.namespace.clone(),
        labels: String::new(),
    };
    let all = match reader.list(of) {
        Ok(all) => all,
        Err(Gap::Unread) => return None,
        Err(Gap::Failed(why)) => {
            let index = ask.index;
            let message =
                format!("Error retrieving an object for object-template at index [{index}]: {why}");
            let object = resource(wanted, "-");
            let mut judged = Judged::new(object, State::NonCompliant, reason::API_ERROR);
            judged.result.name = String::new();
            judged.listed = Listed::Unlisted;
            return Some(vec![judged.saying(message)]);
        }
    };
    let matching: Vec<&Value> = all
        .iter()
        .map(|object| &**object)
        .filter(|object| compare::matches(&wanted.definition, object, ask.rule))
        .collect();
    let unwanted = ask.rule.compliance == Compliance::MustNotHave;
    let (state, reason) = match (matching.is_empty(), unwanted) {
        (false, false) => (State::Compliant, reason::FOUND),
        (false, true) => (State::NonCompliant, reason::UNWANTED),
        (true, true) => (State::Compliant, reason::MISSING_AS_EXPECTED),
        (true, false) if all.is_empty() => (State::NonCompliant, reason::NOT_FOUND),
        (true, false) => (State::NonCompliant, reason::MISMATCH),
    };
    if matching.is_empty() {
        let mut judged = Judged::new(resource(wanted, "-"), state, reason);
        judged.result.name = String::new();
        return Some(vec![judged]);
    }
    let only = matching.len() == 1 && !unwanted;
    let mut complete = true;
    let mut all = Vec::with_capacity(matching.len());
    for live in matching {
        let mut object = resource(wanted, metadata(live, "name"));
        object.metadata.namespace = metadata(live, "namespace").to_string();
        let old = ask.policy.entry(&object).and_then(|entry| entry.properties.as_ref());
        let uid = metadata(live, "uid").to_owned();
        let seen = Properties { created_by_policy: Some(false), uid, ..Properties::default() };
        let known = if tracking::is_claim(old) {
            // Whose it is only the object itself tells.
            let target = ask.kind.target(&object.metadata.namespace, &object.metadata.name);
            match reader.object(&target) {
                None => {
                    complete = false;
                    continue;
                }
                Some(Seen::Present(present)) => {
                    Some(tracking::existing(old, present, &ask.policy.uid))
                }
                Some(Seen::Absent | Seen::Unknown(_) | Seen::Unwatchable) => old.cloned(),
            }
        } else {
            Some(tracking::carried(old, seen))
        };
        let ours = |known: &Properties| only || known.created_by_policy == Some(true);
        let mut judged = Judged::new(object, state, reason);
        judged.listed = Listed::With(known.filter(ours));
        all.push(judged);
    }
    complete.then_some(all)
}
