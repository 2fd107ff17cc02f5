//! Names of objects, in the two forms in which a kind keeps them.

use std::borrow::Borrow;
use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use cleat_core::id::Id;

/// An id by its name, within a namespace of a kind.
#[derive(Clone)]
pub(super) struct Named(pub(super) Arc<Id>);

/// The names of all objects of a kind, as numbers. With a secret in them: nobody can choose two
/// names to be taken for each other.
#[derive(Default)]
pub(super) struct Names {
    all: HashSet<u64>,
    secret: RandomState,
}

impl Names {
    pub(super) fn hash(&self, namespace: &str, name: &str) -> u64 {
        self.secret.hash_one((namespace, name))
    }

    /// By its [hash](Self::hash).
    pub(super) fn contains(&self, hash: u64) -> bool {
        self.all.contains(&hash)
    }

    pub(super) fn insert(&mut self, namespace: &str, name: &str) {
        self.all.insert(self.hash(namespace, name));
    }

    pub(super) fn remove(&mut self, namespace: &str, name: &str) {
        self.all.remove(&self.hash(namespace, name));
    }

    /// Of what a list told of.
    pub(super) fn replace(&mut self, all: HashSet<u64>) {
        self.all = all;
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }
}

impl Borrow<str> for Named {
    fn borrow(&self) -> &str {
        &self.0.name
    }
}

impl PartialEq for Named {
    fn eq(&self, other: &Self) -> bool {
        self.0.name == other.0.name
    }
}

impl Eq for Named {}

impl PartialOrd for Named {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Named {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.name.cmp(&other.0.name)
    }
}
