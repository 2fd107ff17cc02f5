//! A small file of each format there ever was, as it was written then. Whatever becomes of this code
//! and of redb, they open and hold what they held.
//!
//! The one of the present format is made, once and for all, by
//!
//! ```text
//! CLEAT_STORE_GOLDEN=write cargo test -p cleat-store --lib golden
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use super::super::{File, format};
use crate::{Backend as _, Batch, Change, Disk, Effect, Entry, Limits, Range, Revision, Store};

const WRITE: &str = "CLEAT_STORE_GOLDEN";
const LAST_BATCH: u64 = 3;

fn path_of(number: u64) -> PathBuf {
    let name = format!("tests/golden/store-format-{number}.redb");
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn put(bucket: &str, key: &str, created: Revision, revision: Revision, value: &[u8]) -> Change {
    let entry = Entry { created, modified: revision, value: Bytes::copy_from_slice(value) };
    Change { revision, bucket: bucket.into(), key: key.into(), effect: Effect::Put(entry) }
}

/// Two stores, several buckets, an old key, a deleted one, one that is no ASCII, values from nothing
/// to more than a page.
fn batches() -> Vec<Batch> {
    let gone = Change {
        revision: 6,
        bucket: "/configmaps".into(),
        key: "default/gone".into(),
        effect: Effect::Delete { last: Bytes::new() },
    };
    let first = vec![
        put("/configmaps", "default/a", 2, 2, b"one"),
        put("/configmaps", "default/gone", 3, 3, b"soon"),
    ];
    let second = vec![
        put("/configmaps", "default/a", 2, 4, b"two"),
        put("apps/deployments", "größe/ß", 5, 5, &[0xff; 5000]),
        gone,
    ];
    let other = vec![put("/namespaces", "default", 2, 2, b"")];
    let stores: [BTreeMap<Arc<str>, Vec<Change>>; 3] = [
        BTreeMap::from([("hub".into(), first)]),
        BTreeMap::from([("cluster1".into(), other), ("hub".into(), second)]),
        // Revisions after a restore are this large.
        BTreeMap::from([("far".into(), vec![put("b", "k", 7, 1_700_000_000_000_000, b"far")])]),
    ];
    (1..).zip(stores).map(|(number, stores)| Batch { number, stores }).collect()
}

/// By store: its revision and what is in it, in words.
fn contents(disk: &Disk) -> Vec<String> {
    let mut lines = Vec::new();
    for name in ["cluster1", "far", "hub", "never"] {
        let store = Store::open(disk, name, Limits::default()).unwrap();
        lines.push(format!("{name} at {}", store.revision()));
        for bucket in store.buckets() {
            let page = store.list(Range { bucket: &bucket, ..Range::default() }).unwrap();
            for (key, entry) in page.entries {
                let Entry { created, modified, value } = entry;
                let shown = match value.len() {
                    0..10 => format!("{value:?}"),
                    length => format!("{length} times {}", value[0]),
                };
                lines.push(format!("{name} {bucket} {key} {created} {modified} {shown}"));
            }
        }
    }
    lines
}

const EXPECTED: [&str; 8] = [
    "cluster1 at 2",
    "cluster1 /namespaces default 2 2 b\"\"",
    "far at 1700000000000000",
    "far b k 7 1700000000000000 b\"far\"",
    "hub at 6",
    "hub /configmaps default/a 2 4 b\"two\"",
    "hub apps/deployments größe/ß 5 5 5000 times 255",
    "never at 1",
];

#[test]
fn files_of_every_format_are_opened_and_hold_what_they_held() {
    if std::env::var_os(WRITE).is_some() {
        write(&path_of(format::FORMAT));
    }
    let dir = tempfile::tempdir().unwrap();
    for number in 1..=format::FORMAT {
        let golden = path_of(number);
        let bytes = fs::read(&golden).unwrap_or_else(|error| {
            panic!("{}: {error}; {WRITE}=write makes that of the present", golden.display())
        });
        // Opening a file writes to it.
        let path = dir.path().join(format!("{number}.redb"));
        fs::write(&path, bytes).unwrap();
        for _ in 0..2 {
            let disk = Disk::open(&path).unwrap();
            assert_eq!(contents(&disk), EXPECTED, "format {number}");
        }
        assert_eq!(File::open(&path).unwrap().settle().unwrap(), LAST_BATCH, "format {number}");
    }
}

#[test]
fn a_new_file_holds_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data.redb");
    write(&path);
    assert_eq!(contents(&Disk::open(&path).unwrap()), EXPECTED);
}

fn write(path: &Path) {
    assert!(!path.exists(), "{} is there, and stays as it is", path.display());
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut file = File::open(path).unwrap();
    for batch in batches() {
        file.commit(&batch).unwrap();
    }
}
