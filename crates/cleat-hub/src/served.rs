//! Following a kind that a hub may not have: only while its definition is there.

use std::future::Future;
use std::pin::{Pin, pin};

use cleat_runtime::tasks::Stop;
use futures::StreamExt as _;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::Api;
use kube::core::PartialObjectMeta;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};

use crate::kinds::Kind;

/// Runs what `follow` gives while the hub defines the kind, and anew whenever it does so again.
pub(crate) async fn while_served<F>(
    client: Client,
    kind: Kind,
    mut stop: Stop,
    follow: impl Fn() -> F,
) where
    F: Future<Output = ()> + Send,
{
    let [group, _, _, plural] = kind;
    let name = format!("{plural}.{group}");
    let definitions: Api<PartialObjectMeta<CustomResourceDefinition>> = Api::all(client);
    let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
    let mut events = pin!(watcher(definitions, config).default_backoff());
    let mut following: Option<Pin<Box<F>>> = None;
    let mut listed = false;
    loop {
        let next = async {
            match &mut following {
                Some(running) => tokio::select! {
                    event = events.next() => Some(event),
                    () = running.as_mut() => None,
                },
                None => Some(events.next().await),
            }
        };
        let Some(next) = stop.or(next).await else { return };
        match next {
            // It ended by itself, which it does only when all ends.
            None => return,
            Some(None) => return,
            Some(Some(Ok(Event::Apply(_) | Event::InitApply(_)))) => {
                listed = true;
                if following.is_none() {
                    following = Some(Box::pin(follow()));
                }
            }
            Some(Some(Ok(Event::Init))) => listed = false,
            Some(Some(Ok(Event::InitDone))) if listed => {}
            Some(Some(Ok(Event::InitDone | Event::Delete(_)))) => following = None,
            Some(Some(Err(error))) => tracing::debug!(%error, "a watch was interrupted"),
        }
    }
}
