//! Many writers at once: one commit serves all that wait, and compare-and-swap stays exact.

use bytes::Bytes;
use cleat_store::{Disk, Expected, Limits, Store, WriteError};

use crate::ram::Ram;

#[tokio::test]
async fn one_commit_serves_all_that_wait() {
    const WRITERS: usize = 200;
    let ram = Ram::default();
    let disk = Disk::with_backend(ram.clone()).unwrap();
    let stores = ["a", "b"].map(|name| Store::open(&disk, name, Limits::default()).unwrap());
    ram.inner().held = true;
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..WRITERS {
        let store = stores[writer % 2].clone();
        writers.spawn(async move {
            let key = format!("k{writer}");
            store.put("b", &key, Expected::Absent, |r| Bytes::from(r.to_string())).await.unwrap()
        });
    }
    // On the one thread of this runtime: every writer has been polled once after this.
    for _ in 0..=WRITERS {
        tokio::task::yield_now().await;
    }
    ram.wait_until_held();
    assert_eq!(stores[0].revision(), 1, "what is not durable is not visible");
    assert_eq!(stores[0].count("b", ""), 0);
    ram.release();
    while let Some(entry) = writers.join_next().await {
        let entry = entry.unwrap();
        assert_eq!(entry.value, entry.modified.to_string());
    }
    assert!(ram.inner().commits <= 2, "{} commits", ram.inner().commits);
    assert_eq!(stores[1].revision(), 1 + WRITERS as u64 / 2);
}

#[tokio::test]
async fn a_conflict_with_what_can_be_read_does_not_wait_for_the_disk() {
    let ram = Ram::default();
    let disk = Disk::with_backend(ram.clone()).unwrap();
    let store = Store::open(&disk, "s", Limits::default()).unwrap();
    store.put("b", "old", Expected::Absent, |_| Bytes::new()).await.unwrap();
    ram.inner().held = true;
    let mut new = std::pin::pin!(store.put("b", "new", Expected::Absent, |_| Bytes::new()));
    let again = store.put("b", "old", Expected::Absent, |_| Bytes::new());
    tokio::select! {
        biased;
        _ = &mut new => panic!("the disk is held"),
        again = again => assert!(matches!(again, Err(WriteError::Conflict { .. }))),
    }
    ram.release();
    new.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn counting_up_with_compare_and_swap_loses_nothing() {
    const WRITERS: u64 = 8;
    const TIMES: u64 = 50;
    let ram = Ram::default();
    let disk = Disk::with_backend(ram.clone()).unwrap();
    let store = Store::open(&disk, "s", Limits::default()).unwrap();
    store.put("b", "n", Expected::Absent, |_| Bytes::from_static(b"0")).await.unwrap();
    let mut writers = tokio::task::JoinSet::new();
    for _ in 0..WRITERS {
        let store = store.clone();
        writers.spawn(async move {
            let mut done = 0;
            while done < TIMES {
                let seen = store.get("b", "n").unwrap();
                let n: u64 = std::str::from_utf8(&seen.value).unwrap().parse().unwrap();
                let put = store.put("b", "n", Expected::Revision(seen.modified), |_| {
                    Bytes::from((n + 1).to_string())
                });
                match put.await {
                    Ok(entry) => {
                        done += 1;
                        assert!(store.revision() >= entry.modified);
                    }
                    Err(WriteError::Conflict { current: Some(current) }) => {
                        // Reading again must show what was conflicted with, or the loop would spin.
                        assert!(current.modified > seen.modified);
                        assert!(store.get("b", "n").unwrap().modified >= current.modified);
                    }
                    Err(other) => panic!("{other:?}"),
                }
            }
        });
    }
    while let Some(done) = writers.join_next().await {
        done.unwrap();
    }
    assert_eq!(store.get("b", "n").unwrap().value, (WRITERS * TIMES).to_string());
    assert_eq!(store.revision(), 2 + WRITERS * TIMES);
}
