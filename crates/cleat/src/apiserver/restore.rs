//! `cleat apiserver restore`.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use cleat_store::Contents;
use jiff::Timestamp;

use super::manifest::{self, KEYS, Manifest, STORES, Stored};

#[derive(clap::Args)]
pub(super) struct Args {
    /// The backup
    #[arg(long, value_name = "DIR")]
    from: PathBuf,
    /// Where `cleat up` shall find everything; nothing may be there yet
    #[arg(long, default_value = ".cleat", env = "CLEAT_DIR")]
    dir: PathBuf,
}

pub(super) fn run(args: &Args) -> Result<()> {
    for there in ["cleat.redb", KEYS] {
        let path = args.dir.join(there);
        if path.exists() {
            bail!("{} exists, and nothing is replaced; restore elsewhere", path.display());
        }
    }
    let summary = Manifest::read(&args.from)?;
    // All of it is read before anything is written.
    let mut backups = Vec::new();
    for Stored { name, revision, objects } in &summary.stores {
        let path = args.from.join(STORES).join(name);
        let reading = || format!("read {}", path.display());
        let file = fs::File::open(&path).with_context(reading)?;
        let contents = Contents::read(std::io::BufReader::new(file)).with_context(reading)?;
        if (&contents.name, &contents.revision, &contents.len()) != (name, revision, objects) {
            bail!("{} is not the one that the backup speaks of", path.display());
        }
        backups.push(contents);
    }
    for Stored { name, .. } in &summary.stores {
        manifest::copy_keys(&args.from.join(KEYS).join(name), &args.dir.join(KEYS).join(name))?;
    }
    // Clients may remember revisions from after the backup, or from after an earlier restore of it. No
    // store counts as fast as microseconds pass, so from here on all are new.
    let least = u64::try_from(Timestamp::now().as_microsecond()).unwrap_or_default();
    cleat_store::restore(args.dir.join("cleat.redb"), backups, least).context("restore")?;
    for Stored { name, objects, .. } in &summary.stores {
        println!("{name}: {objects} objects");
    }
    println!("restored into {0}; cleat up --dir {0} runs it", args.dir.display());
    Ok(())
}
