//! Conditions: what is said of an object, and since when.
//!
//! What is said again keeps its time, so a pass that finds nothing new writes nothing.

use alloc::borrow::ToOwned as _;
use alloc::string::String;
use alloc::vec::Vec;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

/// No message is longer than what a table and a person can take in.
const LONGEST_MESSAGE: usize = 2048;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    True,
    False,
    Unknown,
}

impl Status {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

/// One thing to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    pub kind: &'static str,
    pub status: Status,
    pub reason: &'static str,
    pub message: String,
}

pub fn find<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == kind)
}

pub fn holds(conditions: &[Condition], kind: &str) -> bool {
    find(conditions, kind).is_some_and(|condition| condition.status == "True")
}

/// Says it, in its place if something was said before, else at the end.
pub fn say(conditions: &mut Vec<Condition>, said: Said, generation: Option<i64>, now: Timestamp) {
    let Said { kind, status, reason, mut message } = said;
    if message.len() > LONGEST_MESSAGE {
        message.truncate(message.floor_char_boundary(LONGEST_MESSAGE));
        message.push('…');
    }
    let fresh = Condition {
        type_: kind.to_owned(),
        status: status.as_str().to_owned(),
        reason: reason.to_owned(),
        message,
        observed_generation: generation,
        last_transition_time: whole_seconds(now),
    };
    match conditions.iter_mut().find(|condition| condition.type_ == kind) {
        Some(before) => {
            let since = if before.status == fresh.status {
                before.last_transition_time.clone()
            } else {
                fresh.last_transition_time.clone()
            };
            *before = Condition { last_transition_time: since, ..fresh };
        }
        None => conditions.push(fresh),
    }
}

/// Kubernetes keeps times of conditions to the second.
pub fn whole_seconds(at: Timestamp) -> Time {
    Time(Timestamp::from_second(at.as_second()).unwrap_or(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(status: Status, message: &str) -> Said {
        Said { kind: "Well", status, reason: "Because", message: message.into() }
    }

    #[test]
    fn what_is_said_again_keeps_its_time() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let mut conditions = Vec::new();
        say(&mut conditions, said(Status::True, "a"), Some(1), at(10));
        say(&mut conditions, said(Status::True, "b"), Some(2), at(20));
        assert_eq!(conditions.len(), 1);
        assert_eq!(conditions[0].last_transition_time, Time(at(10)));
        assert_eq!((&*conditions[0].message, conditions[0].observed_generation), ("b", Some(2)));
        say(&mut conditions, said(Status::Unknown, "c"), None, at(30));
        assert_eq!(conditions[0].last_transition_time, Time(at(30)));
        assert!(!holds(&conditions, "Well"));
    }

    #[test]
    fn long_messages_end_on_a_character() {
        let mut conditions = Vec::new();
        say(&mut conditions, said(Status::True, &"é".repeat(2000)), None, Timestamp::UNIX_EPOCH);
        assert!(conditions[0].message.len() <= LONGEST_MESSAGE + '…'.len_utf8());
    }
}
