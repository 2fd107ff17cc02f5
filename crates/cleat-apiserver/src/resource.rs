//! What the server knows about one kind of object: names, scope, versions, verbs, shape.
//!
//! Built-in kinds (from `builtin`, shared by every server in the process) and custom ones (from
//! CustomResourceDefinitions) are described the same way, so that the verbs need not care.

use std::sync::Arc;

use crate::schema::{Id, Schema, Schemas};
use crate::status::GroupResource;

/// One resource of one group, in all its versions.
#[derive(Clone, Debug)]
pub struct ResourceType {
    pub group: Box<str>,
    /// `deployments`
    pub plural: Box<str>,
    pub singular: Box<str>,
    pub kind: Box<str>,
    pub list_kind: Box<str>,
    pub short_names: Vec<Box<str>>,
    pub categories: Vec<Box<str>>,
    pub namespaced: bool,
    /// In order of priority, most preferred first.
    pub versions: Vec<Version>,
    /// The version objects are kept in.
    pub storage_version: Box<str>,
    pub origin: Origin,
}

/// Where a resource type comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    Builtin,
    /// The CustomResourceDefinition's name and uid.
    Custom {
        name: Box<str>,
        uid: Box<str>,
    },
}

/// One version of a resource type.
#[derive(Clone, Debug)]
pub struct Version {
    pub name: Box<str>,
    pub served: bool,
    /// The warning clients get when they use it.
    pub deprecation: Option<Box<str>>,
    pub schema: Option<Root>,
    /// `create`, `delete`, `deletecollection`, `get`, `list`, `patch`, `update`, `watch`.
    pub verbs: Vec<Box<str>>,
    pub subresources: Vec<Subresource>,
    /// Where `scale` finds its numbers in a custom resource.
    pub scale: Option<ScalePaths>,
    /// The columns of `kubectl get`. Empty for custom resources without any of their own.
    pub columns: Vec<Column>,
    /// JSON paths that field selectors may use, beside metadata.name and metadata.namespace.
    pub selectable_fields: Vec<Box<str>>,
}

/// A path below an object, such as `status`, `scale` or `approval`.
#[derive(Clone, Debug)]
pub struct Subresource {
    pub name: Box<str>,
    /// What it takes and gives: empty for the parent's own group and version.
    pub group: Box<str>,
    pub version: Box<str>,
    pub kind: Box<str>,
    pub verbs: Vec<Box<str>>,
}

/// `spec.versions[].subresources.scale` of a CustomResourceDefinition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScalePaths {
    pub spec_replicas: Box<str>,
    pub status_replicas: Box<str>,
    pub label_selector: Option<Box<str>>,
}

/// A printer column, as CustomResourceDefinitions declare them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    pub name: Box<str>,
    pub kind: Box<str>,
    pub format: Box<str>,
    pub description: Box<str>,
    pub priority: i32,
    pub json_path: Box<str>,
}

/// A schema that keeps its arena alive.
#[derive(Clone, Debug)]
pub struct Root {
    pub schemas: Arc<Schemas>,
    pub id: Id,
}

impl Root {
    pub fn schema(&self) -> Schema<'_> {
        self.schemas.at(self.id)
    }
}

impl ResourceType {
    pub fn group_resource(&self) -> GroupResource<'_> {
        GroupResource { group: &self.group, resource: &self.plural }
    }

    pub fn version(&self, name: &str) -> Option<&Version> {
        self.versions.iter().find(|version| &*version.name == name)
    }

    /// `apps/v1`, or `v1` in the core group.
    pub fn api_version(&self, version: &str) -> String {
        match &*self.group {
            "" => version.to_owned(),
            group => format!("{group}/{version}"),
        }
    }
}

impl Version {
    pub fn allows(&self, verb: &str) -> bool {
        self.verbs.iter().any(|allowed| &**allowed == verb)
    }

    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|subresource| &*subresource.name == name)
    }
}
