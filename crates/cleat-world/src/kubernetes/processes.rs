//! The processes of the control planes, written down so that another run can end exactly them.
//!
//! `DIR/pids` has one line per process: pid, start time, name. The start time tells a process from
//! a later one with the same pid. A process is written down right after it is spawned and before
//! anything waits for it, so a killed `up` leaves nothing that `down` cannot find. Linux only: the
//! start time comes from `/proc`.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

/// The name under which the starting process itself is written down. It is never ended.
const STARTER: &str = "starter";

/// Processes started by this run.
pub(crate) struct Processes {
    dir: PathBuf,
    started: Vec<Started>,
}

struct Started {
    name: String,
    log: PathBuf,
    child: Child,
}

impl Processes {
    /// Takes `dir` for this run, or refuses when what is written down there still runs.
    pub(crate) fn claim(dir: &Path) -> Result<Self> {
        let running: Vec<Line> = read(dir)?.into_iter().filter(Line::runs).collect();
        if let Some(line) = running.first() {
            bail!(
                "control planes already run in {} ({} of pid {} and {} more): \
                 end them first with `cargo xtask kubernetes down`",
                dir.display(),
                line.name,
                line.pid,
                running.len() - 1
            );
        }
        let path = dir.join("pids");
        if path.exists() {
            std::fs::remove_file(&path).with_context(|| format!("remove {}", path.display()))?;
        }
        let mut file =
            OpenOptions::new().write(true).create_new(true).open(&path).with_context(|| {
                format!("create {} (is another `up` starting here?)", path.display())
            })?;
        let starter = Line::of(std::process::id(), STARTER)?;
        writeln!(file, "{starter}").context("write down the starting process")?;
        Ok(Self { dir: dir.to_owned(), started: Vec::new() })
    }

    /// Starts `command` in a process group of its own, so that Ctrl-C does not reach it.
    pub(crate) fn spawn(&mut self, name: &str, command: &mut Command) -> Result<()> {
        let log = self.dir.join("logs").join(format!("{name}.log"));
        let output =
            std::fs::File::create(&log).with_context(|| format!("create {}", log.display()))?;
        let child = command
            .stdin(Stdio::null())
            .stdout(output.try_clone().context("share the log")?)
            .stderr(output)
            .process_group(0)
            .spawn()
            .with_context(|| format!("start {name}"))?;
        let pid = child.id();
        self.started.push(Started { name: name.to_owned(), log, child });
        let mut file = OpenOptions::new()
            .append(true)
            .open(self.dir.join("pids"))
            .context("open the list of processes")?;
        writeln!(file, "{}", Line::of(pid, name)?).with_context(|| format!("write down {name}"))
    }

    /// Fails with the end of the log when a process ended although it should run.
    pub(crate) fn check(&mut self) -> Result<()> {
        for started in &mut self.started {
            if let Some(status) = started.child.try_wait().context("look at a process")? {
                let log = std::fs::read_to_string(&started.log).unwrap_or_default();
                let mut end: Vec<&str> = log.lines().rev().take(12).collect();
                end.reverse();
                bail!(
                    "{} ended with {status}; its log ends with\n{}",
                    started.name,
                    end.join("\n")
                );
            }
        }
        Ok(())
    }

    /// Lets the processes run on; [`end_recorded`] finds them.
    pub(crate) fn forget(&mut self) {
        self.started.clear();
    }

    /// Ends all processes of this run, the last started first.
    pub(crate) fn end(&mut self) {
        for mut started in self.started.drain(..).rev() {
            // Only fails when it has ended already.
            started.child.kill().ok();
            started.child.wait().ok();
        }
    }
}

/// Ends the processes written down in `dir`, the last started first, and names them.
pub(crate) fn end_recorded(dir: &Path) -> Result<Vec<String>> {
    let mut ended = Vec::new();
    let mut waiting = Vec::new();
    for line in read(dir)?.into_iter().rev() {
        if line.name == STARTER || !line.runs() {
            continue;
        }
        if let Some(pid) = Pid::from_raw(line.pid.cast_signed()) {
            // Killed rather than asked: the state goes too, and an API server that is asked
            // nicely waits for its watches to end.
            kill_process(pid, Signal::KILL)
                .with_context(|| format!("end {} of pid {}", line.name, line.pid))?;
        }
        ended.push(line.name.clone());
        waiting.push(line);
    }
    let deadline = Instant::now() + Duration::from_secs(20);
    while let Some(line) = waiting.iter().find(|line| line.runs()) {
        if Instant::now() > deadline {
            bail!("{} of pid {} does not end", line.name, line.pid);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(ended)
}

struct Line {
    pid: u32,
    start: u64,
    name: String,
}

impl Line {
    fn of(pid: u32, name: &str) -> Result<Self> {
        let start = start_time(pid).with_context(|| format!("find {name} in /proc"))?;
        Ok(Self { pid, start, name: name.to_owned() })
    }

    fn runs(&self) -> bool {
        start_time(self.pid) == Some(self.start)
    }
}

impl std::fmt::Display for Line {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} {} {}", self.pid, self.start, self.name)
    }
}

fn read(dir: &Path) -> Result<Vec<Line>> {
    let path = dir.join("pids");
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).with_context(|| format!("read {}", path.display())),
    };
    // A run killed while it wrote leaves half a line; its process was never waited for.
    let parse = |line: &str| {
        let mut words = line.split_whitespace();
        Some(Line {
            pid: words.next()?.parse().ok()?,
            start: words.next()?.parse().ok()?,
            name: words.next()?.to_owned(),
        })
    };
    Ok(text.lines().filter_map(parse).collect())
}

/// When the process started, in ticks since boot. None when there is none, or only its remains.
fn start_time(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the program's name in brackets and may itself contain brackets.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    let state = fields.next()?;
    if state == "Z" || state == "X" {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_ended_by_another_run_and_only_it() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("logs")).unwrap();
        let mut processes = Processes::claim(dir.path()).unwrap();
        processes.spawn("sleeper", Command::new("sleep").arg("600")).unwrap();
        processes.check().unwrap();

        assert!(Processes::claim(dir.path()).is_err(), "starting twice is refused");
        assert_eq!(end_recorded(dir.path()).unwrap(), ["sleeper"]);
        assert!(processes.check().is_err(), "the process is gone");
        assert!(end_recorded(dir.path()).unwrap().is_empty(), "ending twice does nothing");
    }

    #[test]
    fn a_reused_pid_is_not_ours() {
        let dir = tempfile::tempdir().unwrap();
        let mut bystander = Command::new("sleep").arg("600").spawn().unwrap();
        let start = start_time(bystander.id()).unwrap();
        let line = format!("{} {} etcd\n", bystander.id(), start - 1);
        std::fs::write(dir.path().join("pids"), line).unwrap();

        assert!(end_recorded(dir.path()).unwrap().is_empty());
        assert!(bystander.try_wait().unwrap().is_none(), "it still runs");
        bystander.kill().unwrap();
        bystander.wait().unwrap();
    }
}
