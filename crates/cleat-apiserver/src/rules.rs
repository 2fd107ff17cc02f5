//! What kube-apiserver does to built-in kinds beyond their schemas: defaults, preparation,
//! validation, subresources. All pure: time, randomness and allocation come in as arguments.
//!
//! Custom resources take the generic path: status subresource, generation, names. Their schemas,
//! and CustomResourceDefinitions themselves, are handled elsewhere, and so are metadata, webhook
//! configurations' validation, and everything that needs to look at other objects.

pub(crate) mod autoscaler;
mod decode;
mod defaults;
pub(crate) mod events;
mod normal;
mod prepare;
pub(crate) mod pretend;
pub(crate) mod read;
mod removal;
mod restore;
pub(crate) mod scale;
mod strategy;
pub(crate) mod time;
mod validate;
mod warnings;

pub(crate) use decode::unreadable;
pub(crate) use defaults::default;
pub(crate) use prepare::{
    Addresses, Env, Requester, admit_create, pod_priority, pod_runtime, prepare_create,
    prepare_update,
};
pub(crate) use removal::{GarbagePolicy, garbage_policy, returns_deleted};
pub(crate) use restore::restore;
pub(crate) use strategy::{create_on_update, name_rule, reset_fields, unconditional_update};
pub(crate) use validate::{
    emptied, left_empty, validate_create, validate_update, with_empty_labels,
};
pub(crate) use warnings::warnings;
#[cfg(test)]
mod recorded;
