//! A client whose writes get lost while a test says so, as they do on the way to a server.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::future::BoxFuture;
use http::{Request, Response};
use kube::Client;
use kube::client::Body;
use tokio::sync::Notify;
use tower::{BoxError, Service};

/// Its clones lose, and tell, the same.
#[derive(Clone, Default)]
pub struct Loss {
    begun: Arc<AtomicBool>,
    lost: Arc<Notify>,
}

impl Loss {
    /// A client whose writes pass by here.
    pub fn client(&self, through: &Client) -> Client {
        Client::new(Losing { loss: self.clone(), through: through.clone() }, "default")
    }

    /// From now on every write is lost.
    pub fn begin(&self) {
        self.begun.store(true, Ordering::SeqCst);
    }

    /// From now on none is.
    pub fn end(&self) {
        self.begun.store(false, Ordering::SeqCst);
    }

    /// Returns when a write was lost, since this was last waited for.
    pub async fn happened(&self) {
        self.lost.notified().await;
    }
}

#[derive(Clone)]
struct Losing {
    loss: Loss,
    through: Client,
}

impl Service<Request<Body>> for Losing {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(
        &mut self,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Result<(), BoxError>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let lost = !request.method().is_safe() && self.loss.begun.load(Ordering::SeqCst);
        let Self { loss, through } = self.clone();
        Box::pin(async move {
            if lost {
                loss.lost.notify_one();
                return Err("the connection broke".into());
            }
            Ok(through.send(request).await?)
        })
    }
}
