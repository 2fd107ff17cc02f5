//! What kube-apiserver refuses in built-in kinds beyond their schemas, in its words and order.
//!
//! Metadata is validated elsewhere, before these errors; so are custom resources,
//! CustomResourceDefinitions and webhook configurations.

use serde_json::Value;

use crate::resource::ResourceType;
use crate::status::FieldError;

/// The errors of a new object, after `prepare_create`.
pub(crate) fn validate_create(_ty: &ResourceType, _object: &Value) -> Vec<FieldError> {
    Vec::new()
}

/// The errors of an update, after `prepare_update`.
pub(crate) fn validate_update(
    _ty: &ResourceType,
    _subresource: Option<&str>,
    _old: &Value,
    _new: &Value,
) -> Vec<FieldError> {
    Vec::new()
}
