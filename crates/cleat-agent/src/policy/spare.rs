//! What a pass has to know besides when the cluster leaves its hub: what the namespaces hold that are
//! about to go, and whether the hub has heard what stays.

use cleat_api::configurationpolicy::{ConfigurationPolicy, GROUP};
use cleat_api::leftoverrecord::LeftObject;
use cleat_core::id::{Id, Target};
use cleat_core::policy::observed::Policy;
use cleat_core::policy::spare::judge;
use cleat_core::work::contents::Contents;
use cleat_core::write::Side;
use cleat_runtime::contents::found;
use cleat_runtime::execute::Read;
use cleat_runtime::follow::Follow;

use super::{Context, Fleet, records};

impl Context {
    /// What a namespace holds that this policy would delete.
    pub(super) async fn holds(&self, policy: &Policy, namespace: &Target) -> Contents {
        // Before what is there: who is gone by then has taken along what it made.
        let others = self.policies.iter().flat_map(Follow::all);
        let others = others.filter_map(|object| object.parse::<ConfigurationPolicy>().ok());
        let others: Vec<Policy> = others.map(records::known).collect();
        match found(&self.config.cluster_client, &self.kinds, &namespace.id.name).await {
            Ok(found) => judge(found, policy, &others),
            Err(why) => Contents::Unknown(format!("what it holds cannot be seen: {why}")),
        }
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
