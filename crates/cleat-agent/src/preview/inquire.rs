//! Finding out about objects that would be deleted: whether a delete would be accepted, and what
//! would go along. Only reads and dry runs.

use std::collections::{BTreeMap, BTreeSet};

use cleat_core::id::{Id, Target};
use cleat_core::preview::{Inquiry, Kindred, Tried, is_custom, owned, owns_anywhere};
use cleat_core::work::contents::Found;
use cleat_core::work::outlook::{Change, Foreseen};
use cleat_core::write::{Action, Outcome, Propagation, Side, Write};
use cleat_runtime::contents::{self, Instances};
use cleat_runtime::execute::{Asking, Executor, Read};
use cleat_runtime::kinds::{Kinds, Mapping};
use futures::StreamExt as _;
use kube::Client;
use serde_json::Value;

use crate::policy::{Onlooker, Policies};

/// Deletes tried at the same time.
const AT_ONCE: usize = 16;

/// Looking through a namespace takes a request for every kind, so not every one is looked through
/// only to see what its objects own.
const MOST_NAMESPACES: usize = 20;

/// Of more objects than this nobody looks for who would take off their finalizers.
const MOST_HELD: usize = 50;

/// Of more objects of a kind than this nobody looks whether they bear finalizers.
const MOST_INSTANCES: usize = 2_000;

/// The way to the cluster that is asked.
pub struct Inquirer {
    pub(super) client: Client,
    pub(super) kinds: Kinds,
    pub(super) executor: Executor,
    /// It is asked about objects that nobody in the fleet looks after. What belongs to those outside of
    /// namespaces is looked for everywhere, which takes a request for every kind there is, whatever kind
    /// they are of themselves; and whether clusters lose something with them is not known here.
    pub(super) plain: bool,
}

impl Inquirer {
    /// The side `Cluster` of the executor is the cluster of the client.
    pub fn new(client: Client, executor: Executor) -> Self {
        Self { kinds: Kinds::new(client.clone()), client, executor, plain: false }
    }

    /// The same, about objects that nobody in the fleet looks after.
    #[must_use]
    pub fn of_plain_objects(self) -> Self {
        Self { plain: true, ..self }
    }

    /// What would become of a ConfigurationPolicy's objects if that happened. `None`: there is no such
    /// policy. `going`: the incarnations that works would have taken along by then. `policies`: who
    /// looks after them, if that is in this process.
    pub async fn of_policy(
        &self,
        namespace: &str,
        name: &str,
        change: Change,
        going: &BTreeSet<String>,
        policies: Option<&Policies>,
    ) -> Result<Option<Vec<Foreseen>>, String> {
        let Self { client, kinds, executor, plain: _ } = self;
        Onlooker { client, kinds, executor, policies }
            .foreseen(namespace, name, change, going)
            .await
    }

    /// Everything in a namespace or of a definition.
    pub(super) async fn held(&self, holder: &Id) -> Result<Vec<Found>, String> {
        contents::held(&self.client, &self.kinds, holder).await
    }

    /// Everything in a namespace.
    async fn inside(&self, namespace: &str) -> Result<Vec<Found>, String> {
        contents::found(&self.client, &self.kinds, namespace).await
    }

    pub(super) async fn inquire(&self, going: Vec<Foreseen>) -> BTreeMap<Id, Inquiry> {
        let mut insides: BTreeMap<String, Result<Vec<Found>, String>> = BTreeMap::new();
        let named = going.iter().filter(|one| is_namespace(&one.id)).map(|one| &one.id.name);
        let around = going.iter().map(|one| &one.id.namespace).filter(|name| !name.is_empty());
        let some: BTreeSet<&String> = around.take(10_000).collect();
        let looked: BTreeSet<&String> =
            named.chain(some.into_iter().take(MOST_NAMESPACES)).collect();
        for namespace in looked {
            insides.insert(namespace.clone(), self.inside(namespace).await);
        }
        let everything = match going.iter().any(|one| self.is_sought_for(&one.id)) {
            true => Some(contents::found_anywhere(&self.client, &self.kinds).await),
            false => None,
        };
        let terminating = going.iter().filter(|one| !one.finalizers.is_empty());
        let terminating: BTreeSet<Id> = terminating.map(|one| one.id.clone()).collect();
        let read: BTreeSet<Id> = terminating.into_iter().take(MOST_HELD).collect();
        let asked = going.into_iter().map(|one| {
            let (insides, everything, read) = (&insides, &everything, &read);
            async move {
                let (tried, remains) = match one.finalizers.is_empty() {
                    true => self.tried(&one).await,
                    false if read.contains(&one.id) => {
                        (Tried::NotTried, self.terminating(&one).await)
                    }
                    false => (Tried::NotTried, None),
                };
                let instances = self.instances(&one.id).await;
                let found = instances.as_ref().and_then(|instances| instances.as_ref().ok());
                let of_kind = found.map(|instances| instances.found.clone()).unwrap_or_default();
                let inquiry = Inquiry {
                    tried,
                    unserved: BTreeMap::new(),
                    unserved_along: BTreeMap::new(),
                    changes: Vec::new(),
                    inside: is_namespace(&one.id)
                        .then(|| insides.get(&one.id.name).cloned())
                        .flatten(),
                    instances: instances.map(|all| {
                        all.map(|Instances { found, count }| Kindred {
                            count,
                            uids: found.into_iter().map(|one| one.uid).collect(),
                        })
                    }),
                    owned: match one.id.namespace.as_str() {
                        "" => match everything.as_ref().filter(|_| self.is_sought_for(&one.id)) {
                            Some(found) => owned_of(found, &one.uid),
                            None => Ok(Vec::new()),
                        },
                        namespace => owned_within(insides.get(namespace), &one.uid),
                    },
                };
                (one.id, inquiry, remains, of_kind)
            }
        });
        let mut asked = futures::stream::iter(asked).buffer_unordered(AT_ONCE);
        let (mut inquiries, mut held) = (BTreeMap::new(), BTreeMap::new());
        let mut along = BTreeMap::new();
        while let Some((id, inquiry, remains, of_kind)) = asked.next().await {
            let inside = inquiry.inside.iter().flatten().flatten();
            along.insert(id.clone(), bearers(inside.chain(&of_kind)));
            if let Some(remains) = remains {
                held.insert(id.clone(), remains);
                // The same ones each time, whoever answers first.
                while held.len() > MOST_HELD {
                    held.pop_last();
                }
            }
            inquiries.insert(id, inquiry);
        }
        // What goes by itself is told where it is shown itself.
        along.values_mut().for_each(|bearers| bearers.retain(|id| !inquiries.contains_key(id)));
        self.read_along(along.values().flatten().collect(), &mut held).await;
        for (id, unserved) in self.unserved(&held).await {
            for (holder, _) in along.iter().filter(|(_, bearers)| bearers.contains(&id)) {
                if let Some(inquiry) = inquiries.get_mut(holder) {
                    inquiry.unserved_along.insert(id.clone(), unserved.clone());
                }
            }
            if let Some(inquiry) = inquiries.get_mut(&id) {
                inquiry.unserved = unserved;
            }
        }
        inquiries
    }

    /// The first of these objects, as far as there is room among those that are looked at.
    async fn read_along(&self, bearers: BTreeSet<&Id>, held: &mut BTreeMap<Id, Value>) {
        let room = MOST_HELD.saturating_sub(held.len());
        let reads = bearers.into_iter().take(room).cloned().map(|id| async move {
            let mapped = match self.kinds.preferred(&id.group, &id.resource).await {
                Mapping::Mapped(mapped) => mapped,
                Mapping::NoSuchKind | Mapping::Unknown(_) => return None,
            };
            let target = Target { version: mapped.version, id: id.clone() };
            match self.executor.read(Side::Cluster, &target).await {
                Read::Present(object) => Some((id, object)),
                Read::Absent | Read::NoSuchKind | Read::Unknown { .. } => None,
            }
        });
        let reads: Vec<_> = futures::stream::iter(reads).buffer_unordered(AT_ONCE).collect().await;
        held.extend(reads.into_iter().flatten());
    }

    /// Whether what belongs to an object is looked for everywhere.
    fn is_sought_for(&self, id: &Id) -> bool {
        owns_anywhere(id) && (self.plain || is_custom(id))
    }

    /// An object that is on its way out already.
    async fn terminating(&self, one: &Foreseen) -> Option<Value> {
        let target = Target { version: one.version.clone(), id: one.id.clone() };
        match self.executor.read(Side::Cluster, &target).await {
            Read::Present(object) => Some(object),
            Read::Absent | Read::NoSuchKind | Read::Unknown { .. } => None,
        }
    }

    /// A delete that is not meant; and the object, if finalizers would hold it.
    async fn tried(&self, one: &Foreseen) -> (Tried, Option<Value>) {
        let target = Target { version: one.version.clone(), id: one.id.clone() };
        let write = Write::Delete {
            uid: one.uid.clone(),
            resource_version: None,
            propagation: Propagation::Background,
        };
        let action = Action { side: Side::Cluster, target, write };
        let asking = Asking { dry_run: true, ..Asking::default() };
        let tried = match self.executor.perform(&action, &asking).await {
            Outcome::Done(remains) => {
                let finalizers = finalizers(&remains);
                let held = (!finalizers.is_empty()).then_some(remains);
                return (Tried::Accepted { finalizers }, held);
            }
            Outcome::NotFound => Tried::Accepted { finalizers: Vec::new() },
            Outcome::Refused(refusal) => Tried::Refused(refusal.message),
            Outcome::Lost(why) | Outcome::Conflict(why) => Tried::Unknown(why),
            Outcome::NoSuchKind => Tried::Unknown("the kind is not served".to_owned()),
            Outcome::AlreadyExists | Outcome::NotTried => {
                Tried::Unknown("it was not asked".to_owned())
            }
        };
        (tried, None)
    }

    /// The objects of a kind that a definition defines.
    async fn instances(&self, id: &Id) -> Option<Result<Instances, String>> {
        if id.group != "apiextensions.k8s.io" || id.resource != "customresourcedefinitions" {
            return None;
        }
        let (resource, group) = id.name.split_once('.')?;
        let mapped = match self.kinds.preferred(group, resource).await {
            Mapping::Mapped(mapped) => mapped,
            Mapping::NoSuchKind => {
                return Some(Ok(Instances { found: Vec::new(), count: 0 }));
            }
            Mapping::Unknown(why) => return Some(Err(why)),
        };
        Some(contents::instances(&self.client, &mapped, MOST_INSTANCES).await)
    }
}

/// Those that finalizers would hold.
fn bearers<'a>(found: impl Iterator<Item = &'a Found>) -> BTreeSet<Id> {
    found.filter(|one| !one.finalizers.is_empty()).map(|one| one.id.clone()).collect()
}

/// What an object owns in its namespace. A namespace that nobody looked through is not an empty one.
fn owned_within(found: Option<&Result<Vec<Found>, String>>, uid: &str) -> Result<Vec<Id>, String> {
    match found {
        Some(found) => owned_of(found, uid),
        None => Err("too many namespaces to look for what it owns".to_owned()),
    }
}

fn owned_of(found: &Result<Vec<Found>, String>, uid: &str) -> Result<Vec<Id>, String> {
    found.as_ref().map(|found| owned(found, uid)).map_err(Clone::clone)
}

fn is_namespace(id: &Id) -> bool {
    id.group.is_empty() && id.resource == "namespaces"
}

fn finalizers(object: &Value) -> Vec<String> {
    let all = object.pointer("/metadata/finalizers").and_then(Value::as_array);
    all.into_iter().flatten().filter_map(|one| one.as_str().map(ToOwned::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use cleat_core::work::observed::Owner;

    use super::*;

    fn found(name: &str, owners: &[&str]) -> Found {
        let owner = |uid: &&str| Owner {
            api_version: "apps/v1".to_owned(),
            kind: "ReplicaSet".to_owned(),
            name: (*uid).to_owned(),
            uid: (*uid).to_owned(),
            controller: Some(true),
            block_owner_deletion: None,
        };
        Found {
            id: Id { name: name.to_owned(), ..Id::default() },
            uid: name.to_owned(),
            terminating: false,
            owners: owners.iter().map(owner).collect(),
            account: None,
            above: BTreeMap::new(),
            labels: BTreeMap::new(),
            finalizers: Vec::new(),
        }
    }

    #[test]
    fn what_nobody_looked_for_was_taken_for_nothing() {
        let inside = Ok(vec![found("pod", &["set"])]);
        assert_eq!(owned_within(Some(&inside), "set").map(|all| all.len()), Ok(1));
        assert_eq!(owned_within(Some(&inside), "web"), Ok(vec![]));
        let told = "too many namespaces to look for what it owns".to_owned();
        assert_eq!(owned_within(None, "set"), Err(told));
    }
}
