//! The hub's part is killed at its n-th request, before and after the server has done what the last one
//! asked; another takes over. The jobs are the same each time.

use anyhow::{Context as _, Result};
use cleat_api::policyautomation::PolicyAutomation;
use cleat_world::Fuse;
use futures::StreamExt as _;
use kube::ResourceExt as _;
use serde_json::json;

use super::hub::Hub;
use super::{BAD, GOOD};
use crate::seen;

/// How many of the requests are tried: all of them, or on real control planes, which are slow, a few.
fn points() -> usize {
    if std::env::var_os(cleat_world::world::WORLD).is_some() { 3 } else { usize::MAX }
}

const RERUN: &str = "policy.open-cluster-management.io/rerun";

/// A violation, a recovery, a second violation of two, and a rerun.
async fn events(hub: &Hub) -> Result<()> {
    hub.stand(&[BAD, GOOD]).await?;
    hub.noted("crash", &[1]).await?;
    hub.stand(&[GOOD, GOOD]).await?;
    hub.noted("crash", &[]).await?;
    hub.stand(&[BAD, BAD]).await?;
    hub.noted("crash", &[1, 2]).await?;
    let rerun = json!({ "metadata": { "annotations": { RERUN: "true" } } });
    hub.edit("crash", rerun).await?;
    let done = |one: &PolicyAutomation| {
        !one.annotations().contains_key(RERUN)
            && one.status.as_ref().is_some_and(|status| status.pending_jobs.is_empty())
    };
    seen(&hub.automations(), "crash", done).await?;
    Ok(())
}

/// One story; says how many requests its victim made.
async fn story(after: usize, last_is_done: bool) -> Result<usize> {
    let hub = Hub::new("crash", 2).await?;
    hub.automate("crash", json!({})).await?;
    let fuse = Fuse::new(after, last_is_done);
    let first = hub.run_with(fuse.client(&hub.place.client));
    let taking_over = async {
        fuse.blown().await;
        Some(hub.run())
    };
    let (mut told, mut second) = (Box::pin(events(&hub)), None);
    tokio::select! {
        told = &mut told => told?,
        other = taking_over => {
            second = other;
            told.as_mut().await?;
        }
    }
    drop(told);
    // A job too many would be one of those that are made at the same time.
    let targets = hub.targets("crash", 3).await?;
    assert_eq!(targets, ["1", "1+2", "1+2"]);
    first.stop().await;
    if let Some(second) = second {
        second.stop().await;
    }
    assert_eq!(hub.targets("crash", 3).await?.len(), 3);
    Ok(fuse.used())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hub_that_dies_at_any_request_makes_the_same_jobs() -> Result<()> {
    let requests = story(usize::MAX, false).await?;
    let step = requests.div_ceil(points()).max(1);
    let points: Vec<usize> = (1..=requests).step_by(step).collect();
    println!("a hub is killed at {} of {requests} requests, before and after", points.len());
    let points = points.into_iter().flat_map(|after| [(after, false), (after, true)]);
    let stories = points.map(|(after, last_is_done)| async move {
        let done = story(after, last_is_done).await;
        done.with_context(|| format!("killed at {after}, done: {last_is_done}"))
    });
    let mut stories = futures::stream::iter(stories).buffer_unordered(4);
    while let Some(done) = stories.next().await {
        done?;
    }
    Ok(())
}
