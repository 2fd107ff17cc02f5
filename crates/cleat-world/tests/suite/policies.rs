//! ConfigurationPolicies on a cluster of their own, with a controller in this process and no hub.

mod certainty;
mod comparing;
mod enforcing;
mod first;
mod hazards;
mod idle;
mod pruning;
mod releasing;
mod templates;
mod undetermined;
pub(crate) mod unwatchable;

use anyhow::{Context as _, Result};
use cleat_agent::policy;
use cleat_api::configurationpolicy::{ConfigurationPolicy, RelatedObject};
use cleat_hub::prepare::prepare_cluster;
use cleat_runtime::tasks::Tasks;
use cleat_world::{World, within};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use kube::runtime::wait::await_condition;
use serde_json::{Value, json};

use crate::{create, delete, make_namespace, seen};

/// A cluster and a controller. Policies and objects of the test are in the namespace `name`.
struct Site {
    /// Holds the servers for as long as the test lasts.
    world: World,
    cluster: Client,
    name: String,
    tasks: Option<Tasks>,
}

impl Site {
    async fn start(topic: &str) -> Result<Self> {
        let mut site = Self::without_controller(topic).await?;
        site.run(site.config());
        Ok(site)
    }

    async fn without_controller(topic: &str) -> Result<Self> {
        Self::of(World::with_clusters(1).await?, topic).await
    }

    /// For a test that takes away what others need.
    async fn alone(topic: &str) -> Result<Self> {
        let mut site = Self::of(World::alone().await?, topic).await?;
        site.run(site.config());
        Ok(site)
    }

    async fn of(world: World, topic: &str) -> Result<Self> {
        let first = world.clusters.first().context("a world has a cluster")?;
        let cluster = first.client();
        prepare_cluster(&cluster).await?;
        let name = world.unique(topic);
        make_namespace(first, &name).await?;
        Ok(Self { world, cluster, name, tasks: None })
    }

    fn config(&self) -> policy::Config {
        let namespaces = vec![self.name.clone()];
        policy::Config { namespaces, ..policy::Config::new(self.cluster.clone()) }
    }

    fn run(&mut self, config: policy::Config) {
        let tasks = Tasks::new();
        policy::start(config, &tasks);
        self.tasks = Some(tasks);
    }

    async fn stop(&mut self) {
        if let Some(tasks) = self.tasks.take() {
            tasks.shutdown().await;
        }
    }

    fn policies(&self) -> Api<ConfigurationPolicy> {
        Api::namespaced(self.cluster.clone(), &self.name)
    }

    fn maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.cluster.clone(), &self.name)
    }

    /// The definition of a map in the test's namespace.
    fn map(&self, name: &str, value: &str) -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": { "name": name, "namespace": self.name },
            "data": { "key": value },
        })
    }

    /// Makes a policy of that spec.
    async fn policy(&self, name: &str, spec: Value) -> Result<ConfigurationPolicy> {
        create(&self.policies(), json!({ "metadata": { "name": name }, "spec": spec })).await
    }

    async fn patch(&self, name: &str, patch: Value) -> Result<ConfigurationPolicy> {
        let patch = Patch::Merge(patch);
        Ok(self.policies().patch(name, &PatchParams::default(), &patch).await?)
    }

    /// The policy as soon as it stands so, for its current generation.
    async fn stands(&self, name: &str, state: &str) -> Result<ConfigurationPolicy> {
        seen(&self.policies(), name, |policy: &ConfigurationPolicy| {
            policy.status.as_ref().is_some_and(|status| {
                status.compliant.as_deref() == Some(state)
                    && (state == "Terminating"
                        || status.last_evaluated_generation == policy.metadata.generation)
            })
        })
        .await
    }

    /// The policy as soon as one of its conditions says this.
    async fn says(&self, name: &str, text: &str) -> Result<ConfigurationPolicy> {
        let policies = self.policies();
        let found = seen(&policies, name, |policy: &ConfigurationPolicy| {
            messages(policy).iter().any(|message| message.contains(text))
        });
        found.await.with_context(|| format!("for {name} to say {text:?}"))
    }

    /// The policy as soon as it found all its objects as they should be: what it created or
    /// updated was looked at again, and there is nothing left to say.
    async fn settles(&self, name: &str) -> Result<ConfigurationPolicy> {
        let policies = self.policies();
        let found = seen(&policies, name, |policy: &ConfigurationPolicy| {
            let said = messages(policy);
            !said.is_empty() && said.iter().all(|message| message.contains("found as specified"))
        });
        found.await.with_context(|| format!("for {name} to settle"))
    }

    /// Returns when no object of that name is there.
    async fn absent<K>(&self, api: &Api<K>, name: &str) -> Result<()>
    where
        K: kube::Resource + Clone + serde::de::DeserializeOwned + std::fmt::Debug + Send + 'static,
    {
        let absent = |object: Option<&K>| object.is_none();
        within(&format!("{name} to go"), await_condition(api.clone(), name, absent)).await??;
        Ok(())
    }

    /// Deletes a policy and waits until it is gone.
    async fn end(&self, name: &str) -> Result<()> {
        delete(&self.policies(), name).await?;
        self.absent(&self.policies(), name).await
    }

    /// Returns when the controller has looked at a policy that was made now: whatever it had to do
    /// about others before, it did or never will.
    async fn passes(&self, name: &str) -> Result<()> {
        self.policy(name, enforce(vec![musthave(self.map(name, "1"))])).await?;
        self.stands(name, "Compliant").await?;
        Ok(())
    }
}

fn musthave(definition: Value) -> Value {
    json!({ "complianceType": "musthave", "objectDefinition": definition })
}

fn mustnothave(definition: Value) -> Value {
    json!({ "complianceType": "mustnothave", "objectDefinition": definition })
}

fn enforce(templates: Vec<Value>) -> Value {
    json!({ "remediationAction": "enforce", "object-templates": templates })
}

fn inform(templates: Vec<Value>) -> Value {
    json!({ "remediationAction": "inform", "object-templates": templates })
}

/// The spec, with what becomes of objects that it leaves behind.
fn pruning(mut spec: Value, behavior: &str) -> Value {
    spec["pruneObjectBehavior"] = json!(behavior);
    spec
}

fn messages(policy: &ConfigurationPolicy) -> Vec<String> {
    let details = policy.status.iter().flat_map(|status| &status.compliancy_details);
    let conditions = details.flat_map(|detail| &detail.conditions);
    conditions.filter_map(|condition| condition.message.clone()).collect()
}

fn related<'a>(policy: &'a ConfigurationPolicy, name: &str) -> Option<&'a RelatedObject> {
    let all = policy.status.as_ref().map(|status| status.related_objects.as_slice());
    all.unwrap_or_default().iter().find(|entry| entry.object.metadata.name == name)
}

fn is_created(policy: &ConfigurationPolicy, name: &str) -> Option<bool> {
    related(policy, name)?.properties.as_ref()?.created_by_policy
}
