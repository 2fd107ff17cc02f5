//! `cleat delete`: deletes from a hub, or from any server, what was looked at first.

use std::time::Duration;

use anyhow::{Result, bail};
use cleat_api::removalpreview::APPROVED_PLAN;
use cleat_core::id::{Id, Target};
use cleat_core::preview::guard::Approved;
use cleat_core::write::Side;
use cleat_runtime::execute::{Executor, Read};
use kube::Client;
use serde_json::{Value, json};

use crate::Refused;
use crate::bound::Bound;
use crate::caution::Thresholds;
use crate::connection::{HubArgs, Which, block_on, executor};
use crate::explain::locate;
use crate::output::{Output, told};
use crate::preview::{Leaving, Patience, Subject, ask, leaving, still, template_target, typed};

/// How often the hub is asked whether it is gone.
const PAUSE: Duration = Duration::from_millis(250);

/// Deletes a manifestwork, manifestworkreplicaset, policy, placementbinding or placement from the hub,
/// or a configurationpolicy or any other object from the server it is on, and waits until it, and
/// everything of it that was to go, is gone. With `--plan` it does so only if the removal is still the
/// one that `cleat preview` showed; without, it shows a large one and asks.
#[derive(clap::Args)]
pub struct Args {
    /// As KIND/NAME, such as manifestwork/shop, policy/baseline or deployment/web
    what: String,
    /// Its namespace; for a work, the cluster's name [default: the context's]
    #[arg(long, short)]
    namespace: Option<String>,
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
    /// How to print what came of it, also if it was refused
    #[arg(long, short)]
    output: Option<Output>,
    #[command(flatten)]
    hub: HubArgs,
}

pub fn run(args: &Args) -> Result<()> {
    told(args.output, block_on(delete(args)))
}

async fn delete(args: &Args) -> Result<()> {
    typed(&args.what)?;
    let which = Which::from(&args.hub);
    let usual = which.config().await?.default_namespace;
    let hub_client = which.client().await?;
    let namespace = args.namespace.as_deref().unwrap_or(&usual);
    let subject = Subject::parse(&args.what, Some(namespace))?.placed(&hub_client).await?;
    let agreement = match &args.plan {
        Some(plan) => Agreement::Plan(plan),
        None if args.yes => Agreement::Blind,
        None => Agreement::Asking(args.thresholds),
    };
    let patience = Patience::typed(args.timeout);
    let mut bound = look(&hub_client, &subject, agreement, patience).await?;
    // Who loses copies of policies must be known while that which places them is there.
    let going = if args.no_wait { Vec::new() } else { leaving(&hub_client, &subject).await? };
    let executor = executor(Some(hub_client), None);
    bound.delete(&executor).await?;
    if args.no_wait {
        return say(args, &subject, "is being deleted");
    }
    let (target, uid) = (bound.target(), bound.uid());
    let mut told = String::new();
    let mut pause = tokio::time::interval(PAUSE);
    loop {
        pause.tick().await;
        match executor.read(Side::Hub, target).await {
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
    say(args, &subject, "is gone")
}

fn say(args: &Args, subject: &Subject, what: &str) -> Result<()> {
    match args.output {
        Some(output) => output.print(&json!({ "what": subject.to_string(), "state": what })),
        None => {
            println!("{subject} {what}");
            Ok(())
        }
    }
}

/// Begins to delete what somebody agreed to under a plan, for whoever has a client already.
pub async fn agreed(
    hub_client: &Client,
    what: &str,
    namespace: Option<&str>,
    plan: &str,
    patience: Duration,
) -> Result<()> {
    let subject = Subject::parse(what, namespace)?.placed(hub_client).await?;
    let patience = Patience::unwatched(patience);
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
    patience: Patience,
) -> Result<Bound> {
    let executor = executor(Some(hub_client.clone()), None);
    let target = target(hub_client, subject).await?;
    let read = Bound::read(&executor, target, subject.to_string()).await?;
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
    // No hub insists on plans of kinds that are not ours.
    let plan = plan.filter(|_| !matches!(subject, Subject::Object { .. }));
    if let Some(plan) = plan {
        approve(&executor, &mut bound, &plan).await?;
    }
    Ok(bound)
}

/// Says on the object which plan of which state of it somebody agreed to, for a hub that asks. Whoever may delete and not
/// write is told by the hub if that is not enough.
pub(crate) async fn approve(executor: &Executor, bound: &mut Bound, plan: &str) -> Result<()> {
    let said = Approved { plan, generation: bound.generation() }.written();
    let patch = json!({ "metadata": { "annotations": { APPROVED_PLAN: said } } });
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

/// What its own `Deleting` condition says, or else which finalizers hold it.
fn waits_for(object: &Value) -> String {
    let all =
        |pointer: &str| object.pointer(pointer).and_then(Value::as_array).into_iter().flatten();
    let deleting = all("/status/conditions").find(|one| one["type"] == "Deleting");
    if let Some(says) = deleting.and_then(|one| one["message"].as_str()) {
        return says.to_owned();
    }
    let finalizers: Vec<&str> = all("/metadata/finalizers").filter_map(Value::as_str).collect();
    match finalizers.is_empty() {
        true => String::new(),
        false => {
            format!("waiting for {}; `cleat explain` says whose turn it is", finalizers.join(", "))
        }
    }
}

async fn target(client: &Client, subject: &Subject) -> Result<Target> {
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
        Subject::Object { kind, namespace, name, .. } => {
            return locate(client, kind, name, namespace.as_deref().unwrap_or_default()).await;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_said_what_a_plain_object_waits_for() {
        let says = json!([{ "type": "Deleting", "message": "waits for pods shop/a" }]);
        let mut object = json!({ "metadata": { "finalizers": ["example.com/hold"] } });
        let held = "waiting for example.com/hold; `cleat explain` says whose turn it is";
        assert_eq!(waits_for(&object), held);
        object["status"] = json!({ "conditions": says });
        assert_eq!(waits_for(&object), "waits for pods shop/a");
        assert_eq!(waits_for(&json!({ "metadata": {} })), "");
    }
}
