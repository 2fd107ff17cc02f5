//! How every verb that runs until told otherwise is told.

use anyhow::Result;

/// Resolves on Ctrl-C or SIGTERM.
pub(crate) async fn interrupted() -> Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        interrupt = tokio::signal::ctrl_c() => interrupt?,
        _ = terminate.recv() => {}
    }
    Ok(())
}
