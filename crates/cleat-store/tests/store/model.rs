//! Random operations, compared step by step with a model that keeps every version of everything in
//! plain maps.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use cleat_store::{
    Compacted, Disk, Entry, Event, EventKind, Expected, Limits, Range, Revision, Store, Watch,
    WatchError, WriteError,
};
use proptest::prelude::*;

use crate::ram::Ram;

const LIMITS: Limits = Limits { history_events: 25, history_bytes: usize::MAX };
const BUCKETS: [&str; 3] = ["a", "b", "b2"];
const PREFIXES: [&str; 4] = ["", "x/", "y/1", "zzz"];

#[derive(Clone, Debug)]
enum Op {
    Put {
        bucket: usize,
        key: usize,
        expect: Expect,
        size: usize,
    },
    Delete {
        bucket: usize,
        key: usize,
        expect: Expect,
    },
    /// `back`: how many revisions ago.
    List {
        bucket: usize,
        prefix: usize,
        after: Option<usize>,
        limit: usize,
        back: Option<u64>,
    },
    Watch {
        bucket: usize,
        prefix: usize,
        back: u64,
    },
    Poll {
        watch: usize,
        most: usize,
    },
    Compact {
        back: u64,
    },
    Reopen,
}

#[derive(Clone, Copy, Debug)]
enum Expect {
    Absent,
    Current,
    Stale,
    Any,
}

fn op() -> impl Strategy<Value = Op> {
    let expect = || {
        prop_oneof![
            2 => Just(Expect::Absent),
            4 => Just(Expect::Current),
            1 => Just(Expect::Stale),
            4 => Just(Expect::Any)
        ]
    };
    let bucket = || 0..BUCKETS.len();
    let key = || 0..24usize;
    let prefix = || 0..PREFIXES.len();
    prop_oneof![
        40 => (bucket(), key(), expect(), 0..40usize)
            .prop_map(|(bucket, key, expect, size)| Op::Put { bucket, key, expect, size }),
        15 => (bucket(), key(), expect())
            .prop_map(|(bucket, key, expect)| Op::Delete { bucket, key, expect }),
        20 => (bucket(), prefix(), prop::option::of(key()), 0..6usize, prop::option::of(0..60u64))
            .prop_map(|(bucket, prefix, after, limit, back)| {
                Op::List { bucket, prefix, after, limit, back }
            }),
        6 => (bucket(), prefix(), 0..50u64)
            .prop_map(|(bucket, prefix, back)| Op::Watch { bucket, prefix, back }),
        15 => (0..8usize, 1..30usize).prop_map(|(watch, most)| Op::Poll { watch, most }),
        1 => (0..40u64).prop_map(|back| Op::Compact { back }),
        1 => Just(Op::Reopen),
    ]
}

fn key_name(key: usize) -> String {
    format!("{}/{}", ["x", "y", "z"][key % 3], key)
}

type Contents = BTreeMap<(String, String), Entry>;

/// Everything that ever happened.
struct Model {
    /// Contents at each revision, from 1 on.
    versions: Vec<Contents>,
    events: Vec<(String, Event)>,
    floor: Revision,
    /// Events up to here are not in any ring: compacted, or from before a restart.
    forgotten: Revision,
}

impl Model {
    fn new() -> Self {
        Model { versions: vec![Contents::new()], events: Vec::new(), floor: 1, forgotten: 1 }
    }

    fn revision(&self) -> Revision {
        self.versions.len() as Revision
    }

    fn now(&self) -> &Contents {
        self.versions.last().unwrap()
    }

    fn write(&mut self, bucket: &str, key: &str, value: Option<Bytes>, last: Bytes) {
        let revision = self.revision() + 1;
        let mut next = self.now().clone();
        let at = (bucket.to_owned(), key.to_owned());
        let before = next.remove(&at);
        let kind = match &value {
            Some(_) => EventKind::Put { created: before.is_none() },
            None => EventKind::Delete,
        };
        if let Some(value) = value.clone() {
            let created = before.as_ref().map_or(revision, |e| e.created);
            next.insert(at, Entry { created, modified: revision, value });
        }
        let previous = before.map(|e| e.value);
        let value = value.unwrap_or(last);
        let event = Event { revision, key: key.into(), kind, value, previous };
        self.events.push((bucket.to_owned(), event));
        self.versions.push(next);
    }

    /// The newest event of a bucket that no longer fits in its ring.
    fn lost(&self, bucket: &str) -> Revision {
        let of_bucket: Vec<Revision> =
            self.events.iter().filter(|(b, _)| b == bucket).map(|(_, e)| e.revision).collect();
        let pushed_out = of_bucket.len().saturating_sub(LIMITS.history_events);
        let pushed_out = of_bucket[..pushed_out].last().copied().unwrap_or(0);
        let forgotten = of_bucket.iter().copied().filter(|r| *r <= self.forgotten).max();
        pushed_out.max(forgotten.unwrap_or(0))
    }

    /// The newest event of a bucket with a prefix that no longer fits in its ring.
    fn lost_of(&self, bucket: &str, prefix: &str) -> Revision {
        let lost = self.lost(bucket);
        let concerned =
            self.events.iter().filter(|(b, e)| b == bucket && e.key.starts_with(prefix));
        concerned.map(|(_, e)| e.revision).filter(|revision| *revision <= lost).max().unwrap_or(0)
    }

    fn remembered(&self, bucket: &str, revision: Revision) -> Result<(), Compacted> {
        // A bucket starts its life in a process with nothing lost, whatever came before.
        let floor = self.floor.max(self.lost(bucket));
        if revision < floor { Err(Compacted { floor }) } else { Ok(()) }
    }
}

struct ModelWatch {
    watch: Watch,
    bucket: String,
    prefix: &'static str,
    seen: Revision,
}

async fn run(ops: Vec<Op>, mut store: Store, open: impl Fn(Store) -> Store) {
    let mut model = Model::new();
    let mut watches: Vec<ModelWatch> = Vec::new();
    for op in ops {
        match op {
            Op::Put { bucket, key, expect, size } => {
                let (bucket, key) = (BUCKETS[bucket], key_name(key));
                let current = model.now().get(&(bucket.into(), key.clone())).cloned();
                let (expected, holds) = expectation(expect, current.as_ref());
                let make = |r: Revision| Bytes::from(format!("{r}").repeat(size));
                let put = store.put(bucket, &key, expected, make).await;
                if holds {
                    model.write(bucket, &key, Some(make(model.revision() + 1)), Bytes::new());
                    assert_eq!(put.ok().as_ref(), model.now().get(&(bucket.into(), key)));
                } else {
                    assert_conflict(put, current);
                }
            }
            Op::Delete { bucket, key, expect } => {
                let (bucket, key) = (BUCKETS[bucket], key_name(key));
                let current = model.now().get(&(bucket.into(), key.clone())).cloned();
                let (expected, holds) = expectation(expect, current.as_ref());
                let last = |r: Revision| Bytes::from(format!("last {r}"));
                let delete = store.delete(bucket, &key, expected, last).await;
                match current.clone().filter(|_| holds) {
                    Some(entry) => {
                        let revision = model.revision() + 1;
                        let value = last(revision);
                        model.write(bucket, &key, None, value.clone());
                        let gone = Entry { modified: revision, value, ..entry };
                        assert_eq!(delete.unwrap(), gone);
                    }
                    None => assert_conflict(delete, current),
                }
            }
            Op::List { bucket, prefix, after, limit, back } => {
                let after = after.map(key_name);
                list(&store, &model, BUCKETS[bucket], PREFIXES[prefix], after, limit, back);
            }
            Op::Watch { bucket, prefix, back } => {
                let (bucket, prefix) = (BUCKETS[bucket], PREFIXES[prefix]);
                let seen = model.revision().saturating_sub(back);
                match (store.watch(bucket, prefix, seen), model.remembered(bucket, seen)) {
                    (Ok(watch), Ok(())) => {
                        watches.push(ModelWatch { watch, bucket: bucket.into(), prefix, seen });
                    }
                    (Err(a), Err(b)) => assert_eq!(a, b),
                    (a, b) => panic!("{a:?} but {b:?} in the model"),
                }
                if watches.len() > 8 {
                    watches.remove(0);
                }
            }
            Op::Poll { watch, most } => {
                if watch < watches.len() && !poll(&model, &mut watches[watch], most) {
                    watches.remove(watch);
                }
            }
            Op::Compact { back } => {
                let upto = model.revision().saturating_sub(back);
                store.compact(upto);
                model.floor = model.floor.max(upto);
                model.forgotten = model.forgotten.max(upto);
            }
            Op::Reopen => {
                store = open(store);
                model.floor = model.revision();
                model.forgotten = model.revision();
                // Their store is closed, which another test looks at.
                watches.clear();
            }
        }
        assert_eq!(store.revision(), model.revision());
    }
    for (bucket, prefix) in BUCKETS.iter().flat_map(|b| PREFIXES.map(|p| (*b, p))) {
        list(&store, &model, bucket, prefix, None, 0, None);
    }
}

fn expectation(expect: Expect, current: Option<&Entry>) -> (Expected, bool) {
    match expect {
        Expect::Absent => (Expected::Absent, current.is_none()),
        Expect::Any => (Expected::Any, true),
        Expect::Current => match current {
            Some(entry) => (Expected::Revision(entry.modified), true),
            None => (Expected::Revision(1), false),
        },
        Expect::Stale => (Expected::Revision(current.map_or(0, |e| e.modified - 1)), false),
    }
}

fn assert_conflict(answer: Result<Entry, WriteError>, expected: Option<Entry>) {
    match answer {
        Err(WriteError::Conflict { current }) => assert_eq!(current, expected),
        other => panic!("no conflict: {other:?}"),
    }
}

fn list(
    store: &Store,
    model: &Model,
    bucket: &str,
    prefix: &str,
    after: Option<String>,
    limit: usize,
    back: Option<u64>,
) {
    let at = back.map(|back| model.revision().saturating_sub(back));
    let after = after.as_deref();
    let range = Range { bucket, prefix, after, limit, at, count: true };
    let found = store.list(range);
    let revision = at.unwrap_or(model.revision());
    if let Err(compacted) = model.remembered(bucket, revision).as_ref()
        && revision < model.revision()
    {
        assert_eq!(found.unwrap_err(), *compacted);
        return;
    }
    let page = found.unwrap();
    let version = &model.versions[revision as usize - 1];
    let all: Vec<(Arc<str>, Entry)> = version
        .iter()
        .filter(|((b, k), _)| b == bucket && k.starts_with(prefix))
        .filter(|((_, k), _)| after.is_none_or(|after| k.as_str() > after))
        .map(|((_, k), e)| (k.as_str().into(), e.clone()))
        .collect();
    let shown = if limit == 0 { all.len() } else { all.len().min(limit) };
    assert_eq!(page.revision, revision);
    assert_eq!(page.entries, all[..shown]);
    assert_eq!(page.remaining, Some(all.len() - shown));
    assert_eq!(page.more, all.len() > shown);
    let uncounted = store.list(Range { count: false, ..range }).unwrap();
    assert_eq!((uncounted.more, uncounted.remaining), (page.more, None));
    if at.is_none() && after.is_none() {
        assert_eq!(store.count(bucket, prefix), all.len());
    }
}

/// Takes up to `most` events; false if the watch has ended.
fn poll(model: &Model, it: &mut ModelWatch, most: usize) -> bool {
    for _ in 0..most {
        let lost = model.lost_of(&it.bucket, it.prefix);
        let expected = model
            .events
            .iter()
            .filter(|(bucket, event)| *bucket == it.bucket && event.revision > it.seen)
            .map(|(_, event)| event)
            .find(|event| event.key.starts_with(it.prefix));
        let found = it.watch.try_next();
        if it.seen < lost {
            assert_eq!(found, Err(WatchError::Compacted(Compacted { floor: lost })));
            return false;
        }
        assert_eq!(found.unwrap().as_ref(), expected);
        it.seen = it.watch.revision();
        match expected {
            Some(event) => assert!(it.seen >= event.revision),
            None => {
                assert_eq!(it.seen, model.revision());
                return true;
            }
        }
        let skipped = model.events.iter().any(|(bucket, event)| {
            *bucket == it.bucket
                && event.key.starts_with(it.prefix)
                && event.revision <= it.seen
                && expected.is_some_and(|e| event.revision > e.revision)
        });
        assert!(!skipped, "the place must not move over an event that was not yielded");
    }
    true
}

fn block_on(future: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future);
}

/// What a restart would leave of the past, for a store that cannot be restarted.
fn compacted(store: Store) -> Store {
    store.compact(store.revision());
    store
}

fn on_disk(disk: Disk) -> Store {
    Store::open(&disk, "s", LIMITS).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn in_memory(ops in prop::collection::vec(op(), 1..250)) {
        block_on(run(ops, Store::in_memory(LIMITS), compacted));
    }

    #[test]
    fn on_a_disk_with_restarts(ops in prop::collection::vec(op(), 1..250)) {
        let ram = Ram::default();
        let open = || on_disk(Disk::with_backend(ram.clone()).unwrap());
        block_on(run(ops, open(), |held| {
            drop(held);
            open()
        }));
    }
}

proptest! {
    // Every write is a sync of a real file here.
    #![proptest_config(ProptestConfig { cases: 6, ..ProptestConfig::default() })]

    #[test]
    fn on_a_file_with_restarts(ops in prop::collection::vec(op(), 60..120)) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("data.redb");
        let open = || on_disk(Disk::open(&path).unwrap());
        block_on(run(ops, open(), |held| {
            drop(held);
            open()
        }));
    }
}
