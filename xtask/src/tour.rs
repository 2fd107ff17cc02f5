//! `cargo xtask tour`: plays docs/tour.md, every command of it, and compares what is printed with what
//! the tour says.
//!
//! The first block starts the fleet; each other `console` block is commands (`$ …`) with what they
//! print to standard output. A command that fails is no part of a tour, unless it ends in `2>&1` to show how it
//! does. Ages, times, ports, and the hashes of plans differ from run to run and are
//! not compared; a hash that a command of the tour repeats is the one that was printed in this run.

mod page;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use cleat_world::kubernetes::Binaries;

use self::page::{Page, Shown, is_hash};

/// Play every command of docs/tour.md on `cleat up --demo`, and compare what they print
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Write down what was printed instead of comparing it
    #[arg(long)]
    record: bool,
}

/// How long the same command may print something else before that is how it is: what the tour shows
/// is the end of what the fleet does by itself.
const PATIENCE: Duration = Duration::from_secs(90);
const PAUSE: Duration = Duration::from_millis(500);
/// So often must a command repeat itself before that is written down.
const SETTLED: usize = 4;
/// And so often one that prints nothing, for that may be because it is early.
const SILENT: usize = 40;

pub(crate) fn run(args: &Args) -> Result<()> {
    let begun = Instant::now();
    let file = crate::root().join("docs").join("tour.md");
    let text = std::fs::read_to_string(&file).context("read the tour")?;
    let mut page = Page::parse(&text)?;
    let stage = Stage::set()?;
    let (first, rest) = page.shown.split_first_mut().context("the tour shows nothing")?;
    let mut fleet = stage.up(first)?;
    let mut hashes = BTreeMap::new();
    let mut last: Option<String> = None;
    let mut different = Vec::new();
    for shown in std::iter::once(&mut *first).chain(rest) {
        if let (true, Some(plan)) = (args.record, &last) {
            shown.agree_to(plan);
        }
        let Played { printed, failed } = match shown.command.starts_with(page::START) {
            true => Played { printed: std::mem::take(&mut fleet.printed), failed: None },
            false => stage.play(shown, &hashes, args.record)?,
        };
        if let Some(status) = failed {
            if args.record {
                bail!("`{}` ended with {status}", shown.command);
            }
            different.push(format!("{}-- it ended with {status}", shown.difference(&printed)));
        } else if args.record {
            let printed_hashes = printed.iter().flat_map(|line| page::words(line));
            last = printed_hashes.filter(|word| is_hash(word)).last().map(str::to_owned).or(last);
            shown.output = printed;
        } else if !shown.is_like(&printed) {
            different.push(shown.difference(&printed));
        } else {
            shown.learn(&printed, &mut hashes);
        }
    }
    if args.record {
        return std::fs::write(&file, page.to_string()).context("write the tour");
    }
    for difference in &different {
        println!("{difference}\n");
    }
    println!("tour: {} passed, {} failed", page.shown.len() - different.len(), different.len());
    println!("every command of docs/tour.md was played in {} s", begun.elapsed().as_secs());
    if !different.is_empty() {
        bail!("the tour says something else; `cargo xtask tour --record` writes it anew");
    }
    Ok(())
}

/// What came of a command.
struct Played {
    printed: Vec<String>,
    /// How it ended, if that was not to be.
    failed: Option<ExitStatus>,
}

/// Where commands run.
struct Stage {
    /// The tour's commands are typed here.
    dir: PathBuf,
    path: OsString,
}

/// `cleat up --demo`; killed when dropped.
struct Fleet {
    child: Child,
    printed: Vec<String>,
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Stage {
    fn set() -> Result<Self> {
        let cleat = crate::program::build()?;
        let dir = crate::root().join("target").join("tour");
        if dir.exists() {
            std::fs::remove_dir_all(&dir).context("remove what an earlier tour left")?;
        }
        std::fs::create_dir_all(&dir).context("make a place for the tour")?;
        let kubectl = Binaries::built(&crate::root().join("kubernetes"))?.folder().to_owned();
        let ansible = cleat_world::ansible::install()?;
        let folders = [&*cleat, &*ansible].into_iter().filter_map(Path::parent);
        let folders = folders.map(Path::to_owned).chain([kubectl]);
        let inherited = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths(folders.chain(std::env::split_paths(&inherited)))?;
        Ok(Self { dir, path })
    }

    fn command(&self, text: &str) -> Command {
        let mut command = Command::new("bash");
        command.args(["-c", text]).current_dir(&self.dir).env("PATH", &self.path);
        command.env("KUBECONFIG", ".cleat/kubeconfig").stdin(Stdio::null());
        command
    }

    /// Starts the fleet, and reads until it says that it is ready.
    fn up(&self, shown: &Shown) -> Result<Fleet> {
        if !shown.command.starts_with(page::START) {
            bail!("the tour begins with `{}`", page::START);
        }
        let text = format!("exec {}", shown.command);
        let child = self.command(&text).stdout(Stdio::piped()).spawn().context("start cleat up")?;
        let mut fleet = Fleet { child, printed: Vec::new() };
        let lines = BufReader::new(fleet.child.stdout.take().context("read what it prints")?);
        for line in lines.lines() {
            let line = line.context("read what cleat up prints")?;
            let ready = line.starts_with("ready in");
            fleet.printed.push(line);
            if ready {
                return Ok(fleet);
            }
        }
        bail!("cleat up ended before it was ready")
    }

    /// What the command prints. A command that only looks is asked again until it prints what the tour
    /// says, or for long enough: the fleet is at work meanwhile.
    /// Where it is to be written down, what it goes on printing is taken.
    fn play(
        &self,
        shown: &Shown,
        hashes: &BTreeMap<String, String>,
        record: bool,
    ) -> Result<Played> {
        let words = shown.command.split(' ');
        let words = words.map(|word| hashes.get(word).map_or(word, String::as_str));
        let text = words.collect::<Vec<_>>().join(" ");
        let begun = Instant::now();
        let (mut before, mut same) = (Vec::new(), 0);
        loop {
            let output = self.command(&text).stderr(Stdio::inherit()).output();
            let output = output.with_context(|| format!("run {text}"))?;
            let printed = String::from_utf8(output.stdout).context("read what it printed")?;
            let printed: Vec<String> =
                printed.lines().map(|line| line.trim_end().to_owned()).collect();
            same = if page::are_like(&printed, &before) { same + 1 } else { 0 };
            let enough = if printed.is_empty() { SILENT } else { SETTLED };
            let settled = if record { same >= enough } else { shown.is_like(&printed) };
            let failed = (!output.status.success() && !shown.may_fail()).then_some(output.status);
            let settled = settled && failed.is_none();
            if settled || !shown.only_looks() || begun.elapsed() > PATIENCE {
                return Ok(Played { printed, failed });
            }
            before = printed;
            std::thread::sleep(PAUSE);
        }
    }
}

impl Shown {
    /// In a tour that is written anew, the plan that a command names is the one that was shown last.
    fn agree_to(&mut self, plan: &str) {
        let words = self.command.split(' ');
        let words = words.map(|word| if page::is_plan(word) { plan } else { word });
        self.command = words.collect::<Vec<_>>().join(" ");
    }

    /// Takes in the hashes that stand where the tour has others.
    fn learn(&self, printed: &[String], hashes: &mut BTreeMap<String, String>) {
        for (said, is) in self.output.iter().zip(printed) {
            for (said, is) in page::words(said).zip(page::words(is)) {
                if is_hash(said) && is_hash(is) {
                    hashes.insert(said.to_owned(), is.to_owned());
                }
            }
        }
    }
}
