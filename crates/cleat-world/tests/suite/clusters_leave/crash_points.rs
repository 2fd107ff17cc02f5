//! The agent, or the hub's part, is killed at its n-th write while a cluster leaves, before and after the
//! server has done what the last one asked; another takes over. Every leave ends alike.

use anyhow::{Context as _, Result};
use cleat_api::managedcluster::RemoveStrategy::Required;
use cleat_hub::clusters;
use cleat_runtime::tasks::Tasks;
use cleat_world::Fuse;
use futures::StreamExt as _;
use serde_json::json;

use super::party::Party;

#[derive(Clone, Copy, Debug)]
enum Victim {
    Agent,
    Hub,
}

/// How many of the writes of a leave are tried, spread over all of them. A leave takes many times as
/// long on real control planes, where a few show that nothing differs.
fn points() -> usize {
    // By hand every one of them.
    if let Some(wanted) = std::env::var("CLEAT_CRASH_POINTS").ok().and_then(|n| n.parse().ok()) {
        return wanted;
    }
    if std::env::var_os(cleat_world::world::WORLD).is_some() { 2 } else { 8 }
}

/// One leave; says how many writes its victim made.
async fn leave(victim: Victim, after: usize, last_is_done: bool) -> Result<usize> {
    let mut party = Party::new("point", Required).await?;
    party.work("w1", vec![party.map("a"), party.map("b")], json!({})).await?;
    let orphan = json!({ "deleteOption": { "propagationPolicy": "Orphan" } });
    party.work("w2", vec![party.map("kept")], orphan).await?;
    party.policy("root.p", &[("pruned", "DeleteIfCreated"), ("stays", "None")]).await?;
    let fuse = Fuse::of_writes(after, last_is_done);
    let (first, second) = (Tasks::new(), Tasks::new());
    match victim {
        Victim::Agent => {
            party.stop_agent().await;
            let (hub, cluster) = (fuse.client(&party.fleet.hub), fuse.client(&party.cluster));
            party.start_agent_with(hub, cluster);
        }
        Victim::Hub => {
            party.fleet.tasks.shutdown().await;
            let hub_client = fuse.client(&party.fleet.hub);
            clusters::start(clusters::Config { hub_client, ..party.fleet.config() }, &first);
        }
    }
    party.leave().await?;
    let blown = tokio::select! {
        left = party.left() => left.map(|()| false)?,
        () = fuse.blown() => true,
    };
    if blown {
        match victim {
            Victim::Agent => {
                party.stop_agent().await;
                party.start_agent();
            }
            Victim::Hub => clusters::start(party.fleet.config(), &second),
        }
        party.left().await?;
    }
    party.no_ledgers().await?;
    party.no_policies().await?;
    for name in ["a", "b", "pruned"] {
        assert!(party.maps().get_opt(name).await?.is_none(), "{name} is left");
    }
    for name in ["kept", "stays"] {
        party.maps().get(name).await.context("it was declared to stay")?;
    }
    let left = party.on_record().await?;
    let left: Vec<_> = left.iter().filter(|one| one.part.is_none()).map(|one| &*one.name).collect();
    assert_eq!(left, ["kept", "stays"]);
    party.stop_agent().await;
    first.shutdown().await;
    second.shutdown().await;
    Ok(fuse.used())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_crash_ends_as_no_crash() -> Result<()> {
    for victim in [Victim::Agent, Victim::Hub] {
        let begun = std::time::Instant::now();
        let writes = leave(victim, usize::MAX, false).await?;
        println!("{victim:?}: {writes} writes in {:.1?}", begun.elapsed());
        let step = writes.div_ceil(points()).max(1);
        let points = (1..=writes).step_by(step).flat_map(|after| [(after, false), (after, true)]);
        let leaves = points.map(|(after, last_is_done)| async move {
            let done = leave(victim, after, last_is_done).await;
            done.with_context(|| format!("{victim:?} killed at {after}, done: {last_is_done}"))
        });
        let mut leaves = futures::stream::iter(leaves).buffer_unordered(4);
        while let Some(done) = leaves.next().await {
            done?;
        }
    }
    Ok(())
}
