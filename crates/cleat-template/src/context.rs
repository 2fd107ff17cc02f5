//! The dot of a policy's templates: a Go struct, so that a name it does not have is a mistake
//! rather than `<no value>`.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::Value as Json;

use crate::value::{Elem, Numbers, Struct, Value, from_json};

/// Named fields in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Context {
    type_name: Option<String>,
    fields: Vec<(String, Field)>,
}

#[derive(Clone, Debug, PartialEq)]
enum Field {
    Text(String),
    Labels(BTreeMap<String, String>),
    Object(Json),
}

impl Context {
    /// A context with no fields at all.
    pub fn empty() -> Self {
        Self::default()
    }

    /// How messages call the type of the dot; without this it is an anonymous struct.
    #[must_use]
    pub fn called(mut self, type_name: &str) -> Self {
        self.type_name = Some(type_name.to_owned());
        self
    }

    #[must_use]
    pub fn text(mut self, name: &str, text: &str) -> Self {
        self.fields.push((name.to_owned(), Field::Text(text.to_owned())));
        self
    }

    /// A `map[string]string`.
    #[must_use]
    pub fn labels(mut self, name: &str, labels: &BTreeMap<String, String>) -> Self {
        self.fields.push((name.to_owned(), Field::Labels(labels.clone())));
        self
    }

    /// A `map[string]interface {}`; anything but an object is taken as an empty one.
    #[must_use]
    pub fn object(mut self, name: &str, object: &Json) -> Self {
        self.fields.push((name.to_owned(), Field::Object(object.clone())));
        self
    }

    pub(crate) fn value(&self) -> Value {
        let fields: Vec<_> =
            self.fields.iter().map(|(name, field)| (name.clone(), field.value())).collect();
        let type_name = self.type_name.clone().unwrap_or_else(|| anonymous(&fields));
        Value::Struct(Rc::new(Struct { type_name, fields }))
    }
}

impl Field {
    fn value(&self) -> Value {
        match self {
            Self::Text(text) => Value::text(text),
            Self::Labels(labels) => Value::typed_map(
                Elem::Str,
                labels.iter().map(|(key, label)| (key.clone(), Value::text(label))).collect(),
            ),
            Self::Object(object @ Json::Object(_)) => from_json(object, Numbers::Int64),
            Self::Object(_) => Value::nil_map(),
        }
    }
}

fn anonymous(fields: &[(String, Value)]) -> String {
    if fields.is_empty() {
        return "struct {}".to_owned();
    }
    let fields: Vec<_> =
        fields.iter().map(|(name, value)| format!("{name} {}", value.type_name())).collect();
    format!("struct {{ {} }}", fields.join("; "))
}
