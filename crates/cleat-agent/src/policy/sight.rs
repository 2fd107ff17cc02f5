//! What is known of one object: from the mirror whether it is there, and the object itself read only
//! if it changed since it was last looked at.

use cleat_core::id::Target;
use cleat_core::policy::observed::Seen;
use cleat_core::write::Side;
use cleat_runtime::execute::Read;
use cleat_runtime::mirror::{Look, Reason};

use super::Context;

const UNSERVED: &str = "the cluster does not serve this kind now";

impl Context {
    /// `None`: it was not read yet; whoever said to care about it will hear.
    pub(super) async fn sight(&self, target: &Target) -> Option<Seen> {
        let meta = match self.mirror.look_served(&target.id, &self.kinds).await {
            Look::Absent => return Some(Seen::Absent),
            Look::NoSuchKind => return Some(Seen::Unknown(UNSERVED.to_owned())),
            Look::Unknown(Reason::NotReadYet) => return None,
            Look::Unknown(reason) => return Some(Seen::Unknown(reason.to_string())),
            Look::Present(meta) => meta,
        };
        if let Some(present) = self.contents.get(target, &meta) {
            return Some(Seen::Present(present));
        }
        Some(match self.executor.read(Side::Cluster, target).await {
            Read::Present(object) => Seen::Present(self.contents.keep(&target.id, object)),
            Read::Absent => Seen::Absent,
            Read::NoSuchKind => Seen::Unknown(UNSERVED.to_owned()),
            Read::Unknown { message } => Seen::Unknown(message),
        })
    }
}
