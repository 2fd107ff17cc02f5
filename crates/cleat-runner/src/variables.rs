//! The variables of a job, as a file that Ansible reads. Pure.
//!
//! Ansible evaluates templates in variables, and a template can run a command. What a job passes on
//! came from clusters, so every text in it is marked as unsafe, which is Ansible's word for data that
//! is never evaluated.

use serde_json::{Map, Value, json};

/// How deep variables may be nested.
const DEEPEST: usize = 64;

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unfit {
    #[error("the variable {0} is Ansible's own; a job may not set it")]
    Reserved(String),
    #[error("the variables are nested too deeply")]
    Deep,
}

/// The text of the file. `trusted`: what automations pass on may be templates, except what the hub
/// itself adds.
pub(crate) fn file(vars: &Map<String, Value>, trusted: bool) -> Result<String, Unfit> {
    let mut all = Map::new();
    for (key, value) in vars {
        // They choose interpreters and programs.
        if key.starts_with("ansible_") || key.starts_with("__ansible_") {
            return Err(Unfit::Reserved(key.clone()));
        }
        let safe = trusted && !OF_THE_HUB.contains(&&**key);
        all.insert(key.clone(), if safe { value.clone() } else { marked(value, DEEPEST)? });
    }
    Ok(Value::Object(all).to_string())
}

/// What the hub adds to every job.
const OF_THE_HUB: [&str; 6] = [
    "target_clusters",
    "policy_name",
    "policy_namespace",
    "hub_cluster",
    "policy_sets",
    "policy_violations",
];

/// How Ansible's own JSON says that a text is unsafe.
fn marked(value: &Value, deep: usize) -> Result<Value, Unfit> {
    let deep = deep.checked_sub(1).ok_or(Unfit::Deep)?;
    Ok(match value {
        Value::String(text) => json!({ "__ansible_unsafe": text }),
        Value::Array(items) => {
            items.iter().map(|item| marked(item, deep)).collect::<Result<Vec<_>, _>>()?.into()
        }
        // Whoever writes such a key does not get Ansible to read it as its own mark.
        Value::Object(fields) => {
            let fields = fields.iter().map(|(key, value)| {
                let key =
                    if key.starts_with("__ansible_") { format!("_{key}") } else { key.clone() };
                Ok((key, marked(value, deep)?))
            });
            Value::Object(fields.collect::<Result<Map<_, _>, _>>()?)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(vars: Value, trusted: bool) -> Result<Value, Unfit> {
        let Value::Object(vars) = vars else { panic!("an object") };
        file(&vars, trusted).map(|text| serde_json::from_str(&text).unwrap())
    }

    #[test]
    fn every_text_is_data() {
        let vars = json!({
            "n": 1, "t": "{{ x }}", "l": ["a", { "b": "c", "__ansible_vault": "d" }],
        });
        let unsafe_ = |text: &str| json!({ "__ansible_unsafe": text });
        assert_eq!(
            read(vars.clone(), false).unwrap(),
            json!({
                "n": 1, "t": unsafe_("{{ x }}"),
                "l": [unsafe_("a"), { "b": unsafe_("c"), "___ansible_vault": unsafe_("d") }],
            })
        );
        assert_eq!(read(vars.clone(), true).unwrap(), vars);
        let told = json!({ "policy_violations": { "c1": "{{ x }}" } });
        let expected = json!({ "policy_violations": { "c1": unsafe_("{{ x }}") } });
        assert_eq!(read(told, true).unwrap(), expected);
    }

    #[test]
    fn what_is_ansibles_own_cannot_be_set() {
        let key = "ansible_python_interpreter";
        assert_eq!(read(json!({ key: "/bin/sh" }), true), Err(Unfit::Reserved(key.to_owned())));
        let mut deep = json!("x");
        for _ in 0..100 {
            deep = json!([deep]);
        }
        assert_eq!(read(json!({ "deep": deep }), false), Err(Unfit::Deep));
    }
}
