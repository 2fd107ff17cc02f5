//! Deletions of what is large on a hub, and what comes to the same: asked about only where somebody chose to
//! be (`--guard-…`).

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::Arc;

use cleat_api::managedcluster::ManagedCluster;
use cleat_api::manifestwork::ManifestWork;
use cleat_api::manifestworkreplicaset::{SET_LABEL, key};
use cleat_api::policy::Policy;
use cleat_api::removalpreview::{PLAN_LABEL, RemovalPreview};
use cleat_core::leave::carried::on_cluster;
use cleat_core::preview::guard::{
    Matter, Parts, Size, Standing, Threshold, approved, emptied_anew, goes_with_namespace, refusal,
    size, standing,
};
use cleat_core::propagation::outlook::Change;
use cleat_core::propagation::replica_name;
use cleat_core::registration::place::is_labelled;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt as _};
use serde_json::Value;

use crate::review::No;

/// The clusters that would lose their copy of a policy, by policy.
pub type Losing = BTreeMap<String, BTreeSet<String>>;

type Told = Pin<Box<dyn Future<Output = Result<Losing, String>> + Send>>;

/// Which deletions are refused without a plan.
#[derive(Clone)]
pub struct Guard {
    pub above: Threshold,
    /// Who knows which clusters would lose policies if something of this namespace and name were deleted:
    /// the hub's own stories decide that, and are not known here.
    pub losing: Arc<dyn Fn(String, String, Change) -> Told + Send + Sync>,
}

/// Why nobody can tell whether something may go.
#[derive(Debug, thiserror::Error)]
enum Unseen {
    #[error("the hub did not answer")]
    Hub(#[from] kube::Error),
    #[error("which clusters would lose policies is not known: {0}")]
    Losing(String),
}

/// What is said of a deletion.
pub(crate) enum Said {
    /// It may go, and whoever deletes is told this.
    Goes(Vec<String>),
    No(No),
}

/// Whether an object may be deleted now, or a cluster that leaves may begin to be emptied.
pub(crate) async fn judged(hub_client: &Client, guard: &Guard, request: &Value) -> Said {
    let resource = request.pointer("/resource/resource").and_then(Value::as_str);
    let Some(matter) = resource.and_then(Matter::of_resource) else {
        return Said::Goes(Vec::new());
    };
    let given = |field: &str| request.get(field).filter(|object| object.is_object());
    let Some(old) = given("oldObject") else { return Said::Goes(Vec::new()) };
    let anew;
    let object = match given("object") {
        None => old,
        // A change: only one that begins to delete is judged.
        Some(new) => match emptied_anew(old, new).filter(|_| matter == Matter::Cluster) {
            Some(cluster) => {
                anew = cluster;
                &anew
            }
            None => return Said::Goes(Vec::new()),
        },
    };
    match judge(hub_client, guard, matter, object).await {
        Ok(said) => said,
        Err(error) => {
            let error: &dyn std::error::Error = &error;
            tracing::warn!(error, resource, "failed to look at what would be deleted");
            let why = "how much would be deleted cannot be seen; try again";
            Said::No(No::Unanswered(why.to_owned()))
        }
    }
}

async fn judge(
    hub_client: &Client,
    guard: &Guard,
    matter: Matter,
    object: &Value,
) -> Result<Said, Unseen> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
    let goes = || Ok(Said::Goes(Vec::new()));
    if matter == Matter::Namespace && !is_of_staying_cluster(hub_client, object, name).await? {
        return goes();
    }
    let losing = |change: Change| async move {
        let told = (guard.losing)(namespace.to_owned(), name.to_owned(), change).await;
        told.map_err(Unseen::Losing)
    };
    let placing = match matter {
        Matter::Binding => losing(Change::Binding(name.to_owned())).await?,
        Matter::Placement => losing(Change::Placement(name.to_owned())).await?,
        Matter::Work
        | Matter::ReplicaSet
        | Matter::Policy
        | Matter::Cluster
        | Matter::Namespace => Losing::new(),
    };
    let held = match matter {
        Matter::Cluster | Matter::Namespace => held(hub_client, name).await?,
        Matter::Binding | Matter::Placement => placed(hub_client, namespace, &placing).await?,
        Matter::Work | Matter::ReplicaSet | Matter::Policy => Size::default(),
    };
    let Some(size) = size(matter, object, held).filter(|size| size.is_above(guard.above)) else {
        return goes();
    };
    // Nobody can put a question there any more, so no plan could ever be approved.
    if matter == Matter::Work && is_going(hub_client, namespace).await? {
        return Ok(Said::Goes(vec![goes_with_namespace(namespace, size)]));
    }
    let parts = match matter {
        Matter::ReplicaSet => works(hub_client, object).await?,
        Matter::Policy => copies(namespace, losing(Change::Root).await?),
        Matter::Binding | Matter::Placement => copies(namespace, placing),
        Matter::Work | Matter::Cluster | Matter::Namespace => Parts::new(),
    };
    // No cluster has it any more, whatever its status says.
    if matches!(matter, Matter::Policy | Matter::ReplicaSet) && parts.is_empty() {
        return goes();
    }
    let Some(approved) = approved(object) else {
        return Ok(Said::No(No::Forbidden(refusal(matter, object, size, None))));
    };
    let questions: Api<RemovalPreview> = Api::all(hub_client.clone());
    let of_plan = ListParams::default().labels(&format!("{PLAN_LABEL}={}", approved.plan));
    let found = questions.list(&of_plan).await?;
    match standing(matter, object, &parts, &approved, &found.items) {
        Standing::Good => goes(),
        short => {
            let why = refusal(matter, object, size, Some((&approved, short)));
            Ok(Said::No(No::Forbidden(why)))
        }
    }
}

/// Whether a namespace is that of a cluster which is there and does not leave: its own leave takes the
/// namespace away when it is emptied.
async fn is_of_staying_cluster(
    hub_client: &Client,
    namespace: &Value,
    name: &str,
) -> kube::Result<bool> {
    if !is_labelled(namespace, name) {
        return Ok(false);
    }
    let clusters: Api<ManagedCluster> = Api::all(hub_client.clone());
    let cluster = clusters.get_metadata_opt(name).await?;
    Ok(cluster.is_some_and(|cluster| cluster.metadata.deletion_timestamp.is_none()))
}

/// Whether a namespace is being deleted.
async fn is_going(hub_client: &Client, name: &str) -> kube::Result<bool> {
    let namespaces: Api<Namespace> = Api::all(hub_client.clone());
    let namespace = namespaces.get_metadata_opt(name).await?;
    Ok(namespace.is_some_and(|namespace| namespace.metadata.deletion_timestamp.is_some()))
}

/// The copies of policies on clusters.
fn copies(namespace: &str, losing: Losing) -> Parts {
    let mut copies = Parts::new();
    for (policy, clusters) in losing {
        let copy = replica_name(&(namespace.to_owned(), policy));
        copies.extend(clusters.into_iter().map(|cluster| (cluster, copy.clone())));
    }
    copies
}

/// How much policies have on the clusters that they would leave.
async fn placed(hub_client: &Client, namespace: &str, losing: &Losing) -> Result<Size, Unseen> {
    let policies: Api<Policy> = Api::namespaced(hub_client.clone(), namespace);
    let (mut all, mut clusters) = (Size::default(), BTreeSet::new());
    for (name, losing) in losing.iter().filter(|(_, losing)| !losing.is_empty()) {
        let Some(policy) = policies.get_opt(name).await? else { continue };
        let policy = serde_json::to_value(policy).unwrap_or_default();
        let size = Size::of_policy(&policy, losing.len());
        if size.objects > 0 {
            clusters.extend(losing);
        }
        all = all.and(size);
    }
    Ok(Size { clusters: clusters.len(), ..all })
}

/// The works that a set has on all its clusters.
async fn works(hub_client: &Client, set: &Value) -> kube::Result<Parts> {
    let text = |pointer: &str| set.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let key = key(text("/metadata/namespace"), text("/metadata/name"));
    let works: Api<ManifestWork> = Api::all(hub_client.clone());
    let of_set = ListParams::default().labels(&format!("{SET_LABEL}={key}"));
    let works = works.list_metadata(&of_set).await?;
    Ok(works
        .items
        .into_iter()
        .map(|work| (work.namespace().unwrap_or_default(), work.name_any()))
        .collect())
}

/// How much works and policies have on a cluster.
async fn held(hub_client: &Client, cluster: &str) -> kube::Result<Size> {
    let works: Api<ManifestWork> = Api::namespaced(hub_client.clone(), cluster);
    let works = works.list(&ListParams::default()).await?;
    let policies: Api<Policy> = Api::namespaced(hub_client.clone(), cluster);
    let policies = match policies.list(&ListParams::default()).await {
        // A hub that serves no policies has sent none.
        Err(kube::Error::Api(status)) if status.code == 404 => Vec::new(),
        listed => listed?.items,
    };
    Ok(Size::of_cluster(&on_cluster(&works.items, policies)))
}
