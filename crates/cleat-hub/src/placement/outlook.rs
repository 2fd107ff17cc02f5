//! Looking at a placement as if it were another: which clusters it would choose. Only reads, straight
//! from the server.

use std::collections::BTreeMap;
use std::sync::Arc;

use cleat_core::placement::outlook::outlook;
use cleat_core::placement::{Observed, Wish};
use cleat_core::replicaset::Decided;
use kube::Client;
use kube::api::{DynamicObject, ListParams};
use serde_json::Value;

use super::confirm::definitions;
use super::expressions::Expressions;
use super::{holds, uses_scores};
use crate::defined::Unsure;
use crate::followed::Kept;
use crate::kinds::{self, Kind, every};
use crate::view::{Cluster, ClusterSet, Decision, Scores, SetBinding};

/// Why it cannot be said.
#[derive(Debug, thiserror::Error)]
#[error("cannot tell which clusters would be chosen")]
pub struct Untold(#[source] Unsure);

/// What the placement would decide if it were this object. The inner error says why it would decide
/// nothing new.
pub async fn decided(
    hub_client: &Client,
    placement: &Value,
) -> Result<Result<Decided, String>, Untold> {
    let metadata = placement.get("metadata").cloned().unwrap_or_default();
    let metadata = match serde_json::from_value(metadata) {
        Ok(metadata) => metadata,
        Err(error) => return Ok(Err(format!("its metadata cannot be read: {error}"))),
    };
    let seen = observe(hub_client, Wish::read(&metadata, placement)).await.map_err(Untold)?;
    let expressions = Expressions::default();
    Ok(outlook(&seen, &holds(&expressions, &seen)))
}

async fn observe(hub_client: &Client, wish: Wish) -> Result<Observed, Unsure> {
    let within = Some(wish.namespace.clone());
    let sets: Vec<ClusterSet> = all(hub_client, &None, kinds::CLUSTER_SET).await?;
    let (mut bound, mut lost) = (Vec::new(), Vec::new());
    for binding in all::<SetBinding>(hub_client, &within, kinds::SET_BINDING).await? {
        let named = |set: &&ClusterSet| set.0.metadata.name.as_ref() == Some(&binding.set);
        match sets.iter().find(named) {
            Some(set) => bound.push(Arc::clone(&set.0)),
            None => lost.push(binding.set),
        }
    }
    let clusters: Vec<Cluster> = all(hub_client, &None, kinds::CLUSTER).await?;
    let mut scores = BTreeMap::new();
    if uses_scores(&wish) {
        for one in all::<Scores>(hub_client, &None, kinds::SCORE).await? {
            scores.insert((one.0.cluster.clone(), one.0.name.clone()), one.0);
        }
    }
    let own = (wish.namespace.clone(), wish.name.clone());
    let (mut elsewhere, mut decisions) = (BTreeMap::new(), Vec::new());
    for one in all::<Decision>(hub_client, &None, kinds::DECISION).await? {
        if one.placement() == own {
            decisions.push(one.decision);
            continue;
        }
        for cluster in one.decision.clusters() {
            *elsewhere.entry(cluster.to_owned()).or_default() += 1;
        }
    }
    let clusters = clusters.into_iter().map(|cluster| cluster.seen).collect();
    // After what was read: a definition that is whole now was so when its objects were told.
    let defined = definitions(hub_client).await?;
    let now = jiff::Timestamp::now();
    Ok(Observed { now, wish, bound, lost, clusters, scores, elsewhere, decisions, defined })
}

async fn all<K: Kept>(
    hub_client: &Client,
    within: &Option<String>,
    kind: Kind,
) -> Result<Vec<K>, Unsure> {
    let found: Vec<DynamicObject> =
        every(hub_client, within, kind).list(&ListParams::default()).await?.items;
    Ok(found.into_iter().filter_map(K::keep).collect())
}
