//! Which clusters are asked what, to know what a removal would do. What is asked about a file is in
//! [`apply`].

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};
use cleat_api::leftoverrecord::LeftObject;
use cleat_api::managedcluster::ManagedCluster;
use cleat_api::manifestwork::ManifestWork;
use cleat_api::manifestworkreplicaset::{ManifestWorkReplicaSet, SET_LABEL};
use cleat_api::placement::Placement;
use cleat_api::placementbinding::PlacementBinding;
use cleat_api::policy::Policy;
use cleat_api::policy::name::ROOT_POLICY;
use cleat_api::removalpreview::RemovalPreviewSpec;
use cleat_core::leave::carried::{Carried, on_cluster};
use cleat_core::propagation::outlook::{Change, Prospect};
use cleat_core::propagation::replica_name;
use cleat_hub::outlook;
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt as _};
use serde::de::DeserializeOwned;

use super::{Subject, apply};
use crate::Refused;

/// What one cluster is asked.
pub(super) struct Question {
    pub(super) cluster: String,
    /// `None`: nothing; it is only told of.
    pub(super) spec: Option<RemovalPreviewSpec>,
    /// What the hub believes to be there, should the cluster not answer.
    pub(super) believed: Vec<LeftObject>,
    pub(super) notes: Vec<String>,
}

#[derive(Default)]
pub(super) struct Questions {
    pub(super) all: Vec<Question>,
    /// What holds for no cluster in particular.
    pub(super) notes: Vec<String>,
    /// What cannot even be asked of a cluster, and why.
    pub(super) unknown: Vec<(String, String)>,
}

pub(super) async fn questions(hub_client: &Client, subject: &Subject) -> Result<Questions> {
    let all = match subject {
        Subject::Work { cluster, name } => {
            vec![of_work(&found::<ManifestWork>(hub_client, subject, cluster, name).await?)]
        }
        Subject::ReplicaSet { namespace, name } => {
            found::<ManifestWorkReplicaSet>(hub_client, subject, namespace, name).await?;
            let works: Api<ManifestWork> = Api::all(hub_client.clone());
            let of_set = ListParams::default().labels(&format!("{SET_LABEL}={namespace}.{name}"));
            let works = works.list(&of_set).await.context("list the works of the set")?;
            works.items.iter().map(of_work).collect()
        }
        Subject::Leave { cluster, strategy } => {
            let clusters: Api<ManagedCluster> = Api::all(hub_client.clone());
            let found = clusters.get_opt(cluster).await.context("look for the cluster")?;
            let Some(found) = found else {
                let hint = format!("there is no {subject}; `cleat clusters` shows all");
                return Err(Refused(hint).into());
            };
            let strategy = strategy.unwrap_or(found.spec.remove_strategy);
            vec![of_leaving(hub_client, cluster, strategy).await?]
        }
        Subject::Template { namespace, name } => {
            vec![of_template(hub_client, subject, namespace, name).await?]
        }
        Subject::Policy { .. } | Subject::Binding { .. } | Subject::Placement { .. } => {
            return of_policies(hub_client, subject).await;
        }
        Subject::Apply { documents, how } => {
            return apply::questions(hub_client, documents, *how).await;
        }
        // It is looked at where it is.
        Subject::Object { .. } => Vec::new(),
    };
    Ok(Questions { all, ..Questions::default() })
}

/// What is on the hub, or why there is nothing to ask about.
async fn found<K>(client: &Client, subject: &Subject, namespace: &str, name: &str) -> Result<K>
where
    K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>
        + Clone
        + std::fmt::Debug
        + DeserializeOwned,
{
    let api: Api<K> = Api::namespaced(client.clone(), namespace);
    let found = api.get_opt(name).await.with_context(|| format!("look for {subject}"))?;
    match found {
        Some(found) => Ok(found),
        None => Err(Refused(format!("there is no {subject}")).into()),
    }
}

pub(super) fn of_work(work: &ManifestWork) -> Question {
    Question {
        cluster: work.namespace().unwrap_or_default(),
        spec: Some(RemovalPreviewSpec { work: work.name_any(), ..RemovalPreviewSpec::default() }),
        believed: Carried::work(work).objects,
        notes: Vec::new(),
    }
}

async fn of_leaving(
    hub_client: &Client,
    cluster: &str,
    strategy: cleat_api::managedcluster::RemoveStrategy,
) -> Result<Question> {
    let works: Api<ManifestWork> = Api::namespaced(hub_client.clone(), cluster);
    let works = works.list(&ListParams::default()).await.context("list its works")?;
    let policies: Api<Policy> = Api::namespaced(hub_client.clone(), cluster);
    let policies = match policies.list(&ListParams::default()).await {
        Ok(policies) => policies.items,
        // A hub that serves no policies has sent none.
        Err(kube::Error::Api(status)) if status.code == 404 => Vec::new(),
        Err(error) => return Err(error).context("list its policies"),
    };
    let believed = on_cluster(&works.items, policies);
    let spec = RemovalPreviewSpec { leave: Some(strategy), ..RemovalPreviewSpec::default() };
    Ok(Question { cluster: cluster.to_owned(), spec: Some(spec), believed, notes: Vec::new() })
}

/// A ConfigurationPolicy on the cluster that its namespace is named after.
async fn of_template(
    hub_client: &Client,
    subject: &Subject,
    cluster: &str,
    name: &str,
) -> Result<Question> {
    let nowhere = |why: String| Refused(format!("there is no {subject} here, and {why}"));
    let clusters: Api<ManagedCluster> = Api::all(hub_client.clone());
    // A server without the kind is no hub.
    let known = clusters.get_opt(cluster).await.context("look for the cluster")?.is_some();
    if !known {
        let why = format!("no cluster {cluster} either; for one on a cluster, choose its context");
        return Err(nowhere(why).into());
    }
    let policies: Api<Policy> = Api::namespaced(hub_client.clone(), cluster);
    let policies = policies.list(&ListParams::default()).await.context("list its policies")?;
    let has = |policy: &&Policy| {
        policy.spec.policy_templates.iter().any(|template| {
            let says = |pointer: &str| template.object_definition.pointer(pointer)?.as_str();
            says("/kind") == Some("ConfigurationPolicy") && says("/metadata/name") == Some(name)
        })
    };
    let Some(policy) = policies.items.iter().find(has) else {
        let why = format!("no policy sent to cluster {cluster} has a template of that name");
        return Err(nowhere(why).into());
    };
    let spec = RemovalPreviewSpec {
        configuration_policy: name.to_owned(),
        ..RemovalPreviewSpec::default()
    };
    let status = policy.status.clone().unwrap_or_default();
    Ok(Question {
        cluster: cluster.to_owned(),
        spec: Some(spec),
        believed: Carried::policy(&policy.metadata, Some(&policy.spec), status).objects,
        notes: Vec::new(),
    })
}

/// A copy that would be taken away from its cluster.
pub(crate) struct Leaving {
    pub(crate) cluster: String,
    /// Of the copy.
    pub(crate) name: String,
}

/// The copies that would be taken away now, and not only once their cluster can be reached again.
pub(crate) async fn leaving(hub_client: &Client, subject: &Subject) -> Result<Vec<Leaving>> {
    let Some((namespace, change)) = change(subject) else { return Ok(Vec::new()) };
    let mut leaving = Vec::new();
    for name in roots(hub_client, subject, &namespace, &change).await? {
        let key = (namespace.clone(), name);
        for (cluster, prospect) in outlook::copies(hub_client, &key, &change).await? {
            if prospect == Prospect::Leaves {
                leaving.push(Leaving { cluster, name: replica_name(&key) });
            }
        }
    }
    Ok(leaving)
}

/// What would be deleted, as far as policies are concerned.
fn change(subject: &Subject) -> Option<(String, Change)> {
    match subject {
        Subject::Policy { namespace, .. } => Some((namespace.clone(), Change::Root)),
        Subject::Binding { namespace, name } => {
            Some((namespace.clone(), Change::Binding(name.clone())))
        }
        Subject::Placement { namespace, name } => {
            Some((namespace.clone(), Change::Placement(name.clone())))
        }
        Subject::Work { .. }
        | Subject::ReplicaSet { .. }
        | Subject::Template { .. }
        | Subject::Leave { .. }
        | Subject::Apply { .. }
        | Subject::Object { .. } => None,
    }
}

/// The policies that may lose copies.
async fn roots(
    hub_client: &Client,
    subject: &Subject,
    namespace: &str,
    change: &Change,
) -> Result<BTreeSet<String>> {
    match subject {
        Subject::Policy { name, .. } => Ok([name.clone()].into()),
        _ => Ok(outlook::concerned(hub_client, namespace, change).await?),
    }
}

/// Policies that lose some of their copies.
async fn of_policies(hub_client: &Client, subject: &Subject) -> Result<Questions> {
    let mut questions = Questions::default();
    match subject {
        Subject::Policy { namespace, name } => {
            let policy: Policy = found(hub_client, subject, namespace, name).await?;
            if let Some(root) = policy.labels().get(ROOT_POLICY) {
                let (of, name) = root.split_once('.').unwrap_or(("", root));
                let hint = format!(
                    "{subject} is the hub's copy of policy {of}/{name}, and would be made anew; ask \
                     about policy/{name} -n {of}"
                );
                return Err(Refused(hint).into());
            }
        }
        Subject::Binding { namespace, name } => {
            drop(found::<PlacementBinding>(hub_client, subject, namespace, name).await?);
        }
        Subject::Placement { namespace, name } => {
            drop(found::<Placement>(hub_client, subject, namespace, name).await?);
            questions.notes = sets_of(hub_client, namespace, name).await?;
        }
        _ => {}
    }
    let Some((namespace, change)) = change(subject) else { return Ok(questions) };
    for name in roots(hub_client, subject, &namespace, &change).await? {
        let key = (namespace.clone(), name);
        for (cluster, prospect) in outlook::copies(hub_client, &key, &change).await? {
            questions.all.push(of_copy(hub_client, &key, cluster, prospect).await?);
        }
    }
    Ok(questions)
}

/// The copy of a policy on one cluster.
pub(super) async fn of_copy(
    hub_client: &Client,
    key: &(String, String),
    cluster: String,
    prospect: Prospect,
) -> Result<Question> {
    let (namespace, name) = key;
    let note = match prospect {
        Prospect::Leaves => None,
        Prospect::LeavesLater(when) => {
            Some(format!("policy {namespace}/{name} leaves this cluster {when}"))
        }
        Prospect::Stays(why) => {
            let notes = vec![format!("policy {namespace}/{name} stays: {why}")];
            return Ok(Question { cluster, spec: None, believed: Vec::new(), notes });
        }
    };
    let copies: Api<Policy> = Api::namespaced(hub_client.clone(), &cluster);
    let copy = copies.get_opt(&replica_name(key)).await.context("look at a copy of the policy")?;
    let believed = copy.map(|Policy { metadata, spec, status }| {
        Carried::policy(&metadata, Some(&spec), status.unwrap_or_default()).objects
    });
    let spec = RemovalPreviewSpec { policy: replica_name(key), ..RemovalPreviewSpec::default() };
    Ok(Question {
        cluster,
        spec: Some(spec),
        believed: believed.unwrap_or_default(),
        notes: note.into_iter().collect(),
    })
}

/// What sets of works would do without a placement: none of them deletes a work for lack of one.
async fn sets_of(hub_client: &Client, namespace: &str, placement: &str) -> Result<Vec<String>> {
    let sets: Api<ManifestWorkReplicaSet> = Api::namespaced(hub_client.clone(), namespace);
    let sets = sets.list(&ListParams::default()).await.context("list the sets of works")?;
    let of_placement = sets
        .items
        .iter()
        .filter(|set| set.spec.placement_refs.iter().any(|reference| reference.name == placement));
    let note = |set: &ManifestWorkReplicaSet| {
        format!(
            "manifestworkreplicaset {namespace}/{} keeps all its works: none is deleted while a \
             placement it refers to is missing",
            set.name_any()
        )
    };
    Ok(of_placement.map(note).collect())
}
