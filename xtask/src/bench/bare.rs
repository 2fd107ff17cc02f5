//! What anybody could do with a client and a loop: the measure of everything else.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use cleat_api::appliedmanifestwork::AppliedManifestWork;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use serde_json::{Value, json};
use tokio::sync::OnceCell;
use tokio::task::JoinSet;

/// Requests under way at the same time, as the agent has them.
pub(crate) const IN_FLIGHT: usize = 32;

/// The object that everything here is about.
pub(crate) fn map(namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": name, "namespace": namespace },
        "data": { "key": "value", "name": name },
    })
}

/// Does `each` for the numbers below `count`, as many at the same time as requests may be.
pub(crate) async fn all<F>(
    count: usize,
    each: impl Fn(usize) -> F + Send + Sync + 'static,
) -> Result<Duration>
where
    F: Future<Output = Result<()>> + Send + 'static,
{
    let (next, each) = (Arc::new(AtomicUsize::new(0)), Arc::new(each));
    let begun = Instant::now();
    let mut lanes = JoinSet::new();
    for _ in 0..IN_FLIGHT {
        let (next, each) = (Arc::clone(&next), Arc::clone(&each));
        lanes.spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    return anyhow::Ok(());
                }
                each(number).await?;
            }
        });
    }
    while let Some(lane) = lanes.join_next().await {
        lane??;
    }
    Ok(begun.elapsed())
}

/// Makes `count` objects.
pub(crate) async fn create(client: &Client, namespace: &str, count: usize) -> Result<Duration> {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let namespace = namespace.to_owned();
    all(count, move |number| {
        let (maps, namespace) = (maps.clone(), namespace.clone());
        async move {
            let object = serde_json::from_value(map(&namespace, &format!("bare-{number}")))?;
            maps.create(&PostParams::default(), &object).await?;
            Ok(())
        }
    })
    .await
}

/// Makes `count` objects, and before each `each` of them writes down which, in a record that owns them:
/// the requests to the cluster that no agent can do without which is to leave nothing behind, and
/// nothing else of what an agent does.
pub(crate) async fn create_recorded(
    client: &Client,
    namespace: &str,
    count: usize,
    each: usize,
) -> Result<Duration> {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let records: Api<AppliedManifestWork> = Api::all(client.clone());
    let namespace = namespace.to_owned();
    let owners: Arc<Vec<OnceCell<String>>> =
        Arc::new((0..count.div_ceil(each)).map(|_| OnceCell::new()).collect());
    all(count, move |number| {
        let (maps, records) = (maps.clone(), records.clone());
        let (namespace, owners) = (namespace.clone(), Arc::clone(&owners));
        async move {
            let group = number / each;
            let owner = format!("bare-{group}");
            let cell = owners.get(group).context("every object has a record")?;
            let uid = cell
                .get_or_try_init(|| async {
                    let names: Vec<String> =
                        (group * each..(group + 1) * each).map(|n| format!("bare-{n}")).collect();
                    let record = json!({
                        "metadata": { "name": owner },
                        "spec": {
                            "hubHash": "bare", "manifestWorkName": owner, "agentID": "bare",
                            "claims": [{
                                "resource": "configmaps", "namespace": namespace,
                                "names": names, "origin": "Created",
                            }],
                        },
                    });
                    let made = records
                        .create(&PostParams::default(), &serde_json::from_value(record)?)
                        .await?;
                    made.metadata.uid.context("what was made has a uid")
                })
                .await?;
            let mut object = map(&namespace, &format!("bare-{number}"));
            if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
                let reference = json!([{
                    "apiVersion": "work.open-cluster-management.io/v1",
                    "kind": "AppliedManifestWork", "name": owner, "uid": uid,
                }]);
                metadata.insert("ownerReferences".to_owned(), reference);
            }
            maps.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
            Ok(())
        }
    })
    .await
}

/// Deletes the records of [`create_recorded`].
pub(crate) async fn clear_records(client: &Client) -> Result<()> {
    let records: Api<AppliedManifestWork> = Api::all(client.clone());
    records.delete_collection(&DeleteParams::background(), &ListParams::default()).await?;
    Ok(())
}

/// Deletes the first `count` of them.
pub(crate) async fn delete(client: &Client, namespace: &str, count: usize) -> Result<Duration> {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    all(count, move |number| {
        let maps = maps.clone();
        async move {
            maps.delete(&format!("bare-{number}"), &DeleteParams::background()).await?;
            Ok(())
        }
    })
    .await
}

/// Deletes whatever is left of them.
pub(crate) async fn clear(client: &Client, namespace: &str) -> Result<()> {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    // What every namespace has would only be made anew.
    let rest = ListParams::default().fields("metadata.name!=kube-root-ca.crt");
    maps.delete_collection(&DeleteParams::background(), &rest).await?;
    Ok(())
}

/// How many objects are in a namespace. Costs the server one object.
pub(crate) async fn count(client: &Client, namespace: &str) -> Result<usize> {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let page = maps.list_metadata(&ListParams::default().limit(1)).await?;
    let more = page.metadata.remaining_item_count.unwrap_or_default();
    Ok(page.items.len() + usize::try_from(more).context("a count cannot be negative")?)
}
