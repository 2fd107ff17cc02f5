//! Prints how fast durable writes are with 1, 16 and 64 writers, and how long a large file takes to
//! open. `cargo run --release -p cleat-store --example throughput [DIR]`; the directory decides which
//! disk is measured.

#![allow(clippy::unwrap_used, reason = "a measurement that fails should stop")]

use std::path::Path;
use std::time::{Duration, Instant};

use bytes::Bytes;
use cleat_store::{Disk, Expected, Limits, Store};
use tokio::task::JoinSet;

const VALUE_BYTES: usize = 1024;
const TIME: Duration = Duration::from_secs(2);
const LOADED: usize = 100_000;

#[tokio::main]
async fn main() {
    let dir = std::env::args().nth(1).unwrap_or_else(|| std::env::temp_dir().display().to_string());
    let dir = tempfile::tempdir_in(dir).unwrap();
    // First, while no freed memory of the others can be used again.
    in_memory().await;
    for writers in [1, 16, 64] {
        durable_writes(&dir.path().join(format!("{writers}.redb")), writers).await;
    }
    loading(&dir.path().join("large.redb")).await;
}

fn value() -> Bytes {
    Bytes::from(vec![b'v'; VALUE_BYTES])
}

async fn durable_writes(path: &Path, writers: usize) {
    let disk = Disk::open(path).unwrap();
    let store = Store::open(&disk, "s", Limits::default()).unwrap();
    let start = Instant::now();
    let mut tasks = JoinSet::new();
    for writer in 0..writers {
        let store = store.clone();
        tasks.spawn(async move {
            let mut latencies = Vec::new();
            while start.elapsed() < TIME {
                let key = format!("ns/{writer}-{}", latencies.len());
                let begin = Instant::now();
                store.put("configmaps", &key, Expected::Absent, |_| value()).await.unwrap();
                latencies.push(begin.elapsed());
            }
            latencies
        });
    }
    let mut latencies = tasks.join_all().await.concat();
    latencies.sort_unstable();
    let rate = latencies.len() as f64 / start.elapsed().as_secs_f64();
    let at = |share: usize| latencies.get(latencies.len() * share / 100).copied();
    let (p50, p99) = (at(50).unwrap_or_default(), at(99).unwrap_or_default());
    println!("{writers:3} writers: {rate:8.0} durable writes/s, p50 {p50:?}, p99 {p99:?}");
}

async fn in_memory() {
    let before = resident_kib();
    let stores: Vec<Store> = (0..1000).map(|_| Store::in_memory(Limits::default())).collect();
    println!("an empty store in memory: {} bytes", (resident_kib() - before) * 1024 / stores.len());
    let before = resident_kib();
    let store = stores.first().unwrap();
    let start = Instant::now();
    for key in 0..20_000 {
        store.put("b", &format!("ns/k{key}"), Expected::Absent, |_| value()).await.unwrap();
    }
    let (took, grown) = (start.elapsed(), resident_kib() - before);
    println!("20000 values of 1 KiB in memory: {grown} KiB resident, written in {took:?}");
}

async fn loading(path: &Path) {
    let disk = Disk::open(path).unwrap();
    let store = Store::open(&disk, "s", Limits::default()).unwrap();
    let mut tasks = JoinSet::new();
    for key in 0..LOADED {
        let store = store.clone();
        tasks.spawn(async move {
            let key = format!("ns/k{key}");
            store.put("b", &key, Expected::Absent, |_| value()).await.unwrap();
        });
    }
    tasks.join_all().await;
    // Every write is synced, but the file was not closed: what a killed process leaves.
    let killed = path.with_extension("killed");
    std::fs::copy(path, &killed).unwrap();
    drop((store, disk));
    let size = std::fs::metadata(path).unwrap().len() >> 20;
    for (how, path) in [("closed", path), ("killed", &killed)] {
        let start = Instant::now();
        let disk = Disk::open(path).unwrap();
        let opened = start.elapsed();
        let store = Store::open(&disk, "s", Limits::default()).unwrap();
        assert_eq!(store.count("b", ""), LOADED);
        let took = start.elapsed();
        println!(
            "{LOADED} keys ({size} MiB), {how}: loaded in {took:?}, {opened:?} of it checking"
        );
    }
}

fn resident_kib() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
