//! `cleat policy trigger-uninstall`: before a controller of policies is taken away, has it let go of
//! them, so that nothing of theirs is pruned and none of them hangs.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use cleat_api::configurationpolicy::{ConfigurationPolicy, FINALIZER, GROUP, UNINSTALLING};
use cleat_core::id::{Id, Target};
use cleat_core::write::{Action, Side, Write};
use cleat_runtime::execute::Executor;
use jiff::Timestamp;
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt as _};
use serde_json::json;

use crate::connection::{executor, perform};
use crate::{Halted, Which};

/// How often it is looked whether all were let go of.
const PAUSE: Duration = Duration::from_millis(500);

#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// The kubeconfig of the cluster [default: $KUBECONFIG, ~/.kube/config, or the pod's own account]
    #[arg(long)]
    kubeconfig: Option<std::path::PathBuf>,
    /// The context in it
    #[arg(long)]
    context: Option<String>,
    /// The Deployment that the controller or the agent runs in, which was started with --deployment
    #[arg(long)]
    deployment_name: String,
    #[arg(long)]
    deployment_namespace: String,
    /// Where its policies are
    #[arg(long)]
    policy_namespace: String,
    /// Where more of them are; may be given several times
    #[arg(long)]
    additional_namespace: Vec<String>,
    /// How long to wait for the policies to be let go of
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u64).range(30..))]
    timeout_seconds: u64,
}

/// What is to be taken away.
#[derive(Clone, Debug)]
pub struct Wish {
    /// Namespace and name of the Deployment that the controller or the agent runs in.
    pub deployment: (String, String),
    /// Where its policies are.
    pub namespaces: Vec<String>,
    pub timeout: Duration,
}

pub fn run(args: Args) -> Result<()> {
    let which = Which { kubeconfig: args.kubeconfig, context: args.context };
    let wish = Wish {
        deployment: (args.deployment_namespace, args.deployment_name),
        namespaces: [args.policy_namespace].into_iter().chain(args.additional_namespace).collect(),
        timeout: Duration::from_secs(args.timeout_seconds),
    };
    crate::connection::block_on(async {
        prepare(which.client().await?, &wish).await?;
        let (namespace, name) = &wish.deployment;
        println!("no policy is held any more; the Deployment {namespace}/{name} may be deleted");
        Ok(())
    })
}

/// Says on the Deployment that it is about to go, and returns when no policy is held any more.
pub async fn prepare(client: Client, wish: &Wish) -> Result<()> {
    let executor = executor(None, Some(client.clone()));
    let (namespace, name) = &wish.deployment;
    let now = Timestamp::from_second(Timestamp::now().as_second())?.to_string();
    let deployment = Id {
        group: "apps".to_owned(),
        resource: "deployments".to_owned(),
        namespace: namespace.clone(),
        name: name.clone(),
    };
    mark(&executor, deployment, &now)
        .await
        .with_context(|| format!("say on the Deployment {namespace}/{name} that it goes"))?;
    let (begun, mut pause) = (Instant::now(), tokio::time::interval(PAUSE));
    loop {
        pause.tick().await;
        let held = held(&client, &wish.namespaces).await?;
        let Some(first) = held.first() else { return Ok(()) };
        for policy in held.iter().filter(|policy| policy.said.as_ref() != Some(&now)) {
            // Controllers that do not watch their Deployment hear it so. One that cannot be told may
            // be gone, and if it is not, it is seen to be held.
            drop(mark(&executor, policy.id.clone(), &now).await);
        }
        if begun.elapsed() > wish.timeout {
            let (count, Id { namespace: of, name: one, .. }) = (held.len(), &first.id);
            bail!(Halted(format!(
                "{count} policies are still held, {of}/{one} among them; does {namespace}/{name} run, and was it started with --deployment?"
            )));
        }
    }
}

async fn mark(executor: &Executor, id: Id, now: &str) -> Result<()> {
    let patch = json!({ "metadata": { "annotations": { UNINSTALLING: now } } });
    let target = Target { version: "v1".to_owned(), id };
    let action = Action { side: Side::Cluster, target, write: Write::Merge(patch) };
    perform(executor, "annotate it", action).await.map(drop)
}

/// A policy that waits for somebody to let go of it.
struct Held {
    id: Id,
    /// When it was said that its controller goes.
    said: Option<String>,
}

async fn held(client: &Client, namespaces: &[String]) -> Result<Vec<Held>> {
    let mut held = Vec::new();
    for namespace in namespaces {
        let policies: Api<ConfigurationPolicy> = Api::namespaced(client.clone(), namespace);
        let all = policies.list_metadata(&ListParams::default()).await;
        let all = all.with_context(|| format!("list the policies of {namespace}"))?;
        for policy in all.items {
            if policy.finalizers().iter().any(|one| one == FINALIZER) {
                let id = Id {
                    group: GROUP.to_owned(),
                    resource: "configurationpolicies".to_owned(),
                    namespace: namespace.clone(),
                    name: policy.name_any(),
                };
                held.push(Held { id, said: policy.annotations().get(UNINSTALLING).cloned() });
            }
        }
    }
    Ok(held)
}
