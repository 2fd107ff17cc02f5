//! The ledger as it is written: an `AppliedManifestWork` on the cluster.
//!
//! `spec.claims` says what may have been touched and is written first; `status.appliedResources`
//! says what was seen, with the uid, and is written last. Every write carries the uid and the
//! resourceVersion it was decided on, so two agents can never both believe in one.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::observed::{Applied, Book, Claim, Observed, Origin, Work};
use super::ownership::{API_VERSION, LEDGER_KIND, ledger_target};
use crate::id::Id;
use crate::write::{Action, Propagation, Side, Write};

/// Holds the ledger until everything in it is settled.
pub const LEDGER_FINALIZER: &str =
    "cluster.open-cluster-management.io/applied-manifest-work-cleanup";

fn action(seen: &Observed, write: Write) -> Action {
    Action { side: Side::Cluster, target: ledger_target(&seen.agent.hub_hash, &seen.name), write }
}

/// A new ledger, with its first claims in the same request.
pub(crate) fn create(seen: &Observed, work: &Work, claims: &BTreeMap<Id, Claim>) -> Action {
    action(
        seen,
        Write::Create(json!({
            "apiVersion": API_VERSION,
            "kind": LEDGER_KIND,
            "metadata": {
                "name": seen.ledger_name(),
                "labels": work.labels,
                "finalizers": [LEDGER_FINALIZER],
            },
            "spec": {
                "hubHash": seen.agent.hub_hash,
                "manifestWorkName": seen.name,
                "agentID": seen.agent.id,
                "claims": claims_json(claims),
            },
        })),
    )
}

/// What of the ledger's metadata and spec has to change, if anything.
pub(crate) fn amend(
    seen: &Observed,
    work: &Work,
    book: &Book,
    claims: &BTreeMap<Id, Claim>,
) -> Option<Action> {
    let mut metadata = Map::new();
    let mut spec = Map::new();
    if !is_held(book) {
        metadata.insert("finalizers".into(), held(book));
    }
    let labels = label_changes(&book.labels, &work.labels);
    if !labels.is_empty() {
        metadata.insert("labels".into(), Value::Object(labels));
    }
    for (field, is, should) in [
        ("hubHash", &book.hub_hash, &seen.agent.hub_hash),
        ("manifestWorkName", &book.work_name, &seen.name),
        ("agentID", &book.agent_id, &seen.agent.id),
    ] {
        if is != should {
            spec.insert(field.into(), should.as_str().into());
        }
    }
    if book.claims != *claims {
        spec.insert("claims".into(), claims_json(claims));
    }
    if metadata.is_empty() && spec.is_empty() {
        return None;
    }
    Some(action(seen, Write::Merge(patch(book, metadata, "spec", spec))))
}

/// Replaces what the ledger says was seen.
pub(crate) fn record(
    seen: &Observed,
    book: &Book,
    applied: &BTreeMap<Id, Applied>,
    eviction_start: Option<Timestamp>,
) -> Option<Action> {
    let mut status = Map::new();
    if book.applied != *applied {
        status.insert("appliedResources".into(), applied_json(applied));
    }
    if book.eviction_start != eviction_start {
        // Kubernetes' times have whole seconds.
        let time = eviction_start.map(|time| time.strftime("%Y-%m-%dT%H:%M:%SZ"));
        status.insert("evictionStartTime".into(), json!(time.map(|time| alloc::format!("{time}"))));
    }
    if status.is_empty() {
        return None;
    }
    Some(action(seen, Write::MergeStatus(patch(book, Map::new(), "status", status))))
}

/// Whether the ledger cannot go before we let it.
pub(crate) fn is_held(book: &Book) -> bool {
    book.finalizers.iter().any(|finalizer| finalizer == LEDGER_FINALIZER)
}

fn held(book: &Book) -> Value {
    let ours = core::iter::once(LEDGER_FINALIZER);
    json!(book.finalizers.iter().map(String::as_str).chain(ours).collect::<Vec<_>>())
}

/// Holds a ledger that somebody has freed.
pub(crate) fn hold(seen: &Observed, book: &Book) -> Action {
    let metadata = Map::from_iter([("finalizers".into(), held(book))]);
    action(seen, Write::Merge(patch(book, metadata, "spec", Map::new())))
}

/// Marks the ledger as going; its finalizer keeps it until everything is settled. Who takes that off
/// meanwhile makes another revision of it, which is not deleted before it is held again.
pub(crate) fn delete(seen: &Observed, book: &Book) -> Action {
    let write = Write::Delete {
        uid: book.uid.clone(),
        resource_version: Some(book.resource_version.clone()),
        propagation: Propagation::Background,
    };
    action(seen, write)
}

/// Lets the ledger go.
pub(crate) fn close(seen: &Observed, book: &Book) -> Action {
    let others: Vec<&String> =
        book.finalizers.iter().filter(|finalizer| *finalizer != LEDGER_FINALIZER).collect();
    let mut metadata = Map::new();
    metadata.insert("finalizers".into(), json!(others));
    action(seen, Write::Merge(patch(book, metadata, "spec", Map::new())))
}

fn patch(
    book: &Book,
    mut metadata: Map<String, Value>,
    field: &str,
    content: Map<String, Value>,
) -> Value {
    metadata.insert("uid".into(), book.uid.as_str().into());
    metadata.insert("resourceVersion".into(), book.resource_version.as_str().into());
    let mut patch = Map::new();
    patch.insert("metadata".into(), Value::Object(metadata));
    if !content.is_empty() {
        patch.insert(field.into(), Value::Object(content));
    }
    Value::Object(patch)
}

/// A merge patch that makes `is` into `should`.
fn label_changes(
    is: &BTreeMap<String, String>,
    should: &BTreeMap<String, String>,
) -> Map<String, Value> {
    let gone = is.keys().filter(|key| !should.contains_key(*key));
    let mut changes: Map<String, Value> = gone.map(|key| (key.clone(), Value::Null)).collect();
    for (key, value) in should {
        if is.get(key) != Some(value) {
            changes.insert(key.clone(), value.as_str().into());
        }
    }
    changes
}

/// What claims have in common is written once: an API server looks at every field of every entry, at
/// every write of the ledger.
fn claims_json(claims: &BTreeMap<Id, Claim>) -> Value {
    let mut together: BTreeMap<(&str, &str, &str, &str, bool), Vec<&str>> = BTreeMap::new();
    for (Id { group, resource, namespace, name }, Claim { origin, kept }) in claims {
        let origin = match origin {
            Origin::Created => "Created",
            Origin::Adopted => "Adopted",
        };
        together.entry((group, resource, namespace, origin, *kept)).or_default().push(name);
    }
    let claims = together.into_iter().map(|((group, resource, namespace, origin, kept), names)| {
        let mut claim = Map::new();
        for (field, value) in
            [("group", group), ("resource", resource), ("namespace", namespace), ("origin", origin)]
        {
            claim.insert(field.into(), value.into());
        }
        claim.insert("names".into(), json!(names));
        if kept {
            claim.insert("kept".into(), true.into());
        }
        Value::Object(claim)
    });
    Value::Array(claims.collect())
}

/// Sorted by group, version, resource, namespace and name, as other agents leave it.
fn applied_json(applied: &BTreeMap<Id, Applied>) -> Value {
    let mut entries: Vec<(&Id, &Applied)> = applied.iter().collect();
    entries.sort_by(|(a, x), (b, y)| {
        (&a.group, &x.version, &a.resource, &a.namespace, &a.name).cmp(&(
            &b.group,
            &y.version,
            &b.resource,
            &b.namespace,
            &b.name,
        ))
    });
    let entries = entries.into_iter().map(|(id, applied)| {
        let mut entry = id_json(id);
        entry.insert("version".into(), applied.version.as_str().into());
        entry.insert("uid".into(), applied.uid.as_str().into());
        Value::Object(entry)
    });
    Value::Array(entries.collect())
}

fn id_json(id: &Id) -> Map<String, Value> {
    let Id { group, resource, namespace, name } = id;
    let fields =
        [("group", group), ("resource", resource), ("namespace", namespace), ("name", name)];
    fields.into_iter().map(|(field, value)| (field.into(), value.as_str().into())).collect()
}
