//! Trying writes that are not meant: whether the cluster would take them, and what it would make of
//! them. Only dry runs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cleat_core::id::Id;
use cleat_core::preview::{Inquiry, Tried, differences};
use cleat_core::write::{Action, Outcome, Write};
use cleat_runtime::execute::Asking;
use futures::StreamExt as _;
use serde_json::Value;

use super::Inquirer;

/// Writes tried at the same time.
const AT_ONCE: usize = 16;

/// A write that somebody thinks of.
pub(super) struct Trial {
    pub(super) action: Action,
    /// The object as it is, if it is there.
    pub(super) before: Option<Arc<Value>>,
    /// Fields that the server does not know are refused.
    pub(super) strict: bool,
}

impl Inquirer {
    pub(super) async fn rehearse(&self, trials: Vec<Trial>) -> BTreeMap<Id, Inquiry> {
        let written: BTreeSet<Id> =
            trials.iter().map(|trial| trial.action.target.id.clone()).collect();
        let tried = trials.into_iter().map(|trial| {
            let written = &written;
            async move {
                let id = trial.action.target.id.clone();
                let (tried, changes) = self.rehearsed(trial, written).await;
                (id, Inquiry { tried, changes, ..Inquiry::default() })
            }
        });
        futures::stream::iter(tried).buffer_unordered(AT_ONCE).collect().await
    }

    /// `written`: everything that is written, and is there by then.
    async fn rehearsed(&self, trial: Trial, written: &BTreeSet<Id>) -> (Tried, Vec<String>) {
        let Trial { mut action, before, strict } = trial;
        let (within, defined) = (
            written.contains(&namespace_of(&action.target.id)),
            written.contains(&definition_of(&action.target.id)),
        );
        without_blank_owners(&mut action.write);
        let asking = Asking { dry_run: true, ..Asking::default() };
        let unknown = |why: &str| Tried::Unknown(why.to_owned());
        let executor = match strict {
            true => self.executor.clone().strict(),
            false => self.executor.clone(),
        };
        let tried = match executor.perform(&action, &asking).await {
            Outcome::Done(after) => {
                let changes = before.map(|before| differences(&before, &after));
                let accepted = Tried::Accepted { finalizers: Vec::new() };
                return (accepted, changes.unwrap_or_default());
            }
            // The namespace or the kind is not there yet, but comes along.
            Outcome::Refused(refusal) if refusal.code == 404 && (within || defined) => {
                Tried::NotTried
            }
            Outcome::NoSuchKind | Outcome::NotFound if defined => Tried::NotTried,
            Outcome::Refused(refusal) => Tried::Refused(refusal.message),
            Outcome::Lost(why) => Tried::Unknown(why),
            Outcome::Conflict(_) | Outcome::AlreadyExists | Outcome::NotFound => {
                unknown("it changed just now")
            }
            Outcome::NoSuchKind => unknown("the kind is not served"),
            Outcome::NotTried => unknown("it was not asked"),
        };
        (tried, Vec::new())
    }
}

fn namespace_of(id: &Id) -> Id {
    let (resource, name) = ("namespaces".to_owned(), id.namespace.clone());
    Id { group: String::new(), resource, namespace: String::new(), name }
}

fn definition_of(id: &Id) -> Id {
    Id {
        group: "apiextensions.k8s.io".to_owned(),
        resource: "customresourcedefinitions".to_owned(),
        namespace: String::new(),
        name: format!("{}.{}", id.resource, id.group),
    }
}

/// A ledger that is not there yet has no uid to refer to, and no server takes a reference without one.
fn without_blank_owners(write: &mut Write) {
    let (Write::Create(object)
    | Write::Replace(object)
    | Write::Merge(object)
    | Write::Apply { object, .. }) = write
    else {
        return;
    };
    let owners = object.pointer_mut("/metadata/ownerReferences").and_then(Value::as_array_mut);
    if let Some(owners) = owners {
        owners.retain(|owner| owner["uid"] != "");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn references_to_what_is_not_there_are_left_out() {
        let owners = json!([{ "name": "a", "uid": "1" }, { "name": "b", "uid": "" }]);
        let mut write = Write::Create(json!({ "metadata": { "ownerReferences": owners } }));
        without_blank_owners(&mut write);
        let owners = json!([{ "name": "a", "uid": "1" }]);
        assert_eq!(write, Write::Create(json!({ "metadata": { "ownerReferences": owners } })));
        let mut write = Write::Create(json!({}));
        without_blank_owners(&mut write);
        assert_eq!(write, Write::Create(json!({})));
    }
}
