//! Placement rules, which are their own decisions, and a hub that does not have the kind.

use anyhow::Result;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::ResourceExt as _;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::runtime::wait::{await_condition, conditions};
use serde_json::{Value, json};

use super::fleet::{Fleet, message, spec};
use super::undefined::younger_than;
use crate::undefine::undefine;
use crate::{gone, parse};
use cleat_world::within;

const DEFINITION: &str = "placementrules.apps.open-cluster-management.io";

fn rules(fleet: &Fleet) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("apps.open-cluster-management.io", "v1", "PlacementRule");
    let kind = ApiResource::from_gvk_with_plural(&kind, "placementrules");
    Api::namespaced_with(fleet.place.client.clone(), &fleet.place.namespace, &kind)
}

/// As far as policies need it.
async fn define(fleet: &Fleet) -> Result<()> {
    let open = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": DEFINITION },
        "spec": {
            "group": "apps.open-cluster-management.io", "scope": "Namespaced",
            "names": {
                "kind": "PlacementRule", "plural": "placementrules", "singular": "placementrule",
                "listKind": "PlacementRuleList",
            },
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": {
                    "type": "object", "properties": { "spec": open, "status": open },
                } },
            }],
        },
    });
    let definitions: Api<CustomResourceDefinition> = Api::all(fleet.place.client.clone());
    let params = PatchParams::apply("test").force();
    definitions.patch(DEFINITION, &params, &Patch::Apply(definition)).await?;
    let established = conditions::is_crd_established();
    within("the kind", await_condition(definitions, DEFINITION, established)).await??;
    Ok(())
}

/// A rule that has not decided.
async fn make(fleet: &Fleet) -> Result<()> {
    let rules = rules(fleet);
    let rule: DynamicObject = parse(json!({
        "apiVersion": "apps.open-cluster-management.io/v1", "kind": "PlacementRule",
        "metadata": { "name": "old" }, "spec": {},
    }));
    within("the kind", async {
        // A server may say that it has a kind a moment before it answers for it.
        while let Err(error) = rules.create(&PostParams::default(), &rule).await {
            let kube::Error::Api(status) = &error else { return Err(error) };
            if status.code != 404 {
                return Err(error);
            }
            tokio::task::yield_now().await;
        }
        Ok(())
    })
    .await??;
    Ok(())
}

async fn decide(fleet: &Fleet, status: Value) -> Result<()> {
    let patch = Patch::Merge(json!({ "status": status }));
    rules(fleet).patch_status("old", &PatchParams::default(), &patch).await?;
    Ok(())
}

async fn choose(fleet: &Fleet, clusters: &[usize]) -> Result<()> {
    let chosen = |index: &usize| {
        let name = &fleet.clusters[*index];
        json!({ "clusterName": name, "clusterNamespace": name })
    };
    let chosen: Vec<Value> = clusters.iter().map(chosen).collect();
    decide(fleet, json!({ "decisions": chosen })).await
}

fn reference(name: &str) -> Value {
    json!({ "placementRef": {
        "apiGroup": "apps.open-cluster-management.io", "kind": "PlacementRule", "name": name,
    } })
}

#[tokio::test]
async fn a_placement_rule_places_and_one_that_chooses_nobody_takes_away() -> Result<()> {
    let fleet = Fleet::new("rules", 2).await?;
    define(&fleet).await?;
    make(&fleet).await?;
    fleet.policy("p", spec()).await?;
    fleet.bind_with("p", "old", "Policy", reference("old")).await?;
    choose(&fleet, &[0, 1]).await?;
    let copies = [fleet.copy(0, "p").await?, fleet.copy(1, "p").await?];
    fleet
        .root_when("p", |root| {
            let ways = root.status.as_ref().map(|status| status.placement.as_slice());
            ways.is_some_and(|ways| ways.iter().any(|one| one.placement_rule == "old"))
        })
        .await?;
    choose(&fleet, &[0]).await?;
    gone(&fleet.copies(1), &copies[1]).await?;
    // The kind leaves an empty list out.
    decide(&fleet, json!({ "decisions": null, "phase": "none" })).await?;
    gone(&fleet.copies(0), &copies[0]).await?;
    fleet.tasks.shutdown().await;
    Ok(())
}

/// Rules that went with their definition once took the copies of all clusters along, as soon as the
/// kind was back.
#[tokio::test]
async fn rules_that_go_with_their_definition_take_no_copy_along() -> Result<()> {
    let fleet = Fleet::alone("rules-undefined", 2).await?;
    define(&fleet).await?;
    make(&fleet).await?;
    fleet.policy("p", spec()).await?;
    fleet.bind_with("p", "old", "Policy", reference("old")).await?;
    choose(&fleet, &[0, 1]).await?;
    let copies = [fleet.copy(0, "p").await?, fleet.copy(1, "p").await?];
    let stay = async || -> Result<()> {
        for (index, copy) in copies.iter().enumerate() {
            assert_eq!(fleet.copy(index, "p").await?.uid(), copy.uid());
        }
        Ok(())
    };
    younger_than(&copies).await?;
    undefine(&fleet.place.client, DEFINITION, &[]).await?;
    stay().await?;
    define(&fleet).await?;
    let words = "there is no PlacementRule old";
    fleet.root_when("p", |root| message(root, 0).contains(words)).await?;
    stay().await?;
    // It is made anew, has not decided, and then chooses one of them.
    make(&fleet).await?;
    fleet.root_when("p", |root| message(root, 0).contains("has not decided")).await?;
    stay().await?;
    choose(&fleet, &[0]).await?;
    gone(&fleet.copies(1), &copies[1]).await?;
    assert_eq!(fleet.copy(0, "p").await?.uid(), copies[0].uid());
    fleet.tasks.shutdown().await;
    Ok(())
}

/// It once held up every cluster of the policy, and the status with them.
#[tokio::test]
async fn a_binding_to_a_rule_that_cannot_be_read_holds_up_nobody_else() -> Result<()> {
    let fleet = Fleet::new("no-rules", 3).await?;
    fleet.policy("p", spec()).await?;
    fleet.bind("p", "all").await?;
    let mut restricted = reference("none");
    restricted["subFilter"] = json!("restricted");
    restricted["bindingOverrides"] = json!({ "remediationAction": "enforce" });
    restricted["metadata"] = json!({ "name": "overriding" });
    fleet.bind_with("p", "none", "Policy", restricted).await?;
    fleet.decide("all", &[0, 1]).await?;
    fleet.copy(0, "p").await?;
    let leaving = fleet.copy(1, "p").await?;
    fleet.decide("all", &[0, 2]).await?;
    gone(&fleet.copies(1), &leaving).await?;
    fleet.copy(2, "p").await?;
    fleet.root_when("p", |root| root.status.as_ref().is_some_and(|s| s.status.len() == 2)).await?;
    fleet.tasks.shutdown().await;
    Ok(())
}
