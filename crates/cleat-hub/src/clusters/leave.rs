//! The IO half of how clusters leave, on the hub: looks, has done what `cleat_core::leave` decides,
//! and says how far it got. What was carried to a leaving cluster is read from the server each time,
//! because on it depends what is forgotten.

use std::time::Duration;

use cleat_api::leftoverrecord::LeftoverRecord;
use cleat_api::managedcluster::{CLUSTER_NAME_LABEL, ManagedCluster};
use cleat_api::manifestwork::ManifestWork;
use cleat_api::policy::{Policy, PolicySpec};
use cleat_core::leave::carried::{ADD_ONS, Carried, Kind, told};
use cleat_core::leave::{self, hub};
use cleat_core::registration::access::Part;
use cleat_core::registration::hub::target;
use cleat_core::registration::place;
use cleat_core::work::contents::Contents;
use cleat_core::write::Outcome;
use cleat_runtime::contents::found;
use cleat_runtime::kinds::Mapping;
use cleat_runtime::queue::Wake;
use kube::ResourceExt as _;
use kube::api::{Api, ApiResource, DynamicObject, ListParams};
use kube::core::GroupVersionKind;
use serde::Deserialize as _;

use super::{Context, duration, log};

/// How soon to look again at what an agent is about to change; no watch of the hub's tells.
const SOON: Duration = Duration::from_millis(250);

/// How soon to look again at a leave that waits for something.
const WAITING: Duration = Duration::from_secs(1);

impl Context {
    pub(super) async fn leave(&self, cluster: &ManagedCluster) -> Wake {
        let name = cluster.name_any();
        let seen = self.observe_leaving(cluster).await;
        let plan = hub::plan(&seen);
        let own = target(&name);
        let changes_own = plan.iter().flatten().any(|action| action.target == own);
        let done = if plan.is_empty() { Vec::new() } else { self.executor.execute(plan).await };
        log(&name, &done);
        let settled = done.iter().flatten().all(Outcome::is_done);
        // What is said is said of what it is now, if it is still there.
        if changes_own && settled {
            return Wake::OnChange;
        }
        // Also of a pass that wrote something: a leave may write for as long as it lasts.
        let verdict = leave::report(&seen, &done);
        if let Some(status) = verdict.status {
            let told = self.executor.execute(vec![vec![status]]).await;
            log(&name, &told);
            return Wake::After(SOON);
        }
        if settled && !done.is_empty() {
            return Wake::After(SOON);
        }
        Wake::After(verdict.wake.map_or(WAITING, |wake| duration(wake).min(WAITING)))
    }

    async fn observe_leaving(&self, cluster: &ManagedCluster) -> hub::Observed {
        let name = cluster.name_any();
        let mut seen = hub::Observed {
            parts: self.parts.of(&name),
            contents: None,
            carried: self.carried(&name).await,
            records: self.records(cluster).await.map_err(|error| error.to_string()),
            heartbeat: self.fleet.heartbeat(&name),
            now: self.clock.now(),
            cluster: cluster.clone(),
        };
        if hub::is_finishing(&seen) {
            for part in Part::ALL {
                seen.parts.insert(part, self.read_part(&name, part).await);
            }
            // A work may have come before the namespace was seen to be going.
            seen.carried = self.carried(&name).await;
        }
        if hub::wants_look(&seen) {
            seen.contents = Some(match found(&self.hub_client, &self.kinds, &name).await {
                Ok(found) => {
                    let uid = cluster.metadata.uid.as_deref().unwrap_or_default();
                    place::judge(&found, &name, uid)
                }
                Err(why) => Contents::Unknown(format!("what it holds cannot be seen: {why}")),
            });
        }
        seen
    }

    /// Everything that has an end of its own in the cluster's namespace, or why that is not known.
    async fn carried(&self, name: &str) -> Result<Vec<Carried>, String> {
        let said = |error: kube::Error| error.to_string();
        let all = ListParams::default();
        let works: Api<ManifestWork> = Api::namespaced(self.hub_client.clone(), name);
        let mut carried: Vec<Carried> =
            works.list(&all).await.map_err(said)?.items.iter().map(Carried::work).collect();
        let kind = ApiResource::erase::<Policy>(&());
        let policies: Api<DynamicObject> =
            Api::namespaced_with(self.hub_client.clone(), name, &kind);
        match policies.list(&all).await {
            Ok(list) => {
                for one in list.items {
                    // What a policy made must not be forgotten because nobody could read it.
                    let status = told(&one.name_any(), one.data.get("status"))?;
                    let spec =
                        one.data.get("spec").and_then(|spec| PolicySpec::deserialize(spec).ok());
                    carried.push(Carried::policy(&one.metadata, spec.as_ref(), status));
                }
            }
            // A hub that does not serve policies has none.
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(error) => return Err(said(error)),
        }
        let [group, version, resource] = ADD_ONS;
        let kind = GroupVersionKind::gvk(group, version, "");
        let kind = ApiResource::from_gvk_with_plural(&kind, resource);
        let add_ons: Api<DynamicObject> =
            Api::namespaced_with(self.hub_client.clone(), name, &kind);
        match add_ons.list_metadata(&all).await {
            Ok(list) => {
                let each = list.items.iter().map(|one| Carried::bare(Kind::AddOn, &one.metadata));
                carried.extend(each);
            }
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(error) => {
                // Who may not list is told so even where nothing of the kind is served.
                let forbidden = matches!(&error, kube::Error::Api(status) if status.code == 403);
                if !forbidden || self.kinds.preferred(group, resource).await != Mapping::NoSuchKind
                {
                    return Err(said(error));
                }
            }
        }
        Ok(carried)
    }

    /// The records of this leave; a cluster of the same name may have left before.
    async fn records(&self, cluster: &ManagedCluster) -> kube::Result<Vec<LeftoverRecord>> {
        let records: Api<LeftoverRecord> = Api::all(self.hub_client.clone());
        let label = format!("{CLUSTER_NAME_LABEL}={}", cluster.name_any());
        let mut found = records.list(&ListParams::default().labels(&label)).await?.items;
        let uid = cluster.metadata.uid.as_deref().unwrap_or_default();
        found.retain(|record| record.spec.cluster_uid == uid);
        found.sort_by_key(|record| record.spec.part);
        Ok(found)
    }
}
