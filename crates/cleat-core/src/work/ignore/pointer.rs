//! JSON pointers (RFC 6901).

use serde_json::Value;

/// What is at a pointer, if it is one: something or nothing.
pub(super) fn find<'a>(value: &'a Value, pointer: &str) -> Option<Option<&'a Value>> {
    let names = pointer.strip_prefix('/')?;
    let mut place = Some(value);
    for name in names.split('/') {
        let mut rest = name;
        while let Some((_, after)) = rest.split_once('~') {
            rest = after.strip_prefix(['0', '1'])?;
        }
        let name = name.replace("~1", "/").replace("~0", "~");
        place = place.and_then(|value| match value {
            Value::Object(entries) => entries.get(&name),
            Value::Array(items) => items.get(index(&name)?),
            _ => None,
        });
    }
    Some(place)
}

fn index(name: &str) -> Option<usize> {
    let plain = name.bytes().all(|byte| byte.is_ascii_digit());
    (plain && (name == "0" || !name.starts_with('0'))).then(|| name.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn pointers() {
        let value = json!({ "a": { "b/c": [10, 20], "~": 3, "": 4 }, "m~n": 5 });
        for (pointer, expected) in [
            ("/a/b~1c/1", Some(Some(json!(20)))),
            ("/a/~0", Some(Some(json!(3)))),
            ("/a/", Some(Some(json!(4)))),
            ("/m~0n", Some(Some(json!(5)))),
            ("/a/b~1c/2", Some(None)),
            ("/a/b~1c/01", Some(None)),
            ("/a/b~1c/-", Some(None)),
            ("/x/y/z", Some(None)),
            ("/m~n", None),
            ("/m~", None),
            ("a", None),
            ("", None),
        ] {
            assert_eq!(find(&value, pointer).map(Option::<&Value>::cloned), expected, "{pointer}");
        }
    }
}
