//! The backend on a file: redb holding the newest value of each key, and little else.
//!
//! Reads do not come here, so redb's cache is small. Commits use its single-sync mode; after an
//! unclean end redb verifies every page of the file when it is opened, and after a clean one we have
//! it verified. It keeps no past: that is the history's business.

mod create;
mod format;
pub(crate) mod fuzzing;
mod record;

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use redb::{Builder, Database, DatabaseError, ReadableDatabase, StorageError, TableDefinition};

use self::format::Step;
use crate::{Backend, BackendError, Batch, Effect, OpenError, Revision, Stored};

/// Pages read while a commit walks down the trees, and those it is about to write.
const CACHE_BYTES: usize = 4 << 20;

const RECORDS: TableDefinition<&[u8], &[u8]> = TableDefinition::new("records");
/// By name of the store.
const REVISIONS: TableDefinition<&[u8], u64> = TableDefinition::new("revisions");
const META: TableDefinition<&[u8], u64> = TableDefinition::new("meta");
const META_FORMAT: &[u8] = b"format";
const META_BATCH: &[u8] = b"batch";

pub(crate) struct File {
    database: Option<Database>,
    opener: Opener,
}

/// Opens what the file lies on, the same each time.
type Opener = Box<dyn Fn(&Builder) -> Result<Database, DatabaseError> + Send>;

impl File {
    /// Opens the file, creating it if there is none.
    pub(crate) fn open(path: &Path) -> Result<File, OpenError> {
        if !path.try_exists().map_err(|source| OpenError::Io { path: path.into(), source })? {
            create::create(path)?;
        }
        let owned = PathBuf::from(path);
        let opener = Box::new(move |builder: &Builder| builder.open(&owned));
        File::on(path, opener, format::STEPS)
    }

    /// Opens what is there, has all of it verified and brings it to the format that the steps end
    /// in. The path is only for what is said of it.
    fn on(path: &Path, opener: Opener, steps: &[Step]) -> Result<File, OpenError> {
        let damaged = |source| OpenError::Damaged { path: path.into(), source };
        let known = format::reached_by(steps);
        let opened = BackendError::from_panic(|| {
            let database = open_checked(&*opener)?;
            let found = format::upgrade(&database, steps)?;
            // What is not wanted is closed in here, because redb may panic then, too.
            Ok::<_, redb::Error>(if found == known { Ok(database) } else { Err(found) })
        });
        match opened.map_err(damaged)?.map_err(|error| open_error(path, error))? {
            Ok(database) => Ok(File { database: Some(database), opener }),
            Err(found) => Err(OpenError::Format { path: path.into(), found, known }),
        }
    }

    fn database(&self) -> Result<&Database, BackendError> {
        self.database.as_ref().ok_or_else(|| BackendError::new("the file is not open"))
    }

    fn meta(&self, key: &[u8]) -> Result<u64, BackendError> {
        let read = self.database()?.begin_read().map_err(redb_error)?;
        let table = read.open_table(META).map_err(redb_error)?;
        let found = table.get(key).map_err(redb_error)?;
        found.map(|value| value.value()).ok_or_else(|| BackendError::new("the file lacks its head"))
    }

    fn try_commit(&self, batch: &Batch) -> Result<(), redb::Error> {
        let Some(database) = &self.database else { return Err(redb::Error::DatabaseClosed) };
        let write = database.begin_write()?;
        {
            let mut records = write.open_table(RECORDS)?;
            let mut revisions = write.open_table(REVISIONS)?;
            let mut key = Vec::new();
            for (store, changes) in &batch.stores {
                for change in changes {
                    record::key(&mut key, store, &change.bucket, &change.key);
                    match &change.effect {
                        Effect::Put(entry) => {
                            let length = record::value_len(entry);
                            let mut slot = records.insert_reserve(&*key, length)?;
                            record::write_value(slot.as_mut(), entry);
                        }
                        Effect::Delete { .. } => drop(records.remove(&*key)?),
                    }
                }
                if let Some(newest) = changes.last() {
                    revisions.insert(store.as_bytes(), newest.revision)?;
                }
            }
            write.open_table(META)?.insert(META_BATCH, batch.number)?;
        }
        Ok(write.commit()?)
    }
}

impl Backend for File {
    fn load(
        &mut self,
        store: &str,
        each: &mut dyn FnMut(Stored<'_>),
    ) -> Result<Option<Revision>, BackendError> {
        let read = self.database()?.begin_read().map_err(redb_error)?;
        let revisions = read.open_table(REVISIONS).map_err(redb_error)?;
        let Some(revision) = revisions.get(store.as_bytes()).map_err(redb_error)? else {
            return Ok(None);
        };
        let records = read.open_table(RECORDS).map_err(redb_error)?;
        let (first, end) = record::keys_of(store);
        for item in records.range::<&[u8]>(&*first..&*end).map_err(redb_error)? {
            let (key, value) = item.map_err(redb_error)?;
            let record = record::read(store, key.value(), value.value())
                .ok_or_else(|| BackendError::new("a record of the file makes no sense"))?;
            each(record);
        }
        Ok(Some(revision.value()))
    }

    fn commit(&mut self, batch: &Batch) -> Result<(), BackendError> {
        self.try_commit(batch).map_err(|error| {
            // redb refuses all further writes after some failures; a fresh start serves them all.
            self.database = None;
            redb_error(error)
        })
    }

    fn settle(&mut self) -> Result<u64, BackendError> {
        if self.database.is_none() {
            self.database = Some((self.opener)(&builder()).map_err(redb_error)?);
        }
        self.meta(META_BATCH)
    }
}

fn builder() -> Builder {
    let mut builder = Builder::new();
    builder.set_cache_size(CACHE_BYTES);
    builder
}

/// Opens an existing file and has every page of it verified.
fn open_checked(
    opener: &dyn Fn(&Builder) -> Result<Database, DatabaseError>,
) -> Result<Database, DatabaseError> {
    let repaired = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&repaired);
    let mut builder = builder();
    builder.set_repair_callback(move |_| seen.store(true, Ordering::Relaxed));
    let mut database = opener(&builder)?;
    // Without a repair the last commit is that of a shutdown, made in two phases, and redb does not
    // go behind such a one: pages that do not match their checksums are an error. What it may have
    // to mend, if the shutdown was cut short after that commit, is which pages are free. It has to
    // find nothing more then.
    let mut sound = repaired.load(Ordering::Relaxed);
    for _ in 0..2 {
        sound = sound || database.check_integrity()?;
    }
    if !sound {
        let text = "it cannot be told which pages are in use".to_owned();
        return Err(StorageError::Corrupted(text).into());
    }
    Ok(database)
}

fn open_error(path: &Path, error: impl Into<redb::Error>) -> OpenError {
    let path = path.to_owned();
    match error.into() {
        redb::Error::DatabaseAlreadyOpen => OpenError::Locked { path },
        redb::Error::UpgradeRequired(found) => OpenError::Engine { path, found },
        redb::Error::Io(source)
            // How redb tells of a file that is none of its own, or too short.
            if !matches!(source.kind(), ErrorKind::InvalidData | ErrorKind::UnexpectedEof) =>
        {
            OpenError::Io { path, source }
        }
        error @ redb::Error::PreviousIo => {
            OpenError::Io { path, source: io::Error::other(redb_error(error)) }
        }
        other => OpenError::Damaged { path, source: redb_error(other) },
    }
}

fn redb_error(error: impl Into<redb::Error>) -> BackendError {
    BackendError::new(error.into())
}

#[cfg(test)]
mod tests;
