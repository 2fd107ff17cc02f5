//! Functions as templates see them: a name, the Go types of the parameters, and what is done.
//!
//! Types are checked before a function runs, with Go's messages; a function sees only arguments
//! that fit.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::LazyLock;

use crate::limits::{Budget, Fault};
use crate::random::Random;
use crate::time::Time;
use crate::value::{Map, Value};
use crate::{builtin, sprig};

/// The Go type of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ty {
    Any,
    Bool,
    Float,
    Int,
    Map,
    /// `reflect.Value`: the function sees whether the argument was inside an interface.
    Reflect,
    Text,
    Time,
}

impl Ty {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Any => "interface {}",
            Self::Bool => "bool",
            Self::Float => "float64",
            Self::Int => "int",
            Self::Map => "map[string]interface {}",
            Self::Reflect => "reflect.Value",
            Self::Text => "string",
            Self::Time => "time.Time",
        }
    }

    pub(crate) fn accepts(self, value: &Value) -> bool {
        use crate::value::{Elem, IntKind};
        match self {
            Self::Any | Self::Reflect => true,
            Self::Bool => matches!(value, Value::Bool(_)),
            Self::Float => matches!(value, Value::Float(_)),
            Self::Int => matches!(value, Value::Int(_, IntKind::Int)),
            Self::Map => matches!(value, Value::Map(map) if map.elem == Elem::Any),
            Self::Text => value.string_bytes().is_some(),
            Self::Time => matches!(value, Value::Time(_)),
        }
    }
}

/// A value, and whether it was reached through an interface: Go tells a nil inside one from
/// nothing at all, and so do its messages.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub(crate) value: Value,
    pub(crate) boxed: bool,
}

impl Slot {
    pub(crate) const NOTHING: Self = Self { value: Value::Nil, boxed: false };

    pub(crate) fn new(value: Value) -> Self {
        Self { value, boxed: false }
    }

    pub(crate) fn boxed(value: Value, boxed: bool) -> Self {
        Self { value, boxed }
    }

    /// Neither a value nor an interface.
    pub(crate) fn is_nothing(&self) -> bool {
        !self.boxed && self.value.is_nil()
    }

    pub(crate) fn type_name(&self) -> String {
        if self.boxed { "interface {}".to_owned() } else { self.value.type_name() }
    }
}

/// What every function may use besides its arguments.
pub(crate) struct Env {
    pub(crate) budget: Budget,
    pub(crate) now: Time,
    /// None: nothing may be left to chance.
    pub(crate) random: Option<Random>,
}

pub(crate) type Answer = Result<Value, Fault>;
type Pure = fn(&Env, &Args<'_>) -> Answer;
type Reflective = fn(&Env, &[Slot]) -> Result<Slot, Fault>;

type Run<'a> = dyn Fn(&Env, &Args<'_>) -> Answer + 'a;

#[derive(Clone, Copy)]
pub(crate) enum Code {
    Pure(Pure),
    Reflective(Reflective),
}

/// A function that is the same in every template.
#[derive(Clone, Copy)]
pub(crate) struct Function {
    params: &'static [Ty],
    rest: Option<Ty>,
    code: Code,
}

/// A function of one resolution, which may know more than its arguments.
pub(crate) struct Host<'a> {
    pub(crate) params: &'static [Ty],
    pub(crate) rest: Option<Ty>,
    pub(crate) run: Box<Run<'a>>,
}

/// What a name stands for.
#[derive(Clone, Copy)]
pub(crate) struct Found<'f> {
    pub(crate) params: &'static [Ty],
    pub(crate) rest: Option<Ty>,
    pub(crate) call: Call<'f>,
    /// Whether it is one of Go's own.
    pub(crate) builtin: bool,
}

#[derive(Clone, Copy)]
pub(crate) enum Call<'f> {
    Code(Code),
    Host(&'f Run<'f>),
}

pub(crate) type Table = &'static [(&'static str, Function)];

pub(crate) const fn fixed(params: &'static [Ty], call: Pure) -> Function {
    Function { params, rest: None, code: Code::Pure(call) }
}

pub(crate) const fn variadic(params: &'static [Ty], rest: Ty, call: Pure) -> Function {
    Function { params, rest: Some(rest), code: Code::Pure(call) }
}

pub(crate) const fn reflective(
    params: &'static [Ty],
    rest: Option<Ty>,
    call: Reflective,
) -> Function {
    Function { params, rest, code: Code::Reflective(call) }
}

/// The arguments of a function, already of the types it declared.
pub(crate) struct Args<'a>(pub(crate) &'a [Value]);

impl Args<'_> {
    pub(crate) fn any(&self, index: usize) -> &Value {
        self.0.get(index).unwrap_or(&Value::Nil)
    }

    pub(crate) fn from(&self, index: usize) -> &[Value] {
        self.0.get(index..).unwrap_or_default()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn text(&self, index: usize) -> Result<&str, Fault> {
        match self.any(index) {
            Value::Str(text) => Ok(text),
            Value::Raw(_) => Err(Fault::text("the text is not valid UTF-8; encode it first")),
            _ => Err(Fault::text("a string was expected")),
        }
    }

    pub(crate) fn bytes(&self, index: usize) -> &[u8] {
        self.any(index).string_bytes().unwrap_or_default()
    }

    pub(crate) fn int(&self, index: usize) -> i64 {
        match self.any(index) {
            Value::Int(number, _) => *number,
            _ => 0,
        }
    }

    pub(crate) fn flag(&self, index: usize) -> bool {
        matches!(self.any(index), Value::Bool(true))
    }

    pub(crate) fn map(&self, index: usize) -> Result<&Rc<Map>, Fault> {
        match self.any(index) {
            Value::Map(map) => Ok(map),
            _ => Err(Fault::text("a map was expected")),
        }
    }
}

static STANDARD: LazyLock<BTreeMap<&'static str, Function>> =
    LazyLock::new(|| sprig::tables().iter().flat_map(|table| table.iter().copied()).collect());

static BUILTIN: LazyLock<BTreeMap<&'static str, Function>> =
    LazyLock::new(|| builtin::TABLE.iter().copied().collect());

/// The functions a template may call. Added ones hide Sprig's, and Sprig's hide Go's own.
#[derive(Default)]
pub(crate) struct Library<'a> {
    added: BTreeMap<String, Host<'a>>,
}

impl<'a> Library<'a> {
    pub(crate) fn add(&mut self, name: &str, host: Host<'a>) {
        self.added.insert(name.to_owned(), host);
    }

    /// Another name for one of Sprig's functions.
    pub(crate) fn alias(&mut self, name: &str, known: &str) {
        let Some(Function { params, rest, code: Code::Pure(run) }) = STANDARD.get(known).copied()
        else {
            return;
        };
        self.add(name, Host { params, rest, run: Box::new(run) });
    }

    pub(crate) fn knows(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    pub(crate) fn find(&self, name: &str) -> Option<Found<'_>> {
        if let Some(Host { params, rest, run }) = self.added.get(name) {
            let call = Call::Host(run.as_ref());
            return Some(Found { params, rest: *rest, call, builtin: false });
        }
        let standard = STANDARD.get(name).map(|function| (function, false));
        let (function, builtin) =
            standard.or_else(|| BUILTIN.get(name).map(|function| (function, true)))?;
        let Function { params, rest, code } = *function;
        Some(Found { params, rest, call: Call::Code(code), builtin })
    }
}
