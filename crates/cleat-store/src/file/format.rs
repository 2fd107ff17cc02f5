//! The number of the format of a file, and the way from older formats to this one.
//!
//! A file of an older format is brought to the present one when it is opened, in one transaction: a
//! crash on the way leaves it as it was. A newer one is left alone. There is no way back; a backup is.

use redb::{Database, ReadableDatabase as _, WriteTransaction};

use super::{META, META_FORMAT};

/// Leads from one format to the next, inside a transaction that nobody sees before the last step.
pub(super) type Step = fn(&WriteTransaction) -> Result<(), redb::Error>;

/// The first leads from format 1 to format 2, and so on. One that was released never changes, since
/// files of the format it starts from exist; neither does the golden file of that format in `tests`.
pub(super) const STEPS: &[Step] = &[];

/// What this code writes.
pub(super) const FORMAT: u64 = reached_by(STEPS);

/// The format that the steps end in.
pub(super) const fn reached_by(steps: &[Step]) -> u64 {
    1 + steps.len() as u64
}

/// Brings a file of an older format to the one that the steps end in, wholly or not at all. Returns
/// the format that the file has then: another one if no step begins where it is.
pub(super) fn upgrade(database: &Database, steps: &[Step]) -> Result<u64, redb::Error> {
    let found = number(database)?;
    let taken = found.checked_sub(1).and_then(|taken| usize::try_from(taken).ok());
    let missing = taken.and_then(|taken| steps.get(taken..)).unwrap_or_default();
    if missing.is_empty() {
        return Ok(found);
    }
    let reached = reached_by(steps);
    let write = database.begin_write()?;
    for step in missing {
        step(&write)?;
    }
    write.open_table(META)?.insert(META_FORMAT, reached)?;
    write.commit()?;
    Ok(reached)
}

fn number(database: &Database) -> Result<u64, redb::Error> {
    let meta = database.begin_read()?.open_table(META)?;
    let found = meta.get(META_FORMAT)?.map(|number| number.value());
    found.ok_or_else(|| redb::Error::Corrupted("the number of its format is missing".to_owned()))
}
