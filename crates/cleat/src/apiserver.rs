//! `cleat apiserver`: what the servers of `cleat up` keep, carried elsewhere and back.
//!
//! A backup is a directory: `backup.json` says what it is, `stores/NAME` has what a server stores,
//! `pki/NAME` the keys without which nobody would know the server again.

mod backup;
mod manifest;
mod restore;

use anyhow::Result;

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Subcommand)]
enum Verb {
    /// Write everything the servers keep into a new directory, whether they run or not
    Backup(backup::Args),
    /// Make a directory for `cleat up` from a backup
    Restore(restore::Args),
}

pub(crate) fn run(args: &Args) -> Result<()> {
    match &args.verb {
        Verb::Backup(args) => backup::run(args),
        Verb::Restore(args) => restore::run(args),
    }
}
