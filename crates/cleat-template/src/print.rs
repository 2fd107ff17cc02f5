//! Values as Go's `fmt` writes them: `Sprint`, `Sprintln`, `Sprintf` and all the ways in which a
//! verb can be wrong.

use cleat_dialect::quote;

use crate::limits::{Budget, Fault};
use crate::value::Value;

mod number;
mod verb;

/// `fmt.Sprint`: a space between two operands when neither is a string.
pub(crate) fn sprint(values: &[Value], budget: &Budget) -> Result<Vec<u8>, Fault> {
    let mut printer = Printer::new(budget);
    let mut after_text = true;
    for (index, value) in values.iter().enumerate() {
        let is_text = value.string_bytes().is_some();
        if index > 0 && !is_text && !after_text {
            printer.push(" ")?;
        }
        printer.value(value, 'v', &Flags::default(), 0)?;
        after_text = is_text;
    }
    Ok(printer.out)
}

pub(crate) fn sprintln(values: &[Value], budget: &Budget) -> Result<Vec<u8>, Fault> {
    let mut printer = Printer::new(budget);
    for (index, value) in values.iter().enumerate() {
        if index > 0 {
            printer.push(" ")?;
        }
        printer.value(value, 'v', &Flags::default(), 0)?;
    }
    printer.push("\n")?;
    Ok(printer.out)
}

pub(crate) fn sprintf(format: &str, values: &[Value], budget: &Budget) -> Result<Vec<u8>, Fault> {
    let mut printer = Printer::new(budget);
    verb::format(&mut printer, format, values)?;
    Ok(printer.out)
}

/// One value with one verb and no flags.
pub(crate) fn with_verb(value: &Value, verb: char, budget: &Budget) -> Result<String, Fault> {
    let mut printer = Printer::new(budget);
    printer.value(value, verb, &Flags::default(), 0)?;
    Ok(String::from_utf8_lossy(&printer.out).into_owned())
}

/// `%v`.
pub(crate) fn plain(value: &Value, budget: &Budget) -> Result<Vec<u8>, Fault> {
    sprint(std::slice::from_ref(value), budget)
}

/// `%v` for use in text.
pub(crate) fn plain_text(value: &Value, budget: &Budget) -> Result<String, Fault> {
    Ok(String::from_utf8_lossy(&plain(value, budget)?).into_owned())
}

#[derive(Clone, Debug, Default)]
struct Flags {
    plus: bool,
    minus: bool,
    sharp: bool,
    space: bool,
    zero: bool,
    width: Option<usize>,
    precision: Option<usize>,
    /// `%+v` and `%#v` change what is written, not how it is padded.
    plus_v: bool,
    sharp_v: bool,
}

struct Printer<'a> {
    out: Vec<u8>,
    budget: &'a Budget,
}

impl<'a> Printer<'a> {
    fn new(budget: &'a Budget) -> Self {
        Self { out: Vec::new(), budget }
    }

    fn push(&mut self, text: &str) -> Result<(), Fault> {
        self.push_bytes(text.as_bytes())
    }

    fn push_bytes(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        self.budget.charge(bytes.len())?;
        self.out.extend_from_slice(bytes);
        Ok(())
    }

    fn value(
        &mut self,
        value: &Value,
        verb: char,
        flags: &Flags,
        depth: usize,
    ) -> Result<(), Fault> {
        let _level = self.budget.descend()?;
        self.budget.step()?;
        match (value, verb) {
            (_, 'T') if depth == 0 => return self.padded(value.type_name().as_bytes(), flags),
            (Value::Nil, 'v') if depth == 0 => return self.padded(b"<nil>", flags),
            (Value::Nil, _) if depth == 0 => return self.bad_verb(value, verb, flags),
            (Value::Nil, _) if flags.sharp_v => return self.push("interface {}(nil)"),
            (Value::Nil, _) => return self.push("<nil>"),
            _ => {}
        }
        match value {
            Value::Nil => Ok(()),
            Value::Bool(flag) if matches!(verb, 't' | 'v') => {
                self.padded(if *flag { b"true" } else { b"false" }, flags)
            }
            Value::Int(number, _) => {
                self.integer(value, *number < 0, number.unsigned_abs(), verb, flags)
            }
            Value::Uint(number, _) => self.integer(value, false, *number, verb, flags),
            Value::Float(number) => self.float(value, *number, verb, flags),
            Value::Str(text) => self.text(value, text.as_bytes(), verb, flags),
            Value::Raw(bytes) => self.text(value, bytes, verb, flags),
            Value::Time(time) if "vsxXq".contains(verb) => {
                self.text(value, time.to_string().as_bytes(), verb, flags)
            }
            Value::Version(version) if "vsxXq".contains(verb) => {
                self.text(value, version.to_string().as_bytes(), verb, flags)
            }
            Value::List(_) | Value::Map(_) | Value::Struct(_) => {
                self.container(value, verb, flags, depth)
            }
            Value::Bool(_) | Value::Time(_) | Value::Version(_) => {
                self.bad_verb(value, verb, flags)
            }
        }
    }

    fn container(
        &mut self,
        value: &Value,
        verb: char,
        flags: &Flags,
        depth: usize,
    ) -> Result<(), Fault> {
        let (open, close, between) = match (value, flags.sharp_v) {
            (Value::List(_), false) => ("[", "]", " "),
            (Value::Map(_), false) => ("map[", "]", " "),
            (_, false) => ("{", "}", " "),
            (_, true) => ("{", "}", ", "),
        };
        if flags.sharp_v {
            self.push(&value.type_name())?;
            if matches!(value, Value::List(list) if list.nil)
                || matches!(value, Value::Map(map) if map.nil)
            {
                return self.push("(nil)");
            }
        }
        self.push(open)?;
        let mut separate = "";
        match value {
            Value::List(list) => {
                for item in list.items() {
                    self.push(separate)?;
                    self.value(item, verb, flags, depth + 1)?;
                    separate = between;
                }
            }
            Value::Map(map) => {
                for (key, item) in map.entries().iter() {
                    self.push(separate)?;
                    self.value(&Value::text(key), verb, flags, depth + 1)?;
                    self.push(":")?;
                    self.value(item, verb, flags, depth + 1)?;
                    separate = between;
                }
            }
            Value::Struct(shape) => {
                for (name, field) in &shape.fields {
                    self.push(separate)?;
                    if flags.plus_v || flags.sharp_v {
                        self.push(name)?;
                        self.push(":")?;
                    }
                    self.value(field, verb, flags, depth + 1)?;
                    separate = between;
                }
            }
            _ => {}
        }
        self.push(close)
    }

    fn text(
        &mut self,
        value: &Value,
        bytes: &[u8],
        verb: char,
        flags: &Flags,
    ) -> Result<(), Fault> {
        match verb {
            'v' if flags.sharp_v => self.quoted(bytes, flags),
            'v' | 's' => {
                let cut = truncated(bytes, flags.precision);
                self.padded(cut, flags)
            }
            'q' => {
                let cut = truncated(bytes, flags.precision).to_vec();
                self.quoted(&cut, flags)
            }
            'x' | 'X' => {
                self.budget.charge(bytes.len().saturating_mul(3))?;
                let bytes = bytes.get(..flags.precision.unwrap_or(bytes.len())).unwrap_or(bytes);
                let text = hex_text(bytes, verb, flags);
                self.padded(text.as_bytes(), flags)
            }
            _ => self.bad_verb(value, verb, flags),
        }
    }

    fn quoted(&mut self, bytes: &[u8], flags: &Flags) -> Result<(), Fault> {
        let text = quoted_bytes(bytes);
        let raw = String::from_utf8_lossy(bytes);
        if flags.sharp && !raw.contains('`') && raw.chars().all(|c| c == '\t' || !c.is_control()) {
            return self.padded(format!("`{raw}`").as_bytes(), flags);
        }
        self.padded(text.as_bytes(), flags)
    }

    fn bad_verb(&mut self, value: &Value, verb: char, flags: &Flags) -> Result<(), Fault> {
        self.push(&format!("%!{verb}("))?;
        if value.is_nil() {
            self.push("<nil>")?;
        } else {
            self.push(&value.type_name())?;
            self.push("=")?;
            self.value(value, 'v', flags, 0)?;
        }
        self.push(")")
    }

    /// Width counts characters, not bytes.
    fn padded(&mut self, bytes: &[u8], flags: &Flags) -> Result<(), Fault> {
        let length = String::from_utf8_lossy(bytes).chars().count();
        let missing = flags.width.unwrap_or(0).saturating_sub(length);
        self.budget.charge(missing)?;
        if flags.minus {
            self.push_bytes(bytes)?;
            self.out.extend(std::iter::repeat_n(b' ', missing));
        } else {
            let fill = if flags.zero { b'0' } else { b' ' };
            self.out.extend(std::iter::repeat_n(fill, missing));
            self.push_bytes(bytes)?;
        }
        Ok(())
    }
}

fn truncated(bytes: &[u8], precision: Option<usize>) -> &[u8] {
    let Some(limit) = precision else { return bytes };
    match std::str::from_utf8(bytes) {
        Ok(text) => {
            let end = text.char_indices().nth(limit).map_or(text.len(), |(index, _)| index);
            bytes.get(..end).unwrap_or(bytes)
        }
        Err(_) => bytes.get(..limit).unwrap_or(bytes),
    }
}

fn hex_text(bytes: &[u8], verb: char, flags: &Flags) -> String {
    let mut text = String::new();
    for (index, byte) in bytes.iter().enumerate() {
        if flags.space && index > 0 {
            text.push(' ');
        }
        if flags.sharp && (flags.space || index == 0) {
            text.push('0');
            text.push(verb);
        }
        text += &if verb == 'x' { format!("{byte:02x}") } else { format!("{byte:02X}") };
    }
    text
}

/// `%q` of a string that may not be UTF-8.
pub(crate) fn quoted_bytes(bytes: &[u8]) -> String {
    let mut out = String::from("\"");
    for chunk in bytes.utf8_chunks() {
        let inner = quote::quoted(chunk.valid());
        out += inner.get(1..inner.len().saturating_sub(1)).unwrap_or_default();
        for byte in chunk.invalid() {
            out += &format!("\\x{byte:02x}");
        }
    }
    out.push('"');
    out
}
