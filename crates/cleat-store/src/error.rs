//! What can go wrong, one type per boundary: opening, writing, looking back, watching, the backend.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;

use crate::{Entry, Revision};

/// Why a disk or a store on it could not be opened. Never answered by an empty store instead.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    #[error("{} is in use by another process", path.display())]
    Locked { path: PathBuf },
    /// Written by a newer version of this code. It was not changed.
    #[error("{} has store format {found}, this version reads formats 1 to {known}", path.display())]
    Format { path: PathBuf, found: u64, known: u64 },
    /// Written by a version of redb that this one does not follow. A backup made with what wrote the
    /// file is the way over.
    #[error("{} has format {found} of redb, which this version does not read", path.display())]
    Engine { path: PathBuf, found: u8 },
    #[error("{} is damaged", path.display())]
    Damaged {
        path: PathBuf,
        #[source]
        source: BackendError,
    },
    #[error("cannot open {}", path.display())]
    Io {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("store {name:?} is already open")]
    AlreadyOpen { name: String },
    #[error("{name:?} cannot name a store")]
    Name { name: String },
    #[error("cannot load store {name:?}")]
    Load {
        name: String,
        #[source]
        source: BackendError,
    },
}

/// Why a write did not happen.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The key is not at what was expected. `current` is committed: reading again shows it or
    /// something newer.
    #[error("the key is not at the expected revision")]
    Conflict { current: Option<Entry> },
    /// The backend failed. The write is not there, except that a disk that breaks in the middle of
    /// a commit may turn out to have it once it works again.
    #[error("the store cannot write at the moment")]
    Unavailable(#[source] BackendError),
    #[error("{bucket:?} cannot name a bucket")]
    Bucket { bucket: String },
}

/// The wanted revision lies before what is remembered; `floor` is the oldest that still works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("history before revision {floor} is forgotten")]
pub struct Compacted {
    pub floor: Revision,
}

/// Why a watch ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WatchError {
    /// The watcher was too slow: events it had not taken yet are forgotten.
    #[error(transparent)]
    Compacted(#[from] Compacted),
    #[error("the store is closed")]
    Closed,
}

/// A failure below the store, shared by all the writes it fails.
#[derive(Clone)]
pub struct BackendError(Arc<dyn std::error::Error + Send + Sync>);

impl BackendError {
    pub fn new(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        BackendError(Arc::from(source.into()))
    }

    /// Runs a call into a backend. One that panics, as redb does on some damaged files, has failed
    /// like any other.
    pub(crate) fn from_panic<T>(call: impl FnOnce() -> T) -> Result<T, BackendError> {
        catch_unwind(AssertUnwindSafe(call)).map_err(|panic| {
            let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
            let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
            BackendError::new(format!("the backend panicked: {text}"))
        })
    }
}

impl fmt::Display for BackendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for BackendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for BackendError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source()
    }
}
