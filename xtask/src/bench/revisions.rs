//! `cargo xtask bench revisions`: the store's file over millions of revisions.
//!
//! The store itself, without the server in front of it, on a real file with every commit synced: so
//! that ten million writes take minutes. As many keys as a fleet has, of sizes that vary, written all
//! over, deleted and made again; the past is forgotten at every look, as a compaction does. Ends with
//! an error if the file or the memory grows.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::{Context as _, Result};
use cleat_store::{Disk, Expected, Limits, Range, Revision, Store, WriteError};
use tokio::task::JoinSet;

use super::procs;
use super::table::number;
use crate::soak::flat::{Trend, all_flat};

const MEBIBYTE: f64 = 1024.0 * 1024.0;
const BUCKET: &str = "configmaps";
/// Looks at the file.
const LOOKS: u64 = 40;
/// How often a key is written on average, at the least, where growth means something.
const WRITES_OF_A_KEY: u64 = 40;
/// Every so many writes is a delete.
const DELETES: u64 = 16;
/// Spreads consecutive numbers: the golden ratio's part of 2^64.
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// A hundredth of everything, to see that it runs
    #[arg(long)]
    quick: bool,
    /// So many revisions [default: 10000000]
    #[arg(long)]
    revisions: Option<u64>,
    /// So many keys [default: 20000]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    keys: Option<u64>,
    /// So many writes under way at the same time
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u16).range(1..))]
    writers: u16,
    /// Run what is built, optimised or not: to see that it runs, not to measure
    #[arg(long)]
    pub(super) as_built: bool,
}

pub(crate) async fn run(args: &Args) -> Result<()> {
    let revisions = args.revisions.unwrap_or(if args.quick { 100_000 } else { 10_000_000 });
    let keys = args.keys.unwrap_or(if args.quick { 200 } else { 20_000 });
    println!("load before: {}", procs::load()?);
    let dir = crate::root().join("target").join("bench");
    std::fs::create_dir_all(&dir).with_context(|| format!("create {}", dir.display()))?;
    let path = dir.join("revisions.redb");
    if path.exists() {
        std::fs::remove_file(&path).context("remove what an earlier run left")?;
    }
    let disk = Disk::open(&path)?;
    let store = Store::open(&disk, "bench", Limits::default())?;
    println!("{keys} keys, {} writes under way, every commit synced\n", args.writers);
    println!("{:>12}  {:>8}  {:>10}  {:>10}", "revisions", "per s", "file MiB", "this MiB");
    let next = Arc::new(AtomicU64::new(0));
    let (mut files, mut memory) = (Vec::new(), Vec::new());
    for look in 1..=LOOKS {
        let (from, begun) = (store.revision(), Instant::now());
        let until = revisions / LOOKS * look;
        write(&store, keys, args.writers, &next, until).await?;
        store.compact(store.revision());
        let rate =
            number(usize::try_from(store.revision() - from)?) / begun.elapsed().as_secs_f64();
        let size = number(usize::try_from(disk.size().context("look at the file")?)?) / MEBIBYTE;
        let resident = procs::resident(std::process::id())? / MEBIBYTE;
        println!("{:>12}  {rate:>8.0}  {size:>10.1}  {resident:>10.1}", store.revision());
        files.push(size);
        memory.push(resident);
    }
    let live = store.list(Range { bucket: BUCKET, ..Range::default() })?;
    let bytes: usize = live.entries.iter().map(|(_, entry)| entry.value.len()).sum();
    println!("\nlive: {} keys of {:.1} MiB", live.entries.len(), number(bytes) / MEBIBYTE);
    let (files, memory) = (Trend::of(&files), Trend::of(&memory));
    println!("file, MiB: {files}");
    println!("memory of this process, MiB: {memory}");
    println!("load after: {}", procs::load()?);
    drop((store, disk));
    std::fs::remove_file(&path).context("remove the file")?;
    // Until every key has been written a few times, what there is grows by itself.
    if revisions / keys < WRITES_OF_A_KEY {
        println!("too few revisions for so many keys to judge this");
        return Ok(());
    }
    all_flat(&[("the file", files), ("memory", memory)])
}

/// The key that a write is about, anywhere.
///
/// The lower bits of a product follow those of its factors: with them, deletes would only ever meet
/// keys that nothing writes. The upper ones are mixed in, and used.
fn key(at: u64, keys: u64) -> u64 {
    let spread = at.wrapping_mul(SPREAD);
    ((spread ^ (spread >> 32)).wrapping_mul(SPREAD) >> 32) % keys
}

/// From 200 bytes to 2 KiB, so that no page fits the next value by chance.
fn value(at: u64) -> Vec<u8> {
    let more = usize::try_from(at.wrapping_mul(31) % 1848).unwrap_or_default();
    vec![b'v'; 200 + more]
}

/// Writes until the store is at a revision.
async fn write(
    store: &Store,
    keys: u64,
    writers: u16,
    next: &Arc<AtomicU64>,
    until: Revision,
) -> Result<()> {
    let mut lanes = JoinSet::new();
    for _ in 0..writers {
        let (store, next) = (store.clone(), Arc::clone(next));
        lanes.spawn(async move {
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let key = format!("bench/map-{}", key(at, keys));
                let written = if at.is_multiple_of(DELETES) {
                    store.delete(BUCKET, &key, Expected::Any, |_| Vec::<u8>::new().into()).await
                } else {
                    store.put(BUCKET, &key, Expected::Any, |_| value(at).into()).await
                };
                match written {
                    Ok(entry) if entry.modified >= until => return anyhow::Ok(()),
                    // What is not there cannot be deleted.
                    Ok(_) | Err(WriteError::Conflict { .. }) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        });
    }
    while let Some(lane) = lanes.join_next().await {
        lane??;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn deletes_and_writes_meet_on_the_same_keys() {
        let keys = |deletes: bool| -> BTreeSet<u64> {
            (0..400_000_u64)
                .filter(|at| at.is_multiple_of(DELETES) == deletes)
                .map(|at| key(at, 20_000))
                .collect()
        };
        let (written, deleted) = (keys(false), keys(true));
        assert!(written.len() > 19_000, "{} keys are written", written.len());
        let both = written.intersection(&deleted).count();
        assert!(both > 10_000, "{both} keys are deleted and written");
    }
}
