//! A cluster to try policies on. It is only asked: what a write would come to, in dry runs.
//!
//! Whatever was read once is not read again, so that all that is said is about one look. What could
//! not be read makes the whole dry run fail: what a policy says without it may be wrong.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use cleat_agent::policy::trial;
use cleat_core::id::{Id, Target};
use cleat_core::policy::Question;
use cleat_core::policy::dryrun::World;
use cleat_core::policy::observed::{
    Kind, KindName, ListOf, Namespace, Present, Seen, Served, TrialAnswer,
};
use cleat_core::write::Side;
use cleat_runtime::execute::{Executor, Read};
use cleat_runtime::kinds::{Kinds, Mapping};
use kube::Client;
use kube::api::{Api, DynamicObject, ListParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::connection::{Which, executor};

type Listed = Result<Vec<Arc<Value>>, String>;

pub(super) struct Cluster {
    runtime: Runtime,
    client: Client,
    kinds: Kinds,
    executor: Executor,
    objects: RefCell<BTreeMap<Id, Seen>>,
    lists: RefCell<BTreeMap<ListOf, Listed>>,
    failures: RefCell<Vec<String>>,
}

impl Cluster {
    pub(super) fn connect(which: &Which) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let client = runtime.block_on(which.client()).context("connect to the cluster")?;
        Ok(Self {
            kinds: Kinds::new(client.clone()),
            executor: executor(None, Some(client.clone())),
            runtime,
            client,
            objects: RefCell::default(),
            lists: RefCell::default(),
            failures: RefCell::default(),
        })
    }

    /// The first thing that could not be read so far.
    pub(super) fn failure(&self) -> Option<String> {
        self.failures.borrow().first().cloned()
    }

    fn failed(&self, what: &str, why: &str) -> String {
        self.failures.borrow_mut().push(format!("cannot read {what}: {why}"));
        why.to_owned()
    }

    async fn all(&self, of: &ListOf) -> kube::Result<Vec<Arc<Value>>> {
        let Served { group, version, resource, namespaced } = &of.kind;
        // The kind is not part of any path.
        let kind = GroupVersionKind::gvk(group, version, "");
        let resource = ApiResource::from_gvk_with_plural(&kind, resource);
        let client = self.client.clone();
        let api: Api<DynamicObject> = match *namespaced && !of.namespace.is_empty() {
            true => Api::namespaced_with(client, &of.namespace, &resource),
            false => Api::all_with(client, &resource),
        };
        let list = api.list(&ListParams::default().labels(&of.labels)).await?;
        let kind = list.types.kind.strip_suffix("List").unwrap_or_default().to_owned();
        let api_version = list.types.api_version.clone();
        let whole = |object: DynamicObject| {
            let mut object = serde_json::to_value(object).map_err(kube::Error::SerdeError)?;
            // Servers leave them out of what they list.
            if let Some(fields) = object.as_object_mut() {
                fields.insert("apiVersion".to_owned(), Value::String(api_version.clone()));
                fields.insert("kind".to_owned(), Value::String(kind.clone()));
            }
            Ok(Arc::new(unmanaged(object)))
        };
        list.items.into_iter().map(whole).collect()
    }
}

impl World for Cluster {
    fn kind(&self, name: &KindName) -> Kind {
        let KindName { api_version, kind } = name;
        match self.runtime.block_on(self.kinds.map(api_version, kind)) {
            Mapping::Mapped(mapped) => Kind::Served(Served {
                group: mapped.group,
                version: mapped.version,
                resource: mapped.resource,
                namespaced: mapped.namespaced,
            }),
            Mapping::NoSuchKind => Kind::Absent,
            Mapping::Unknown(why) => {
                Kind::Unknown(self.failed(&format!("the kind {api_version} {kind}"), &why))
            }
        }
    }

    fn object(&self, target: &Target) -> Seen {
        if let Some(seen) = self.objects.borrow().get(&target.id) {
            return seen.clone();
        }
        let seen = match self.runtime.block_on(self.executor.read(Side::Cluster, target)) {
            Read::Present(object) => {
                let object = Arc::new(unmanaged(object));
                Seen::Present(Present { object, writers: Vec::new() })
            }
            Read::Absent => Seen::Absent,
            Read::NoSuchKind => Seen::Unknown(self.failed(&target.id.to_string(), "not served")),
            Read::Unknown { message } => {
                Seen::Unknown(self.failed(&target.id.to_string(), &message))
            }
        };
        self.objects.borrow_mut().insert(target.id.clone(), seen.clone());
        seen
    }

    fn namespaces(&self) -> Result<Vec<Namespace>, String> {
        let all = self.list(&ListOf::namespaces())?;
        Ok(all.iter().map(|object| Namespace::read(object)).collect())
    }

    fn list(&self, of: &ListOf) -> Listed {
        if let Some(listed) = self.lists.borrow().get(of) {
            return listed.clone();
        }
        let listed = self.runtime.block_on(self.all(of));
        let listed = listed.map_err(|error| {
            let why = format!("{:#}", anyhow::Error::from(error));
            self.failed(&format!("the {} of the cluster", of.kind.resource), &why)
        });
        self.lists.borrow_mut().insert(of.clone(), listed.clone());
        listed
    }

    fn trial(&self, question: &Question) -> TrialAnswer {
        let answer = self.runtime.block_on(trial::ask(&self.executor, question));
        if answer == TrialAnswer::Stale {
            self.objects.borrow_mut().remove(&question.target.id);
        }
        answer
    }
}

/// Who wrote what is nothing that policies are about.
fn unmanaged(mut object: Value) -> Value {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    object
}
