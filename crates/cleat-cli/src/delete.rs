//! `cleat delete`: deletes from a hub what was looked at first.

use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use cleat_api::removalpreview::{APPROVED_PLAN, PreviewVerdict};
use cleat_core::id::{Id, Target};
use cleat_core::write::{Action, Outcome, Propagation, Side, Write};
use cleat_runtime::execute::{Executor, Read};
use serde_json::json;

use crate::Refused;
use crate::connection::{HubArgs, Which, block_on, executor};
use crate::preview::{Foreseen, Leaving, Subject, ask, leaving, still, summary, template_target};

/// How often the hub is asked whether it is gone.
const PAUSE: Duration = Duration::from_millis(250);

/// Deletes a manifestwork, manifestworkreplicaset, policy, placementbinding or placement from the hub,
/// or a configurationpolicy from the server it is on, and waits until it, and everything of it that was
/// to go, is gone. With `--plan` it does so only if the removal is still the one that
/// `cleat preview` showed; without, it shows a large one and asks.
#[derive(clap::Args)]
pub struct Args {
    /// As KIND/NAME, such as manifestwork/shop
    what: String,
    /// Its namespace; for a work, the cluster's name
    #[arg(long, short)]
    namespace: String,
    /// The hash that `cleat preview delete` printed: refuse if the world has changed since
    #[arg(long)]
    plan: Option<String>,
    /// Do not ask, however much goes
    #[arg(long, short)]
    yes: bool,
    /// Ask if more objects than this would be deleted, or any namespace
    #[arg(long, default_value_t = 20, env = "CLEAT_ASK_ABOVE_OBJECTS")]
    ask_above_objects: usize,
    /// Ask if more clusters than this are concerned
    #[arg(long, default_value_t = 1, env = "CLEAT_ASK_ABOVE_CLUSTERS")]
    ask_above_clusters: usize,
    /// How long to wait for the clusters' answers, in seconds
    #[arg(long, default_value_t = 15)]
    timeout: u64,
    /// Only begin
    #[arg(long)]
    no_wait: bool,
    #[command(flatten)]
    hub: HubArgs,
}

pub fn run(args: &Args) -> Result<()> {
    block_on(delete(args))
}

async fn delete(args: &Args) -> Result<()> {
    let hub_client = Which::from(&args.hub).client().await?;
    let subject = Subject::parse(&args.what, Some(&args.namespace))?;
    let target = target(&subject)?;
    let patience = Duration::from_secs(args.timeout.max(1));
    let plan = match &args.plan {
        Some(plan) => Some(still(&hub_client, &subject, plan, patience).await?.plan),
        None if args.yes => None,
        None => {
            let foreseen = ask(&hub_client, &subject, patience).await?;
            if is_large(&foreseen, args) {
                confirm(&subject, &foreseen)?;
                Some(foreseen.plan)
            } else {
                None
            }
        }
    };
    // Who loses copies of policies must be known while that which places them is there.
    let going = if args.no_wait { Vec::new() } else { leaving(&hub_client, &subject).await? };
    let executor = executor(Some(hub_client), None);
    if let Some(plan) = &plan {
        approve(&executor, &target, plan).await;
    }
    let (uid, resource_version) = match executor.read(Side::Hub, &target).await {
        Read::Present(object) => {
            let text = |pointer: &str| {
                let found = object.pointer(pointer).and_then(|value| value.as_str());
                found.unwrap_or_default().to_owned()
            };
            (text("/metadata/uid"), text("/metadata/resourceVersion"))
        }
        Read::Absent => {
            let elsewhere = match subject {
                Subject::Template { .. } => " on this server; choose the context of its cluster",
                _ => "",
            };
            return Err(Refused(format!("there is no {subject}{elsewhere}")).into());
        }
        Read::NoSuchKind => {
            bail!("this hub does not serve such a kind. Run `cleat init` on it first")
        }
        Read::Unknown { message } => bail!("cannot read {subject}: {message}"),
    };
    let write = Write::Delete {
        uid: uid.clone(),
        // What was agreed to is this state of it.
        resource_version: args.plan.is_some().then_some(resource_version),
        propagation: Propagation::Background,
    };
    let action = Action { side: Side::Hub, target: target.clone(), write };
    match executor.execute(vec![vec![action]]).await.into_iter().flatten().next() {
        Some(Outcome::Done(_) | Outcome::NotFound) => {}
        Some(Outcome::Conflict(_)) => {
            return Err(Refused(format!("{subject} changed just now; look again")).into());
        }
        Some(Outcome::Refused(refusal)) => {
            return Err(Refused(format!("the hub refuses: {}", refusal.message)).into());
        }
        other => bail!("cannot delete {subject}: {other:?}"),
    }
    if args.no_wait {
        println!("{subject} is being deleted");
        return Ok(());
    }
    let mut told = String::new();
    let mut pause = tokio::time::interval(PAUSE);
    loop {
        pause.tick().await;
        match executor.read(Side::Hub, &target).await {
            Read::Present(object) => {
                if object.pointer("/metadata/uid").and_then(|value| value.as_str()) != Some(&uid) {
                    break;
                }
                let says = waits_for(&object);
                if !says.is_empty() && says != told {
                    eprintln!("{says}");
                    told = says;
                }
            }
            Read::Absent => break,
            Read::NoSuchKind | Read::Unknown { .. } => {}
        }
    }
    gone_from_clusters(&executor, going).await;
    println!("{subject} is gone");
    Ok(())
}

/// Says on the object which plan somebody agreed to, for a hub that asks. Whoever may delete and not
/// write is told by the hub if that is not enough.
pub(crate) async fn approve(executor: &Executor, target: &Target, plan: &str) {
    let patch = json!({ "metadata": { "annotations": { APPROVED_PLAN: plan } } });
    let action = Action { side: Side::Hub, target: target.clone(), write: Write::Merge(patch) };
    drop(executor.execute(vec![vec![action]]).await);
}

/// Waits until no copy of a policy is left where it was to go.
async fn gone_from_clusters(executor: &Executor, mut going: Vec<Leaving>) {
    let (mut pause, mut told) = (tokio::time::interval(PAUSE), String::new());
    loop {
        let mut still = Vec::new();
        for one in going {
            let id = Id {
                group: POLICY.to_owned(),
                resource: "policies".to_owned(),
                namespace: one.cluster.clone(),
                name: one.name.clone(),
            };
            match executor.read(Side::Hub, &Target { version: "v1".to_owned(), id }).await {
                Read::Absent => {}
                Read::Present(_) | Read::NoSuchKind | Read::Unknown { .. } => still.push(one),
            }
        }
        if still.is_empty() {
            return;
        }
        going = still;
        let names: Vec<String> =
            going.iter().map(|one| format!("{} on {}", one.name, one.cluster)).collect();
        let says = format!("waiting for {}", names.join(", "));
        if says != told {
            eprintln!("{says}");
            told = says;
        }
        pause.tick().await;
    }
}

const POLICY: &str = "policy.open-cluster-management.io";

/// What its own `Deleting` condition says.
fn waits_for(object: &serde_json::Value) -> String {
    let conditions = object.pointer("/status/conditions").and_then(|value| value.as_array());
    let deleting = conditions.into_iter().flatten().find(|one| one["type"] == "Deleting");
    deleting.and_then(|one| one["message"].as_str()).unwrap_or_default().to_owned()
}

fn target(subject: &Subject) -> Result<Target> {
    const WORK: &str = "work.open-cluster-management.io";
    const CLUSTER: &str = "cluster.open-cluster-management.io";
    let (group, version, resource, namespace, name) = match subject {
        Subject::Work { cluster, name } => (WORK, "v1", "manifestworks", cluster, name),
        Subject::ReplicaSet { namespace, name } => {
            (WORK, "v1alpha1", "manifestworkreplicasets", namespace, name)
        }
        Subject::Policy { namespace, name } => (POLICY, "v1", "policies", namespace, name),
        Subject::Binding { namespace, name } => {
            (POLICY, "v1", "placementbindings", namespace, name)
        }
        Subject::Placement { namespace, name } => {
            (CLUSTER, "v1beta1", "placements", namespace, name)
        }
        Subject::Template { namespace, name } => return Ok(template_target(namespace, name)),
        Subject::Leave { .. } => bail!("clusters leave with `cleat unjoin`"),
        Subject::Apply { .. } => bail!("what a file says is applied, not deleted"),
        Subject::Object { .. } => {
            let hint = format!("{subject} is no kind of ours; `kubectl delete` deletes it");
            return Err(Refused(hint).into());
        }
    };
    let id = Id {
        group: group.to_owned(),
        resource: resource.to_owned(),
        namespace: namespace.clone(),
        name: name.clone(),
    };
    Ok(Target { version: version.to_owned(), id })
}

fn is_large(foreseen: &Foreseen, args: &Args) -> bool {
    let answers = foreseen.clusters.iter().filter_map(|one| one.answer.as_ref());
    let objects: Vec<_> = answers.clone().flat_map(|answer| &answer.objects).collect();
    let going = objects.iter().filter(|one| one.verdict == PreviewVerdict::Delete);
    let namespace = going.clone().any(|one| one.resource == "namespaces" && one.group.is_empty());
    let along: i64 = objects.iter().map(|one| one.takes_along).sum();
    let more: i64 = answers.map(|answer| answer.more).sum();
    let count = going.count() + usize::try_from(along + more).unwrap_or(usize::MAX);
    namespace || count > args.ask_above_objects || foreseen.clusters.len() > args.ask_above_clusters
}

fn confirm(subject: &Subject, foreseen: &Foreseen) -> Result<()> {
    let sum = summary(foreseen);
    if !std::io::stdin().is_terminal() {
        let hint = format!(
            "{subject} is large: {sum}. Nobody is there to ask; add --plan {} or --yes",
            foreseen.plan
        );
        return Err(Refused(hint).into());
    }
    eprint!("{subject}: {sum}.\nDelete it? [y/N] ");
    std::io::stderr().flush()?;
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).context("read the answer")?;
    match line.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => Err(Refused("nothing was done".to_owned()).into()),
    }
}
