//! `cleat join`: asks to join, and then is the agent of the cluster.

use anyhow::Result;
use cleat_cli::join::{Args, Next};

pub(crate) fn run(args: Args) -> Result<()> {
    match cleat_cli::join::run(args)? {
        Next::Nothing => Ok(()),
        Next::Agent { cluster, keep } => crate::agent::run_joined(cluster, keep),
    }
}
