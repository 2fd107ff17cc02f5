//! May this user do that? Role-based access control as pure decisions over an index of roles and
//! bindings.
//!
//! Nothing here reads the store: whoever owns the objects tells [`Rbac`] about each change.

mod aggregation;
mod binding;
mod bootstrap;
mod escalation;
mod index;
mod message;
mod review;
mod rule;

pub use aggregation::aggregated_rules;
pub use bootstrap::{objects as bootstrap_objects, reconciled as reconciled_bootstrap_object};
pub use escalation::{BindingWrite, RoleWrite};
pub use index::{Kind, Rbac};
pub use message::forbidden;
pub use review::{
    local_subject_access_review, self_subject_access_review, self_subject_review,
    self_subject_rules_review, subject_access_review, token_review,
};
pub use rule::Rule;

#[cfg(test)]
mod tests;

/// What a request would do, as far as permission depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes<'a> {
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection` or one of
    /// the special ones such as `impersonate`; the lower-case HTTP method for paths.
    pub verb: &'a str,
    pub target: Target<'a>,
}

/// To what it would do it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target<'a> {
    Resource(ResourceTarget<'a>),
    /// A path that is no resource, such as `/healthz`.
    Path(&'a str),
}

/// A resource; empty texts mean "none" or "all".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResourceTarget<'a> {
    pub group: &'a str,
    pub resource: &'a str,
    pub subresource: &'a str,
    pub namespace: &'a str,
    pub name: &'a str,
}

/// The answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    pub allowed: bool,
    /// Empty, or what RBAC says about it.
    pub reason: String,
}

/// Whoever can answer. Tests and layers that need no index implement it with a closure.
pub trait Authorize {
    fn authorize(&self, user: &crate::user::User, attributes: &Attributes<'_>) -> Decision;
}

impl<F> Authorize for F
where
    F: Fn(&crate::user::User, &Attributes<'_>) -> Decision,
{
    fn authorize(&self, user: &crate::user::User, attributes: &Attributes<'_>) -> Decision {
        self(user, attributes)
    }
}

impl<'a> Attributes<'a> {
    pub fn resource(verb: &'a str, group: &'a str, resource: &'a str) -> Self {
        let target = ResourceTarget { group, resource, ..ResourceTarget::default() };
        Self { verb, target: Target::Resource(target) }
    }

    pub fn path(verb: &'a str, path: &'a str) -> Self {
        Self { verb, target: Target::Path(path) }
    }

    /// The namespace whose role bindings count, empty at the cluster scope.
    pub(crate) fn namespace(&self) -> &'a str {
        match self.target {
            Target::Resource(target) => target.namespace,
            Target::Path(_) => "",
        }
    }
}
