//! The format string of `Sprintf`: flags, widths, precisions, argument numbers, and the texts that
//! stand where an argument is missing, wrong or left over.

use super::{Flags, Printer};
use crate::limits::Fault;
use crate::value::Value;

/// Go ignores widths and precisions beyond this.
const LARGEST: usize = 1_000_000;

pub(super) fn format(
    printer: &mut Printer<'_>,
    format: &str,
    values: &[Value],
) -> Result<(), Fault> {
    let mut state = State { rest: format, values, next: 0, reordered: false };
    let mut any_reordered = false;
    while let Some(start) = state.rest.find('%') {
        let (text, directive) = state.rest.split_at(start);
        printer.push(text)?;
        state.rest = directive.get(1..).unwrap_or_default();
        state.directive(printer)?;
        any_reordered |= state.reordered;
    }
    printer.push(state.rest)?;
    if !any_reordered && state.next < values.len() {
        printer.push("%!(EXTRA ")?;
        for (index, value) in values.iter().skip(state.next).enumerate() {
            if index > 0 {
                printer.push(", ")?;
            }
            if value.is_nil() {
                printer.push("<nil>")?;
            } else {
                printer.push(&value.type_name())?;
                printer.push("=")?;
                printer.value(value, 'v', &Flags::default(), 0)?;
            }
        }
        printer.push(")")?;
    }
    Ok(())
}

struct State<'a> {
    rest: &'a str,
    values: &'a [Value],
    next: usize,
    reordered: bool,
}

impl<'a> State<'a> {
    fn directive(&mut self, printer: &mut Printer<'_>) -> Result<(), Fault> {
        let mut flags = Flags::default();
        self.reordered = false;
        while let Some(c) = self.rest.chars().next() {
            match c {
                '#' => flags.sharp = true,
                '0' => flags.zero = true,
                '+' => flags.plus = true,
                '-' => flags.minus = true,
                ' ' => flags.space = true,
                _ => break,
            }
            self.rest = self.rest.get(1..).unwrap_or_default();
        }
        let mut good = self.argument_number();
        let mut after_index = self.reordered_now(&good);
        if self.take('*') {
            match self.star() {
                Some(width) => {
                    flags.minus |= width < 0;
                    flags.width = usize::try_from(width.unsigned_abs()).ok();
                }
                None => printer.push("%!(BADWIDTH)")?,
            }
            after_index = false;
        } else if let Some(width) = self.number() {
            flags.width = Some(width);
            if after_index {
                good = Index::Bad;
            }
        }
        if self.take('.') {
            if after_index {
                good = Index::Bad;
            }
            good = good.and(self.argument_number());
            after_index = self.reordered_now(&good);
            if self.take('*') {
                match self.star() {
                    Some(precision) if precision >= 0 => {
                        flags.precision = usize::try_from(precision).ok();
                    }
                    Some(_) => {}
                    None => printer.push("%!(BADPREC)")?,
                }
                after_index = false;
            } else {
                flags.precision = Some(self.number().unwrap_or(0));
            }
        }
        if !after_index {
            good = good.and(self.argument_number());
        }
        self.verb(printer, flags, &good)
    }

    fn verb(
        &mut self,
        printer: &mut Printer<'_>,
        mut flags: Flags,
        good: &Index,
    ) -> Result<(), Fault> {
        let Some(verb) = self.rest.chars().next() else { return printer.push("%!(NOVERB)") };
        self.rest = self.rest.get(verb.len_utf8()..).unwrap_or_default();
        if verb == '%' {
            return printer.push("%");
        }
        if matches!(good, Index::Bad) {
            return printer.push(&format!("%!{verb}(BADINDEX)"));
        }
        let Some(value) = self.values.get(self.next) else {
            return printer.push(&format!("%!{verb}(MISSING)"));
        };
        self.next += 1;
        if verb == 'v' {
            flags.sharp_v = std::mem::take(&mut flags.sharp);
            flags.plus_v = std::mem::take(&mut flags.plus);
        }
        if flags.minus {
            flags.zero = false;
        }
        printer.value(value, verb, &flags, 0)
    }

    fn reordered_now(&self, index: &Index) -> bool {
        matches!(index, Index::Given)
    }

    /// `[3]`, one-based, sets the next argument.
    fn argument_number(&mut self) -> Index {
        let Some(inside) = self.rest.strip_prefix('[') else { return Index::None };
        self.reordered = true;
        let Some((digits, rest)) = inside.split_once(']') else {
            self.rest = inside;
            return Index::Bad;
        };
        self.rest = rest;
        match digits.parse::<usize>() {
            Ok(number) if number >= 1 && number <= self.values.len() => {
                self.next = number - 1;
                Index::Given
            }
            _ => Index::Bad,
        }
    }

    fn star(&mut self) -> Option<i64> {
        let value = self.values.get(self.next)?;
        self.next += 1;
        let width = match value {
            Value::Int(width, _) => *width,
            Value::Uint(width, _) => i64::try_from(*width).ok()?,
            _ => return None,
        };
        (width.unsigned_abs() <= LARGEST as u64).then_some(width)
    }

    fn number(&mut self) -> Option<usize> {
        let digits =
            self.rest.len() - self.rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, rest) = self.rest.split_at(digits);
        let number: usize = number.parse().ok().filter(|number| *number <= LARGEST)?;
        self.rest = rest;
        Some(number)
    }

    fn take(&mut self, wanted: char) -> bool {
        match self.rest.strip_prefix(wanted) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }
}

enum Index {
    None,
    Given,
    Bad,
}

impl Index {
    fn and(self, later: Self) -> Self {
        match (self, later) {
            (Self::Bad, _) | (_, Self::Bad) => Self::Bad,
            (_, Self::Given) | (Self::Given, _) => Self::Given,
            _ => Self::None,
        }
    }
}
