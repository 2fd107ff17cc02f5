//! Whether an object says what a manifest states.

use alloc::string::String;

use cleat_dialect::gotypes::{Shape, WhenEmpty, types};
use serde_json::{Map, Number, Value};

use super::kinds::{self, Kind, Treatment};
use super::{body, quantity};

/// How objects of one kind are compared. Recursion is as deep as JSON is, and no parser lets that be
/// deeper than 128.
#[derive(Clone, Copy, Debug)]
pub(super) struct Comparison {
    root: Place<'static>,
    /// What may be there without being stated, if not everything may.
    added: &'static [&'static str],
}

/// Where values are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    pub(super) key: &'a str,
    /// The Go type the server reads the value into, if it does that.
    shape: Option<&'static Shape>,
    /// When the server leaves the field out.
    when_empty: WhenEmpty,
    /// Everything here must have been stated.
    exact: bool,
    /// Part of an OpenAPI schema, of which the table of Go types has nothing.
    schema: bool,
}

impl Place<'_> {
    pub(super) fn is_typed(self) -> bool {
        self.shape.is_some()
    }

    pub(super) fn field(self, key: &str) -> Place<'_> {
        let exact = self.exact || kinds::is_exact(self.is_typed(), self.key);
        let schema = (self.schema || self.is_typed() && self.key == "openAPIV3Schema")
            && !matches!(key, "default" | "enum" | "example");
        let unknown = Place { key, shape: None, when_empty: WhenEmpty::Write, exact, schema };
        match self.shape.map(pointee) {
            Some(Shape::Struct(id)) => {
                let field = types().get(*id).fields.iter().find(|field| field.name == key);
                field.map_or(unknown, |field| Place {
                    shape: Some(&field.shape),
                    when_empty: field.when_empty,
                    ..unknown
                })
            }
            Some(Shape::Map(inner)) => Place { shape: Some(inner), ..unknown },
            _ => unknown,
        }
    }

    /// Any element of the list here.
    pub(super) fn element(self) -> Self {
        let shape = match self.shape.map(pointee) {
            Some(Shape::List(inner)) => Some(&**inner),
            _ => None,
        };
        Self { shape, when_empty: WhenEmpty::Write, ..self }
    }

    /// Whether a server that is given this value may not give it back.
    fn vanishes(self, value: &Value) -> bool {
        match (self.shape, value) {
            (None, value) if self.schema => is_empty_in_schema(value),
            (None | Some(Shape::Any | Shape::Pointer(_)), _) => false,
            (Some(Shape::List(_)), Value::Array(items)) => items.is_empty(),
            (Some(Shape::Map(_)), Value::Object(entries)) => entries.is_empty(),
            (Some(Shape::Struct(_)), Value::Object(entries)) => {
                entries.iter().all(|(key, value)| self.field(key).vanishes(value))
            }
            (Some(_), value) => self.when_empty != WhenEmpty::Write && is_zero(value),
        }
    }

    /// Whether a server may have written this value although nobody has stated it.
    fn appears(self, value: &Value) -> bool {
        match (self.shape, value) {
            (None, value) if self.schema => is_empty_in_schema(value),
            (None | Some(Shape::Any | Shape::Pointer(_)), _) => false,
            (Some(Shape::Struct(_)), Value::Object(entries)) => {
                entries.iter().all(|(key, value)| self.field(key).appears(value))
            }
            (Some(_), Value::Object(entries)) => entries.is_empty(),
            (Some(_), value) => is_zero(value),
        }
    }
}

impl Comparison {
    pub(super) fn of(kind: Kind<'_>) -> Self {
        let (exact, added): (bool, &[&str]) = match kind.treatment() {
            Treatment::Closed(added) => (true, added),
            Treatment::Open | Treatment::MetadataOnly => (false, &[]),
        };
        let root = Place {
            key: "",
            shape: kind.shape(),
            when_empty: WhenEmpty::Write,
            exact,
            schema: false,
        };
        Self { root, added }
    }

    /// The place of the whole object.
    pub(super) fn root(self) -> Place<'static> {
        self.root
    }

    /// Whether everything the manifest states is on the object.
    pub(super) fn covers(self, existing: &Map<String, Value>, wanted: &Map<String, Value>) -> bool {
        let place = |key| self.root.field(key);
        body(wanted).all(|(key, value)| self.agree(place(key), existing.get(key), Some(value)))
            && body(existing)
                .filter(|(key, _)| !wanted.contains_key(*key))
                .all(|(key, value)| self.agree(place(key), Some(value), None))
    }

    /// Whether one field of the object is as stated, and nothing but what is stated.
    pub(super) fn exactly(
        self,
        key: &str,
        existing: Option<&Value>,
        wanted: Option<&Value>,
    ) -> bool {
        self.agree(Place { exact: true, ..self.root.field(key) }, existing, wanted)
    }

    /// Whether something is still on the object as it was stated before, and is stated no more.
    pub(super) fn lingers(
        self,
        existing: &Map<String, Value>,
        wanted: &Map<String, Value>,
        previous: &Map<String, Value>,
    ) -> bool {
        body(previous).any(|(key, before)| {
            self.remains(self.root.field(key), existing.get(key), wanted.get(key), before)
        })
    }

    /// The same for one place.
    pub(super) fn remains(
        self,
        place: Place<'_>,
        existing: Option<&Value>,
        wanted: Option<&Value>,
        before: &Value,
    ) -> bool {
        // A field that holds null is not there, whatever zero was stated of it.
        let Some(existing) = existing.filter(|value| !value.is_null()) else { return false };
        match (existing, wanted, before) {
            (_, _, Value::Null) => false,
            // Whoever stops stating replicas hands them over.
            (_, None | Some(Value::Null), _) => {
                place.key != "replicas" && self.equal(place, existing, before)
            }
            (Value::Object(existing), Some(Value::Object(wanted)), Value::Object(before)) => {
                before.iter().any(|(key, before)| {
                    self.remains(place.field(key), existing.get(key), wanted.get(key), before)
                })
            }
            (Value::Array(existing), Some(Value::Array(wanted)), Value::Array(before)) => {
                // Lists of different lengths differ anyway.
                existing.len() == wanted.len()
                    && existing.iter().zip(wanted).zip(before).any(
                        |((existing, wanted), before)| {
                            self.remains(place.element(), Some(existing), Some(wanted), before)
                        },
                    )
            }
            _ => false,
        }
    }

    fn agree(self, place: Place<'_>, existing: Option<&Value>, wanted: Option<&Value>) -> bool {
        let existing = existing.filter(|value| !value.is_null());
        let wanted = wanted.filter(|value| !value.is_null());
        match (existing, wanted) {
            (None, None) => true,
            (Some(existing), None) => {
                !place.exact || self.added.contains(&place.key) || place.appears(existing)
            }
            (None, Some(wanted)) => place.vanishes(wanted),
            (Some(existing), Some(wanted)) => self.equal(place, existing, wanted),
        }
    }

    /// Whether one value is as stated.
    pub(super) fn equal(self, place: Place<'_>, existing: &Value, wanted: &Value) -> bool {
        if place.is_typed() && is_zero(wanted) && kinds::is_filled_when_zero(place.key) {
            return true;
        }
        match (existing, wanted) {
            (Value::Object(existing), Value::Object(wanted)) => {
                wanted.iter().all(|(key, value)| {
                    self.agree(place.field(key), existing.get(key), Some(value))
                }) && existing
                    .iter()
                    .filter(|(key, _)| !wanted.contains_key(*key))
                    .all(|(key, value)| self.agree(place.field(key), Some(value), None))
            }
            (Value::Array(existing), Value::Array(wanted)) => {
                existing.len() == wanted.len()
                    && existing
                        .iter()
                        .zip(wanted)
                        .all(|(existing, wanted)| self.equal(place.element(), existing, wanted))
            }
            (Value::Number(existing), Value::Number(wanted)) if same_number(existing, wanted) => {
                true
            }
            (existing, wanted) if existing == wanted => true,
            (existing, wanted) => match place.shape.map(pointee) {
                Some(Shape::Quantity) => quantity::same(existing, wanted),
                Some(Shape::Bytes) => same_text(existing, wanted, |one, other| {
                    let dense = |c: &char| !matches!(c, '\n' | '\r');
                    one.chars().filter(dense).eq(other.chars().filter(dense))
                }),
                Some(Shape::Time | Shape::MicroTime) => {
                    same_text(existing, wanted, |one, other| {
                        let one: Result<jiff::Timestamp, _> = one.parse();
                        one.is_ok_and(|one| other.parse().is_ok_and(|other| one == other))
                    })
                }
                _ => false,
            },
        }
    }
}

fn pointee(shape: &Shape) -> &Shape {
    match shape {
        Shape::Pointer(inner) => inner,
        shape => shape,
    }
}

fn same_text(one: &Value, other: &Value, same: impl Fn(&str, &str) -> bool) -> bool {
    one.as_str().zip(other.as_str()).is_some_and(|(one, other)| same(one, other))
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(_) => false,
    }
}

/// Limits of zero mean something in a schema; other empty things do not.
fn is_empty_in_schema(value: &Value) -> bool {
    match value {
        Value::Number(_) => false,
        Value::Object(entries) => entries.is_empty(),
        value => is_zero(value),
    }
}

fn same_number(one: &Number, other: &Number) -> bool {
    match (one.as_i64(), other.as_i64()) {
        (Some(one), Some(other)) => one == other,
        _ => one == other || one.as_f64() == other.as_f64(),
    }
}
