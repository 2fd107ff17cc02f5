//! `bodies.json` holds objects as Go's own serializers write them, in protobuf and in JSON. Beyond
//! these, the decoder was compared with the serializers' whole test data when it was written.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;
use serde_json::json;

use super::*;

const UNKNOWN: DefaultKind<'_> = DefaultKind { api_version: "", kind: "" };

fn bodies() -> Vec<(Vec<u8>, Value)> {
    let rows: Vec<Value> = serde_json::from_str(include_str!("bodies.json")).unwrap();
    rows.into_iter()
        .map(|mut row| {
            (STANDARD.decode(row["body"].as_str().unwrap()).unwrap(), row["json"].take())
        })
        .collect()
}

#[test]
fn bodies_become_the_json_of_go() {
    for (body, expected) in bodies() {
        let mut value = decode(&body, UNKNOWN).unwrap();
        let mut expected = expected;
        sort_quirks(&mut value, &mut expected);
        assert_eq!(value, expected, "{}", expected["kind"]);
    }
}

/// Go writes `null` for some pointers that are not on the wire; nobody can tell them from absent.
fn sort_quirks(value: &mut Value, expected: &mut Value) {
    match (value, expected) {
        (Value::Object(value), Value::Object(expected)) => {
            expected.retain(|key, entry| !entry.is_null() || value.contains_key(key));
            for (key, entry) in expected {
                if let Some(other) = value.get_mut(key) {
                    sort_quirks(other, entry);
                }
            }
        }
        (Value::Array(value), Value::Array(expected)) => {
            for (one, other) in value.iter_mut().zip(expected) {
                sort_quirks(one, other);
            }
        }
        _ => {}
    }
}

fn body(kind: &str, raw: &[u8]) -> Vec<u8> {
    let mut body = MAGIC.to_vec();
    let type_meta = [&[0x0a, 2][..], b"v1", &[0x12, kind.len() as u8], kind.as_bytes()].concat();
    body.extend([0x0a, type_meta.len() as u8]);
    body.extend(type_meta);
    body.extend([0x12, raw.len() as u8]);
    body.extend(raw);
    body
}

#[test]
fn parts_are_merged_and_unknown_fields_skipped() {
    // metadata {name: "a"}, an unknown varint, bytes and group, then metadata {namespace: "b"}.
    let raw =
        b"\x0a\x03\x0a\x01a\xf8\x07\x01\xfa\x07\x01x\xfb\x07\x08\x01\xfc\x07\x0a\x03\x1a\x01b";
    assert_eq!(
        decode(&body("ConfigMap", raw), UNKNOWN).unwrap(),
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "b"},
        })
    );
}

#[test]
fn a_body_without_a_kind_takes_the_default() {
    let mut bytes = MAGIC.to_vec();
    bytes.extend(b"\x12\x05\x0a\x03\x0a\x01a");
    let default = DefaultKind { api_version: "v1", kind: "Namespace" };
    assert_eq!(decode(&bytes, default).unwrap()["metadata"]["name"], "a");
}

#[test]
fn what_is_no_object_is_refused() {
    let prefix =
        "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]";
    for (bytes, expected) in [
        (Vec::new(), "empty data"),
        (b"{}".to_vec(), prefix),
        (MAGIC.to_vec(), "empty body"),
        (b"k8s\0\x0a".to_vec(), "unexpected EOF"),
        (b"k8s\0\x07".to_vec(), "proto: illegal wireType 7"),
        (
            b"k8s\0\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01".to_vec(),
            "proto: integer overflow",
        ),
        (body("ConfigMap", b"\x08\x01"), "proto: wrong wireType = 0 for field metadata"),
        (body("ConfigMap", b"\x0a\x7f"), "unexpected EOF"),
    ] {
        assert_eq!(decode(&bytes, UNKNOWN).unwrap_err().message, expected);
    }
    let error = decode(&body("Widget", b""), UNKNOWN).unwrap_err();
    assert!(error.message.starts_with("no kind \"Widget\" is registered for version \"v1\""));
    assert_eq!(error.kind, Some(("v1".to_owned(), "Widget".to_owned())));
}

#[test]
fn small_bodies_cannot_become_huge_objects() {
    // Empty containers: two bytes each on the wire.
    let containers = [0x12, 0].repeat(1_000_000);
    let mut length = Vec::new();
    let mut rest = containers.len();
    while rest > 0x7f {
        length.push((rest & 0x7f) as u8 | 0x80);
        rest >>= 7;
    }
    length.push(rest as u8);
    let spec = [&[0x12][..], &length, &containers].concat();
    let message = builtin::messages().of_kind("", "v1", "Pod").unwrap();
    let error = Decoder::new(builtin::messages()).object(&spec, message).unwrap_err();
    assert_eq!(error, "proto: object has too many values");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn no_bytes_break_it(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
        let _ = decode(&bytes, UNKNOWN);
        let _ = decode(&body("Pod", &bytes), UNKNOWN);
        let _ = decode(&body("Secret", &bytes), UNKNOWN);
    }

    #[test]
    fn no_change_of_a_body_breaks_it(
        which in 0_usize..15,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let bodies = bodies();
        let mut bytes = bodies[which % bodies.len()].0.clone();
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        let _ = decode(&bytes, UNKNOWN);
    }
}
