use proptest::prelude::*;
use serde_json::json;

use super::*;

fn data() -> Value {
    json!({
        "kind": "List",
        "none": null,
        "bools": [true, false],
        "numbers": [1, 2, 3, 4],
        "floats": [1.5, 2.25],
        "items": [
            {
                "kind": "Node",
                "metadata": {"name": "a", "labels": {"example.com/host": "h1"}},
                "status": {
                    "capacity": {"cpu": "4"},
                    "ready": true,
                    "conditions": [
                        {"type": "Ready", "status": "True"},
                        {"type": "Full", "status": "False"},
                    ],
                },
            },
            {
                "kind": "Node",
                "metadata": {"name": "b", "labels": {"example.com/host": "h2"}, "note": "(x)"},
                "status": {"capacity": {"cpu": "8"}, "ready": false},
            },
        ],
    })
}

#[test]
fn templates_print_as_kubectl_does() {
    for (template, expected) in [
        ("plain text", "plain text"),
        ("{.kind}", "List"),
        ("{ .kind }", "List"),
        ("{$.kind}", "List"),
        ("{@.kind}!", "List!"),
        ("{['kind']}", "List"),
        ("{.bools}", "[true,false]"),
        ("{.none}", "null"),
        ("{.numbers[0]}", "1"),
        ("{.numbers[-1]}", "4"),
        ("{.numbers[-1:]}", "4"),
        ("{.numbers[0:2]}", "1 2"),
        ("{.numbers[:2]}", "1 2"),
        ("{.numbers[1:-1]}", "2 3"),
        ("{.numbers[::2]}", "1 3"),
        ("{.numbers[1::2]}", "2 4"),
        ("{.numbers[0:0]}", ""),
        ("{.numbers[*]}", "1 2 3 4"),
        ("{.numbers.*}", "1 2 3 4"),
        ("{.numbers[0,2,3]}", "1 3 4"),
        ("{.numbers[?(@>2)]}", "3 4"),
        ("{.numbers[?(@<=2)]}", "1 2"),
        ("{.numbers[?(@!=2)]}", "1 3 4"),
        ("{.floats[1]}", "2.25"),
        ("{.floats[?(@<2.0)]}", "1.5"),
        ("{.items[*].metadata.name}", "a b"),
        ("{.items[0].status.capacity}", r#"{"cpu":"4"}"#),
        (r"{.items[0].metadata.labels.example\.com/host}", "h1"),
        (r#"{.items[?(@.metadata.labels.example\.com/host=="h2")].metadata.name}"#, "b"),
        (r#"{.items[0].status.conditions[?(@.type=="Ready")].status}"#, "True"),
        ("{.items[0].status.conditions[?(@.type == 'Full')].status}", "False"),
        ("{.items[?(@.status.ready==true)].metadata.name}", "a"),
        ("{.items[?(@..ready==false)].metadata.name}", "b"),
        ("{.items[?(@.status.conditions)].metadata.name}", "a"),
        (r#"{.items[?(@.metadata.note=="(x)")].metadata.name}"#, "b"),
        ("{.items[*]['metadata.name', 'kind']}", "a b Node Node"),
        ("{..name}", "a b"),
        ("{..cpu}", "4 8"),
        (r#"{"{"}{'}'}"#, "{}"),
        (r#"{"\t\u00e9\x41\101"}"#, "\téAA"),
        ("{range .items[*]}{.metadata.name}, {end}{.kind}", "a, b, List"),
        (
            "{range .items[*]}{.metadata.name}:{range .status.conditions[*]}{.type},{end};{end}",
            "a:Ready,Full,;b:;",
        ),
        ("{range .gone[*]}{.x}{end}done", "done"),
        ("{range .gone[*]}{range .x[*]}{.y}{end}{end}done", "done"),
        ("a-{.gone}-b", "a--b"),
        ("{.none[0]}", ""),
        ("{true}{1}{-2.50}", "true1-2.5"),
    ] {
        let path = JsonPath::parse(template).unwrap_or_else(|e| panic!("{template}: {e}"));
        let printed = path.print(&data(), Missing::Allowed);
        assert_eq!(printed.as_deref(), Ok(expected), "{template}");
    }
}

#[test]
fn bare_expressions_are_expressions() {
    let path = JsonPath::parse_expression(".metadata.name").unwrap();
    let object = json!({"metadata": {"name": "x"}});
    assert_eq!(path.find(&object, Missing::Allowed).unwrap(), [[Cow::Borrowed(&json!("x"))]]);
}

#[test]
fn templates_that_cannot_be_parsed() {
    for (template, expected) in [
        ("{.hello", "unclosed action"),
        ("{*}", "unrecognized character in action: U+002A '*'"),
        (r"{\\\}", r"unrecognized character in action: U+005C '\'"),
        ("{+12.3.0}", "cannot parse number +12.3.0"),
        ("{[1}", "unterminated array"),
        ("{[x]}", "invalid array index x"),
        ("{[-]}", "array index - is not a number"),
        ("{[?(.price]}", "unterminated filter"),
        ("{[?(.price)}", "unclosed array expect ]"),
        ("{........}", "invalid multiple recursive descent"),
        ("{\"x}", "unterminated quoted string"),
        (r#"{"\q"}"#, r#"unquote string "\q" error invalid syntax"#),
    ] {
        let error = JsonPath::parse(template).unwrap_err();
        assert_eq!(error.to_string(), expected, "{template}");
    }
}

#[test]
fn templates_that_do_not_fit_the_data() {
    for (template, expected) in [
        ("{hello}", "unrecognized identifier hello"),
        ("{.hello}", "hello is not found"),
        ("{.items[0].metadata[0]}", "map[string]interface {} is not array or slice"),
        ("{.kind[0]}", "string is not array or slice"),
        ("{.numbers[9]}", "array index out of bounds: index 9, length 4"),
        ("{.numbers[0:9]}", "array index out of bounds: index 8, length 4"),
        ("{.numbers[-1:0]}", "starting index 3 is greater than ending index 0"),
        ("{.numbers[0:2:0]}", "step must be > 0"),
        ("{.numbers[?(@<>1)]}", "unrecognized filter operator <>"),
        ("{.numbers[?(@==1.5)]}", "incompatible types for comparison"),
        ("{.numbers[?(@=='1')]}", "incompatible types for comparison"),
        ("{.items[?(@.kind==@.status)]}", "invalid type for comparison"),
        ("{.kind[?(@.x)]}", "List is not array or slice and cannot be filtered"),
        ("{range .numbers[*]}{@}{end}{end}", "not in range, nothing to end"),
    ] {
        let path = JsonPath::parse(template).unwrap_or_else(|e| panic!("{template}: {e}"));
        let error = path.print(&data(), Missing::Refused).unwrap_err();
        assert_eq!(error.to_string(), expected, "{template}");
    }
}

#[test]
fn multiplying_templates_end() {
    let path = JsonPath::parse(&"{range ..}".repeat(40)).unwrap();
    assert!(path.print(&data(), Missing::Allowed).is_err());
    let path = JsonPath::parse(&"{range @}".repeat(5000)).unwrap();
    assert!(path.print(&data(), Missing::Allowed).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn no_template_breaks_it(
        template in r#"[{}\[\]?()@.$*,:='"\\ a-c0-9<>!-]{0,30}|(\{(range )?(\.items|\.kind|\.\.|\[\*\]|\[-?[0-9:]{1,3}\]|\[\?\(@\.[a-z]+(==|<)"?[a-z]"?\)\]){1,4}\}|x|\{end\}){0,6}|.*"#
    ) {
        if let Ok(path) = JsonPath::parse(&template) {
            let _ = path.print(&data(), Missing::Allowed);
            let _ = path.print(&data(), Missing::Refused);
        }
    }
}
