//! Reading the first document of a YAML text as JSON.
//!
//! Depth and the work done for aliases are bounded, so a small text cannot become a huge value.

use std::borrow::Cow;
use std::collections::BTreeMap;

use granit_parser::{ErrorKind, Event, Options, Parser, ScalarStyle, Tag};
use serde_json::{Map, Number, Value};

use super::{Scalar, scalar};

const DEPTH: usize = 120;
/// Nodes that aliases may repeat.
const REPEATED: usize = 100_000;

/// Quoted scalars whose lines are indented too little that are put right before giving up.
const REPAIRS: usize = 256;

/// # Errors
/// Text that is not YAML, keys that are not strings, and values that JSON cannot hold.
pub(crate) fn read(text: &str) -> Result<Value, String> {
    let mut text = Cow::Borrowed(text);
    for _ in 0..REPAIRS {
        match document(&text) {
            Ok(value) => return Ok(value),
            Err(Mistake { message, indentation: None }) => return Err(message),
            Err(Mistake { message, indentation: Some(at) }) => {
                text = Cow::Owned(indented(&text, at).ok_or(message)?);
            }
        }
    }
    Err("yaml: too many quoted values with lines that are indented too little".to_owned())
}

/// What is wrong with a document, and where, if a line of a quoted scalar is indented too little.
struct Mistake {
    message: String,
    indentation: Option<usize>,
}

impl From<String> for Mistake {
    fn from(message: String) -> Self {
        Self { message, indentation: None }
    }
}

fn parser(text: &str) -> Events<'_> {
    let mut options = Options::default();
    options.emit_comments = false;
    options.flow_nesting_limit = DEPTH;
    options.block_nesting_limit = DEPTH;
    Parser::new_from_str_with_options(text, options)
}

fn document(text: &str) -> Result<Value, Mistake> {
    let mut reader = Reader { text, events: parser(text), anchors: BTreeMap::new(), repeated: 0 };
    loop {
        match reader.next()? {
            Event::StreamStart | Event::DocumentStart(..) => {}
            Event::StreamEnd | Event::DocumentEnd => return Ok(Value::Null),
            event => return Ok(reader.node(event, 0)?.value),
        }
    }
}

/// YAML wants every line of a quoted scalar indented more than the key it belongs to; the library
/// that policies were written for does not, and templates that give several lines rely on it.
/// Space at the start of such a line means nothing, so it can be added.
fn indented(text: &str, at: usize) -> Option<String> {
    let line = text.get(..at)?.rfind('\n')?;
    let start = parser(text.get(..line)?).find_map(|event| match event {
        Err(error) if *error.kind() == ErrorKind::UnclosedQuotedScalar => {
            Some((error.marker().byte_offset()?, error.marker().col()))
        }
        _ => None,
    });
    let (start, column) = start?;
    let (before, scalar) = text.split_at_checked(start)?;
    let quote = scalar.chars().next()?;
    let mut end = scalar.len();
    let mut chars = scalar.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' if quote == '"' => {
                chars.next();
            }
            '\'' if quote == '\'' && chars.peek().is_some_and(|(_, next)| *next == '\'') => {
                chars.next();
            }
            c if c == quote => {
                end = at;
                break;
            }
            _ => {}
        }
    }
    let (scalar, after) = scalar.split_at_checked(end)?;
    let pad = format!("\n{}", " ".repeat(column + 1));
    Some([before, &scalar.replace('\n', &pad), after].concat())
}

type Events<'a> = Parser<'a, granit_parser::StrInput<'a>>;

struct Reader<'a> {
    text: &'a str,
    events: Events<'a>,
    anchors: BTreeMap<usize, (Value, usize)>,
    repeated: usize,
}

/// A value, how many nodes it has, and what it is as a key.
struct Node {
    value: Value,
    size: usize,
    key: Key,
}

enum Key {
    Text(String),
    Merge,
    Other,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Result<Event<'a>, Mistake> {
        let error = match self.events.next() {
            Some(Ok((event, _))) => return Ok(event),
            Some(Err(error)) => error,
            None => return Ok(Event::StreamEnd),
        };
        let message = match error.kind() {
            ErrorKind::UnknownAnchor => {
                let alias = error.marker().byte_offset().and_then(|at| self.text.get(at..));
                let name = alias.unwrap_or_default().trim_start_matches('*');
                let ends = |c: char| c.is_whitespace() || matches!(c, ',' | ']' | '}');
                let name = name.split(ends).next().unwrap_or_default();
                format!("yaml: unknown anchor '{name}' referenced")
            }
            _ => format!("yaml: line {}: {}", error.marker().line(), error.info()),
        };
        let indentation = match error.kind() {
            ErrorKind::InvalidQuotedScalarIndent | ErrorKind::TabInIndentation => {
                error.marker().byte_offset()
            }
            _ => None,
        };
        Err(Mistake { message, indentation })
    }

    fn node(&mut self, event: Event<'a>, depth: usize) -> Result<Node, Mistake> {
        if depth > DEPTH {
            return Err("yaml: exceeded max depth".to_owned().into());
        }
        let (node, anchor) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                (scalar_node(&text, style, tag.as_deref())?, anchor)
            }
            Event::SequenceStart(_, anchor, _) => (self.sequence(depth)?, anchor),
            Event::MappingStart(_, anchor, _) => (self.mapping(depth)?, anchor),
            Event::Alias(anchor) => {
                let Some((value, size)) = self.anchors.get(&anchor).cloned() else {
                    return Err("yaml: an anchor contains itself".to_owned().into());
                };
                self.repeated += size;
                if self.repeated > REPEATED {
                    return Err("yaml: document contains excessive aliasing".to_owned().into());
                }
                let key = match &value {
                    Value::String(text) => Key::Text(text.clone()),
                    _ => Key::Other,
                };
                return Ok(Node { value, size, key });
            }
            _ => return Err("yaml: a value was expected".to_owned().into()),
        };
        if anchor != 0 {
            self.anchors.insert(anchor, (node.value.clone(), node.size));
        }
        Ok(node)
    }

    fn sequence(&mut self, depth: usize) -> Result<Node, Mistake> {
        let mut items = Vec::new();
        let mut size = 1;
        loop {
            match self.next()? {
                Event::SequenceEnd => break,
                event => {
                    let item = self.node(event, depth + 1)?;
                    size += item.size;
                    items.push(item.value);
                }
            }
        }
        Ok(Node { value: Value::Array(items), size, key: Key::Other })
    }

    fn mapping(&mut self, depth: usize) -> Result<Node, Mistake> {
        let mut entries = Map::new();
        let mut merged = Vec::new();
        let mut size = 1;
        loop {
            let key = match self.next()? {
                Event::MappingEnd => break,
                event => self.node(event, depth + 1)?,
            };
            let event = self.next()?;
            let value = self.node(event, depth + 1)?;
            size += key.size + value.size;
            match key.key {
                Key::Merge => merged.push(value.value),
                Key::Text(name) => {
                    if entries.contains_key(&name) {
                        let name = cleat_dialect::quote::quoted(&name);
                        return Err(format!("yaml: mapping key {name} already defined").into());
                    }
                    entries.insert(name, value.value);
                }
                Key::Other => {
                    let message = "json: unsupported type: map[interface {}]interface {}";
                    return Err(message.to_owned().into());
                }
            }
        }
        for merge in merged {
            merge_into(&mut entries, merge)?;
        }
        Ok(Node { value: Value::Object(entries), size, key: Key::Other })
    }
}

/// What the mapping has itself comes first, then the merged mappings in order.
fn merge_into(entries: &mut Map<String, Value>, merge: Value) -> Result<(), String> {
    match merge {
        Value::Object(more) => {
            for (key, value) in more {
                entries.entry(key).or_insert(value);
            }
            Ok(())
        }
        Value::Array(all) if all.iter().all(Value::is_object) => {
            all.into_iter().try_for_each(|more| merge_into(entries, more))
        }
        _ => Err("yaml: map merge requires map or sequence of maps as the value".to_owned()),
    }
}

fn scalar_node(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Result<Node, String> {
    let string =
        || Node { value: Value::String(text.to_owned()), size: 1, key: Key::Text(text.to_owned()) };
    let forced = tag.is_some_and(|tag| tag.to_string().ends_with("str"));
    if style != ScalarStyle::Plain || forced {
        return Ok(string());
    }
    let value = match scalar::resolve(text) {
        Scalar::Text => return Ok(string()),
        Scalar::Merge => {
            return Ok(Node { value: Value::String(text.to_owned()), size: 1, key: Key::Merge });
        }
        Scalar::Null => Value::Null,
        Scalar::Bool(flag) => Value::Bool(flag),
        Scalar::Int(number) => Value::from(number),
        Scalar::Uint(number) => Value::from(number),
        Scalar::Timestamp(time) => Value::String(time.rfc3339()),
        Scalar::Float(number) => match Number::from_f64(number) {
            Some(number) => Value::Number(number),
            None if number.is_nan() => return Err("json: unsupported value: NaN".to_owned()),
            None if number > 0.0 => return Err("json: unsupported value: +Inf".to_owned()),
            None => return Err("json: unsupported value: -Inf".to_owned()),
        },
    };
    Ok(Node { value, size: 1, key: Key::Other })
}
