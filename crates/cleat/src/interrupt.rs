//! How every verb that runs until told otherwise is told.

use anyhow::Result;
use tokio::signal::unix::{SignalKind, signal};

/// Resolves on Ctrl-C or SIGTERM, of which none is missed from now on: whoever says that they are ready
/// has called this before.
pub(crate) fn interrupted() -> Result<impl Future<Output = ()>> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}
