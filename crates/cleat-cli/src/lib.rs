//! What people type: one file per verb. Each reads its arguments, asks or tells a hub, and prints.
//!
//! Nothing is decided here that `cleat-core` could decide, and nothing is written but by the
//! executor.

pub mod accept;
pub mod automation;
mod bar;
mod bound;
mod caution;
pub mod clusters;
pub mod completions;
mod connection;
pub mod delete;
mod deployment;
mod discovery;
pub mod dryrun;
pub mod explain;
pub mod init;
pub mod join;
pub mod leftovers;
mod output;
pub mod preview;
mod strategy;
mod table;
pub mod uninstall;
pub mod unjoin;

pub use connection::{ClusterArgs, HubArgs, Which};

/// Somebody asked for something that is not going to happen until they do something else. It has an
/// exit code of its own, so that scripts can tell it from a failure.
#[derive(Debug)]
pub struct Refused(pub String);

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refused {}

/// What somebody agreed to, or looked at, is not what would happen any more, so nothing was done. It is
/// refused like anything else, and says by its name which refusal it is.
#[derive(Debug)]
pub struct PlanChanged(pub String);

impl std::fmt::Display for PlanChanged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PlanChanged: {}", self.0)
    }
}

impl std::error::Error for PlanChanged {}

/// The exit code of a verb that was refused.
pub const REFUSED: u8 = 3;

/// What was typed cannot be understood. It ends as if the command line had been taken apart in vain.
#[derive(Debug)]
pub struct Misunderstood(pub String);

impl std::fmt::Display for Misunderstood {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Misunderstood {}

/// The exit code of a command line that was not understood.
pub const MISUNDERSTOOD: u8 = 2;

/// What was asked for has begun and cannot end yet; the text says what stands in the way.
#[derive(Debug)]
pub struct Halted(pub String);

impl std::fmt::Display for Halted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Halted {}

/// The exit code of a verb that was halted.
pub const HALTED: u8 = 4;

/// With which code a process ends because of an error.
pub fn exit_code(error: &anyhow::Error) -> u8 {
    if error.chain().any(|one| one.is::<Refused>() || one.is::<PlanChanged>()) {
        REFUSED
    } else if error.chain().any(|one| one.is::<Halted>()) {
        HALTED
    } else if error.chain().any(|one| one.is::<Misunderstood>()) {
        MISUNDERSTOOD
    } else {
        1
    }
}
