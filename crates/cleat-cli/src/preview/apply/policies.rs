//! Which clusters would get, keep or lose copies of policies. What comes to a cluster, or changes there,
//! is asked about as the hub would send it.

use anyhow::{Context as _, Result};
use cleat_api::policy::Policy;
use cleat_api::removalpreview::{ProposedPolicy, RemovalPreviewSpec};
use cleat_core::leave::carried::Carried;
use cleat_core::propagation::outlook::Proposed;
use cleat_core::propagation::replica_name;
use cleat_hub::outlook::{self, Given};
use kube::Client;
use kube::api::Api;
use serde_json::Value;

use super::super::questions::{Question, Questions, of_copy};
use super::labels;

type Key = (String, String);

pub(super) async fn questions(
    hub_client: &Client,
    namespace: &str,
    given: &Given,
    questions: &mut Questions,
) -> Result<()> {
    for name in outlook::concerned_by(hub_client, namespace, given).await? {
        let key = (namespace.to_owned(), name);
        let copies = outlook::proposed(hub_client, &key, given).await?;
        if copies.is_empty() {
            let note = format!("policy {namespace}/{} is placed on no cluster", key.1);
            questions.notes.push(note);
        }
        for (cluster, proposed) in copies {
            of_policy(hub_client, &key, cluster, proposed, questions).await?;
        }
    }
    Ok(())
}

async fn of_policy(
    hub_client: &Client,
    key: &Key,
    cluster: String,
    proposed: Proposed,
    questions: &mut Questions,
) -> Result<()> {
    let (namespace, name) = key;
    let (spec, note) = match proposed {
        Proposed::Goes(prospect) => {
            questions.all.push(of_copy(hub_client, key, cluster, prospect).await?);
            return Ok(());
        }
        Proposed::Arrives(copy) => {
            (asked(key, &copy), format!("policy {namespace}/{name} comes to this cluster"))
        }
        Proposed::Changes(copy) => {
            (asked(key, &copy), format!("policy {namespace}/{name} changes"))
        }
        Proposed::Unchanged => (None, format!("policy {namespace}/{name} stays as it is")),
        Proposed::ArrivesUnsure(why) => {
            let why = format!("policy {namespace}/{name} comes to this cluster, but {why}");
            questions.unknown.push((cluster, why));
            return Ok(());
        }
        Proposed::Unsure(why) => {
            let why = format!("whether policy {namespace}/{name} changes is not known: {why}");
            questions.unknown.push((cluster, why));
            return Ok(());
        }
    };
    let believed = match &spec {
        Some(_) => believed(hub_client, key, &cluster).await?,
        None => Vec::new(),
    };
    questions.all.push(Question { cluster, spec, believed, notes: vec![note] });
    Ok(())
}

/// The question to a cluster, with the policy as the hub would send it.
fn asked(key: &Key, copy: &Value) -> Option<RemovalPreviewSpec> {
    let annotations = copy.pointer("/metadata/annotations").cloned().unwrap_or_default();
    let proposed = ProposedPolicy {
        name: replica_name(key),
        labels: labels(copy),
        annotations: serde_json::from_value(annotations).unwrap_or_default(),
        spec: copy.get("spec").cloned().unwrap_or_default(),
    };
    Some(RemovalPreviewSpec { proposed_policy: Some(proposed), ..RemovalPreviewSpec::default() })
}

/// What the hub knows to be there of the policy.
async fn believed(
    hub_client: &Client,
    key: &Key,
    cluster: &str,
) -> Result<Vec<cleat_api::leftoverrecord::LeftObject>> {
    let copies: Api<Policy> = Api::namespaced(hub_client.clone(), cluster);
    let copy = copies.get_opt(&replica_name(key)).await.context("look at a copy of the policy")?;
    let objects = copy.map(|Policy { metadata, spec, status }| {
        Carried::policy(&metadata, Some(&spec), status.unwrap_or_default()).objects
    });
    Ok(objects.unwrap_or_default())
}
