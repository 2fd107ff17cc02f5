//! What a file would do if it were applied, asked and answered through the hub; and then it does just
//! that.

use anyhow::{Context as _, Result};
use cleat_api::managedcluster::ManagedCluster;
use cleat_api::managedclusterset::ManagedClusterSet;
use cleat_api::managedclustersetbinding::ManagedClusterSetBinding;
use cleat_api::manifestwork::ManifestWork;
use cleat_api::manifestworkreplicaset::ManifestWorkReplicaSet;
use cleat_api::placement::Placement;
use cleat_api::placementbinding::PlacementBinding;
use cleat_api::policy::Policy;
use cleat_api::removalpreview::{PreviewVerdict, PreviewedObject};
use cleat_cli::Refused;
use cleat_cli::preview::{How, foresee_apply, foresee_given};
use cleat_world::Fleet;
use kube::ResourceExt as _;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};

use crate::previews::Site;
use crate::previews_policies::{self as policies, PATIENCE, SHORT, objects, part, told};
use crate::{create, gone, seen};

const MANIFESTS: &str = "spec.workload.manifests";

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

#[tokio::test]
async fn a_preview_of_a_policy_says_where_it_comes_changes_and_goes() -> Result<()> {
    let site = policies::Site::start("preview-given").await?;
    site.decide("here", &[&site.name]).await?;
    let policy = |templates: Vec<Value>| {
        json!({
            "apiVersion": "policy.open-cluster-management.io/v1", "kind": "Policy",
            "metadata": { "name": "p", "namespace": site.team },
            "spec": { "disabled": false, "policy-templates": templates },
        })
    };
    let binding = json!({
        "apiVersion": "policy.open-cluster-management.io/v1", "kind": "PlacementBinding",
        "metadata": { "name": "b", "namespace": site.team },
        "placementRef": {
            "apiGroup": "cluster.open-cluster-management.io", "kind": "Placement", "name": "here",
        },
        "subjects": [{
            "apiGroup": "policy.open-cluster-management.io", "kind": "Policy", "name": "p",
        }],
    });
    let [one, two] = ["one", "two"].map(|name| site.template(name, "enforce", "DeleteAll"));
    let whole = policy(vec![one.clone(), two]);
    let new = foresee_apply(&site.hub, vec![whole.clone(), binding.clone()], PATIENCE).await?;
    let note = format!("policy {}/p comes to this cluster", site.team);
    assert_eq!(part(&new, &site.name)["notes"], json!([note]), "{new}");
    create(&site.here::<Policy>(), whole).await?;
    create(&site.here::<PlacementBinding>(), binding.clone()).await?;
    site.holds("p").await?;

    // One template goes, and with it what it made; the other stays.
    let less = policy(vec![one]);
    let changed = foresee_apply(&site.hub, vec![less], PATIENCE).await?;
    let lost = objects(part(&changed, &site.name));
    let expected = [("two", PreviewVerdict::Delete, "spec.pruneObjectBehavior")];
    assert_eq!(told(&lost), expected, "{changed}");
    // Bound elsewhere, it leaves with everything.
    site.decide("there", &[&site.silent]).await?;
    let mut elsewhere = binding;
    elsewhere["placementRef"]["name"] = "there".into();
    let moved = foresee_apply(&site.hub, vec![elsewhere], PATIENCE).await?;
    let lost = objects(part(&moved, &site.name));
    let names: Vec<&str> = told(&lost).iter().map(|(name, ..)| *name).collect();
    assert_eq!(names, ["one", "two"], "{moved}");
    let note = format!("policy {}/p comes to this cluster", site.team);
    assert_eq!(part(&moved, &site.silent)["notes"], json!([note]), "{moved}");
    // Nothing happened by asking.
    for name in ["one", "two"] {
        assert!(site.maps().get(name).await?.metadata.deletion_timestamp.is_none());
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
