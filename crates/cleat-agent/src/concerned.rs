//! Whom what concerns: which works or policies an object wakes.
//!
//! There are as many entries as objects, so each is small: names are kept once, for whoever else has
//! to keep them too, and most objects concern one alone.

use std::collections::BTreeMap;
use std::sync::Arc;

/// From what concerns somebody to whom it concerns.
pub(crate) struct Concerned<O, K> {
    keys: BTreeMap<Arc<O>, Box<[Arc<K>]>>,
}

impl<O, K> Default for Concerned<O, K> {
    fn default() -> Self {
        Self { keys: BTreeMap::new() }
    }
}

impl<O: Ord + Clone, K: PartialEq> Concerned<O, K> {
    /// Gives the object as it is kept here.
    pub(crate) fn add(&mut self, object: &O, key: &Arc<K>) -> Arc<O> {
        let kept = self.keys.get_key_value(object).map(|(kept, _)| Arc::clone(kept));
        let kept = kept.unwrap_or_else(|| Arc::new(object.clone()));
        let keys = self.keys.entry(Arc::clone(&kept)).or_default();
        if !keys.contains(key) {
            *keys = keys.iter().chain([key]).cloned().collect();
        }
        kept
    }

    pub(crate) fn remove(&mut self, object: &O, key: &K) {
        let Some(keys) = self.keys.get_mut(object) else { return };
        *keys = keys.iter().filter(|other| ***other != *key).cloned().collect();
        if keys.is_empty() {
            self.keys.remove(object);
        }
    }

    /// Whom an object concerns.
    pub(crate) fn of(&self, object: &O) -> impl Iterator<Item = &K> {
        self.keys.get(object).into_iter().flat_map(|keys| keys.iter()).map(|key| &**key)
    }

    /// Whether it concerns anybody.
    pub(crate) fn contains(&self, object: &O) -> bool {
        self.keys.contains_key(object)
    }

    /// All objects in order, from that one on.
    pub(crate) fn starting_at(&self, first: &O) -> impl Iterator<Item = &O> {
        self.keys.range::<O, _>(first..).map(|(object, _)| &**object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_kept_once_and_as_long_as_it_concerns_anybody() {
        let mut all: Concerned<String, &str> = Concerned::default();
        let (object, a, b) = ("o".to_owned(), Arc::new("a"), Arc::new("b"));
        let kept = all.add(&object, &a);
        assert!(Arc::ptr_eq(&kept, &all.add(&object, &b)));
        assert!(Arc::ptr_eq(&kept, &all.add(&object, &a)), "again makes no difference");
        assert_eq!(all.of(&object).collect::<Vec<_>>(), [&"a", &"b"]);
        all.remove(&object, &"a");
        all.remove(&object, &"c");
        assert_eq!(all.of(&object).collect::<Vec<_>>(), [&"b"]);
        all.remove(&object, &"b");
        assert!(!all.contains(&object));
        assert_eq!(all.of(&object).count(), 0);
    }

    #[test]
    fn objects_come_in_order() {
        let mut all: Concerned<u32, &str> = Concerned::default();
        for object in [3, 1, 2] {
            all.add(&object, &Arc::new("a"));
        }
        assert_eq!(all.starting_at(&2).collect::<Vec<_>>(), [&2, &3]);
    }
}
