//! `cargo xtask kubectl`: a scripted kubectl session on our server and on a real one. The work is in
//! `cleat-world`.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use cleat_world::kubectl::{Differences, Session, Stage};
use cleat_world::kubernetes::{Binaries, ControlPlanes, Durability, kubeconfig};
use cleat_world::server::Remote;

/// Play a scripted kubectl session on `cleat up` and on a real control plane, and compare
#[derive(clap::Args)]
pub(crate) struct Args {}

/// How long our server may take to be ready on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn run(_: &Args) -> Result<()> {
    let program = crate::program::build()?;
    let begun = Instant::now();
    let folder = Session::folder();
    let (session, differences) = (Session::load(&folder)?, Differences::load(&folder)?);
    let dir = crate::root().join("target").join("kubectl");
    let binaries = Binaries::built(&crate::root().join("kubernetes"))?;
    let runtime = crate::kubernetes::runtime()?;
    let report = runtime.block_on(async {
        // Both are new and end with this: the session counts on finding nothing of others'.
        let playing = async {
            let real = async {
                let state = dir.join("kubernetes");
                let planes = ControlPlanes::start(&binaries, &state, 1, Durability::Fast).await?;
                play(&session, &binaries, &planes.kubeconfig(), &dir.join("real")).await
            };
            let ours = async {
                let ours = Embedded::start(&program, &dir.join("cleat")).await?;
                play(&session, &binaries, &ours.kubeconfig, &dir.join("ours")).await
            };
            tokio::try_join!(real, ours)
        };
        let (real, ours) = tokio::select! {
            played = playing => played?,
            _ = tokio::signal::ctrl_c() => bail!("interrupted"),
        };
        Ok(differences.compare(&session, &real, &ours))
    })?;
    println!("{report} (in {} s)", begun.elapsed().as_secs());
    if !report.passed() {
        bail!("kubectl notices differences that are not listed");
    }
    Ok(())
}

async fn play(
    session: &Session,
    binaries: &Binaries,
    kubeconfig: &Path,
    dir: &Path,
) -> Result<cleat_world::kubectl::Printed> {
    session.play(&Stage { programs: binaries.folder(), kubeconfig, dir }).await
}

/// `cleat up` with a hub alone and without pretended workloads; ends when dropped.
struct Embedded {
    child: Child,
    kubeconfig: PathBuf,
}

impl Embedded {
    async fn start(program: &Path, dir: &Path) -> Result<Self> {
        if dir.exists() {
            std::fs::remove_dir_all(dir).context("remove what an earlier session left")?;
        }
        let child = Command::new(program)
            .args(["up", "--clusters", "0", "--no-pretend", "--bare", "--dir"])
            .arg(dir)
            .stdout(Stdio::null())
            .spawn()
            .context("start cleat up")?;
        let mut this = Self { child, kubeconfig: dir.join("kubeconfig") };
        let deadline = Instant::now() + PATIENCE;
        while !this.is_ready().await {
            if let Some(status) = this.child.try_wait().context("look after cleat up")? {
                bail!("cleat up ended: {status}");
            }
            if Instant::now() > deadline {
                bail!("cleat up is not ready after {} s", PATIENCE.as_secs());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(this)
    }

    async fn is_ready(&self) -> bool {
        let Ok(accesses) = kubeconfig::read(&self.kubeconfig) else { return false };
        let Some(Ok(remote)) = accesses.first().map(Remote::new) else { return false };
        remote.get("/readyz").await.is_ok_and(|(status, _)| status.is_success())
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
