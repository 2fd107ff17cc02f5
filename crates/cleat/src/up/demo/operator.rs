//! Somebody else's operator, as it would run in the deployment `database-operator` if there were
//! nodes: it holds every database by a finalizer, and lets go of one that is being deleted when its
//! last backup is taken. It works for as long as the deployment has replicas.

use std::time::Duration;

use cleat_core::id::{Id, Target};
use cleat_core::write::{Action, Side, Write};
use cleat_runtime::execute::{self, Executor};
use cleat_runtime::follow::{Follow, Held, Scope};
use cleat_runtime::queue::{self, Queue, Wake};
use cleat_runtime::tasks::Tasks;
use k8s_openapi::api::apps::v1::Deployment;
use kube::Client;
use kube::api::DynamicObject;
use serde_json::{Value, json};

/// Its name, of the deployment and in `managedFields`.
const NAME: &str = "database-operator";
const NAMESPACE: &str = "databases";
const FINALIZER: &str = "demo.cleat.dev/backup";

/// When a database is looked at again that could not be written.
const RETRY: Duration = Duration::from_secs(1);

/// One round over all databases.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Round;

pub(super) fn start(cluster_client: &Client, tasks: &Tasks) {
    let queue: Queue<Round> = Queue::new();
    let follow = |scope: Scope| {
        let queue = queue.clone();
        Follow::start(cluster_client.clone(), tasks, scope, move |_, _| queue.add(Round))
    };
    let databases = follow(Scope {
        group: "demo.cleat.dev".to_owned(),
        version: "v1".to_owned(),
        resource: "databases".to_owned(),
        ..Scope::default()
    });
    let deployments = follow(Scope {
        group: "apps".to_owned(),
        version: "v1".to_owned(),
        resource: "deployments".to_owned(),
        namespace: Some(NAMESPACE.to_owned()),
        ..Scope::default()
    });
    let executor = Executor::new(execute::Config {
        cluster: Some(cluster_client.clone()),
        field_manager: Some(NAME.to_owned()),
        ..Default::default()
    });
    let mut stop = tasks.stop();
    tasks.spawn("database operator of the demo", async move {
        let closing = queue.clone();
        let rounds = queue::run(queue, 1, move |Round| {
            let (databases, deployments) = (databases.clone(), deployments.clone());
            let executor = executor.clone();
            async move { round(&databases, &deployments, &executor).await }
        });
        stop.or(rounds).await;
        closing.close();
    });
}

async fn round(databases: &Follow, deployments: &Follow, executor: &Executor) -> Wake {
    // The definition may have come since; nothing else tells of it.
    databases.check();
    if !runs(&deployments.get(NAMESPACE, NAME)) {
        return Wake::OnChange;
    }
    let found = databases.all();
    let found = found.iter().filter_map(|object| object.parse::<DynamicObject>().ok());
    let actions: Vec<Action> = found.filter_map(|database| step(&database)).collect();
    if actions.is_empty() {
        return Wake::OnChange;
    }
    let outcomes = executor.execute(vec![actions]).await;
    match outcomes.iter().flatten().all(|outcome| outcome.is_done()) {
        true => Wake::OnChange,
        false => Wake::After(RETRY),
    }
}

fn runs(deployment: &Held) -> bool {
    let Held::Present(object) = deployment else { return false };
    let Ok(Deployment { spec, status, .. }) = object.parse() else { return false };
    let wanted = spec.replicas;
    let available = status.and_then(|status| status.available_replicas);
    [wanted, available].into_iter().all(|count| count.is_some_and(|count| count > 0))
}

/// What it does about one database now.
fn step(database: &DynamicObject) -> Option<Action> {
    let metadata = &database.metadata;
    let finalizers = metadata.finalizers.clone().unwrap_or_default();
    let holds = finalizers.iter().any(|finalizer| finalizer == FINALIZER);
    let wanted: Vec<String> = match (metadata.deletion_timestamp.is_some(), holds) {
        (false, false) => finalizers.into_iter().chain([FINALIZER.to_owned()]).collect(),
        (true, true) => finalizers.into_iter().filter(|one| one != FINALIZER).collect(),
        (false, true) | (true, false) => return None,
    };
    let patch: Value = json!({ "metadata": {
        "uid": metadata.uid,
        "resourceVersion": metadata.resource_version,
        "finalizers": wanted,
    }});
    let id = Id {
        group: "demo.cleat.dev".to_owned(),
        resource: "databases".to_owned(),
        namespace: metadata.namespace.clone().unwrap_or_default(),
        name: metadata.name.clone().unwrap_or_default(),
    };
    let target = Target { version: "v1".to_owned(), id };
    Some(Action { side: Side::Cluster, target, write: Write::Merge(patch) })
}
