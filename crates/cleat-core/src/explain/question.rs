//! What is asked of servers in order to explain something, and what they answered.

use alloc::borrow::ToOwned as _;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::RefCell;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::id::Id;
use crate::write::Refusal;

/// Which server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Place {
    /// The one that was asked about.
    Here,
    /// The managed cluster that something on the hub is about.
    Cluster,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Question {
    /// One object.
    Object { place: Place, id: Id },
    /// Which resource serves a kind.
    Kind { place: Place, group: String, kind: String },
    /// Objects of one resource, in a namespace or everywhere; empty `labels` choose all.
    List { place: Place, group: String, resource: String, namespace: String, labels: String },
    /// The metadata of everything in a namespace, or of everything there is.
    Contents { place: Place, namespace: String },
    /// Whether a delete of this incarnation would pass, asked in a dry run.
    Rehearsal { place: Place, id: Id, uid: String },
}

/// What a server told, or that it did not.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    Object(Box<Value>),
    /// The server knows the kind, and nothing of that name is there.
    Absent,
    /// The server told all it serves, and this is not among it.
    NoSuchKind,
    Kind(Kind),
    Listed(Listed),
    Contents(Contents),
    /// A rehearsed delete would pass.
    Passed,
    Refused(Refusal),
    Unread(Unread),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kind {
    pub resource: String,
    pub namespaced: bool,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Listed {
    pub items: Vec<Value>,
    /// There are more than were read.
    pub more: bool,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Contents {
    pub items: Vec<(Id, Value)>,
    /// Resources with more objects than were read.
    pub more: Vec<String>,
    /// What could not be read, and why.
    pub unread: Vec<(String, String)>,
}

/// Why something is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unread {
    pub why: String,
    /// The server answered 401 or 403: it is whoever asks that must not know.
    pub forbidden: bool,
}

/// All answers so far.
#[derive(Clone, Debug, Default)]
pub struct Seen(BTreeMap<Question, Answer>);

impl Seen {
    pub fn answer(&mut self, question: Question, answer: Answer) {
        self.0.insert(question, answer);
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// What is known of one object.
pub(super) enum Found<'a> {
    /// It was not asked for yet; it is now. Whatever is told meanwhile is thrown away.
    Pending,
    Present(&'a Value),
    Absent,
    NoSuchKind,
    Unread(&'a Unread),
}

/// What is known of a list. Pending ones are empty.
#[derive(Default)]
pub(super) struct List<'a> {
    pub(super) items: &'a [Value],
    pub(super) more: bool,
    pub(super) unread: Option<&'a Unread>,
    /// The server does not serve the resource.
    pub(super) unserved: bool,
}

/// Answers as far as they are there; it notes which are not.
pub(super) struct Look<'a> {
    seen: &'a Seen,
    missing: RefCell<BTreeSet<Question>>,
    /// What is asked about, if it is one thing.
    pub(super) subject: Option<&'a Id>,
    /// Which cluster is asked.
    pub(super) cluster: Option<&'a str>,
    pub(super) now: Timestamp,
}

impl<'a> Look<'a> {
    pub(super) fn new(
        seen: &'a Seen,
        subject: Option<&'a Id>,
        cluster: Option<&'a str>,
        now: Timestamp,
    ) -> Self {
        Self { seen, missing: RefCell::default(), subject, cluster, now }
    }

    pub(super) fn missing(&self) -> BTreeSet<Question> {
        self.missing.borrow().clone()
    }

    pub(super) fn ask(&self, question: Question) -> Option<&'a Answer> {
        let answer = self.seen.0.get(&question);
        if answer.is_none() {
            self.missing.borrow_mut().insert(question);
        }
        answer
    }

    pub(super) fn object(&self, place: Place, id: &Id) -> Found<'a> {
        match self.ask(Question::Object { place, id: id.clone() }) {
            Some(Answer::Object(object)) => Found::Present(object),
            Some(Answer::Absent) => Found::Absent,
            Some(Answer::NoSuchKind) => Found::NoSuchKind,
            Some(Answer::Unread(unread)) => Found::Unread(unread),
            _ => Found::Pending,
        }
    }

    /// Objects of a resource.
    pub(super) fn list(&self, place: Place, of: (&str, &str), within: (&str, &str)) -> List<'a> {
        let ((group, resource), (namespace, labels)) = (of, within);
        let question = Question::List {
            place,
            group: group.to_owned(),
            resource: resource.to_owned(),
            namespace: namespace.to_owned(),
            labels: labels.to_owned(),
        };
        match self.ask(question) {
            Some(Answer::Listed(Listed { items, more })) => {
                List { items, more: *more, ..List::default() }
            }
            Some(Answer::Unread(unread)) => List { unread: Some(unread), ..List::default() },
            Some(Answer::NoSuchKind) => List { unserved: true, ..List::default() },
            _ => List::default(),
        }
    }
}
