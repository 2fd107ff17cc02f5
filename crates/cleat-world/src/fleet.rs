//! A hub, a cluster and an agent between them, for tests of works.

use anyhow::{Context as _, Result};
use cleat_agent::work;
use cleat_api::appliedmanifestwork::AppliedManifestWork;
use cleat_api::manifestwork::ManifestWork;
use cleat_hub::prepare::{prepare_cluster, prepare_hub};
use cleat_runtime::tasks::Tasks;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::runtime::wait::{await_condition, conditions};
use kube::{Client, Resource};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::{World, within};

/// The cluster's name, its namespace on the hub and the test's namespace on the cluster are all
/// `name`, which no other test uses.
pub struct Fleet {
    pub hub: Client,
    pub cluster: Client,
    pub name: String,
    pub world: World,
    agent: Agent,
}

/// An agent that can be started and stopped.
#[derive(Default)]
pub struct Agent {
    tasks: Option<Tasks>,
}

impl Agent {
    pub fn start(&mut self, config: work::Config) {
        let tasks = Tasks::new();
        work::start(config, &tasks);
        self.tasks = Some(tasks);
    }

    pub async fn stop(&mut self) {
        if let Some(tasks) = self.tasks.take() {
            tasks.shutdown().await;
        }
    }
}

impl Fleet {
    pub async fn start(topic: &str) -> Result<Self> {
        let mut fleet = Self::without_agent(topic).await?;
        fleet.start_agent(fleet.config());
        Ok(fleet)
    }

    pub async fn without_agent(topic: &str) -> Result<Self> {
        let world = World::with_clusters(1).await?;
        let cluster = world.clusters.first().context("a fleet has a cluster")?.client();
        let hub = world.hub.client();
        prepare_hub(&hub).await?;
        prepare_cluster(&cluster).await?;
        let name = world.unique(topic);
        for client in [&hub, &cluster] {
            let namespaces: Api<Namespace> = Api::all(client.clone());
            let namespace = serde_json::from_value(json!({ "metadata": { "name": name } }))?;
            namespaces.create(&PostParams::default(), &namespace).await?;
        }
        Ok(Self { hub, cluster, name, world, agent: Agent::default() })
    }

    /// What an agent of this fleet is told, unless a test wants something else.
    pub fn config(&self) -> work::Config {
        let address = format!("https://hub.of.{}", self.name);
        let config =
            work::Config::new(self.hub.clone(), self.cluster.clone(), &self.name, &address);
        work::Config { agent_id: self.name.clone(), ..config }
    }

    pub fn start_agent(&mut self, config: work::Config) {
        self.agent.start(config);
    }

    pub async fn stop_agent(&mut self) {
        self.agent.stop().await;
    }

    pub fn works(&self) -> Api<ManifestWork> {
        Api::namespaced(self.hub.clone(), &self.name)
    }

    pub fn ledgers(&self) -> Api<AppliedManifestWork> {
        Api::all(self.cluster.clone())
    }

    pub async fn ledger(&self, work: &str) -> Result<AppliedManifestWork> {
        Ok(self.ledgers().get(&self.ledger_name(work)).await?)
    }

    pub fn ledger_name(&self, work: &str) -> String {
        format!("{}-{work}", work::hub_hash(&self.config().hub_address))
    }

    /// Objects on the cluster, in the test's namespace.
    pub fn there<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.cluster.clone(), &self.name)
    }

    pub fn maps(&self) -> Api<ConfigMap> {
        self.there()
    }

    /// The manifest of a ConfigMap in the test's namespace.
    pub fn map(&self, name: &str, value: &str) -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": { "name": name, "namespace": self.name },
            "data": { "key": value },
        })
    }

    /// Makes a work with these manifests and whatever else its spec says.
    pub async fn work(
        &self,
        name: &str,
        manifests: Vec<Value>,
        more: Value,
    ) -> Result<ManifestWork> {
        let mut spec = json!({ "workload": { "manifests": manifests } });
        if let (Some(spec), Value::Object(more)) = (spec.as_object_mut(), more) {
            spec.extend(more);
        }
        let work = serde_json::from_value(json!({ "metadata": { "name": name }, "spec": spec }))?;
        Ok(self.works().create(&PostParams::default(), &work).await?)
    }

    /// Changes a work by a merge patch.
    pub async fn patch(&self, name: &str, patch: Value) -> Result<ManifestWork> {
        Ok(self.works().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?)
    }

    /// Gives a work other manifests.
    pub async fn rewrite(&self, name: &str, manifests: Vec<Value>) -> Result<ManifestWork> {
        self.patch(name, json!({ "spec": { "workload": { "manifests": manifests } } })).await
    }

    /// The work as soon as a condition of it is so, for its current generation.
    pub async fn told(&self, work: &str, condition: &str, status: &str) -> Result<ManifestWork> {
        self.seen(&self.works(), work, |work: &ManifestWork| {
            condition_of(work, condition).is_some_and(|found| {
                found.status == status && found.observed_generation == work.metadata.generation
            })
        })
        .await
    }

    /// The work as soon as the message of a condition has this text in it.
    pub async fn says(&self, work: &str, condition: &str, text: &str) -> Result<ManifestWork> {
        self.seen(&self.works(), work, |work: &ManifestWork| {
            condition_of(work, condition).is_some_and(|found| found.message.contains(text))
        })
        .await
    }

    /// Asks for the deletion of a work, and does not wait for it.
    pub async fn delete(&self, work: &str) -> Result<()> {
        self.works().delete(work, &DeleteParams::default()).await?;
        Ok(())
    }

    /// Deletes a work and waits until it is gone.
    pub async fn end(&self, work: &str) -> Result<()> {
        let uid = self.works().get(work).await?.metadata.uid.context("a work has a uid")?;
        self.delete(work).await?;
        let gone = await_condition(self.works(), work, conditions::is_deleted(&uid));
        within(&format!("work {work} to go"), gone).await??;
        Ok(())
    }

    /// The object as soon as `holds` of it.
    pub async fn seen<K>(&self, api: &Api<K>, name: &str, holds: impl Fn(&K) -> bool) -> Result<K>
    where
        K: Resource + Clone + DeserializeOwned + std::fmt::Debug + Send + 'static,
    {
        let holds = |object: Option<&K>| object.is_some_and(&holds);
        let found = within(name, await_condition(api.clone(), name, holds)).await??;
        found.context("the condition holds of nothing")
    }

    /// Returns when nothing of that name is there.
    pub async fn absent<K>(&self, api: &Api<K>, name: &str) -> Result<()>
    where
        K: Resource + Clone + DeserializeOwned + std::fmt::Debug + Send + 'static,
    {
        let absent = |object: Option<&K>| object.is_none();
        within(&format!("{name} to go"), await_condition(api.clone(), name, absent)).await??;
        Ok(())
    }
}

/// A condition of a work, by its type.
pub fn condition_of<'a>(work: &'a ManifestWork, condition: &str) -> Option<&'a Condition> {
    work.status.as_ref()?.conditions.iter().find(|found| found.type_ == condition)
}

/// The status and the message of a condition of one manifest of a work.
pub fn manifest_condition(
    work: &ManifestWork,
    ordinal: usize,
    condition: &str,
) -> (String, String) {
    let manifests = work.status.as_ref().map(|status| &status.resource_status.manifests);
    let conditions = manifests.and_then(|all| all.get(ordinal)).map(|one| &one.conditions);
    let found = conditions.and_then(|all| all.iter().find(|found| found.type_ == condition));
    found.map(|found| (found.status.clone(), found.message.clone())).unwrap_or_default()
}

/// The ledgers that hold an object, in the order of its owner references.
pub fn holders(object: &impl Resource) -> Vec<String> {
    let owners = object.meta().owner_references.clone().unwrap_or_default();
    owners.into_iter().filter(|o| o.kind == "AppliedManifestWork").map(|o| o.name).collect()
}
