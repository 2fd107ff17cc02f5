//! Their server: kube-apiserver and an etcd that waits for the disk, as `cleat-world` starts them.
//!
//! The controller manager is ended once they run: it would take from the same few cores, and what it
//! does for ConfigMaps is not what is compared. That is to their advantage, since our server does the
//! same things in its own process all the time.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use cleat_world::kubernetes::kubeconfig::Access;
use cleat_world::kubernetes::{Binaries, ControlPlanes, Durability};
use tokio::net::TcpStream;

use super::super::procs::{self, Ending, Process};
use super::side::{PATIENCE, Side, ready};

pub(super) struct Theirs {
    // First, so that what was started here has ended when the state is removed.
    etcd: Part,
    apiserver: Part,
    access: Access,
    folder: PathBuf,
    planes: ControlPlanes,
}

impl Theirs {
    pub(super) async fn start(binaries: &Binaries, dir: &Path) -> Result<Self> {
        let folder = dir.join("kubernetes-apiserver");
        let planes = ControlPlanes::start(binaries, &folder, 1, Durability::Durable).await?;
        let access = planes.accesses().first().context("a plane was started")?.clone();
        let pids = std::fs::read_to_string(folder.join("pids")).context("read who was started")?;
        let etcd = Part::find(&pids, "etcd", &folder)?;
        let apiserver = Part::find(&pids, "hub-kube-apiserver", &folder)?;
        let controllers = pid(&pids, "hub-kube-controller-manager")?;
        procs::end(controllers, Ending::Killed).await?;
        Ok(Self { etcd, apiserver, access, folder, planes })
    }

    async fn begin(&mut self) -> Result<f64> {
        let begun = Instant::now();
        self.etcd.begin()?;
        // An API server that finds no etcd looks again only after a second.
        let address = self.etcd.listens()?;
        while TcpStream::connect(&address).await.is_err() {
            self.etcd.check()?;
            if begun.elapsed() > PATIENCE {
                bail!("etcd does not listen; see {}", self.etcd.log.display());
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        self.apiserver.begin()?;
        let Self { etcd, apiserver, access, .. } = self;
        ready(access, begun, || etcd.check().and_then(|()| apiserver.check())).await
    }
}

impl Side for Theirs {
    fn kubeconfig(&self) -> PathBuf {
        self.planes.kubeconfig()
    }

    fn resident(&self) -> Result<f64> {
        Ok(procs::resident(self.etcd.pid())? + procs::resident(self.apiserver.pid())?)
    }

    async fn again(&mut self, ending: Ending) -> Result<f64> {
        // It keeps nothing that it could lose, and when asked it waits for its watches to end.
        self.apiserver.end(Ending::Killed).await?;
        self.etcd.end(ending).await?;
        self.begin().await
    }

    async fn anew(&mut self) -> Result<f64> {
        self.apiserver.end(Ending::Killed).await?;
        self.etcd.end(Ending::Killed).await?;
        let data = self.folder.join("etcd");
        std::fs::remove_dir_all(&data).with_context(|| format!("remove {}", data.display()))?;
        self.begin().await
    }
}

/// One of their processes: the one that the control plane began with, or one with the same command
/// line that has taken its place.
struct Part {
    first: u32,
    line: Vec<String>,
    log: PathBuf,
    again: Option<Process>,
}

impl Part {
    fn find(pids: &str, name: &str, folder: &Path) -> Result<Self> {
        let first = pid(pids, name)?;
        let line = std::fs::read_to_string(format!("/proc/{first}/cmdline"))
            .with_context(|| format!("read the command line of {name}"))?;
        let line = line.split_terminator('\0').map(str::to_owned).collect();
        let log = folder.join("logs").join(format!("{name}-again.log"));
        Ok(Self { first, line, log, again: None })
    }

    fn pid(&self) -> u32 {
        self.again.as_ref().map_or(self.first, Process::id)
    }

    async fn end(&self, ending: Ending) -> Result<()> {
        procs::end(self.pid(), ending).await
    }

    fn begin(&mut self) -> Result<()> {
        let (program, arguments) =
            self.line.split_first().context("a command line has a program")?;
        let mut command = Command::new(program);
        command.args(arguments);
        self.again = Some(Process::start(command, &self.log)?);
        Ok(())
    }

    fn check(&mut self) -> Result<()> {
        match &mut self.again {
            Some(process) => process.check(&self.log),
            None => Ok(()),
        }
    }

    /// Where etcd is reached.
    fn listens(&self) -> Result<String> {
        let found = self.line.iter().find_map(|argument| {
            let url = argument.strip_prefix("--listen-client-urls=")?;
            url.strip_prefix("http://")
        });
        Ok(found.context("etcd is told where to listen")?.to_owned())
    }
}

/// From the list that the control plane keeps of its processes: number, start time, name.
fn pid(pids: &str, name: &str) -> Result<u32> {
    let found = pids.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        let (pid, named) = (words.next()?, words.nth(1)?);
        (named == name).then_some(pid)
    });
    found.with_context(|| format!("{name} was not started"))?.parse().context("read a process id")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_found_by_their_whole_name() {
        let pids = "7 100 starter\n8 101 etcd\n9 102 hub-kube-apiserver\n";
        assert_eq!(pid(pids, "etcd").unwrap(), 8);
        assert_eq!(pid(pids, "hub-kube-apiserver").unwrap(), 9);
        assert!(pid(pids, "kube-apiserver").is_err());
    }
}
