//! A real `ansible-playbook`, of a pinned version, from PyPI.
//!
//! It is installed once into the cache of the project and found there afterwards. It needs Python
//! and the package index, or `uv`; without them whoever asks for it fails, and says why.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::kubernetes::cache;

/// What is installed.
pub const VERSION: &str = "2.19.14";

/// The program, installed if it is not.
pub fn install() -> Result<PathBuf> {
    let cache = cache()?;
    std::fs::create_dir_all(&cache).with_context(|| format!("create {}", cache.display()))?;
    let folder = cache.join(format!("ansible-core-{VERSION}"));
    let program = folder.join("bin").join("ansible-playbook");
    let whole = folder.join("installed");
    // Tests of several processes may want it at the same time.
    let lock = File::create(cache.join("ansible-core.lock")).context("make the lock")?;
    lock.lock().context("wait for another installation")?;
    if !whole.exists() {
        if folder.exists() {
            std::fs::remove_dir_all(&folder).context("remove half an installation")?;
        }
        build(&folder)?;
        File::create(&whole).context("note that it is installed")?;
    }
    Ok(program)
}

fn build(folder: &Path) -> Result<()> {
    let package = format!("ansible-core=={VERSION}");
    let python = folder.join("bin").join("python");
    let uv = Command::new("uv").arg("--version").output();
    if uv.is_ok_and(|output| output.status.success()) {
        run(Command::new("uv").arg("venv").arg(folder))?;
        return run(Command::new("uv")
            .args(["pip", "install", "--python"])
            .arg(python)
            .arg(package));
    }
    run(Command::new("python3").args(["-m", "venv"]).arg(folder))?;
    run(Command::new(python).args(["-m", "pip", "install", "--quiet", &package]))
}

fn run(command: &mut Command) -> Result<()> {
    let output = command.output().with_context(|| format!("run {command:?}"))?;
    if !output.status.success() {
        bail!(
            "{command:?} failed: {}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(())
}
