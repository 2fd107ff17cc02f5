//! A connection that does not wait for ever for its peer to take what is sent.
//!
//! A client that stops reading, a watcher most of all, would otherwise hold its connection, and what
//! lies in the buffers of it, for as long as it likes. One that is merely slow is not cut off: anything
//! it takes counts.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Sleep, sleep},
};

pub(super) struct Patient<IO> {
    io: IO,
    patience: Duration,
    /// Runs while something is to be sent and nothing is taken.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl<IO> Patient<IO> {
    pub(super) fn new(io: IO, patience: Duration) -> Self {
        Self { io, patience, stalled: None }
    }

    /// What came of an attempt to send, unless there have been too many without any success.
    fn judge<T>(
        &mut self,
        attempt: Poll<io::Result<T>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if attempt.is_ready() {
            self.stalled = None;
            return attempt;
        }
        let patience = self.patience;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(patience)));
        match stalled.as_mut().poll(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(()) => {
                let why = "the peer takes nothing of what is sent";
                Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, why)))
            }
        }
    }
}

impl<IO: AsyncRead + Unpin> AsyncRead for Patient<IO> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(context, buffer)
    }
}

impl<IO: AsyncWrite + Unpin> AsyncWrite for Patient<IO> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let attempt = Pin::new(&mut self.io).poll_write(context, bytes);
        self.judge(attempt, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let attempt = Pin::new(&mut self.io).poll_write_vectored(context, pieces);
        self.judge(attempt, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    // A flush that has nothing to do succeeds while the peer is as stuck as before, so that its success
    // says nothing.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::time::Instant;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn who_takes_nothing_is_cut_off() {
        let (here, _there) = tokio::io::duplex(16);
        let mut here = Patient::new(here, PATIENCE);
        here.write_all(&[0; 16]).await.unwrap();
        let begun = Instant::now();
        let refused = here.write_all(&[0; 1]).await.unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::TimedOut);
        assert_eq!(begun.elapsed().as_secs(), PATIENCE.as_secs());
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_slow_or_idle_is_not() {
        let (here, mut there) = tokio::io::duplex(16);
        let mut here = Patient::new(here, PATIENCE);
        let sending = async {
            // Nothing is to be sent, however long.
            tokio::time::sleep(10 * PATIENCE).await;
            here.write_all(&[7; 64]).await
        };
        let reading = async {
            tokio::time::sleep(10 * PATIENCE).await;
            let mut taken = [0; 8];
            for _ in 0..8 {
                tokio::time::sleep(PATIENCE * 3 / 4).await;
                there.read_exact(&mut taken).await.unwrap();
            }
            taken
        };
        let (sent, taken) = tokio::join!(sending, reading);
        sent.unwrap();
        assert_eq!(taken, [7; 8]);
    }
}
