use serde_json::json;

use super::schema;
use crate::apply::element::Element;
use crate::apply::fields::FieldSet;
use crate::apply::shape::Shape;
use crate::apply::typed;
use crate::schema::Schemas;

fn set(document: serde_json::Value) -> FieldSet {
    FieldSet::from_json(&document).unwrap()
}

#[test]
fn elements_are_written_and_ordered_as_upstream_does() {
    let texts = [
        "f:",
        "f:a",
        "f:b",
        r#"k:{"a":1,"b":"x"}"#,
        r#"k:{"name":"b"}"#,
        "v:1.5",
        "v:2",
        "v:10",
        r#"v:"\u003ca\u0026\"""#,
        r#"v:"b""#,
        "v:false",
        "v:true",
        "v:null",
        "i:2",
        "i:10",
    ];
    let elements: Vec<Element> = texts.iter().map(|text| Element::parse(text).unwrap()).collect();
    for (text, element) in texts.iter().zip(&elements) {
        assert_eq!(element.encode(), *text);
    }
    assert!(elements.is_sorted());
    assert_eq!(Element::parse("v:1.0").unwrap().encode(), "v:1");
    assert_eq!(Element::parse(r#"k:{"b":1,"a":2}"#).unwrap().encode(), r#"k:{"a":2,"b":1}"#);
    for text in ["", "f", "fx", "k:[]", "k:", "v:", "v:x", "i:x", "é:"] {
        assert!(Element::parse(text).is_err(), "{text}");
    }
}

#[test]
fn sets_survive_the_wire() {
    for document in [
        json!({}),
        json!({"f:a": {}}),
        json!({"f:a": {".": {}, "f:b": {}}, "f:c": {"k:{\"n\":1}": {".": {}, "f:n": {}}}}),
        json!({"f:l": {"v:1": {}, "v:\"x\"": {}, "i:3": {}}}),
    ] {
        assert_eq!(set(document.clone()).to_json(), document);
    }
    // What a later version may know is left out; what makes no sense is refused.
    assert_eq!(set(json!({"x:a": {}, "f:b": {}})).to_json(), json!({"f:b": {}}));
    for wrong in [json!([]), json!("x"), json!({"f:a": 1}), json!({"": {}}), json!({"k:1": {}})] {
        assert!(FieldSet::from_json(&wrong).is_err(), "{wrong}");
    }
}

#[test]
fn set_operations() {
    let a = set(json!({"f:p": {".": {}, "f:x": {}, "f:y": {}}, "f:q": {}}));
    let b = set(json!({"f:p": {}, "f:q": {"f:z": {}}}));
    assert_eq!(
        a.clone().union(b.clone()).to_json(),
        json!({"f:p": {".": {}, "f:x": {}, "f:y": {}}, "f:q": {".": {}, "f:z": {}}})
    );
    assert_eq!(a.intersection(&b).to_json(), json!({"f:p": {}}));
    assert_eq!(
        a.clone().difference(&b).to_json(),
        json!({"f:p": {"f:x": {}, "f:y": {}}, "f:q": {}})
    );
    assert_eq!(a.clone().without(&["p"]).to_json(), json!({"f:q": {}}));
    assert_eq!(
        a.clone().without(&["p", "x"]).to_json(),
        json!({"f:p": {".": {}, "f:y": {}}, "f:q": {}})
    );
    assert_eq!(b.clone().without(&["q", "z"]).to_json(), json!({"f:p": {}}));
    assert!(set(json!({"f:p": {"f:x": {}}})).is_subset(&a));
    assert!(!b.is_subset(&a));
    let shown: Vec<String> =
        a.paths().iter().map(|path| path.iter().map(Element::to_string).collect()).collect();
    assert_eq!(shown, [".p", ".q", ".p.x", ".p.y"]);
}

#[test]
fn fields_of_every_sort() {
    let (schemas, root) = Schemas::from_single(&schema()).unwrap();
    let shape = Shape::root(Some(schemas.root(root)));
    for (spec, expected) in [
        (json!({"text": "a", "count": 1}), json!({"f:text": {}, "f:count": {}})),
        (json!({"text": null}), json!({"f:text": {}})),
        (json!({"either": "a"}), json!({"f:either": {}})),
        (json!({"either": 1}), json!({"f:either": {}})),
        (json!({"list": ["a"], "atom": {"a": "1"}}), json!({"f:list": {}, "f:atom": {}})),
        (json!({"set": ["b", "a"]}), json!({"f:set": {"v:\"a\"": {}, "v:\"b\"": {}}})),
        // Elements that repeat are known by their presence only.
        (json!({"set": ["a", "a"]}), json!({"f:set": {"v:\"a\"": {}}})),
        (json!({"set": []}), json!(null)),
        (json!({"map": {"k": "v"}}), json!({"f:map": {"f:k": {}}})),
        (json!({"map": {}}), json!({"f:map": {}})),
        (json!({"maps": {"k": {"a": "1"}}}), json!({"f:maps": {"f:k": {".": {}, "f:a": {}}}})),
        (json!({"nested": {"inner": {"a": "1"}}}), json!({"f:nested": {"f:inner": {"f:a": {}}}})),
        (
            json!({"items": [{"name": "n", "ports": [{"port": 1}, {"port": 2, "protocol": "UDP"}]}]}),
            json!({"f:items": {"k:{\"name\":\"n\"}": {
                ".": {}, "f:name": {},
                "f:ports": {
                    "k:{\"port\":1,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}},
                    "k:{\"port\":2,\"protocol\":\"UDP\"}": {
                        ".": {}, "f:port": {}, "f:protocol": {}
                    }
                }
            }}}),
        ),
        (
            json!({"open": {"a": {"b": [1]}, "c": 1}}),
            json!({"f:open": {"f:a": {".": {}, "f:b": {}}, "f:c": {}}}),
        ),
        (json!({"any": [1, 2]}), json!({"f:any": {}})),
        (json!({"any": {"x": 1}}), json!({"f:any": {"f:x": {}}})),
    ] {
        let fields = typed::fields_of(&json!({"spec": spec}), shape).to_json();
        assert_eq!(fields.get("f:spec").cloned().unwrap_or_default(), expected, "{spec}");
    }
}

#[test]
fn metadata_of_custom_resources_is_known() {
    let (schemas, root) = Schemas::from_single(&schema()).unwrap();
    let shape = Shape::root(Some(schemas.root(root)));
    let object = json!({"metadata": {
        "labels": {"a": "1"}, "finalizers": ["f"],
        "ownerReferences": [{"uid": "u", "name": "n", "kind": "K", "apiVersion": "v1"}]
    }});
    assert_eq!(
        typed::fields_of(&object, shape).to_json(),
        json!({"f:metadata": {
            "f:labels": {"f:a": {}}, "f:finalizers": {"v:\"f\"": {}},
            "f:ownerReferences": {"k:{\"uid\":\"u\"}": {}}
        }})
    );
    assert_eq!(typed::check(&object, shape), None);
}

#[test]
fn configurations_are_checked_in_upstreams_words() {
    let (schemas, root) = Schemas::from_single(&schema()).unwrap();
    let shape = Shape::root(Some(schemas.root(root)));
    for (spec, expected) in [
        (json!({"unknown": 1}), ".spec.unknown: field not declared in schema"),
        (json!({"text": 1}), ".spec.text: expected string, got &value.valueUnstructured{Value:1}"),
        (json!({"count": "1"}), ".spec.count: expected numeric (int or float), got string"),
        (json!({"flag": 1}), ".spec.flag: expected boolean, got &{1}"),
        (json!({"map": "x"}), ".spec.map: expected map, got &{x}"),
        (json!({"set": "x"}), ".spec.set: expected list, got &{x}"),
        (json!({"set": ["a", "a"]}), ".spec.set: duplicate entries for key [=\"a\"]"),
        (
            json!({"items": [{"name": "a"}, {"name": "a"}]}),
            ".spec.items: duplicate entries for key [name=\"a\"]",
        ),
        (
            json!({"items": [{"value": "a"}]}),
            ".spec.items: element 0: associative list with keys has an element that omits all key \
             fields [\"name\"] (and doesn't have default values for any key fields)",
        ),
        (
            json!({"items": [{"name": "a", "size": "x"}]}),
            ".spec.items[name=\"a\"].size: expected numeric (int or float), got string",
        ),
        (
            json!({"text": 1, "flag": 1}),
            "errors:\n  .spec.flag: expected boolean, got &{1}\n  \
             .spec.text: expected string, got &value.valueUnstructured{Value:1}",
        ),
    ] {
        let found = typed::check(&json!({"spec": spec}), shape);
        assert_eq!(found.as_deref(), Some(expected), "{spec}");
    }
}
