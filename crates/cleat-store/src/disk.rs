//! A disk: one file (or another backend) and one committer thread, shared by several stores.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;

use crate::committer::Committer;
use crate::file::File;
use crate::queue::{Item, Job, Queue};
use crate::state::State;
use crate::{Backend, BackendError, Limits, OpenError};

/// A cheap handle. The file is let go of, with all that was accepted written, when the last handle
/// and the last store on it are dropped; that drop waits for the last commit.
#[derive(Clone)]
pub struct Disk(Arc<Owner>);

impl Disk {
    /// Opens the file, or creates it. Blocks.
    pub fn open(path: impl AsRef<Path>) -> Result<Disk, OpenError> {
        let path = path.as_ref();
        let damaged = |source| OpenError::Damaged { path: path.to_owned(), source };
        let file = File::open(path)?;
        Disk::start(file, Some(path.to_owned())).map_err(damaged)
    }

    /// On anything that can keep bytes; for tests that break it on purpose.
    pub fn with_backend(backend: impl Backend) -> Result<Disk, BackendError> {
        Disk::start(backend, None)
    }

    /// How many bytes the file takes; nothing if there is no file, or none that can be looked at.
    pub fn size(&self) -> Option<u64> {
        let path = self.0.path.as_ref()?;
        std::fs::metadata(path).ok().map(|found| found.len())
    }

    fn start(backend: impl Backend, path: Option<PathBuf>) -> Result<Disk, BackendError> {
        let queue = Arc::new(Queue::default());
        let committer = Committer::new(backend, Arc::clone(&queue))?;
        let thread = std::thread::Builder::new()
            .name("store-commit".into())
            .spawn(move || committer.run())
            .map_err(BackendError::new)?;
        Ok(Disk(Arc::new(Owner { queue, opened: Mutex::default(), path, thread: Some(thread) })))
    }

    /// Reads a store into memory, after everything that was written to it before.
    pub(crate) fn load(&self, name: &Arc<str>, limits: Limits) -> Result<State, OpenError> {
        if name.is_empty() || name.contains('\0') {
            return Err(OpenError::Name { name: name.to_string() });
        }
        if !self.opened().insert(Arc::clone(name)) {
            return Err(OpenError::AlreadyOpen { name: name.to_string() });
        }
        let (reply, answer) = mpsc::sync_channel(1);
        self.0.queue.push(Item::Load { name: Arc::clone(name), limits, reply });
        let loaded = answer
            .recv()
            .unwrap_or_else(|_| Err(BackendError::new("the disk stopped while loading")));
        loaded.map_err(|source| {
            self.release(name);
            OpenError::Load { name: name.to_string(), source }
        })
    }

    pub(crate) fn release(&self, name: &str) {
        self.opened().remove(name);
    }

    pub(crate) fn submit(&self, job: Job) {
        self.0.queue.push(Item::Write(job));
    }

    fn opened(&self) -> std::sync::MutexGuard<'_, BTreeSet<Arc<str>>> {
        self.0.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Disk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Disk").finish_non_exhaustive()
    }
}

struct Owner {
    queue: Arc<Queue>,
    /// Two stores of one name would each believe to know the newest state.
    opened: Mutex<BTreeSet<Arc<str>>>,
    path: Option<PathBuf>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.queue.close();
        if let Some(thread) = self.thread.take() {
            // The committer catches what the backend throws; there is nothing to pass on.
            let _ = thread.join();
        }
    }
}
