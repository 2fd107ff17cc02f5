//! How long a write takes to reach everybody who watches.
//!
//! Every write carries the moment it was sent, so that each watcher can tell by itself how old its
//! news is: from before the request until the line of the watch was read.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use cleat_runtime::connect::connect;
use futures::{AsyncBufRead, AsyncBufReadExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Config;
use kube::api::{Api, ListParams};
use tokio::task::JoinSet;

use super::requests;

/// Nothing here takes so long unless something is broken.
const PATIENCE: Duration = Duration::from_secs(120);
/// Long enough for everybody to have been told before the next write.
const PAUSE: Duration = Duration::from_millis(25);
const NAME: &str = "told";
const FIELD: &str = "sent";

/// Milliseconds from each write to each watcher, sorted.
pub(super) async fn measure(
    config: &Config,
    namespace: &str,
    watchers: usize,
    writes: usize,
) -> Result<Vec<f64>> {
    let writer = connect(config.clone(), "cleat-bench")?;
    writer.request_text(requests::create(namespace, NAME)?).await?;
    let maps: Api<ConfigMap> = Api::namespaced(writer.clone(), namespace);
    let from = maps.list_metadata(&ListParams::default().limit(1)).await?;
    let from = from.metadata.resource_version.context("a list has a revision")?;
    let epoch = Instant::now();
    let mut watching = JoinSet::new();
    for _ in 0..watchers {
        let client = connect(config.clone(), "cleat-bench")?;
        // Told of what comes from here on, whenever it begins to read.
        let stream = client.request_stream(requests::watch(namespace, &from)?).await?;
        watching.spawn(async move {
            let times = listen(stream, epoch, writes).await;
            // Its connection lasts as long as somebody could ask for another.
            drop(client);
            times
        });
    }
    for _ in 0..writes {
        let now = epoch.elapsed().as_micros().to_string();
        writer.request_text(requests::patch(namespace, NAME, FIELD, &now)?).await?;
        tokio::time::sleep(PAUSE).await;
    }
    let mut times = Vec::with_capacity(watchers * writes);
    let told = async {
        while let Some(watcher) = watching.join_next().await {
            times.extend(watcher??);
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(PATIENCE, told).await.context("not every watcher was told")??;
    times.sort_by(f64::total_cmp);
    Ok(times)
}

/// How old the news of so many writes was, in milliseconds.
async fn listen(stream: impl AsyncBufRead, epoch: Instant, writes: usize) -> Result<Vec<f64>> {
    let mut lines = std::pin::pin!(stream.lines());
    let mut times = Vec::with_capacity(writes);
    while times.len() < writes {
        let line = lines.try_next().await?.context("a watch ended")?;
        let now = epoch.elapsed();
        if let Some(sent) = sent(&line) {
            times.push(now.saturating_sub(sent).as_secs_f64() * 1000.0);
        }
    }
    Ok(times)
}

/// When the write was sent that an event tells of. Understanding all of it would cost a hundred
/// watchers more than it costs the server to tell them.
fn sent(line: &str) -> Option<Duration> {
    let mark = format!("\"{FIELD}\":\"");
    let (_, rest) = line.split_once(&mark)?;
    let (micros, _) = rest.split_once('"')?;
    Some(Duration::from_micros(micros.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_moment_is_found_beside_who_manages_the_field() {
        let line = r#"{"type":"MODIFIED","object":{"metadata":{"managedFields":[{"fieldsV1":
            {"f:data":{"f:sent":{}}}}]},"data":{"key":"value","sent":"1500"}}}"#;
        assert_eq!(sent(line), Some(Duration::from_micros(1500)));
        assert_eq!(sent(r#"{"type":"ADDED","object":{"data":{"key":"value"}}}"#), None);
    }
}
