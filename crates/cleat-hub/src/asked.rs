//! Clusters as the server has them now, for whoever is about to take something away.

use std::collections::BTreeSet;
use std::sync::Arc;

use cleat_core::placement::Cluster;
use kube::Client;
use kube::api::ListParams;

use crate::kinds::{self, every};

/// More clusters than this are listed rather than asked for one by one.
const ONE_BY_ONE: usize = 16;

/// What the server said.
pub(crate) struct Asked {
    pub(crate) clusters: Vec<Arc<Cluster>>,
    /// All clusters are here, not only those that were asked for.
    pub(crate) all: bool,
}

/// At least these clusters, but for those that are not there.
pub(crate) async fn clusters(hub_client: &Client, names: &BTreeSet<String>) -> kube::Result<Asked> {
    let api = every(hub_client, &None, kinds::CLUSTER);
    let all = names.len() > ONE_BY_ONE;
    let mut found = Vec::new();
    if all {
        found = api.list(&ListParams::default()).await?.items;
    } else {
        for name in names {
            found.extend(api.get_opt(name).await?);
        }
    }
    let read = found.iter().map(|one| Arc::new(Cluster::read(&one.metadata, &one.data)));
    Ok(Asked { clusters: read.collect(), all })
}
