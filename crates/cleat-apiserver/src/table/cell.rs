//! Columns of built-in kinds as data: a name, a type, and where the cell comes from.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::age;
use crate::selector::LabelSelector;

/// A column: its header, and how to fill it.
#[derive(Debug)]
pub(super) struct Column {
    name: &'static str,
    /// `string`, `integer` or `boolean`; what upstream declares, which is not always what it puts
    /// into the cell.
    kind: &'static str,
    /// Shown only by `-o wide`.
    wide: bool,
    cell: Cell,
}

/// Where a cell comes from. Paths are plain fields, separated by dots.
#[derive(Clone, Copy, Debug)]
pub(super) enum Cell {
    Name,
    /// Since creation.
    Age,
    /// The creation's time itself.
    Created,
    /// Text, or what stands for an absent or empty one.
    Text(&'static str, &'static str),
    /// A whole number; 0 when absent.
    Number(&'static str),
    Flag(&'static str, bool),
    /// How many entries the lists and maps at these paths have.
    Count(&'static [&'static str]),
    /// Strings at a path, joined by commas.
    Joined(&'static str, &'static str),
    /// Anything else, and what it is in a few words.
    Made(fn(&Row<'_>) -> Value, &'static str),
}

/// One object, and the time at which it is shown.
pub(super) struct Row<'a> {
    pub(super) object: &'a Value,
    pub(super) now: Timestamp,
}

pub(super) const NAME: &str = "The object's name.";
pub(super) const AGE: &str = "Time since the object was created.";

/// For kinds that have no columns of their own.
pub(super) const DEFAULT: &[Column] =
    &[name(), Column { name: "Created At", kind: "date", wide: false, cell: Cell::Created }];

pub(super) const fn name() -> Column {
    text("Name", Cell::Name)
}

pub(super) const fn age() -> Column {
    text("Age", Cell::Age)
}

pub(super) const fn text(name: &'static str, cell: Cell) -> Column {
    Column { name, kind: "string", wide: false, cell }
}

pub(super) const fn wide(name: &'static str, cell: Cell) -> Column {
    Column { name, kind: "string", wide: true, cell }
}

pub(super) const fn integer(name: &'static str, cell: Cell) -> Column {
    Column { name, kind: "integer", wide: false, cell }
}

pub(super) const fn boolean(name: &'static str, cell: Cell) -> Column {
    Column { name, kind: "boolean", wide: false, cell }
}

impl Column {
    pub(super) fn header(&self) -> Value {
        let description = match self.cell {
            Cell::Name => NAME.to_owned(),
            Cell::Age => AGE.to_owned(),
            Cell::Created => "When the object was created.".to_owned(),
            Cell::Text(path, _)
            | Cell::Number(path)
            | Cell::Flag(path, _)
            | Cell::Joined(path, _) => format!("The value of {path}."),
            Cell::Count(paths) => format!("Number of entries in {}.", paths.join(" and ")),
            Cell::Made(_, description) => description.to_owned(),
        };
        let format = if matches!(self.name, "Name" | "Attacher") { "name" } else { "" };
        header(self.name, self.kind, format, &description, i32::from(self.wide))
    }

    pub(super) fn cell(&self, row: &Row<'_>) -> Value {
        match self.cell {
            Cell::Name => Value::from(row.text("metadata.name")),
            Cell::Age => Value::from(row.since("metadata.creationTimestamp")),
            Cell::Created => {
                let created = row.text("metadata.creationTimestamp");
                Value::from(if created.is_empty() { "0001-01-01T00:00:00Z" } else { created })
            }
            Cell::Text(path, absent) => Value::from(row.text_or(path, absent)),
            Cell::Number(path) => Value::from(row.number(path)),
            Cell::Flag(path, absent) => {
                Value::from(row.at(path).and_then(Value::as_bool).unwrap_or(absent))
            }
            Cell::Count(paths) => {
                Value::from(paths.iter().map(|path| row.count(path)).sum::<usize>())
            }
            Cell::Joined(path, absent) => {
                let texts: Vec<&str> = row.list(path).iter().filter_map(Value::as_str).collect();
                Value::from(if texts.is_empty() { absent.to_owned() } else { texts.join(",") })
            }
            Cell::Made(make, _) => make(row),
        }
    }
}

pub(super) fn header(
    name: &str,
    kind: &str,
    format: &str,
    description: &str,
    priority: i32,
) -> Value {
    json!({
        "name": name,
        "type": kind,
        "format": format,
        "description": description,
        "priority": priority,
    })
}

impl<'a> Row<'a> {
    /// What is there, unless it is null.
    pub(super) fn at(&self, path: &str) -> Option<&'a Value> {
        at(self.object, path)
    }

    pub(super) fn text(&self, path: &str) -> &'a str {
        text_at(self.object, path)
    }

    pub(super) fn text_or(&self, path: &str, absent: &'a str) -> &'a str {
        match self.text(path) {
            "" => absent,
            text => text,
        }
    }

    pub(super) fn number(&self, path: &str) -> i64 {
        number_at(self.object, path)
    }

    pub(super) fn list(&self, path: &str) -> &'a [Value] {
        list_at(self.object, path)
    }

    pub(super) fn count(&self, path: &str) -> usize {
        match self.at(path) {
            Some(Value::Array(items)) => items.len(),
            Some(Value::Object(entries)) => entries.len(),
            _ => 0,
        }
    }

    pub(super) fn since(&self, path: &str) -> String {
        age::since(self.at(path), self.now)
    }

    pub(super) fn annotation(&self, name: &str) -> Option<&'a str> {
        self.at("metadata.annotations")?.get(name)?.as_str()
    }

    pub(super) fn is_deleting(&self) -> bool {
        self.at("metadata.deletionTimestamp").is_some()
    }

    /// The status of the condition of that type.
    pub(super) fn condition(&self, kind: &str) -> Option<&'a str> {
        self.list("status.conditions")
            .iter()
            .find(|condition| text_at(condition, "type") == kind)
            .map(|condition| text_at(condition, "status"))
    }

    /// A field of every container of a pod template, joined.
    pub(super) fn containers(&self, path: &str, field: &str) -> Value {
        let texts: Vec<&str> = self.list(path).iter().map(|one| text_at(one, field)).collect();
        Value::from(texts.join(","))
    }

    /// A LabelSelector object as a string.
    pub(super) fn selector(&self, path: &str) -> Value {
        Value::from(match LabelSelector::from_object(self.at(path)) {
            Err(_) => "<error>".to_owned(),
            Ok(selector) if selector.requirements().is_empty() => "<none>".to_owned(),
            Ok(selector) => selector.to_string(),
        })
    }

    /// A map of labels as a string.
    pub(super) fn labels(&self, path: &str) -> Value {
        let labels = self.at(path).and_then(Value::as_object);
        let pairs: Vec<String> = labels
            .into_iter()
            .flatten()
            .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
            .collect();
        Value::from(if pairs.is_empty() { "<none>".to_owned() } else { pairs.join(",") })
    }
}

pub(super) fn at<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.')
        .try_fold(object, |value, field| value.get(field))
        .filter(|value| !value.is_null())
}

pub(super) fn text_at<'a>(object: &'a Value, path: &str) -> &'a str {
    at(object, path).and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn number_at(object: &Value, path: &str) -> i64 {
    at(object, path).and_then(Value::as_i64).unwrap_or(0)
}

pub(super) fn list_at<'a>(object: &'a Value, path: &str) -> &'a [Value] {
    at(object, path).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// A number or text, as Kubernetes prints an IntOrString.
pub(super) fn int_or_string(value: Option<&Value>, absent: &str) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => absent.to_owned(),
    }
}

/// The first few of a list, and how many more there are.
pub(super) fn first_few(all: &[String], most: usize, separator: &str) -> String {
    let shown = all.get(..most).unwrap_or(all).join(separator);
    match all.len().checked_sub(most) {
        None | Some(0) => shown,
        Some(more) => format!("{shown} + {more} more..."),
    }
}

/// An entry of a map under a key that has dots in it.
pub(super) fn entry<'a>(fields: Option<&'a Value>, key: &str) -> Option<&'a Value> {
    fields.and_then(Value::as_object).and_then(|fields: &Map<String, Value>| fields.get(key))
}
