//! `cargo xtask bench apiserver`: the same load on kube-apiserver with etcd and on our own server, one
//! after the other, in one run.
//!
//! Both wait for the disk, are reached over TLS with client certificates, and have the machine to
//! themselves and the one process that asks. What clients ask for is in `requests`, and what they do
//! not do with the answers in `crowd`. Starts are those of processes: the system may still have their
//! files in memory.

pub(crate) mod crowd;
mod fanout;
pub(crate) mod ours;
pub(crate) mod requests;
mod rows;
mod side;
mod theirs;

use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use cleat_runtime::connect::connect;
use cleat_world::kubernetes::Binaries;
use kube::{Client, Config};

use self::crowd::{Crowd, Timed};
use self::ours::Ours;
use self::side::Side;
use self::theirs::Theirs;
use super::bare;
use super::procs::{self, Ending};
use super::stage;
use super::table::{self, percentile};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// A tenth of everything, to see that it runs
    #[arg(long)]
    quick: bool,
    /// So many ConfigMaps are created, half of them by the most clients [default: 20000]
    #[arg(long)]
    objects: Option<usize>,
    /// These numbers of clients create; the second does everything else [default: 1,16,64]
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..=2000))]
    clients: Vec<u16>,
    /// So many watch [default: 100]
    #[arg(long)]
    watchers: Option<usize>,
    /// So many ConfigMaps lie on the disk when a start is measured with them [default: 100000]
    #[arg(long)]
    stored: Option<usize>,
    /// Our server alone: no real Kubernetes is needed, and there are no ratios
    #[arg(long)]
    alone: bool,
    /// Run what is built, optimised or not: to see that it runs, not to measure
    #[arg(long)]
    pub(super) as_built: bool,
}

/// How much of everything.
struct Size {
    objects: usize,
    clients: Vec<usize>,
    gets: usize,
    /// Patches, then applies, then deletes: so many of each.
    changes: usize,
    lists: usize,
    watchers: usize,
    writes: usize,
    stored: usize,
    starts: usize,
    rest: Duration,
}

impl Size {
    fn of(args: &Args) -> Self {
        let part = if args.quick { 10 } else { 1 };
        let objects = args.objects.unwrap_or(20_000 / part);
        let clients: Vec<usize> = args.clients.iter().copied().map(usize::from).collect();
        Self {
            objects,
            clients: if clients.is_empty() { vec![1, 16, 64] } else { clients },
            gets: objects,
            changes: objects / 4,
            lists: if args.quick { 3 } else { 11 },
            watchers: args.watchers.unwrap_or(100 / part),
            writes: 200 / part,
            stored: args.stored.unwrap_or(100_000 / part),
            starts: if args.quick { 1 } else { 3 },
            rest: Duration::from_secs(if args.quick { 1 } else { 10 }),
        }
    }

    /// Numbers of clients, and how many objects they create together: the last ones half of all.
    fn creates(&self) -> Vec<(usize, usize)> {
        let Some((last, others)) = self.clients.split_last() else { return Vec::new() };
        let each = (self.objects / 2).checked_div(others.len()).unwrap_or_default();
        let rest = self.objects - each * others.len();
        others.iter().map(|clients| (*clients, each)).chain([(*last, rest)]).collect()
    }

    /// How many clients do everything else.
    fn others(&self) -> usize {
        self.clients.get(1).or(self.clients.first()).copied().unwrap_or(1)
    }
}

/// What one server measured.
struct Figures {
    /// By number of clients.
    creates: Vec<(usize, Timed)>,
    /// Bytes, right after the creates.
    resident: f64,
    /// Bytes, some seconds later.
    rested: f64,
    gets: Timed,
    patches: Timed,
    applies: Timed,
    deletes: Timed,
    /// Milliseconds, sorted, of whole lists of so many objects.
    lists: Vec<f64>,
    listed: usize,
    /// Milliseconds, sorted, from a write to each watcher.
    fanout: Vec<f64>,
    starts: Starts,
}

/// Seconds until it was ready, sorted.
struct Starts {
    from_nothing: Vec<f64>,
    asked: Vec<f64>,
    killed: Vec<f64>,
}

pub(crate) async fn run(args: &Args) -> Result<()> {
    let size = Size::of(args);
    println!("load before: {}", procs::load()?);
    let dir = crate::root().join("target").join("bench");
    std::fs::create_dir_all(&dir).with_context(|| format!("create {}", dir.display()))?;
    println!(
        "{} core(s); the same process asks both servers",
        std::thread::available_parallelism()?
    );
    disk(&dir)?;
    let theirs = match args.alone {
        true => None,
        false => {
            let binaries = Binaries::built(&crate::root().join("kubernetes"))?;
            println!("\nkube-apiserver {}, etcd with fsync", binaries.version());
            let mut theirs = Theirs::start(&binaries, &dir).await?;
            Some(measure(&mut theirs, &size).await?)
        }
    };
    println!("\nour own server, with fsync");
    let mut ours = Ours::start(&dir, "apiserver").await?;
    let figures = measure(&mut ours, &size).await?;
    drop(ours);
    println!();
    table::print_beside("kube-apiserver", &rows::rows(&size, &figures, theirs.as_ref()));
    println!("load after: {}", procs::load()?);
    Ok(())
}

/// What the disk itself asks for a small write that is to last: neither server can do with less.
fn disk(dir: &Path) -> Result<()> {
    let path = dir.join("apiserver.probe");
    let mut file = std::fs::File::create(&path).context("create a file to sync")?;
    let mut times = Vec::new();
    for _ in 0..200 {
        let begun = Instant::now();
        file.write_all(&[0; 1024])?;
        file.sync_data()?;
        times.push(begun.elapsed().as_secs_f64() * 1000.0);
    }
    drop(file);
    std::fs::remove_file(&path).context("remove the file again")?;
    times.sort_by(f64::total_cmp);
    let (half, most) = (percentile(&times, 0.5), percentile(&times, 0.99));
    println!("a bare write of 1 KiB with its sync: p50 {half:.2} ms, p99 {most:.2} ms");
    Ok(())
}

fn name(number: usize) -> String {
    format!("map-{number}")
}

/// All of it on one server.
async fn measure(side: &mut impl Side, size: &Size) -> Result<Figures> {
    let config = stage::config(&side.kubeconfig()).await?;
    let client = connect(config.clone(), "cleat-bench")?;
    let mut creates = Vec::new();
    let mut place = String::new();
    let mut listed = 0;
    for (index, (clients, objects)) in size.creates().into_iter().enumerate() {
        place = format!("created-{index}");
        listed = objects;
        let timed = create(&client, &config, &place, clients, objects).await?;
        tell(&format!("creates with {clients} client(s)"), &timed)?;
        creates.push((clients, timed));
    }
    let resident = side.resident()?;
    tokio::time::sleep(size.rest).await;
    let rested = side.resident()?;

    let crowd = Crowd::connect(&config, size.others()).await?;
    let changes = size.changes.min(listed);
    let of = place.clone();
    let gets =
        crowd.run(size.gets, move |at| requests::get(&of, &name(at % listed.max(1)))).await?;
    tell("gets", &gets)?;
    let lists = lists(&client, &place, size.lists).await?;
    println!("lists of {listed}: p50 {:.1} ms; load {}", percentile(&lists, 0.5), procs::load()?);
    let of = place.clone();
    let patches =
        crowd.run(changes, move |at| requests::patch(&of, &name(at), "key", "patched")).await?;
    tell("patches", &patches)?;
    let of = place.clone();
    let applies = crowd.run(changes, move |at| requests::apply(&of, &name(at), "applied")).await?;
    tell("applies", &applies)?;

    stage::namespace(&client, "watched").await?;
    let fanout = fanout::measure(&config, "watched", size.watchers, size.writes).await?;
    println!("fan-out: p99 {:.1} ms; load {}", percentile(&fanout, 0.99), procs::load()?);

    let deletes = crowd.run(changes, move |at| requests::delete(&place, &name(at))).await?;
    tell("deletes", &deletes)?;
    drop(crowd);
    let starts = starts(side, size, &client, &config).await?;
    Ok(Figures {
        creates,
        resident,
        rested,
        gets,
        patches,
        applies,
        deletes,
        lists,
        listed,
        fanout,
        starts,
    })
}

fn tell(what: &str, timed: &Timed) -> Result<()> {
    let most = percentile(&timed.times, 0.99);
    println!("{what}: {:.0}/s, p99 {most:.1} ms; load {}", timed.per_second, procs::load()?);
    Ok(())
}

/// So many objects in a namespace of their own.
async fn create(
    client: &Client,
    config: &Config,
    namespace: &str,
    clients: usize,
    objects: usize,
) -> Result<Timed> {
    stage::namespace(client, namespace).await?;
    let crowd = Crowd::connect(config, clients).await?;
    let of = namespace.to_owned();
    let timed = crowd.run(objects, move |number| requests::create(&of, &name(number))).await?;
    let there = bare::count(client, namespace).await?;
    ensure!(there >= objects, "{there} of {objects} objects are there");
    Ok(timed)
}

/// Milliseconds, sorted.
async fn lists(client: &Client, namespace: &str, times: usize) -> Result<Vec<f64>> {
    let mut took = Vec::with_capacity(times);
    for _ in 0..times {
        let request = requests::list(namespace)?;
        let begun = Instant::now();
        requests::drain(client, request).await?;
        took.push(begun.elapsed().as_secs_f64() * 1000.0);
    }
    took.sort_by(f64::total_cmp);
    Ok(took)
}

/// Starts with much on the disk, after an orderly end and after `kill -9`, then from nothing.
async fn starts(
    side: &mut impl Side,
    size: &Size,
    client: &Client,
    config: &Config,
) -> Result<Starts> {
    const MORE: &str = "more";
    let more = size.stored.saturating_sub(size.objects - size.changes.min(size.objects));
    let clients = size.clients.last().copied().unwrap_or(1);
    create(client, config, MORE, clients, more).await?;
    println!("{} objects stored; load {}", size.stored, procs::load()?);
    let (mut asked, mut killed, mut from_nothing) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..size.starts {
        for (ending, times) in [(Ending::Asked, &mut asked), (Ending::Killed, &mut killed)] {
            times.push(side.again(ending).await?);
            // Connections to the process before are of no use any more.
            let client = connect(config.clone(), "cleat-bench")?;
            let there = bare::count(&client, MORE).await?;
            ensure!(there >= more, "{there} of {more} objects are there after a start");
        }
    }
    for _ in 0..size.starts {
        from_nothing.push(side.anew().await?);
    }
    for times in [&mut asked, &mut killed, &mut from_nothing] {
        times.sort_by(f64::total_cmp);
    }
    println!("started {} times; load {}", size.starts * 3, procs::load()?);
    Ok(Starts { from_nothing, asked, killed })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(objects: usize, clients: &[u16]) -> Size {
        Size::of(&Args {
            quick: false,
            objects: Some(objects),
            clients: clients.to_vec(),
            watchers: None,
            stored: None,
            alone: true,
            as_built: true,
        })
    }

    #[test]
    fn the_last_clients_create_half_of_everything_and_whatever_does_not_divide() {
        assert_eq!(size(20_000, &[]).creates(), [(1, 5_000), (16, 5_000), (64, 10_000)]);
        assert_eq!(size(7, &[1, 2]).creates(), [(1, 3), (2, 4)]);
        assert_eq!(size(10, &[4]).creates(), [(4, 10)]);
    }

    #[test]
    fn the_second_number_of_clients_does_everything_else() {
        assert_eq!(size(10, &[]).others(), 16);
        assert_eq!(size(10, &[4]).others(), 4);
    }
}
