//! What a set of works would do, and what those would whose placements decide otherwise.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail};
use cleat_api::manifestwork::{KEEP_ADOPTED, ManifestWork};
use cleat_api::manifestworkreplicaset::{ManifestWorkReplicaSet, SET_LABEL};
use cleat_api::removalpreview::ProposedWork;
use cleat_core::leave::carried::Carried;
use cleat_core::replicaset::Decided;
use cleat_core::replicaset::outlook::{Foreseen, Given, Prospect};
use cleat_core::write::Side;
use cleat_hub::set_outlook;
use cleat_runtime::execute::{Executor, Read};
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};

use super::super::questions::{Question, Questions, of_work};
use super::{Kind, proposal, text};
use crate::Refused;

/// The sets of a namespace that refer to one of these placements, by name.
pub(super) async fn bound_to(
    hub_client: &Client,
    executor: &Executor,
    namespace: &str,
    decided: &BTreeMap<String, Decided>,
) -> Result<BTreeMap<String, Value>> {
    let mut bound = BTreeMap::new();
    if decided.is_empty() {
        return Ok(bound);
    }
    let sets: Api<ManifestWorkReplicaSet> = Api::namespaced(hub_client.clone(), namespace);
    let sets = sets.list(&ListParams::default()).await.context("list the sets of works")?;
    for set in sets.items {
        if !set.spec.placement_refs.iter().any(|one| decided.contains_key(&one.name)) {
            continue;
        }
        // As it is stored: a set may say of works what our types do not know.
        let target = Kind::ReplicaSet.target(&json!({
            "metadata": { "namespace": namespace, "name": set.name_any() },
        }));
        match executor.read(Side::Hub, &target).await {
            Read::Present(object) => drop(bound.insert(set.name_any(), object)),
            Read::Absent => {}
            Read::NoSuchKind => bail!("this hub does not serve such a kind any more"),
            Read::Unknown { message } => bail!("cannot read {}: {message}", target.id),
        }
    }
    Ok(bound)
}

/// The works that a set would make, change and take away.
pub(super) async fn questions(
    hub_client: &Client,
    then: &Value,
    decided: &BTreeMap<String, Decided>,
    questions: &mut Questions,
) -> Result<()> {
    let (namespace, name) = (text(then, "/metadata/namespace"), text(then, "/metadata/name"));
    let foreseen = set_outlook::works(hub_client, then, decided).await?;
    let foreseen = foreseen
        .map_err(|why| Refused(format!("manifestworkreplicaset {namespace}/{name}: {why}")))?;
    let works: Api<ManifestWork> = Api::all(hub_client.clone());
    let of_set = ListParams::default().labels(&format!("{SET_LABEL}={namespace}.{name}"));
    let works = works.list(&of_set).await.context("list the works of the set")?;
    let works: BTreeMap<(String, String), ManifestWork> = works
        .items
        .into_iter()
        .map(|work| ((work.namespace().unwrap_or_default(), work.name_any()), work))
        .collect();
    if foreseen.is_empty() {
        let note = format!("manifestworkreplicaset {namespace}/{name} has no cluster to work on");
        questions.notes.push(note);
    }
    let template = then.pointer("/spec/manifestWorkTemplate").cloned().unwrap_or_default();
    for Foreseen { cluster, name, prospect } in foreseen {
        let work = works.get(&(cluster.clone(), name.clone()));
        questions.all.push(of_work_of_set(cluster, &name, prospect, work, &template));
    }
    Ok(())
}

fn of_work_of_set(
    cluster: String,
    name: &str,
    prospect: Prospect,
    work: Option<&ManifestWork>,
    template: &Value,
) -> Question {
    let told = |note: String| Question {
        cluster: cluster.clone(),
        spec: None,
        believed: Vec::new(),
        notes: vec![note],
    };
    let gone = |note: Option<String>| match work {
        Some(work) => Question { notes: note.into_iter().collect(), ..of_work(work) },
        None => told(format!("manifestwork {name} is gone already")),
    };
    match prospect {
        Prospect::Unchanged => told(format!("manifestwork {name} stays as it is")),
        Prospect::Stays(why) => told(format!("manifestwork {name} stays: {why}")),
        Prospect::Delete => gone(None),
        Prospect::DeleteLater(when) => gone(Some(format!("manifestwork {name} goes {when}"))),
        Prospect::Create(Given { labels, later }) | Prospect::Change(Given { labels, later }) => {
            let note = later.then(|| {
                format!("manifestwork {name} gets this when its turn comes in the rollout")
            });
            let kept = work.and_then(|work| work.annotations().get(KEEP_ADOPTED).cloned());
            let proposed = ProposedWork {
                name: name.to_owned(),
                labels,
                annotations: kept.map(|kept| (KEEP_ADOPTED.to_owned(), kept)).into_iter().collect(),
                spec: template.clone(),
            };
            Question {
                spec: proposal(proposed),
                believed: work.map(|work| Carried::work(work).objects).unwrap_or_default(),
                notes: note.into_iter().collect(),
                cluster: cluster.clone(),
            }
        }
    }
}
