//! What an expression gives: places in a value, and values that are at no place.

use alloc::borrow::Cow;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;

use serde_json::Value;

use super::eval::Failure;
use super::values::{kind, size};

/// One result.
#[derive(Clone, Debug)]
pub(super) enum Out<'v> {
    /// What is at a place.
    At(&'v Value),
    /// A part of a list.
    Span(&'v [Value]),
    /// A place where nothing is: null to look at, and nothing to remove.
    Nothing,
    /// A value that is at no place. Shared: it may be large, and results are copied freely.
    Made(Arc<Value>),
}

pub(super) fn made<'v>(value: impl Into<Value>) -> Out<'v> {
    Out::Made(Arc::new(value.into()))
}

impl Out<'_> {
    pub(super) fn value(&self) -> Cow<'_, Value> {
        match self {
            Self::At(value) => Cow::Borrowed(value),
            Self::Span(items) => Cow::Owned(Value::Array(items.to_vec())),
            Self::Nothing => Cow::Owned(Value::Null),
            Self::Made(value) => Cow::Borrowed(&**value),
        }
    }

    /// What it costs to look at all of it.
    pub(super) fn size(&self) -> usize {
        match self {
            Self::At(value) => size(value),
            Self::Span(items) => items.iter().map(size).sum(),
            Self::Made(value) => size(value),
            Self::Nothing => 1,
        }
    }

    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::At(value) => kind(value),
            Self::Made(value) => kind(value),
            Self::Span(_) => "array",
            Self::Nothing => "null",
        }
    }

    pub(super) fn is_true(&self) -> bool {
        let is_true = |value: &Value| !matches!(value, Value::Null | Value::Bool(false));
        match self {
            Self::At(value) => is_true(value),
            Self::Made(value) => is_true(value),
            Self::Span(_) => true,
            Self::Nothing => false,
        }
    }
}

pub(super) fn at<'v>(place: &Out<'v>, index: &Value) -> Result<Out<'v>, Failure> {
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
        (Out::Made(value), Value::String(key)) if value.is_object() => {
            Ok(value.get(key).map_or(Out::Nothing, |found| made(found.clone())))
        }
        (Out::Made(value), Value::Number(number)) if value.is_array() && number.is_i64() => {
            let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
            let index = number.as_i64().unwrap_or_default();
            let from_end = i64::try_from(items.len()).unwrap_or(i64::MAX);
            let index = if index < 0 { index.saturating_add(from_end) } else { index };
            let found = usize::try_from(index).ok().and_then(|index| items.get(index));
            Ok(found.map_or(Out::Nothing, |found| made(found.clone())))
        }
        (place, index) => {
            let kind = place.kind();
            Err(Failure::Misfit(format!("cannot take {index} of a value of type {kind}")))
        }
    }
}

pub(super) fn slice<'v>(
    place: &Out<'v>,
    from: Option<i64>,
    to: Option<i64>,
) -> Result<Out<'v>, Failure> {
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
