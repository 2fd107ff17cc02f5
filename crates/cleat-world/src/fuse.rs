//! Clients that die after so many requests, as processes do.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::BoxFuture;
use http::{Request, Response};
use kube::Client;
use kube::client::Body;
use tokio::sync::Notify;
use tower::{BoxError, Service};

/// Lets so many requests through, then none; what the last one asked is done or not.
#[derive(Clone)]
pub struct Fuse {
    left: Arc<AtomicUsize>,
    used: Arc<AtomicUsize>,
    last_is_done: bool,
    counts: Counts,
    blown: Arc<Notify>,
}

/// Which requests bring the end nearer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counts {
    All,
    Writes,
}

impl Fuse {
    pub fn new(after: usize, last_is_done: bool) -> Self {
        Self {
            left: Arc::new(AtomicUsize::new(after)),
            used: Arc::default(),
            last_is_done,
            counts: Counts::All,
            blown: Arc::default(),
        }
    }

    /// One that counts only what changes something. All that a process leaves behind is what it wrote:
    /// to end at a read is to have ended after the write before it.
    pub fn of_writes(after: usize, last_is_done: bool) -> Self {
        Self { counts: Counts::Writes, ..Self::new(after, last_is_done) }
    }

    /// A client whose requests go through the fuse.
    pub fn client(&self, through: &Client) -> Client {
        Client::new(Fused { fuse: self.clone(), through: through.clone() }, "default")
    }

    /// How many requests went through that count.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::SeqCst)
    }

    /// Returns when it has blown.
    pub async fn blown(&self) {
        self.blown.notified().await;
    }
}

/// Tells that the fuse has blown when the last request has ended, or was given up: whoever asks for
/// many things at once gives up the rest when one of them fails.
struct Blows(Arc<Notify>);

impl Drop for Blows {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

#[derive(Clone)]
struct Fused {
    fuse: Fuse,
    through: Client,
}

impl Service<Request<Body>> for Fused {
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
        let (fuse, through) = (self.fuse.clone(), self.through.clone());
        if fuse.counts == Counts::Writes && request.method().is_safe() {
            let dead = fuse.left.load(Ordering::SeqCst) == 0;
            return Box::pin(async move {
                if dead {
                    Err("the agent is dead".into())
                } else {
                    Ok(through.send(request).await?)
                }
            });
        }
        let step = |left: usize| left.checked_sub(1);
        let left = fuse.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, step);
        Box::pin(async move {
            match left {
                Ok(left) if left > 1 => {
                    fuse.used.fetch_add(1, Ordering::SeqCst);
                    Ok(through.send(request).await?)
                }
                Ok(_) => {
                    let _blows = Blows(fuse.blown);
                    if fuse.last_is_done {
                        drop(through.send(request).await);
                    }
                    Err("the agent is dead".into())
                }
                Err(_) => Err("the agent is dead".into()),
            }
        })
    }
}
