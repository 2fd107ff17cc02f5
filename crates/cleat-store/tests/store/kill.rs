//! A process that writes and is killed with no warning, over and over, on the same file.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use bytes::Bytes;
use cleat_store::{Disk, Expected, Limits, Store};

const FILE: &str = "CLEAT_STORE_KILL_FILE";
const ROUNDS: usize = 12;
const WRITERS: usize = 4;

/// Not a test by itself: the victim, when the test below starts this binary again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn victim() {
    let Some(path) = std::env::var_os(FILE) else { return };
    let disk = Disk::open(path).unwrap();
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..WRITERS {
        let store = Store::open(&disk, &format!("s{writer}"), Limits::default()).unwrap();
        writers.spawn(async move {
            for step in store.revision().. {
                let key = format!("k{}", step % 17);
                let removes = step % 7 == 0 && store.get("b", &key).is_some();
                let entry = match removes {
                    true => store.delete("b", &key, Expected::Any, |_| Bytes::new()).await,
                    false => store.put("b", &key, Expected::Any, |r| content(r).into()).await,
                };
                let revision = entry.unwrap().modified;
                let kind = if removes { "delete" } else { "put" };
                // One call, so that lines of several writers do not mix.
                let line = format!("ack {writer} {kind} {key} {revision}\n");
                std::io::stdout().write_all(line.as_bytes()).unwrap();
            }
        });
    }
    writers.join_all().await;
}

fn content(revision: u64) -> Vec<u8> {
    revision.to_string().repeat(1 + revision as usize % 300).into_bytes()
}

#[test]
fn a_killed_process_has_kept_every_write_it_was_told_of() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data.redb");
    let mut known: Vec<BTreeMap<String, u64>> = vec![BTreeMap::new(); WRITERS];
    let mut newest = [1; WRITERS];
    for round in 0..ROUNDS {
        let mut child = start(&path);
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        // Killed in the middle of its work: it goes on writing while this reads its last lines.
        let enough = 20 + (round * 37) % 150;
        let mut acks = 0;
        while let Some(Ok(line)) = lines.next() {
            let Some(at) = line.find("ack ") else { continue };
            let words: Vec<&str> = line[at..].split(' ').collect();
            // The last line may be cut; it is then no answer.
            let [_, writer, kind, key, revision] = words[..] else { continue };
            let (writer, revision): (usize, u64) =
                (writer.parse().unwrap(), revision.parse().unwrap());
            newest[writer] = revision;
            match kind {
                "put" => known[writer].insert(key.to_owned(), revision),
                _ => known[writer].remove(key),
            };
            acks += 1;
            if acks == enough {
                child.kill().unwrap();
            }
        }
        child.wait().unwrap();
        assert!(acks >= enough, "the child ended by itself in round {round}");
        check(&path, &mut known, newest, round);
    }
}

fn start(path: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["kill::victim", "--exact", "--nocapture"])
        .env(FILE, path)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Compares, and takes in the few writes that were stored but whose answer did not get out.
fn check(path: &Path, known: &mut [BTreeMap<String, u64>], newest: [u64; WRITERS], round: usize) {
    let disk = Disk::open(path).unwrap();
    for (writer, known) in known.iter_mut().enumerate() {
        let store = Store::open(&disk, &format!("s{writer}"), Limits::default()).unwrap();
        let unheard = store.revision() - newest[writer];
        assert!(unheard <= 1, "a writer has at most one write under way; {unheard} in {round}");
        let mut differ = 0;
        for n in 0..17 {
            let key = format!("k{n}");
            let found = store.get("b", &key);
            if let Some(entry) = &found {
                assert_eq!(entry.value, content(entry.modified), "a value is whole");
            }
            let found = found.map(|entry| entry.modified);
            if found != known.get(&key).copied() {
                assert!(found.is_none_or(|r| r == store.revision()), "round {round}, {key}");
                differ += 1;
                match found {
                    Some(revision) => known.insert(key, revision),
                    None => known.remove(&key),
                };
            }
        }
        assert!(differ <= unheard, "round {round}: {differ} keys of store {writer} differ");
    }
}
