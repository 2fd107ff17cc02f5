//! What is known of one object: from the mirror whether it is there, and the object itself read only
//! if it changed since it was last looked at, and no list just told of it.

use std::sync::Arc;

use cleat_core::id::Target;
use cleat_core::policy::observed::{ListOf, Policy, Seen};
use cleat_core::write::Side;
use cleat_runtime::execute::Read;
use cleat_runtime::mirror::{Look, Reason};
use serde_json::Value;

use super::Context;

const UNSERVED: &str = "the cluster does not serve this kind now";

/// How fresh an answer has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fresh {
    /// As watches tell. They may be behind each other.
    Lately,
    /// The same; but whoever looks again by itself reads what cannot be watched.
    AtTimes,
    /// As the server says when it is asked: what follows cannot be undone.
    Now,
}

impl Context {
    /// `None`: it was not read yet; whoever said to care about it will hear.
    pub(super) async fn sight(&self, target: &Target, fresh: Fresh) -> Option<Seen> {
        if fresh == Fresh::Now {
            return Some(self.read(target).await);
        }
        let meta = match self.mirror.look_served(&target.id, &self.kinds).await {
            Look::Absent => return Some(Seen::Absent),
            Look::NoSuchKind => return Some(Seen::Unknown(UNSERVED.to_owned())),
            Look::Unknown(Reason::NotReadYet) => return None,
            Look::Unknown(Reason::Unwatchable) if fresh == Fresh::AtTimes => {
                return Some(self.read(target).await);
            }
            Look::Unknown(Reason::Unwatchable) => return Some(Seen::Unwatchable),
            Look::Unknown(reason) => return Some(Seen::Unknown(reason.to_string())),
            Look::Present(meta) => meta,
        };
        if let Some(present) = self.contents.get(target, &meta) {
            return Some(Seen::Present(present));
        }
        if let Some(object) = self.mirror.take(target) {
            return Some(Seen::Present(self.contents.keep(&target.id, object)));
        }
        Some(self.read(target).await)
    }

    /// Whether no watch tells of its kind.
    pub(super) async fn is_unwatchable(&self, target: &Target) -> bool {
        let look = self.mirror.look_served(&target.id, &self.kinds).await;
        look == Look::Unknown(Reason::Unwatchable)
    }

    pub(super) async fn read(&self, target: &Target) -> Seen {
        match self.executor.read(Side::Cluster, target).await {
            Read::Present(object) => Seen::Present(self.contents.keep(&target.id, object)),
            Read::Absent => Seen::Absent,
            Read::NoSuchKind => Seen::Unknown(UNSERVED.to_owned()),
            Read::Unknown { message } => Seen::Unknown(message),
        }
    }

    /// `None`: they were not read yet.
    pub(super) async fn list(
        &self,
        of: &ListOf,
        fresh: Fresh,
    ) -> Option<Result<Vec<Arc<Value>>, String>> {
        if fresh == Fresh::Now {
            return Some(self.list_now(of).await);
        }
        match self.lists.get(of)? {
            Err(Reason::Unwatchable) if fresh == Fresh::AtTimes => Some(self.list_now(of).await),
            listed => Some(listed.map_err(|reason| reason.to_string())),
        }
    }

    /// Whether the server has this very policy, and nobody changed it meanwhile.
    pub(super) async fn is_current(&self, policy: &Policy) -> bool {
        let target = super::policy_target(&policy.namespace, &policy.name);
        match self.executor.read(Side::Cluster, &target).await {
            Read::Present(object) => {
                let revision = object.pointer("/metadata/resourceVersion").and_then(Value::as_str);
                revision == Some(&policy.resource_version)
            }
            Read::Absent | Read::NoSuchKind | Read::Unknown { .. } => false,
        }
    }
}
