//! The object form of label selectors: `matchLabels` and `matchExpressions`.

use serde_json::Value;

use super::labels::{LabelSelector, Operator, Requirement};
use crate::names;
use crate::quote::quoted;
use crate::status::FieldError;

pub(super) fn selector(object: Option<&Value>) -> Result<LabelSelector, String> {
    let object = match object {
        None | Some(Value::Null) => return Ok(LabelSelector::Nothing),
        Some(object) => object,
    };
    let mut requirements = Vec::new();
    for (key, value) in object.get("matchLabels").and_then(Value::as_object).into_iter().flatten() {
        let value = value.as_str().unwrap_or_default();
        requirements.push(Requirement::new(key, Operator::Equals, vec![value.into()])?);
    }
    for expression in expressions(object) {
        let operator = match expression.operator {
            "In" => Operator::In,
            "NotIn" => Operator::NotIn,
            "Exists" => Operator::Exists,
            "DoesNotExist" => Operator::DoesNotExist,
            other => {
                return Err(format!("{} is not a valid label selector operator", quoted(other)));
            }
        };
        let values = expression.values.iter().map(|value| Box::from(*value)).collect();
        requirements.push(Requirement::new(expression.key, operator, values)?);
    }
    Ok(LabelSelector::of(requirements))
}

pub(super) fn check(object: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (key, value) in object.get("matchLabels").and_then(Value::as_object).into_iter().flatten() {
        let field = format!("{path}.matchLabels");
        let value = value.as_str().unwrap_or_default();
        errors.extend(names::refuse(&field, key, names::label_key(key)));
        errors.extend(names::refuse(&field, value, names::label_value(value)));
    }
    for (index, expression) in expressions(object).enumerate() {
        let field = format!("{path}.matchExpressions[{index}]");
        let given = !expression.values.is_empty();
        match expression.operator {
            "In" | "NotIn" if !given => errors.push(FieldError::required(
                format!("{field}.values"),
                "must be specified when `operator` is 'In' or 'NotIn'",
            )),
            "Exists" | "DoesNotExist" if given => errors.push(FieldError::forbidden(
                format!("{field}.values"),
                "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
            )),
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => errors.push(FieldError::invalid(
                format!("{field}.operator"),
                other,
                "not a valid selector operator",
            )),
        }
        let key = expression.key;
        errors.extend(names::refuse(&format!("{field}.key"), key, names::label_key(key)));
        for (number, value) in expression.values.iter().enumerate() {
            let place = format!("{field}.values[{number}]");
            errors.extend(names::refuse(&place, value, names::label_value(value)));
        }
    }
    errors
}

struct Expression<'a> {
    key: &'a str,
    operator: &'a str,
    values: Vec<&'a str>,
}

fn expressions(object: &Value) -> impl Iterator<Item = Expression<'_>> {
    object.get("matchExpressions").and_then(Value::as_array).into_iter().flatten().map(|one| {
        Expression {
            key: one.get("key").and_then(Value::as_str).unwrap_or_default(),
            operator: one.get("operator").and_then(Value::as_str).unwrap_or_default(),
            values: one
                .get("values")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .collect(),
        }
    })
}
