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
    // While there are two, each of them is a right of its own.
    let bindings = [OwnPart::OldBinding, OwnPart::Binding];
    let mut bindings: Vec<OwnPart> = bindings
        .into_iter()
        .filter(|part| live(*part).is_some_and(|it| is_ours(seen, *part, it)))
        .collect();
    let last = bindings.pop();
    let mut steps: Plan = vec![bindings.into_iter().filter_map(delete).collect()];
    match delete(OwnPart::Namespace).filter(|_| seen.contents == Contents::Ours) {
        Some(namespace) => {
            // The account goes with the namespace, perhaps before the binding can be taken away.
            let binding = last.and_then(|part| {
                let owner = ("v1", "Namespace", &*seen.namespace);
                hang(seen, part, live(part)?, owner, live(OwnPart::Namespace)?)
            });
            steps.push(binding.into_iter().collect());
            steps.push(vec![namespace]);
        }
        None => {
            // The account goes with the binding: without the binding nobody could take it away, and
            // without the account nobody the binding.
            let account = last.and_then(|part| {
                let (account, binding) = (live(OwnPart::Account)?, live(part)?);
                let name = binding.pointer("/metadata/name").and_then(Value::as_str)?;
                let owner = ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", name);
                hang(seen, OwnPart::Account, account, owner, binding)
            });
            steps.push(account.into_iter().collect());
        }
    }
    steps.push(last.and_then(delete).into_iter().collect());
    steps.into_iter().filter(|step| !step.is_empty()).collect()
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

/// Has the collector take a part away when its owner is gone. `None`: it has an owner.
fn hang(
    seen: &Observed,
    part: OwnPart,
    live: &Value,
    (api_version, kind, name): (&str, &str, &str),
    owner: &Value,
) -> Option<Action> {
    if live.pointer("/metadata/ownerReferences/0").is_some() {
        return None;
    }
    let patch = json!({ "metadata": {
        "uid": live.pointer("/metadata/uid")?,
        "ownerReferences": [{
            "apiVersion": api_version, "kind": kind, "name": name,
            "uid": owner.pointer("/metadata/uid")?,
        }],
    }});
    let (target, write) = (part.target(&seen.namespace), Write::Merge(patch));
    Some(Action { side: Side::Cluster, target, write })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binding(name: &str, namespaces: &[&str]) -> Seen {
        let subjects = namespaces.iter().map(|of| json!({ "name": NAME, "namespace": of }));
        let subjects: Vec<Value> = subjects.collect();
        Seen::Present(json!({
            "metadata": { "name": name, "uid": format!("u-{name}") }, "subjects": subjects,
        }))
    }

    fn seen(contents: Contents, bindings: &[(OwnPart, Seen)]) -> Observed {
        let plain = |uid: &str| Seen::Present(json!({ "metadata": { "uid": uid } }));
        let mut parts: BTreeMap<OwnPart, Seen> =
            [(OwnPart::Account, plain("account")), (OwnPart::Namespace, plain("namespace"))].into();
        parts.extend(bindings.iter().cloned());
        Observed { namespace: "ours".to_string(), parts, contents }
    }

    fn words(seen: &Observed) -> Vec<String> {
        let steps = plan(seen).into_iter();
        let word = |action: Action| match action.write {
            Write::Delete { uid, .. } => uid,
            Write::Merge(patch) => {
                let owner = &patch["metadata"]["ownerReferences"][0]["name"];
                format!("{} under {owner}", action.target.id.name)
            }
            other => format!("{other:?}"),
        };
        steps.map(|step| step.into_iter().map(word).collect::<Vec<_>>().join(" ")).collect()
    }

    #[test]
    fn the_rights_of_an_agent_of_an_earlier_version_stayed_behind() {
        let new = (OwnPart::Binding, binding("cleat-agent:ours", &["ours"]));
        let old = (OwnPart::OldBinding, binding(NAME, &["ours"]));
        let foreign = || Contents::Foreign(vec![Id::default()]);
        for (contents, bindings, expected) in [
            (
                Contents::Ours,
                vec![old.clone()],
                vec!["cleat-agent under \"ours\"", "namespace", "u-cleat-agent"],
            ),
            (
                Contents::Ours,
                vec![new.clone(), old.clone()],
                vec![
                    "u-cleat-agent",
                    "cleat-agent:ours under \"ours\"",
                    "namespace",
                    "u-cleat-agent:ours",
                ],
            ),
            (
                foreign(),
                vec![old.clone()],
                vec!["cleat-agent under \"cleat-agent\"", "u-cleat-agent"],
            ),
            (
                foreign(),
                vec![new, old],
                vec![
                    "u-cleat-agent",
                    "cleat-agent under \"cleat-agent:ours\"",
                    "u-cleat-agent:ours",
                ],
            ),
        ] {
            assert_eq!(words(&seen(contents, &bindings)), expected);
        }
    }

    #[test]
    fn a_binding_that_is_also_for_others_stays() {
        for subjects in [&["theirs"] as &[&str], &["ours", "theirs"], &[]] {
            let old = (OwnPart::OldBinding, binding(NAME, subjects));
            assert_eq!(words(&seen(Contents::Unknown(String::new()), &[old])), [""; 0]);
        }
    }

    #[test]
    fn the_right_to_take_things_away_goes_last_and_once() {
        let new = || (OwnPart::Binding, binding("cleat-agent:ours", &["ours"]));
        let mut all = seen(Contents::Ours, &[new()]);
        let plain = |uid: &str| Seen::Present(json!({ "metadata": { "uid": uid } }));
        for (part, uid) in [(OwnPart::Credentials, "secret"), (OwnPart::Deployment, "deployment")] {
            all.parts.insert(part, plain(uid));
        }
        assert_eq!(words(&all), ["secret deployment"]);
        // The namespace is going: what hangs on it is not hung again, and the binding is tried.
        let mut going = seen(Contents::Unknown(String::new()), &[new()]);
        let deleted = json!({ "uid": "namespace", "deletionTimestamp": "2026-01-01T00:00:00Z" });
        going.parts.insert(OwnPart::Namespace, Seen::Present(json!({ "metadata": deleted })));
        going.parts.insert(OwnPart::Account, Seen::Absent);
        assert_eq!(words(&going), ["u-cleat-agent:ours"]);
        // Who cannot look any more does nothing.
        for seen in going.parts.values_mut() {
            *seen = Seen::Unknown;
        }
        assert_eq!(words(&going), [""; 0]);
    }
}
