//! A group that nobody answers for while a cluster leaves: what it may hold in a namespace cannot be
//! seen, so the namespace does not go.
//!
//! On servers that all tests share, such a group would keep every namespace from going. So it is put
//! into what the agent reads of its own cluster, as a kube-apiserver tells of a stale APIService.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use anyhow::{Context as _, Result};
use cleat_api::managedcluster::RemoveStrategy::Required;
use cleat_api::manifestwork::ManifestWork;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::BodyExt as _;
use k8s_openapi::api::core::v1::Namespace;
use kube::Client;
use kube::api::Api;
use kube::client::Body;
use serde_json::{Value, json};
use tower::{BoxError, Service};

use super::party::Party;
use crate::seen;

const GROUP: &str = "stale.cleat.example";

/// A client to which the server says, while it is so, that it cannot tell what a group serves.
#[derive(Clone)]
pub(super) struct Half {
    through: Client,
    group: String,
    pub(super) stale: Arc<AtomicBool>,
}

impl Half {
    pub(super) fn new(through: &Client, group: &str) -> Self {
        let stale = Arc::new(AtomicBool::new(true));
        Self { through: through.clone(), group: group.to_owned(), stale }
    }
}

impl Service<Request<Body>> for Half {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let Self { through, group, stale } = self.clone();
        Box::pin(async move {
            let asked = request.uri().path() == "/apis";
            let response = through.send(request).await?;
            if !asked || !stale.load(Ordering::SeqCst) {
                return Ok(response);
            }
            let (mut parts, body) = response.into_parts();
            let mut groups: Value = serde_json::from_slice(&body.collect().await?.to_bytes())?;
            let all = groups["items"].as_array_mut().ok_or("discovery in one document")?;
            all.retain(|one| one["metadata"]["name"] != *group);
            all.push(json!({
                "metadata": { "name": group },
                "versions": [{ "version": "v1", "resources": [], "freshness": "Stale" }],
            }));
            parts.headers.remove(http::header::CONTENT_LENGTH);
            Ok(Response::from_parts(parts, Body::from(serde_json::to_vec(&groups)?)))
        })
    }
}

#[tokio::test]
async fn a_namespace_waits_while_a_group_cannot_be_seen() -> Result<()> {
    let mut party = Party::new("stale", Required).await?;
    let inner = format!("{}-in", party.name);
    let namespace =
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": inner } });
    party.work("w", vec![namespace, party.map("m")], json!({})).await?;
    party.stop_agent().await;
    let half = Half::new(&party.cluster, GROUP);
    party.start_agent_on(Client::new(half.clone(), "default"));
    party.leave().await?;
    seen(&party.works(), "w", |work: &ManifestWork| {
        let removal = work.status.as_ref().and_then(|status| status.removal.as_ref());
        let blocked = removal.map(|removal| removal.blocked.as_slice()).unwrap_or_default();
        blocked.iter().any(|one| one.object.contains(&*inner) && one.why.contains(GROUP))
    })
    .await
    .context("nobody is told why the namespace does not go")?;
    party.absent("m").await?;
    let namespaces: Api<Namespace> = Api::all(party.cluster.clone());
    let live = namespaces.get(&inner).await.context("what it holds was not seen")?;
    assert_eq!(live.metadata.deletion_timestamp, None);
    party.fleet.clusters().get(&party.name).await.context("it has not left")?;
    half.stale.store(false, Ordering::SeqCst);
    party.left().await?;
    party.no_ledgers().await?;
    assert!(namespaces.get_opt(&inner).await?.is_none());
    assert_eq!(party.on_record().await?, []);
    party.stop_agent().await;
    Ok(())
}
