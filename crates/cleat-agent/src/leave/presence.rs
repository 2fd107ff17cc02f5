//! How the cluster stands with its hub, shared by everything that runs for it.

use cleat_core::leave::agent::Standing;
use cleat_runtime::tasks::Tasks;
use tokio::sync::watch;

/// Its clones are the same.
#[derive(Clone)]
pub struct Presence {
    standing: watch::Sender<Standing>,
    released: watch::Sender<bool>,
    left: watch::Sender<bool>,
}

impl Default for Presence {
    fn default() -> Self {
        Self {
            standing: watch::Sender::new(Standing::Unknown),
            released: watch::Sender::new(false),
            left: watch::Sender::new(false),
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

    /// Returns when the cluster has left, and nothing of the agent is needed any more.
    pub async fn until_left(&self) {
        // The sender is ours, so it cannot be gone.
        let _ = self.left.subscribe().wait_for(|left| *left).await;
    }

    pub(crate) fn set(&self, standing: Standing) {
        self.standing.send_if_modified(|before| {
            let changed = *before != standing;
            *before = standing;
            changed
        });
    }

    pub(super) fn is_released(&self) -> bool {
        *self.released.borrow()
    }

    pub(super) fn set_released(&self, released: bool) {
        self.released.send_replace(released);
    }

    pub(super) fn leave(&self) {
        self.left.send_replace(true);
    }
}
