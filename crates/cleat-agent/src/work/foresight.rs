//! What works are about according to their ledgers, before the first of them is looked at: so that
//! everything is listed once, and for all of them.
//!
//! It decides nothing. What a pass then finds to matter takes the place of this.

use std::collections::BTreeSet;

use cleat_core::id::Target;
use cleat_core::work::observed::Ledger;
use cleat_runtime::follow::Held;

use super::{Context, Key, observe, records};

impl Context {
    /// Cares about every object that a ledger of a work of our hub has on record.
    pub(super) async fn foresee(&self) {
        let mut all: Vec<(Key, BTreeSet<Target>)> = Vec::new();
        for object in self.ledgers.all() {
            let key = records::ledger_key(&self.agent, &object.name);
            let Ledger::Present(book) = records::ledger(&Held::Present(object)) else { continue };
            // Whose a stray is, a pass has to find out.
            if !matches!(key, Key::Work(_)) || book.agent_id != self.agent.id {
                continue;
            }
            let recorded = self.recorded(&book).await.into_iter();
            all.push((key, recorded.map(|(id, version)| Target { version, id }).collect()));
        }
        // Both or neither, whenever this is given up: a pass tells the mirror only what is news here.
        for (key, targets) in &all {
            self.subjects.set(key, targets, false);
        }
        let owners: Vec<String> = all.iter().map(|(key, _)| observe::owner(key)).collect();
        let interests = owners.iter().zip(&all);
        self.mirror.interests(interests.map(|(owner, (_, targets))| (owner.as_str(), targets)));
    }
}
