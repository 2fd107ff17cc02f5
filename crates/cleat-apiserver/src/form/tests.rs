use serde_json::json;

use super::*;
use crate::builtin;

fn list(form: Form, objects: usize) -> Pieces {
    let ty = builtin::resources().iter().find(|ty| &*ty.plural == "configmaps").unwrap();
    let presenter = Presenter { form, ty, version: "v1", now: Timestamp::UNIX_EPOCH };
    let stored = |number: usize| {
        let metadata = json!({ "name": format!("n{number}"), "resourceVersion": "7" });
        Bytes::from(json!({ "metadata": metadata, "data": { "k": "v".repeat(1000) } }).to_string())
    };
    presenter.list((0..objects).map(stored).collect(), &json!({ "resourceVersion": "9" }))
}

#[test]
fn a_long_list_is_never_held_as_a_whole() {
    for form in [Form::Whole, Form::Metadata(MetaVersion::V1)] {
        for objects in [1, 50, 2000] {
            let whole = list(form, objects).whole();
            let read: Value = serde_json::from_slice(&whole).unwrap();
            let items = read["items"].as_array().unwrap();
            assert_eq!(items.len(), objects);
            assert_eq!(items[objects - 1]["metadata"]["name"], format!("n{}", objects - 1));
            assert_eq!(read["metadata"], json!({ "resourceVersion": "9" }));

            assert_eq!(list(form, objects).is_long(), objects > 50);
            let pieces: Vec<Bytes> = list(form, objects).collect();
            assert!(pieces.iter().all(|piece| piece.len() < 70_000));
            assert_eq!(pieces.concat(), whole);
        }
    }
}

#[test]
fn an_empty_list_is_one_piece() {
    let whole: Vec<Bytes> = list(Form::Whole, 0).collect();
    let text = r#"{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[]}"#;
    assert_eq!(whole, [text]);
    assert_eq!(list(Form::Whole, 0).whole(), text);
    let metadata: Vec<Bytes> = list(Form::Metadata(MetaVersion::V1), 0).collect();
    assert_eq!(serde_json::from_slice::<Value>(&metadata.concat()).unwrap()["items"], Value::Null);
}
