use super::*;
use serde_json::json;
use std::vec;

fn path(name: &str, path: &str) -> JsonPath {
    JsonPath { name: name.into(), path: path.into(), version: String::new() }
}

fn of_paths(json_paths: Vec<JsonPath>) -> FeedbackRule {
    FeedbackRule { type_: FeedbackRuleType::JsonPaths, json_paths }
}

fn paths(paths: &[(&str, &str)]) -> Vec<FeedbackRule> {
    vec![of_paths(paths.iter().map(|(name, text)| path(name, text)).collect())]
}

fn well_known_status() -> FeedbackRule {
    FeedbackRule { type_: FeedbackRuleType::WellKnownStatus, json_paths: vec![] }
}

fn value(name: &str, field_value: FieldValue) -> FeedbackValue {
    FeedbackValue { name: name.into(), field_value }
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
        (deployment, vec![value("ReadyReplicas", integer(2)), value("Replicas", integer(3))]),
        (job, vec![value("JobComplete", string("True".into())), value("JobSucceeded", integer(1))]),
        (pod, vec![value("PodPhase", string("Running".into()))]),
        (
            set,
            vec![
                value("NumberReady", integer(0)),
                value("DesiredNumberScheduled", integer(1)),
                value("NumberAvailable", integer(0)),
            ],
        ),
    ] {
        let answer = values(&object, &[well_known_status()], false, 1024);
        assert_eq!(answer, (expected, Ok(())), "{object}");
    }
}

#[test]
fn nothing_is_well_known_of_other_kinds() {
    for (api_version, kind) in [("v1", "ConfigMap"), ("apps/v1beta1", "Deployment")] {
        let object = json!({ "apiVersion": api_version, "kind": kind });
        let (found, told) = values(&object, &[well_known_status()], false, 1024);
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
        (".status.n", false, Ok(Some(integer(-3)))),
        (".status.yes", false, Ok(Some(boolean(true)))),
        (".status.text", false, Ok(Some(string("x".into())))),
        (".status.null", false, Ok(None)),
        (".status.gone.deeper", false, Ok(None)),
        (".status.list[*]", false, Ok(Some(integer(5)))),
        (".status.list[*]", true, Ok(Some(json_raw("[5,6]".into())))),
        (".status.list[1]", true, Ok(Some(integer(6)))),
        (".status.map", true, Ok(Some(json_raw(r#"{"a":1}"#.into())))),
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
        let found = found.into_iter().next().map(|one| one.field_value);
        assert_eq!(told.map(|()| found), expected.map_err(String::from), "{text}");
    }
}

#[test]
fn one_bad_rule_does_not_stop_the_others() {
    let object = json!({ "apiVersion": "v1", "kind": "Pod", "status": { "phase": "Running" } });
    let mut rules = vec![well_known_status()];
    let other = JsonPath { version: "v2".into(), ..path("other", ".status.phase") };
    let same = JsonPath { version: "v1".into(), ..path("same", ".status.phase") };
    rules.push(of_paths(vec![other, path("PodPhase", ".kind"), same]));
    let (found, told) = values(&object, &rules, false, 1024);
    assert_eq!(
        found,
        [value("PodPhase", string("Running".into())), value("same", string("Running".into()))]
    );
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
    assert_eq!(found, [value("v", json_raw(object["list"].to_string()))]);
    let (found, told) = values(&object, &paths(&[("a", ".text"), ("b", ".text")]), true, 1024);
    assert_eq!(found.len(), 1);
    assert_eq!(told.unwrap_err(), "b: the values together exceed 262144 bytes");
    let many: Vec<(&str, &str)> = vec![("é", "x"); 2000];
    let (_, told) = values(&object, &paths(&many), false, 1024);
    assert!(told.unwrap_err().len() < 1100);
}
