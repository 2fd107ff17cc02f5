//! Which deletions on a hub are so large that somebody has to have looked first.
//!
//! It is a rail, not a lock: whoever may write the annotation can approve. What controllers of the hub
//! take away in turn (works of a set, copies of a policy, what a leaving cluster has) was approved with
//! what it belongs to, and is never held up.

mod approval;

use alloc::borrow::ToOwned as _;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use cleat_api::leftoverrecord::LeftObject;
use cleat_api::managedcluster::{CLUSTER_DESTROYED, RemoveStrategy};
use cleat_api::manifestwork::LEAVE_FINALIZER;
use cleat_api::manifestworkreplicaset::SET_LABEL;
use cleat_api::policy::name::ROOT_POLICY;
use serde_json::Value;

pub use self::approval::{Approved, Parts, Standing, approved, standing};
use crate::number::number;

/// What goes without being asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threshold {
    pub objects: usize,
    pub clusters: usize,
    pub namespaces: usize,
}

/// What is about to be deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Matter {
    Work,
    ReplicaSet,
    Policy,
    Binding,
    Placement,
    Cluster,
    /// The namespace of a cluster, with everything that is carried there.
    Namespace,
}

impl Matter {
    pub fn of_resource(resource: &str) -> Option<Self> {
        match resource {
            "manifestworks" => Some(Self::Work),
            "manifestworkreplicasets" => Some(Self::ReplicaSet),
            "policies" => Some(Self::Policy),
            "placementbindings" => Some(Self::Binding),
            "placements" => Some(Self::Placement),
            "managedclusters" => Some(Self::Cluster),
            "namespaces" => Some(Self::Namespace),
            _ => None,
        }
    }

    fn kind(self) -> &'static str {
        match self {
            Self::Work => "manifestwork",
            Self::ReplicaSet => "manifestworkreplicaset",
            Self::Policy => "policy",
            Self::Binding => "placementbinding",
            Self::Placement => "placement",
            Self::Cluster => "managedcluster",
            Self::Namespace => "namespace",
        }
    }
}

/// How much would go, as far as the hub knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    pub objects: usize,
    pub clusters: usize,
    /// Those of the objects that are namespaces.
    pub namespaces: usize,
}

impl Size {
    /// Of these objects on one cluster.
    pub fn of_cluster(held: &[LeftObject]) -> Self {
        let namespaces = held.iter().filter(|one| one.group.is_empty());
        let namespaces = namespaces.filter(|one| one.resource == "namespaces").count();
        Self { objects: held.len(), clusters: 1, namespaces }
    }

    /// Of a policy that leaves so many clusters. Templates that prune nothing count for nothing.
    pub fn of_policy(policy: &Value, clusters: usize) -> Self {
        let list = |of: &Value, pointer: &str| -> Vec<Value> {
            of.pointer(pointer).and_then(Value::as_array).cloned().unwrap_or_default()
        };
        let mut objects = 0_usize;
        let mut spaces = 0_usize;
        for template in list(policy, "/spec/policy-templates") {
            let behavior = template.pointer("/objectDefinition/spec/pruneObjectBehavior");
            if behavior.and_then(Value::as_str).is_none_or(|said| said == "None") {
                continue;
            }
            let asked = list(&template, "/objectDefinition/spec/object-templates");
            // What a template makes of text is at least something.
            objects = objects.saturating_add(asked.len().max(1));
            let manifests = asked.iter().filter_map(|one| one.get("objectDefinition"));
            spaces = spaces.saturating_add(namespaces(manifests));
        }
        Self {
            objects: objects.saturating_mul(clusters),
            clusters: if objects > 0 { clusters } else { 0 },
            namespaces: spaces.saturating_mul(clusters),
        }
    }

    /// Of two that go together; on how many clusters that is, whoever knows them counts.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            objects: self.objects.saturating_add(other.objects),
            clusters: self.clusters.max(other.clusters),
            namespaces: self.namespaces.saturating_add(other.namespaces),
        }
    }

    pub fn is_above(self, threshold: Threshold) -> bool {
        self.objects > threshold.objects
            || self.clusters > threshold.clusters
            || self.namespaces > threshold.namespaces
    }
}

/// How many of these manifests are namespaces.
fn namespaces<'a>(manifests: impl Iterator<Item = &'a Value>) -> usize {
    manifests.filter(|one| one["apiVersion"] == "v1" && one["kind"] == "Namespace").count()
}

/// How much would go with an object. `held`: how much works and policies have on the cluster, if it is
/// one or its namespace; how much the policies have on the clusters that they leave, if it is what places them. `None`: it
/// may go whatever its size.
pub fn size(matter: Matter, object: &Value, held: Size) -> Option<Size> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    let list = |pointer: &str| -> &[Value] {
        object
            .pointer(pointer)
            .and_then(Value::as_array)
            .map(|all| all.as_slice())
            .unwrap_or_default()
    };
    let labelled = |label: &str| {
        object.pointer("/metadata/labels").is_some_and(|labels| labels.get(label).is_some())
    };
    let finalizers = object.pointer("/metadata/finalizers").and_then(Value::as_array);
    let held_back = |finalizer: &str| {
        finalizers.into_iter().flatten().any(|one| one.as_str() == Some(finalizer))
    };
    // It has begun.
    if text("/metadata/deletionTimestamp").is_some() {
        return None;
    }
    match matter {
        Matter::Work if labelled(SET_LABEL) || held_back(LEAVE_FINALIZER) => None,
        Matter::Work if text("/spec/deleteOption/propagationPolicy") == Some("Orphan") => None,
        Matter::Work => {
            let manifests = list("/spec/workload/manifests");
            let namespaces = namespaces(manifests.iter());
            Some(Size { objects: manifests.len(), clusters: 1, namespaces })
        }
        Matter::ReplicaSet => {
            let clusters = object.pointer("/status/summary/total").and_then(Value::as_u64);
            let clusters = usize::try_from(clusters.unwrap_or_default()).unwrap_or(usize::MAX);
            let manifests = list("/spec/manifestWorkTemplate/workload/manifests");
            Some(Size {
                objects: manifests.len().saturating_mul(clusters),
                clusters,
                namespaces: namespaces(manifests.iter()).saturating_mul(clusters),
            })
        }
        Matter::Policy if labelled(ROOT_POLICY) => None,
        Matter::Policy => {
            let size = Size::of_policy(object, list("/status/status").len());
            (size.objects > 0).then_some(size)
        }
        Matter::Binding | Matter::Placement => (held.objects > 0).then_some(held),
        Matter::Cluster if text("/spec/removeStrategy") != Some("Required") => None,
        // It can answer no question, and nothing on it is deleted.
        Matter::Cluster if is_destroyed(object) => None,
        Matter::Cluster | Matter::Namespace => Some(held),
    }
}

/// A cluster that leaves, and begins to be emptied by this change of it, as if it had not begun to leave:
/// one that left with everything was never asked about.
pub fn emptied_anew(old: &Value, new: &Value) -> Option<Value> {
    let strategy = |cluster: &Value| {
        let says = cluster.pointer("/spec/removeStrategy").and_then(Value::as_str);
        says == Some(RemoveStrategy::Required.as_str())
    };
    let leaves = new.pointer("/metadata/deletionTimestamp").is_some_and(Value::is_string);
    if !leaves || strategy(old) || !strategy(new) {
        return None;
    }
    let mut cluster = new.clone();
    if let Some(metadata) = cluster.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("deletionTimestamp");
    }
    Some(cluster)
}

/// What whoever deletes a work is told that goes with its namespace, where no question can be asked any
/// more.
pub fn goes_with_namespace(namespace: &str, size: Size) -> String {
    let objects = number(size.objects, "object", "objects");
    format!(
        "the namespace {namespace} is being deleted, so no plan can be made of what is in it: {objects} \
         may go that nobody looked at"
    )
}

/// Whether somebody has declared that the cluster exists no more.
fn is_destroyed(cluster: &Value) -> bool {
    let annotations = cluster.pointer("/metadata/annotations");
    let declared = annotations.and_then(|all| all.get(CLUSTER_DESTROYED)?.as_str());
    let name = cluster.pointer("/metadata/name").and_then(Value::as_str);
    declared.is_some() && declared == name
}

/// What whoever deletes is told. `plan`: what somebody approved, and why that is not enough.
pub fn refusal(
    matter: Matter,
    object: &Value,
    size: Size,
    plan: Option<(&Approved<'_>, Standing)>,
) -> String {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
    let kind = matter.kind();
    let (look, go) = match matter {
        Matter::Cluster => {
            (format!("cleat preview unjoin {name}"), format!("cleat unjoin {name} --plan HASH"))
        }
        // Clusters leave; a namespace alone is no way to go.
        Matter::Namespace => {
            (format!("cleat preview unjoin {name}"), format!("cleat unjoin {name}"))
        }
        _ => (
            format!("cleat preview delete {kind}/{name} -n {namespace}"),
            format!("cleat delete {kind}/{name} -n {namespace} --plan HASH"),
        ),
    };
    let mut objects = number(size.objects, "object", "objects");
    if size.namespaces > 0 {
        let namespaces = number(size.namespaces, "namespace", "namespaces");
        objects = format!("{objects} ({namespaces} among them)");
    }
    let clusters = number(size.clusters, "cluster", "clusters");
    let approval = match plan {
        _ if matter == Matter::Namespace => NOT_LEAVING.to_owned(),
        None => UNAPPROVED.to_owned(),
        Some((Approved { plan, .. }, standing)) => {
            format!("plan {plan} {}", insufficient(standing))
        }
    };
    format!(
        "deleting it concerns {objects} on {clusters}, and {approval}. {LOOK}`{look}`, then `{go}`"
    )
}

/// Why an approved plan is not enough.
fn insufficient(standing: Standing) -> &'static str {
    match standing {
        Standing::Good | Standing::Foreign => OUTDATED,
        Standing::AnsweredSince => ANSWERED_SINCE,
        Standing::Changed => CHANGED,
    }
}

const UNAPPROVED: &str = "no plan was approved";
const OUTDATED: &str = "is not one of it, or too old";
const ANSWERED_SINCE: &str = "was made while a cluster was silent that has answered since";
const CHANGED: &str = "was approved before it was changed";
const NOT_LEAVING: &str = "it is the namespace of a cluster that does not leave";
const REASONS: [&str; 5] = [UNAPPROVED, OUTDATED, ANSWERED_SINCE, CHANGED, NOT_LEAVING];
const LOOK: &str = "Look with ";

/// The command that shows what whoever deletes has yet to agree to, if this is such a refusal.
pub(crate) fn awaited(message: &str) -> Option<&str> {
    let (why, hint) = message.rsplit_once(LOOK)?;
    let why = why.trim_end_matches(['.', ' ']);
    let ours = REASONS.iter().any(|reason| why.ends_with(reason));
    let look = hint.strip_prefix('`')?.split('`').next()?;
    (ours && look.starts_with("cleat preview ")).then_some(look)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn manifests(count: usize) -> Value {
        Value::Array((0..count).map(|one| json!({ "kind": one })).collect())
    }

    fn work(metadata: Value, spec: Value) -> Value {
        let mut spec = spec;
        spec["workload"] = json!({ "manifests": manifests(30) });
        json!({ "metadata": metadata, "spec": spec })
    }

    #[test]
    fn what_belongs_to_something_else_or_deletes_nothing_goes_whatever_its_size() {
        let large = work(json!({ "namespace": "c1", "name": "w" }), json!({}));
        let none = Size::default();
        let all = Some(Size { objects: 30, clusters: 1, namespaces: 0 });
        assert_eq!(size(Matter::Work, &large, none), all);
        for (metadata, spec) in [
            (json!({ "labels": { SET_LABEL: "n.s" } }), json!({})),
            (json!({ "finalizers": [LEAVE_FINALIZER] }), json!({})),
            (json!({ "deletionTimestamp": "2026-01-01T00:00:00Z" }), json!({})),
            (json!({}), json!({ "deleteOption": { "propagationPolicy": "Orphan" } })),
        ] {
            let found = size(Matter::Work, &work(metadata.clone(), spec), none);
            assert_eq!(found, None, "{metadata}");
        }
        let copy = json!({ "metadata": { "labels": { ROOT_POLICY: "n.p" } } });
        assert_eq!(size(Matter::Policy, &copy, none), None);
        let cluster = |strategy: &str| json!({ "spec": { "removeStrategy": strategy } });
        let held =
            |resource: &str| LeftObject { resource: resource.into(), ..LeftObject::default() };
        let held = Size::of_cluster(&[held("namespaces"), held("configmaps")]);
        assert_eq!(held, Size { objects: 2, clusters: 1, namespaces: 1 });
        assert_eq!(size(Matter::Cluster, &cluster("Needless"), held), None);
        assert_eq!(size(Matter::Cluster, &cluster("Required"), held), Some(held));
    }

    #[test]
    fn sets_and_policies_count_their_clusters() {
        let none = Size::default();
        let mut three = manifests(3);
        three[0] = json!({ "apiVersion": "v1", "kind": "Namespace" });
        let set = json!({
            "spec": { "manifestWorkTemplate": { "workload": { "manifests": three } } },
            "status": { "summary": { "total": 4 } },
        });
        let all = Some(Size { objects: 12, clusters: 4, namespaces: 4 });
        assert_eq!(size(Matter::ReplicaSet, &set, none), all);
        let policy = |behavior: &str| {
            let namespace = json!({ "apiVersion": "v1", "kind": "Namespace" });
            let spec = json!({
                "pruneObjectBehavior": behavior,
                "object-templates": [{ "objectDefinition": namespace }, { "objectDefinition": {} }],
            });
            json!({
                "spec": { "policy-templates": [{ "objectDefinition": { "spec": spec } }] },
                "status": { "status": [{}, {}] },
            })
        };
        let both = Some(Size { objects: 4, clusters: 2, namespaces: 2 });
        assert_eq!(size(Matter::Policy, &policy("DeleteIfCreated"), none), both);
        assert_eq!(size(Matter::Policy, &policy("None"), none), None);
        let threshold = Threshold { objects: 12, clusters: 4, namespaces: 4 };
        let [objects, clusters, namespaces] = [12, 4, 4];
        let found = Size { objects, clusters, namespaces };
        assert!(!found.is_above(threshold));
        assert!(Size { objects: 13, ..found }.is_above(threshold));
        assert!(Size { clusters: 5, ..found }.is_above(threshold));
        assert!(Size { namespaces: 5, ..found }.is_above(threshold));
    }

    #[test]
    fn whoever_deletes_is_told_what_is_missing_and_what_to_do() {
        let object = work(json!({ "namespace": "c1", "name": "w" }), json!({}));
        let size = Size { objects: 30, clusters: 1, namespaces: 0 };
        assert_eq!(
            refusal(Matter::Work, &object, size, None),
            "deleting it concerns 30 objects on 1 cluster, and no plan was approved. Look with \
             `cleat preview delete manifestwork/w -n c1`, then `cleat delete manifestwork/w -n c1 \
             --plan HASH`"
        );
        let plan = Approved { plan: "0123", generation: None };
        let told = |standing| refusal(Matter::Work, &object, size, Some((&plan, standing)));
        for (standing, why) in [
            (Standing::Foreign, "and plan 0123 is not one of it, or too old. "),
            (
                Standing::AnsweredSince,
                "and plan 0123 was made while a cluster was silent that has answered since. ",
            ),
            (Standing::Changed, "and plan 0123 was approved before it was changed. "),
        ] {
            let told = told(standing);
            assert!(told.contains(why), "{told}");
            assert_eq!(awaited(&told), Some("cleat preview delete manifestwork/w -n c1"));
        }
        assert_eq!(awaited("no. Look with `cleat preview delete manifestwork/w`"), None);
        let told = refusal(Matter::Work, &object, Size { namespaces: 2, ..size }, None);
        let expected =
            "deleting it concerns 30 objects (2 namespaces among them) on 1 cluster, and ";
        assert!(told.starts_with(expected), "{told}");
        let namespace = json!({ "metadata": { "name": "c1" } });
        let told = refusal(Matter::Namespace, &namespace, size, None);
        assert!(told.ends_with("Look with `cleat preview unjoin c1`, then `cleat unjoin c1`"));
        assert_eq!(awaited(&told), Some("cleat preview unjoin c1"));
    }

    /// It went without a question because it left with everything, and then it was told to leave nothing.
    #[test]
    fn a_cluster_that_left_with_everything_was_emptied_without_a_plan() {
        let cluster = |strategy: &str, leaves: bool| {
            let since = leaves.then_some("2026-01-01T00:00:00Z");
            json!({
                "metadata": { "name": "c1", "deletionTimestamp": since },
                "spec": { "removeStrategy": strategy },
            })
        };
        let (old, new) = (cluster("Needless", true), cluster("Required", true));
        let held = Size { objects: 30, clusters: 1, namespaces: 0 };
        let judged = emptied_anew(&old, &new).unwrap();
        assert_eq!(size(Matter::Cluster, &judged, held), Some(held));
        for (old, new) in [
            (&new, &new),
            (&new, &old),
            (&old, &old),
            (&cluster("Needless", false), &cluster("Required", false)),
        ] {
            assert_eq!(emptied_anew(old, new), None);
        }
    }

    /// A template with forty objects counted as one, and what places a policy as nothing.
    #[test]
    fn a_policy_counted_its_templates_and_not_what_they_ask_for() {
        let template = |behavior: &str, asked: Value| {
            let mut spec = json!({ "pruneObjectBehavior": behavior });
            spec["object-templates"] = asked;
            json!({ "objectDefinition": { "spec": spec } })
        };
        let policy = json!({ "spec": { "policy-templates": [
            template("DeleteAll", manifests(40)),
            template("None", manifests(7)),
            template("DeleteIfCreated", Value::Null),
        ] } });
        let size = Size { objects: 82, clusters: 2, namespaces: 0 };
        assert_eq!(Size::of_policy(&policy, 2), size);
        let none = json!({ "spec": { "policy-templates": [template("None", manifests(7))] } });
        assert_eq!(Size::of_policy(&none, 2), Size::default());
        let placed = size.and(Size { objects: 8, clusters: 3, namespaces: 1 });
        assert_eq!(placed, Size { objects: 90, clusters: 3, namespaces: 1 });
        let binding = json!({ "metadata": { "namespace": "n", "name": "b" } });
        assert_eq!(super::size(Matter::Binding, &binding, placed), Some(placed));
        assert_eq!(super::size(Matter::Placement, &binding, Size::default()), None);
        let told = refusal(Matter::Binding, &binding, placed, None);
        assert!(told.contains("`cleat preview delete placementbinding/b -n n`"), "{told}");
    }

    /// It could never answer, so no plan could ever be approved.
    #[test]
    fn a_cluster_declared_destroyed_was_held_for_ever() {
        let cluster = |declared: Value| {
            json!({
                "metadata": { "name": "c1", "annotations": { CLUSTER_DESTROYED: declared } },
                "spec": { "removeStrategy": "Required" },
            })
        };
        let held = Size { objects: 30, clusters: 1, namespaces: 0 };
        assert_eq!(size(Matter::Cluster, &cluster(json!("c1")), held), None);
        assert_eq!(size(Matter::Cluster, &cluster(json!("c2")), held), Some(held));
        assert_eq!(size(Matter::Cluster, &cluster(Value::Null), held), Some(held));
    }
}
