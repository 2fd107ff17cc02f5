//! Finding out about objects that would be deleted: whether a delete would be accepted, and what
//! would go along. Only reads and dry runs.

use std::collections::{BTreeMap, BTreeSet};

use cleat_core::id::{Id, Target};
use cleat_core::preview::{Inquiry, Tried};
use cleat_core::work::contents::Found;
use cleat_core::work::outlook::{Change, Foreseen};
use cleat_core::write::{Action, Outcome, Propagation, Side, Write};
use cleat_runtime::contents;
use cleat_runtime::execute::{Asking, Executor, Read};
use cleat_runtime::kinds::{Kinds, Mapping};
use futures::StreamExt as _;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, ListParams};
use kube::core::GroupVersionKind;
use serde_json::Value;

use crate::policy::{Onlooker, Policies};

/// Deletes tried at the same time.
const AT_ONCE: usize = 16;

/// Looking through a namespace takes a request for every kind, so not every one is looked through
/// only to see what its objects own.
const MOST_NAMESPACES: usize = 20;

/// Of more objects than this nobody looks for who would take off their finalizers.
const MOST_HELD: usize = 50;

/// The way to the cluster that is asked.
pub struct Inquirer {
    pub(super) client: Client,
    pub(super) kinds: Kinds,
    pub(super) executor: Executor,
    /// What belongs to objects outside of namespaces is looked for everywhere, which takes a request
    /// for every kind there is, whatever kind they are of themselves.
    anywhere: bool,
}

impl Inquirer {
    /// The side `Cluster` of the executor is the cluster of the client.
    pub fn new(client: Client, executor: Executor) -> Self {
        Self { kinds: Kinds::new(client.clone()), client, executor, anywhere: false }
    }

    /// The same, looking everywhere for what belongs to any objects outside of namespaces.
    #[must_use]
    pub fn anywhere(self) -> Self {
        Self { anywhere: true, ..self }
    }

    /// What would become of a ConfigurationPolicy's objects if that happened. `None`: there is no such
    /// policy. `policies`: who looks after them, if that is in this process.
    pub async fn of_policy(
        &self,
        namespace: &str,
        name: &str,
        change: Change,
        policies: Option<&Policies>,
    ) -> Result<Option<Vec<Foreseen>>, String> {
        let Self { client, kinds, executor, anywhere: _ } = self;
        Onlooker { client, kinds, executor, policies }.foreseen(namespace, name, change).await
    }

    /// Everything in a namespace.
    pub(super) async fn inside(&self, namespace: &str) -> Result<Vec<Found>, String> {
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
                let inquiry = Inquiry {
                    tried,
                    unserved: BTreeMap::new(),
                    changes: Vec::new(),
                    inside: is_namespace(&one.id)
                        .then(|| insides.get(&one.id.name).cloned())
                        .flatten(),
                    instances: self.instances(&one.id).await,
                    owned: match one.id.namespace.as_str() {
                        "" => match everything.as_ref().filter(|_| self.is_sought_for(&one.id)) {
                            Some(found) => owned_of(found, &one.uid),
                            None => Ok(Vec::new()),
                        },
                        namespace => owned_within(insides.get(namespace), &one.uid),
                    },
                };
                (one.id, inquiry, remains)
            }
        });
        let mut asked = futures::stream::iter(asked).buffer_unordered(AT_ONCE);
        let (mut inquiries, mut held) = (BTreeMap::new(), BTreeMap::new());
        while let Some((id, inquiry, remains)) = asked.next().await {
            if let Some(remains) = remains {
                held.insert(id.clone(), remains);
                // The same ones each time, whoever answers first.
                while held.len() > MOST_HELD {
                    held.pop_last();
                }
            }
            inquiries.insert(id, inquiry);
        }
        for (id, unserved) in self.unserved(&held).await {
            if let Some(inquiry) = inquiries.get_mut(&id) {
                inquiry.unserved = unserved;
            }
        }
        inquiries
    }

    /// Whether what belongs to an object is looked for everywhere.
    fn is_sought_for(&self, id: &Id) -> bool {
        is_free(id) && (self.anywhere || is_custom(id))
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

    /// How many objects there are of a kind that a definition defines.
    async fn instances(&self, id: &Id) -> Option<Result<u64, String>> {
        if id.group != "apiextensions.k8s.io" || id.resource != "customresourcedefinitions" {
            return None;
        }
        let (resource, group) = id.name.split_once('.')?;
        let mapped = match self.kinds.preferred(group, resource).await {
            Mapping::Mapped(mapped) => mapped,
            Mapping::NoSuchKind => return Some(Ok(0)),
            Mapping::Unknown(why) => return Some(Err(why)),
        };
        let kind = GroupVersionKind::gvk(&mapped.group, &mapped.version, "");
        let api: Api<DynamicObject> = Api::all_with(
            self.client.clone(),
            &ApiResource::from_gvk_with_plural(&kind, &mapped.resource),
        );
        Some(match api.list_metadata(&ListParams::default().limit(1)).await {
            Ok(page) => {
                let more = page.metadata.remaining_item_count.unwrap_or_default();
                Ok(page.items.len() as u64 + u64::try_from(more).unwrap_or_default())
            }
            Err(error) => Err(error.to_string()),
        })
    }
}

/// Whether it is in no namespace, and is none.
fn is_free(id: &Id) -> bool {
    id.namespace.is_empty() && !is_namespace(id)
}

/// Whether it is of a kind that Kubernetes does not bring. Roles, storage classes and the like own
/// nothing in practice.
fn is_custom(id: &Id) -> bool {
    id.group.contains('.') && !id.group.ends_with(".k8s.io")
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

/// What the collector would remove after an object: what it alone owns, and what that owns.
fn owned(found: &[Found], uid: &str) -> Vec<Id> {
    let mut going: BTreeSet<&str> = [uid].into();
    let mut owned = Vec::new();
    loop {
        let before = owned.len();
        for one in found.iter().filter(|one| !one.owners.is_empty()) {
            let alone = one.owners.iter().all(|owner| going.contains(owner.uid.as_str()));
            if alone && going.insert(&one.uid) {
                owned.push(one.id.clone());
            }
        }
        if owned.len() == before {
            return owned;
        }
    }
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
            labels: BTreeMap::new(),
        }
    }

    #[test]
    fn the_collector_follows_owners_down_and_spares_what_somebody_else_owns_too() {
        let all = [
            found("pod", &["set"]),
            found("set", &["web"]),
            found("shared", &["web", "other"]),
            found("free", &[]),
        ];
        let names: Vec<String> = owned(&all, "web").into_iter().map(|id| id.name).collect();
        assert_eq!(names, ["set", "pod"]);
    }

    #[test]
    fn what_nobody_looked_for_was_taken_for_nothing() {
        let inside = Ok(vec![found("pod", &["set"])]);
        assert_eq!(owned_within(Some(&inside), "set").map(|all| all.len()), Ok(1));
        assert_eq!(owned_within(Some(&inside), "web"), Ok(vec![]));
        let told = "too many namespaces to look for what it owns".to_owned();
        assert_eq!(owned_within(None, "set"), Err(told));
        for (group, custom) in [
            ("", false),
            ("apps", false),
            ("rbac.authorization.k8s.io", false),
            ("apiextensions.k8s.io", false),
            ("example.com", true),
            ("cluster.x-k8s.io", true),
        ] {
            let id = Id { group: group.to_owned(), ..Id::default() };
            assert_eq!(is_custom(&id), custom, "{group}");
        }
    }
}
