//! The statuses of the proposal, word for word: what is written so on a server is understood so.

use anyhow::Result;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::hub::{Hub, POLICY};
use super::{BAD, GOOD};

const FIRST: &str = r#"
status:
  clustersWithEvent:
    cluster1:
      automationStartTime: "2022-06-22T23:59:30Z"
      eventTime: "2022-06-22T23:59:29Z"
"#;

const SECOND: &str = r#"
status:
  clustersWithEvent:
    cluster1:
      automationStartTime: "2022-06-22T23:58:30Z"
      eventTime: "2022-06-22T23:58:29Z"
    cluster2:
      automationStartTime: "2022-06-22T23:59:30Z"
      eventTime: "2022-06-22T23:59:29Z"
"#;

const THIRD: &str = r#"
status:
  clustersWithEvent:
    cluster2:
      automationStartTime: "2022-06-22T23:59:30Z"
      eventTime: "2022-06-22T23:59:29Z"
"#;

/// That of the delay's example: noncompliant a second time, and the 600 seconds have passed.
const AGAIN: &str = r#"
status:
  clustersWithEvent:
    cluster2:
      automationStartTime: "2022-06-22T23:59:30Z"
      eventTime: "2022-06-23T00:01:00Z"
"#;

const NAME: &str = "create-ticket";

fn yaml(text: &str) -> Result<Value> {
    Ok(serde_saphyr::from_str(text)?)
}

/// How the policy stands on the proposal's clusters.
async fn stand(hub: &Hub, one: &str, two: &str) -> Result<()> {
    let each = [("cluster1", one), ("cluster2", two)].map(|(name, compliant)| {
        json!({
            "clustername": name, "clusternamespace": hub.place.namespace, "compliant": compliant,
        })
    });
    let patch = Patch::Merge(json!({ "status": { "status": each } }));
    hub.policies().patch_status(POLICY, &PatchParams::default(), &patch).await?;
    Ok(())
}

async fn write(hub: &Hub, status: &str) -> Result<()> {
    let patch = Patch::Merge(yaml(status)?);
    hub.automations().patch_status(NAME, &PatchParams::default(), &patch).await?;
    Ok(())
}

/// Returns when the entries are of these clusters and every job that was decided on is made.
async fn entries(hub: &Hub, clusters: &[&str]) -> Result<Value> {
    let noted = hub.told(NAME, |status| {
        let names = status.clusters_with_event.keys();
        status.pending_jobs.is_empty() && names.eq(clusters)
    });
    let status = serde_json::to_value(noted.await?.status)?;
    Ok(json!({ "status": { "clustersWithEvent": status["clustersWithEvent"] } }))
}

/// The targets of each job, as soon as there are so many.
async fn targets(hub: &Hub, count: usize) -> Result<Vec<String>> {
    let jobs = hub.jobs_when(NAME, |jobs| jobs.len() >= count).await?;
    let vars = jobs.into_values().filter_map(|job| job.spec.extra_vars);
    let mut targets: Vec<String> = vars.map(|vars| vars["target_clusters"].to_string()).collect();
    targets.sort();
    Ok(targets)
}

const ONE: &str = r#"["cluster1"]"#;
const TWO: &str = r#"["cluster2"]"#;

#[tokio::test]
async fn what_the_proposal_writes_is_what_a_hub_reads_and_writes() -> Result<()> {
    let hub = Hub::new("proposal", 0).await?;
    hub.automate(NAME, json!({})).await?;
    // cluster1 had its job: no other one, but cluster2 gets its.
    write(&hub, FIRST).await?;
    stand(&hub, BAD, BAD).await?;
    let controllers = hub.run();
    let noted = entries(&hub, &["cluster1", "cluster2"]).await?;
    let first = yaml(FIRST)?;
    let entry = "/status/clustersWithEvent/cluster1";
    assert_eq!(noted.pointer(entry), first.pointer(entry));
    assert_eq!(targets(&hub, 1).await?, [TWO]);
    controllers.stop().await;

    // cluster1 complies: no job, and its entry goes.
    write(&hub, SECOND).await?;
    let controllers = hub.run();
    assert_eq!(entries(&hub, &["cluster1", "cluster2"]).await?, yaml(SECOND)?);
    stand(&hub, GOOD, BAD).await?;
    assert_eq!(entries(&hub, &["cluster2"]).await?, yaml(THIRD)?);
    assert_eq!(targets(&hub, 1).await?, [TWO]);

    // The user wants it to run for all that do not comply now.
    let rerun = json!({ "policy.open-cluster-management.io/rerun": "true" });
    hub.edit(NAME, json!({ "metadata": { "annotations": rerun } })).await?;
    assert_eq!(targets(&hub, 2).await?, [TWO; 2]);
    entries(&hub, &["cluster2"]).await?;
    controllers.stop().await;

    // Again noncompliant past the 600 seconds: once more, and a maximum of one time.
    hub.edit(NAME, json!({ "spec": { "delayAfterRunSeconds": 600 } })).await?;
    write(&hub, AGAIN).await?;
    let controllers = hub.run();
    assert_eq!(targets(&hub, 3).await?, [TWO; 3]);
    entries(&hub, &["cluster2"]).await?;
    controllers.stop().await;
    let controllers = hub.run();
    stand(&hub, BAD, BAD).await?;
    entries(&hub, &["cluster1", "cluster2"]).await?;
    assert_eq!(targets(&hub, 4).await?, [ONE, TWO, TWO, TWO]);
    controllers.stop().await;
    Ok(())
}
