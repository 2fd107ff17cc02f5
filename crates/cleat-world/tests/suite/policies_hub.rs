//! Policies on the hub: where their copies go, what becomes of them, and what the root says. There
//! are no agents: the test writes decisions, answers for clusters, and says how they are.

mod fleet;
mod lookups;
mod moving;
mod rules;
mod secrets;
mod undefined;

use anyhow::Result;
use cleat_api::policy::{Policy, name};
use cleat_api::policyset::PolicySet;
use cleat_world::eventually;
use k8s_openapi::api::core::v1::{ConfigMap, Event, Secret};
use kube::ResourceExt as _;
use kube::api::{Api, ListParams, Patch, PatchParams};
use serde_json::json;

use self::fleet::{Fleet, compliance, message, spec};
use crate::{create, delete, gone, seen};

#[tokio::test]
async fn every_chosen_cluster_gets_a_copy_and_the_root_says_how_it_stands() -> Result<()> {
    let fleet = Fleet::new("spread", 3).await?;
    fleet.policy("p", spec()).await?;
    fleet.bind("p", "all").await?;
    fleet.decide("all", &[0, 1]).await?;
    let copy = fleet.copy(0, "p").await?;
    assert_eq!(copy.labels()[name::ROOT_POLICY], fleet.copied("p"));
    assert_eq!(copy.labels()[name::CLUSTER_NAME], fleet.clusters[0]);
    assert!(copy.owner_references().is_empty() && copy.finalizers().is_empty());
    fleet.copy(1, "p").await?;

    fleet.says(0, "p", "Compliant").await?;
    fleet.says(1, "p", "NonCompliant").await?;
    let root = fleet.root_when("p", |root| compliance(root) == "NonCompliant").await?;
    let status = root.status.unwrap();
    assert_eq!(status.placement[0].placement_binding, "p");
    assert_eq!(status.placement[0].placement, "all");
    let names: Vec<_> = status.status.iter().map(|one| &one.cluster_name).collect();
    assert_eq!(names, [&fleet.clusters[0], &fleet.clusters[1]]);
    fleet.says(1, "p", "Compliant").await?;
    fleet.root_when("p", |root| compliance(root) == "Compliant").await?;

    // What somebody changes on a copy, or takes away, is put right.
    let copies = fleet.copies(0);
    let patch = Patch::Merge(json!({ "spec": { "remediationAction": "enforce" } }));
    copies.patch(&fleet.copied("p"), &PatchParams::default(), &patch).await?;
    let inform = |copy: &Policy| copy.spec.remediation_action.as_deref() == Some("inform");
    seen(&copies, &fleet.copied("p"), inform).await?;
    delete(&copies, &fleet.copied("p")).await?;
    gone(&copies, &copy).await?;
    let copy = fleet.copy(0, "p").await?;
    let events: Api<Event> = fleet.place.api();
    let words = format!("was propagated to cluster {}", fleet.clusters[0]);
    eventually("the event", || async {
        let all = events.list(&ListParams::default()).await?;
        let told = |one: &&Event| one.message.as_ref().is_some_and(|text| text.contains(&words));
        Ok(all.items.iter().find(told).map(|_| ()))
    })
    .await?;

    // Out of the decision, out of the cluster; and all of them when the policy is disabled or gone.
    fleet.decide("all", &[1, 2]).await?;
    gone(&copies, &copy).await?;
    let copy = fleet.copy(2, "p").await?;
    let patch = Patch::Merge(json!({ "spec": { "disabled": true } }));
    fleet.roots().patch("p", &PatchParams::default(), &patch).await?;
    gone(&fleet.copies(2), &copy).await?;
    fleet
        .root_when("p", |root| {
            let status = root.status.as_ref();
            status.is_some_and(|status| status.status.is_empty() && !status.placement.is_empty())
        })
        .await?;
    let patch = Patch::Merge(json!({ "spec": { "disabled": false } }));
    fleet.roots().patch("p", &PatchParams::default(), &patch).await?;
    let copy = fleet.copy(2, "p").await?;
    delete(&fleet.roots(), "p").await?;
    gone(&fleet.copies(2), &copy).await?;
    fleet.tasks.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn numbers_say_how_roots_and_copies_stand() -> Result<()> {
    let fleet = Fleet::new("numbers", 1).await?;
    fleet.policy("p", spec()).await?;
    fleet.bind("p", "all").await?;
    fleet.decide("all", &[0]).await?;
    fleet.says(0, "p", "NonCompliant").await?;
    fleet.root_when("p", |root| compliance(root) == "NonCompliant").await?;
    let line = |cluster: &str, kind: &str| {
        let namespace = &fleet.place.namespace;
        format!(
            "policy_governance_info{{cluster_namespace=\"{cluster}\",policy=\"p\",\
             policy_namespace=\"{namespace}\",type=\"{kind}\"}} 1\n"
        )
    };
    let lines = [line("<null>", "root"), line(&fleet.clusters[0], "propagated")];
    eventually("the numbers", || async {
        let text = fleet.metrics.text();
        Ok(lines.iter().all(|line| text.contains(line)).then_some(()))
    })
    .await?;
    fleet.tasks.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn a_cluster_out_of_reach_that_left_the_placement_keeps_its_copy() -> Result<()> {
    let fleet = Fleet::new("away", 2).await?;
    fleet.policy("p", spec()).await?;
    fleet.bind("p", "all").await?;
    fleet.decide("all", &[0, 1]).await?;
    fleet.copy(0, "p").await?;
    let held = fleet.copy(1, "p").await?;
    fleet.available(1, "Unknown").await?;
    fleet.decide("all", &[0]).await?;
    fleet.root_when("p", |root| message(root, 1).contains("unreachable")).await?;
    assert_eq!(fleet.copy(1, "p").await?.uid(), held.uid());
    let events: Api<Event> = fleet.place.api();
    let warned =
        |one: &Event| one.message.as_ref().is_some_and(|text| text.contains("unreachable"));
    eventually("the event", || async {
        let all = events.list(&ListParams::default()).await?;
        Ok(all.items.iter().any(warned).then_some(()))
    })
    .await?;
    // It is back, and it is not wanted there: now it goes.
    fleet.available(1, "True").await?;
    gone(&fleet.copies(1), &held).await?;
    fleet.root_when("p", |root| root.status.as_ref().is_some_and(|s| s.status.len() == 1)).await?;
    fleet.tasks.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn nothing_goes_because_decisions_cannot_be_relied_on() -> Result<()> {
    let fleet = Fleet::new("unsure", 2).await?;
    fleet.policy("p", spec()).await?;
    fleet.bind("p", "all").await?;
    fleet.decide("all", &[0, 1]).await?;
    let before = [fleet.copy(0, "p").await?, fleet.copy(1, "p").await?];
    // A decision that vanishes is no decision.
    fleet.undecide("all").await?;
    let patch = Patch::Merge(json!({ "spec": { "remediationAction": "enforce" } }));
    fleet.roots().patch("p", &PatchParams::default(), &patch).await?;
    fleet.policy("q", spec()).await?;
    fleet.bind("q", "other").await?;
    fleet.decide("other", &[0]).await?;
    fleet.copy(0, "q").await?;
    for (index, copy) in before.iter().enumerate() {
        assert_eq!(fleet.copy(index, "p").await?.uid(), copy.uid());
    }
    // One for nobody is one.
    fleet.decide("all", &[]).await?;
    for (index, copy) in before.iter().enumerate() {
        gone(&fleet.copies(index), copy).await?;
    }
    fleet.tasks.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn a_copy_that_hangs_is_in_the_status_of_its_root() -> Result<()> {
    let fleet = Fleet::new("hangs", 1).await?;
    fleet.policy("p", spec()).await?;
    fleet.bind("p", "all").await?;
    fleet.decide("all", &[0]).await?;
    let copy = fleet.copy(0, "p").await?;
    let copies = fleet.copies(0);
    let finalizers =
        |list: serde_json::Value| Patch::Merge(json!({ "metadata": { "finalizers": list } }));
    let name = fleet.copied("p");
    copies.patch(&name, &PatchParams::default(), &finalizers(json!(["cleat.dev/test"]))).await?;
    fleet.decide("all", &[]).await?;
    fleet.root_when("p", |root| message(root, 0) == "being removed").await?;
    let said = "Terminating; violation - Failed to delete objects: /v1, Kind=Pod \"x\"";
    let details = json!([{ "templateMeta": { "name": "t" }, "history": [{ "message": said }] }]);
    let patch =
        Patch::Merge(json!({ "status": { "compliant": "NonCompliant", "details": details } }));
    copies.patch_status(&name, &PatchParams::default(), &patch).await?;
    fleet.root_when("p", |root| message(root, 0).contains(said)).await?;
    let events: Api<Event> = fleet.place.api();
    eventually("the event", || async {
        let all = events.list(&ListParams::default()).await?;
        let told = |one: &Event| one.message.as_ref().is_some_and(|text| text.contains(said));
        Ok(all.items.iter().any(told).then_some(()))
    })
    .await?;
    copies.patch(&name, &PatchParams::default(), &finalizers(json!([]))).await?;
    gone(&copies, &copy).await?;
    fleet.root_when("p", |root| root.status.as_ref().is_some_and(|s| s.status.is_empty())).await?;
    fleet.tasks.shutdown().await;
    Ok(())
}

/// It was once told in the root's namespace, which may be gone as well, or not at all.
#[tokio::test]
async fn a_copy_that_hangs_is_told_of_in_an_event_on_it_when_its_root_is_gone() -> Result<()> {
    let fleet = Fleet::new("hangs-alone", 1).await?;
    fleet.policy("p", spec()).await?;
    fleet.bind("p", "all").await?;
    fleet.decide("all", &[0]).await?;
    let copy = fleet.copy(0, "p").await?;
    let (copies, name) = (fleet.copies(0), fleet.copied("p"));
    let finalizers =
        |list: serde_json::Value| Patch::Merge(json!({ "metadata": { "finalizers": list } }));
    copies.patch(&name, &PatchParams::default(), &finalizers(json!(["cleat.dev/test"]))).await?;
    delete(&fleet.roots(), "p").await?;
    seen(&copies, &name, |copy: &Policy| copy.metadata.deletion_timestamp.is_some()).await?;
    let said = "Terminating; violation - Failed to delete objects: /v1, Kind=Pod \"x\"";
    let details = json!([{ "templateMeta": { "name": "t" }, "history": [{ "message": said }] }]);
    let patch =
        Patch::Merge(json!({ "status": { "compliant": "NonCompliant", "details": details } }));
    copies.patch_status(&name, &PatchParams::default(), &patch).await?;
    let events: Api<Event> = Api::namespaced(fleet.place.client.clone(), &fleet.clusters[0]);
    let event = eventually("the event", || async {
        let all = events.list(&ListParams::default()).await?;
        let told = |one: &Event| one.message.as_ref().is_some_and(|text| text.contains(said));
        Ok(all.items.into_iter().find(told))
    })
    .await?;
    assert_eq!(event.type_.as_deref(), Some("Warning"));
    assert_eq!(
        (event.involved_object.name, event.involved_object.uid),
        (Some(name.clone()), copy.uid())
    );
    copies.patch(&name, &PatchParams::default(), &finalizers(json!([]))).await?;
    gone(&copies, &copy).await?;
    fleet.tasks.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn sets_place_their_policies_and_say_how_they_stand() -> Result<()> {
    let fleet = Fleet::new("sets-of", 2).await?;
    let sets: Api<PolicySet> = fleet.place.api();
    let exclusions =
        json!([{ "policyName": "q", "clusterNames": [fleet.clusters[1]], "reason": "old" }]);
    let set = json!({
        "metadata": { "name": "s" },
        "spec": { "policies": ["p", "q", "none"], "exclusions": exclusions },
    });
    create(&sets, set).await?;
    for policy in ["p", "q"] {
        fleet.policy(policy, spec()).await?;
    }
    let over = json!({ "remediationAction": "enforce" });
    fleet.bind_with("s", "all", "PolicySet", json!({ "bindingOverrides": over })).await?;
    fleet.decide("all", &[0, 1]).await?;
    let copy = fleet.copy(0, "p").await?;
    assert_eq!(copy.spec.remediation_action.as_deref(), Some("enforce"));
    fleet.copy(1, "p").await?;
    fleet.copy(0, "q").await?;
    assert!(fleet.copies(1).get_opt(&fleet.copied("q")).await?.is_none());
    for (cluster, policy) in [(0, "p"), (1, "p"), (0, "q")] {
        fleet.says(cluster, policy, "Compliant").await?;
    }
    let set = seen(&sets, "s", |set: &PolicySet| {
        set.status.as_ref().is_some_and(|status| status.compliant.as_deref() == Some("Compliant"))
    })
    .await?;
    assert_eq!(
        set.status.unwrap().status_message.unwrap(),
        "Deleted policies: none; One or more policies were excluded. \
         For details, see status.exclusions."
    );
    fleet.tasks.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn templates_are_resolved_for_each_cluster_and_again_when_what_they_read_changes()
-> Result<()> {
    let fleet = Fleet::new("hub-templates", 2).await?;
    let maps: Api<ConfigMap> = fleet.place.api();
    let secrets: Api<Secret> = fleet.place.api();
    create(&maps, json!({ "metadata": { "name": "words" }, "data": { "key": "one" } })).await?;
    create(&secrets, json!({ "metadata": { "name": "quiet" }, "stringData": { "key": "hush" } }))
        .await?;
    let mut spec = spec();
    spec["policy-templates"][0]["objectDefinition"]["spec"]["severity"] =
        json!("{{hub .ManagedClusterName hub}} {{hub fromConfigMap \"\" \"words\" \"key\" hub}}");
    spec["policy-templates"][0]["objectDefinition"]["spec"]["secret"] =
        json!("{{hub fromSecret \"\" \"quiet\" \"key\" hub}}");
    fleet.policy("p", spec).await?;
    fleet.bind("p", "all").await?;
    fleet.decide("all", &[0, 1]).await?;
    let copies = fleet.copies(1);
    let word = |copy: &Policy, field: &str| {
        let definition = &copy.spec.policy_templates[0].object_definition;
        definition["spec"][field].as_str().unwrap_or_default().to_owned()
    };
    let wanted = format!("{} one", fleet.clusters[1]);
    let copy = seen(&copies, &fleet.copied("p"), |copy| word(copy, "severity") == wanted).await?;
    assert!(word(&copy, "secret").starts_with("$ocm_encrypted:"), "{copy:?}");
    let iv = copy.annotations()["policy.open-cluster-management.io/encryption-iv"].clone();
    let keys: Api<Secret> = Api::namespaced(fleet.place.client.clone(), &fleet.clusters[1]);
    assert_eq!(keys.get(name::ENCRYPTION_KEY_SECRET).await?.data.unwrap()["key"].0.len(), 32);

    let patch = Patch::Merge(json!({ "data": { "key": "two" } }));
    maps.patch("words", &PatchParams::default(), &patch).await?;
    let wanted = format!("{} two", fleet.clusters[1]);
    let copy = seen(&copies, &fleet.copied("p"), |copy| word(copy, "severity") == wanted).await?;
    assert_eq!(copy.annotations()["policy.open-cluster-management.io/encryption-iv"], iv);

    // What cannot be resolved says so on the template, and is resolved once it can be.
    delete(&maps, "words").await?;
    let broken = |copy: &Policy| {
        let definition = &copy.spec.policy_templates[0].object_definition;
        definition["metadata"]["annotations"][name::HUB_TEMPLATES_ERROR].is_string()
    };
    seen(&copies, &fleet.copied("p"), broken).await?;
    fleet.root_when("p", |root| message(root, 1).contains("Failed to resolve")).await?;
    create(&maps, json!({ "metadata": { "name": "words" }, "data": { "key": "three" } })).await?;
    let wanted = format!("{} three", fleet.clusters[1]);
    seen(&copies, &fleet.copied("p"), |copy| word(copy, "severity") == wanted).await?;
    fleet.tasks.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn a_hub_that_was_away_takes_back_what_lost_its_root() -> Result<()> {
    let mut fleet = Fleet::new("orphans", 1).await?;
    fleet.policy("p", spec()).await?;
    fleet.bind("p", "all").await?;
    fleet.decide("all", &[0]).await?;
    let copy = fleet.copy(0, "p").await?;
    fleet.tasks.shutdown().await;
    delete(&fleet.roots(), "p").await?;
    assert_eq!(fleet.copy(0, "p").await?.uid(), copy.uid());
    fleet.start();
    gone(&fleet.copies(0), &copy).await?;
    fleet.tasks.shutdown().await;
    Ok(())
}
