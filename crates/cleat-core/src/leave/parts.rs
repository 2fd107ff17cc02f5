//! What an agent has on its own cluster, and in which order it takes it away when it has left.
//!
//! The last of it is the right to take anything away, and what hangs on that goes with it.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec;
use alloc::vec::Vec;

use serde_json::{Value, json};

use crate::id::{Id, Target};
use crate::registration::hub::Seen;
use crate::work::contents::Contents;
use crate::write::{Action, Plan, Propagation, Side, Write};

/// The name of everything that belongs to a deployed agent.
pub const NAME: &str = "cleat-agent";

/// The secret with the credentials for the hub, as OCM names it.
pub const CREDENTIALS: &str = "hub-kubeconfig-secret";

/// The secret with which a deployed agent joins.
pub const BOOTSTRAP: &str = "bootstrap-hub";

/// The secret with a key that nobody has certified yet.
pub const PENDING: &str = "hub-kubeconfig-pending";

/// The name of what gives the agent of a namespace its rights. An agent of another hub lives in another
/// namespace, and must not take them.
pub fn binding_name(namespace: &str) -> String {
    format!("{NAME}:{namespace}")
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OwnPart {
    Credentials,
    Pending,
    Bootstrap,
    Deployment,
    Account,
    Binding,
    Namespace,
}

impl OwnPart {
    pub const ALL: [Self; 7] = [
        Self::Credentials,
        Self::Pending,
        Self::Bootstrap,
        Self::Deployment,
        Self::Account,
        Self::Binding,
        Self::Namespace,
    ];

    pub fn target(self, namespace: &str) -> Target {
        let rbac = "rbac.authorization.k8s.io";
        let binding = binding_name(namespace);
        let (group, resource, namespace, name) = match self {
            Self::Credentials => ("", "secrets", namespace, CREDENTIALS),
            Self::Pending => ("", "secrets", namespace, PENDING),
            Self::Bootstrap => ("", "secrets", namespace, BOOTSTRAP),
            Self::Deployment => ("apps", "deployments", namespace, NAME),
            Self::Account => ("", "serviceaccounts", namespace, NAME),
            Self::Binding => (rbac, "clusterrolebindings", "", binding.as_str()),
            Self::Namespace => ("", "namespaces", "", namespace),
        };
        let id = Id {
            group: group.to_string(),
            resource: resource.to_string(),
            namespace: namespace.to_string(),
            name: name.to_string(),
        };
        Target { version: "v1".to_string(), id }
    }
}

/// What an agent sees of itself.
#[derive(Clone, Debug)]
pub struct Observed {
    pub namespace: String,
    pub parts: BTreeMap<OwnPart, Seen>,
    /// What else its namespace holds.
    pub contents: Contents,
}

/// What goes next. An empty plan: nothing more can be done, or nothing is left.
pub fn plan(seen: &Observed) -> Plan {
    let live = |part: OwnPart| match seen.parts.get(&part) {
        Some(Seen::Present(live)) => Some(live),
        _ => None,
    };
    let delete = |part: OwnPart| -> Option<Action> {
        let live =
            live(part).filter(|live| live.pointer("/metadata/deletionTimestamp").is_none())?;
        let uid = live.pointer("/metadata/uid").and_then(Value::as_str)?.to_string();
        let propagation = Propagation::Background;
        let write = Write::Delete { uid, resource_version: None, propagation };
        Some(Action { side: Side::Cluster, target: part.target(&seen.namespace), write })
    };
    const FIRST: [OwnPart; 4] =
        [OwnPart::Credentials, OwnPart::Pending, OwnPart::Bootstrap, OwnPart::Deployment];
    let first: Vec<Action> = FIRST.into_iter().filter_map(delete).collect();
    if !first.is_empty() {
        return vec![first];
    }
    if seen.contents == Contents::Ours
        && let Some(namespace) = delete(OwnPart::Namespace)
    {
        return vec![vec![namespace], binding(seen, live(OwnPart::Binding), delete)];
    }
    // The account goes with the binding: without the binding nobody could take it away, and without
    // the account nobody the binding.
    let account = live(OwnPart::Account).zip(live(OwnPart::Binding)).and_then(hang);
    let account = account.map(|patch| Action {
        side: Side::Cluster,
        target: OwnPart::Account.target(&seen.namespace),
        write: Write::Merge(patch),
    });
    let last = binding(seen, live(OwnPart::Binding), delete);
    let steps = [account.into_iter().collect::<Vec<_>>(), last];
    steps.into_iter().filter(|step| !step.is_empty()).collect()
}

/// Only a binding for the account of this namespace is this agent's.
fn binding(
    seen: &Observed,
    live: Option<&Value>,
    delete: impl Fn(OwnPart) -> Option<Action>,
) -> Vec<Action> {
    let ours = |subject: &Value| {
        subject.get("namespace").and_then(Value::as_str) == Some(&seen.namespace)
            && subject.get("name").and_then(Value::as_str) == Some(NAME)
    };
    let subjects = live.and_then(|live| live.get("subjects")?.as_array());
    match subjects.is_some_and(|all| all.iter().any(ours)) {
        true => delete(OwnPart::Binding).into_iter().collect(),
        false => Vec::new(),
    }
}

fn hang((account, binding): (&Value, &Value)) -> Option<Value> {
    if account.pointer("/metadata/ownerReferences/0").is_some() {
        return None;
    }
    Some(json!({ "metadata": {
        "uid": account.pointer("/metadata/uid")?,
        "ownerReferences": [{
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "name": binding.pointer("/metadata/name")?, "uid": binding.pointer("/metadata/uid")?,
        }],
    }}))
}
