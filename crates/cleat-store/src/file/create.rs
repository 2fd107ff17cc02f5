//! Making a new file. It gets its name only once it is whole, so an empty or half-written file under
//! that name is always damage and never taken for a fresh start.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::format::FORMAT;
use super::{META, META_BATCH, META_FORMAT, RECORDS, REVISIONS, builder, open_error, redb_error};
use crate::OpenError;

pub(super) fn create(path: &Path) -> Result<(), OpenError> {
    let io_error = |source| OpenError::Io { path: path.to_owned(), source };
    let draft = draft_name(path);
    match fs::remove_file(&draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(io_error(error)),
        _ => {}
    }
    let database = builder().create(&draft).map_err(|error| open_error(path, error))?;
    fill(&database).map_err(|error| match error {
        redb::Error::Io(source) => io_error(source),
        // Nothing but the disk itself can be at fault here.
        other => io_error(io::Error::other(redb_error(other))),
    })?;
    drop(database);
    publish(&draft, path).map_err(io_error)
}

/// One per process: another that creates the same file at the same time works on its own.
fn draft_name(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    PathBuf::from(name)
}

pub(super) fn fill(database: &redb::Database) -> Result<(), redb::Error> {
    let write = database.begin_write()?;
    write.open_table(RECORDS)?;
    write.open_table(REVISIONS)?;
    {
        let mut meta = write.open_table(META)?;
        meta.insert(META_FORMAT, FORMAT)?;
        meta.insert(META_BATCH, 0)?;
    }
    Ok(write.commit()?)
}

/// Gives the draft its name without ever replacing a file that has appeared there meanwhile.
fn publish(draft: &Path, path: &Path) -> io::Result<()> {
    match fs::hard_link(draft, path) {
        Ok(()) => fs::remove_file(draft)?,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => fs::remove_file(draft)?,
        // Not every file system has hard links.
        Err(_) => fs::rename(draft, path)?,
    }
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::File::open(parent)?.sync_all()
}
