//! Policies that a hub sends: to the cluster, as templates, back as status, and away again.

use anyhow::{Context as _, Result};
use cleat_agent::{policy, policy_sync};
use cleat_api::configurationpolicy::ConfigurationPolicy;
use cleat_api::policy::Policy;
use cleat_core::policy_sync::HOLD;
use cleat_hub::prepare::{prepare_cluster, prepare_hub};
use cleat_runtime::connect::connect;
use cleat_runtime::tasks::Tasks;
use cleat_world::{World, within};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::Client;
use kube::api::{Api, DeleteParams, Patch};
use kube::runtime::wait::await_condition;
use serde_json::{Value, json};

use crate::undefine::undefine;
use crate::{create, delete, make_namespace, seen};

/// A hub, a cluster, and both stories between them. All namespaces are called `name`.
struct Site {
    world: World,
    hub: Client,
    cluster: Client,
    name: String,
    tasks: Tasks,
}

impl Site {
    async fn start(topic: &str) -> Result<Self> {
        let site = Self::without_agent(topic).await?;
        site.run(site.hub.clone());
        Ok(site)
    }

    async fn without_agent(topic: &str) -> Result<Self> {
        Self::of(World::with_clusters(1).await?, topic).await
    }

    /// For a test that takes away what others need.
    async fn alone(topic: &str) -> Result<Self> {
        let site = Self::of(World::alone().await?, topic).await?;
        site.run(site.hub.clone());
        Ok(site)
    }

    async fn of(world: World, topic: &str) -> Result<Self> {
        let cluster = world.clusters.first().context("a world has a cluster")?.client();
        let hub = world.hub.client();
        prepare_hub(&hub).await?;
        prepare_cluster(&cluster).await?;
        let name = world.unique(topic);
        make_namespace(&world.hub, &name).await?;
        Ok(Self { world, hub, cluster, name, tasks: Tasks::new() })
    }

    fn run(&self, hub: Client) {
        policy::start(policy::Config::of_member(self.cluster.clone(), &self.name), &self.tasks);
        let config = policy_sync::Config::new(hub, self.cluster.clone(), &self.name);
        policy_sync::start(config, &self.tasks);
    }

    fn replicas(&self) -> Api<Policy> {
        Api::namespaced(self.hub.clone(), &self.name)
    }

    fn copies(&self) -> Api<Policy> {
        Api::namespaced(self.cluster.clone(), &self.name)
    }

    fn templates(&self) -> Api<ConfigurationPolicy> {
        Api::namespaced(self.cluster.clone(), &self.name)
    }

    fn maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.cluster.clone(), &self.name)
    }

    /// A template that wants a map of its own name.
    fn template(&self, name: &str, prune: &str) -> Value {
        json!({ "objectDefinition": {
            "apiVersion": "policy.open-cluster-management.io/v1", "kind": "ConfigurationPolicy",
            "metadata": { "name": name },
            "spec": {
                "remediationAction": "inform", "pruneObjectBehavior": prune,
                "object-templates": [{ "complianceType": "musthave", "objectDefinition": {
                    "apiVersion": "v1", "kind": "ConfigMap",
                    "metadata": { "name": name, "namespace": self.name }, "data": { "key": "1" },
                }}],
            },
        }})
    }

    /// What the hub's propagator would make of a root policy.
    async fn send(&self, name: &str, templates: Vec<Value>) -> Result<Policy> {
        let labels = json!({
            "policy.open-cluster-management.io/root-policy": name,
            "policy.open-cluster-management.io/cluster-name": self.name,
            "policy.open-cluster-management.io/cluster-namespace": self.name,
        });
        let policy = json!({
            "metadata": { "name": name, "labels": labels },
            "spec": {
                "disabled": false, "remediationAction": "enforce", "policy-templates": templates,
            },
        });
        create(&self.replicas(), policy).await
    }

    /// The policy on the hub as soon as it stands so.
    async fn stands(&self, name: &str, state: &str) -> Result<Policy> {
        seen(&self.replicas(), name, |policy: &Policy| {
            policy.status.as_ref().is_some_and(|status| status.compliant.as_deref() == Some(state))
        })
        .await
    }

    async fn absent<K>(&self, api: &Api<K>, name: &str) -> Result<()>
    where
        K: kube::Resource + Clone + serde::de::DeserializeOwned + std::fmt::Debug + Send + 'static,
    {
        let absent = |object: Option<&K>| object.is_none();
        within(&format!("{name} to go"), await_condition(api.clone(), name, absent)).await??;
        Ok(())
    }
}

fn newest(policy: &Policy) -> Option<&str> {
    let detail = policy.status.as_ref()?.details.first()?;
    Some(detail.history.first()?.message.as_str())
}

#[tokio::test]
async fn a_policy_travels_to_the_cluster_and_its_compliance_back() -> Result<()> {
    let site = Site::start("sync").await?;
    site.send("root.p", vec![site.template("a", "None")]).await?;
    let last = format!(
        "Compliant; notification - configmaps [a] found as specified in namespace {}",
        site.name
    );
    let said = |policy: &Policy| newest(policy) == Some(last.as_str());
    let told = seen(&site.replicas(), "root.p", said).await?;
    let copy = site.copies().get("root.p").await?;
    let said = |policy: &Policy| policy.status.clone().map(|one| (one.compliant, one.details));
    assert_eq!(said(&copy), said(&told));
    let template = site.templates().get("a").await?;
    let owners = template.metadata.owner_references.unwrap_or_default();
    assert_eq!(owners.first().map(|owner| &owner.uid), copy.metadata.uid.as_ref());
    assert!(site.maps().get_opt("a").await?.is_some());
    // What somebody changes on the cluster is what the hub says again.
    let meddling = Patch::Merge(json!({ "spec": { "remediationAction": "inform" } }));
    site.copies().patch("root.p", &Default::default(), &meddling).await?;
    let restored = |policy: &Policy| policy.spec.remediation_action.as_deref() == Some("enforce");
    seen(&site.copies(), "root.p", restored).await?;
    delete(&site.copies(), "root.p").await?;
    let anew = |policy: &Policy| policy.metadata.uid != copy.metadata.uid;
    seen(&site.copies(), "root.p", anew).await?;
    site.stands("root.p", "Compliant").await?;
    Ok(())
}

#[tokio::test]
async fn what_a_policy_made_goes_when_the_hub_lets_go_and_what_hangs_is_seen_there() -> Result<()> {
    let site = Site::start("sync-prune").await?;
    site.send("root.p", vec![site.template("a", "DeleteIfCreated")]).await?;
    let told = site.stands("root.p", "Compliant").await?;
    assert_eq!(told.metadata.finalizers.unwrap_or_default(), [HOLD]);
    let hold = Patch::Merge(json!({ "metadata": { "finalizers": ["example.com/hold"] } }));
    site.maps().patch("a", &Default::default(), &hold).await?;
    delete(&site.replicas(), "root.p").await?;
    let stuck = |policy: &Policy| {
        newest(policy).is_some_and(|message| {
            message.starts_with("Terminating; ") && message.contains("example.com/hold")
        })
    };
    let stuck = seen(&site.replicas(), "root.p", stuck).await?;
    assert_eq!(stuck.status.and_then(|status| status.compliant).as_deref(), Some("NonCompliant"));
    let release = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    site.maps().patch("a", &Default::default(), &release).await?;
    site.absent(&site.replicas(), "root.p").await?;
    assert!(site.copies().get_opt("root.p").await?.is_none());
    assert!(site.templates().get_opt("a").await?.is_none());
    assert!(site.maps().get_opt("a").await?.is_none());
    Ok(())
}

#[tokio::test]
async fn a_policy_that_does_not_prune_goes_and_leaves_its_objects() -> Result<()> {
    let site = Site::start("sync-leave").await?;
    let sent = site.send("root.p", vec![site.template("a", "None")]).await?;
    assert_eq!(sent.metadata.finalizers, None);
    site.stands("root.p", "Compliant").await?;
    delete(&site.replicas(), "root.p").await?;
    site.absent(&site.copies(), "root.p").await?;
    site.absent(&site.templates(), "a").await?;
    assert!(site.maps().get_opt("a").await?.is_some());
    Ok(())
}

/// §3.7: losing a dependency removed the template, and that pruned.
#[tokio::test]
async fn a_dependency_that_is_lost_prunes_nothing() -> Result<()> {
    let site = Site::start("sync-pending").await?;
    let mut waiting = site.template("late", "DeleteAll");
    waiting["extraDependencies"] = json!([{
        "apiVersion": "policy.open-cluster-management.io/v1", "kind": "ConfigurationPolicy",
        "name": "base", "compliance": "Compliant",
    }]);
    site.send("root.late", vec![waiting]).await?;
    let pending = site.stands("root.late", "Pending").await?;
    assert_eq!(
        newest(&pending),
        Some(
            "Pending; Dependencies were not satisfied: 1 is still pending (ConfigurationPolicy base)"
        )
    );
    site.send("root.base", vec![site.template("base", "None")]).await?;
    site.stands("root.late", "Compliant").await?;
    let made = site.maps().get("late").await?;
    delete(&site.replicas(), "root.base").await?;
    site.stands("root.late", "Pending").await?;
    assert!(site.templates().get_opt("late").await?.is_some());
    assert_eq!(site.maps().get("late").await?.metadata.uid, made.metadata.uid);
    site.send("root.base", vec![site.template("base", "None")]).await?;
    let back = site.stands("root.late", "Compliant").await?;
    assert!(newest(&back).is_some_and(|message| message.starts_with("Compliant; notification")));
    Ok(())
}

/// A slip in the policy, or a lookup that the hub could not answer, must not prune what is there.
#[tokio::test]
async fn a_template_whose_name_is_in_doubt_takes_no_other_away() -> Result<()> {
    let site = Site::start("sync-doubt").await?;
    let both = vec![site.template("a", "DeleteAll"), site.template("b", "DeleteAll")];
    site.send("root.p", both).await?;
    site.stands("root.p", "Compliant").await?;
    let made = site.maps().get("b").await?;
    let mut unresolved =
        site.template("{{hub fromConfigMap \"\" \"m\" \"name\" hub}}", "DeleteAll");
    unresolved["objectDefinition"]["metadata"]["annotations"] =
        json!({ "policy.open-cluster-management.io/hub-templates-error": "no such map" });
    for doubtful in [site.template("a", "DeleteAll"), unresolved] {
        let all = vec![site.template("a", "DeleteAll"), doubtful];
        let patch = Patch::Merge(json!({ "spec": { "policy-templates": all } }));
        site.replicas().patch("root.p", &Default::default(), &patch).await?;
        site.stands("root.p", "NonCompliant").await?;
        let kept = site.templates().get("b").await?;
        assert_eq!(kept.metadata.deletion_timestamp, None, "removed by a slip");
        assert_eq!(site.maps().get("b").await?.metadata.uid, made.metadata.uid);
        let patch = Patch::Merge(json!({ "spec": { "policy-templates": [
            site.template("a", "DeleteAll"), site.template("b", "DeleteAll"),
        ] } }));
        site.replicas().patch("root.p", &Default::default(), &patch).await?;
        site.stands("root.p", "Compliant").await?;
    }
    let patch =
        Patch::Merge(json!({ "spec": { "policy-templates": [site.template("a", "None")] } }));
    site.replicas().patch("root.p", &Default::default(), &patch).await?;
    site.absent(&site.maps(), "b").await
}

/// A template that left the policy and cannot go is seen on the hub, which is held until it went.
#[tokio::test]
async fn a_template_that_left_and_hangs_is_seen_on_the_hub() -> Result<()> {
    let site = Site::start("sync-left").await?;
    site.send("root.p", vec![site.template("a", "DeleteAll"), site.template("b", "None")]).await?;
    site.stands("root.p", "Compliant").await?;
    let hold = Patch::Merge(json!({ "metadata": { "finalizers": ["example.com/hold"] } }));
    site.maps().patch("a", &Default::default(), &hold).await?;
    let patch =
        Patch::Merge(json!({ "spec": { "policy-templates": [site.template("b", "None")] } }));
    site.replicas().patch("root.p", &Default::default(), &patch).await?;
    let replicas = site.replicas();
    let stuck = seen(&replicas, "root.p", |policy: &Policy| {
        let details = policy.status.iter().flat_map(|status| &status.details);
        let mut said = details.filter_map(|detail| detail.history.first());
        said.any(|one| one.message.starts_with("Terminating; "))
    });
    assert_eq!(stuck.await?.metadata.finalizers.unwrap_or_default(), [HOLD]);
    let release = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    site.maps().patch("a", &Default::default(), &release).await?;
    seen(&site.replicas(), "root.p", |policy: &Policy| {
        policy.metadata.finalizers.as_ref().is_none_or(Vec::is_empty)
    })
    .await?;
    site.stands("root.p", "Compliant").await?;
    Ok(())
}

#[tokio::test]
async fn templates_go_with_the_kind_of_their_policy_and_prune_nothing() -> Result<()> {
    let site = Site::alone("sync-kind-goes").await?;
    site.send("root.p", vec![site.template("a", "DeleteAll")]).await?;
    site.stands("root.p", "Compliant").await?;
    let first = site.templates().get("a").await?;
    let name = "policies.policy.open-cluster-management.io";
    undefine(&site.cluster, name, &[&site.name]).await?;
    // As the garbage collector does, for an owner that is gone.
    match site.templates().delete("a", &DeleteParams::default()).await {
        // It was quicker.
        Err(kube::Error::Api(status)) if status.code == 404 => {}
        deleted => drop(deleted?),
    }
    site.absent(&site.templates(), "a").await?;
    assert!(site.maps().get_opt("a").await?.is_some(), "pruned because the kind went");
    prepare_cluster(&site.cluster).await?;
    let again = seen(&site.templates(), "a", |_: &ConfigurationPolicy| true).await?;
    assert_ne!(again.metadata.uid, first.metadata.uid);
    Ok(())
}

/// §6 row 5, as far as a cluster can tell: a hub that cannot be reached has not let go.
#[tokio::test]
async fn a_hub_that_is_away_prunes_nothing_and_policies_go_on() -> Result<()> {
    let site = Site::without_agent("sync-cut").await?;
    let (link, config) = site.world.hub.link().await?;
    site.run(connect(config, "test")?);
    site.send("root.p", vec![site.template("a", "DeleteAll")]).await?;
    site.stands("root.p", "Compliant").await?;
    link.cut();
    delete(&site.maps(), "a").await?;
    seen(&site.maps(), "a", |_: &ConfigMap| true).await?;
    assert!(site.copies().get_opt("root.p").await?.is_some());
    delete(&site.replicas(), "root.p").await?;
    link.restore();
    site.absent(&site.replicas(), "root.p").await?;
    assert!(site.maps().get_opt("a").await?.is_none());
    Ok(())
}

#[tokio::test]
async fn a_cluster_may_be_its_own_hub() -> Result<()> {
    let mut site = Site::without_agent("sync-own").await?;
    site.cluster = site.hub.clone();
    prepare_cluster(&site.cluster).await?;
    site.run(site.hub.clone());
    let sent = site.send("root.p", vec![site.template("a", "DeleteIfCreated")]).await?;
    let told = site.stands("root.p", "Compliant").await?;
    assert_eq!(told.metadata.uid, sent.metadata.uid);
    delete(&site.replicas(), "root.p").await?;
    site.absent(&site.replicas(), "root.p").await?;
    assert!(site.maps().get_opt("a").await?.is_none());
    Ok(())
}

#[tokio::test]
async fn a_template_that_cannot_be_made_is_told_of() -> Result<()> {
    let site = Site::start("sync-bad").await?;
    let bad = json!({ "objectDefinition": {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" },
    }});
    site.send("root.p", vec![bad]).await?;
    let told = site.stands("root.p", "NonCompliant").await?;
    assert_eq!(
        newest(&told),
        Some(
            "NonCompliant; template-error; policy-template kind is not supported: /v1, Kind=ConfigMap"
        )
    );
    let namespaces: Api<Namespace> = Api::all(site.cluster.clone());
    assert!(namespaces.get_opt(&site.name).await?.is_some());
    Ok(())
}
