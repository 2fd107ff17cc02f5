//! From an expression and a value to places in it.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Ordering;

use serde_json::Value;

use super::{Comparison, Filter, Function, Part};

/// How many results all expressions about one object may have together, those on the way included.
pub(in super::super) struct Budget(u32);

impl Default for Budget {
    fn default() -> Self {
        Self(1_000_000)
    }
}

/// One result.
#[derive(Clone, Debug)]
enum Out<'v> {
    /// What is at a place.
    At(&'v Value),
    /// A part of a list.
    Span(&'v [Value]),
    /// A place where nothing is: null to look at, and nothing to remove.
    Nothing,
    /// A value that is at no place.
    Made(Value),
}

enum Failure {
    /// The expression does not fit the value. `?` passes over it.
    Misfit(String),
    OverBudget,
}

type Done = Result<(), Failure>;

pub(super) fn places<'v>(
    filter: &Filter,
    value: &'v Value,
    budget: &mut Budget,
) -> Result<Vec<&'v Value>, String> {
    let mut results = Vec::new();
    match (Walk { budget }).run(filter, &Out::At(value), &mut results) {
        Ok(()) => {}
        Err(Failure::Misfit(problem)) => return Err(problem),
        Err(Failure::OverBudget) => return Err("takes too many steps on this manifest".into()),
    }
    let mut places = Vec::new();
    for result in results {
        match result {
            Out::At(found) if core::ptr::eq(found, value) => {
                return Err("selects the whole object".into());
            }
            Out::At(found) => places.push(found),
            Out::Span(items) => places.extend(items),
            Out::Nothing => {}
            Out::Made(made) => return Err(format!("gives {made}, which is not a path")),
        }
    }
    Ok(places)
}

impl Out<'_> {
    fn value(&self) -> Cow<'_, Value> {
        match self {
            Self::At(value) => Cow::Borrowed(value),
            Self::Span(items) => Cow::Owned(Value::Array(items.to_vec())),
            Self::Nothing => Cow::Owned(Value::Null),
            Self::Made(value) => Cow::Borrowed(value),
        }
    }

    /// What it costs to look at all of it.
    fn size(&self) -> usize {
        match self {
            Self::At(value) => size(value),
            Self::Span(items) => items.iter().map(size).sum(),
            Self::Nothing | Self::Made(_) => 1,
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            Self::At(value) => kind(value),
            Self::Made(value) => kind(value),
            Self::Span(_) => "array",
            Self::Nothing => "null",
        }
    }

    fn is_true(&self) -> bool {
        !matches!(
            self,
            Self::At(Value::Null | Value::Bool(false))
                | Self::Made(Value::Null | Value::Bool(false))
                | Self::Nothing
        )
    }
}

struct Walk<'b> {
    budget: &'b mut Budget,
}

impl Walk<'_> {
    /// Adds the results to `out`. Those from before a failure are there even if it fails.
    fn run<'v>(&mut self, filter: &Filter, input: &Out<'v>, out: &mut Vec<Out<'v>>) -> Done {
        self.spend(1)?;
        match filter {
            Filter::Identity => out.push(input.clone()),
            Filter::Recurse => self.recurse(input, out)?,
            Filter::Literal(value) => out.push(Out::Made(value.clone())),
            Filter::Path(origin, parts) => {
                let mut current = Vec::new();
                let came = self.run(origin, input, &mut current);
                for (part, optional) in parts {
                    let mut next = Vec::new();
                    for place in &current {
                        match self.part(part, input, place, &mut next) {
                            Err(Failure::Misfit(_)) if *optional => {}
                            done => done?,
                        }
                    }
                    current = next;
                }
                out.append(&mut current);
                came?;
            }
            Filter::Pipe(left, right) => {
                let (between, came) = self.collect(left, input)?;
                for one in &between {
                    self.run(right, one, out)?;
                }
                came?;
            }
            Filter::Comma(left, right) => {
                self.run(left, input, out)?;
                self.run(right, input, out)?;
            }
            Filter::Alternative(left, right) => {
                let (results, _) = self.collect(left, input)?;
                let before = out.len();
                out.extend(results.into_iter().filter(Out::is_true));
                if out.len() == before {
                    self.run(right, input, out)?;
                }
            }
            Filter::And(left, right) => self.logic(left, right, input, out, false)?,
            Filter::Or(left, right) => self.logic(left, right, input, out, true)?,
            Filter::Compare(left, operator, right) => {
                for other in self.all(right, input)? {
                    for one in self.all(left, input)? {
                        self.spend(one.size() + other.size())?;
                        let holds = compare(&one.value(), *operator, &other.value());
                        out.push(Out::Made(Value::Bool(holds)));
                    }
                }
            }
            Filter::If(branches, other) => self.branch(branches, other, input, out)?,
            Filter::Try(filter) => match self.run(filter, input, out) {
                Err(Failure::Misfit(_)) => {}
                done => done?,
            },
            Filter::Call(function, arguments) => self.call(*function, arguments, input, out)?,
        }
        Ok(())
    }

    fn spend(&mut self, steps: usize) -> Done {
        let steps = u32::try_from(steps).map_err(|_| Failure::OverBudget)?;
        self.budget.0 = self.budget.0.checked_sub(steps).ok_or(Failure::OverBudget)?;
        Ok(())
    }

    /// The results, and whether there would have been more but for a misfit.
    fn collect<'v>(
        &mut self,
        filter: &Filter,
        input: &Out<'v>,
    ) -> Result<(Vec<Out<'v>>, Done), Failure> {
        let mut results = Vec::new();
        match self.run(filter, input, &mut results) {
            Err(Failure::OverBudget) => Err(Failure::OverBudget),
            done => Ok((results, done)),
        }
    }

    fn all<'v>(&mut self, filter: &Filter, input: &Out<'v>) -> Result<Vec<Out<'v>>, Failure> {
        let (results, done) = self.collect(filter, input)?;
        done.map(|()| results)
    }

    fn part<'v>(
        &mut self,
        part: &Part,
        input: &Out<'v>,
        place: &Out<'v>,
        out: &mut Vec<Out<'v>>,
    ) -> Done {
        self.spend(1)?;
        match part {
            Part::Each => self.each(place, out),
            Part::Index(index) => {
                for index in self.all(index, input)? {
                    out.push(at(place, &index.value())?);
                }
                Ok(())
            }
            Part::Slice(from, to) => {
                let mut bound = |filter: &Option<Filter>| match filter {
                    None => Ok(None),
                    Some(filter) => match self.all(filter, input)?.as_slice() {
                        [one] => one.value().as_i64().map(Some).ok_or_else(|| {
                            Failure::Misfit("has a slice whose bounds are not whole numbers".into())
                        }),
                        _ => Err(Failure::Misfit("has a slice with several bounds".into())),
                    },
                };
                let (from, to) = (bound(from)?, bound(to)?);
                out.push(slice(place, from, to)?);
                Ok(())
            }
        }
    }

    fn each<'v>(&mut self, place: &Out<'v>, out: &mut Vec<Out<'v>>) -> Done {
        match place {
            Out::At(Value::Array(items)) => {
                self.spend(items.len())?;
                out.extend(items.iter().map(Out::At));
            }
            Out::Span(items) => {
                self.spend(items.len())?;
                out.extend(items.iter().map(Out::At));
            }
            Out::At(Value::Object(entries)) => {
                self.spend(entries.len())?;
                out.extend(entries.values().map(Out::At));
            }
            other => {
                let kind = other.kind();
                return Err(Failure::Misfit(format!("cannot iterate over {kind}")));
            }
        }
        Ok(())
    }

    fn recurse<'v>(&mut self, place: &Out<'v>, out: &mut Vec<Out<'v>>) -> Done {
        self.spend(1)?;
        out.push(place.clone());
        let mut below = Vec::new();
        if matches!(place.kind(), "array" | "object") {
            self.each(place, &mut below)?;
        }
        below.iter().try_for_each(|one| self.recurse(one, out))
    }

    /// `and`, or `or` where true decides by itself.
    fn logic<'v>(
        &mut self,
        left: &Filter,
        right: &Filter,
        input: &Out<'v>,
        out: &mut Vec<Out<'v>>,
        decisive: bool,
    ) -> Done {
        for one in self.all(left, input)? {
            if one.is_true() == decisive {
                out.push(Out::Made(Value::Bool(decisive)));
                continue;
            }
            for other in self.all(right, input)? {
                self.spend(1)?;
                out.push(Out::Made(Value::Bool(other.is_true())));
            }
        }
        Ok(())
    }

    fn branch<'v>(
        &mut self,
        branches: &[(Filter, Filter)],
        other: &Filter,
        input: &Out<'v>,
        out: &mut Vec<Out<'v>>,
    ) -> Done {
        let Some(((test, then), rest)) = branches.split_first() else {
            return self.run(other, input, out);
        };
        for verdict in self.all(test, input)? {
            match verdict.is_true() {
                true => self.run(then, input, out)?,
                false => self.branch(rest, other, input, out)?,
            }
        }
        Ok(())
    }

    fn call<'v>(
        &mut self,
        function: Function,
        arguments: &[Filter],
        input: &Out<'v>,
        out: &mut Vec<Out<'v>>,
    ) -> Done {
        let argument = arguments.first().unwrap_or(&Filter::Identity);
        let truth = |out: &mut Vec<Out<'v>>, holds| out.push(Out::Made(Value::Bool(holds)));
        match function {
            Function::Empty => {}
            Function::Not => truth(out, !input.is_true()),
            Function::Type => out.push(Out::Made(input.kind().into())),
            Function::Length => {
                self.spend(input.size())?;
                out.push(Out::Made(length(&input.value())?));
            }
            Function::OfType(kinds) => {
                if kinds.contains(&input.kind()) {
                    out.push(input.clone());
                }
            }
            Function::Select => {
                for verdict in self.all(argument, input)? {
                    if verdict.is_true() {
                        out.push(input.clone());
                    }
                }
            }
            Function::First => out.push(at(input, &Value::from(0))?),
            Function::Last => out.push(at(input, &Value::from(-1))?),
            Function::FirstOf => {
                let (results, done) = self.collect(argument, input)?;
                match results.into_iter().next() {
                    Some(first) => out.push(first),
                    None => done?,
                }
            }
            Function::LastOf => out.extend(self.all(argument, input)?.pop()),
            Function::In => {
                let among = self.all(argument, input)?;
                let sizes: usize = among.iter().map(Out::size).sum();
                self.spend(sizes.saturating_add(input.size().saturating_mul(among.len())))?;
                let value = input.value();
                truth(out, among.iter().any(|one| order(&one.value(), &value).is_eq()));
            }
            Function::All | Function::Any | Function::AllOf | Function::AnyOf => {
                let mut each = Vec::new();
                self.each(input, &mut each)?;
                let mut verdicts = Vec::new();
                for one in &each {
                    verdicts.extend(self.all(argument, one)?.iter().map(Out::is_true));
                }
                let every = matches!(function, Function::All | Function::AllOf);
                truth(
                    out,
                    if every { !verdicts.contains(&false) } else { verdicts.contains(&true) },
                );
            }
            Function::Has | Function::Contains | Function::StartsWith | Function::EndsWith => {
                for other in self.all(argument, input)? {
                    self.spend(input.size().saturating_mul(other.size()))?;
                    truth(out, tested(function, &input.value(), &other.value())?);
                }
            }
        }
        Ok(())
    }
}

fn at<'v>(place: &Out<'v>, index: &Value) -> Result<Out<'v>, Failure> {
    let element = |items: &'v [Value], index: i64| {
        let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
        let index = if index < 0 { index.saturating_add(length) } else { index };
        let found = usize::try_from(index).ok().and_then(|index| items.get(index));
        found.map_or(Out::Nothing, Out::At)
    };
    match (place, index) {
        (Out::Nothing | Out::At(Value::Null), Value::String(_) | Value::Number(_)) => {
            Ok(Out::Nothing)
        }
        (Out::At(Value::Object(entries)), Value::String(key)) => {
            Ok(entries.get(key).map_or(Out::Nothing, Out::At))
        }
        (Out::At(Value::Array(items)), Value::Number(number)) if number.is_i64() => {
            Ok(element(items, number.as_i64().unwrap_or_default()))
        }
        (Out::Span(items), Value::Number(number)) if number.is_i64() => {
            Ok(element(items, number.as_i64().unwrap_or_default()))
        }
        (place, index) => {
            let kind = place.kind();
            Err(Failure::Misfit(format!("cannot take {index} of a value of type {kind}")))
        }
    }
}

fn slice<'v>(place: &Out<'v>, from: Option<i64>, to: Option<i64>) -> Result<Out<'v>, Failure> {
    let items: &'v [Value] = match place {
        Out::At(Value::Array(items)) => items,
        Out::Span(items) => items,
        Out::Nothing | Out::At(Value::Null) => return Ok(Out::Nothing),
        other => {
            let kind = other.kind();
            return Err(Failure::Misfit(format!("cannot take a slice of a value of type {kind}")));
        }
    };
    let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
    let bound = |bound: Option<i64>, default: i64| {
        let bound = bound.unwrap_or(default);
        let bound = if bound < 0 { bound.saturating_add(length) } else { bound };
        usize::try_from(bound.clamp(0, length)).unwrap_or_default()
    };
    Ok(Out::Span(items.get(bound(from, 0)..bound(to, length)).unwrap_or_default()))
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Counted anew each time: that is no more work than what is about to be done with it.
fn size(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(size).sum::<usize>(),
        Value::Object(entries) => {
            1 + entries.iter().map(|(key, value)| 1 + key.len() / 64 + size(value)).sum::<usize>()
        }
        Value::String(text) => 1 + text.len() / 64,
        _ => 1,
    }
}

fn length(value: &Value) -> Result<Value, Failure> {
    Ok(match value {
        Value::Null => Value::from(0),
        Value::Bool(_) => return Err(Failure::Misfit("asks a boolean for its length".into())),
        Value::Number(number) => number.as_f64().map(f64::abs).into(),
        Value::String(text) => Value::from(text.chars().count()),
        Value::Array(items) => Value::from(items.len()),
        Value::Object(entries) => Value::from(entries.len()),
    })
}

fn tested(function: Function, value: &Value, other: &Value) -> Result<bool, Failure> {
    let misfit = || {
        let (one, other) = (kind(value), kind(other));
        Failure::Misfit(format!(
            "tests values of types {one} and {other}, which do not go together"
        ))
    };
    match (function, value, other) {
        (Function::Has, Value::Object(entries), Value::String(key)) => {
            Ok(entries.contains_key(key))
        }
        (Function::Has, Value::Array(items), Value::Number(index)) => {
            Ok(index.as_u64().is_some_and(|index| index < items.len() as u64))
        }
        (Function::StartsWith, Value::String(text), Value::String(start)) => {
            Ok(text.starts_with(start.as_str()))
        }
        (Function::EndsWith, Value::String(text), Value::String(end)) => {
            Ok(text.ends_with(end.as_str()))
        }
        (Function::Contains, value, other) if kind(value) == kind(other) => {
            Ok(contains(value, other))
        }
        _ => Err(misfit()),
    }
}

/// The argument comes from the expression or the manifest, whose depth is bounded.
fn contains(value: &Value, other: &Value) -> bool {
    match (value, other) {
        (Value::String(value), Value::String(other)) => value.contains(other.as_str()),
        (Value::Array(value), Value::Array(other)) => {
            other.iter().all(|other| value.iter().any(|value| contains(value, other)))
        }
        (Value::Object(value), Value::Object(other)) => other
            .iter()
            .all(|(key, other)| value.get(key).is_some_and(|value| contains(value, other))),
        (value, other) => order(value, other).is_eq(),
    }
}

fn compare(one: &Value, operator: Comparison, other: &Value) -> bool {
    let order = order(one, other);
    match operator {
        Comparison::Less => order.is_lt(),
        Comparison::LessOrEqual => order.is_le(),
        Comparison::Greater => order.is_gt(),
        Comparison::GreaterOrEqual => order.is_ge(),
        Comparison::Equal => order.is_eq(),
        Comparison::NotEqual => order.is_ne(),
    }
}

/// jq's order of all values: null, false, true, numbers, strings, arrays, objects.
fn order(one: &Value, other: &Value) -> Ordering {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => match (one.as_i64(), other.as_i64()) {
            (Some(one), Some(other)) => one.cmp(&other),
            _ => one.as_f64().partial_cmp(&other.as_f64()).unwrap_or(Ordering::Equal),
        },
        (Value::Bool(one), Value::Bool(other)) => one.cmp(other),
        (Value::String(one), Value::String(other)) => one.cmp(other),
        (Value::Array(one), Value::Array(other)) => {
            let pairs = one.iter().zip(other).map(|(one, other)| order(one, other));
            pairs.into_iter().find(|order| order.is_ne()).unwrap_or(one.len().cmp(&other.len()))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.keys().cmp(other.keys()).then_with(|| {
                let pairs = one.values().zip(other.values()).map(|(one, other)| order(one, other));
                pairs.into_iter().find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
            })
        }
        (one, other) => rank(one).cmp(&rank(other)),
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Null => 0,
        Value::Bool(_) => 1,
        Value::Number(_) => 2,
        Value::String(_) => 3,
        Value::Array(_) => 4,
        Value::Object(_) => 5,
    }
}
