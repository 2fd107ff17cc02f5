//! What a pass has to know besides when the cluster leaves its hub: what the namespaces and definitions
//! hold that are about to go, and whether the hub has heard what stays.

use std::collections::BTreeSet;

use cleat_api::configurationpolicy::{ConfigurationPolicy, GROUP};
use cleat_api::leftoverrecord::LeftObject;
use cleat_core::id::{Id, Target};
use cleat_core::policy::observed::{Observed, Policy};
use cleat_core::policy::spare::{judge, judge_ahead};
use cleat_core::work::contents::Contents;
use cleat_core::write::Side;
use cleat_runtime::contents::held;
use cleat_runtime::execute::Read;
use cleat_runtime::follow::Follow;

use super::{Context, Fleet, records};

impl Context {
    /// What a namespace or a definition holds that this policy would delete.
    pub(super) async fn holds(&self, policy: &Policy, holder: &Target) -> Contents {
        // Before what is there: who is gone by then has taken along what it made.
        let others = self.known();
        match held(&self.config.cluster_client, &self.kinds, &holder.id).await {
            Ok(found) => judge(found, policy, &others),
            Err(why) => Contents::Unknown(format!("what it holds cannot be seen: {why}")),
        }
    }

    /// What a namespace or a definition would hold by the time that this policy would delete it, if the
    /// cluster left. `going`: the incarnations that works take along.
    pub(super) async fn would_hold(
        &self,
        seen: &Observed,
        holder: &Target,
        going: &BTreeSet<String>,
    ) -> Contents {
        if !self.policies.iter().all(Follow::synced) {
            return Contents::Unknown("which policies there are was not read yet".to_owned());
        }
        let others = self.known();
        match held(&self.config.cluster_client, &self.kinds, &holder.id).await {
            Ok(found) => judge_ahead(found, seen, &others, going),
            Err(why) => Contents::Unknown(format!("what it holds cannot be seen: {why}")),
        }
    }

    /// All policies of this cluster, as far as watches told of them.
    pub(super) fn known(&self) -> Vec<Policy> {
        let all = self.policies.iter().flat_map(Follow::all);
        let all = all.filter_map(|object| object.parse::<ConfigurationPolicy>().ok());
        all.map(records::known).collect()
    }

    /// What the hub has heard to stay of the policy that this one is part of.
    pub(super) async fn heard(&self, policy: &Policy) -> Vec<LeftObject> {
        let (Some(Fleet { presence, cluster, .. }), Some(owner)) =
            (&self.config.fleet, &policy.owner)
        else {
            return Vec::new();
        };
        // What it has no policy for any more, the cluster itself tells it.
        let mut heard = presence.told();
        let id = Id {
            group: GROUP.to_owned(),
            resource: "policies".to_owned(),
            namespace: cluster.clone(),
            name: owner.name.clone(),
        };
        let target = Target { version: "v1".to_owned(), id };
        if let Read::Present(replica) = self.executor.read(Side::Hub, &target).await {
            let left = replica.pointer("/status/removal/left").cloned().unwrap_or_default();
            heard.extend(serde_json::from_value::<Vec<LeftObject>>(left).unwrap_or_default());
        }
        heard
    }
}
