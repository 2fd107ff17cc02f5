//! Whose agent is in a place for credentials.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use cleat_core::leave::parts::{BOOTSTRAP, OwnPart};
use cleat_core::write::Side;
use cleat_runtime::execute::{Executor, Read};
use serde_json::Value;

use super::Keep;
use crate::registration::Error;

impl Keep {
    /// The addresses of the hubs for which there is something here: credentials, a key that nobody has
    /// certified yet, or that with which a deployed agent joins.
    pub(crate) async fn hubs(&self, executor: &Executor) -> Result<BTreeSet<String>, Error> {
        let joined = self.load(executor).await?.map(|kept| kept.hub.server);
        let asked = self.load_pending(executor).await?.map(|pending| pending.server);
        let bootstrap = match self {
            Self::Secret { namespace } => bootstrap(executor, namespace).await?,
            Self::Directory(_) => None,
        };
        Ok(joined.into_iter().chain(asked).chain(bootstrap).collect())
    }
}

async fn bootstrap(executor: &Executor, namespace: &str) -> Result<Option<String>, Error> {
    match executor.read(Side::Cluster, &OwnPart::Bootstrap.target(namespace)).await {
        Read::Present(object) => {
            let server = object.pointer("/data/server").and_then(Value::as_str);
            let server = server.and_then(|text| BASE64.decode(text).ok());
            let server = server.and_then(|bytes| String::from_utf8(bytes).ok());
            Ok(server.map(|server| server.trim().to_owned()))
        }
        Read::Absent | Read::NoSuchKind => Ok(None),
        Read::Unknown { message } => {
            Err(Error::NoAnswer { what: format!("read the secret {BOOTSTRAP}"), message })
        }
    }
}
