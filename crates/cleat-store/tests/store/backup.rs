//! Backups: what is taken is what was there, and nothing but a whole one is put back.

use bytes::Bytes;
use cleat_store::{Contents, ContentsError, Disk, Expected, Limits, RestoreError, Store, restore};
use proptest::prelude::*;

use crate::ram::Ram;

fn value(text: &str) -> impl FnOnce(u64) -> Bytes + '_ {
    move |_| Bytes::copy_from_slice(text.as_bytes())
}

fn bytes_of(store: &Store) -> Vec<u8> {
    store.backup().flatten().collect()
}

/// A store with a little of everything: two buckets, an old key, a deleted one, a large value.
async fn filled() -> Store {
    let store = Store::in_memory(Limits::default());
    store.put("a", "x", Expected::Absent, value("one")).await.unwrap();
    store.put("a", "x", Expected::Any, value("two")).await.unwrap();
    store.put("a", "gone", Expected::Any, value("soon")).await.unwrap();
    store.delete("a", "gone", Expected::Any, value("")).await.unwrap();
    store.put("b", "ns/large", Expected::Any, value(&"l".repeat(200_000))).await.unwrap();
    store.put("b", "ns/empty", Expected::Any, value("")).await.unwrap();
    store
}

/// The same bytes under the name of a store, which those in memory have none of.
fn named(name: &str, backup: &[u8]) -> Contents {
    let mut contents = Contents::read(backup).unwrap();
    contents.name = name.to_owned();
    contents
}

#[tokio::test]
async fn what_was_taken_is_what_is_put_back() {
    let store = filled().await;
    let backup = bytes_of(&store);
    let contents = Contents::read(&*backup).unwrap();
    assert_eq!((contents.revision, contents.len()), (store.revision(), 3));

    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data.redb");
    restore(&path, vec![named("hub", &backup), named("other", &backup)], 0).unwrap();
    let disk = Disk::open(&path).unwrap();
    for name in ["hub", "other"] {
        let found = Store::open(&disk, name, Limits::default()).unwrap();
        assert_eq!(found.revision(), store.revision());
        assert_eq!(found.buckets(), store.buckets());
        for (bucket, key) in [("a", "x"), ("a", "gone"), ("b", "ns/large"), ("b", "ns/empty")] {
            assert_eq!(found.get(bucket, key), store.get(bucket, key), "{bucket} {key}");
        }
        let entry = found.put("a", "new", Expected::Absent, value("more")).await.unwrap();
        assert_eq!(entry.modified, store.revision() + 1);
    }
}

#[tokio::test]
async fn a_backup_is_of_one_moment() {
    let store = filled().await;
    let backup = store.backup();
    let revision = store.revision();
    store.put("a", "late", Expected::Any, value("late")).await.unwrap();
    store.delete("a", "x", Expected::Any, value("")).await.unwrap();
    let contents = Contents::read(&*backup.flatten().collect::<Vec<u8>>()).unwrap();
    assert_eq!((contents.revision, contents.len()), (revision, 3));
}

#[tokio::test]
async fn revisions_that_were_handed_out_after_it_do_not_come_again() {
    let backup = bytes_of(&filled().await);
    let nothing = bytes_of(&Store::in_memory(Limits::default()));
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data.redb");
    restore(&path, vec![named("hub", &backup), named("empty", &nothing)], 1_000_000).unwrap();
    let disk = Disk::open(&path).unwrap();
    for name in ["hub", "empty"] {
        let found = Store::open(&disk, name, Limits::default()).unwrap();
        assert_eq!(found.revision(), 1_000_000);
        let entry = found.put("a", "x", Expected::Any, value("new")).await.unwrap();
        assert_eq!(entry.modified, 1_000_001);
    }
}

#[tokio::test]
async fn nothing_is_replaced_and_nothing_is_left_half_done() {
    let backup = bytes_of(&filled().await);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data.redb");
    restore(&path, vec![named("hub", &backup)], 0).unwrap();
    let both = vec![named("new", &backup), named("hub", &backup)];
    let refused = restore(&path, both, 0);
    assert!(matches!(refused, Err(RestoreError::Taken { name }) if name == "hub"));
    let twice = vec![named("new", &backup), named("new", &backup)];
    assert!(matches!(restore(&path, twice, 0), Err(RestoreError::Twice { .. })));
    let unnamed = vec![named("", &backup)];
    assert!(matches!(restore(&path, unnamed, 0), Err(RestoreError::Name { .. })));
    let disk = Disk::open(&path).unwrap();
    let locked = restore(&path, vec![named("third", &backup)], 0);
    assert!(matches!(locked, Err(RestoreError::Open(_))));
    assert_eq!(Store::open(&disk, "new", Limits::default()).unwrap().revision(), 1);
}

#[tokio::test]
async fn one_that_is_cut_or_changed_is_no_backup() {
    let store = Store::in_memory(Limits::default());
    store.put("a", "x", Expected::Absent, value("one")).await.unwrap();
    let backup = bytes_of(&store);
    for end in 0..backup.len() {
        assert!(Contents::read(&backup[..end]).is_err(), "cut at {end}");
    }
    for place in 0..backup.len() {
        let mut changed = backup.clone();
        changed[place] ^= 1;
        assert!(Contents::read(&*changed).is_err(), "changed at {place}");
    }
    let longer = [&*backup, b"!"].concat();
    assert!(matches!(Contents::read(&*longer), Err(ContentsError::Damaged(_))));
    assert!(matches!(Contents::read(&b"something else"[..]), Err(ContentsError::Foreign)));
    let mut newer = backup.clone();
    newer[15] = 2;
    let read = Contents::read(&*newer);
    assert!(matches!(read, Err(ContentsError::Format { found: 2, known: 1 })));
}

/// A backup as the first format was written: it is readable for ever.
const FIRST: &[u8] = include_bytes!("../golden/backup-format-1");

#[tokio::test]
async fn the_first_format_is_read_and_written() {
    let disk = Disk::with_backend(Ram::default()).unwrap();
    let store = Store::open(&disk, "hub", Limits::default()).unwrap();
    let all = |_: u64| (0..=255u8).collect::<Bytes>();
    store.put("a", "x", Expected::Absent, value("one")).await.unwrap();
    store.put("a", "x", Expected::Any, value("two")).await.unwrap();
    store.put("b", "ns/é", Expected::Absent, all).await.unwrap();
    store.put("b", "ns/empty", Expected::Absent, value("")).await.unwrap();
    store.put("a", "gone", Expected::Absent, value("soon")).await.unwrap();
    store.delete("a", "gone", Expected::Any, value("")).await.unwrap();
    // Other bytes are another format, and another format has another number and file.
    assert_eq!(bytes_of(&store), FIRST);

    let contents = Contents::read(FIRST).unwrap();
    assert_eq!((&*contents.name, contents.revision, contents.len()), ("hub", 7, 3));
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data.redb");
    restore(&path, vec![contents], 0).unwrap();
    let disk = Disk::open(&path).unwrap();
    let restored = Store::open(&disk, "hub", Limits::default()).unwrap();
    assert_eq!(bytes_of(&restored), FIRST);
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = Contents::read(&*bytes);
        let _ = Contents::read(&*[&b"cleat-store\n\0\0\0\x01"[..], &bytes[..]].concat());
    }
}
