//! `cargo xtask conformance`: our server's answers beside a real kube-apiserver's. The work is in
//! `cleat-world`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail};
use cleat_world::conformance::sequences::{self, Side};
use cleat_world::conformance::{Answers, Suite, embedded};
use cleat_world::kubernetes::{Binaries, ControlPlanes, Durability, kubeconfig};
use cleat_world::server::Remote;

/// Compare our server's answers with a real kube-apiserver's
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    instead: Option<Instead>,
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
    #[command(flatten)]
    tested: Tested,
}

#[derive(clap::Subcommand)]
enum Instead {
    /// Compare answers to random sequences of requests, and what watches told meanwhile
    ///
    /// The same seed always gives the same sequences. One that differs is made as small as it can be
    /// and printed as a case.
    Sequences(Sequences),
}

#[derive(clap::Args)]
struct Sequences {
    /// How many sequences
    #[arg(long, default_value_t = 2000)]
    count: u64,
    /// What they are drawn from
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The number of the first: `--first 17 --count 1` plays one of them again
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// How many kinds of difference to make small
    #[arg(long, default_value_t = 5)]
    shrink: usize,
    #[command(flatten)]
    tested: Tested,
}

#[derive(clap::Args)]
struct Tested {
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
    match &args.instead {
        Some(Instead::Sequences(args)) => runtime.block_on(compare_sequences(args)),
        None => runtime.block_on(compare(args)),
    }
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
    suite.set_patience(Duration::from_secs(args.tested.patience));
    let run = unlike_other_runs();
    if args.record {
        let answers = real_answers(&suite, &run).await?;
        suite.record(&answers)?;
        println!("cases recorded {}, in {} s", answers.len(), begun.elapsed().as_secs());
        return Ok(());
    }
    let ours = async {
        match args.tested.remote()? {
            Some(ours) => suite.play(&ours, &run).await,
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
        tokio::try_join!(real_answers(&suite, &run), ours)?
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

async fn compare_sequences(args: &Sequences) -> Result<()> {
    let Sequences { count, seed, first, shrink, tested } = args;
    let begun = Instant::now();
    let folder = Suite::folder();
    let options = sequences::Options {
        seed: *seed,
        first: *first,
        count: *count,
        run: unlike_other_runs(),
        patience: Duration::from_secs(tested.patience),
        shrunk: *shrink,
    };
    let (real, planes) = real().await?;
    let real = Side { server: &real, fleeting: planes.is_some() };
    let outcome = match tested.remote()? {
        Some(ours) => {
            let ours = Side { server: &ours, fleeting: false };
            sequences::compare(&folder, &options, real, ours).await
        }
        None => {
            let (server, ours) = embedded().await?;
            let ours = Side { server: &ours, fleeting: true };
            let outcome = sequences::compare(&folder, &options, real, ours).await;
            server.stop().await;
            outcome
        }
    };
    drop(planes);
    let outcome = outcome?;
    println!("{outcome} (seed {seed}, in {} s)", begun.elapsed().as_secs());
    if !outcome.passed() {
        bail!("the answers differ");
    }
    Ok(())
}

fn unlike_other_runs() -> String {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos().to_string()
}

async fn real_answers(suite: &Suite, run: &str) -> Result<BTreeMap<String, Answers>> {
    let (server, _planes) = real().await?;
    suite.play(&server, run).await
}

/// The hub that `cargo xtask kubernetes up` started, or one started for this, which ends when its
/// control planes are dropped.
async fn real() -> Result<(Remote, Option<ControlPlanes>)> {
    let running = crate::kubernetes::default_dir().join("kubeconfig");
    if running.exists() {
        return Ok((remote(&running, None)?, None));
    }
    let binaries = Binaries::built(&crate::root().join("kubernetes"))?;
    let dir = crate::root().join("target").join("conformance-kubernetes");
    let planes = ControlPlanes::start(&binaries, &dir, 1, Durability::Fast).await?;
    Ok((remote(&planes.kubeconfig(), None)?, Some(planes)))
}

impl Tested {
    fn remote(&self) -> Result<Option<Remote>> {
        let context = self.context.as_deref();
        self.ours.as_deref().map(|path| remote(path, context)).transpose()
    }
}

fn remote(path: &Path, context: Option<&str>) -> Result<Remote> {
    let accesses = kubeconfig::read(path)?;
    let access = match context {
        Some(name) => accesses.iter().find(|access| access.name == name),
        None => accesses.first(),
    };
    Remote::new(access.with_context(|| format!("no such context in {}", path.display()))?)
}
