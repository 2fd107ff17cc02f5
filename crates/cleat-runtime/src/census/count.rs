//! The counting itself. Pure.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::watch::Fault;

/// How many there are, as far as a watch told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Counted {
    Known {
        count: usize,
        /// The first few, as `namespace/name`.
        samples: Vec<String>,
    },
    /// The server does not serve the kind.
    NoSuchKind,
    Unknown(String),
}

/// How many are named.
const SAMPLES: usize = 5;

type Name = Arc<str>;
type Finalizers = Arc<[Box<str>]>;

#[derive(Default)]
pub(super) struct Count {
    /// By `namespace/name`.
    objects: BTreeMap<Name, Finalizers>,
    by_finalizer: BTreeMap<Box<str>, BTreeSet<Name>>,
    /// Objects of one kind mostly have the same finalizers; each list of them is kept once.
    lists: BTreeSet<Finalizers>,
    /// What a list under way has told of so far.
    listing: Option<BTreeSet<Name>>,
    synced: bool,
    revision: String,
    /// An object was told of that could not be read: it may have any finalizer.
    unread: bool,
    fault: Option<Fault>,
}

#[derive(Deserialize)]
struct Object<'a> {
    #[serde(borrow)]
    metadata: Meta<'a>,
}

#[derive(Deserialize)]
struct Meta<'a> {
    #[serde(borrow, default)]
    namespace: Cow<'a, str>,
    #[serde(borrow)]
    name: Cow<'a, str>,
    finalizers: Option<Box<[Box<str>]>>,
}

pub(super) fn name_and_finalizers(object: &RawValue) -> Option<(String, Box<[Box<str>]>)> {
    let parsed: serde_json::Result<Object<'_>> = serde_json::from_str(object.get());
    let Meta { namespace, name, finalizers } = parsed.ok()?.metadata;
    let name = if namespace.is_empty() { name.into_owned() } else { format!("{namespace}/{name}") };
    Some((name, finalizers.unwrap_or_default()))
}

/// Why nothing is counted of a kind that cannot be watched.
pub(super) const UNWATCHABLE: &str = "the kind cannot be watched";

impl Count {
    pub(super) fn counted(&self, finalizer: Option<&str>) -> Counted {
        match &self.fault {
            Some(Fault::NoSuchKind) => return Counted::NoSuchKind,
            Some(Fault::Forbidden(why)) => {
                return Counted::Unknown(format!("not allowed to look: {why}"));
            }
            Some(Fault::Unwatchable) => return Counted::Unknown(UNWATCHABLE.to_owned()),
            Some(Fault::Failed(why)) => return Counted::Unknown(why.clone()),
            Some(Fault::Expired) | None => {}
        }
        if !self.synced {
            return Counted::Unknown("not read yet".to_owned());
        }
        if self.unread {
            return Counted::Unknown("an object was not understood".to_owned());
        }
        fn some<'a>(names: impl Iterator<Item = &'a Name>) -> Vec<String> {
            names.take(SAMPLES).map(|name| name.to_string()).collect()
        }
        match finalizer {
            None => {
                Counted::Known { count: self.objects.len(), samples: some(self.objects.keys()) }
            }
            Some(finalizer) => match self.by_finalizer.get(finalizer) {
                Some(names) => Counted::Known { count: names.len(), samples: some(names.iter()) },
                None => Counted::Known { count: 0, samples: Vec::new() },
            },
        }
    }

    /// The revision as of which nothing was there to be counted, if so.
    pub(super) fn reached(&self, finalizer: Option<&str>) -> Option<String> {
        let none = matches!(self.counted(finalizer), Counted::Known { count: 0, .. });
        (none && self.listing.is_none() && !self.revision.is_empty()).then(|| self.revision.clone())
    }

    /// Whether there are more than so many objects, whatever finalizers they have.
    pub(super) fn exceeds(&self, number: u64) -> bool {
        u64::try_from(self.objects.len()).unwrap_or(u64::MAX) > number
    }

    pub(super) fn list_began(&mut self) {
        self.listing = Some(BTreeSet::new());
        self.unread = false;
    }

    pub(super) fn listed(&mut self, object: &RawValue) {
        let Some((name, finalizers)) = name_and_finalizers(object) else {
            self.unread = true;
            return;
        };
        let (name, _) = self.put(&name, finalizers);
        if let Some(listing) = &mut self.listing {
            listing.insert(name);
        }
    }

    pub(super) fn list_ended(&mut self, revision: &str) {
        let listed = self.listing.take().unwrap_or_default();
        let gone: Vec<Name> =
            self.objects.keys().filter(|name| !listed.contains(*name)).cloned().collect();
        for name in gone {
            self.remove(&name);
        }
        self.synced = true;
        self.revision = revision.to_owned();
    }

    pub(super) fn changed(&mut self, object: &RawValue) -> bool {
        let Some((name, finalizers)) = name_and_finalizers(object) else {
            return !std::mem::replace(&mut self.unread, true);
        };
        self.put(&name, finalizers).1
    }

    pub(super) fn deleted(&mut self, object: &RawValue) -> bool {
        let Some((name, _)) = name_and_finalizers(object) else { return false };
        self.remove(&name)
    }

    pub(super) fn reach(&mut self, revision: &str) {
        self.revision = revision.to_owned();
    }

    pub(super) fn up(&mut self) -> bool {
        self.fault.take().is_some()
    }

    pub(super) fn down(&mut self, fault: &Fault) -> bool {
        if *fault == Fault::NoSuchKind {
            // What comes back may be another kind of the same name.
            self.objects.clear();
            self.by_finalizer.clear();
            self.synced = false;
            self.revision.clear();
        }
        let changed = self.fault.as_ref() != Some(fault);
        self.fault = Some(fault.clone());
        changed
    }

    fn put(&mut self, name: &str, finalizers: Box<[Box<str>]>) -> (Name, bool) {
        if let Some((name, had)) = self.objects.get_key_value(name)
            && **had == *finalizers
        {
            return (name.clone(), false);
        }
        let name = match self.objects.remove_entry(name) {
            Some((name, had)) => {
                self.unmark(&name, &had);
                name
            }
            None => Name::from(name),
        };
        let list = match self.lists.get(&*finalizers) {
            Some(list) => list.clone(),
            None => {
                let list = Finalizers::from(finalizers);
                self.lists.insert(list.clone());
                list
            }
        };
        for finalizer in list.iter() {
            match self.by_finalizer.get_mut(finalizer) {
                Some(names) => drop(names.insert(name.clone())),
                None => drop(
                    self.by_finalizer.insert(finalizer.clone(), BTreeSet::from([name.clone()])),
                ),
            }
        }
        self.objects.insert(name.clone(), list);
        (name, true)
    }

    fn remove(&mut self, name: &str) -> bool {
        let Some((name, had)) = self.objects.remove_entry(name) else { return false };
        self.unmark(&name, &had);
        true
    }

    fn unmark(&mut self, name: &Name, had: &Finalizers) {
        for finalizer in had.iter() {
            if let Some(names) = self.by_finalizer.get_mut(finalizer) {
                names.remove(name);
                if names.is_empty() {
                    self.by_finalizer.remove(finalizer);
                }
            }
        }
        // The object's own and the set's.
        if Arc::strong_count(had) <= 2 {
            self.lists.remove(&**had);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(name: &str, finalizers: &[&str]) -> Box<RawValue> {
        let metadata = json!({ "namespace": "n", "name": name, "finalizers": finalizers });
        RawValue::from_string(json!({ "metadata": metadata }).to_string()).unwrap()
    }

    fn known(count: usize, samples: &[&str]) -> Counted {
        Counted::Known { count, samples: samples.iter().map(|&one| one.to_owned()).collect() }
    }

    #[test]
    fn finalizers_are_counted_as_they_come_and_go() {
        let mut count = Count::default();
        assert!(matches!(count.counted(None), Counted::Unknown(_)));
        count.list_began();
        count.listed(&object("a", &["f"]));
        count.listed(&object("b", &[]));
        assert_eq!(count.reached(Some("g")), None);
        count.list_ended("5");
        assert_eq!(count.counted(None), known(2, &["n/a", "n/b"]));
        assert_eq!(count.counted(Some("f")), known(1, &["n/a"]));
        assert_eq!(count.reached(Some("f")), None);
        assert_eq!(count.reached(Some("g")).as_deref(), Some("5"));
        assert!(count.changed(&object("b", &["f", "g"])));
        assert!(!count.changed(&object("b", &["f", "g"])));
        assert_eq!(count.counted(Some("f")), known(2, &["n/a", "n/b"]));
        assert!(count.changed(&object("a", &[])));
        assert!(count.deleted(&object("b", &["f", "g"])));
        assert!(!count.deleted(&object("b", &[])));
        assert_eq!(count.counted(Some("f")), known(0, &[]));
        assert_eq!(count.counted(None), known(1, &["n/a"]));
        assert!(count.by_finalizer.is_empty());
    }

    #[test]
    fn a_list_forgets_what_it_does_not_have_and_a_lost_kind_everything() {
        let mut count = Count::default();
        for names in [vec!["a", "b"], vec!["b"]] {
            count.list_began();
            for name in names {
                count.listed(&object(name, &["f"]));
            }
            count.list_ended("1");
        }
        assert_eq!(count.counted(Some("f")), known(1, &["n/b"]));
        assert!(count.down(&Fault::NoSuchKind));
        assert_eq!(count.counted(None), Counted::NoSuchKind);
        assert!(count.up());
        assert!(matches!(count.counted(None), Counted::Unknown(_)));
    }

    #[test]
    fn what_cannot_be_reached_is_not_counted() {
        let mut count = Count::default();
        count.list_began();
        count.list_ended("1");
        count.down(&Fault::Failed("gone".to_owned()));
        assert_eq!(count.counted(None), Counted::Unknown("gone".to_owned()));
        assert_eq!(count.reached(None), None);
    }

    #[test]
    fn an_object_that_could_not_be_read_was_taken_for_one_without_finalizers() {
        let odd = RawValue::from_string(json!({ "metadata": { "name": 7 } }).to_string()).unwrap();
        let mut count = Count::default();
        count.list_began();
        count.list_ended("1");
        assert_eq!(count.reached(Some("f")).as_deref(), Some("1"));
        assert!(count.changed(&odd));
        count.reach("2");
        assert!(matches!(count.counted(Some("f")), Counted::Unknown(_)));
        assert_eq!(count.reached(Some("f")), None);
        // Until all are listed anew.
        count.list_began();
        count.list_ended("3");
        assert_eq!(count.reached(Some("f")).as_deref(), Some("3"));
    }

    #[test]
    fn lists_of_finalizers_that_nobody_has_are_let_go() {
        let mut count = Count::default();
        for number in 0..100 {
            count.changed(&object("a", &[&format!("f{number}")]));
        }
        assert!(count.lists.len() <= 2, "{}", count.lists.len());
    }
}
