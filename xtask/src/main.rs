//! The project's own chores, run as `cargo xtask NAME`. One file per chore; this one only chooses.

mod bench;
mod conformance;
mod dryrun_fixtures;
mod generate;
mod kubectl;
mod kubernetes;
mod modules;
mod program;
mod soak;
mod tidy;
mod tour;

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Parser, Subcommand};

/// The project's own chores.
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Args {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Install the ansible-playbook that tests run, and print where it is
    Ansible,
    /// How fast it is, beside bare loops of the same run.
    #[command(subcommand)]
    Bench(bench::Args),
    Conformance(conformance::Args),
    DryrunFixtures(dryrun_fixtures::Args),
    Generate(generate::Args),
    Kubectl(kubectl::Args),
    /// A real Kubernetes to test on.
    #[command(subcommand)]
    Kubernetes(kubernetes::Args),
    Soak(soak::Args),
    /// Licences, sources, dependency arrows, sizes and names of files.
    Tidy,
    Tour(tour::Args),
}

fn main() -> Result<()> {
    match Args::parse().chore {
        Chore::Ansible => {
            println!("{}", cleat_world::ansible::install()?.display());
            Ok(())
        }
        Chore::Bench(args) => bench::run(&args),
        Chore::Conformance(args) => conformance::run(&args),
        Chore::DryrunFixtures(args) => dryrun_fixtures::run(&args),
        Chore::Generate(args) => generate::run(&args),
        Chore::Kubectl(args) => kubectl::run(&args),
        Chore::Kubernetes(args) => kubernetes::run(args),
        Chore::Soak(args) => soak::run(&args),
        Chore::Tidy => tidy::run(),
        Chore::Tour(args) => tour::run(&args),
    }
}

/// The root of the repository.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}
