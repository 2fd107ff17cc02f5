//! Streams that do not wait for ever for somebody to take what they say.
//!
//! A client of HTTP/2 can keep its connection well, with answers to every ping, and open no window for
//! one of its streams. Nobody asks the body of that stream for anything then, so that it cannot notice
//! by itself: its connection does. What stood behind the stream is let go of, and the stream breaks off
//! once it is asked again. One that has nothing to say is not cut off.

use std::{
    collections::BTreeMap,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http_body::{Body, Frame};
use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The streams of one connection.
#[derive(Clone, Default)]
pub(super) struct Streams(Arc<Registry>);

#[derive(Default)]
struct Registry {
    open: Mutex<Open>,
    /// There is a stream where there was none.
    begun: Notify,
}

#[derive(Default)]
struct Open {
    last: u64,
    streams: BTreeMap<u64, Arc<dyn Stalls>>,
}

impl Streams {
    /// The same body, looked after by [`Streams::look_after`].
    pub(super) fn enter<B>(&self, body: B) -> Watched<B>
    where
        B: Body<Data = Bytes> + Send + 'static,
    {
        let slot = Arc::new(Mutex::new(Slot { body: Some(Box::pin(body)), offered: None }));
        let mut open = self.open();
        open.last += 1;
        let id = open.last;
        let stream: Arc<dyn Stalls> = Arc::clone(&slot) as _;
        open.streams.insert(id, stream);
        drop(open);
        self.0.begun.notify_one();
        Watched { slot, streams: self.clone(), id }
    }

    /// Lets go of every stream of which nothing was taken for `patience`. Does not end.
    pub(super) async fn look_after(&self, patience: Duration) -> std::convert::Infallible {
        loop {
            let streams: Vec<Arc<dyn Stalls>> = self.open().streams.values().cloned().collect();
            if streams.is_empty() {
                self.0.begun.notified().await;
                continue;
            }
            let now = Instant::now();
            let mut next = now + patience;
            for stream in streams {
                // What is offered from now on is due later than anything here.
                if let Some(offered) = stream.offered() {
                    match offered + patience {
                        due if due <= now => stream.let_go(),
                        due => next = next.min(due),
                    }
                }
            }
            sleep_until(next).await;
        }
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A body that its connection looks after.
pub(super) struct Watched<B> {
    slot: Arc<Mutex<Slot<B>>>,
    streams: Streams,
    id: u64,
}

struct Slot<B> {
    /// `None` once it has ended, or was let go of.
    body: Option<Pin<Box<B>>>,
    /// Since when a piece waits to be taken.
    offered: Option<Instant>,
}

trait Stalls: Send + Sync {
    fn offered(&self) -> Option<Instant>;
    fn let_go(&self);
}

impl<B: Send> Stalls for Mutex<Slot<B>> {
    fn offered(&self) -> Option<Instant> {
        let slot = self.lock().unwrap_or_else(PoisonError::into_inner);
        slot.offered.filter(|_| slot.body.is_some())
    }

    fn let_go(&self) {
        let body = self.lock().unwrap_or_else(PoisonError::into_inner).body.take();
        // Not while it is locked: what ends with it is not known here.
        drop(body);
    }
}

impl<B> Body for Watched<B>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let mut slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
        // Whoever asks for more has taken what there was.
        slot.offered = None;
        let Some(body) = &mut slot.body else {
            return Poll::Ready(Some(Err("nothing was taken of it for too long".into())));
        };
        match body.as_mut().poll_frame(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Some(frame)) => {
                slot.offered = Some(Instant::now());
                Poll::Ready(Some(frame.map_err(Into::into)))
            }
            Poll::Ready(None) => Poll::Ready(None),
        }
    }
}

impl<B> Drop for Watched<B> {
    fn drop(&mut self) {
        self.streams.open().streams.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http_body_util::{BodyExt as _, StreamBody};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    /// Says one thing after another, and tells when it is let go of.
    fn endless() -> (impl Body<Data = Bytes, Error = Infallible> + Send + 'static, Arc<()>) {
        let alive = Arc::new(());
        let held = Arc::clone(&alive);
        let words = futures::stream::repeat_with(move || {
            let _ = &held;
            Ok(Frame::data(Bytes::from_static(b"word")))
        });
        (StreamBody::new(words), alive)
    }

    async fn looked_after(streams: &Streams, time: Duration) {
        let _ = tokio::time::timeout(time, streams.look_after(PATIENCE)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_without_a_window_was_kept_for_ever() {
        let streams = Streams::default();
        let (body, alive) = endless();
        let mut body = Box::pin(streams.enter(body));
        body.frame().await.unwrap().unwrap();
        looked_after(&streams, PATIENCE - Duration::from_secs(1)).await;
        assert_eq!(Arc::strong_count(&alive), 2, "there is time yet");
        looked_after(&streams, Duration::from_secs(2)).await;
        assert_eq!(Arc::strong_count(&alive), 1, "nobody holds it any more");
        body.frame().await.unwrap().unwrap_err();
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_slow_or_has_nothing_to_hear_is_not_cut_off() {
        let streams = Streams::default();
        let (body, alive) = endless();
        let mut slow = Box::pin(streams.enter(body));
        for _ in 0..9 {
            slow.frame().await.unwrap().unwrap();
            looked_after(&streams, PATIENCE * 3 / 4).await;
        }
        assert_eq!(Arc::strong_count(&alive), 2);
        drop(slow);
        assert!(streams.open().streams.is_empty(), "it is forgotten with its body");

        let silence = futures::stream::pending::<Result<Frame<Bytes>, Infallible>>();
        let mut quiet = Box::pin(streams.enter(StreamBody::new(silence)));
        assert!(futures::poll!(quiet.frame()).is_pending());
        looked_after(&streams, 9 * PATIENCE).await;
        assert!(futures::poll!(quiet.frame()).is_pending(), "it may yet hear something");
    }
}
