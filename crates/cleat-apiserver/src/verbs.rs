//! The verbs of the API, each in a file of its own, on top of one [`Call`].
//!
//! Nothing here knows HTTP: a call is who asks, for which object, and with which options. The same
//! functions serve requests and the server's own housekeeping.

pub(crate) mod admitting;
mod checks;
pub(crate) mod collection;
pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod intake;
pub(crate) mod list;
mod scaling;
pub(crate) mod subresource;
pub(crate) mod update;
pub(crate) mod watch;

use std::sync::Arc;

use crate::audit::Notes;
use crate::objects::{Objects, Stored, damaged};
use crate::resource::{ResourceType, Version};
use crate::schema::Schema;
use crate::server::Inner;
use crate::standing::Standing;
use crate::status::{GroupResource, Status};
use crate::user::User;

/// How often a write that lost a race looks again before it gives up.
pub(crate) const RETRIES: usize = 100;

/// What a writer who came second is told.
pub(crate) const MODIFIED: &str =
    "the object has been modified; please apply your changes to the latest version and try again";

/// Who asks, and about what.
pub(crate) struct Call<'a> {
    pub(crate) server: &'a Inner,
    pub(crate) user: User,
    pub(crate) ty: Arc<ResourceType>,
    pub(crate) version: Box<str>,
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// Empty for the object itself.
    pub(crate) subresource: String,
    /// Who to name as field manager when the request does not.
    pub(crate) agent: String,
    /// What the client is told besides the answer.
    pub(crate) warnings: Vec<String>,
    /// What the audit log is told, if anybody keeps one of this.
    pub(crate) notes: Option<&'a Notes>,
    /// Where the object was sent with something, but empty (JSON pointers); only where that is not
    /// the same as leaving it out.
    pub(crate) left_empty: Vec<&'static str>,
}

impl<'a> Call<'a> {
    /// A call the server makes itself, as `user`.
    pub(crate) fn internal(
        server: &'a Inner,
        user: &User,
        ty: &Arc<ResourceType>,
        namespace: &str,
        name: &str,
    ) -> Self {
        Self {
            server,
            user: user.clone(),
            version: ty.storage_version.clone(),
            ty: Arc::clone(ty),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            subresource: String::new(),
            agent: "cleat".to_owned(),
            warnings: Vec::new(),
            notes: None,
            left_empty: Vec::new(),
        }
    }

    pub(crate) fn objects(&self) -> &'a Objects {
        &self.server.objects
    }

    pub(crate) fn gr(&self) -> GroupResource<'_> {
        self.ty.group_resource()
    }

    pub(crate) fn api_version(&self) -> String {
        self.ty.api_version(&self.version)
    }

    pub(crate) fn version(&self) -> Option<&Version> {
        self.ty.version(&self.version)
    }

    pub(crate) fn schema(&self) -> Option<Schema<'_>> {
        self.version()?.schema.as_ref().map(|root| root.schema())
    }

    /// The object as it is now.
    pub(crate) fn current(&self) -> Result<Option<Stored>, Status> {
        self.objects().get(&self.ty, &self.version, &self.namespace, &self.name)
    }

    pub(crate) fn not_found(&self) -> Status {
        Status::not_found(self.gr(), &self.name)
    }

    pub(crate) fn conflict(&self, why: &str) -> Status {
        Status::conflict(self.gr(), &self.name, why)
    }

    pub(crate) fn raced(&self) -> Status {
        self.conflict(MODIFIED)
    }

    /// A field manager's name: what the request said, or the program that sent it.
    pub(crate) fn manager(&self, given: &str) -> String {
        crate::query::field_manager(given, &self.agent)
    }

    /// Nothing is created in a namespace that does not exist or is on its way out.
    pub(crate) fn check_namespace(&self, creating: &str) -> Result<(), Status> {
        if !self.ty.namespaced {
            return Ok(());
        }
        let namespaces = &self.server.namespaces;
        match self.server.namespace_standing(&self.namespace) {
            Some(Standing::Stays) => Ok(()),
            Some(Standing::Goes) => {
                let why = format!(
                    "unable to create new content in namespace {} because it is being terminated",
                    self.namespace
                );
                let mut status = Status::forbidden(self.gr(), creating, why);
                status.details.causes.push(crate::status::Cause {
                    reason: "NamespaceTerminating".into(),
                    message: format!("namespace {} is being terminated", self.namespace),
                    field: "metadata.namespace".into(),
                });
                Err(status)
            }
            Some(Standing::Unreadable) => Err(damaged(namespaces, &self.namespace)),
            None => Err(Status::not_found(namespaces.group_resource(), &self.namespace)),
        }
    }
}
