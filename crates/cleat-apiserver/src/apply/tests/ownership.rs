use serde_json::{Value, json};

use super::{TIME, Thing, whole};
use crate::apply::keep_times_if_unchanged;

#[test]
fn create_through_apply() {
    let mut thing = Thing::new();
    thing.apply("a", json!({"text": "x", "set": ["s"]}));
    let expected = json!({
        "apiVersion": "example.com/v1", "kind": "Thing",
        "metadata": {
            "name": "x", "namespace": "ns",
            "managedFields": [{
                "manager": "a", "operation": "Apply", "apiVersion": "example.com/v1",
                "time": TIME, "fieldsType": "FieldsV1",
                "fieldsV1": {"f:spec": {"f:set": {"v:\"s\"": {}}, "f:text": {}}}
            }]
        },
        "spec": {"text": "x", "set": ["s"]}
    });
    assert_eq!(thing.live, Some(expected));
}

#[test]
fn create_through_update_owns_the_parents_too() {
    let mut thing = Thing::new();
    thing.update("u", json!({"text": "x", "map": {"k": "v"}}));
    assert_eq!(
        thing.entries(),
        [json!({
            "manager": "u", "operation": "Update", "apiVersion": "example.com/v1", "time": TIME,
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": {".": {}, "f:map": {".": {}, "f:k": {}}, "f:text": {}}}
        })]
    );
}

#[test]
fn conflicts_name_managers_and_fields() {
    let mut thing = Thing::new();
    thing.apply("a", json!({"text": "x", "count": 1}));
    let one = thing.try_apply("b", json!({"text": "y"}), false).unwrap_err();
    assert_eq!(one.message, "Apply failed with 1 conflict: conflict with \"a\": .spec.text");
    assert_eq!(
        one.to_json()["details"],
        json!({"causes": [{
            "reason": "FieldManagerConflict", "message": "conflict with \"a\"",
            "field": ".spec.text"
        }]})
    );
    thing.update("u", json!({"text": "x", "count": 2, "items": [{"name": "n", "value": "1"}]}));
    let many = thing
        .try_apply(
            "b",
            json!({"text": "y", "count": 3, "items": [{"name": "n", "value": "2"}]}),
            false,
        )
        .unwrap_err();
    assert_eq!(
        many.message,
        "Apply failed with 3 conflicts: conflicts with \"a\":\n- .spec.text\n\
         conflicts with \"u\" using example.com/v1:\n- .spec.count\n\
         - .spec.items[name=\"n\"].value"
    );
    assert_eq!(many.details.causes[2].message, "conflict with \"u\" using example.com/v1");
}

#[test]
fn force_takes_fields() {
    let mut thing = Thing::new();
    thing.apply("a", json!({"text": "x", "count": 1}));
    thing.force("b", json!({"text": "y"}));
    assert_eq!(thing.spec(), &json!({"text": "y", "count": 1}));
    assert_eq!(thing.managed("a"), json!({"f:count": {}}));
    assert_eq!(thing.managed("b"), json!({"f:text": {}}));
    // Having lost everything, a manager is gone.
    thing.force("b", json!({"text": "y", "count": 2}));
    assert_eq!(thing.managed("a"), Value::Null);
    assert_eq!(thing.entries().len(), 1);
}

#[test]
fn equal_values_are_shared() {
    let mut thing = Thing::new();
    thing.apply("a", json!({"text": "x"}));
    thing.apply("b", json!({"text": "x"}));
    assert_eq!(thing.managed("a"), thing.managed("b"));
    assert_eq!(thing.conflicts("b", json!({"text": "y"})), [".spec.text"]);
    // Shared fields stay until the last owner lets go.
    thing.apply("b", json!({}));
    assert_eq!(thing.spec(), &json!({"text": "x"}));
    thing.apply("a", json!({"count": 1}));
    assert_eq!(thing.spec(), &json!({"count": 1}));
}

#[test]
fn fields_given_up_are_removed() {
    let mut thing = Thing::new();
    thing.apply(
        "a",
        json!({
            "text": "x", "count": 1, "map": {"k": "1", "l": "2"}, "set": ["p", "q"],
            "items": [{"name": "m", "value": "1"}, {"name": "n", "value": "2"}],
            "nested": {"inner": {"a": "1", "b": "2"}}, "list": ["a"], "atom": {"a": "1"}
        }),
    );
    thing.apply(
        "a",
        json!({
            "count": 1, "map": {"k": "1"}, "set": ["q"], "items": [{"name": "n"}],
            "nested": {"inner": {"b": "2"}}
        }),
    );
    assert_eq!(
        thing.spec(),
        &json!({
            "count": 1, "map": {"k": "1"}, "set": ["q"], "items": [{"name": "n"}],
            "nested": {"inner": {"b": "2"}}
        })
    );
}

#[test]
fn what_others_own_below_a_parent_given_up_stays() {
    let mut thing = Thing::new();
    thing.apply("a", json!({"map": {"k": "1"}, "items": [{"name": "m", "value": "1"}]}));
    thing.apply("b", json!({"map": {"l": "2"}, "items": [{"name": "n"}]}));
    thing.apply("a", json!({"text": "x"}));
    assert_eq!(thing.spec(), &json!({"map": {"l": "2"}, "items": [{"name": "n"}], "text": "x"}));
}

#[test]
fn fields_of_nobody_stay_when_a_sibling_goes() {
    let mut thing = Thing::new();
    thing.apply("a", json!({"text": "x", "count": 1}));
    // Added behind everybody's back, as a defaulting server does.
    thing.live.as_mut().unwrap()["spec"]["flag"] = json!(true);
    thing.apply("a", json!({"count": 1}));
    assert_eq!(thing.spec(), &json!({"count": 1, "flag": true}));
}

#[test]
fn updates_take_fields_from_appliers() {
    let mut thing = Thing::new();
    thing.apply("a", json!({"text": "x", "map": {"k": "1", "l": "1"}}));
    thing.update("u", json!({"text": "y", "map": {"k": "1"}}));
    assert_eq!(thing.managed("a"), json!({"f:map": {"f:k": {}}}));
    assert_eq!(thing.managed("u"), json!({"f:text": {}}));
    // The applier insists and has its way only by force.
    let config = json!({"text": "x", "map": {"k": "1"}});
    assert_eq!(thing.conflicts("a", config.clone()), [".spec.text"]);
    thing.force("a", config);
    assert_eq!(thing.managed("u"), Value::Null);
}

#[test]
fn atomic_fields_are_owned_whole() {
    let mut thing = Thing::new();
    thing.apply("a", json!({"list": ["a"], "atom": {"a": "1"}}));
    assert_eq!(
        thing.conflicts("b", json!({"list": ["a", "b"], "atom": {"b": "1"}})),
        [".spec.atom", ".spec.list"]
    );
    thing.force("b", json!({"list": ["b"], "atom": {"b": "1"}}));
    assert_eq!(thing.spec(), &json!({"list": ["b"], "atom": {"b": "1"}}));
}

#[test]
fn merged_lists_keep_the_configurations_order() {
    let names = |names: &str| -> Value {
        names.chars().map(|name| json!({"name": name.to_string()})).collect()
    };
    for (live, config, expected) in [
        ("abc", "c", "abc"),
        ("abc", "ca", "bca"),
        ("abc", "cba", "cba"),
        ("abc", "dc", "abdc"),
        ("abc", "xyz", "abcxyz"),
        ("abc", "xa", "xabc"),
        ("abcd", "dxb", "acdxb"),
        ("", "ba", "ba"),
    ] {
        let mut thing = Thing::new();
        thing.update("u", json!({"items": names(live), "set": live.split("").filter(|s| !s.is_empty()).collect::<Vec<_>>()}));
        thing.apply("a", json!({"items": names(config)}));
        assert_eq!(thing.spec()["items"], names(expected), "{config} into {live}");
    }
}

#[test]
fn duplicates_in_live_lists_are_survived() {
    let mut thing = Thing::new();
    thing.update(
        "u",
        json!({"set": ["a", "a", "b"], "items": [
            {"name": "m", "value": "1"}, {"name": "m", "value": "2"}
        ]}),
    );
    assert_eq!(
        thing.managed("u"),
        json!({
            ".": {}, "f:set": {".": {}, "v:\"a\"": {}, "v:\"b\"": {}},
            "f:items": {".": {}, "k:{\"name\":\"m\"}": {}}
        })
    );
    thing.apply("a", json!({"set": ["c"], "items": [{"name": "n"}]}));
    assert_eq!(thing.spec()["set"], json!(["a", "a", "b", "c"]));
    // An applied element replaces all its likes.
    thing.force("a", json!({"set": ["a"], "items": [{"name": "m", "value": "3"}]}));
    assert_eq!(thing.spec()["set"], json!(["a", "b"]));
    assert_eq!(thing.spec()["items"], json!([{"name": "m", "value": "3"}]));
}

#[test]
fn keys_with_defaults_are_one_element() {
    let mut thing = Thing::new();
    let ports = |ports: Value| json!({"items": [{"name": "n", "ports": ports}]});
    thing.apply("a", ports(json!([{"port": 1, "name": "x"}])));
    thing
        .apply("b", ports(json!([{"port": 1, "protocol": "TCP"}, {"port": 1, "protocol": "UDP"}])));
    assert_eq!(
        thing.spec()["items"][0]["ports"],
        json!([{"port": 1, "name": "x", "protocol": "TCP"}, {"port": 1, "protocol": "UDP"}])
    );
}

#[test]
fn objects_without_managers_get_one_for_their_past() {
    let mut thing = Thing::new();
    thing.live = Some(whole(json!({"spec": {"text": "x"}, "status": {"phase": "p"}})));
    thing.apply("a", json!({"count": 1}));
    let entries = thing.entries();
    assert_eq!(entries[1]["manager"], "before-first-apply");
    assert_eq!(entries[1]["operation"], "Update");
    assert_eq!(entries[1]["fieldsV1"], json!({"f:spec": {".": {}, "f:text": {}}}));
    assert_eq!(thing.conflicts("a", json!({"text": "y"})), [".spec.text"]);
}

#[test]
fn updates_of_objects_without_managers_are_not_tracked() {
    let mut thing = Thing::new();
    thing.live = Some(whole(json!({"spec": {"text": "x"}})));
    thing.update("u", json!({"text": "y"}));
    assert!(thing.entries().is_empty());
}

#[test]
fn clients_may_reset_and_set_managers() {
    for reset in [json!([]), json!([{}])] {
        let mut thing = Thing::new();
        thing.apply("a", json!({"text": "x"}));
        let mut new = thing.live.clone().unwrap();
        new["metadata"]["managedFields"] = reset;
        thing.update_object("u", "", new);
        assert_eq!(thing.live.as_ref().unwrap()["metadata"].get("managedFields"), None);
    }
    let mut thing = Thing::new();
    thing.apply("a", json!({"text": "x"}));
    let mut new = thing.live.clone().unwrap();
    new["metadata"]["managedFields"][0]["manager"] = json!("b");
    thing.update_object("u", "", new.clone());
    assert_eq!(thing.entries()[0]["manager"], "b");
    // Absent or nonsensical, they stay as they are; and a subresource cannot set them.
    for managed in [Value::Null, json!([{"manager": "c"}])] {
        new["metadata"]["managedFields"] = managed;
        thing.update_object("u", "", new.clone());
        assert_eq!(thing.entries()[0]["manager"], "b");
    }
    new["metadata"]["managedFields"] = json!([]);
    thing.update_object("u", "status", new);
    assert_eq!(thing.entries()[0]["manager"], "b");
}

#[test]
fn subresources_have_managers_of_their_own() {
    let mut thing = Thing::new();
    thing.apply("a", json!({"text": "x"}));
    let mut new = thing.live.clone().unwrap();
    new["status"] = json!({"phase": "p"});
    new["spec"]["text"] = json!("ignored");
    thing.update_object("a", "status", new);
    assert_eq!(
        thing.entries()[1],
        json!({
            "manager": "a", "operation": "Update", "apiVersion": "example.com/v1", "time": TIME,
            "subresource": "status", "fieldsType": "FieldsV1",
            "fieldsV1": {"f:status": {".": {}, "f:phase": {}}}
        })
    );
    assert_eq!(thing.managed("a"), json!({"f:text": {}}));
}

#[test]
fn times_move_only_with_changes() {
    let mut thing = Thing::new();
    thing.apply("a", json!({"text": "x"}));
    thing.update("u", json!({"text": "x", "count": 1}));
    thing.time = "2026-11-15T11:00:00Z".to_owned();
    thing.apply("a", json!({"text": "x"}));
    thing.update("u", json!({"text": "x", "count": 1}));
    assert!(thing.entries().iter().all(|entry| entry["time"] == TIME));
    thing.apply("a", json!({"text": "y"}));
    assert_eq!(thing.entries()[0]["time"], "2026-11-15T11:00:00Z");
    assert_eq!(thing.entries()[1]["time"], TIME);
    // Ownership alone changes no object, and so gives no time either.
    thing.apply("b", json!({"text": "y"}));
    assert_eq!(thing.entries()[0].get("time"), None);
}

#[test]
fn times_are_taken_back_if_nothing_else_changed() {
    let mut thing = Thing::new();
    thing.apply("a", json!({"text": "x"}));
    let before = thing.live.clone().unwrap();
    let mut after = before.clone();
    after["metadata"]["managedFields"][0]["time"] = json!("2026-11-15T11:00:00Z");
    let mut changed = after.clone();
    keep_times_if_unchanged(&before, &mut after);
    assert_eq!(after, before);
    changed["spec"]["text"] = json!("y");
    let expected = changed.clone();
    keep_times_if_unchanged(&before, &mut changed);
    assert_eq!(changed, expected);
}

#[test]
fn managers_are_sorted_and_the_oldest_updaters_united() {
    let mut thing = Thing::new();
    thing.apply("zz", json!({"text": "x"}));
    for index in 0..12 {
        thing.time = format!("2026-11-15T10:00:{:02}Z", index + 1);
        let mut map = thing.spec().clone();
        map["map"][format!("k{index:02}")] = json!("v");
        thing.update(&format!("u{index:02}"), map);
    }
    let names: Vec<String> =
        thing.entries().iter().map(|e| e["manager"].as_str().unwrap().to_owned()).collect();
    assert_eq!(
        names,
        ["zz", "ancient-changes", "u03", "u04", "u05", "u06", "u07", "u08", "u09", "u10", "u11"]
    );
    let ancient = &thing.entries()[1];
    assert_eq!(ancient["time"], "2026-11-15T10:00:03Z");
    assert_eq!(
        ancient["fieldsV1"]["f:spec"]["f:map"],
        json!({".": {}, "f:k00": {}, "f:k01": {}, "f:k02": {}})
    );
}

#[test]
fn managers_of_versions_that_are_gone_are_forgotten() {
    let mut thing = Thing::new();
    thing.apply("a", json!({"text": "x"}));
    let managed = &mut thing.live.as_mut().unwrap()["metadata"]["managedFields"][0];
    managed["apiVersion"] = json!("example.com/v0");
    thing.apply("b", json!({"text": "y"}));
    assert_eq!(thing.managed("a"), Value::Null);
    let managed = &mut thing.live.as_mut().unwrap()["metadata"]["managedFields"];
    managed.as_array_mut().unwrap().iter_mut().for_each(|entry| {
        entry["apiVersion"] = json!("example.com/v2");
    });
    assert_eq!(thing.conflicts("c", json!({"text": "z"})), [".spec.text"]);
}

#[test]
fn what_became_atomic_is_owned_whole() {
    let mut thing = Thing::new();
    thing.apply("a", json!({"atom": {"a": "1"}, "list": ["x"]}));
    let managed = &mut thing.live.as_mut().unwrap()["metadata"]["managedFields"][0]["fieldsV1"];
    managed["f:spec"] = json!({"f:atom": {".": {}, "f:a": {}}, "f:list": {"v:\"x\"": {}}});
    thing.apply("b", json!({"text": "t"}));
    assert_eq!(thing.managed("a"), json!({"f:atom": {}, "f:list": {}}));
}

#[test]
fn configurations_must_be_of_the_kind() {
    let mut thing = Thing::new();
    let mut refuse = |config: Value, code: u16, message: &str| {
        let status = thing.try_apply_object("a", &config, false).unwrap_err();
        assert_eq!((status.code, status.message.as_str()), (code, message));
    };
    refuse(Value::Null, 400, "invalid object type: /, Kind=");
    refuse(
        json!({"apiVersion": "v1", "kind": "ConfigMap"}),
        400,
        "invalid object type: /v1, Kind=ConfigMap",
    );
    let mut managed = whole(json!({}));
    managed["metadata"]["managedFields"] = json!([]);
    refuse(managed, 400, "metadata.managedFields must be nil");
    refuse(
        whole(json!({"spec": {"no": 1}})),
        500,
        "failed to create typed patch object (ns/x; example.com/v1, Kind=Thing): \
         .spec.no: field not declared in schema",
    );
}

#[test]
fn kubectl_moves_from_client_side_to_server_side() {
    let annotation = "kubectl.kubernetes.io/last-applied-configuration";
    let applied = whole(json!({"spec": {"text": "x", "count": 1}}));
    let mut object = applied.clone();
    object["metadata"]["annotations"] = json!({annotation: applied.to_string()});
    let mut thing = Thing::new();
    thing.update_object("kubectl-client-side-apply", "", object);
    // Only what still is as it was applied may be taken without force.
    let mut changed = thing.live.clone().unwrap();
    changed["spec"]["count"] = json!(2);
    thing.update_object("u", "", changed);
    assert_eq!(thing.conflicts("other", json!({"text": "y"})), [".spec.text"]);
    assert_eq!(thing.conflicts("kubectl", json!({"text": "y", "count": 3})), [".spec.count"]);
    thing.apply("kubectl", json!({"text": "<y>"}));
    assert_eq!(thing.spec(), &json!({"text": "<y>", "count": 2}));
    let renewed = &thing.live.as_ref().unwrap()["metadata"]["annotations"][annotation];
    let text = renewed.as_str().unwrap();
    assert!(text.ends_with("\"spec\":{\"text\":\"\\u003cy\\u003e\"}}\n"), "{text}");
}

#[test]
fn without_a_schema_maps_merge_and_lists_do_not() {
    let mut thing = Thing::schemaless();
    thing.apply("a", json!({"m": {"x": 1}, "l": [1]}));
    thing.apply("b", json!({"m": {"y": 2}}));
    assert_eq!(thing.spec(), &json!({"m": {"x": 1, "y": 2}, "l": [1]}));
    assert_eq!(thing.conflicts("b", json!({"l": [2]})), [".spec.l"]);
    assert_eq!(thing.managed("a"), json!({".": {}, "f:l": {}, "f:m": {".": {}, "f:x": {}}}));
}
