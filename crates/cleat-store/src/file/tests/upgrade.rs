//! Files of other formats: older ones are brought to the present one wholly or not at all, newer ones
//! are refused. There is one format so far, so the steps to later ones are made up.

use std::path::Path;

use redb::{ReadableTable as _, WriteTransaction};

use super::super::format::{self, Step};
use super::super::{File, META, META_FORMAT, RECORDS};
use super::platter::Platter;
use super::{BATCHES, Contents, batch, contents_after, contents_of, fresh, opener};
use crate::{Backend as _, OpenError};

const STEPS: &[Step] = &[to_two, to_three];

fn to_two(write: &WriteTransaction) -> Result<(), redb::Error> {
    mark(write, b'2')
}

fn to_three(write: &WriteTransaction) -> Result<(), redb::Error> {
    mark(write, b'3')
}

/// Puts a byte behind every value.
fn mark(write: &WriteTransaction, byte: u8) -> Result<(), redb::Error> {
    let mut records = write.open_table(RECORDS)?;
    let mut all = Vec::new();
    for item in records.iter()? {
        let (key, value) = item?;
        all.push((key.value().to_vec(), value.value().to_vec()));
    }
    for (key, mut value) in all {
        value.push(byte);
        records.insert(&*key, &*value)?;
    }
    Ok(())
}

fn marked(mut contents: Contents) -> Contents {
    for value in contents.values_mut() {
        value.extend(b"23");
    }
    contents
}

fn open(platter: &Platter, steps: &[Step]) -> Result<File, OpenError> {
    File::on(Path::new("platter"), opener(platter), steps)
}

/// A disk with a file of the first format.
fn filled() -> Platter {
    let platter = fresh();
    let mut file = open(&platter, &[]).unwrap();
    for number in 1..=BATCHES {
        file.commit(&batch(number, number * 4)).unwrap();
    }
    drop(file);
    platter
}

#[test]
fn an_older_file_is_upgraded_once_and_keeps_everything() {
    let platter = filled();
    for _ in 0..2 {
        let mut file = open(&platter, STEPS).unwrap();
        assert!(contents_of(&mut file) == marked(contents_after(BATCHES)));
        assert_eq!(file.settle().unwrap(), BATCHES);
    }
    // A version that knows only some of the steps knows no such file.
    for known in [1, 2] {
        let refused = open(&platter, &STEPS[..known - 1]).map(drop).unwrap_err();
        let text = format!("platter has store format 3, this version reads formats 1 to {known}");
        assert_eq!(refused.to_string(), text);
    }
    assert!(contents_of(&mut open(&platter, STEPS).unwrap()) == marked(contents_after(BATCHES)));
}

#[test]
fn an_upgrade_that_loses_its_power_is_done_wholly_or_not_at_all() {
    let platter = filled();
    platter.record();
    drop(open(&platter, STEPS).unwrap());
    let tape = platter.take_tape();
    let (mut before, mut after) = (0, 0);
    for (finished, left) in tape.cuts() {
        match open(&left.copy(), &[]) {
            Ok(mut file) => {
                before += 1;
                assert!(contents_of(&mut file) == contents_after(BATCHES), "{finished}");
            }
            Err(OpenError::Format { found: 3, known: 1, .. }) => after += 1,
            Err(other) => panic!("{other:?} after {finished} operations"),
        }
        let mut file = open(&left, STEPS).unwrap();
        assert!(contents_of(&mut file) == marked(contents_after(BATCHES)), "{finished}");
    }
    assert!(before > 10 && after > 10, "{before} cuts before it was there, {after} after");
}

#[test]
fn an_upgrade_that_finds_no_room_is_tried_again() {
    let mut failed = 0;
    for operations in 0.. {
        let platter = filled();
        platter.cut_after(operations);
        let opened = open(&platter, STEPS).map(drop);
        let enough = opened.is_ok();
        if let Err(error) = opened {
            assert!(matches!(error, OpenError::Io { .. }), "{error:?} at {operations}");
            failed += 1;
        }
        platter.fail_after(0, 0);
        let mut file = open(&platter, STEPS).unwrap();
        assert!(contents_of(&mut file) == marked(contents_after(BATCHES)), "at {operations}");
        if enough {
            break;
        }
    }
    assert!(failed > 3, "{failed}");
}

#[test]
fn a_newer_file_is_refused_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data.redb");
    let set = |number: u64| {
        let database = super::builder().open(&path).unwrap();
        let write = database.begin_write().unwrap();
        write.open_table(META).unwrap().insert(META_FORMAT, number).unwrap();
        write.commit().unwrap();
    };
    let mut file = File::open(&path).unwrap();
    file.commit(&batch(1, 4)).unwrap();
    drop(file);
    for number in [0, format::FORMAT + 1, u64::MAX] {
        set(number);
        for _ in 0..2 {
            match File::open(&path).map(drop) {
                Err(OpenError::Format { found, known, .. }) => {
                    assert_eq!((found, known), (number, format::FORMAT));
                }
                other => panic!("{other:?}"),
            }
        }
    }
    set(format::FORMAT);
    assert!(contents_of(&mut File::open(&path).unwrap()) == contents_after(1));
}
