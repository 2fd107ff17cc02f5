//! A hub that looks after clusters, and clusters that join it, for the tests of that.
//!
//! The servers may be shared with other tests, so this hub looks only after clusters with a label of
//! the test's own, and clusters have made-up ids: to other tests the same server is another cluster.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use anyhow::{Context as _, Result};
use cleat_agent::leave::Presence;
use cleat_agent::registration::{
    Credentials, Enrolment, Error, HubAddress, Keep, Line, Live, News, Rotation, enrol, live,
};
use cleat_api::managedcluster::ManagedCluster;
use cleat_core::registration::agent::Application;
use cleat_core::registration::{access, approval, identity};
use cleat_core::write::{Action, Outcome, Side, Write};
use cleat_hub::clusters;
use cleat_runtime::clock::Clock;
use cleat_runtime::execute::{self, Executor};
use cleat_runtime::tasks::Tasks;
use cleat_world::World;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Client;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::{parse, seen};

const LABEL: &str = "cleat.dev/test";

pub(crate) struct Fleet {
    pub(crate) world: World,
    pub(crate) hub: Client,
    pub(crate) tasks: Tasks,
    pub(crate) address: HubAddress,
    token: String,
    mark: String,
    /// How far the clocks of agents are ahead, in seconds.
    pub(crate) ahead: Arc<AtomicI64>,
}

/// An attempt to join that is under way.
pub(crate) struct Joining {
    pub(crate) name: String,
    request: Option<String>,
    news: mpsc::UnboundedReceiver<News>,
    ended: tokio::task::JoinHandle<Result<Credentials, Error>>,
}

impl Fleet {
    pub(crate) async fn new(topic: &str) -> Result<Self> {
        let world = World::start().await?;
        let (hub, mark, tasks) = (world.hub.client(), world.unique(topic), Tasks::new());
        cleat_hub::prepare::prepare_hub(&hub).await?;
        for cluster in &world.clusters {
            cleat_hub::prepare::prepare_cluster(&cluster.client()).await?;
        }
        let executor = executor(Some(hub.clone()), None);
        for (target, object) in access::bootstrap() {
            let write = Write::Apply { object, manager: "test".to_owned(), force: true };
            let done =
                executor.execute(vec![vec![Action { side: Side::Hub, target, write }]]).await;
            assert!(done.iter().flatten().all(Outcome::is_done), "{done:?}");
        }
        let accounts: Api<ServiceAccount> =
            Api::namespaced(hub.clone(), identity::BOOTSTRAP_NAMESPACE);
        let request: TokenRequest = parse(json!({ "spec": { "expirationSeconds": 600 } }));
        let issued: TokenRequest = accounts
            .create_subresource(
                "token",
                identity::BOOTSTRAP_ACCOUNT,
                &PostParams::default(),
                &request,
            )
            .await?;
        let token = issued.status.and_then(|status| status.token).context("a token was issued")?;
        let (server, authority) = world.hub.address().await?;
        let address = HubAddress { server, authority: Some(authority) };
        let fleet = Self { world, hub, tasks, address, token, mark, ahead: Arc::default() };
        clusters::start(fleet.config(), &fleet.tasks);
        Ok(fleet)
    }

    /// What the hub's part for the clusters of this test is told.
    pub(crate) fn config(&self) -> clusters::Config {
        let mut config = clusters::Config::new(self.hub.clone());
        config.selector = Some(format!("{LABEL}={}", self.mark));
        config
    }

    /// What the clusters of this test are labelled with.
    pub(crate) fn label(&self) -> Value {
        json!({ LABEL: self.mark })
    }

    pub(crate) fn clusters(&self) -> Api<ManagedCluster> {
        Api::all(self.hub.clone())
    }

    pub(crate) fn requests(&self) -> Api<CertificateSigningRequest> {
        Api::all(self.hub.clone())
    }

    /// A client with the rights of those who have not joined yet.
    pub(crate) async fn bootstrap(&self) -> Result<Client> {
        Ok(self.address.with_token(&self.token).await?)
    }

    pub(crate) fn cluster_client(&self) -> Client {
        self.world.clusters[0].client()
    }

    pub(crate) fn keep(&self, name: &str) -> Keep {
        Keep::Secret { namespace: format!("agent-{name}") }
    }

    pub(crate) fn application(&self, name: &str) -> Application {
        Application {
            name: name.to_owned(),
            cluster_id: format!("id-of-{name}"),
            labels: [(LABEL.to_owned(), self.mark.clone())].into(),
            lease_seconds: Some(1),
            ..Application::default()
        }
    }

    pub(crate) async fn enrolment(&self, application: Application) -> Result<Enrolment> {
        Ok(Enrolment {
            executor: executor(Some(self.bootstrap().await?), Some(self.cluster_client())),
            hub: self.address.clone(),
            keep: self.keep(&application.name),
            application,
            agent: "agent".to_owned(),
            again: false,
            lifetime_seconds: Some(600),
        })
    }

    /// Begins to join.
    pub(crate) async fn join(&self, application: Application) -> Result<Joining> {
        Ok(Joining::begin(self.enrolment(application).await?))
    }

    /// What the hub's administrator does: the cluster may join, and this is its key.
    pub(crate) async fn accept(&self, joining: &mut Joining) -> Result<()> {
        let request = joining.request().await?;
        self.set_accepted(&joining.name, true).await?;
        let request = self.requests().get(&request).await?;
        let approval = approval::approve(&cleat_hub::registration::read(&request), "tested");
        let done = executor(Some(self.hub.clone()), None).execute(vec![vec![approval]]).await;
        assert!(done.iter().flatten().all(Outcome::is_done), "{done:?}");
        Ok(())
    }

    pub(crate) async fn set_accepted(&self, name: &str, accepted: bool) -> Result<()> {
        self.patch(name, json!({ "spec": { "hubAcceptsClient": accepted } })).await
    }

    pub(crate) async fn patch(&self, name: &str, patch: Value) -> Result<()> {
        let params = PatchParams::default();
        self.clusters().patch(name, &params, &Patch::Merge(patch)).await?;
        Ok(())
    }

    /// Starts the agent of a cluster that has joined. It ends with the returned tasks.
    pub(crate) async fn run(&self, credentials: Credentials) -> Result<(Tasks, Client)> {
        let line = Line::new(credentials.connect().await?);
        let (tasks, ahead) = (Tasks::new(), Arc::clone(&self.ahead));
        let hub_client = line.client();
        live(
            Live {
                name: credentials.cluster.clone(),
                cluster_id: format!("id-of-{}", credentials.cluster),
                hub_address: credentials.hub.server.clone(),
                hub_client: hub_client.clone(),
                cluster_client: self.cluster_client(),
                clock: Clock::new(move || {
                    Timestamp::now() + SignedDuration::from_secs(ahead.load(Ordering::SeqCst))
                }),
                dice: Arc::new(|| 0),
                rotation: Some(Rotation {
                    line,
                    keep: self.keep(&credentials.cluster),
                    credentials,
                    lifetime_seconds: Some(600),
                }),
                presence: Presence::default(),
            },
            &tasks,
        );
        Ok((tasks, hub_client))
    }

    /// A cluster that has joined and lives; with its agent's tasks and its agent's client.
    pub(crate) async fn joined(&self, topic: &str) -> Result<Joined> {
        let name = self.world.unique(topic);
        let mut joining = self.join(self.application(&name)).await?;
        self.accept(&mut joining).await?;
        let credentials = joining.end().await??;
        let (tasks, agent) = self.run(credentials.clone()).await?;
        self.until(&name, "ManagedClusterConditionAvailable", "True").await?;
        Ok(Joined { name, tasks, agent, credentials })
    }

    /// The cluster once a condition has this status.
    pub(crate) async fn until(
        &self,
        name: &str,
        kind: &str,
        status: &str,
    ) -> Result<ManagedCluster> {
        seen(&self.clusters(), name, |cluster: &ManagedCluster| {
            condition(cluster, kind).is_some_and(|one| one.status == status)
        })
        .await
        .with_context(|| format!("{kind} of {name} never was {status}"))
    }
}

pub(crate) struct Joined {
    pub(crate) name: String,
    pub(crate) tasks: Tasks,
    /// The hub, as the agent may use it.
    pub(crate) agent: Client,
    pub(crate) credentials: Credentials,
}

impl Joining {
    pub(crate) fn begin(enrolment: Enrolment) -> Self {
        let name = enrolment.application.name.clone();
        let (tell, news) = mpsc::unbounded_channel();
        let ended =
            tokio::spawn(async move { enrol(&enrolment, |news| drop(tell.send(news))).await });
        Self { name, request: None, news, ended }
    }

    /// Ends it as a process ends.
    pub(crate) async fn kill(self) {
        self.ended.abort();
        let _ = self.ended.await;
    }

    /// The name of the request for a certificate, once it is there.
    pub(crate) async fn request(&mut self) -> Result<String> {
        while self.request.is_none() {
            match self.news.recv().await {
                Some(News::Waiting { request, .. }) => self.request = Some(request),
                Some(_) => {}
                None => anyhow::bail!("it ended: {:?}", (&mut self.ended).await?),
            }
        }
        self.request.clone().context("it was asked for")
    }

    pub(crate) async fn end(self) -> Result<Result<Credentials, Error>> {
        Ok(cleat_world::within("joining", self.ended).await??)
    }
}

pub(crate) fn condition<'a>(
    cluster: &'a ManagedCluster,
    kind: &str,
) -> Option<&'a k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition> {
    cluster.status.as_ref()?.conditions.iter().find(|one| one.type_ == kind)
}

pub(crate) fn executor(hub: Option<Client>, cluster: Option<Client>) -> Executor {
    Executor::new(execute::Config { hub, cluster, ..Default::default() })
}
