//! Which processes belong to a job, and what dead runners left behind.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getuid, kill_process};

/// Names of the folders of jobs, before and after they are locked.
pub(crate) const NEW: &str = "cleat-new-job-";
pub(crate) const FOLDER: &str = "cleat-job-";
/// Whoever works in a folder holds a lock on this file in it.
pub(crate) const LOCK: &str = "lock";

/// The folder of one job. Only this user may look into it, and it goes with this value.
pub(crate) struct Folder {
    path: PathBuf,
    _lock: File,
}

impl Folder {
    /// It bears its name only when it is locked, so that nobody takes it for left behind.
    pub(crate) fn make() -> std::io::Result<Self> {
        let new = tempfile::Builder::new().prefix(NEW).tempdir()?;
        let lock = File::create_new(new.path().join(LOCK))?;
        lock.lock_shared()?;
        let name = new.path().file_name().map(|name| name.to_string_lossy().replace(NEW, FOLDER));
        let path = new.path().with_file_name(name.unwrap_or_default());
        std::fs::rename(new.path(), &path)?;
        // What it was called is gone.
        drop(new.keep());
        Ok(Self { path, _lock: lock })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.path));
    }
}

/// Ends what still runs in folders of jobs in which nobody works any more, and removes them.
pub(crate) fn tidy(place: &Path) -> std::io::Result<usize> {
    let mut found = 0;
    for entry in std::fs::read_dir(place)?.flatten() {
        let name = entry.file_name();
        let path = entry.path();
        let ours =
            entry.metadata().is_ok_and(|data| data.is_dir() && data.uid() == getuid().as_raw());
        if !ours || !name.to_string_lossy().starts_with(FOLDER) {
            continue;
        }
        let Ok(lock) = File::open(path.join(LOCK)) else { continue };
        if lock.try_lock().is_err() {
            continue;
        }
        end_all(&path);
        std::fs::remove_dir_all(&path)?;
        found += 1;
    }
    Ok(found)
}

/// How long the last process of a job may take to be gone after it was killed.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a process may take to say what its home is.
const SHYNESS: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(10);

/// Kills every process whose home is the folder of that job, until none is left.
pub(crate) fn end_all(folder: &Path) {
    let home = format!("HOME={}", folder.display());
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        let mut none = true;
        for pid in processes().into_keys() {
            match is_at_home(pid, &home) {
                Some(false) => {}
                Some(true) => {
                    none = false;
                    let _ = Pid::from_raw(pid).map(|pid| kill_process(pid, Signal::KILL));
                }
                None => none &= begun.elapsed() > SHYNESS,
            }
        }
        if none {
            break;
        }
        std::thread::sleep(PAUSE);
    }
}

/// Nothing if it cannot be told yet: a process that is just beginning to run a program has no
/// environment for a moment, though whoever made it was told that it runs.
fn is_at_home(pid: i32, home: &str) -> Option<bool> {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).ok();
    let Some(environment) = environment.filter(|it| !it.is_empty()) else {
        // What the kernel runs by itself has neither, and what has ended or is not ours tells nothing.
        let runs = std::fs::read_link(format!("/proc/{pid}/exe")).is_ok();
        return (!runs).then_some(false);
    };
    let mut variables = environment.split(|byte| *byte == 0);
    Some(variables.any(|variable| variable == home.as_bytes()))
}

/// Its children, theirs, and so on, without those that have ended.
pub(crate) fn descendants(of: Pid) -> Vec<Pid> {
    let parents = processes();
    let mut found = vec![of.as_raw_pid()];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        next += 1;
        let children = parents.iter().filter(|(_, one)| **one == parent);
        found.extend(children.map(|(pid, _)| *pid));
    }
    found.into_iter().skip(1).filter_map(Pid::from_raw).collect()
}

/// Every process that has not ended, and its parent.
fn processes() -> BTreeMap<i32, i32> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return BTreeMap::new() };
    let each = entries.flatten().filter_map(|entry| {
        let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        Some((pid, parent(&stat)?))
    });
    each.collect()
}

/// The parent, from a line of `/proc/PID/stat`; nothing if the process has ended. Its name, in
/// parentheses, may hold anything.
fn parent(stat: &str) -> Option<i32> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    (!["Z", "X"].contains(&state)).then_some(parent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_told_from_one_that_has_ended_whatever_its_name() {
        assert_eq!(parent("7 (a) b) (c) S 5 7 7 0 -1"), Some(5));
        assert_eq!(parent("7 (sh) Z 5 7 7 0 -1"), None);
        assert_eq!(parent("7"), None);
    }

    /// As a runner leaves it that was killed: nobody holds the lock.
    #[test]
    fn what_a_dead_runner_left_is_ended_and_removed_and_what_a_living_one_uses_is_not() {
        let place = tempfile::tempdir().unwrap();
        let make = |name: &str| {
            let path = place.path().join(format!("{FOLDER}{name}"));
            std::fs::create_dir(&path).unwrap();
            std::fs::write(path.join("vault"), "secret").unwrap();
            let lock = File::create_new(path.join(LOCK)).unwrap();
            (path, lock)
        };
        let (dead, lock) = make("dead");
        drop(lock);
        let (alive, lock) = make("alive");
        lock.lock_shared().unwrap();
        let sleep = |home: &Path| {
            let mut command = std::process::Command::new("sleep");
            command.arg("6000").env("HOME", home).spawn().unwrap()
        };
        let (mut orphan, mut worker) = (sleep(&dead), sleep(&alive));
        assert_eq!(tidy(place.path()).unwrap(), 1);
        assert!(!orphan.wait().unwrap().success());
        assert!(!dead.exists() && alive.exists());
        assert!(worker.try_wait().unwrap().is_none());
        worker.kill().unwrap();
        worker.wait().unwrap();
    }
}
