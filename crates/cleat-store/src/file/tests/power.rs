//! Power cuts under a whole store: what was answered is there, and nothing is there in part.

use std::collections::BTreeMap;
use std::path::Path;

use bytes::Bytes;

use super::super::{File, builder, create, format};
use super::platter::Platter;
use super::{SEEDS, batch, fresh, opener};
use crate::{Backend as _, BackendError, Disk, Entry, Expected, Limits, OpenError, Range, Store};

const ROUNDS: u64 = 6;
/// Writers at a time, so that commits hold more than one write.
const LANES: u64 = 3;

type Contents = BTreeMap<String, Entry>;

/// What writers were told, and when.
#[derive(Default)]
struct Told {
    /// By revision: the key, and what became of it.
    writes: BTreeMap<u64, (String, Option<Entry>)>,
    /// After so many operations of the disk everything up to the revision had been answered.
    answers: Vec<(usize, u64)>,
}

impl Told {
    fn answered_before(&self, operations: usize) -> u64 {
        let before = self.answers.iter().filter(|(done, _)| *done <= operations);
        before.map(|(_, revision)| *revision).max().unwrap_or(1)
    }

    fn contents_at(&self, revision: u64) -> Contents {
        let mut contents = Contents::new();
        for (key, entry) in self.writes.range(..=revision).map(|(_, write)| write) {
            match entry {
                Some(entry) => drop(contents.insert(key.clone(), entry.clone())),
                None => drop(contents.remove(key)),
            }
        }
        contents
    }
}

fn open(platter: &Platter) -> Store {
    let file = File::on(Path::new("platter"), opener(platter), format::STEPS).unwrap();
    Store::open(&Disk::with_backend(file).unwrap(), "s", Limits::default()).unwrap()
}

fn contents(store: &Store) -> Contents {
    let page = store.list(Range { bucket: "b", ..Range::default() }).unwrap();
    page.entries.into_iter().map(|(key, entry)| (key.to_string(), entry)).collect()
}

/// Values from nothing to several pages; a delete in every third round.
async fn write(store: &Store, platter: &Platter, told: &mut Told) {
    for round in 0..ROUNDS {
        let [a, b, c] = [0, 1, 2].map(|lane| async move {
            let key = format!("{lane}-{}", round % 2);
            let size = (round * 1777 + lane * 3001) as usize % 9000;
            let removes = round % 3 == 2 && lane == 1;
            let entry = match removes {
                true => store.delete("b", &key, Expected::Any, |_| Bytes::new()).await,
                false => {
                    let make = |revision: u64| Bytes::from(vec![revision as u8; size]);
                    store.put("b", &key, Expected::Any, make).await
                }
            };
            (key, entry.unwrap(), removes)
        });
        let (a, b, c) = tokio::join!(a, b, c);
        for (key, entry, removed) in [a, b, c] {
            told.writes.insert(entry.modified, (key, (!removed).then_some(entry)));
        }
        told.answers.push((platter.recorded(), store.revision()));
    }
}

/// What is under the name of a file after a power cut, opened as any file is.
fn opened(platter: &Platter) -> Result<File, OpenError> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data.redb");
    std::fs::write(&path, platter.image()).unwrap();
    File::open(&path)
}

fn make(platter: &Platter) -> Result<(), redb::Error> {
    let database = builder().create_with_backend(platter.clone())?;
    create::fill(&database)
}

#[test]
fn a_file_that_was_cut_short_while_it_was_made_is_refused_or_whole() {
    let platter = Platter::default();
    platter.record();
    make(&platter).unwrap();
    let operations = platter.operations();
    let tape = platter.take_tape();
    let reordered = (0..operations).flat_map(|cut| {
        let platter = Platter::default();
        platter.cut_after(cut);
        // Making it fails, or closing it does, which nobody is told of.
        let _ = BackendError::from_panic(|| make(&platter));
        (0..SEEDS).map(move |seed| platter.after_power_cut(seed)).collect::<Vec<_>>()
    });
    let (mut refused, mut whole) = (0, 0);
    for left in tape.cuts().map(|(_, left)| left).chain(reordered) {
        match opened(&left) {
            Err(error) => {
                assert!(matches!(error, OpenError::Damaged { .. }), "{error:?}");
                refused += 1;
            }
            Ok(mut file) => {
                // All that makes it a store is there, and nothing in it.
                assert_eq!(file.settle().unwrap(), 0);
                assert_eq!(file.load("s", &mut |_| panic!("a record")).unwrap(), None);
                file.commit(&batch(1, 4)).unwrap();
                whole += 1;
            }
        }
    }
    assert!(refused > 20 && whole > 0, "{refused} refused, {whole} whole");
}

#[tokio::test]
async fn a_power_cut_in_the_middle_of_any_write_takes_back_no_answer() {
    let platter = fresh();
    platter.record();
    let mut told = Told::default();
    let store = open(&platter);
    write(&store, &platter, &mut told).await;
    // Closing the file is part of it.
    drop(store);
    let tape = platter.take_tape();
    assert_eq!(told.writes.len() as u64, ROUNDS * LANES);

    let mut cuts = 0;
    let mut unanswered = 0;
    for (finished, left) in tape.cuts() {
        let answered = told.answered_before(finished);
        let store = open(&left);
        let found = store.revision();
        assert!(
            (answered..=answered + LANES).contains(&found),
            "{found} found, {answered} answered after {finished} operations"
        );
        assert!(contents(&store) == told.contents_at(found), "{found} after {finished} operations");
        let entry = store.put("b", "on", Expected::Absent, |_| Bytes::new()).await.unwrap();
        assert_eq!(entry.modified, found + 1);
        cuts += 1;
        unanswered += u64::from(found > answered);
    }
    // Cuts in many places, and some of them between a commit and its answer.
    assert!(cuts > 200 && unanswered > 0, "{cuts} cuts, {unanswered} with unanswered writes");
}
