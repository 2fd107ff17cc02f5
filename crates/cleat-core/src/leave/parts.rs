//! What an agent has on its own cluster, and in which order it takes it away when it has left.
//!
//! The last of it is the right to take anything away, and what hangs on that goes with it. An agent whose
//! account is gone can do nothing any more, so whatever comes after that is left to the collector.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec;
use alloc::vec::Vec;

use cleat_api::leftoverrecord::{LeftObject, LeftoverRecord, Part};
use serde_json::{Value, json};

use super::record;
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
    /// As agents of earlier versions were given their rights.
    OldBinding,
    Namespace,
}

impl OwnPart {
    pub const ALL: [Self; 8] = [
        Self::Credentials,
        Self::Pending,
        Self::Bootstrap,
        Self::Deployment,
        Self::Account,
        Self::Binding,
        Self::OldBinding,
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
            Self::OldBinding => (rbac, "clusterrolebindings", "", NAME),
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

/// What an agent is believed to have on a cluster that was let go of without it, for the record.
pub(crate) fn believed(namespace: &str, why: &str) -> Vec<LeftObject> {
    // The others are of passing moments, or of agents of earlier versions.
    let lasting = OwnPart::ALL.into_iter().filter(|one| match one {
        OwnPart::Credentials
        | OwnPart::Bootstrap
        | OwnPart::Deployment
        | OwnPart::Account
        | OwnPart::Binding
        | OwnPart::Namespace => true,
        OwnPart::Pending | OwnPart::OldBinding => false,
    });
    let parts = lasting.map(|one| LeftObject {
        source: NAME.to_string(),
        why: why.to_string(),
        believed: true,
        ..record::part(one.target(namespace), Part::Agent)
    });
    parts.collect()
}

/// In which namespace the agent on record lives, if one is.
pub fn namespace_on_record(records: &[LeftoverRecord]) -> Option<&str> {
    let all = records.iter().flat_map(|one| &one.spec.objects);
    let mut own = all.filter(|one| one.part == Some(Part::Agent) && one.resource == "namespaces");
    own.next().map(|one| one.name.as_str())
}

/// What an agent sees of itself.
#[derive(Clone, Debug)]
pub struct Observed {
    pub namespace: String,
    pub parts: BTreeMap<OwnPart, Seen>,
    /// What else its namespace holds.
    pub contents: Contents,
}

/// What goes next. An empty plan: nothing more can be done, or nothing is left, or not everything can be
/// seen: what is not seen may be what the rest has to hang on.
///
/// An agent that runs in its Deployment may end as soon as that goes. So everything hangs on one thing
/// before that is deleted, in one request: until then an agent that starts again has all it needs to go
/// on, and after it nobody has to.
pub fn plan(seen: &Observed) -> Plan {
    if !OwnPart::ALL.into_iter().all(|part| seen.is_seen(part)) {
        return Plan::new();
    }
    let delete = |part: OwnPart| -> Option<Action> {
        let live = seen.live(part).filter(|live| !is_going(live))?;
        let uid = live.pointer("/metadata/uid").and_then(Value::as_str)?.to_string();
        let propagation = Propagation::Background;
        let write = Write::Delete { uid, resource_version: None, propagation };
        Some(Action { side: Side::Cluster, target: part.target(&seen.namespace), write })
    };
    let all = |parts: &[OwnPart]| parts.iter().copied().filter_map(delete).collect();
    // While there are two, each of them is a right of its own.
    let bindings = [OwnPart::OldBinding, OwnPart::Binding];
    let mut bindings: Vec<OwnPart> = bindings
        .into_iter()
        .filter(|part| seen.live(*part).is_some_and(|it| is_ours(seen, *part, it)))
        .collect();
    let last = bindings.pop();
    let mut steps: Plan = vec![all(&bindings)];
    const SECRETS: [OwnPart; 3] = [OwnPart::Pending, OwnPart::Bootstrap, OwnPart::Credentials];
    const INSIDE: [OwnPart; 5] = [
        OwnPart::Deployment,
        OwnPart::Account,
        OwnPart::Pending,
        OwnPart::Bootstrap,
        OwnPart::Credentials,
    ];
    let namespace = seen.live(OwnPart::Namespace);
    let going = namespace.is_some_and(is_going);
    if going || (namespace.is_some() && seen.contents == Contents::Ours) {
        // The account goes with the namespace, perhaps before the binding can be taken away.
        let binding = last.filter(|_| !going);
        steps.push(binding.and_then(|it| hang(seen, it, OwnPart::Namespace)).into_iter().collect());
        steps.push(all(&[OwnPart::Namespace]));
        // These go with it as well, but sooner so.
        steps.push(all(&[OwnPart::Deployment]));
        steps.push(all(&SECRETS));
        steps.push(last.and_then(delete).into_iter().collect());
    } else if let Some(binding) = last {
        steps.push(INSIDE.into_iter().filter_map(|part| hang(seen, part, binding)).collect());
        steps.push(all(&[binding]));
    } else if seen.live(OwnPart::Deployment).is_some_and(|live| !is_going(live)) {
        let others = INSIDE.into_iter().filter(|part| *part != OwnPart::Deployment);
        let hung = others.filter_map(|part| hang(seen, part, OwnPart::Deployment));
        steps.push(hung.collect());
        steps.push(all(&[OwnPart::Deployment]));
    } else {
        // With the credentials goes what says that the cluster has left.
        steps.push(all(&[OwnPart::Pending, OwnPart::Bootstrap]));
        steps.push(all(&[OwnPart::Credentials]));
    }
    steps.into_iter().filter(|step| !step.is_empty()).collect()
}

impl Observed {
    /// Nothing of it can be seen, as by an agent whose account or rights are gone.
    pub fn is_out_of_sight(&self) -> bool {
        !OwnPart::ALL.into_iter().any(|part| self.is_seen(part))
    }

    /// Whether its namespace may go cannot be told, because nobody can see what is in it.
    pub fn is_blurred(&self) -> bool {
        let namespace = self.live(OwnPart::Namespace).filter(|live| !is_going(live));
        namespace.is_some() && matches!(self.contents, Contents::Unknown(_))
    }

    fn is_seen(&self, part: OwnPart) -> bool {
        matches!(self.parts.get(&part), Some(Seen::Present(_) | Seen::Absent))
    }

    fn live(&self, part: OwnPart) -> Option<&Value> {
        match self.parts.get(&part) {
            Some(Seen::Present(live)) => Some(live),
            Some(Seen::Absent | Seen::Unknown) | None => None,
        }
    }
}

fn is_going(live: &Value) -> bool {
    live.pointer("/metadata/deletionTimestamp").is_some()
}

/// Something of the agent that is still there, or may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remaining {
    pub id: Id,
    pub why: String,
    /// It is not the agent's alone, and nobody takes it away.
    pub stays: bool,
}

/// What is still there of the agent, as the server says: what cannot be seen may be.
pub fn remaining(seen: &Observed) -> Vec<Remaining> {
    let mut all = Vec::new();
    for part in OwnPart::ALL {
        let live = match seen.parts.get(&part) {
            Some(Seen::Absent) => continue,
            Some(Seen::Present(live)) => Some(live),
            Some(Seen::Unknown) | None => None,
        };
        let binding = matches!(part, OwnPart::Binding | OwnPart::OldBinding);
        if binding && live.is_some_and(|live| !is_ours(seen, part, live)) {
            continue;
        }
        let going = live.is_some_and(is_going);
        let foreign = match part {
            OwnPart::Namespace if !going => seen.contents.why_kept(),
            _ => None,
        };
        let (why, stays) = match (live, &seen.contents, foreign) {
            (None, ..) => ("it cannot be seen".to_string(), false),
            (Some(_), _, Some(foreign)) => (foreign, true),
            (Some(_), ..) if going => ("it is going".to_string(), false),
            (Some(_), Contents::Unknown(why), _) if part == OwnPart::Namespace => {
                (format!("what it holds cannot be seen: {why}"), false)
            }
            (Some(_), ..) => ("it was not deleted".to_string(), false),
        };
        all.push(Remaining { id: part.target(&seen.namespace).id, why, stays });
    }
    all
}

/// Only a binding for the account of this namespace is this agent's. The old name is one that several
/// may have used, so there it has to be for nobody else.
fn is_ours(seen: &Observed, part: OwnPart, binding: &Value) -> bool {
    let ours = |subject: &Value| {
        subject.get("namespace").and_then(Value::as_str) == Some(&seen.namespace)
            && subject.get("name").and_then(Value::as_str) == Some(NAME)
    };
    let subjects = binding.get("subjects").and_then(Value::as_array);
    let subjects = subjects.map(Vec::as_slice).unwrap_or_default();
    let alone = part != OwnPart::OldBinding || subjects.iter().all(ours);
    alone && subjects.iter().any(ours)
}

/// Has the collector take a part away when its owner is gone. `None`: it has an owner, or there is
/// nothing to hang.
fn hang(seen: &Observed, part: OwnPart, owner: OwnPart) -> Option<Action> {
    let (live, above) = (seen.live(part)?, seen.live(owner)?);
    if live.pointer("/metadata/ownerReferences/0").is_some() {
        return None;
    }
    let (api_version, kind) = match owner {
        OwnPart::Namespace => ("v1", "Namespace"),
        OwnPart::Deployment => ("apps/v1", "Deployment"),
        OwnPart::Binding | OwnPart::OldBinding => {
            ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding")
        }
        // Nothing hangs on these.
        OwnPart::Credentials | OwnPart::Pending | OwnPart::Bootstrap | OwnPart::Account => {
            return None;
        }
    };
    let patch = json!({ "metadata": {
        "uid": live.pointer("/metadata/uid")?,
        "ownerReferences": [{
            "apiVersion": api_version, "kind": kind, "name": owner.target(&seen.namespace).id.name,
            "uid": above.pointer("/metadata/uid")?,
        }],
    }});
    let (target, write) = (part.target(&seen.namespace), Write::Merge(patch));
    Some(Action { side: Side::Cluster, target, write })
}

#[cfg(test)]
mod tests;
