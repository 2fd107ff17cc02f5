//! The tasks of a process: each has a name, all end together, and none is forgotten.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tracing::Instrument as _;

/// Whoever holds this is told when to end. Its clones tell the same.
#[derive(Clone, Debug)]
pub struct Stop {
    stopped: watch::Receiver<bool>,
}

impl Stop {
    /// Waits until it is time to end.
    pub async fn stopped(&mut self) {
        // Tasks that are gone cannot ask anybody to go on.
        let _ = self.stopped.wait_for(|stopped| *stopped).await;
    }

    pub fn is_stopped(&self) -> bool {
        *self.stopped.borrow() || self.stopped.has_changed().is_err()
    }

    /// What `future` gives, or nothing if it is time to end first.
    pub async fn or<T>(&mut self, future: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.stopped() => None,
            value = future => Some(value),
        }
    }
}

/// Tasks that are ended and awaited together. Its clones are the same.
///
/// Guarantees: after [`shutdown`](Self::shutdown) returned, no task of it runs, and none begins.
#[derive(Clone)]
pub struct Tasks {
    stop: Arc<watch::Sender<bool>>,
    running: Arc<Mutex<Running>>,
}

#[derive(Default)]
struct Running {
    tasks: Vec<(&'static str, JoinHandle<()>)>,
    closed: bool,
}

impl Default for Tasks {
    fn default() -> Self {
        Self::new()
    }
}

impl Tasks {
    pub fn new() -> Self {
        Self { stop: Arc::new(watch::Sender::new(false)), running: Arc::default() }
    }

    pub fn stop(&self) -> Stop {
        Stop { stopped: self.stop.subscribe() }
    }

    /// Starts a task. It must end when its [`Stop`] says so; one that comes too late never begins.
    pub fn spawn(&self, name: &'static str, future: impl Future<Output = ()> + Send + 'static) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if running.closed {
            return;
        }
        running.tasks.retain(|(_, task)| !task.is_finished());
        let span = tracing::info_span!("task", name);
        running.tasks.push((name, tokio::spawn(future.instrument(span))));
    }

    /// Tells all tasks to end, and waits until they did.
    pub async fn shutdown(&self) {
        self.stop.send_replace(true);
        loop {
            let tasks = {
                let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
                running.closed = true;
                std::mem::take(&mut running.tasks)
            };
            if tasks.is_empty() {
                return;
            }
            for (name, task) in tasks {
                if let Err(error) = task.await {
                    tracing::error!(name, %error, "a task failed");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[tokio::test]
    async fn shutdown_waits_for_every_task_and_lets_none_begin() {
        let tasks = Tasks::new();
        let ended = Arc::new(AtomicUsize::new(0));
        for _ in 0..10 {
            let (mut stop, ended) = (tasks.stop(), Arc::clone(&ended));
            tasks.spawn("waits", async move {
                stop.stopped().await;
                tokio::task::yield_now().await;
                ended.fetch_add(1, Ordering::SeqCst);
            });
        }
        assert!(!tasks.stop().is_stopped());
        tasks.shutdown().await;
        assert_eq!(ended.load(Ordering::SeqCst), 10);
        assert!(tasks.stop().is_stopped());
        tasks.spawn("late", async { panic!("began") });
        tasks.shutdown().await;
    }

    #[tokio::test]
    async fn who_waits_for_something_else_is_told_too() {
        let tasks = Tasks::new();
        let mut stop = tasks.stop();
        assert_eq!(stop.or(async { 7 }).await, Some(7));
        tasks.spawn("ends early", async {});
        tasks.shutdown().await;
        assert_eq!(stop.or(std::future::pending::<u8>()).await, None);
        drop(tasks);
        assert!(stop.is_stopped());
        stop.stopped().await;
    }
}
