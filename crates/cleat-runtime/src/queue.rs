//! Keys that want attention, and the tasks that give it to them.
//!
//! A key says that something may have changed, never what: whoever handles it looks afresh. So keys
//! are not counted, and one that is added while it is being handled is handled once more.

mod schedule;

use std::collections::HashMap;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use self::schedule::Schedule;

/// When to look at a key again, once it was handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// When somebody adds it.
    OnChange,
    /// The same, or after this long.
    After(Duration),
}

/// A queue of keys. Its clones are the same queue.
///
/// Guarantees: a key is never handled twice at the same time; one that is added after its handling
/// began is handled again; of several deadlines of a key the earliest counts; keys are handled in
/// the order in which they became due. An idle queue has no timer.
pub struct Queue<K> {
    shared: Arc<Shared<K>>,
}

struct Shared<K> {
    schedule: Mutex<Schedule<K>>,
    changed: Notify,
}

impl<K> Clone for Queue<K> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<K: Ord + Clone> Default for Queue<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Ord + Clone> Queue<K> {
    pub fn new() -> Self {
        let schedule = Mutex::new(Schedule::new());
        Self { shared: Arc::new(Shared { schedule, changed: Notify::new() }) }
    }

    /// Wants attention now.
    pub fn add(&self, key: K) {
        let news = self.schedule().add(key);
        self.tell(news);
    }

    /// Wants attention after a while, unless it gets it sooner.
    pub fn add_after(&self, key: K, delay: Duration) {
        let news = self.schedule().add_at(key, later(delay));
        self.tell(news);
    }

    /// Nothing more is begun. [`run`] returns when what is under way has ended.
    pub fn close(&self) {
        self.schedule().close();
        self.tell(true);
    }

    /// How many keys are due or being handled.
    pub fn busy(&self) -> usize {
        self.schedule().busy()
    }

    fn tell(&self, news: bool) {
        if news {
            self.shared.changed.notify_one();
        }
    }

    fn schedule(&self) -> MutexGuard<'_, Schedule<K>> {
        self.shared.schedule.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How long a key rests whose handling panicked.
const AFTER_PANIC: Duration = Duration::from_secs(10);

/// Handles keys, up to `workers` at the same time, until the queue is closed.
///
/// There is one such loop per queue. Dropping it ends what is under way.
pub async fn run<K, F>(queue: Queue<K>, workers: usize, mut handle: impl FnMut(K) -> F)
where
    K: Ord + Clone + Send + 'static,
    F: Future<Output = Wake> + Send + 'static,
{
    let mut tasks = JoinSet::new();
    let mut under_way = HashMap::new();
    let changed = queue.shared.changed.notified();
    let mut changed = pin!(changed);
    loop {
        // Registered before looking, so that no change between the look and the wait is missed.
        changed.as_mut().enable();
        let mut deadline = None;
        while tasks.len() < workers.max(1) {
            let (due, next) = queue.schedule().take(Instant::now());
            deadline = next;
            let Some(key) = due else { break };
            let task = tasks.spawn(handle(key.clone()));
            under_way.insert(task.id(), key);
        }
        if tasks.is_empty() && queue.schedule().is_closed() {
            return;
        }
        let alarm = async {
            match deadline {
                Some(deadline) => sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            Some(ended) = tasks.join_next_with_id() => {
                let (id, wake) = match ended {
                    Ok((id, wake)) => (id, wake),
                    Err(error) => {
                        tracing::error!(%error, "handling a key failed");
                        (error.id(), Wake::After(AFTER_PANIC))
                    }
                };
                if let Some(key) = under_way.remove(&id) {
                    let again = match wake {
                        Wake::OnChange => None,
                        Wake::After(delay) => Some(later(delay)),
                    };
                    queue.schedule().finish(&key, again);
                }
            }
            () = changed.as_mut() => changed.set(queue.shared.changed.notified()),
            () = alarm => {}
        }
    }
}

/// A clock has an end; what would be beyond it is far enough away at a year.
fn later(delay: Duration) -> Instant {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);
    Instant::now() + delay.min(YEAR)
}

#[cfg(test)]
mod tests;
