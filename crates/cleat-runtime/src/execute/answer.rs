//! What a server's answer means. Pure.
//!
//! The question is always what is certain afterwards. An answer that leaves open whether the write
//! happened is [`Outcome::Lost`], and one that leaves open whether the object is there is
//! [`Read::Unknown`] or [`Read::NoSuchKind`], never `Absent`.

use cleat_core::id::Target;
use cleat_core::write::{Action, Outcome, Write};
use serde_json::Value;

use super::Read;
use crate::status::{Missing, Status};
use crate::wire::Answer;

pub(super) fn outcome(action: &Action, answer: &Answer) -> Outcome {
    if answer.is_success() {
        return match serde_json::from_slice(&answer.body) {
            Ok(object) => Outcome::Done(remaining(&action.write, object)),
            Err(error) => Outcome::Lost(format!("the server's answer was not understood: {error}")),
        };
    }
    let status = Status::of(answer);
    // A webhook chooses code and reason of its denial itself; they tell nothing about the object.
    if status.is_from_webhook() {
        return Outcome::Refused(status.refusal());
    }
    match answer.code {
        404 => match status.missing(&action.target) {
            Missing::Object => Outcome::NotFound,
            Missing::Kind => Outcome::NoSuchKind,
            Missing::Other => Outcome::Refused(status.refusal()),
        },
        409 if status.reason == "AlreadyExists" => Outcome::AlreadyExists,
        409 if !status.is_about_managers() => Outcome::Conflict(status.message),
        503 | 504 => Outcome::Lost(status.message),
        // The API server gave up on its own storage, which may have stored it nevertheless.
        500 if status.message.contains("etcdserver: ") => Outcome::Lost(status.message),
        _ => Outcome::Refused(status.refusal()),
    }
}

pub(super) fn read(target: &Target, answer: &Answer) -> Read {
    if answer.is_success() {
        return match serde_json::from_slice(&answer.body) {
            Ok(object) => Read::Present(object),
            Err(error) => Read::Unknown {
                message: format!("the server's answer was not understood: {error}"),
            },
        };
    }
    let status = Status::of(answer);
    match (answer.code, status.missing(target)) {
        (404, Missing::Object) => Read::Absent,
        (404, Missing::Kind) => Read::NoSuchKind,
        _ => Read::Unknown { message: status.message },
    }
}

/// What is left after a delete; after everything else the object as it is now.
///
/// Some kinds answer a delete with the object as it last was. It is still there only if it waits
/// for something, and then it says since when.
fn remaining(write: &Write, object: Value) -> Value {
    match write {
        Write::Delete { .. } => {
            let waits = object.pointer("/metadata/deletionTimestamp").is_some_and(Value::is_string);
            if waits { object } else { Value::Null }
        }
        Write::Create(_)
        | Write::Replace(_)
        | Write::Apply { .. }
        | Write::Merge(_)
        | Write::MergeStatus(_)
        | Write::ReplaceStatus(_)
        | Write::MergeApproval(_) => object,
    }
}

#[cfg(test)]
mod tests;
