//! Disks that fail and come back: nothing is lost, nothing half-done shows, and it works again.

use bytes::Bytes;
use cleat_store::{Disk, Expected, Limits, OpenError, Store, WriteError};

use crate::ram::{Next, Ram};

fn value(text: &'static str) -> impl FnOnce(u64) -> Bytes {
    move |_| Bytes::from_static(text.as_bytes())
}

fn unavailable<T: std::fmt::Debug>(answer: Result<T, WriteError>) {
    assert!(matches!(answer, Err(WriteError::Unavailable(_))), "{answer:?}");
}

#[tokio::test]
async fn a_full_disk_fails_writes_and_works_again_once_it_has_room() {
    let ram = Ram::default();
    let disk = Disk::with_backend(ram.clone()).unwrap();
    let store = Store::open(&disk, "s", Limits::default()).unwrap();
    let mut watch = store.watch("a", "", 1).unwrap();
    store.put("a", "x", Expected::Absent, value("1")).await.unwrap();

    for next in [Next::Fail, Next::Panic, Next::Fail] {
        ram.next(next);
        unavailable(store.put("a", "x", Expected::Revision(2), value("lost")).await);
        assert_eq!(store.get("a", "x").unwrap().value, "1");
        assert_eq!(store.revision(), 2);
    }
    ram.inner().dead = true;
    unavailable(store.put("a", "y", Expected::Absent, value("lost")).await);
    unavailable(store.delete("a", "x", Expected::Any, value("lost")).await);
    ram.inner().dead = false;

    // The revisions of the failed writes were never used up.
    let entry = store.put("a", "x", Expected::Revision(2), value("2")).await.unwrap();
    assert_eq!(entry.modified, 3);
    assert_eq!(watch.next().await.unwrap().value, "1");
    assert_eq!(watch.next().await.unwrap().value, "2");
    assert_eq!(ram.inner().records.len(), 1);
}

#[tokio::test]
async fn writes_on_top_of_a_failed_one_fail_with_it() {
    let ram = Ram::default();
    let disk = Disk::with_backend(ram.clone()).unwrap();
    let store = Store::open(&disk, "s", Limits::default()).unwrap();
    let other = Store::open(&disk, "other", Limits::default()).unwrap();
    ram.inner().held = true;
    ram.next(Next::Fail);

    let first = tokio::spawn({
        let store = store.clone();
        async move { store.put("a", "x", Expected::Absent, value("first")).await }
    });
    while !ram.inner().waiting {
        tokio::task::yield_now().await;
    }
    // Accepted, because the write before it is on its way; refused as a conflict for the same reason.
    let on_top = store.put("a", "x", Expected::Revision(2), value("on top"));
    let conflicting = store.put("a", "x", Expected::Absent, value("conflict"));
    let elsewhere = other.put("a", "x", Expected::Absent, value("elsewhere"));
    let release = async { ram.release() };
    let (on_top, conflicting, elsewhere, ()) =
        tokio::join!(on_top, conflicting, elsewhere, release);
    unavailable(first.await.unwrap());
    unavailable(on_top);
    unavailable(conflicting);
    assert_eq!(elsewhere.unwrap().modified, 2);
    assert_eq!(store.get("a", "x"), None);
    assert_eq!(store.put("a", "x", Expected::Absent, value("anew")).await.unwrap().modified, 2);
}

#[tokio::test]
async fn a_failed_commit_that_is_on_disk_after_all_becomes_visible() {
    let ram = Ram::default();
    let disk = Disk::with_backend(ram.clone()).unwrap();
    let store = Store::open(&disk, "s", Limits::default()).unwrap();
    let mut watch = store.watch("a", "", 1).unwrap();
    ram.next(Next::FailWritten);
    unavailable(store.put("a", "x", Expected::Absent, value("late")).await);
    assert_eq!(watch.next().await.unwrap().value, "late");
    assert_eq!(store.get("a", "x").unwrap().modified, 2);
    assert_eq!(store.put("a", "x", Expected::Revision(2), value("2")).await.unwrap().modified, 3);

    // The same, but the disk stays away for a while: what was checked without knowing must fail.
    ram.next(Next::DieAfter);
    unavailable(store.delete("a", "x", Expected::Any, value("deleted")).await);
    unavailable(store.put("a", "x", Expected::Revision(3), value("blind")).await);
    assert_eq!(store.get("a", "x").unwrap().value, "2");
    ram.inner().dead = false;
    unavailable(store.put("a", "x", Expected::Revision(3), value("blind")).await);
    assert_eq!(store.get("a", "x"), None);
    assert_eq!(store.put("a", "x", Expected::Absent, value("new")).await.unwrap().modified, 5);
    let seen: Vec<_> = watch.next_batch(9).await.unwrap().into_iter().map(|e| e.value).collect();
    assert_eq!(seen, ["2", "deleted", "new"]);
}

#[tokio::test]
async fn a_disk_written_to_by_someone_else_is_not_written_to() {
    let ram = Ram::default();
    let disk = Disk::with_backend(ram.clone()).unwrap();
    let store = Store::open(&disk, "s", Limits::default()).unwrap();
    ram.next(Next::DieBefore);
    unavailable(store.put("a", "x", Expected::Absent, value("1")).await);
    ram.inner().dead = false;
    ram.inner().last += 7;
    unavailable(store.put("a", "x", Expected::Absent, value("1")).await);
    unavailable(store.put("a", "x", Expected::Absent, value("1")).await);
    assert_eq!(ram.inner().commits, 1);
}

#[tokio::test]
async fn a_store_that_cannot_be_read_is_an_error_not_an_empty_store() {
    let ram = Ram::default();
    let disk = Disk::with_backend(ram.clone()).unwrap();
    ram.inner().dead = true;
    let opened = Store::open(&disk, "s", Limits::default());
    assert!(matches!(opened, Err(OpenError::Load { .. })));
    ram.inner().dead = false;
    assert!(Store::open(&disk, "s", Limits::default()).is_ok());
}
