//! Kubernetes' sources in the Go module cache, fetched through the module proxy when missing.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

/// The Kubernetes whose built-in kinds the API server has.
pub(super) const KUBERNETES: &str = "v1.36.4";
/// The same release, as its libraries are numbered.
const STAGING: &str = "v0.36.4";

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Downloaded {
    dir: Option<PathBuf>,
    error: Option<String>,
}

pub(super) fn kubernetes() -> Result<PathBuf> {
    download(&format!("k8s.io/kubernetes@{KUBERNETES}"))
}

/// Where the library of that name lies, such as `apimachinery`.
pub(super) fn library(name: &str) -> Result<PathBuf> {
    download(&format!("k8s.io/{name}@{STAGING}"))
}

fn download(module: &str) -> Result<PathBuf> {
    let output = Command::new("go")
        .args(["mod", "download", "-json", module])
        // Outside of any Go module, or `go` would look at the wrong go.mod.
        .current_dir(std::env::temp_dir())
        .output()
        .context("run go; generating needs a Go toolchain")?;
    let downloaded: Downloaded = serde_json::from_slice(&output.stdout)
        .with_context(|| format!("understand what go says about {module}"))?;
    match downloaded {
        Downloaded { dir: Some(dir), error: None } => Ok(dir),
        Downloaded { error, .. } => bail!("download {module}: {}", error.unwrap_or_default()),
    }
}
