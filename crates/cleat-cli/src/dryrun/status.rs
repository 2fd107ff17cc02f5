//! Whether a status is as somebody expects, part by part.
//!
//! Only what is expected has to be there. Each expected entry of a list of objects has to be somewhere
//! in the list; other lists have to be the same. What is inside such an entry is not told: the entry is
//! compared with many.

use serde_json::{Map, Value};

use super::colour::Colours;

/// What to print, and whether all of it matches.
pub(super) fn compared(expected: &Value, found: &Value, colours: Colours) -> (String, bool) {
    let mut lines = Lines { out: "# Status compare:\n".to_owned(), colours };
    let nothing = Map::new();
    let expected = expected.as_object().unwrap_or(&nothing);
    let all = lines.objects(At::root(), expected, found.as_object().unwrap_or(&nothing));
    let (verdict, paint): (_, fn(Colours, &str) -> String) = match all {
        true => (" Expected status matches the actual status", Colours::good),
        false => (" Expected status does not match the actual status", Colours::bad),
    };
    let verdict = paint(colours, &colours.bold(verdict));
    lines.out.push_str(&verdict);
    lines.out.push('\n');
    (lines.out, all)
}

/// Where in a status.
#[derive(Clone)]
struct At {
    path: String,
    /// Inside an entry of a list.
    inside: bool,
    /// An entry of a list.
    entry: bool,
}

impl At {
    fn root() -> Self {
        Self { path: String::new(), inside: false, entry: false }
    }

    fn field(&self, name: &str) -> Self {
        let inside = self.inside || self.entry;
        Self { path: format!("{}.{name}", self.path), inside, entry: false }
    }

    fn nth(&self, index: usize) -> Self {
        Self { path: format!("{}[{index}]", self.path), entry: true, ..self.clone() }
    }
}

struct Lines {
    out: String,
    colours: Colours,
}

impl Lines {
    fn line(&mut self, text: &str) {
        self.out.push_str(text);
        self.out.push('\n');
    }

    fn good(&mut self, at: &At, text: &str) -> bool {
        if !at.inside {
            let text = self.colours.good(text);
            self.line(&text);
        }
        true
    }

    fn bad(&mut self, at: &At, text: &str) -> bool {
        if !at.inside {
            let text = self.colours.bad(text);
            self.line(&text);
        }
        false
    }

    fn objects(&mut self, at: At, wanted: &Map<String, Value>, found: &Map<String, Value>) -> bool {
        // Sorted by name, as these maps are not everywhere.
        let mut fields: Vec<(&String, &Value)> = wanted.iter().collect();
        fields.sort_by_key(|(name, _)| *name);
        let mut all = true;
        for (name, wanted) in fields {
            all &= match found.get(name) {
                None => {
                    let path = &at.path;
                    self.bad(&at, &format!("Key '{name}' not found in result at path '{path}'"))
                }
                Some(found) => self.values(at.field(name), name, wanted, found),
            };
        }
        all
    }

    fn values(&mut self, at: At, name: &str, wanted: &Value, found: &Value) -> bool {
        match (wanted, found) {
            (Value::Array(wanted), Value::Array(found)) => self.lists(&at, wanted, found),
            (Value::Array(_), _) => {
                let text = format!("skip {name}, {} is not array,", at.path);
                let text = self.colours.doubtful(&text);
                self.line(&text);
                false
            }
            (Value::Object(wanted), Value::Object(found)) => self.objects(at, wanted, found),
            (Value::Object(_), found) => {
                let (path, expected) = (&at.path, go_type(found));
                let text = format!(
                    "The input status field '{path}' is not the right type - expected '{expected}'"
                );
                let text = self.colours.bad(&text);
                self.line(&text);
                false
            }
            (wanted, found) => self.texts(&at, &shown(wanted), &shown(found)),
        }
    }

    fn texts(&mut self, at: &At, wanted: &str, found: &str) -> bool {
        let path = &at.path;
        match wanted == found {
            true => self.good(at, &format!("{path}: '{wanted}' does match '{found}'")),
            false => self.bad(at, &format!("{path}: '{wanted}' does not match '{found}'")),
        }
    }

    fn lists(&mut self, at: &At, wanted: &[Value], found: &[Value]) -> bool {
        if !wanted.first().is_some_and(Value::is_object) {
            let texts = |all: &[Value]| {
                let all: Vec<String> = all.iter().map(shown).collect();
                format!("[{}]", all.join(" "))
            };
            return self.texts(at, &texts(wanted), &texts(found));
        }
        for (index, one) in wanted.iter().enumerate() {
            let entry = at.nth(index);
            let there = found.iter().any(|other| match (one, other) {
                (Value::Object(one), Value::Object(other)) => {
                    self.objects(entry.clone(), one, other)
                }
                (one, other) => one == other,
            });
            if !there {
                self.bad(&entry, &format!("{} does not match any elements", entry.path));
                return self.bad(at, &format!("{} does not match the elements", at.path));
            }
            self.good(&entry, &format!("{} matches", entry.path));
        }
        self.good(at, &format!("{} matches", at.path))
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// How Go calls it, for that is what people know from the original.
fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_is_expected_has_to_be_there() {
        let found = json!({
            "compliant": "Compliant", "lastEvaluated": "now", "generation": 2,
            "relatedObjects": [
                { "object": { "kind": "Pod" }, "reason": "r", "names": ["a", "b"] },
                { "object": { "kind": "Node" }, "reason": "s" },
            ],
        });
        let check = |expected: Value, lines: &[&str], matches: bool| {
            let word = if matches { "matches" } else { "does not match" };
            let mut text = "# Status compare:\n".to_owned();
            lines.iter().for_each(|line| text.push_str(&format!("{line}\n")));
            text.push_str(&format!(" Expected status {word} the actual status\n"));
            assert_eq!(compared(&expected, &found, Colours::NONE), (text, matches), "{expected}");
        };
        check(
            json!({
                "compliant": "Compliant",
                "relatedObjects": [{ "object": { "kind": "Pod" } }, { "reason": "s" }],
            }),
            &[
                ".compliant: 'Compliant' does match 'Compliant'",
                ".relatedObjects[0] matches",
                ".relatedObjects[1] matches",
                ".relatedObjects matches",
            ],
            true,
        );
        check(
            json!({ "relatedObjects": [{ "names": ["a", "c"] }] }),
            &[
                "Key 'names' not found in result at path '.relatedObjects[0]'",
                ".relatedObjects[0] does not match any elements",
                ".relatedObjects does not match the elements",
            ],
            false,
        );
        check(
            json!({ "relatedObjects": [{ "names": ["a", "b"] }] }),
            &[".relatedObjects[0] matches", ".relatedObjects matches"],
            true,
        );
        check(
            json!({ "compliant": "NonCompliant", "generation": 2 }),
            &[
                ".compliant: 'NonCompliant' does not match 'Compliant'",
                ".generation: '2' does match '2'",
            ],
            false,
        );
        check(
            json!({ "compliant": { "a": 1 }, "generation": [1], "none": 1 }),
            &[
                "The input status field '.compliant' is not the right type - expected 'string'",
                "skip generation, .generation is not array,",
                "Key 'none' not found in result at path ''",
            ],
            false,
        );
    }
}
