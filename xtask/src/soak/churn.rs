//! What the clients of a soak do: the same for ever, with names that never come back.
//!
//! Whatever the server keeps per name, per namespace, per connection or per watch and does not let go
//! of adds up.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result};
use cleat_runtime::connect::connect;
use futures::{AsyncBufReadExt as _, TryStreamExt as _};
use http::Request;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, DeleteParams, ListParams};
use kube::{Client, Config};
use tokio::task::JoinSet;

use crate::bench::apiserver::requests;
use crate::bench::stage;

const PLACE: &str = "churn";
/// Rounds of a client between two lists of a page, and between two new connections.
const PAGES: u64 = 100;
const CONNECTIONS: u64 = 2000;
/// Events that a watcher reads before it begins anew, and how long a slow one takes for each.
const EVENTS: usize = 5000;
const SLOW: Duration = Duration::from_millis(100);
/// However slow, a watcher begins anew.
const TURN: Duration = Duration::from_secs(60);
/// Between two namespaces.
const PAUSE: Duration = Duration::from_secs(1);

#[derive(Clone)]
pub(super) struct Churn {
    pub(super) config: Config,
    /// Objects of each client that are there at any time.
    pub(super) window: u64,
    /// Requests that were answered.
    pub(super) asked: Arc<AtomicU64>,
}

impl Churn {
    /// Starts everybody. None of them ends but by an error.
    pub(super) async fn start(
        &self,
        clients: u16,
        watchers: u16,
        lanes: &mut JoinSet<Result<()>>,
    ) -> Result<()> {
        stage::namespace(&self.connect()?, PLACE).await?;
        for lane in 0..clients {
            let churn = self.clone();
            lanes.spawn(async move { churn.objects(lane).await });
        }
        for lane in 0..watchers {
            let (churn, slow) = (self.clone(), lane % 4 == 3);
            lanes.spawn(async move { churn.watches(slow).await });
        }
        let churn = self.clone();
        lanes.spawn(async move { churn.namespaces().await });
        Ok(())
    }

    fn connect(&self) -> Result<Client> {
        Ok(connect(self.config.clone(), "cleat-soak")?)
    }

    async fn ask(&self, client: &Client, request: Request<Vec<u8>>) -> Result<()> {
        let what = format!("{} {}", request.method(), request.uri());
        requests::drain(client, request).await.with_context(|| what)?;
        self.asked.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Objects come, are changed twice and read while they are there, and go.
    async fn objects(&self, lane: u16) -> Result<()> {
        let name = |number: u64| format!("map-{lane}-{number}");
        let mut client = self.connect()?;
        for round in 0_u64.. {
            self.ask(&client, requests::create(PLACE, &name(round))?).await?;
            if let Some(old) = round.checked_sub(self.window / 4) {
                let value = round.to_string();
                self.ask(&client, requests::patch(PLACE, &name(old), "key", &value)?).await?;
            }
            if let Some(old) = round.checked_sub(self.window / 2) {
                self.ask(&client, requests::apply(PLACE, &name(old), "applied")?).await?;
                self.ask(&client, requests::get(PLACE, &name(old))?).await?;
            }
            if let Some(old) = round.checked_sub(self.window) {
                self.ask(&client, requests::delete(PLACE, &name(old))?).await?;
            }
            if round.is_multiple_of(PAGES) {
                let page = format!("/api/v1/namespaces/{PLACE}/configmaps?limit=500");
                self.ask(&client, Request::get(page).body(Vec::new())?).await?;
            }
            if round % CONNECTIONS == CONNECTIONS - 1 {
                self.ask(&client, requests::list(PLACE)?).await?;
                client = self.connect()?;
            }
        }
        Ok(())
    }

    /// Watches from now on, for a while, and again. Being told that it was too slow is a reason to
    /// begin anew like any other.
    async fn watches(&self, slow: bool) -> Result<()> {
        loop {
            let client = self.connect()?;
            let maps: Api<ConfigMap> = Api::namespaced(client.clone(), PLACE);
            let from = maps.list_metadata(&ListParams::default().limit(1)).await?;
            let from = from.metadata.resource_version.context("a list has a revision")?;
            let stream = client.request_stream(requests::watch(PLACE, &from)?).await?;
            let mut lines = std::pin::pin!(stream.lines());
            let reading = async {
                for _ in 0..EVENTS {
                    if lines.try_next().await?.is_none() {
                        break;
                    }
                    if slow {
                        tokio::time::sleep(SLOW).await;
                    }
                }
                anyhow::Ok(())
            };
            match tokio::time::timeout(TURN, reading).await {
                // A slow watcher may be cut off in the middle of a line.
                Ok(Err(_)) if slow => {}
                Ok(read) => read.context("read a watch")?,
                Err(_) => {}
            }
            self.asked.fetch_add(2, Ordering::Relaxed);
        }
    }

    /// Namespaces come with something in them, and go with it.
    async fn namespaces(&self) -> Result<()> {
        let client = self.connect()?;
        let all: Api<Namespace> = Api::all(client.clone());
        for round in 0_u64.. {
            let name = format!("passing-{round}");
            stage::namespace(&client, &name).await?;
            for number in 0..3 {
                let created = requests::create(&name, &format!("map-{number}"))?;
                self.ask(&client, created).await?;
            }
            if let Some(old) = round.checked_sub(2) {
                all.delete(&format!("passing-{old}"), &DeleteParams::default()).await?;
            }
            self.asked.fetch_add(2, Ordering::Relaxed);
            tokio::time::sleep(PAUSE).await;
        }
        Ok(())
    }
}
