//! What `kubectl apply` sends to a server about a kind that it does not know by heart: a JSON merge
//! patch made of what the file says, what it said the last time, and what is there.

use alloc::string::String;

use serde_json::{Map, Value};

/// The patch that makes `now` what a document says: a field that the document says nothing of stays,
/// unless it is what an earlier one (`last`) said. Lists are one value each.
pub fn three_way(last: Option<&Value>, document: &Value, now: &Value) -> Value {
    let nothing = Map::new();
    let (Some(said), Some(now)) = (document.as_object(), now.as_object()) else {
        return document.clone();
    };
    let last = last.and_then(Value::as_object).unwrap_or(&nothing);
    Value::Object(fields(last, said, now))
}

fn fields(
    last: &Map<String, Value>,
    said: &Map<String, Value>,
    now: &Map<String, Value>,
) -> Map<String, Value> {
    let nothing = Map::new();
    let mut patch = Map::new();
    for (key, value) in said {
        match (now.get(key), value) {
            (None, Value::Null) => {}
            (Some(now), value) if now == value => {}
            (Some(Value::Object(now)), Value::Object(said)) => {
                let last = last.get(key).and_then(Value::as_object).unwrap_or(&nothing);
                let inner = fields(last, said, now);
                if !inner.is_empty() {
                    patch.insert(key.clone(), Value::Object(inner));
                }
            }
            (_, value) => drop(patch.insert(key.clone(), value.clone())),
        }
    }
    for key in last.keys().filter(|key| !said.contains_key(*key) && now.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    patch
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_file_does_not_mention_was_taken_away() {
        let now = json!({
            "metadata": { "labels": { "a": "1", "b": "1", "theirs": "1" } },
            "spec": { "kept": 1, "dropped": 1, "inner": { "x": 1, "y": 1 }, "list": [1, 2] },
        });
        let last = json!({
            "metadata": { "labels": { "a": "1", "b": "1" } },
            "spec": { "dropped": 1, "gone": 1, "inner": { "y": 1 } },
        });
        let said = json!({
            "metadata": { "labels": { "a": "2" } },
            "spec": { "new": { "z": 1 }, "inner": { "x": 1 }, "list": [2] },
        });
        assert_eq!(
            three_way(Some(&last), &said, &now),
            json!({
                "metadata": { "labels": { "a": "2", "b": null } },
                "spec": { "new": { "z": 1 }, "dropped": null, "inner": { "y": null }, "list": [2] },
            })
        );
        // Nobody said anything before, so nothing is taken away.
        assert_eq!(
            three_way(None, &said, &now),
            json!({
                "metadata": { "labels": { "a": "2" } },
                "spec": { "new": { "z": 1 }, "list": [2] },
            })
        );
    }

    #[test]
    fn saying_the_same_changes_nothing_and_null_takes_away() {
        let now = json!({ "spec": { "a": 1, "b": { "c": 1 } } });
        assert_eq!(three_way(Some(&now), &now, &now), json!({}));
        let said = json!({ "spec": { "a": null, "b": 1, "none": null } });
        assert_eq!(three_way(None, &said, &now), json!({ "spec": { "a": null, "b": 1 } }));
    }
}
