//! From nodes and data to results.

use std::borrow::Cow;
use std::cmp::Ordering;

use serde_json::Value;

use super::{Missing, Node, Slice};
use crate::quote::plain;

/// How many values one evaluation may touch: a template that multiplies ranges by recursive
/// descents stops here.
const BUDGET: usize = 1_000_000;
/// How deep ranges, and the data below a recursive descent, may go.
const DEEPEST: usize = 128;

type Results<'a> = Vec<Cow<'a, Value>>;

pub(super) fn find<'a>(
    nodes: &[Node],
    data: &'a Value,
    missing: Missing,
) -> Result<Vec<Results<'a>>, String> {
    let mut walk = Walk { missing, begun: 0, inside: 0, ended: 0, last_end: 0, budget: BUDGET };
    walk.template(nodes, 0, Some(&Cow::Borrowed(data)), 0)
}

/// The counters of client-go's evaluator, which give nested ranges their meaning.
struct Walk {
    missing: Missing,
    /// Ranges begun by the node just evaluated.
    begun: usize,
    /// Ranges around the node being evaluated.
    inside: usize,
    /// Ends met that have not yet closed their range.
    ended: usize,
    /// The place of the end met last.
    last_end: usize,
    budget: usize,
}

impl Walk {
    /// The results of the nodes from `first` to the end of their range or of the template.
    fn template<'a>(
        &mut self,
        nodes: &[Node],
        first: usize,
        data: Option<&Cow<'a, Value>>,
        depth: usize,
    ) -> Result<Vec<Results<'a>>, String> {
        if depth > DEEPEST {
            return Err("ranges are nested too deeply".to_owned());
        }
        let current: Results<'a> = data.cloned().into_iter().collect();
        let mut all = Vec::new();
        let mut place = first;
        while let Some(node) = nodes.get(place) {
            let results = self.node(&current, node)?;
            if self.ended > 0 && self.ended <= self.inside {
                self.ended -= 1;
                self.last_end = place;
                return Ok(all);
            }
            if self.begun > 0 {
                self.begun -= 1;
                self.inside += 1;
                if results.is_empty() {
                    // Without results the block is still walked, to learn where it ends.
                    self.template(nodes, place + 1, None, depth + 1)?;
                }
                for value in &results {
                    all.extend(self.template(nodes, place + 1, Some(value), depth + 1)?);
                }
                self.inside -= 1;
                place = self.last_end.max(place);
            } else {
                all.push(results);
            }
            place += 1;
        }
        Ok(all)
    }

    fn list<'a>(&mut self, input: &Results<'a>, nodes: &[Node]) -> Result<Results<'a>, String> {
        let mut current = input.clone();
        for node in nodes {
            current = self.node(&current, node)?;
        }
        Ok(current)
    }

    fn node<'a>(&mut self, input: &Results<'a>, node: &Node) -> Result<Results<'a>, String> {
        self.spend(1 + input.len())?;
        let constant = |value: Value| input.iter().map(|_| Cow::Owned(value.clone())).collect();
        match node {
            Node::List(nodes) => self.list(input, nodes),
            Node::Text(text) => Ok(vec![Cow::Owned(Value::from(text.as_str()))]),
            Node::Integer(value) => Ok(constant(Value::from(*value))),
            Node::Float(value) => Ok(constant(Value::from(*value))),
            Node::Boolean(value) => Ok(constant(Value::from(*value))),
            Node::Field(name) => self.field(input, name),
            Node::Slice(slice) => self.slice(input, *slice),
            Node::Filter { left, operator, right } => self.filter(input, left, operator, right),
            Node::Wildcard => {
                let mut results = Vec::new();
                for value in input {
                    results.extend(children(value));
                    self.spend(results.len())?;
                }
                Ok(results)
            }
            Node::Recursive => {
                let mut results = Vec::new();
                for value in input {
                    self.descend(value.clone(), &mut results, 0)?;
                }
                Ok(results)
            }
            Node::Union(parts) => {
                let mut results = Vec::new();
                for part in parts {
                    results.extend(self.list(input, part)?);
                }
                Ok(results)
            }
            Node::Identifier(name) => self.identifier(input, name),
        }
    }

    fn spend(&mut self, steps: usize) -> Result<(), String> {
        self.budget = self
            .budget
            .checked_sub(steps)
            .ok_or_else(|| "expression touches too many values".to_owned())?;
        Ok(())
    }

    fn identifier<'a>(&mut self, input: &Results<'a>, name: &str) -> Result<Results<'a>, String> {
        match name {
            "range" => {
                self.begun += 1;
                Ok(input.clone())
            }
            "end" if self.inside > 0 => {
                self.ended += 1;
                Ok(Vec::new())
            }
            "end" => Err("not in range, nothing to end".to_owned()),
            other => Err(format!("unrecognized identifier {other}")),
        }
    }

    fn field<'a>(&mut self, input: &Results<'a>, name: &str) -> Result<Results<'a>, String> {
        let results: Results<'a> = input.iter().filter_map(|value| get(value, name)).collect();
        if results.is_empty() && !input.is_empty() && self.missing == Missing::Refused {
            return Err(format!("{name} is not found"));
        }
        Ok(results)
    }

    fn slice<'a>(&mut self, input: &Results<'a>, slice: Slice) -> Result<Results<'a>, String> {
        let mut results = Vec::new();
        for value in input {
            let length = match &**value {
                Value::Null => continue,
                Value::Array(items) => i64::try_from(items.len()).unwrap_or(i64::MAX),
                other => return Err(format!("{} is not array or slice", type_name(other))),
            };
            let mut start = slice.start.unwrap_or(0);
            if start < 0 {
                start = start.saturating_add(length);
            }
            let mut end = slice.end.unwrap_or(length);
            if end < 0 || (end == 0 && slice.single) {
                end = end.saturating_add(length);
            }
            if start == end {
                return Ok(results);
            }
            let out_of_bounds =
                |index: i64| format!("array index out of bounds: index {index}, length {length}");
            if start >= length || start < 0 {
                return Err(out_of_bounds(start));
            }
            if end > length || end < 0 {
                return Err(out_of_bounds(end.saturating_sub(1)));
            }
            if start > end {
                return Err(format!("starting index {start} is greater than ending index {end}"));
            }
            let step = match slice.step.map(usize::try_from) {
                None => 1,
                Some(Ok(step)) if step > 0 => step,
                Some(_) => return Err("step must be > 0".to_owned()),
            };
            let (start, end) = (usize::try_from(start), usize::try_from(end));
            let (Ok(start), Ok(end)) = (start, end) else { continue };
            results.extend(children(value).take(end).skip(start).step_by(step));
        }
        Ok(results)
    }

    /// The value and everything below it that holds something, strings included.
    fn descend<'a>(
        &mut self,
        value: Cow<'a, Value>,
        results: &mut Results<'a>,
        depth: usize,
    ) -> Result<(), String> {
        self.spend(1)?;
        let holds = match &*value {
            Value::Array(items) => !items.is_empty(),
            Value::Object(entries) => !entries.is_empty(),
            Value::String(text) => !text.is_empty(),
            _ => false,
        };
        if !holds {
            return Ok(());
        }
        if depth > DEEPEST {
            return Err("data is nested too deeply".to_owned());
        }
        let below = if value.is_string() { None } else { Some(children(&value)) };
        results.push(value);
        for child in below.into_iter().flatten() {
            self.descend(child, results, depth + 1)?;
        }
        Ok(())
    }

    fn filter<'a>(
        &mut self,
        input: &Results<'a>,
        left: &[Node],
        operator: &str,
        right: &[Node],
    ) -> Result<Results<'a>, String> {
        let mut results = Vec::new();
        for value in input {
            if !value.is_array() {
                return Err(format!(
                    "{} is not array or slice and cannot be filtered",
                    plain(value)
                ));
            }
            for item in children(value) {
                let input = vec![item.clone()];
                let lefts = self.list(&input, left);
                if operator == "exists" {
                    if lefts.is_ok_and(|lefts| !lefts.is_empty()) {
                        results.push(item);
                    }
                    continue;
                }
                let Some(one) = only(lefts?)? else { continue };
                let Some(other) = only(self.list(&input, right)?)? else { continue };
                if compare(&one, operator, &other)? {
                    results.push(item);
                }
            }
        }
        Ok(results)
    }
}

fn only(results: Results<'_>) -> Result<Option<Cow<'_, Value>>, String> {
    let mut results = results.into_iter();
    match (results.next(), results.next()) {
        (one, None) => Ok(one),
        _ => Err("can only compare one element at a time".to_owned()),
    }
}

fn get<'a>(value: &Cow<'a, Value>, name: &str) -> Option<Cow<'a, Value>> {
    match value {
        Cow::Borrowed(value) => value.as_object()?.get(name).map(Cow::Borrowed),
        Cow::Owned(value) => value.as_object()?.get(name).cloned().map(Cow::Owned),
    }
}

/// The elements of a list, the values of a map, or, as Go has it, the bytes of a string.
fn children<'a>(value: &Cow<'a, Value>) -> Box<dyn Iterator<Item = Cow<'a, Value>> + 'a> {
    match value {
        Cow::Borrowed(value) => match *value {
            Value::Array(items) => Box::new(items.iter().map(Cow::Borrowed)),
            Value::Object(entries) => Box::new(entries.values().map(Cow::Borrowed)),
            Value::String(text) => Box::new(bytes(text)),
            _ => Box::new(std::iter::empty()),
        },
        // Only literals are owned.
        Cow::Owned(Value::String(text)) => Box::new(bytes(text)),
        Cow::Owned(_) => Box::new(std::iter::empty()),
    }
}

fn bytes<'a>(text: &str) -> impl Iterator<Item = Cow<'a, Value>> + use<'a> {
    text.as_bytes().to_vec().into_iter().map(|byte| Cow::Owned(Value::from(byte)))
}

/// Go's name for the type that holds such a value.
fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

fn compare(left: &Value, operator: &str, right: &Value) -> Result<bool, String> {
    let order = match operator {
        "==" => return equal(left, right),
        "!=" => return equal(left, right).map(|equal| !equal),
        "<" | ">" | "<=" | ">=" => order(left, right)?,
        other => return Err(format!("unrecognized filter operator {other}")),
    };
    // Go defines the other three by negation, which makes NaN special; JSON has none.
    Ok(match operator {
        "<" => order.is_lt(),
        ">" => order.is_gt(),
        "<=" => order.is_le(),
        _ => order.is_ge(),
    })
}

const NO_TYPE: &str = "invalid type for comparison";
const NOT_ALIKE: &str = "incompatible types for comparison";

fn equal(left: &Value, right: &Value) -> Result<bool, String> {
    match (left, right) {
        (Value::Bool(left), Value::Bool(right)) => Ok(left == right),
        _ => order(left, right).map(Ordering::is_eq),
    }
}

fn order(left: &Value, right: &Value) -> Result<Ordering, String> {
    let comparable =
        |value: &Value| !matches!(value, Value::Null | Value::Array(_) | Value::Object(_));
    if !comparable(left) || !comparable(right) {
        return Err(NO_TYPE.to_owned());
    }
    match (left, right) {
        (Value::String(left), Value::String(right)) => Ok(left.cmp(right)),
        (Value::Number(left), Value::Number(right)) if left.is_f64() == right.is_f64() => {
            if let (Some(left), Some(right)) = (left.as_i64(), right.as_i64()) {
                return Ok(left.cmp(&right));
            }
            left.as_f64()
                .zip(right.as_f64())
                .and_then(|(left, right)| left.partial_cmp(&right))
                .ok_or_else(|| NOT_ALIKE.to_owned())
        }
        (Value::Bool(_), Value::Bool(_)) => Err(NO_TYPE.to_owned()),
        _ => Err(NOT_ALIKE.to_owned()),
    }
}
