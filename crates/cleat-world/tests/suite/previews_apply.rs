//! What a file would do if it were applied, asked and answered through the hub; and then it does just
//! that.

use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use cleat_api::managedcluster::ManagedCluster;
use cleat_api::managedclusterset::ManagedClusterSet;
use cleat_api::managedclustersetbinding::ManagedClusterSetBinding;
use cleat_api::manifestwork::ManifestWork;
use cleat_api::manifestworkreplicaset::ManifestWorkReplicaSet;
use cleat_api::placement::Placement;
use cleat_api::placementbinding::PlacementBinding;
use cleat_api::policy::Policy;
use cleat_api::policyset::PolicySet;
use cleat_api::removalpreview::{PreviewVerdict, PreviewedObject};
use cleat_cli::Refused;
use cleat_cli::preview::{How, foresee_apply, foresee_given};
use cleat_world::Fleet;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::ResourceExt as _;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};

use crate::previews::Site;
use crate::previews_policies::{self as policies, PATIENCE, SHORT, holds, objects, part, told};
use crate::{create, gone, seen};

const MANIFESTS: &str = "spec.workload.manifests";
const TEMPLATES: &str = "spec.object-templates";
/// For two that answer and one that does not.
const LONGER: Duration = Duration::from_secs(8);

fn work(fleet: &Fleet, name: &str, manifests: &[Value]) -> Value {
    json!({
        "apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
        "metadata": { "name": name, "namespace": fleet.name },
        "spec": { "workload": { "manifests": manifests } },
    })
}

async fn foreseen(fleet: &Fleet, document: Value) -> Result<(String, Vec<PreviewedObject>)> {
    let value = foresee_apply(&fleet.hub, vec![document], PATIENCE).await?;
    let plan = value["plan"].as_str().context("a plan has a hash")?.to_owned();
    let part = part(&value, &fleet.name);
    assert_eq!(part["answer"].get("problems"), None, "{value}");
    Ok((plan, objects(part)))
}

#[tokio::test]
async fn a_preview_of_a_changed_work_says_what_then_happens() -> Result<()> {
    let site = Site::start("preview-apply").await?;
    let fleet = &site.fleet;
    let before = ["left", "changed", "same"].map(|name| fleet.map(name, "1"));
    fleet.work("one", before.to_vec(), json!({})).await?;
    fleet.told("one", "Applied", "True").await?;
    let theirs = json!({ "metadata": { "name": "theirs" }, "data": { "key": "0" } });
    create(&fleet.maps(), theirs).await?;
    let same = fleet.maps().get("same").await?.resource_version();

    let manifests = [("changed", "2"), ("same", "1"), ("theirs", "1"), ("made", "1")];
    let manifests = manifests.map(|(name, value)| fleet.map(name, value));
    let document = work(fleet, "one", &manifests);
    let (plan, all) = foreseen(fleet, document.clone()).await?;
    let expected = [
        ("changed", PreviewVerdict::Change, MANIFESTS),
        ("left", PreviewVerdict::Delete, MANIFESTS),
        ("made", PreviewVerdict::Create, MANIFESTS),
        ("same", PreviewVerdict::Unchanged, MANIFESTS),
        ("theirs", PreviewVerdict::Adopt, MANIFESTS),
    ];
    assert_eq!(told(&all), expected);
    for name in ["changed", "theirs"] {
        let one = all.iter().find(|one| one.name == name).context(name)?;
        assert_eq!(one.effects, ["changes data.key"], "{one:?}");
        assert_eq!((one.blockers.len(), one.adopted), (0, name == "theirs"), "{one:?}");
    }
    // Nothing happened by asking, and asking again finds the same; of another file it is another plan.
    assert!(fleet.maps().get_opt("made").await?.is_none());
    assert_eq!(foreseen(fleet, document).await?.0, plan);
    let orphan = json!({ "propagationPolicy": "Orphan" });
    let mut other = work(fleet, "one", &manifests);
    other["spec"]["deleteOption"] = orphan;
    let (another, kept) = foreseen(fleet, other).await?;
    assert_ne!(another, plan);
    let left = kept.iter().find(|one| one.name == "left").context("left")?;
    assert_eq!((left.verdict, &*left.decided_by), (PreviewVerdict::Orphan, "spec.deleteOption"));

    fleet.rewrite("one", manifests.to_vec()).await?;
    fleet.told("one", "Applied", "True").await?;
    fleet.absent(&fleet.maps(), "left").await?;
    for one in &all {
        let now = fleet.maps().get_opt(&one.name).await?;
        let same_one = now.as_ref().and_then(|map| map.uid()).is_some_and(|uid| uid == one.uid);
        match one.verdict {
            PreviewVerdict::Delete => assert!(now.is_none(), "{one:?}"),
            PreviewVerdict::Create => assert!(now.is_some() && one.uid.is_empty(), "{one:?}"),
            _ => assert!(same_one, "{one:?}"),
        }
    }
    assert_eq!(fleet.maps().get("same").await?.resource_version(), same);
    site.end().await
}

#[tokio::test]
async fn a_preview_of_a_new_work_knows_what_it_brings_along() -> Result<()> {
    let site = Site::start("preview-new").await?;
    let fleet = &site.fleet;
    let inner = format!("{}-inner", fleet.name);
    let namespace =
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": inner } });
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "inside", "namespace": inner },
    });
    let nowhere = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "nowhere", "namespace": format!("{inner}-not") },
    });
    let unknown = json!({
        "apiVersion": "example.com/v1", "kind": "Gadget",
        "metadata": { "name": "gadget", "namespace": inner },
    });
    let document = work(fleet, "new", &[namespace, map, nowhere, unknown]);
    let (_, all) = foreseen(fleet, document).await?;
    let expected = [
        ("gadget", PreviewVerdict::Stuck, MANIFESTS),
        ("inside", PreviewVerdict::Create, MANIFESTS),
        ("nowhere", PreviewVerdict::Create, MANIFESTS),
        (&*inner, PreviewVerdict::Create, MANIFESTS),
    ];
    let mut expected = expected.to_vec();
    expected.sort();
    assert_eq!(told(&all), expected);
    for one in &all {
        // What comes along is no obstacle; what does not is one.
        assert_eq!(one.blockers.len(), usize::from(one.name == "nowhere"), "{one:?}");
    }
    assert!(fleet.works().get_opt("new").await?.is_none());

    // What the hub would not take is told by the hub.
    let error = foreseen(fleet, work(fleet, "No-Such-Name", &[])).await.unwrap_err();
    assert!(error.is::<Refused>(), "{error:#}");
    assert!(error.to_string().starts_with("the hub would refuse manifestworks"), "{error:#}");
    site.end().await
}

/// A set of works that want one map.
fn set(site: &policies::Site, placement: &str, value: &str) -> Value {
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "shop", "namespace": site.name }, "data": { "key": value },
    });
    json!({
        "apiVersion": "work.open-cluster-management.io/v1alpha1",
        "kind": "ManifestWorkReplicaSet",
        "metadata": { "name": "web", "namespace": site.team },
        "spec": {
            "placementRefs": [{ "name": placement }],
            "manifestWorkTemplate": { "workload": { "manifests": [map] } },
        },
    })
}

#[tokio::test]
async fn a_preview_of_a_set_says_which_clusters_get_and_lose_its_works() -> Result<()> {
    let site = policies::Site::start("preview-sets").await?;
    site.decide("here", &[&site.name]).await?;
    site.decide("there", &[&site.silent]).await?;
    let set = |placement: &str, value: &str| set(&site, placement, value);
    let new = foresee_apply(&site.hub, vec![set("here", "1")], PATIENCE).await?;
    let made = objects(part(&new, &site.name));
    assert_eq!(told(&made), [("shop", PreviewVerdict::Create, MANIFESTS)], "{new}");
    let sets: Api<ManifestWorkReplicaSet> = site.here();
    create(&sets, set("here", "1")).await?;
    let map = seen(&site.maps(), "shop", |_| true).await?;
    let works: Api<ManifestWork> = Api::namespaced(site.hub.clone(), &site.name);
    assert_eq!(works.list(&Default::default()).await?.items.len(), 1);

    let changed = foresee_apply(&site.hub, vec![set("here", "2")], PATIENCE).await?;
    let changes = objects(part(&changed, &site.name));
    assert_eq!(told(&changes), [("shop", PreviewVerdict::Change, MANIFESTS)], "{changed}");

    // A cluster that does not answer is unknown, and the other loses what it has.
    let moved = foresee_apply(&site.hub, vec![set("there", "1")], SHORT).await?;
    assert_eq!(part(&moved, &site.silent)["answered"], false, "{moved}");
    let lost = objects(part(&moved, &site.name));
    assert_eq!(told(&lost), [("shop", PreviewVerdict::Delete, "spec.deleteOption")], "{moved}");
    let patch = Patch::Merge(json!({ "spec": { "placementRefs": [{ "name": "there" }] } }));
    sets.patch("web", &PatchParams::default(), &patch).await?;
    gone(&site.maps(), &map).await?;
    site.tasks.shutdown().await;
    Ok(())
}

fn policy(site: &policies::Site, templates: &[Value]) -> Value {
    json!({
        "apiVersion": "policy.open-cluster-management.io/v1", "kind": "Policy",
        "metadata": { "name": "p", "namespace": site.team },
        "spec": { "disabled": false, "policy-templates": templates },
    })
}

fn binding(site: &policies::Site, placement: &str) -> Value {
    json!({
        "apiVersion": "policy.open-cluster-management.io/v1", "kind": "PlacementBinding",
        "metadata": { "name": "b", "namespace": site.team },
        "placementRef": {
            "apiGroup": "cluster.open-cluster-management.io", "kind": "Placement",
            "name": placement,
        },
        "subjects": [{
            "apiGroup": "policy.open-cluster-management.io", "kind": "Policy", "name": "p",
        }],
    })
}

/// A template `t` with a map of this name and content for each of these.
fn template(site: &policies::Site, action: &str, prune: &str, maps: &[(&str, &str)]) -> Value {
    let mut template = site.template("t", action, prune);
    let map = |(name, value): &(&str, &str)| {
        json!({ "complianceType": "musthave", "objectDefinition": {
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": name, "namespace": site.name }, "data": { "key": value },
        }})
    };
    template["objectDefinition"]["spec"]["object-templates"] = maps.iter().map(map).collect();
    template
}

#[tokio::test]
async fn a_preview_of_a_policy_says_where_it_comes_changes_and_goes() -> Result<()> {
    let site = policies::Site::start("preview-given").await?;
    site.decide("here", &[&site.name]).await?;
    let [one, two] = ["one", "two"].map(|name| site.template(name, "enforce", "DeleteAll"));
    let whole = policy(&site, &[one.clone(), two]);
    let both = vec![whole.clone(), binding(&site, "here")];
    let new = foresee_apply(&site.hub, both, PATIENCE).await?;
    let note = format!("policy {}/p comes to this cluster", site.team);
    assert_eq!(part(&new, &site.name)["notes"], json!([note]), "{new}");
    let made = objects(part(&new, &site.name));
    let expected = ["one", "two"].map(|name| (name, PreviewVerdict::Create, TEMPLATES));
    assert_eq!(told(&made), expected, "{new}");
    assert_eq!(site.maps().get_opt("one").await?, None);
    create(&site.here::<Policy>(), whole).await?;
    create(&site.here::<PlacementBinding>(), binding(&site, "here")).await?;
    site.holds("p").await?;

    // One template goes, and with it what it made; the other stays.
    let changed = foresee_apply(&site.hub, vec![policy(&site, &[one])], PATIENCE).await?;
    let lost = objects(part(&changed, &site.name));
    let expected = [
        ("one", PreviewVerdict::Unchanged, TEMPLATES),
        ("two", PreviewVerdict::Delete, "spec.pruneObjectBehavior"),
    ];
    assert_eq!(told(&lost), expected, "{changed}");
    // Bound elsewhere, it leaves with everything. What it does there is unknown, and not nothing.
    site.decide("there", &[&site.silent]).await?;
    let moved = foresee_apply(&site.hub, vec![binding(&site, "there")], SHORT).await?;
    let lost = objects(part(&moved, &site.name));
    let names: Vec<&str> = told(&lost).iter().map(|(name, ..)| *name).collect();
    assert_eq!(names, ["one", "two"], "{moved}");
    let note = format!("policy {}/p comes to this cluster", site.team);
    assert_eq!(part(&moved, &site.silent)["notes"], json!([note]), "{moved}");
    assert_eq!(part(&moved, &site.silent)["answered"], false, "{moved}");
    // Nothing happened by asking.
    for name in ["one", "two"] {
        assert!(site.maps().get(name).await?.metadata.deletion_timestamp.is_none());
    }
    site.tasks.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn a_preview_of_a_changed_policy_says_what_then_becomes_of_its_objects() -> Result<()> {
    let site = policies::Site::start("preview-policy").await?;
    site.decide("here", &[&site.name]).await?;
    let of = |maps: &[(&str, &str)]| {
        policy(&site, &[template(&site, "enforce", "DeleteIfCreated", maps)])
    };
    create(&site.here::<Policy>(), of(&[("changed", "1"), ("left", "1"), ("same", "1")])).await?;
    create(&site.here::<PlacementBinding>(), binding(&site, "here")).await?;
    site.holds("p").await?;
    for (name, value) in [("theirs", "0"), ("right", "1")] {
        let map = json!({ "metadata": { "name": name }, "data": { "key": value } });
        create(&site.maps(), map).await?;
    }
    let maps = [("changed", "2"), ("same", "1"), ("theirs", "1"), ("right", "1"), ("made", "1")];
    let document = of(&maps);
    let value = foresee_apply(&site.hub, vec![document.clone()], PATIENCE).await?;
    let answer = part(&value, &site.name);
    assert_eq!(answer["answer"].get("problems"), None, "{value}");
    let all = objects(answer);
    let expected = [
        ("changed", PreviewVerdict::Change, TEMPLATES),
        ("left", PreviewVerdict::Delete, "spec.pruneObjectBehavior"),
        ("made", PreviewVerdict::Create, TEMPLATES),
        ("right", PreviewVerdict::Unchanged, TEMPLATES),
        ("same", PreviewVerdict::Unchanged, TEMPLATES),
        ("theirs", PreviewVerdict::Change, TEMPLATES),
    ];
    assert_eq!(told(&all), expected, "{value}");
    for one in &all {
        let changes = one.verdict == PreviewVerdict::Change;
        assert_eq!(one.effects, ["changes data.key"].get(..usize::from(changes)).unwrap());
        let theirs = changes && one.name == "theirs";
        assert_eq!((&*one.source, one.blockers.len(), one.adopted), ("t", 0, theirs), "{one:?}");
    }
    // Nothing happened by asking, and asking again finds the same.
    assert_eq!(site.maps().get_opt("made").await?, None);
    let again = foresee_apply(&site.hub, vec![document.clone()], PATIENCE).await?;
    assert_eq!(again["plan"], value["plan"]);

    let left = site.maps().get("left").await?;
    let patch = Patch::Merge(json!({ "spec": document["spec"] }));
    site.here::<Policy>().patch("p", &PatchParams::default(), &patch).await?;
    seen(&site.maps(), "made", |_| true).await?;
    let changed = |map: &ConfigMap| map.data.iter().flatten().any(|(_, value)| value == "2");
    seen(&site.maps(), "changed", changed).await?;
    gone(&site.maps(), &left).await?;
    for one in &all {
        let now = site.maps().get_opt(&one.name).await?;
        let same_one = now.as_ref().and_then(|map| map.uid()).is_some_and(|uid| uid == one.uid);
        match one.verdict {
            PreviewVerdict::Delete => assert_eq!(now, None, "{one:?}"),
            PreviewVerdict::Create => assert!(now.is_some() && one.uid.is_empty(), "{one:?}"),
            _ => assert!(same_one, "{one:?}"),
        }
    }
    site.tasks.shutdown().await;
    Ok(())
}

/// A kind from a sibling looked stuck, and what moved between two of them deleted and unchanged at once.
#[tokio::test]
async fn templates_of_one_policy_were_foreseen_as_if_each_were_alone() -> Result<()> {
    let site = policies::Site::start("preview-siblings").await?;
    site.decide("here", &[&site.name]).await?;
    let of = |name: &str, asked: Value| {
        let mut template = site.template(name, "enforce", "DeleteIfCreated");
        let asked = json!([{ "complianceType": "musthave", "objectDefinition": asked }]);
        template["objectDefinition"]["spec"]["object-templates"] = asked;
        template
    };
    let map = |name: &str| {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": name, "namespace": site.name }, "data": { "key": "1" },
        })
    };
    create(&site.here::<Policy>(), policy(&site, &[of("old", map("moved"))])).await?;
    create(&site.here::<PlacementBinding>(), binding(&site, "here")).await?;
    site.holds("p").await?;
    let before = seen(&site.maps(), "moved", |_| true).await?;

    let group = format!("{}.cleat.example", site.name);
    let schema = json!({ "openAPIV3Schema": { "type": "object" } });
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("gadgets.{group}") },
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": { "kind": "Gadget", "plural": "gadgets", "singular": "gadget" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": schema }],
        },
    });
    let gadget = json!({
        "apiVersion": format!("{group}/v1"), "kind": "Gadget",
        "metadata": { "name": "g", "namespace": site.name },
    });
    let document = policy(
        &site,
        &[
            of("gadget", gadget),
            of("kind", definition),
            of("new", map("moved")),
            of("old", map("kept")),
        ],
    );
    let value = foresee_apply(&site.hub, vec![document.clone()], PATIENCE).await?;
    let all = objects(part(&value, &site.name));
    let verdict = |source: &str, resource: &str, name: &str| {
        let is = |one: &&PreviewedObject| {
            one.source == source && one.resource == resource && one.name == name
        };
        all.iter().find(is).map(|one| (one.verdict, one.blockers.len()))
    };
    let name = format!("gadgets.{group}");
    for (source, resource, name, expected) in [
        ("gadget", "gadgets", "g", PreviewVerdict::Create),
        ("kind", "customresourcedefinitions", &*name, PreviewVerdict::Create),
        ("new", "configmaps", "moved", PreviewVerdict::Recreate),
        ("old", "configmaps", "moved", PreviewVerdict::Delete),
        ("old", "configmaps", "kept", PreviewVerdict::Create),
    ] {
        assert_eq!(verdict(source, resource, name), Some((expected, 0)), "{source}: {value}");
    }

    let patch = Patch::Merge(json!({ "spec": document["spec"] }));
    site.here::<Policy>().patch("p", &PatchParams::default(), &patch).await?;
    seen(&site.maps(), "moved", |map: &ConfigMap| map.uid() != before.uid()).await?;
    seen(&site.maps(), "kept", |_| true).await?;
    site.tasks.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn a_preview_of_a_policy_that_only_informs_writes_nothing() -> Result<()> {
    let site = policies::Site::start("preview-inform").await?;
    site.decide("here", &[&site.name]).await?;
    let map = json!({ "metadata": { "name": "wrong" }, "data": { "key": "0" } });
    create(&site.maps(), map).await?;
    let mut informing = template(&site, "inform", "None", &[("wrong", "1"), ("missing", "1")]);
    let gadget = json!({ "complianceType": "musthave", "objectDefinition": {
        "apiVersion": "example.com/v1", "kind": "Gadget",
        "metadata": { "name": "gadget", "namespace": site.name },
    }});
    let spec = &mut informing["objectDefinition"]["spec"];
    spec["object-templates"].as_array_mut().context("a list")?.push(gadget);
    let mut waiting = site.template("waiting", "enforce", "None");
    waiting["extraDependencies"] = json!([{
        "apiVersion": "policy.open-cluster-management.io/v1", "kind": "ConfigurationPolicy",
        "name": "not-there", "compliance": "Compliant",
    }]);
    let both = vec![policy(&site, &[informing, waiting]), binding(&site, "here")];
    let value = foresee_apply(&site.hub, both.clone(), PATIENCE).await?;
    let all = objects(part(&value, &site.name));
    let expected = [
        ("gadget", PreviewVerdict::Stuck, TEMPLATES),
        ("missing", PreviewVerdict::Gone, "spec.remediationAction"),
        ("waiting", PreviewVerdict::Unknown, "spec.dependencies"),
        ("wrong", PreviewVerdict::Unchanged, "spec.remediationAction"),
    ];
    assert_eq!(told(&all), expected, "{value}");
    let [policy, binding] = <[Value; 2]>::try_from(both).map_err(|_| anyhow!("two"))?;
    create(&site.here::<Policy>(), policy).await?;
    create(&site.here::<PlacementBinding>(), binding).await?;
    let name = format!("{}.p", site.team);
    seen(&site.copies(), &name, |copy: &Policy| {
        let status = copy.status.as_ref();
        status.is_some_and(|status| status.compliant.as_deref() == Some("NonCompliant"))
    })
    .await?;
    let now = site.maps().get("wrong").await?;
    assert_eq!(now.data.context("data")?["key"], "0");
    assert_eq!(site.maps().get_opt("missing").await?, None);
    site.tasks.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn a_preview_of_a_set_of_policies_says_what_each_cluster_gets_and_loses() -> Result<()> {
    let site = policies::Site::start("preview-policyset").await?;
    let other = format!("{}-2", site.name);
    let hub_namespace = json!({ "metadata": { "name": other } });
    create(&Api::<Namespace>::all(site.hub.clone()), hub_namespace).await?;
    site.join(&other).await?;
    site.decide("all", &[&site.name, &other, &site.silent]).await?;
    // Where the map is, only the hub can say.
    let mut template = site.template("one", "enforce", "DeleteIfCreated");
    let spec = &mut template["objectDefinition"]["spec"];
    let place = "{{hub .ManagedClusterName hub}}";
    spec["object-templates"][0]["objectDefinition"]["metadata"]["namespace"] = place.into();
    let set = |policies: &[&str]| {
        json!({
            "apiVersion": "policy.open-cluster-management.io/v1beta1", "kind": "PolicySet",
            "metadata": { "name": "s", "namespace": site.team },
            "spec": { "policies": policies },
        })
    };
    let mut bound = binding(&site, "all");
    bound["subjects"][0]["kind"] = "PolicySet".into();
    bound["subjects"][0]["name"] = "s".into();
    let all = vec![policy(&site, &[template]), set(&["p"]), bound];
    let value = foresee_apply(&site.hub, all.clone(), LONGER).await?;
    for cluster in [&site.name, &other] {
        let made = objects(part(&value, cluster));
        assert_eq!(told(&made), [("one", PreviewVerdict::Create, TEMPLATES)], "{value}");
        assert_eq!(made[0].namespace, *cluster);
    }
    assert_eq!(part(&value, &site.silent)["answered"], false, "{value}");

    let [policy, made, bound] = <[Value; 3]>::try_from(all).map_err(|_| anyhow!("three"))?;
    create(&site.here::<Policy>(), policy).await?;
    create(&site.here::<PolicySet>(), made).await?;
    create(&site.here::<PlacementBinding>(), bound).await?;
    let mut maps = Vec::new();
    for cluster in [&site.name, &other] {
        maps.push((cluster, seen(&site.maps_of(cluster), "one", |_| true).await?));
        let copies: Api<Policy> = Api::namespaced(site.hub.clone(), cluster);
        seen(&copies, &format!("{}.p", site.team), holds).await?;
    }
    // What left the set leaves its clusters.
    let less = foresee_apply(&site.hub, vec![set(&[])], LONGER).await?;
    for (cluster, _) in &maps {
        let lost = objects(part(&less, cluster));
        let expected = [("one", PreviewVerdict::Delete, "spec.pruneObjectBehavior")];
        assert_eq!(told(&lost), expected, "{less}");
    }
    let patch = Patch::Merge(json!({ "spec": { "policies": [] } }));
    site.here::<PolicySet>().patch("s", &PatchParams::default(), &patch).await?;
    for (cluster, map) in &maps {
        gone(&site.maps_of(cluster), map).await?;
    }
    site.tasks.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn a_preview_of_a_placement_says_what_moves_with_it() -> Result<()> {
    const LABEL: &str = "cleat.dev/test";
    let site = policies::Site::start("preview-moved").await?;
    let clusters: Api<ManagedCluster> = Api::all(site.hub.clone());
    for (name, at) in [(&site.name, "here"), (&site.silent, "there")] {
        let labels = json!({ LABEL: site.team, "at": at });
        let patch = Patch::Merge(json!({ "metadata": { "labels": labels } }));
        clusters.patch(name, &PatchParams::default(), &patch).await?;
    }
    let selector = json!({
        "selectorType": "LabelSelector", "labelSelector": { "matchLabels": { LABEL: site.team } },
    });
    let choice =
        json!({ "metadata": { "name": site.team }, "spec": { "clusterSelector": selector } });
    create(&Api::<ManagedClusterSet>::all(site.hub.clone()), choice).await?;
    let bound = json!({ "metadata": { "name": site.team }, "spec": { "clusterSet": site.team } });
    create(&site.here::<ManagedClusterSetBinding>(), bound).await?;
    let placement = |at: &str| {
        let wanted = json!({ "labelSelector": { "matchLabels": { "at": at } } });
        json!({
            "apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement",
            "metadata": { "name": "pick", "namespace": site.team },
            "spec": { "predicates": [{ "requiredClusterSelector": wanted }] },
        })
    };
    let placements: Api<Placement> = site.here();
    create(&placements, placement("here")).await?;
    create(&site.here::<ManifestWorkReplicaSet>(), set(&site, "pick", "1")).await?;
    let map = seen(&site.maps(), "shop", |_| true).await?;

    let same = foresee_apply(&site.hub, vec![placement("here")], PATIENCE).await?;
    assert_eq!(objects(part(&same, &site.name)), [], "{same}");
    let moved = foresee_apply(&site.hub, vec![placement("there")], SHORT).await?;
    assert_eq!(part(&moved, &site.silent)["answered"], false, "{moved}");
    let lost = objects(part(&moved, &site.name));
    assert_eq!(told(&lost), [("shop", PreviewVerdict::Delete, "spec.deleteOption")], "{moved}");
    let spec = placement("there")["spec"].clone();
    let patch = Patch::Merge(json!({ "spec": spec }));
    placements.patch("pick", &PatchParams::default(), &patch).await?;
    gone(&site.maps(), &map).await?;
    site.tasks.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn a_field_that_a_file_does_not_mention_was_foreseen_to_go() -> Result<()> {
    let site = Site::start("preview-merge").await?;
    let fleet = &site.fleet;
    let orphan = json!({ "deleteOption": { "propagationPolicy": "Orphan" } });
    let before = ["left", "same"].map(|name| fleet.map(name, "1")).to_vec();
    fleet.work("one", before, orphan.clone()).await?;
    fleet.told("one", "Applied", "True").await?;
    let document = work(fleet, "one", &[fleet.map("same", "1")]);
    let left = async |how: How| -> Result<PreviewVerdict> {
        let value = foresee_given(&fleet.hub, vec![document.clone()], how, PATIENCE).await?;
        let all = objects(part(&value, &fleet.name));
        Ok(all.iter().find(|one| one.name == "left").context(value.to_string())?.verdict)
    };
    // Somebody else said what becomes of it, and the file does not mention it.
    assert_eq!(left(How::Apply).await?, PreviewVerdict::Orphan);
    assert_eq!(left(How::ServerSide { force: true }).await?, PreviewVerdict::Orphan);
    assert_eq!(left(How::Replace).await?, PreviewVerdict::Delete);
    // The manifests are somebody else's.
    let refused = left(How::ServerSide { force: false }).await.unwrap_err();
    assert!(refused.is::<Refused>(), "{refused:#}");
    assert!(refused.to_string().contains("the hub would refuse"), "{refused:#}");
    // The file itself said it the last time.
    let last = json!({ "spec": orphan }).to_string();
    let annotation = "kubectl.kubernetes.io/last-applied-configuration";
    let patch = json!({ "metadata": { "annotations": { annotation: last } } });
    let works: Api<ManifestWork> = Api::namespaced(fleet.hub.clone(), &fleet.name);
    works.patch("one", &PatchParams::default(), &Patch::Merge(patch)).await?;
    assert_eq!(left(How::Apply).await?, PreviewVerdict::Delete);
    // Nothing happened by asking.
    assert!(fleet.maps().get_opt("left").await?.is_some());
    site.end().await
}

#[tokio::test]
async fn what_is_in_a_namespace_that_leaves_the_manifests_was_foreseen_to_stay() -> Result<()> {
    let site = Site::start("preview-inner").await?;
    let fleet = &site.fleet;
    let inner = format!("{}-inner", fleet.name);
    let namespace =
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": inner } });
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "inside", "namespace": inner }, "data": { "key": "1" },
    });
    fleet.work("one", vec![namespace, map.clone()], json!({})).await?;
    fleet.told("one", "Applied", "True").await?;
    let (_, all) = foreseen(fleet, work(fleet, "one", &[map])).await?;
    let inside = all.iter().find(|one| one.name == "inside").context("inside")?;
    assert_eq!(inside.verdict, PreviewVerdict::Delete, "{inside:?}");
    let why = format!(
        "namespaces {inner} goes and takes it along, and it cannot be made anew without it"
    );
    assert_eq!((&*inside.why, &*inside.decided_by), (&*why, MANIFESTS));
    let holder = all.iter().find(|one| one.name == inner).context("the namespace")?;
    assert_eq!((holder.verdict, holder.takes_along), (PreviewVerdict::Delete, 0), "{holder:?}");
    fleet.end("one").await?;
    site.end().await
}
