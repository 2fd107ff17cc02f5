use super::*;
use proptest::prelude::*;
use serde_json::json;
use std::string::ToString as _;
use std::{format, vec};

fn manifest() -> Value {
    json!({
        "spec": {
            "replicas": 3,
            "list": [10, 20, 30, 40],
            "containers": [
                { "name": "a", "image": "x:1", "env": [{ "name": "K", "value": "v" }] },
                { "name": "b", "image": "y:1", "ready": false },
            ],
        },
        "on": true,
    })
}

/// What an expression selects, as JSON.
fn selected(expression: &str) -> Result<Vec<Value>, String> {
    let manifest = manifest();
    let found = places(expression, &manifest, &mut Budget::default())?;
    Ok(found.into_iter().cloned().collect())
}

#[test]
fn places_are_selected() {
    for (expression, expected) in [
        (".spec.replicas", json!([3])),
        (".spec[\"replicas\"]", json!([3])),
        (".[\"spec\"] | .replicas", json!([3])),
        (".spec | (.replicas, .list[0])", json!([3, 10])),
        (".spec.list[-1]", json!([40])),
        (".spec.list[1:3]", json!([20, 30])),
        (".spec.list[:-2][1]", json!([20])),
        (".spec.list[9]", json!([])),
        (".spec.gone.deeper", json!([])),
        (".spec.gone[]?", json!([])),
        (".spec.replicas.x?", json!([])),
        ("try .spec.replicas.x", json!([])),
        (".spec.containers[].image", json!(["x:1", "y:1"])),
        (".spec.containers[] | select(.name == \"b\").image", json!(["y:1"])),
        (
            ".spec.containers[] | select(.name != \"b\" and (.image | startswith(\"x\"))) | .image",
            json!(["x:1"]),
        ),
        (".spec.containers[] | select(.ready | not) | .name", json!(["a", "b"])),
        (".spec.containers[] | select(has(\"ready\")) | .name", json!(["b"])),
        (".spec.containers[] | select(.name | IN(\"b\", \"c\")) | .name", json!(["b"])),
        (".spec.containers[] | select(any(.env[]?; .name == \"K\")) | .name", json!(["a"])),
        (".spec.containers[] | select(all(.env[]?; .name == \"K\")) | .name", json!(["a", "b"])),
        (".spec.containers[] | select((.env // [])[0].name == \"K\") | .name", json!(["a"])),
        (".spec.containers[] | select(.name | test(\"^[b-z]$\")) | .name", json!(["b"])),
        (".spec.containers[] | select(.name | test(\"B\"; \"i\")).image", json!(["y:1"])),
        ("getpath([\"spec\", \"list\", 1])", json!([20])),
        ("getpath([\"spec\", \"gone\", \"deeper\"])", json!([])),
        ("getpath((\"replicas\", \"gone\") | [\"spec\", .])", json!([3])),
        ("limit(2; .spec.list[])", json!([10, 20])),
        ("limit(1; .spec.list[], .on.x)", json!([10])),
        ("limit(0; .on.x)", json!([])),
        ("first(.spec.list[], .on.x)", json!([10])),
        (".spec | recurse(.containers?[]?) | .image? // empty", json!(["x:1", "y:1"])),
        ("recurse(.spec // empty) | .replicas? // empty", json!([3])),
        (".spec.list[(.spec.list | index(30))]", json!([30])),
        (".spec.list[.spec.list | rindex(20)]", json!([20])),
        (".spec.containers[] | select(.image | index(\":\") == 1) | .name", json!(["a", "b"])),
        (".spec.containers[] | select((.image | rtrimstr(\":1\")) == \"y\") | .name", json!(["b"])),
        (".spec.containers[] | select((.image | ltrimstr(\"x\")) == \":1\") | .name", json!(["a"])),
        (".spec.replicas | ltrimstr(\"x\")", json!([3])),
        (".spec.containers[] | select(.name | ascii_upcase == \"B\") | .name", json!(["b"])),
        (".spec.containers[] | select(.name | inside(\"xbx\")) | .name", json!(["b"])),
        (".spec.containers[] | select(.image | split(\":\")[0] == \"x\") | .name", json!(["a"])),
        (".spec.list[] | select((. / 10) % 2 == 1)", json!([10, 30])),
        (".spec.list[] | select((-.) + 25 > 0)", json!([10, 20])),
        (".spec.list[.spec.list | length - 1]", json!([40])),
        (".spec.replicas as $n | .spec.list[$n]", json!([40])),
        (".on as $a | .spec as $a | $a.replicas", json!([3])),
        (".spec.list[] as $x | select($x > 25) | .spec.list[$x / 10 - 1]", json!([30, 40])),
        (".spec | .[keys[] | select(startswith(\"repl\"))]", json!([3])),
        (".spec.containers | .[map(.name) | index(\"b\")].image", json!(["y:1"])),
        (".spec | select([.containers[].name] | join(\",\") == \"a,b\").replicas", json!([3])),
        (".spec | select((.list | add) == 100).replicas", json!([3])),
        (".spec.containers[] | select(isempty(.env[]?)) | .name", json!(["b"])),
        (".spec.list[] | select(tostring | test(\"^[12]\"))", json!([10, 20])),
        (".spec.list[] | select(. == (\"30\" | tonumber))", json!([30])),
        (".spec.containers[] | select(.env[0].name == \"K\") | .name", json!(["a"])),
        (".spec.list[] | select(. > 15 and . <= 30)", json!([20, 30])),
        (".spec.list | last", json!([40])),
        ("first(.spec.list[] | select(. > 15))", json!([20])),
        (
            ".. | select(type == \"object\" and has(\"env\")).env",
            json!([[{ "name": "K", "value": "v" }]]),
        ),
        (".. | .image? // empty", json!(["x:1", "y:1"])),
        ("..|numbers|select(.==3)", json!([3])),
        ("if .on then .spec.replicas else .spec.list end", json!([3])),
        (
            ".spec.containers[] | select(.image | endswith(\":1\")).env",
            json!([[{ "name": "K", "value": "v" }]]),
        ),
        (".spec.containers[] | select(.env | length > 0) | .name", json!(["a"])),
        ("empty", json!([])),
    ] {
        match expected {
            Value::Null => assert!(selected(expression).is_err(), "{expression}"),
            expected => {
                assert_eq!(selected(expression).map(Value::from), Ok(expected), "{expression}")
            }
        }
    }
}

#[test]
fn what_cannot_be_followed_is_told() {
    for (expression, expected) in [
        (".", "selects the whole object"),
        ("..", "selects the whole object"),
        ("1", "gives 1, which is not a path"),
        (".spec.replicas == 3", "gives true, which is not a path"),
        (".spec.replicas.x", "cannot take \"x\" of a value of type number"),
        (".spec.list.x", "cannot take \"x\" of a value of type array"),
        (".gone[]", "cannot iterate over null"),
        (".on[1:]", "cannot take a slice of a value of type boolean"),
        (".spec.", "cannot be read: expected key"),
        (".spec[", "cannot be read: it ends too early"),
        (".spec & .x", "cannot be read from \"& .x\" on"),
        (".spec | @base64", "uses @base64/0, which is not allowed: only what selects paths is"),
        ("def f: f; f", "uses def, which is not allowed: only what selects paths is"),
        (
            "reduce .[] as $x (0; .)",
            "uses reduce, which is not allowed: only what selects paths is",
        ),
        ("repeat(.)", "uses repeat/1, which is not allowed: only what selects paths is"),
        (
            ".spec | select(test(\"(a+)+\"))",
            "tests a value of type object by a pattern of type string",
        ),
        (
            ".spec.containers[].name | test(\"(?=a)\")",
            "has the pattern \"(?=a)\", which cannot be read",
        ),
        (".spec.containers[].name | test(\"a\"; \"q\")", "has the flag 'q', which is not known"),
        (
            ".spec | to_entries[]",
            "uses to_entries/0, which is not allowed: only what selects paths is",
        ),
        (
            ".spec as {replicas: $x} | $x",
            "uses a pattern of variables, which is not allowed: only what selects paths is",
        ),
        (
            ".spec.replicas |= 1",
            "uses an assignment, which is not allowed: only what selects paths is",
        ),
        (".spec.replicas + 1", "gives 4, which is not a path"),
        (".spec.replicas / 0", "divides by zero"),
        (".spec - 1", "reckons with values of types object and number"),
        (". as $x | $x", "selects the whole object"),
        ("(. as $x | 1), $x", "uses $x, which is bound nowhere"),
        ("$ENV.HOME", "uses $ENV, which is bound nowhere"),
        ("[.spec.replicas]", "gives [3], which is not a path"),
        ("env.HOME", "uses env/0, which is not allowed: only what selects paths is"),
        ("input", "uses input/0, which is not allowed: only what selects paths is"),
        ("\"\\(.)\"", "uses \\( ) in a string, which is not allowed"),
    ] {
        assert_eq!(selected(expression), Err(expected.to_string()), "{expression}");
    }
    assert_eq!(selected(&"[".repeat(40)), Err("has brackets more than 32 deep".into()));
    assert_eq!(selected(&".a".repeat(600)), Err("is longer than 1024 bytes".into()));
    assert_eq!(selected(&vec!["."; 200].join("|")), Err("is nested more than 64 deep".into()));
}

#[test]
fn multiplying_expressions_end() {
    let wide = json!({ "a": vec![json!({ "b": [1, 2, 3] }); 2000] });
    for expression in [
        "..|..|..|..|..|..|..|..|..|..|..|..|..|..|..|..|..|..|..|..|select(false)",
        ".a[] | select(.. == (..|..|..|..|..|..|..|..|..|..|..|..))",
        "recurse(.)",
        "recurse([.])",
        "[..] | recurse(. + .) | select(false)",
        "\"xxxxxxxxxxxxxxxx\" | recurse(. + .) | select(false)",
        ".a[] | select(\"a\" | test(\"(a|b)*\")) | (.,.)|(.,.)|(.,.)|(.,.)|(.,.)|(.,.)|(.,.)|(.,.)|.b[]|select(false)",
        "(.,.)|(.,.)|(.,.)|(.,.)|(.,.)|(.,.)|(.,.)|(.,.)|(.,.)|(.,.)|(.,.)|(.,.)|select(. != .)",
    ] {
        let found = places(expression, &wide, &mut Budget::default());
        let told = found.unwrap_err();
        let ends = ["takes too many steps on this manifest", "makes a list more than 128 deep"];
        assert!(ends.contains(&&*told), "{expression}: {told}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]
    #[test]
    fn no_expression_breaks_it(
        expression in prop_oneof![
            r#"(\.spec|\.list|\.containers|\[\]|\[[0-9-]{1,2}\]|\[[0-9]:\]|\.\.|\?| \| |, |select\(|\)| == |"b"|\.name|not| and | // |-| if | then | else | end |first|"|test\(|recurse\(|limit\(1;| as \$x \| |\$x| \+ | % |getpath\(|keys|index\(){0,12}"#,
            r#"[a-z.\[\](){}|,:;$@"\\0-9+*/=<>!? -]{0,40}"#,
            ".{0,30}",
        ]
    ) {
        let manifest = manifest();
        let mut budget = Budget::default();
        if let Ok(found) = places(&expression, &manifest, &mut budget) {
            let _ = format!("{found:?}");
        }
    }
}
