//! What an object must have where its definition says that its scale is.

use serde_json::Value;

use crate::quote;
use crate::resource::ScalePaths;
use crate::status::FieldError;

/// The wished-for replicas.
pub(crate) fn validate_spec(object: &Value, scale: &ScalePaths) -> Vec<FieldError> {
    replicas(object, &scale.spec_replicas).into_iter().collect()
}

/// The counted replicas and the selector.
pub(crate) fn validate_status(object: &Value, scale: &ScalePaths) -> Vec<FieldError> {
    let selector = scale.label_selector.as_deref();
    let selector = selector.and_then(|path| match at(object, path) {
        Err(why) => Some(FieldError::invalid(path, "", why)),
        Ok(None | Some(Value::String(_))) => None,
        Ok(Some(other)) => Some(FieldError::invalid(path, "", unexpected(path, other, "string"))),
    });
    replicas(object, &scale.status_replicas).into_iter().chain(selector).collect()
}

fn replicas(object: &Value, path: &str) -> Option<FieldError> {
    let value = match at(object, path) {
        Err(why) => return Some(FieldError::invalid(path, 0, why)),
        Ok(None) => return None,
        Ok(Some(value)) => value,
    };
    match value.as_i64() {
        None => Some(FieldError::invalid(path, 0, unexpected(path, value, "int64"))),
        Some(number) if number < 0 => {
            Some(FieldError::invalid(path, number, "should be a non-negative integer"))
        }
        Some(number) if number > i64::from(i32::MAX) => {
            let most = format!("should be less than or equal to {}", i32::MAX);
            Some(FieldError::invalid(path, number, most))
        }
        Some(_) => None,
    }
}

/// What is at `path`; an error when something on the way is no object.
fn at<'a>(object: &'a Value, path: &str) -> Result<Option<&'a Value>, String> {
    let mut value = object;
    let mut passed = String::new();
    for field in path.trim_start_matches('.').split('.') {
        passed.push('.');
        passed.push_str(field);
        match value {
            Value::Object(map) => match map.get(field) {
                Some(next) => value = next,
                None => return Ok(None),
            },
            Value::Null => return Ok(None),
            // Upstream names the field that was looked for.
            other => return Err(unexpected(&passed, other, "map[string]interface{}")),
        }
    }
    Ok(Some(value))
}

fn unexpected(path: &str, value: &Value, expected: &str) -> String {
    let (shown, is) = (quote::plain(value), quote::type_name(value));
    let path = path.trim_start_matches('.');
    format!(".{path} accessor error: {shown} is of the type {is}, expected {expected}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn replicas_are_small_numbers_and_selectors_texts() {
        let scale = ScalePaths {
            spec_replicas: ".spec.size".into(),
            status_replicas: ".status.size".into(),
            label_selector: Some(".status.selector".into()),
        };
        let told = |object: Value| -> Vec<String> {
            let errors = [validate_spec(&object, &scale), validate_status(&object, &scale)];
            errors.iter().flatten().map(ToString::to_string).collect()
        };
        let fine = json!({ "spec": { "size": 3 }, "status": { "size": 0, "selector": "a=b" } });
        assert_eq!(told(fine), Vec::<String>::new());
        assert_eq!(told(json!({})), Vec::<String>::new());
        let cases = [
            (
                json!({ "spec": { "size": "large" } }),
                ".spec.size: Invalid value: 0: .spec.size accessor error: large is of the type \
                 string, expected int64",
            ),
            (
                json!({ "spec": 7 }),
                ".spec.size: Invalid value: 0: .spec.size accessor error: 7 is of the type int64, \
                 expected map[string]interface{}",
            ),
            (
                json!({ "spec": { "size": -1 } }),
                ".spec.size: Invalid value: -1: should be a non-negative integer",
            ),
            (
                json!({ "status": { "size": 4_294_967_296_u64 } }),
                ".status.size: Invalid value: 4294967296: should be less than or equal to \
                 2147483647",
            ),
            (
                json!({ "status": { "selector": true } }),
                ".status.selector: Invalid value: \"\": .status.selector accessor error: true is \
                 of the type bool, expected string",
            ),
        ];
        for (object, expected) in cases {
            assert_eq!(told(object), [expected]);
        }
    }
}
