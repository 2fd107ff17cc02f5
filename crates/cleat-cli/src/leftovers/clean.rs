//! Works a leftover record off on the cluster that kept it: `cleat_core::leave::clean` decides, one
//! look after another, until nothing is left to do.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use cleat_agent::registration::cluster_id;
use cleat_api::appliedmanifestwork::AppliedManifestWork;
use cleat_api::leftoverrecord::{LeftObject, LeftoverRecord, Reason, condition};
use cleat_core::condition::{Said, Status, say};
use cleat_core::id::Id;
use cleat_core::leave::clean::{self, Fate, Observed, fate, id};
use cleat_core::leave::record;
use cleat_core::registration::hub::Seen;
use cleat_core::work::ownership::{GROUP, LEDGER_KIND};
use cleat_core::write::{Action, Propagation, Side, Write};
use cleat_runtime::contents::contents;
use cleat_runtime::execute::{Executor, Read};
use cleat_runtime::kinds::Kinds;
use futures::StreamExt as _;
use jiff::Timestamp;
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt as _};
use serde_json::json;

use crate::connection::{executor, perform};
use crate::{Halted, Refused};

/// Objects read at the same time.
const READS: usize = 16;
const PAUSE: Duration = Duration::from_millis(500);
/// How long what was accepted for deletion may take to go.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) async fn clean(
    hub_client: &Client,
    cluster_client: &Client,
    records: &[LeftoverRecord],
    include_kept: bool,
) -> Result<()> {
    let executor = executor(Some(hub_client.clone()), Some(cluster_client.clone()));
    let here =
        cluster_id(&executor, Side::Cluster).await.context("find out which cluster this is")?;
    if let Some(other) = records.iter().find(|record| record.spec.cluster_id != here) {
        let hint = format!(
            "the record {} is of the cluster with the id {}, and this one has the id {here}; choose \
             it with --cluster-kubeconfig or --cluster-context",
            other.name_any(),
            other.spec.cluster_id
        );
        return Err(Refused(hint).into());
    }
    let declared = |record: &&LeftoverRecord| {
        matches!(record.spec.reason, Reason::Needless | Reason::Kept) && !include_kept
    };
    if let Some(kept) = records.iter().find(declared) {
        let hint = format!(
            "what {} lists stays because somebody declared so ({}); add --include-kept to remove it",
            kept.name_any(),
            kept.spec.reason.as_str()
        );
        return Err(Refused(hint).into());
    }
    let objects = clean::objects(records);
    let kinds = Kinds::new(cluster_client.clone());
    let deadline = Instant::now() + PATIENCE;
    let mut pause = tokio::time::interval(PAUSE);
    let refused = loop {
        pause.tick().await;
        let seen = observe(&executor, cluster_client, &kinds, &objects).await?;
        let plan = clean::plan(&seen, &objects);
        let going =
            objects.iter().any(|one| matches!(fate(&seen, one), Fate::Going(_) | Fate::Delete));
        if plan.is_empty() && (!going || Instant::now() > deadline) {
            break BTreeMap::new();
        }
        let ids: Vec<Id> = plan.iter().map(|action| action.target.id.clone()).collect();
        let done = executor.execute(vec![plan]).await;
        let refusals: BTreeMap<Id, String> = ids
            .into_iter()
            .zip(done.iter().flatten())
            .filter_map(|(id, outcome)| Some((id, clean::refusal(outcome)?)))
            .collect();
        if !refusals.is_empty() && Instant::now() > deadline {
            break refusals;
        }
        if let Some((id, why)) = refusals.first_key_value() {
            eprintln!("waits for {id}: {why}");
        }
    };
    let seen = observe(&executor, cluster_client, &kinds, &objects).await?;
    let fates: Vec<(&LeftObject, Fate)> =
        objects.iter().map(|object| (*object, fate(&seen, object))).collect();
    let mut stuck = Vec::new();
    for (object, fate) in &fates {
        let id = id(object);
        match fate {
            Fate::Gone => {}
            Fate::Stays(why) => println!("stays: {id} ({why})"),
            Fate::Delete => {
                let why = refused.get(&id).map_or("it was not deleted", String::as_str);
                stuck.push(format!("  {id}\n    {why}"));
            }
            Fate::Going(held) => stuck.push(format!("  {id}\n    held by {}", held.join(", "))),
            Fate::Unknown(why) => stuck.push(format!("  {id}\n    {why}")),
        }
    }
    if stuck.is_empty() {
        close_ledgers(&executor, cluster_client, &seen.ledgers).await?;
    }
    tell(&executor, records, &stuck).await?;
    if !stuck.is_empty() {
        let text = format!("not everything is gone:\n{}\nTry again later.", stuck.join("\n"));
        return Err(Halted(text).into());
    }
    let gone = fates.iter().filter(|(_, fate)| *fate == Fate::Gone).count();
    println!("{gone} of {} objects are gone", fates.len());
    Ok(())
}

async fn observe(
    executor: &Executor,
    cluster_client: &Client,
    kinds: &Kinds,
    objects: &[&LeftObject],
) -> Result<Observed> {
    let reads = objects.iter().map(|object| async move {
        let seen = match executor.read(Side::Cluster, &clean::target(object)).await {
            Read::Present(object) => Seen::Present(object),
            // A kind that is not served, of which the definition is gone as well, has no objects;
            // here it is enough that nothing can be deleted of it.
            Read::Absent => Seen::Absent,
            Read::NoSuchKind | Read::Unknown { .. } => Seen::Unknown,
        };
        (id(object), seen)
    });
    let live: BTreeMap<Id, Seen> =
        futures::stream::iter(reads).buffer_unordered(READS).collect().await;
    let ledgers: Api<AppliedManifestWork> = Api::all(cluster_client.clone());
    let ledgers = match ledgers.list(&ListParams::default()).await {
        Ok(list) => list.items,
        Err(kube::Error::Api(status)) if status.code == 404 => Vec::new(),
        Err(error) => return Err(error).context("list the ledgers on the cluster"),
    };
    let mut seen = Observed { live, ..Observed::default() };
    let sources: BTreeSet<&str> = objects.iter().map(|one| one.source.as_str()).collect();
    let wanted: BTreeSet<Id> = objects.iter().map(|object| id(object)).collect();
    for ledger in ledgers {
        if !sources.contains(ledger.spec.manifest_work_name.as_str()) {
            continue;
        }
        let applied = ledger.status.clone().unwrap_or_default().applied_resources;
        let mut ours = false;
        for one in applied {
            let found = Id {
                group: one.group,
                resource: one.resource,
                namespace: one.namespace,
                name: one.name,
            };
            if wanted.contains(&found) {
                ours = true;
                seen.uids.insert(found, one.uid);
            }
        }
        if ours {
            seen.ledgers.push(ledger.name_any());
        }
    }
    let hash = seen.ledgers.first().and_then(|name| name.get(..64)).unwrap_or_default().to_owned();
    for object in objects.iter().filter(|one| one.group.is_empty() && one.resource == "namespaces")
    {
        let held = contents(cluster_client, kinds, &object.name, &hash).await;
        seen.contents.insert(id(object), held);
    }
    Ok(seen)
}

/// The ledgers of works whose objects are settled hold nothing any more.
async fn close_ledgers(executor: &Executor, cluster: &Client, names: &[String]) -> Result<()> {
    let ledgers: Api<AppliedManifestWork> = Api::all(cluster.clone());
    for name in names {
        let Some(ledger) = ledgers.get_opt(name).await.context("read a ledger")? else { continue };
        let id = Id {
            group: GROUP.to_owned(),
            resource: "appliedmanifestworks".to_owned(),
            name: name.clone(),
            ..Id::default()
        };
        let target = cleat_core::id::Target { version: "v1".to_owned(), id };
        let uid = ledger.metadata.uid.clone().unwrap_or_default();
        let propagation = Propagation::Orphan;
        let release = json!({ "metadata": { "uid": uid, "finalizers": [] } });
        let delete = Write::Delete { uid, resource_version: None, propagation };
        let what = format!("close the {LEDGER_KIND} {name}");
        for write in [Write::Merge(release), delete] {
            let action = Action { side: Side::Cluster, target: target.clone(), write };
            perform(executor, &what, action).await?;
        }
    }
    Ok(())
}

async fn tell(executor: &Executor, records: &[LeftoverRecord], stuck: &[String]) -> Result<()> {
    for record in records {
        let mut conditions = record.status.clone().unwrap_or_default().conditions;
        let said = match stuck.is_empty() {
            true => Said {
                kind: condition::CLEANED,
                status: Status::True,
                reason: "Cleaned",
                message: "Everything is gone, or is not ours any more.".to_owned(),
            },
            false => Said {
                kind: condition::CLEANED,
                status: Status::False,
                reason: "ObjectsRemain",
                message: stuck.join("; ").split_whitespace().collect::<Vec<_>>().join(" "),
            },
        };
        say(&mut conditions, said, record.metadata.generation, Timestamp::now());
        let patch = json!({
            "metadata": { "uid": record.metadata.uid }, "status": { "conditions": conditions },
        });
        let target = record::target(record.name_any());
        let write = Write::MergeStatus(patch);
        perform(executor, "note it in the record", Action { side: Side::Hub, target, write })
            .await?;
    }
    Ok(())
}
