//! Tries the body of a fuzz target where there is no fuzzer: on its seeds, on bytes drawn at random, and
//! on seeds that were changed at random. Tests of several crates include this file.

use std::path::Path;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::{TestError, TestRunner};

pub(crate) fn exercise(target: &str, cases: u32, body: fn(&[u8])) {
    let seeds = seeds(target);
    assert!(!seeds.is_empty(), "{target} has no seeds");
    for seed in &seeds {
        body(seed);
    }
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let outcome = TestRunner::new(config).run(&inputs(seeds), |bytes| {
        body(&bytes);
        Ok(())
    });
    match outcome {
        Ok(()) => {}
        Err(TestError::Fail(why, bytes)) => {
            panic!("{target}: {why} on b\"{}\"", bytes.escape_ascii())
        }
        Err(error) => panic!("{target}: {error}"),
    }
}

fn seeds(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(target);
    let mut files: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.into_iter().map(|path| std::fs::read(path).unwrap()).collect()
}

/// Where to change, how, a byte for it, and another place.
type Edit = (Index, u8, u8, Index);

fn inputs(seeds: Vec<Vec<u8>>) -> impl Strategy<Value = Vec<u8>> {
    let edits = vec((any::<Index>(), 0..4u8, any::<u8>(), any::<Index>()), 0..8);
    let changed = (select(seeds.clone()), select(seeds), edits).prop_map(|(seed, other, edits)| {
        edits.into_iter().fold(seed, |bytes, edit| changed(bytes, &other, edit))
    });
    prop_oneof![1 => vec(any::<u8>(), 0..200), 4 => changed]
}

fn changed(mut bytes: Vec<u8>, other: &[u8], (at, how, byte, place): Edit) -> Vec<u8> {
    if bytes.is_empty() {
        return vec![byte];
    }
    let at = at.index(bytes.len());
    match how {
        0 => bytes[at] = byte,
        1 => bytes.insert(at, byte),
        2 => {
            let end = bytes.len().min(at + 1 + place.index(16));
            drop(bytes.drain(at..end));
        }
        _ => {
            let from = place.index(other.len() + 1);
            let piece: Vec<u8> = other[from..].iter().copied().take(usize::from(byte)).collect();
            drop(bytes.splice(at..at, piece));
        }
    }
    bytes
}
