//! Kinds that a server lists and does not watch, as some that are served by others are.

use std::task::{Context as Polling, Poll};

use anyhow::Result;
use cleat_agent::policy;
use futures::future::BoxFuture;
use http::{Request, Response, StatusCode};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::Patch;
use kube::client::Body;
use serde_json::json;
use tower::{BoxError, Service};

use super::{Site, enforce, musthave, pruning, related};
use crate::seen;

/// A server on which nobody can watch ConfigMaps.
#[derive(Clone)]
pub(crate) struct Unwatched {
    pub(crate) through: Client,
}

impl Service<Request<Body>> for Unwatched {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Polling<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let through = self.through.clone();
        Box::pin(async move {
            let watches = request.uri().query().is_some_and(|query| query.contains("watch=true"));
            if !watches || !request.uri().path().ends_with("/configmaps") {
                return Ok(through.send(request).await?);
            }
            let status = json!({
                "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 405,
                "reason": "MethodNotAllowed",
                "message": "the server does not allow this method on the requested resource",
            });
            let answer = Response::builder().status(StatusCode::METHOD_NOT_ALLOWED);
            let answer = answer.header("content-type", "application/json");
            Ok(answer.body(Body::from(status.to_string().into_bytes()))?)
        })
    }
}

/// It was once said to be unreachable, whatever the policy's interval.
#[tokio::test]
async fn a_kind_that_cannot_be_watched_is_looked_at_by_policies_with_an_interval() -> Result<()> {
    let mut site = Site::without_controller("unwatched").await?;
    let client = Client::new(Unwatched { through: site.cluster.clone() }, "default");
    let namespaces = vec![site.name.clone()];
    site.run(policy::Config { namespaces, ..policy::Config::new(client) });
    site.policy("p", enforce(vec![musthave(site.map("a", "1"))])).await?;
    let policy = site.says("p", "watch not supported on this resource").await?;
    let condition = &policy.status.unwrap().compliancy_details[0].conditions[0];
    assert_eq!(condition.reason.as_deref(), Some("unwatchable resource"));
    assert!(site.maps().get_opt("a").await?.is_none());

    let mut spec = pruning(enforce(vec![musthave(site.map("b", "1"))]), "DeleteIfCreated");
    spec["evaluationInterval"] = json!({ "compliant": "1s", "noncompliant": "1s" });
    site.policy("q", spec).await?;
    let policy = site.stands("q", "Compliant").await?;
    assert!(related(&policy, "b").is_some());
    let change = Patch::Merge(json!({ "data": { "key": "2" } }));
    site.maps().patch("b", &Default::default(), &change).await?;
    seen(&site.maps(), "b", |map: &ConfigMap| {
        map.data.as_ref().is_some_and(|data| data["key"] == "1")
    })
    .await?;
    site.end("q").await?;
    assert!(site.maps().get_opt("b").await?.is_none());
    Ok(())
}
