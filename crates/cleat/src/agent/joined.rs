//! The agent of a cluster that joined a hub: finds its credentials, or gets some, and keeps them
//! fresh.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use clap::ValueEnum;
use cleat_agent::leave::Presence;
use cleat_agent::registration::{
    self, Credentials, Enrolment, FIELD_MANAGER, HubAddress, Keep, Line, Live, NAMESPACE, Rotation,
    cluster_id, enrol, live,
};
use cleat_agent::{Member, policy, start_stories, work};
use cleat_api::managedcluster::RemoveStrategy;
use cleat_core::registration::agent::Application;
use cleat_core::write::Side;
use cleat_runtime::clock::Clock;
use cleat_runtime::execute::{self, Executor};
use cleat_runtime::tasks::Tasks;
use kube::Client;

/// How the cluster joined, or is to join.
#[derive(clap::Args)]
#[group(skip)]
pub(super) struct Args {
    /// The directory with the credentials [default: a secret of the cluster]
    #[arg(long, conflicts_with = "hub_kubeconfig")]
    credentials_dir: Option<PathBuf>,
    /// The namespace of that secret
    #[arg(long, default_value = NAMESPACE)]
    agent_namespace: String,
    /// Join first if need be, with `server`, `token` and `ca.crt` from this directory
    #[arg(long, requires = "cluster_name", conflicts_with = "hub_kubeconfig")]
    bootstrap_dir: Option<PathBuf>,
    /// When joining: what happens when the cluster leaves to all that was carried to it
    #[arg(long, value_enum, default_value = "Needless")]
    remove_strategy: Strategy,
    /// When joining: a label of the cluster on the hub
    #[arg(long = "label", value_name = "KEY=VALUE")]
    labels: Vec<String>,
    /// When joining: how often, in seconds, to say that the cluster lives
    #[arg(long, value_parser = clap::value_parser!(i32).range(1..=3600))]
    lease_seconds: Option<i32>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Strategy {
    #[value(name = "Needless")]
    Needless,
    #[value(name = "Required")]
    Required,
}

/// A cluster that has joined.
pub(super) struct Joined {
    credentials: Credentials,
    cluster_id: String,
    keep: Keep,
    line: Line,
}

impl Args {
    pub(super) fn set_keep(&mut self, keep: Keep) {
        match keep {
            Keep::Secret { namespace } => self.agent_namespace = namespace,
            Keep::Directory(path) => self.credentials_dir = Some(path),
        }
    }

    fn keep(&self) -> Keep {
        match &self.credentials_dir {
            Some(path) => Keep::Directory(path.clone()),
            None => Keep::Secret { namespace: self.agent_namespace.clone() },
        }
    }

    /// Finds the credentials of the cluster, or joins.
    pub(super) async fn join(&self, cluster_client: &Client, name: Option<&str>) -> Result<Joined> {
        let keep = self.keep();
        let executor = executor(None, cluster_client);
        let cluster_id =
            cluster_id(&executor, Side::Cluster).await.context("find out which cluster this is")?;
        let kept = keep.load(&executor).await.context("look for credentials")?;
        let now = jiff::Timestamp::now();
        let good = |kept: &Credentials| kept.validity().is_some_and(|(_, until)| until > now);
        let credentials = match (kept, &self.bootstrap_dir, name) {
            (Some(kept), _, Some(name)) if kept.cluster != name => bail!(
                "this cluster has joined {} as {}, not as {name}; leave out --cluster-name",
                kept.hub.server,
                kept.cluster
            ),
            (Some(kept), _, _) if good(&kept) => kept,
            (kept, Some(bootstrap), Some(name)) => {
                let again = kept.is_some();
                self.enrol(cluster_client, bootstrap, name, &cluster_id, again).await?
            }
            (Some(kept), _, _) => bail!(
                "the credentials for {} are out of date; join again with `cleat join {} --again …`",
                kept.hub.server,
                kept.cluster
            ),
            (None, _, _) => bail!("this cluster has not joined a hub; `cleat join` does that"),
        };
        let line = Line::new(credentials.connect().await?);
        Ok(Joined { credentials, cluster_id, keep, line })
    }

    async fn enrol(
        &self,
        cluster_client: &Client,
        bootstrap: &Path,
        name: &str,
        cluster_id: &str,
        again: bool,
    ) -> Result<Credentials> {
        let file = |name: &str| {
            let path = bootstrap.join(name);
            std::fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))
        };
        let hub = HubAddress {
            server: file("server")?.trim().to_owned(),
            authority: bootstrap.join("ca.crt").exists().then(|| file("ca.crt")).transpose()?,
        };
        let hub_client = hub.with_token(file("token")?.trim()).await?;
        let labels: BTreeMap<String, String> = self
            .labels
            .iter()
            .filter_map(|label| label.split_once('='))
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect();
        let enrolment = Enrolment {
            executor: executor(Some(hub_client), cluster_client),
            hub,
            application: Application {
                name: name.to_owned(),
                cluster_id: cluster_id.to_owned(),
                remove_strategy: match self.remove_strategy {
                    Strategy::Needless => RemoveStrategy::Needless,
                    Strategy::Required => RemoveStrategy::Required,
                },
                labels,
                lease_seconds: self.lease_seconds,
                ..Application::default()
            },
            agent: uuid::Uuid::new_v4().simple().to_string().chars().take(8).collect(),
            keep: self.keep(),
            again,
            lifetime_seconds: None,
        };
        enrol(&enrolment, |news| {
            if let registration::News::Waiting { request, fingerprint } = news {
                eprintln!(
                    "waiting for `cleat accept {name}` on the hub (request {request}, key \
                     {fingerprint})"
                );
            }
        })
        .await
        .with_context(|| format!("join as {name}"))
    }
}

impl Joined {
    pub(super) fn name(&self) -> &str {
        &self.credentials.cluster
    }

    pub(super) fn hub_address(&self) -> &str {
        &self.credentials.hub.server
    }

    /// Starts everything an agent does. `works` and `policies` say how these are looked after; what it
    /// returns tells when the cluster has left.
    pub(super) fn start(
        self,
        cluster_client: Client,
        works: impl Fn(work::Config) -> work::Config,
        policies: impl Fn(policy::Config) -> policy::Config,
        deployment: Option<(String, String)>,
        tasks: &Tasks,
    ) -> Presence {
        let Self { credentials, cluster_id, keep, line } = self;
        let member = Member {
            name: credentials.cluster.clone(),
            cluster_id: cluster_id.clone(),
            hub_client: line.client(),
            cluster_client: cluster_client.clone(),
            hub_address: credentials.hub.server.clone(),
            presence: Presence::default(),
            keep: Some(keep.clone()),
            deployment,
        };
        let rotation = Rotation { line, keep, credentials, lifetime_seconds: None };
        live(
            Live {
                name: member.name.clone(),
                cluster_id,
                hub_address: member.hub_address.clone(),
                hub_client: member.hub_client.clone(),
                cluster_client,
                clock: Clock::system(),
                dice: Arc::new(dice),
                rotation: Some(rotation),
                presence: member.presence.clone(),
            },
            tasks,
        );
        start_stories(&member, works, policies, tasks);
        member.presence
    }
}

fn executor(hub: Option<Client>, cluster_client: &Client) -> Executor {
    Executor::new(execute::Config {
        hub,
        cluster: Some(cluster_client.clone()),
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..Default::default()
    })
}

/// Anything.
pub(crate) fn dice() -> u16 {
    let (high, low, _, _) = uuid::Uuid::new_v4().as_fields();
    (high as u16) ^ low
}
