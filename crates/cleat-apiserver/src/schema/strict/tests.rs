use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::schema::Schemas;

#[test]
fn duplicates_are_found_where_they_stand() {
    let body =
        br#"{"kind":"K","spec":{"a":1,"list":[{"b":1},{"b":1,"b":2,"b":3}],"a":2},"kind":"K"}"#;
    assert_eq!(
        duplicates(body),
        [
            r#"duplicate field "spec.list[1].b""#,
            r#"duplicate field "spec.a""#,
            r#"duplicate field "kind""#
        ],
    );
    assert_eq!(duplicates(b"{\"a\":1}"), Vec::<String>::new());
}

#[test]
fn unknown_and_duplicate_fields_come_in_order_of_appearance() {
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
            "replicas": {"type": "integer"},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "raw": {"type": "object"},
        }},
    }});
    let (arena, root) = Schemas::from_single(&schema).unwrap();
    let body = br#"{"spec":{"z":{"y":1,"y":2},"replicas":1,"labels":{"l":"1","l":"2"},"replicas":2,
        "raw":{"any":1}},"A":1,"z":2}"#;
    let found = violations(body, arena.at(root));
    assert_eq!(
        refusal(&found),
        r#"strict decoding error: unknown field "spec.z", duplicate field "spec.labels.l", duplicate field "spec.replicas", unknown field "A", unknown field "z""#,
    );
}

#[test]
fn findings_are_bounded() {
    let body: String = (0..500).map(|n| format!("\"k{n}\":1,\"k{n}\":2,")).collect();
    let body = format!("{{{}\"end\":1}}", body);
    assert_eq!(duplicates(body.as_bytes()).len(), MOST);
    assert_eq!(duplicates("[".repeat(100_000).as_bytes()), Vec::<String>::new());
}

proptest! {
    #[test]
    fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
        duplicates(&bytes);
    }
}
