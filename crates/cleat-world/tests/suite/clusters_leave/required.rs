//! Required: everything goes, in order, and is seen gone; what cannot go is named.

use anyhow::{Context as _, Result};
use cleat_api::managedcluster::RemoveStrategy::Required;
use cleat_api::manifestwork::ManifestWork;
use cleat_core::registration::access::Part;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::{Api, Patch};
use serde_json::{Value, json};

use super::guard::Guard;
use super::party::Party;
use crate::protection::Kept;
use crate::{create, delete, seen};

pub(super) fn definition(group: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("gears.{group}") },
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": { "plural": "gears", "singular": "gear", "kind": "Gear", "listKind": "GearList" },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                } },
            }],
        },
    })
}

pub(super) fn gear(group: &str, namespace: &str) -> Value {
    json!({
        "apiVersion": format!("{group}/v1"), "kind": "Gear",
        "metadata": { "name": "g", "namespace": namespace },
    })
}

fn orphan() -> Value {
    json!({ "deleteOption": { "propagationPolicy": "Orphan" } })
}

#[tokio::test]
async fn everything_goes_in_order_and_then_the_place_on_the_hub() -> Result<()> {
    let mut party = Party::new("leave", Required).await?;
    let group = format!("{}.example", party.name);
    let inner = format!("{}-in", party.name);
    let namespace =
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": inner } });
    party.work("ground", vec![namespace, definition(&group)], json!({})).await?;
    party.work("gears", vec![gear(&group, &inner)], json!({})).await?;
    party.work("maps", vec![party.map("a"), party.map("b")], json!({})).await?;
    party.leave().await?;
    party.left().await?;
    party.no_ledgers().await?;
    assert!(party.maps().get_opt("a").await?.is_none());
    let definitions: Api<CustomResourceDefinition> = Api::all(party.cluster.clone());
    assert!(definitions.get_opt(&format!("gears.{group}")).await?.is_none());
    let namespaces: Api<Namespace> = Api::all(party.cluster.clone());
    assert!(namespaces.get_opt(&inner).await?.is_none());
    let roles: Api<ClusterRole> = Api::all(party.fleet.hub.clone());
    let role = Part::Role.target(&party.name).id.name;
    assert!(roles.get_opt(&role).await?.is_none(), "its access is left");
    assert_eq!(party.on_record().await?, [], "nothing was to be kept");
    cleat_world::within("the agent to end", party.presence.until_left()).await?;
    party.stop_agent().await;
    Ok(())
}

#[tokio::test]
async fn what_is_denied_is_named_and_goes_when_the_denial_ends() -> Result<()> {
    let mut party = Party::new("denied", Required).await?;
    party.work("shop", vec![party.map("orders"), party.map("free")], json!({})).await?;
    party.work("other", vec![party.map("other")], json!({})).await?;
    let guard = Guard::refusing(&party, "orders").await?;
    party.leave().await?;
    let said = party.says("UnjoinFailed", "True", "orders").await?;
    assert!(said.starts_with(&format!("work shop: configmaps {}/orders (", party.name)), "{said}");
    assert!(said.contains("orders are open"), "{said}");
    party.says("Unjoining", "True", "1 configmaps").await?;
    // One bad object stops no other, and the agent keeps its rights.
    party.absent("free").await?;
    party.absent("other").await?;
    party.maps().get("orders").await.context("it was denied")?;
    guard.allow();
    party.left().await?;
    party.no_ledgers().await?;
    assert!(party.maps().get_opt("orders").await?.is_none());
    party.stop_agent().await;
    guard.remove().await
}

/// What an agent may do that may delete nothing but what it noted itself.
fn without_deletes(name: &str) -> Value {
    let verbs = ["get", "list", "watch", "create", "update", "patch"];
    json!({
        "metadata": { "name": name },
        "rules": [
            { "apiGroups": ["*"], "resources": ["*"], "verbs": verbs },
            { "apiGroups": ["work.open-cluster-management.io"], "resources": ["*"], "verbs": ["*"] },
            { "nonResourceURLs": ["*"], "verbs": ["get"] },
        ],
    })
}

#[tokio::test]
async fn what_an_agent_has_no_right_to_delete_is_named_and_goes_when_it_has() -> Result<()> {
    let mut party = Party::new("rightless", Required).await?;
    party.work("shop", vec![party.map("orders")], json!({})).await?;
    party.work("kept", vec![party.map("kept")], orphan()).await?;
    party.stop_agent().await;
    let user = format!("agent-of-{}", party.name);
    let roles: Api<ClusterRole> = Api::all(party.cluster.clone());
    create(&roles, without_deletes(&user)).await?;
    let bindings: Api<ClusterRoleBinding> = Api::all(party.cluster.clone());
    let group = "rbac.authorization.k8s.io";
    create(
        &bindings,
        json!({
            "metadata": { "name": user },
            "roleRef": { "apiGroup": group, "kind": "ClusterRole", "name": user },
            "subjects": [{ "apiGroup": group, "kind": "User", "name": user }],
        }),
    )
    .await?;
    let (_link, mut config) = party.fleet.world.clusters[0].link().await?;
    config.auth_info.impersonate = Some(user.clone());
    party.start_agent_on(Client::try_from(config)?);
    party.leave().await?;
    let said = party.says("UnjoinFailed", "True", "orders").await?;
    assert!(said.starts_with(&format!("work shop: configmaps {}/orders (", party.name)), "{said}");
    assert!(said.contains("forbidden") && said.contains(&user), "{said}");
    party.maps().get("orders").await.context("nobody was allowed to delete it")?;
    let mut more = without_deletes(&user);
    more["rules"][0]["verbs"] = json!(["*"]);
    roles.patch(&user, &Default::default(), &Patch::Merge(more)).await?;
    party.left().await?;
    party.no_ledgers().await?;
    assert!(party.maps().get_opt("orders").await?.is_none());
    party.maps().get("kept").await.context("it was declared to stay")?;
    party.stop_agent().await;
    delete(&bindings, &user).await?;
    delete(&roles, &user).await
}

#[tokio::test]
async fn a_finalizer_without_an_owner_is_waited_for_and_named() -> Result<()> {
    let mut party = Party::new("held", Required).await?;
    party.work("w", vec![party.map("held")], json!({})).await?;
    let hold = json!({ "metadata": { "finalizers": ["nobody.example/hold"] } });
    party.maps().patch("held", &Default::default(), &Patch::Merge(hold)).await?;
    party.leave().await?;
    seen(&party.works(), "w", |work: &ManifestWork| {
        let removal = work.status.as_ref().and_then(|status| status.removal.as_ref());
        removal.is_some_and(|removal| {
            let named = |why: &str| why.contains("nobody.example/hold");
            removal.blocked.iter().any(|one| named(&one.why) && one.since.is_some())
        })
    })
    .await?;
    party.fleet.clusters().get(&party.name).await.context("it has not left")?;
    let free = json!({ "metadata": { "finalizers": null } });
    party.maps().patch("held", &Default::default(), &Patch::Merge(free)).await?;
    party.left().await?;
    party.stop_agent().await;
    Ok(())
}

#[tokio::test]
async fn what_a_critical_service_keeps_is_waited_for_and_named() -> Result<()> {
    let mut party = Party::new("kept", Required).await?;
    party.work("w", vec![party.map("kept")], json!({})).await?;
    let protected = Kept::start(&party.fleet.world, &party.cluster, &party.name).await?;
    party.leave().await?;
    seen(&party.works(), "w", |work: &ManifestWork| {
        let removal = work.status.as_ref().and_then(|status| status.removal.as_ref());
        let blocked = removal.map(|removal| removal.blocked.as_slice()).unwrap_or_default();
        blocked.iter().any(|one| one.why.contains(&protected.says()))
    })
    .await?;
    party.maps().get("kept").await.context("it is protected")?;
    protected.release().await?;
    party.left().await?;
    assert!(party.maps().get_opt("kept").await?.is_none());
    party.stop_agent().await;
    protected.end().await
}

#[tokio::test]
async fn what_somebody_made_anew_stays_and_is_listed() -> Result<()> {
    let mut party = Party::new("anew", Required).await?;
    party.work("w", vec![party.map("m")], json!({})).await?;
    party.stop_agent().await;
    party.leave().await?;
    let old = party.maps().get("m").await?;
    delete(&party.maps(), "m").await?;
    crate::gone(&party.maps(), &old).await?;
    let fresh = create(&party.maps(), json!({ "metadata": { "name": "m" } })).await?;
    party.start_agent();
    party.left().await?;
    assert_eq!(party.maps().get("m").await?.metadata.uid, fresh.metadata.uid);
    let left = party.on_record().await?;
    assert_eq!(left.len(), 1, "{left:?}");
    assert_eq!(left[0].why, "somebody made it anew");
    party.stop_agent().await;
    Ok(())
}

#[tokio::test]
async fn a_namespace_with_foreign_content_and_what_is_declared_to_stay_are_kept_and_listed()
-> Result<()> {
    let mut party = Party::new("foreign", Required).await?;
    let inner = format!("{}-in", party.name);
    let namespace =
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": inner } });
    let ours = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "ours", "namespace": inner },
    });
    party.work("w", vec![namespace, ours], json!({})).await?;
    party.work("kept", vec![party.map("kept")], orphan()).await?;
    let maps: Api<ConfigMap> = Api::namespaced(party.cluster.clone(), &inner);
    create(&maps, json!({ "metadata": { "name": "theirs" } })).await?;
    party.leave().await?;
    party.left().await?;
    maps.get("theirs").await.context("it is not ours")?;
    assert!(maps.get_opt("ours").await?.is_none());
    let kept = party.maps().get("kept").await?;
    assert_eq!(kept.metadata.owner_references.unwrap_or_default(), []);
    let left = party.on_record().await?;
    let names: Vec<_> = left.iter().map(|one| (&*one.resource, &*one.name, &*one.why)).collect();
    let why = format!("it holds what is not ours: configmaps {inner}/theirs");
    assert_eq!(
        names,
        [("configmaps", "kept", "kept by deleteOption"), ("namespaces", &*inner, &*why)]
    );
    assert!(left.iter().all(|one| !one.uid.is_empty() && !one.source.is_empty()), "{left:?}");
    let said = party.fleet.clusters().get_opt(&party.name).await?;
    assert!(said.is_none());
    party.stop_agent().await;
    Ok(())
}

/// It belongs to something without a namespace, of a kind that is not known to have none.
#[tokio::test]
async fn what_belongs_to_something_that_lives_outside_of_our_namespace_held_a_leave_up_for_ever()
-> Result<()> {
    let mut party = Party::new("outside", Required).await?;
    let inner = format!("{}-in", party.name);
    let namespace =
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": inner } });
    party.work("w", vec![namespace], json!({})).await?;
    let classes: Api<PriorityClass> = Api::all(party.cluster.clone());
    let class = json!({ "metadata": { "name": party.name }, "value": 1 });
    let class = create(&classes, class).await?;
    let maps: Api<ConfigMap> = Api::namespaced(party.cluster.clone(), &inner);
    let theirs = json!({ "metadata": { "name": "theirs", "ownerReferences": [{
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
        "name": party.name, "uid": class.metadata.uid,
    }] } });
    create(&maps, theirs).await?;
    party.leave().await?;
    party.left().await?;
    maps.get("theirs").await.context("its owner lives")?;
    let left = party.on_record().await?;
    let listed: Vec<_> = left.iter().map(|one| (&*one.name, &*one.why)).collect();
    let why = format!("it holds what is not ours: configmaps {inner}/theirs");
    assert_eq!(listed, [(&*inner, &*why)]);
    party.stop_agent().await;
    delete(&classes, &party.name).await
}

#[tokio::test]
async fn what_another_hub_holds_as_well_stays_for_it() -> Result<()> {
    use cleat_api::appliedmanifestwork::AppliedManifestWork;
    let mut party = Party::new("second", Required).await?;
    party.work("w", vec![party.map("shared"), party.map("own")], json!({})).await?;
    let ledgers: Api<AppliedManifestWork> = Api::all(party.cluster.clone());
    let theirs = create(
        &ledgers,
        json!({
            "apiVersion": "work.open-cluster-management.io/v1", "kind": "AppliedManifestWork",
            "metadata": { "name": format!("other-hub-{}", party.name) },
            "spec": { "hubHash": "other-hub", "agentID": "other", "manifestWorkName": party.name },
        }),
    )
    .await?;
    let mut owners =
        party.maps().get("shared").await?.metadata.owner_references.unwrap_or_default();
    let ours = serde_json::to_value(&owners)?;
    owners.clear();
    let mut owners = ours.as_array().cloned().unwrap_or_default();
    owners.push(json!({
        "apiVersion": "work.open-cluster-management.io/v1", "kind": "AppliedManifestWork",
        "name": theirs.metadata.name, "uid": theirs.metadata.uid,
    }));
    let patch = json!({ "metadata": { "ownerReferences": owners } });
    party.maps().patch("shared", &Default::default(), &Patch::Merge(patch)).await?;
    party.leave().await?;
    party.left().await?;
    let shared = party.maps().get("shared").await.context("the other hub holds it")?;
    let owners = shared.metadata.owner_references.unwrap_or_default();
    assert_eq!(
        owners.iter().map(|one| &*one.name).collect::<Vec<_>>(),
        [theirs.metadata.name.as_deref().unwrap_or_default()]
    );
    ledgers.get(theirs.metadata.name.as_deref().unwrap_or_default()).await?;
    assert!(party.maps().get_opt("own").await?.is_none());
    let left = party.on_record().await?;
    assert_eq!(left.iter().map(|one| &*one.why).collect::<Vec<_>>(), ["another work holds it"]);
    party.stop_agent().await;
    Ok(())
}

/// Two hubs with an agent each, and one cluster.
#[tokio::test]
async fn what_the_agent_of_another_hub_looks_after_stays_until_that_one_leaves() -> Result<()> {
    let mut party = Party::new("first", Required).await?;
    let mut other = Party::new("other", Required).await?;
    other.stop_agent().await;
    other.start_agent_on(party.cluster.clone());
    party.work("w", vec![party.map("shared"), party.map("own")], json!({})).await?;
    other.work("w", vec![party.map("shared"), party.map("theirs")], json!({})).await?;
    let shared = party.maps().get("shared").await?;
    let owners = shared.metadata.owner_references.unwrap_or_default();
    assert_eq!(owners.len(), 2, "{owners:?}");
    party.leave().await?;
    party.left().await?;
    party.stop_agent().await;
    let kept = party.maps().get("shared").await.context("the other hub holds it")?;
    assert_eq!((kept.metadata.uid, kept.metadata.deletion_timestamp), (shared.metadata.uid, None));
    party.maps().get("theirs").await.context("it is the other hub's")?;
    assert!(party.maps().get_opt("own").await?.is_none());
    let left = party.on_record().await?;
    let left: Vec<_> = left.iter().map(|one| (&*one.name, &*one.why)).collect();
    assert_eq!(left, [("shared", "another work holds it")]);
    party.no_ledgers().await?;
    other.leave().await?;
    other.left().await?;
    other.stop_agent().await;
    for name in ["shared", "theirs"] {
        assert!(party.maps().get_opt(name).await?.is_none(), "{name} is left");
    }
    assert_eq!(other.on_record().await?, []);
    Ok(())
}

#[tokio::test]
async fn a_definition_that_went_before_its_resources_blocks_nothing() -> Result<()> {
    let mut party = Party::new("undefined", Required).await?;
    let group = format!("{}.example", party.name);
    party.work("ground", vec![definition(&group)], json!({})).await?;
    party.work("gears", vec![gear(&group, &party.name)], json!({})).await?;
    party.stop_agent().await;
    party.leave().await?;
    let definitions: Api<CustomResourceDefinition> = Api::all(party.cluster.clone());
    let crd = definitions.get(&format!("gears.{group}")).await?;
    delete(&definitions, &format!("gears.{group}")).await?;
    crate::gone(&definitions, &crd).await?;
    party.start_agent();
    party.left().await?;
    party.no_ledgers().await?;
    party.stop_agent().await;
    Ok(())
}
