use super::*;
use serde_json::json;
use std::vec;
use std::vec::Vec;

fn manifest() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": "a", "annotations": { "x": "y" } },
        "spec": { "replicas": 3, "paused": false, "list": [{ "name": "a", "v": 1 }, { "name": "b", "v": 2 }] },
    })
}

enum By {
    Path,
    Pointer,
    Jq,
}

fn ignoring(condition: IgnoreFieldsCondition, by: By, text: &str) -> IgnoreField {
    let mut field = IgnoreField { condition, ..Default::default() };
    match by {
        By::Path => field.json_paths.push(text.into()),
        By::Pointer => field.json_pointers.push(text.into()),
        By::Jq => field.jq_path_expressions.push(text.into()),
    }
    field
}

fn present(by: By, text: &str) -> Vec<IgnoreField> {
    vec![ignoring(IgnoreFieldsCondition::OnSpokePresent, by, text)]
}

#[test]
fn what_is_ignored_is_not_sent() {
    for (by, text, expected) in [
        (
            By::Path,
            ".spec.replicas",
            json!({ "paused": false, "list": manifest()["spec"]["list"] }),
        ),
        (
            By::Path,
            "{.spec.replicas}",
            json!({ "paused": false, "list": manifest()["spec"]["list"] }),
        ),
        (By::Path, ".spec['replicas','paused']", json!({ "list": manifest()["spec"]["list"] })),
        (
            By::Path,
            ".spec.list[?(@.name=='a')].v",
            json!({ "replicas": 3, "paused": false, "list": [{ "name": "a" }, { "name": "b", "v": 2 }] }),
        ),
        (
            By::Path,
            ".spec.list[0]",
            json!({ "replicas": 3, "paused": false, "list": [{ "name": "b", "v": 2 }] }),
        ),
        // Paths that select nothing, do not fit or cannot be read.
        (By::Path, ".spec.gone", manifest()["spec"].clone()),
        (By::Path, ".spec.replicas[0]", manifest()["spec"].clone()),
        (By::Path, ".spec[", manifest()["spec"].clone()),
        (
            By::Pointer,
            "/spec/list/1/v",
            json!({ "replicas": 3, "paused": false, "list": [{ "name": "a", "v": 1 }, { "name": "b" }] }),
        ),
        (By::Pointer, "/spec/gone", manifest()["spec"].clone()),
        (
            By::Jq,
            ".spec.list[] | select(.name == \"b\")",
            json!({ "replicas": 3, "paused": false, "list": [{ "name": "a", "v": 1 }] }),
        ),
        (By::Jq, ".spec | .replicas, .list", json!({ "paused": false })),
    ] {
        let sent = body(&manifest(), true, &present(by, text)).unwrap();
        assert_eq!(sent.object["spec"], expected, "{text}");
        assert_eq!(sent.object["metadata"]["annotations"][CONFIG_SPEC_HASH], json!(sent.hash));
        assert_eq!(sent.object["metadata"]["annotations"]["x"], "y");
    }
}

#[test]
fn an_object_that_is_not_there_gets_everything() {
    let ignore = present(By::Path, ".spec.replicas");
    let first = body(&manifest(), false, &ignore).unwrap();
    assert_eq!(first.object["spec"], manifest()["spec"]);
    let later = body(&manifest(), true, &ignore).unwrap();
    assert_eq!(first.hash, later.hash);
    assert_eq!(first.hash.len(), 64);
}

#[test]
fn the_hash_changes_with_what_is_not_left_to_others() {
    let hash =
        |manifest: &Value, ignore: &[IgnoreField]| body(manifest, true, ignore).unwrap().hash;
    let mut other = manifest();
    other["spec"]["replicas"] = json!(4);
    let ignore = present(By::Path, ".spec.replicas");
    assert_eq!(hash(&manifest(), &ignore), hash(&other, &ignore));
    let ignore = [ignoring(IgnoreFieldsCondition::OnSpokeChange, By::Path, ".spec.replicas")];
    assert_ne!(hash(&manifest(), &ignore), hash(&other, &ignore));
    let sent = body(&manifest(), true, &ignore).unwrap();
    assert_eq!(sent.object["spec"], manifest()["spec"]);
    assert_eq!(hash(&manifest(), &[]), "");
    assert_eq!(body(&manifest(), true, &[]).unwrap().object, manifest());
}

#[test]
fn errors_say_what_is_wrong() {
    let many = IgnoreField { json_paths: vec![".a".into(); 300], ..Default::default() };
    let unknown = ignoring(IgnoreFieldsCondition::Unknown, By::Path, ".spec");
    let later = ignoring(IgnoreFieldsCondition::OnSpokeChange, By::Jq, "def f: 1; f");
    for (ignore, expected) in [
        (
            present(By::Pointer, "spec"),
            "the JSON pointer \"spec\" must be / and the names of fields, with ~0 for ~ and ~1 for /",
        ),
        (
            present(By::Jq, "now"),
            "the jq expression \"now\" uses now/0, which is not allowed: only what selects paths is",
        ),
        (present(By::Jq, "."), "the jq expression \".\" selects the whole object"),
        (present(By::Path, ".metadata"), "apiVersion, kind and metadata.name cannot be ignored"),
        (present(By::Path, "@"), "apiVersion, kind and metadata.name cannot be ignored"),
        (vec![many], "300 paths are more than the 256 that may be ignored of one object"),
        (vec![unknown], "a condition is one that this agent does not know"),
        (
            vec![later],
            "the jq expression \"def f: 1; f\" uses def, which is not allowed: only what selects paths is",
        ),
    ] {
        assert_eq!(body(&manifest(), true, &ignore).unwrap_err().to_string(), expected);
    }
}

#[test]
fn what_was_applied_is_known() {
    let plain = body(&manifest(), true, &[]).unwrap();
    let mut existing = manifest();
    existing["spec"]["progressDeadlineSeconds"] = json!(600);
    assert!(!plain.was_applied_to(&existing), "nobody has applied it");
    let fields = json!({
        "f:metadata": { "f:annotations": { "f:x": {} } },
        "f:spec": { "f:replicas": {}, "f:list": { "k:{\"name\":\"a\"}": { ".": {}, "f:v": {} } } },
    });
    existing["metadata"]["managedFields"] =
        json!([{ "manager": "work-agent", "operation": "Apply", "fieldsV1": fields }]);
    assert!(plain.was_applied_to(&existing));
    assert!(plain.was_applied_by(&existing, "work-agent"));
    assert!(!plain.was_applied_by(&existing, "work-agent-two"));
    // Somebody has changed it.
    let mut changed = existing.clone();
    changed["spec"]["replicas"] = json!(4);
    assert!(!plain.was_applied_to(&changed));
    // The manifest says less than was applied.
    for pointer in ["/spec/replicas", "/spec/list/0"] {
        let less = body(&manifest(), true, &present(By::Pointer, pointer)).unwrap();
        let less = ApplyBody { object: less.object, hash: String::new() };
        assert!(!less.was_applied_to(&existing), "{pointer}");
    }
    // With fields to ignore the hash tells.
    let partial = body(&manifest(), true, &present(By::Pointer, "/spec/replicas")).unwrap();
    assert!(!partial.was_applied_to(&existing));
    changed["metadata"]["annotations"][CONFIG_SPEC_HASH] = json!(partial.hash);
    assert!(partial.was_applied_to(&changed));
}

#[test]
fn what_says_nothing_needs_no_account() {
    let name = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "a", "labels": {} } });
    assert!(body(&name, true, &[]).unwrap().was_applied_to(&name));
    let mut labelled = name.clone();
    labelled["metadata"]["labels"]["a"] = json!("b");
    assert!(!body(&labelled, true, &[]).unwrap().was_applied_to(&labelled));
}

#[test]
fn dates_that_are_not_set_are_not_applied() {
    let dated = json!({ "metadata": { "creationTimestamp": null, "name": "a" },
                        "list": [{ "creationTimestamp": null, "x": null }] });
    let expected = json!({ "metadata": { "name": "a" }, "list": [{ "x": null }] });
    assert_eq!(body(&dated, true, &[]).unwrap().object, expected);
}
