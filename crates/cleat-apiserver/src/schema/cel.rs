//! `x-kubernetes-validations`: rules written in CEL, evaluated at every place of an object that has
//! them, with the errors kube-apiserver gives.
//!
//! Rules are compiled once per schema node. What the engine cannot do: it has no type checker (see
//! [`check`] for what is checked nevertheless), compares lists in order even where they are sets,
//! and knows neither `cel.bind` nor macros with two variables.

mod check;
mod scope;
mod value;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use cel::{Value as CelValue, objects::OptionalValue};
use serde_json::Value;

use cleat_dialect::cel::{Budget, Functions};
pub use cleat_dialect::cel::{Expression, Failure};
pub use scope::{Outcome, Scope};

use super::{
    Schema, Type,
    validate::{NOWHERE, Pair},
};
use crate::status::{FieldError, Problem};
use check::Kind;

/// The longest message a rule may compute.
const LONGEST_MESSAGE: usize = 5 * 1024;

/// One compiled rule of a schema node.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    source: Box<str>,
    message: Box<str>,
    reason: Reason,
    field_path: Option<Box<str>>,
    optional_old_self: bool,
    uses_old_self: bool,
    expression: Result<Expression, String>,
    message_expression: Option<Expression>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    Invalid,
    Forbidden,
    Required,
    Duplicate,
}

/// Compiles the rules of a node, as written in its schema.
pub(super) fn compile(rules: &[Value]) -> Vec<Rule> {
    let text = |rule: &Value, key: &str| -> Box<str> {
        rule.get(key).and_then(Value::as_str).unwrap_or_default().into()
    };
    let sources: Vec<Box<str>> = rules.iter().map(|rule| text(rule, "rule")).collect();
    let messages: Vec<Box<str>> =
        rules.iter().map(|rule| text(rule, "messageExpression")).collect();
    let all: Vec<&str> = sources.iter().chain(&messages).map(|source| &**source).collect();
    let mut parsed = Expression::parse_all(&all);
    let parsed_messages = parsed.split_off(rules.len().min(parsed.len()));
    rules
        .iter()
        .zip(sources)
        .zip(parsed.into_iter().zip(parsed_messages))
        .map(|((rule, source), (expression, message_expression))| Rule {
            message: text(rule, "message"),
            reason: match &*text(rule, "reason") {
                "FieldValueForbidden" => Reason::Forbidden,
                "FieldValueRequired" => Reason::Required,
                "FieldValueDuplicate" => Reason::Duplicate,
                _ => Reason::Invalid,
            },
            field_path: Some(text(rule, "fieldPath")).filter(|path| !path.is_empty()),
            optional_old_self: rule.get("optionalOldSelf").and_then(Value::as_bool) == Some(true),
            uses_old_self: expression.as_ref().is_ok_and(|rule| rule.uses("oldSelf")),
            message_expression: message_expression
                .ok()
                .filter(|_| !text(rule, "messageExpression").is_empty()),
            expression,
            source,
        })
        .collect()
}

/// What is wrong with a rule before it ever runs: the text after `compilation failed: `, or that
/// it is no boolean. `schema` is the node the rule stands at, `root` whether it is a whole object.
pub fn check_rule(source: &str, schema: Schema<'_>, root: bool) -> Result<(), String> {
    let kind = checked(source, schema, root).map_err(|why| format!("compilation failed: {why}"))?;
    match kind.may_be_boolean() {
        true => Ok(()),
        false => Err("cel expression must evaluate to a bool".to_owned()),
    }
}

/// Like [`check_rule`], for the expression that computes a rule's message.
pub fn check_message(source: &str, schema: Schema<'_>, root: bool) -> Result<(), String> {
    match checked(source, schema, root) {
        Ok(Kind::Boolean) => Err("messageExpression must evaluate to a string".to_owned()),
        Ok(_) => Ok(()),
        Err(why) => Err(format!("messageExpression compilation failed: {why}")),
    }
}

fn checked<'a>(source: &str, schema: Schema<'a>, root: bool) -> Result<Kind<'a>, String> {
    let expression = Expression::parse(source)?;
    let kind = if root { Kind::Object(schema) } else { Kind::Of(schema) };
    // With `optionalOldSelf` the old value is wrapped; not knowing its type covers both.
    let variables =
        BTreeMap::from([("self".to_owned(), kind), ("oldSelf".to_owned(), Kind::Unknown)]);
    check::check(expression.tree(), &variables).map_err(|finding| finding.drawn(source))
}

/// Evaluates every rule of a schema on an object. `old` is what the object was before an update.
/// The object must be valid otherwise.
pub fn validate(new: &Value, old: Option<&Value>, schema: Schema<'_>) -> Vec<FieldError> {
    let ratchet = Ratchet { here: old.map(|old| Pair { new, old, schema }), above: None };
    evaluate("", new, old, schema, true, ratchet)
}

/// Evaluates rules on a part of an object, at `path`. Nothing is let through for being unchanged.
pub(crate) fn validate_at(
    path: &str,
    new: &Value,
    old: Option<&Value>,
    schema: Schema<'_>,
    root: bool,
) -> Vec<FieldError> {
    evaluate(path, new, old, schema, root, Ratchet { here: None, above: None })
}

fn evaluate(
    path: &str,
    new: &Value,
    old: Option<&Value>,
    schema: Schema<'_>,
    root: bool,
    ratchet: Ratchet<'_>,
) -> Vec<FieldError> {
    if !has_rules(schema, 0) {
        return Vec::new();
    }
    let mut evaluation = Evaluation {
        path: path.to_owned(),
        errors: Vec::new(),
        budget: Budget::default(),
        exhausted: false,
    };
    evaluation.value(new, old, schema, root, ratchet);
    evaluation.errors
}

/// Rules are not evaluated on objects with these errors; this one is reported in their place.
pub fn blocked_by(errors: &[FieldError]) -> Option<FieldError> {
    let blocking = errors.iter().any(|error| {
        matches!(
            error.problem,
            Problem::NotSupported { .. }
                | Problem::Required { .. }
                | Problem::TooLong { .. }
                | Problem::TooMany { .. }
                | Problem::TypeInvalid { .. }
        )
    });
    blocking.then(|| {
        FieldError::invalid(NOWHERE, Value::Null, "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation")
    })
}

/// Whether any rule can apply below a node. Rules inside `allOf` are refused with
/// the schema.
pub fn has_rules(schema: Schema<'_>, depth: usize) -> bool {
    let node = schema.node();
    // Schemas of custom resources are trees, and never this deep.
    depth < 80
        && (!node.rules.is_empty()
            || node
                .items
                .iter()
                .chain(node.properties.values())
                .any(|id| has_rules(schema.child(*id), depth + 1))
            || matches!(node.additional, super::Additional::Schema(id) if has_rules(schema.child(id), depth + 1)))
}

/// Compiles a condition over admission variables such as `request`, `object` and `oldObject`, and
/// checks the names it uses.
pub fn condition(source: &str, variables: &[&str]) -> Result<Expression, String> {
    expression(source, variables, None, Wanted::Boolean)
}

/// What an expression is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    Boolean,
    Text,
    Anything,
}

/// Compiles an expression over admission variables. `computed` are the members of `variables`, where
/// there is such a thing.
pub fn expression(
    source: &str,
    variables: &[&str],
    computed: Option<&BTreeSet<String>>,
    wanted: Wanted,
) -> Result<Expression, String> {
    let expression =
        Expression::parse(source).map_err(|why| format!("compilation failed: {why}"))?;
    let mut declared: BTreeMap<String, Kind<'_>> = BTreeMap::new();
    for name in variables {
        // Of these nothing is known to CEL; other variables have types that are not known here.
        let dynamic = matches!(*name, "object" | "oldObject" | "params");
        let kind = if dynamic { Kind::Dynamic } else { Kind::Unknown };
        declared.insert((*name).to_owned(), kind);
    }
    if let Some(computed) = computed {
        declared.insert("variables".to_owned(), Kind::Variables(computed));
    }
    let kind = check::check(expression.tree(), &declared)
        .map_err(|finding| format!("compilation failed: {}", finding.drawn(source)))?;
    let (fits, wanted) = match wanted {
        Wanted::Anything => return Ok(expression),
        Wanted::Boolean => (kind.may_be_boolean(), "bool"),
        Wanted::Text => (kind.name().is_none_or(|name| name == "string"), "string"),
    };
    match (fits, kind.name()) {
        (true, _) => Ok(expression),
        (false, Some(found)) => Err(format!("must evaluate to {wanted} but got {found}")),
        (false, None) => Err(format!("must evaluate to {wanted}")),
    }
}

/// The correspondence of this place to the old object, and of the nearest place above.
#[derive(Clone, Copy)]
struct Ratchet<'a> {
    here: Option<Pair<'a>>,
    above: Option<Pair<'a>>,
}

impl<'a> Ratchet<'a> {
    fn unchanged(self) -> bool {
        self.here.or(self.above).is_some_and(Pair::unchanged)
    }

    fn key(self, key: &str) -> Self {
        match self.here {
            None => self,
            Some(_) if self.above.is_none() && matches!(key, "apiVersion" | "kind") => {
                Self { here: None, above: None }
            }
            Some(here) => Self { here: here.key(key), above: self.here },
        }
    }

    fn index(self, item: &'a Value) -> Self {
        match self.here {
            None => self,
            Some(here) => Self { here: here.index(item), above: self.here },
        }
    }
}

struct Evaluation {
    path: String,
    errors: Vec<FieldError>,
    /// What all rules together may take.
    budget: Budget,
    /// A rule ran out of budget: no others are evaluated.
    exhausted: bool,
}

impl Evaluation {
    fn value(
        &mut self,
        new: &Value,
        old: Option<&Value>,
        schema: Schema<'_>,
        root: bool,
        ratchet: Ratchet<'_>,
    ) {
        if new.is_null() || self.exhausted {
            return;
        }
        let old = old.filter(|old| !old.is_null());
        let node = schema.node();
        self.rules(new, old, schema, root, ratchet);
        let length = self.path.len();
        match new {
            Value::Object(map) => {
                for (key, value) in map {
                    let Some(below) = schema.property(key) else { continue };
                    match node.properties.contains_key(key.as_str()) {
                        true if length > 0 => self.path.push_str(&format!(".{key}")),
                        true => self.path.push_str(key),
                        false => self.path.push_str(&format!("[{key}]")),
                    }
                    let old = old.and_then(|old| old.get(key));
                    self.value(value, old, below, below.node().embedded_resource, ratchet.key(key));
                    self.path.truncate(length);
                }
            }
            Value::Array(items) => {
                let Some(below) = schema.items() else { return };
                for (index, item) in items.iter().enumerate() {
                    self.path.push_str(&format!("[{index}]"));
                    let before = old.and_then(|old| Pair { new, old, schema }.index(item));
                    let old = before.map(|pair| pair.old);
                    self.value(
                        item,
                        old,
                        below,
                        below.node().embedded_resource,
                        ratchet.index(item),
                    );
                    self.path.truncate(length);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// Evaluates the rules of a node on a value.
    fn rules(
        &mut self,
        new: &Value,
        old: Option<&Value>,
        schema: Schema<'_>,
        root: bool,
        ratchet: Ratchet<'_>,
    ) {
        let rules = schema.node().compiled_rules();
        if rules.is_empty() {
            return;
        }
        let this = value::typed(new, schema, root);
        let before = match old {
            Some(old) if rules.iter().any(|rule| rule.uses_old_self) => {
                Some(value::typed(old, schema, root))
            }
            _ => None,
        };
        for rule in rules {
            if rule.source.trim().is_empty() || self.exhausted {
                continue;
            }
            let expression = match &rule.expression {
                Ok(expression) => expression,
                Err(why) => {
                    self.broken(schema, format!("rule compile error: compilation failed: {why}"));
                    continue;
                }
            };
            if rule.uses_old_self && before.is_none() && !rule.optional_old_self {
                continue;
            }
            let mut variables = vec![("self", this.clone())];
            if rule.optional_old_self && rule.uses_old_self {
                let optional = match &before {
                    Some(before) => OptionalValue::of(before.clone()),
                    None => OptionalValue::none(),
                };
                variables.push(("oldSelf", CelValue::Opaque(Arc::new(optional))));
            } else if let Some(before) = &before {
                variables.push(("oldSelf", before.clone()));
            }
            match expression.evaluate_within(&self.budget, Functions::Kubernetes, &variables) {
                Ok(CelValue::Bool(true)) => {}
                Ok(_) => {
                    if rule.uses_old_self || !ratchet.unchanged() {
                        self.failed(rule, new, schema, &variables);
                    }
                }
                Err(Failure::OverBudget) => {
                    self.broken(schema, "validation failed due to running out of cost budget, no further validation rules will be run".to_owned());
                    self.exhausted = true;
                }
                Err(Failure::NoSuchOverload) => self.broken(schema, format!("'no such overload': call arguments did not match a supported operator, function or macro signature for rule: {}", rule.shown())),
                Err(Failure::Other(why)) => self.broken(schema, format!("{why} evaluating rule: {}", rule.shown())),
            }
        }
    }

    fn failed(
        &mut self,
        rule: &Rule,
        value: &Value,
        schema: Schema<'_>,
        variables: &[(&str, CelValue)],
    ) {
        let detail = rule.computed_message(&self.budget, variables).unwrap_or_else(|| {
            match rule.message.trim() {
                "" => format!("failed rule: {}", rule.source.trim()),
                message => message.to_owned(),
            }
        });
        let mut field = self.field();
        if let Some(path) =
            rule.field_path.as_deref().and_then(|path| field_path(path, schema).ok())
        {
            field = if self.path.is_empty() { path } else { format!("{}.{path}", self.path) };
        }
        let hidden = matches!(schema.node().kind, Some(Type::Object | Type::Array));
        let problem = match rule.reason {
            Reason::Forbidden => Problem::Forbidden { detail },
            Reason::Required => Problem::Required { detail },
            Reason::Duplicate if hidden => Problem::DuplicateOmitted,
            Reason::Duplicate => Problem::Duplicate { value: value.clone() },
            Reason::Invalid if hidden => Problem::InvalidOmitted { detail },
            Reason::Invalid => Problem::Invalid { value: value.clone(), detail },
        };
        self.errors.push(FieldError { field, problem });
    }

    /// A rule that could not be evaluated.
    fn broken(&mut self, schema: Schema<'_>, detail: String) {
        let kind = schema.node().kind.map_or("", Type::name);
        self.errors.push(FieldError::invalid(self.field(), kind, detail));
    }

    fn field(&self) -> String {
        if self.path.is_empty() { NOWHERE.to_owned() } else { self.path.clone() }
    }
}

impl Rule {
    fn shown(&self) -> &str {
        match self.message.trim() {
            "" => self.source.trim(),
            message => message,
        }
    }

    /// The message the rule computes, if it computes a usable one.
    fn computed_message(&self, budget: &Budget, variables: &[(&str, CelValue)]) -> Option<String> {
        let expression = self.message_expression.as_ref()?;
        let message = expression.evaluate_within(budget, Functions::Kubernetes, variables).ok()?;
        let CelValue::String(text) = message else { return None };
        let text = text.trim();
        (!text.is_empty() && text.len() <= LONGEST_MESSAGE && !text.contains('\n'))
            .then(|| text.to_owned())
    }
}

/// A rule's `fieldPath` (`.a['b.c'].d`) as a field path, if the schema has such a field.
pub fn field_path(path: &str, schema: Schema<'_>) -> Result<String, String> {
    let mut found = String::new();
    let mut schema = schema;
    let mut rest = path;
    while !rest.is_empty() {
        let (name, after) = if let Some(quoted) = rest.strip_prefix("['") {
            quoted.split_once("']").ok_or("unexpected end of JSON path")?
        } else if let Some(plain) = rest.strip_prefix('.') {
            let end = plain.find(['.', '[']).unwrap_or(plain.len());
            plain.split_at(end)
        } else {
            return Err(format!("expected [ or . but got: {rest}"));
        };
        if name.is_empty() {
            return Err("unexpected end of JSON path".to_owned());
        }
        let node = schema.node();
        let named = !node.properties.is_empty();
        let below = if named {
            node.properties.get(name).map(|id| schema.child(*id))
        } else {
            schema.property(name)
        };
        schema = below.ok_or("does not refer to a valid field")?;
        match named {
            true if found.is_empty() => found.push_str(name),
            true => found.push_str(&format!(".{name}")),
            false => found.push_str(&format!("[{name}]")),
        }
        rest = after;
    }
    Ok(found)
}

#[cfg(test)]
mod tests;
