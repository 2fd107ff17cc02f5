//! Which object, on any API server.

use alloc::string::String;
use core::fmt;

/// An object by where it is. Which incarnation is meant, a UID says.
///
/// The version is left out on purpose: one object is served in several, and is still one object.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id {
    /// Empty for the core group.
    pub group: String,
    /// Lower-case plural, such as `deployments`.
    pub resource: String,
    /// Empty for what no namespace holds.
    pub namespace: String,
    pub name: String,
}

/// `deployments.apps web/frontend`, as `kubectl` users would look for it.
impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.resource)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        f.write_str(" ")?;
        if !self.namespace.is_empty() {
            write!(f, "{}/", self.namespace)?;
        }
        f.write_str(&self.name)
    }
}

/// An object as a request names it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Target {
    pub version: String,
    pub id: Id,
}

impl Target {
    /// `v1` or `apps/v1`.
    pub fn api_version(&self) -> String {
        if self.id.group.is_empty() {
            self.version.clone()
        } else {
            alloc::format!("{}/{}", self.id.group, self.version)
        }
    }
}
