//! `cargo xtask generate`: writes the files that are derived from something else, or checks that
//! they are up to date.
//!
//! `builtin` derives `crates/cleat-apiserver/data/` from Kubernetes' published API documents and
//! protobuf definitions, which it takes from the Go module cache; nothing but this chore needs Go.
//! `definitions` derives `deploy/crds/` from the types of `cleat-api`.

mod enums;
mod modules;
mod protobuf;
mod resources;
mod schemas;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use serde_json::{Map, Value};

/// Write derived files, or with --check only compare them.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// What to generate; everything when not given.
    what: Vec<What>,
    /// Write nothing; fail when a committed file is not what would be written.
    #[arg(long)]
    check: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum What {
    /// The built-in kinds of Kubernetes.
    Builtin,
    /// The CustomResourceDefinitions of our own kinds.
    Definitions,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let wanted = |what| args.what.is_empty() || args.what.contains(&what);
    let mut files = Vec::new();
    if wanted(What::Builtin) {
        files.extend(builtin()?);
    }
    if wanted(What::Definitions) {
        files.extend(definitions()?);
    }
    let mut stale = Vec::new();
    for (path, content) in files {
        if std::fs::read_to_string(&path).is_ok_and(|found| found == content) {
            continue;
        }
        if args.check {
            stale.push(path.display().to_string());
            continue;
        }
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).context("create the folder")?;
        }
        std::fs::write(&path, content).with_context(|| format!("write {}", path.display()))?;
        println!("wrote {}", path.display());
    }
    if !stale.is_empty() {
        bail!("not what `cargo xtask generate` writes: {}", stale.join(", "));
    }
    Ok(())
}

fn builtin() -> Result<Vec<(PathBuf, String)>> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/cleat-apiserver/data");
    let kubernetes = modules::kubernetes()?;
    let mut served = resources::read(&kubernetes)?;
    let mut schemas = schemas::read(&kubernetes, &served)?;
    enums::add(&kubernetes, &mut schemas)?;
    served.set_schemas(|group, version, kind| schemas::find(&schemas, group, version, kind));
    let messages = protobuf::read(&schemas)?;
    Ok(vec![
        (data.join("resources.json"), served.to_json()?),
        (data.join("schemas.json"), lines(&schemas)?),
        (data.join("protobuf.json"), lines(&messages)?),
    ])
}

fn definitions() -> Result<Vec<(PathBuf, String)>> {
    let folder = crate::root().join("deploy").join("crds");
    let mut files = Vec::new();
    for definition in cleat_api::definitions() {
        let name = definition.metadata.name.as_deref().context("a definition has a name")?;
        let text = serde_saphyr::to_string(&definition).context("write a definition")?;
        let text =
            format!("# Written by `cargo xtask generate definitions` from cleat-api.\n{text}");
        files.push((folder.join(format!("{name}.yaml")), text));
    }
    Ok(files)
}

/// A JSON object with one entry a line, so that an upgrade's difference can be read.
fn lines(map: &Map<String, Value>) -> Result<String> {
    let mut all = Vec::with_capacity(map.len());
    for (key, value) in map {
        all.push(format!("{}:{}", serde_json::to_string(key)?, serde_json::to_string(value)?));
    }
    Ok(format!("{{\n{}\n}}\n", all.join(",\n")))
}

fn read_json(path: &Path) -> Result<Value> {
    let text = std::fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("parse {}", path.display()))
}
