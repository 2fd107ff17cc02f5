//! A small part of what CEL's type checker finds: names nobody declared, fields a schema does not
//! have, and what an expression comes to, where that is plain to see. The engine underneath has no
//! type checker, so wrong operand types only show up when a rule is evaluated.

use std::collections::{BTreeMap, BTreeSet};

use cel::{
    IdedExpr,
    common::ast::{ComprehensionExpr, EntryExpr, Expr, LiteralValue, operators},
};

use super::value::escape;
use crate::schema::{Additional, Schema, Type};

/// What is known about the type of a part of an expression.
#[derive(Clone, Copy)]
pub(super) enum Kind<'a> {
    Unknown,
    /// Known to be anything: CEL's own `dyn`.
    Dynamic,
    Boolean,
    /// Neither a boolean nor anything with fields, by CEL's name for it.
    Named(&'static str),
    /// The same, and nobody knows its name.
    Other,
    Of(Schema<'a>),
    /// A whole object: its metadata is known whatever its schema says.
    Object(Schema<'a>),
    /// The metadata of a whole object.
    Metadata,
    /// Values that were computed before, by name.
    Variables(&'a BTreeSet<String>),
}

impl Kind<'_> {
    /// Whether this may be a boolean.
    pub(super) fn may_be_boolean(self) -> bool {
        match self {
            Self::Unknown | Self::Boolean => true,
            Self::Dynamic
            | Self::Named(_)
            | Self::Other
            | Self::Object(_)
            | Self::Metadata
            | Self::Variables(_) => false,
            Self::Of(schema) => {
                let node = schema.node();
                matches!(node.kind, Some(Type::Boolean))
                    || (node.kind.is_none() && !node.int_or_string)
            }
        }
    }

    /// What CEL calls this type, as far as it is known.
    pub(super) fn name(self) -> Option<&'static str> {
        match self {
            Self::Dynamic => Some("dyn"),
            Self::Boolean => Some("bool"),
            Self::Named(name) => Some(name),
            _ => None,
        }
    }
}

/// Checks an expression in which these variables are declared. Errors are worded like cel-go's,
/// without saying where in the text they are found.
pub(super) fn check<'a>(
    tree: &IdedExpr,
    variables: &BTreeMap<String, Kind<'a>>,
) -> Result<Kind<'a>, Finding> {
    match &tree.expr {
        Expr::Ident(name) => match variables.get(name) {
            Some(kind) => Ok(*kind),
            None if TYPES.contains(&name.as_str()) => Ok(Kind::Other),
            None => Err(undeclared(name)),
        },
        Expr::Literal(literal) => Ok(match literal {
            LiteralValue::Boolean(_) => Kind::Boolean,
            LiteralValue::String(_) => Kind::Named("string"),
            LiteralValue::Int(_) => Kind::Named("int"),
            LiteralValue::UInt(_) => Kind::Named("uint"),
            LiteralValue::Double(_) => Kind::Named("double"),
            _ => Kind::Other,
        }),
        Expr::Select(select) => {
            let operand = check(&select.operand, variables)?;
            let found = field(operand, &select.field)?;
            Ok(if select.test { Kind::Boolean } else { found })
        }
        Expr::Call(call) => {
            let qualified = match call.target.as_deref().map(|target| &target.expr) {
                Some(Expr::Ident(prefix)) if NAMESPACES.contains(&prefix.as_str()) => {
                    !variables.contains_key(prefix)
                }
                _ => false,
            };
            let target = match &call.target {
                Some(target) if !qualified => Some(check(target, variables)?),
                _ => None,
            };
            let arguments = call
                .args
                .iter()
                .map(|inner| check(inner, variables))
                .collect::<Result<Vec<_>, _>>()?;
            let name = call.func_name.as_str();
            match (name, target.or(arguments.first().copied())) {
                (operators::INDEX, Some(Kind::Of(schema))) => Ok(element(schema)),
                (operators::INDEX, Some(Kind::Dynamic)) => Ok(Kind::Dynamic),
                (name, _) if BOOLEAN_OPERATORS.contains(&name) => Ok(Kind::Boolean),
                (operators::CONDITIONAL, _) => Ok(match arguments.as_slice() {
                    // What is one thing or anything is anything.
                    [_, Kind::Dynamic, other] | [_, other, Kind::Dynamic] => match other.name() {
                        Some(_) => Kind::Dynamic,
                        None => Kind::Unknown,
                    },
                    [_, one, ..] => *one,
                    _ => Kind::Unknown,
                }),
                (name, _) if name.contains('_') || name.starts_with('@') || name.contains('?') => {
                    Ok(Kind::Unknown)
                }
                (name, _) if FUNCTIONS.contains(&name) => Ok(Kind::Unknown),
                (name, _) => Err(undeclared(name)),
            }
        }
        Expr::List(list) => {
            for inner in &list.elements {
                check(inner, variables)?;
            }
            Ok(Kind::Other)
        }
        Expr::Map(map) => {
            for entry in &map.entries {
                if let EntryExpr::MapEntry(entry) = &entry.expr {
                    check(&entry.key, variables)?;
                    check(&entry.value, variables)?;
                }
            }
            Ok(Kind::Other)
        }
        Expr::Comprehension(inner) => comprehension(inner, variables),
        Expr::Struct(message) => Err(undeclared(&message.type_name)),
        Expr::Unspecified => Ok(Kind::Unknown),
    }
}

/// What the checker found: a message, and a piece of text near which to point.
#[derive(Debug)]
pub(super) struct Finding {
    pub(super) message: String,
    near: String,
}

impl Finding {
    /// The message with its place in the source, as cel-go draws it.
    pub(super) fn drawn(&self, source: &str) -> String {
        let at = source.find(&self.near).unwrap_or(0);
        let before = source.get(..at).unwrap_or_default();
        let line = before.matches('\n').count();
        let column = before.rsplit('\n').next().map_or(0, |text| text.chars().count());
        let text = source.lines().nth(line).unwrap_or_default();
        format!(
            "ERROR: <input>:{}:{}: {}\n | {text}\n | {}^",
            line + 1,
            column + 1,
            self.message,
            ".".repeat(column)
        )
    }
}

fn undeclared(name: &str) -> Finding {
    let message = format!("undeclared reference to '{name}' (in container '')");
    Finding { message, near: name.to_owned() }
}

fn field<'a>(operand: Kind<'a>, name: &str) -> Result<Kind<'a>, Finding> {
    let undefined =
        || Finding { message: format!("undefined field '{name}'"), near: format!(".{name}") };
    match operand {
        Kind::Unknown | Kind::Dynamic => Ok(operand),
        Kind::Metadata => match name {
            "name" | "generateName" => Ok(Kind::Other),
            _ => Err(undefined()),
        },
        Kind::Variables(names) if names.contains(name) => Ok(Kind::Unknown),
        Kind::Variables(_) => Err(undefined()),
        Kind::Object(_) if matches!(name, "apiVersion" | "kind") => Ok(Kind::Other),
        Kind::Object(_) if name == "metadata" => Ok(Kind::Metadata),
        Kind::Boolean | Kind::Named(_) | Kind::Other => Err(Finding {
            message: "type does not support field selection".to_owned(),
            near: format!(".{name}"),
        }),
        Kind::Of(schema) | Kind::Object(schema) => {
            let node = schema.node();
            if let Additional::Schema(id) = node.additional {
                return Ok(Kind::Of(schema.child(id)));
            }
            if node.kind.is_none() || (node.properties.is_empty() && node.preserve_unknown_fields) {
                return Ok(Kind::Unknown);
            }
            if node.kind != Some(Type::Object) {
                let kind = node.kind.map_or("", Type::name);
                return Err(Finding {
                    message: format!("type '{kind}' does not support field selection"),
                    near: format!(".{name}"),
                });
            }
            let found = node.properties.iter().find(|(key, _)| escape(key) == name);
            match found {
                Some((_, id)) => {
                    let below = schema.child(*id);
                    Ok(match below.node().embedded_resource {
                        true => Kind::Object(below),
                        false => Kind::Of(below),
                    })
                }
                None => Err(undefined()),
            }
        }
    }
}

fn element(schema: Schema<'_>) -> Kind<'_> {
    match (schema.items(), schema.node().additional) {
        (Some(items), _) => Kind::Of(items),
        (None, Additional::Schema(id)) => Kind::Of(schema.child(id)),
        (None, _) => Kind::Unknown,
    }
}

fn comprehension<'a>(
    inner: &ComprehensionExpr,
    variables: &BTreeMap<String, Kind<'a>>,
) -> Result<Kind<'a>, Finding> {
    let range = check(&inner.iter_range, variables)?;
    check(&inner.accu_init, variables)?;
    let mut within = variables.clone();
    let item = match range {
        Kind::Of(schema) if schema.items().is_some() => element(schema),
        _ => Kind::Unknown,
    };
    within.insert(inner.iter_var.clone(), item);
    if let Some(second) = &inner.iter_var2 {
        within.insert(second.clone(), Kind::Unknown);
    }
    within.insert(inner.accu_var.clone(), Kind::Unknown);
    check(&inner.loop_cond, &within)?;
    check(&inner.loop_step, &within)?;
    check(&inner.result, &within)
}

const BOOLEAN_OPERATORS: &[&str] = &[
    operators::EQUALS,
    operators::NOT_EQUALS,
    operators::LESS,
    operators::LESS_EQUALS,
    operators::GREATER,
    operators::GREATER_EQUALS,
    operators::IN,
    operators::LOGICAL_AND,
    operators::LOGICAL_OR,
    operators::LOGICAL_NOT,
    "startsWith",
    "endsWith",
    "matches",
    "hasValue",
];

const TYPES: &[&str] = &[
    "bool",
    "int",
    "uint",
    "double",
    "string",
    "bytes",
    "list",
    "map",
    "null_type",
    "type",
    "net",
    "google",
];

/// Prefixes of functions that are no variables.
const NAMESPACES: &[&str] = &["sets", "optional", "lists", "strings", "ip", "format"];

/// The functions there are, by their last name.
const FUNCTIONS: &[&str] = &[
    "add",
    "asApproximateFloat",
    "asInteger",
    "bool",
    "byte",
    "bytes",
    "charAt",
    "cidr",
    "compareTo",
    "contains",
    "containsCIDR",
    "containsIP",
    "date",
    "datetime",
    "distinct",
    "dns1035Label",
    "dns1035LabelPrefix",
    "dns1123Label",
    "dns1123LabelPrefix",
    "dns1123Subdomain",
    "dns1123SubdomainPrefix",
    "double",
    "duration",
    "dyn",
    "endsWith",
    "equivalent",
    "family",
    "find",
    "findAll",
    "first",
    "flatten",
    "format",
    "getDate",
    "getDayOfMonth",
    "getDayOfWeek",
    "getDayOfYear",
    "getEscapedPath",
    "getFullYear",
    "getHost",
    "getHostname",
    "getHours",
    "getMilliseconds",
    "getMinutes",
    "getMonth",
    "getPort",
    "getQuery",
    "getScheme",
    "getSeconds",
    "hasValue",
    "indexOf",
    "int",
    "intersects",
    "ip",
    "isCIDR",
    "isCanonical",
    "isGlobalUnicast",
    "isGreaterThan",
    "isIP",
    "isInteger",
    "isLessThan",
    "isLinkLocalMulticast",
    "isLinkLocalUnicast",
    "isLoopback",
    "isQuantity",
    "isSemver",
    "isSorted",
    "isURL",
    "isUnspecified",
    "join",
    "labelValue",
    "last",
    "lastIndexOf",
    "lowerAscii",
    "major",
    "masked",
    "matches",
    "max",
    "min",
    "minor",
    "named",
    "none",
    "of",
    "ofNonZeroValue",
    "or",
    "orValue",
    "patch",
    "prefixLength",
    "qualifiedName",
    "quantity",
    "quote",
    "range",
    "replace",
    "reverse",
    "semver",
    "sign",
    "size",
    "slice",
    "sort",
    "split",
    "startsWith",
    "string",
    "sub",
    "substring",
    "sum",
    "timestamp",
    "trim",
    "uint",
    "upperAscii",
    "uri",
    "url",
    "uuid",
    "validate",
    "value",
];
