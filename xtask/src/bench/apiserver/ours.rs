//! Our server: `cleat up` with one bare API server, durable, over TLS.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use cleat_world::kubernetes::kubeconfig;

use super::super::procs::{self, Ending, Process};
use super::side::{PATIENCE, Side, ready};

pub(crate) struct Ours {
    state: PathBuf,
    log: PathBuf,
    process: Process,
}

impl Ours {
    /// Starts from nothing, with its state below `dir`. Returns when it is ready.
    pub(crate) async fn start(dir: &Path, name: &str) -> Result<Self> {
        let (state, log) = (dir.join(name), dir.join(format!("{name}.log")));
        forget(&state)?;
        let begun = Instant::now();
        let mut ours = Self { process: procs::serve(&state, &log)?, state, log };
        ours.wait(begun).await?;
        Ok(ours)
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.state.join("kubeconfig")
    }

    pub(crate) fn process(&self) -> &Process {
        &self.process
    }

    /// Bytes of the file that everything lies in.
    pub(crate) fn stored(&self) -> Result<u64> {
        let file = self.state.join("cleat.redb");
        let found = std::fs::metadata(&file).with_context(|| format!("find {}", file.display()))?;
        Ok(found.len())
    }

    async fn wait(&mut self, begun: Instant) -> Result<f64> {
        let path = self.kubeconfig();
        // One that is there from before names the same address and keys as the next will.
        while !path.exists() {
            self.process.check(&self.log)?;
            if begun.elapsed() > PATIENCE {
                bail!("there is no {}; see {}", path.display(), self.log.display());
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let access = kubeconfig::read(&path)?.into_iter().next().context("it has a context")?;
        ready(&access, begun, || self.process.check(&self.log)).await
    }
}

impl Side for Ours {
    fn kubeconfig(&self) -> PathBuf {
        Ours::kubeconfig(self)
    }

    fn resident(&self) -> Result<f64> {
        self.process.resident()
    }

    async fn again(&mut self, ending: Ending) -> Result<f64> {
        procs::end(self.process.id(), ending).await?;
        let begun = Instant::now();
        self.process = procs::serve(&self.state, &self.log)?;
        self.wait(begun).await
    }

    async fn anew(&mut self) -> Result<f64> {
        procs::end(self.process.id(), Ending::Killed).await?;
        forget(&self.state)?;
        let begun = Instant::now();
        self.process = procs::serve(&self.state, &self.log)?;
        self.wait(begun).await
    }
}

fn forget(state: &Path) -> Result<()> {
    match state.exists() {
        true => {
            std::fs::remove_dir_all(state).with_context(|| format!("remove {}", state.display()))
        }
        false => Ok(()),
    }
}
