//! Our engine against what Go answered (`oracle/answers.json`).

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::path::Path;

use cleat_template::{
    Context, Delimiters, MissingKey, RenderError, RenderOptions, render, render_context,
};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct Group {
    name: String,
    #[serde(default)]
    shape: String,
    #[serde(default)]
    missingkey: String,
    #[serde(default)]
    left: String,
    #[serde(default)]
    right: String,
    data: Value,
    answers: Vec<Answer>,
}

#[derive(Deserialize)]
struct Answer {
    template: String,
    output: Option<String>,
    #[serde(default)]
    error: String,
}

fn ours(group: &Group, template: &str) -> Result<String, RenderError> {
    let mut options = RenderOptions::new("2026-03-04T05:06:07.089Z".parse().unwrap());
    if !group.left.is_empty() {
        options.delimiters = Delimiters { left: group.left.clone(), right: group.right.clone() };
    }
    options.missing_key = match group.missingkey.as_str() {
        "zero" => MissingKey::Zero,
        "error" => MissingKey::Error,
        _ => MissingKey::Invalid,
    };
    if group.shape == "struct" {
        return render_context(template, &context(&group.data), &options);
    }
    render(template, &group.data, &options)
}

fn context(data: &Value) -> Context {
    data.as_object().unwrap().iter().fold(Context::empty(), |context, (name, value)| match value {
        Value::String(text) => context.text(name, text),
        Value::Object(labels) if name.ends_with("Labels") => {
            let labels: BTreeMap<String, String> = labels
                .iter()
                .map(|(key, label)| (key.clone(), label.as_str().unwrap().to_owned()))
                .collect();
            context.labels(name, &labels)
        }
        object => context.object(name, object),
    })
}

#[test]
fn templates_answer_as_go_does() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("oracle/answers.json");
    let groups: Vec<Group> = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let mut different = Vec::new();
    let mut count = 0;
    for group in &groups {
        for answer in &group.answers {
            count += 1;
            let expected = match &answer.output {
                Some(output) => format!("output: {output}"),
                None => format!("error: {}", answer.error),
            };
            let given = match ours(group, &answer.template) {
                Ok(output) => format!("output: {output}"),
                Err(error) => format!("error: {error}"),
            };
            if given != expected {
                different.push(format!(
                    "{}: {:?}\n  go:   {expected:?}\n  ours: {given:?}",
                    group.name, answer.template
                ));
            }
        }
    }
    assert!(count > 600, "only {count} cases");
    assert!(
        different.is_empty(),
        "{} of {count} differ\n{}",
        different.len(),
        different.join("\n")
    );
}
