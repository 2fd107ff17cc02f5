//! The clusters of this process, as members of its hub: joined, accepted, and served by agents that
//! talk to hub and cluster without a socket.
//!
//! An agent here has no certificate, but it has exactly the rights of one that does.

use std::sync::Arc;

use anyhow::{Context as _, Result, anyhow};
use cleat_agent::leave::Presence;
use cleat_agent::registration::{Live, cluster_id, live};
use cleat_agent::{Member, start_stories};
use cleat_api::managedcluster::{ManagedCluster, condition};
use cleat_apiserver::Server;
use cleat_apiserver::user::User;
use cleat_core::condition::holds;
use cleat_core::registration::access::{Part, Standing};
use cleat_core::registration::agent::{self, Application};
use cleat_core::registration::identity::{AGENTS, Agent, group};
use cleat_core::write::{Action, Outcome, Side, Write};
use cleat_runtime::clock::Clock;
use cleat_runtime::execute::{self, Executor};
use cleat_runtime::tasks::Tasks;
use futures::future::try_join_all;
use kube::Client;
use kube::api::Api;
use kube::runtime::wait::await_condition;
use serde_json::json;

use crate::agent::dice;
use crate::policy::options::PolicyOptions;

/// What ledgers are named after. Not the hub's address: that may change with the ports of this
/// machine, and then every ledger would be another hub's.
const HUB_ADDRESS: &str = "https://hub.cleat.invalid";

/// The name of the agents of this process.
const AGENT: &str = "in-process";

/// Makes every cluster, given by name and client, a member of the hub if it is not, and starts its
/// agent as soon as the hub lets it in.
pub(super) async fn start(
    hub: &Server,
    clusters: Vec<(String, Client)>,
    policies: &PolicyOptions,
    tasks: &Tasks,
) -> Result<()> {
    let hub_client = Client::new(hub.router(), "default");
    let joining = clusters.into_iter().map(|(name, cluster_client)| {
        let (hub_client, policies) = (hub_client.clone(), policies.clone());
        async move {
            let cluster_id = join(&hub_client, &cluster_client, &name)
                .await
                .with_context(|| format!("let {name} join the hub"))?;
            let agent = Agent::new(&name, AGENT);
            let groups = [&*group(&name), AGENTS, "system:authenticated"];
            let rights = hub.router_as(User::new(&agent.user(), groups));
            let member = Member {
                name,
                cluster_id,
                hub_client: Client::new(rights, "default"),
                cluster_client,
                hub_address: HUB_ADDRESS.to_owned(),
                presence: Presence::default(),
                keep: None,
                deployment: None,
            };
            let mut stop = tasks.stop();
            tasks.spawn("agent", async move {
                if stop.or(accepted(hub_client, &member.name)).await.is_none() {
                    return;
                }
                let own = Tasks::new();
                serve(&member, &policies, &own);
                if stop.or(member.presence.until_left()).await.is_some() {
                    eprintln!("{} has left", member.name);
                }
                own.shutdown().await;
            });
            Ok::<_, anyhow::Error>(())
        }
    });
    try_join_all(joining).await?;
    Ok(())
}

fn serve(member: &Member, policies: &PolicyOptions, tasks: &Tasks) {
    live(
        Live {
            name: member.name.clone(),
            cluster_id: member.cluster_id.clone(),
            hub_address: member.hub_address.clone(),
            hub_client: member.hub_client.clone(),
            cluster_client: member.cluster_client.clone(),
            clock: Clock::system(),
            dice: Arc::new(dice),
            rotation: None,
            presence: member.presence.clone(),
        },
        tasks,
    );
    start_stories(member, |config| config, |config| policies.apply(config), tasks);
}

/// Whoever runs both is the hub's administrator, so the cluster is accepted as it joins. What people
/// made of it since, a later start leaves alone.
async fn join(hub_client: &Client, cluster_client: &Client, name: &str) -> Result<String> {
    let executor = Executor::new(execute::Config {
        hub: Some(hub_client.clone()),
        cluster: Some(cluster_client.clone()),
        ..Default::default()
    });
    make_namespace(&executor, name).await?;
    let cluster_id = cluster_id(&executor, Side::Cluster).await?;
    let application = Application {
        name: name.to_owned(),
        cluster_id: cluster_id.clone(),
        ..Application::default()
    };
    let mut action: Action = agent::apply(&application);
    if let Write::Create(object) = &mut action.write
        && let Some(spec) = object.get_mut("spec").and_then(|spec| spec.as_object_mut())
    {
        spec.insert("hubAcceptsClient".to_owned(), json!(true));
    }
    match executor.execute(vec![vec![action]]).await.into_iter().flatten().next() {
        Some(Outcome::Done(_) | Outcome::AlreadyExists) => Ok(cluster_id),
        other => Err(anyhow!("the hub answered {other:?}")),
    }
}

/// Returns when the hub has let the cluster in, which may be never.
async fn accepted(hub_client: Client, name: &str) {
    let clusters: Api<ManagedCluster> = Api::all(hub_client);
    let is_accepted = |cluster: Option<&ManagedCluster>| {
        let status = cluster.and_then(|cluster| cluster.status.as_ref());
        status.is_some_and(|status| holds(&status.conditions, condition::ACCEPTED))
    };
    while let Err(error) = await_condition(clusters.clone(), name, is_accepted).await {
        tracing::warn!(cluster = name, %error, "cannot wait for the hub to let it in");
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    }
}

/// There before anybody is told that the fleet is ready, so that works can be made at once.
async fn make_namespace(executor: &Executor, name: &str) -> Result<()> {
    let target = Part::Namespace.target(name);
    let write = Write::Create(Part::Namespace.wanted(name, Standing::Accepted));
    let plan = vec![vec![Action { side: Side::Hub, target, write }]];
    match executor.execute(plan).await.into_iter().flatten().next() {
        Some(Outcome::Done(_) | Outcome::AlreadyExists) => Ok(()),
        other => Err(anyhow!("the hub answered {other:?} when its namespace was made")),
    }
}
