//! Telling a client whose fields its configuration would have taken.

use std::borrow::Cow;

use super::element::Element;
use super::managers::{Identity, Operation};
use crate::quote;
use crate::status::{Cause, Status};

/// A field that someone else manages.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Conflict {
    pub(super) manager: Identity,
    pub(super) path: Vec<Element>,
}

/// The refusal that names all of them. `conflicts` must be sorted by manager and not be empty.
pub(super) fn refusal(conflicts: &[Conflict]) -> Status {
    let message = match conflicts {
        [only] => format!("conflict: conflict with {}: {}", named(&only.manager), path(only)),
        many => {
            let mut lines = Vec::new();
            let mut last = None;
            for conflict in many {
                if last != Some(&conflict.manager) {
                    lines.push(format!("conflicts with {}:", named(&conflict.manager)));
                    last = Some(&conflict.manager);
                }
                lines.push(format!("- {}", path(conflict)));
            }
            format!("conflicts: {}", lines.join("\n"))
        }
    };
    let message = format!("Apply failed with {} {message}", conflicts.len());
    conflicts.iter().fold(Status::new(409, "Conflict", message), |status, conflict| {
        status.with_cause(Cause {
            reason: Cow::Borrowed("FieldManagerConflict"),
            message: format!("conflict with {}", named(&conflict.manager)),
            field: path(conflict),
        })
    })
}

fn path(conflict: &Conflict) -> String {
    conflict.path.iter().map(Element::to_string).collect()
}

fn named(manager: &Identity) -> String {
    let mut text = quote::quoted(&manager.name);
    if !manager.subresource.is_empty() {
        text += &format!(" with subresource {}", quote::quoted(&manager.subresource));
    }
    if manager.operation == Operation::Update {
        text += &format!(" using {}", manager.api_version);
    }
    text
}
