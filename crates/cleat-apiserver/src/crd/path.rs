//! The paths a custom resource may be looked into by columns and subresources.

use crate::status::FieldError;

/// What is wrong with a path such as `.spec.replicas`. Deliberately shallow, as upstream is: a
/// path that cannot be evaluated gives an empty column.
pub(super) fn check(path: &str, field: &str) -> Vec<FieldError> {
    match path {
        "" => vec![FieldError::invalid(field, path, "must not be empty")],
        path if !path.starts_with('.') => {
            vec![FieldError::invalid(field, path, "must be a simple json path starting with .")]
        }
        _ => Vec::new(),
    }
}
