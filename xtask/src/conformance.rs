//! `cargo xtask conformance`: our server's answers beside a real kube-apiserver's. The work is in
//! `cleat-world`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail};
use cleat_world::conformance::{Answers, Suite, embedded};
use cleat_world::kubernetes::{Binaries, ControlPlanes, Durability, kubeconfig};
use cleat_world::server::{Remote, Server};

/// Compare our server's answers with a real kube-apiserver's
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only cases whose name contains this
    #[arg(long)]
    only: Option<String>,
    /// Store the real server's answers in the repository instead of comparing
    #[arg(long)]
    record: bool,
    /// Compare with the recorded answers instead of a running kube-apiserver
    #[arg(long, conflicts_with = "record")]
    recorded: bool,
    /// Show every difference, not only the first of each case
    #[arg(long)]
    full: bool,
    /// Seconds to wait for what a server does by and by
    #[arg(long, default_value_t = 60)]
    patience: u64,
    /// Test this kubeconfig's server instead of the embedded one
    #[arg(long)]
    ours: Option<PathBuf>,
    /// The context in that kubeconfig [default: its first]
    #[arg(long, requires = "ours")]
    context: Option<String>,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("start the runtime")?;
    runtime.block_on(compare(args))
}

async fn compare(args: &Args) -> Result<()> {
    let begun = Instant::now();
    let mut suite = Suite::load(&Suite::folder())?;
    let strays = suite.strays()?;
    if !strays.is_empty() && !args.record {
        bail!("no case has these names any more: {}", strays.join(", "));
    }
    if let Some(part) = &args.only {
        suite.only(part);
    }
    suite.set_patience(Duration::from_secs(args.patience));
    let run =
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos().to_string();
    if args.record {
        let answers = real(&suite, &run).await?;
        suite.record(&answers)?;
        println!("cases recorded {}, in {} s", answers.len(), begun.elapsed().as_secs());
        return Ok(());
    }
    let ours = async {
        match &args.ours {
            Some(path) => suite.play(&remote(path, args.context.as_deref())?, &run).await,
            None => {
                let (server, ours) = embedded().await?;
                let answers = suite.play(&ours, &run).await;
                server.stop().await;
                answers
            }
        }
    };
    let (real, ours) = if args.recorded {
        (suite.recorded()?, ours.await?)
    } else {
        tokio::try_join!(real(&suite, &run), ours)?
    };
    let mut report = suite.compare(&real, &ours);
    if args.full {
        report.shown_per_case = usize::MAX;
    }
    println!("{report} (in {} s)", begun.elapsed().as_secs());
    if !report.passed() {
        bail!("the answers differ");
    }
    Ok(())
}

/// The answers of the hub that `cargo xtask kubernetes up` started, or of one started for this.
async fn real(suite: &Suite, run: &str) -> Result<BTreeMap<String, Answers>> {
    let running = crate::kubernetes::default_dir().join("kubeconfig");
    if running.exists() {
        return suite.play(&remote(&running, None)?, run).await;
    }
    let binaries = Binaries::built(&crate::root().join("kubernetes"))?;
    let dir = crate::root().join("target").join("conformance-kubernetes");
    let planes = ControlPlanes::start(&binaries, &dir, 1, Durability::Fast).await?;
    suite.play(&remote(&planes.kubeconfig(), None)?, run).await
}

fn remote(path: &Path, context: Option<&str>) -> Result<impl Server + use<>> {
    let accesses = kubeconfig::read(path)?;
    let access = match context {
        Some(name) => accesses.iter().find(|access| access.name == name),
        None => accesses.first(),
    };
    Remote::new(access.with_context(|| format!("no such context in {}", path.display()))?)
}
