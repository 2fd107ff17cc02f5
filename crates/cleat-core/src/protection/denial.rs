//! A refusal in words and in causes, and how whoever was refused understands it again.
//!
//! The text is the interface: an API server passes a webhook's words on everywhere, its causes only
//! to those who look at them. So [`Protected::parse`] reads what [`Denial::message`] says.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;
use core::fmt;

use serde_json::{Value, json};

use super::request::{Operation, Request};
use super::service::{Criterion, kind_name, service_id};
use crate::id::Id;
use crate::write::{Outcome, Refusal};

/// The reason that conditions give for what a CriticalService holds back.
pub const PROTECTED_BY: &str = "ProtectedBy";

const BEGIN: &str = "ProtectedBy CriticalService ";

const UNKNOWN: &str = " cannot be told: ";

const AT_LEAST: &str = "at least ";

/// What an executor passes on is no longer than this together with the server's own words.
const LONGEST: usize = 880;
/// So many bytes of names of CriticalServices, where not everything fits: one more than that is
/// understood by nobody if it is cut.
const LONGEST_NAMES: usize = 300;
/// How many objects are named of one kind.
const SAMPLES: usize = 5;
/// How soon asking again makes sense, where nobody tells when.
const RETRY_SECONDS: u32 = 2;

/// Why a request must not pass.
#[derive(Clone, Debug, PartialEq)]
pub struct Denial {
    pub request: Request,
    /// Never empty.
    pub holds: Vec<Hold>,
}

/// What one CriticalService has against it.
#[derive(Clone, Debug, PartialEq)]
pub struct Hold {
    pub service: String,
    /// Never empty.
    pub clauses: Vec<Clause>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Clause {
    Remain {
        criterion: Criterion,
        count: usize,
        /// Whether that is all of them.
        exact: bool,
        samples: Vec<String>,
    },
    /// One object.
    Remains(Id),
    Provider(Id),
    /// The CriticalService, which may go before its provider: then nothing is protected any more.
    Released(Id),
    /// Nobody new may come to need a provider that is going.
    Latched(Criterion, Id),
    /// About what, and why.
    Unknown(String, String),
}

impl Clause {
    fn reason(&self) -> &'static str {
        match self {
            Self::Remain { criterion: Criterion::Finalizer { .. }, .. } => "FinalizerRemains",
            Self::Remain { .. } => "InstancesRemain",
            Self::Remains(_) => "ResourceRemains",
            Self::Provider(_) => "ProviderRemains",
            Self::Released(_) => "ServiceRemains",
            Self::Latched(..) => "ProviderIsGoing",
            Self::Unknown(..) => "Unknown",
        }
    }

    fn text(&self, samples: usize) -> String {
        match self {
            Self::Remain { criterion, count, exact, samples: known } => {
                let least = if *exact { "" } else { AT_LEAST };
                let verb = if *count == 1 { "remains" } else { "remain" };
                let named: Vec<&str> = known.iter().take(samples).map(String::as_str).collect();
                let names = match named.len() {
                    0 => String::new(),
                    some if some < *count || !exact => format!(" ({}, …)", named.join(", ")),
                    _ => format!(" ({})", named.join(", ")),
                };
                format!("{least}{count} {criterion} {verb}{names}")
            }
            Self::Remains(id) => format!("{id} remains"),
            Self::Provider(id) => format!("its provider {id} remains"),
            Self::Released(id) => format!("{id} remains (deleting it ends the protection)"),
            Self::Latched(criterion, provider) => {
                format!("{criterion} would need {provider}, which is going or gone")
            }
            Self::Unknown(subject, why) => {
                // These two would look like the end of the clause.
                let why = why.replace("; ", ", ").replace(". ", ", ");
                let end = why.floor_char_boundary(160);
                let why = why.get(..end).unwrap_or_default();
                format!("{subject}{UNKNOWN}{why}")
            }
        }
    }
}

impl Denial {
    /// For users, bounded. The same denial always has the same words.
    pub fn message(&self) -> String {
        let advice = self.advice();
        for samples in [SAMPLES, 2, 0] {
            let message = self.told(samples, usize::MAX, &advice);
            if message.len() <= LONGEST {
                return message;
            }
        }
        let mut length = 0;
        let fitting = self.holds.iter().take(4).take_while(|hold| {
            length += hold.service.len() + 2;
            length <= LONGEST_NAMES
        });
        let fitting = fitting.count().max(1);
        let mut message = self.told(0, fitting, &advice);
        if message.len() > LONGEST {
            message.truncate(message.floor_char_boundary(LONGEST));
            message.push('…');
        }
        message
    }

    fn told(&self, samples: usize, most: usize, advice: &str) -> String {
        let names: Vec<&str> =
            self.holds.iter().take(most).map(|hold| hold.service.as_str()).collect();
        let mut clauses: Vec<String> = Vec::new();
        for clause in self.holds.iter().flat_map(|hold| &hold.clauses) {
            let text = clause.text(samples);
            if !clauses.contains(&text) {
                clauses.push(text);
            }
        }
        // What cannot be told may say anything, so nothing that is read again comes after it.
        clauses.sort_by_key(|text| text.contains(UNKNOWN));
        let more = clauses.len().saturating_sub(most);
        clauses.truncate(most);
        if more > 0 {
            clauses.push(format!("and {more} more"));
        }
        format!("{BEGIN}{}: {}. {advice}", names.join(", "), clauses.join("; "))
    }

    fn advice(&self) -> String {
        let request = &self.request;
        let mut all: Vec<&str> = Vec::new();
        let clauses = || self.holds.iter().flat_map(|hold| &hold.clauses);
        let unknown =
            clauses().all(|clause| matches!(clause, Clause::Unknown(..) | Clause::Released(_)));
        let provider = clauses().any(|clause| matches!(clause, Clause::Provider(_)));
        let latched = clauses().any(|clause| matches!(clause, Clause::Latched(..)));
        all.push(match request.operation {
            _ if latched => "Bring the provider back first",
            _ if unknown => "Repeat this when the cluster can tell",
            Operation::Delete if provider => {
                "Delete the provider first, or set spec.onDelete to Release to end its protection"
            }
            Operation::Delete | Operation::Create | Operation::Update => {
                "Delete these first; this can be repeated at any time"
            }
        });
        if self.deadlocked() {
            all.push(
                "Some of them are in this very namespace: delete them by themselves, or they would \
                 be held for ever by what goes with it",
            );
        }
        if request.collection {
            all.push(
                "This was one of a collection of which some may be deleted already: narrow the next \
                 request by labels",
            );
        }
        if let Some(who) = patient(&request.user) {
            all.push(who);
        }
        format!("{}.", all.join(". "))
    }

    /// Whether what must go first is inside the namespace that is to go.
    fn deadlocked(&self) -> bool {
        let id = &self.request.id;
        if id.resource != "namespaces" || !id.group.is_empty() {
            return false;
        }
        let inside = format!("{}/", id.name);
        self.holds.iter().flat_map(|hold| &hold.clauses).any(|clause| match clause {
            Clause::Remain { samples, .. } => {
                samples.iter().any(|sample| sample.starts_with(&inside))
            }
            Clause::Remains(other) => other.namespace == id.name,
            _ => false,
        })
    }

    /// Kubernetes' `Status` for it: 403, one cause for each clause.
    pub fn status(&self) -> Value {
        let causes: Vec<Value> = self
            .holds
            .iter()
            .flat_map(|hold| {
                hold.clauses.iter().map(|clause| {
                    json!({
                        "reason": clause.reason(),
                        "field": format!("criticalservices/{}", hold.service),
                        "message": clause.text(SAMPLES),
                    })
                })
            })
            .take(32)
            .collect();
        let Id { group, resource, name, .. } = &self.request.id;
        json!({
            "status": "Failure",
            "code": 403,
            "reason": "Forbidden",
            "message": self.message(),
            "details": {
                "group": group,
                "kind": resource,
                "name": name,
                "uid": self.request.uid,
                "causes": causes,
                "retryAfterSeconds": RETRY_SECONDS,
            },
        })
    }
}

/// Callers that nobody watches, but that come again.
fn patient(user: &str) -> Option<&'static str> {
    match user {
        "system:serviceaccount:kube-system:generic-garbage-collector" => {
            Some("The garbage collector repeats this by itself")
        }
        "system:serviceaccount:kube-system:namespace-controller" => {
            Some("The namespace controller repeats this by itself")
        }
        _ => None,
    }
}

/// Somebody else's view of a denial: who protects, and what must go first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Protected {
    /// Names of CriticalServices. When one of them changes, asking again makes sense.
    pub services: Vec<String>,
    pub awaited: Vec<Awaited>,
}

/// What must go first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Awaited {
    Object(Id),
    /// Objects of a kind, all or some.
    Kind {
        group: String,
        resource: String,
    },
}

impl Awaited {
    pub fn is(&self, id: &Id) -> bool {
        match self {
            Self::Object(object) => object == id,
            Self::Kind { group, resource } => id.group == *group && id.resource == *resource,
        }
    }
}

impl Protected {
    /// What a refusal says, if it is one of ours.
    pub fn of(refusal: &Refusal) -> Option<Self> {
        if refusal.code == 403 { Self::parse(&refusal.message) } else { None }
    }

    /// The same, of what came of a write.
    pub fn of_outcome(outcome: &Outcome) -> Option<Self> {
        match outcome {
            Outcome::Refused(refusal) => Self::of(refusal),
            _ => None,
        }
    }

    /// Reads a message, with or without what an API server put before it. What was cut off or is
    /// written by a later version is left out.
    pub fn parse(message: &str) -> Option<Self> {
        let (before, said) = message.split_once(BEGIN)?;
        // Only a webhook's denial, or our own words.
        if !before.is_empty() && !before.starts_with("admission webhook ") {
            return None;
        }
        let (names, rest) = said.split_once(": ")?;
        let services: Vec<String> = names.split(", ").map(ToOwned::to_owned).collect();
        if services.iter().any(|name| name.is_empty() || name.contains(' ')) {
            return None;
        }
        let clauses = rest.split(". ").next().unwrap_or_default();
        let clauses = clauses.split("; ").take_while(|clause| !clause.contains(UNKNOWN));
        let awaited = clauses.filter_map(Awaited::parse).collect();
        Some(Self { services, awaited })
    }

    /// The CriticalServices, to be watched.
    pub fn ids(&self) -> impl Iterator<Item = Id> + '_ {
        self.services.iter().map(|name| service_id(name))
    }
}

/// `ProtectedBy a, b`
impl fmt::Display for Protected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PROTECTED_BY} {}", self.services.join(", "))
    }
}

impl Awaited {
    fn parse(clause: &str) -> Option<Self> {
        let (subject, _) = clause.rsplit_once(" remain").filter(|(_, end)| {
            ["", "s"].contains(end) || end.starts_with(" (") || end.starts_with("s (")
        })?;
        let subject = subject.strip_prefix("its provider ").unwrap_or(subject);
        let subject = subject.strip_prefix(AT_LEAST).unwrap_or(subject);
        let counted = subject.split_once(' ').filter(|(count, _)| count.parse::<usize>().is_ok());
        if let Some((_, kind)) = counted {
            let kind = kind.split_once(" with finalizer ").map_or(kind, |(kind, _)| kind);
            let (resource, group) = split_kind(kind);
            return Some(Self::Kind { group, resource });
        }
        let (kind, place) = subject.split_once(' ')?;
        let (resource, group) = split_kind(kind);
        let (namespace, name) = place.split_once('/').unwrap_or(("", place));
        Some(Self::Object(Id {
            group,
            resource,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }))
    }
}

fn split_kind(kind: &str) -> (String, String) {
    let (resource, group) = kind.split_once('.').unwrap_or((kind, ""));
    debug_assert_eq!(kind_name(group, resource), kind);
    (resource.to_owned(), group.to_owned())
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message())
    }
}

impl Denial {
    /// The object that was asked about, for a record.
    pub fn subject(&self) -> String {
        self.request.id.to_string()
    }
}
