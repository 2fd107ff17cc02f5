//! Kubernetes as fleets rely on it, seen through kube's clients.
//!
//! Every test here runs on embedded servers and, with `cargo xtask kubernetes test`, on real ones.
//! Exact answers are the conformance suite's concern; these tests ask whether things happen.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that is wrong about its surroundings must fail"
)]

mod access;
mod admission_policies;
mod apply;
mod automation;
mod certificates;
mod clusters;
mod clusters_access;
mod clusters_admission;
mod clusters_join;
mod clusters_leave;
mod clusters_life;
mod counting;
mod definitions;
mod events;
mod explain;
mod finalizers;
mod garbage;
mod lists;
mod metrics;
mod mutating_webhooks;
mod namespaces;
mod objects;
mod placements;
mod placements_undefined;
mod policies;
mod policies_hub;
mod policies_moving;
mod policies_reach;
mod policies_sync;
mod previews;
mod previews_agreed;
mod previews_apply;
mod previews_guard;
mod previews_policies;
mod previews_sets;
mod protection;
mod regressions;
mod replicasets;
mod runtime_execute;
mod runtime_follow;
mod runtime_kinds;
mod runtime_mirror;
mod scale;
mod sharing;
mod undefine;
mod watches;
mod webhooks;
mod works;
mod works_admission;
mod works_api;
mod works_merge;

use anyhow::{Context as _, Result};
use cleat_world::world::Cluster;
use cleat_world::{World, within};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, DeleteParams, PostParams};
use kube::core::Status;
use kube::runtime::wait::{await_condition, conditions};
use kube::{Client, Resource, ResourceExt as _};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// A namespace of the test's own on the hub.
struct Place {
    world: World,
    client: Client,
    namespace: String,
}

impl Place {
    async fn new(topic: &str) -> Result<Self> {
        Self::of(World::start().await?, topic).await
    }

    /// For a test that takes away what others need.
    async fn alone(topic: &str) -> Result<Self> {
        Self::of(World::alone().await?, topic).await
    }

    async fn of(world: World, topic: &str) -> Result<Self> {
        let client = world.hub.client();
        let namespace = world.unique(topic);
        make_namespace(&world.hub, &namespace).await?;
        Ok(Self { world, client, namespace })
    }

    fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    async fn config_map(&self, name: &str) -> Result<ConfigMap> {
        create(&self.api(), json!({ "metadata": { "name": name } })).await
    }
}

async fn make_namespace(cluster: &Cluster, name: &str) -> Result<Namespace> {
    create(&Api::all(cluster.client()), json!({ "metadata": { "name": name } })).await
}

async fn create<K>(api: &Api<K>, object: Value) -> Result<K>
where
    K: Clone + Serialize + DeserializeOwned + std::fmt::Debug,
{
    Ok(api.create(&PostParams::default(), &parse(object)).await?)
}

fn parse<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

/// Asks for the deletion and does not wait for it.
async fn delete<K: Clone + DeserializeOwned + std::fmt::Debug>(
    api: &Api<K>,
    name: &str,
) -> Result<()> {
    api.delete(name, &DeleteParams::default()).await?;
    Ok(())
}

/// Returns when the object that had this uid is gone.
async fn gone<K>(api: &Api<K>, object: &K) -> Result<()>
where
    K: Resource + Clone + DeserializeOwned + std::fmt::Debug + Send + 'static,
{
    let (name, uid) = (object.name_any(), object.uid().context("it has a uid")?);
    let what = format!("the end of {name}");
    within(&what, await_condition(api.clone(), &name, conditions::is_deleted(&uid))).await??;
    Ok(())
}

/// The object as soon as `holds` of it.
async fn seen<K>(api: &Api<K>, name: &str, holds: impl Fn(&K) -> bool) -> Result<K>
where
    K: Resource + Clone + DeserializeOwned + std::fmt::Debug + Send + 'static,
{
    let holds = |object: Option<&K>| object.is_some_and(&holds);
    let found = within(name, await_condition(api.clone(), name, holds)).await??;
    found.context("the condition holds of nothing")
}

/// What the server says when it refuses to create this.
async fn refused<K>(api: &Api<K>, object: Value) -> Status
where
    K: Clone + Serialize + DeserializeOwned + std::fmt::Debug,
{
    refusal(api.create(&PostParams::default(), &parse(object)).await)
}

/// What the server said when it refused.
fn refusal<T: std::fmt::Debug>(answer: kube::Result<T>) -> Status {
    match answer {
        Err(kube::Error::Api(status)) => *status,
        other => panic!("expected a refusal, got {other:?}"),
    }
}
