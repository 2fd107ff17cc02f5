//! What the hub carried to a cluster: works, and whatever else has an object of its own in the
//! cluster's namespace on the hub and ends when the agent has let go of it.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use cleat_api::configurationpolicy::ENCRYPTION_IV;
use cleat_api::leftoverrecord::{LeftObject, Part, Untold};
use cleat_api::manifestwork::{
    BlockedObject, LEAVE_FINALIZER, ManifestWork, ManifestWorkStatus, ON_RECORD, Removal,
    ResourceCount, condition,
};
use cleat_api::policy::{Policy, PolicySpec, PolicyStatus};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize as _;
use serde_json::Value;

use super::ground::{self, MADE_FOR_POLICIES};
use super::{keeping, record, supposed};
use crate::condition::holds;
use crate::id::{Id, Target};
use crate::policy_sync::HOLD;
use crate::work::WORK_FINALIZER;
use crate::work::ownership::declared;

/// Group, version and resource of add-ons.
pub const ADD_ONS: [&str; 3] =
    ["addon.open-cluster-management.io", "v1alpha1", "managedclusteraddons"];

/// On a work, a policy or an add-on: when it goes if the cluster leaves, from 0 (the default, first) to
/// 100, as in OCM.
pub const CLEANUP_PRIORITY: &str = "open-cluster-management.io/cleanup-priority";

/// What is no number up to 100 is as good as nothing.
fn priority(metadata: &ObjectMeta) -> u8 {
    let said = metadata.annotations.as_ref().and_then(|all| all.get(CLEANUP_PRIORITY));
    said.and_then(|text| text.parse().ok()).filter(|number| *number <= 100).unwrap_or_default()
}

/// What the hub believes to be on a cluster by these works and policies.
pub fn on_cluster(works: &[ManifestWork], policies: Vec<Policy>) -> Vec<LeftObject> {
    let of_works = works.iter().map(Carried::work);
    let of_policies = policies.into_iter().map(|Policy { metadata, spec, status }| {
        Carried::policy(&metadata, Some(&spec), status.unwrap_or_default())
    });
    of_works.chain(of_policies).flat_map(|carried| carried.objects).collect()
}

/// What the status of a policy tells. One that cannot be read may be about anything.
pub fn told(policy: &str, status: Option<&Value>) -> Result<PolicyStatus, String> {
    let told = status.map(<Option<PolicyStatus>>::deserialize).transpose();
    let told =
        told.map_err(|error| format!("the status of policy {policy} cannot be read: {error}"));
    Ok(told?.flatten().unwrap_or_default())
}

/// Who looks after it on the cluster. A new kind of thing to carry is one more of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Work,
    /// A policy as replicated to the cluster; its agent prunes as the policy says.
    Policy,
    /// Somebody else's add-on for the cluster, whose manager may need what works brought to take it
    /// off again.
    AddOn,
}

impl Kind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Work => "work",
            Self::Policy => "policy",
            Self::AddOn => "add-on",
        }
    }

    /// What holds it on the hub while our agent has something to do for it.
    pub(crate) fn held_by(self) -> Option<&'static str> {
        match self {
            Self::Work => Some(WORK_FINALIZER),
            Self::Policy => Some(HOLD),
            Self::AddOn => None,
        }
    }

    /// Group, version and resource.
    fn place(self) -> [&'static str; 3] {
        match self {
            Self::Work => ["work.open-cluster-management.io", "v1", "manifestworks"],
            Self::Policy => ["policy.open-cluster-management.io", "v1", "policies"],
            Self::AddOn => ADD_ONS,
        }
    }
}

/// One thing that was carried, as the hub has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Carried {
    pub kind: Kind,
    pub namespace: String,
    pub name: String,
    pub uid: String,
    pub resource_version: String,
    pub finalizers: Vec<String>,
    pub deleting: bool,
    /// Since when.
    pub since: Option<Timestamp>,
    /// Of its kind, those with less go before it: [`CLEANUP_PRIORITY`].
    pub priority: u8,
    /// What the hub has written down as staying, if it says so on it.
    pub on_record: Option<String>,
    /// What is believed to be on the cluster because of it.
    pub objects: Vec<LeftObject>,
    /// What is believed to stand for it there: of a policy its copy, what its templates became, and
    /// what the agent made to have a place for them.
    pub copies: Vec<LeftObject>,
    /// What may be there because of it though nobody told so.
    pub supposed: Vec<LeftObject>,
    /// What stays of it, once the agent has told.
    pub left: Vec<LeftObject>,
    /// How many more there are than are listed: of what is believed to be there, and of what stays.
    pub untold: i64,
    pub left_untold: i64,
    /// How much of it has yet to go, once the agent has counted.
    pub remaining: Option<Vec<ResourceCount>>,
    pub blocked: Vec<BlockedObject>,
}

impl Carried {
    pub fn work(work: &ManifestWork) -> Self {
        let mut carried = Self::bare(Kind::Work, &work.metadata);
        let status = work.status.clone().unwrap_or_default();
        carried.objects = believed(work, &status);
        carried.untold = status.untold;
        // The agent takes a work up before it brings anything.
        if carried.is_with_agent() {
            carried.supposed = supposed::of_work(work, &status, &carried.objects);
        }
        carried.removed(status.removal);
        carried
    }

    /// A policy as replicated to the cluster. Without what it says, if that cannot be read.
    pub fn policy(metadata: &ObjectMeta, spec: Option<&PolicySpec>, status: PolicyStatus) -> Self {
        let mut carried = Self::bare(Kind::Policy, metadata);
        carried.copies = copies(&carried, metadata, &status);
        carried.objects = status.objects;
        carried.untold = status.untold;
        for object in &mut carried.objects {
            object.source.clone_from(&carried.name);
            object.stays = object.stays.max(keeping::declared(spec, object));
        }
        if let Some(spec) = spec {
            carried.supposed = supposed::of_policy(&carried.name, spec, &carried.objects);
        }
        carried.removed(status.removal);
        carried
    }

    fn removed(&mut self, removal: Option<Removal>) {
        let Some(Removal { remaining, blocked, mut left, untold }) = removal else { return };
        for object in &mut left {
            object.source.clone_from(&self.name);
        }
        self.left = left;
        self.left_untold = untold;
        self.remaining = Some(remaining);
        self.blocked = blocked;
    }

    /// Something of which only its own object is known.
    pub fn bare(kind: Kind, metadata: &ObjectMeta) -> Self {
        Self {
            kind,
            namespace: metadata.namespace.clone().unwrap_or_default(),
            name: metadata.name.clone().unwrap_or_default(),
            uid: metadata.uid.clone().unwrap_or_default(),
            resource_version: metadata.resource_version.clone().unwrap_or_default(),
            finalizers: metadata.finalizers.clone().unwrap_or_default(),
            deleting: metadata.deletion_timestamp.is_some(),
            since: metadata.deletion_timestamp.as_ref().map(|time| time.0),
            priority: priority(metadata),
            on_record: metadata.annotations.as_ref().and_then(|all| all.get(ON_RECORD)).cloned(),
            objects: Vec::new(),
            copies: Vec::new(),
            supposed: Vec::new(),
            left: Vec::new(),
            untold: 0,
            left_untold: 0,
            remaining: None,
            blocked: Vec::new(),
        }
    }

    pub(crate) fn target(&self) -> Target {
        let [group, version, resource] = self.kind.place();
        let id = Id {
            group: group.into(),
            resource: resource.into(),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
        };
        Target { version: version.into(), id }
    }

    /// That there is more of it than is listed, for the record.
    pub(crate) fn untold(&self, count: i64) -> Untold {
        Untold { source: self.name.clone(), policy: self.kind == Kind::Policy, count }
    }

    /// Whether the agent may still have something to do for it.
    pub(crate) fn is_with_agent(&self) -> bool {
        let theirs = self.kind.held_by();
        self.finalizers.iter().any(|one| Some(one.as_str()) == theirs)
    }

    /// Whether it is only waited for: nobody but its own manager knows what it needs.
    pub(crate) fn is_others(&self) -> bool {
        self.kind == Kind::AddOn
    }

    pub(crate) fn is_held(&self) -> bool {
        self.finalizers.iter().any(|one| one == LEAVE_FINALIZER)
    }
}

/// What a work says was applied, and what it declares about each. Of an agent that tells no uids,
/// what it says is there.
fn believed(work: &ManifestWork, status: &ManifestWorkStatus) -> Vec<LeftObject> {
    let mut seen = BTreeSet::new();
    for manifest in &status.resource_status.manifests {
        let meta = &manifest.resource_meta;
        let applied = holds(&manifest.conditions, condition::APPLIED);
        if meta.resource.is_empty() || (meta.uid.is_empty() && !applied) {
            continue;
        }
        let id = Id {
            group: meta.group.clone(),
            resource: meta.resource.clone(),
            namespace: meta.namespace.clone(),
            name: meta.name.clone(),
        };
        let stays = declared(work, &id);
        let Id { group, resource, namespace, name } = id;
        seen.insert(LeftObject {
            group,
            version: meta.version.clone(),
            resource,
            namespace,
            name,
            uid: meta.uid.clone(),
            source: work.metadata.name.clone().unwrap_or_default(),
            stays,
            ..LeftObject::default()
        });
    }
    // What left the manifests is still there for all anybody knows; and the work may have said to
    // keep it since its agent was heard last.
    for object in &status.retiring {
        let id = Id {
            group: object.group.clone(),
            resource: object.resource.clone(),
            namespace: object.namespace.clone(),
            name: object.name.clone(),
        };
        let source = work.metadata.name.clone().unwrap_or_default();
        let stays = object.stays.max(declared(work, &id));
        seen.insert(LeftObject { source, stays, ..object.clone() });
    }
    seen.into_iter().collect()
}

/// What an agent made on the cluster to have a policy there. What it did not tell of is known by its
/// name, and there by what it bears.
fn copies(policy: &Carried, metadata: &ObjectMeta, status: &PolicyStatus) -> Vec<LeftObject> {
    // What no agent has taken up is nowhere.
    if !policy.is_with_agent() && *status == PolicyStatus::default() {
        return Vec::new();
    }
    let Carried { namespace, name, .. } = policy;
    let mut copies = status.copies.clone();
    if !copies.iter().any(|one| one.part == Some(Part::Copy)) {
        copies.push(part(policy.target(), name, Part::Copy));
    }
    for copy in &mut copies {
        copy.source.clone_from(name);
    }
    copies.push(part(ground::namespace(namespace), MADE_FOR_POLICIES, Part::Place));
    let annotations = metadata.annotations.as_ref();
    if annotations.is_some_and(|all| all.contains_key(ENCRYPTION_IV)) {
        copies.push(part(ground::key(namespace), MADE_FOR_POLICIES, Part::Key));
    }
    copies
}

/// Something of which nobody told the uid. It has the same place on the cluster as on the hub.
fn part(target: Target, source: &str, part: Part) -> LeftObject {
    LeftObject { source: source.into(), ..record::part(target, part) }
}
