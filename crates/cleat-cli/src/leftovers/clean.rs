//! `cleat leftovers clean`: says what `cleat_agent::leave::clean` did.

use anyhow::{Context as _, Result};
use cleat_agent::leave::clean::{self, Clean, Error, has_agent, joined_as};
use cleat_agent::registration::{Keep, NAMESPACE, cluster_id};
use cleat_api::leftoverrecord::LeftoverRecord;
use cleat_core::leave::clean::choose;
use cleat_core::leave::parts::namespace_on_record;
use cleat_core::write::Side;
use kube::Client;

use crate::connection::executor;
use crate::{Halted, Refused};

/// What was asked for besides the record.
pub(super) struct Wish {
    pub(super) include_kept: bool,
    pub(super) hub_server: Option<String>,
    /// The agent's, if it is not the one on record.
    pub(super) agent_namespace: Option<String>,
    /// The agent is to go as well.
    pub(super) agent: bool,
}

pub(super) async fn clean(
    hub_client: &Client,
    cluster_client: &Client,
    records: Vec<LeftoverRecord>,
    wish: Wish,
) -> Result<()> {
    let Wish { include_kept, hub_server, agent_namespace, agent } = wish;
    let executor = executor(None, Some(cluster_client.clone()));
    let here =
        cluster_id(&executor, Side::Cluster).await.context("find out which cluster this is")?;
    let joined = joined_as(hub_client, &here).await?;
    let keep = Keep::Secret { namespace: namespace(agent_namespace, &records, &here) };
    // A record that was worked off, or of which all was declared to stay, says nothing of the agent.
    let all = include_kept || agent;
    let own: Vec<LeftoverRecord> =
        records.iter().filter(|one| one.spec.cluster_id == here).cloned().collect();
    let chosen = choose(records, &here, all).map_err(|no| Refused(no.to_string()))?;
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
            hub_server: hub_server.clone(),
            agent: agent.then(|| keep.clone()),
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
        for id in &report.agent {
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
    // The agent of a cluster that is joined is to be there.
    if joined.is_none() && has_agent(cluster_client, &keep, &own, hub_server.as_deref()).await {
        eprintln!(
            "the agent's credentials are still on the cluster, and so may be the agent and its \
             rights; --agent takes them away"
        );
    }
    Ok(())
}

/// Where the agent lives. Another cluster of that name may have had its own somewhere else.
fn namespace(told: Option<String>, records: &[LeftoverRecord], here: &str) -> String {
    let own = records.iter().filter(|one| one.spec.cluster_id == here);
    let own: Vec<LeftoverRecord> = own.cloned().collect();
    let known = told.or_else(|| namespace_on_record(&own).map(ToOwned::to_owned));
    known.unwrap_or_else(|| NAMESPACE.to_owned())
}

#[cfg(test)]
mod tests {
    use cleat_api::leftoverrecord::{LeftObject, Part};

    use super::*;

    #[test]
    fn the_agent_of_another_cluster_of_that_name_was_looked_for() {
        let record = |id: &str, name: &str| {
            let mut record = LeftoverRecord::new(name, Default::default());
            record.spec.cluster_id = id.to_owned();
            record.spec.objects = vec![LeftObject {
                resource: "namespaces".to_owned(),
                name: name.to_owned(),
                part: Some(Part::Agent),
                ..LeftObject::default()
            }];
            record
        };
        let records = [record("other", "theirs"), record("this", "ours")];
        assert_eq!(namespace(None, &records, "this"), "ours");
        assert_eq!(namespace(None, &records[..1], "this"), NAMESPACE);
        assert_eq!(namespace(Some("said".to_owned()), &records, "this"), "said");
    }
}
