//! Pipelines, commands, variables and fields.

use cleat_dialect::quote;

use super::{Exec, MissingKey, Run};
use crate::library::{Slot, Ty};
use crate::methods;
use crate::node::{Arg, Command, Pipe, Place, What};
use crate::value::{Elem, Value};

impl<'t> Exec<'t> {
    pub(super) fn pipeline(&mut self, dot: &Slot, pipe: &'t Pipe) -> Run<Slot> {
        self.at = Some(Place::Pipe(pipe));
        let env = self.env;
        let _level = env.budget.descend().map_err(|fault| self.stop(fault))?;
        let mut last = None;
        for command in &pipe.commands {
            let mut slot = self.command(dot, command, last)?;
            slot.boxed = false;
            last = Some(slot);
        }
        let slot = last.unwrap_or(Slot::NOTHING);
        for name in &pipe.variables {
            if pipe.assigns {
                self.assign(name, slot.clone())?;
            } else {
                self.variables.push((name, slot.clone()));
            }
        }
        Ok(slot)
    }

    /// `last` is what the command before this one in the pipeline gave.
    fn command(&mut self, dot: &Slot, command: &'t Command, last: Option<Slot>) -> Run<Slot> {
        let Some(first) = command.args.first() else {
            return self.fail("empty command".to_owned());
        };
        let args = command.args.get(1..).unwrap_or_default();
        match &first.what {
            What::Field(names) => {
                self.at = Some(Place::Arg(first));
                return self.chain(dot, dot.clone(), names, args, last);
            }
            What::Chain(inner, names) => {
                return self.chain_of(dot, first, inner, names, args, last);
            }
            What::Function(name) => {
                self.at = Some(Place::Arg(first));
                return self.function(dot, Place::Command(command), name, args, last);
            }
            What::Pipe(pipe) => {
                self.not_a_function(first, args, last.as_ref())?;
                return self.pipeline(dot, pipe);
            }
            What::Variable(names) => return self.variable(dot, first, names, args, last),
            _ => {}
        }
        self.at = Some(Place::Arg(first));
        self.not_a_function(first, args, last.as_ref())?;
        match &first.what {
            What::Dot => Ok(dot.clone()),
            What::Nil => self.fail("nil is not a command".to_owned()),
            _ => self.constant(first),
        }
    }

    fn not_a_function(&self, first: &Arg, args: &[Arg], last: Option<&Slot>) -> Run<()> {
        if args.is_empty() && last.is_none() {
            return Ok(());
        }
        self.fail(format!("can't give argument to non-function {first}"))
    }

    /// A literal where no particular type is asked for.
    pub(super) fn constant(&self, arg: &Arg) -> Run<Slot> {
        let value = match &arg.what {
            What::Bool(flag) => Value::Bool(*flag),
            What::Text { bytes, .. } => Value::bytes(bytes.clone()),
            What::Number(number) => {
                if number.looks_like_float() {
                    Value::Float(number.float.unwrap_or_default())
                } else if let Some(int) = number.int {
                    Value::int(int)
                } else {
                    return self.fail(format!("{} overflows int", number.text));
                }
            }
            _ => {
                return self
                    .fail(format!("can't handle assignment of {arg} to empty interface argument"));
            }
        };
        Ok(Slot::new(value))
    }

    pub(super) fn variable(
        &mut self,
        dot: &Slot,
        arg: &'t Arg,
        names: &'t [String],
        args: &'t [Arg],
        last: Option<Slot>,
    ) -> Run<Slot> {
        self.at = Some(Place::Arg(arg));
        let Some((name, fields)) = names.split_first() else {
            return self.fail("a variable without a name".to_owned());
        };
        let slot = match self.variables.iter().rev().find(|(known, _)| known == name) {
            Some((_, slot)) => slot.clone(),
            None => return self.fail(format!("undefined variable: {name}")),
        };
        if fields.is_empty() {
            self.not_a_function(arg, args, last.as_ref())?;
            return Ok(slot);
        }
        self.chain(dot, slot, fields, args, last)
    }

    pub(super) fn chain_of(
        &mut self,
        dot: &Slot,
        arg: &'t Arg,
        inner: &'t Arg,
        names: &'t [String],
        args: &'t [Arg],
        last: Option<Slot>,
    ) -> Run<Slot> {
        self.at = Some(Place::Arg(arg));
        let receiver = self.argument(dot, None, inner)?;
        self.chain(dot, receiver, names, args, last)
    }

    /// `.X.Y.Z`, where only the last may be given arguments.
    pub(super) fn chain(
        &mut self,
        dot: &Slot,
        receiver: Slot,
        names: &'t [String],
        args: &'t [Arg],
        last: Option<Slot>,
    ) -> Run<Slot> {
        let Some((end, path)) = names.split_last() else { return Ok(receiver) };
        let mut receiver = receiver;
        for name in path {
            receiver = self.field(dot, name, &[], None, &receiver)?;
        }
        self.field(dot, end, args, last, &receiver)
    }

    fn field(
        &mut self,
        dot: &Slot,
        name: &str,
        args: &'t [Arg],
        last: Option<Slot>,
        receiver: &Slot,
    ) -> Run<Slot> {
        if receiver.is_nothing() {
            if self.missing_key == MissingKey::Error {
                let name = quote::quoted(name);
                return self.fail(format!("nil data; no entry for key {name}"));
            }
            return Ok(Slot::NOTHING);
        }
        let type_name = receiver.type_name();
        if receiver.value.is_nil() {
            return self.fail(format!("nil pointer evaluating {type_name}.{name}"));
        }
        if let Some(method) = methods::find(&receiver.value, name) {
            return self.method(dot, method, name, &receiver.value, args, last);
        }
        let has_args = !args.is_empty() || last.is_some();
        match &receiver.value {
            Value::Struct(shape) => {
                if let Some((_, field)) = shape.fields.iter().find(|(known, _)| known == name) {
                    if has_args {
                        return self.fail(format!(
                            "{name} has arguments but cannot be invoked as function"
                        ));
                    }
                    return Ok(Slot::new(field.clone()));
                }
            }
            Value::Map(map) => {
                if has_args {
                    return self.fail(format!("{name} is not a method but has arguments"));
                }
                let boxed = map.elem == Elem::Any;
                return match (map.get(name), self.missing_key) {
                    (Some(value), _) => Ok(Slot::boxed(value, boxed)),
                    (None, MissingKey::Invalid) => Ok(Slot::NOTHING),
                    (None, MissingKey::Zero) => Ok(Slot::boxed(map.elem.zero(), boxed)),
                    (None, MissingKey::Error) => {
                        let name = quote::quoted(name);
                        self.fail(format!("map has no entry for key {name}"))
                    }
                };
            }
            _ => {}
        }
        self.fail(format!("can't evaluate field {name} in type {type_name}"))
    }

    /// An argument for a parameter of type `ty`, or for no parameter at all.
    pub(super) fn argument(&mut self, dot: &Slot, ty: Option<Ty>, arg: &'t Arg) -> Run<Slot> {
        self.at = Some(Place::Arg(arg));
        let slot = match &arg.what {
            What::Dot => dot.clone(),
            What::Nil => match ty {
                Some(Ty::Any) => return Ok(Slot::NOTHING),
                Some(Ty::Reflect) => return Ok(Slot::NOTHING),
                Some(Ty::Map) => return Ok(Slot::new(Value::nil_map())),
                Some(ty) => return self.fail(format!("cannot assign nil to {}", ty.name())),
                None => return Ok(Slot::NOTHING),
            },
            What::Field(names) => self.chain(dot, dot.clone(), names, &[], None)?,
            What::Variable(names) => self.variable(dot, arg, names, &[], None)?,
            What::Pipe(pipe) => self.pipeline(dot, pipe)?,
            What::Function(name) => self.function(dot, Place::Arg(arg), name, &[], None)?,
            What::Chain(inner, names) => self.chain_of(dot, arg, inner, names, &[], None)?,
            What::Bool(_) | What::Number(_) | What::Text { .. } => {
                return self.literal(ty.unwrap_or(Ty::Any), arg);
            }
        };
        self.fitting(slot, ty)
    }

    /// A literal takes the type that is asked for, if it can.
    fn literal(&self, ty: Ty, arg: &Arg) -> Run<Slot> {
        let value = match (ty, &arg.what) {
            (Ty::Any | Ty::Reflect, _) => return self.constant(arg),
            (Ty::Bool, What::Bool(flag)) => Some(Value::Bool(*flag)),
            (Ty::Text, What::Text { bytes, .. }) => Some(Value::bytes(bytes.clone())),
            (Ty::Int, What::Number(number)) => number.int.map(Value::int),
            (Ty::Float, What::Number(number)) => number.float.map(Value::Float),
            _ => None,
        };
        let expected = match ty {
            _ if value.is_some() => "",
            Ty::Bool => "bool",
            Ty::Text => "string",
            Ty::Int => "integer",
            Ty::Float => "float",
            _ => {
                return self.fail(format!("can't handle {arg} for arg of type {}", ty.name()));
            }
        };
        match value {
            Some(value) => Ok(Slot::new(value)),
            None => self.fail(format!("expected {expected}; found {arg}")),
        }
    }

    /// Go's `validateType`.
    pub(super) fn fitting(&self, slot: Slot, ty: Option<Ty>) -> Run<Slot> {
        let Some(ty) = ty else { return Ok(slot) };
        if slot.is_nothing() {
            return match ty {
                Ty::Any | Ty::Reflect => Ok(Slot::NOTHING),
                Ty::Map => Ok(Slot::new(Value::nil_map())),
                _ => self.fail(format!("invalid value; expected {}", ty.name())),
            };
        }
        match ty {
            Ty::Reflect => Ok(slot),
            Ty::Any => Ok(Slot::new(slot.value)),
            _ if ty.accepts(&slot.value) => Ok(Slot::new(slot.value)),
            _ => {
                let got =
                    if slot.value.is_nil() { slot.type_name() } else { slot.value.type_name() };
                let expected = ty.name();
                self.fail(format!("wrong type for value; expected {expected}; got {got}"))
            }
        }
    }
}
