//! Calling functions and methods.

use cleat_dialect::quote;

use super::{Exec, Run};
use crate::library::{Args, Call, Code, Found, Slot, Ty};
use crate::limits::Fault;
use crate::methods::Method;
use crate::node::{Arg, Place};
use crate::value::Value;

impl<'t> Exec<'t> {
    pub(super) fn function(
        &mut self,
        dot: &Slot,
        place: Place<'t>,
        name: &'t str,
        args: &'t [Arg],
        last: Option<Slot>,
    ) -> Run<Slot> {
        let library = self.library;
        let Some(found) = library.find(name) else {
            return self.fail(format!("{} is not a defined function", quote::quoted(name)));
        };
        self.count(name, found.params.len(), found.rest.is_some(), args, last.as_ref())?;
        if found.builtin && matches!(name, "and" | "or") {
            return self.short_circuit(dot, name == "or", args, last);
        }
        let slots = self.arguments(dot, &found, args, last)?;
        let answer = match found.call {
            Call::Code(Code::Reflective(_)) if found.builtin && name == "call" => {
                self.refuse_call(args, &slots)
            }
            Call::Code(Code::Reflective(code)) => code(self.env, &slots),
            Call::Code(Code::Pure(code)) => code(self.env, &Args(&values(slots))).map(Slot::new),
            Call::Host(run) => run(self.env, &Args(&values(slots))).map(Slot::new),
        };
        let slot = answer.and_then(|slot| {
            self.env.budget.step()?;
            if let Some(bytes) = slot.value.string_bytes() {
                self.env.budget.charge(bytes.len())?;
            }
            Ok(slot)
        });
        slot.map_err(|fault| {
            self.at = Some(place);
            self.stop_saying(fault, &format!("error calling {name}: "))
        })
    }

    fn count(
        &self,
        name: &str,
        wanted: usize,
        variadic: bool,
        args: &[Arg],
        last: Option<&Slot>,
    ) -> Run<()> {
        let given = args.len() + usize::from(last.is_some());
        if variadic && given < wanted {
            let got = args.len();
            return self.fail(format!(
                "wrong number of args for {name}: want at least {wanted} got {got}"
            ));
        }
        if !variadic && given != wanted {
            return self
                .fail(format!("wrong number of args for {name}: want {wanted} got {given}"));
        }
        Ok(())
    }

    fn short_circuit(
        &mut self,
        dot: &Slot,
        stops_at: bool,
        args: &'t [Arg],
        last: Option<Slot>,
    ) -> Run<Slot> {
        let mut slot = Slot::NOTHING;
        for arg in args {
            slot = self.argument(dot, Some(Ty::Reflect), arg)?;
            if slot.value.truth() == stops_at {
                return Ok(slot);
            }
        }
        Ok(last.unwrap_or(slot))
    }

    fn arguments(
        &mut self,
        dot: &Slot,
        found: &Found<'_>,
        args: &'t [Arg],
        last: Option<Slot>,
    ) -> Run<Vec<Slot>> {
        let ty = |index: usize| found.params.get(index).copied().or(found.rest);
        let mut slots = Vec::with_capacity(args.len() + 1);
        for (index, arg) in args.iter().enumerate() {
            slots.push(self.argument(dot, Some(ty(index).unwrap_or(Ty::Any)), arg)?);
        }
        if let Some(last) = last {
            slots.push(self.fitting(last, ty(args.len()))?);
        }
        Ok(slots)
    }

    /// No value of a template is a function, so `call` can only explain why not.
    fn refuse_call(&self, args: &[Arg], slots: &[Slot]) -> Result<Slot, Fault> {
        let callee = slots.first().map_or(&Value::Nil, |slot| &slot.value);
        if callee.is_nil() {
            return Err(Fault::text("call of nil"));
        }
        let name = match (args.first(), callee) {
            (Some(arg), _) => arg.to_string(),
            (None, Value::Str(text)) => text.to_string(),
            (None, other) => format!("<{} Value>", other.type_name()),
        };
        Err(Fault::text(format!("non-function {name} of type {}", callee.type_name())))
    }

    pub(super) fn method(
        &mut self,
        dot: &Slot,
        method: Method,
        name: &str,
        receiver: &Value,
        args: &'t [Arg],
        last: Option<Slot>,
    ) -> Run<Slot> {
        let place = self.at;
        self.count(name, method.params.len(), false, args, last.as_ref())?;
        let ty = |index: usize| method.params.get(index).copied().unwrap_or(Ty::Any);
        let mut values = Vec::new();
        for (index, arg) in args.iter().enumerate() {
            values.push(self.argument(dot, Some(ty(index)), arg)?.value);
        }
        if let Some(last) = last {
            values.push(self.fitting(last, Some(ty(args.len())))?.value);
        }
        match (method.call)(receiver, &Args(&values)) {
            Ok(value) => Ok(Slot::new(value)),
            Err(fault) => {
                self.at = place;
                Err(self.stop_saying(fault, &format!("error calling {name}: ")))
            }
        }
    }
}

fn values(slots: Vec<Slot>) -> Vec<Value> {
    slots.into_iter().map(|slot| slot.value).collect()
}
