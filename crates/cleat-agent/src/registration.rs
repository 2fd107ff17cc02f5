//! How this cluster is part of a fleet: joining a hub, and what goes on while it is joined.
//!
//! [`enrol`] turns a bootstrap token into credentials of the cluster's own, which a person on the
//! hub approves; [`live`] renews them, renews the lease and tells the hub how the cluster is. The
//! agent dials out and never listens.

mod credentials;
mod enrol;
mod facts;
mod keep;
mod keys;
mod line;
mod live;

use cleat_core::id::{Id, Target};
use cleat_core::write::Side;
use cleat_runtime::execute::{Executor, Read};

pub use self::credentials::{Credentials, HubAddress};
pub use self::enrol::{Enrolment, News, Place, check, enrol, hub_id};
pub use self::keep::Keep;
pub use self::line::Line;
pub use self::live::{Live, Rotation, live};

/// Who `managedFields` and user agents say writes for registration.
pub const FIELD_MANAGER: &str = "cleat-agent";

/// Where agents keep what they need on their cluster, unless told otherwise.
pub const NAMESPACE: &str = "open-cluster-management-agent";

/// Registration did not get on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error(transparent)]
    Refused(#[from] cleat_core::registration::join::Refusal),
    #[error("the hub refuses: {0}")]
    RefusedByHub(String),
    #[error("cannot {what}: {message}")]
    NoAnswer { what: String, message: String },
    #[error("the request {name} was denied on the hub: {message}")]
    Denied { name: String, message: String },
    #[error("the cluster {name} was removed on the hub before it was accepted")]
    Removed { name: String },
    #[error("failed to make a key or a request for a certificate")]
    Key(#[source] rcgen::Error),
    #[error("the credentials cannot be read: {0}")]
    BadCredentials(String),
    #[error("failed to connect to {server}")]
    Connect {
        server: String,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error("failed to {what} {path}")]
    File {
        what: &'static str,
        path: String,
        #[source]
        source: std::io::Error,
    },
}

/// By what a cluster is known, whatever it is called: the UID of its `kube-system` namespace.
pub async fn cluster_id(executor: &Executor, side: Side) -> Result<String, Error> {
    let target = Target {
        version: "v1".to_owned(),
        id: Id {
            resource: "namespaces".to_owned(),
            name: "kube-system".to_owned(),
            ..Id::default()
        },
    };
    let what = || "read the namespace kube-system".to_owned();
    match executor.read(side, &target).await {
        Read::Present(object) => {
            let uid = object.pointer("/metadata/uid").and_then(serde_json::Value::as_str);
            Ok(uid.unwrap_or_default().to_owned())
        }
        Read::Absent | Read::NoSuchKind => {
            Err(Error::NoAnswer { what: what(), message: "there is none".to_owned() })
        }
        Read::Unknown { message } => Err(Error::NoAnswer { what: what(), message }),
    }
}
