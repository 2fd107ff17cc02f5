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

/// Nobody told the policy that its object was gone.
#[tokio::test]
async fn a_policy_hung_for_ever_on_an_object_of_a_kind_that_cannot_be_watched() -> Result<()> {
    let mut site = Site::without_controller("unwatched-hangs").await?;
    let client = Client::new(Unwatched { through: site.cluster.clone() }, "default");
    let namespaces = vec![site.name.clone()];
    site.run(policy::Config { namespaces, ..policy::Config::new(client) });
    let mut spec = pruning(enforce(vec![musthave(site.map("held", "1"))]), "DeleteIfCreated");
    spec["evaluationInterval"] = json!({ "compliant": "1h", "noncompliant": "1s" });
    site.policy("p", spec).await?;
    site.stands("p", "Compliant").await?;
    let finalizers =
        |all: serde_json::Value| Patch::Merge(json!({ "metadata": { "finalizers": all } }));
    let hold = finalizers(json!(["example.com/hold"]));
    site.maps().patch("held", &Default::default(), &hold).await?;
    site.policies().delete("p", &Default::default()).await?;
    site.says("p", "waiting for finalizer example.com/hold").await?;
    site.maps().patch("held", &Default::default(), &finalizers(json!([]))).await?;
    site.absent(&site.policies(), "p").await?;
    site.absent(&site.maps(), "held").await
}

/// It was taken for one that cannot be seen.
#[tokio::test]
async fn an_object_of_a_kind_that_cannot_be_watched_was_never_pruned_when_it_left() -> Result<()> {
    let mut site = Site::without_controller("unwatched-left").await?;
    let client = Client::new(Unwatched { through: site.cluster.clone() }, "default");
    let namespaces = vec![site.name.clone()];
    site.run(policy::Config { namespaces, ..policy::Config::new(client) });
    let account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": { "name": "stays", "namespace": site.name },
    });
    let both = vec![musthave(site.map("leaves", "1")), musthave(account.clone())];
    let mut spec = pruning(enforce(both), "DeleteIfCreated");
    spec["evaluationInterval"] = json!({ "compliant": "1s", "noncompliant": "1s" });
    site.policy("p", spec).await?;
    site.stands("p", "Compliant").await?;
    assert!(site.maps().get_opt("leaves").await?.is_some());
    // What is left of it can be watched.
    let mut spec = pruning(enforce(vec![musthave(account)]), "DeleteIfCreated");
    spec["evaluationInterval"] = json!(null);
    site.patch("p", json!({ "spec": spec })).await?;
    site.absent(&site.maps(), "leaves").await?;
    site.end("p").await
}
