//! One line in the log for a pass that wrote something.

use cleat_core::write::{Action, Outcome, Write};

/// `what` the objects are, in plural.
pub(crate) fn log(what: &str, plan: &[Vec<Action>], done: &[Vec<Outcome>]) {
    if plan.is_empty() {
        return;
    }
    let count =
        |is: fn(&Write) -> bool| plan.iter().flatten().filter(|action| is(&action.write)).count();
    let failed = done.iter().flatten().filter(|outcome| !outcome.is_done()).count();
    tracing::info!(
        created = count(|write| matches!(write, Write::Create(_))),
        changed = count(|write| matches!(write, Write::Merge(_) | Write::Replace(_))),
        deleted = count(|write| matches!(write, Write::Delete { .. })),
        failed,
        "{what} written"
    );
}
