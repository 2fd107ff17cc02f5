//! One CEL expression: compiled once, evaluated many times, within bounds, with the functions
//! Kubernetes has.
//!
//! The parser underneath needs stack in proportion to nesting and the evaluator has no cost limit,
//! so both are kept on a short leash here: length, nesting and depth are limited before anything
//! is evaluated, how often loops could run is estimated from the data, and how often they do run is
//! counted ([`cost`]).

mod cost;

use std::{
    borrow::Cow,
    panic,
    sync::{Arc, OnceLock},
    thread,
};

use cel::{
    Context, ExecutionError, IdedExpr, Value,
    common::ast::{EntryExpr, Expr, LiteralValue, operators},
    extractors::{Arguments, This},
    objects::{Key, Map},
    parser::Parser,
};
use kube_cel::KubeCelExt;

pub use cost::Budget;

use crate::quote::quoted;
use cost::{MOST_STEPS, Size};

/// Longer expressions are refused.
const LONGEST: usize = 16 * 1024;
/// Brackets may nest this deep.
const DEEPEST_BRACKETS: usize = 48;
/// The parsed tree may be this deep; evaluation recurses as deep.
const DEEPEST: usize = 80;
/// Deeper trees are evaluated on a thread of their own: a level takes up to 30 KiB of stack.
const DEEPEST_INLINE: usize = 24;
const EVALUATION_STACK: usize = 32 * 1024 * 1024;
/// Enough for the parser on the longest and deepest expression allowed.
const PARSER_STACK: usize = 256 * 1024 * 1024;
/// The longest list `lists.range` makes.
const LONGEST_RANGE: i64 = 100_000;

/// Why an expression gave no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// It could take too many steps on this data.
    OverBudget,
    /// Operands of types that do not go together.
    NoSuchOverload,
    /// Anything else, in words.
    Other(String),
}

/// A compiled expression.
#[derive(Clone, Debug)]
pub struct Expression {
    tree: IdedExpr,
    /// The same with what is asked in every round of its loops.
    metered: IdedExpr,
    nodes: u64,
    depth: usize,
    /// How many loops are inside each other at most.
    loops: u32,
}

impl Expression {
    /// Parses an expression. The error is worded like cel-go's.
    pub fn parse(source: &str) -> Result<Self, String> {
        Self::parse_all(&[source]).pop().unwrap_or_else(|| Err(String::new()))
    }

    /// Parses several expressions at the cost of one thread.
    pub fn parse_all(sources: &[&str]) -> Vec<Result<Self, String>> {
        let mut results: Vec<Result<Self, String>> = Vec::with_capacity(sources.len());
        thread::scope(|scope| {
            // A thread of its own has the stack the parser needs, and keeps its panics apart.
            let parser =
                thread::Builder::new().stack_size(PARSER_STACK).spawn_scoped(scope, || {
                    sources.iter().map(|source| parse_here(source)).collect::<Vec<_>>()
                });
            if let Ok(parser) = parser
                && let Ok(parsed) = parser.join()
            {
                results = parsed;
            }
        });
        results.resize_with(sources.len(), || Err("the expression could not be parsed".to_owned()));
        results
    }

    /// What was parsed.
    pub fn tree(&self) -> &IdedExpr {
        &self.tree
    }

    /// Whether a variable occurs freely.
    pub fn uses(&self, variable: &str) -> bool {
        self.tree.references().has_variable(variable)
    }

    /// Evaluates with these variables.
    pub fn evaluate(&self, variables: &[(&str, Value)]) -> Result<Value, Failure> {
        self.evaluate_with(Functions::Kubernetes, variables)
    }

    /// The same with a choice of functions.
    pub fn evaluate_with(
        &self,
        functions: Functions,
        variables: &[(&str, Value)],
    ) -> Result<Value, Failure> {
        self.evaluate_within(&Budget::default(), functions, variables)
    }

    /// The same with what other evaluations left of a budget.
    pub fn evaluate_within(
        &self,
        budget: &Budget,
        functions: Functions,
        variables: &[(&str, Value)],
    ) -> Result<Value, Failure> {
        let mut size = Size::default();
        variables.iter().for_each(|(_, value)| size.add(Size::of(value)));
        let rounds = size.largest.max(1).saturating_pow(self.loops);
        let steps = rounds.saturating_mul(self.nodes);
        if steps > MOST_STEPS || !cost::may_be_given(self.nodes, size.bytes) {
            return Err(Failure::OverBudget);
        }
        let run = || {
            budget.spend(self.nodes, || {
                let mut context = functions.context().new_inner_scope();
                for (name, value) in variables {
                    context.add_variable_from_value(*name, value.clone());
                }
                Value::resolve(&self.metered, &context)
            })
        };
        // Extension functions panic on some arguments: a precision of billions in `format`, for
        // one. Nothing outside the closure is touched, so nothing is left half done.
        let outcome = match self.depth > DEEPEST_INLINE {
            false => panic::catch_unwind(panic::AssertUnwindSafe(run)),
            true => thread::scope(|scope| {
                let builder = thread::Builder::new().stack_size(EVALUATION_STACK);
                match builder.spawn_scoped(scope, run) {
                    Ok(thread) => thread.join(),
                    Err(error) => Err(Box::new(error) as Box<dyn std::any::Any + Send>),
                }
            }),
        };
        match outcome {
            Ok(Some(Ok(value))) => Ok(value),
            Ok(Some(Err(error))) => Err(failure(error)),
            Ok(None) => Err(Failure::OverBudget),
            Err(_) => Err(Failure::Other("the expression could not be evaluated".to_owned())),
        }
    }
}

fn parse_here(source: &str) -> Result<Expression, String> {
    if source.len() > LONGEST {
        return Err(format!("the expression is longer than {LONGEST} bytes"));
    }
    if bracket_depth(source) > DEEPEST_BRACKETS {
        return Err(format!("brackets are nested more than {DEEPEST_BRACKETS} levels deep"));
    }
    let mut tree = Parser::new()
        .max_recursion_depth(u16::MAX - 1)
        .enable_optional_syntax(true)
        .parse(source)
        .map_err(|errors| errors.to_string().replace("\n| ", "\n | "))?;
    let mut measure = Measure::default();
    measure.walk(&mut tree, 0, 0)?;
    let mut metered = tree.clone();
    cost::meter(&mut metered);
    let Measure { nodes, depth, loops } = measure;
    Ok(Expression { tree, metered, nodes, depth, loops })
}

/// How deep brackets nest, not counting those inside string literals.
fn bracket_depth(source: &str) -> usize {
    let (mut depth, mut deepest, mut quote) = (0_usize, 0, None);
    let mut escaped = false;
    for c in source.chars() {
        match (quote, c) {
            (Some(_), _) if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '(' | '[' | '{' | '?') => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            (None, ')' | ']' | '}') => depth = depth.saturating_sub(1),
            (None, _) => {}
        }
    }
    deepest
}

#[derive(Default)]
struct Measure {
    nodes: u64,
    depth: usize,
    loops: u32,
}

impl Measure {
    /// Counts nodes and loops, and refuses what the evaluator cannot do.
    fn walk(&mut self, tree: &mut IdedExpr, depth: usize, loops: u32) -> Result<(), String> {
        if depth > DEEPEST {
            return Err(format!("the expression is nested more than {DEEPEST} levels deep"));
        }
        self.nodes += 1;
        self.depth = self.depth.max(depth);
        self.loops = self.loops.max(loops);
        match &mut tree.expr {
            Expr::Call(call) => {
                // Selecting an optional field fails where indexing for it gives nothing.
                if call.func_name == operators::OPT_SELECT {
                    operators::OPT_INDEX.clone_into(&mut call.func_name);
                }
                for inner in
                    call.target.iter_mut().map(|target| &mut **target).chain(&mut call.args)
                {
                    self.walk(inner, depth + 1, loops)?;
                }
                Ok(())
            }
            Expr::Comprehension(inner) => {
                self.walk(&mut inner.iter_range, depth + 1, loops)?;
                self.walk(&mut inner.accu_init, depth + 1, loops)?;
                for part in [&mut inner.loop_cond, &mut inner.loop_step, &mut inner.result] {
                    self.walk(part, depth + 1, loops + 1)?;
                }
                Ok(())
            }
            Expr::List(list) => {
                list.elements.iter_mut().try_for_each(|inner| self.walk(inner, depth + 1, loops))
            }
            Expr::Map(map) => map.entries.iter_mut().try_for_each(|entry| match &mut entry.expr {
                EntryExpr::MapEntry(entry) => {
                    self.walk(&mut entry.key, depth + 1, loops)?;
                    self.walk(&mut entry.value, depth + 1, loops)
                }
                EntryExpr::StructField(_) => Err("messages are not supported".to_owned()),
            }),
            Expr::Select(select) => self.walk(&mut select.operand, depth + 1, loops),
            Expr::Struct(message) => {
                Err(format!("undeclared reference to '{}' (in container '')", message.type_name))
            }
            Expr::Unspecified => Err("the expression is empty".to_owned()),
            Expr::Literal(literal) => match literal {
                LiteralValue::Boolean(_)
                | LiteralValue::Bytes(_)
                | LiteralValue::Double(_)
                | LiteralValue::Int(_)
                | LiteralValue::Null
                | LiteralValue::String(_)
                | LiteralValue::UInt(_) => Ok(()),
            },
            Expr::Ident(_) => Ok(()),
        }
    }
}

/// The functions an expression may call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Functions {
    /// Those that Kubernetes has.
    Kubernetes,
    /// And `hasConditions`, which the condition rules of works have.
    Works,
    /// And `scores`, by which placements ask a cluster for what add-ons say of it. The answers are
    /// under [`SCORES`] in the cluster.
    Placements,
}

/// Where the function `scores` looks; no field of Kubernetes is called so.
pub const SCORES: &str = "\u{0}scores";

/// The scores under a name, or none.
fn scores(This(this): This<Value>, name: Arc<String>) -> Result<Value, ExecutionError> {
    let none = || Ok(Value::List(Arc::default()));
    let key = |text: &str| Key::String(Arc::new(text.to_owned()));
    let Value::Map(cluster) = this else { return Err(ExecutionError::NoSuchOverload) };
    let Some(Value::Map(all)) = cluster.map.get(&key(SCORES)) else { return none() };
    all.map.get(&Key::String(name)).map_or_else(none, |found| Ok(found.clone()))
}

impl Functions {
    fn context(self) -> &'static Context<'static> {
        static KUBERNETES: OnceLock<Context<'static>> = OnceLock::new();
        static WORKS: OnceLock<Context<'static>> = OnceLock::new();
        static PLACEMENTS: OnceLock<Context<'static>> = OnceLock::new();
        match self {
            Self::Kubernetes => KUBERNETES.get_or_init(kubernetes),
            Self::Works => WORKS.get_or_init(|| {
                let mut context = kubernetes();
                context.add_function(
                    "hasConditions",
                    |value: Value| -> Result<Value, ExecutionError> {
                        let Value::Map(map) = value else { return Ok(Value::Bool(false)) };
                        let key = Key::String(Arc::new("conditions".to_owned()));
                        let list = map.map.get(&key);
                        let any = matches!(list, Some(Value::List(list)) if !list.is_empty());
                        Ok(Value::Bool(any))
                    },
                );
                context
            }),
            Self::Placements => PLACEMENTS.get_or_init(|| {
                let mut context = kubernetes();
                context.add_function("scores", scores);
                context
            }),
        }
    }
}

fn kubernetes() -> Context<'static> {
    let mut context = Context::default().with_all();
    context.add_function("dyn", |value: Value| -> Result<Value, ExecutionError> { Ok(value) });
    context.add_function("bool", |value: Value| -> Result<Value, ExecutionError> {
        match &value {
            Value::Bool(_) => Ok(value),
            Value::String(text) => match text.as_str() {
                "true" | "True" | "TRUE" | "t" | "1" => Ok(Value::Bool(true)),
                "false" | "False" | "FALSE" | "f" | "0" => Ok(Value::Bool(false)),
                _ => Err(ExecutionError::function_error("bool", "type conversion error")),
            },
            _ => Err(ExecutionError::NoSuchOverload),
        }
    });
    // The one that comes with the functions allocates whatever it is asked for.
    context.add_function("lists.range", |count: i64| -> Result<Value, ExecutionError> {
        if count > LONGEST_RANGE {
            return Err(ExecutionError::function_error("lists.range", "the range is too long"));
        }
        cost::charge(count.unsigned_abs())?;
        Ok(Value::List((0..count).map(Value::Int).collect::<Vec<_>>().into()))
    });
    context.add_function(cost::TICK, cost::tick);
    context.add_function(cost::GATHERED, cost::gathered);
    // These two make a product of what they are given, and the ones that come with the functions make
    // it whatever its size.
    context.add_function("replace", replace);
    context.add_function("join", join);
    context
}

fn replace(
    This(this): This<Arc<String>>,
    Arguments(arguments): Arguments,
) -> Result<Value, ExecutionError> {
    let [Value::String(from), Value::String(to), rest @ ..] = &**arguments else {
        return Err(ExecutionError::function_error("replace", "expected string argument"));
    };
    let most = match rest {
        [Value::Int(most), ..] => usize::try_from(*most).unwrap_or(0),
        _ => usize::MAX,
    };
    let places = this.matches(from.as_str()).count().min(most) as u64;
    cost::charge_for((this.len() as u64).saturating_add(places.saturating_mul(to.len() as u64)))?;
    Ok(Value::String(Arc::new(this.replacen(from.as_str(), to, most))))
}

fn join(
    This(this): This<Arc<Vec<Value>>>,
    Arguments(arguments): Arguments,
) -> Result<Value, ExecutionError> {
    let separator = match arguments.first() {
        Some(Value::String(separator)) => separator.as_str(),
        _ => "",
    };
    let parts: Vec<Cow<'_, str>> = this
        .iter()
        .map(|part| match part {
            Value::String(text) => Cow::Borrowed(text.as_str()),
            other => Cow::Owned(format!("{other:?}")),
        })
        .collect();
    let texts = parts.iter().map(|part| part.len() as u64).sum::<u64>();
    let between = (parts.len() as u64).saturating_mul(separator.len() as u64);
    cost::charge_for(texts.saturating_add(between))?;
    Ok(Value::String(Arc::new(parts.join(separator))))
}

/// What a value is to those who ask for a truth or a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Truth(bool),
    Text(String),
    /// Something else, of the type that cel-go calls so.
    Other(String),
}

impl Answer {
    pub fn of(value: &Value) -> Self {
        match value {
            Value::Bool(truth) => Self::Truth(*truth),
            Value::String(text) => Self::Text(text.to_string()),
            other => Self::Other(type_name(other)),
        }
    }

    /// The name of its type.
    pub fn type_name(&self) -> &str {
        match self {
            Self::Truth(_) => "bool",
            Self::Text(_) => "string",
            Self::Other(name) => name,
        }
    }
}

/// JSON as an expression without a schema sees it.
pub fn from_json(value: &serde_json::Value) -> Value {
    match value {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(flag) => Value::Bool(*flag),
        serde_json::Value::Number(number) => match number.as_i64() {
            Some(whole) => Value::Int(whole),
            None => Value::Float(number.as_f64().unwrap_or_default()),
        },
        serde_json::Value::String(text) => Value::String(Arc::new(text.clone())),
        serde_json::Value::Array(items) => {
            Value::List(Arc::new(items.iter().map(from_json).collect()))
        }
        serde_json::Value::Object(entries) => {
            let entries = entries
                .iter()
                .map(|(key, value)| (Key::String(Arc::new(key.clone())), from_json(value)));
            Value::Map(Map { map: Arc::new(entries.collect()) })
        }
    }
}

/// The name cel-go has for the type of a value.
fn type_name(value: &Value) -> String {
    match value.type_of() {
        cel::objects::ValueType::Float => "double".to_owned(),
        other => other.to_string(),
    }
}

fn failure(error: ExecutionError) -> Failure {
    Failure::Other(match error {
        ExecutionError::NoSuchKey(key) => format!("no such key: {key}"),
        ExecutionError::DivisionByZero(_) => "division by zero".to_owned(),
        ExecutionError::RemainderByZero(_) => "modulus by zero".to_owned(),
        ExecutionError::Overflow(..) => "integer overflow".to_owned(),
        ExecutionError::IndexOutOfBounds(at) => match at {
            Value::Int(at) => format!("index out of bounds: {at}"),
            other => format!("index out of bounds: {other:?}"),
        },
        ExecutionError::UndeclaredReference(name) => format!("no such attribute(s): {name}"),
        ExecutionError::FunctionError { message, .. } => message,
        ExecutionError::NoSuchOverload
        | ExecutionError::ValuesNotComparable(..)
        | ExecutionError::UnsupportedUnaryOperator(..)
        | ExecutionError::UnsupportedBinaryOperator(..)
        | ExecutionError::UnsupportedTargetType { .. }
        | ExecutionError::NotSupportedAsMethod { .. }
        | ExecutionError::UnexpectedType { .. }
        | ExecutionError::UnsupportedMapIndex(_)
        | ExecutionError::UnsupportedListIndex(_)
        | ExecutionError::UnsupportedIndex(..) => return Failure::NoSuchOverload,
        other => quoted(&other.to_string()),
    })
}

#[cfg(test)]
mod tests;
