//! With what an agent is known to its hub, in the form in which OCM keeps it.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use jiff::Timestamp;
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};

use super::{Error, FIELD_MANAGER, keys};

/// Where a hub is, and who vouches for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HubAddress {
    /// `https://host:port`
    pub server: String,
    /// PEM; without it the authorities this machine trusts.
    pub authority: Option<String>,
}

impl HubAddress {
    /// A kubeconfig with this user in it.
    fn kubeconfig(&self, user: Value) -> String {
        let mut cluster = json!({ "server": self.server });
        if let (Some(authority), Some(cluster)) = (&self.authority, cluster.as_object_mut()) {
            let authority = BASE64.encode(authority).into();
            cluster.insert("certificate-authority-data".to_owned(), authority);
        }
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "default-context",
            "clusters": [{ "name": "default-cluster", "cluster": cluster }],
            "users": [{ "name": "default-auth", "user": user }],
            "contexts": [{ "name": "default-context", "context": {
                "cluster": "default-cluster", "user": "default-auth", "namespace": "configuration",
            } }],
        });
        format!("{config:#}\n")
    }

    /// A client with a bearer token.
    pub async fn with_token(&self, token: &str) -> Result<Client, Error> {
        connect(&self.kubeconfig(json!({ "token": token })), &self.server).await
    }
}

/// An agent's credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    pub cluster: String,
    pub agent: String,
    pub hub: HubAddress,
    /// PEM
    pub certificate: String,
    /// PEM
    pub key: String,
}

impl Credentials {
    /// As files of a secret or a directory. The kubeconfig stands alone, so that whoever replaces it
    /// replaces all at once.
    pub(super) fn files(&self) -> BTreeMap<&'static str, String> {
        let Self { cluster, agent, hub, certificate, key } = self;
        let user = json!({
            "client-certificate-data": BASE64.encode(certificate),
            "client-key-data": BASE64.encode(key),
        });
        BTreeMap::from([
            ("agent-name", agent.clone()),
            ("cluster-name", cluster.clone()),
            ("kubeconfig", hub.kubeconfig(user)),
            ("tls.crt", certificate.clone()),
            ("tls.key", key.clone()),
        ])
    }

    pub(super) fn from_files(file: impl Fn(&'static str) -> Option<String>) -> Result<Self, Error> {
        let bad = |why: &str| Error::BadCredentials(why.to_owned());
        let text = |name| file(name).ok_or_else(|| bad(&format!("{name} is missing")));
        let config = Kubeconfig::from_yaml(&text("kubeconfig")?)
            .map_err(|_| bad("kubeconfig is not one"))?;
        let config = serde_json::to_value(&config).map_err(|_| bad("kubeconfig is not one"))?;
        let find = |pointer: &str| config.pointer(pointer).and_then(Value::as_str);
        let decode = |data: &str| {
            let bytes = BASE64.decode(data).ok()?;
            String::from_utf8(bytes).ok()
        };
        let server = find("/clusters/0/cluster/server");
        let server = server.ok_or_else(|| bad("the kubeconfig names no hub"))?.to_owned();
        let authority = match find("/clusters/0/cluster/certificate-authority-data") {
            Some(data) => Some(decode(data).ok_or_else(|| bad("the hub's authority is not PEM"))?),
            None => None,
        };
        let certificate = find("/users/0/user/client-certificate-data").and_then(decode);
        let key = find("/users/0/user/client-key-data").and_then(decode);
        Ok(Self {
            cluster: text("cluster-name")?.trim().to_owned(),
            agent: text("agent-name")?.trim().to_owned(),
            hub: HubAddress { server, authority },
            certificate: certificate.map_or_else(|| text("tls.crt"), Ok)?,
            key: key.map_or_else(|| text("tls.key"), Ok)?,
        })
    }

    /// From when to when they are good.
    pub fn validity(&self) -> Option<(Timestamp, Timestamp)> {
        keys::validity(&self.certificate)
    }

    /// A client that is this agent.
    pub async fn connect(&self) -> Result<Client, Error> {
        let files = self.files();
        let kubeconfig = files.get("kubeconfig").map(String::as_str).unwrap_or_default();
        connect(kubeconfig, &self.hub.server).await
    }
}

async fn connect(kubeconfig: &str, server: &str) -> Result<Client, Error> {
    let failed = |source: Box<dyn std::error::Error + Send + Sync>| Error::Connect {
        server: server.to_owned(),
        source,
    };
    let config = Kubeconfig::from_yaml(kubeconfig).map_err(|error| failed(error.into()))?;
    let options = KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(config, &options)
        .await
        .map_err(|error| failed(error.into()))?;
    cleat_runtime::connect::connect(config, FIELD_MANAGER).map_err(|error| failed(error.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn credentials() -> Credentials {
        Credentials {
            cluster: "c1".to_owned(),
            agent: "a1".to_owned(),
            hub: HubAddress {
                server: "https://hub:6443".to_owned(),
                authority: Some("CA".to_owned()),
            },
            certificate: "CERT".to_owned(),
            key: "KEY".to_owned(),
        }
    }

    #[test]
    fn what_is_kept_is_read_back() {
        for hub in [credentials().hub, HubAddress { authority: None, ..credentials().hub }] {
            let credentials = Credentials { hub, ..credentials() };
            let files = credentials.files();
            let read = Credentials::from_files(|name| files.get(name).cloned()).unwrap();
            assert_eq!(read, credentials);
        }
    }

    #[test]
    fn certificates_beside_a_kubeconfig_are_read_as_ocm_writes_them() {
        let mut files = credentials().files();
        let bare = credentials().hub.kubeconfig(json!({
            "client-certificate": "tls.crt", "client-key": "tls.key",
        }));
        files.insert("kubeconfig", bare);
        let read = Credentials::from_files(|name| files.get(name).cloned()).unwrap();
        assert_eq!(read, credentials());
    }

    #[test]
    fn what_is_missing_is_named() {
        for missing in ["kubeconfig", "cluster-name", "agent-name"] {
            let mut files = credentials().files();
            files.remove(missing);
            let error = Credentials::from_files(|name| files.get(name).cloned()).unwrap_err();
            assert!(error.to_string().contains(missing), "{error}");
        }
        assert!(Credentials::from_files(|_| Some("rubbish: [".to_owned())).is_err());
    }
}
