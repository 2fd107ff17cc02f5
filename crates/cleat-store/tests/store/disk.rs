//! Files on a real disk: what opening promises.

use std::fs;

use bytes::Bytes;
use cleat_store::{
    Disk, Event, EventKind, Expected, Limits, OpenError, Store, WatchError, WriteError,
};

fn value(text: &str) -> impl FnOnce(u64) -> Bytes + '_ {
    move |revision| Bytes::from(format!("{text}@{revision}"))
}

#[tokio::test]
async fn what_was_answered_is_found_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data.redb");
    {
        let disk = Disk::open(&path).unwrap();
        let hub = Store::open(&disk, "hub", Limits::default()).unwrap();
        let other = Store::open(&disk, "hub1", Limits::default()).unwrap();
        assert_eq!(hub.revision(), 1);
        hub.put("a", "x", Expected::Absent, value("one")).await.unwrap();
        let two = hub.put("a", "x", Expected::Revision(2), value("two")).await.unwrap();
        assert_eq!((two.created, two.modified, &two.value[..]), (2, 3, &b"two@3"[..]));
        hub.put("b", "gone", Expected::Any, value("soon")).await.unwrap();
        hub.delete("b", "gone", Expected::Revision(4), value("gone")).await.unwrap();
        other.put("a", "x", Expected::Absent, value("other")).await.unwrap();
        assert!(matches!(
            Store::open(&disk, "hub", Limits::default()),
            Err(OpenError::AlreadyOpen { .. })
        ));
    }
    let disk = Disk::open(&path).unwrap();
    let hub = Store::open(&disk, "hub", Limits::default()).unwrap();
    assert_eq!(hub.revision(), 5);
    assert_eq!(hub.get("a", "x").unwrap().value, "two@3");
    assert_eq!(hub.get("b", "gone"), None);
    assert_eq!(hub.buckets(), ["a".into()]);

    // The past did not survive, the present can be watched from.
    assert_eq!(hub.watch("a", "", 4).unwrap_err().floor, 5);
    let mut watch = hub.watch("a", "", 5).unwrap();
    hub.delete("a", "x", Expected::Any, value("end")).await.unwrap();
    assert_eq!(
        watch.next().await.unwrap(),
        Event {
            revision: 6,
            key: "x".into(),
            kind: EventKind::Delete,
            value: "end@6".into(),
            previous: Some("two@3".into()),
        }
    );
    drop(hub);
    assert_eq!(watch.next().await, Err(WatchError::Closed));
    let hub = Store::open(&disk, "hub", Limits::default()).unwrap();
    assert_eq!((hub.revision(), hub.count("a", "")), (6, 0));

    let other = Store::open(&disk, "hub1", Limits::default()).unwrap();
    assert_eq!((other.revision(), other.count("a", "")), (2, 1));
}

#[tokio::test]
async fn conflicts_show_what_is_there() {
    let store = Store::in_memory(Limits::default());
    let put = store.put("a", "x", Expected::Revision(7), |_| unreachable!()).await;
    assert!(matches!(put, Err(WriteError::Conflict { current: None })));
    let delete = store.delete("a", "x", Expected::Any, |_| unreachable!()).await;
    assert!(matches!(delete, Err(WriteError::Conflict { current: None })));
    let entry = store.put("a", "x", Expected::Absent, value("v")).await.unwrap();
    let again = store.put("a", "x", Expected::Absent, |_| unreachable!()).await;
    assert!(matches!(again, Err(WriteError::Conflict { current: Some(e) }) if e == entry));
    let odd = store.put("a\0b", "x", Expected::Absent, |_| unreachable!()).await;
    assert!(matches!(odd, Err(WriteError::Bucket { .. })));
    assert_eq!(store.revision(), 2);
}

#[test]
fn an_open_file_is_locked() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data.redb");
    let _disk = Disk::open(&path).unwrap();
    assert!(matches!(Disk::open(&path), Err(OpenError::Locked { .. })));
}

#[test]
fn an_empty_or_foreign_file_is_damage_not_a_fresh_start() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data.redb");
    for content in [&b""[..], b"hello", &[7; 100_000]] {
        fs::write(&path, content).unwrap();
        let opened = Disk::open(&path);
        assert!(matches!(opened, Err(OpenError::Damaged { .. })), "{opened:?}");
        assert_eq!(fs::read(&path).unwrap(), content);
    }
}
