//! `cleat unjoin`: lets a cluster leave, and shows how that goes.

mod outcome;
mod patience;
mod progress;

use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use cleat_api::leftoverrecord::LeftoverRecord;
use cleat_api::managedcluster::{
    CLUSTER_DESTROYED, CLUSTER_NAME_LABEL, ManagedCluster, RemoveStrategy, condition,
};
use cleat_api::manifestwork::ManifestWork;
use cleat_api::policy::Policy;
use cleat_core::condition::{find, holds};
use cleat_core::leave::carried::Carried;
use cleat_core::preview::deletes_anew;
use cleat_core::registration::{hub, place};
use cleat_runtime::execute::Executor;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt as _};
use serde_json::json;
use tokio::time::timeout;

use self::outcome::Outcome;
use self::patience::{ANSWER, Waiting};
use self::progress::Progress;
use crate::bound::Bound;
use crate::caution::Thresholds;
use crate::connection::{HubArgs, Which, block_on, executor};
use crate::delete::approve;
use crate::output::{Output, told};
use crate::preview::{Patience, Subject, ask, still};
use crate::strategy::Strategy;
use crate::{Halted, Refused};

/// How often the hub is asked how far it got.
const PAUSE: Duration = Duration::from_millis(500);

/// Longer than any pause before something refused is tried again.
const RETRIES: Duration = Duration::from_secs(20);

/// Lets a cluster leave the fleet. What was carried to it stays or is removed as its remove strategy
/// says; the command shows how that goes and ends when the cluster is gone from the hub. Where much
/// would be removed, or nobody knows how much, it asks first, or takes the plan that
/// `cleat preview unjoin` showed. If something cannot be removed it says what and why and ends with code 4; the hub goes on by itself once the
/// cause is gone.
#[derive(clap::Args)]
pub struct Args {
    /// The cluster
    name: String,
    /// Leave by this strategy instead of the one the cluster has: `Needless` leaves everything there,
    /// `Required` removes it and waits until it is gone. May be changed while it leaves
    #[arg(long, value_enum)]
    remove_strategy: Option<Strategy>,
    /// The cluster exists no more, or never comes back: let it go without asking it, and write down
    /// what it is believed to hold (see `cleat leftovers`)
    #[arg(long)]
    cluster_destroyed: bool,
    /// The hash that `cleat preview unjoin` printed: refuse if the world has changed since
    #[arg(long, conflicts_with = "cluster_destroyed")]
    plan: Option<String>,
    /// How long to wait for the cluster's answer about what would go, in seconds
    #[arg(long, default_value_t = 15)]
    timeout: u64,
    /// Do not ask: neither for the name of a destroyed cluster, nor however much goes
    #[arg(long, short)]
    yes: bool,
    #[command(flatten)]
    thresholds: Thresholds,
    /// Only begin
    #[arg(long)]
    no_wait: bool,
    /// Go on waiting when something cannot be removed
    #[arg(long, conflicts_with = "no_wait")]
    keep_waiting: bool,
    /// How to print what came of it: that it left and what is on record, what stands in the way, or
    /// why it was refused
    #[arg(long, short)]
    output: Option<Output>,
    #[command(flatten)]
    hub: HubArgs,
}

pub fn run(args: &Args) -> Result<()> {
    let done = block_on(async {
        let hub_client = Which::from(&args.hub).client().await?;
        unjoin(args, &hub_client).await.with_context(|| format!("unjoin {}", args.name))
    });
    told(args.output, done)
}

async fn unjoin(args: &Args, hub_client: &Client) -> Result<()> {
    let executor = executor(Some(hub_client.clone()), None);
    let what = format!("cluster {}", args.name);
    let read = Bound::read(&executor, hub::target(&args.name), what).await?;
    let Some(mut bound) = read else {
        let hint = format!("there is no cluster {}; `cleat clusters` shows all", args.name);
        return Err(Refused(hint).into());
    };
    let cluster: ManagedCluster = bound.parse()?;
    let status = cluster.status.clone().unwrap_or_default();
    if args.cluster_destroyed && holds(&status.conditions, condition::AVAILABLE) {
        eprintln!(
            "{name} does not look destroyed: its agent was heard of lately. Without \
             --cluster-destroyed, `cleat unjoin {name}` lets the agent do its part",
            name = args.name
        );
    }
    if args.cluster_destroyed && !args.yes {
        confirm(&args.name)?;
    }
    if let Some(plan) = agreed(args, hub_client, &cluster, &mut bound).await? {
        approve(&executor, &mut bound, &plan).await?;
    }
    begin(args, &executor, &cluster, &mut bound).await?;
    let outcome = match args.no_wait {
        true => Outcome::Begun,
        false => wait(args, hub_client, &cluster).await?,
    };
    if let Some(output) = args.output {
        output.print(&outcome.value(&args.name))?;
    }
    let text = outcome.text(&args.name);
    match outcome {
        Outcome::Stuck { .. } | Outcome::Unheard(_) => return Err(Halted(text).into()),
        Outcome::Begun | Outcome::Left { .. } if args.output.is_some() => {}
        Outcome::Begun | Outcome::Left { .. } => println!("{text}"),
    }
    Ok(())
}

/// Waits until it has left, or why nobody waits any longer.
async fn wait(args: &Args, hub_client: &Client, cluster: &ManagedCluster) -> Result<Outcome> {
    let ended = async {
        match follow(args, hub_client, cluster).await? {
            Some(stuck) => Ok(stuck),
            None => kept(hub_client, cluster, &args.name).await,
        }
    };
    ended.await.or_else(|error| match error.downcast_ref::<Halted>() {
        Some(Halted(why)) => Ok(Outcome::Unheard(why.clone())),
        None => Err(error),
    })
}

/// Looks at what would go, if anything would that was not going already: the plan that somebody
/// agreed to, where it takes one.
async fn agreed(
    args: &Args,
    hub_client: &Client,
    cluster: &ManagedCluster,
    bound: &mut Bound,
) -> Result<Option<String>> {
    let strategy = args.remove_strategy.map(RemoveStrategy::from);
    let subject = Subject::Leave { cluster: args.name.clone(), strategy };
    let patience = Patience::typed(args.timeout);
    if let Some(plan) = &args.plan {
        drop(still(hub_client, &subject, plan, patience).await?);
        bound.looked_at();
        return Ok(Some(plan.clone()));
    }
    // Whoever lets a cluster leave with everything means that state of it: should somebody ask for the
    // opposite at this moment, nothing is done.
    if strategy.unwrap_or(cluster.spec.remove_strategy) == RemoveStrategy::Needless {
        bound.looked_at();
    }
    if args.yes || args.cluster_destroyed || !deletes_anew(cluster, strategy) {
        return Ok(None);
    }
    let foreseen = ask(hub_client, &subject, patience).await?;
    bound.looked_at();
    let asked = args.thresholds.confirm(&subject, &foreseen)?;
    Ok(asked.then_some(foreseen.plan))
}

/// Whoever declares a cluster destroyed types its name.
fn confirm(name: &str) -> Result<()> {
    if !std::io::stdin().is_terminal() {
        let hint = "nobody is there to type its name again; add --yes if you are sure";
        return Err(Refused(hint.to_owned()).into());
    }
    eprint!(
        "{name} will be forgotten without being asked; what it holds is only written down.\nType \
         its name to go on: "
    );
    std::io::stderr().flush()?;
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).context("read the name")?;
    if line.trim() != name {
        return Err(Refused("that is not its name; nothing was done".to_owned()).into());
    }
    Ok(())
}

async fn begin(
    args: &Args,
    executor: &Executor,
    cluster: &ManagedCluster,
    bound: &mut Bound,
) -> Result<()> {
    let strategy = args.remove_strategy.map(RemoveStrategy::from);
    let strategy = strategy.filter(|strategy| *strategy != cluster.spec.remove_strategy);
    let mut patch = serde_json::Map::new();
    if let Some(strategy) = strategy {
        patch.insert("spec".to_owned(), json!({ "removeStrategy": strategy }));
    }
    if args.cluster_destroyed {
        let declared = json!({ "annotations": { CLUSTER_DESTROYED: args.name } });
        patch.insert("metadata".to_owned(), declared);
    }
    if !patch.is_empty()
        && let Err(refusal) = bound.merge(executor, &patch.into()).await?
    {
        let hint = format!("the server refuses to change the cluster: {}", refusal.message);
        return Err(Refused(hint).into());
    }
    if cluster.metadata.deletion_timestamp.is_some() {
        return Ok(());
    }
    bound.delete(executor).await
}

/// Shows how it goes until the cluster is gone, or something stands in the way, which is returned.
async fn follow(
    args: &Args,
    hub_client: &Client,
    cluster: &ManagedCluster,
) -> Result<Option<Outcome>> {
    let clusters: Api<ManagedCluster> = Api::all(hub_client.clone());
    let works: Api<ManifestWork> = Api::namespaced(hub_client.clone(), &args.name);
    let policies: Api<Policy> = Api::namespaced(hub_client.clone(), &args.name);
    let mut progress = Progress::new(&args.name, std::io::stderr().is_terminal());
    let meanwhile = format!(
        "{name} goes on leaving without this command; `cleat unjoin {name}` shows how when the hub \
         answers again.",
        name = args.name
    );
    let waiting = Waiting { meanwhile, for_ever: args.keep_waiting };
    let mut pause = tokio::time::interval(PAUSE);
    let begun = Instant::now();
    let before = cluster.status.clone().unwrap_or_default();
    let known = holds(&before.conditions, condition::UNJOIN_FAILED);
    loop {
        pause.tick().await;
        let now = waiting
            .ask(|why| progress.silent(why), async || clusters.get_opt(&args.name).await)
            .await
            .context("ask for the cluster")?;
        let Some(now) = now.filter(|now| now.metadata.uid == cluster.metadata.uid) else {
            progress.end();
            return Ok(None);
        };
        let list = waiting
            .ask(|why| progress.silent(why), async || works.list(&ListParams::default()).await)
            .await
            .context("ask for its works")?;
        let mut carried: Vec<Carried> = list.items.iter().map(Carried::work).collect();
        // A hub without policies has none; and what stands in their way is in the condition as well.
        let list = timeout(ANSWER, policies.list(&ListParams::default())).await;
        let list = list.ok().and_then(Result::ok).map(|list| list.items);
        let policy = |one: Policy| {
            Carried::policy(&one.metadata, Some(&one.spec), one.status.unwrap_or_default())
        };
        carried.extend(list.unwrap_or_default().into_iter().map(policy));
        progress.show(&now, &carried);
        let status = now.status.clone().unwrap_or_default();
        let halted = holds(&status.conditions, condition::UNJOIN_FAILED);
        // What stood in the way before may be gone: it is asked again within ten seconds.
        if halted && !args.keep_waiting && (!known || begun.elapsed() > RETRIES) {
            progress.end();
            let said = find(&status.conditions, condition::UNJOIN_FAILED);
            return Ok(Some(Outcome::Stuck { said: said.cloned(), carried }));
        }
    }
}

/// What is left on the cluster, as far as it is written down, and of its place on the hub.
async fn kept(hub_client: &Client, cluster: &ManagedCluster, name: &str) -> Result<Outcome> {
    let records: Api<LeftoverRecord> = Api::all(hub_client.clone());
    let params = ListParams::default().labels(&format!("{CLUSTER_NAME_LABEL}={name}"));
    let meanwhile =
        format!("{name} has left; `cleat leftovers show {name}` shows what it kept, if anything.");
    let waiting = Waiting { meanwhile, for_ever: false };
    let listed = waiting.ask(|_| {}, async || records.list(&params).await).await;
    let mut found = listed.context("look for leftover records")?.items;
    let uid = cluster.metadata.uid.clone().unwrap_or_default();
    found.retain(|record| record.spec.cluster_uid == uid);
    let namespaces: Api<Namespace> = Api::all(hub_client.clone());
    let namespace = waiting.ask(|_| {}, async || namespaces.get_opt(name).await).await;
    let namespace = namespace.context("look for its namespace")?;
    let namespace_kept = namespace.and_then(|one| one.annotations().get(place::KEPT).cloned());
    Ok(Outcome::Left { records: found, namespace_kept })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_confirms_where_nobody_is() {
        if !std::io::stdin().is_terminal() {
            assert!(confirm("c1").unwrap_err().is::<Refused>());
        }
    }
}
