//! `cargo xtask kubernetes`: build, start and end real control planes. The work is in `cleat-world`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use clap::Subcommand;
use cleat_world::kubernetes::{Binaries, ControlPlanes, Durability, down, kubeconfig};

/// What tests expect: a hub and two clusters.
const WORLD: usize = 3;

#[derive(Subcommand)]
pub(crate) enum Args {
    /// Build kube-apiserver, kube-controller-manager, kubectl and etcd from kubernetes/go.mod
    ///
    /// They are kept in $CLEAT_CACHE or ~/.cache/cleat; what is there already is not built again.
    Build,
    /// Print the folder with the built programs (kubectl among them)
    Path,
    /// Start N control planes on loopback: hub, cluster1, cluster2, …
    Up {
        #[arg(default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=50))]
        n: u16,
        /// Where state, logs and the kubeconfig go [default: target/kubernetes]
        #[arg(long)]
        dir: Option<PathBuf>,
        /// Let etcd wait for the disk, as benchmarks must
        #[arg(long)]
        durable: bool,
    },
    /// Run the integration tests on real control planes
    ///
    /// On those that `up` started, or on a hub and two clusters started and ended for this.
    Test {
        /// What to pass on to the tests, such as a part of a name
        args: Vec<String>,
    },
    /// End what `up` started and remove its state
    Down {
        #[arg(long)]
        dir: Option<PathBuf>,
    },
}

pub(crate) fn run(args: Args) -> Result<()> {
    let module = crate::root().join("kubernetes");
    match args {
        Args::Build => {
            let binaries = Binaries::build(&module, |line| println!("{line}"))?;
            println!("Kubernetes {} in {}", binaries.version(), binaries.folder().display());
            Ok(())
        }
        Args::Path => {
            println!("{}", Binaries::built(&module)?.folder().display());
            Ok(())
        }
        Args::Up { n, dir, durable } => {
            let durability = if durable { Durability::Durable } else { Durability::Fast };
            up(&Binaries::built(&module)?, dir.unwrap_or_else(default_dir), n, durability)
        }
        Args::Test { args } => test(&module, &args),
        Args::Down { dir } => {
            let dir = dir.unwrap_or_else(default_dir);
            let ended = down(&dir)?;
            if ended.is_empty() {
                println!("nothing runs in {}", dir.display());
            } else {
                println!("ended {}", ended.join(", "));
            }
            Ok(())
        }
    }
}

pub(crate) fn default_dir() -> PathBuf {
    crate::root().join("target").join("kubernetes")
}

fn test(module: &Path, args: &[String]) -> Result<()> {
    let running = default_dir().join("kubeconfig");
    if running.exists() && kubeconfig::read(&running)?.len() >= WORLD {
        return run_suite(&running, args);
    }
    let binaries = Binaries::built(module)?;
    let dir = crate::root().join("target").join("kubernetes-test");
    let runtime = runtime()?;
    let planes = runtime.block_on(async {
        tokio::select! {
            planes = ControlPlanes::start(&binaries, &dir, WORLD, Durability::Fast) => planes,
            _ = tokio::signal::ctrl_c() => bail!("interrupted"),
        }
    })?;
    let outcome = run_suite(&planes.kubeconfig(), args);
    // Ends what was started here, whatever came of the tests.
    drop(planes);
    outcome
}

/// Tests wait for servers, caches and collectors more than they compute, so more of them run at the
/// same time than there are processors.
const AT_ONCE: &str = "4";

/// Says how many ran through the test program's own last line.
fn run_suite(kubeconfig: &Path, args: &[String]) -> Result<()> {
    println!("on the real control planes of {}", kubeconfig.display());
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let at_once = std::env::var("RUST_TEST_THREADS").unwrap_or_else(|_| AT_ONCE.to_owned());
    let status = Command::new(cargo)
        .current_dir(crate::root())
        // The whole workspace, as `cargo test --workspace` builds it: naming packages would choose
        // other features of the dependencies, and build everything a second time.
        .args(["test", "--quiet", "--workspace", "--test", "suite", "--test", "automation"])
        .args(["--test", "policy_commands", "--test", "stuck_unjoin", "--"])
        .args(args)
        .env("RUST_TEST_THREADS", at_once)
        .env(cleat_world::world::WORLD, kubeconfig)
        .status()
        .context("run cargo test")?;
    if !status.success() {
        bail!("tests failed on real control planes");
    }
    Ok(())
}

pub(crate) fn runtime() -> Result<tokio::runtime::Runtime> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.enable_all().build().context("start the runtime")
}

fn up(binaries: &Binaries, dir: PathBuf, n: u16, durability: Durability) -> Result<()> {
    let begun = Instant::now();
    let planes = runtime()?.block_on(async {
        // Dropping the start ends what it had started.
        tokio::select! {
            planes = ControlPlanes::start(binaries, &dir, usize::from(n), durability) => planes,
            _ = tokio::signal::ctrl_c() => bail!("interrupted"),
        }
    })?;
    for access in planes.accesses() {
        println!("{:<10} {}", access.name, access.url);
    }
    println!(
        "Kubernetes {}, {n} control plane(s), ready in {:.1} s",
        binaries.version(),
        begun.elapsed().as_secs_f64()
    );
    println!("kubeconfig: {}", planes.kubeconfig().display());
    println!("kubectl:    {}", binaries.program("kubectl").display());
    planes.leave();
    Ok(())
}
