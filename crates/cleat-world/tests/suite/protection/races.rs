//! Deletes of a provider race with consumers that come and go. Whatever was there, and stayed, when
//! a delete was asked for keeps the provider; what came in between is on record.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use anyhow::{Result, bail};
use cleat_world::within;
use kube::api::DeleteParams;
use serde_json::json;
use tokio::task::JoinSet;

use super::*;

/// A clock that only counts, and numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

/// When a consumer was known to be there with its finalizer, and when somebody began to take it off.
#[derive(Clone, Copy, Debug)]
struct Stay {
    from: u64,
    until: u64,
}

#[tokio::test]
async fn no_provider_is_lost_while_a_consumer_needs_it() -> Result<()> {
    let guarded = Arc::new(Guarded::new("races").await?);
    guarded.define().await?;
    guarded.provider().await?;
    let finalizer = json!({ "criteria": [{ "type": "Finalizer", "finalizer": {
        "group": group(&guarded.name), "resource": "cools", "finalizerName": FINALIZER } }] });
    guarded.service(finalizer).await?;
    let rounds = if guarded.world.is_embedded() { 12 } else { 6 };
    for round in 0..rounds {
        race(&guarded, round).await?;
    }
    let Ok(guarded) = Arc::try_unwrap(guarded) else { bail!("somebody still races") };
    guarded.end().await
}

async fn race(guarded: &Arc<Guarded>, round: u64) -> Result<()> {
    let clock = Arc::new(AtomicU64::new(1));
    let stays: Arc<Mutex<BTreeMap<String, Stay>>> = Arc::default();
    let mut racers = JoinSet::new();
    for lane in 0..3_u64 {
        let (guarded, clock, stays) = (Arc::clone(guarded), Arc::clone(&clock), Arc::clone(&stays));
        racers.spawn(async move {
            let mut dice = Dice((round * 31 + lane + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
            for number in 0..dice.roll(6) {
                let name = format!("r{round}-{lane}-{number}");
                // The latch may refuse it.
                if guarded.consumer(&name).await.is_err() {
                    continue;
                }
                let from = clock.fetch_add(1, Ordering::SeqCst);
                stays.lock().unwrap().insert(name.clone(), Stay { from, until: u64::MAX });
                if dice.roll(4) > 0 {
                    let until = clock.fetch_add(1, Ordering::SeqCst);
                    stays.lock().unwrap().get_mut(&name).unwrap().until = until;
                    guarded.set_finalizers(&name, json!(null)).await.unwrap();
                }
            }
        });
    }
    let deleter = {
        let (guarded, clock) = (Arc::clone(guarded), Arc::clone(&clock));
        tokio::spawn(async move {
            for _ in 0..20 {
                let asked = clock.fetch_add(1, Ordering::SeqCst);
                let params = DeleteParams::default();
                match guarded.deployments().delete("server", &params).await {
                    Ok(_) => return Some((asked, clock.fetch_add(1, Ordering::SeqCst))),
                    Err(kube::Error::Api(status)) if status.code == 403 => {}
                    Err(error) => panic!("{error}"),
                }
            }
            None
        })
    };
    while let Some(racer) = within("the racers", racers.join_next()).await? {
        racer?;
    }
    let lost = within("the deleter", deleter).await??;
    let stays = stays.lock().unwrap().clone();
    if let Some((asked, answered)) = lost {
        for (name, stay) in &stays {
            let needed_it = stay.from < asked && stay.until > answered;
            assert!(!needed_it, "{name} needed the provider that was lost in round {round}");
        }
        on_record(guarded).await?;
    }
    // The next round begins with a provider and without consumers.
    for name in stays.keys() {
        guarded.set_finalizers(name, json!(null)).await?;
        guarded.consumers().delete(name, &DeleteParams::default()).await?;
    }
    if lost.is_some() {
        guarded.provider().await?;
        guarded.told(|status| status.latch.is_none() && effective(status) == "True").await?;
    }
    Ok(())
}

/// Whoever needs the provider that is gone is named.
async fn on_record(guarded: &Guarded) -> Result<()> {
    eventually("the record of those who came too late", || async {
        let all = guarded.consumers().list(&Default::default()).await?;
        let needy = all.into_iter().filter(|one| one.metadata.finalizers.is_some());
        let needy: BTreeSet<String> = needy.filter_map(|one| one.metadata.name).collect();
        let service = guarded.services().get(&guarded.name).await?;
        let latch = service.status.and_then(|status| status.latch);
        let Some(latch) = latch else { return Ok(None) };
        let named =
            |name: &String| latch.late.iter().any(|late| late.ends_with(&format!("/{name}")));
        let counted = usize::try_from(latch.late_count).unwrap_or_default() >= needy.len();
        // No more than five at a time are named.
        let named = needy.iter().all(named) || latch.late.len() >= 5;
        Ok((counted && named).then_some(()))
    })
    .await
}
