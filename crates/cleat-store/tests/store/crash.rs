//! A crash at every commit, before and after it is written: what was answered is there, what was not
//! is there wholly or not at all, and the store goes on from there.

use std::collections::BTreeMap;

use bytes::Bytes;
use cleat_store::{Disk, Expected, Limits, Range, Store};

use crate::ram::{Next, Ram};

type Contents = BTreeMap<String, (u64, Bytes)>;

fn contents(store: &Store) -> Contents {
    let page = store.list(Range { bucket: "b", ..Range::default() }).unwrap();
    page.entries.into_iter().map(|(k, e)| (k.to_string(), (e.modified, e.value))).collect()
}

/// Three writers at a time, so that commits hold more than one write; returns what was answered.
async fn work(store: &Store, steps: u64) -> (Contents, Vec<(String, Option<Bytes>)>) {
    let mut answered = Contents::new();
    let mut unanswered = Vec::new();
    for step in 0..steps {
        let writes = [0, 1, 2].map(|lane| {
            let key = format!("{lane}-{}", step % 3);
            let value = Bytes::from(format!("{step}"));
            let remove = step % 5 == 4 && lane == 1;
            async move {
                let done = match remove {
                    true => store.delete("b", &key, Expected::Any, |_| Bytes::new()).await,
                    false => store.put("b", &key, Expected::Any, |_| value.clone()).await,
                };
                (key, done, (!remove).then_some(value))
            }
        });
        let [a, b, c] = writes;
        let (a, b, c) = tokio::join!(a, b, c);
        for (key, done, value) in [a, b, c] {
            match (done, value) {
                (Ok(entry), Some(value)) => drop(answered.insert(key, (entry.modified, value))),
                (Ok(_), None) => drop(answered.remove(&key)),
                (Err(_), value) => unanswered.push((key, value)),
            }
        }
        if !unanswered.is_empty() {
            break;
        }
    }
    (answered, unanswered)
}

#[tokio::test]
async fn a_crash_at_any_commit_keeps_what_was_answered() {
    const STEPS: u64 = 12;
    let whole = Ram::default();
    let disk = Disk::with_backend(whole.clone()).unwrap();
    work(&Store::open(&disk, "s", Limits::default()).unwrap(), STEPS).await;
    let commits = whole.inner().commits;
    assert!(commits >= STEPS as usize);

    let mut crashes = 0;
    for cut in 1..=commits {
        for end in [Next::DieBefore, Next::DieAfter] {
            let ram = Ram::default();
            let disk = Disk::with_backend(ram.clone()).unwrap();
            let store = Store::open(&disk, "s", Limits::default()).unwrap();
            ram.inner().next = end;
            ram.inner().next_at = cut;
            let (answered, unanswered) = work(&store, STEPS).await;
            // How writes gather into commits depends on the moment; there may be fewer this time.
            if unanswered.is_empty() {
                continue;
            }
            crashes += 1;
            assert!(store.put("b", "dead", Expected::Any, |_| Bytes::new()).await.is_err());
            drop((store, disk));

            ram.inner().dead = false;
            let disk = Disk::with_backend(ram.clone()).unwrap();
            let store = Store::open(&disk, "s", Limits::default()).unwrap();
            let found = contents(&store);
            let touched = |key: &str| unanswered.iter().find(|(k, _)| k == key);
            for (key, value) in &answered {
                if touched(key).is_none() {
                    assert_eq!(found.get(key), Some(value), "{key} after {end:?} at {cut}");
                }
            }
            for (key, entry) in &found {
                let new = touched(key).is_some_and(|(_, v)| v.as_ref() == Some(&entry.1));
                assert!(new || answered.get(key) == Some(entry), "{key} after {end:?} at {cut}");
            }
            assert!(!found.contains_key("dead"));
            let revision = store.revision();
            let entry = store.put("b", "on", Expected::Absent, |_| Bytes::new()).await.unwrap();
            assert_eq!(entry.modified, revision + 1);
        }
    }
    assert!(crashes >= 2 * STEPS, "{crashes}");
}
