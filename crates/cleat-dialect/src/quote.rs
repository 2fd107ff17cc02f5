//! Values written the way Go's `fmt` writes them, because messages that clients match on were
//! formatted there: `%q`, `%#U`, `%v`, `%#v` and `%T`.
//!
//! Only what the API server's messages and printer columns need; this is no general formatter.

use std::fmt::Write as _;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Number, Value};

static PRINTABLE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^[\p{L}\p{M}\p{N}\p{P}\p{S} ]$").ok());

/// Whether Go counts `c` as printable: letters, marks, numbers, punctuation, symbols and the
/// plain space.
pub fn is_printable(c: char) -> bool {
    if c.is_ascii() {
        return (' '..='~').contains(&c);
    }
    let mut buffer = [0; 4];
    let text: &str = c.encode_utf8(&mut buffer);
    PRINTABLE.as_ref().is_some_and(|printable| printable.is_match(text))
}

/// `%q` of a string.
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            c if is_printable(c) => out.push(c),
            c => {
                let code = u32::from(c);
                let _ = match code {
                    0..=0x1f | 0x7f => write!(out, "\\x{code:02x}"),
                    0x80..=0xffff => write!(out, "\\u{code:04x}"),
                    _ => write!(out, "\\U{code:08x}"),
                };
            }
        }
    }
    out.push('"');
    out
}

/// `%#v` of a list of strings: `[]string{"a", "b"}`.
pub fn string_slice<S: AsRef<str>>(texts: &[S]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| quoted(text.as_ref())).collect();
    format!("[]string{{{}}}", texts.join(", "))
}

/// `%q` of a list of strings: `["a" "b"]`.
pub fn quoted_list<S: AsRef<str>>(texts: &[S]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| quoted(text.as_ref())).collect();
    format!("[{}]", texts.join(" "))
}

/// `%#U` of a character: `U+002A '*'`.
pub fn code_point(c: char) -> String {
    let code = u32::from(c);
    if is_printable(c) { format!("U+{code:04X} '{c}'") } else { format!("U+{code:04X}") }
}

/// `%v` of a JSON value as Go holds it: `map[a:1 b:[x y]]`, `<nil>`.
pub fn plain(value: &Value) -> String {
    let mut out = String::new();
    write_plain(&mut out, value);
    out
}

fn write_plain(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("<nil>"),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => out.push_str(&number_text(number)),
        Value::String(text) => out.push_str(text),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(' ');
                }
                write_plain(out, item);
            }
            out.push(']');
        }
        Value::Object(entries) => {
            out.push_str("map[");
            for (index, (key, item)) in entries.iter().enumerate() {
                if index > 0 {
                    out.push(' ');
                }
                out.push_str(key);
                out.push(':');
                write_plain(out, item);
            }
            out.push(']');
        }
    }
}

/// `%#v` of a JSON value as Go holds it: `map[string]interface {}{"a":1}`.
pub fn literal(value: &Value) -> String {
    let list = |items: Vec<String>| items.join(", ");
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::String(text) => quoted(text),
        Value::Array(items) => {
            format!("[]interface {{}}{{{}}}", list(items.iter().map(literal).collect()))
        }
        Value::Object(entries) => {
            let entry =
                |(key, item): (&String, &Value)| format!("{}:{}", quoted(key), literal(item));
            format!("map[string]interface {{}}{{{}}}", list(entries.iter().map(entry).collect()))
        }
        scalar => plain(scalar),
    }
}

/// `%T` of a JSON value as Go holds it.
pub fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// `%v` of a number: integers as they are, floats in their shortest form, with an exponent from
/// 1e+06 upwards and below 1e-04.
pub fn number_text(number: &Number) -> String {
    if number.is_i64() || number.is_u64() {
        return number.to_string();
    }
    number.as_f64().map_or_else(|| number.to_string(), float_text)
}

/// `%v` of a float.
pub fn float_text(value: f64) -> String {
    if value == 0.0 {
        return if value.is_sign_negative() { "-0".to_owned() } else { "0".to_owned() };
    }
    // Rust's own shortest form is the same digits, as `1.25e-5`.
    let scientific = format!("{value:e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    let Ok(exponent) = exponent.parse::<i32>() else { return scientific };
    if (-4..6).contains(&exponent) {
        return format!("{value}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn strings_are_quoted_as_in_go() {
        for (text, expected) in [
            ("plain", r#""plain""#),
            ("a\"b\\c", r#""a\"b\\c""#),
            ("tab\tnl\nbell\u{7}", r#""tab\tnl\nbell\a""#),
            ("\u{1}\u{7f}", r#""\x01\x7f""#),
            ("é\u{200b}\u{e0001}", r#""é\u200b\U000e0001""#),
        ] {
            assert_eq!(quoted(text), expected);
        }
        assert_eq!(code_point('*'), "U+002A '*'");
        assert_eq!(code_point('\n'), "U+000A");
    }

    #[test]
    fn values_are_printed_as_in_go() {
        for (value, expected) in [
            (json!(null), "<nil>"),
            (json!({"b": [1, "x", null], "a": {"c": true}}), "map[a:map[c:true] b:[1 x <nil>]]"),
            (json!(1.5), "1.5"),
            (json!(1e6), "1e+06"),
            (json!(123_456.0), "123456"),
            (json!(123_456_789.5), "1.234567895e+08"),
            (json!(0.0001), "0.0001"),
            (json!(0.00001), "1e-05"),
            (json!(1e21), "1e+21"),
            (json!(-0.5), "-0.5"),
            (json!(9_007_199_254_740_993_i64), "9007199254740993"),
        ] {
            assert_eq!(plain(&value), expected);
        }
        assert_eq!(
            literal(&json!({"a": ["x", 1, null]})),
            r#"map[string]interface {}{"a":[]interface {}{"x", 1, interface {}(nil)}}"#
        );
    }
}
