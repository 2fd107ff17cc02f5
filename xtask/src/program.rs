//! The `cleat` program, as tests run it.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

/// Builds the program and says where it is. Nothing else may wait meanwhile: it takes minutes at worst.
///
/// It is built as `cargo test --workspace` builds it, which has mostly been run before: a build by
/// itself would choose other features of the dependencies, and build everything again.
pub(crate) fn build() -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo)
        .current_dir(crate::root())
        .args(["test", "--quiet", "--workspace", "--no-run", "--test", "automation"])
        .status()
        .context("run cargo test --no-run")?;
    if !built.success() {
        bail!("cleat does not build");
    }
    // Cargo puts all of a workspace's programs into one folder.
    Ok(std::env::current_exe().context("find this program")?.with_file_name("cleat"))
}
