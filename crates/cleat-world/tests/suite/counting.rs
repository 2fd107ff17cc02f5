//! A client that writes down what it is asked.

use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::{Method, Request, Response};
use kube::Client;
use kube::client::Body;
use tower::{BoxError, Service};

/// Every request of a controller, as method, path and query.
#[derive(Clone, Default)]
pub(crate) struct Counting {
    asked: Arc<Mutex<Vec<(Method, String)>>>,
}

impl Counting {
    pub(crate) fn client(&self, through: &Client) -> Client {
        Client::new(Counted { counting: self.clone(), through: through.clone() }, "default")
    }

    /// What was asked since the last time, but for watches and the lists they begin with.
    pub(crate) fn take(&self) -> Vec<String> {
        let asked = std::mem::take(&mut *self.asked.lock().unwrap());
        let plain = asked.into_iter().filter(|(method, path)| {
            !(method == Method::GET && (path.contains("watch=") || path.contains("limit=")))
        });
        plain.map(|(method, path)| format!("{method} {path}")).collect()
    }
}

#[derive(Clone)]
struct Counted {
    counting: Counting,
    through: Client,
}

impl Service<Request<Body>> for Counted {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let through = self.through.clone();
        let what = (request.method().clone(), request.uri().to_string());
        self.counting.asked.lock().unwrap().push(what);
        Box::pin(async move { Ok(through.send(request).await?) })
    }
}
