//! The file under power cuts and full disks, at every single operation redb does on it.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use redb::Builder;

use self::platter::Platter;
use super::{File, Opener, builder, create};
use crate::{Backend, Batch, Change, Effect, Entry, OpenError};

mod bounded;
mod golden;
mod platter;
mod power;
mod tape;
mod trouble;
mod upgrade;

const BATCHES: u64 = 10;
/// Different lucks with what a power cut leaves of writes that were not synced.
const SEEDS: u64 = 6;

type Contents = BTreeMap<(String, String), Vec<u8>>;

fn opener(platter: &Platter) -> Opener {
    let platter = platter.clone();
    Box::new(move |builder: &Builder| builder.create_with_backend(platter.clone()))
}

/// With nothing looked at yet.
fn file_on(platter: &Platter) -> File {
    File { database: None, opener: opener(platter) }
}

fn fresh() -> Platter {
    let platter = Platter::default();
    let database = builder().create_with_backend(platter.clone()).unwrap();
    create::fill(&database).unwrap();
    drop(database);
    platter
}

/// A few puts of different sizes and now and then a delete, the same each time.
fn batch(number: u64, revision: u64) -> Batch {
    let mut changes = Vec::new();
    for (n, revision) in (revision + 1..).take(4).enumerate() {
        let n = n as u64;
        let key = format!("k{}", (number * 3 + n * n) % 11);
        let bytes = vec![number as u8; (number * 977 + n * 3001) as usize % 9000];
        let entry = Entry { created: 2, modified: revision, value: Bytes::from(bytes) };
        let effect = match (number + n) % 6 {
            5 => Effect::Delete { last: Bytes::new() },
            _ => Effect::Put(entry),
        };
        changes.push(Change { revision, bucket: "b".into(), key: key.into(), effect });
    }
    Batch { number, stores: BTreeMap::from([(Arc::from("s"), changes)]) }
}

/// What the first so many batches leave.
fn contents_after(batches: u64) -> Contents {
    let mut contents = Contents::new();
    for number in 1..=batches {
        for change in batch(number, number * 4).stores.into_values().flatten() {
            let at = (change.bucket.to_string(), change.key.to_string());
            match change.effect {
                Effect::Put(entry) => drop(contents.insert(at, entry.value.to_vec())),
                Effect::Delete { .. } => drop(contents.remove(&at)),
            }
        }
    }
    contents
}

fn contents_of(file: &mut File) -> Contents {
    let mut contents = Contents::new();
    file.load("s", &mut |stored| {
        contents.insert((stored.bucket.into(), stored.key.into()), stored.value.to_vec());
    })
    .unwrap();
    contents
}

#[test]
fn a_power_cut_at_any_operation_keeps_whole_commits() {
    let whole = fresh();
    let start = whole.operations();
    let mut file = file_on(&whole);
    assert_eq!(file.settle().unwrap(), 0);
    for number in 1..=BATCHES {
        file.commit(&batch(number, number * 4)).unwrap();
    }
    drop(file);
    let operations = whole.operations() - start;
    assert!(operations > 4 * BATCHES as usize, "{operations}");

    for cut in 0..operations {
        for seed in 0..SEEDS {
            let platter = fresh();
            platter.cut_after(cut);
            let mut file = file_on(&platter);
            let mut answered = 0;
            if file.settle().is_ok() {
                while answered < BATCHES
                    && file.commit(&batch(answered + 1, (answered + 1) * 4)).is_ok()
                {
                    answered += 1;
                }
            }
            drop(file);

            let mut file = file_on(&platter.after_power_cut(seed));
            let found = file.settle().unwrap();
            assert!(found == answered || found == answered + 1, "{found}, {answered} at {cut}");
            assert!(contents_of(&mut file) == contents_after(found), "batch {found} at {cut}");
            file.commit(&batch(found + 1, (found + 1) * 4)).unwrap();
            assert!(contents_of(&mut file) == contents_after(found + 1), "going on at {cut}");
        }
    }
}

#[test]
fn a_disk_that_is_full_for_a_while_costs_only_the_writes_of_that_while() {
    let mut doubts = 0;
    for fail in 0..120 {
        let platter = fresh();
        let mut file = file_on(&platter);
        file.settle().unwrap();
        platter.fail_after(fail, 1 + fail % 5);
        let mut last = 0;
        while last < BATCHES {
            let number = last + 1;
            match file.commit(&batch(number, number * 4)) {
                Ok(()) => last = number,
                Err(_) => {
                    let found = (0..20).find_map(|_| file.settle().ok()).unwrap();
                    assert!(found == last || found == number, "{found}, {last} at {fail}");
                    doubts += 1;
                    last = found;
                }
            }
        }
        assert!(contents_of(&mut file) == contents_after(BATCHES), "at {fail}");
        drop(file);
        let mut file = file_on(&platter);
        assert_eq!(file.settle().unwrap(), BATCHES);
        assert!(contents_of(&mut file) == contents_after(BATCHES), "at {fail}, reopened");
    }
    assert!(doubts > 50, "{doubts}");
}

#[test]
fn a_damaged_file_is_never_taken_for_a_whole_one() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data.redb");
    let mut file = File::open(&path).unwrap();
    for number in 1..=BATCHES {
        file.commit(&batch(number, number * 4)).unwrap();
    }
    drop(file);
    let whole = std::fs::read(&path).unwrap();
    let mut refused = 0;
    for page in 0..whole.len() / 4096 {
        let mut damaged = whole.clone();
        for byte in &mut damaged[page * 4096 + 100..page * 4096 + 140] {
            *byte ^= 0x5a;
        }
        std::fs::write(&path, &damaged).unwrap();
        // What is not refused was damaged where nothing is stored. Refusing it once must not mend
        // it by leaving something out.
        for time in 0..2 {
            match File::open(&path) {
                Ok(mut file) => {
                    let found = contents_of(&mut file);
                    assert!(found == contents_after(BATCHES), "page {page}, time {time}");
                }
                Err(error) => {
                    assert!(matches!(error, OpenError::Damaged { .. }), "{error:?}");
                    refused += 1;
                }
            }
        }
    }
    assert!(refused > 5, "{refused}");
    let lengths = (0..whole.len()).step_by(4096).chain([100, whole.len() - 1]);
    for length in lengths {
        std::fs::write(&path, &whole[..length]).unwrap();
        let opened = File::open(&path).map(drop);
        assert!(matches!(opened, Err(OpenError::Damaged { .. })), "{length}: {opened:?}");
    }
}
