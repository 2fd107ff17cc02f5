//! What stays and what goes, as `deleteOption` says, whenever it says so.

use anyhow::Result;
use cleat_api::appliedmanifestwork::Claim;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use cleat_world::fleet::{Fleet, condition_of, holders};

/// Ways to ask, each for an object of its own, and whether that object stays.
fn options(namespace: &str) -> Vec<(&'static str, Value, bool)> {
    let shipped = |name: &str| {
        json!({
            "propagationPolicy": "SelectivelyOrphan",
            "selectivelyOrphans": { "orphaningRules": [
                { "group": "", "resource": "configmaps", "namespace": namespace, "name": name },
            ] },
        })
    };
    let proposed = |name: &str| {
        json!({
            "propagationPolicy": "SelectivelyOrphan",
            "selectivelyOrphan": [
                { "resource": "configmaps", "resourceNamespace": namespace, "resourceName": name },
            ],
        })
    };
    vec![
        ("absent", Value::Null, false),
        ("empty", json!({}), false),
        ("foreground", json!({ "propagationPolicy": "Foreground" }), false),
        ("orphan", json!({ "propagationPolicy": "Orphan" }), true),
        ("shipped", shipped("shipped"), true),
        ("proposed", proposed("proposed"), true),
        ("of-another", shipped("shipped"), false),
        ("a-star-is-a-name", shipped("*"), false),
        ("no-rules", json!({ "propagationPolicy": "SelectivelyOrphan" }), false),
    ]
}

async fn ask_each(fleet: &Fleet, more: impl Fn(&str) -> Vec<Value>) -> Result<()> {
    for (name, option, _) in options(&fleet.name) {
        let spec = if option.is_null() { json!({}) } else { json!({ "deleteOption": option }) };
        let mut manifests = vec![fleet.map(name, "1")];
        manifests.extend(more(name));
        fleet.work(name, manifests, spec).await?;
    }
    for (name, _, stays) in options(&fleet.name) {
        fleet.told(name, "Applied", "True").await?;
        let held = holders(&fleet.maps().get(name).await?);
        assert_eq!(held.is_empty(), stays, "{name}: {held:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_deleted_work_keeps_what_each_option_says() -> Result<()> {
    let fleet = Fleet::start("options").await?;
    ask_each(&fleet, |_| vec![]).await?;
    for (name, _, stays) in options(&fleet.name) {
        fleet.end(name).await?;
        assert_eq!(fleet.maps().get_opt(name).await?.is_some(), stays, "{name}");
        assert!(fleet.ledgers().get_opt(&fleet.ledger_name(name)).await?.is_none(), "{name}");
    }
    Ok(())
}

#[tokio::test]
async fn what_leaves_the_manifests_stays_or_goes_as_each_option_says() -> Result<()> {
    let fleet = Fleet::start("leaving").await?;
    let rest = |name: &str| fleet.map(&format!("{name}-rest"), "1");
    ask_each(&fleet, |name| vec![rest(name)]).await?;
    for (name, _, stays) in options(&fleet.name) {
        fleet.rewrite(name, vec![rest(name)]).await?;
        let ledger = fleet.ledger_name(name);
        let only_rest = |ledger: &cleat_api::appliedmanifestwork::AppliedManifestWork| {
            ledger.spec.claims.iter().flat_map(Claim::all_names).all(|one| one != name)
        };
        fleet.seen(&fleet.ledgers(), &ledger, only_rest).await?;
        assert_eq!(fleet.maps().get_opt(name).await?.is_some(), stays, "{name}");
    }
    Ok(())
}

async fn flip(fleet: &Fleet, work: &str, policy: &str) -> Result<()> {
    let option = json!({ "spec": { "deleteOption": { "propagationPolicy": policy } } });
    fleet.patch(work, option).await?;
    Ok(())
}

#[tokio::test]
async fn a_policy_may_change_back_and_forth() -> Result<()> {
    let fleet = Fleet::start("flips").await?;
    for (work, last, stays) in [("ends-owned", "Foreground", false), ("ends-kept", "Orphan", true)]
    {
        fleet.work(work, vec![fleet.map(work, "1")], json!({})).await?;
        fleet.told(work, "Applied", "True").await?;
        let uid = fleet.maps().get(work).await?.metadata.uid;
        for policy in ["Orphan", "Foreground", "Orphan", "Foreground", last] {
            flip(&fleet, work, policy).await?;
            let marks = usize::from(policy == "Foreground");
            fleet.seen(&fleet.maps(), work, |map| holders(map).len() == marks).await?;
        }
        assert_eq!(fleet.maps().get(work).await?.metadata.uid, uid);
        fleet.end(work).await?;
        assert_eq!(fleet.maps().get_opt(work).await?.is_some(), stays, "{work}");
    }
    Ok(())
}

#[tokio::test]
async fn a_policy_changed_and_the_work_deleted_at_once_counts_as_changed() -> Result<()> {
    let mut fleet = Fleet::start("at-once").await?;
    let orphan = json!({ "deleteOption": { "propagationPolicy": "Orphan" } });
    fleet.work("to-keep", vec![fleet.map("to-keep", "1")], json!({})).await?;
    fleet.work("to-take", vec![fleet.map("to-take", "1")], orphan).await?;
    for work in ["to-keep", "to-take"] {
        fleet.told(work, "Applied", "True").await?;
    }
    fleet.seen(&fleet.ledgers(), &fleet.ledger_name("to-take"), recorded).await?;
    fleet.stop_agent().await;
    flip(&fleet, "to-keep", "Orphan").await?;
    flip(&fleet, "to-take", "Foreground").await?;
    for work in ["to-keep", "to-take"] {
        fleet.delete(work).await?;
    }
    fleet.start_agent(fleet.config());
    for work in ["to-keep", "to-take"] {
        fleet.absent(&fleet.works(), work).await?;
    }
    assert!(holders(&fleet.maps().get("to-keep").await?).is_empty());
    assert!(fleet.maps().get_opt("to-take").await?.is_none());
    Ok(())
}

fn recorded(ledger: &cleat_api::appliedmanifestwork::AppliedManifestWork) -> bool {
    ledger.status.as_ref().is_some_and(|status| !status.applied_resources.is_empty())
}

#[tokio::test]
async fn a_completed_work_still_hears_what_is_to_stay() -> Result<()> {
    let fleet = Fleet::start("complete").await?;
    fleet.work("one", vec![fleet.map("a", "1")], json!({})).await?;
    let work = fleet.told("one", "Applied", "True").await?;
    let mut conditions = work.status.unwrap().conditions;
    let mut complete = conditions[0].clone();
    complete.type_ = "Complete".into();
    conditions.push(complete);
    let patch = Patch::Merge(json!({ "status": { "conditions": conditions } }));
    fleet.works().patch_status("one", &PatchParams::default(), &patch).await?;
    flip(&fleet, "one", "Orphan").await?;
    // It is on record before anybody asks for it.
    let kept = |ledger: &cleat_api::appliedmanifestwork::AppliedManifestWork| {
        ledger.spec.claims.iter().all(|claim| claim.kept)
    };
    fleet.seen(&fleet.ledgers(), &fleet.ledger_name("one"), kept).await?;
    fleet.end("one").await?;
    assert!(holders(&fleet.maps().get("a").await?).is_empty());
    Ok(())
}

#[tokio::test]
async fn what_was_to_stay_when_the_deletion_began_stays_whatever_the_work_says_since() -> Result<()>
{
    let fleet = Fleet::start("latched").await?;
    let read_only = |name: &str| {
        let identifier = json!({ "resource": "configmaps", "namespace": fleet.name, "name": name });
        json!([{ "resourceIdentifier": identifier, "updateStrategy": { "type": "ReadOnly" } }])
    };
    fleet.work("one", vec![fleet.map("a", "1"), fleet.map("b", "1")], json!({})).await?;
    fleet.told("one", "Applied", "True").await?;
    fleet.seen(&fleet.ledgers(), &fleet.ledger_name("one"), recorded).await?;
    fleet.patch("one", json!({ "spec": { "manifestConfigs": read_only("a") } })).await?;
    fleet.seen(&fleet.maps(), "a", |map| holders(map).is_empty()).await?;
    let hold = Patch::Merge(json!({ "metadata": { "finalizers": ["example.com/hold"] } }));
    fleet.maps().patch("b", &PatchParams::default(), &hold).await?;
    fleet.delete("one").await?;
    fleet.says("one", "Deleting", "1 object remains").await?;
    // The strategy is taken back when it is too late: what was let go of is not taken again.
    fleet.patch("one", json!({ "spec": { "manifestConfigs": null } })).await?;
    let release = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    fleet.maps().patch("b", &PatchParams::default(), &release).await?;
    fleet.absent(&fleet.works(), "one").await?;
    assert!(fleet.maps().get_opt("a").await?.is_some());
    assert!(fleet.maps().get_opt("b").await?.is_none());
    Ok(())
}

#[tokio::test]
async fn a_work_that_cannot_be_applied_still_hears_what_is_to_stay() -> Result<()> {
    let fleet = Fleet::start("failing").await?;
    let unknown = json!({
        "apiVersion": "nowhere.example/v1", "kind": "Nothing", "metadata": { "name": "x" },
    });
    fleet.work("one", vec![fleet.map("a", "1"), unknown], json!({})).await?;
    let work = fleet.told("one", "Applied", "False").await?;
    assert_eq!(condition_of(&work, "Applied").unwrap().reason, "AppliedManifestWorkFailed");
    fleet.seen(&fleet.maps(), "a", |map| holders(map).len() == 1).await?;
    flip(&fleet, "one", "Orphan").await?;
    fleet.end("one").await?;
    assert!(holders(&fleet.maps().get("a").await?).is_empty());
    Ok(())
}

#[tokio::test]
async fn an_option_that_contradicts_itself_deletes_nothing() -> Result<()> {
    let fleet = Fleet::start("contradicts").await?;
    fleet.work("one", vec![fleet.map("a", "1")], json!({})).await?;
    fleet.told("one", "Applied", "True").await?;
    let rule =
        |name: &str| json!({ "resource": "configmaps", "namespace": fleet.name, "name": name });
    let option = json!({ "spec": { "deleteOption": {
        "propagationPolicy": "SelectivelyOrphan",
        "selectivelyOrphans": { "orphaningRules": [rule("a")] },
        "selectivelyOrphan": [rule("b")],
    }}});
    fleet.patch("one", option).await?;
    fleet.delete("one").await?;
    fleet.says("one", "Deleting", "neither deleted nor kept").await?;
    assert_eq!(holders(&fleet.maps().get("a").await?).len(), 1);
    fleet
        .patch("one", json!({ "spec": { "deleteOption": { "selectivelyOrphan": null } } }))
        .await?;
    fleet.absent(&fleet.works(), "one").await?;
    assert!(holders(&fleet.maps().get("a").await?).is_empty());
    Ok(())
}
