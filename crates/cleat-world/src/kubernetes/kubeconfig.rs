//! Kubeconfigs: written for whoever uses the control planes, and read to reach any server.
//!
//! Only what we write is read: embedded data and client certificates or tokens, no files beside it,
//! no login plugins.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};

use super::certificates::Identity;

/// How to reach one server as one user.
#[derive(Clone, Debug)]
pub struct Access {
    pub name: String,
    /// `https://127.0.0.1:6443`
    pub url: String,
    /// PEM
    pub authority: String,
    pub identity: Identity,
}

/// A kubeconfig with one context per access, the first being the current one.
pub fn write(path: &Path, accesses: &[Access]) -> Result<()> {
    let config = Config {
        api_version: "v1".to_owned(),
        kind: "Config".to_owned(),
        clusters: accesses
            .iter()
            .map(|access| NamedCluster {
                name: access.name.clone(),
                cluster: Cluster {
                    server: access.url.clone(),
                    certificate_authority_data: BASE64.encode(&access.authority),
                },
            })
            .collect(),
        users: accesses
            .iter()
            .map(|access| NamedUser {
                name: access.name.clone(),
                user: User {
                    client_certificate_data: BASE64.encode(&access.identity.certificate),
                    client_key_data: BASE64.encode(&access.identity.key),
                },
            })
            .collect(),
        contexts: accesses
            .iter()
            .map(|access| NamedContext {
                name: access.name.clone(),
                context: Context { cluster: access.name.clone(), user: access.name.clone() },
            })
            .collect(),
        current_context: accesses.first().map(|access| access.name.clone()).unwrap_or_default(),
    };
    let text = serde_saphyr::to_string(&config).context("format the kubeconfig")?;
    // A reader never finds half a kubeconfig.
    let unfinished = path.with_extension("unfinished");
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&unfinished)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .with_context(|| format!("write {}", unfinished.display()))?;
    std::fs::rename(&unfinished, path).with_context(|| format!("write {}", path.display()))
}

/// All contexts of a kubeconfig.
pub fn read(path: &Path) -> Result<Vec<Access>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
    let config: Config =
        serde_saphyr::from_str(&text).with_context(|| format!("read {}", path.display()))?;
    config.contexts.iter().map(|context| access(&config, context)).collect()
}

fn access(config: &Config, named: &NamedContext) -> Result<Access> {
    let cluster = config
        .clusters
        .iter()
        .find(|cluster| cluster.name == named.context.cluster)
        .with_context(|| format!("context {} names no cluster", named.name))?;
    let user = config
        .users
        .iter()
        .find(|user| user.name == named.context.user)
        .with_context(|| format!("context {} names no user", named.name))?;
    let decode = |data: &str| {
        let bytes = BASE64.decode(data).context("decode base64 in the kubeconfig")?;
        String::from_utf8(bytes).context("read PEM in the kubeconfig")
    };
    Ok(Access {
        name: named.name.clone(),
        url: cluster.cluster.server.clone(),
        authority: decode(&cluster.cluster.certificate_authority_data)?,
        identity: Identity {
            certificate: decode(&user.user.client_certificate_data)?,
            key: decode(&user.user.client_key_data)?,
        },
    })
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Config {
    api_version: String,
    kind: String,
    clusters: Vec<NamedCluster>,
    users: Vec<NamedUser>,
    contexts: Vec<NamedContext>,
    #[serde(rename = "current-context")]
    current_context: String,
}

#[derive(Serialize, Deserialize)]
struct NamedCluster {
    name: String,
    cluster: Cluster,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Cluster {
    server: String,
    certificate_authority_data: String,
}

#[derive(Serialize, Deserialize)]
struct NamedUser {
    name: String,
    user: User,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct User {
    client_certificate_data: String,
    client_key_data: String,
}

#[derive(Serialize, Deserialize)]
struct NamedContext {
    name: String,
    context: Context,
}

#[derive(Serialize, Deserialize)]
struct Context {
    cluster: String,
    user: String,
}
