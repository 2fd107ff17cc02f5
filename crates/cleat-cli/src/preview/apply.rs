//! Which clusters are asked what, to know what a file would do.
//!
//! The hub itself is asked first, in a dry run, what it would store: it fills in defaults, and it may
//! refuse. The documents of a file are looked at together: what one of them places, another may be.

mod policies;
mod sets;

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use cleat_api::manifestwork::{KEEP_ADOPTED, ManifestWork};
use cleat_api::manifestworkreplicaset::SET_LABEL;
use cleat_api::policy::name::ROOT_POLICY;
use cleat_api::removalpreview::{ProposedWork, RemovalPreviewSpec};
use cleat_core::id::{Id, Target};
use cleat_core::leave::carried::Carried;
use cleat_core::preview::three_way;
use cleat_core::write::{Action, Outcome, Side, Write};
use cleat_hub::outlook::Given;
use cleat_hub::placement_outlook;
use cleat_runtime::execute::{Asking, Executor, Read};
use kube::Client;
use serde_json::Value;

use super::questions::{Question, Questions};
use crate::Refused;
use crate::connection::executor;

/// As `kubectl apply` left it: what a file said the last time, and may take away.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// In whose name a server-side apply would write.
const MANAGER: &str = "kubectl";

/// How a file would be given to the hub.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum How {
    /// `kubectl apply`: what the file does not mention stays, unless it did the last time.
    #[default]
    Apply,
    /// `kubectl apply --server-side`: the hub knows whose each field is.
    ServerSide {
        /// Also where a field is somebody else's.
        force: bool,
    },
    /// `kubectl replace`: the file is the whole of it.
    Replace,
}

/// What can be previewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Work,
    ReplicaSet,
    Policy,
    Binding,
    PolicySet,
    Placement,
}

impl Kind {
    fn of(document: &Value) -> Result<Self> {
        let (group, _) = text(document, "/apiVersion").split_once('/').unwrap_or_default();
        let hint = match (group, text(document, "/kind")) {
            ("work.open-cluster-management.io", "ManifestWork") => return Ok(Self::Work),
            ("work.open-cluster-management.io", "ManifestWorkReplicaSet") => {
                return Ok(Self::ReplicaSet);
            }
            ("policy.open-cluster-management.io", "Policy") => return Ok(Self::Policy),
            ("policy.open-cluster-management.io", "PlacementBinding") => return Ok(Self::Binding),
            ("policy.open-cluster-management.io", "PolicySet") => return Ok(Self::PolicySet),
            ("cluster.open-cluster-management.io", "Placement") => return Ok(Self::Placement),
            ("policy.open-cluster-management.io", "ConfigurationPolicy") => {
                "a ConfigurationPolicy is given to a cluster; `cleat policy dryrun` tries it"
                    .to_owned()
            }
            (group, kind) => format!(
                "what {kind} of {group:?} would do cannot be foreseen; works, sets of works, \
                 policies, sets of policies, placements and bindings can"
            ),
        };
        Err(Refused(hint).into())
    }

    fn target(self, document: &Value) -> Target {
        let (group, version, resource) = match self {
            Self::Work => ("work", "v1", "manifestworks"),
            Self::ReplicaSet => ("work", "v1alpha1", "manifestworkreplicasets"),
            Self::Policy => ("policy", "v1", "policies"),
            Self::Binding => ("policy", "v1", "placementbindings"),
            Self::PolicySet => ("policy", "v1beta1", "policysets"),
            Self::Placement => ("cluster", "v1beta1", "placements"),
        };
        let id = Id {
            group: format!("{group}.open-cluster-management.io"),
            resource: resource.to_owned(),
            namespace: text(document, "/metadata/namespace").to_owned(),
            name: text(document, "/metadata/name").to_owned(),
        };
        Target { version: version.to_owned(), id }
    }
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The objects of a file, all of them with a name and a namespace, or what is wrong with them.
pub(super) fn documents(objects: Vec<Value>, namespace: Option<&str>) -> Result<Vec<Value>> {
    if objects.is_empty() {
        return Err(Refused("there is nothing to apply".to_owned()).into());
    }
    let mut documents = objects;
    for document in &mut documents {
        Kind::of(document)?;
        let (kind, name) = (text(document, "/kind"), text(document, "/metadata/name"));
        if name.is_empty() {
            return Err(Refused(format!("a {kind} has no metadata.name")).into());
        }
        if !text(document, "/metadata/namespace").is_empty() {
            continue;
        }
        let Some(namespace) = namespace else {
            let hint = format!("{kind} {name} lives in a namespace; say which with -n");
            return Err(Refused(hint).into());
        };
        if let Some(metadata) = document.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert("namespace".to_owned(), namespace.into());
        }
    }
    Ok(documents)
}

pub(super) async fn questions(
    hub_client: &Client,
    documents: &[Value],
    how: How,
) -> Result<Questions> {
    let executor = executor(Some(hub_client.clone()), None);
    let mut all = Questions::default();
    let mut changed: BTreeMap<(String, String), Value> = BTreeMap::new();
    // By namespace.
    let mut given: BTreeMap<String, Given> = BTreeMap::new();
    for document in documents {
        let kind = Kind::of(document)?;
        let Stored { now, then } = stored(&executor, kind, document, how).await?;
        let namespace = text(&then, "/metadata/namespace").to_owned();
        let name = text(&then, "/metadata/name").to_owned();
        let here = given.entry(namespace.clone()).or_default();
        match kind {
            Kind::Work => all.all.push(of_changed_work(now, &then)),
            Kind::ReplicaSet => drop(changed.insert((namespace, name), then)),
            Kind::Policy => {
                no_copy(&then)?;
                here.roots.insert(name, then);
            }
            Kind::Binding => drop(here.bindings.insert(name, then)),
            Kind::PolicySet => drop(here.sets.insert(name, then)),
            Kind::Placement => match placement_outlook::decided(hub_client, &then).await? {
                Ok(decided) => drop(here.decided.insert(name, decided)),
                Err(why) => {
                    let note = format!("placement {namespace}/{name} decides nothing new: {why}");
                    all.notes.push(note);
                }
            },
        }
    }
    let nothing = Given::default();
    for (namespace, given) in &given {
        let more = sets::bound_to(hub_client, &executor, namespace, &given.decided).await?;
        for (name, set) in more {
            changed.entry((namespace.clone(), name)).or_insert(set);
        }
    }
    for ((namespace, _), set) in &changed {
        let decided = &given.get(namespace).unwrap_or(&nothing).decided;
        sets::questions(hub_client, set, decided, &mut all).await?;
    }
    for (namespace, given) in &given {
        policies::questions(hub_client, namespace, given, &mut all).await?;
    }
    Ok(all)
}

/// A copy is the hub's own, and is put right by its root.
fn no_copy(policy: &Value) -> Result<()> {
    let labels = labels(policy);
    let Some(root) = labels.get(ROOT_POLICY) else { return Ok(()) };
    let hint = format!(
        "policy {}/{} is the hub's copy of {}, and would be changed back; apply that one",
        text(policy, "/metadata/namespace"),
        text(policy, "/metadata/name"),
        root.replacen('.', "/", 1)
    );
    Err(Refused(hint).into())
}

/// What is on the hub, and what would be.
struct Stored {
    now: Option<Value>,
    then: Value,
}

/// How often a hub that writes at the same time may come in between.
const MOST_TRIES: usize = 10;

async fn stored(executor: &Executor, kind: Kind, document: &Value, how: How) -> Result<Stored> {
    for _ in 0..MOST_TRIES {
        if let Some(stored) = tried(executor, kind, document, how).await? {
            return Ok(stored);
        }
    }
    let what = kind.target(document).id;
    Err(Refused(format!("{what} changes all the time; look again")).into())
}

/// Nothing if the object changed meanwhile.
async fn tried(
    executor: &Executor,
    kind: Kind,
    document: &Value,
    how: How,
) -> Result<Option<Stored>> {
    let target = kind.target(document);
    let what = target.id.to_string();
    let now = match executor.read(Side::Hub, &target).await {
        Read::Present(now) => Some(now),
        Read::Absent => None,
        Read::NoSuchKind => {
            bail!("this hub does not serve such a kind. Run `cleat init` on it first")
        }
        Read::Unknown { message } => bail!("cannot read {what}: {message}"),
    };
    if matches!(how, How::ServerSide { .. }) && now.as_ref().is_some_and(was_applied_by_client) {
        let hint = format!(
            "{what} was applied without --server-side before. kubectl then takes away, in a second \
             request, what the file does not mention any more, and that cannot be tried. Look \
             without --server-side"
        );
        return Err(Refused(hint).into());
    }
    let write = write(how, now.as_ref(), document);
    let asking = Asking { dry_run: true, ..Asking::default() };
    let action = Action { side: Side::Hub, target, write };
    match executor.perform(&action, &asking).await {
        Outcome::Done(then) => Ok(Some(Stored { now, then })),
        Outcome::Refused(refusal) => {
            Err(Refused(format!("the hub would refuse {what}: {}", refusal.message)).into())
        }
        Outcome::Conflict(_) | Outcome::AlreadyExists | Outcome::NotFound => Ok(None),
        Outcome::Lost(message) => bail!("cannot try to write {what}: {message}"),
        other => bail!("cannot try to write {what}: {other:?}"),
    }
}

/// What would be sent.
fn write(how: How, now: Option<&Value>, document: &Value) -> Write {
    match (how, now) {
        (How::ServerSide { force }, _) => {
            Write::Apply { object: document.clone(), manager: MANAGER.to_owned(), force }
        }
        (How::Apply | How::Replace, None) => Write::Create(document.clone()),
        (How::Apply, Some(now)) => {
            Write::Merge(three_way(last_applied(now).as_ref(), document, now))
        }
        (How::Replace, Some(now)) => {
            let mut whole = document.clone();
            let version = now.pointer("/metadata/resourceVersion").cloned();
            let metadata = whole.get_mut("metadata").and_then(Value::as_object_mut);
            if let (Some(metadata), Some(version)) = (metadata, version) {
                metadata.entry("resourceVersion").or_insert(version);
            }
            Write::Replace(whole)
        }
    }
}

/// Whether kubectl keeps fields of it under the name it has without `--server-side`.
fn was_applied_by_client(now: &Value) -> bool {
    let managers = now.pointer("/metadata/managedFields").and_then(Value::as_array);
    let manager = |entry: &Value| entry.get("manager")?.as_str().map(ToOwned::to_owned);
    let mut names = managers.into_iter().flatten().filter_map(manager);
    names.any(|name| name == "kubectl-client-side-apply")
}

fn last_applied(now: &Value) -> Option<Value> {
    let annotations = now.pointer("/metadata/annotations")?;
    serde_json::from_str(annotations.get(LAST_APPLIED)?.as_str()?).ok()
}

fn labels(object: &Value) -> BTreeMap<String, String> {
    let labels = object.pointer("/metadata/labels").cloned().unwrap_or_default();
    serde_json::from_value(labels).unwrap_or_default()
}

/// Those that agents heed.
fn annotations(object: &Value) -> BTreeMap<String, String> {
    let annotations = object.pointer("/metadata/annotations").cloned().unwrap_or_default();
    let mut all: BTreeMap<String, String> = serde_json::from_value(annotations).unwrap_or_default();
    all.retain(|key, _| key == KEEP_ADOPTED);
    all
}

/// The question to a work's cluster.
fn proposal(proposed: ProposedWork) -> Option<RemovalPreviewSpec> {
    Some(RemovalPreviewSpec { proposed: Some(proposed), ..RemovalPreviewSpec::default() })
}

fn of_changed_work(now: Option<Value>, then: &Value) -> Question {
    let now: Option<ManifestWork> = now.and_then(|now| serde_json::from_value(now).ok());
    let labels = labels(then);
    let owner = labels.get(SET_LABEL).map(|set| set.replacen('.', "/", 1));
    let note = owner.map(|set| format!("manifestworkreplicaset {set} would change it back"));
    let proposed = ProposedWork {
        name: text(then, "/metadata/name").to_owned(),
        labels,
        annotations: annotations(then),
        spec: then.get("spec").cloned().unwrap_or_default(),
    };
    Question {
        cluster: text(then, "/metadata/namespace").to_owned(),
        spec: proposal(proposed),
        believed: now.map(|now| Carried::work(&now).objects).unwrap_or_default(),
        notes: note.into_iter().collect(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_file_is_given_to_the_hub_as_kubectl_would() {
        let last = json!({ "spec": { "old": 1 } }).to_string();
        let now = json!({
            "apiVersion": "v1", "kind": "X",
            "metadata": {
                "name": "x", "uid": "1", "resourceVersion": "7",
                "labels": { "theirs": "1" }, "annotations": { LAST_APPLIED: last },
            },
            "spec": { "old": 1, "theirs": 1 }, "status": { "s": 1 },
        });
        let document = json!({
            "apiVersion": "v1", "kind": "X", "metadata": { "name": "x" }, "spec": { "new": 1 },
        });
        let patch = json!({ "spec": { "new": 1, "old": null } });
        assert_eq!(write(How::Apply, Some(&now), &document), Write::Merge(patch));
        let mut whole = document.clone();
        whole["metadata"]["resourceVersion"] = "7".into();
        assert_eq!(write(How::Replace, Some(&now), &document), Write::Replace(whole));
        for how in [How::Apply, How::Replace] {
            assert_eq!(write(how, None, &document), Write::Create(document.clone()));
        }
        let sent = write(How::ServerSide { force: true }, Some(&now), &document);
        let manager = "kubectl".to_owned();
        assert_eq!(sent, Write::Apply { object: document, manager, force: true });
    }

    #[test]
    fn documents_get_a_namespace_and_nonsense_is_refused() {
        let work = |metadata: Value| {
            json!({
                "apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
                "metadata": metadata,
            })
        };
        let named = documents(vec![work(json!({ "name": "w" }))], Some("c1")).unwrap();
        assert_eq!(named[0]["metadata"]["namespace"], "c1");
        let other = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "p" } });
        for (wrong, hint) in [
            (vec![], "nothing to apply"),
            (vec![work(json!({ "name": "w" }))], "say which with -n"),
            (vec![work(json!({}))], "no metadata.name"),
            (vec![other], "what Pod of"),
        ] {
            let refused = documents(wrong, None).unwrap_err();
            assert!(refused.is::<Refused>() && refused.to_string().contains(hint), "{refused}");
        }
    }
}
