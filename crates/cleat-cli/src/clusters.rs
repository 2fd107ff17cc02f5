//! `cleat clusters`: the clusters of a hub.

use std::collections::BTreeMap;
use std::io::Write as _;

use anyhow::{Context as _, Result};
use clap::ValueEnum;
use cleat_api::managedcluster::{CLUSTER_SET_LABEL, ManagedCluster, condition};
use cleat_api::manifestwork::ManifestWork;
use cleat_core::condition::find;
use cleat_core::registration::join;
use jiff::Timestamp;
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt as _};
use serde_json::json;

use crate::connection::{HubArgs, Which, block_on};
use crate::table::{age, table};

/// Shows the clusters of a hub: whether each is accepted, has joined and is available, what happens
/// when it leaves, and how many works it has.
#[derive(clap::Args)]
pub struct Args {
    /// Only these
    names: Vec<String>,
    /// Only clusters with these labels, as `kubectl get -l` takes them
    #[arg(long, short = 'l')]
    selector: Option<String>,
    /// How to print them
    #[arg(long, short)]
    output: Option<Output>,
    #[command(flatten)]
    hub: HubArgs,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    Json,
    Yaml,
    Wide,
    Name,
}

pub fn run(args: &Args) -> Result<()> {
    block_on(show(args))
}

async fn show(args: &Args) -> Result<()> {
    let hub_client = Which::from(&args.hub).client().await?;
    let api: Api<ManagedCluster> = Api::all(hub_client.clone());
    let mut params = ListParams::default();
    if let Some(selector) = &args.selector {
        params = params.labels(selector);
    }
    let mut clusters = match api.list(&params).await {
        Ok(list) => list.items,
        Err(kube::Error::Api(status)) if status.code == 404 => anyhow::bail!(
            "this is no hub: it does not serve ManagedClusters. Run `cleat init` on it first"
        ),
        Err(error) => return Err(error).context("list the clusters"),
    };
    if !args.names.is_empty() {
        for name in &args.names {
            let known = clusters.iter().any(|cluster| cluster.name_any() == *name);
            anyhow::ensure!(known, "there is no cluster {name}; `cleat clusters` shows all");
        }
        clusters.retain(|cluster| args.names.contains(&cluster.name_any()));
    }
    clusters.sort_by_key(|cluster| cluster.name_any());
    let text = match args.output {
        Some(Output::Json | Output::Yaml) => {
            for cluster in &mut clusters {
                cluster.metadata.managed_fields = None;
            }
            let list = json!({ "apiVersion": "v1", "kind": "List", "items": clusters });
            if args.output == Some(Output::Json) {
                format!("{list:#}\n")
            } else {
                serde_saphyr::to_string(&list).context("write YAML")?
            }
        }
        Some(Output::Name) => clusters
            .iter()
            .map(|one| {
                format!("managedcluster.cluster.open-cluster-management.io/{}\n", one.name_any())
            })
            .collect(),
        Some(Output::Wide) | None if clusters.is_empty() => {
            eprintln!("no clusters; `cleat init` prints how one joins");
            String::new()
        }
        Some(Output::Wide) | None => {
            let works = works(&hub_client).await;
            let wide = args.output == Some(Output::Wide);
            table(&rows(&clusters, works.as_ref(), wide, Timestamp::now()))
        }
    };
    std::io::stdout().lock().write_all(text.as_bytes())?;
    Ok(())
}

/// How many works each cluster has; nothing if nobody says.
async fn works(hub_client: &Client) -> Option<BTreeMap<String, usize>> {
    let works: Api<ManifestWork> = Api::all(hub_client.clone());
    let list = works.list_metadata(&ListParams::default()).await.ok()?;
    let mut counts = BTreeMap::new();
    for work in list.items {
        *counts.entry(work.namespace().unwrap_or_default()).or_default() += 1;
    }
    Some(counts)
}

fn rows(
    clusters: &[ManagedCluster],
    works: Option<&BTreeMap<String, usize>>,
    wide: bool,
    now: Timestamp,
) -> Vec<Vec<String>> {
    let mut head = vec!["NAME", "ACCEPTED", "JOINED", "AVAILABLE", "STRATEGY", "WORKS", "AGE"];
    if wide {
        head.extend(["VERSION", "SET", "ID", "TAINTS"]);
    }
    let mut rows = vec![head.into_iter().map(ToOwned::to_owned).collect()];
    for cluster in clusters {
        let name = cluster.name_any();
        let status = cluster.status.clone().unwrap_or_default();
        let says = |kind| {
            find(&status.conditions, kind).map_or_else(|| "-".to_owned(), |one| one.status.clone())
        };
        let accepted = match find(&status.conditions, condition::ACCEPTED) {
            Some(said) if said.reason == "Refused" => "Refused".to_owned(),
            Some(said) => said.status.clone(),
            None if cluster.spec.hub_accepts_client => "-".to_owned(),
            None => "False".to_owned(),
        };
        let leaving = cluster.metadata.deletion_timestamp.is_some();
        let available = if leaving { "Leaving".to_owned() } else { says(condition::AVAILABLE) };
        let count = works.map(|all| all.get(&name).copied().unwrap_or_default().to_string());
        let since = cluster.metadata.creation_timestamp.as_ref().map(|time| time.0);
        let mut row = vec![
            name,
            accepted,
            says(condition::JOINED),
            available,
            cluster.spec.remove_strategy.as_str().to_owned(),
            count.unwrap_or_else(|| "?".to_owned()),
            age(since, now),
        ];
        if wide {
            let or_dash =
                |text: Option<&str>| text.filter(|text| !text.is_empty()).unwrap_or("-").to_owned();
            let taints: Vec<&str> =
                cluster.spec.taints.iter().map(|one| one.key.as_str()).collect();
            row.extend([
                or_dash(Some(&status.version.kubernetes)),
                or_dash(cluster.labels().get(CLUSTER_SET_LABEL).map(String::as_str)),
                or_dash(join::id(cluster)),
                or_dash(Some(&taints.join(","))),
            ]);
        }
        rows.push(row);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_says_how_a_cluster_is() {
        let condition = |kind: &str, status: &str| {
            json!({
                "type": kind, "status": status, "reason": "R", "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            })
        };
        let cluster = json!({
            "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
            "metadata": { "name": "c1", "creationTimestamp": "2026-01-01T00:00:00Z" },
            "spec": { "hubAcceptsClient": true, "removeStrategy": "Required" },
            "status": { "conditions": [
                condition("HubAcceptedManagedCluster", "True"),
                condition("ManagedClusterConditionAvailable", "Unknown"),
            ] },
        });
        let cluster: ManagedCluster = serde_json::from_value(cluster).unwrap();
        let works = BTreeMap::from([("c1".to_owned(), 3)]);
        let now = "2026-01-01T01:00:00Z".parse().unwrap();
        let rows = rows(&[cluster], Some(&works), false, now);
        assert_eq!(rows[1], ["c1", "True", "-", "Unknown", "Required", "3", "60m"]);
        assert_eq!(rows[0].len(), rows[1].len());
    }
}
