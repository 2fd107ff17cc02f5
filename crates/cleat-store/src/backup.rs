//! A store as a stream of bytes that can be kept elsewhere and put into a file again.
//!
//! A backup is everything as of one revision, and nothing of the past. Taking one stops nobody: the
//! entries are shared with the store, not copied. It begins with what it is and in which format, so
//! that no version has to guess, and ends with a digest, so that one that was cut or changed is never
//! taken for whole.
//!
//! The format, numbers in big endian, texts and values after their length in 32 bits:
//!
//! ```text
//! "cleat-store\n"  format: u32  name  revision: u64
//! 1  bucket  key  created: u64  modified: u64  value      for every entry, in order
//! 0  count: u64  SHA-256 of all before it
//! ```

mod contents;
mod restore;

pub use contents::{Contents, ContentsError};
pub use restore::{RestoreError, restore};

use std::sync::Arc;

use bytes::{BufMut as _, Bytes, BytesMut};
use sha2::{Digest as _, Sha256};

use crate::{Entry, Revision};

/// What this code writes. It reads this and everything before it.
pub(crate) const FORMAT: u32 = 1;
pub(crate) const MAGIC: &[u8; 12] = b"cleat-store\n";
const ENTRY: u8 = 1;
const END: u8 = 0;
/// About how much is handed out at once.
const CHUNK: usize = 64 << 10;

/// One entry of a backup: its bucket and key, and itself.
pub(crate) type Item = (Arc<str>, Arc<str>, Entry);

/// The bytes of a backup, piece by piece.
pub struct Backup {
    name: Arc<str>,
    revision: Revision,
    items: std::vec::IntoIter<Item>,
    stage: Stage,
    count: u64,
    digest: Sha256,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Head,
    Items,
    Done,
}

impl Backup {
    pub(crate) fn new(name: Arc<str>, revision: Revision, items: Vec<Item>) -> Self {
        Self {
            name,
            revision,
            items: items.into_iter(),
            stage: Stage::Head,
            count: 0,
            digest: Sha256::new(),
        }
    }

    /// What it is a backup of: everything up to this revision.
    pub fn revision(&self) -> Revision {
        self.revision
    }
}

impl Iterator for Backup {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        let mut out = BytesMut::new();
        match self.stage {
            Stage::Done => return None,
            Stage::Head => {
                out.put_slice(MAGIC);
                out.put_u32(FORMAT);
                put(&mut out, self.name.as_bytes());
                out.put_u64(self.revision);
                self.stage = Stage::Items;
                self.digest.update(&out);
            }
            Stage::Items => {
                while out.len() < CHUNK {
                    let Some((bucket, key, entry)) = self.items.next() else {
                        self.stage = Stage::Done;
                        out.put_u8(END);
                        out.put_u64(self.count);
                        break;
                    };
                    self.count += 1;
                    out.put_u8(ENTRY);
                    put(&mut out, bucket.as_bytes());
                    put(&mut out, key.as_bytes());
                    out.put_u64(entry.created);
                    out.put_u64(entry.modified);
                    put(&mut out, &entry.value);
                }
                self.digest.update(&out);
                if self.stage == Stage::Done {
                    out.put_slice(&self.digest.clone().finalize());
                }
            }
        }
        Some(out.freeze())
    }
}

impl std::fmt::Debug for Backup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Backup")
            .field("name", &self.name)
            .field("revision", &self.revision)
            .finish()
    }
}

/// *Assumption*: nothing in a store is as large as 4 GiB, since redb takes nothing that large.
fn put(out: &mut BytesMut, bytes: &[u8]) {
    out.put_u32(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
    out.put_slice(bytes);
}
