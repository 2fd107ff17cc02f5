//! A real Kubernetes without containers: one etcd and any number of control planes on loopback.
//!
//! Guarantees: what `up` started, `down` ends, and nothing else. A start that fails or is
//! interrupted ends what it had started. Assumptions: Linux, and the programs are built
//! (`binaries`). Deliberately absent: nodes, a scheduler, pod networking.

mod binaries;
pub mod certificates;
mod commands;
pub mod kubeconfig;
mod processes;

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use http::StatusCode;
use tokio::time::Instant;

pub use self::binaries::Binaries;
pub(crate) use self::binaries::cache;
use self::certificates::Certificates;
use self::commands::EtcdPorts;
use self::kubeconfig::Access;
use self::processes::Processes;
use crate::server::Remote;

/// How long one program may take to become ready. Machines that test are busy machines.
const PATIENCE: Duration = Duration::from_secs(180);

/// What `up` leaves in its folder beside `logs`.
const STATE: [&str; 5] = ["kubeconfig", "kubeconfig.unfinished", "etcd", "planes", "pids"];

/// Whether etcd waits for the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// As in production: for benchmarks.
    Durable,
    /// No fsync: for tests.
    Fast,
}

/// Running control planes, reachable through [`ControlPlanes::accesses`].
pub struct ControlPlanes {
    dir: PathBuf,
    processes: Processes,
    accesses: Vec<Access>,
}

impl ControlPlanes {
    /// Starts `count` control planes named `hub`, `cluster1`, `cluster2`, … with their state in `dir`.
    pub async fn start(
        binaries: &Binaries,
        dir: &Path,
        count: usize,
        durability: Durability,
    ) -> Result<Self> {
        std::fs::create_dir_all(dir).with_context(|| format!("create {}", dir.display()))?;
        let dir = dir.canonicalize().with_context(|| format!("find {}", dir.display()))?;
        let mut attempts = 1;
        loop {
            let processes = Processes::claim(&dir)?;
            let mut planes = Self { dir: dir.clone(), processes, accesses: Vec::new() };
            match planes.bring_up(binaries, count, durability).await {
                Ok(()) => return Ok(planes),
                // A port was free when it was chosen and taken when it was used.
                Err(error) if attempts < 3 && taken(&error) => attempts += 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// One access as administrator per plane, `hub` first.
    #[must_use]
    pub fn accesses(&self) -> &[Access] {
        &self.accesses
    }

    #[must_use]
    pub fn kubeconfig(&self) -> PathBuf {
        self.dir.join("kubeconfig")
    }

    /// Lets the planes run on after this process; [`down`] ends them.
    pub fn leave(mut self) {
        self.processes.forget();
        self.accesses.clear();
        self.dir.clear();
    }

    async fn bring_up(
        &mut self,
        binaries: &Binaries,
        count: usize,
        durability: Durability,
    ) -> Result<()> {
        remove_state(&self.dir, &["pids"])?;
        let logs = self.dir.join("logs");
        std::fs::create_dir_all(&logs).with_context(|| format!("create {}", logs.display()))?;

        let ports = free_ports(count + 2)?;
        let (etcd, apiservers) = match ports.as_slice() {
            [client, peer, rest @ ..] => (EtcdPorts { client: *client, peer: *peer }, rest),
            _ => bail!("fewer ports than asked for"),
        };
        let data = self.dir.join("etcd");
        self.processes.spawn("etcd", &mut commands::etcd(binaries, &data, &etcd, durability))?;
        let health = Remote::plain(etcd.client);
        self.wait("etcd", &health, "/health").await?;

        let mut planes = Vec::new();
        for (index, port) in apiservers.iter().enumerate() {
            let name = if index == 0 { "hub".to_owned() } else { format!("cluster{index}") };
            planes.push(self.start_apiserver(binaries, name, *port, &etcd)?);
        }
        for plane in &planes {
            let remote = Remote::new(&plane.admin)?;
            self.wait(&plane.admin.name, &remote, "/readyz").await?;
            let mut command = commands::controller_manager(
                binaries,
                &plane.controller_manager,
                &plane.certificates.files,
            );
            self.processes
                .spawn(&format!("{}-kube-controller-manager", plane.admin.name), &mut command)?;
        }
        for plane in &planes {
            // These appear only when controllers run, and tests list what is in a namespace.
            let remote = Remote::new(&plane.admin)?;
            for path in ["serviceaccounts/default", "configmaps/kube-root-ca.crt"] {
                let path = format!("/api/v1/namespaces/default/{path}");
                self.wait(&plane.admin.name, &remote, &path).await?;
            }
        }
        self.accesses = planes.into_iter().map(|plane| plane.admin).collect();
        kubeconfig::write(&self.kubeconfig(), &self.accesses)
    }

    fn start_apiserver(
        &mut self,
        binaries: &Binaries,
        name: String,
        port: u16,
        etcd: &EtcdPorts,
    ) -> Result<Plane> {
        let folder = self.dir.join("planes").join(&name);
        std::fs::create_dir_all(&folder).with_context(|| format!("create {}", folder.display()))?;
        let certificates = Certificates::create(&name, &folder)?;
        let mut command = commands::apiserver(binaries, &name, port, etcd, &certificates.files);
        self.processes.spawn(&format!("{name}-kube-apiserver"), &mut command)?;
        let admin = Access {
            name,
            url: format!("https://127.0.0.1:{port}"),
            authority: certificates.authority.clone(),
            identity: certificates.admin.clone(),
        };
        let controller_manager = folder.join("controller-manager.kubeconfig");
        let identity = certificates.controller_manager.clone();
        kubeconfig::write(&controller_manager, &[Access { identity, ..admin.clone() }])?;
        Ok(Plane { admin, certificates, controller_manager })
    }

    /// Polls until `path` answers 200, failing early when a process has ended.
    async fn wait(&mut self, name: &str, remote: &Remote, path: &str) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            self.processes.check()?;
            let last = match remote.get(path).await {
                Ok((StatusCode::OK, _)) => return Ok(()),
                Ok((status, body)) => format!("{status} {}", String::from_utf8_lossy(&body)),
                Err(error) => format!("{error:#}"),
            };
            if Instant::now() > deadline {
                bail!("{name} is not ready after {} s: {path} says {last}", PATIENCE.as_secs());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

impl Drop for ControlPlanes {
    fn drop(&mut self) {
        if self.dir.as_os_str().is_empty() {
            return;
        }
        self.processes.end();
        // The logs stay: they say why, when a start failed.
        remove_state(&self.dir, &[]).ok();
    }
}

/// Ends the control planes that were started in `dir` and removes their state. Names what it ended.
pub fn down(dir: &Path) -> Result<Vec<String>> {
    let ended = processes::end_recorded(dir)?;
    remove_state(dir, &[])?;
    let logs = dir.join("logs");
    if logs.exists() {
        std::fs::remove_dir_all(&logs).with_context(|| format!("remove {}", logs.display()))?;
    }
    // Stays when somebody keeps something else there.
    std::fs::remove_dir(dir).ok();
    Ok(ended)
}

struct Plane {
    admin: Access,
    certificates: Certificates,
    controller_manager: PathBuf,
}

fn remove_state(dir: &Path, except: &[&str]) -> Result<()> {
    for name in STATE.iter().filter(|name| !except.contains(name)) {
        let path = dir.join(name);
        let removed = if path.is_dir() {
            std::fs::remove_dir_all(&path)
        } else {
            std::fs::remove_file(&path)
        };
        match removed {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(error).with_context(|| format!("remove {}", path.display()));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Ports that nobody listens on, all different.
fn free_ports(count: usize) -> Result<Vec<u16>> {
    // All are held until all are known, or the same one would be found twice.
    let listeners: Vec<TcpListener> = (0..count)
        .map(|_| TcpListener::bind("127.0.0.1:0"))
        .collect::<std::io::Result<_>>()
        .context("find free ports")?;
    listeners
        .iter()
        .map(|listener| Ok(listener.local_addr().context("find free ports")?.port()))
        .collect()
}

fn taken(error: &anyhow::Error) -> bool {
    format!("{error:#}").contains("address already in use")
}
