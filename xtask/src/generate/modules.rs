//! Kubernetes' sources.

use std::path::PathBuf;

use anyhow::Result;

use crate::modules::download;

/// The Kubernetes whose built-in kinds the API server has.
pub(super) const KUBERNETES: &str = "v1.36.4";
/// The same release, as its libraries are numbered.
const STAGING: &str = "v0.36.4";

pub(super) fn kubernetes() -> Result<PathBuf> {
    download(&format!("k8s.io/kubernetes@{KUBERNETES}"))
}

/// Where the library of that name lies, such as `apimachinery`.
pub(super) fn library(name: &str) -> Result<PathBuf> {
    download(&format!("k8s.io/{name}@{STAGING}"))
}
