//! The programs under measurement, each in a process of its own, and what the system says of them.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

/// How long a program may take to be ready on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A child that ends when dropped.
pub(crate) struct Process(Child);

impl Process {
    pub(crate) fn start(mut command: Command, log: &Path) -> Result<Self> {
        let log = File::create(log).with_context(|| format!("create {}", log.display()))?;
        let child = command.stdout(Stdio::null()).stderr(log).spawn();
        Ok(Self(child.with_context(|| format!("start {command:?}"))?))
    }

    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }

    /// Fails if it has ended although it should run.
    pub(crate) fn check(&mut self, log: &Path) -> Result<()> {
        if let Some(status) = self.0.try_wait().context("look at a process")? {
            bail!("it ended: {status}; see {}", log.display());
        }
        Ok(())
    }

    /// Resident memory, in bytes.
    pub(crate) fn resident(&self) -> Result<f64> {
        resident(self.id())
    }

    /// The most resident memory since the last [`Process::forget_peak`], in bytes.
    pub(crate) fn peak(&self) -> Result<f64> {
        status(self.id(), "VmHWM:")
    }

    /// Has the system note the most resident memory from now on.
    pub(crate) fn forget_peak(&self) -> Result<()> {
        let path = format!("/proc/{}/clear_refs", self.id());
        std::fs::write(&path, "5").with_context(|| format!("write to {path}"))
    }

    /// Seconds of processor time used so far.
    pub(crate) fn processor(&self) -> Result<f64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.0.id()))?;
        let (_, fields) = stat.rsplit_once(')').context("read /proc/PID/stat")?;
        let ticks = fields.split_whitespace().skip(11).take(2).map(str::parse::<f64>);
        // USER_HZ, which is 100 wherever Linux runs.
        Ok(ticks.sum::<Result<f64, _>>()? / 100.0)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Resident memory of any process, in bytes.
pub(crate) fn resident(pid: u32) -> Result<f64> {
    status(pid, "VmRSS:")
}

fn status(pid: u32, field: &str) -> Result<f64> {
    let path = format!("/proc/{pid}/status");
    let status = std::fs::read_to_string(&path).with_context(|| format!("read {path}"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let kibibytes = line.and_then(|line| line.trim().strip_suffix("kB"));
    let kibibytes: f64 =
        kibibytes.with_context(|| format!("find {field} in {path}"))?.trim().parse()?;
    Ok(kibibytes * 1024.0)
}

/// How a process is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It is asked to, and may finish what it has to.
    Asked,
    /// `kill -9`
    Killed,
}

/// Ends a process of this run, and returns when it has ended. Its parent has yet to wait for it, so
/// the number means no other process meanwhile.
pub(crate) async fn end(pid: u32, ending: Ending) -> Result<()> {
    let raw = Pid::from_raw(pid.cast_signed()).context("0 is no process")?;
    let signal = match ending {
        Ending::Asked => Signal::TERM,
        Ending::Killed => Signal::KILL,
    };
    kill_process(raw, signal).with_context(|| format!("end process {pid}"))?;
    let deadline = Instant::now() + PATIENCE;
    while runs(pid) {
        if Instant::now() > deadline {
            bail!("process {pid} does not end");
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(())
}

/// Whether there is more of a process than its remains. Where the first of its threads has ended and
/// others have not, the process looks dead, and holds its ports and files all the same.
fn runs(pid: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    // The second field is the program's name in brackets and may itself contain brackets.
    let fields = stat.rsplit_once(')').map(|(_, fields)| fields.trim_start());
    let remains = fields.is_none_or(|fields| fields.starts_with(['Z', 'X']));
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
    !remains || threads > 1
}

fn cleat() -> Result<Command> {
    // Cargo puts all of a workspace's programs into one folder.
    let program = std::env::current_exe().context("find this program")?.with_file_name("cleat");
    Ok(Command::new(program))
}

/// Starts `cleat up` with a hub alone, and waits for its kubeconfig.
pub(crate) async fn hub(dir: &Path) -> Result<(Process, PathBuf)> {
    up(dir, "hub", &["--no-pretend"]).await
}

/// Starts an API server of our own and nothing else.
pub(crate) async fn server(dir: &Path) -> Result<(Process, PathBuf)> {
    up(dir, "server", BARE).await
}

/// Starts an API server of our own and nothing else, on what is in a directory if there is something.
/// Does not wait until it is ready.
pub(crate) fn serve(state: &Path, log: &Path) -> Result<Process> {
    begin(state, BARE, log)
}

const BARE: &[&str] = &["--bare"];

fn begin(state: &Path, options: &[&str], log: &Path) -> Result<Process> {
    let mut command = cleat()?;
    command.args(["up", "--clusters", "0"]).args(options).arg("--dir").arg(state);
    Process::start(command, log)
}

async fn up(dir: &Path, name: &str, options: &[&str]) -> Result<(Process, PathBuf)> {
    let state = dir.join(name);
    if state.exists() {
        std::fs::remove_dir_all(&state).context("remove what an earlier run left")?;
    }
    let log = dir.join(format!("{name}.log"));
    let mut process = begin(&state, options, &log)?;
    let kubeconfig = state.join("kubeconfig");
    let deadline = Instant::now() + PATIENCE;
    while !kubeconfig.exists() {
        process.check(&log).context("start cleat up")?;
        if Instant::now() > deadline {
            bail!("cleat up is not ready after {} s", PATIENCE.as_secs());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok((process, kubeconfig))
}

/// Starts `cleat webhook` on a port of loopback, protecting a cluster.
pub(crate) fn webhook(kubeconfig: &Path, port: u16, log: &Path) -> Result<Process> {
    let mut command = cleat()?;
    command.args(["webhook", "--protect", "--port", &port.to_string(), "--kubeconfig"]);
    command.arg(kubeconfig).env("CLEAT_LOG", "warn").env("NO_COLOR", "1");
    Process::start(command, log)
}

/// How an agent is started.
pub(crate) struct Agent<'a> {
    pub(crate) hub: &'a Path,
    pub(crate) cluster: &'a Path,
    pub(crate) name: &'a str,
    pub(crate) workers: Option<usize>,
    /// Every request is written to the log.
    pub(crate) tells: bool,
    pub(crate) log: &'a Path,
}

impl Agent<'_> {
    pub(crate) fn start(&self) -> Result<Process> {
        let mut command = cleat()?;
        command.args(["agent", "--cluster-name", self.name]);
        command.arg("--hub-kubeconfig").arg(self.hub);
        command.arg("--kubeconfig").arg(self.cluster);
        if let Some(workers) = self.workers {
            command.args(["--workers", &workers.to_string()]);
        }
        let level = if self.tells { "warn,cleat_runtime::connect=trace" } else { "warn" };
        // Whoever wants to know more than the figures asks for it, and bears the cost.
        let level = std::env::var("CLEAT_LOG").unwrap_or_else(|_| level.to_owned());
        command.env("CLEAT_LOG", level).env("NO_COLOR", "1");
        Process::start(command, self.log)
    }
}

/// Starts the controller of policies of one namespace.
pub(crate) fn controller(
    cluster: &Path,
    namespace: &str,
    tells: bool,
    log: &Path,
) -> Result<Process> {
    let mut command = cleat()?;
    command.args(["policy", "controller", "--namespace", namespace]);
    command.arg("--kubeconfig").arg(cluster);
    let level = if tells { "warn,cleat_runtime::connect=trace" } else { "warn" };
    command.env("CLEAT_LOG", level).env("NO_COLOR", "1");
    Process::start(command, log)
}

/// The load of the last minute, and how many cores there are for it.
pub(crate) fn load() -> Result<String> {
    let load = std::fs::read_to_string("/proc/loadavg")?;
    Ok(load.split_whitespace().next().unwrap_or("unknown").to_owned())
}
