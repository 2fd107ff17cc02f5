//! Watches: places in a shared past.

use bytes::Bytes;
use cleat_store::{Compacted, EventKind, Expected, Limits, Range, Store, WatchError};

async fn fill(store: &Store, bucket: &str, keys: std::ops::Range<usize>) {
    for key in keys {
        let key = format!("{key}");
        store.put(bucket, &key, Expected::Any, |_| Bytes::from(vec![b'x'; 100])).await.unwrap();
    }
}

#[tokio::test]
async fn a_watcher_that_is_too_slow_is_told_so() {
    let store = Store::in_memory(Limits { history_events: 10, ..Limits::default() });
    let mut slow = store.watch("a", "", 1).unwrap();
    let mut quiet = store.watch("b", "", 1).unwrap();
    fill(&store, "a", 0..10).await;
    assert_eq!(slow.try_next().unwrap().unwrap().revision, 2);
    fill(&store, "a", 10..12).await;
    assert_eq!(slow.next().await, Err(WatchError::Compacted(Compacted { floor: 3 })));
    assert_eq!(store.watch("a", "", 2).unwrap_err(), Compacted { floor: 3 });
    assert_eq!(store.watch("a", "", 3).unwrap().next_batch(99).await.unwrap().len(), 10);

    // Traffic elsewhere is no reason to lose one's place.
    fill(&store, "b", 0..1).await;
    assert_eq!(quiet.next().await.unwrap().revision, 14);
}

#[tokio::test]
async fn history_is_bounded_by_bytes_too_but_keeps_the_newest() {
    let store = Store::in_memory(Limits { history_events: 1000, history_bytes: 1000 });
    fill(&store, "a", 0..20).await;
    let floor = store.watch("a", "", 1).unwrap_err().floor;
    assert!(floor > 12, "{floor}");
    let mut watch = store.watch("a", "", store.revision()).unwrap();
    store.put("a", "big", Expected::Any, |_| Bytes::from(vec![0; 5000])).await.unwrap();
    assert_eq!(watch.next().await.unwrap().value.len(), 5000);
}

#[tokio::test]
async fn an_idle_watch_survives_compaction_and_knows_how_far_it_is() {
    let store = Store::in_memory(Limits::default());
    let mut watch = store.watch("a", "ns1/", 1).unwrap();
    fill(&store, "b", 0..5).await;
    store.put("a", "ns2/x", Expected::Any, |_| Bytes::new()).await.unwrap();
    assert_eq!(watch.revision(), 1);
    assert_eq!(watch.try_next().unwrap(), None);
    assert_eq!(watch.revision(), 7);
    fill(&store, "b", 5..9).await;
    store.compact(store.revision());
    assert_eq!(store.watch("a", "", 10).unwrap_err().floor, 11);
    store.put("a", "ns1/x", Expected::Any, |_| Bytes::from_static(b"v")).await.unwrap();
    let event = watch.next().await.unwrap();
    assert_eq!((event.revision, event.kind), (12, EventKind::Put { created: true }));
    assert_eq!(watch.revision(), 12);
}

#[tokio::test]
async fn a_waiting_watch_is_woken_and_may_be_dropped_while_waiting() {
    let store = Store::in_memory(Limits::default());
    let mut watch = store.watch("a", "", 1).unwrap();
    {
        // Polled once and dropped.
        let next = std::pin::pin!(watch.next());
        let waker = std::task::Waker::noop();
        assert!(next.poll(&mut std::task::Context::from_waker(waker)).is_pending());
    }
    let waiting = tokio::spawn(async move { watch.next().await });
    tokio::task::yield_now().await;
    fill(&store, "a", 0..1).await;
    assert_eq!(waiting.await.unwrap().unwrap().revision, 2);
}

#[tokio::test]
async fn values_are_shared_not_copied() {
    let store = Store::in_memory(Limits::default());
    let mut watch = store.watch("a", "", 1).unwrap();
    fill(&store, "a", 0..1).await;
    let stored = store.get("a", "0").unwrap().value;
    let listed = store.list(Range { bucket: "a", ..Range::default() }).unwrap();
    assert_eq!(listed.entries[0].1.value.as_ptr(), stored.as_ptr());
    assert_eq!(watch.next().await.unwrap().value.as_ptr(), stored.as_ptr());
}
