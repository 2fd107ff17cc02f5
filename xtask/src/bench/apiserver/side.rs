//! What the two servers have in common: how they are reached, ended and started again.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use cleat_world::kubernetes::kubeconfig::Access;
use cleat_world::server::Remote;
use http::StatusCode;

use super::super::procs::Ending;

/// How long a server may take to be ready.
pub(super) const PATIENCE: Duration = Duration::from_secs(300);

/// A server that runs.
pub(super) trait Side {
    fn kubeconfig(&self) -> PathBuf;

    /// Resident memory of all its processes together, in bytes.
    fn resident(&self) -> Result<f64>;

    /// Ends it and starts it with what it has stored. Seconds until it was ready.
    async fn again(&mut self, ending: Ending) -> Result<f64>;

    /// Ends it, forgets everything it has stored and starts it. Seconds until it was ready.
    async fn anew(&mut self) -> Result<f64>;
}

/// Seconds from `begun` until a server says that it is ready.
///
/// It is asked ever less often, so that asking does not take from the start what is measured: what is
/// told is two in a hundred too late at most.
pub(super) async fn ready(
    access: &Access,
    begun: Instant,
    mut alive: impl FnMut() -> Result<()>,
) -> Result<f64> {
    let remote = Remote::new(access)?;
    loop {
        alive()?;
        let asked = tokio::time::timeout(PATIENCE, remote.get("/readyz")).await;
        if let Ok(Ok((StatusCode::OK, _))) = asked {
            return Ok(begun.elapsed().as_secs_f64());
        }
        if begun.elapsed() > PATIENCE {
            bail!("{} is not ready after {} s", access.url, PATIENCE.as_secs());
        }
        tokio::time::sleep(Duration::from_millis(1).max(begun.elapsed() / 50)).await;
    }
}
