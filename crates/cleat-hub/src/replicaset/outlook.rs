//! Looking at a set of works as if it, or what its placements decide, were another: which works would
//! be made, changed and taken away. Only reads, straight from the server.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cleat_api::manifestworkreplicaset::{LONGEST_KEY, SET_LABEL};
use cleat_api::placement::PLACEMENT_LABEL;
use cleat_core::placement::Sightings;
use cleat_core::replicaset::outlook::{Foreseen, Prospect, outlook};
use cleat_core::replicaset::{Child, Decided, Observed, Set, Setbacks};
use kube::Client;
use kube::api::{DynamicObject, ListParams};
use serde_json::Value;

use crate::asked;
use crate::defined::{self, Unsure};
use crate::kinds::{self, every};

/// Why it cannot be said.
#[derive(Debug, thiserror::Error)]
#[error("cannot tell which works would be made, changed or taken away")]
pub struct Untold(#[source] Unsure);

/// What would become of each work of a set, if the set were this object and the placements in `decided`
/// had decided so; the others are asked for. The inner error says why the set would do nothing.
pub async fn works(
    hub_client: &Client,
    set: &Value,
    decided: &BTreeMap<String, Decided>,
) -> Result<Result<Vec<Foreseen>, String>, Untold> {
    let metadata = set.get("metadata").cloned().unwrap_or_default();
    let metadata = match serde_json::from_value(metadata) {
        Ok(metadata) => metadata,
        Err(error) => return Ok(Err(format!("its metadata cannot be read: {error}"))),
    };
    let seen = observe(hub_client, Set::read(&metadata, set), decided).await.map_err(Untold)?;
    Ok(outlook(&seen).map(|all| spare_leaving(all, &seen)))
}

async fn observe(
    hub_client: &Client,
    set: Set,
    imagined: &BTreeMap<String, Decided>,
) -> Result<Observed, Unsure> {
    let mut placements = BTreeMap::new();
    for reference in &set.placements {
        let decided = match imagined.get(&reference.name) {
            Some(decided) => decided.clone(),
            None => decided(hub_client, &set.namespace, &reference.name).await,
        };
        placements.insert(reference.name.clone(), decided);
    }
    let children = list(hub_client, &set.key()).await?;
    let names: BTreeSet<String> = children.iter().map(|child| child.cluster.clone()).collect();
    let asked = asked::clusters(hub_client, &names).await?;
    let clusters = asked.clusters.into_iter().map(|one| (one.name.clone(), one)).collect();
    // After what was read: a definition that is whole now was so when its objects were told.
    for kind in [kinds::PLACEMENT, kinds::DECISION, kinds::CLUSTER] {
        defined::since(hub_client, kind).await?;
    }
    Ok(Observed {
        now: jiff::Timestamp::now(),
        set,
        placements,
        children: Some(children),
        clusters,
        sightings: Sightings::default(),
        undefined: false,
        setbacks: Setbacks::new(),
    })
}

async fn list(hub_client: &Client, set: &str) -> Result<Vec<Arc<Child>>, Unsure> {
    // No work can bear such a label, and no server can be asked for it.
    if set.len() > LONGEST_KEY {
        return Ok(Vec::new());
    }
    let params = ListParams::default().labels(&format!("{SET_LABEL}={set}"));
    let works = every(hub_client, &None, kinds::WORK).list(&params).await?;
    let read = |work: &DynamicObject| Arc::new(Child::read(&work.metadata, &work.data));
    Ok(works.items.iter().map(read).collect())
}

/// What becomes of the works of a cluster that leaves is decided where it leaves.
fn spare_leaving(mut all: Vec<Foreseen>, seen: &Observed) -> Vec<Foreseen> {
    for one in &mut all {
        let goes = matches!(one.prospect, Prospect::Delete | Prospect::DeleteLater(_));
        if goes && seen.clusters.get(&one.cluster).is_some_and(|cluster| cluster.deleting) {
            let why = "the cluster leaves the fleet, which decides".to_owned();
            one.prospect = Prospect::Stays(why);
        }
    }
    all
}

/// What the server says now. Decisions first: where they go with their placement, the placement is
/// gone by the time it is asked for.
pub(crate) async fn decided(hub_client: &Client, namespace: &str, name: &str) -> Decided {
    let within = Some(namespace.to_owned());
    let params = ListParams::default().labels(&format!("{PLACEMENT_LABEL}={name}"));
    let decisions = every(hub_client, &within, kinds::DECISION).list(&params).await;
    let placement = every(hub_client, &within, kinds::PLACEMENT).get_opt(name).await;
    match (placement, decisions) {
        (Ok(placement), Ok(decisions)) => Decided::read(
            placement.as_ref().map(|placement| (&placement.metadata, &placement.data)),
            decisions.items.iter().map(|decision| (&decision.metadata, &decision.data)),
        ),
        (Err(error), _) | (_, Err(error)) => {
            tracing::warn!(%error, "the decisions of a placement could not be read");
            Decided::Unknown
        }
    }
}
