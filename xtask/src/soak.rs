//! `cargo xtask soak`: our API server under churn for as long as asked, and whether its memory and its
//! file stay where they are.
//!
//! Ends with an error if either grows, so that whoever lets it run unattended is told.

mod churn;
pub(crate) mod flat;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use tokio::task::JoinSet;

use self::churn::Churn;
use self::flat::{Trend, all_flat};
use crate::bench::apiserver::ours::Ours;
use crate::bench::table::number;
use crate::bench::{procs, stage};

/// Our API server under churn: memory and file over time, and whether they are flat
#[derive(clap::Args)]
pub(crate) struct Args {
    /// For so long
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    minutes: u64,
    /// Clients that create, change, read and delete
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..))]
    clients: u16,
    /// Clients that watch, every fourth of them too slowly
    #[arg(long, default_value_t = 20)]
    watchers: u16,
    /// Objects that are there at any time
    #[arg(long, default_value_t = 5000)]
    objects: u64,
    /// Run what is built, optimised or not: to see that it runs, not to measure
    #[arg(long)]
    as_built: bool,
}

const MEBIBYTE: f64 = 1024.0 * 1024.0;
/// Looks at the server in all.
const LOOKS: u32 = 60;

pub(crate) fn run(args: &Args) -> Result<()> {
    if !args.as_built {
        crate::bench::optimise()?;
    }
    crate::kubernetes::runtime()?.block_on(async {
        tokio::select! {
            done = soak(args) => done,
            _ = tokio::signal::ctrl_c() => bail!("interrupted"),
        }
    })
}

async fn soak(args: &Args) -> Result<()> {
    println!("load before: {}", procs::load()?);
    let dir = crate::root().join("target").join("bench");
    std::fs::create_dir_all(&dir).with_context(|| format!("create {}", dir.display()))?;
    let ours = Ours::start(&dir, "soak").await?;
    let config = stage::config(&ours.kubeconfig()).await?;
    let asked = Arc::new(AtomicU64::new(0));
    let churn = Churn {
        config,
        window: (args.objects / u64::from(args.clients)).max(1),
        asked: Arc::clone(&asked),
    };
    let mut lanes = JoinSet::new();
    churn.start(args.clients, args.watchers, &mut lanes).await?;
    let (mut memory, mut files) = (Vec::new(), Vec::new());
    let begun = Instant::now();
    let pause = Duration::from_secs(args.minutes * 60) / LOOKS;
    println!("{:>8}  {:>10}  {:>12}  {:>10}", "minute", "file MiB", "resident MiB", "asked/s");
    for look in 1..=LOOKS {
        let (before, since) = (asked.load(Ordering::Relaxed), Instant::now());
        let next = tokio::time::Instant::from_std(begun + pause * look);
        tokio::select! {
            () = tokio::time::sleep_until(next) => {}
            // None of them ends by itself.
            Some(ended) = lanes.join_next() => {
                ended??;
                bail!("a client ended");
            }
        }
        let resident = ours.process().resident()? / MEBIBYTE;
        let file = number(usize::try_from(ours.stored()?)?) / MEBIBYTE;
        let answered = number(usize::try_from(asked.load(Ordering::Relaxed) - before)?);
        let (rate, minute) =
            (answered / since.elapsed().as_secs_f64(), begun.elapsed().as_secs_f64() / 60.0);
        println!("{minute:>8.1}  {file:>10.1}  {resident:>12.1}  {rate:>10.0}");
        memory.push(resident);
        files.push(file);
    }
    lanes.shutdown().await;
    let (memory, files) = (Trend::of(&memory), Trend::of(&files));
    println!("\nrequests: {}", asked.load(Ordering::Relaxed));
    println!("file, MiB: {files}");
    println!("resident memory, MiB: {memory}");
    println!("load after: {}", procs::load()?);
    all_flat(&[("memory", memory), ("the file", files)])
}
