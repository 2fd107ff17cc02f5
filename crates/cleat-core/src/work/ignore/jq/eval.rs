//! From an expression and a value to places in it.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use cleat_dialect::regexp::Regexp;
use jaq_core::ops::Math;
use serde_json::Value;

use super::results::{Out, at, made, slice};
use super::values::{changed, combined, compare, depth, kind, length, order, reckon, size, tested};
use super::{Filter, Function, Part};
use crate::work::trouble::shortened;

/// Lists that are made are not deeper than this.
const DEEPEST: usize = 128;
/// What it costs to prepare a pattern.
const PATTERN: usize = 5_000;

/// How many results all expressions about one object may have together, those on the way included.
pub(in super::super) struct Budget(u32);

impl Default for Budget {
    fn default() -> Self {
        Self(1_000_000)
    }
}

pub(super) enum Failure {
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
    let mut walk = Walk { budget, variables: Vec::new(), pattern: None };
    match walk.run(filter, &Out::At(value), &mut results) {
        Ok(()) => {}
        Err(Failure::Misfit(problem)) => return Err(shortened(&problem)),
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
            Out::Made(made) => {
                let made = shortened(&format!("{made}"));
                return Err(format!("gives {made}, which is not a path"));
            }
        }
    }
    Ok(places)
}

struct Walk<'b, 'v> {
    budget: &'b mut Budget,
    /// What is bound where the walk is now. There are no functions but those built in, so that is also
    /// what is bound where an expression stands.
    variables: Vec<Out<'v>>,
    /// The last pattern, and the text and the flags it was made from.
    pattern: Option<(String, String, Regexp)>,
}

impl<'v> Walk<'_, 'v> {
    /// Adds the results to `out`. Those from before a failure are there even if it fails.
    fn run(&mut self, filter: &Filter, input: &Out<'v>, out: &mut Vec<Out<'v>>) -> Done {
        self.spend(1)?;
        match filter {
            Filter::Identity => out.push(input.clone()),
            Filter::Recurse => self.recurse(input, out)?,
            Filter::Literal(value) => out.push(made(value.clone())),
            Filter::List(filter) => {
                let results = self.all(filter, input)?;
                self.spend(results.iter().map(Out::size).sum())?;
                let list: Vec<Value> = results.iter().map(|one| one.value().into_owned()).collect();
                out.push(self.list(list)?);
            }
            Filter::Bind(source, body) => {
                for one in self.all(source, input)? {
                    self.variables.push(one);
                    let done = self.run(body, input, out);
                    self.variables.pop();
                    done?;
                }
            }
            Filter::Variable(index) => out.extend(self.variables.get(*index).cloned()),
            Filter::Reckon(left, operator, right) => {
                for other in self.all(right, input)? {
                    for one in self.all(left, input)? {
                        self.spend(match operator {
                            // Taking one list from another looks at each with each.
                            Math::Sub => one.size().saturating_mul(other.size()),
                            _ => one.size().saturating_add(other.size()),
                        })?;
                        out.push(made(reckon(&one.value(), *operator, &other.value())?));
                    }
                }
            }
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
                        out.push(made(holds));
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
    fn collect(
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

    fn all(&mut self, filter: &Filter, input: &Out<'v>) -> Result<Vec<Out<'v>>, Failure> {
        let (results, done) = self.collect(filter, input)?;
        done.map(|()| results)
    }

    fn part(
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

    fn each(&mut self, place: &Out<'v>, out: &mut Vec<Out<'v>>) -> Done {
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
            Out::Made(value) if matches!(**value, Value::Array(_) | Value::Object(_)) => {
                self.spend(size(value))?;
                match &**value {
                    Value::Array(items) => out.extend(items.iter().cloned().map(made)),
                    Value::Object(entries) => out.extend(entries.values().cloned().map(made)),
                    _ => {}
                }
            }
            other => {
                let kind = other.kind();
                return Err(Failure::Misfit(format!("cannot iterate over {kind}")));
            }
        }
        Ok(())
    }

    fn recurse(&mut self, place: &Out<'v>, out: &mut Vec<Out<'v>>) -> Done {
        self.spend(1)?;
        out.push(place.clone());
        let mut below = Vec::new();
        if matches!(place.kind(), "array" | "object") {
            self.each(place, &mut below)?;
        }
        below.iter().try_for_each(|one| self.recurse(one, out))
    }

    /// `and`, or `or` where true decides by itself.
    fn logic(
        &mut self,
        left: &Filter,
        right: &Filter,
        input: &Out<'v>,
        out: &mut Vec<Out<'v>>,
        decisive: bool,
    ) -> Done {
        for one in self.all(left, input)? {
            if one.is_true() == decisive {
                out.push(made(decisive));
                continue;
            }
            for other in self.all(right, input)? {
                self.spend(1)?;
                out.push(made(other.is_true()));
            }
        }
        Ok(())
    }

    fn branch(
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

    fn call(
        &mut self,
        function: Function,
        arguments: &[Filter],
        input: &Out<'v>,
        out: &mut Vec<Out<'v>>,
    ) -> Done {
        let argument = arguments.first().unwrap_or(&Filter::Identity);
        let truth = |out: &mut Vec<Out<'v>>, holds: bool| out.push(made(holds));
        match function {
            Function::Empty => {}
            Function::Not => truth(out, !input.is_true()),
            Function::Type => out.push(made(input.kind())),
            Function::Length => {
                self.spend(input.size())?;
                out.push(made(length(&input.value())?));
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
                match arguments {
                    [source, _] => each = self.all(source, input)?,
                    _ => self.each(input, &mut each)?,
                }
                let argument = arguments.last().unwrap_or(&Filter::Identity);
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
            Function::Has
            | Function::Contains
            | Function::Inside
            | Function::StartsWith
            | Function::EndsWith => {
                for other in self.all(argument, input)? {
                    self.spend(input.size().saturating_mul(other.size()))?;
                    truth(out, tested(function, &input.value(), &other.value())?);
                }
            }
            Function::TrimStart | Function::TrimEnd => {
                for other in self.all(argument, input)? {
                    self.spend(input.size())?;
                    let trimmed = combined(function, &input.value(), &other.value())?;
                    // What does not change stays a place.
                    let same = order(&trimmed, &input.value()).is_eq();
                    out.push(if same { input.clone() } else { made(trimmed) });
                }
            }
            Function::Index | Function::LastIndex | Function::Split | Function::Join => {
                for other in self.all(argument, input)? {
                    let each = input.size().saturating_mul(other.size());
                    let made = made(combined(function, &input.value(), &other.value())?);
                    self.spend(each.saturating_add(made.size()))?;
                    out.push(made);
                }
            }
            Function::LowerCase
            | Function::UpperCase
            | Function::ToString
            | Function::ToNumber
            | Function::Keys => {
                self.spend(input.size())?;
                out.push(made(changed(function, &input.value())?));
            }
            Function::Map => {
                let (mut each, mut list) = (Vec::new(), Vec::new());
                self.each(input, &mut each)?;
                for one in &each {
                    list.extend(self.all(argument, one)?);
                }
                self.spend(list.iter().map(Out::size).sum())?;
                let list: Vec<Value> = list.iter().map(|one| one.value().into_owned()).collect();
                out.push(self.list(list)?);
            }
            Function::Add => {
                let mut each = Vec::new();
                self.each(input, &mut each)?;
                let mut sum = Value::Null;
                for one in &each {
                    self.spend(one.size().saturating_add(size(&sum)))?;
                    sum = reckon(&sum, Math::Add, &one.value())?;
                }
                out.push(made(sum));
            }
            Function::IsEmpty => {
                let (results, done) = self.collect(argument, input)?;
                if results.is_empty() {
                    done?;
                }
                truth(out, results.is_empty());
            }
            Function::GetPath => {
                for path in self.all(argument, input)? {
                    let path = path.value();
                    let Value::Array(keys) = &*path else {
                        let kind = kind(&path);
                        return Err(Failure::Misfit(format!(
                            "takes a value of type {kind} for a path"
                        )));
                    };
                    self.spend(keys.len())?;
                    let place = keys.iter().try_fold(input.clone(), |place, key| at(&place, key));
                    out.push(place?);
                }
            }
            Function::Limit => {
                let source = arguments.last().unwrap_or(&Filter::Identity);
                for most in self.all(argument, input)? {
                    let most = most.value().as_i64().ok_or_else(|| {
                        Failure::Misfit("limits to what is not a whole number".into())
                    })?;
                    let most = usize::try_from(most).unwrap_or_default();
                    if most == 0 {
                        continue;
                    }
                    let (mut results, done) = self.collect(source, input)?;
                    // What would have come after the last does not matter.
                    if results.len() < most {
                        done?;
                    }
                    results.truncate(most);
                    out.append(&mut results);
                }
            }
            Function::RecurseBy => {
                // Not by recursion: nothing bounds how deep this goes but the budget.
                let mut waiting = Vec::from([input.clone()]);
                while let Some(one) = waiting.pop() {
                    self.spend(1)?;
                    let mut next = self.all(argument, &one)?;
                    next.reverse();
                    out.push(one);
                    waiting.append(&mut next);
                }
            }
            Function::Test => {
                let flags = match arguments {
                    [_, flags] => self.all(flags, input)?,
                    _ => Vec::from([made("")]),
                };
                for pattern in self.all(argument, input)? {
                    for flags in &flags {
                        truth(out, self.test(input, &pattern, flags)?);
                    }
                }
            }
        }
        Ok(())
    }

    fn list(&mut self, items: Vec<Value>) -> Result<Out<'v>, Failure> {
        let list = Value::Array(items);
        if depth(&list) > DEEPEST {
            return Err(Failure::Misfit(format!("makes a list more than {DEEPEST} deep")));
        }
        Ok(made(list))
    }

    /// Whether a text has what a pattern describes.
    fn test(
        &mut self,
        text: &Out<'v>,
        pattern: &Out<'v>,
        flags: &Out<'v>,
    ) -> Result<bool, Failure> {
        let (text, pattern, flags) = (text.value(), pattern.value(), flags.value());
        let (Value::String(text), Value::String(pattern)) = (&*text, &*pattern) else {
            let (text, pattern) = (kind(&text), kind(&pattern));
            return Err(Failure::Misfit(format!(
                "tests a value of type {text} by a pattern of type {pattern}"
            )));
        };
        let flags = match &*flags {
            Value::String(flags) => flags.as_str(),
            Value::Null => "",
            other => {
                let kind = kind(other);
                return Err(Failure::Misfit(format!("has flags of type {kind}")));
            }
        };
        self.spend(1 + text.len())?;
        let known = self.pattern.take().filter(|(of, with, _)| of == pattern && with == flags);
        let known = match known {
            Some(known) => known,
            None => {
                self.spend(PATTERN)?;
                let regexp = Regexp::of_jq(pattern, flags).map_err(Failure::Misfit)?;
                (pattern.clone(), flags.into(), regexp)
            }
        };
        let (_, _, regexp) = self.pattern.insert(known);
        Ok(regexp.is_in(text))
    }
}
