//! Running a parsed template.
//!
//! `at` is where Go would say that it is; every evaluation moves it exactly when Go does, because
//! messages name that place.

use cleat_dialect::quote;

use crate::library::{Env, Library, Slot};
use crate::limits::Fault;
use crate::node::{Branch, Node, Pipe, Place};
use crate::parse::Set;
use crate::print;
use crate::value::{Elem, Value};

mod call;
mod eval;

/// What a key that a map does not have stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissingKey {
    /// Nothing, printed as `<no value>`. This is what policies are resolved with.
    #[default]
    Invalid,
    /// The zero of the map's element type.
    Zero,
    /// A mistake.
    Error,
}

/// A complaint with its place, or a limit that was reached.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) message: String,
    pub(crate) fault: Fault,
}

type Run<T> = Result<T, Box<Failure>>;

pub(crate) fn execute(
    set: &Set,
    library: &Library<'_>,
    env: &Env,
    missing_key: MissingKey,
    data: Value,
) -> Result<Vec<u8>, Box<Failure>> {
    let dot = Slot::new(data);
    let mut exec = Exec {
        set,
        library,
        env,
        missing_key,
        out: Vec::new(),
        at: None,
        variables: vec![("$", dot.clone())],
        template: &set.name,
    };
    let Some(nodes) = set.templates.get(&set.name) else {
        let name = quote::quoted(&set.name);
        return exec.fail(format!("{name} is an incomplete or empty template"));
    };
    exec.list(&dot, nodes)?;
    Ok(exec.out)
}

struct Exec<'t> {
    set: &'t Set,
    library: &'t Library<'t>,
    env: &'t Env,
    missing_key: MissingKey,
    out: Vec<u8>,
    at: Option<Place<'t>>,
    variables: Vec<(&'t str, Slot)>,
    template: &'t str,
}

/// What follows a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
    On,
    Break,
    Continue,
}

impl<'t> Exec<'t> {
    fn list(&mut self, dot: &Slot, nodes: &'t [Node]) -> Run<Flow> {
        let env = self.env;
        let _level = env.budget.descend().map_err(|fault| self.stop(fault))?;
        for node in nodes {
            let flow = self.node(dot, node)?;
            if flow != Flow::On {
                return Ok(flow);
            }
        }
        Ok(Flow::On)
    }

    fn node(&mut self, dot: &Slot, node: &'t Node) -> Run<Flow> {
        self.at = Some(Place::Node(node));
        self.step()?;
        match node {
            Node::Text { text, .. } => self.write(text.as_bytes())?,
            Node::Action { pipe, .. } => {
                let slot = self.pipeline(dot, pipe)?;
                if pipe.variables.is_empty() {
                    self.at = Some(Place::Node(node));
                    self.print(&slot.value)?;
                }
            }
            Node::If(branch) => {
                return self.scoped(|exec| {
                    let slot = exec.pipeline(dot, &branch.pipe)?;
                    exec.choose(slot.value.truth(), dot, dot, branch)
                });
            }
            Node::With(branch) => {
                return self.scoped(|exec| {
                    let slot = exec.pipeline(dot, &branch.pipe)?;
                    exec.choose(slot.value.truth(), &slot, dot, branch)
                });
            }
            Node::Range(branch) => return self.scoped(|exec| exec.range(dot, branch)),
            Node::Template { name, pipe, .. } => self.invoke(dot, name, pipe.as_ref())?,
            Node::Break { .. } => return Ok(Flow::Break),
            Node::Continue { .. } => return Ok(Flow::Continue),
        }
        Ok(Flow::On)
    }

    /// Runs `body` and forgets the variables it declared.
    fn scoped(&mut self, body: impl FnOnce(&mut Self) -> Run<Flow>) -> Run<Flow> {
        let variables = self.variables.len();
        let flow = body(self)?;
        self.variables.truncate(variables);
        Ok(flow)
    }

    fn choose(
        &mut self,
        truth: bool,
        inside: &Slot,
        outside: &Slot,
        branch: &'t Branch,
    ) -> Run<Flow> {
        match &branch.otherwise {
            _ if truth => self.list(inside, &branch.list),
            Some(otherwise) => self.list(outside, otherwise),
            None => Ok(Flow::On),
        }
    }

    fn range(&mut self, dot: &Slot, branch: &'t Branch) -> Run<Flow> {
        let over = self.pipeline(dot, &branch.pipe)?.value;
        let pipe = &branch.pipe;
        let mut any = false;
        match &over {
            Value::Int(..) | Value::Uint(..) => {
                if pipe.variables.len() > 1 {
                    let shown = self.shown(&over)?;
                    return self
                        .fail(format!("can't use {shown} to iterate over more than one variable"));
                }
                let end = match over {
                    Value::Int(end, _) => u64::try_from(end).unwrap_or(0),
                    Value::Uint(end, _) => end,
                    _ => 0,
                };
                for index in 0..end {
                    any = true;
                    let element = match over {
                        Value::Uint(_, kind) => Value::Uint(index, kind),
                        Value::Int(_, kind) => {
                            Value::Int(i64::try_from(index).unwrap_or(i64::MAX), kind)
                        }
                        _ => Value::Nil,
                    };
                    if self.iterate(Slot::NOTHING, Slot::new(element), branch)? == Flow::Break {
                        break;
                    }
                }
            }
            Value::List(list) => {
                for (index, item) in list.items().iter().enumerate() {
                    any = true;
                    let element = Slot::boxed(item.clone(), list.elem == Elem::Any);
                    let index = Slot::new(Value::length(index));
                    if self.iterate(index, element, branch)? == Flow::Break {
                        break;
                    }
                }
            }
            Value::Map(map) => {
                // The body may change the map; Go sorts a copy of it first too.
                let entries: Vec<_> =
                    map.entries().iter().map(|(key, value)| (key.clone(), value.clone())).collect();
                for (key, value) in entries {
                    any = true;
                    let element = Slot::boxed(value, map.elem == Elem::Any);
                    let key = Slot::new(Value::text(key));
                    if self.iterate(key, element, branch)? == Flow::Break {
                        break;
                    }
                }
            }
            Value::Nil => {}
            _ => {
                let shown = self.shown(&over)?;
                return self.fail(format!("range can't iterate over {shown}"));
            }
        }
        match &branch.otherwise {
            Some(otherwise) if !any => self.list(dot, otherwise),
            _ => Ok(Flow::On),
        }
    }

    fn iterate(&mut self, index: Slot, element: Slot, branch: &'t Branch) -> Run<Flow> {
        self.step()?;
        let variables = self.variables.len();
        match branch.pipe.variables.as_slice() {
            [] => {}
            [only] => self.bind(&branch.pipe, only, 1, element.clone())?,
            [first, second, ..] if branch.pipe.assigns => {
                self.bind(&branch.pipe, first, 2, index)?;
                self.bind(&branch.pipe, second, 1, element.clone())?;
            }
            [first, second, ..] => {
                self.bind(&branch.pipe, second, 1, element.clone())?;
                self.bind(&branch.pipe, first, 2, index)?;
            }
        }
        let flow = self.list(&element, &branch.list)?;
        self.variables.truncate(variables);
        Ok(if flow == Flow::Break { Flow::Break } else { Flow::On })
    }

    /// Gives a loop variable its value: the one declared `from_top`, or an older one by name.
    fn bind(&mut self, pipe: &'t Pipe, name: &'t str, from_top: usize, slot: Slot) -> Run<()> {
        if pipe.assigns {
            return self.assign(name, slot);
        }
        let index = self.variables.len().checked_sub(from_top);
        if let Some((_, value)) = index.and_then(|index| self.variables.get_mut(index)) {
            *value = slot;
        }
        Ok(())
    }

    fn assign(&mut self, name: &'t str, slot: Slot) -> Run<()> {
        match self.variables.iter_mut().rev().find(|(known, _)| *known == name) {
            Some((_, value)) => {
                *value = slot;
                Ok(())
            }
            None => self.fail(format!("undefined variable: {name}")),
        }
    }

    fn invoke(&mut self, dot: &Slot, name: &'t str, pipe: Option<&'t Pipe>) -> Run<()> {
        let Some((name, nodes)) = self.set.templates.get_key_value(name) else {
            return self.fail(format!("template {} not defined", quote::quoted(name)));
        };
        let dot = match pipe {
            Some(pipe) => self.pipeline(dot, pipe)?,
            None => Slot::NOTHING,
        };
        let variables = std::mem::replace(&mut self.variables, vec![("$", dot.clone())]);
        let (template, at) = (self.template, self.at);
        self.template = name;
        self.list(&dot, nodes)?;
        self.template = template;
        self.at = at;
        self.variables = variables;
        Ok(())
    }

    fn print(&mut self, value: &Value) -> Run<()> {
        if value.is_nil() {
            return self.write(b"<no value>");
        }
        let bytes = print::plain(value, &self.env.budget).map_err(|fault| self.stop(fault))?;
        self.out.extend_from_slice(&bytes);
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Run<()> {
        self.env.budget.charge(bytes.len()).map_err(|fault| self.stop(fault))?;
        self.out.extend_from_slice(bytes);
        Ok(())
    }

    fn shown(&self, value: &Value) -> Run<String> {
        print::plain_text(value, &self.env.budget).map_err(|fault| self.stop(fault))
    }

    fn step(&self) -> Run<()> {
        self.env.budget.step().map_err(|fault| self.stop(fault))
    }

    fn fail<T>(&self, message: String) -> Run<T> {
        Err(self.stop(Fault::Text(message)))
    }

    /// Puts the place in front of a message.
    fn stop(&self, fault: Fault) -> Box<Failure> {
        self.stop_saying(fault, "")
    }

    fn stop_saying(&self, fault: Fault, prefix: &str) -> Box<Failure> {
        let text = fault.message();
        let message = match &self.at {
            None => format!("template: {}: {prefix}{text}", self.template),
            Some(place) => {
                let before = self.set.text.get(..place.pos()).unwrap_or_default();
                let line = 1 + before.bytes().filter(|byte| *byte == b'\n').count();
                let column = before.rfind('\n').map_or(before.len(), |at| before.len() - at - 1);
                format!(
                    "template: {}:{line}:{column}: executing {} at <{place}>: {prefix}{text}",
                    self.set.name,
                    quote::quoted(self.template),
                )
            }
        };
        Box::new(Failure { message, fault })
    }
}
