//! Telling people on the cluster that its hub does not know it: in the log, and as an event.

use cleat_core::id::{Id, Target};
use cleat_core::write::{Action, Outcome, Side, Write};
use cleat_runtime::execute::Executor;
use jiff::Timestamp;
use serde_json::json;

use super::Leave;
use crate::registration::{FIELD_MANAGER, Keep};

pub(super) async fn raise(executor: &Executor, leave: &Leave, why: &str) {
    tracing::error!(
        cluster = leave.name,
        why,
        "the hub answers but does not know this cluster; nothing is changed here until it does, or \
         the cluster joins again"
    );
    let namespace = match &leave.keep {
        Some(Keep::Secret { namespace }) => namespace.clone(),
        _ => "default".to_owned(),
    };
    // Agents of several clusters, or hubs, may share the namespace.
    let name = format!("{FIELD_MANAGER}.{}.unknown-to-hub", leave.name);
    let now = format!("{:.0}", Timestamp::now());
    let message = format!(
        "The hub answers but does not know the cluster {}: {why}. Nothing is changed here. Restore \
         the hub, or join again with `cleat join {} --again`.",
        leave.name, leave.name
    );
    let object = json!({
        "apiVersion": "v1", "kind": "Event",
        "metadata": { "name": name, "namespace": namespace },
        "involvedObject": {
            "apiVersion": "v1", "kind": "Namespace", "name": namespace, "namespace": namespace,
        },
        "reason": "HubDoesNotKnowCluster", "message": message, "type": "Warning",
        "source": { "component": FIELD_MANAGER },
        "firstTimestamp": now, "lastTimestamp": now, "count": 1,
    });
    let id = Id { resource: "events".to_owned(), namespace, name, ..Id::default() };
    let target = Target { version: "v1".to_owned(), id };
    let write = Write::Apply { object, manager: FIELD_MANAGER.to_owned(), force: true };
    let action = Action { side: Side::Cluster, target, write };
    match executor.execute(vec![vec![action]]).await.into_iter().flatten().next() {
        Some(Outcome::Done(_)) => {}
        other => tracing::warn!(?other, "the event could not be written"),
    }
}
