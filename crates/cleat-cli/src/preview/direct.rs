//! What can be answered without an agent: objects on the very server that is asked.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, bail};
use cleat_agent::preview::Inquirer;
use cleat_api::policy::name::PARENT_POLICY;
use cleat_api::removalpreview::RemovalPreviewStatus;
use cleat_core::id::{Id, Target};
use cleat_core::work::outlook::{Change, Foreseen, Prospect};
use cleat_core::write::Side;
use cleat_runtime::execute::Read;
use kube::Client;
use serde_json::Value;

use super::Subject;
use super::ask::Answer;
use crate::Refused;
use crate::connection::executor;
use crate::explain::locate;

/// What the server is called that was asked, and not by way of a hub.
const HERE: &str = "this cluster";

/// `None`: it is not there, or has to be asked through the hub.
pub(super) async fn answer(client: &Client, subject: &Subject) -> Result<Option<Answer>> {
    let status = match subject {
        Subject::Template { namespace, name } => template(client, namespace, name).await?,
        Subject::Object { kind, namespace, name, .. } => {
            Some(object(client, subject, kind, namespace.as_deref(), name).await?)
        }
        _ => None,
    };
    Ok(status.map(|status| Answer {
        cluster: HERE.to_owned(),
        answer: Some(status),
        believed: Vec::new(),
        notes: Vec::new(),
    }))
}

pub(crate) fn template_target(namespace: &str, name: &str) -> Target {
    let id = Id {
        group: cleat_api::policy::GROUP.to_owned(),
        resource: "configurationpolicies".to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    };
    Target { version: "v1".to_owned(), id }
}

async fn template(
    client: &Client,
    namespace: &str,
    name: &str,
) -> Result<Option<RemovalPreviewStatus>> {
    let executor = executor(None, Some(client.clone()));
    let object = match executor.read(Side::Cluster, &template_target(namespace, name)).await {
        Read::Present(object) => object,
        Read::Absent | Read::NoSuchKind => return Ok(None),
        Read::Unknown { message } => bail!("cannot read it: {message}"),
    };
    let inquirer = Inquirer::new(client.clone(), executor);
    let mut notes = Vec::new();
    let labels = object.pointer("/metadata/labels");
    if let Some(policy) = labels.and_then(|labels| labels.get(PARENT_POLICY)?.as_str()) {
        notes.push(format!(
            "policy {policy} would make it anew, and with it what it makes; to end it, take it out of \
             that policy"
        ));
    }
    let (mut outlooks, mut problems) = (BTreeMap::new(), Vec::new());
    let going = BTreeSet::new();
    match inquirer.of_policy(namespace, name, Change::Deleted, &going, None).await {
        Ok(foreseen) => drop(outlooks.insert(name.to_owned(), foreseen.unwrap_or_default())),
        Err(why) => problems.push(why),
    }
    Ok(Some(inquirer.told(outlooks, problems, notes).await))
}

async fn object(
    client: &Client,
    subject: &Subject,
    kind: &str,
    namespace: Option<&str>,
    name: &str,
) -> Result<RemovalPreviewStatus> {
    let target = locate(client, kind, name, namespace.unwrap_or_default()).await?;
    let executor = executor(None, Some(client.clone()));
    let object = match executor.read(Side::Cluster, &target).await {
        Read::Present(object) => object,
        Read::Absent | Read::NoSuchKind => {
            return Err(Refused(format!("there is no {subject}")).into());
        }
        Read::Unknown { message } => bail!("cannot read {subject}: {message}"),
    };
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let going = !text("/metadata/deletionTimestamp").is_empty();
    let finalizers = object.pointer("/metadata/finalizers").cloned().unwrap_or_default();
    let foreseen = Foreseen {
        version: target.version,
        id: target.id,
        uid: text("/metadata/uid").to_owned(),
        prospect: Prospect::Delete,
        why: match going {
            true => "it is being deleted already".to_owned(),
            false => "it is what would be deleted".to_owned(),
        },
        decided_by: "",
        adopted: false,
        finalizers: match going {
            true => serde_json::from_value(finalizers).unwrap_or_default(),
            false => Vec::new(),
        },
    };
    let inquirer = Inquirer::new(client.clone(), executor).of_plain_objects();
    let outlooks = [(String::new(), vec![foreseen])].into();
    Ok(inquirer.told(outlooks, Vec::new(), held(&object)).await)
}

/// Who would make it anew, as far as the object itself says.
fn held(object: &Value) -> Vec<String> {
    let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    let works = owners.into_iter().flatten().filter(|one| one["kind"] == "AppliedManifestWork");
    let names = works.filter_map(|one| one["name"].as_str()?.split_once('-'));
    names.map(|(_, work)| format!("manifestwork {work} would make it anew")).collect()
}
