//! Bodies of the fuzz targets: each takes any bytes and panics only if a promise is broken.
//!
//! `cargo fuzz` looks for such bytes (`fuzz/` at the root of the repository), and tests try the same
//! few thousand each time. Not for anybody else's use.

use sha2::{Digest as _, Sha256};

use crate::backup::{FORMAT, MAGIC};
use crate::{Backup, Contents, file};

/// A record of the file: one byte says where its key ends, the rest is key and value. What is read
/// is what would be written.
pub fn stored_record(bytes: &[u8]) {
    file::fuzzing::record(bytes);
}

/// Damage to a file, four bytes each: where, and what to change there. The file is refused, or holds
/// what it held.
pub fn stored_file(bytes: &[u8]) {
    file::fuzzing::damage(bytes);
}

/// A backup, as it is and as what stands between the head and the digest. What is read is what would
/// be written.
pub fn backup_format(bytes: &[u8]) {
    assert!(Contents::read(bytes).is_err() || bytes.starts_with(MAGIC), "a backup without a head");
    // Nobody finds the right digest by chance, so that it is given.
    let mut sealed = [&MAGIC[..], &FORMAT.to_be_bytes(), bytes].concat();
    let digest = Sha256::digest(&sealed);
    sealed.extend_from_slice(&digest);
    let Ok(contents) = Contents::read(&*sealed) else { return };
    let Contents { name, revision, items } = contents;
    let again: Vec<u8> = Backup::new(name.into(), revision, items).flatten().collect();
    assert_eq!(again, sealed, "what was read is written differently");
}
