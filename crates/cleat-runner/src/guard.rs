//! A process of its own between the runner and a playbook: nothing that the playbook started outlives
//! it, and it does not outlive the runner.
//!
//! Ansible's workers leave the playbook's session and group, so neither reaches them. This process
//! adopts whatever of its descendants loses its parent, and ends them all before it ends itself. The
//! runner holds the other end of its standard input: when that closes, because the runner says so or
//! because it is dead, the playbook is over.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process, set_child_subreaper, wait,
};

use crate::family;

/// The variable that tells a guard what to do: the job's folder, the program and its arguments, as
/// JSON. It is not passed on.
pub(crate) const ORDER: &str = "CLEAT_GUARD_ORDER";

/// What ends with this code never began.
pub(crate) const CANNOT: i32 = 125;
/// What was ended by a signal ends with this and the signal's number.
pub(crate) const BY_SIGNAL: i32 = 128;

/// How long a playbook that is told to end may take to do so.
const GRACE: Duration = Duration::from_secs(10);
/// How long it may take until the last process is gone that was killed.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(10);

enum Sign {
    /// The runner says so, or is dead.
    Over,
    Ended(WaitStatus),
}

/// Runs what the environment says, and gives the code to end with. Nothing if it says nothing.
pub fn stand_guard() -> Option<i32> {
    let order = std::env::var(ORDER).ok()?;
    let order: Vec<String> = serde_json::from_str(&order).ok()?;
    let mut order = order.into_iter();
    let (folder, program) = (PathBuf::from(order.next()?), PathBuf::from(order.next()?));
    let code = guard(&folder, &program, order.map(OsString::from).collect());
    drop(std::fs::remove_dir_all(&folder));
    Some(code)
}

fn guard(folder: &Path, program: &Path, arguments: Vec<OsString>) -> i32 {
    // Held until the end: whoever tidies up leaves this folder alone.
    let _lock =
        File::open(folder.join(family::LOCK)).and_then(|file| file.lock_shared().map(|()| file));
    if let Err(error) = set_child_subreaper(Some(getpid())) {
        eprintln!("the guard cannot adopt processes: {error}");
        return CANNOT;
    }
    let child = Command::new(program)
        .args(arguments)
        .env_remove(ORDER)
        .stdin(Stdio::null())
        .process_group(0)
        .spawn();
    let child = match child {
        Ok(child) => child,
        Err(error) => {
            eprintln!("{} cannot be started: {error}", program.display());
            return CANNOT;
        }
    };
    let (sender, signs) = channel();
    let also = sender.clone();
    thread::spawn(move || listen(&also));
    let playbook = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    thread::spawn(move || reap(playbook, &sender));
    watch(&signs)
}

/// Returns when nobody holds the other end any more.
fn listen(signs: &Sender<Sign>) {
    let mut bytes = [0; 64];
    let mut from = std::io::stdin();
    while let Ok(1..) = from.read(&mut bytes) {}
    let _ = signs.send(Sign::Over);
}

/// Everything that ends is this process's to bury; of the playbook it is told how.
fn reap(playbook: Option<Pid>, signs: &Sender<Sign>) {
    while let Ok(ended) = wait(WaitOptions::empty()) {
        if let Some((pid, status)) = ended
            && Some(pid) == playbook
        {
            let _ = signs.send(Sign::Ended(status));
        }
    }
}

fn watch(signs: &Receiver<Sign>) -> i32 {
    let mut status = None;
    match signs.recv() {
        Ok(Sign::Ended(ended)) => status = Some(ended),
        Ok(Sign::Over) | Err(_) => {
            family::descendants(getpid()).into_iter().for_each(|pid| send(pid, Signal::TERM));
            if let Ok(Sign::Ended(ended)) = signs.recv_timeout(GRACE) {
                status = Some(ended);
            }
        }
    }
    let begun = Instant::now();
    loop {
        let left = family::descendants(getpid());
        if left.is_empty() || begun.elapsed() > PATIENCE {
            break;
        }
        left.into_iter().for_each(|pid| send(pid, Signal::KILL));
        thread::sleep(PAUSE);
    }
    if status.is_none()
        && let Ok(Sign::Ended(ended)) = signs.try_recv()
    {
        status = Some(ended);
    }
    match status {
        Some(status) => match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => code,
            (None, Some(signal)) => BY_SIGNAL.saturating_add(signal),
            (None, None) => CANNOT,
        },
        None => BY_SIGNAL.saturating_add(Signal::KILL.as_raw()),
    }
}

fn send(pid: Pid, signal: Signal) {
    // It may have ended by itself.
    let _ = kill_process(pid, signal);
}
