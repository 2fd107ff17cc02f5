//! `cleat leftovers`: what clusters kept when they left, and finishing the job.

mod clean;

use std::collections::BTreeSet;
use std::io::Write as _;

use anyhow::{Context as _, Result};
use cleat_api::leftoverrecord::{LeftObject, LeftoverRecord, Reason, Untold, condition};
use cleat_core::condition::find;
use cleat_core::leave::clean::id;
use jiff::Timestamp;
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt as _};
use serde_json::json;

use crate::connection::{ClusterArgs, HubArgs, Which, block_on};
use crate::output::{Output, told};
use crate::table::{age, table};
use crate::{Misunderstood, Refused};

/// Shows what clusters kept, or are believed to have kept, when they left, and removes it later.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
    /// How to print records [default: a table]
    #[arg(long, short, global = true)]
    output: Option<Output>,
    #[command(flatten)]
    hub: HubArgs,
}

#[derive(clap::Subcommand)]
enum Verb {
    /// All records
    List,
    /// What a cluster kept
    Show {
        /// The cluster, or one of its records
        name: String,
    },
    /// Remove from a cluster that is back what its record lists, and nothing but that
    Clean {
        /// The cluster, or one of its records
        name: String,
        /// Also what was declared to be kept
        #[arg(long)]
        include_kept: bool,
        /// The hub's address as the cluster's agent knew it, for records that do not say
        #[arg(long)]
        hub_server: Option<String>,
        /// Also the agent itself, its rights and its credentials
        #[arg(long)]
        agent: bool,
        /// The namespace on the cluster with the agent and its credentials [default: the one on
        /// record, or open-cluster-management-agent]
        #[arg(long)]
        agent_namespace: Option<String>,
        #[command(flatten)]
        cluster: ClusterArgs,
    },
}

pub fn run(args: &Args) -> Result<()> {
    if let (Some(Verb::Clean { .. }), Some(_)) = (&args.verb, args.output) {
        return Err(Misunderstood("-o is for list and show".to_owned()).into());
    }
    block_on(async {
        let hub_client = Which::from(&args.hub).client().await?;
        match &args.verb {
            None | Some(Verb::List) => list(&hub_client, args.output).await,
            Some(Verb::Show { name }) => show(&hub_client, name, args.output).await,
            Some(Verb::Clean {
                name,
                include_kept,
                hub_server,
                agent,
                agent_namespace,
                cluster,
            }) => {
                let records = named(&hub_client, name).await?;
                let cluster_client = Which::from(cluster).client().await?;
                let wish = clean::Wish {
                    include_kept: *include_kept,
                    hub_server: hub_server.clone(),
                    agent_namespace: agent_namespace.clone(),
                    agent: *agent,
                };
                clean::clean(&hub_client, &cluster_client, records, wish)
                    .await
                    .with_context(|| format!("clean what {name} kept"))
            }
        }
    })
}

async fn all(hub_client: &Client) -> Result<Vec<LeftoverRecord>> {
    let records: Api<LeftoverRecord> = Api::all(hub_client.clone());
    match records.list(&ListParams::default()).await {
        Ok(list) => Ok(list.items),
        Err(kube::Error::Api(status)) if status.code == 404 => {
            anyhow::bail!("this hub does not serve LeftoverRecords. Run `cleat init` on it first")
        }
        Err(error) => Err(error).context("list the leftover records"),
    }
}

/// The records of a cluster, or the one of that name.
async fn named(hub_client: &Client, name: &str) -> Result<Vec<LeftoverRecord>> {
    let mut found = all(hub_client).await?;
    found.retain(|record| record.spec.cluster == name || record.name_any() == name);
    found.sort_by_key(|record| (record.spec.cluster_uid.clone(), record.spec.part));
    if found.is_empty() {
        let hint = format!("there is no leftover record of {name}; `cleat leftovers` shows all");
        return Err(Refused(hint).into());
    }
    Ok(found)
}

async fn list(hub_client: &Client, output: Option<Output>) -> Result<()> {
    let records = all(hub_client).await?;
    if let Some(output) = output {
        return output.print(&json!({ "records": records }));
    }
    if records.is_empty() {
        eprintln!("no leftover records: nothing was ever left behind");
        return Ok(());
    }
    print(&rows(&records, Timestamp::now()))
}

fn rows(records: &[LeftoverRecord], now: Timestamp) -> Vec<Vec<String>> {
    let head = ["NAME", "CLUSTER", "REASON", "OBJECTS", "CLEANED", "AGE"];
    let mut rows = vec![head.map(ToOwned::to_owned).to_vec()];
    for record in records {
        let status = record.status.clone().unwrap_or_default();
        let cleaned = find(&status.conditions, condition::CLEANED);
        rows.push(vec![
            record.name_any(),
            record.spec.cluster.clone(),
            record.spec.reason.as_str().to_owned(),
            record.spec.objects.len().to_string(),
            cleaned.map_or_else(
                || "-".to_owned(),
                |one| match one.status.as_str() {
                    "True" => one.status.clone(),
                    status => format!("{status} ({})", one.reason),
                },
            ),
            age(record.metadata.creation_timestamp.as_ref().map(|time| time.0), now),
        ]);
    }
    rows
}

async fn show(hub_client: &Client, name: &str, output: Option<Output>) -> Result<()> {
    let records = told(output, named(hub_client, name).await)?;
    if let Some(output) = output {
        return output.print(&json!({ "records": records, "notes": notes(&records) }));
    }
    let mut rows = vec![["OBJECT", "UID", "SOURCE", "WHY"].map(ToOwned::to_owned).to_vec()];
    for object in records.iter().flat_map(|record| &record.spec.objects) {
        let or_dash = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
        rows.push(vec![
            id(object).to_string(),
            or_dash(&object.uid),
            or_dash(&object.source),
            why(object),
        ]);
    }
    print(&rows)?;
    for note in notes(&records) {
        println!("{note}");
    }
    Ok(())
}

fn why(object: &LeftObject) -> String {
    match (object.believed, object.why.as_str()) {
        (true, why) => format!("believed to be there: {why}"),
        (false, "") => "-".to_owned(),
        (false, why) => why.to_owned(),
    }
}

/// What the records say of themselves, for people.
fn notes(records: &[LeftoverRecord]) -> Vec<String> {
    let mut notes = BTreeSet::new();
    for LeftoverRecord { spec, status, .. } in records {
        let conditions = status.as_ref().map(|status| status.conditions.as_slice());
        let cleaned = find(conditions.unwrap_or_default(), condition::CLEANED);
        if let Some(unfinished) = cleaned.filter(|one| one.status != "True") {
            notes.insert(format!("Not worked off ({}): {}", unfinished.reason, unfinished.message));
        }
        if let Some(heard) = &spec.agent_last_heard {
            let (cluster, at) = (&spec.cluster, heard.0);
            notes.insert(format!(
                "The agent of {cluster} was last heard at {at:.0}. What came to be there since is on \
                 record only as believed, or not at all."
            ));
        }
        for Untold { source, policy, count } in &spec.untold {
            if *policy && spec.reason == Reason::Kept {
                notes.insert(format!(
                    "Of the policy {source} there were {count} more objects than the hub can be told of: \
                     what its templates pruned of those was not read once more."
                ));
                continue;
            }
            let kind = if *policy { "policy" } else { "work" };
            notes.insert(format!(
                "Of the {kind} {source} there were {count} more objects than are listed; `cleat leftovers \
                 clean` finds those that its ledger or its templates on the cluster still list."
            ));
        }
    }
    notes.into_iter().collect()
}

fn print(rows: &[Vec<String>]) -> Result<()> {
    std::io::stdout().lock().write_all(table(rows).as_bytes())?;
    Ok(())
}
