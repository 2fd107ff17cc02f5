//! `cleat apiserver backup`.
//!
//! Servers that run are asked for what they have, each as of one moment of its own; the file of those
//! that do not is read. Both give the same bytes.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use cleat_store::{Contents, Disk, Limits, OpenError, Store};
use jiff::Timestamp;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use super::manifest::{self, FILE, FORMAT, KEYS, Manifest, STORES, Stored};
use crate::up::HUB;

#[derive(clap::Args)]
pub(super) struct Args {
    /// Where `cleat up` keeps everything
    #[arg(long, default_value = ".cleat", env = "CLEAT_DIR")]
    dir: PathBuf,
    /// The directory to write; it must not exist
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
}

pub(super) fn run(args: &Args) -> Result<()> {
    if args.to.exists() {
        bail!("{} exists, and a backup replaces nothing", args.to.display());
    }
    let names = servers(&args.dir)?;
    // It gets its name once it is whole.
    let draft = draft_name(&args.to)?;
    if draft.exists() {
        fs::remove_dir_all(&draft).with_context(|| format!("remove {}", draft.display()))?;
    }
    manifest::make_dir(&draft.join(STORES))?;
    let file = args.dir.join("cleat.redb");
    if !file.exists() {
        bail!("there is no {}", file.display());
    }
    let missing = match Disk::open(&file) {
        Ok(disk) => {
            at_rest(&disk, &names, &draft)?;
            Vec::new()
        }
        Err(OpenError::Locked { .. }) => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(running(&args.dir, &names, &draft))?
        }
        Err(error) => return Err(error).context("open the store"),
    };
    let mut stores = Vec::new();
    for name in names.iter().filter(|name| !missing.contains(*name)) {
        manifest::copy_keys(&args.dir.join(KEYS).join(name), &draft.join(KEYS).join(name))?;
        stores.push(checked(name, &draft)?);
    }
    let summary = Manifest {
        format: FORMAT,
        cleat: env!("CARGO_PKG_VERSION").to_owned(),
        taken: Timestamp::now().to_string(),
        stores,
    };
    let text = serde_json::to_string_pretty(&summary).context("write the summary")? + "\n";
    manifest::write(&draft.join(FILE), [text])?;
    fs::rename(&draft, &args.to).with_context(|| format!("write {}", args.to.display()))?;
    for Stored { name, revision, objects } in &summary.stores {
        println!("{name}: {objects} objects at revision {revision}");
    }
    for name in &missing {
        eprintln!("{name} does not run and is not in the backup; stop cleat up to have it, too");
    }
    println!("written to {}", args.to.display());
    Ok(())
}

/// The servers there are keys of.
fn servers(dir: &Path) -> Result<Vec<String>> {
    let keys = dir.join(KEYS);
    let reading = || format!("read {} (has cleat up run there?)", keys.display());
    let mut names = Vec::new();
    for entry in fs::read_dir(&keys).with_context(reading)? {
        let entry = entry.with_context(reading)?;
        if entry.path().is_dir() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    // The hub last: a work that comes between is applied again, but a ledger whose work the backup of
    // the hub lacks would have its objects deleted.
    names.sort_unstable_by(|a, b| (a == HUB, a).cmp(&(b == HUB, b)));
    match names.is_empty() {
        true => bail!("there are no servers in {}", dir.display()),
        false => Ok(names),
    }
}

fn draft_name(to: &Path) -> Result<PathBuf> {
    let mut name = to.file_name().context("the directory to write has no name")?.to_owned();
    name.push(".partial");
    Ok(to.with_file_name(name))
}

/// Nobody runs: the file is ours while this goes on.
fn at_rest(disk: &Disk, names: &[String], draft: &Path) -> Result<()> {
    for name in names {
        let store = Store::open(disk, name, Limits::default())
            .with_context(|| format!("open the store of {name}"))?;
        manifest::write(&draft.join(STORES).join(name), store.backup())?;
    }
    Ok(())
}

/// Asks those who run; returns the names of those who do not.
async fn running(dir: &Path, names: &[String], draft: &Path) -> Result<Vec<String>> {
    let path = dir.join("kubeconfig");
    let kubeconfig =
        Kubeconfig::read_from(&path).with_context(|| format!("read {}", path.display()))?;
    let mut missing = Vec::new();
    for name in names {
        if !kubeconfig.contexts.iter().any(|context| context.name == *name) {
            missing.push(name.clone());
            continue;
        }
        let options = KubeConfigOptions { context: Some(name.clone()), ..Default::default() };
        let config = Config::from_custom_kubeconfig(kubeconfig.clone(), &options).await?;
        let client = Client::try_from(config)?;
        let bytes = ask(&client).await.with_context(|| format!("ask {name} for its backup"))?;
        manifest::write(&draft.join(STORES).join(name), [bytes])?;
    }
    Ok(missing)
}

async fn ask(client: &Client) -> Result<Vec<u8>> {
    let request = http::Request::get("/backup").body(Body::empty())?;
    let response = client.send(request).await?;
    let status = response.status();
    let body = response.into_body().collect_bytes().await?;
    if !status.is_success() {
        bail!("it answered {status}: {}", String::from_utf8_lossy(&body));
    }
    Ok(body.to_vec())
}

/// A backup that cannot be read is none, so each is read before it is called one.
fn checked(name: &str, draft: &Path) -> Result<Stored> {
    let path = draft.join(STORES).join(name);
    let file = fs::File::open(&path).with_context(|| format!("read {}", path.display()))?;
    let contents = Contents::read(std::io::BufReader::new(file))
        .with_context(|| format!("read {}", path.display()))?;
    if contents.name != name {
        bail!("{} is of a server {:?}", path.display(), contents.name);
    }
    Ok(Stored { name: name.to_owned(), revision: contents.revision, objects: contents.len() })
}
