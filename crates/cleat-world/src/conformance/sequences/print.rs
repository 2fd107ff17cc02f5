//! Writes a case as the file it would be below `cases/`: one line per step.

use serde_json::Value;

use crate::conformance::case::{Case, Step};

/// What a step says first; the rest follows in order of name.
const FIRST: [&str; 12] = [
    "get", "post", "put", "patch", "delete", "watch", "collect", "name", "type", "silent", "until",
    "body",
];

pub(crate) fn text(case: &Case) -> String {
    let mut text = format!("about: {}\n", scalar(&case.about));
    if !case.before.is_empty() {
        text.push_str(&format!("before: [{}]\n", case.before.join(", ")));
    }
    text.push_str("steps:\n");
    for step in &case.steps {
        text.push_str(&format!("  - {}\n", line(step)));
    }
    text
}

fn line(step: &Step) -> String {
    let Ok(Value::Object(mut fields)) = serde_json::to_value(step) else { return String::new() };
    let mut parts = Vec::new();
    for name in FIRST {
        if let Some(value) = fields.remove(name) {
            parts.push(format!("{name}: {}", flow(&value)));
        }
    }
    parts.extend(fields.iter().map(entry));
    format!("{{{}}}", parts.join(", "))
}

fn entry((name, value): (&String, &Value)) -> String {
    format!("{}: {}", scalar(name), flow(value))
}

/// YAML on one line, without the quotes that nobody needs.
fn flow(value: &Value) -> String {
    match value {
        Value::String(text) => scalar(text),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(flow).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(fields) => {
            let fields: Vec<String> = fields.iter().map(entry).collect();
            format!("{{{}}}", fields.join(", "))
        }
        other => other.to_string(),
    }
}

/// A text, in quotes unless nothing in it could mean anything else.
fn scalar(text: &str) -> String {
    const WORDS: [&str; 9] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    let plain = text.starts_with(|first: char| first.is_ascii_alphabetic() || "</".contains(first))
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "<>/._-".contains(c))
        && !WORDS.contains(&text.to_ascii_lowercase().as_str());
    if plain { text.to_owned() } else { Value::String(text.to_owned()).to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::case::yaml;
    use crate::conformance::sequences::generate;

    #[test]
    fn what_is_printed_is_a_case_with_the_same_steps() {
        for index in 0..300 {
            let case = generate::sequence(5, index).case();
            let text = text(&case);
            let read: Case = yaml(&text).unwrap_or_else(|error| panic!("{error:#}\n{text}"));
            assert_eq!(read.steps, case.steps, "{text}");
            assert_eq!(read.before, case.before);
            assert_eq!(read.about, case.about);
        }
    }

    #[test]
    fn texts_that_could_be_something_else_are_quoted() {
        for (text, printed) in [
            ("<core>/configmaps/a", "<core>/configmaps/a"),
            ("v1", "v1"),
            ("<widgets>/a?dryRun=All", "\"<widgets>/a?dryRun=All\""),
            ("", "\"\""),
            ("5", "\"5\""),
            ("No", "\"No\""),
            ("a \"b\"", "\"a \\\"b\\\"\""),
        ] {
            assert_eq!(scalar(text), printed);
        }
    }
}
