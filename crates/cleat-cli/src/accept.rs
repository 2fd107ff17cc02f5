//! `cleat accept`: lets clusters that asked join, and certifies their keys.

use anyhow::{Context as _, Result, bail};
use cleat_api::managedcluster::{CLUSTER_NAME_LABEL, FINALIZER, ManagedCluster};
use cleat_core::registration::approval::{self, Judgement};
use cleat_core::registration::{hub, join, place};
use cleat_core::write::{Action, Side, Write};
use cleat_hub::registration::{fingerprint, read};
use cleat_runtime::execute::Executor;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt as _};
use serde_json::json;

use crate::Refused;
use crate::connection::{HubArgs, Which, block_on, executor, perform};

/// Lets clusters join that asked to. Each gets a namespace on the hub, and its agent the right to do
/// its work there and nowhere else.
#[derive(clap::Args)]
pub struct Args {
    /// The clusters
    #[arg(required = true)]
    names: Vec<String>,
    /// Certify the key of this request, where there is more than one for a cluster
    #[arg(long)]
    request: Option<String>,
    #[command(flatten)]
    hub: HubArgs,
}

pub fn run(args: &Args) -> Result<()> {
    if args.request.is_some() && args.names.len() > 1 {
        bail!("--request is for one cluster at a time");
    }
    block_on(async {
        let hub_client = Which::from(&args.hub).client().await?;
        for name in &args.names {
            accept(&hub_client, name, args.request.as_deref())
                .await
                .with_context(|| format!("accept {name}"))?;
        }
        Ok(())
    })
}

async fn accept(hub_client: &Client, name: &str, chosen: Option<&str>) -> Result<()> {
    let clusters: Api<ManagedCluster> = Api::all(hub_client.clone());
    let cluster = clusters.get_opt(name).await.context("look for the cluster")?;
    let Some(cluster) = cluster else {
        let hint = "nobody asked to join under that name; `cleat join` on the cluster asks, and \
                    `cleat clusters` shows who did";
        return Err(Refused(hint.to_owned()).into());
    };
    if cluster.metadata.deletion_timestamp.is_some() {
        return certify_leaving(hub_client, name, chosen).await;
    }
    let others = clusters.list(&ListParams::default()).await.context("list the clusters")?.items;
    let id = join::id(&cluster);
    let same = others.iter().filter(|other| other.name_any() != name && join::id(other) == id);
    let namesakes: Vec<join::Namesake> = same.filter_map(join::Namesake::of).collect();
    let hub_id = cleat_agent::registration::hub_id(&executor(Some(hub_client.clone()), None)).await;
    if let Some(refusal) =
        id.and_then(|_| join::refused_by_hub(&cluster, &namesakes, hub_id.as_deref()))
    {
        return Err(Refused(refusal).into());
    }
    let namespaces: Api<Namespace> = Api::all(hub_client.clone());
    let namespace = namespaces.get_opt(name).await.context("look for its namespace")?;
    let namespace = namespace.filter(|one| one.metadata.deletion_timestamp.is_none());
    let namespace = namespace.map(serde_json::to_value).transpose()?;
    // One that the hub made for it is the cluster's even if somebody took its label off.
    let taken_in = cluster.metadata.finalizers.iter().flatten().any(|one| one == FINALIZER);
    if namespace.is_some_and(|one| !taken_in && !place::is_labelled(&one, name)) {
        return Err(Refused(place::taken(name)).into());
    }

    let request = choose(hub_client, name, chosen).await?;
    let executor = executor(Some(hub_client.clone()), None);
    if !cluster.spec.hub_accepts_client {
        let patch = json!({
            "metadata": { "uid": cluster.metadata.uid }, "spec": { "hubAcceptsClient": true },
        });
        let (side, target) = (Side::Hub, hub::target(name));
        let action = Action { side, target, write: Write::Merge(patch) };
        perform(&executor, "accept the cluster", action).await?;
    }
    match request {
        Some(request) => {
            let key = fingerprint(&request).unwrap_or_default();
            certify(&executor, &request).await?;
            println!("{name} is accepted; the key {key} is certified");
        }
        None if cluster.spec.hub_accepts_client => println!("{name} was accepted before"),
        None => println!(
            "{name} is accepted; its agent has not asked for a certificate yet. Run `cleat accept \
             {name}` again when it has"
        ),
    }
    Ok(())
}

/// A cluster that is leaving is not let in again. It may have lost its credentials, and gets others to
/// leave with.
async fn certify_leaving(hub_client: &Client, name: &str, chosen: Option<&str>) -> Result<()> {
    let Some(request) = choose(hub_client, name, chosen).await? else {
        let hint = "it is leaving; wait until it is gone and let it ask again. If its agent has no \
                    valid credentials any more, `cleat join --again` on the cluster asks for new ones";
        return Err(Refused(hint.to_owned()).into());
    };
    let executor = executor(Some(hub_client.clone()), None);
    certify(&executor, &request).await?;
    let key = fingerprint(&request).unwrap_or_default();
    println!("{name} is leaving; the key {key} is certified, so that it can");
    Ok(())
}

async fn certify(executor: &Executor, request: &CertificateSigningRequest) -> Result<()> {
    let approval = approval::approve(&read(request), "Accepted with `cleat accept`.");
    perform(executor, "certify its key", approval).await.map(drop)
}

/// The request to grant: the only one there is, or the one that was named.
async fn choose(
    hub_client: &Client,
    name: &str,
    chosen: Option<&str>,
) -> Result<Option<CertificateSigningRequest>> {
    let requests: Api<CertificateSigningRequest> = Api::all(hub_client.clone());
    let params = ListParams::default().labels(&format!("{CLUSTER_NAME_LABEL}={name}"));
    let all = requests.list(&params).await.context("list requests for certificates")?.items;
    let mut open: Vec<_> = all
        .into_iter()
        .filter(|request| match approval::judge(&read(request), None) {
            Judgement::Ask(agent) => agent.cluster == name,
            _ => false,
        })
        .collect();
    if let Some(chosen) = chosen {
        let found = open.into_iter().find(|request| request.name_any() == chosen);
        return match found {
            Some(request) => Ok(Some(request)),
            None => Err(Refused(format!("{name} has no open request {chosen}")).into()),
        };
    }
    if open.len() > 1 {
        let mut lines: Vec<String> = open
            .iter()
            .map(|one| {
                let key = fingerprint(one).unwrap_or_default();
                format!("  {}  key {key}  asked by {}", one.name_any(), who(one))
            })
            .collect();
        lines.sort();
        return Err(Refused(format!(
            "more than one key wants to be this cluster; compare with what `cleat join` shows there \
             and choose with --request:\n{}",
            lines.join("\n")
        ))
        .into());
    }
    Ok(open.pop())
}

fn who(request: &CertificateSigningRequest) -> &str {
    request.spec.username.as_deref().unwrap_or("somebody")
}
