//! The kubeconfig that `cleat up` writes: one context per server.

use std::path::Path;

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::identity::write_secret;

/// How to reach one server as its administrator. All of it PEM but the first two.
pub(super) struct Access {
    pub(super) name: String,
    pub(super) server: String,
    pub(super) authority: String,
    pub(super) certificate: String,
    pub(super) key: String,
}

pub(super) fn write(path: &Path, all: impl Iterator<Item = Result<Access>>) -> Result<()> {
    let (mut clusters, mut users, mut contexts) = (Vec::new(), Vec::new(), Vec::new());
    for access in all {
        let Access { name, server, authority, certificate, key } = access?;
        clusters.push(json!({ "name": name, "cluster": {
            "server": server,
            "certificate-authority-data": STANDARD.encode(authority),
        } }));
        users.push(json!({ "name": name, "user": {
            "client-certificate-data": STANDARD.encode(certificate),
            "client-key-data": STANDARD.encode(key),
        } }));
        contexts.push(json!({ "name": name, "context": { "cluster": name, "user": name } }));
    }
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "preferences": {}, "current-context": "hub",
        "clusters": clusters, "users": users, "contexts": contexts,
    });
    let text = serde_saphyr::to_string(&config).context("write the kubeconfig")?;
    write_secret(path, &text)
}
