//! The project's own chores, run as `cargo xtask NAME`. One file per chore; this one only chooses.

mod generate;

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
    Generate(generate::Args),
}

fn main() -> Result<()> {
    match Args::parse().chore {
        Chore::Generate(args) => generate::run(&args),
    }
}
