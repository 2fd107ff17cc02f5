//! What the end of a policy, or of what places it, would do on its clusters; and then it does just
//! that.

use std::time::Duration;

use anyhow::{Context as _, Result};
use cleat_agent::{policy, policy_sync, preview, work};
use cleat_api::managedcluster::ManagedCluster;
use cleat_api::placement::{self, Placement, PlacementDecision};
use cleat_api::placementbinding::PlacementBinding;
use cleat_api::policy::Policy;
use cleat_api::removalpreview::{PreviewVerdict, PreviewedObject, RemovalPreview};
use cleat_cli::Refused;
use cleat_cli::preview::foresee;
use cleat_core::propagation::outlook::Change;
use cleat_hub::prepare::{prepare_cluster, prepare_hub};
use cleat_hub::{hub, outlook};
use cleat_runtime::tasks::Tasks;
use cleat_world::World;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};

use crate::{create, delete, gone, make_namespace, seen};

/// A hub with its controllers, a cluster with all stories, and one of which nobody hears.
pub(crate) struct Site {
    pub(crate) hub: Client,
    cluster: Client,
    /// Where the policies are.
    pub(crate) team: String,
    /// The cluster.
    pub(crate) name: String,
    pub(crate) silent: String,
    pub(crate) tasks: Tasks,
    /// Ends last.
    _world: World,
}

impl Site {
    pub(crate) async fn start(topic: &str) -> Result<Self> {
        let world = World::with_clusters(1).await?;
        let cluster = world.clusters.first().context("a world has a cluster")?.client();
        let hub = world.hub.client();
        prepare_hub(&hub).await?;
        prepare_cluster(&cluster).await?;
        let [team, name, silent] =
            ["team", "c", "silent"].map(|part| world.unique(&format!("{topic}-{part}")));
        make_namespace(&world.hub, &team).await?;
        let clusters: Api<ManagedCluster> = Api::all(hub.clone());
        for name in [&name, &silent] {
            make_namespace(&world.hub, name).await?;
            create(&clusters, json!({ "metadata": { "name": name }, "spec": {} })).await?;
        }
        create(&Api::<Namespace>::all(cluster.clone()), json!({ "metadata": { "name": name } }))
            .await?;
        let tasks = Tasks::new();
        let config = hub::Config { namespace: Some(team.clone()), ..hub::Config::new(hub.clone()) };
        tasks.spawn("hub", hub::run(config, tasks.stop()));
        stories(&hub, &cluster, &name, &tasks);
        Ok(Self { hub, cluster, team, name, silent, tasks, _world: world })
    }

    /// Another cluster that answers. It shares the server with the first, not the namespace.
    pub(crate) async fn join(&self, name: &str) -> Result<()> {
        let namespace = || json!({ "metadata": { "name": name } });
        create(&Api::<Namespace>::all(self.cluster.clone()), namespace()).await?;
        let joined = json!({ "metadata": { "name": name }, "spec": {} });
        create(&Api::<ManagedCluster>::all(self.hub.clone()), joined).await?;
        stories(&self.hub, &self.cluster, name, &self.tasks);
        Ok(())
    }

    /// The maps in the namespace of a cluster that joined.
    pub(crate) fn maps_of(&self, cluster: &str) -> Api<ConfigMap> {
        Api::namespaced(self.cluster.clone(), cluster)
    }

    pub(crate) fn maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.cluster.clone(), &self.name)
    }

    pub(crate) fn copies(&self) -> Api<Policy> {
        Api::namespaced(self.hub.clone(), &self.name)
    }

    pub(crate) fn here<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.hub.clone(), &self.team)
    }

    /// A template that wants a map of its own name.
    pub(crate) fn template(&self, name: &str, action: &str, prune: &str) -> Value {
        json!({ "objectDefinition": {
            "apiVersion": "policy.open-cluster-management.io/v1", "kind": "ConfigurationPolicy",
            "metadata": { "name": name },
            "spec": {
                "remediationAction": action, "pruneObjectBehavior": prune,
                "object-templates": [{ "complianceType": "musthave", "objectDefinition": {
                    "apiVersion": "v1", "kind": "ConfigMap",
                    "metadata": { "name": name, "namespace": self.name }, "data": { "key": "1" },
                }}],
            },
        }})
    }

    /// A template that wants no map of its own name.
    fn must_not_have(&self, name: &str) -> Value {
        let mut template = self.template(name, "enforce", "DeleteAll");
        let spec = &mut template["objectDefinition"]["spec"];
        spec["object-templates"][0]["complianceType"] = "mustnothave".into();
        template
    }

    pub(crate) async fn policy(&self, name: &str, templates: Vec<Value>) -> Result<()> {
        let spec = json!({ "disabled": false, "policy-templates": templates });
        create(&self.here::<Policy>(), json!({ "metadata": { "name": name }, "spec": spec }))
            .await?;
        Ok(())
    }

    /// A placement that the test decides.
    pub(crate) async fn decide(&self, placement: &str, clusters: &[&str]) -> Result<()> {
        let ours = json!({ placement::SCHEDULING_DISABLED: "true" });
        let metadata = json!({ "name": placement, "annotations": ours });
        create(&self.here::<Placement>(), json!({ "metadata": metadata, "spec": {} })).await?;
        let decisions: Api<PlacementDecision> = self.here();
        let name = format!("{placement}-decision-1");
        let labels = json!({ placement::PLACEMENT_LABEL: placement });
        create(&decisions, json!({ "metadata": { "name": name, "labels": labels } })).await?;
        let list: Vec<Value> =
            clusters.iter().map(|name| json!({ "clusterName": name, "reason": "" })).collect();
        let patch = Patch::Merge(json!({ "status": { "decisions": list } }));
        decisions.patch_status(&name, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// A placement that the test decides, and a binding of the policy to it under its name.
    pub(crate) async fn bind(
        &self,
        policy: &str,
        placement: &str,
        clusters: &[&str],
    ) -> Result<()> {
        self.decide(placement, clusters).await?;
        let binding = json!({
            "metadata": { "name": placement },
            "placementRef": {
                "apiGroup": "cluster.open-cluster-management.io", "kind": "Placement",
                "name": placement,
            },
            "subjects": [{
                "apiGroup": "policy.open-cluster-management.io", "kind": "Policy", "name": policy,
            }],
        });
        create(&self.here::<PlacementBinding>(), binding).await?;
        Ok(())
    }

    /// The copy on the hub, once its cluster says that it holds.
    pub(crate) async fn holds(&self, policy: &str) -> Result<Policy> {
        let name = format!("{}.{policy}", self.team);
        seen(&self.copies(), &name, holds).await
    }

    async fn foresee(&self, what: &str) -> Result<Value> {
        foresee(&self.hub, what, Some(&self.team), PATIENCE).await
    }
}

/// Whether a copy's cluster says that it holds.
pub(crate) fn holds(copy: &Policy) -> bool {
    let status = copy.status.as_ref();
    status.is_some_and(|status| status.compliant.as_deref() == Some("Compliant"))
}

/// Everything that runs for a cluster.
fn stories(hub: &Client, cluster: &Client, name: &str, tasks: &Tasks) {
    let policies = policy::start(policy::Config::of_member(cluster.clone(), name), tasks);
    policy_sync::start(policy_sync::Config::new(hub.clone(), cluster.clone(), name), tasks);
    let address = "https://hub.example";
    let config = work::Config::new(hub.clone(), cluster.clone(), name, address);
    let works = work::start(config, tasks);
    let config = preview::Config {
        hub_client: hub.clone(),
        cluster_client: cluster.clone(),
        cluster: name.to_owned(),
        hub_hash: work::hub_hash(address),
        works,
        policies: Some(policies),
    };
    preview::start(config, tasks);
}

pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// For a question of which it is known that somebody will not answer.
pub(crate) const SHORT: Duration = Duration::from_secs(3);

/// A cluster's part of what was foreseen.
pub(crate) fn part<'a>(foreseen: &'a Value, cluster: &str) -> &'a Value {
    let parts = foreseen["clusters"].as_array().unwrap();
    parts.iter().find(|part| part["cluster"] == cluster).unwrap_or(&Value::Null)
}

pub(crate) fn objects(part: &Value) -> Vec<PreviewedObject> {
    serde_json::from_value(part["answer"]["objects"].clone()).unwrap_or_default()
}

/// Name, verdict and deciding field of each.
pub(crate) fn told(objects: &[PreviewedObject]) -> Vec<(&str, PreviewVerdict, &str)> {
    let mut told: Vec<_> =
        objects.iter().map(|one| (&*one.name, one.verdict, &*one.decided_by)).collect();
    told.sort();
    told
}

/// Whether each object that was foreseen is there or not, as foreseen.
async fn came_true(site: &Site, foreseen: &[PreviewedObject]) -> Result<()> {
    for one in foreseen {
        let still = site.maps().get_opt(&one.name).await?;
        let still = still.and_then(|map| map.uid()).is_some_and(|uid| uid == one.uid);
        assert_eq!(still, one.verdict != PreviewVerdict::Delete, "{one:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_preview_of_a_policy_says_what_its_templates_then_do() -> Result<()> {
    let site = Site::start("preview-policy").await?;
    for found in ["found", "all", "informed"] {
        create(&site.maps(), json!({ "metadata": { "name": found }, "data": { "key": "1" } }))
            .await?;
    }
    let templates = vec![
        site.template("created", "enforce", "DeleteIfCreated"),
        site.template("found", "enforce", "DeleteIfCreated"),
        site.template("all", "enforce", "DeleteAll"),
        site.template("informed", "inform", "DeleteAll"),
        site.template("kept", "enforce", "None"),
        site.must_not_have("unwanted"),
    ];
    site.policy("p", templates).await?;
    site.bind("p", "all", &[&site.name, &site.silent]).await?;
    let copy = site.holds("p").await?;

    let foreseen = foresee(&site.hub, "policy/p", Some(&site.team), SHORT).await?;
    // Nobody answers for the other one, which is not to say that nothing is there.
    assert_eq!(part(&foreseen, &site.silent)["answered"], false);
    let answer = objects(part(&foreseen, &site.name));
    let (behavior, remediation) = ("spec.pruneObjectBehavior", "spec.remediationAction");
    let expected = [
        ("all", PreviewVerdict::Delete, behavior),
        ("created", PreviewVerdict::Delete, behavior),
        ("found", PreviewVerdict::Keep, behavior),
        ("informed", PreviewVerdict::Keep, remediation),
        ("kept", PreviewVerdict::Keep, behavior),
    ];
    assert_eq!(told(&answer), expected, "{foreseen}");
    came_true_so_far(&site, &answer).await?;

    // The hub's copy is not what anybody should ask about.
    let copied = format!("policy/{}.p", site.team);
    let error = foresee(&site.hub, &copied, Some(&site.name), SHORT).await.unwrap_err();
    assert!(error.is::<Refused>() && error.to_string().contains("copy of policy"), "{error:#}");
    let error = site.foresee("policy/none").await.unwrap_err();
    assert!(error.is::<Refused>(), "{error:#}");

    delete(&site.here::<Policy>(), "p").await?;
    gone(&site.copies(), &copy).await?;
    came_true(&site, &answer).await?;
    site.tasks.shutdown().await;
    Ok(())
}

/// Nothing happened by asking.
async fn came_true_so_far(site: &Site, foreseen: &[PreviewedObject]) -> Result<()> {
    for one in foreseen {
        let uid = site.maps().get(&one.name).await?.uid();
        assert_eq!(uid.as_deref(), Some(&*one.uid));
    }
    Ok(())
}

#[tokio::test]
async fn a_configuration_policy_is_previewed_on_its_cluster_and_through_the_hub() -> Result<()> {
    let site = Site::start("preview-template").await?;
    let templates = vec![site.template("created", "enforce", "DeleteIfCreated")];
    site.policy("p", templates).await?;
    site.bind("p", "all", &[&site.name]).await?;
    site.holds("p").await?;

    let what = "configurationpolicy/created";
    let there = foresee(&site.cluster, what, Some(&site.name), PATIENCE).await?;
    let through = foresee(&site.hub, what, Some(&site.name), PATIENCE).await?;
    let (there, through) = (&there["clusters"][0], part(&through, &site.name).clone());
    assert_eq!(there["cluster"], "this cluster");
    assert_eq!(objects(there), objects(&through));
    let expected = [("created", PreviewVerdict::Delete, "spec.pruneObjectBehavior")];
    assert_eq!(told(&objects(there)), expected);
    for one in [there, &through] {
        let note = one["answer"]["notes"][0].as_str().unwrap_or_default();
        assert!(note.contains("would make it anew"), "{one}");
    }
    for (client, hint) in [(&site.cluster, ""), (&site.hub, "has a template of that name")] {
        let none = "configurationpolicy/none";
        let error = foresee(client, none, Some(&site.name), PATIENCE).await.unwrap_err();
        assert!(error.to_string().contains(hint), "{error:#}");
    }
    site.tasks.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn a_preview_of_a_leaving_cluster_has_what_policies_hold_there() -> Result<()> {
    let site = Site::start("preview-leave").await?;
    let templates = vec![
        site.template("created", "enforce", "DeleteIfCreated"),
        site.template("kept", "enforce", "None"),
    ];
    site.policy("p", templates).await?;
    site.bind("p", "all", &[&site.name]).await?;
    site.holds("p").await?;
    let questions: Api<RemovalPreview> = Api::namespaced(site.hub.clone(), &site.name);
    let (behavior, strategy) = ("spec.pruneObjectBehavior", "spec.removeStrategy");
    for (leave, verdict, field) in [
        ("Required", PreviewVerdict::Delete, behavior),
        ("Needless", PreviewVerdict::Keep, strategy),
    ] {
        let name = leave.to_lowercase();
        let question = json!({ "metadata": { "name": name }, "spec": { "leave": leave } });
        create(&questions, question).await?;
        let answered = |one: &RemovalPreview| {
            one.status.as_ref().is_some_and(|status| status.answered_at.is_some())
        };
        let mut status = seen(&questions, &name, answered).await?.status.unwrap_or_default();
        // On real control planes clusters of other tests are the same server, and their ledgers of the
        // same hub.
        status.objects.retain(|one| one.namespace == site.name);
        let expected = [("created", verdict, field), ("kept", PreviewVerdict::Keep, behavior)];
        assert_eq!(told(&status.objects), expected, "{leave}: {status:?}");
    }
    site.tasks.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn a_preview_of_a_binding_or_a_placement_says_where_policies_leave() -> Result<()> {
    let site = Site::start("preview-binding").await?;
    site.policy("p", vec![site.template("map", "enforce", "DeleteIfCreated")]).await?;
    site.bind("p", "one", &[&site.name]).await?;
    site.bind("p", "two", &[&site.name]).await?;
    let copy = site.holds("p").await?;
    for what in ["placementbinding/one", "placement/one"] {
        let foreseen = site.foresee(what).await?;
        let part = part(&foreseen, &site.name);
        assert_eq!(objects(part), [], "{what}: {foreseen}");
        let stays =
            format!("policy {}/p stays: placementbinding two places it there as well", site.team);
        assert_eq!(part["notes"][0], stays, "{what}: {foreseen}");
    }
    // What guards deletions counts the same clusters.
    let losing = async |name: &str, change: Change| -> Result<Vec<String>> {
        let losing = outlook::losing(&site.hub, &site.team, name, &change).await?;
        Ok(losing.get("p").into_iter().flatten().cloned().collect())
    };
    let alone = [site.name.clone()];
    assert_eq!(losing("p", Change::Root).await?, alone);
    assert_eq!(losing("one", Change::Binding("one".into())).await?, [] as [String; 0]);
    delete(&site.here::<PlacementBinding>(), "one").await?;
    assert_eq!(losing("two", Change::Binding("two".into())).await?, alone);
    assert_eq!(losing("two", Change::Placement("two".into())).await?, alone);
    let mut last = Vec::new();
    for what in ["placementbinding/two", "placement/two"] {
        let foreseen = site.foresee(what).await?;
        last = objects(part(&foreseen, &site.name));
        let expected = [("map", PreviewVerdict::Delete, "spec.pruneObjectBehavior")];
        assert_eq!(told(&last), expected, "{what}: {foreseen}");
    }
    assert_eq!(site.foresee("placement/one").await?["clusters"], json!([]));
    delete(&site.here::<Placement>(), "two").await?;
    gone(&site.copies(), &copy).await?;
    came_true(&site, &last).await?;
    site.tasks.shutdown().await;
    Ok(())
}

/// One of them made a namespace, the other found what is in it: the answers were laid side by side.
#[tokio::test]
async fn what_one_policy_of_a_binding_found_in_the_namespace_of_another_was_shown_as_kept()
-> Result<()> {
    let site = Site::start("preview-both").await?;
    let inner = format!("{}-inner", site.name);
    let mut makes = site.template("makes", "enforce", "DeleteIfCreated");
    makes["objectDefinition"]["spec"]["object-templates"][0]["objectDefinition"] =
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": inner } });
    site.policy("makes", vec![makes]).await?;
    let mut finds = site.template("finds", "enforce", "DeleteIfCreated");
    finds["objectDefinition"]["spec"]["object-templates"][0]["objectDefinition"]["metadata"]["namespace"] =
        json!(inner);
    site.bind("makes", "all", &[&site.name]).await?;
    site.holds("makes").await?;
    let maps: Api<ConfigMap> = Api::namespaced(site.cluster.clone(), &inner);
    create(&maps, json!({ "metadata": { "name": "finds" }, "data": { "key": "1" } })).await?;
    site.policy("finds", vec![finds]).await?;
    let subject = |name: &str| json!({ "apiGroup": "policy.open-cluster-management.io", "kind": "Policy", "name": name });
    let both = Patch::Merge(json!({ "subjects": [subject("makes"), subject("finds")] }));
    let bindings: Api<PlacementBinding> = site.here();
    bindings.patch("all", &PatchParams::default(), &both).await?;
    site.holds("finds").await?;

    let foreseen = site.foresee("placementbinding/all").await?;
    let answer = objects(part(&foreseen, &site.name));
    let behavior = "spec.pruneObjectBehavior";
    let mut expected =
        [(&*inner, PreviewVerdict::Delete, behavior), ("finds", PreviewVerdict::Delete, behavior)];
    expected.sort();
    assert_eq!(told(&answer), expected, "{foreseen}");
    let alone = site.foresee("policy/finds").await?;
    assert_eq!(objects(part(&alone, &site.name))[0].verdict, PreviewVerdict::Keep, "{alone}");
    let map = maps.get("finds").await?;
    delete(&bindings, "all").await?;
    gone(&maps, &map).await?;
    site.tasks.shutdown().await;
    Ok(())
}
