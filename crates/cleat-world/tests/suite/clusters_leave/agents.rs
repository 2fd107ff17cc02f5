//! Agents with no more than their own rights, denied ones, ones that never answer, and earlier ones.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use anyhow::{Context as _, Result};
use cleat_agent::leave::Ended;
use cleat_agent::registration::{Live, live};
use cleat_api::appliedmanifestwork::AppliedManifestWork;
use cleat_api::managedcluster::CLUSTER_NAME_LABEL;
use cleat_api::managedcluster::ManagedCluster;
use cleat_api::managedcluster::RemoveStrategy::{Needless, Required};
use cleat_hub::clusters;
use cleat_runtime::clock::Clock;
use cleat_runtime::tasks::Tasks;
use cleat_world::{eventually, within};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Api, Patch};
use kube::{Client, ResourceExt as _};
use serde_json::json;

use super::party::Party;
use super::unreachable::unrecognized;
use crate::clusters::{Joining, condition, executor};
use crate::{create, gone, seen};

/// The hub's part again, with a clock that can be set ahead, in seconds.
async fn hub_with_a_clock(party: &Party) -> (Tasks, Arc<AtomicI64>) {
    party.fleet.tasks.shutdown().await;
    let (tasks, ahead) = (Tasks::new(), Arc::new(AtomicI64::new(0)));
    let reads = Arc::clone(&ahead);
    let clock = Clock::new(move || {
        Timestamp::now() + SignedDuration::from_secs(reads.load(Ordering::SeqCst))
    });
    clusters::start(clusters::Config { clock, ..party.fleet.config() }, &tasks);
    (tasks, ahead)
}

fn secrets(party: &Party) -> Api<Secret> {
    Api::namespaced(party.cluster.clone(), &format!("agent-{}", party.name))
}

const CREDENTIALS: &str = "hub-kubeconfig-secret";

#[tokio::test]
async fn an_agent_needs_no_more_than_its_own_rights_to_leave() -> Result<()> {
    for strategy in [Required, Needless] {
        let mut party = Party::with_own_rights("rights", strategy).await?;
        party.work("w", vec![party.map("a")], json!({})).await?;
        party.leave().await?;
        party.left().await?;
        party.no_ledgers().await?;
        assert_eq!(party.maps().get_opt("a").await?.is_some(), strategy == Needless);
        within("the agent to end", party.presence.until_left()).await?;
        assert!(secrets(&party).get_opt(CREDENTIALS).await?.is_none(), "its credentials are left");
        party.stop_agent().await;
    }
    Ok(())
}

#[tokio::test]
async fn a_denied_cluster_leaves_with_everything_it_holds() -> Result<()> {
    for strategy in [Required, Needless] {
        let mut party = Party::with_own_rights("denied", strategy).await?;
        party.work("w", vec![party.map("a")], json!({})).await?;
        party.fleet.set_accepted(&party.name, false).await?;
        party.fleet.until(&party.name, "HubAcceptedManagedCluster", "False").await?;
        party.leave().await?;
        party.left().await?;
        party.no_ledgers().await?;
        let map = party.maps().get_opt("a").await?;
        assert_eq!(map.is_some(), strategy == Needless);
        assert_eq!(map.map(|map| map.owner_references().len()).unwrap_or(0), 0, "marks are left");
        party.stop_agent().await;
    }
    Ok(())
}

#[tokio::test]
async fn the_end_is_written_down_before_the_hub_is_told() -> Result<()> {
    let mut party = Party::with_own_rights("end", Required).await?;
    // Nothing takes the agent's rights meanwhile.
    party.fleet.tasks.shutdown().await;
    party.leave().await?;
    seen(&party.fleet.clusters(), &party.name, |one: &ManagedCluster| {
        condition(one, "ResourcesReleased").is_some_and(|one| one.status == "True")
    })
    .await?;
    let kept = secrets(&party).get(CREDENTIALS).await?;
    assert_eq!(kept.annotations().get("cleat.dev/left").map(String::as_str), Some("true"));
    // The agent dies right then; the hub forgets the cluster; another agent starts.
    party.stop_agent().await;
    let hub = Tasks::new();
    clusters::start(party.fleet.config(), &hub);
    party.left().await?;
    party.start_agent();
    within("the agent to end", party.presence.until_left()).await?;
    assert!(secrets(&party).get_opt(CREDENTIALS).await?.is_none(), "its credentials are left");
    party.stop_agent().await;
    hub.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn an_agent_that_could_not_read_its_own_note_never_ended() -> Result<()> {
    let mut party = Party::with_own_rights("unread", Required).await?;
    party.fleet.tasks.shutdown().await;
    party.leave().await?;
    party.says("ResourcesReleased", "True", "").await?;
    party.stop_agent().await;
    let hub = Tasks::new();
    clusters::start(party.fleet.config(), &hub);
    party.left().await?;
    let (link, config) = party.fleet.world.clusters[0].link().await?;
    link.cut();
    party.start_agent_on(Client::try_from(config)?);
    unrecognized(&party).await?;
    link.restore();
    let ended = within("the agent to end", party.presence.until_left()).await?;
    assert_eq!(ended, Ended::Gone);
    assert!(secrets(&party).get_opt(CREDENTIALS).await?.is_none(), "its credentials are left");
    party.stop_agent().await;
    hub.shutdown().await;
    Ok(())
}

/// Of a leave that did not come to its end, or that its hub has forgotten. The next hub that did not know
/// the cluster would have been taken for the end of it.
#[tokio::test]
async fn an_old_note_that_the_cluster_has_left_was_believed_of_a_member() -> Result<()> {
    let mut party = Party::with_own_rights("oldnote", Required).await?;
    let (keep, executor) =
        (party.fleet.keep(&party.name), executor(None, Some(party.cluster.clone())));
    party.stop_agent().await;
    keep.set_left(&executor, true).await?;
    party.start_agent();
    eventually("the note to be taken back", || async {
        Ok((!keep.is_left(&executor).await?).then_some(()))
    })
    .await?;
    party.stop_agent().await;
    // Nor does it outlast joining again, though no agent ever saw that the cluster is a member.
    keep.set_left(&executor, true).await?;
    let credentials = party.credentials.clone().context("it joined")?;
    keep.renew(&executor, &credentials).await?;
    assert!(keep.is_left(&executor).await?, "a new certificate does not mean that it stays");
    keep.save(&executor, &credentials).await?;
    assert!(!keep.is_left(&executor).await?, "it has joined again");
    keep.renew(&executor, &credentials).await?;
    assert!(!keep.is_left(&executor).await?);
    Ok(())
}

/// It was away for longer than its certificate lasts, and its name was refused because it was leaving.
#[tokio::test]
async fn a_cluster_that_lost_its_credentials_could_not_come_back_to_leave() -> Result<()> {
    let mut party = Party::with_own_rights("comeback", Required).await?;
    party.work("w", vec![party.map("a")], json!({})).await?;
    party.stop_agent().await;
    party.leave().await?;
    party.says("Unjoining", "True", "waits for the cluster's agent").await?;
    let mut enrolment = party.fleet.enrolment(party.fleet.application(&party.name)).await?;
    enrolment.again = true;
    let mut joining = Joining::begin(enrolment);
    party.fleet.accept(&mut joining).await?;
    let credentials = joining.end().await??;
    party.start_agent_with(credentials.connect().await?, party.cluster.clone());
    party.left().await?;
    party.absent("a").await?;
    within("the agent to end", party.presence.until_left()).await?;
    party.stop_agent().await;
    Ok(())
}

#[tokio::test]
async fn an_agent_that_lives_and_never_answers_is_told() -> Result<()> {
    let mut party = Party::new("mute", Required).await?;
    party.work("w", vec![party.map("a")], json!({})).await?;
    let (hub, ahead) = hub_with_a_clock(&party).await;
    party.stop_agent().await;
    // It renews its lease and knows nothing of leaving, as an agent of OCM's.
    let other = Tasks::new();
    live(
        Live {
            name: party.name.clone(),
            cluster_id: format!("id-of-{}", party.name),
            hub_address: format!("https://hub.of.{}", party.name),
            hub_client: party.fleet.hub.clone(),
            cluster_client: party.cluster.clone(),
            clock: Clock::system(),
            dice: Arc::new(|| 0),
            rotation: None,
            presence: Default::default(),
        },
        &other,
    );
    party.leave().await?;
    party.says("Unjoining", "True", "waits for the cluster's agent").await?;
    ahead.store(60, Ordering::SeqCst);
    party.says("UnjoinFailed", "True", "does not know how to leave").await?;
    party.maps().get("a").await.context("nobody did anything")?;
    other.shutdown().await;
    party.start_agent();
    party.left().await?;
    party.stop_agent().await;
    hub.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn what_an_earlier_agent_noted_goes_with_the_cluster() -> Result<()> {
    let mut party = Party::new("earlier", Required).await?;
    party.work("w", vec![party.map("a")], json!({})).await?;
    party.stop_agent().await;
    // The work was forced away, and its ledger is by an agent of another id.
    let ledgers: Api<AppliedManifestWork> = Api::all(party.cluster.clone());
    let ledger = format!("{}-w", cleat_agent::work::hub_hash(&party.address()));
    let patch = json!({ "spec": { "agentID": "an-earlier-one" } });
    ledgers.patch(&ledger, &Default::default(), &Patch::Merge(patch)).await?;
    let work = party.works().get("w").await?;
    let free = json!({ "metadata": { "finalizers": null } });
    party.works().patch("w", &Default::default(), &Patch::Merge(free)).await?;
    crate::delete(&party.works(), "w").await?;
    gone(&party.works(), &work).await?;
    party.start_agent();
    party.leave().await?;
    party.left().await?;
    party.no_ledgers().await?;
    assert!(party.maps().get_opt("a").await?.is_none());
    party.stop_agent().await;
    Ok(())
}

#[tokio::test]
async fn what_holds_the_namespace_on_the_hub_is_told() -> Result<()> {
    let party = Party::new("held", Required).await?;
    is_told_and_waited_for(party).await
}

/// Force skips what the agent would do, and nothing else.
#[tokio::test]
async fn what_holds_the_namespace_on_the_hub_holds_a_declared_end_as_well() -> Result<()> {
    let mut party = Party::new("heldend", Required).await?;
    party.stop_agent().await;
    let declare = json!({ "metadata": { "annotations": {
        "cleat.dev/cluster-destroyed": party.name,
    } } });
    party.fleet.patch(&party.name, declare).await?;
    is_told_and_waited_for(party).await
}

async fn is_told_and_waited_for(mut party: Party) -> Result<()> {
    let (hub, ahead) = hub_with_a_clock(&party).await;
    let maps: Api<ConfigMap> = Api::namespaced(party.fleet.hub.clone(), &party.name);
    let map = json!({ "metadata": {
        "name": "held", "labels": { CLUSTER_NAME_LABEL: party.name },
        "finalizers": ["nobody.example/hold"],
    } });
    create(&maps, map).await?;
    party.leave().await?;
    seen(&maps, "held", |map: &ConfigMap| map.metadata.deletion_timestamp.is_some()).await?;
    ahead.store(60, Ordering::SeqCst);
    party.says("UnjoinFailed", "True", "nobody.example/hold").await?;
    party.fleet.clusters().get(&party.name).await.context("its namespace is not gone")?;
    let free = json!({ "metadata": { "finalizers": null } });
    maps.patch("held", &Default::default(), &Patch::Merge(free)).await?;
    party.left().await?;
    party.stop_agent().await;
    hub.shutdown().await;
    Ok(())
}
