//! How the cluster stands with its hub, shared by everything that runs for it.

use std::collections::{BTreeMap, BTreeSet};

use cleat_api::leftoverrecord::LeftObject;
use cleat_api::managedcluster::RemoveStrategy;
use cleat_core::leave::agent::{Source, Standing};
use cleat_runtime::tasks::Tasks;
use tokio::sync::watch;

/// What became of the agent's own parts when the cluster had left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Nothing of it is there, as the server says, but what is not its alone.
    Gone,
    /// All of it was asked to go, the right to look included.
    OutOfSight,
    /// This could not be taken away, and why.
    Remains(Vec<String>),
}

/// Its clones are the same.
#[derive(Clone)]
pub struct Presence {
    standing: watch::Sender<Standing>,
    /// What was last declared about everything that was carried here, as far as anybody knows.
    strategy: watch::Sender<Option<RemoveStrategy>>,
    /// What stays of what the hub has nothing for any more, by whose it was; the leave tells it.
    stranded: watch::Sender<BTreeMap<Source, Vec<LeftObject>>>,
    /// Policies that cannot say what stays of them, and why; the leave says so.
    mute: watch::Sender<BTreeMap<String, String>>,
    /// What the hub has of what is stranded: as it was last read there, or as it has written down.
    told: watch::Sender<Vec<LeftObject>>,
    released: watch::Sender<bool>,
    left: watch::Sender<Option<Ended>>,
    /// By what the cluster is known, once somebody has said it.
    cluster_id: watch::Sender<String>,
}

impl Default for Presence {
    fn default() -> Self {
        Self {
            standing: watch::Sender::new(Standing::Unknown),
            strategy: watch::Sender::new(None),
            stranded: watch::Sender::default(),
            mute: watch::Sender::default(),
            told: watch::Sender::default(),
            released: watch::Sender::new(false),
            left: watch::Sender::new(None),
            cluster_id: watch::Sender::default(),
        }
    }
}

impl Presence {
    pub fn standing(&self) -> Standing {
        self.standing.borrow().clone()
    }

    pub fn subscribe(&self) -> watch::Receiver<Standing> {
        self.standing.subscribe()
    }

    /// Calls this whenever it stands otherwise.
    pub(crate) fn on_change(&self, tasks: &Tasks, call: impl Fn() + Send + 'static) {
        let (mut changes, mut stop) = (self.subscribe(), tasks.stop());
        tasks.spawn("standing", async move {
            while let Some(Ok(())) = stop.or(changes.changed()).await {
                call();
            }
        });
    }

    /// Returns when the cluster has left and nothing of the agent is needed any more, with what became
    /// of that.
    pub async fn until_left(&self) -> Ended {
        let mut left = self.left.subscribe();
        let ended = left.wait_for(Option::is_some).await;
        // The sender is ours, so it cannot be gone.
        ended.ok().and_then(|ended| ended.clone()).unwrap_or(Ended::OutOfSight)
    }

    /// By what the cluster is known: another may have its name on the hub.
    pub(crate) fn cluster_id(&self) -> String {
        self.cluster_id.borrow().clone()
    }

    pub(crate) fn set_cluster_id(&self, id: &str) {
        self.cluster_id.send_replace(id.to_owned());
    }

    pub(crate) fn set(&self, standing: Standing) {
        self.standing.send_if_modified(|before| {
            let changed = *before != standing;
            *before = standing;
            changed
        });
    }

    /// What the hub last said is to become of everything, also if it does not know this cluster now.
    pub(crate) fn strategy(&self) -> Option<RemoveStrategy> {
        *self.strategy.borrow()
    }

    pub(super) fn strategies(&self) -> watch::Receiver<Option<RemoveStrategy>> {
        self.strategy.subscribe()
    }

    pub(crate) fn set_strategy(&self, strategy: RemoveStrategy) {
        self.strategy.send_if_modified(|before| before.replace(strategy) != Some(strategy));
    }

    /// Hands over what stays of a work or policy that the hub does not have any more.
    pub(crate) fn strand(&self, source: Source, left: Vec<LeftObject>) {
        self.stranded.send_if_modified(|all| {
            let changed = all.get(&source) != Some(&left);
            all.insert(source, left);
            changed
        });
    }

    pub(super) fn stranded(&self) -> BTreeMap<Source, Vec<LeftObject>> {
        self.stranded.borrow().clone()
    }

    /// Whether a policy can say what stays of it, and why not.
    pub(crate) fn set_mute(&self, policy: &str, why: Option<String>) {
        self.mute.send_if_modified(|all| match why {
            Some(why) => all.insert(policy.to_owned(), why).is_none(),
            None => all.remove(policy).is_some(),
        });
    }

    pub(super) fn mute(&self) -> BTreeMap<String, String> {
        self.mute.borrow().clone()
    }

    /// What the hub has heard of what is stranded.
    pub(crate) fn told(&self) -> Vec<LeftObject> {
        self.told.borrow().clone()
    }

    pub(super) fn set_told(&self, told: &[LeftObject], on_record: &BTreeSet<LeftObject>) {
        let told: BTreeSet<&LeftObject> = told.iter().chain(on_record).collect();
        self.told.send_if_modified(|before| {
            let changed = !before.iter().eq(told.iter().copied());
            if changed {
                *before = told.into_iter().cloned().collect();
            }
            changed
        });
    }

    pub(super) fn is_released(&self) -> bool {
        *self.released.borrow()
    }

    pub(super) fn set_released(&self, released: bool) {
        self.released.send_replace(released);
    }

    pub(super) fn leave(&self, ended: Ended) {
        self.left.send_replace(Some(ended));
    }
}
