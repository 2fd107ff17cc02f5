//! JSON as CEL sees it through a schema: fields under escaped names, times as times, numbers of
//! the declared kind.

use std::{collections::HashMap, sync::Arc};

use cel::{
    Value as CelValue,
    objects::{Key, Map},
};
use serde_json::{Number, Value};

use super::Expression;
use crate::schema::{Additional, Node, Schema, Type};

/// JSON without a schema, as admission expressions see it.
pub(super) fn untyped(value: &Value) -> CelValue {
    convert(value, None, false)
}

/// JSON seen through a schema. `object` says that this is a whole object, whose metadata shows
/// its names only.
pub(super) fn typed(value: &Value, schema: Schema<'_>, object: bool) -> CelValue {
    convert(value, Some(schema), object)
}

fn convert(value: &Value, schema: Option<Schema<'_>>, object: bool) -> CelValue {
    let node = schema.map(Schema::node);
    match value {
        Value::Null => CelValue::Null,
        Value::Bool(flag) => CelValue::Bool(*flag),
        Value::Number(number) => self::number(number, node),
        Value::String(text) => self::text(text, node),
        Value::Array(items) => {
            let below = schema.and_then(Schema::items);
            let items: Vec<CelValue> =
                items.iter().map(|item| convert(item, below, false)).collect();
            CelValue::List(Arc::new(items))
        }
        Value::Object(entries) => {
            let embedded = object || node.is_some_and(|node| node.embedded_resource);
            let is_map = node.is_none_or(|node| matches!(node.additional, Additional::Schema(_)));
            let mut map = HashMap::with_capacity(entries.len());
            for (key, value) in entries {
                // To a rule, a field that is null is a field that is not there.
                if !is_map && value.is_null() {
                    continue;
                }
                let value = match key.as_str() {
                    "metadata" if embedded && schema.is_some() => names_only(value),
                    key => convert(value, schema.and_then(|schema| schema.property(key)), false),
                };
                let key = if is_map { key.clone() } else { escape(key) };
                map.insert(Key::String(Arc::new(key)), value);
            }
            CelValue::Map(Map { map: Arc::new(map) })
        }
    }
}

/// Rules may look at the name of an object, and at nothing else in its metadata.
fn names_only(metadata: &Value) -> CelValue {
    let mut map = HashMap::new();
    for key in ["name", "generateName"] {
        if let Some(value) = metadata.get(key).and_then(Value::as_str) {
            let value = CelValue::String(Arc::new(value.to_owned()));
            map.insert(Key::String(Arc::new(key.to_owned())), value);
        }
    }
    CelValue::Map(Map { map: Arc::new(map) })
}

fn number(number: &Number, node: Option<&Node>) -> CelValue {
    let float = || CelValue::Float(number.as_f64().unwrap_or_default());
    match (node.and_then(|node| node.kind), number.as_i64()) {
        (Some(Type::Number), _) | (_, None) => float(),
        (_, Some(whole)) => CelValue::Int(whole),
    }
}

fn text(text: &str, node: Option<&Node>) -> CelValue {
    let plain = || CelValue::String(Arc::new(text.to_owned()));
    let Some(node) = node.filter(|node| !node.int_or_string) else { return plain() };
    // Text that does not parse is refused by validation; a rule sees it as it is.
    match node.format.as_deref() {
        Some("date-time" | "datetime") => through("timestamp(text)", text).unwrap_or_else(plain),
        Some("date") => {
            through("timestamp(text)", &format!("{text}T00:00:00Z")).unwrap_or_else(plain)
        }
        Some("duration") => through("duration(text)", text).unwrap_or_else(plain),
        Some("byte") => through("base64.decode(text)", text).unwrap_or_else(plain),
        _ => plain(),
    }
}

/// CEL's own conversions build the values whose types are not ours to name.
fn through(conversion: &'static str, text: &str) -> Option<CelValue> {
    use std::{collections::BTreeMap, sync::Mutex};
    static CONVERSIONS: Mutex<BTreeMap<&'static str, Arc<Expression>>> =
        Mutex::new(BTreeMap::new());
    let known = CONVERSIONS.lock().ok()?.get(conversion).cloned();
    let expression = match known {
        Some(expression) => expression,
        None => {
            let expression = Arc::new(Expression::parse(conversion).ok()?);
            CONVERSIONS.lock().ok()?.insert(conversion, expression.clone());
            expression
        }
    };
    let value = CelValue::String(Arc::new(text.to_owned()));
    expression.evaluate(&[("text", value)]).ok()
}

/// A property name as an expression must write it.
pub(super) fn escape(name: &str) -> String {
    const RESERVED: [&str; 21] = [
        "true",
        "false",
        "null",
        "in",
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    ];
    if RESERVED.contains(&name) {
        return format!("__{name}__");
    }
    if !(name.contains("__") || name.contains(['.', '-', '/'])) {
        return name.to_owned();
    }
    name.replace("__", "\u{0}")
        .replace('.', "__dot__")
        .replace('-', "__dash__")
        .replace('/', "__slash__")
        .replace('\u{0}', "__underscores__")
}
