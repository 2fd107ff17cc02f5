//! Clients of one server, each with a connection of its own, and how long they wait for answers.
//!
//! Answers are read and not understood: what a client costs is taken from the cores that the server
//! runs on, and would make the faster of two servers look slower than it is.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::Result;
use cleat_runtime::connect::connect;
use http::Request;
use kube::{Client, Config};
use tokio::task::JoinSet;

use super::super::table::number;
use super::requests;

pub(crate) struct Crowd(Vec<Client>);

/// How long requests took.
pub(crate) struct Timed {
    pub(crate) per_second: f64,
    /// Milliseconds of each, sorted.
    pub(crate) times: Vec<f64>,
}

impl Crowd {
    /// Connections are there when this returns.
    pub(crate) async fn connect(config: &Config, clients: usize) -> Result<Self> {
        let mut all = Vec::with_capacity(clients);
        for _ in 0..clients {
            let client = connect(config.clone(), "cleat-bench")?;
            client.request_text(requests::ready()?).await?;
            all.push(client);
        }
        Ok(Self(all))
    }

    pub(crate) fn clients(&self) -> &[Client] {
        &self.0
    }

    /// Sends the requests of the numbers below `count`, each client one at a time.
    pub(crate) async fn run(
        &self,
        count: usize,
        make: impl Fn(usize) -> Result<Request<Vec<u8>>> + Send + Sync + 'static,
    ) -> Result<Timed> {
        let (next, make) = (Arc::new(AtomicUsize::new(0)), Arc::new(make));
        let begun = Instant::now();
        let mut lanes = JoinSet::new();
        for client in &self.0 {
            let (client, next, make) = (client.clone(), Arc::clone(&next), Arc::clone(&make));
            lanes.spawn(async move {
                let mut times = Vec::new();
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        return anyhow::Ok(times);
                    }
                    let request = make(number)?;
                    let sent = Instant::now();
                    client.request_text(request).await?;
                    times.push(sent.elapsed().as_secs_f64() * 1000.0);
                }
            });
        }
        let mut times = Vec::with_capacity(count);
        while let Some(lane) = lanes.join_next().await {
            times.extend(lane??);
        }
        let per_second = number(count) / begun.elapsed().as_secs_f64();
        times.sort_by(f64::total_cmp);
        Ok(Timed { per_second, times })
    }
}
