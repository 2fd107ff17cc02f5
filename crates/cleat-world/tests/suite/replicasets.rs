//! Sets of works: who gets one, when, and who loses it. The test writes the decisions, and answers
//! for the agents.

mod fleet;

use anyhow::Result;
use cleat_api::managedcluster::ManagedCluster;
use cleat_api::manifestwork::ManifestWork;
use cleat_api::manifestworkreplicaset::{self as api, ManifestWorkReplicaSet};
use cleat_api::placement::{Placement, PlacementDecision};
use cleat_world::eventually;
use kube::ResourceExt as _;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;

use self::fleet::{DONE, FAILED, Fleet, message, says, template};
use crate::{create, delete, gone, seen};

#[tokio::test]
async fn every_chosen_cluster_gets_a_work_and_loses_it_when_it_leaves() -> Result<()> {
    let fleet = Fleet::new("sets", 3).await?;
    let controllers = fleet.run();
    fleet.placement("all").await?;
    fleet.decide("all", 0, &[0, 1]).await?;
    fleet.set("web", "all", json!({ "type": "All" })).await?;
    let works = fleet.words("web", &[("0", "one"), ("1", "one")]).await?;
    assert_eq!(works["0"].labels()["team"], "blue");
    for work in works.values() {
        fleet.tell(work, &DONE).await?;
    }
    let set = fleet.told("web", "PlacementRolledOut", "True Complete").await?;
    assert_eq!(set.finalizers(), [api::FINALIZER]);
    let set = match says(&set, "ManifestworkApplied").as_str() {
        "True AsExpected" => set,
        _ => fleet.told("web", "ManifestworkApplied", "True AsExpected").await?,
    };
    assert_eq!(says(&set, "PlacementVerified"), "True AsExpected");
    let summary = set.status.clone().unwrap().summary.unwrap();
    assert_eq!((summary.total, summary.desired_total, summary.available), (2, 2, 2));

    fleet.decide("all", 0, &[1, 2]).await?;
    fleet.words("web", &[("1", "one"), ("2", "one")]).await?;
    // A decision for nobody is a decision.
    fleet.decide("all", 0, &[]).await?;
    fleet.words("web", &[]).await?;
    fleet.told("web", "PlacementVerified", "False PlacementDecisionEmpty").await?;
    controllers.stop().await;
    Ok(())
}

#[tokio::test]
async fn a_placement_that_vanishes_with_its_decisions_takes_nothing_along() -> Result<()> {
    let fleet = Fleet::new("vanish", 2).await?;
    let controllers = fleet.run();
    fleet.placement("all").await?;
    fleet.decide("all", 0, &[0, 1]).await?;
    fleet.set("web", "all", json!({ "type": "All" })).await?;
    let before = fleet.words("web", &[("0", "one"), ("1", "one")]).await?;
    let decisions: Api<PlacementDecision> = fleet.place.api();
    let placements: Api<Placement> = fleet.place.api();
    // Decisions first, as it may look to a watch.
    delete(&decisions, "all-decision-0").await?;
    let set = fleet.told("web", "PlacementVerified", "False PlacementDecisionNotFound").await?;
    assert!(message(&set, "PlacementVerified").contains("no work is deleted"), "{set:?}");
    delete(&placements, "all").await?;
    let not_there = |set: &ManifestWorkReplicaSet| {
        message(set, "PlacementVerified").contains("Placement all is not there")
    };
    seen(&fleet.sets(), "web", not_there).await?;
    // A change of the template waits for somebody to decide.
    fleet.edit("web", json!({ "manifestWorkTemplate": template("two") })).await?;
    fleet.placement("all").await?;
    fleet.decide("all", 0, &[0, 1]).await?;
    let after = fleet.words("web", &[("0", "two"), ("1", "two")]).await?;
    for (at, work) in &before {
        assert_eq!(after[at].uid(), work.uid());
    }
    controllers.stop().await;
    Ok(())
}

#[tokio::test]
async fn a_progressive_rollout_goes_on_after_success_and_stops_at_failure() -> Result<()> {
    let fleet = Fleet::new("progressive", 3).await?;
    let controllers = fleet.run();
    fleet.placement("all").await?;
    fleet.decide("all", 0, &[0, 1, 2]).await?;
    let strategy = json!({ "type": "Progressive", "progressive": { "maxConcurrency": 1 } });
    fleet.set("web", "all", strategy).await?;
    let works = fleet.words("web", &[("0", "one")]).await?;
    fleet.tell(&works["0"], &DONE).await?;
    let works = fleet.words("web", &[("0", "one"), ("1", "one")]).await?;
    fleet.tell(&works["1"], &FAILED).await?;
    let stopped =
        |set: &ManifestWorkReplicaSet| message(set, "PlacementRolledOut").contains("stopped");
    let set = seen(&fleet.sets(), "web", stopped).await?;
    assert!(message(&set, "PlacementRolledOut").contains(&fleet.clusters[1]), "{set:?}");
    // Mending the template starts over, one by one.
    fleet.edit("web", json!({ "manifestWorkTemplate": template("two") })).await?;
    let works = fleet.words("web", &[("0", "two"), ("1", "one")]).await?;
    fleet.tell(&works["0"], &DONE).await?;
    let works = fleet.words("web", &[("0", "two"), ("1", "two")]).await?;
    fleet.tell(&works["1"], &DONE).await?;
    let works = fleet.words("web", &[("0", "two"), ("1", "two"), ("2", "two")]).await?;
    fleet.tell(&works["2"], &DONE).await?;
    fleet.told("web", "PlacementRolledOut", "True Complete").await?;
    controllers.stop().await;
    Ok(())
}

#[tokio::test]
async fn decision_groups_follow_each_other_and_mandatory_ones_lead() -> Result<()> {
    let fleet = Fleet::new("groups", 3).await?;
    let controllers = fleet.run();
    fleet.placement("all").await?;
    fleet.decide("all", 0, &[0]).await?;
    fleet.decide("all", 1, &[1]).await?;
    fleet.decide("all", 2, &[2]).await?;
    let mandatory = json!({ "mandatoryDecisionGroups": [{ "groupIndex": 2 }] });
    let strategy = json!({ "type": "ProgressivePerGroup", "progressivePerGroup": mandatory });
    fleet.set("web", "all", strategy).await?;
    let works = fleet.words("web", &[("2", "one")]).await?;
    fleet.tell(&works["2"], &DONE).await?;
    let works = fleet.words("web", &[("0", "one"), ("2", "one")]).await?;
    fleet.tell(&works["0"], &DONE).await?;
    fleet.words("web", &[("0", "one"), ("1", "one"), ("2", "one")]).await?;
    controllers.stop().await;
    Ok(())
}

/// A deadline lets the next cluster in without any event.
#[tokio::test]
async fn a_cluster_that_never_answers_does_not_hold_a_rollout_for_ever() -> Result<()> {
    let fleet = Fleet::new("deadline", 2).await?;
    let controllers = fleet.run();
    fleet.placement("all").await?;
    fleet.decide("all", 0, &[0, 1]).await?;
    let slow = json!({ "maxConcurrency": 1, "maxFailures": 1, "progressDeadline": "2s" });
    fleet.set("web", "all", json!({ "type": "Progressive", "progressive": slow })).await?;
    // Its cluster never answers.
    fleet.words("web", &[("0", "one")]).await?;
    fleet.words("web", &[("0", "one"), ("1", "one")]).await?;
    controllers.stop().await;
    Ok(())
}

#[tokio::test]
async fn a_set_waits_for_its_works_or_does_not_as_it_is_told() -> Result<()> {
    let fleet = Fleet::new("cascade", 1).await?;
    let controllers = fleet.run();
    fleet.placement("all").await?;
    fleet.decide("all", 0, &[0]).await?;
    let held = json!({ "metadata": { "finalizers": ["cleat.example/agent"] } });
    let released = json!({ "metadata": { "finalizers": null } });
    let params = PatchParams::default();
    let works = fleet.works(&fleet.clusters[0]);
    for cascade in ["Foreground", "Background"] {
        let set = fleet.set("web", "all", json!({ "type": "All" })).await?;
        fleet.edit("web", json!({ "cascadeDeletionPolicy": cascade })).await?;
        let work = fleet.words("web", &[("0", "one")]).await?.remove("0").unwrap();
        works.patch(&work.name_any(), &params, &Patch::Merge(&held)).await?;
        delete(&fleet.sets(), "web").await?;
        let leaving = |work: &ManifestWork| work.metadata.deletion_timestamp.is_some();
        if cascade == "Foreground" {
            let set = fleet.told("web", "Deleting", "True WaitingForWorks").await?;
            assert!(message(&set, "Deleting").contains(&work.name_any()), "{set:?}");
            assert!(leaving(&works.get(&work.name_any()).await?));
            works.patch(&work.name_any(), &params, &Patch::Merge(&released)).await?;
            gone(&works, &work).await?;
            gone(&fleet.sets(), &set).await?;
        } else {
            gone(&fleet.sets(), &set).await?;
            assert!(leaving(&works.get(&work.name_any()).await?));
            works.patch(&work.name_any(), &params, &Patch::Merge(&released)).await?;
            gone(&works, &work).await?;
        }
    }
    controllers.stop().await;
    Ok(())
}

#[tokio::test]
async fn sets_share_clusters_and_leave_each_other_alone() -> Result<()> {
    let fleet = Fleet::new("two", 2).await?;
    let controllers = fleet.run();
    fleet.placement("all").await?;
    fleet.placement("some").await?;
    fleet.decide("all", 0, &[0, 1]).await?;
    fleet.decide("some", 0, &[0]).await?;
    fleet.set("web", "all", json!({ "type": "All" })).await?;
    let shop = fleet.set("shop", "all", json!({ "type": "All" })).await?;
    // One set may also reach a cluster through two placements.
    fleet.edit("web", json!({ "placementRefs": [{ "name": "all" }, { "name": "some" }] })).await?;
    let web = [("0", "one"), ("0 some", "one"), ("1", "one")];
    fleet.words("web", &web).await?;
    fleet.words("shop", &[("0", "one"), ("1", "one")]).await?;
    delete(&fleet.sets(), "shop").await?;
    gone(&fleet.sets(), &shop).await?;
    fleet.words("shop", &[]).await?;
    fleet.words("web", &web).await?;
    controllers.stop().await;
    Ok(())
}

/// The work of the new placement is applied before the old one goes: no cluster is without.
#[tokio::test]
async fn an_exchanged_placement_leaves_no_gap() -> Result<()> {
    let fleet = Fleet::new("exchange", 2).await?;
    let controllers = fleet.run();
    fleet.placement("all").await?;
    fleet.placement("new").await?;
    fleet.decide("all", 0, &[0, 1]).await?;
    fleet.decide("new", 0, &[0]).await?;
    fleet.set("web", "all", json!({ "type": "All" })).await?;
    fleet.words("web", &[("0", "one"), ("1", "one")]).await?;
    fleet.edit("web", json!({ "placementRefs": [{ "name": "new" }] })).await?;
    let works = fleet.words("web", &[("0", "one"), ("0 new", "one")]).await?;
    fleet.tell(&works["0 new"], &DONE).await?;
    fleet.words("web", &[("0 new", "one")]).await?;
    controllers.stop().await;
    Ok(())
}

#[tokio::test]
async fn a_name_too_long_for_a_label_is_told() -> Result<()> {
    let fleet = Fleet::new("long", 1).await?;
    let controllers = fleet.run();
    fleet.placement("all").await?;
    fleet.decide("all", 0, &[0]).await?;
    let room = api::LONGEST_KEY - fleet.place.namespace.len() - 1;
    let (fits, long) = ("x".repeat(room), "x".repeat(room + 1));
    fleet.set(&long, "all", json!({ "type": "All" })).await?;
    let reads = "False InvalidManifestWorkName";
    let set = fleet.told(&long, "ManifestworkApplied", reads).await?;
    fleet.set(&fits, "all", json!({ "type": "All" })).await?;
    fleet.words(&fits, &[("0", "one")]).await?;
    delete(&fleet.sets(), &long).await?;
    gone(&fleet.sets(), &set).await?;
    controllers.stop().await;
    Ok(())
}

#[tokio::test]
async fn changes_by_hand_are_undone() -> Result<()> {
    let fleet = Fleet::new("hand", 1).await?;
    let controllers = fleet.run();
    fleet.placement("all").await?;
    fleet.decide("all", 0, &[0]).await?;
    fleet.set("web", "all", json!({ "type": "All" })).await?;
    let work = fleet.words("web", &[("0", "one")]).await?.remove("0").unwrap();
    let works = fleet.works(&fleet.clusters[0]);
    let executor = json!({ "subject": {
        "type": "ServiceAccount", "serviceAccount": { "namespace": "a", "name": "b" },
    } });
    let mut spec = template("by hand");
    spec["executor"] = executor;
    let by_hand = json!({
        "metadata": { "labels": { "team": "red", api::PLACEMENT_LABEL: null } }, "spec": spec,
    });
    works.patch(&work.name_any(), &PatchParams::default(), &Patch::Merge(by_hand)).await?;
    let mended = fleet.works_when("web", |works| {
        works.get("0").is_some_and(|now| {
            now.spec == work.spec
                && now.labels() == work.labels()
                && now.metadata.generation > work.metadata.generation
        })
    });
    let mended = mended.await?.remove("0").unwrap();
    assert_eq!(mended.uid(), work.uid());
    // One that is deleted comes again.
    delete(&works, &work.name_any()).await?;
    gone(&works, &work).await?;
    let again = fleet.words("web", &[("0", "one")]).await?;
    assert_eq!(again["0"].name_any(), work.name_any());
    controllers.stop().await;
    Ok(())
}

#[tokio::test]
async fn a_work_that_is_not_the_sets_is_left_alone_though_it_is_in_the_way() -> Result<()> {
    let fleet = Fleet::new("way", 1).await?;
    let controllers = fleet.run();
    fleet.placement("all").await?;
    fleet.decide("all", 0, &[0]).await?;
    fleet.set("web", "all", json!({ "type": "All" })).await?;
    let work = fleet.words("web", &[("0", "one")]).await?.remove("0").unwrap();
    let works = fleet.works(&fleet.clusters[0]);
    let unlabelled = json!({ "metadata": { "labels": { api::SET_LABEL: null } } });
    let params = PatchParams::default();
    works.patch(&work.name_any(), &params, &Patch::Merge(unlabelled)).await?;
    let in_the_way = |set: &ManifestWorkReplicaSet| {
        message(set, "ManifestworkApplied").contains("is in the way")
    };
    seen(&fleet.sets(), "web", in_the_way).await?;
    assert_eq!(works.get(&work.name_any()).await?.uid(), work.uid());
    // It does what the message asks for.
    let key = format!("{}.web", fleet.place.namespace);
    let labelled = json!({ "metadata": { "labels": { api::SET_LABEL: key } } });
    works.patch(&work.name_any(), &params, &Patch::Merge(labelled)).await?;
    let found = fleet.words("web", &[("0", "one")]).await?;
    assert_eq!(found["0"].uid(), work.uid());
    fleet.tell(&found["0"], &DONE).await?;
    fleet.told("web", "ManifestworkApplied", "True AsExpected").await?;
    controllers.stop().await;
    Ok(())
}

#[tokio::test]
async fn a_hub_that_was_away_finds_its_way_back() -> Result<()> {
    let fleet = Fleet::new("restart", 3).await?;
    let controllers = fleet.run();
    fleet.placement("all").await?;
    fleet.decide("all", 0, &[0, 1, 2]).await?;
    let strategy = json!({ "type": "Progressive", "progressive": { "maxConcurrency": 1 } });
    let set = fleet.set("web", "all", strategy).await?;
    let works = fleet.words("web", &[("0", "one")]).await?;
    controllers.stop().await;
    // While nobody looks: a success, a new template, and a cluster that leaves.
    fleet.tell(&works["0"], &DONE).await?;
    fleet.edit("web", json!({ "manifestWorkTemplate": template("two") })).await?;
    fleet.decide("all", 0, &[0, 2]).await?;
    let controllers = fleet.run();
    let works = fleet.words("web", &[("0", "two")]).await?;
    fleet.tell(&works["0"], &DONE).await?;
    fleet.words("web", &[("0", "two"), ("2", "two")]).await?;
    controllers.stop().await;
    delete(&fleet.sets(), "web").await?;
    let controllers = fleet.run();
    gone(&fleet.sets(), &set).await?;
    fleet.words("web", &[]).await?;
    controllers.stop().await;
    Ok(())
}

/// Both see everything and write everything; `words` fails if a cluster ever has two works.
#[tokio::test]
async fn two_hubs_do_no_harm() -> Result<()> {
    let fleet = Fleet::new("hubs", 3).await?;
    let both = [fleet.run(), fleet.run()];
    fleet.placement("all").await?;
    fleet.decide("all", 0, &[0, 1]).await?;
    let set = fleet.set("web", "all", json!({ "type": "All" })).await?;
    fleet.words("web", &[("0", "one"), ("1", "one")]).await?;
    fleet.decide("all", 0, &[1, 2]).await?;
    fleet.edit("web", json!({ "manifestWorkTemplate": template("two") })).await?;
    fleet.words("web", &[("1", "two"), ("2", "two")]).await?;
    delete(&fleet.sets(), "web").await?;
    gone(&fleet.sets(), &set).await?;
    fleet.words("web", &[]).await?;
    for controllers in both {
        controllers.stop().await;
    }
    Ok(())
}

#[tokio::test]
async fn a_finished_work_goes_after_its_time_and_no_other_does() -> Result<()> {
    let fleet = Fleet::new("ttl", 1).await?;
    let controllers = fleet.run();
    let works = fleet.works(&fleet.clusters[0]);
    let mut made = Vec::new();
    for (name, ttl) in [("now", Some(0)), ("later", Some(3600)), ("never", None)] {
        let mut spec = template(name);
        spec["deleteOption"] = json!({ "ttlSecondsAfterFinished": ttl });
        let work = create(&works, json!({ "metadata": { "name": name }, "spec": spec })).await?;
        made.push(work);
    }
    let since = jiff::Timestamp::now().to_string();
    let complete = |status: &str| {
        Patch::Merge(json!({ "status": { "conditions": [{
            "type": "Complete", "status": status, "reason": "Told", "message": "",
            "lastTransitionTime": since,
        }] } }))
    };
    let params = PatchParams::default();
    works.patch_status("now", &params, &complete("False")).await?;
    for name in ["later", "never", "now"] {
        assert!(works.get_opt(name).await?.is_some());
        works.patch_status(name, &params, &complete("True")).await?;
    }
    gone(&works, &made[0]).await?;
    assert!(works.get_opt("later").await?.is_some());
    assert!(works.get_opt("never").await?.is_some());
    // What is still to come is looked at anew when it changes.
    let ttl = Patch::Merge(json!({ "spec": { "deleteOption": { "ttlSecondsAfterFinished": 0 } } }));
    works.patch("later", &params, &ttl).await?;
    gone(&works, &made[1]).await?;
    controllers.stop().await;
    Ok(())
}

/// A cluster without a namespace is told, does not hold up others, and is served once it has one.
#[tokio::test]
async fn a_cluster_without_a_namespace_holds_up_nobody() -> Result<()> {
    let mut fleet = Fleet::new("nowhere", 1).await?;
    fleet.clusters.insert(0, fleet.place.world.unique("nowhere-c0"));
    let controllers = fleet.run();
    fleet.placement("all").await?;
    fleet.decide("all", 0, &[0, 1]).await?;
    fleet.set("web", "all", json!({ "type": "All" })).await?;
    fleet.words("web", &[("1", "one")]).await?;
    let nowhere = |set: &ManifestWorkReplicaSet| {
        message(set, "ManifestworkApplied").contains("cannot be written")
    };
    seen(&fleet.sets(), "web", nowhere).await?;
    crate::make_namespace(&fleet.place.world.hub, &fleet.clusters[0]).await?;
    fleet.words("web", &[("0", "one"), ("1", "one")]).await?;
    // A namespace tells nobody that it came, so this may take a try or two.
    eventually("the end of the complaint", || async {
        let set = fleet.sets().get("web").await?;
        Ok((!nowhere(&set)).then_some(()))
    })
    .await?;
    controllers.stop().await;
    Ok(())
}

#[tokio::test]
async fn a_cluster_out_of_reach_that_left_the_placement_keeps_its_work() -> Result<()> {
    let fleet = Fleet::new("away-sets", 2).await?;
    let clusters: Api<ManagedCluster> = Api::all(fleet.place.client.clone());
    let name = &*fleet.clusters[1];
    create(&clusters, json!({ "metadata": { "name": name }, "spec": {} })).await?;
    let available = async |status: &str| -> Result<()> {
        let condition = json!({
            "type": "ManagedClusterConditionAvailable", "status": status, "reason": "Told",
            "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
        });
        let patch = Patch::Merge(json!({ "status": { "conditions": [condition] } }));
        clusters.patch_status(name, &PatchParams::default(), &patch).await?;
        Ok(())
    };
    available("Unknown").await?;
    let controllers = fleet.run();
    fleet.placement("all").await?;
    fleet.decide("all", 0, &[0, 1]).await?;
    fleet.set("web", "all", json!({ "type": "All" })).await?;
    let before = fleet.words("web", &[("0", "one"), ("1", "one")]).await?;
    fleet.decide("all", 0, &[0]).await?;
    let held = |set: &ManifestWorkReplicaSet| message(set, "PlacementVerified").contains(name);
    let set = seen(&fleet.sets(), "web", held).await?;
    assert_eq!(says(&set, "PlacementVerified"), "True AsExpected");
    let after = fleet.words("web", &[("0", "one"), ("1", "one")]).await?;
    assert_eq!(after["1"].uid(), before["1"].uid());
    // It is back, and it is not wanted there: now it goes.
    available("True").await?;
    fleet.words("web", &[("0", "one")]).await?;
    controllers.stop().await;
    Ok(())
}
