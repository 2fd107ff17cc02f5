//! A client whose credentials change under it.

use std::sync::{Arc, PoisonError, RwLock};
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::{Request, Response};
use kube::Client;
use kube::client::Body;
use tower::Service;

/// The connection to the hub. Its clones, and all clients it gives out, are the same.
///
/// Guarantees: a request that begins after [`replace`](Self::replace) uses the new credentials; what
/// is under way, such as a watch, ends with the ones it began with.
#[derive(Clone)]
pub struct Line(Arc<RwLock<Client>>);

impl Line {
    pub fn new(client: Client) -> Self {
        Self(Arc::new(RwLock::new(client)))
    }

    pub fn replace(&self, client: Client) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = client;
    }

    /// A client that always uses the latest credentials.
    pub fn client(&self) -> Client {
        Client::new(self.clone(), "default")
    }
}

impl Service<Request<Body>> for Line {
    type Response = Response<Body>;
    type Error = kube::Error;
    type Future = BoxFuture<'static, Result<Response<Body>, kube::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), kube::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let client = self.0.read().unwrap_or_else(PoisonError::into_inner).clone();
        Box::pin(async move { client.send(request).await })
    }
}
