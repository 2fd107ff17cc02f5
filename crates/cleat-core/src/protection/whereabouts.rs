//! Which CriticalServices a request could be about, by fields that an API server can select by: to
//! know all of those as of now, the others need not be read.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use cleat_api::criticalservice::{GROUP, RESOURCE};

use super::request::{Operation, Request};
use super::service::{Service, namespace_id};

/// Services that have something in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whereabouts {
    Named(String),
    /// Whose provider is called so.
    Provider(String),
    /// Whose provider is in that namespace.
    Home(String),
}

impl Whereabouts {
    /// As API servers read it. The definition of CriticalServices lists these fields.
    pub fn field_selector(&self) -> String {
        let (field, value) = match self {
            Self::Named(name) => ("metadata.name", name),
            Self::Provider(name) => ("spec.provider.name", name),
            Self::Home(namespace) => ("spec.provider.namespace", namespace),
        };
        let value = value.replace('\\', "\\\\").replace(',', "\\,").replace('=', "\\=");
        format!("{field}={value}")
    }

    pub fn has(&self, service: &Service) -> bool {
        match self {
            Self::Named(name) => service.name == *name,
            Self::Provider(name) => service.provider.name == *name,
            Self::Home(namespace) => service.provider.namespace == *namespace,
        }
    }
}

/// Every service that [`concerned`](super::concerned) could name is in one of these. `None`: it may
/// be any.
pub fn whereabouts(request: &Request) -> Option<Vec<Whereabouts>> {
    let Request { operation, id, .. } = request;
    let mut all = vec![Whereabouts::Provider(id.name.clone())];
    match operation {
        // The eviction of a pod.
        Operation::Create if request.evicts() => {}
        // A latch may be closed for it, whatever its service is called.
        Operation::Create | Operation::Update => return None,
        // A definition is that of any service's provider, or of all services.
        Operation::Delete if id.resource == "customresourcedefinitions" => return None,
        Operation::Delete if id.group == GROUP && id.resource == RESOURCE => {
            all.push(Whereabouts::Named(id.name.clone()));
        }
        Operation::Delete if *id == namespace_id(&id.name) => {
            all.push(Whereabouts::Home(id.name.clone()));
        }
        Operation::Delete => {}
    }
    Some(all)
}
