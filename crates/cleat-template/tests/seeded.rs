//! What Sprig draws by chance: here it follows from the policy, and never becomes a secret.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that is wrong must fail")]

use cleat_template::{
    Context, LookupError, Lookups, Query, RenderOptions, ResolveOptions, Scope, Source, render,
    resolve,
};
use serde_json::{Value, json};

struct Nothing;

impl Lookups for Nothing {
    fn get(&self, _: &Query) -> Result<Value, LookupError> {
        Ok(Value::Null)
    }

    fn list(&self, _: &Query) -> Result<Vec<Value>, LookupError> {
        Ok(Vec::new())
    }

    fn scope(&self, _: &str, _: &str) -> Result<Scope, LookupError> {
        Ok(Scope::Namespaced)
    }
}

fn drawn(seed: Option<&str>, template: &str) -> Result<String, String> {
    let now = "2026-03-04T05:06:07Z".parse().unwrap();
    let options = RenderOptions { seed: seed.map(Into::into), ..RenderOptions::new(now) };
    render(template, &Value::Null, &options).map_err(|error| error.to_string())
}

#[test]
fn the_same_policy_gets_the_same_at_every_look_and_another_gets_something_else() {
    for template in [
        "{{ randAlpha 20 }}",
        "{{ randAlphaNum 20 }}",
        "{{ randAscii 20 }}",
        "{{ randBytes 20 }}",
        "{{ randInt 0 1000000000 }}",
        "{{ randNumeric 20 }}",
        "{{ shuffle \"abcdefghijklmnopqrstuvwxyz\" }}",
        "{{ uuidv4 }}",
    ] {
        let first = drawn(Some("one"), template).unwrap();
        assert_eq!(first, drawn(Some("one"), template).unwrap(), "{template}");
        assert_ne!(first, drawn(Some("other"), template).unwrap(), "{template}");
        // And the next draw is another one.
        let both = drawn(Some("one"), &format!("{template} {template}")).unwrap();
        let (one, two) = both.split_at(both.len() / 2);
        assert_ne!(one.trim(), two.trim(), "{template}");
    }
}

#[test]
fn what_is_drawn_is_what_it_is_called() {
    let text = |template: &str| drawn(Some("seed"), template).unwrap();
    assert!(text("{{ randAlpha 300 }}").bytes().all(|byte| byte.is_ascii_alphabetic()));
    assert!(text("{{ randAlphaNum 300 }}").bytes().all(|byte| byte.is_ascii_alphanumeric()));
    assert!(text("{{ randAscii 300 }}").bytes().all(|byte| (b' '..=b'~').contains(&byte)));
    assert!(text("{{ randNumeric 300 }}").bytes().all(|byte| byte.is_ascii_digit()));
    assert_eq!(text("{{ randNumeric 300 }}").len(), 300);
    assert_eq!(text("{{ randAlpha -1 }}"), "");
    assert_eq!(text("{{ randBytes 30 | b64dec | b64enc | len }}"), "40");
    for _ in 0..3 {
        let number: i64 = text("{{ randInt 7 9 }}").parse().unwrap();
        assert!((7..9).contains(&number));
    }
    let mut shuffled: Vec<char> = text("{{ shuffle \"häuser\" }}").chars().collect();
    shuffled.sort_unstable();
    assert_eq!(shuffled.into_iter().collect::<String>(), "ehrsuä");
    let uuid = text("{{ uuidv4 }}");
    let parts: Vec<usize> = uuid.split('-').map(str::len).collect();
    assert_eq!(parts, [8, 4, 4, 4, 12]);
    assert_eq!(uuid.as_bytes()[14], b'4');
    assert!(b"89ab".contains(&uuid.as_bytes()[19]));
    let empty = drawn(Some("seed"), "{{ randInt 9 9 }}").unwrap_err();
    assert!(empty.contains("invalid argument to Intn"), "{empty}");
    let much = drawn(Some("seed"), "{{ randAlpha 9999999999 }}").unwrap_err();
    assert!(!much.contains("Intn"), "{much}");
}

#[test]
fn nothing_is_drawn_for_a_secret_or_without_a_seed() {
    assert!(drawn(None, "{{ uuidv4 }}").unwrap_err().contains("it is no secret"));
    let now = "2026-03-04T05:06:07Z".parse().unwrap();
    let options = ResolveOptions { seed: Some("uid".into()), ..ResolveOptions::managed(now) };
    let object = |kind: &str| json!({ "kind": kind, "data": { "key": "{{ randAlphaNum 9 }}" } });
    let resolved = |source: Source<'_>| {
        let resolved = resolve(source, &Context::empty(), &Nothing, &options);
        resolved.map(|resolution| resolution.value).map_err(|error| error.message())
    };
    let map = resolved(Source::Object(&object("ConfigMap"))).unwrap();
    assert_eq!(map["data"]["key"].as_str().unwrap().len(), 9);
    resolved(Source::Object(&object("SecretProviderClass"))).unwrap();
    let nested = json!({ "spec": { "object-templates": [object("Secret")] } });
    for secret in [object("Secret"), nested, object("{{ \"Secret\" }}")] {
        let refused = resolved(Source::Object(&secret)).unwrap_err();
        assert!(refused.contains("it is no secret"), "{refused}");
    }
    for raw in [
        "- { kind: Secret, x: '{{ randAlpha 3 }}' }",
        "- \"kind\": \"Secret\"\n  x: '{{ randAlpha 3 }}'",
        "- kind: >-\n    Secret\n  x: '{{ randAlpha 3 }}'",
    ] {
        let refused = resolved(Source::Yaml(raw)).unwrap_err();
        assert!(refused.contains("it is no secret"), "{raw}: {refused}");
    }
}

#[test]
fn what_is_encrypted_with_a_password_is_decrypted_with_it() {
    let text = |template: &str| drawn(None, template);
    assert_eq!(text("{{ encryptAES \"k\" \"plain\" | decryptAES \"k\" }}").unwrap(), "plain");
    assert_eq!(text("{{ encryptAES \"k\" \"\" }}{{ decryptAES \"k\" \"\" }}").unwrap(), "");
    let once = text("{{ encryptAES \"k\" \"plain\" }}").unwrap();
    assert_eq!(once, text("{{ encryptAES \"k\" \"plain\" }}").unwrap());
    assert_ne!(once, text("{{ encryptAES \"l\" \"plain\" }}").unwrap());
    // As Sprig's own documentation has it.
    let documented =
        "{{ \"30tEfhuJSVRhpG97XCuWgz2okj7L8vQ1s6V9zVUPeDQ=\" | decryptAES \"secretkey\" }}";
    assert_eq!(text(documented).unwrap(), "plaintext");
    for wrong in ["{{ decryptAES \"k\" \"%\" }}", "{{ decryptAES \"k\" \"AAAA\" }}"] {
        text(wrong).unwrap_err();
    }
}

#[test]
fn what_is_not_offered_says_why() {
    for (template, why) in [
        ("{{ genCA \"ca\" 365 }}", "differ at every evaluation"),
        ("{{ bcrypt \"x\" }}", "differ at every evaluation"),
        ("{{ htpasswd \"x\" \"y\" }}", "differ at every evaluation"),
        ("{{ buildCustomCert \"a\" \"b\" }}", "making certificates"),
        ("{{ derivePassword 1 \"long\" \"a\" \"b\" \"c\" }}", "takes a second"),
        ("{{ getHostByName \"example.com\" }}", "ask nobody but the cluster"),
    ] {
        let refused = drawn(Some("seed"), template).unwrap_err();
        assert!(refused.contains("not offered") && refused.contains(why), "{refused}");
    }
}
