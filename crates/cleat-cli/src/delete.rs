//! `cleat delete`: deletes from a hub what was looked at first.

use std::time::Duration;

use anyhow::{Result, bail};
use cleat_api::removalpreview::APPROVED_PLAN;
use cleat_core::id::{Id, Target};
use cleat_core::write::Side;
use cleat_runtime::execute::{Executor, Read};
use kube::Client;
use serde_json::json;

use crate::Refused;
use crate::bound::Bound;
use crate::caution::Thresholds;
use crate::connection::{HubArgs, Which, block_on, executor};
use crate::preview::{Leaving, Subject, ask, leaving, still, template_target};

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
    #[command(flatten)]
    thresholds: Thresholds,
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
    let agreement = match &args.plan {
        Some(plan) => Agreement::Plan(plan),
        None if args.yes => Agreement::Blind,
        None => Agreement::Asking(args.thresholds),
    };
    let patience = Duration::from_secs(args.timeout.max(1));
    let mut bound = look(&hub_client, &subject, agreement, patience).await?;
    // Who loses copies of policies must be known while that which places them is there.
    let going = if args.no_wait { Vec::new() } else { leaving(&hub_client, &subject).await? };
    let executor = executor(Some(hub_client), None);
    bound.delete(&executor).await?;
    if args.no_wait {
        println!("{subject} is being deleted");
        return Ok(());
    }
    let (target, uid) = (target(&subject)?, bound.uid());
    let mut told = String::new();
    let mut pause = tokio::time::interval(PAUSE);
    loop {
        pause.tick().await;
        match executor.read(Side::Hub, &target).await {
            Read::Present(object) => {
                if object.pointer("/metadata/uid").and_then(|value| value.as_str()) != Some(uid) {
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

/// Begins to delete what somebody agreed to under a plan, for whoever has a client already.
pub async fn agreed(
    hub_client: &Client,
    what: &str,
    namespace: &str,
    plan: &str,
    patience: Duration,
) -> Result<()> {
    let subject = Subject::parse(what, Some(namespace))?;
    let mut bound = look(hub_client, &subject, Agreement::Plan(plan), patience).await?;
    bound.delete(&executor(Some(hub_client.clone()), None)).await
}

/// Who says that it may go.
enum Agreement<'a> {
    /// Somebody saw this plan.
    Plan(&'a str),
    /// Somebody did not want to look.
    Blind,
    /// Somebody is asked, if it is much.
    Asking(Thresholds),
}

/// Looks at what would go, and whether somebody agrees. The object is read before, so that what is
/// deleted is what was looked at.
async fn look(
    hub_client: &Client,
    subject: &Subject,
    agreement: Agreement<'_>,
    patience: Duration,
) -> Result<Bound> {
    let executor = executor(Some(hub_client.clone()), None);
    let read = Bound::read(&executor, target(subject)?, subject.to_string()).await?;
    let Some(mut bound) = read else {
        let elsewhere = match subject {
            Subject::Template { .. } => " on this server; choose the context of its cluster",
            _ => "",
        };
        return Err(Refused(format!("there is no {subject}{elsewhere}")).into());
    };
    let plan = match agreement {
        Agreement::Blind => return Ok(bound),
        Agreement::Plan(plan) => Some(still(hub_client, subject, plan, patience).await?.plan),
        Agreement::Asking(thresholds) => {
            let foreseen = ask(hub_client, subject, patience).await?;
            thresholds.confirm(subject, &foreseen)?.then_some(foreseen.plan)
        }
    };
    bound.looked_at();
    if let Some(plan) = plan {
        approve(&executor, &mut bound, &plan).await?;
    }
    Ok(bound)
}

/// Says on the object which plan somebody agreed to, for a hub that asks. Whoever may delete and not
/// write is told by the hub if that is not enough.
pub(crate) async fn approve(executor: &Executor, bound: &mut Bound, plan: &str) -> Result<()> {
    let patch = json!({ "metadata": { "annotations": { APPROVED_PLAN: plan } } });
    drop(bound.merge(executor, &patch).await?);
    Ok(())
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
