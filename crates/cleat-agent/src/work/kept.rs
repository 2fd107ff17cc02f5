//! What the ledgers of this hub say to keep, so that no other work takes it away when the cluster leaves.
//! Ledgers are read when somebody wants to know, and then only those that changed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use cleat_core::id::Id;
use cleat_core::work::observed::{Book, Ledger};
use cleat_core::work::retire;
use cleat_runtime::follow::Follow;

use super::records;

/// By the names of the ledgers.
#[derive(Default)]
pub(super) struct Kept {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Those of this hub that changed since they were last read.
    changed: BTreeSet<String>,
    unreadable: BTreeMap<String, String>,
    /// Who keeps an object, and in which incarnation.
    keepers: BTreeMap<Id, BTreeMap<String, String>>,
    /// What each keeps.
    kept: BTreeMap<String, BTreeSet<Id>>,
}

impl Kept {
    /// A ledger of this hub is not as it was.
    pub(super) fn changed(&self, ledger: &str) {
        self.with(|state| state.changed.insert(ledger.to_owned()));
    }

    /// What other ledgers of this hub keep of what is in this one.
    pub(super) fn elsewhere(
        &self,
        ledgers: &Follow,
        own: &str,
        book: &Book,
    ) -> Result<BTreeMap<Id, String>, String> {
        self.with(|state| {
            for name in std::mem::take(&mut state.changed) {
                state.read(records::ledger(&ledgers.get("", &name)), name);
            }
            state.elsewhere(own, book)
        })
    }

    fn with<T>(&self, how: impl FnOnce(&mut State) -> T) -> T {
        how(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl State {
    fn read(&mut self, ledger: Ledger, name: String) {
        self.unreadable.remove(&name);
        for id in self.kept.remove(&name).unwrap_or_default() {
            if let Some(keepers) = self.keepers.get_mut(&id) {
                keepers.remove(&name);
                if keepers.is_empty() {
                    self.keepers.remove(&id);
                }
            }
        }
        match ledger {
            Ledger::Absent => {}
            Ledger::NotYet => drop(self.changed.insert(name)),
            Ledger::Unknown(why) => drop(self.unreadable.insert(name, why)),
            Ledger::Present(book) => {
                let kept = retire::keeps(&book);
                for (id, uid) in &kept {
                    self.keepers.entry(id.clone()).or_default().insert(name.clone(), uid.clone());
                }
                if !kept.is_empty() {
                    self.kept.insert(name, kept.into_keys().collect());
                }
            }
        }
    }

    fn elsewhere(&self, own: &str, book: &Book) -> Result<BTreeMap<Id, String>, String> {
        if let Some((name, why)) = self.unreadable.iter().find(|(name, _)| *name != own) {
            return Err(format!("ledger {name}: {why}"));
        }
        if let Some(name) = self.changed.iter().find(|name| *name != own) {
            return Err(format!("ledger {name} was not read yet"));
        }
        let mut found = BTreeMap::new();
        for id in book.ids() {
            let keepers = self.keepers.get(id).into_iter().flatten();
            let other = keepers.into_iter().find(|(name, _)| *name != own);
            found.extend(other.map(|(_, uid)| (id.clone(), uid.clone())));
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use cleat_core::work::observed::{Applied, Claim, Origin};

    use super::*;

    fn id(name: &str) -> Id {
        Id { resource: "configmaps".to_owned(), name: name.to_owned(), ..Id::default() }
    }

    fn book(objects: &[(&str, bool)]) -> Book {
        let applied =
            |name: &str| Applied { version: "v1".to_owned(), uid: format!("uid-of-{name}") };
        Book {
            claims: objects
                .iter()
                .map(|(name, kept)| (id(name), Claim { origin: Origin::Created, kept: *kept }))
                .collect(),
            applied: objects.iter().map(|(name, _)| (id(name), applied(name))).collect(),
            ..Book::default()
        }
    }

    #[test]
    fn only_what_others_keep_counts_and_only_as_long_as_they_do() {
        let mut state = State::default();
        let own = book(&[("a", true), ("b", false), ("c", false)]);
        state.read(Ledger::Present(own.clone()), "own".to_owned());
        assert_eq!(state.elsewhere("own", &own), Ok(BTreeMap::new()));
        state
            .read(Ledger::Present(book(&[("b", true), ("c", false), ("d", true)])), "x".to_owned());
        let kept: BTreeMap<Id, String> = [(id("b"), "uid-of-b".to_owned())].into();
        assert_eq!(state.elsewhere("own", &own), Ok(kept));
        state.read(Ledger::Unknown("garbled".to_owned()), "x".to_owned());
        assert_eq!(state.elsewhere("own", &own), Err("ledger x: garbled".to_owned()));
        assert!(state.elsewhere("x", &own).is_ok(), "its own look says so itself");
        state.read(Ledger::Absent, "x".to_owned());
        assert_eq!(state.elsewhere("own", &own), Ok(BTreeMap::new()));
        assert!(state.keepers.keys().all(|kept| *kept == id("a")), "{:?}", state.keepers);
    }
}
