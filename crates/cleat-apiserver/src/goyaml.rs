//! YAML the way Go's library reads it for kube-apiserver: as JSON, of keys given twice the last,
//! `yes` and `off` as booleans, `0644` as the number that file modes mean by it.
//!
//! Reading only. What a mistake in the YAML itself is called is in part the parser's own choice of
//! words.

use std::collections::BTreeSet;
use std::{fmt, thread};

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::{DuplicateKeyPolicy, MergeKeyPolicy, Spanned};

use crate::quote::quoted;

/// As deep as JSON may be. Go's library goes on to ten thousand levels; nothing that is stored is as
/// deep as this.
const DEEPEST: usize = 127;
const TOO_DEEP: &str = "yaml: exceeded max depth of 10000";

pub(crate) struct Document {
    pub(crate) value: Value,
    /// What there is to say of each key that was given twice.
    pub(crate) repeats: Vec<String>,
}

/// What a strict reader says of keys that were given twice.
pub(crate) fn complaint(repeats: &[String]) -> String {
    format!("yaml: unmarshal errors:\n  {}", repeats.join("\n  "))
}

/// Reads one document.
///
/// Errors: in the words of Go's library, as far as they are known here.
pub(crate) fn read(body: &[u8]) -> Result<Document, String> {
    let text = str::from_utf8(body).map_err(|_| "yaml: invalid leading UTF-8 octet".to_owned())?;
    if text.trim().is_empty() {
        return Ok(Document { value: Value::Null, repeats: Vec::new() });
    }
    thread::scope(|scope| {
        let reading = thread::Builder::new().stack_size(STACK).spawn_scoped(scope, || parse(text));
        let read = reading.map(|reading| reading.join());
        read.ok().and_then(Result::ok).unwrap_or_else(|| Err("yaml: cannot be read now".to_owned()))
    })
}

/// The parser calls itself for every level, and a worker's own stack would not do for as many as there
/// may be.
const STACK: usize = 16 << 20;

fn parse(text: &str) -> Result<Document, String> {
    let options = serde_saphyr::options! {
        duplicate_keys: DuplicateKeyPolicy::LastWins,
        merge_keys: MergeKeyPolicy::AsOrdinary,
        legacy_octal_numbers: true,
        with_snippet: false,
        budget: serde_saphyr::budget! { max_depth: DEEPEST },
    };
    let node: Node =
        serde_saphyr::from_str_with_options(text, options).map_err(|error| worded(&error))?;
    let mut repeats = Vec::new();
    let value = node.into_json(&mut repeats)?;
    Ok(Document { value, repeats })
}

/// What was written, with every key as often as it was.
enum Node {
    Leaf(Value),
    List(Vec<Node>),
    Map(Vec<(Node, Spanned<Node>)>),
}

impl Node {
    fn into_json(self, repeats: &mut Vec<String>) -> Result<Value, String> {
        match self {
            Self::Leaf(value) => Ok(value),
            Self::List(items) => {
                let items = items.into_iter().map(|item| item.into_json(repeats));
                items.collect::<Result<Vec<Value>, String>>().map(Value::Array)
            }
            Self::Map(entries) => {
                let (mut map, mut seen) = (Map::new(), BTreeSet::new());
                put_all(entries, &mut map, &mut seen, repeats)?;
                Ok(Value::Object(map))
            }
        }
    }
}

/// Puts entries into a map, over what is there. `seen` are the keys as they were written: a number
/// and its text are two of them, and become one.
fn put_all(
    entries: Vec<(Node, Spanned<Node>)>,
    map: &mut Map<String, Value>,
    seen: &mut BTreeSet<String>,
    repeats: &mut Vec<String>,
) -> Result<(), String> {
    for (key, entry) in entries {
        let (name, shown) = match key.into_json(repeats)? {
            Value::String(text) if text == MERGE => {
                merge(entry.value, map, seen, repeats)?;
                continue;
            }
            Value::String(text) => {
                let shown = quoted(&text);
                (text, shown)
            }
            other => (other.to_string(), other.to_string()),
        };
        let line = entry.referenced.line();
        let value = entry.value.into_json(repeats)?;
        if !seen.insert(shown.clone()) {
            repeats.push(format!("line {line}: key {shown} already set in map"));
        }
        map.insert(name, value);
    }
    Ok(())
}

/// A key that stands for all entries of another map, or of several, of which the first counts most.
const MERGE: &str = "<<";

fn merge(
    from: Node,
    map: &mut Map<String, Value>,
    seen: &mut BTreeSet<String>,
    repeats: &mut Vec<String>,
) -> Result<(), String> {
    let refused = || "yaml: map merge requires map or sequence of maps as the value".to_owned();
    match from {
        Node::Map(entries) => put_all(entries, map, seen, repeats),
        Node::List(items) => items.into_iter().rev().try_for_each(|item| match item {
            Node::Map(entries) => put_all(entries, map, seen, repeats),
            _ => Err(refused()),
        }),
        Node::Leaf(_) => Err(refused()),
    }
}

/// Both parsers descend from one that said first what it was doing and then what was wrong; Go's
/// tells the latter. Not all they find wrong is the same, nor always in the same line.
fn worded(error: &serde_saphyr::Error) -> String {
    use serde_saphyr::{Error, budget::BudgetBreach};
    let error = error.without_snippet();
    let (msg, location) = match error {
        Error::Budget { breach: BudgetBreach::Depth { .. }, .. } => return TOO_DEEP.to_owned(),
        Error::ExternalMessage { msg, .. } if msg == "recursion limit exceeded" => {
            return TOO_DEEP.to_owned();
        }
        Error::ExternalMessage { msg, location, .. } => (msg, location),
        _ => return format!("yaml: {error}"),
    };
    let wrong = match msg.strip_prefix("while ").and_then(|doing| doing.split_once(", ")) {
        Some((_, wrong)) => wrong,
        None => msg,
    };
    let missed = if wrong.starts_with("expected ") { "did not find " } else { "" };
    format!("yaml: line {}: {missed}{wrong}", location.line())
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(yaml: D) -> Result<Self, D::Error> {
        yaml.deserialize_any(Reading)
    }
}

struct Reading;

impl<'de> Visitor<'de> for Reading {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("YAML")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Leaf(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Ok(Node::Leaf(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        Ok(Node::Leaf(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Node, E> {
        // Go writes JSON without a point where nothing comes after it.
        #[expect(clippy::cast_possible_truncation, reason = "checked to be whole and small")]
        let whole = (value.fract() == 0.0 && value.abs() < 9e15).then_some(value as i64);
        let number = whole.map(Number::from).or_else(|| Number::from_f64(value));
        Ok(Node::Leaf(number.map_or(Value::Null, Value::Number)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Node, E> {
        Ok(Node::Leaf(value.into()))
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Leaf(Value::Null))
    }

    fn visit_none<E>(self) -> Result<Node, E> {
        Ok(Node::Leaf(Value::Null))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Node, A::Error> {
        let mut all = Vec::new();
        while let Some(item) = items.next_element()? {
            all.push(item);
        }
        Ok(Node::List(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Node, A::Error> {
        let mut all = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            all.push(entry);
        }
        Ok(Node::Map(all))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn value(text: &str) -> Value {
        read(text.as_bytes()).unwrap().value
    }

    #[test]
    fn scalars_are_those_of_yaml_1_1() {
        for (text, expected) in [
            ("0644", json!(420)),
            ("0o644", json!(420)),
            ("0x1f", json!(31)),
            ("-5", json!(-5)),
            ("1e3", json!(1000)),
            ("2.0", json!(2)),
            ("2.5", json!(2.5)),
            ("\"0644\"", json!("0644")),
            ("yes", json!(true)),
            ("Off", json!(false)),
            ("'yes'", json!("yes")),
            ("~", Value::Null),
            ("", Value::Null),
            ("2026-11-18", json!("2026-11-18")),
            ("12:30", json!("12:30")),
            ("v1", json!("v1")),
        ] {
            assert_eq!(value(text), expected, "{text}");
        }
    }

    #[test]
    fn keys_are_texts_whatever_they_look_like() {
        assert_eq!(
            value("1: a\ntrue: b\nnull: c\n"),
            json!({ "1": "a", "true": "b", "null": "c" })
        );
    }

    #[test]
    fn anchors_and_merges_are_followed() {
        let text =
            "a: &a {x: 1, w: 2}\nb: *a\nc:\n  <<: *a\n  w: 3\nd:\n  <<: [{x: 1}, {x: 2, z: 3}]\n";
        assert_eq!(
            value(text),
            json!({
                "a": { "x": 1, "w": 2 }, "b": { "x": 1, "w": 2 }, "c": { "x": 1, "w": 3 },
                "d": { "x": 1, "z": 3 },
            })
        );
        assert!(read(b"a:\n  <<: 5\n").is_err());
    }

    #[test]
    fn of_keys_given_twice_the_last_counts_and_all_are_told() {
        let text = "a: 1\nb:\n  c: 1\n  c:\n    d: 2\na:\n- x\n\"a\": 3\n";
        let read = read(text.as_bytes()).unwrap();
        assert_eq!(read.value, json!({ "a": 3, "b": { "c": { "d": 2 } } }));
        assert_eq!(
            read.repeats,
            [
                "line 5: key \"c\" already set in map",
                "line 7: key \"a\" already set in map",
                "line 8: key \"a\" already set in map"
            ]
        );
    }

    #[test]
    fn depth_has_an_end() {
        let error = read("[".repeat(20_000).as_bytes()).err();
        assert_eq!(error.as_deref(), Some(TOO_DEEP));
        let error = read(
            (0..300)
                .map(|depth| format!("{}a:\n", " ".repeat(depth)))
                .collect::<String>()
                .as_bytes(),
        )
        .err();
        assert_eq!(error.as_deref(), Some(TOO_DEEP));
        assert!(read(format!("{}{}", "[".repeat(120), "]".repeat(120)).as_bytes()).is_ok());
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "([a-c]: |- |\\{|\\}|\\[|\\]|&a |\\*a|<<: |\n|  |'|\"|0|1|\\||>){0,24}") {
            let _ = read(text.as_bytes());
        }
    }
}
