//! Go modules in Go's own cache, fetched through the module proxy when missing.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Downloaded {
    dir: Option<PathBuf>,
    error: Option<String>,
}

/// Where a module lies, named as in `k8s.io/kubernetes@v1.36.4`.
pub(crate) fn download(module: &str) -> Result<PathBuf> {
    let output = Command::new("go")
        .args(["mod", "download", "-json", module])
        // Outside of any Go module, or `go` would look at the wrong go.mod.
        .current_dir(std::env::temp_dir())
        .output()
        .context("run go; this chore needs a Go toolchain")?;
    let downloaded: Downloaded = serde_json::from_slice(&output.stdout)
        .with_context(|| format!("understand what go says about {module}"))?;
    match downloaded {
        Downloaded { dir: Some(dir), error: None } => Ok(dir),
        Downloaded { error, .. } => bail!("download {module}: {}", error.unwrap_or_default()),
    }
}
