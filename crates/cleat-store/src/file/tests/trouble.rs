//! Disks that are full or cannot be written to, under a whole store: writes are refused with words
//! that say why, nothing that was answered is lost, reads go on, and so do writes once they can.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;

use bytes::Bytes;

use super::super::{File, format};
use super::platter::{Platter, Trouble};
use super::{fresh, opener};
use crate::{Disk, Entry, Expected, Limits, OpenError, Range, Store, WriteError};

const TROUBLES: [(Trouble, &str); 3] = [
    (Trouble::Full, "no storage space"),
    (Trouble::FullAtOnce, "no storage space"),
    (Trouble::ReadOnly, "read-only filesystem or storage medium"),
];

type Contents = BTreeMap<String, Entry>;

fn try_open(platter: &Platter) -> Result<Store, OpenError> {
    let file = File::on(Path::new("platter"), opener(platter), format::STEPS)?;
    Store::open(&Disk::with_backend(file).unwrap(), "s", Limits::default())
}

fn contents(store: &Store) -> Contents {
    let page = store.list(Range { bucket: "b", ..Range::default() }).unwrap();
    page.entries.into_iter().map(|(key, entry)| (key.to_string(), entry)).collect()
}

async fn put(store: &Store, key: &str) -> Result<Entry, WriteError> {
    store.put("b", key, Expected::Absent, |_| Bytes::from(key.repeat(5000))).await
}

/// An error with its causes, as people are shown it.
fn whole(error: &(dyn Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| (*error).source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

#[tokio::test]
async fn a_disk_in_trouble_refuses_writes_in_plain_words_and_loses_none() {
    for (trouble, words) in TROUBLES {
        let platter = fresh();
        let store = try_open(&platter).unwrap();
        let mut watch = store.watch("b", "", store.revision()).unwrap();
        let mut answered = Contents::new();
        for n in 0..5 {
            let key = format!("before{n}");
            let entry = put(&store, &key).await.unwrap();
            answered.insert(key, entry);
        }

        platter.trouble(Some(trouble));
        let mut refused = 0;
        for n in 0..60 {
            let key = format!("during{n}");
            match put(&store, &key).await {
                // There may be room left in what the file has already.
                Ok(entry) => drop(answered.insert(key, entry)),
                Err(error) => {
                    refused += 1;
                    assert!(matches!(error, WriteError::Unavailable(_)), "{error:?}");
                    let told = whole(&error);
                    assert!(told.contains(words), "{trouble:?}: {told}");
                }
            }
            assert!(contents(&store) == answered, "{trouble:?}");
        }
        assert!(refused > 20, "{trouble:?}: {refused}");

        platter.trouble(None);
        for n in 0..5 {
            let key = format!("after{n}");
            let revision = store.revision();
            let entry = put(&store, &key).await.unwrap();
            assert_eq!(entry.modified, revision + 1, "{trouble:?}: refused writes use up nothing");
            answered.insert(key, entry);
        }
        assert!(contents(&store) == answered, "{trouble:?}");
        let mut shown = 0;
        while watch.try_next().unwrap().is_some() {
            shown += 1;
        }
        assert_eq!(shown, answered.len(), "{trouble:?}: every key was written once, if at all");
        drop(store);
        assert!(contents(&try_open(&platter).unwrap()) == answered, "{trouble:?}: opened anew");
    }
}

#[tokio::test]
async fn a_file_that_cannot_be_written_to_is_not_called_damaged() {
    let platter = fresh();
    let store = try_open(&platter).unwrap();
    put(&store, "x").await.unwrap();
    let killed = platter.copy();
    drop(store);
    for disk in [platter, killed] {
        disk.trouble(Some(Trouble::ReadOnly));
        for _ in 0..2 {
            let error = try_open(&disk).map(drop).unwrap_err();
            assert!(matches!(error, OpenError::Io { .. }), "{error:?}");
            let told = whole(&error);
            assert_eq!(told, "cannot open platter: read-only filesystem or storage medium");
        }
        for full in [Trouble::Full, Trouble::FullAtOnce] {
            disk.trouble(Some(full));
            let opened = try_open(&disk).map(drop);
            assert!(matches!(opened, Ok(()) | Err(OpenError::Io { .. })), "{opened:?}");
        }
        disk.trouble(None);
        assert_eq!(contents(&try_open(&disk).unwrap()).len(), 1);
    }
}
