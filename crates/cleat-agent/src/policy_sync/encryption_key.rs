//! The key with which the hub encrypts values for this cluster, copied to where policies look for it.

use std::time::Duration;

use cleat_api::policy::name::ENCRYPTION_KEY_SECRET;
use cleat_core::id::{Id, Target};
use cleat_core::leave::agent::Standing;
use cleat_core::leave::ground::{MADE_FOR, MADE_FOR_POLICIES};
use cleat_core::write::{Action, Outcome, Side, Write};
use cleat_runtime::execute::{Executor, Read};
use cleat_runtime::follow::{Follow, Held, Scope};
use cleat_runtime::queue::{self, Queue, Wake};
use cleat_runtime::tasks::Tasks;
use kube::Client;
use serde_json::{Value, json};

use super::Config;
use crate::leave::Presence;

const RETRY: Duration = Duration::from_secs(10);
/// How soon to ask again how the cluster stands, when it was not looked at yet.
const SOON: Duration = Duration::from_secs(1);

/// Copies the key whenever it changes on either side.
pub(super) fn start(config: &Config, executor: &Executor, tasks: &Tasks) {
    let queue: Queue<()> = Queue::new();
    let follow = |client: &Client| {
        let scope = Scope {
            version: "v1".to_owned(),
            resource: "secrets".to_owned(),
            namespace: Some(config.cluster.clone()),
            fields: Some(format!("metadata.name={ENCRYPTION_KEY_SECRET}")),
            ..Scope::default()
        };
        let queue = queue.clone();
        Follow::start(client.clone(), tasks, scope, move |_, _| queue.add(()))
    };
    let hub = follow(&config.hub_client);
    // Only to hear when somebody changes the copy.
    drop(follow(&config.cluster_client));
    let (executor, namespace) = (executor.clone(), config.cluster.clone());
    let presence = config.presence.clone();
    let mut stop = tasks.stop();
    tasks.spawn("encryption key", async move {
        let closing = queue.clone();
        let running = queue::run(queue, 1, move |()| {
            let (hub, executor, namespace) = (hub.clone(), executor.clone(), namespace.clone());
            let presence = presence.clone();
            async move { copy(&hub, &executor, &namespace, presence.as_ref()).await }
        });
        tokio::select! {
            () = running => {}
            () = stop.stopped() => closing.close(),
        }
    });
}

async fn copy(
    hub: &Follow,
    executor: &Executor,
    namespace: &str,
    presence: Option<&Presence>,
) -> Wake {
    // A cluster that leaves, as far as anybody knows, gets nothing back that it let go of.
    match presence.map(Presence::standing) {
        None | Some(Standing::Member) => {}
        Some(Standing::Unknown) => return Wake::After(SOON),
        Some(Standing::Leaving(_) | Standing::Unrecognized(_)) => return Wake::After(RETRY),
    }
    // A key that the hub does not have any more may still be needed for what was sent.
    let Held::Present(secret) = hub.get(namespace, ENCRYPTION_KEY_SECRET) else {
        return Wake::OnChange;
    };
    let Ok(secret) = secret.parse::<Value>() else { return Wake::OnChange };
    let data = secret.get("data").cloned().unwrap_or_default();
    let id = Id {
        group: String::new(),
        resource: "secrets".to_owned(),
        namespace: namespace.to_owned(),
        name: ENCRYPTION_KEY_SECRET.to_owned(),
    };
    let target = Target { version: "v1".to_owned(), id };
    let write = match executor.read(Side::Cluster, &target).await {
        // A cluster that is its own hub has it already, as has one that was told.
        Read::Present(found) if found.get("data") == Some(&data) => return Wake::OnChange,
        Read::Present(mut found) => {
            let Some(fields) = found.as_object_mut() else { return Wake::OnChange };
            fields.insert("data".to_owned(), data);
            Write::Replace(found)
        }
        Read::Absent => Write::Create(json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": ENCRYPTION_KEY_SECRET, "namespace": namespace,
                // By this it is known as ours when the cluster leaves.
                "labels": { MADE_FOR: MADE_FOR_POLICIES },
            },
            "data": data,
        })),
        Read::NoSuchKind | Read::Unknown { .. } => return Wake::After(RETRY),
    };
    let action = Action { side: Side::Cluster, target, write };
    let plan = vec![vec![action]];
    let outcomes = executor.execute(&plan).await;
    let done = outcomes.iter().flatten().all(Outcome::is_done);
    if done { Wake::OnChange } else { Wake::After(RETRY) }
}
