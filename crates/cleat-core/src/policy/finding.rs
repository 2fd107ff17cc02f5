//! What was found of a template or an object, and the words for it.
//!
//! The texts are those that users and tools of OCM know.

use alloc::borrow::Cow;
use alloc::borrow::ToOwned as _;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use cleat_api::configurationpolicy::{reason, state};

/// Whether something is as it must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum State {
    Compliant,
    NonCompliant,
    Terminating,
}

impl State {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Compliant => state::COMPLIANT,
            Self::NonCompliant => state::NONCOMPLIANT,
            Self::Terminating => state::TERMINATING,
        }
    }

    /// The type of a condition that says so.
    pub(crate) fn condition(self) -> &'static str {
        match self {
            Self::Compliant => "notification",
            Self::NonCompliant | Self::Terminating => "violation",
        }
    }
}

/// What is said of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) state: State,
    pub(crate) reason: String,
    pub(crate) message: String,
}

impl Finding {
    pub(crate) fn new(state: State, reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self { state, reason: reason.into(), message: message.into() }
    }
}

/// What is said of one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Result {
    pub(crate) state: State,
    pub(crate) reason: &'static str,
    /// In place of the phrase that goes with the reason.
    pub(crate) message: Option<String>,
    /// Empty for what no namespace holds.
    pub(crate) namespace: String,
    /// Empty where no single object is meant.
    pub(crate) name: String,
}

/// The order in which reasons are spoken of, their phrases, and how conditions call them.
const PHRASES: &[(&str, &str, &str)] = &[
    (reason::FOUND, reason::MUST_HAVE_EXISTS, "found as specified"),
    (reason::CREATED, reason::CREATED, "was created successfully"),
    (
        reason::CREATED_STATUS_UNCHECKED,
        reason::CREATED_STATUS_UNCHECKED,
        "was created successfully",
    ),
    (reason::UPDATED, reason::UPDATED, "was updated successfully"),
    (reason::DELETED, reason::DELETED, "was deleted successfully"),
    (reason::NOT_FOUND, reason::MUST_HAVE_MISSING, "not found"),
    (reason::MISMATCH, reason::MUST_HAVE_MISSING, "found but not as specified"),
    (reason::MISSING_AS_EXPECTED, reason::MUST_NOT_HAVE_MISSING, "missing as expected"),
    (reason::UNWANTED, reason::MUST_NOT_HAVE_EXISTS, "found"),
];

/// Names more than these are counted, not listed.
const MOST_NAMES: usize = 1000;

/// What is said of a template, given what is said of each of its objects.
pub(crate) fn summary(plural: &str, results: &[Result]) -> Finding {
    let worst = results.iter().map(|one| one.state).max().unwrap_or(State::Compliant);
    let spoken_of: Vec<&Result> = results.iter().filter(|one| one.state == worst).collect();
    let mut groups: BTreeMap<(usize, &str), Vec<&Result>> = BTreeMap::new();
    for one in spoken_of {
        let place = PHRASES.iter().position(|(reason, _, _)| *reason == one.reason);
        groups.entry((place.unwrap_or(PHRASES.len()), one.reason)).or_default().push(one);
    }
    let mut reasons: Vec<&str> = Vec::new();
    let mut messages: Vec<String> = Vec::new();
    for ((place, reason), group) in groups {
        let (reason, phrase) =
            PHRASES.get(place).map_or((reason, ""), |(_, reason, phrase)| (*reason, *phrase));
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
        let own: BTreeSet<&String> = group.iter().filter_map(|one| one.message.as_ref()).collect();
        let plain: Vec<&Result> = group.into_iter().filter(|one| one.message.is_none()).collect();
        if !plain.is_empty() {
            messages.extend(sentences(plural, &plain, phrase));
        }
        messages.extend(own.into_iter().cloned());
    }
    Finding::new(worst, reasons.join("; "), messages.join("; "))
}

/// More sentences than these say less than one that leaves out what is where.
const MOST_SENTENCES: usize = 20;

/// A sentence for each set of namespaces that some objects of a name are in.
fn sentences(plural: &str, group: &[&Result], phrase: &str) -> Vec<String> {
    let mut places: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for one in group {
        places.entry(&one.name).or_default().insert(&one.namespace);
    }
    let mut same: BTreeMap<String, Vec<&Result>> = BTreeMap::new();
    for one in group {
        let places = places.get(one.name.as_str()).map(somewhere).unwrap_or_default();
        same.entry(places).or_default().push(one);
    }
    if same.len() > MOST_SENTENCES {
        return alloc::vec![sentence(plural, group, phrase)];
    }
    same.values().map(|group| sentence(plural, group, phrase)).collect()
}

/// `pods [a, b] found in namespaces: x, y`
fn sentence(plural: &str, group: &[&Result], phrase: &str) -> String {
    let names: BTreeSet<&str> =
        group.iter().map(|one| one.name.as_str()).filter(|name| !name.is_empty()).collect();
    let namespaces: BTreeSet<&str> =
        group.iter().map(|one| one.namespace.as_str()).filter(|name| !name.is_empty()).collect();
    let names = match names.is_empty() {
        true => String::new(),
        false => format!(" [{}]", listed(&names)),
    };
    let suffix = match group.first().map(|one| one.reason) {
        Some(reason::CREATED_STATUS_UNCHECKED) => {
            ", the status of the object will be verified in the next evaluation"
        }
        _ => "",
    };
    format!("{plural}{names} {phrase}{}{suffix}", somewhere(&namespaces))
}

fn listed(names: &BTreeSet<&str>) -> String {
    let mut shown: Vec<Cow<'_, str>> =
        names.iter().take(MOST_NAMES).map(|name| Cow::Borrowed(*name)).collect();
    if names.len() > MOST_NAMES {
        shown.push(Cow::Owned(format!("and {} more", names.len() - MOST_NAMES)));
    }
    shown.join(", ")
}

fn somewhere(namespaces: &BTreeSet<&str>) -> String {
    match namespaces.len() {
        0 => String::new(),
        1 => format!(" in namespace {}", listed(namespaces)),
        _ => format!(" in namespaces: {}", listed(namespaces)),
    }
}

/// `pods [a] in namespace x`, for messages about one object.
pub(crate) fn subject(plural: &str, namespace: &str, name: &str) -> String {
    let place = match namespace {
        "" => String::new(),
        namespace => format!(" in namespace {namespace}"),
    };
    format!("{plural} [{name}]{place}")
}

/// What is added when a policy will not look again by itself.
pub(crate) fn never_again(state: State) -> String {
    let field = match state {
        State::Compliant => "compliant",
        State::NonCompliant | State::Terminating => "noncompliant",
    };
    format!(
        ". This policy will not be evaluated again due to spec.evaluationInterval.{field} being set to \"never\"."
    )
}

/// The whole policy in one line, as its owner hears it: the state and what each template says.
pub(crate) fn policy_message(state: Option<&str>, details: &[(String, String)]) -> String {
    let Some(state) = state else { return "ComplianceState is still unknown".to_owned() };
    let mut message = state.to_owned();
    for (kind, text) in details {
        message.push_str(&format!("; {kind} - {text}"));
    }
    message
}

/// The longest message an event may have.
const LONGEST: usize = 4096;
const CUT: &str = "...[truncated]";

pub(crate) fn cut(message: String) -> String {
    if message.len() <= LONGEST {
        return message;
    }
    let end = message.floor_char_boundary(LONGEST - CUT.len());
    format!("{}{CUT}", message.get(..end).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(reason: &'static str, state: State, namespace: &str, name: &str) -> Result {
        Result { state, reason, message: None, namespace: namespace.into(), name: name.into() }
    }

    #[test]
    fn sentences_are_those_of_ocm() {
        use State::{Compliant, NonCompliant};
        let cases: Vec<(Vec<Result>, &str, &str)> = alloc::vec![
            (
                alloc::vec![one(reason::FOUND, Compliant, "default", "nginx")],
                "K8s `must have` object already exists",
                "pods [nginx] found as specified in namespace default",
            ),
            (
                alloc::vec![
                    one(reason::NOT_FOUND, NonCompliant, "n2", "p"),
                    one(reason::NOT_FOUND, NonCompliant, "n1", "p"),
                    one(reason::FOUND, Compliant, "n3", "p"),
                ],
                "K8s does not have a `must have` object",
                "pods [p] not found in namespaces: n1, n2",
            ),
            (
                alloc::vec![
                    one(reason::UNWANTED, NonCompliant, "default", "two"),
                    one(reason::UNWANTED, NonCompliant, "default", "one")
                ],
                "K8s has a `must not have` object",
                "pods [one, two] found in namespace default",
            ),
            (
                alloc::vec![
                    one(reason::UNWANTED, NonCompliant, "n1", "a"),
                    one(reason::UNWANTED, NonCompliant, "n2", "a"),
                    one(reason::UNWANTED, NonCompliant, "n2", "b"),
                    one(reason::UNWANTED, NonCompliant, "n2", "c"),
                ],
                "K8s has a `must not have` object",
                "pods [b, c] found in namespace n2; pods [a] found in namespaces: n1, n2",
            ),
            (
                alloc::vec![one(reason::MISSING_AS_EXPECTED, Compliant, "a", "")],
                "K8s `must not have` object already missing",
                "pods missing as expected in namespace a",
            ),
            (
                alloc::vec![
                    one(reason::CREATED, Compliant, "", "a"),
                    one(reason::FOUND, Compliant, "", "b")
                ],
                "K8s `must have` object already exists; K8s creation success",
                "pods [b] found as specified; pods [a] was created successfully",
            ),
            (
                alloc::vec![
                    one(reason::MISMATCH, NonCompliant, "x", "b"),
                    one(reason::NOT_FOUND, NonCompliant, "x", "a")
                ],
                "K8s does not have a `must have` object",
                "pods [a] not found in namespace x; pods [b] found but not as specified in namespace x",
            ),
            (
                alloc::vec![one(reason::CREATED_STATUS_UNCHECKED, NonCompliant, "x", "a")],
                "K8s creation success, status unchecked",
                "pods [a] was created successfully in namespace x, the status of the object will be verified in the next evaluation",
            ),
            (
                alloc::vec![
                    Result {
                        message: Some("it failed".into()),
                        ..one(reason::UPDATE_ERROR, NonCompliant, "x", "a")
                    },
                    one(reason::NOT_FOUND, NonCompliant, "x", "b"),
                ],
                "K8s does not have a `must have` object; K8s update template error",
                "pods [b] not found in namespace x; it failed",
            ),
        ];
        for (results, reason, message) in cases {
            let finding = summary("pods", &results);
            assert_eq!((finding.reason.as_str(), finding.message.as_str()), (reason, message));
        }
    }

    #[test]
    fn too_many_sentences_become_one() {
        let scattered = |count: usize| -> Vec<Result> {
            let name = |index: usize| (format!("n{index:02}"), format!("p{index:02}"));
            let names = (0..count).map(name);
            names.map(|(place, name)| one(reason::FOUND, State::Compliant, &place, &name)).collect()
        };
        assert_eq!(summary("pods", &scattered(20)).message.matches("found").count(), 20);
        let message = summary("pods", &scattered(21)).message;
        assert!(message.starts_with("pods [p00, p01,") && message.ends_with(" n19, n20"));
    }

    #[test]
    fn a_long_message_is_cut() {
        let long = cut("é".repeat(3000));
        assert!(long.len() <= LONGEST && long.ends_with(CUT));
        assert_eq!(cut("short".to_owned()), "short");
    }
}
