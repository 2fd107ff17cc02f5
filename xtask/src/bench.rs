//! `cargo xtask bench`: how fast the agent is, beside bare loops of requests in the same run.
//!
//! A benchmark, not a test: it prints what it measured and which targets were missed, and fails only
//! if it could not measure. It never compares with figures of another run or another machine.

mod bare;
mod procs;
mod stage;
mod table;
mod work;

use std::os::unix::process::CommandExt as _;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use clap::Subcommand;

#[derive(Subcommand)]
pub(crate) enum Args {
    /// Works: from the hub to a real kube-apiserver, and away again
    Work {
        /// A tenth of everything, to see that it runs
        #[arg(long)]
        quick: bool,
        /// Works under way at the same time, for the agent [default: its own]
        #[arg(long)]
        workers: Option<usize>,
    },
}

pub(crate) fn run(args: &Args) -> Result<()> {
    build()?;
    if cfg!(debug_assertions) {
        // A loop that is not optimised would make a poor measure.
        let program = crate::root().join("target").join("release").join("xtask");
        let failed = Command::new(program).args(std::env::args_os().skip(1)).exec();
        return Err(failed).context("run the optimised build of this program");
    }
    let runtime = crate::kubernetes::runtime()?;
    runtime.block_on(async {
        let Args::Work { quick, workers } = args;
        tokio::select! {
            done = work::run(*quick, *workers) => done,
            _ = tokio::signal::ctrl_c() => bail!("interrupted"),
        }
    })
}

fn build() -> Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo)
        .current_dir(crate::root())
        .args(["build", "--quiet", "--release", "--package", "cleat", "--package", "xtask"])
        .status()
        .context("run cargo build")?;
    if !built.success() {
        bail!("cleat does not build");
    }
    Ok(())
}
