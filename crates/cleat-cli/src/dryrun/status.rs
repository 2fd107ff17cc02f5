//! Whether a status is as somebody expects, part by part.
//!
//! Only what is expected has to be there; of lists, each expected entry somewhere in the list.

use serde_json::Value;

/// What to print, and whether all of it matches.
pub(super) fn compared(expected: &Value, found: &Value) -> (String, bool) {
    let mut out = "# Status compare:\n".to_owned();
    let mut all = true;
    for (field, value) in expected.as_object().into_iter().flatten() {
        let actual = found.get(field).unwrap_or(&Value::Null);
        let matches = match (value, actual) {
            (Value::Array(wanted), actual) => {
                let actual = actual.as_array().map(Vec::as_slice).unwrap_or_default();
                let mut every = true;
                for (index, one) in wanted.iter().enumerate() {
                    let there = actual.iter().any(|other| covers(other, one));
                    let word = if there { "matches" } else { "does not match" };
                    out.push_str(&format!(".{field}[{index}] {word}\n"));
                    every &= there;
                }
                let word = if every { "matches" } else { "does not match" };
                out.push_str(&format!(".{field} {word}\n"));
                every
            }
            (wanted, actual) => {
                let matches = covers(actual, wanted);
                let word = if matches { "does match" } else { "does not match" };
                let (actual, wanted) = (shown(actual), shown(wanted));
                out.push_str(&format!(".{field}: '{actual}' {word} '{wanted}'\n"));
                matches
            }
        };
        all &= matches;
    }
    let verdict = match all {
        true => " Expected status matches the actual status\n\n",
        false => " Expected status does not match the actual status\n\n",
    };
    out.push_str(verdict);
    (out, all)
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// Whether everything that is wanted is there.
fn covers(found: &Value, wanted: &Value) -> bool {
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) => wanted
            .iter()
            .all(|(key, value)| found.get(key).is_some_and(|found| covers(found, value))),
        (Value::Array(found), Value::Array(wanted)) => {
            wanted.iter().all(|one| found.iter().any(|other| covers(other, one)))
        }
        (Value::String(found), Value::String(wanted)) => found.trim_end() == wanted.trim_end(),
        (found, wanted) => found == wanted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_is_expected_has_to_be_there() {
        let found = json!({
            "compliant": "Compliant", "lastEvaluated": "now",
            "relatedObjects": [{ "object": { "kind": "Pod" }, "reason": "r" }],
        });
        let expected = json!({
            "compliant": "Compliant", "relatedObjects": [{ "object": { "kind": "Pod" } }],
        });
        let text = "\
# Status compare:
.compliant: 'Compliant' does match 'Compliant'
.relatedObjects[0] matches
.relatedObjects matches
 Expected status matches the actual status

";
        assert_eq!(compared(&expected, &found), (text.to_owned(), true));
        let (text, matches) = compared(&json!({ "compliant": "NonCompliant" }), &found);
        assert!(!matches && text.contains("'Compliant' does not match 'NonCompliant'"));
    }
}
