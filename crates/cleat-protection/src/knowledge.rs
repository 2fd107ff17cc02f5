//! What caches know: enough to refuse, never enough to allow.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use cleat_core::id::{Id, Target};
use cleat_core::protection::{Criterion, Service, Sight, Tally, definition_id};
use cleat_runtime::census::{Census, Counted};
use cleat_runtime::kinds::Mapping;
use cleat_runtime::mirror::Look;

use crate::{Context, Key};

/// A kind by group and resource.
pub(crate) type Kind = (String, String);

/// Which CriticalServices care about which objects and kinds. Its clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Knowers {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    services: BTreeMap<Id, BTreeSet<String>>,
    counting: BTreeMap<Kind, BTreeSet<String>>,
    cared: BTreeMap<String, (BTreeSet<Target>, BTreeSet<Kind>)>,
    censuses: BTreeMap<Kind, (String, Census)>,
    unserved: BTreeSet<Kind>,
}

impl Knowers {
    fn with<T>(&self, act: impl FnOnce(&mut Inner) -> T) -> T {
        act(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn about(&self, id: &Id, mut tell: impl FnMut(&str)) {
        let names = self.with(|inner| inner.services.get(id).cloned());
        names.iter().flatten().for_each(|name| tell(name));
    }

    fn counting(&self, kind: &Kind, mut tell: impl FnMut(&str)) {
        let names = self.with(|inner| inner.counting.get(kind).cloned());
        names.iter().flatten().for_each(|name| tell(name));
    }

    /// Replaces what a service cares about; whether that is news.
    fn set(&self, service: &str, targets: &BTreeSet<Target>, kinds: &BTreeSet<Kind>) -> bool {
        self.with(|inner| {
            let cared = (targets.clone(), kinds.clone());
            let before = inner.cared.remove(service).unwrap_or_default();
            for target in &before.0 {
                strike(&mut inner.services, &target.id, service);
            }
            for kind in &before.1 {
                strike(&mut inner.counting, kind, service);
            }
            for target in targets {
                inner.services.entry(target.id.clone()).or_default().insert(service.to_owned());
            }
            for kind in kinds {
                inner.counting.entry(kind.clone()).or_default().insert(service.to_owned());
            }
            let news = before != cared;
            if !targets.is_empty() {
                inner.cared.insert(service.to_owned(), cared);
            }
            news
        })
    }

    pub(crate) fn census(&self, kind: &Kind) -> Option<Census> {
        self.with(|inner| inner.censuses.get(kind).map(|(_, census)| census.clone()))
    }

    /// Ends the watches of kinds that nobody asks about any more: neither one of these services, nor
    /// one that came since they were looked at.
    pub(crate) fn keep_kinds(&self, kinds: &BTreeSet<Kind>) {
        // Dropped outside the lock: what ends may want to be told.
        let ended = self.with(|inner| {
            let counting = &inner.counting;
            let (kept, ended) =
                std::mem::take(&mut inner.censuses).into_iter().partition::<BTreeMap<_, _>, _>(
                    |(kind, _)| kinds.contains(kind) || counting.contains_key(kind),
                );
            inner.censuses = kept;
            inner.unserved.retain(|kind| kinds.contains(kind) || counting.contains_key(kind));
            ended
        });
        drop(ended);
    }
}

fn strike<K: Ord>(all: &mut BTreeMap<K, BTreeSet<String>>, key: &K, service: &str) {
    if let Some(names) = all.get_mut(key) {
        names.remove(service);
        if names.is_empty() {
            all.remove(key);
        }
    }
}

impl Context {
    /// Begins to watch everything that a service is about. Nothing: it is gone.
    pub(crate) async fn care(&self, name: &str, service: Option<&Service>) {
        let (mut ids, mut kinds) = (BTreeSet::new(), BTreeSet::new());
        if let Some(service) = service {
            ids.insert(service.provider.clone());
            ids.extend(service.provider_namespace());
            ids.extend(service.provider_definition());
            for criterion in &service.criteria {
                if let Criterion::Object(id) = criterion {
                    ids.insert(id.clone());
                    ids.extend(definition_id(&id.group, &id.resource));
                }
                if let Some((group, resource)) = criterion.counted() {
                    ids.extend(definition_id(group, resource));
                    kinds.insert((group.to_owned(), resource.to_owned()));
                }
            }
        }
        let mut targets = BTreeSet::new();
        for id in ids {
            let version = self.version(&id).await.unwrap_or_else(|_| "v1".to_owned());
            targets.insert(Target { version, id });
        }
        if self.knowers.set(name, &targets, &kinds) {
            self.mirror.interest(name, &targets);
        }
        for kind in &kinds {
            self.count(kind).await;
        }
    }

    /// The version in which to ask for an object. `Err`: why there is none.
    pub(crate) async fn version(&self, id: &Id) -> Result<String, Mapping> {
        match self.kinds.preferred(&id.group, &id.resource).await {
            Mapping::Mapped(mapped) => Ok(mapped.version),
            other => Err(other),
        }
    }

    /// Begins to count the objects of a kind.
    async fn count(&self, kind: &Kind) {
        let (group, resource) = kind;
        let found = self.kinds.preferred(group, resource).await;
        self.knowers.with(|inner| match found {
            Mapping::NoSuchKind => drop(inner.unserved.insert(kind.clone())),
            Mapping::Mapped(_) | Mapping::Unknown(_) => drop(inner.unserved.remove(kind)),
        });
        let Mapping::Mapped(mapped) = found else { return };
        let (queue, knowers, about) = (self.queue.clone(), self.knowers.clone(), kind.clone());
        let learned = self.learned.clone();
        let changed = move || {
            learned.send_replace(());
            knowers.counting(&about, |name| queue.add(Key::Service(name.to_owned())));
        };
        let old = self.knowers.with(|inner| match inner.censuses.get(kind) {
            Some((version, _)) if *version == mapped.version => None,
            _ => {
                let client = self.config.client.clone();
                let census = Census::start(client, &self.tasks, &mapped, changed);
                inner.censuses.insert(kind.clone(), (mapped.version.clone(), census))
            }
        });
        drop(old);
    }

    /// What the mirror has of an object. Its word that there is none counts only for `reports`.
    pub(crate) fn sight(&self, id: &Id, reports: bool) -> Sight {
        match self.mirror.look(id) {
            Look::Present(meta) => Sight::Present {
                uid: meta.uid.to_string(),
                terminating: meta.deletion_timestamp.is_some(),
            },
            Look::Absent if reports => Sight::Absent,
            Look::NoSuchKind if reports => match definition_id(&id.group, &id.resource) {
                None => Sight::Absent,
                Some(definition) => match self.mirror.look(&definition) {
                    Look::Absent => Sight::Absent,
                    Look::Present(_) => Sight::Unknown(NOT_SERVED.to_owned()),
                    Look::NoSuchKind | Look::Unknown(_) => Sight::NotReady,
                },
            },
            Look::Unknown(reason) if reports => Sight::Unknown(reason.to_string()),
            Look::Unknown(_) => Sight::NotReady,
            Look::Absent | Look::NoSuchKind => Sight::NotSeen,
        }
    }

    /// How many stand against a criterion, as far as watches told. The same of their word.
    pub(crate) async fn tally(&self, criterion: &Criterion, reports: bool) -> Tally {
        let (kind, finalizer) = match criterion {
            Criterion::Finalizer { group, resource, finalizer } => {
                ((group.clone(), resource.clone()), Some(finalizer.as_str()))
            }
            Criterion::Any { group, resource } => ((group.clone(), resource.clone()), None),
            Criterion::Object(_) | Criterion::Unreadable(_) => return Tally::NotSeen,
        };
        let counted = self.knowers.census(&kind).map(|census| census.count(finalizer));
        match counted {
            Some(Counted::Known { count, samples }) if count > 0 => {
                Tally::Some { count, exact: true, samples }
            }
            Some(Counted::Known { .. }) if reports => Tally::None,
            Some(Counted::Unknown(why)) if reports => Tally::Unknown(why),
            Some(Counted::NoSuchKind) | None if reports => self.unserved(&kind).await,
            Some(Counted::Known { .. } | Counted::NoSuchKind) => Tally::NotSeen,
            // Nobody counts a kind that is not served.
            None if self.is_unserved(&kind) => Tally::NotSeen,
            Some(Counted::Unknown(_)) | None => Tally::NotReady,
        }
    }

    /// Whether discovery last said that there is no such kind.
    fn is_unserved(&self, kind: &Kind) -> bool {
        self.knowers.with(|inner| inner.unserved.contains(kind))
    }

    /// What it means that a kind cannot be counted.
    async fn unserved(&self, (group, resource): &Kind) -> Tally {
        match self.kinds.preferred(group, resource).await {
            Mapping::Unknown(why) => Tally::Unknown(discovery_failed(&why)),
            found @ (Mapping::Mapped(_) | Mapping::NoSuchKind) => {
                match definition_id(group, resource) {
                    None => Tally::None,
                    Some(definition) => match self.mirror.look(&definition) {
                        Look::Absent => match self.served_here(&found).await {
                            Ok(()) => Tally::None,
                            Err(why) => Tally::Unknown(why),
                        },
                        Look::Present(_) => Tally::Unknown(NOT_SERVED.to_owned()),
                        Look::NoSuchKind | Look::Unknown(_) => Tally::Unknown(
                            "whether the kind is defined is not known yet".to_owned(),
                        ),
                    },
                }
            }
        }
    }
}

/// Objects of such a kind may well be there.
pub(crate) const NOT_SERVED: &str = "the kind is defined but not served";

pub(crate) fn discovery_failed(why: &str) -> String {
    format!("DiscoveryFailed: {why}")
}
