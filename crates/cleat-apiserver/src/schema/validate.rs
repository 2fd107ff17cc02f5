//! Checking an object against an OpenAPI schema, with the field errors kube-apiserver gives.
//!
//! Each finding keeps the wording of the library Kubernetes validates with (`spec.x in body must
//! be …`), and which of several failing `anyOf` branches is shown follows its count of passed
//! checks. On update, what was already wrong and did not change is let through ("ratcheting").
//! Structural uniqueness of lists is in [`unique`], embedded metadata in [`embedded`]; rules in
//! CEL are elsewhere.

mod correlate;
mod embedded;
mod format;
mod number;
mod unique;

use serde_json::{Map, Value};

use super::{Additional, Id, Node, Schema, Type};
use crate::{
    gojson::escape_html,
    quote::quoted,
    status::{FieldError, Problem},
};

pub(crate) use correlate::Pair;
pub(crate) use format::unsupported as unsupported_format;

/// How deep schemas and values may nest before checking gives up with an error.
const DEEPEST: usize = 512;

/// The path of an error that belongs to no field.
pub(crate) const NOWHERE: &str = "<nil>";

/// Everything wrong with a new object: types, bounds, embedded metadata and lists that repeat
/// themselves.
pub fn validate(value: &Value, schema: Schema<'_>) -> Vec<FieldError> {
    let mut errors = check("", value, schema, None);
    errors.extend(embedded::check(value, schema));
    errors.extend(unique::check(value, schema));
    errors
}

/// Everything wrong with a changed object, except what is wrong in `old` as well and was left
/// alone.
pub fn validate_update(new: &Value, old: &Value, schema: Schema<'_>) -> Vec<FieldError> {
    let mut errors = check("", new, schema, Some(Pair { new, old, schema }));
    errors.extend(embedded::check(new, schema));
    if unique::check(old, schema).is_empty() {
        errors.extend(unique::check(new, schema));
    }
    errors
}

/// Everything wrong with a changed status; `new` and `old` are the whole objects. Only `status` is
/// checked for its types and bounds.
pub fn validate_status_update(new: &Value, old: &Value, schema: Schema<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if let (Some(value), Some(below)) = (new.get("status"), schema.property("status")) {
        let pair = Pair { new, old, schema }.key("status");
        errors = check("status", value, below, pair);
    }
    if unique::check(old, schema).is_empty() {
        errors.extend(unique::check(new, schema));
    }
    errors
}

/// Checks types and bounds only, naming fields below `prefix`. The wording of each finding starts
/// at `value`, not at `prefix`.
pub(crate) fn check(
    prefix: &str,
    value: &Value,
    schema: Schema<'_>,
    pair: Option<Pair<'_>>,
) -> Vec<FieldError> {
    let mut checking = Checking { prefix, path: String::new(), depth: 0 };
    checking.correlated(value, schema, pair).errors
}

/// What one schema had to say about one value.
#[derive(Default)]
struct Outcome {
    errors: Vec<FieldError>,
    /// How many checks passed; decides which branch of an `anyOf` came closest.
    passed: usize,
}

impl Outcome {
    fn add(&mut self, error: FieldError) {
        if !self.errors.contains(&error) {
            self.errors.push(error);
        }
    }

    fn merge(&mut self, other: Self) {
        self.passed += other.passed;
        for error in other.errors {
            self.add(error);
        }
    }

    fn is_valid(&self) -> bool {
        self.errors.is_empty()
    }
}

/// One walk over a value. `path` is where it is, in the library's spelling.
struct Checking<'p> {
    prefix: &'p str,
    path: String,
    depth: usize,
}

impl Checking<'_> {
    /// Like [`Self::value`], but errors in what did not change are dropped.
    fn correlated(&mut self, value: &Value, schema: Schema<'_>, pair: Option<Pair<'_>>) -> Outcome {
        let mut outcome = self.value(value, schema, pair);
        if !outcome.is_valid() && pair.is_some_and(Pair::unchanged) {
            outcome.errors.clear();
        }
        outcome
    }

    fn value(&mut self, value: &Value, schema: Schema<'_>, pair: Option<Pair<'_>>) -> Outcome {
        if self.depth >= DEEPEST {
            let mut outcome = Outcome::default();
            outcome.add(FieldError::invalid(NOWHERE, "", "nested too deeply to be checked"));
            return outcome;
        }
        self.depth += 1;
        let outcome = self.at_depth(value, schema, pair);
        self.depth -= 1;
        outcome
    }

    fn at_depth(&mut self, value: &Value, schema: Schema<'_>, pair: Option<Pair<'_>>) -> Outcome {
        let node = schema.node();
        let format = format::supported(node);
        let mut all = Outcome::default();
        if value.is_null() {
            match node.nullable || Types::of(node) == Types::Any {
                true => all.passed += 1,
                false => all.add(self.wrong_type(Types::of(node).name(), "null")),
            }
            self.enumeration(value, node, &mut all);
            return all;
        }
        if Types::of(node) != Types::Any || format.is_some() {
            match wrong_type(value, node, format) {
                None => all.passed += 1,
                Some((expected, found)) => all.add(self.wrong_type(expected, found)),
            }
            all.passed += 1;
        }
        let branches = self.branches(value, schema);
        all.merge(branches);
        all.passed += 1;
        match value {
            Value::String(text) => {
                self.string(text, node, &mut all);
                all.passed += 1;
                if let Some(format) = format
                    && let Some(valid) = format::check(format, text)
                {
                    if !valid {
                        all.add(self.wrong_type(format, text));
                    }
                    all.passed += 1;
                }
            }
            Value::Number(number) => {
                for found in number::check(number, node, &self.path) {
                    all.add(match found {
                        number::Finding::Range(detail) => {
                            FieldError::invalid(self.nowhere(), "", detail)
                        }
                        number::Finding::Bound(compared, detail) => {
                            FieldError::invalid(self.field(), compared, self.text(&detail))
                        }
                        number::Finding::Factor(factor, detail) => {
                            FieldError::invalid(self.field(), factor, detail)
                        }
                    });
                }
                all.passed += 2;
            }
            Value::Array(items) => {
                let outcome = self.array(items, schema, pair);
                all.merge(outcome);
                all.passed += 2;
            }
            Value::Object(_) | Value::Null | Value::Bool(_) => {}
        }
        self.enumeration(value, node, &mut all);
        all.passed += 1;
        if let Value::Object(map) = value {
            let outcome = self.object(map, schema, pair);
            all.merge(outcome);
            all.passed += 1;
        }
        all.passed += 1;
        all
    }

    /// `allOf`, `anyOf`, `oneOf` and `not`. What they find counts even when nothing changed below.
    fn branches(&mut self, value: &Value, schema: Schema<'_>) -> Outcome {
        let node = schema.node();
        let mut main = Outcome::default();
        if !node.any_of.is_empty() {
            let (first, best, _) = self.alternatives(&node.any_of, value, schema, true);
            if first.is_none() {
                main.add(self.composite("must validate at least one schema (anyOf)"));
            }
            main.merge(first.or(best).unwrap_or_default());
        }
        if !node.one_of.is_empty() {
            let (first, best, valid) = self.alternatives(&node.one_of, value, schema, false);
            match valid {
                1 => main.merge(first.unwrap_or_default()),
                valid => {
                    let found = match valid {
                        0 => "Found none valid".to_owned(),
                        valid => format!("Found {valid} valid alternatives"),
                    };
                    main.add(self.composite(&format!(
                        "must validate one and only one schema (oneOf). {found}"
                    )));
                    if valid == 0 {
                        main.merge(best.unwrap_or_default());
                    }
                }
            }
        }
        if !node.all_of.is_empty() {
            let mut valid = 0;
            for id in &node.all_of {
                let outcome = self.value(value, schema.child(*id), None);
                valid += usize::from(outcome.is_valid());
                main.merge(outcome);
            }
            if valid != node.all_of.len() {
                let none = if valid == 0 { ". None validated" } else { "" };
                main.add(self.composite(&format!("must validate all the schemas (allOf){none}")));
            }
        }
        if let Some(id) = node.not
            && self.value(value, schema.child(id), None).is_valid()
        {
            main.add(self.composite("must not validate the schema (not)"));
        }
        main.passed += 1;
        main
    }

    /// Tries every branch: the first that fits, the failing one that came closest, how many fit.
    fn alternatives(
        &mut self,
        branches: &[Id],
        value: &Value,
        schema: Schema<'_>,
        stop_at_first: bool,
    ) -> (Option<Outcome>, Option<Outcome>, usize) {
        let (mut first, mut best, mut valid) = (None, None::<Outcome>, 0);
        for id in branches {
            let outcome = self.value(value, schema.child(*id), None);
            if outcome.is_valid() {
                valid += 1;
                first.get_or_insert(outcome);
                if stop_at_first {
                    break;
                }
            } else if best.as_ref().is_none_or(|best| outcome.passed > best.passed) {
                best = Some(outcome);
            }
        }
        (first, best, valid)
    }

    fn string(&self, text: &str, node: &Node, all: &mut Outcome) {
        let length = text.chars().count() as u64;
        if let Some(max) = node.bounds.max_length
            && length > max
        {
            let max = usize::try_from(max).unwrap_or(usize::MAX);
            all.add(FieldError { field: self.field(), problem: Problem::TooLong { max } });
        } else if let Some(min) = node.bounds.min_length
            && length < min
        {
            let detail = self.text(&format!("should be at least {min} chars long"));
            all.add(FieldError::invalid(self.field(), text, detail));
        } else if let (Some(pattern), Some(compiled)) = (&node.pattern, node.compiled_pattern()) {
            let detail = match compiled {
                Ok(matcher) if matcher.is_match(text) => return,
                Ok(_) => format!("should match '{pattern}'"),
                Err(why) => format!("should match '{pattern}, but pattern is invalid: {why}'"),
            };
            all.add(FieldError::invalid(self.field(), text, self.text(&detail)));
        }
    }

    fn array(&mut self, items: &[Value], schema: Schema<'_>, pair: Option<Pair<'_>>) -> Outcome {
        let mut outcome = Outcome::default();
        if let Some(below) = schema.items() {
            let length = self.path.len();
            for (index, item) in items.iter().enumerate() {
                self.path.push_str(&format!("[{index}]"));
                let pair = pair.and_then(|pair| pair.index(item));
                outcome.merge(self.correlated(item, below, pair));
                self.path.truncate(length);
            }
        }
        let (node, size) = (schema.node(), items.len() as u64);
        if let Some(min) = node.bounds.min_items
            && size < min
        {
            let detail = self.text(&format!("should have at least {min} items"));
            outcome.add(FieldError::invalid(self.field(), size, detail));
        }
        if let Some(max) = node.bounds.max_items
            && size > max
        {
            outcome.add(self.too_many(items.len(), max));
        }
        if node.unique_items && repeats(items) {
            let detail = self.text("shouldn't contain duplicates");
            outcome.add(FieldError::invalid(self.field(), "", detail));
        }
        outcome
    }

    fn object(
        &mut self,
        map: &Map<String, Value>,
        schema: Schema<'_>,
        pair: Option<Pair<'_>>,
    ) -> Outcome {
        let mut outcome = Outcome::default();
        let (node, size) = (schema.node(), map.len() as u64);
        if let Some(min) = node.bounds.min_properties
            && size < min
        {
            let detail = self.text(&format!("should have at least {min} properties"));
            outcome.add(FieldError::invalid(self.field(), size, detail));
        }
        if let Some(max) = node.bounds.max_properties
            && size > max
        {
            outcome.add(self.too_many(map.len(), max));
        }
        let length = self.path.len();
        for (key, value) in map {
            if node.properties.contains_key(key.as_str()) {
                continue;
            }
            match node.additional {
                Additional::Boolean(false) => {
                    let detail = format!("{}.{key} in body is a forbidden property", self.path);
                    outcome.add(FieldError::invalid(self.field(), key.as_str(), detail));
                }
                Additional::Schema(id) => {
                    self.path.push('.');
                    self.path.push_str(key);
                    let pair = pair.and_then(|pair| pair.key(key));
                    outcome.merge(self.correlated(value, schema.child(id), pair));
                    self.path.truncate(length);
                }
                Additional::Absent | Additional::Boolean(true) => {}
            }
        }
        for (key, id) in &node.properties {
            let Some(value) = map.get(&**key) else { continue };
            // The object's own kind and version are never let through unchanged.
            let exempt = length == 0 && matches!(&**key, "kind" | "apiVersion");
            let pair = pair.filter(|_| !exempt).and_then(|pair| pair.key(key));
            if length > 0 {
                self.path.push('.');
            }
            self.path.push_str(key);
            outcome.merge(self.correlated(value, schema.child(*id), pair));
            self.path.truncate(length);
        }
        for key in &node.required {
            if !map.contains_key(&**key) {
                self.path.push('.');
                self.path.push_str(key);
                outcome.add(FieldError::required(self.field(), ""));
                self.path.truncate(length);
            }
        }
        outcome
    }

    fn enumeration(&self, value: &Value, node: &Node, all: &mut Outcome) {
        let Some(allowed) = node.enumeration.as_deref().filter(|all| !all.is_empty()) else {
            return;
        };
        // Null is in no enumeration, even one that lists it.
        if !value.is_null() && allowed.iter().any(|allowed| same(allowed, value)) {
            return;
        }
        let supported = allowed
            .iter()
            .map(|value| {
                value.as_str().map_or_else(|| escape_html(&value.to_string()), str::to_owned)
            })
            .collect();
        let problem = Problem::NotSupported { value: value.clone(), supported };
        all.add(FieldError { field: self.field(), problem });
    }

    fn wrong_type(&self, expected: &str, found: &str) -> FieldError {
        let detail = self.text(&format!("must be of type {expected}: {}", quoted(found)));
        let problem = Problem::TypeInvalid { value: found.into(), detail };
        FieldError { field: self.field(), problem }
    }

    fn too_many(&self, actual: usize, max: u64) -> FieldError {
        let max = usize::try_from(max).unwrap_or(usize::MAX);
        FieldError { field: self.field(), problem: Problem::TooMany { actual, max } }
    }

    /// A finding about several schemas at once, which belongs to no single field.
    fn composite(&self, what: &str) -> FieldError {
        let detail = format!("{} {what}", quoted(&self.path));
        FieldError::invalid(self.nowhere(), "", detail)
    }

    fn text(&self, what: &str) -> String {
        format!("{} in body {what}", self.path)
    }

    fn nowhere(&self) -> String {
        if self.prefix.is_empty() { NOWHERE.to_owned() } else { self.prefix.to_owned() }
    }

    fn field(&self) -> String {
        match (self.prefix, self.path.strip_prefix('.').unwrap_or(&self.path)) {
            (_, "") => self.nowhere(),
            ("", path) => path.to_owned(),
            (prefix, path) => format!("{prefix}.{path}"),
        }
    }
}

/// The types a schema asks for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Types {
    Any,
    One(Type),
    IntOrString,
}

impl Types {
    fn of(node: &Node) -> Self {
        match (node.int_or_string, node.kind) {
            (true, _) => Self::IntOrString,
            (false, Some(kind)) => Self::One(kind),
            (false, None) => Self::Any,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Any => "",
            Self::IntOrString => "integer,string",
            Self::One(kind) => kind.name(),
        }
    }

    fn contains(self, kind: Type) -> bool {
        match self {
            Self::Any => false,
            Self::IntOrString => matches!(kind, Type::Integer | Type::String),
            Self::One(one) => one == kind,
        }
    }
}

/// The type expected and the one found, when they disagree.
fn wrong_type<'a>(
    value: &Value,
    node: &Node,
    format: Option<&'a str>,
) -> Option<(&'a str, &'static str)> {
    let types = Types::of(node);
    let (kind, found_format) = match value {
        Value::Null => return None,
        Value::Bool(_) => (Type::Boolean, ""),
        Value::String(_) => (Type::String, ""),
        Value::Array(_) => (Type::Array, ""),
        Value::Object(_) => (Type::Object, ""),
        Value::Number(number) if number.is_i64() => (Type::Integer, "int64"),
        Value::Number(_) => (Type::Number, "float64"),
    };
    let numeric = types.contains(Type::Number) || types.contains(Type::Integer);
    let fits = types.contains(kind)
        || (kind == Type::Integer && types.contains(Type::Number))
        || (kind == Type::Number
            && types.contains(Type::Integer)
            && value.as_f64().is_some_and(number::is_whole));
    let textual = matches!(kind, Type::String | Type::Array);
    match format {
        Some(format) if !textual && !fits && found_format != format => Some((format, found_format)),
        Some(_) if textual && !numeric => None,
        _ if fits => None,
        _ => Some((types.name(), kind.name())),
    }
}

fn repeats(items: &[Value]) -> bool {
    items.iter().enumerate().any(|(at, item)| items.iter().take(at).any(|before| before == item))
}

/// Whether a value is the allowed one. Numbers are converted to the type of the allowed one
/// first, which for an integer cuts off the fraction.
fn same(allowed: &Value, value: &Value) -> bool {
    match (allowed, value) {
        (Value::Number(allowed), Value::Number(value)) => {
            match (allowed.as_i64(), value.as_i64()) {
                (Some(allowed), None) => value.as_f64().map(number::truncate) == Some(allowed),
                (Some(allowed), Some(value)) => allowed == value,
                (None, _) => allowed.as_f64() == value.as_f64(),
            }
        }
        _ => allowed == value,
    }
}

#[cfg(test)]
mod tests;
