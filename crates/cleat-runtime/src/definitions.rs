//! Noticing that a server's kinds change, through the metadata of its definitions. Nothing of it is
//! kept.

use futures::StreamExt as _;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::Api;
use kube::core::PartialObjectMeta;
use kube::runtime::{WatchStreamExt as _, watcher};

use crate::tasks::Tasks;

/// Calls `on_change` whenever a definition came, went or changed.
pub fn follow(client: &Client, tasks: &Tasks, on_change: impl Fn() + Send + 'static) {
    let definitions: Api<PartialObjectMeta<CustomResourceDefinition>> = Api::all(client.clone());
    let mut stop = tasks.stop();
    tasks.spawn("definitions", async move {
        let events = watcher::watcher(definitions, watcher::Config::default()).default_backoff();
        let mut events = std::pin::pin!(events);
        while let Some(Some(event)) = stop.or(events.next()).await {
            match event {
                Ok(watcher::Event::Init | watcher::Event::InitApply(_)) => {}
                Ok(_) => on_change(),
                Err(error) => tracing::debug!(%error, "definitions cannot be watched now"),
            }
        }
    });
}
