//! Leaving the hub: hears of it, lets the other stories know, looks whether anything is still held,
//! and takes the agent's own parts away when the hub has let go.
//!
//! A hub that cannot be reached changes nothing. A hub that answers and does not know this cluster
//! stops everything, and somebody is told: only a hub that says to leave lets anything go.

mod alarm;
mod asked;
pub mod clean;
mod ground;
mod parts;
mod patience;
mod presence;

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cleat_api::appliedmanifestwork::AppliedManifestWork;
use cleat_api::leftoverrecord::LeftObject;
use cleat_api::managedcluster::ManagedCluster;
use cleat_api::manifestwork::ManifestWork;
use cleat_core::leave::agent::{self, Besides, Held, Standing};
use cleat_core::leave::ground::is_ground;
use cleat_core::number::number;
use cleat_core::registration::hub;
use cleat_core::work::WORK_FINALIZER;
use cleat_core::write::{Outcome, Side};
use cleat_runtime::execute::{self, Executor, Read};
use cleat_runtime::kinds::Kinds;
use cleat_runtime::tasks::{Stop, Tasks};
use jiff::Timestamp;
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt as _};
use tokio::sync::watch;
use tokio::time::Instant;

pub(crate) use self::asked::{ask, known};
use self::parts::Parts;
pub use self::presence::{Ended, Presence};
use crate::registration::{FIELD_MANAGER, Keep};

/// How often a leaving cluster looks whether it still holds something.
const LOOK: Duration = Duration::from_millis(500);

/// How soon to try again what could not be written down.
const AGAIN: Duration = Duration::from_secs(5);

/// How long a hub may deny to know the cluster before somebody is told: rights take a moment.
const ALARM: Duration = Duration::from_secs(30);

/// What another story may still hold on the cluster. A cluster has left when no story does.
pub trait Remains: Send + Sync {
    /// What is held, in words such as `2 policies`; nothing if nothing is. An error says why that
    /// cannot be told, and then it counts as held.
    fn remains(&self) -> Pin<Box<dyn Future<Output = Result<Option<String>, String>> + Send + '_>>;
}

/// A cluster that may leave.
pub struct Leave {
    pub name: String,
    pub hub_client: Client,
    pub cluster_client: Client,
    /// SHA-256 of the hub's address; ledgers for it are ours.
    pub hub_hash: String,
    pub presence: Presence,
    /// Where the credentials are kept, if the agent is to remove itself.
    pub keep: Option<Keep>,
    /// What else may be held.
    pub remains: Vec<Arc<dyn Remains>>,
}

struct Context {
    leave: Leave,
    executor: Executor,
    kinds: Kinds,
    /// What last went wrong with what the agent itself leaves there.
    trouble: Mutex<Option<ground::Trouble>>,
    /// What the hub says is written down.
    on_record: Mutex<BTreeSet<LeftObject>>,
    /// Whether it is noted beside the credentials that the cluster has left, once somebody looked.
    noted: Mutex<Option<bool>>,
}

/// What becomes of a cluster that its hub does not know.
enum Denied {
    /// It has left; nothing is wrong.
    Left,
    /// The hub says something else by now.
    Otherwise,
}

/// Starts the story; it ends with the tasks, or when the cluster has left.
pub fn start(leave: Leave, tasks: &Tasks) {
    let executor = Executor::new(execute::Config {
        hub: Some(leave.hub_client.clone()),
        cluster: Some(leave.cluster_client.clone()),
        field_manager: Some(FIELD_MANAGER.to_owned()),
        user_agent: Some(FIELD_MANAGER.to_owned()),
        ..Default::default()
    });
    let kinds = Kinds::new(leave.cluster_client.clone());
    let (trouble, on_record, noted) = (Mutex::default(), Mutex::default(), Mutex::default());
    let context = Context { leave, executor, kinds, trouble, on_record, noted };
    if let Some(keep) = context.leave.keep.clone() {
        let (presence, executor) = (context.leave.presence.clone(), context.executor.clone());
        let stop = tasks.stop();
        tasks.spawn("leave: strategy", remember(presence, keep, executor, stop));
    }
    let stop = tasks.stop();
    tasks.spawn("leave", async move { context.run(stop).await });
}

/// Keeps beside the credentials what was last declared about everything on the cluster, and knows it
/// again after a restart: a hub that forgot the cluster cannot be asked.
async fn remember(presence: Presence, keep: Keep, executor: Executor, mut stop: Stop) {
    let mut changes = presence.strategies();
    let mut kept = loop {
        match keep.strategy(&executor).await {
            Ok(kept) => break kept,
            Err(error) => tracing::debug!(%error, "what was declared cannot be read"),
        }
        if stop.or(tokio::time::sleep(AGAIN)).await.is_none() {
            return;
        }
    };
    // What the hub said meanwhile is newer.
    if let (Some(kept), None) = (kept, presence.strategy()) {
        presence.set_strategy(kept);
    }
    loop {
        let said = *changes.borrow_and_update();
        if let Some(strategy) = said.filter(|_| said != kept) {
            match keep.set_strategy(&executor, strategy).await {
                Ok(()) => kept = said,
                Err(error) => {
                    tracing::warn!(%error, "what is declared cannot be written down");
                    if stop.or(tokio::time::sleep(AGAIN)).await.is_none() {
                        return;
                    }
                    continue;
                }
            }
        }
        if stop.or(changes.changed()).await.is_none() {
            return;
        }
    }
}

impl Context {
    async fn run(&self, mut stop: Stop) {
        let mut changes = self.leave.presence.subscribe();
        loop {
            let standing = changes.borrow_and_update().clone();
            let ended = match standing {
                Standing::Unknown => stop.or(changes.changed()).await.is_none(),
                Standing::Member => match self.mark(false).await {
                    true => stop.or(changes.changed()).await.is_none(),
                    false => {
                        stop.or(tokio::time::timeout(AGAIN, changes.changed())).await.is_none()
                    }
                },
                Standing::Leaving(_) => {
                    self.look().await;
                    // What ends on the cluster is the works' story's to see; this one asks.
                    stop.or(tokio::time::timeout(LOOK, changes.changed())).await.is_none()
                }
                Standing::Unrecognized(why) => {
                    let denied = self.denied(&why, &mut changes);
                    match stop.or(denied).await {
                        Some(Denied::Otherwise) => false,
                        Some(Denied::Left) => {
                            // It ends with its rights, or when it is told to.
                            let _ = stop.or(self.end()).await;
                            true
                        }
                        None => true,
                    }
                }
            };
            if ended {
                return;
            }
        }
    }

    /// The hub answers and does not know this cluster: that is the end if it has left, and else somebody
    /// is told. Returns when it has left, or stands otherwise.
    async fn denied(&self, why: &str, changes: &mut watch::Receiver<Standing>) -> Denied {
        let since = Instant::now();
        let mut told = false;
        loop {
            let left = self.has_left().await;
            if left == Some(true) {
                return Denied::Left;
            }
            if !told && since.elapsed() >= ALARM {
                alarm::raise(&self.executor, &self.leave, why).await;
                told = true;
            }
            let until_alarm = (!told).then(|| ALARM.saturating_sub(since.elapsed()));
            // What could not be read may be the end of it.
            let again = left.is_none().then_some(AGAIN);
            match until_alarm.into_iter().chain(again).min() {
                None => {
                    // The sender is ours as well, so it cannot be gone.
                    let _ = changes.changed().await;
                    return Denied::Otherwise;
                }
                Some(pause) => {
                    if tokio::time::timeout(pause, changes.changed()).await.is_ok() {
                        return Denied::Otherwise;
                    }
                }
            }
        }
    }

    /// Looks at everything that could be held, and tells the hub.
    async fn look(&self) {
        let cluster = match self.executor.read(Side::Hub, &hub::target(&self.leave.name)).await {
            // Another that has our name is told nothing by us.
            Read::Present(object) => {
                match agent::stranger(&object, &self.leave.presence.cluster_id()) {
                    Some(_) => None,
                    None => serde_json::from_value::<ManagedCluster>(object).ok(),
                }
            }
            _ => None,
        };
        let Some(cluster) = cluster else { return };
        let told = cluster.status.clone().unwrap_or_default().left;
        let on_record = self.on_record(&cluster);
        self.leave.presence.set_told(&told, &on_record);
        let besides = self.besides(&told, &on_record);
        let ground: Vec<LeftObject> = told.into_iter().filter(is_ground).collect();
        let mut held = match self.held().await {
            Ok(None) => self.clear_ground(&cluster, ground).await,
            Ok(Some(mut what)) => {
                if let Some(waiting) = agent::waiting(besides.untold) {
                    what.push_str(&waiting);
                } else if self.leave.presence.stranded().values().any(|left| !left.is_empty()) {
                    what = self.explained(what);
                }
                what.extend(agent::unsaid(&self.leave.presence.mute()));
                Held { what: Some(what), unknown: None, left: ground }
            }
            Err(why) => Held { what: None, unknown: Some(why), left: ground },
        };
        held.left = [besides.left, held.left].concat();
        // Written down before the hub is told: once it was, it may forget this cluster at any moment,
        // and an agent that starts again then must know the end from a hub that forgot.
        // What cannot be seen changes nothing that is written.
        let known = held.unknown.is_none();
        if known && !self.mark(held.what.is_none()).await {
            return;
        }
        if let Some(report) = agent::report(&cluster, &held, Timestamp::now()) {
            // Whatever came of it, the next look begins with what the hub has.
            let done = self.executor.execute(vec![vec![report]]).await;
            if let Some(Outcome::Done(answer)) = done.into_iter().flatten().next()
                && agent::is_dropped(&held, &answer)
            {
                let why = "the hub does not keep what is told to stay: its definition of \
                           ManagedCluster has no status.left; run `cleat init` there";
                self.in_trouble(Some(why.to_owned()));
            }
        }
    }

    /// What the hub is to hear of what it does not have any more.
    fn besides(&self, told: &[LeftObject], on_record: &BTreeSet<LeftObject>) -> Besides {
        let all = agent::besides(told, on_record, &self.leave.presence.stranded());
        match self.must_rest() {
            // A hub that did not keep what it was told is left alone for a while.
            true => {
                let left = agent::besides(told, on_record, &BTreeMap::new()).left;
                Besides { left, ..all }
            }
            false => all,
        }
    }

    /// What the hub has said to be written down since this agent runs. One that starts again tells it
    /// again where it still holds it.
    fn on_record(&self, cluster: &ManagedCluster) -> BTreeSet<LeftObject> {
        let mut all = self.on_record.lock().unwrap_or_else(PoisonError::into_inner);
        if agent::is_on_record(cluster) {
            all.extend(cluster.status.iter().flat_map(|status| &status.left).cloned());
        }
        all.clone()
    }

    /// Everything that is still held, in words.
    async fn held(&self) -> Result<Option<String>, String> {
        let mut what = Vec::new();
        let ledgers: Api<AppliedManifestWork> = Api::all(self.leave.cluster_client.clone());
        let all = ledgers.list(&ListParams::default()).await;
        let all = all.map_err(|error| format!("the ledgers cannot be listed: {error}"))?;
        let ours = all.items.iter().filter(|one| one.spec.hub_hash == self.leave.hub_hash).count();
        if ours > 0 {
            what.push(number(ours, "ledger of a work", "ledgers of works"));
        }
        // A work that is ours to end may be about to get a ledger.
        let works: Api<ManifestWork> =
            Api::namespaced(self.leave.hub_client.clone(), &self.leave.name);
        let all = works.list_metadata(&ListParams::default()).await;
        let all = all.map_err(|error| format!("the works cannot be listed: {error}"))?;
        let with_us =
            all.items.iter().filter(|one| one.finalizers().iter().any(|f| f == WORK_FINALIZER));
        match with_us.count() {
            0 => {}
            count => what.push(number(count, "work", "works")),
        }
        for other in &self.leave.remains {
            what.extend(other.remains().await?);
        }
        Ok((!what.is_empty()).then(|| what.join(", ")))
    }

    /// Writes down that nothing is held any more, or that something is; says whether that worked. What
    /// an agent before this one noted is not believed: it may not have come to its end, or its hub may
    /// have forgotten that leave, and the next hub that does not know the cluster would be taken for the
    /// end of it.
    async fn mark(&self, released: bool) -> bool {
        if let Some(keep) = &self.leave.keep {
            let known = *self.noted.lock().unwrap_or_else(PoisonError::into_inner);
            let noted = match known {
                Some(noted) => Some(noted),
                None => keep.is_left(&self.executor).await.ok(),
            };
            if noted != Some(released)
                && let Err(error) = keep.set_left(&self.executor, released).await
            {
                tracing::warn!(cluster = self.leave.name, %error, "the leave cannot be written down");
                return false;
            }
            *self.noted.lock().unwrap_or_else(PoisonError::into_inner) = Some(released);
        }
        self.leave.presence.set_released(released);
        true
    }

    /// Nothing if what is noted cannot be read.
    async fn has_left(&self) -> Option<bool> {
        if self.leave.presence.is_released() {
            return Some(true);
        }
        let Some(keep) = &self.leave.keep else { return Some(false) };
        match keep.is_left(&self.executor).await {
            Ok(left) => Some(left),
            Err(error) => {
                let cluster = &self.leave.name;
                tracing::warn!(cluster, %error, "whether the cluster has left cannot be read");
                None
            }
        }
    }

    async fn end(&self) {
        let (executor, cluster) = (&self.executor, &self.leave.cluster_client);
        let parts = Parts { executor, cluster, kinds: &self.kinds };
        let ended = match &self.leave.keep {
            Some(keep) => parts.take_self_away(keep).await,
            None => Ended::Gone,
        };
        tracing::info!(cluster = self.leave.name, ?ended, "the cluster has left its hub");
        self.leave.presence.leave(ended);
    }
}
