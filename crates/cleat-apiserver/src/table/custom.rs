//! Columns that CustomResourceDefinitions declare.

use serde_json::Value;

use super::age;
use super::cell::{AGE, Row, header};
use crate::jsonpath::{self, JsonPath, Missing};
use crate::resource;

#[derive(Debug)]
pub(super) struct CustomColumn {
    declared: resource::Column,
    description: String,
    path: JsonPath,
}

/// Without any declared there is one for the age.
pub(super) fn columns(declared: &[resource::Column]) -> Vec<CustomColumn> {
    if declared.is_empty() {
        let age = resource::Column {
            name: "Age".into(),
            kind: "date".into(),
            format: "".into(),
            description: AGE.into(),
            priority: 0,
            json_path: ".metadata.creationTimestamp".into(),
        };
        return compiled(&age).into_iter().collect();
    }
    declared.iter().map_while(compiled).collect()
}

fn compiled(column: &resource::Column) -> Option<CustomColumn> {
    let path = JsonPath::parse_expression(&column.json_path).ok()?;
    let description = match &*column.description {
        "" => {
            format!("Custom resource definition column (in JSONPath format): {}", column.json_path)
        }
        given => given.to_owned(),
    };
    Some(CustomColumn { declared: column.clone(), description, path })
}

impl CustomColumn {
    pub(super) fn header(&self) -> Value {
        let column = &self.declared;
        header(&column.name, &column.kind, &column.format, &self.description, column.priority)
    }

    pub(super) fn cell(&self, row: &Row<'_>) -> Value {
        let Ok(results) = self.path.find(row.object, Missing::Allowed) else { return Value::Null };
        let Some(value) = results.first().and_then(|results| results.first()) else {
            return Value::Null;
        };
        match (&*self.declared.kind, &**value) {
            ("string", Value::Null) => Value::from("<no value>"),
            ("string", value) => Value::from(jsonpath::text(value)),
            ("integer", Value::Number(number)) if number.is_f64() =>
            {
                #[expect(clippy::cast_possible_truncation, reason = "as upstream does")]
                Value::from(number.as_f64().unwrap_or(0.0) as i64)
            }
            ("integer" | "number", Value::Number(_)) | ("boolean", Value::Bool(_)) => {
                value.clone().into_owned()
            }
            ("date", time @ Value::String(_)) => Value::from(age::since(Some(time), row.now)),
            _ => Value::Null,
        }
    }
}
