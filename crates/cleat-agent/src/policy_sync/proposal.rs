//! Looking at a policy as if the hub had sent it: which templates it would have on this cluster. Only
//! reads, straight from the server.

use std::collections::BTreeMap;

use cleat_api::policy::{GROUP, Policy as Stored, PolicyDependency};
use cleat_api::removalpreview::ProposedPolicy;
use cleat_core::id::{Id, Target};
use cleat_core::policy::observed::{KindName, Served};
use cleat_core::policy_sync::observed::{
    Copy, Defined, Live, Marked, Observed, Place, Standing, TemplateKind,
};
use cleat_core::policy_sync::proposal::copy;
use cleat_core::policy_sync::{Depends, dependencies, template_ids};
use cleat_core::write::Side;
use cleat_runtime::execute::{Executor, Read};
use cleat_runtime::kinds::{Kinds, Mapping};
use jiff::Timestamp;
use kube::Client;
use serde_json::{Value, json};

use super::observe;
use super::remains::{marked_now, template_kinds};

/// The way to the cluster that is looked at.
pub(crate) struct Onlooker<'a> {
    pub(crate) client: &'a Client,
    pub(crate) kinds: &'a Kinds,
    /// Its side `Cluster` is that cluster.
    pub(crate) executor: &'a Executor,
    pub(crate) cluster: &'a str,
}

impl Onlooker<'_> {
    /// The world in which the cluster has the policy.
    pub(crate) async fn imagined(&self, proposed: &ProposedPolicy) -> Result<Observed, String> {
        let ProposedPolicy { name, labels, annotations, spec } = proposed;
        let local = self.local(name).await?;
        let object = json!({
            "apiVersion": format!("{GROUP}/v1"), "kind": "Policy",
            "metadata": {
                "name": name, "namespace": self.cluster, "labels": labels,
                "annotations": annotations,
            },
            "spec": spec,
        });
        let policy = copy(object, local.as_ref())?;
        let mut seen = Observed {
            now: Timestamp::now(),
            place: Place {
                cluster_namespace: self.cluster.to_owned(),
                hub_namespace: self.cluster.to_owned(),
                own_hub: false,
                lacks_namespace: false,
                forgets: false,
            },
            name: name.clone(),
            replica: Copy::Present(Box::new(policy.clone())),
            local: Copy::Present(Box::new(policy.clone())),
            kinds: BTreeMap::new(),
            live: BTreeMap::new(),
            marked: Ok(self.marked(name).await?),
            resources: BTreeMap::new(),
            still: Ok(Vec::new()),
            leaving: Ok(None),
            heard: Vec::new(),
            defined: Defined::Stands,
            vanished: None,
            states: BTreeMap::new(),
            told: BTreeMap::new(),
            troubles: BTreeMap::new(),
            instance: String::new(),
        };
        let templates = template_kinds(self.client).await?;
        let is_template = |served: &Served| {
            templates.iter().any(|one| one.group == served.group && one.plural == served.resource)
        };
        for id in template_ids(&policy.spec) {
            let kind = match self.served(&id.kind).await {
                Ok(Some(served)) if is_template(&served) => TemplateKind::Template(served),
                Ok(Some(_)) => TemplateKind::Other,
                Ok(None) => TemplateKind::Missing,
                Err(why) => TemplateKind::Unknown(why),
            };
            let live = match &kind {
                TemplateKind::Template(served) => self.live(served, &id.name).await,
                _ => Live::Absent,
            };
            seen.kinds.insert(id.kind.clone(), kind);
            seen.live.insert(id, live);
        }
        for Depends(dependency) in dependencies(&policy.spec) {
            let standing = self.standing(&dependency).await;
            seen.states.insert(Depends(dependency), standing);
        }
        Ok(seen)
    }

    fn target(&self, name: &str) -> Target {
        let id = Id {
            group: GROUP.to_owned(),
            resource: "policies".to_owned(),
            namespace: self.cluster.to_owned(),
            name: name.to_owned(),
        };
        Target { version: "v1".to_owned(), id }
    }

    /// The copy that is there.
    async fn local(
        &self,
        name: &str,
    ) -> Result<Option<cleat_core::policy_sync::observed::Policy>, String> {
        match self.executor.read(Side::Cluster, &self.target(name)).await {
            Read::Absent => Ok(None),
            Read::NoSuchKind => Err("policies are not served there".to_owned()),
            Read::Unknown { message } => Err(message),
            Read::Present(object) => {
                let stored = serde_json::from_value::<Stored>(object.clone());
                let stored = stored.map_err(|error| format!("it cannot be read: {error}"))?;
                Ok(Some(observe::policy(object, stored)))
            }
        }
    }

    async fn marked(&self, policy: &str) -> Result<Vec<Marked>, String> {
        let marked = marked_now(self.client, self.cluster, Some(policy)).await?;
        let read = marked.into_iter().map(|(kind, metadata)| {
            let served = Served {
                group: kind.group,
                version: kind.version,
                resource: kind.plural,
                namespaced: true,
            };
            let target = served.target(self.cluster, metadata.name.as_deref().unwrap_or_default());
            Marked::read(target, kind.kind, &json!({ "metadata": metadata }))
        });
        Ok(read.collect())
    }

    async fn served(&self, name: &KindName) -> Result<Option<Served>, String> {
        match self.kinds.map(&name.api_version, &name.kind).await {
            Mapping::Mapped(mapped) => Ok(Some(Served {
                group: mapped.group,
                version: mapped.version,
                resource: mapped.resource,
                namespaced: mapped.namespaced,
            })),
            Mapping::NoSuchKind => Ok(None),
            Mapping::Unknown(why) => Err(why),
        }
    }

    async fn live(&self, served: &Served, name: &str) -> Live {
        match self.executor.read(Side::Cluster, &served.target(self.cluster, name)).await {
            Read::Present(object) => Live::Present(object),
            Read::Absent => Live::Absent,
            Read::NoSuchKind => Live::Unknown("its kind is not served now".to_owned()),
            Read::Unknown { message } => Live::Unknown(message),
        }
    }

    /// How something stands that templates wait for.
    async fn standing(&self, dependency: &PolicyDependency) -> Standing {
        let served = match self.served(&observe::kind(dependency)).await {
            Ok(Some(served)) => served,
            Ok(None) => return Standing::Is(None),
            Err(why) => return Standing::Unknown(why),
        };
        let own = dependency.namespace.is_empty() || observe::is_policy(dependency);
        let namespace = match (served.namespaced, own) {
            (false, _) => "",
            (true, true) => self.cluster,
            (true, false) => &dependency.namespace,
        };
        let target = served.target(namespace, &dependency.name);
        match self.executor.read(Side::Cluster, &target).await {
            Read::Present(object) => Standing::Is(observe::state(&object)),
            Read::Absent | Read::NoSuchKind => Standing::Is(None),
            Read::Unknown { message } => Standing::Unknown(message),
        }
    }
}

/// A reference to a copy that is not there yet, which no server takes.
pub(crate) fn without_blank_owner(object: &mut Value) {
    let blank = object.pointer("/metadata/ownerReferences/0/uid").is_some_and(|uid| uid == "");
    let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
    if let Some(metadata) = metadata.filter(|_| blank) {
        metadata.remove("ownerReferences");
    }
}
