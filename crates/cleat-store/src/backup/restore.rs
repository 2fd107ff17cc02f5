//! Putting backups into a file.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;

use super::Contents;
use crate::file::File;
use crate::{Backend as _, BackendError, Batch, Change, Effect, OpenError, Revision};

/// Why nothing was restored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RestoreError {
    #[error("cannot open the file to restore into")]
    Open(#[source] OpenError),
    #[error("there is a store {name:?} already, and it is not replaced")]
    Taken { name: String },
    #[error("two of the backups are of a store {name:?}")]
    Twice { name: String },
    #[error("{name:?} cannot name a store")]
    Name { name: String },
    #[error("cannot write what is restored")]
    Write(#[source] BackendError),
}

/// Puts backups into a file, creating it if there is none: all of them, or none. Blocks.
///
/// Each store continues at `least` or at its own revision, whichever is greater. Whoever kept a
/// revision from after the backup must not meet it again with another meaning, so `least` should be
/// beyond all that was ever handed out.
pub fn restore(
    path: impl AsRef<Path>,
    backups: Vec<Contents>,
    least: Revision,
) -> Result<(), RestoreError> {
    let mut stores: BTreeMap<Arc<str>, Vec<Change>> = BTreeMap::new();
    for Contents { name, revision, items } in backups {
        if name.is_empty() || name.contains('\0') {
            return Err(RestoreError::Name { name });
        }
        let changes = changes(items, revision.max(least));
        if stores.insert(name.as_str().into(), changes).is_some() {
            return Err(RestoreError::Twice { name });
        }
    }
    let mut file = File::open(path.as_ref()).map_err(RestoreError::Open)?;
    for name in stores.keys() {
        let found = file.load(name, &mut |_| {}).map_err(RestoreError::Write)?;
        if found.is_some() {
            return Err(RestoreError::Taken { name: name.to_string() });
        }
    }
    let number = file.settle().map_err(RestoreError::Write)? + 1;
    file.commit(&Batch { number, stores }).map_err(RestoreError::Write)
}

fn changes(items: Vec<super::Item>, revision: Revision) -> Vec<Change> {
    let put = |(bucket, key, entry)| Change { revision, bucket, key, effect: Effect::Put(entry) };
    // The last change says where the store continues. This one makes sure that there is one, also
    // where nothing else is restored; there is no such key to delete.
    let last = Change {
        revision,
        bucket: "restored".into(),
        key: "".into(),
        effect: Effect::Delete { last: Bytes::new() },
    };
    items.into_iter().map(put).chain([last]).collect()
}
