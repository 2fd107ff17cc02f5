//! The IO half of a ManifestWorkReplicaSet's story: looks, and has done what `cleat-core` decides.

pub mod outlook;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cleat_api::managedcluster::ManagedCluster;
use cleat_api::manifestworkreplicaset::{LONGEST_KEY, SET_LABEL};
use cleat_core::replicaset::{self as core, Child, Decided, Observed, Setbacks};
use cleat_core::write::{Action, Outcome, Plan, Write};
use cleat_runtime::execute::Executor;
use cleat_runtime::queue::Wake;
use kube::Client;
use kube::api::{Api, DynamicObject, ListParams};

use crate::asked;
use crate::defined::{self, Unsure};
use crate::followed::{Followed, Key};
use crate::kinds::{self, every};
use crate::placement::Placements;
use crate::view::{Decision, Placement, Set, Work};
use crate::written;

/// What passes share.
pub(crate) struct Replicasets {
    pub(crate) executor: Executor,
    pub(crate) hub_client: Client,
    pub(crate) sets: Followed<Set>,
    pub(crate) works: Followed<Work>,
    pub(crate) placements: Followed<Placement>,
    pub(crate) decisions: Followed<Decision>,
    pub(crate) clusters: Followed<crate::view::Cluster>,
    pub(crate) placing: Placements,
    pub(crate) setbacks: Mutex<BTreeMap<Key, Setbacks>>,
}

/// When to look again at a set whose status could not be written.
const AFTER_STATUS: Duration = Duration::from_secs(5);

#[tracing::instrument(skip_all, fields(set = %format!("{}/{}", key.0, key.1)))]
pub(crate) async fn pass(cx: Arc<Replicasets>, key: Key) -> Wake {
    let Some(mut seen) = cx.observe(&key).await else {
        cx.setbacks().remove(&key);
        return Wake::OnChange;
    };
    let mut plan = core::plan(&seen);
    if core::removes(&seen, &plan) {
        cx.confirm(&mut seen).await;
        plan = core::plan(&seen);
    }
    cx.leave_to_others(&mut plan).await;
    let done = cx.executor.execute(&plan).await;
    written::log("works", &plan, &done);
    let verdict = core::report(&seen, &plan, &done);
    let mut wake = verdict.wake.and_then(|after| Duration::try_from(after).ok());
    if let Some(status) = verdict.status {
        match cx.executor.execute([vec![status]]).await.into_iter().flatten().next() {
            // After a conflict the newer state is on its way to us.
            Some(Outcome::Done(_) | Outcome::Conflict(_) | Outcome::NotFound) | None => {}
            Some(other) => {
                tracing::warn!(outcome = ?other, "the status of the set could not be written");
                wake = Some(wake.map_or(AFTER_STATUS, |wake| wake.min(AFTER_STATUS)));
            }
        }
    }
    if verdict.setbacks.is_empty() {
        cx.setbacks().remove(&key);
    } else {
        cx.setbacks().insert(key, verdict.setbacks);
    }
    wake.map_or(Wake::OnChange, Wake::After)
}

impl Replicasets {
    fn setbacks(&self) -> MutexGuard<'_, BTreeMap<Key, Setbacks>> {
        self.setbacks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// None if there is no such set.
    async fn observe(&self, key: &Key) -> Option<Observed> {
        let set = self.sets.get(key)?.0.clone();
        let sightings = self.placing.sightings(&set.namespace);
        let placements = set.placements.iter().map(|reference| &reference.name);
        let placements = placements.map(|name| (name.clone(), self.decided(&set.namespace, name)));
        let placements = placements.collect();
        // A set that goes with the definition of its kind was not deleted by anybody.
        let defined = match set.deleting {
            true => defined::since(&self.hub_client, kinds::SET).await.map(|_| ()),
            false => Ok(()),
        };
        let undefined = matches!(defined, Err(Unsure::Undefined(_)));
        // Whether nothing is left is asked of the server: what we made last, a watch may not have
        // told yet.
        let children = if defined.is_err() {
            None
        } else if set.deleting {
            self.list(&set.key()).await
        } else if self.works.is_listed() {
            Some(self.works.group(&set.key()).iter().filter_map(|work| work.child()).collect())
        } else {
            None
        };
        let mut clusters = BTreeMap::new();
        for child in children.iter().flatten() {
            let cluster = self.clusters.get(&(String::new(), child.cluster.clone()));
            clusters.extend(cluster.map(|one| (child.cluster.clone(), Arc::clone(&one.seen))));
        }
        let setbacks = self.setbacks().get(key).cloned().unwrap_or_default();
        let now = jiff::Timestamp::now();
        Some(Observed { now, set, placements, children, clusters, sightings, undefined, setbacks })
    }

    /// Puts what the server says now into the observation: what was decided, and how the clusters
    /// are that lose their work. What cannot be read decides nothing.
    async fn confirm(&self, seen: &mut Observed) {
        for (name, decided) in &mut seen.placements {
            *decided = outlook::decided(&self.hub_client, &seen.set.namespace, name).await;
        }
        let mut asked = BTreeSet::new();
        let read = loop {
            let new: BTreeSet<String> =
                loses(&core::plan(seen)).difference(&asked).cloned().collect();
            if new.is_empty() {
                break Ok(());
            }
            if let Err(error) = self.read_clusters(seen, &new).await {
                break Err(error);
            }
            asked.extend(new);
        };
        // After what was read: a definition that is whole now was so when its objects were told.
        let mut unsure = read.err();
        for kind in [kinds::PLACEMENT, kinds::DECISION, kinds::CLUSTER] {
            unsure = unsure.or(defined::since(&self.hub_client, kind).await.err());
        }
        if let Some(error) = unsure {
            let error: &dyn std::error::Error = &error;
            tracing::warn!(error, "no work is deleted, for something is not known");
            seen.placements.values_mut().for_each(|decided| *decided = Decided::Unknown);
        }
    }

    async fn read_clusters(
        &self,
        seen: &mut Observed,
        names: &BTreeSet<String>,
    ) -> Result<(), Unsure> {
        let asked = asked::clusters(&self.hub_client, names).await?;
        seen.clusters.retain(|name, _| !asked.all && !names.contains(name));
        seen.clusters.extend(asked.clusters.into_iter().map(|one| (one.name.clone(), one)));
        Ok(())
    }

    fn decided(&self, namespace: &str, name: &str) -> Decided {
        if !self.placements.is_listed() || !self.decisions.is_listed() {
            return Decided::Unknown;
        }
        let placement = self.placements.get(&(namespace.to_owned(), name.to_owned()));
        let decisions = self.decisions.group(&Decision::group_of(namespace, name));
        Decided::read(
            placement.as_ref().map(|placement| (&placement.metadata, &placement.data)),
            decisions.iter().map(|decision| (&decision.metadata, &decision.data)),
        )
    }

    /// What becomes of the works of a cluster that leaves is decided where it leaves: they may be to
    /// stay on it, and have to be written down.
    async fn leave_to_others(&self, plan: &mut Plan) {
        let mut leaving = BTreeSet::new();
        for cluster in loses(plan) {
            if self.is_leaving(&cluster).await {
                leaving.insert(cluster);
            }
        }
        for step in plan.iter_mut() {
            step.retain(|action| {
                !(is_delete(action) && leaving.contains(&action.target.id.namespace))
            });
        }
        plan.retain(|step| !step.is_empty());
    }

    /// A cluster that cannot be asked about may be leaving.
    async fn is_leaving(&self, cluster: &str) -> bool {
        let clusters: Api<ManagedCluster> = Api::all(self.hub_client.clone());
        match clusters.get_metadata_opt(cluster).await {
            Ok(found) => found.is_some_and(|found| found.metadata.deletion_timestamp.is_some()),
            Err(kube::Error::Api(status)) if status.code == 404 => false,
            Err(error) => {
                tracing::warn!(cluster, %error, "whether a cluster leaves cannot be seen");
                true
            }
        }
    }

    async fn list(&self, set: &str) -> Option<Vec<Arc<Child>>> {
        // No work can bear such a label, and no server can be asked for it.
        if set.len() > LONGEST_KEY {
            return Some(Vec::new());
        }
        let params = ListParams::default().labels(&format!("{SET_LABEL}={set}"));
        match every(&self.hub_client, &None, kinds::WORK).list(&params).await {
            Ok(works) => {
                let read = |work: &DynamicObject| Arc::new(Child::read(&work.metadata, &work.data));
                Some(works.items.iter().map(read).collect())
            }
            Err(error) => {
                tracing::warn!(%error, "the works of a set could not be listed");
                None
            }
        }
    }
}

/// The clusters whose works are to go.
fn loses(plan: &Plan) -> BTreeSet<String> {
    let deletes = plan.iter().flatten().filter(|action| is_delete(action));
    deletes.map(|action| action.target.id.namespace.clone()).collect()
}

fn is_delete(action: &Action) -> bool {
    matches!(action.write, Write::Delete { .. })
}
