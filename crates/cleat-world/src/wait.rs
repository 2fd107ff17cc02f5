//! Waiting in tests: always for something, never for a while, and not for ever.

use std::future::Future;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

/// How long a test waits for anything. Machines that test are busy machines.
pub const PATIENCE: Duration = Duration::from_secs(240);

/// What `future` gives, if it does before patience ends.
pub async fn within<T>(what: &str, future: impl Future<Output = T>) -> Result<T> {
    let waited = tokio::time::timeout(PATIENCE, future).await;
    waited.with_context(|| format!("waited {} s for {what}", PATIENCE.as_secs()))
}

/// Asks again until `ask` has an answer.
///
/// Only for what no watch tells: that another component has noticed a change, such as the
/// authorizer of a real kube-apiserver a new role binding. Everything else is watched.
pub async fn eventually<T, F>(what: &str, mut ask: impl FnMut() -> F) -> Result<T>
where
    F: Future<Output = Result<Option<T>>>,
{
    let mut pause = tokio::time::interval(Duration::from_millis(50));
    let deadline = tokio::time::Instant::now() + PATIENCE;
    loop {
        pause.tick().await;
        if let Some(answer) = ask().await.with_context(|| format!("while waiting for {what}"))? {
            return Ok(answer);
        }
        if tokio::time::Instant::now() > deadline {
            bail!("waited {} s for {what}", PATIENCE.as_secs());
        }
    }
}
