//! Builds and finds the programs of a real control plane.
//!
//! They are built once from the pinned module in `kubernetes/` and kept outside the repository, in
//! a folder named after the version and the pins, so that branches with other pins do not meet.
//! Nothing is downloaded but Go modules, and those through the Go tool.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};
use sha2::{Digest as _, Sha256};

/// Name and Go package of each program, the one that takes longest first.
const PROGRAMS: [(&str, &str); 4] = [
    ("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"),
    ("kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager"),
    ("kubectl", "k8s.io/kubernetes/cmd/kubectl"),
    ("etcd", "go.etcd.io/etcd/server/v3"),
];

/// The folder with the built programs.
#[derive(Clone, Debug)]
pub struct Binaries {
    folder: PathBuf,
    version: String,
}

impl Binaries {
    /// Where the programs pinned in `module` (the folder with `go.mod`) belong. They need not exist.
    pub fn pinned(module: &Path) -> Result<Self> {
        let read = |name: &str| {
            let path = module.join(name);
            std::fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))
        };
        let (requirements, sums) = (read("go.mod")?, read("go.sum")?);
        let version = requirements
            .lines()
            .filter_map(|line| line.trim().trim_start_matches("require ").split_once(' '))
            .find(|(name, _)| *name == "k8s.io/kubernetes")
            .and_then(|(_, version)| version.split_whitespace().next())
            .map(str::to_owned)
            .context("go.mod does not require k8s.io/kubernetes")?;
        let digest = Sha256::new().chain_update(requirements).chain_update(sums).finalize();
        let mut key = String::new();
        for byte in digest.iter().take(6) {
            write!(key, "{byte:02x}")?;
        }
        let folder = cache()?.join("kubernetes").join(format!("{version}-{key}"));
        Ok(Self { folder, version })
    }

    /// The programs pinned in `module`, or an error that says how to get them.
    pub fn built(module: &Path) -> Result<Self> {
        let binaries = Self::pinned(module)?;
        for (name, _) in PROGRAMS {
            ensure!(
                binaries.program(name).exists(),
                "{name} is not built yet: run `cargo xtask kubernetes build`"
            );
        }
        Ok(binaries)
    }

    /// Builds what is missing. A program is either wholly there or not at all.
    pub fn build(module: &Path, mut say: impl FnMut(&str)) -> Result<Self> {
        let binaries = Self::pinned(module)?;
        std::fs::create_dir_all(&binaries.folder)
            .with_context(|| format!("create {}", binaries.folder.display()))?;
        for (name, package) in PROGRAMS {
            let path = binaries.program(name);
            if path.exists() {
                say(&format!("{name}: there"));
                continue;
            }
            say(&format!("{name}: building {package} (minutes, when nothing is cached)"));
            let begun = Instant::now();
            let unfinished = binaries.folder.join(format!(".{name}.{}", std::process::id()));
            let built = binaries.go_build(module, package, &unfinished);
            if let Err(error) = built {
                // It may not exist; what matters is that it does not stay.
                std::fs::remove_file(&unfinished).ok();
                return Err(error.context(format!("build {name}")));
            }
            std::fs::rename(&unfinished, &path)
                .with_context(|| format!("put {} in place", path.display()))?;
            say(&format!("{name}: built in {} s", begun.elapsed().as_secs()));
        }
        Ok(binaries)
    }

    #[must_use]
    pub fn program(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// `v1.36.4`
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    fn go_build(&self, module: &Path, package: &str, output: &Path) -> Result<()> {
        let status = Command::new("go")
            .current_dir(module)
            .env("CGO_ENABLED", "0")
            .env("GOWORK", "off")
            .args(["build", "-trimpath", "-buildvcs=false", "-ldflags", &self.linker_flags(), "-o"])
            .arg(output)
            .arg(package)
            .status()
            .context("run go (is it installed?)")?;
        if !status.success() {
            bail!("go build ended with {status}");
        }
        Ok(())
    }

    /// A build from the module proxy knows no git: without these, `/version` says v0.0.0.
    fn linker_flags(&self) -> String {
        let mut numbers = self.version.trim_start_matches('v').split('.');
        let (major, minor) = (numbers.next().unwrap_or(""), numbers.next().unwrap_or(""));
        let mut flags = String::from("-s -w");
        for package in ["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"] {
            for (name, value) in [
                ("gitVersion", self.version.as_str()),
                ("gitMajor", major),
                ("gitMinor", minor),
                ("gitTreeState", "clean"),
            ] {
                flags.push_str(&format!(" -X {package}.{name}={value}"));
            }
        }
        flags
    }
}

pub(crate) fn cache() -> Result<PathBuf> {
    if let Some(folder) = std::env::var_os("CLEAT_CACHE") {
        return Ok(folder.into());
    }
    let home = std::env::var_os("HOME").context("neither CLEAT_CACHE nor HOME is set")?;
    Ok(Path::new(&home).join(".cache").join("cleat"))
}
