use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::resource::{Origin, ResourceType, Version};

fn object() -> Value {
    json!({
        "metadata": {
            "name": "web-1", "namespace": "shop",
            "labels": {"app": "web", "tier": "front", "empty": "", "n": "7", "in": "notin"},
        },
        "spec": {"nodeName": "n1", "color": "red", "size": 3, "tags": ["x"]},
        "status": {"phase": "Running", "podIPs": [{"ip": "10.0.0.1"}]},
    })
}

fn resource(group: &str, plural: &str, origin: Origin, namespaced: bool) -> ResourceType {
    let version = Version {
        name: "v1".into(),
        served: true,
        deprecation: None,
        schema: None,
        verbs: Vec::new(),
        subresources: Vec::new(),
        scale: None,
        columns: Vec::new(),
        selectable_fields: vec![".spec.color".into(), ".spec.size".into()],
    };
    ResourceType {
        group: group.into(),
        plural: plural.into(),
        singular: "".into(),
        kind: "".into(),
        list_kind: "".into(),
        short_names: Vec::new(),
        categories: Vec::new(),
        namespaced,
        versions: vec![version],
        storage_version: "v1".into(),
        origin,
    }
}

fn custom() -> Origin {
    Origin::Custom { name: "x".into(), uid: "u".into() }
}

#[test]
fn label_selectors_match_and_print() {
    for (text, printed, matches) in [
        ("", "", true),
        ("  ", "", true),
        ("app=web", "app=web", true),
        ("app==web", "app==web", true),
        (" app = web , tier!=back", "app=web,tier!=back", true),
        ("tier,app", "app,tier", true),
        ("app!=web", "app!=web", false),
        ("gone!=x", "gone!=x", true),
        ("app in (db, web)", "app in (db,web)", true),
        ("app in (db)", "app in (db)", false),
        ("app notin (db,web)", "app notin (db,web)", false),
        ("gone notin (x)", "gone notin (x)", true),
        ("!gone", "!gone", true),
        ("!app", "!app", false),
        ("gone", "gone", false),
        ("empty=", "empty=", true),
        ("empty in ()", "empty in ()", true),
        ("app in (,web)", "app in (,web)", true),
        ("app=,tier", "app=,tier", false),
        ("n>6", "n>6", true),
        ("n<7", "n<7", false),
        ("app>6", "app>6", false),
        ("in in (notin)", "in in (notin)", true),
        ("in=notin", "in=notin", true),
        ("example.com/x", "example.com/x", false),
    ] {
        let selector = LabelSelector::parse(text).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(selector.to_string(), printed, "{text}");
        assert_eq!(selector.matches(&object()), matches, "{text}");
    }
    assert!(LabelSelector::parse("").unwrap().is_everything());
    assert!(LabelSelector::parse("!a").unwrap().matches(&json!({})));
}

#[test]
fn bad_label_selectors_are_refused_in_kubernetes_words() {
    for (text, expected) in [
        ("a,", "found '', expected: identifier after ','"),
        (",a", "found ',', expected: !, identifier, or 'end of string'"),
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("!a b", "found 'b', expected: ',' or 'end of string'"),
        ("!a=b", "found '=', expected: ',' or 'end of string'"),
        ("a=b c", "found 'c', expected: ',' or 'end of string'"),
        ("a in b", "unable to parse requirement: found 'b' expected: '('"),
        ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("a in (=)", "unable to parse requirement: found '=', expected: ',', ')' or identifier"),
        ("a in (b,=)", "unable to parse requirement: found '=', expected: ',', or identifier"),
        ("a===b", "unable to parse requirement: found '=', expected: identifier"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        ("a\0b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        (
            "a>b",
            "unable to parse requirement: values[0]: Invalid value: \"b\": for 'Gt', 'Lt' \
             operators, the value must be an integer",
        ),
        (
            "/a",
            "unable to parse requirement: <nil>: Invalid value: \"/a\": prefix part must be \
             non-empty",
        ),
        (
            "a=$",
            "unable to parse requirement: values[0][a]: Invalid value: \"$\": a valid label must \
             be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must \
             start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or \
             '12345', regex used for validation is \
             '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
        ),
    ] {
        assert_eq!(LabelSelector::parse(text).unwrap_err(), expected, "{text}");
    }
}

#[test]
fn selector_objects_become_selectors() {
    let selector = LabelSelector::from_object(Some(&json!({
        "matchLabels": {"app": "web"},
        "matchExpressions": [
            {"key": "tier", "operator": "In", "values": ["front", "back"]},
            {"key": "gone", "operator": "DoesNotExist"},
        ],
    })))
    .unwrap();
    assert_eq!(selector.to_string(), "app=web,!gone,tier in (back,front)");
    assert!(selector.matches(&object()));
    assert!(LabelSelector::from_object(Some(&json!({}))).unwrap().is_everything());
    assert!(!LabelSelector::from_object(None).unwrap().matches(&object()));
    assert_eq!(
        LabelSelector::from_object(Some(
            &json!({"matchExpressions": [{"key": "a", "operator": "Near"}]})
        )),
        Err("\"Near\" is not a valid label selector operator".to_owned())
    );
    assert_eq!(
        LabelSelector::from_object(Some(
            &json!({"matchExpressions": [{"key": "a", "operator": "In"}]})
        )),
        Err("values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty"
            .to_owned())
    );
    let errors = LabelSelector::check_object(
        &json!({
            "matchLabels": {"a b": "ok"},
            "matchExpressions": [
                {"key": "a", "operator": "In"},
                {"key": "a", "operator": "Exists", "values": ["x"]},
                {"key": "a", "operator": "Near"},
                {"key": "", "operator": "In", "values": ["$"]},
            ],
        }),
        "spec.selector",
    );
    let fields: Vec<&str> = errors.iter().map(|error| &*error.field).collect();
    assert_eq!(
        fields,
        [
            "spec.selector.matchLabels",
            "spec.selector.matchExpressions[0].values",
            "spec.selector.matchExpressions[1].values",
            "spec.selector.matchExpressions[2].operator",
            "spec.selector.matchExpressions[3].key",
            "spec.selector.matchExpressions[3].key",
            "spec.selector.matchExpressions[3].values[0]",
        ]
    );
}

#[test]
fn field_selectors_match() {
    let pods = resource("", "pods", Origin::Builtin, true);
    for (text, matches) in [
        ("", true),
        (",,", true),
        ("metadata.name=web-1", true),
        ("metadata.name==web-1,metadata.namespace=shop", true),
        ("metadata.name!=web-1", false),
        ("metadata.namespace!=other", true),
        ("spec.nodeName=n1,status.phase=Running", true),
        ("spec.host=n1", true),
        ("spec.hostNetwork=false", true),
        ("status.podIP=10.0.0.1", true),
        ("status.nominatedNodeName=", true),
        ("status.phase!=Running", false),
    ] {
        let selector = FieldSelector::parse(text).unwrap().bind(&pods, "v1").unwrap();
        assert_eq!(selector.matches(&object()), matches, "{text}");
    }
    let crs = resource("example.com", "widgets", custom(), true);
    for (text, matches) in
        [("spec.color=red", true), ("spec.size=3", true), ("spec.size!=3", false)]
    {
        let selector = FieldSelector::parse(text).unwrap().bind(&crs, "v1").unwrap();
        assert_eq!(selector.matches(&object()), matches, "{text}");
    }
    let selector = FieldSelector::parse(r"metadata.name=a\,b\=c\\d").unwrap();
    assert_eq!(selector.exact("metadata.name"), Some(r"a,b=c\d"));
    assert_eq!(selector.to_string(), r"metadata.name=a\,b\=c\\d");
    let events = resource("", "events", Origin::Builtin, true);
    let selector =
        FieldSelector::parse("involvedObject.name=x,source=me").unwrap().bind(&events, "v1");
    let event = json!({"regarding": {"name": "x"}, "reportingController": "me"});
    assert!(selector.unwrap().matches(&event));
}

#[test]
fn bad_field_selectors_are_refused_in_kubernetes_words() {
    for (text, expected) in [
        ("x", "invalid selector: 'x'; can't understand 'x'"),
        ("a=b=c", "invalid field selector: unescaped character in value: 61"),
        (r"a=\x", r"invalid field selector: invalid escape sequence: \x"),
        (r"a=\", r"invalid field selector: invalid escape sequence: \"),
    ] {
        assert_eq!(FieldSelector::parse(text).unwrap_err(), expected, "{text}");
    }
    let builtin = |group: &str, plural: &str| resource(group, plural, Origin::Builtin, true);
    for (resource, expected) in [
        (builtin("", "pods"), "field label not supported: spec.x"),
        (
            builtin("", "configmaps"),
            "\"spec.x\" is not a known field selector: only \"metadata.name\", \
             \"metadata.namespace\"",
        ),
        (builtin("batch", "jobs"), "field label \"spec.x\" not supported for Job"),
        (
            builtin("resource.k8s.io", "resourceslices"),
            "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: spec.x",
        ),
        (resource("a.b", "cs", custom(), true), "field label not supported: spec.x"),
    ] {
        let selector = FieldSelector::parse("spec.x=1,spec.y=2").unwrap();
        assert_eq!(selector.bind(&resource, "v1").unwrap_err(), expected);
    }
    let cluster_wide = resource("a.b", "cs", custom(), false);
    let selector = FieldSelector::parse("metadata.namespace=x").unwrap();
    assert!(selector.bind(&cluster_wide, "v1").is_err());
}

#[test]
fn a_single_name_is_seen() {
    let selector = Selector {
        labels: LabelSelector::EVERYTHING,
        fields: FieldSelector::parse("metadata.name=x,metadata.namespace!=y").unwrap(),
    };
    assert_eq!(selector.single_name(), Some("x"));
    assert!(!selector.is_everything() && Selector::default().is_everything());
}

proptest! {
    #[test]
    fn no_text_breaks_the_label_parser(text in "[a-z(),!=<> \t.$/\u{0}in]{0,24}|.*") {
        if let Ok(selector) = LabelSelector::parse(&text) {
            selector.matches(&object());
            let printed = selector.to_string();
            prop_assert_eq!(LabelSelector::parse(&printed).unwrap().to_string(), printed);
        }
    }

    #[test]
    fn no_text_breaks_the_field_parser(text in r"[a-z.,!=\\é]{0,24}|.*") {
        if let Ok(selector) = FieldSelector::parse(&text) {
            selector.matches(&object());
            // Terms come in the order of their text as it was given, which is not kept.
            let again = FieldSelector::parse(&selector.to_string()).unwrap();
            let sorted = |selector: &FieldSelector| {
                let mut terms: Vec<String> =
                    selector.terms().iter().map(|term| format!("{term:?}")).collect();
                terms.sort();
                terms
            };
            prop_assert_eq!(sorted(&again), sorted(&selector));
        }
    }
}
