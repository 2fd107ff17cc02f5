//! Deletions of what is large on a hub: asked about only where somebody chose to be (`--guard-…`).

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::Arc;

use cleat_api::manifestwork::ManifestWork;
use cleat_api::manifestworkreplicaset::{SET_LABEL, key};
use cleat_api::policy::Policy;
use cleat_api::removalpreview::{PLAN_LABEL, RemovalPreview};
use cleat_core::leave::carried::on_cluster;
use cleat_core::preview::guard::{Matter, Parts, Size, Threshold, approved, covers, refusal, size};
use cleat_core::propagation::outlook::Change;
use cleat_core::propagation::replica_name;
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

/// Why an object must not be deleted now.
pub(crate) async fn objection(hub_client: &Client, guard: &Guard, request: &Value) -> Option<No> {
    let resource = request.pointer("/resource/resource").and_then(Value::as_str)?;
    let matter = Matter::of_resource(resource)?;
    let object = request.get("oldObject").filter(|object| object.is_object())?;
    match judge(hub_client, guard, matter, object).await {
        Ok(no) => no.map(No::Forbidden),
        Err(error) => {
            let error: &dyn std::error::Error = &error;
            tracing::warn!(error, resource, "failed to look at what would be deleted");
            Some(No::Unanswered("how much would be deleted cannot be seen; try again".to_owned()))
        }
    }
}

async fn judge(
    hub_client: &Client,
    guard: &Guard,
    matter: Matter,
    object: &Value,
) -> Result<Option<String>, Unseen> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
    let losing = |change: Change| async move {
        let told = (guard.losing)(namespace.to_owned(), name.to_owned(), change).await;
        told.map_err(Unseen::Losing)
    };
    let placing = match matter {
        Matter::Binding => losing(Change::Binding(name.to_owned())).await?,
        Matter::Placement => losing(Change::Placement(name.to_owned())).await?,
        Matter::Work | Matter::ReplicaSet | Matter::Policy | Matter::Cluster => Losing::new(),
    };
    let held = match matter {
        Matter::Cluster => held(hub_client, name).await?,
        Matter::Binding | Matter::Placement => placed(hub_client, namespace, &placing).await?,
        Matter::Work | Matter::ReplicaSet | Matter::Policy => Size::default(),
    };
    let Some(size) = size(matter, object, held).filter(|size| size.is_above(guard.above)) else {
        return Ok(None);
    };
    let parts = match matter {
        Matter::ReplicaSet => works(hub_client, object).await?,
        Matter::Policy => copies(namespace, losing(Change::Root).await?),
        Matter::Binding | Matter::Placement => copies(namespace, placing),
        Matter::Work | Matter::Cluster => Parts::new(),
    };
    // No cluster has it any more, whatever its status says.
    if matter == Matter::Policy && parts.is_empty() {
        return Ok(None);
    }
    let plan = approved(object);
    if let Some(plan) = plan {
        let questions: Api<RemovalPreview> = Api::all(hub_client.clone());
        let of_plan = ListParams::default().labels(&format!("{PLAN_LABEL}={plan}"));
        let found = questions.list(&of_plan).await?;
        if covers(matter, object, &parts, &found.items) {
            return Ok(None);
        }
    }
    Ok(Some(refusal(matter, object, size, plan)))
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
