//! Whether a namespace or a definition is there to stay: nothing is created in or of what goes.
//!
//! This is asked several times per creation, and changes about never; so each is read once, when it
//! is stored, and not whenever somebody asks.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::follow::Digest;
use crate::object;

/// What is known of one that is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Stays,
    Goes,
    /// Its bytes are damaged: that is neither of the two.
    Unreadable,
}

impl Standing {
    fn of(stored: &[u8]) -> Self {
        let Ok(object) = serde_json::from_slice::<Value>(stored) else { return Self::Unreadable };
        let ending = object::at(&object, "/status/phase") == Some("Terminating");
        match ending || object::deletion_timestamp(&object).is_some() {
            true => Self::Goes,
            false => Self::Stays,
        }
    }
}

/// All of one kind, by name.
#[derive(Default)]
pub(crate) struct Standings(BTreeMap<Box<str>, Standing>);

impl Standings {
    pub(crate) const NAMESPACES: &'static str = "/namespaces";

    /// `None` if there is none of that name.
    pub(crate) fn of(&self, name: &str) -> Option<Standing> {
        self.0.get(name).copied()
    }
}

impl Digest for Standings {
    fn clear(&mut self) {
        self.0.clear();
    }

    fn take(&mut self, _bucket: &str, key: &str, value: Option<&[u8]>) {
        match value {
            Some(stored) => self.0.insert(key.into(), Standing::of(stored)),
            None => self.0.remove(key),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_marked_or_ends_goes() {
        for (stored, want) in [
            (r#"{"metadata":{"name":"a"},"status":{"phase":"Active"}}"#, Standing::Stays),
            (r#"{"metadata":{"name":"a"}}"#, Standing::Stays),
            (r#"{"metadata":{"deletionTimestamp":"2026-11-15T21:07:54Z"}}"#, Standing::Goes),
            (r#"{"metadata":{},"status":{"phase":"Terminating"}}"#, Standing::Goes),
            ("{", Standing::Unreadable),
        ] {
            let mut standings = Standings::default();
            standings.take("", "a", Some(stored.as_bytes()));
            assert_eq!(standings.of("a"), Some(want), "{stored}");
            standings.take("", "a", None);
            assert_eq!(standings.of("a"), None);
        }
    }
}
