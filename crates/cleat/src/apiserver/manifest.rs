//! What a backup says of itself, and how its files are written.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};

/// How a backup is laid out. What the stores in it look like is their own format's affair.
pub(super) const FORMAT: u32 = 1;
pub(super) const FILE: &str = "backup.json";
pub(super) const STORES: &str = "stores";
pub(super) const KEYS: &str = "pki";

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Manifest {
    pub(super) format: u32,
    /// The version of the program that wrote it.
    pub(super) cleat: String,
    pub(super) taken: String,
    pub(super) stores: Vec<Stored>,
}

/// One store of a backup.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Stored {
    pub(super) name: String,
    pub(super) revision: u64,
    pub(super) objects: usize,
}

/// What is read first: later formats may have nothing else in common with this one.
#[derive(Deserialize)]
struct Head {
    format: u32,
}

impl Manifest {
    pub(super) fn read(backup: &Path) -> Result<Self> {
        let path = backup.join(FILE);
        let bytes = fs::read(&path).with_context(|| {
            format!("read {} (is {} a whole backup?)", path.display(), backup.display())
        })?;
        let unreadable = || format!("understand {}", path.display());
        let Head { format } = serde_json::from_slice(&bytes).with_context(unreadable)?;
        if format != FORMAT {
            bail!(
                "{} has format {format}, and this version of cleat reads format {FORMAT}",
                backup.display()
            );
        }
        let manifest: Self = serde_json::from_slice(&bytes).with_context(unreadable)?;
        // They become names of files.
        match manifest.stores.iter().find(|stored| !is_file_name(&stored.name)) {
            Some(odd) => bail!("{} names a store {:?}", path.display(), odd.name),
            None => Ok(manifest),
        }
    }
}

fn is_file_name(name: &str) -> bool {
    Path::new(name).file_name().is_some_and(|file| file == name)
}

/// A directory for its owner's eyes. Those above it are made, too.
pub(super) fn make_dir(path: &Path) -> Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true).mode(0o700);
    builder.create(path).with_context(|| format!("create {}", path.display()))
}

/// Writes a new file for its owner's eyes, and returns once the disk has it.
pub(super) fn write(path: &Path, pieces: impl IntoIterator<Item = impl AsRef<[u8]>>) -> Result<()> {
    let writing = || format!("write {}", path.display());
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    let mut file = options.open(path).with_context(writing)?;
    for piece in pieces {
        file.write_all(piece.as_ref()).with_context(writing)?;
    }
    file.sync_all().with_context(writing)
}

/// Copies the keys of one server.
pub(super) fn copy_keys(from: &Path, to: &Path) -> Result<()> {
    make_dir(to)?;
    for entry in fs::read_dir(from).with_context(|| format!("read {}", from.display()))? {
        let entry = entry.with_context(|| format!("read {}", from.display()))?;
        let path = entry.path();
        // What a crash left of a file that was being written is not one.
        let partial = path.extension().is_some_and(|extension| extension == "partial");
        if partial || !path.is_file() {
            continue;
        }
        let bytes = fs::read(&path).with_context(|| format!("read {}", path.display()))?;
        write(&to.join(entry.file_name()), [bytes])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_this_version_knows_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let written = |text: &str| {
            fs::write(folder.path().join(FILE), text).unwrap();
            Manifest::read(folder.path()).map_err(|error| format!("{error:#}"))
        };
        let whole = |format: u32, name: &str| {
            serde_json::json!({
                "format": format, "cleat": "0.0.0", "taken": "2026-11-16T00:00:00Z",
                "stores": [{ "name": name, "revision": 7, "objects": 2 }],
            })
            .to_string()
        };
        let manifest = written(&whole(1, "hub")).unwrap();
        let stored = Stored { name: "hub".to_owned(), revision: 7, objects: 2 };
        assert_eq!(manifest.stores, [stored]);
        let newer = written(r#"{"format": 2, "anything": "else"}"#).unwrap_err();
        assert!(newer.contains("has format 2"), "{newer}");
        for name in ["../hub", "/hub", "", "a/b", ".."] {
            assert!(written(&whole(1, name)).is_err(), "{name}");
        }
        assert!(written("{}").is_err());
    }
}
