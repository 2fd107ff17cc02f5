//! From text to what may be walked, or why it may not.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use jaq_core::load::lex::StrPart;
use jaq_core::load::parse::{BinaryOp, Pattern, Term};
use jaq_core::load::{Lexer, Parser};
use jaq_core::ops::{Cmp, Math};
use jaq_core::path::{Opt, Part as TermPart};
use serde_json::{Number, Value};

use super::{Comparison, DEEPEST_BRACKETS, Filter, Function, LONGEST, Part};

/// Operators nested deeper than this are refused: evaluation recurses as deep.
const DEEPEST: usize = 64;

pub(super) fn filter(expression: &str) -> Result<Filter, String> {
    if expression.len() > LONGEST {
        return Err(format!("is longer than {LONGEST} bytes"));
    }
    let mut depth: usize = 0;
    for byte in expression.bytes() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEEPEST_BRACKETS {
            return Err(format!("has brackets more than {DEEPEST_BRACKETS} deep"));
        }
    }
    let tokens = Lexer::new(expression).lex().map_err(|errors| match errors.first() {
        Some((_, rest)) if !rest.is_empty() => format!("cannot be read from {rest:?} on"),
        _ => "cannot be read: it ends too early".to_string(),
    })?;
    let term = Parser::new(&tokens).parse(|parser| parser.term()).map_err(|errors| {
        let wanted = errors.first().map_or("", |(expected, _)| expected.as_str());
        format!("cannot be read: expected {wanted}")
    })?;
    understood(&term, 0, &[])
}

/// `bound`: the variables there are, the last one bound last.
fn understood(term: &Term<&str>, depth: usize, bound: &[&str]) -> Result<Filter, String> {
    if depth > DEEPEST {
        return Err(format!("is nested more than {DEEPEST} deep"));
    }
    let inner = |term: &Term<&str>| understood(term, depth + 1, bound);
    let boxed = |term: &Term<&str>| inner(term).map(Box::new);
    let refused =
        |what: &str| Err(format!("uses {what}, which is not allowed: only what selects paths is"));
    Ok(match term {
        Term::Id => Filter::Identity,
        Term::Recurse => Filter::Recurse,
        Term::Num(text) => Filter::Literal(number(text)?),
        Term::Neg(term) => match &**term {
            Term::Num(text) => Filter::Literal(number(&format!("-{text}"))?),
            term => {
                let nothing = Box::new(Filter::Literal(Value::from(0)));
                Filter::Reckon(nothing, Math::Sub, boxed(term)?)
            }
        },
        Term::Str(None, parts) => Filter::Literal(Value::String(literal(parts)?)),
        Term::Str(Some(_), _) => return refused("a format"),
        Term::Path(origin, path) => {
            let parts = path.0.iter().map(|(part, opt)| {
                let part = match part {
                    TermPart::Index(index) => Part::Index(inner(index)?),
                    TermPart::Range(None, None) => Part::Each,
                    TermPart::Range(from, to) => Part::Slice(
                        from.as_ref().map(inner).transpose()?,
                        to.as_ref().map(inner).transpose()?,
                    ),
                };
                Ok((part, matches!(opt, Opt::Optional)))
            });
            Filter::Path(boxed(origin)?, parts.collect::<Result<Vec<_>, String>>()?)
        }
        Term::BinOp(left, operator, right) => {
            let make: fn(Box<Filter>, Box<Filter>) -> Filter = match operator {
                BinaryOp::Pipe(None) => Filter::Pipe,
                BinaryOp::Comma => Filter::Comma,
                BinaryOp::Alt => Filter::Alternative,
                BinaryOp::And => Filter::And,
                BinaryOp::Or => Filter::Or,
                BinaryOp::Cmp(operator) => {
                    let operator = comparison(*operator);
                    return Ok(Filter::Compare(boxed(left)?, operator, boxed(right)?));
                }
                BinaryOp::Pipe(Some(Pattern::Var(name))) => {
                    let bound: Vec<&str> = bound.iter().copied().chain([*name]).collect();
                    let body = understood(right, depth + 1, &bound)?;
                    return Ok(Filter::Bind(boxed(left)?, Box::new(body)));
                }
                BinaryOp::Pipe(Some(_)) => return refused("a pattern of variables"),
                BinaryOp::Math(operator) => {
                    return Ok(Filter::Reckon(boxed(left)?, *operator, boxed(right)?));
                }
                BinaryOp::Assign
                | BinaryOp::Update
                | BinaryOp::UpdateMath(_)
                | BinaryOp::UpdateAlt => return refused("an assignment"),
            };
            make(boxed(left)?, boxed(right)?)
        }
        Term::TryCatch(term, None) => Filter::Try(boxed(term)?),
        Term::IfThenElse(branches, other) => {
            let branches = branches.iter().map(|(test, then)| Ok((inner(test)?, inner(then)?)));
            let branches = branches.collect::<Result<Vec<_>, String>>()?;
            let other = other.as_ref().map_or(Ok(Filter::Identity), |other| inner(other))?;
            Filter::If(branches, Box::new(other))
        }
        Term::Call(name, arguments) => match (*name, arguments.as_slice()) {
            ("true", []) => Filter::Literal(Value::Bool(true)),
            ("false", []) => Filter::Literal(Value::Bool(false)),
            ("null", []) => Filter::Literal(Value::Null),
            ("recurse", []) => Filter::Recurse,
            (name, arguments) => {
                let Some(function) = Function::named(name, arguments.len()) else {
                    return refused(&format!("{name}/{}", arguments.len()));
                };
                let arguments = arguments.iter().map(inner).collect::<Result<Vec<_>, _>>()?;
                Filter::Call(function, arguments)
            }
        },
        Term::Arr(None) => Filter::Literal(Value::Array(Vec::new())),
        Term::Arr(Some(term)) => Filter::List(boxed(term)?),
        Term::Obj(_) => return refused("{ } that makes an object"),
        Term::Label(..) => return refused("label"),
        Term::Break(_) => return refused("break"),
        Term::Fold(name, ..) => return refused(name),
        Term::TryCatch(_, Some(_)) => return refused("catch"),
        Term::Def(..) => return refused("def"),
        Term::Var(name) => match bound.iter().rposition(|one| one == name) {
            Some(index) => Filter::Variable(index),
            None => return Err(format!("uses {name}, which is bound nowhere")),
        },
    })
}

fn comparison(operator: Cmp) -> Comparison {
    match operator {
        Cmp::Lt => Comparison::Less,
        Cmp::Le => Comparison::LessOrEqual,
        Cmp::Gt => Comparison::Greater,
        Cmp::Ge => Comparison::GreaterOrEqual,
        Cmp::Eq => Comparison::Equal,
        Cmp::Ne => Comparison::NotEqual,
    }
}

pub(super) fn number(text: &str) -> Result<Value, String> {
    if let Ok(whole) = text.parse::<i64>() {
        return Ok(Value::from(whole));
    }
    let float = text.parse().ok().and_then(Number::from_f64);
    float.map(Value::Number).ok_or_else(|| format!("has the number {text}, which is too large"))
}

fn literal(parts: &[StrPart<&str, Term<&str>>]) -> Result<String, String> {
    let mut text = String::new();
    for part in parts {
        match part {
            StrPart::Str(part) => text.push_str(part),
            StrPart::Char(c) => text.push(*c),
            StrPart::Term(_) => {
                return Err("uses \\( ) in a string, which is not allowed".to_string());
            }
        }
    }
    Ok(text)
}
