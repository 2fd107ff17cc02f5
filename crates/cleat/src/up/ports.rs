//! Which port each server listens on: the one it had before, if it can be had again.
//!
//! A kubeconfig that somebody copied keeps working over a restart.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use tokio::net::TcpListener;

use super::identity::write_secret;

/// A listener for each name, in order.
pub(super) async fn listen(
    dir: &Path,
    address: IpAddr,
    first: u16,
    names: &[String],
) -> Result<Vec<TcpListener>> {
    let file = dir.join("ports.json");
    let mut ports: BTreeMap<String, u16> = match std::fs::read(&file) {
        Ok(bytes) => {
            serde_json::from_slice(&bytes).with_context(|| format!("read {}", file.display()))?
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => BTreeMap::new(),
        Err(error) => return Err(error).with_context(|| format!("read {}", file.display())),
    };
    let mut listeners = Vec::with_capacity(names.len());
    let mut next = first;
    for name in names {
        let taken: BTreeSet<u16> = ports.values().copied().collect();
        let remembered = match ports.get(name) {
            Some(port) => TcpListener::bind((address, *port)).await.ok(),
            None => None,
        };
        let listener = match remembered {
            Some(listener) => listener,
            None => free(address, &mut next, &taken).await?,
        };
        ports.insert(name.clone(), listener.local_addr()?.port());
        listeners.push(listener);
    }
    write_secret(&file, &serde_json::to_string_pretty(&ports)?)?;
    Ok(listeners)
}

async fn free(address: IpAddr, next: &mut u16, taken: &BTreeSet<u16>) -> Result<TcpListener> {
    while let Some(after) = next.checked_add(1) {
        let port = std::mem::replace(next, after);
        if taken.contains(&port) {
            continue;
        }
        if let Ok(listener) = TcpListener::bind((address, port)).await {
            return Ok(listener);
        }
    }
    bail!("no free port left on {address}: choose a lower one with --port")
}
