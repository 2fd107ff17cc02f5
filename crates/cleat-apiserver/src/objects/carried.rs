//! A write that is carried through once it has begun, whether or not anybody still waits for it.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::runtime::Handle;

/// Polls `writing` in place, and moves it into a task of its own if this is dropped before it is done:
/// a client that goes away cancels its request, but what was put in line will be stored. What was never
/// polled has not begun, and does not.
pub(super) struct Carried<F>
where
    F: Future<Output: Send> + Send + 'static,
{
    /// `None` while it is polled, so that one that panicked is left alone, and once it is done.
    writing: Option<Pin<Box<F>>>,
    /// Where it goes on without those who asked for it; `None` until it has begun.
    runtime: Option<Handle>,
}

impl<F> Carried<F>
where
    F: Future<Output: Send> + Send + 'static,
{
    pub(super) fn new(writing: F) -> Self {
        Self { writing: Some(Box::pin(writing)), runtime: None }
    }
}

impl<F> Future for Carried<F>
where
    F: Future<Output: Send> + Send + 'static,
{
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        if self.runtime.is_none() {
            self.runtime = Handle::try_current().ok();
        }
        let Some(mut writing) = self.writing.take() else { return Poll::Pending };
        let outcome = writing.as_mut().poll(context);
        if outcome.is_pending() {
            self.writing = Some(writing);
        }
        outcome
    }
}

impl<F> Drop for Carried<F>
where
    F: Future<Output: Send> + Send + 'static,
{
    fn drop(&mut self) {
        if let (Some(writing), Some(runtime)) = (self.writing.take(), &self.runtime) {
            drop(runtime.spawn(writing));
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn what_has_begun_is_carried_through_without_its_client() {
        let (begin, begun) = oneshot::channel::<()>();
        let (tell, told) = oneshot::channel();
        let mut writing = Carried::new(async move {
            begun.await.unwrap();
            tell.send("stored").unwrap();
        });
        assert!(futures::poll!(&mut writing).is_pending());
        drop(writing);
        begin.send(()).unwrap();
        assert_eq!(told.await, Ok("stored"));
    }

    #[tokio::test]
    async fn what_has_not_begun_does_not() {
        let (tell, told) = oneshot::channel();
        drop(Carried::new(async move { tell.send("stored") }));
        told.await.unwrap_err();
    }

    #[tokio::test]
    async fn who_waits_gets_the_outcome() {
        assert_eq!(Carried::new(async { 7 }).await, 7);
    }
}
