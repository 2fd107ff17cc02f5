//! A finalizer: who set it, who serves it, and whether they run.

use alloc::borrow::ToOwned as _;
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec;
use alloc::vec::Vec;

use jiff::Timestamp;
use serde_json::Value;

use super::object::{Thing, Trail, id, list, text, without_finalizer};
use super::question::{Look, Place};
use super::tree::{Node, Reason, Weight, begun};
use super::workload::{self, Workload};
use super::{Wish, ago, cluster, namespace, object, owner, policy, set, work};
use crate::id::Id;

/// Names of finalizers that have a story of their own.
mod named {
    pub(super) const FOREGROUND: &str = "foregroundDeletion";
    pub(super) const ORPHAN: &str = "orphan";
    pub(super) const CLAIM: &str = "kubernetes.io/pvc-protection";
    pub(super) const VOLUME: &str = "kubernetes.io/pv-protection";
    pub(super) const INSTANCES: &str = "customresourcecleanup.apiextensions.k8s.io";
}

/// Finalizers by how they begin, who serves them, and how its workload is often called. The cloud's
/// and Kubernetes' own controllers are not among a cluster's workloads everywhere.
const KNOWN: &[(&str, &str, &[&str])] = &[
    (
        "service.kubernetes.io/load-balancer-cleanup",
        "the cloud's controller manager",
        &["cloud-controller-manager", "aws-load-balancer-controller"],
    ),
    ("batch.kubernetes.io/job-tracking", "the job controller of kube-controller-manager", &[]),
    ("external-attacher/", "the CSI attacher of the driver", &["csi-attacher"]),
    (
        "external-provisioner.volume.kubernetes.io/",
        "the CSI provisioner of the driver",
        &["csi-provisioner"],
    ),
    ("snapshot.storage.kubernetes.io/", "the snapshot controller", &["snapshot-controller"]),
    ("ingress.k8s.aws/", "the AWS load balancer controller", &["aws-load-balancer-controller"]),
    ("networking.gke.io/", "GKE's ingress controller", &[]),
    ("finalizer.acme.cert-manager.io", "cert-manager", &["cert-manager"]),
    ("acme.cert-manager.io/", "cert-manager", &["cert-manager"]),
    ("resources-finalizer.argocd.argoproj.io", "Argo CD", &["argocd-application-controller"]),
    ("finalizers.fluxcd.io", "Flux", &["kustomize-controller", "helm-controller"]),
    ("operator.tigera.io/", "the Tigera operator", &["tigera-operator"]),
    ("longhorn.io", "Longhorn", &["longhorn-manager"]),
    (
        "policy.open-cluster-management.io/",
        "the policy agent of the cluster, or the hub's policies",
        &["config-policy-controller", "governance-policy-propagator", "cleat-agent", "cleat-hub"],
    ),
    ("work.open-cluster-management.io/", "the hub's works", &["work-manager", "cleat-hub"]),
    (
        "cluster.open-cluster-management.io/",
        "the hub, or the agent of the cluster",
        &[
            "cluster-manager-registration-controller",
            "klusterlet-agent",
            "cleat-hub",
            "cleat-agent",
        ],
    ),
    ("cleat.dev/", "cleat's hub or agent", &["cleat-hub", "cleat-agent", "cleat"]),
];

/// What people and their tools write as; no controller is to be looked for.
const TOOLS: &[&str] = &[
    "kubectl",
    "helm",
    "unknown",
    "curl",
    "kustomize",
    "argocd",
    "terraform",
    "pulumi",
    "oc",
    "k9s",
    "Mozilla",
    "python-requests",
    "OpenAPI-Generator",
    "cleat",
];

pub(super) fn tell(look: &Look<'_>, thing: &Thing<'_>, finalizer: &str, trail: &Trail) -> Node {
    match finalizer {
        named::FOREGROUND => owner::foreground(look, thing, trail),
        named::ORPHAN => Node::blocks(
            Reason::FinalizerOwnerWorking,
            "the garbage collector has yet to take its dependents off it (finalizer orphan)",
        )
        .act("kube-controller-manager", "it does so by itself; see that it runs", None),
        named::CLAIM => claim_in_use(look, thing),
        named::VOLUME => volume_in_use(thing),
        named::INSTANCES => namespace::instances(look, thing, trail),
        _ => ours(look, thing, finalizer, trail)
            .unwrap_or_else(|| of_controller(look, thing, finalizer, trail, Some(look.now))),
    }
}

/// What we ourselves take off, whatever it is on.
const OURS: &[&str] = &[
    "cleat.dev/",
    "work.open-cluster-management.io/",
    "cluster.open-cluster-management.io/",
    "policy.open-cluster-management.io/",
];

/// Of a finalizer that a controller will have to take off: who that is, and whether it runs. Nothing of
/// those that the server or we ourselves see to, nor of those whose controller is known not to be among
/// the workloads everywhere and is not here.
pub(super) fn served(
    look: &Look<'_>,
    thing: &Thing<'_>,
    finalizer: &str,
    trail: &Trail,
) -> Option<Node> {
    use named::{CLAIM, FOREGROUND, INSTANCES, ORPHAN, VOLUME};
    let seen_to = [FOREGROUND, ORPHAN, CLAIM, VOLUME, INSTANCES].contains(&finalizer)
        || OURS.iter().any(|begin| finalizer.starts_with(begin));
    if seen_to {
        return None;
    }
    let node = of_controller(look, thing, finalizer, trail, None);
    let known = KNOWN.iter().any(|(begin, _, _)| finalizer.starts_with(begin));
    let elsewhere = known && node.reason == Some(Reason::FinalizerNoOwner);
    (!elsewhere).then_some(node)
}

/// Our own finalizers: the objects themselves say how far it got.
fn ours(look: &Look<'_>, thing: &Thing<'_>, finalizer: &str, trail: &Trail) -> Option<Node> {
    use cleat_api::{appliedmanifestwork, configurationpolicy, managedcluster, manifestwork};
    use cleat_api::{manifestworkreplicaset, policy as policies};
    Some(match (thing.id.resource.as_str(), finalizer) {
        ("manifestworks", manifestwork::FINALIZER) => work::going(look, thing, trail),
        ("manifestworks", manifestwork::LEAVE_FINALIZER) => work::recorded(thing),
        ("appliedmanifestworks", appliedmanifestwork::FINALIZER) => {
            work::ledger_going(look, thing, trail)
        }
        ("managedclusters", managedcluster::FINALIZER) => cluster::held(look, thing),
        ("manifestworkreplicasets", manifestworkreplicaset::FINALIZER) => {
            set::going(look, thing, trail)
        }
        ("configurationpolicies", configurationpolicy::FINALIZER) => {
            policy::pruning(look, thing, trail)
        }
        ("policies", policies::name::CLUSTER_SCOPED_FINALIZER | configurationpolicy::FINALIZER) => {
            policy::going(look, thing, finalizer, trail)
        }
        _ => return None,
    })
}

struct Setter<'a> {
    manager: &'a str,
    time: Option<Timestamp>,
}

/// Who set a finalizer, as `managedFields` tell, the latest first.
fn setters<'a>(object: &'a Value, finalizer: &str) -> Vec<Setter<'a>> {
    let key = format!("v:{}", Value::from(finalizer));
    let entries = list(object, "/metadata/managedFields").iter();
    let sets = entries.filter(|entry| {
        let finalizers = entry.pointer("/fieldsV1/f:metadata/f:finalizers");
        finalizers.and_then(Value::as_object).is_some_and(|set| set.contains_key(&key))
    });
    let mut setters: Vec<Setter<'_>> = sets
        .map(|entry| Setter {
            manager: text(entry, "/manager"),
            time: text(entry, "/time").parse().ok(),
        })
        .collect();
    setters.sort_by_key(|setter| core::cmp::Reverse(setter.time));
    setters
}

fn is_tool(manager: &str) -> bool {
    TOOLS.contains(&manager) || manager.starts_with("kubectl-")
}

/// A controller's finalizer: from who wrote it, who is known to, and who says to be needed for it.
/// `now`: since when is told as well.
fn of_controller(
    look: &Look<'_>,
    thing: &Thing<'_>,
    finalizer: &str,
    trail: &Trail,
    now: Option<Timestamp>,
) -> Node {
    let setters = setters(thing.object, finalizer);
    let known = KNOWN.iter().find(|(begin, _, _)| finalizer.starts_with(begin));
    let mut says = format!("finalizer {finalizer}");
    if let Some(Setter { manager, time }) = setters.first() {
        says.push_str(&format!(", set by {manager}"));
        if let (Some(time), Some(now)) = (time, now) {
            says.push_str(&format!(" {} ago", ago(*time, now)));
        }
        if is_tool(manager) {
            says.push_str(", which is a tool of people");
        }
    } else {
        says.push_str("; managedFields do not tell who set it");
    }
    if let Some((_, actor, _)) = known {
        says.push_str(&format!("; it is served by {actor}"));
    }
    let mut children = Vec::new();
    let provider = provider(look, thing, finalizer);
    if let Some((service, provider)) = &provider {
        says.push_str(&format!("; criticalservice {service} says that {provider} serves it"));
        children.push(object::tell(look, thing.place, provider, Wish::There, trail));
    } else {
        let names: Vec<&str> = setters
            .iter()
            .map(|setter| setter.manager)
            .filter(|manager| !is_tool(manager))
            .chain(known.iter().flat_map(|(_, _, names)| names.iter().copied()))
            .collect();
        children.extend(workloads(look, thing.place, &names));
    }
    judge(thing, finalizer, says, children, known.map(|(_, actor, _)| *actor))
}

/// Which workload a CriticalService names for a finalizer of this resource.
fn provider(look: &Look<'_>, thing: &Thing<'_>, finalizer: &str) -> Option<(String, Id)> {
    let of = ("protection.open-cluster-management.io", "criticalservices");
    let services = look.list(thing.place, of, ("", ""));
    services.items.iter().find_map(|service| {
        let names = list(service, "/spec/criteria").iter().any(|criterion| {
            text(criterion, "/finalizer/finalizerName") == finalizer
                && text(criterion, "/finalizer/resource") == thing.id.resource
                && text(criterion, "/finalizer/group") == thing.id.group
        });
        let field = |name: &str| text(service, &format!("/spec/provider/{name}"));
        let provider = id(field("group"), field("resource"), field("namespace"), field("name"));
        names.then(|| (text(service, "/metadata/name").to_owned(), provider))
    })
}

/// The workloads that run something of one of these names, with how they are.
fn workloads(look: &Look<'_>, place: Place, names: &[&str]) -> Vec<Node> {
    let found = workload::all(look, place);
    let mut children: Vec<Node> = found
        .items
        .iter()
        .filter_map(|one: &Workload<'_>| Some((one, one.runs(names)?)))
        .take(3)
        .map(|(one, evidence)| {
            let mut node = workload::health(look, &one.thing);
            if !evidence.is_empty() {
                node.text.push_str(&format!(" ({evidence})"));
            }
            node
        })
        .collect();
    // Not having seen all of them is no proof that there is none.
    if children.is_empty() && !names.is_empty() {
        children.extend(found.unread);
    }
    children
}

fn judge(
    thing: &Thing<'_>,
    finalizer: &str,
    says: String,
    children: Vec<Node>,
    actor: Option<&str>,
) -> Node {
    let unread = children.iter().any(|one| one.weight == Weight::Unread);
    let unhealthy = children.iter().any(Node::is_blocking);
    let by_hand = Some(without_finalizer(thing, finalizer));
    let caution = "see to what it stands for, then take it off by hand";
    if unhealthy {
        return Node::blocks(Reason::FinalizerOwnerUnhealthy, says).with(children);
    }
    if unread {
        let node = Node::blocks(Reason::FinalizerNoOwner, says).with(children);
        return Node { reason: Some(Reason::Unreadable), ..node };
    }
    if let Some(first) = children.first() {
        let logs = first.object.as_ref().map(|one| {
            let kind = one.resource.trim_end_matches('s');
            format!("{}-n {} logs {kind}/{}", begun(one.server), one.namespace, one.name)
        });
        let whose = first.object.as_ref().map_or("its controller", |one| one.name.as_str());
        let what = "it runs and has not let go; its log says why";
        return Node::blocks(Reason::FinalizerOwnerWorking, says)
            .act(whose, what, logs)
            .with(children);
    }
    match actor {
        Some(actor) => Node::blocks(Reason::FinalizerNoOwner, says).act(
            actor,
            &format!("none of the workloads here is it: see that it runs, or {caution}"),
            by_hand,
        ),
        None => Node::blocks(Reason::FinalizerNoOwner, says).act(
            "whoever knows what it stands for",
            &format!("no workload here serves it: start its controller, or {caution}"),
            by_hand,
        ),
    }
}

/// A claim is held by the pods that use it.
fn claim_in_use(look: &Look<'_>, thing: &Thing<'_>) -> Node {
    let says = "finalizer kubernetes.io/pvc-protection: pods use it";
    let pods = look.list(thing.place, ("", "pods"), (&thing.id.namespace, ""));
    let uses = |pod: &&Value| {
        let done = ["Succeeded", "Failed"].contains(&text(pod, "/status/phase"));
        let claims = list(pod, "/spec/volumes").iter();
        let mut claims = claims.map(|one| text(one, "/persistentVolumeClaim/claimName"));
        !done && claims.any(|claim| claim == thing.id.name)
    };
    let using: Vec<Node> = pods
        .items
        .iter()
        .filter(uses)
        .take(5)
        .map(|pod| {
            let id = object::id_of("", "pods", pod);
            Node::blocks(Reason::FinalizerOwnerWorking, format!("{id} uses it"))
                .about(thing.place, &id)
                .act(
                    "whoever runs it",
                    "delete the pod, or what makes it",
                    Some(super::tree::kubectl(thing.place, "delete", &id, "")),
                )
        })
        .collect();
    if let Some(unread) = pods.unread {
        return Node::blocks(Reason::Unreadable, says)
            .with(vec![Node::unread(&format!("pods of {}", thing.id.namespace), unread)]);
    }
    if using.is_empty() {
        let text = "finalizer kubernetes.io/pvc-protection, although no pod uses it";
        let what = "the claim protection of it takes it off; see that it runs";
        return Node::blocks(Reason::FinalizerOwnerWorking, text).act(
            "kube-controller-manager",
            what,
            None,
        );
    }
    Node::blocks(Reason::FinalizerOwnerWorking, says).with(using)
}

fn volume_in_use(thing: &Thing<'_>) -> Node {
    let (namespace, name) =
        (thing.text("/spec/claimRef/namespace"), thing.text("/spec/claimRef/name"));
    let claim = id("", "persistentvolumeclaims", namespace, name).to_string();
    let says = "finalizer kubernetes.io/pv-protection";
    if thing.text("/status/phase") == "Bound" {
        return Node::blocks(
            Reason::FinalizerOwnerWorking,
            format!("{says}: {claim} is bound to it"),
        )
        .act("whoever owns the claim", "delete the claim first", None);
    }
    Node::blocks(Reason::FinalizerOwnerWorking, says).act(
        "kube-controller-manager",
        "the volume protection of it takes it off; see that it runs",
        None,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_are_not_taken_for_controllers() {
        for (manager, tool) in [
            ("kubectl", true),
            ("kubectl-edit", true),
            ("kubectl-client-side-apply", true),
            ("kubelet", false),
            ("helm", true),
            ("helm-controller", false),
            ("cleat", true),
            ("cleat-hub", false),
            ("audit-controller", false),
        ] {
            assert_eq!(is_tool(manager), tool, "{manager}");
        }
    }
}
