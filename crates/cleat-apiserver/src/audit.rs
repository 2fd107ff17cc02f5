//! The audit log: who asked for what and what came of it, in Kubernetes' format
//! (`audit.k8s.io/v1`), as much of it as a policy says.
//!
//! An event is written before the request goes on: a log that lags behind would lack exactly what
//! came last. Rotating the file is left to those who do that for a living.

mod file;
mod policy;
mod record;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use serde_json::Value;
use tokio::sync::oneshot;

pub use file::LogFile;
pub use policy::{Level, Policy, PolicyError};
pub(crate) use record::Record;

/// What is logged, and where.
#[derive(Clone)]
pub struct Audit {
    policy: Arc<Policy>,
    sink: Arc<dyn Sink>,
    written: Arc<AtomicU64>,
}

impl Audit {
    pub fn new(policy: Policy, sink: Arc<dyn Sink>) -> Self {
        Self { policy: Arc::new(policy), sink, written: Arc::default() }
    }

    /// How many events went into the log.
    pub(crate) fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    fn write(&self, event: &Value) -> Receipt {
        self.written.fetch_add(1, Ordering::Relaxed);
        self.sink.write(event)
    }
}

/// Takes events, in the order in which they happen.
pub trait Sink: Send + Sync {
    /// Puts an event in line and blocks nobody. The event is kept whether or not anybody waits for
    /// the receipt: one that is ending cannot.
    fn write(&self, event: &Value) -> Receipt;
}

/// Ready when an event has been written, or cannot be.
pub struct Receipt(Option<oneshot::Receiver<()>>);

impl Receipt {
    /// Of an event that has been written already.
    pub fn given() -> Self {
        Self(None)
    }

    /// Of one that will have been when something is sent, or nobody is left to send it.
    pub fn later(written: oneshot::Receiver<()>) -> Self {
        Self(Some(written))
    }
}

impl Future for Receipt {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        match &mut self.0 {
            Some(written) => Pin::new(written).poll(context).map(drop),
            None => Poll::Ready(()),
        }
    }
}

/// What those who handle a request want the log to say beside.
#[derive(Debug, Default)]
pub(crate) struct Notes(Mutex<BTreeMap<String, String>>);

impl Notes {
    /// A key that is there already stays as it is.
    pub(crate) fn add(&self, annotations: impl IntoIterator<Item = (String, String)>) {
        let mut notes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (key, value) in annotations {
            notes.entry(key).or_insert(value);
        }
    }

    fn all(&self) -> BTreeMap<String, String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
