//! `cargo xtask bench`: how fast it is, beside bare loops of requests, another server or a smaller
//! fleet of the same run.
//!
//! A benchmark, not a test: it prints what it measured and which targets were missed, and fails only
//! if it could not measure. It never compares with figures of another run or another machine. What is
//! measured is what ships, the profile `dist`, and not a build that is like it.

pub(crate) mod apiserver;
mod bare;
mod fleet;
mod lists;
mod policy;
mod policy_fleet;
pub(crate) mod procs;
mod revisions;
pub(crate) mod stage;
pub(crate) mod table;
mod webhook;
mod work;

use std::os::unix::process::CommandExt as _;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use clap::Subcommand;

/// The profile of what ships. Its builds lie in a directory of that name.
const SHIPPED: &str = "dist";

#[derive(Subcommand)]
#[command(
    after_help = "What is measured is what ships: the profile `dist`, built first if need be."
)]
pub(crate) enum Args {
    /// Our API server beside kube-apiserver with etcd: the same load on both
    Apiserver(apiserver::Args),
    /// Memory of our API server while everything is listed
    Lists(lists::Args),
    /// The store's file over millions of revisions
    Revisions(revisions::Args),
    /// Works: from the hub to a real kube-apiserver, and away again
    Work {
        /// A tenth of everything, to see that it runs
        #[arg(long)]
        quick: bool,
        /// Works under way at the same time, for the agent [default: its own]
        #[arg(long)]
        workers: Option<usize>,
    },
    /// A fleet: clusters joined from nothing, twenty works each, up to a hundred of them leaving
    Fleet {
        /// A tenth of everything, to see that it runs
        #[arg(long)]
        quick: bool,
        /// These numbers of clusters instead, each from nothing
        #[arg(long, value_delimiter = ',')]
        clusters: Vec<usize>,
        /// Run what is built, optimised or not: to see that it runs, not to measure
        #[arg(long)]
        as_built: bool,
    },
    /// Policies: spread to simulated clusters, and what those say gathered
    PolicyFleet {
        /// A tenth of everything, to see that it runs
        #[arg(long)]
        quick: bool,
        /// These numbers of clusters instead, each from nothing
        #[arg(long, value_delimiter = ',')]
        clusters: Vec<usize>,
        /// So many policies instead
        #[arg(long)]
        policies: Option<usize>,
        /// Run what is built, optimised or not: to see that it runs, not to measure
        #[arg(long)]
        as_built: bool,
    },
    /// Policies: evaluated, watched and repaired by one controller on a real kube-apiserver
    Policy {
        /// Little of everything, to see that it runs
        #[arg(long)]
        quick: bool,
        /// Run what is built, optimised or not: to see that it runs, not to measure
        #[arg(long)]
        as_built: bool,
    },
    /// Delete protection: reviews of a thousand CriticalServices about a hundred thousand objects
    Webhook {
        /// A small part of everything, to see that it runs
        #[arg(long)]
        quick: bool,
        /// Run what is built, optimised or not: to see that it runs, not to measure
        #[arg(long)]
        as_built: bool,
    },
}

impl Args {
    fn as_built(&self) -> bool {
        match self {
            Args::Apiserver(args) => args.as_built,
            Args::Lists(args) => args.as_built,
            Args::Revisions(args) => args.as_built,
            Args::Work { .. } => false,
            Args::Fleet { as_built, .. }
            | Args::PolicyFleet { as_built, .. }
            | Args::Policy { as_built, .. }
            | Args::Webhook { as_built, .. } => *as_built,
        }
    }
}

pub(crate) fn run(args: &Args) -> Result<()> {
    if !args.as_built() {
        optimise()?;
    }
    let runtime = crate::kubernetes::runtime()?;
    runtime.block_on(async {
        let done = async {
            match args {
                Args::Apiserver(args) => apiserver::run(args).await,
                Args::Lists(args) => lists::run(args).await,
                Args::Revisions(args) => revisions::run(args).await,
                Args::Work { quick, workers } => work::run(*quick, *workers).await,
                Args::Fleet { quick, clusters, as_built: _ } => fleet::run(*quick, clusters).await,
                Args::PolicyFleet { quick, clusters, policies, as_built: _ } => {
                    policy_fleet::run(*quick, clusters, *policies).await
                }
                Args::Policy { quick, as_built: _ } => policy::run(*quick).await,
                Args::Webhook { quick, as_built: _ } => webhook::run(*quick).await,
            }
        };
        tokio::select! {
            done = done => done,
            _ = tokio::signal::ctrl_c() => bail!("interrupted"),
        }
    })
}

/// Builds what is measured as it ships, and has the build of this program beside it do the rest: a
/// loop that is not optimised would make a poor measure, and a program measures the `cleat` that lies
/// beside it.
pub(crate) fn optimise() -> Result<()> {
    build()?;
    let program = crate::root().join("target").join(SHIPPED).join("xtask");
    let program = program.canonicalize().context("find the optimised build of this program")?;
    let this = std::env::current_exe().context("find this program")?;
    if this.canonicalize().is_ok_and(|this| this == program) {
        return Ok(());
    }
    let failed = Command::new(program).args(std::env::args_os().skip(1)).exec();
    Err(failed).context("run the optimised build of this program")
}

fn build() -> Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo)
        .current_dir(crate::root())
        .args([
            "build",
            "--quiet",
            "--profile",
            SHIPPED,
            "--package",
            "cleat",
            "--package",
            "xtask",
        ])
        .status()
        .context("run cargo build")?;
    if !built.success() {
        bail!("cleat does not build");
    }
    Ok(())
}
