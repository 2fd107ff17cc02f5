//! What a template computes with: JSON-like values that keep Go's types apart, because messages,
//! comparisons and argument checks all depend on them (`int` is not `int64`, `[]string` is not
//! `[]interface {}`).
//!
//! Maps are shared and mutable as in Go (`set $d "k" 1` is seen through every name of the map);
//! lists never change. A value never contains itself: whoever inserts into a map checks that.

use std::cell::{Ref, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::time::Time;
use crate::version::Version;

mod json;
mod walk;

pub(crate) use json::{Numbers, from_json, to_json};
pub(crate) use walk::{contains_map, deep_copy, deep_equal};

pub(crate) type Entries = BTreeMap<String, Value>;

#[derive(Clone, Debug)]
pub(crate) enum Value {
    Nil,
    Bool(bool),
    Int(i64, IntKind),
    Uint(u64, UintKind),
    Float(f64),
    Str(Rc<str>),
    /// A Go string that is not UTF-8, as decoded base64 may be. It can be encoded, measured and
    /// hashed, but not cut or searched.
    Raw(Rc<[u8]>),
    List(Rc<List>),
    Map(Rc<Map>),
    Struct(Rc<Struct>),
    Time(Time),
    Version(Rc<Version>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IntKind {
    Int,
    Int64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UintKind {
    Uint8,
    Uint64,
}

/// The element type of a list or map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Elem {
    Any,
    Str,
    Int,
    AnyList,
}

#[derive(Debug)]
pub(crate) struct List {
    pub(crate) elem: Elem,
    /// Go's nil slice: empty, and `null` in JSON.
    pub(crate) nil: bool,
    items: Vec<Value>,
}

#[derive(Debug)]
pub(crate) struct Map {
    pub(crate) elem: Elem,
    /// Go's nil map: reads as empty, cannot be written.
    pub(crate) nil: bool,
    entries: RefCell<Entries>,
}

/// What a template is given as its dot. A field that is not there is an error, unlike a key.
#[derive(Debug)]
pub(crate) struct Struct {
    pub(crate) type_name: String,
    pub(crate) fields: Vec<(String, Value)>,
}

impl List {
    pub(crate) fn items(&self) -> &[Value] {
        &self.items
    }
}

impl Map {
    pub(crate) fn entries(&self) -> Ref<'_, Entries> {
        self.entries.borrow()
    }

    /// The caller has made sure that `value` does not contain this map.
    pub(crate) fn insert(&self, key: String, value: Value) {
        self.entries.borrow_mut().insert(key, value);
    }

    pub(crate) fn remove(&self, key: &str) {
        let removed = self.entries.borrow_mut().remove(key);
        drop(removed);
    }

    pub(crate) fn get(&self, key: &str) -> Option<Value> {
        self.entries.borrow().get(key).cloned()
    }
}

// Values can be nested as deeply as a loop in a template likes, so taking them apart must not
// recurse.
impl Drop for List {
    fn drop(&mut self) {
        unravel(std::mem::take(&mut self.items));
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        let entries = self.entries.take();
        if entries.values().any(Value::is_container) {
            unravel(entries.into_values().collect());
        }
    }
}

fn unravel(mut stack: Vec<Value>) {
    while let Some(value) = stack.pop() {
        match value {
            Value::List(list) => {
                if let Some(mut list) = Rc::into_inner(list) {
                    stack.append(&mut list.items);
                }
            }
            Value::Map(map) => {
                if let Some(map) = Rc::into_inner(map) {
                    stack.extend(map.entries.take().into_values());
                }
            }
            _ => {}
        }
    }
}

impl Value {
    pub(crate) fn int(value: i64) -> Self {
        Self::Int(value, IntKind::Int)
    }

    pub(crate) fn int64(value: i64) -> Self {
        Self::Int(value, IntKind::Int64)
    }

    pub(crate) fn length(value: usize) -> Self {
        Self::int(i64::try_from(value).unwrap_or(i64::MAX))
    }

    pub(crate) fn text(text: impl AsRef<str>) -> Self {
        Self::Str(text.as_ref().into())
    }

    pub(crate) fn bytes(bytes: Vec<u8>) -> Self {
        match String::from_utf8(bytes) {
            Ok(text) => Self::Str(text.into()),
            Err(error) => Self::Raw(error.into_bytes().into()),
        }
    }

    pub(crate) fn list(items: Vec<Value>) -> Self {
        Self::typed_list(Elem::Any, items)
    }

    pub(crate) fn typed_list(elem: Elem, items: Vec<Value>) -> Self {
        Self::List(Rc::new(List { elem, nil: false, items }))
    }

    pub(crate) fn nil_list(elem: Elem) -> Self {
        Self::List(Rc::new(List { elem, nil: true, items: Vec::new() }))
    }

    pub(crate) fn strings<S: AsRef<str>>(texts: impl IntoIterator<Item = S>) -> Self {
        Self::typed_list(Elem::Str, texts.into_iter().map(Self::text).collect())
    }

    pub(crate) fn map(entries: Entries) -> Self {
        Self::typed_map(Elem::Any, entries)
    }

    pub(crate) fn typed_map(elem: Elem, entries: Entries) -> Self {
        Self::Map(Rc::new(Map { elem, nil: false, entries: RefCell::new(entries) }))
    }

    pub(crate) fn nil_map() -> Self {
        Self::Map(Rc::new(Map { elem: Elem::Any, nil: true, entries: RefCell::default() }))
    }

    pub(crate) fn is_nil(&self) -> bool {
        matches!(self, Self::Nil)
    }

    fn is_container(&self) -> bool {
        matches!(self, Self::List(_) | Self::Map(_))
    }

    /// `%T`.
    pub(crate) fn type_name(&self) -> String {
        match self {
            Self::Nil => "<nil>".to_owned(),
            Self::Bool(_) => "bool".to_owned(),
            Self::Int(_, IntKind::Int) => "int".to_owned(),
            Self::Int(_, IntKind::Int64) => "int64".to_owned(),
            Self::Uint(_, UintKind::Uint8) => "uint8".to_owned(),
            Self::Uint(_, UintKind::Uint64) => "uint64".to_owned(),
            Self::Float(_) => "float64".to_owned(),
            Self::Str(_) | Self::Raw(_) => "string".to_owned(),
            Self::List(list) => format!("[]{}", list.elem.name()),
            Self::Map(map) => format!("map[string]{}", map.elem.name()),
            Self::Struct(shape) => shape.type_name.clone(),
            Self::Time(_) => "time.Time".to_owned(),
            Self::Version(_) => "*semver.Version".to_owned(),
        }
    }

    /// The name of Go's `reflect.Kind`.
    pub(crate) fn kind_name(&self) -> &'static str {
        match self {
            Self::Nil => "invalid",
            Self::Bool(_) => "bool",
            Self::Int(_, IntKind::Int) => "int",
            Self::Int(_, IntKind::Int64) => "int64",
            Self::Uint(_, UintKind::Uint8) => "uint8",
            Self::Uint(_, UintKind::Uint64) => "uint64",
            Self::Float(_) => "float64",
            Self::Str(_) | Self::Raw(_) => "string",
            Self::List(_) => "slice",
            Self::Map(_) => "map",
            Self::Struct(_) | Self::Time(_) => "struct",
            Self::Version(_) => "ptr",
        }
    }

    /// Whether `if` takes the branch: anything but the zero value of its type.
    pub(crate) fn truth(&self) -> bool {
        match self {
            Self::Nil => false,
            Self::Bool(flag) => *flag,
            Self::Int(value, _) => *value != 0,
            Self::Uint(value, _) => *value != 0,
            Self::Float(value) => *value != 0.0,
            Self::Str(text) => !text.is_empty(),
            Self::Raw(bytes) => !bytes.is_empty(),
            Self::List(list) => !list.items.is_empty(),
            Self::Map(map) => !map.entries().is_empty(),
            Self::Struct(_) | Self::Time(_) | Self::Version(_) => true,
        }
    }

    /// The bytes of a string, whether they are UTF-8 or not.
    pub(crate) fn string_bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Str(text) => Some(text.as_bytes()),
            Self::Raw(bytes) => Some(bytes),
            _ => None,
        }
    }
}

impl Elem {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Any => "interface {}",
            Self::Str => "string",
            Self::Int => "int",
            Self::AnyList => "[]interface {}",
        }
    }

    /// What `reflect.Zero` of the element type is.
    pub(crate) fn zero(self) -> Value {
        match self {
            Self::Any => Value::Nil,
            Self::Str => Value::text(""),
            Self::Int => Value::int(0),
            Self::AnyList => Value::nil_list(Elem::Any),
        }
    }
}
