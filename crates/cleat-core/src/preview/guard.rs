//! Which deletions on a hub are so large that somebody has to have looked first.
//!
//! It is a rail, not a lock: whoever may write the annotation can approve. What controllers of the hub
//! take away in turn (works of a set, copies of a policy, what a leaving cluster has) was approved with
//! what it belongs to, and is never held up.

use alloc::borrow::ToOwned as _;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use cleat_api::leftoverrecord::LeftObject;
use cleat_api::managedcluster::{CLUSTER_DESTROYED, RemoveStrategy};
use cleat_api::manifestwork::LEAVE_FINALIZER;
use cleat_api::manifestworkreplicaset::SET_LABEL;
use cleat_api::policy::name::ROOT_POLICY;
use cleat_api::removalpreview::{APPROVED_PLAN, RemovalPreview, UNANSWERED};
use serde_json::Value;

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
    Cluster,
}

impl Matter {
    pub fn of_resource(resource: &str) -> Option<Self> {
        match resource {
            "manifestworks" => Some(Self::Work),
            "manifestworkreplicasets" => Some(Self::ReplicaSet),
            "policies" => Some(Self::Policy),
            "managedclusters" => Some(Self::Cluster),
            _ => None,
        }
    }

    fn kind(self) -> &'static str {
        match self {
            Self::Work => "manifestwork",
            Self::ReplicaSet => "manifestworkreplicaset",
            Self::Policy => "policy",
            Self::Cluster => "managedcluster",
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
/// one. `None`: it may go whatever its size.
pub fn size(matter: Matter, object: &Value, held: Size) -> Option<Size> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    let list = |pointer: &str| -> &[Value] {
        object
            .pointer(pointer)
            .and_then(Value::as_array)
            .map(|all| all.as_slice())
            .unwrap_or_default()
    };
    let count = |pointer: &str| list(pointer).len();
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
            let behavior = |template: &Value| {
                let said = template.pointer("/objectDefinition/spec/pruneObjectBehavior");
                said.and_then(Value::as_str).is_some_and(|said| said != "None")
            };
            let pruning = || list("/spec/policy-templates").iter().filter(|one| behavior(one));
            let clusters = count("/status/status");
            let asked = pruning().flat_map(|template| {
                let asked = template.pointer("/objectDefinition/spec/object-templates");
                asked.and_then(Value::as_array).into_iter().flatten()
            });
            let namespaces = namespaces(asked.filter_map(|one| one.get("objectDefinition")));
            let templates = pruning().count();
            (templates > 0).then(|| Size {
                objects: templates.saturating_mul(clusters),
                clusters,
                namespaces: namespaces.saturating_mul(clusters),
            })
        }
        Matter::Cluster if text("/spec/removeStrategy") != Some("Required") => None,
        // It can answer no question, and nothing on it is deleted.
        Matter::Cluster if is_destroyed(object) => None,
        Matter::Cluster => Some(held),
    }
}

/// Whether somebody has declared that the cluster exists no more.
fn is_destroyed(cluster: &Value) -> bool {
    let annotations = cluster.pointer("/metadata/annotations");
    let declared = annotations.and_then(|all| all.get(CLUSTER_DESTROYED)?.as_str());
    let name = cluster.pointer("/metadata/name").and_then(Value::as_str);
    declared.is_some() && declared == name
}

/// The plan that somebody approved of, if it can be one.
pub fn approved(object: &Value) -> Option<&str> {
    let plan = object.pointer("/metadata/annotations")?.get(APPROVED_PLAN)?.as_str()?;
    let plausible = !plan.is_empty() && plan.chars().all(|one| one.is_ascii_alphanumeric());
    plausible.then_some(plan)
}

/// The works of a set: their clusters, and their names there.
pub type Works = BTreeSet<(String, String)>;

/// Whether the questions that bear the approved plan were about all of the end of this object. `works`
/// are its own, if it is a set.
///
/// Something must have been answered. Of a cluster that was silent whoever agreed knew that much; one
/// that nobody asked was not agreed to.
pub fn covers(matter: Matter, object: &Value, works: &Works, questions: &[RemovalPreview]) -> bool {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
    let root = format!("{namespace}.{name}");
    let about = |question: &&RemovalPreview| {
        let asked = &question.spec;
        let cluster = cluster_of(question);
        asked.proposed.is_none()
            && asked.proposed_policy.is_none()
            && match matter {
                Matter::Work => cluster == namespace && asked.work == name,
                Matter::Cluster => cluster == name && asked.leave == Some(RemoveStrategy::Required),
                Matter::Policy => asked.policy == root,
                Matter::ReplicaSet => works.contains(&(cluster.to_owned(), asked.work.clone())),
            }
    };
    let asked: Vec<&RemovalPreview> = questions.iter().filter(about).collect();
    let whole = match matter {
        Matter::ReplicaSet => works.iter().all(|(cluster, work)| {
            asked.iter().any(|one| cluster_of(one) == cluster && one.spec.work == *work)
        }),
        // A copy on a cluster that cannot be reached stays there for now, and nobody is asked about it.
        Matter::Work | Matter::Cluster | Matter::Policy => true,
    };
    whole && asked.iter().any(|question| was_answered(question))
}

fn cluster_of(question: &RemovalPreview) -> &str {
    question.metadata.namespace.as_deref().unwrap_or_default()
}

/// Whoever agreed to the plan did not see an answer that came afterwards.
fn was_answered(question: &RemovalPreview) -> bool {
    let answered = question.status.as_ref().is_some_and(|status| status.answered_at.is_some());
    let annotations = question.metadata.annotations.as_ref();
    answered && !annotations.is_some_and(|all| all.contains_key(UNANSWERED))
}

/// What whoever deletes is told.
pub fn refusal(matter: Matter, object: &Value, size: Size, plan: Option<&str>) -> String {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
    let kind = matter.kind();
    let (look, go) = match matter {
        Matter::Cluster => {
            (format!("cleat preview unjoin {name}"), format!("cleat unjoin {name} --plan HASH"))
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
        None => "no plan was approved".to_owned(),
        Some(plan) => format!("plan {plan} is not one of it, or too old"),
    };
    format!(
        "deleting it concerns {objects} on {clusters}, and {approval}. Look with `{look}`, then \
         `{go}`"
    )
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
        let both = Some(Size { objects: 2, clusters: 2, namespaces: 2 });
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
    fn a_plan_is_good_for_what_it_is_about_and_was_answered() {
        let question = |namespace: &str, spec: Value, status: Value| -> RemovalPreview {
            serde_json::from_value(json!({
                "apiVersion": "cleat.dev/v1alpha1", "kind": "RemovalPreview",
                "metadata": { "namespace": namespace, "name": "q" }, "spec": spec, "status": status,
            }))
            .unwrap()
        };
        let answered = || json!({ "answeredAt": "2026-01-01T00:00:00Z" });
        let object = work(json!({ "namespace": "c1", "name": "w" }), json!({}));
        let covered = |namespace: &str, spec: Value, status: Value| {
            covers(Matter::Work, &object, &Works::new(), &[question(namespace, spec, status)])
        };
        assert!(covered("c1", json!({ "work": "w" }), answered()));
        assert!(!covered("c1", json!({ "work": "w" }), json!({})));
        assert!(!covered("c2", json!({ "work": "w" }), answered()));
        assert!(!covered("c1", json!({ "work": "v" }), answered()));
        assert!(!covered("c1", json!({ "policy": "w" }), answered()));
        // An answer that came when the plan was made already was seen by nobody.
        let mut late = question("c1", json!({ "work": "w" }), answered());
        late.metadata.annotations = Some([(UNANSWERED.to_owned(), "0 x".to_owned())].into());
        assert!(!covers(Matter::Work, &object, &Works::new(), &[late]));
        // Agreeing to a change is not agreeing to the end.
        let proposed = json!({ "work": "w", "proposed": { "name": "w", "spec": {} } });
        assert!(!covered("c1", proposed, answered()));
        let works = Works::from([("c1".to_owned(), "shop-1".to_owned())]);
        let of_set = |namespace: &str, work: &str| {
            let question = question(namespace, json!({ "work": work }), answered());
            covers(Matter::ReplicaSet, &json!({}), &works, &[question])
        };
        let of_cluster = |strategy: &str| {
            let question = question("c1", json!({ "leave": strategy }), answered());
            let cluster = json!({ "metadata": { "name": "c1" } });
            covers(Matter::Cluster, &cluster, &Works::new(), &[question])
        };
        assert!(of_set("c1", "shop-1"));
        assert!(!of_set("c1", "w") && !of_set("c2", "shop-1"), "it is about another's works");
        assert!(!of_cluster("Needless") && of_cluster("Required"));
        let size = Size { objects: 30, clusters: 1, namespaces: 0 };
        assert_eq!(
            refusal(Matter::Work, &object, size, None),
            "deleting it concerns 30 objects on 1 cluster, and no plan was approved. Look with \
             `cleat preview delete manifestwork/w -n c1`, then `cleat delete manifestwork/w -n c1 \
             --plan HASH`"
        );
        let told = refusal(Matter::Work, &object, Size { namespaces: 2, ..size }, None);
        let expected =
            "deleting it concerns 30 objects (2 namespaces among them) on 1 cluster, and ";
        assert!(told.starts_with(expected), "{told}");
    }

    /// One of two hundred works was looked at, and the set went with all of them.
    #[test]
    fn a_set_that_has_grown_since_is_not_what_was_agreed_to() {
        let question = |cluster: &str, status: Value| -> RemovalPreview {
            serde_json::from_value(json!({
                "apiVersion": "cleat.dev/v1alpha1", "kind": "RemovalPreview",
                "metadata": { "namespace": cluster, "name": "q" },
                "spec": { "work": "shop" }, "status": status,
            }))
            .unwrap()
        };
        let answered = json!({ "answeredAt": "2026-01-01T00:00:00Z" });
        let work = |cluster: &str| (cluster.to_owned(), "shop".to_owned());
        let (one, two) = (question("c1", answered), question("c2", json!({})));
        let covered = |works: &Works, questions: &[RemovalPreview]| {
            covers(Matter::ReplicaSet, &json!({}), works, questions)
        };
        let grown = Works::from([work("c1"), work("c2")]);
        assert!(covered(&Works::from([work("c1")]), core::slice::from_ref(&one)));
        assert!(!covered(&grown, core::slice::from_ref(&one)));
        // That a cluster was silent was part of the plan; that all were is not enough.
        assert!(covered(&grown, &[one, two.clone()]));
        assert!(!covered(&grown, &[two]));
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
