//! What kube-apiserver does to built-in kinds beyond their schemas: defaults, preparation,
//! validation, subresources. All pure: time, randomness and allocation come in as arguments.
//!
//! Custom resources take the generic path: status subresource, generation, names. Their schemas,
//! and CustomResourceDefinitions themselves, are handled elsewhere, and so are metadata, webhook
//! configurations' validation, and everything that needs to look at other objects.

mod defaults;
mod gotypes;
mod normal;
pub(crate) mod quantity;
mod read;
pub(crate) mod time;

pub(crate) use defaults::default;
