//! The real server's answers, kept in the repository so that ours can be checked without a real one.
//!
//! One JSON file per case, written by `cargo xtask conformance --record` and never by hand.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::Answers;
use super::case::texts;

pub(crate) fn write(folder: &Path, case: &str, answers: &Answers) -> Result<()> {
    let path = folder.join(format!("{case}.json"));
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).with_context(|| format!("create {}", parent.display()))?;
    }
    let steps: Vec<Value> =
        answers.iter().map(|(step, answer)| json!({"step": step, "answer": answer})).collect();
    let mut text = String::new();
    print(&Value::Array(steps), 0, &mut text);
    text.push('\n');
    std::fs::write(&path, text).with_context(|| format!("write {}", path.display()))
}

/// All recorded answers, by case.
pub(crate) fn read(folder: &Path) -> Result<BTreeMap<String, Answers>> {
    texts(folder, "json")?
        .into_iter()
        .map(|(case, text)| {
            let steps: Vec<Value> = serde_json::from_str(&text)
                .with_context(|| format!("read the recorded answers to {case}"))?;
            let answers = steps
                .into_iter()
                .map(|mut step| {
                    let answer = step.get_mut("answer").map(Value::take).unwrap_or_default();
                    let label = step.get("step").and_then(Value::as_str).unwrap_or_default();
                    (label.to_owned(), answer)
                })
                .collect();
            Ok((case, answers))
        })
        .collect()
}

/// JSON that puts on one line what fits on one: answers are long, and people read their changes.
fn print(value: &Value, indent: usize, text: &mut String) {
    const WIDTH: usize = 120;
    let flat = value.to_string();
    let margin = " ".repeat(indent + 1);
    match value {
        Value::Array(items) if indent + flat.len() > WIDTH => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                text.push_str(if index == 0 { "\n" } else { ",\n" });
                text.push_str(&margin);
                print(item, indent + 1, text);
            }
            text.push(']');
        }
        Value::Object(fields) if indent + flat.len() > WIDTH => {
            text.push('{');
            for (index, (name, field)) in fields.iter().enumerate() {
                text.push_str(if index == 0 { "\n" } else { ",\n" });
                text.push_str(&margin);
                text.push_str(&Value::String(name.clone()).to_string());
                text.push_str(": ");
                print(field, indent + 1, text);
            }
            text.push('}');
        }
        _ => text.push_str(&flat),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_reads_back_the_same() {
        let long = "x".repeat(130);
        let value = json!([{"a": [1, 2, {"b \" c": long}], "d": {}}, [], null, "é\n"]);
        let mut text = String::new();
        print(&value, 0, &mut text);
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }
}
