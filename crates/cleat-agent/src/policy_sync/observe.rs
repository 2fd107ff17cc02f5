//! Reading everything a pass may look at. Only reads, and from watches wherever there is one.

use std::collections::{BTreeMap, BTreeSet};

use cleat_api::leftoverrecord::LeftObject;
use cleat_api::managedcluster::RemoveStrategy;
use cleat_api::policy::{GROUP, Policy as Stored, PolicyDependency};
use cleat_core::id::{Id, Target};
use cleat_core::leave::clean::id as object_id;
use cleat_core::policy::observed::{KindName, Served};
use cleat_core::policy_sync::observed::{
    Copy, Defined, Live, Observed, Place, Policy, Standing, TemplateId, TemplateKind, Vanished,
};
use cleat_core::policy_sync::{
    Depends, dependencies, is_adrift, made_kinds, template_ids, to_be_seen_gone,
};
use cleat_core::write::Side;
use cleat_runtime::execute::Read;
use cleat_runtime::follow::{Follow, Held};
use cleat_runtime::kinds::Mapping;
use cleat_runtime::mirror::Reason;
use cleat_runtime::served;
use futures::StreamExt as _;
use jiff::Timestamp;
use serde_json::Value;

use super::Context;
use super::templates::id;
use crate::leave::{Presence, ask, known};
use crate::served_kind::served_kind;

/// What the hub says of a policy, as far as it can be asked.
struct Answer {
    replica: Copy,
    /// How the cluster is leaving it, if it is.
    leaving: Result<Option<RemoveStrategy>, String>,
    defined: Defined,
}

const UNREAD: &str = "not read yet";
/// Objects read at the same time.
const READS: usize = 16;

impl Context {
    pub(super) async fn observe(&self, name: &str) -> Observed {
        let cluster = &self.config.cluster;
        let now = Timestamp::now();
        let local = held(&self.local, cluster, name);
        let Answer { replica, leaving, defined } = self.replica(name, &local).await;
        let own_hub = match (&replica, &local) {
            // No two servers give the same one.
            (Copy::Present(replica), Copy::Present(local)) => replica.uid == local.uid,
            _ => false,
        };
        let lacks = matches!((&replica, &local), (Copy::Absent, Copy::Present(_)));
        let (troubles, lacks_namespace, forgets, vanished) = {
            let mut lives = self.lock();
            let life = lives.entry(name.to_owned()).or_default();
            // Whatever else is heard of it, it is waited for from then on.
            let first = Vanished { since: now, told: false };
            life.vanished = lacks.then_some(life.vanished.unwrap_or(first));
            (life.troubles.clone(), life.lacks_namespace, life.forgets, life.vanished)
        };
        let mut seen = Observed {
            now,
            place: Place {
                cluster_namespace: cluster.clone(),
                hub_namespace: cluster.clone(),
                own_hub,
                lacks_namespace,
                forgets,
            },
            name: name.to_owned(),
            replica,
            local,
            kinds: BTreeMap::new(),
            live: BTreeMap::new(),
            marked: self.templates.marked(name),
            resources: BTreeMap::new(),
            still: Ok(Vec::new()),
            leaving,
            heard: self.config.presence.as_ref().map(Presence::told).unwrap_or_default(),
            defined,
            vanished,
            states: BTreeMap::new(),
            told: BTreeMap::new(),
            troubles,
            instance: self.config.instance.clone(),
        };
        for name in made_kinds(seen.marked.as_deref().unwrap_or_default()) {
            let kind = served_kind(&self.config.cluster_client, &self.kinds, &name).await;
            seen.resources.insert(name, kind);
        }
        seen.still = self.still(to_be_seen_gone(&seen)).await;
        let Some(policy) = seen.local.policy().cloned() else { return seen };
        for id in template_ids(&policy.spec) {
            let kind = self.template_kind(&id.kind).await;
            let live = self.live(&id, &kind);
            seen.kinds.insert(id.kind.clone(), kind);
            seen.live.insert(id, live);
        }
        let all = dependencies(&policy.spec);
        let on: BTreeSet<(String, String)> =
            all.iter().map(|one| (one.0.kind.clone(), one.0.name.clone())).collect();
        // Before looking, so that no change after it is missed.
        self.dependents.set(name, on);
        for Depends(dependency) in all {
            let standing = self.standing(&dependency).await;
            seen.states.insert(Depends(dependency), standing);
        }
        seen.told = self.events.of(name, &policy.uid);
        seen
    }

    /// What the hub says, and whether the cluster is leaving it. A hub that does not know the cluster,
    /// or was not heard yet, lets go of nothing.
    async fn replica(&self, name: &str, local: &Copy) -> Answer {
        let replica = held(&self.hub, &self.config.cluster, name);
        let ends = match (&replica, local) {
            (Copy::Present(replica), _) => replica.deleting,
            (Copy::Absent, Copy::Present(local)) => !local.deleting,
            // With the kind it may have gone.
            (Copy::Unknown(_), Copy::Present(local)) => {
                self.hub.is_unserved() && !local.deleting && !is_adrift(local)
            }
            (Copy::Absent | Copy::Unknown(_), _) => false,
        };
        let leaving = match &self.config.presence {
            None => Ok(None),
            Some(presence) if ends => ask(presence, &self.executor, &self.config.cluster).await,
            Some(presence) => known(&presence.standing()),
        };
        let replica = match (replica, &leaving) {
            (replica, Ok(_)) => self.confirmed(name, replica, local).await,
            // It is on its way out, and that goes on when the hub is heard again.
            (Copy::Present(replica), Err(_)) if replica.deleting => Copy::Present(replica),
            (_, Err(why)) => Copy::Unknown(why.clone()),
        };
        // After the policy: it did not go with a definition that is whole now.
        let defined = match ends && leaving == Ok(None) {
            true => self.defined().await,
            false => Defined::Stands,
        };
        let replica = match (replica, &defined) {
            (Copy::Absent, Defined::Unknown(why)) => Copy::Unknown(why.clone()),
            // What has no kind is not there.
            (Copy::Unknown(_), Defined::Goes) => Copy::Absent,
            (replica, _) => replica,
        };
        Answer { replica, leaving, defined }
    }

    /// Whether the hub has the definition of policies.
    async fn defined(&self) -> Defined {
        let id = Id {
            group: "apiextensions.k8s.io".to_owned(),
            resource: "customresourcedefinitions".to_owned(),
            namespace: String::new(),
            name: format!("policies.{GROUP}"),
        };
        match self.executor.read(Side::Hub, &Target { version: "v1".to_owned(), id }).await {
            Read::Present(object) => match object.pointer("/metadata/deletionTimestamp") {
                Some(time) if time.is_string() => Defined::Goes,
                _ => Defined::Stands,
            },
            Read::Absent => Defined::Goes,
            Read::NoSuchKind => Defined::Unknown("the hub serves no definitions now".to_owned()),
            Read::Unknown { message } => {
                tracing::warn!(message, "whether the hub still has policies cannot be seen");
                Defined::Unknown(message)
            }
        }
    }

    /// That the hub has let go of a policy is not taken from a watch alone, which may be behind: what
    /// follows cannot be undone.
    async fn confirmed(&self, name: &str, replica: Copy, local: &Copy) -> Copy {
        let (Copy::Absent, Copy::Present(local)) = (&replica, local) else { return replica };
        if local.deleting {
            return replica;
        }
        let id = Id {
            group: GROUP.to_owned(),
            resource: "policies".to_owned(),
            namespace: self.config.cluster.clone(),
            name: name.to_owned(),
        };
        match self.executor.read(Side::Hub, &Target { version: "v1".to_owned(), id }).await {
            Read::Absent => Copy::Absent,
            Read::Unknown { message } => Copy::Unknown(message),
            Read::Present(_) => Copy::Unknown("the hub has it again".to_owned()),
            Read::NoSuchKind => Copy::Unknown("the hub does not serve policies now".to_owned()),
        }
    }

    /// Which of these the server has now. What was made anew is another's.
    async fn still(&self, objects: Vec<LeftObject>) -> Result<Vec<LeftObject>, String> {
        let looks = objects.into_iter().map(|object| async move {
            let id = object_id(&object);
            match served::read(&self.executor, &self.kinds, &id).await {
                Read::Absent => Ok(None),
                Read::Present(live) => {
                    let uid = live.pointer("/metadata/uid").and_then(Value::as_str);
                    Ok((uid == Some(object.uid.as_str())).then_some(object))
                }
                Read::NoSuchKind => Err(format!("{id} cannot be seen: its kind is not served now")),
                Read::Unknown { message } => Err(format!("{id} cannot be seen: {message}")),
            }
        });
        let looks: Vec<_> = futures::stream::iter(looks).buffered(READS).collect().await;
        looks.into_iter().filter_map(Result::transpose).collect()
    }

    async fn template_kind(&self, name: &KindName) -> TemplateKind {
        if let Some(served) = self.templates.served(name) {
            return TemplateKind::Template(served);
        }
        if !self.templates.synced() {
            return TemplateKind::Unknown(UNREAD.to_owned());
        }
        match self.kinds.map(&name.api_version, &name.kind).await {
            Mapping::Mapped(_) => TemplateKind::Other,
            Mapping::NoSuchKind => TemplateKind::Missing,
            Mapping::Unknown(message) => TemplateKind::Unknown(message),
        }
    }

    fn live(&self, id: &TemplateId, kind: &TemplateKind) -> Live {
        let TemplateKind::Template(served) = kind else { return Live::Absent };
        match self.templates.get(served, &id.name) {
            Some(Held::Absent) => Live::Absent,
            Some(Held::Present(object)) => match object.parse() {
                Ok(object) => Live::Present(object),
                Err(error) => Live::Refused(error.to_string()),
            },
            Some(Held::Unknown(Reason::Forbidden(message))) => Live::Refused(message),
            Some(Held::Unknown(reason)) => Live::Unknown(reason.to_string()),
            None => Live::Unknown(UNREAD.to_owned()),
        }
    }

    /// Whether a watch tells of changes of something that is waited for.
    pub(super) fn is_followed(&self, dependency: &PolicyDependency) -> bool {
        is_policy(dependency) || self.templates.served(&kind(dependency)).is_some()
    }

    async fn standing(&self, dependency: &PolicyDependency) -> Standing {
        let held = if is_policy(dependency) {
            Some(self.local.get(&self.config.cluster, &dependency.name))
        } else {
            let served = self.templates.served(&kind(dependency));
            served.and_then(|served| self.templates.get(&served, &dependency.name))
        };
        match held {
            Some(Held::Absent) => Standing::Is(None),
            Some(Held::Unknown(reason)) => Standing::Unknown(reason.to_string()),
            Some(Held::Present(object)) => match object.parse() {
                Ok(object) => Standing::Is(state(&object)),
                Err(error) => Standing::Unknown(error.to_string()),
            },
            None => self.foreign(dependency).await,
        }
    }

    /// How something stands that is no kind of policy.
    async fn foreign(&self, dependency: &PolicyDependency) -> Standing {
        let KindName { api_version, kind } = kind(dependency);
        let served = match self.kinds.map(&api_version, &kind).await {
            Mapping::Mapped(mapped) => Served {
                group: mapped.group,
                version: mapped.version,
                resource: mapped.resource,
                namespaced: mapped.namespaced,
            },
            Mapping::NoSuchKind => return Standing::Is(None),
            Mapping::Unknown(message) => return Standing::Unknown(message),
        };
        let namespace = match dependency.namespace.as_str() {
            "" => &self.config.cluster,
            namespace => namespace,
        };
        let id = id(&served, namespace, &dependency.name);
        let target = Target { version: served.version, id };
        match self.executor.read(Side::Cluster, &target).await {
            Read::Present(object) => Standing::Is(state(&object)),
            Read::Absent | Read::NoSuchKind => Standing::Is(None),
            Read::Unknown { message } => Standing::Unknown(message),
        }
    }
}

pub(super) fn is_policy(dependency: &PolicyDependency) -> bool {
    let group = dependency.api_version.split_once('/').map_or("", |(group, _)| group);
    group == GROUP && dependency.kind == "Policy"
}

pub(super) fn kind(dependency: &PolicyDependency) -> KindName {
    let PolicyDependency { api_version, kind, .. } = dependency;
    KindName { api_version: api_version.clone(), kind: kind.clone() }
}

pub(super) fn state(object: &Value) -> Option<String> {
    let state = object.pointer("/status/compliant").and_then(Value::as_str);
    state.filter(|state| !state.is_empty()).map(ToOwned::to_owned)
}

fn held(follow: &Follow, namespace: &str, name: &str) -> Copy {
    match (follow.get(namespace, name), follow.trouble()) {
        // It was not there when the server was last heard; that is no news of now.
        (Held::Absent, Some(reason)) | (Held::Unknown(reason), _) => {
            Copy::Unknown(reason.to_string())
        }
        (Held::Absent, None) => Copy::Absent,
        (Held::Present(object), _) => match (object.parse::<Value>(), object.parse::<Stored>()) {
            (Ok(object), Ok(stored)) => Copy::Present(Box::new(policy(object, stored))),
            (Err(error), _) | (_, Err(error)) => {
                Copy::Unknown(format!("the policy cannot be read: {error}"))
            }
        },
    }
}

pub(super) fn policy(object: Value, stored: Stored) -> Policy {
    let Stored { metadata, spec, status } = stored;
    Policy {
        object,
        uid: metadata.uid.unwrap_or_default(),
        resource_version: metadata.resource_version.unwrap_or_default(),
        deleting: metadata.deletion_timestamp.is_some(),
        finalizers: metadata.finalizers.unwrap_or_default(),
        spec,
        status: status.unwrap_or_default(),
    }
}
