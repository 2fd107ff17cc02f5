//! The agent and the hub's part end and begin again, over and over, while a cluster leaves.

use anyhow::Result;
use cleat_api::managedcluster::RemoveStrategy::Required;
use cleat_hub::clusters;
use cleat_runtime::tasks::Tasks;
use serde_json::json;

use super::party::Party;

#[tokio::test]
async fn hub_and_agent_may_end_at_any_time() -> Result<()> {
    let mut party = Party::new("crash", Required).await?;
    for work in ["w1", "w2", "w3"] {
        let maps = (0..5).map(|index| party.map(&format!("{work}-{index}")));
        party.work(work, maps.collect(), json!({})).await?;
    }
    party.leave().await?;
    party.fleet.tasks.shutdown().await;
    let mut round = 0_u32;
    while party.fleet.clusters().get_opt(&party.name).await?.is_some() {
        round += 1;
        anyhow::ensure!(round < 200, "it never left");
        let hub = Tasks::new();
        clusters::start(party.fleet.config(), &hub);
        // Longer each time, so that every step comes to be the last one somewhere, and one round is
        // long enough for all.
        let length = std::time::Duration::from_millis(u64::from(round) * 60);
        tokio::time::timeout(length, party.left()).await.ok();
        match round % 3 {
            0 => {
                party.stop_agent().await;
                party.start_agent();
            }
            1 => hub.shutdown().await,
            _ => {
                party.stop_agent().await;
                hub.shutdown().await;
                party.start_agent();
                continue;
            }
        }
        hub.shutdown().await;
    }
    party.no_ledgers().await?;
    for work in ["w1", "w2", "w3"] {
        for index in 0..5 {
            assert!(party.maps().get_opt(&format!("{work}-{index}")).await?.is_none());
        }
    }
    assert_eq!(party.on_record().await?, []);
    party.stop_agent().await;
    Ok(())
}
