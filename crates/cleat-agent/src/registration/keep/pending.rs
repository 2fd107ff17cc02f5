//! A key for which a certificate was asked, kept beside the credentials until there is one: an agent
//! that is started anew while it waits asks with the same key.

use std::collections::BTreeMap;
use std::fs;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use cleat_core::id::Target;
use cleat_core::leave::parts::OwnPart;
use cleat_core::registration::identity::Agent;
use cleat_core::write::{Action, Outcome, Propagation, Side, Write};
use cleat_runtime::execute::{Executor, Read};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Keep, apply_secret, failed, no_answer, remove, write};
use crate::registration::{Error, keys};

/// The file in a directory, and the entry in a secret.
pub(super) const FILE: &str = "pending.json";

/// Who asked, with which key, and by which request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::registration) struct Pending {
    pub(in crate::registration) cluster: String,
    pub(in crate::registration) agent: String,
    /// The hub that was asked.
    pub(in crate::registration) server: String,
    /// PEM
    pub(in crate::registration) key: String,
    /// Empty if it was not asked yet, as far as anybody knows.
    pub(in crate::registration) request: String,
}

impl Pending {
    pub(in crate::registration) fn new(
        cluster: &str,
        agent: &str,
        server: &str,
    ) -> Result<Self, Error> {
        let asked = keys::ask(&Agent::new(cluster, agent))?;
        let [cluster, agent, server] = [cluster, agent, server].map(ToOwned::to_owned);
        Ok(Self { cluster, agent, server, key: asked.key, request: String::new() })
    }
}

impl Keep {
    /// What cannot be understood is as good as nothing: another key is made.
    pub(in crate::registration) async fn load_pending(
        &self,
        executor: &Executor,
    ) -> Result<Option<Pending>, Error> {
        let text = match self {
            Self::Directory(path) => match fs::read_to_string(path.join(FILE)) {
                Ok(text) => text,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
                Err(source) => return Err(failed("read", &path.join(FILE), source)),
            },
            Self::Secret { namespace } => {
                match executor.read(Side::Cluster, &secret(namespace)).await {
                    Read::Present(object) => {
                        let data = object.get("data").and_then(|data| data.get(FILE));
                        let bytes = data.and_then(Value::as_str).map(|data| BASE64.decode(data));
                        let bytes = bytes.and_then(Result::ok).unwrap_or_default();
                        String::from_utf8(bytes).unwrap_or_default()
                    }
                    Read::Absent | Read::NoSuchKind => return Ok(None),
                    Read::Unknown { message } => return Err(no_answer("read", message)),
                }
            }
        };
        Ok(serde_json::from_str(&text).ok())
    }

    pub(in crate::registration) async fn save_pending(
        &self,
        executor: &Executor,
        pending: &Pending,
    ) -> Result<(), Error> {
        let text = serde_json::to_string(pending).unwrap_or_default();
        match self {
            Self::Secret { namespace } => {
                let files = BTreeMap::from([(FILE, text)]);
                apply_secret(executor, secret(namespace), &files, None).await
            }
            Self::Directory(path) => {
                super::make_directory(path)?;
                let file = path.join(FILE);
                write(&file, &text).map_err(|source| failed("write", &file, source))
            }
        }
    }

    pub(in crate::registration) async fn forget_pending(
        &self,
        executor: &Executor,
    ) -> Result<(), Error> {
        let namespace = match self {
            Self::Directory(path) => return remove(&path.join(FILE)),
            Self::Secret { namespace } => namespace,
        };
        let target = secret(namespace);
        let uid = match executor.read(Side::Cluster, &target).await {
            Read::Present(object) => {
                let uid = object.pointer("/metadata/uid").and_then(Value::as_str);
                uid.unwrap_or_default().to_owned()
            }
            Read::Absent | Read::NoSuchKind => return Ok(()),
            Read::Unknown { message } => return Err(no_answer("read", message)),
        };
        let propagation = Propagation::Background;
        let write = Write::Delete { uid, resource_version: None, propagation };
        let action = Action { side: Side::Cluster, target, write };
        match executor.execute(vec![vec![action]]).await.into_iter().flatten().next() {
            Some(Outcome::Done(_) | Outcome::NotFound) => Ok(()),
            other => Err(no_answer("delete", format!("{other:?}"))),
        }
    }
}

fn secret(namespace: &str) -> Target {
    OwnPart::Pending.target(namespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_directory_keeps_a_key_until_it_is_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let keep = Keep::Directory(dir.path().join("hub"));
        let executor = Executor::new(Default::default());
        assert_eq!(keep.load_pending(&executor).await.unwrap(), None);
        let pending = Pending::new("c1", "a1", "https://hub").unwrap();
        keep.save_pending(&executor, &pending).await.unwrap();
        assert_eq!(keep.load_pending(&executor).await.unwrap(), Some(pending));
        assert_eq!(keep.load(&executor).await.unwrap(), None, "these are no credentials yet");
        keep.forget_pending(&executor).await.unwrap();
        assert_eq!(keep.load_pending(&executor).await.unwrap(), None);
    }
}
