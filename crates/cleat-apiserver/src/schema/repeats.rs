//! Parsing JSON as serde_json does, and noticing on the way whether a key is given twice: a parsed
//! object has lost that, and looking for it apart would be a second parse of every body.
//!
//! Which keys those are is said by [`super::strict`].

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// The value, of keys given twice the last, and whether there are any.
pub(crate) fn parse(text: &str) -> Result<(Value, bool), serde_json::Error> {
    let mut repeats = false;
    let mut json = serde_json::Deserializer::from_str(text);
    let value = Reading { repeats: &mut repeats }.deserialize(&mut json)?;
    json.end()?;
    Ok((value, repeats))
}

struct Reading<'r> {
    repeats: &'r mut bool,
}

impl<'de> DeserializeSeed<'de> for Reading<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Value, D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reading<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any valid JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some(item) = items.next_element_seed(Reading { repeats: self.repeats })? {
            all.push(item);
        }
        Ok(Value::Array(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            let value = entries.next_value_seed(Reading { repeats: self.repeats })?;
            *self.repeats |= map.insert(key, value).is_some();
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::strict;
    use super::*;

    /// The same as without it, and `repeats` exactly if a second parse finds something.
    fn check(text: &str) {
        let plain = serde_json::from_str::<Value>(text);
        match (parse(text), plain) {
            (Ok((value, repeats)), Ok(plain)) => {
                assert_eq!(value, plain, "{text}");
                assert_eq!(repeats, !strict::duplicates(text.as_bytes()).is_empty(), "{text}");
            }
            (Err(error), Err(plain)) => assert_eq!(error.to_string(), plain.to_string(), "{text}"),
            (parsed, plain) => panic!("{parsed:?} is not {plain:?} of {text}"),
        }
    }

    #[test]
    fn it_reads_what_serde_json_reads() {
        let deep = "[".repeat(200);
        for text in [
            r#"{"a": {"b": [1, {"c": 1, "c": 2}]}, "d": -1.5e3}"#,
            r#"{"a": {"b": 1}, "c": {"b": 2}}"#,
            r#"[null, true, false, "\u00e4\ud834\udd1e", 18446744073709551615, -9223372036854775808]"#,
            r#"{"a": 1e400}"#,
            r#"{"a": 123456789012345678901234567890}"#,
            r#"{} {}"#,
            r#"{"a" 1}"#,
            r#"{"a": "#,
            "",
            &deep,
        ] {
            check(text);
        }
    }

    proptest! {
        #[test]
        fn and_any_text_like_it(text in r#"(\{|\}|\[|\]|"a"|"b"|:|,|1|null| ){0,24}"#) {
            check(&text);
        }
    }
}
