//! Definitions that go with everything of their kind, and return without it: no copy goes for that,
//! nothing is pruned on any cluster, and all goes on when the kind is back.

use anyhow::Result;
use cleat_api::configurationpolicy::ConfigurationPolicy;
use cleat_api::policy::Policy;
use cleat_api::policyset::PolicySet;
use cleat_hub::prepare;
use cleat_world::{eventually, within};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Event};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::ResourceExt as _;
use kube::api::{Api, ListParams, Patch, PatchParams};
use kube::runtime::wait::await_condition;
use serde_json::json;

use super::fleet::{Fleet, compliance, enforced, message, spec};
use crate::undefine::undefine;
use crate::{create, delete, gone, make_namespace, seen};

const POLICIES: &str = "policies.policy.open-cluster-management.io";
const LOST: &str = "policy.open-cluster-management.io/lost-with-definition";

#[tokio::test]
async fn a_definition_that_goes_takes_no_copy_along_and_the_hub_goes_on_when_it_returns()
-> Result<()> {
    let fleet = Fleet::alone("undefined", 2).await?;
    let sets: Api<PolicySet> = fleet.place.api();
    let set = json!({ "metadata": { "name": "s" }, "spec": { "policies": ["p"] } });
    create(&sets, set.clone()).await?;
    fleet.policy("p", spec()).await?;
    fleet.bind_with("s", "all", "PolicySet", json!({})).await?;
    fleet.decide("all", &[0, 1]).await?;
    let before = [fleet.copy(0, "p").await?, fleet.copy(1, "p").await?];
    let stay = async || -> Result<()> {
        for (index, copy) in before.iter().enumerate() {
            assert_eq!(fleet.copy(index, "p").await?.uid(), copy.uid());
        }
        Ok(())
    };
    younger_than(&before).await?;
    undefine(&fleet.place.client, "placementdecisions.cluster.open-cluster-management.io", &[])
        .await?;
    prepare::prepare_hub(&fleet.place.client).await?;
    // Who has not decided yet has not decided for nobody.
    fleet.decide("all", &[0, 1]).await?;
    // That nothing places the policy any more is not believed, neither while the kind is gone nor when
    // it is back without what there was of it.
    for (definition, missing) in [
        ("placementbindings.policy.open-cluster-management.io", "no PlacementBinding of it"),
        ("policysets.policy.open-cluster-management.io", "no PolicySet s"),
        ("placements.cluster.open-cluster-management.io", "no Placement all"),
    ] {
        undefine(&fleet.place.client, definition, &[]).await?;
        stay().await?;
        prepare::prepare_hub(&fleet.place.client).await?;
        fleet.root_when("p", |root| message(root, 0).contains(missing)).await?;
        stay().await?;
        match definition.split('.').next() {
            Some("placementbindings") => {
                fleet.bind_with("s", "all", "PolicySet", json!({})).await?;
            }
            Some("policysets") => drop(create(&sets, set.clone()).await?),
            _ => fleet.decide("all", &[0, 1]).await?,
        }
        fleet.root_when("p", |root| message(root, 0).is_empty()).await?;
        stay().await?;
    }
    fleet.decide("all", &[0]).await?;
    gone(&fleet.copies(1), &before[1]).await?;
    assert_eq!(fleet.copy(0, "p").await?.uid(), before[0].uid());
    fleet.tasks.shutdown().await;
    Ok(())
}

/// Times are whole seconds: a definition that is made after this is younger than the copies.
pub(super) async fn younger_than(copies: &[Policy]) -> Result<()> {
    let made = copies.iter().filter_map(|copy| copy.creation_timestamp()).map(|time| time.0);
    let made = made.max().unwrap_or(Timestamp::MIN).as_second();
    eventually("another second", || async {
        Ok((Timestamp::now().as_second() > made).then_some(()))
    })
    .await
}

/// One that prunes and is held on the hub, and one that does not and is not.
#[tokio::test]
async fn policies_that_go_with_their_definition_on_the_hub_stay_on_clusters_and_prune_nothing()
-> Result<()> {
    let fleet = Fleet::alone("lost", 1).await?;
    let world = &fleet.place.world;
    let (namespace, client) = (&*fleet.place.namespace, world.clusters[0].client());
    make_namespace(&world.clusters[0], namespace).await?;
    fleet.agent(0, &client, &fleet.tasks).await?;
    let both = [("p", "DeleteAll"), ("q", "None")];
    let spec = |name: &str, prune: &str| {
        let template = enforced(name, namespace, prune, "kept");
        json!({ "disabled": false, "policy-templates": [template] })
    };
    fleet.decide("all", &[0]).await?;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let templates: Api<ConfigurationPolicy> = Api::namespaced(client.clone(), &fleet.clusters[0]);
    let copies: Api<Policy> = Api::namespaced(client.clone(), &fleet.clusters[0]);
    let mut before = Vec::new();
    for (name, prune) in both {
        fleet.policy(name, spec(name, prune)).await?;
        fleet.bind(name, "all").await?;
        fleet.root_when(name, |root| compliance(root) == "Compliant").await?;
        let copy = copies.get(&fleet.copied(name)).await?;
        before.push([maps.get(name).await?.uid(), templates.get(name).await?.uid(), copy.uid()]);
    }
    let unchanged = async || -> Result<()> {
        for ((name, _), before) in both.iter().zip(&before) {
            let template = templates.get(name).await?;
            assert_eq!(template.metadata.deletion_timestamp, None, "{name}");
            let copy = copies.get(&fleet.copied(name)).await?;
            let now = [maps.get(name).await?.uid(), template.uid(), copy.uid()];
            assert_eq!(now, *before, "{name}");
        }
        Ok(())
    };

    // Not served for a while: nobody deleted anything.
    let definitions: Api<CustomResourceDefinition> = Api::all(fleet.place.client.clone());
    let serve = async |served: bool| -> Result<()> {
        let mut versions = definitions.get(POLICIES).await?.spec.versions;
        versions.iter_mut().for_each(|version| version.served = served);
        let patch = Patch::Merge(json!({ "spec": { "versions": versions } }));
        definitions.patch(POLICIES, &PatchParams::default(), &patch).await?;
        eventually("the kind to come or go", || async {
            Ok((fleet.roots().get_opt("p").await.is_ok_and(|p| p.is_some()) == served)
                .then_some(()))
        })
        .await
    };
    serve(false).await?;
    repaired(&maps, "q").await?;
    unchanged().await?;
    serve(true).await?;

    // That it is gone shows that nobody holds its policies.
    undefine(&fleet.place.client, POLICIES, &[&fleet.clusters[0], namespace]).await?;
    unchanged().await?;
    for (name, _) in both {
        seen(&copies, &fleet.copied(name), |copy: &Policy| copy.annotations().contains_key(LOST))
            .await?;
        repaired(&maps, name).await?;
    }
    let events: Api<Event> = Api::namespaced(client.clone(), &fleet.clusters[0]);
    let said = events.list(&ListParams::default()).await?.items;
    let said = said.iter().filter(|event| event.reason.as_deref() == Some("PolicySpecSync"));
    let lost = said.filter_map(|event| event.message.as_ref());
    assert_eq!(lost.filter(|text| text.contains("lost the definition")).count(), 2);

    // It is back, without them; and others are carried to the cluster as before.
    prepare::prepare_hub(&fleet.place.client).await?;
    fleet.policy("r", spec("r", "DeleteAll")).await?;
    fleet.bind("r", "all").await?;
    fleet.root_when("r", |root| compliance(root) == "Compliant").await?;
    unchanged().await?;
    // They are given to the hub again, and find what they made.
    for (name, prune) in both {
        fleet.policy(name, spec(name, prune)).await?;
        fleet.root_when(name, |root| compliance(root) == "Compliant").await?;
        let copy = copies.get(&fleet.copied(name)).await?;
        assert!(!copy.annotations().contains_key(LOST));
    }
    unchanged().await?;
    for (name, _) in both {
        delete(&fleet.roots(), name).await?;
        let absent = |copy: Option<&Policy>| copy.is_none();
        let copied = fleet.copied(name);
        within("the copy to go", await_condition(copies.clone(), &copied, absent)).await??;
    }
    assert!(maps.get_opt("p").await?.is_none());
    assert!(maps.get_opt("q").await?.is_some());
    fleet.tasks.shutdown().await;
    Ok(())
}

/// Changes what a policy enforces, and returns when that was put right.
async fn repaired(maps: &Api<ConfigMap>, name: &str) -> Result<()> {
    let patch = Patch::Merge(json!({ "data": { "word": "changed" } }));
    maps.patch(name, &PatchParams::default(), &patch).await?;
    seen(maps, name, |map: &ConfigMap| {
        map.data.as_ref().is_some_and(|data| data["word"] == "kept")
    })
    .await?;
    Ok(())
}
