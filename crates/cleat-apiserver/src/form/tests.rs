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
fn a_table_in_pieces_is_the_table() {
    let meta = json!({ "resourceVersion": "9", "continue": "", "remainingItemCount": 3 });
    let table = |plural: &str, include: Include, entries: &[Bytes]| {
        let ty = builtin::resources().iter().find(|ty| &*ty.plural == plural).unwrap();
        let form = Form::Table(MetaVersion::V1, include);
        let presenter = Presenter { form, ty, version: "v1", now: Timestamp::UNIX_EPOCH };
        let envelope = Envelope::of(ty, "v1");
        let opened: Vec<Value> = entries.iter().filter_map(|entry| envelope.open(entry)).collect();
        let options = TableOptions {
            version: MetaVersion::V1,
            include,
            headers: true,
            now: Timestamp::UNIX_EPOCH,
        };
        let whole = Printer::new(ty, "v1").table(Some(&meta), &opened, &options).to_string();
        let pieces: Vec<Bytes> = presenter.list(entries.to_vec(), &meta).collect();
        assert_eq!(str::from_utf8(&pieces.concat()).unwrap(), whole, "{plural}");
        assert_eq!(presenter.list(entries.to_vec(), &meta).whole(), whole, "{plural}");
        pieces
    };
    let stored = |number: usize| {
        let metadata = json!({ "name": format!("n{number}"), "resourceVersion": "7" });
        let spec = json!({ "containers": [{ "name": "c".repeat(500) }] });
        let status = json!({ "phase": "Succeeded" });
        Bytes::from(json!({ "metadata": metadata, "spec": spec, "status": status }).to_string())
    };
    let many: Vec<Bytes> = (0..1000).map(stored).collect();
    // The last has no columns of its own, and no rows are no list there.
    for plural in ["configmaps", "pods", "limitranges"] {
        for include in [Include::None, Include::Metadata, Include::Object] {
            for entries in [&[][..], &[Bytes::from_static(b"rubbish")], &many[..1], &many] {
                let pieces = table(plural, include, entries);
                assert!(pieces.iter().all(|piece| piece.len() < 70_000));
                assert!(entries.len() < 1000 || include == Include::None || pieces.len() > 1);
            }
        }
    }
    let none = table("limitranges", Include::None, &[]).concat();
    assert!(none.ends_with(b"\"rows\":null}"), "{}", str::from_utf8(&none).unwrap());
    assert!(table("pods", Include::None, &[]).concat().ends_with(b"\"rows\":[]}"));
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
