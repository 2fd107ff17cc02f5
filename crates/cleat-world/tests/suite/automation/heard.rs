//! Recoveries that are short, or that happen while the hub's controllers hear nothing.

use anyhow::Result;
use cleat_world::{Loss, within};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::Api;
use serde_json::json;

use super::hub::Hub;
use super::{BAD, GOOD};
use crate::create;

/// In the second of its job, and over before anybody could look.
#[tokio::test]
async fn a_recovery_within_a_second_is_not_lost() -> Result<()> {
    let hub = Hub::new("short", 1).await?;
    let controllers = hub.run();
    hub.automate("short", json!({})).await?;
    hub.stand(&[BAD]).await?;
    for jobs in 1..=4 {
        hub.noted("short", &[1]).await?;
        assert_eq!(hub.targets("short", jobs).await?, vec!["1"; jobs]);
        hub.stand(&[GOOD]).await?;
        hub.stand(&[BAD]).await?;
        hub.targets("short", jobs + 1).await?;
    }
    hub.noted("short", &[1]).await?;
    assert_eq!(hub.targets("short", 5).await?.len(), 5);
    controllers.stop().await;
    Ok(())
}

/// The cluster complied and did not any more before anybody summed up how the policy stands: its own
/// words are all there is.
#[tokio::test]
async fn a_recovery_that_the_policy_never_shows_is_not_lost() -> Result<()> {
    let hub = Hub::new("unseen", 2).await?;
    let controllers = hub.run();
    hub.automate("unseen", json!({})).await?;
    hub.stand(&[BAD, BAD]).await?;
    hub.noted("unseen", &[1, 2]).await?;
    for jobs in 2..=3 {
        hub.tell(&hub.clusters[0], &[GOOD, BAD]).await?;
        hub.targets("unseen", jobs).await?;
        hub.noted("unseen", &[1, 2]).await?;
    }
    // And the policy, should it show it after all, is late.
    hub.show(&[GOOD, BAD]).await?;
    hub.show(&[BAD, BAD]).await?;
    hub.stand(&[BAD, GOOD]).await?;
    hub.noted("unseen", &[1]).await?;
    assert_eq!(hub.targets("unseen", 3).await?, ["1", "1", "1+2"]);
    controllers.stop().await;
    Ok(())
}

/// More than an embedded server remembers for those who were away.
const FORGOTTEN: usize = 80;

/// The watch of policies breaks for so long that they must be listed anew, and nobody saw what they
/// were in between; but the cluster said so.
#[tokio::test]
async fn a_recovery_while_the_hub_was_cut_off_is_not_lost() -> Result<()> {
    let hub = Hub::new("cut", 1).await?;
    let (link, config) = hub.place.world.hub.link().await?;
    let controllers = hub.run_with(Client::try_from(config)?);
    hub.automate("cut", json!({})).await?;
    hub.stand(&[BAD]).await?;
    hub.noted("cut", &[1]).await?;
    link.cut();
    hub.stand(&[GOOD]).await?;
    hub.stand(&[BAD]).await?;
    // Real servers remember minutes, so there the watch goes on where it broke.
    if hub.place.world.is_embedded() {
        let maps: Api<ConfigMap> = hub.place.api();
        let data = json!({ "text": "x".repeat(400 * 1024) });
        for number in 0..FORGOTTEN {
            let name = format!("big-{number}");
            create(&maps, json!({ "metadata": { "name": name }, "data": data })).await?;
        }
    }
    link.restore();
    assert_eq!(hub.targets("cut", 2).await?, ["1", "1"]);
    hub.noted("cut", &[1]).await?;
    assert_eq!(hub.targets("cut", 2).await?.len(), 2);
    controllers.stop().await;
    Ok(())
}

/// What was glimpsed was forgotten with the pass that saw it, though its write never arrived.
#[tokio::test]
async fn a_recovery_is_not_lost_with_the_write_that_was_owed_to_it() -> Result<()> {
    let hub = Hub::new("owed", 1).await?;
    let loss = Loss::default();
    let controllers = hub.run_with(loss.client(&hub.place.client));
    hub.automate("owed", json!({})).await?;
    hub.stand(&[BAD]).await?;
    hub.noted("owed", &[1]).await?;
    loss.begin();
    hub.stand(&[GOOD]).await?;
    hub.stand(&[BAD]).await?;
    within("a write to be lost", loss.happened()).await?;
    loss.end();
    assert_eq!(hub.targets("owed", 2).await?, ["1", "1"]);
    hub.noted("owed", &[1]).await?;
    assert_eq!(hub.targets("owed", 2).await?.len(), 2);
    controllers.stop().await;
    Ok(())
}
