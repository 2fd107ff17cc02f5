//! `cleat join`: makes a cluster part of a hub's fleet.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use clap::ValueEnum;
use cleat_agent::registration::{
    Enrolment, Error, HubAddress, Keep, NAMESPACE, News, check, cluster_id, enrol,
};
use cleat_api::managedcluster::{ClientConfig, RemoveStrategy};
use cleat_core::registration::agent::Application;
use cleat_core::registration::identity::is_cluster_name;
use cleat_core::registration::join::Refusal;
use cleat_core::write::{Action, Side, Write};
use cleat_hub::prepare;
use cleat_runtime::execute::Executor;

use crate::connection::{ClusterArgs, FIELD_MANAGER, Which, block_on, executor, perform};
use crate::{Refused, deployment};

/// Asks a hub to take this cluster in, waits until somebody there runs `cleat accept`, and then runs
/// its agent here, or with --deploy in the cluster. `cleat init` on the hub prints the command.
#[derive(clap::Args)]
pub struct Args {
    /// What the cluster is to be called: at most 63 lower-case letters, digits and `-`
    name: String,
    #[command(flatten)]
    hub: JoinArgs,
    #[command(flatten)]
    cluster: ClusterArgs,
    /// What happens when the cluster leaves to all that was carried to it: `Needless` leaves it
    /// there, `Required` removes it and waits until it is gone
    #[arg(long, value_enum, default_value = "Needless")]
    remove_strategy: Strategy,
    /// A label of the cluster on the hub, such as env=prod; may be given several times
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label)]
    labels: Vec<(String, String)>,
    /// An address of the cluster's API server for people and tools; the hub needs none
    #[arg(long = "url", value_name = "https://…")]
    urls: Vec<String>,
    /// How often, in seconds, the agent says that it lives [default: 60]
    #[arg(long, value_parser = clap::value_parser!(i32).range(1..=3600))]
    lease_seconds: Option<i32>,
    /// Keep the credentials in this directory instead of in a secret of the cluster
    #[arg(long)]
    credentials_dir: Option<PathBuf>,
    /// Where on the cluster the agent lives
    #[arg(long, default_value = NAMESPACE)]
    agent_namespace: String,
    /// Join again under the same name, with new credentials
    #[arg(long)]
    again: bool,
    /// Run the agent in the cluster, as a Deployment, instead of here
    #[arg(long)]
    deploy: bool,
    /// The image to run it from
    #[arg(long, default_value = "ghcr.io/cleat-dev/cleat:latest")]
    image: String,
    /// Only print what --deploy would apply, as YAML
    #[arg(long, requires = "deploy")]
    dry_run: bool,
    /// End once the credentials are there; `cleat agent` uses them
    #[arg(long, conflicts_with = "deploy")]
    no_run: bool,
}

/// The hub to join, as `cleat init` prints it.
#[derive(clap::Args)]
pub struct JoinArgs {
    /// The hub's address
    #[arg(long)]
    hub_server: String,
    /// The token with which to ask
    #[arg(long, env = "CLEAT_HUB_TOKEN", hide_env_values = true)]
    hub_token: String,
    /// Who vouches for the hub, as base64 of PEM
    #[arg(long)]
    hub_ca_data: Option<String>,
    /// The same, as a file
    #[arg(long, conflicts_with = "hub_ca_data")]
    hub_ca: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Strategy {
    #[value(name = "Needless", alias = "needless")]
    Needless,
    #[value(name = "Required", alias = "required")]
    Required,
}

fn label(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("a label is written KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

/// What the caller does next.
pub enum Next {
    Nothing,
    /// Runs the agent, with the credentials that are kept there.
    Agent {
        cluster: Which,
        keep: Keep,
    },
}

pub fn run(args: Args) -> Result<Next> {
    block_on(join(args))
}

async fn join(args: Args) -> Result<Next> {
    let hub = args.hub.address()?;
    if !hub.server.starts_with("https://") {
        bail!("--hub-server must begin with https://");
    }
    if args.dry_run {
        if !is_cluster_name(&args.name) {
            return Err(Refused(Refusal::BadName(args.name).to_string()).into());
        }
        print_deployment(&args, &hub)?;
        return Ok(Next::Nothing);
    }
    let which = Which::from(&args.cluster);
    let cluster_client = which.client().await?;
    let hub_client = hub.with_token(&args.hub.hub_token).await?;
    let executor = executor(Some(hub_client), Some(cluster_client.clone()));
    let cluster_id =
        cluster_id(&executor, Side::Cluster).await.context("find out which cluster this is")?;
    let keep = match &args.credentials_dir {
        Some(path) if !args.deploy => Keep::Directory(path.clone()),
        _ => Keep::Secret { namespace: args.agent_namespace.clone() },
    };
    let enrolment = Enrolment {
        executor,
        hub,
        application: args.application(cluster_id),
        agent: uuid::Uuid::new_v4().simple().to_string().chars().take(8).collect(),
        keep: keep.clone(),
        again: args.again,
        lifetime_seconds: None,
    };
    let name = args.name.clone();
    // Whatever can be refused is refused before anything is on the cluster.
    check(&enrolment).await.or_else(|error| refuse(&name, error))?;
    prepare::prepare_cluster(&cluster_client).await.context("give the cluster its kinds")?;
    if args.deploy {
        deploy(&args, &enrolment.hub, &enrolment.executor).await?;
        return Ok(Next::Nothing);
    }
    let joined = enrol(&enrolment, |news| tell(&name, &news)).await;
    joined.map(drop).or_else(|error| refuse(&name, error))?;
    if args.no_run {
        return Ok(Next::Nothing);
    }
    Ok(Next::Agent { cluster: which, keep })
}

/// What people are to decide is told from what went wrong.
fn refuse<T>(name: &str, error: Error) -> Result<T> {
    match error {
        Error::Refused(refusal) => Err(Refused(refusal.to_string()).into()),
        Error::RefusedByHub(message) => Err(Refused(format!("the hub refuses: {message}")).into()),
        error => Err(error).with_context(|| format!("join as {name}")),
    }
}

fn tell(name: &str, news: &News) {
    match news {
        News::Applied => eprintln!("asked to join as {name}"),
        News::Waiting { request, fingerprint } => eprintln!(
            "waiting for somebody to run `cleat accept {name}` on the hub (request {request}, key \
             {fingerprint})"
        ),
        News::Accepted => eprintln!("accepted; the credentials are kept"),
    }
}

impl JoinArgs {
    fn address(&self) -> Result<HubAddress> {
        let authority = match (&self.hub_ca_data, &self.hub_ca) {
            (Some(data), _) => {
                let pem = BASE64.decode(data).context("read --hub-ca-data as base64")?;
                Some(String::from_utf8(pem).context("read --hub-ca-data as PEM")?)
            }
            (None, Some(path)) => Some(
                std::fs::read_to_string(path)
                    .with_context(|| format!("read {}", path.display()))?,
            ),
            (None, None) => None,
        };
        Ok(HubAddress { server: self.hub_server.clone(), authority })
    }
}

impl Args {
    fn application(&self, cluster_id: String) -> Application {
        let labels: BTreeMap<String, String> = self.labels.iter().cloned().collect();
        let client_configs = self
            .urls
            .iter()
            .map(|url| ClientConfig { url: url.clone(), ca_bundle: None })
            .collect();
        Application {
            name: self.name.clone(),
            cluster_id,
            remove_strategy: self.strategy(),
            labels,
            annotations: BTreeMap::new(),
            client_configs,
            lease_seconds: self.lease_seconds,
        }
    }

    fn strategy(&self) -> RemoveStrategy {
        match self.remove_strategy {
            Strategy::Needless => RemoveStrategy::Needless,
            Strategy::Required => RemoveStrategy::Required,
        }
    }

    fn deployment(&self, hub: &HubAddress) -> Vec<deployment::Object> {
        deployment::objects(&deployment::Wish {
            cluster: &self.name,
            namespace: &self.agent_namespace,
            image: &self.image,
            hub,
            token: &self.hub.hub_token,
            strategy: self.strategy().as_str(),
            labels: &self.labels,
            lease_seconds: self.lease_seconds,
        })
    }
}

fn print_deployment(args: &Args, hub: &HubAddress) -> Result<()> {
    let mut text = String::new();
    for deployment::Object { object, .. } in args.deployment(hub) {
        text.push_str("---\n");
        text.push_str(&serde_saphyr::to_string(&object).context("write YAML")?);
    }
    std::io::stdout().lock().write_all(text.as_bytes())?;
    Ok(())
}

async fn deploy(args: &Args, hub: &HubAddress, executor: &Executor) -> Result<()> {
    for deployment::Object { target, object } in args.deployment(hub) {
        let what = format!("apply {}", target.id);
        let write = Write::Apply { object, manager: FIELD_MANAGER.to_owned(), force: true };
        perform(executor, &what, Action { side: Side::Cluster, target, write }).await?;
    }
    eprintln!(
        "the agent is deployed in {}; accept it on the hub with `cleat accept {}`",
        args.agent_namespace, args.name
    );
    Ok(())
}
