//! A CriticalService as decisions need it: read once, never half understood.

use alloc::borrow::ToOwned as _;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use cleat_api::criticalservice::{
    self, CriterionType, CriticalService, Guard, Latch, OnDelete, RESOURCE,
};

use crate::id::Id;

/// What one CriticalService asks for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Service {
    pub name: String,
    pub uid: String,
    pub provider: Id,
    /// Empty: whatever has the provider's name.
    pub pin: String,
    pub criteria: Vec<Criterion>,
    pub releases: bool,
    pub terminating: bool,
    pub guards_scale: bool,
    /// The incarnation of the provider on record; empty if it was never seen.
    pub recorded: String,
    pub latch: Option<Latch>,
}

/// What must hold before a provider may go. Two that ask the same are the same.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Criterion {
    /// No object of the resource has the finalizer.
    Finalizer { group: String, resource: String, finalizer: String },
    /// The object does not exist.
    Object(Id),
    /// No object of the resource exists.
    Any { group: String, resource: String },
    /// Not understood, so never satisfied.
    Unreadable(String),
}

impl Service {
    pub fn read(object: &CriticalService) -> Self {
        let spec = &object.spec;
        let status = object.status.as_ref();
        let provider = Id {
            group: spec.provider.group.clone(),
            resource: spec.provider.resource.clone(),
            namespace: spec.provider.namespace.clone(),
            name: spec.provider.name.clone(),
        };
        Self {
            name: object.metadata.name.clone().unwrap_or_default(),
            uid: object.metadata.uid.clone().unwrap_or_default(),
            provider,
            pin: spec.provider.pin_uid.clone(),
            criteria: spec.criteria.iter().map(Criterion::read).collect(),
            releases: spec.on_delete == OnDelete::Release,
            terminating: object.metadata.deletion_timestamp.is_some(),
            guards_scale: spec.guard.contains(&Guard::ScaleToZero),
            recorded: status
                .and_then(|status| status.provider.as_ref())
                .map(|provider| provider.uid.clone())
                .unwrap_or_default(),
            latch: status.and_then(|status| status.latch.clone()),
        }
    }

    pub fn id(&self) -> Id {
        service_id(&self.name)
    }

    /// Whether it protects anything: one that may go and is going does not.
    pub fn protects(&self) -> bool {
        !(self.releases && self.terminating)
    }

    /// The namespace of its provider, if it has one.
    pub fn provider_namespace(&self) -> Option<Id> {
        let namespace = &self.provider.namespace;
        (!namespace.is_empty()).then(|| namespace_id(namespace))
    }

    /// The definition of its provider's kind, if it is one that has a definition.
    pub fn provider_definition(&self) -> Option<Id> {
        definition_id(&self.provider.group, &self.provider.resource)
    }

    /// Whether an incarnation of the provider is one that is protected.
    pub fn means(&self, uid: &str) -> bool {
        self.pin.is_empty() || self.pin == uid
    }
}

pub(crate) fn service_id(name: &str) -> Id {
    Id {
        group: criticalservice::GROUP.to_owned(),
        resource: RESOURCE.to_owned(),
        namespace: String::new(),
        name: name.to_owned(),
    }
}

/// The namespace of that name, as an object.
pub fn namespace_id(name: &str) -> Id {
    Id { resource: "namespaces".to_owned(), name: name.to_owned(), ..Id::default() }
}

/// The definition of a kind, if it is one that has a definition: Kubernetes' own have groups without
/// a dot, or none.
pub fn definition_id(group: &str, resource: &str) -> Option<Id> {
    group.contains('.').then(|| Id {
        group: "apiextensions.k8s.io".to_owned(),
        resource: "customresourcedefinitions".to_owned(),
        namespace: String::new(),
        name: format!("{resource}.{group}"),
    })
}

impl Criterion {
    pub(super) fn read(given: &criticalservice::Criterion) -> Self {
        let criticalservice::Criterion { kind, finalizer, specific_resource, any_instance } = given;
        match (kind, finalizer, specific_resource, any_instance) {
            (CriterionType::Finalizer, Some(one), None, None) => Self::Finalizer {
                group: one.group.clone(),
                resource: one.resource.clone(),
                finalizer: one.finalizer_name.clone(),
            },
            (CriterionType::SpecificResource, None, Some(one), None) => Self::Object(Id {
                group: one.group.clone(),
                resource: one.resource.clone(),
                namespace: one.namespace.clone(),
                name: one.name.clone(),
            }),
            (CriterionType::AnyInstance, None, None, Some(one)) => {
                Self::Any { group: one.group.clone(), resource: one.resource.clone() }
            }
            _ => Self::Unreadable(format!("a criterion of the type {kind:?} with other fields")),
        }
    }

    pub fn kind(&self) -> CriterionType {
        match self {
            Self::Finalizer { .. } => CriterionType::Finalizer,
            Self::Object(_) => CriterionType::SpecificResource,
            Self::Any { .. } => CriterionType::AnyInstance,
            Self::Unreadable(_) => CriterionType::Unknown,
        }
    }

    /// The kind whose objects are counted, by group and resource, where it is not one object.
    pub fn counted(&self) -> Option<(&str, &str)> {
        match self {
            Self::Finalizer { group, resource, .. } | Self::Any { group, resource } => {
                Some((group, resource))
            }
            Self::Object(_) | Self::Unreadable(_) => None,
        }
    }
}

/// `coolresources.my.group`, as `kubectl get` takes it.
pub(crate) fn kind_name(group: &str, resource: &str) -> String {
    if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") }
}

impl fmt::Display for Criterion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Finalizer { group, resource, finalizer } => {
                write!(f, "{} with finalizer {finalizer}", kind_name(group, resource))
            }
            Self::Object(id) => write!(f, "{id}"),
            Self::Any { group, resource } => f.write_str(&kind_name(group, resource)),
            Self::Unreadable(why) => f.write_str(why),
        }
    }
}
