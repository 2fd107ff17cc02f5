//! `cleat preview`: what a removal or a change would do, before anybody does it.

mod apply;
mod ask;
mod direct;
mod questions;
mod show;
mod subject;
mod watch;

use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result};
use cleat_api::managedcluster::RemoveStrategy;
use cleat_core::preview::changes;
use kube::Client;
use serde_json::Value;

pub use self::apply::How;
pub(crate) use self::ask::{Foreseen, Patience, ask};
pub(crate) use self::direct::template_target;
pub(crate) use self::questions::{Leaving, leaving};
pub(crate) use self::show::{colours, summary, text};
pub(crate) use self::subject::{Subject, typed};
use crate::PlanChanged;
use crate::connection::{HubArgs, Which, block_on};
use crate::dryrun::objects;
use crate::output::{Output, told};
use crate::strategy::Strategy;

/// How many differences between two plans are told.
const MOST_CHANGES: usize = 20;

/// Shows what a removal or a change would do on each cluster: what would be deleted, orphaned, kept,
/// made or changed, why and by which field, what would go along, and what would stand in the way.
/// Nothing is changed: the
/// clusters' agents answer from what they see and from dry runs; objects on the very server that
/// --context names are looked at there. A cluster that does not answer is unknown, not empty. The
/// plan's hash at the end is good for `cleat delete --plan` and
/// `cleat unjoin --plan`.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
    /// How to print it
    #[arg(long, short, global = true)]
    output: Option<Output>,
    /// How long to wait for the clusters' answers, in seconds
    #[arg(long, global = true, default_value_t = 15)]
    timeout: u64,
    /// Look again every few seconds, and show it whenever it is something else, until interrupted
    #[arg(long, short, global = true)]
    watch: bool,
    #[command(flatten)]
    hub: HubArgs,
}

#[derive(clap::Subcommand)]
enum Verb {
    /// If this were deleted
    ///
    /// On a hub: a manifestwork, manifestworkreplicaset, policy, placementbinding or placement; also a
    /// configurationpolicy that a policy brought to a cluster (-n CLUSTER). On any server: a
    /// configurationpolicy there, or any other object.
    Delete {
        /// As KIND/NAME, such as manifestwork/shop, policy/baseline or deployment/web
        what: String,
        /// Its namespace; for a work, the cluster's name [default: the context's]
        #[arg(long, short)]
        namespace: Option<String>,
    },
    /// If this file were applied to the hub
    ///
    /// Its documents may be manifestworks, manifestworkreplicasets, policies, policysets,
    /// placementbindings and placements, and are looked at together. What is shown is what
    /// `kubectl apply -f` would do: a field that a document does not mention stays, unless an earlier
    /// `kubectl apply` had set it.
    Apply {
        /// A file or a folder of YAML or JSON, or - for standard input
        #[arg(long, short, required = true)]
        filename: Vec<PathBuf>,
        /// The namespace of what names none
        #[arg(long, short)]
        namespace: Option<String>,
        /// As `kubectl apply --server-side` would do it
        #[arg(long, conflicts_with = "replace")]
        server_side: bool,
        /// The same, also of fields that are somebody else's
        #[arg(long, requires = "server_side")]
        force_conflicts: bool,
        /// As `kubectl replace` would do it: the file is the whole of it
        #[arg(long)]
        replace: bool,
        /// The hash that an earlier preview printed: refuse if it would do something else by now
        #[arg(long)]
        plan: Option<String>,
    },
    /// If this cluster left the fleet
    Unjoin {
        /// The cluster
        name: String,
        /// By this strategy instead of the one the cluster has
        #[arg(long, value_enum)]
        remove_strategy: Option<Strategy>,
    },
}

impl Args {
    fn reads_standard_input(&self) -> bool {
        let input = |path: &PathBuf| path.as_os_str() == "-";
        matches!(&self.verb, Verb::Apply { filename, .. } if filename.iter().any(input))
    }
}

pub fn run(args: &Args) -> Result<()> {
    told(args.output, block_on(look(args)))
}

async fn look(args: &Args) -> Result<()> {
    if let Verb::Delete { what, .. } = &args.verb {
        typed(what)?;
    }
    let which = Which::from(&args.hub);
    let usual = which.config().await?.default_namespace;
    let hub_client = which.client().await?;
    if args.watch {
        return watch::watch(args, &hub_client, &usual).await;
    }
    let subject = subject(args, &usual)?.placed(&hub_client).await?;
    let patience = Patience::typed(args.timeout);
    let foreseen = match &args.verb {
        Verb::Apply { plan: Some(plan), .. } => still(&hub_client, &subject, plan, patience).await,
        _ => ask(&hub_client, &subject, patience).await,
    };
    print(args, &foreseen.with_context(|| subject.purpose())?)
}

/// What is asked about. `usual`: the namespace of what is typed without one.
fn subject(args: &Args, usual: &str) -> Result<Subject> {
    Ok(match &args.verb {
        Verb::Delete { what, namespace } => {
            Subject::parse(what, Some(namespace.as_deref().unwrap_or(usual)))?
        }
        Verb::Apply { filename, namespace, server_side, force_conflicts, replace, plan: _ } => {
            let documents = apply::documents(objects(filename)?, namespace.as_deref())?;
            let how = match (replace, server_side) {
                (true, _) => How::Replace,
                (false, true) => How::ServerSide { force: *force_conflicts },
                (false, false) => How::Apply,
            };
            Subject::Apply { documents, how }
        }
        Verb::Unjoin { name, remove_strategy } => {
            let strategy = remove_strategy.map(RemoveStrategy::from);
            Subject::Leave { cluster: name.clone(), strategy }
        }
    })
}

fn print(args: &Args, foreseen: &Foreseen) -> Result<()> {
    let text = match args.output {
        None => show::text(foreseen, show::colours(&std::io::stdout())),
        // Several documents follow each other.
        Some(Output::Yaml) if args.watch => {
            format!("---\n{}", Output::Yaml.written(&show::value(foreseen))?)
        }
        Some(output) => output.written(&show::value(foreseen))?,
    };
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// What deleting something would do, as `-o json` prints it, to whoever has a client already.
pub async fn foresee(
    client: &Client,
    what: &str,
    namespace: Option<&str>,
    patience: Duration,
) -> Result<Value> {
    let subject = Subject::parse(what, namespace)?.placed(client).await?;
    Ok(show::value(&ask(client, &subject, Patience::unwatched(patience)).await?))
}

/// What applying these objects would do, as `-o json` prints it, to whoever has a client already.
pub async fn foresee_apply(
    client: &Client,
    documents: Vec<Value>,
    patience: Duration,
) -> Result<Value> {
    foresee_given(client, documents, How::Apply, patience).await
}

/// The same, however they are given to the hub.
pub async fn foresee_given(
    client: &Client,
    documents: Vec<Value>,
    how: How,
    patience: Duration,
) -> Result<Value> {
    let documents = apply::documents(documents, None)?;
    let subject = Subject::Apply { documents, how };
    Ok(show::value(&ask(client, &subject, Patience::unwatched(patience)).await?))
}

/// Looks again at what somebody agreed to under this hash, and refuses if it is not that any more.
pub(crate) async fn still(
    hub_client: &Client,
    subject: &Subject,
    plan: &str,
    patience: Patience,
) -> Result<Foreseen> {
    let foreseen = ask(hub_client, subject, patience).await?;
    if foreseen.plan == plan {
        return Ok(foreseen);
    }
    // What was looked at where it is, nobody wrote down.
    let here = matches!(subject, Subject::Object { .. } | Subject::Template { .. });
    let here = here && foreseen.asked.is_empty();
    let before = match here {
        true => None,
        false => ask::earlier(hub_client, subject, plan).await?,
    };
    let different = before.map(|before| changes(&before, &foreseen.parts(), MOST_CHANGES));
    let different = match different {
        Some(different) if different.is_empty() => {
            "the objects are the same, but not what the hub says of it".to_owned()
        }
        Some(different) => different.join("\n  "),
        None if here => format!(
            "no hub keeps that plan, so what differs cannot be told; now it is: {}",
            summary(&foreseen)
        ),
        None => "the plan is not on the hub any more, so what differs cannot be told".to_owned(),
    };
    Err(PlanChanged(format!(
        "this is not plan {plan} any more but {}; nothing was done:\n  {different}\nLook again with \
         `cleat preview`",
        foreseen.plan
    ))
    .into())
}
