//! Asking the server before a cluster is taken out of a decision: watches of several kinds tell in
//! any order, one of them may be late, and each tells of the end of every object of a kind whose
//! definition goes.

use std::collections::BTreeSet;

use cleat_core::placement::{Defined, Observed, Wish};
use kube::Client;
use kube::api::ListParams;

use super::Placements;
use crate::asked;
use crate::defined::{self, Unsure};
use crate::followed::Kept as _;
use crate::kinds::{self, every};
use crate::view::{ClusterSet, SetBinding};

impl Placements {
    /// Puts what the server says now into the observation: the placement, the sets it may choose
    /// from, and these clusters.
    pub(super) async fn confirm(
        &self,
        seen: &mut Observed,
        clusters: &BTreeSet<String>,
    ) -> Result<(), Unsure> {
        let read = self.read(seen, clusters).await;
        // After what was read: a definition that is whole now was so when its objects were told.
        seen.defined = match definitions(&self.hub_client).await {
            Ok(since) => since,
            Err(Unsure::Undefined(name)) => Defined::Gone(name),
            Err(error) => return Err(error),
        };
        if matches!(seen.defined, Defined::Gone(_)) { Ok(()) } else { read }
    }

    async fn read(&self, seen: &mut Observed, clusters: &BTreeSet<String>) -> Result<(), Unsure> {
        let within = Some(seen.wish.namespace.clone());
        let placements = every(&self.hub_client, &within, kinds::PLACEMENT);
        if let Some(placement) = placements.get_opt(&seen.wish.name).await? {
            seen.wish = Wish::read(&placement.metadata, &placement.data);
        }
        self.confirm_sets(seen, &within).await?;
        self.confirm_clusters(seen, clusters).await
    }

    async fn confirm_sets(
        &self,
        seen: &mut Observed,
        within: &Option<String>,
    ) -> Result<(), Unsure> {
        let bindings = every(&self.hub_client, within, kinds::SET_BINDING);
        let bindings = bindings.list(&ListParams::default()).await?.items;
        let bindings = bindings.into_iter().filter_map(SetBinding::keep);
        let names: BTreeSet<String> = bindings.map(|binding| binding.set).collect();
        (seen.bound, seen.lost) = (Vec::new(), Vec::new());
        let sets = every(&self.hub_client, &None, kinds::CLUSTER_SET);
        for name in names {
            match sets.get_opt(&name).await?.and_then(ClusterSet::keep) {
                Some(set) => seen.bound.push(set.0),
                None => seen.lost.push(name),
            }
        }
        Ok(())
    }

    async fn confirm_clusters(
        &self,
        seen: &mut Observed,
        names: &BTreeSet<String>,
    ) -> Result<(), Unsure> {
        let asked = asked::clusters(&self.hub_client, names).await?;
        seen.clusters.retain(|cluster| !asked.all && !names.contains(&cluster.name));
        seen.clusters.extend(asked.clusters);
        seen.clusters.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(())
    }
}

/// The kinds of the answer count like those of the question.
pub(super) async fn definitions(hub_client: &Client) -> Result<Defined, Unsure> {
    let since = async |kind| defined::since(hub_client, kind).await;
    since(kinds::PLACEMENT).await?;
    since(kinds::DECISION).await?;
    Ok(Defined::Since {
        bindings: since(kinds::SET_BINDING).await?,
        sets: since(kinds::CLUSTER_SET).await?,
        clusters: since(kinds::CLUSTER).await?,
    })
}
