//! Watches: places in a shared past.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Wake, Waker};

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

/// How often a watch would have been polled while `happens` goes on.
async fn wakes(watch: &mut cleat_store::Watch, happens: impl Future<Output = ()>) -> usize {
    struct Count(AtomicUsize);
    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    let count = Arc::new(Count(AtomicUsize::new(0)));
    let waker = Waker::from(Arc::clone(&count));
    let mut next = pin!(watch.next());
    assert!(next.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    happens.await;
    count.0.load(Ordering::Relaxed)
}

#[tokio::test]
async fn a_thousand_namespaces_were_all_woken_by_a_write_to_one() {
    let store = Store::in_memory(Limits::default());
    let put = async |key: &str| {
        store.put("works", key, Expected::Any, |_| Bytes::new()).await.unwrap();
    };
    let mut c1 = store.watch("works", "c1/", 1).unwrap();
    let mut c10 = store.watch("works", "c10/", 1).unwrap();
    let mut all = store.watch("works", "", 1).unwrap();
    assert_eq!(wakes(&mut c1, put("c10/a")).await, 0);
    assert_eq!(c10.try_next().unwrap().unwrap().key.as_ref(), "c10/a");
    assert_eq!(wakes(&mut c10, put("c1/a")).await, 0);
    assert_eq!(c1.try_next().unwrap().unwrap().key.as_ref(), "c1/a");
    assert_eq!(wakes(&mut c1, put("c1/a")).await, 1);
    assert_eq!(all.next_batch(9).await.unwrap().len(), 3);
    assert_eq!(wakes(&mut all, put("c1/b")).await, 1);
}

#[tokio::test]
async fn a_quiet_watch_keeps_its_place_whatever_happens_beside_it() {
    let store = Store::in_memory(Limits { history_events: 10, ..Limits::default() });
    let mut quiet = store.watch("a", "mine/", 1).unwrap();
    fill(&store, "a", 0..50).await;
    store.put("a", "mine/x", Expected::Any, |_| Bytes::new()).await.unwrap();
    assert_eq!(quiet.next().await.unwrap().revision, 52);
    fill(&store, "a", 0..50).await;
    assert_eq!(quiet.try_next().unwrap(), None);
    assert_eq!(quiet.revision(), 102);
    // Whoever was there before has seen nothing of what was dropped since, and is told so.
    store.put("a", "mine/y", Expected::Any, |_| Bytes::new()).await.unwrap();
    fill(&store, "a", 0..50).await;
    assert_eq!(quiet.next().await, Err(WatchError::Compacted(Compacted { floor: 103 })));
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

#[tokio::test]
async fn whether_there_is_news_can_be_told_without_a_look() {
    let store = Store::in_memory(Limits { history_events: 2, ..Limits::default() });
    let mut watch = store.watch("a", "ns1/", 1).unwrap();
    let put = async |bucket, key| store.put(bucket, key, Expected::Any, |_| Bytes::new()).await;
    put("a", "ns2/x").await.unwrap();
    put("b", "ns1/x").await.unwrap();
    assert!(!watch.has_news(), "of others' keys");
    put("a", "ns1/x").await.unwrap();
    assert!(watch.has_news());
    assert_eq!(watch.try_next().unwrap().unwrap().revision, 4);
    assert!(!watch.has_news());

    // A watch that begins in the past finds it, and one that has lost its place is told.
    assert!(store.watch("a", "ns1/", 3).unwrap().has_news());
    assert!(store.watch("a", "", 3).unwrap().has_news());
    for _ in 0..3 {
        put("a", "ns1/x").await.unwrap();
    }
    assert!(watch.has_news());
    watch.try_next().unwrap_err();
}
