//! The file does not grow with what was ever written, only with what is there.

use bytes::Bytes;
use tokio::task::JoinSet;

use super::{file_on, fresh};
use crate::{Disk, Expected, Limits, Store};

/// How many writes; more of them on request, for those who have the time.
const REVISIONS: &str = "CLEAT_STORE_REVISIONS";
const ENOUGH: u64 = 200_000;
/// Writes under way at the same time.
const WRITERS: u64 = 200;
const KEYS: u64 = 40;
const LARGEST: usize = 3000;
/// What is there never takes more than 160 KiB; a commit writes it anew beside the old, and redb grows
/// its file by doubling it.
const BOUND: usize = 4 << 20;

#[tokio::test]
async fn writing_the_same_keys_for_ever_keeps_the_file_small() {
    let wanted = std::env::var(REVISIONS).ok().map(|text| text.parse::<u64>().unwrap());
    let revisions = wanted.unwrap_or(ENOUGH);
    let platter = fresh();
    let disk = Disk::with_backend(file_on(&platter)).unwrap();
    let limits = Limits { history_events: 1000, ..Limits::default() };
    let store = Store::open(&disk, "s", limits).unwrap();
    let mut largest = 0;
    while store.revision() < revisions {
        let mut writers = JoinSet::new();
        for n in store.revision()..store.revision() + WRITERS {
            let store = store.clone();
            writers.spawn(async move {
                let key = format!("k{}", n / 7 % KEYS);
                let size = (n * 7919) as usize % LARGEST;
                let made = |_: u64| Bytes::from(vec![n as u8; size]);
                match n % 10 {
                    // A key that another one has just deleted is a conflict, and no write.
                    0 => drop(store.delete("b", &key, Expected::Any, |_| Bytes::new()).await),
                    _ => drop(store.put("b", &key, Expected::Any, made).await.unwrap()),
                }
            });
        }
        while let Some(done) = writers.join_next().await {
            done.unwrap();
        }
        store.compact(store.revision());
        largest = largest.max(platter.length());
        assert!(largest <= BOUND, "{largest} bytes at revision {}", store.revision());
    }
    assert!(store.watch("b", "", 1).is_err(), "the past is forgotten");
    assert!(store.count("b", "") <= KEYS as usize);
    println!("{} revisions, {largest} bytes at most", store.revision());
}
