//! `cleat leftovers clean`: says what `cleat_agent::leave::clean` did.

use anyhow::{Context as _, Result};
use cleat_agent::leave::clean::{self, Clean, Error, has_agent, take_agent_away};
use cleat_agent::registration::{Keep, cluster_id};
use cleat_api::leftoverrecord::LeftoverRecord;
use cleat_core::leave::clean::choose;
use cleat_core::write::Side;
use kube::Client;

use crate::connection::executor;
use crate::{Halted, Refused};

/// What was asked for besides the record.
pub(super) struct Wish {
    pub(super) include_kept: bool,
    pub(super) hub_server: Option<String>,
    /// Where the agent's credentials are kept.
    pub(super) keep: Keep,
    /// The agent is to go as well.
    pub(super) agent: bool,
}

pub(super) async fn clean(
    hub_client: &Client,
    cluster_client: &Client,
    records: Vec<LeftoverRecord>,
    wish: Wish,
) -> Result<()> {
    let Wish { include_kept, hub_server, keep, agent } = wish;
    let executor = executor(None, Some(cluster_client.clone()));
    let here =
        cluster_id(&executor, Side::Cluster).await.context("find out which cluster this is")?;
    let chosen = choose(records, &here, include_kept).map_err(|no| Refused(no.to_string()))?;
    for name in &chosen.done {
        eprintln!("{name} was worked off before");
    }
    for (name, id) in &chosen.others {
        eprintln!("{name} is of another cluster, with the id {id}");
    }
    if !chosen.records.is_empty() {
        let job = Clean {
            hub_client: hub_client.clone(),
            cluster_client: cluster_client.clone(),
            cluster_id: here,
            records: chosen.records,
            include_kept,
            hub_server,
        };
        let done = clean::clean(job, |id, why| eprintln!("waits for {id}: {why}")).await;
        let report = match done {
            Ok(report) => report,
            Err(Error::Refused(no)) => return Err(Refused(no.to_string()).into()),
            Err(error) => return Err(error.into()),
        };
        for (id, why) in &report.stays {
            println!("stays: {id} ({why})");
        }
        for id in report.agent.iter().filter(|_| !agent) {
            println!("stays: {id} (it is the agent's own; --agent takes it away)");
        }
        if !report.stuck.is_empty() {
            let stuck: Vec<String> =
                report.stuck.iter().map(|(id, why)| format!("  {id}\n    {why}")).collect();
            let text = format!("not everything is gone:\n{}\nTry again later.", stuck.join("\n"));
            return Err(Halted(text).into());
        }
        println!("{} of {} objects are gone", report.gone, report.objects);
    }
    if agent {
        take_agent_away(cluster_client, &keep).await;
    }
    if has_agent(cluster_client, &keep).await {
        eprintln!(
            "the agent's credentials are still on the cluster, and so may be the agent and its \
             rights; --agent takes them away"
        );
    }
    Ok(())
}
