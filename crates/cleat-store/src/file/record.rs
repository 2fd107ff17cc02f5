//! How records lie in the file. Keys: store, bucket and key, the first two ended by a zero byte, so
//! that they sort by store, then bucket, then key. Values: two revisions, then the bytes.

use crate::{Entry, Revision, Stored};

const REVISION_BYTES: usize = size_of::<Revision>();

/// *Assumption*: neither store nor bucket contains a zero byte; both are checked on the way in.
pub(super) fn key(out: &mut Vec<u8>, store: &str, bucket: &str, key: &str) {
    out.clear();
    for (part, end) in [(store, &b"\0"[..]), (bucket, b"\0"), (key, b"")] {
        out.extend_from_slice(part.as_bytes());
        out.extend_from_slice(end);
    }
}

/// The first possible key of a store and the first one behind all of them.
pub(super) fn keys_of(store: &str) -> (Vec<u8>, Vec<u8>) {
    ([store.as_bytes(), b"\0"].concat(), [store.as_bytes(), b"\x01"].concat())
}

pub(super) fn value_len(entry: &Entry) -> usize {
    2 * REVISION_BYTES + entry.value.len()
}

/// `out` has exactly `value_len` bytes.
pub(super) fn write_value(out: &mut [u8], entry: &Entry) {
    let head = entry.created.to_be_bytes().into_iter().chain(entry.modified.to_be_bytes());
    for (slot, byte) in out.iter_mut().zip(head) {
        *slot = byte;
    }
    if let Some(rest) = out.get_mut(2 * REVISION_BYTES..).filter(|r| r.len() == entry.value.len()) {
        rest.copy_from_slice(&entry.value);
    }
}

pub(super) fn read<'a>(store: &str, key: &'a [u8], value: &'a [u8]) -> Option<Stored<'a>> {
    let rest = key.strip_prefix(store.as_bytes())?.strip_prefix(b"\0")?;
    let (bucket, key) = std::str::from_utf8(rest).ok()?.split_once('\0')?;
    let (created, value) = value.split_first_chunk::<REVISION_BYTES>()?;
    let (modified, value) = value.split_first_chunk::<REVISION_BYTES>()?;
    let (created, modified) =
        (Revision::from_be_bytes(*created), Revision::from_be_bytes(*modified));
    Some(Stored { bucket, key, created, modified, value })
}
