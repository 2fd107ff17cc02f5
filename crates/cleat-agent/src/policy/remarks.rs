//! What is said to people who look at a policy: events that nobody waits for.
//!
//! They are written one policy after another, beside everything else. So compliance is known and
//! objects are put right as fast as that alone can go, when many policies have something to say at
//! once. What was not said when the process ends stays unsaid, as after a crash between a status and
//! its events; what hubs hear of a policy is not said here.

use cleat_core::write::{Action, Outcome};
use cleat_runtime::execute::Executor;
use cleat_runtime::tasks::Tasks;
use tokio::sync::mpsc::{self, error::TrySendError};

/// How many policies may have something to say. Who comes then says it alone.
const WAITING: usize = 512;

/// What one policy has to say, and as whom.
struct Said {
    field_manager: String,
    events: Vec<Action>,
}

pub(super) struct Remarks {
    executor: Executor,
    waiting: mpsc::Sender<Said>,
}

impl Remarks {
    pub(super) fn start(executor: Executor, tasks: &Tasks) -> Self {
        let (waiting, mut next) = mpsc::channel(WAITING);
        let (speaker, mut stop) = (executor.clone(), tasks.stop());
        tasks.spawn("remarks", async move {
            while let Some(Some(said)) = stop.or(next.recv()).await {
                if stop.or(say(&speaker, said)).await.is_none() {
                    return;
                }
            }
        });
        Self { executor, waiting }
    }

    /// Says it, or has it said later.
    pub(super) async fn say(&self, field_manager: String, events: Vec<Action>) {
        if events.is_empty() {
            return;
        }
        let said = Said { field_manager, events };
        match self.waiting.try_send(said) {
            Ok(()) => {}
            Err(TrySendError::Full(said) | TrySendError::Closed(said)) => {
                say(&self.executor, said).await;
            }
        }
    }
}

async fn say(executor: &Executor, said: Said) {
    let Said { field_manager, events } = said;
    let outcomes = executor.named(field_manager).execute([events]).await;
    let unsaid = outcomes.iter().flatten().filter(|outcome: &&Outcome| !outcome.is_done()).count();
    if unsaid > 0 {
        tracing::debug!(unsaid, "events about a policy could not be written");
    }
}
