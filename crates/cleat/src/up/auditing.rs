//! Where the audit logs of the servers go: each has a file of its own.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use cleat_apiserver::audit::{Audit, LogFile, Policy};

/// What is logged, and the name that those of the files derive from.
pub(super) struct Auditing {
    policy: Policy,
    path: PathBuf,
}

impl Auditing {
    /// `None` when no log is asked for.
    pub(super) fn read(log: Option<&Path>, policy: Option<&Path>) -> Result<Option<Self>> {
        let (Some(log), Some(policy)) = (log, policy) else { return Ok(None) };
        let text = std::fs::read_to_string(policy)
            .with_context(|| format!("read the audit policy {}", policy.display()))?;
        let policy = Policy::parse(&text)
            .with_context(|| format!("understand the audit policy {}", policy.display()))?;
        Ok(Some(Self { policy, path: log.to_owned() }))
    }

    pub(super) fn log_of(&self, server: &str) -> Result<Audit> {
        let path = path_of(&self.path, server);
        let file = LogFile::open(&path)
            .with_context(|| format!("open the audit log {}", path.display()))?;
        Ok(Audit::new(self.policy.clone(), Arc::new(file)))
    }
}

fn path_of(path: &Path, server: &str) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let name = match path.extension() {
        Some(extension) => format!("{stem}-{server}.{}", extension.to_string_lossy()),
        None => format!("{stem}-{server}"),
    };
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_server_has_a_file_of_its_own() {
        for (given, want) in [
            ("logs/audit.log", "logs/audit-hub.log"),
            ("audit", "audit-hub"),
            ("a.b.json", "a.b-hub.json"),
        ] {
            assert_eq!(path_of(Path::new(given), "hub"), Path::new(want));
        }
    }
}
