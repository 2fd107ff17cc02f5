//! No template takes the process down: every way of running long, growing or recursing ends in a
//! message, and random texts never panic.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that is wrong must fail")]

use cleat_template::{
    Context, Limits, NoLookups, RenderError, RenderOptions, ResolveOptions, Source, render, resolve,
};
use proptest::prelude::*;
use serde_json::{Value, json};

fn options() -> RenderOptions {
    let mut options = RenderOptions::new("2026-03-04T05:06:07Z".parse().unwrap());
    options.limits = Limits { template: 10_000, bytes: 200_000, steps: 50_000, depth: 60 };
    options
}

fn limited(template: &str) -> String {
    match render(template, &json!({}), &options()) {
        Err(RenderError::Limit(text)) => text,
        other => panic!("{template}: {other:?}"),
    }
}

#[test]
fn loops_end() {
    assert!(limited("{{ range 9000000000 }}{{ end }}").contains("more than 50000 steps"));
    limited("{{ range until 1000 }}{{ range until 1000 }}{{ end }}{{ end }}");
    limited("{{ range untilStep 0 9000000000000000000 1 }}{{ end }}");
    limited("{{ seq 1 9000000000 }}");
}

#[test]
fn texts_do_not_grow_without_end() {
    assert!(limited("{{ repeat 1000000 \"abc\" }}").contains("more than 200000 bytes"));
    limited("{{ $s := \"x\" }}{{ range until 60 }}{{ $s = print $s $s }}{{ end }}");
    limited("{{ $s := \"x\" }}{{ range until 60 }}{{ $s = replace \"x\" \"xxxx\" $s }}{{ end }}");
    limited("{{ range until 40000 }}0123456789{{ end }}");
    limited("{{ indent 100000000 \"a\\nb\" }}");
    limited("{{ printf \"%999999d\" 1 }}");
    limited("{{ printf \"%0*d\" 999999 1 }}");
    limited("{{ regexReplaceAll \"\" (repeat 1000 \"a\") (repeat 1000 \"b\") }}");
    limited("{{ join (repeat 1000 \"x\") (until 1000) }}");
    limited("{{ wrapWith 1 (repeat 1000 \"x\") (repeat 1000 \"a\") }}");
}

#[test]
fn values_that_repeat_themselves_are_not_walked_forever() {
    let doubled = "{{ $l := list }}{{ range until 60 }}{{ $l = list $l $l }}{{ end }}";
    for use_it in
        ["{{ $l }}", "{{ toJson $l }}", "{{ $x := deepCopy $l }}", "{{ printf \"%v\" $l }}"]
    {
        limited(&format!("{doubled}{use_it}"));
    }
    let other = doubled.replace("$l", "$k");
    limited(&format!("{doubled}{other}{{{{ deepEqual $l $k }}}}"));
    limited(&format!("{doubled}{{{{ $_ := set (dict) \"a\" $l }}}}"));
}

#[test]
fn recursion_ends() {
    let text = limited("{{ define \"a\" }}{{ template \"a\" }}{{ end }}{{ template \"a\" }}");
    assert!(text.contains("nested more than 60 levels deep"), "{text}");
    let deep = format!("{}1{}", "{{ if true }}".repeat(200), "{{ end }}".repeat(200));
    let error = render(&deep, &json!({}), &options()).unwrap_err().to_string();
    assert_eq!(error, "template: tmpl:1: blocks are nested more than 60 deep");
    let deep = format!("{{{{ {}1{} }}}}", "(".repeat(200), ")".repeat(200));
    let error = render(&deep, &json!({}), &options()).unwrap_err().to_string();
    assert_eq!(error, "template: tmpl:1: max expression depth exceeded");
}

#[test]
fn deep_values_are_let_go_of_without_recursion() {
    let mut options = options();
    options.limits.steps = 2_000_000;
    options.limits.bytes = 100 << 20;
    let text = "{{ $d := dict }}{{ range until 100000 }}{{ $d = dict \"a\" $d }}{{ end }}done";
    assert_eq!(render(text, &json!({}), &options).unwrap(), "done");
    let text = "{{ $d := list }}{{ range until 100000 }}{{ $d = list $d }}{{ end }}{{ toJson $d }}";
    let error = render(text, &json!({}), &options).unwrap_err();
    assert!(matches!(error, RenderError::Limit(_)), "{error}");
}

#[test]
fn a_dict_cannot_be_put_into_itself() {
    for text in [
        "{{ $d := dict }}{{ $_ := set $d \"a\" $d }}",
        "{{ $d := dict }}{{ $_ := set $d \"a\" (list (dict \"b\" $d)) }}",
        "{{ $d := dict }}{{ $_ := merge $d (dict \"a\" $d) }}",
    ] {
        let error = render(text, &json!({}), &options()).unwrap_err().to_string();
        assert!(error.ends_with("a dict cannot contain itself (key a)"), "{error}");
    }
}

#[test]
fn long_texts_are_refused_before_they_are_read() {
    let error = render(&"x".repeat(10_001), &json!({}), &options()).unwrap_err().to_string();
    assert_eq!(error, "template: tmpl: the text is longer than 10000 bytes");
}

/// Pieces that make it likely that a random text is almost a template.
const PIECES: &[&str] = &[
    "{{",
    "}}",
    "{{-",
    "-}}",
    " ",
    "\n",
    "\t",
    "(",
    ")",
    "|",
    ".",
    ".a",
    ".a.b",
    "$",
    "$x",
    ":=",
    "=",
    ",",
    "if",
    "else",
    "end",
    "range",
    "with",
    "define",
    "template",
    "block",
    "break",
    "continue",
    "nil",
    "true",
    "1",
    "-1",
    "0x1",
    "1.5",
    "1e309",
    "'a'",
    "'",
    "\"s\"",
    "\"",
    "`r`",
    "`",
    "\"%d %s %[5]v %*d\"",
    "\"é\"",
    "/*",
    "*/",
    "upper",
    "printf",
    "index",
    "slice",
    "len",
    "eq",
    "list",
    "dict",
    "set",
    "merge",
    "until",
    "repeat",
    "substr",
    "trunc",
    "regexFind",
    "regexReplaceAll",
    "\"[a-\"",
    "\"(\"",
    "toJson",
    "fromJson",
    "\"[1]\"",
    "date",
    "toDate",
    "now",
    "semver",
    "semverCompare",
    "\"^1.2\"",
    "round",
    "div",
    "mod",
    "chunk",
    "dig",
    "splitn",
    "wrap",
    "abbrevboth",
    "9223372036854775807",
    "-9223372036854775808",
    "text",
    "é",
    "\u{0}",
    "and",
    "or",
    "not",
    "first",
    "last",
    "without",
    "b64dec",
    "b32dec",
    "urlParse",
    "urlJoin",
    "duration",
    "durationRound",
    "seq",
    "snakecase",
    "camelcase",
    "\"aB2c_D\"",
    "call",
    "js",
    "html",
];

fn soup() -> impl Strategy<Value = String> {
    proptest::collection::vec(0..PIECES.len(), 0..40)
        .prop_map(|picks| picks.into_iter().filter_map(|pick| PIECES.get(pick)).copied().collect())
}

/// Whole actions, so that more than the parser is reached.
fn actions() -> impl Strategy<Value = String> {
    let action = proptest::collection::vec(0..PIECES.len(), 1..7).prop_map(|picks| {
        let words: Vec<&str> =
            picks.into_iter().filter_map(|pick| PIECES.get(pick)).copied().collect();
        format!("{{{{ {} }}}}", words.join(" "))
    });
    proptest::collection::vec(action, 1..8).prop_map(|actions| actions.concat())
}

/// Calls with arguments of all types, so that more than the argument checks is reached.
fn calls() -> impl Strategy<Value = String> {
    let names = PIECES.iter().copied().filter(|piece| {
        piece.len() > 1
            && piece.chars().all(char::is_alphanumeric)
            && !piece.starts_with(|c: char| c.is_ascii_digit())
            && !matches!(
                *piece,
                "if" | "else"
                    | "end"
                    | "range"
                    | "with"
                    | "define"
                    | "template"
                    | "block"
                    | "break"
                    | "continue"
                    | "nil"
                    | "true"
                    | "text"
            )
    });
    let names: Vec<&str> = names.collect();
    let arguments = [
        "1",
        "-1",
        "0",
        "1.5",
        "\"a\"",
        "\"\"",
        "\"é€\"",
        ".l",
        ".m",
        ".n",
        ".s",
        "nil",
        "true",
        "(list 1 nil \"a\")",
        "(dict \"a\" 1)",
        "now",
        "(until 3)",
        "(semver \"1.2.3\")",
        "9223372036854775807",
        "(int64 -9223372036854775808)",
        "(b64dec \"/w==\")",
        "(float64 \"inf\")",
        "\"2006-01-02\"",
        "\"(a*)\"",
        "\"%v%5.3q\"",
    ];
    (0..names.len(), proptest::collection::vec(0..arguments.len(), 0..4)).prop_map(
        move |(name, picks)| {
            let words: Vec<&str> =
                picks.into_iter().filter_map(|pick| arguments.get(pick)).copied().collect();
            format!("{{{{ {} {} }}}}", names.get(name).unwrap(), words.join(" "))
        },
    )
}

fn data() -> Value {
    json!({"a": {"b": [1, null]}, "l": ["x", 2, null, {}], "m": {"k": "v"}, "n": null, "s": "text"})
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn random_texts_do_not_panic(text in soup()) {
        let _ = render(&text, &data(), &options());
    }

    #[test]
    fn random_actions_do_not_panic(text in actions()) {
        let _ = render(&text, &data(), &options());
    }

    #[test]
    fn random_calls_do_not_panic(text in calls()) {
        let _ = render(&text, &data(), &options());
    }

    #[test]
    fn random_yaml_does_not_panic(text in "[a-c:\\-\\[\\]{}'\"|>&*!#%@,?<~ \n\t0-9.\\\\é]{0,40}") {
        let options = ResolveOptions::managed("2026-03-04T05:06:07Z".parse().unwrap());
        let _ = resolve(Source::Yaml(&text), &Context::empty(), &NoLookups, &options);
    }

    #[test]
    fn objects_without_templates_come_back_as_they_were(
        key in "[a-c:\\-'\"|>#&*! \n0-9.\\\\é]{0,12}",
        text in "([a-c:\\-\\[\\]{}'\"|>&*!#%@,?<~ \t0-9.\\\\é\u{1}\u{85}\u{2028}\u{1F600}=/]|\n){0,24}",
    ) {
        let object = json!({"x": {key: text.clone()}, "y": [text]});
        let options = ResolveOptions::managed("2026-03-04T05:06:07Z".parse().unwrap());
        let back = resolve(Source::Object(&object), &Context::empty(), &NoLookups, &options);
        // A text may by chance look like a template, or make one.
        if !object.to_string().contains("{{") {
            prop_assert_eq!(back.unwrap().value, object);
        }
    }
}
