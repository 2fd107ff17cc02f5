//! A revisioned, durable, watchable key-value store. It knows bytes, not Kubernetes.
//!
//! Keys live in buckets. Every write raises one revision per [`Store`], can be made conditional on
//! the revision last seen ([`Expected`]), and is shown to every [`Watch`] of its bucket in order.
//! A write that was answered survives `kill -9`; one that was not is wholly there or not at all.
//!
//! All reads come from memory. A [`Disk`] holds the newest value of each key of all its stores in
//! one file, and one thread commits whatever writes are waiting with one sync. The recent past, for
//! watches and for lists at an older revision, is kept in memory only, bounded by [`Limits`].
//!
//! ```
//! # use cleat_store::{Expected, Limits, Range, Store};
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! let store = Store::in_memory(Limits::default());
//! let mut watch = store.watch("configmaps", "default/", store.revision())?;
//! let entry = store
//!     .put("configmaps", "default/a", Expected::Absent, |revision| format!("{revision}").into())
//!     .await?;
//! store.delete("configmaps", "default/a", Expected::Revision(entry.modified), |_| entry.value.clone()).await?;
//!
//! let then = Range { bucket: "configmaps", at: Some(entry.modified), ..Range::default() };
//! assert_eq!(store.list(then)?.entries.len(), 1);
//! assert_eq!(watch.next().await?.revision, 2);
//! assert_eq!(watch.next().await?.revision, 3);
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```
//!
//! What is deliberately absent: transactions over several keys, values of the past on disk, leases,
//! and any meaning of a key beyond its prefix.

mod backend;
mod backup;
mod bucket;
mod committer;
mod disk;
mod entry;
mod error;
mod file;
#[doc(hidden)]
pub mod fuzzing;
mod history;
mod interest;
mod pending;
mod queue;
mod range;
mod shared;
mod state;
mod store;
mod watch;

pub use backend::{Backend, Batch, Change, Effect, Stored};
pub use backup::{Backup, Contents, ContentsError, RestoreError, restore};
pub use disk::Disk;
pub use entry::{Entry, Expected, Revision};
pub use error::{BackendError, Compacted, OpenError, WatchError, WriteError};
pub use history::Limits;
pub use range::{Page, Range};
pub use store::Store;
pub use watch::{Event, EventKind, Watch};
