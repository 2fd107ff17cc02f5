//! Clusters of the fleet: why one has not joined, is not heard of, or does not leave.

use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec;
use alloc::vec::Vec;

use cleat_api::managedcluster::{
    CLUSTER_ID, CLUSTER_NAME_LABEL, ID_CLAIM, LEASE, condition, reason,
};
use serde_json::Value;

use super::object::{self, Thing, Trail, id, id_of, list, text};
use super::question::{Found, Look, Place, Unread};
use super::tree::{Node, Reason, Weight};
use super::{Wish, ago, conditions};
use crate::id::Id;
use crate::number::number;

pub(super) const GROUP: &str = "cluster.open-cluster-management.io";
const WORKS: (&str, &str) = ("work.open-cluster-management.io", "manifestworks");
const POLICIES: (&str, &str) = ("policy.open-cluster-management.io", "policies");

/// How many works of a cluster are told; the rest is counted.
const MOST: usize = 4;

/// Whether the hub hears of a cluster; nothing if it does.
pub(super) fn reach(look: &Look<'_>, name: &str) -> Option<Node> {
    let cluster_id = id(GROUP, "managedclusters", "", name);
    match look.object(Place::Here, &cluster_id) {
        Found::Present(object) => {
            let thing = Thing { place: Place::Here, id: cluster_id, object };
            silent(look, &thing)
        }
        Found::Absent => {
            Some(
                Node::blocks(Reason::Missing, format!("there is no cluster {name} on this hub"))
                    .act("you", "nobody will act on it: join the cluster", None),
            )
        }
        Found::Unread(unread) => Some(Node::unread(&format!("cluster {name}"), unread)),
        Found::NoSuchKind => Some(Node::note(
            "this server serves no ManagedClusters, so whether the cluster is reached is not told",
        )),
        Found::Pending => None,
    }
}

/// Since when nothing is heard of it.
fn silent(look: &Look<'_>, thing: &Thing<'_>) -> Option<Node> {
    let name = &thing.id.name;
    let available = conditions::find(thing, condition::AVAILABLE)?;
    if text(available, "/status") == "True" {
        return None;
    }
    let mut says = format!("the hub does not hear of cluster {name}");
    if text(available, "/reason") == reason::API_SERVER_UNAVAILABLE {
        says = format!("the API server of cluster {name} does not answer its agent");
    }
    if let Ok(since) = text(available, "/lastTransitionTime").parse() {
        says.push_str(&format!(", for {}", ago(since, look.now)));
    }
    let lease = id("coordination.k8s.io", "leases", name, LEASE);
    let mut children = Vec::new();
    match look.object(Place::Here, &lease) {
        Found::Present(object) => {
            if let Ok(renewed) = text(object, "/spec/renewTime").parse() {
                let text = format!("its lease was renewed {} ago", ago(renewed, look.now));
                children.push(Node::note(text));
            }
        }
        Found::Unread(unread) => children.push(Node::unread("its lease", unread)),
        Found::Absent => children.push(Node::note("it has no lease")),
        Found::NoSuchKind | Found::Pending => {}
    }
    let command = thing.deleting().map(|_| format!("cleat unjoin {name} --cluster-destroyed"));
    let what = match command {
        Some(_) => "bring it and its agent back; or declare that it never comes back",
        None => "bring it and its agent back",
    };
    let node = Node::blocks(Reason::ClusterUnreachable, says);
    Some(node.about(Place::Here, &thing.id).act("whoever runs it", what, command).with(children))
}

/// Why it has not joined, or is not well.
pub(super) fn standing(look: &Look<'_>, thing: &Thing<'_>, _trail: &Trail) -> Vec<Node> {
    let name = &thing.id.name;
    let accept = Some(format!("cleat accept {name}"));
    let mut children = Vec::new();
    let accepted =
        thing.object.pointer("/spec/hubAcceptsClient").and_then(Value::as_bool) == Some(true);
    if !accepted {
        children.push(Node::blocks(Reason::ApprovalPending, "nobody has accepted it").act(
            "whoever runs the hub",
            "accept it",
            accept.clone(),
        ));
    }
    let refused = conditions::find(thing, condition::ACCEPTED)
        .filter(|one| accepted && text(one, "/status") != "True");
    children.extend(refused.map(|one| conditions::said(look, thing, one)));
    children.extend(requests(look, name));
    if accepted && conditions::status(thing, condition::JOINED) != "True" && children.is_empty() {
        children.push(
            Node::blocks(Reason::NotReady, "it is accepted, and its agent has not come yet").act(
                "whoever runs the cluster",
                "see that `cleat join` or the agent runs",
                None,
            ),
        );
    }
    children.extend(silent(look, thing));
    let rotated = conditions::find(thing, condition::CERTIFICATE_ROTATED)
        .filter(|one| text(one, "/status") == "False");
    let clock = conditions::find(thing, condition::CLOCK_SYNCED)
        .filter(|one| text(one, "/status") == "False");
    children.extend(rotated.into_iter().chain(clock).map(|one| conditions::said(look, thing, one)));
    children
}

/// Requests of a cluster for certificates that wait for somebody.
fn requests(look: &Look<'_>, name: &str) -> Vec<Node> {
    let of = ("certificates.k8s.io", "certificatesigningrequests");
    let labels = format!("{CLUSTER_NAME_LABEL}={name}");
    let all = look.list(Place::Here, of, ("", &labels));
    if let Some(unread) = all.unread {
        return vec![Node::unread("its requests for certificates", unread)];
    }
    let things = all.items.iter().map(|object| Thing {
        place: Place::Here,
        id: id_of(of.0, of.1, object),
        object,
    });
    things
        .filter_map(|thing| {
            let node = request(&thing).filter(|node| node.reason == Some(Reason::ApprovalPending));
            node.map(|node| Node { text: format!("{}: {}", thing.name(), node.text), ..node })
        })
        .take(2)
        .collect()
}

/// What a request for a certificate waits for.
pub(super) fn request(thing: &Thing<'_>) -> Option<Node> {
    let signer = thing.text("/spec/signerName");
    let labels = thing.object.pointer("/metadata/labels");
    let cluster = labels.and_then(|all| all.get(CLUSTER_NAME_LABEL)).and_then(Value::as_str);
    if let Some(denied) = conditions::find(thing, "Denied") {
        let text = format!("it was denied: {}", text(denied, "/message"));
        return Some(Node::blocks(Reason::ApprovalPending, text).act(
            "whoever asked",
            "ask again, once whoever denied it agrees",
            None,
        ));
    }
    if conditions::find(thing, "Approved").is_none() {
        let who = thing.text("/spec/username");
        let text = format!("it was asked for by {who} and nobody has approved it");
        let command = cluster.map_or_else(
            || format!("kubectl certificate approve {}", thing.id.name),
            |cluster| format!("cleat accept {cluster}"),
        );
        let node = Node::blocks(Reason::ApprovalPending, text);
        let node = node.about(thing.place, &thing.id);
        return Some(node.act(
            "whoever runs the hub",
            "compare the key and approve",
            Some(command),
        ));
    }
    if let Some(failed) = conditions::find(thing, "Failed") {
        let text = format!("its signer refused it: {}", text(failed, "/message"));
        return Some(Node::blocks(Reason::NotReady, text).act("whoever asked", "ask anew", None));
    }
    if thing.text("/status/certificate").is_empty() {
        let text = format!("it is approved, and its signer {signer} has not signed it");
        return Some(Node::blocks(Reason::NotReady, text).act(
            signer,
            "see that it runs; Kubernetes' own signers are in kube-controller-manager",
            None,
        ));
    }
    None
}

/// Why a cluster that leaves has not left.
pub(super) fn leaving(look: &Look<'_>, thing: &Thing<'_>, trail: &Trail) -> Vec<Node> {
    if !thing.is(GROUP, "managedclusters") {
        return Vec::new();
    }
    let name = &thing.id.name;
    let mut children = Vec::new();
    let failed = conditions::find(thing, condition::UNJOIN_FAILED)
        .filter(|one| text(one, "/status") == "True");
    children.extend(failed.map(|one| {
        let says = conditions::sentence(look, one);
        Node { weight: Weight::Blocks, ..Node::note(says) }
    }));
    children.extend(silent(look, thing));
    let mut left: Vec<Node> = Vec::new();
    for (of, [one, more]) in [(WORKS, ["work", "works"]), (POLICIES, ["policy", "policies"])] {
        let all = look.list(Place::Here, of, (name, ""));
        if let Some(unread) = all.unread {
            children.push(Node::unread(&format!("its {more}"), unread));
        }
        if all.items.is_empty() {
            continue;
        }
        let verb = if all.items.len() == 1 { "is" } else { "are" };
        let text = format!("{} {verb} left", number(all.items.len(), one, more));
        let mut going: Vec<&Value> = all.items.iter().collect();
        // What is blocked is worth more than what merely goes.
        going.sort_by_key(|one| list(one, "/status/removal/blocked").is_empty());
        let told = going
            .iter()
            .take(MOST)
            .map(|one| object::tell(look, Place::Here, &id_of(of.0, of.1, one), Wish::Gone, trail))
            .collect();
        left.push(Node::blocks(Reason::RemovalPending, text).with(told));
    }
    children.extend(left);
    children
}

/// The hub's own hold on a cluster.
pub(super) fn held(look: &Look<'_>, thing: &Thing<'_>) -> Node {
    let says = "the hub takes its access away last, when everything else is gone";
    let node = Node::blocks(Reason::RemovalPending, says);
    if conditions::status(thing, condition::UNJOINING) != "True" {
        return node.act("cleat hub", "it has not begun; see that it runs", None);
    }
    let strategy = match thing.text("/spec/removeStrategy") {
        "" => "Needless",
        strategy => strategy,
    };
    let mut children = vec![Node::note(format!("it leaves by the strategy {strategy}"))];
    if let Some(one) = conditions::find(thing, condition::RELEASED) {
        if text(one, "/status") != "True" {
            children.push(Node::note(conditions::sentence(look, one)));
        }
    } else if silent(look, thing).is_none() {
        let text = "its agent has not heard yet that it leaves";
        children.push(Node::blocks(Reason::NotObserved, text).act(
            "the agent of the cluster",
            "see that it runs",
            None,
        ));
    }
    node.with(children)
}

/// Whether what is reached as the cluster that a thing on the hub is for is the one that is meant; what
/// stands in the way if not.
pub(super) fn identity(look: &Look<'_>, thing: &Thing<'_>) -> Option<Node> {
    let name = &*thing.id.namespace;
    let system = id("", "namespaces", "", "kube-system");
    let unknown = |why: String| {
        let unread = Unread { why, forbidden: false };
        Node::unread(&format!("what is on cluster {name}"), &unread)
    };
    if look.cluster != Some(name) {
        let why = "it was not said how the cluster is reached: by a context of its name, or \
             --cluster-kubeconfig";
        let Id { resource, name: of, .. } = &thing.id;
        let mut command = format!("cleat explain {resource}/{of} -n {name}");
        // From elsewhere this leads on; whoever has typed just that has to say more.
        if look.subject == Some(&thing.id) {
            command.push_str(" --cluster-kubeconfig FILE");
        }
        return Some(unknown(why.to_string()).act("you", "look there as well", Some(command)));
    }
    let uid = match look.object(Place::Cluster, &system) {
        Found::Pending => return Some(Node::default()),
        Found::Present(object) => text(object, "/metadata/uid"),
        Found::Unread(unread) => return Some(unknown(unread.why.clone())),
        Found::Absent | Found::NoSuchKind => return None,
    };
    let cluster = id(GROUP, "managedclusters", "", name);
    let Found::Present(object) = look.object(Place::Here, &cluster) else { return None };
    let mut claims = list(object, "/status/clusterClaims").iter();
    let claimed = claims.find(|one| text(one, "/name") == ID_CLAIM);
    let annotations = object.pointer("/metadata/annotations");
    let noted = annotations.and_then(|all| all.get(CLUSTER_ID)).and_then(Value::as_str);
    let known = claimed.map(|one| text(one, "/value")).or(noted)?;
    (known != uid).then(|| {
        let why = "the server that was named is another cluster".to_string();
        unknown(format!("{why} (its id is {uid}, not {known})"))
    })
}
