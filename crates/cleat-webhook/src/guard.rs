//! Deletions of what is large on a hub: asked about only where somebody chose to be (`--guard-…`).

use cleat_api::manifestwork::ManifestWork;
use cleat_api::manifestworkreplicaset::{SET_LABEL, key};
use cleat_api::policy::Policy;
use cleat_api::removalpreview::{PLAN_LABEL, RemovalPreview};
use cleat_core::leave::carried::on_cluster;
use cleat_core::preview::guard::{Matter, Size, Threshold, Works, approved, covers, refusal, size};
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt as _};
use serde_json::Value;

use crate::review::No;

/// Why an object must not be deleted now.
pub(crate) async fn objection(
    hub_client: &Client,
    threshold: Threshold,
    request: &Value,
) -> Option<No> {
    let resource = request.pointer("/resource/resource").and_then(Value::as_str)?;
    let matter = Matter::of_resource(resource)?;
    let object = request.get("oldObject").filter(|object| object.is_object())?;
    match judge(hub_client, threshold, matter, object).await {
        Ok(no) => no.map(No::Forbidden),
        Err(error) => {
            tracing::warn!(%error, resource, "failed to look at what would be deleted");
            Some(No::Unanswered("how much would be deleted cannot be seen; try again".to_owned()))
        }
    }
}

async fn judge(
    hub_client: &Client,
    threshold: Threshold,
    matter: Matter,
    object: &Value,
) -> kube::Result<Option<String>> {
    let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    let held = match matter {
        Matter::Cluster => held(hub_client, name).await?,
        Matter::Work | Matter::ReplicaSet | Matter::Policy => Size::default(),
    };
    let Some(size) = size(matter, object, held).filter(|size| size.is_above(threshold)) else {
        return Ok(None);
    };
    let plan = approved(object);
    if let Some(plan) = plan {
        let questions: Api<RemovalPreview> = Api::all(hub_client.clone());
        let of_plan = ListParams::default().labels(&format!("{PLAN_LABEL}={plan}"));
        let found = questions.list(&of_plan).await?;
        let works = match matter {
            Matter::ReplicaSet => works(hub_client, object).await?,
            Matter::Work | Matter::Policy | Matter::Cluster => Works::new(),
        };
        if covers(matter, object, &works, &found.items) {
            return Ok(None);
        }
    }
    Ok(Some(refusal(matter, object, size, plan)))
}

/// The works that a set has on all its clusters.
async fn works(hub_client: &Client, set: &Value) -> kube::Result<Works> {
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
