//! A cluster that has joined with all an agent does, over a link that can be cut.
//!
//! On the hub the agent has the rights of its certificate, and no more; with its own credentials it
//! also keeps them on the cluster.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use cleat_agent::leave::Presence;
use cleat_agent::registration::{Credentials, Keep, Line, Live, Rotation, live};
use cleat_agent::{Member, start_stories, work};
use cleat_api::appliedmanifestwork::AppliedManifestWork;
use cleat_api::leftoverrecord::{LeftObject, LeftoverRecord};
use cleat_api::managedcluster::{ManagedCluster, RemoveStrategy};
use cleat_api::manifestwork::ManifestWork;
use cleat_core::registration::agent::{Application, apply};
use cleat_core::registration::identity::Agent;
use cleat_core::write::Write;
use cleat_runtime::clock::Clock;
use cleat_runtime::tasks::Tasks;
use cleat_world::{Link, eventually};
use jiff::SignedDuration;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};

use crate::clusters::{Fleet, condition};
use crate::{create, delete, gone, make_namespace, seen};

pub(super) struct Party {
    pub(super) fleet: Fleet,
    /// The cluster, its namespace on the hub, and the test's namespace on the cluster.
    pub(super) name: String,
    pub(super) cluster: Client,
    pub(super) link: Link,
    pub(super) presence: Presence,
    pub(super) joined: ManagedCluster,
    hub_client: Client,
    keep: Option<Keep>,
    /// What it joined with, if it did as any other.
    pub(super) credentials: Option<Credentials>,
    /// For how long the agent waits before it lets go of what its hub does not have any more.
    pub(super) grace: Option<SignedDuration>,
    agent: Option<Tasks>,
}

impl Party {
    pub(super) async fn new(topic: &str, strategy: RemoveStrategy) -> Result<Self> {
        let fleet = Fleet::new(topic).await?;
        let name = fleet.world.unique(topic);
        make_namespace(&fleet.world.clusters[0], &name).await?;
        let_in(&fleet, &name, strategy).await?;
        let (link, mut config) = fleet.world.hub.link().await?;
        let agent = Agent::new(&name, "agent");
        config.auth_info.impersonate = Some(agent.user());
        let groups = agent.groups().into_iter().chain(["system:authenticated".to_owned()]);
        config.auth_info.impersonate_groups = Some(groups.collect());
        let hub_client = Client::try_from(config)?;
        Self::start(fleet, name, link, hub_client, None, None).await
    }

    /// One whose agent joined as any other, and keeps its credentials on the cluster.
    pub(super) async fn with_own_rights(topic: &str, strategy: RemoveStrategy) -> Result<Self> {
        let fleet = Fleet::new(topic).await?;
        let name = fleet.world.unique(topic);
        make_namespace(&fleet.world.clusters[0], &name).await?;
        let application = Application { remove_strategy: strategy, ..fleet.application(&name) };
        let mut joining = fleet.join(application).await?;
        fleet.accept(&mut joining).await?;
        let credentials = joining.end().await??;
        fleet.until(&name, "HubAcceptedManagedCluster", "True").await?;
        let (link, _) = fleet.world.hub.link().await?;
        let hub_client = credentials.connect().await?;
        let keep = fleet.keep(&name);
        Self::start(fleet, name, link, hub_client, Some(keep), Some(credentials)).await
    }

    async fn start(
        fleet: Fleet,
        name: String,
        link: Link,
        hub_client: Client,
        keep: Option<Keep>,
        credentials: Option<Credentials>,
    ) -> Result<Self> {
        let cluster = fleet.cluster_client();
        let mut party = Self {
            joined: fleet.clusters().get(&name).await?,
            fleet,
            name,
            cluster,
            link,
            presence: Presence::default(),
            hub_client,
            keep,
            credentials,
            grace: None,
            agent: None,
        };
        party.start_agent();
        party.fleet.until(&party.name, "ManagedClusterConditionAvailable", "True").await?;
        Ok(party)
    }

    /// The cluster has left, and joins again under its name.
    pub(super) async fn join_again(&mut self, strategy: RemoveStrategy) -> Result<()> {
        self.joined = let_in(&self.fleet, &self.name, strategy).await?;
        self.start_agent();
        self.fleet.until(&self.name, "ManagedClusterConditionAvailable", "True").await?;
        Ok(())
    }

    pub(super) fn start_agent(&mut self) {
        self.start_agent_with(self.hub_client.clone(), self.cluster.clone());
    }

    /// Over another connection to the cluster.
    pub(super) fn start_agent_on(&mut self, cluster_client: Client) {
        self.start_agent_with(self.hub_client.clone(), cluster_client);
    }

    pub(super) fn start_agent_with(&mut self, hub_client: Client, cluster_client: Client) {
        let tasks = Tasks::new();
        self.presence = Presence::default();
        let member = Member {
            name: self.name.clone(),
            cluster_id: format!("id-of-{}", self.name),
            hub_client: hub_client.clone(),
            cluster_client: cluster_client.clone(),
            hub_address: self.address(),
            presence: self.presence.clone(),
            keep: self.keep.clone(),
            deployment: None,
        };
        let rotation = self.keep.clone().zip(self.credentials.clone());
        let rotation = rotation.map(|(keep, credentials)| {
            let line = Line::new(hub_client.clone());
            Rotation { line, keep, credentials, lifetime_seconds: None }
        });
        live(
            Live {
                name: self.name.clone(),
                cluster_id: member.cluster_id.clone(),
                hub_address: member.hub_address.clone(),
                hub_client,
                cluster_client,
                clock: Clock::system(),
                dice: Arc::new(|| 0),
                rotation,
                presence: self.presence.clone(),
            },
            &tasks,
        );
        let (id, eviction_grace) = (self.name.clone(), self.grace);
        let works = move |config: work::Config| work::Config {
            agent_id: id.clone(),
            status_interval: SignedDuration::from_secs(1),
            eviction_grace,
            ..config
        };
        start_stories(&member, works, |policies| policies, &tasks);
        self.agent = Some(tasks);
    }

    pub(super) async fn stop_agent(&mut self) {
        if let Some(tasks) = self.agent.take() {
            tasks.shutdown().await;
        }
    }

    /// What its ledgers are named after.
    pub(super) fn address(&self) -> String {
        format!("https://hub.of.{}", self.name)
    }

    pub(super) fn works(&self) -> Api<ManifestWork> {
        Api::namespaced(self.fleet.hub.clone(), &self.name)
    }

    pub(super) fn maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.cluster.clone(), &self.name)
    }

    pub(super) fn map(&self, name: &str) -> Value {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": name, "namespace": self.name },
        })
    }

    /// Makes a work and waits until it is applied.
    pub(super) async fn work(&self, name: &str, manifests: Vec<Value>, more: Value) -> Result<()> {
        let mut spec = json!({ "workload": { "manifests": manifests } });
        if let (Some(spec), Value::Object(more)) = (spec.as_object_mut(), more) {
            spec.extend(more);
        }
        create(
            &self.works(),
            json!({
                "apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
                "metadata": { "name": name }, "spec": spec,
            }),
        )
        .await?;
        seen(&self.works(), name, |work: &ManifestWork| {
            let conditions = work.status.iter().flat_map(|status| &status.conditions);
            conditions.into_iter().any(|one| one.type_ == "Applied" && one.status == "True")
        })
        .await
        .with_context(|| format!("work {name} was not applied"))?;
        Ok(())
    }

    pub(super) async fn leave(&self) -> Result<()> {
        delete(&self.fleet.clusters(), &self.name).await
    }

    /// Returns when the cluster and its place are gone from the hub.
    pub(super) async fn left(&self) -> Result<()> {
        gone(&self.fleet.clusters(), &self.joined).await.with_context(|| "it has not left")?;
        let namespaces: Api<Namespace> = Api::all(self.fleet.hub.clone());
        assert!(namespaces.get_opt(&self.name).await?.is_none(), "its namespace is left");
        Ok(())
    }

    /// The cluster when a condition's message has this text in it.
    pub(super) async fn says(&self, kind: &str, status: &str, text: &str) -> Result<String> {
        let cluster = seen(&self.fleet.clusters(), &self.name, |one: &ManagedCluster| {
            condition(one, kind).is_some_and(|c| c.status == status && c.message.contains(text))
        })
        .await
        .with_context(|| format!("{kind} never was {status} with {text:?}"))?;
        Ok(condition(&cluster, kind).map(|one| one.message.clone()).unwrap_or_default())
    }

    /// Everything on record, sorted.
    pub(super) async fn on_record(&self) -> Result<Vec<LeftObject>> {
        let records: Api<LeftoverRecord> = Api::all(self.fleet.hub.clone());
        let all = records.list(&ListParams::default()).await?.items;
        let ours = all.into_iter().filter(|one| one.spec.cluster == self.name);
        let mut objects: Vec<LeftObject> = ours.flat_map(|one| one.spec.objects).collect();
        objects.sort();
        Ok(objects)
    }

    /// Nothing of this hub is noted on the cluster any more.
    pub(super) async fn no_ledgers(&self) -> Result<()> {
        let hash = work::hub_hash(&self.address());
        let ledgers: Api<AppliedManifestWork> = Api::all(self.cluster.clone());
        let all = ledgers.list(&ListParams::default()).await?.items;
        let ours: Vec<String> =
            all.iter().filter(|one| one.spec.hub_hash == hash).map(|one| one.name_any()).collect();
        assert!(ours.is_empty(), "{ours:?}");
        Ok(())
    }

    pub(super) async fn absent(&self, map: &str) -> Result<()> {
        eventually(map, || async { Ok(self.maps().get_opt(map).await?.is_none().then_some(())) })
            .await
    }
}

/// A cluster that the hub has accepted.
async fn let_in(fleet: &Fleet, name: &str, strategy: RemoveStrategy) -> Result<ManagedCluster> {
    take_in(fleet, Application { remove_strategy: strategy, ..fleet.application(name) }).await
}

/// The same of one that says what it is.
pub(super) async fn take_in(fleet: &Fleet, application: Application) -> Result<ManagedCluster> {
    let Write::Create(mut object) = apply(&application).write else { panic!() };
    object["spec"]["hubAcceptsClient"] = json!(true);
    create(&fleet.clusters(), object).await?;
    fleet.until(&application.name, "HubAcceptedManagedCluster", "True").await
}
