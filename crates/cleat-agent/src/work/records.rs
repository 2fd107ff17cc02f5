//! Works and ledgers as they are stored, read into what the planner knows.

use std::collections::BTreeMap;

use cleat_api::appliedmanifestwork::{self, AppliedManifestWork, NAMELESS};
use cleat_api::manifestwork::{
    KEEP_ADOPTED, Keep, ManifestWork, ManifestWorkSpec, ManifestWorkStatus, ON_RECORD,
};
use cleat_api::removalpreview::ProposedWork;
use cleat_core::id::Id;
use cleat_core::work::observed::{
    Agent, Applied, Book, Claim, Hub, Ledger, Origin, ReadOnly, Work,
};
use cleat_runtime::execute::Read;
use cleat_runtime::follow::Held;
use cleat_runtime::mirror::Reason;
pub(super) use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use cleat_core::write::{Action, Outcome, Refusal, Write};
use serde_json::Value;

use super::Key;

/// Which life a ledger belongs to, if it is one of ours. Whose a stray is, its content says; that
/// of another agent is told from the plan, which leaves it alone.
pub(super) fn ledger_key(agent: &Agent, name: &str) -> Key {
    if let Some(work) = name.strip_prefix(&agent.hub_hash).and_then(|rest| rest.strip_prefix('-')) {
        return Key::Work(work.to_owned());
    }
    Key::Stray(name.to_owned())
}

/// The work as the hub has it, and what it asks for.
pub(super) fn hub(held: &Held) -> (Hub, Option<ManifestWorkSpec>) {
    let object = match held {
        Held::Absent => return (Hub::Absent, None),
        Held::Unknown(reason) => return (Hub::Unknown(reason.to_string()), None),
        Held::Present(object) => object,
    };
    let work: ManifestWork = match object.parse() {
        Ok(work) => work,
        // What a later version of the kind may say must not be guessed at.
        Err(error) => return (Hub::Unknown(format!("the work cannot be read: {error}")), None),
    };
    let ManifestWork { metadata, spec, status } = work;
    (Hub::Work(stored(&metadata, &spec, status.unwrap_or_default())), Some(spec))
}

/// What a stored work says, but for what only the cluster can tell.
fn stored(metadata: &ObjectMeta, spec: &ManifestWorkSpec, status: ManifestWorkStatus) -> Work {
    let keep = match &spec.delete_option {
        None => Ok(Keep::Nothing),
        Some(option) => option.parse().map_err(|problem| problem.to_string()),
    };
    let annotation = |key: &str| metadata.annotations.as_ref().and_then(|all| all.get(key));
    Work {
        namespace: metadata.namespace.clone().unwrap_or_default(),
        uid: metadata.uid.clone().unwrap_or_default(),
        resource_version: metadata.resource_version.clone().unwrap_or_default(),
        generation: metadata.generation.unwrap_or_default(),
        labels: metadata.labels.clone().unwrap_or_default(),
        finalizers: metadata.finalizers.clone().unwrap_or_default(),
        deleting: metadata.deletion_timestamp.is_some(),
        keep,
        keep_adopted: annotation(KEEP_ADOPTED).is_some_and(|value| value == "true"),
        on_record: annotation(ON_RECORD).cloned(),
        read_only: ReadOnly::default(),
        status,
    }
}

/// A work as it would be stored. What it says changes; what it is, if it is there, does not.
/// `changed`: it asks for something else than now, so it is not known to be applied.
pub(super) fn proposed(
    cluster: &str,
    now: Option<&Work>,
    proposed: &ProposedWork,
    spec: &ManifestWorkSpec,
    changed: bool,
) -> Work {
    let metadata = ObjectMeta {
        namespace: Some(cluster.to_owned()),
        labels: Some(proposed.labels.clone()),
        annotations: Some(proposed.annotations.clone()),
        ..ObjectMeta::default()
    };
    let said = stored(&metadata, spec, ManifestWorkStatus::default());
    let Some(now) = now else { return said };
    Work {
        uid: now.uid.clone(),
        resource_version: now.resource_version.clone(),
        generation: now.generation + i64::from(changed),
        finalizers: now.finalizers.clone(),
        deleting: now.deleting,
        on_record: now.on_record.clone(),
        status: now.status.clone(),
        ..said
    }
}

pub(super) fn ledger(held: &Held) -> Ledger {
    let object = match held {
        Held::Absent => return Ledger::Absent,
        Held::Unknown(Reason::NotReadYet) => return Ledger::NotYet,
        Held::Unknown(reason) => return Ledger::Unknown(reason.to_string()),
        Held::Present(object) => object,
    };
    match object.parse() {
        Ok(ledger) => read(ledger),
        Err(error) => Ledger::Unknown(format!("the AppliedManifestWork cannot be read: {error}")),
    }
}

/// A ledger that was read by itself.
pub(super) fn ledger_of(read: Read) -> Ledger {
    match read {
        Read::Absent => Ledger::Absent,
        Read::NoSuchKind => {
            Ledger::Unknown("the cluster does not serve AppliedManifestWorks".into())
        }
        Read::Unknown { message } => Ledger::Unknown(message),
        Read::Present(object) => match serde_json::from_value(object) {
            Ok(ledger) => self::read(ledger),
            Err(error) => {
                Ledger::Unknown(format!("the AppliedManifestWork cannot be read: {error}"))
            }
        },
    }
}

/// Who was there before, and what is to be kept, must not be forgotten because an older definition of the
/// kind drops the names.
fn read(ledger: AppliedManifestWork) -> Ledger {
    match ledger.spec.nameless() {
        true => Ledger::Unknown(NAMELESS.to_owned()),
        false => Ledger::Present(book(ledger)),
    }
}

fn book(ledger: AppliedManifestWork) -> Book {
    let AppliedManifestWork { metadata, spec, status } = ledger;
    let status = status.unwrap_or_default();
    let claims = spec.claims.iter().flat_map(|claim| {
        let origin = match claim.origin {
            appliedmanifestwork::Origin::Created => Origin::Created,
            appliedmanifestwork::Origin::Adopted => Origin::Adopted,
        };
        claim.all_names().map(move |name| {
            let id = Id {
                group: claim.group.clone(),
                resource: claim.resource.clone(),
                namespace: claim.namespace.clone(),
                name: name.to_owned(),
            };
            (id, Claim { origin, kept: claim.kept })
        })
    });
    let claims = claims.collect();
    let applied =
        status.applied_resources.into_iter().map(|applied| {
            let appliedmanifestwork::AppliedResource {
                group,
                version,
                resource,
                namespace,
                name,
                uid,
            } = applied;
            (Id { group, resource, namespace, name }, Applied { version, uid })
        });
    Book {
        uid: metadata.uid.unwrap_or_default(),
        resource_version: metadata.resource_version.unwrap_or_default(),
        deleting: metadata.deletion_timestamp.is_some(),
        finalizers: metadata.finalizers.unwrap_or_default(),
        labels: metadata.labels.unwrap_or_default(),
        hub_hash: spec.hub_hash,
        work_name: spec.manifest_work_name,
        agent_id: spec.agent_id,
        claims,
        applied: applied.collect(),
        eviction_start: status.eviction_start_time.map(|time| time.0),
        made: BTreeMap::new(),
    }
}

/// What to make of a write of claims that the server answered without them: a definition that does
/// not know them drops them, and then nothing may be touched.
pub(super) fn claims_were_pruned(action: &Action, outcome: &Outcome) -> Option<Outcome> {
    let (Write::Create(sent) | Write::Merge(sent)) = &action.write else { return None };
    let Outcome::Done(answer) = outcome else { return None };
    let claims =
        |object: &Value| object.pointer("/spec/claims").and_then(Value::as_array).map(Vec::len);
    let is_ledger = action.target.id.resource == "appliedmanifestworks";
    if !is_ledger || claims(sent).unwrap_or_default() == 0 || claims(answer).is_some() {
        return None;
    }
    Some(Outcome::Refused(Refusal {
        code: 422,
        reason: "Invalid".to_owned(),
        message:
            "the cluster's definition of AppliedManifestWork drops spec.claims; give it Cleat's \
                  definition, with cleat agent --define"
                .to_owned(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ledger_whose_names_were_dropped_was_read_as_one_without_claims() {
        let ledger = |claim: &str| {
            let text = format!(
                r#"{{ "metadata": {{ "name": "h-w" }}, "spec": {{ "hubHash": "h",
                    "manifestWorkName": "w", "claims": [{claim}] }} }}"#
            );
            ledger_of(Read::Present(serde_json::from_str(&text).unwrap()))
        };
        let nameless = ledger(r#"{ "resource": "configmaps", "origin": "Adopted" }"#);
        assert!(matches!(nameless, Ledger::Unknown(why) if why == NAMELESS));
        for named in [r#""name": "a""#, r#""names": ["a"]"#] {
            let claim = format!(r#"{{ "resource": "configmaps", {named}, "origin": "Adopted" }}"#);
            let Ledger::Present(book) = ledger(&claim) else { panic!("{claim}") };
            let origins: Vec<(&str, Origin)> =
                book.claims.iter().map(|(id, claim)| (&*id.name, claim.origin)).collect();
            assert_eq!(origins, [("a", Origin::Adopted)]);
        }
    }
}
