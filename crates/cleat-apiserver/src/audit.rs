//! The audit log: who asked for what and what came of it, in Kubernetes' format
//! (`audit.k8s.io/v1`), as much of it as a policy says.
//!
//! An event is written before the request goes on: a log that lags behind would lack exactly what
//! came last. Rotating the file is left to those who do that for a living.

mod policy;
mod record;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

pub use policy::{Level, Policy, PolicyError};
pub(crate) use record::Record;

/// What is logged, and where.
#[derive(Clone)]
pub struct Audit {
    policy: Arc<Policy>,
    sink: Arc<dyn Sink>,
}

impl Audit {
    pub fn new(policy: Policy, sink: Arc<dyn Sink>) -> Self {
        Self { policy: Arc::new(policy), sink }
    }
}

/// Takes events, in the order in which they happen.
pub trait Sink: Send + Sync {
    fn write(&self, event: &Value);
}

/// A file of one event per line.
pub struct LogFile {
    file: Mutex<File>,
    failing: AtomicBool,
}

impl LogFile {
    /// Continues the file, creating it if there is none. It is for its owner's eyes.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt as _;
            options.mode(0o600);
        }
        Ok(Self { file: Mutex::new(options.open(path)?), failing: AtomicBool::new(false) })
    }
}

impl Sink for LogFile {
    fn write(&self, event: &Value) {
        let line = event.to_string() + "\n";
        let written = {
            let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
            // In one piece, so that a full disk leaves at most one line that is cut.
            file.write_all(line.as_bytes())
        };
        let failed = written.is_err();
        let failing = self.failing.swap(failed, Ordering::Relaxed);
        match written {
            Err(error) if !failing => {
                tracing::error!(
                    error = &error as &dyn std::error::Error,
                    "cannot write the audit log"
                );
            }
            Ok(()) if failing => tracing::warn!("the audit log can be written again"),
            _ => {}
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
