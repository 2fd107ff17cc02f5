use super::*;
use serde_json::json;
use std::vec;

fn path(name: &str, path: &str) -> FeedbackPath {
    FeedbackPath { name: name.into(), path: path.into(), version: None }
}

fn paths(paths: &[(&str, &str)]) -> Vec<FeedbackRule> {
    let paths = paths.iter().map(|(name, text)| path(name, text)).collect();
    vec![FeedbackRule::JsonPaths(paths)]
}

fn integer(name: &str, value: i64) -> FeedbackValue {
    FeedbackValue { name: name.into(), value: FieldValue::Integer(value) }
}

fn string(name: &str, value: &str) -> FeedbackValue {
    FeedbackValue { name: name.into(), value: FieldValue::String(value.into()) }
}

fn raw(name: &str, value: &str) -> FeedbackValue {
    FeedbackValue { name: name.into(), value: FieldValue::JsonRaw(value.into()) }
}

#[test]
fn well_known_values() {
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "status": { "replicas": 3, "readyReplicas": 2 },
    });
    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "status": { "succeeded": 1, "conditions": [
            { "type": "SuccessCriteriaMet", "status": "True" },
            { "type": "Complete", "status": "True" },
        ]},
    });
    let pod = json!({ "apiVersion": "v1", "kind": "Pod", "status": { "phase": "Running" } });
    let set = json!({ "apiVersion": "apps/v1", "kind": "DaemonSet", "status": {
        "numberReady": 0, "desiredNumberScheduled": 1, "numberAvailable": 0,
    }});
    for (object, expected) in [
        (deployment, vec![integer("ReadyReplicas", 2), integer("Replicas", 3)]),
        (job, vec![string("JobComplete", "True"), integer("JobSucceeded", 1)]),
        (pod, vec![string("PodPhase", "Running")]),
        (
            set,
            vec![
                integer("NumberReady", 0),
                integer("DesiredNumberScheduled", 1),
                integer("NumberAvailable", 0),
            ],
        ),
    ] {
        let answer = values(&object, &[FeedbackRule::WellKnownStatus], false, 1024);
        assert_eq!(answer, (expected, Ok(())), "{object}");
    }
}

#[test]
fn nothing_is_well_known_of_other_kinds() {
    for (api_version, kind) in [("v1", "ConfigMap"), ("apps/v1beta1", "Deployment")] {
        let object = json!({ "apiVersion": api_version, "kind": kind });
        let (found, told) = values(&object, &[FeedbackRule::WellKnownStatus], false, 1024);
        assert!(found.is_empty());
        let expected = format!("no status is well known of {kind} in {api_version}: use JSONPaths");
        assert_eq!(told, Err(expected));
    }
}

#[test]
fn paths_select_scalars() {
    let object = json!({
        "apiVersion": "example.com/v1", "kind": "Widget",
        "status": { "n": -3, "yes": true, "text": "x", "null": null, "half": 0.5,
                    "big": u64::MAX, "map": { "a": 1 }, "list": [5, 6] },
    });
    for (text, raw_json, expected) in [
        (".status.n", false, Ok(Some(FieldValue::Integer(-3)))),
        (".status.yes", false, Ok(Some(FieldValue::Boolean(true)))),
        (".status.text", false, Ok(Some(FieldValue::String("x".into())))),
        (".status.null", false, Ok(None)),
        (".status.gone.deeper", false, Ok(None)),
        (".status.list[*]", false, Ok(Some(FieldValue::Integer(5)))),
        (".status.list[*]", true, Ok(Some(FieldValue::JsonRaw("[5,6]".into())))),
        (".status.list[1]", true, Ok(Some(FieldValue::Integer(6)))),
        (".status.map", true, Ok(Some(FieldValue::JsonRaw(r#"{"a":1}"#.into())))),
        (
            ".status.map",
            false,
            Err("v: the value at .status.map is neither text, number nor truth"),
        ),
        (".status.half", false, Err("v: 0.5 is not a whole number of 64 bits")),
        (".status.big", false, Err("v: 18446744073709551615 is not a whole number of 64 bits")),
        ("status.n", false, Err("v: the path status.n must begin with a dot")),
        (".status[", false, Err("v: the path .status[ cannot be read: unterminated array")),
        (
            ".status.text[0]",
            false,
            Err("v: the path .status.text[0] does not fit: string is not array or slice"),
        ),
    ] {
        let (found, told) = values(&object, &paths(&[("v", text)]), raw_json, 1024);
        let found = found.into_iter().next().map(|one| one.value);
        assert_eq!(told.map(|()| found), expected.map_err(String::from), "{text}");
    }
}

#[test]
fn one_bad_rule_does_not_stop_the_others() {
    let object = json!({ "apiVersion": "v1", "kind": "Pod", "status": { "phase": "Running" } });
    let mut rules = vec![FeedbackRule::WellKnownStatus];
    let other = FeedbackPath { version: Some("v2".into()), ..path("other", ".status.phase") };
    let same = FeedbackPath { version: Some("v1".into()), ..path("same", ".status.phase") };
    rules.push(FeedbackRule::JsonPaths(vec![other, path("PodPhase", ".kind"), same]));
    let (found, told) = values(&object, &rules, false, 1024);
    assert_eq!(found, [string("PodPhase", "Running"), string("same", "Running")]);
    let expected =
        "other: is for version v2, and the object is v1; PodPhase: the name is used twice";
    assert_eq!(told, Err(expected.to_string()));
}

#[test]
fn sizes_are_bounded() {
    let object = json!({ "list": vec![1; 600], "text": "é".repeat(100_000) });
    let (found, told) = values(&object, &paths(&[("v", ".list")]), true, 1024);
    assert_eq!(found, []);
    assert!(told.unwrap_err().contains("1201 bytes of JSON, at most 1024"));
    let (found, _) = values(&object, &paths(&[("v", ".list")]), true, 2000);
    assert_eq!(found, [raw("v", &object["list"].to_string())]);
    let (found, told) = values(&object, &paths(&[("a", ".text"), ("b", ".text")]), true, 1024);
    assert_eq!(found.len(), 1);
    assert_eq!(told.unwrap_err(), "b: the values together exceed 262144 bytes");
    let many: Vec<(&str, &str)> = vec![("é", "x"); 2000];
    let (_, told) = values(&object, &paths(&many), false, 1024);
    assert!(told.unwrap_err().len() < 1100);
}
