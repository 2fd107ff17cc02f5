//! What a template does when a read fails, has not happened yet, or finds nothing.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that is wrong must fail")]

use std::cell::RefCell;
use std::collections::BTreeMap;

use cleat_template::{
    Context, Delimiters, Encryption, Keys, LookupError, Lookups, Query, Resolution, ResolveOptions,
    Scope, Source, TemplateError, has_template, resolve, uses_encryption,
};
use serde_json::{Value, json};

/// Answers in order of preference: what is known, else the given error.
struct Known {
    answers: RefCell<BTreeMap<Query, Value>>,
    otherwise: LookupError,
}

impl Known {
    fn nothing(otherwise: LookupError) -> Self {
        Self { answers: RefCell::default(), otherwise }
    }

    fn answer(&self, query: &Query) -> Result<Value, LookupError> {
        self.answers.borrow().get(query).cloned().ok_or_else(|| self.otherwise.clone())
    }
}

impl Lookups for Known {
    fn get(&self, query: &Query) -> Result<Value, LookupError> {
        assert!(!query.is_list());
        self.answer(query)
    }

    fn list(&self, query: &Query) -> Result<Vec<Value>, LookupError> {
        assert!(query.is_list());
        Ok(self.answer(query)?.as_array().unwrap().clone())
    }

    fn scope(&self, _: &str, _: &str) -> Result<Scope, LookupError> {
        Ok(Scope::Namespaced)
    }
}

fn options() -> ResolveOptions {
    ResolveOptions::managed("2026-03-04T05:06:07Z".parse().unwrap())
}

fn run(text: &str, lookups: &dyn Lookups) -> Result<Resolution, TemplateError> {
    resolve(Source::Yaml(text), &Context::empty(), lookups, &options())
}

/// Everything that reads, written so that an empty answer would be easy to mistake for success.
const READS: &[&str] = &[
    "x: '{{ fromSecret \"n\" \"s\" \"k\" }}'",
    "x: '{{ fromConfigMap \"n\" \"s\" \"k\" }}'",
    "x: '{{ copySecretData \"n\" \"s\" }}'",
    "x: '{{ copyConfigMapData \"n\" \"s\" }}'",
    "x: '{{ fromClusterClaim \"c\" }}'",
    "x: '{{ lookupClusterClaim \"c\" }}'",
    "x: '{{ if lookup \"v1\" \"Pod\" \"n\" \"p\" }}a{{ else }}b{{ end }}'",
    "x: '{{ (lookup \"v1\" \"Pod\" \"n\" \"\").items | len }}'",
    "x: '{{ range (lookup \"v1\" \"Pod\" \"n\" \"\").items }}a{{ end }}'",
    "x: '{{ (getNodesWithExactRoles \"infra\").items | len }}'",
    "x: '{{ hasNodesWithExactRoles \"infra\" }}'",
    "x: '{{ lookup \"v1\" \"Pod\" \"n\" \"p\" | default \"fallback\" }}'",
];

#[test]
fn a_failed_read_fails_the_template() {
    for text in READS {
        let lookups = Known::nothing(LookupError::Failed("connection refused".to_owned()));
        let error = run(text, &lookups).unwrap_err();
        assert!(error.is_transient(), "{text}: {error:?}");
        assert!(error.message().ends_with("connection refused"), "{}", error.message());
        assert_eq!(error.unread(), None);
        assert_eq!(error.used().unwrap().len(), 1, "{text}");
    }
}

#[test]
fn an_unknown_kind_fails_the_template_for_good() {
    for text in READS {
        let error = run(text, &Known::nothing(LookupError::MissingApi)).unwrap_err();
        assert!(!error.is_transient(), "{text}");
        assert!(
            error
                .message()
                .ends_with("one or more API resources are not installed on the API server"),
            "{}",
            error.message()
        );
    }
}

#[test]
fn only_lookups_treat_absence_as_empty() {
    let absent = || Known::nothing(LookupError::NotFound("pods \"p\" not found".to_owned()));
    for (text, expected) in [
        ("x: '{{ lookupClusterClaim \"c\" }}'", json!({"x": ""})),
        ("x: '{{ if lookup \"v1\" \"Pod\" \"n\" \"p\" }}a{{ else }}b{{ end }}'", json!({"x": "b"})),
    ] {
        let resolution = run(text, &absent()).unwrap();
        assert_eq!(resolution.value, expected);
        assert_eq!(resolution.used.len(), 1);
    }
    for text in [
        "x: '{{ fromSecret \"n\" \"s\" \"k\" }}'",
        "x: '{{ copyConfigMapData \"n\" \"s\" }}'",
        "x: '{{ fromClusterClaim \"c\" }}'",
    ] {
        let error = run(text, &absent()).unwrap_err();
        assert!(!error.is_transient());
        assert!(error.message().ends_with("pods \"p\" not found"), "{}", error.message());
    }
}

#[test]
fn what_is_not_read_yet_is_asked_for_until_it_is() {
    let text = "x: '{{ $c := fromConfigMap \"n\" \"first\" \"next\" }}\
                {{ (lookup \"v1\" \"Pod\" \"n\" $c).spec.node }}'";
    let lookups = Known::nothing(LookupError::NotYetRead);
    let mut asked = Vec::new();
    let resolution = loop {
        match run(text, &lookups) {
            Ok(resolution) => break resolution,
            Err(error) => {
                let query = error.unread().unwrap().clone();
                let answer = match query.name.as_str() {
                    "first" => json!({"data": {"next": "second"}}),
                    "second" => json!({"spec": {"node": "n1"}}),
                    other => panic!("asked for {other}"),
                };
                asked.push(query.name.clone());
                lookups.answers.borrow_mut().insert(query, answer);
            }
        }
    };
    assert_eq!(asked, ["first", "second"]);
    assert_eq!(resolution.value, json!({"x": "n1"}));
    assert_eq!(resolution.used.len(), 2);
}

#[test]
fn an_object_that_is_skipped_stays_skipped_when_the_rest_fails() {
    let mut options = options();
    options.skip_object = true;
    let failing = Known::nothing(LookupError::Failed("down".to_owned()));
    let text = "x: '{{ skipObject }}{{ fromSecret \"n\" \"s\" \"k\" }}'";
    let resolution = resolve(Source::Yaml(text), &Context::empty(), &failing, &options).unwrap();
    assert!(resolution.skip);
    assert_eq!(resolution.value, Value::Null);
    let text = "x: '{{ fromSecret \"n\" \"s\" \"k\" }}{{ skipObject }}'";
    resolve(Source::Yaml(text), &Context::empty(), &failing, &options).unwrap_err();
}

fn keys(key: &str, previous: Option<&str>) -> Keys {
    Keys {
        key: key.as_bytes().to_vec(),
        previous: previous.map(|previous| previous.as_bytes().to_vec()),
        iv: b"abcdefghijklmnop".to_vec(),
    }
}

const OLD: &str = "0123456789abcdef0123456789abcdef";
const NEW: &str = "fedcba9876543210fedcba9876543210";

/// A value as the hub would send it.
fn protected(plain: &str) -> String {
    let mut options = ResolveOptions::hub("2026-03-04T05:06:07Z".parse().unwrap(), "policies");
    options.encryption = Encryption::Encrypt(keys(OLD, None));
    let object = json!({"x": format!("{{{{hub {plain:?} | protect hub}}}}")});
    let lookups = Known::nothing(LookupError::NotYetRead);
    let resolution =
        resolve(Source::Object(&object), &Context::empty(), &lookups, &options).unwrap();
    resolution.value.get("x").unwrap().as_str().unwrap().to_owned()
}

fn reveal(object: &Value, keys: Keys) -> Result<Resolution, TemplateError> {
    let mut options = options();
    options.encryption = Encryption::Decrypt(keys);
    let lookups = Known::nothing(LookupError::NotYetRead);
    resolve(Source::Object(object), &Context::empty(), &lookups, &options)
}

#[test]
fn what_the_hub_encrypts_the_cluster_decrypts_also_after_a_rotation() {
    for plain in ["a", "exactly sixteen!", "seventeen letters", "größe", "two\nlines"] {
        let object = json!({"x": protected(plain), "y": {"z": protected("other")}});
        assert!(object.to_string().contains("$ocm_encrypted:"));
        for keys in [keys(OLD, None), keys(NEW, Some(OLD)), keys(OLD, Some(NEW))] {
            let resolution = reveal(&object, keys).unwrap();
            let shown = plain.replace('\n', "\\n");
            assert_eq!(resolution.value, json!({"x": shown, "y": {"z": "other"}}));
            assert!(resolution.sensitive);
        }
    }
}

#[test]
fn one_value_in_256_that_a_previous_key_sealed_could_not_be_opened() {
    for number in 0..1000 {
        let plain = format!("value {number}");
        let object = json!({"x": protected(&plain)});
        let resolution = reveal(&object, keys(NEW, Some(OLD))).unwrap();
        assert_eq!(resolution.value, json!({"x": plain}));
    }
}

#[test]
fn a_wrong_key_or_a_damaged_value_is_an_error() {
    let object = json!({"x": protected("secret")});
    for (object, keys) in [
        (object, keys(NEW, None)),
        (json!({"x": "$ocm_encrypted:AAAA"}), keys(OLD, None)),
        (json!({"x": "$ocm_encrypted:===="}), keys(OLD, None)),
        (json!({"x": "$ocm_encrypted:AAAAAAAAAAAAAAAAAAAAAA=="}), keys(OLD, None)),
    ] {
        let error = reveal(&object, keys).unwrap_err();
        assert!(matches!(error, TemplateError::Decryption { .. }), "{error:?}");
    }
}

#[test]
fn what_was_decrypted_does_not_appear_in_messages() {
    for template in [
        "{{ \"SECRET\" | upper | nosuch }}",
        "{{ fail \"SECRET\" }}",
        "{{ index (list) \"SECRET\" }}",
        "{{ atoi \"SECRET\" | upper }}",
    ] {
        let template = template.replace("SECRET", &protected("hunter2-hunter2"));
        let error = reveal(&json!({"x": template}), keys(OLD, None)).unwrap_err();
        assert!(!error.message().contains("hunter2"), "{}", error.message());
    }
}

#[test]
fn conditions_name_the_secret_and_the_annotation() {
    let object = json!({"x": "y"});
    let short = reveal(&object, keys("short", None)).unwrap_err();
    assert_eq!(
        short.condition(),
        "The \"policy-encryption-key\" Secret contains an invalid AES key"
    );
    let vector = reveal(&object, Keys { iv: vec![1], ..keys(OLD, None) }).unwrap_err();
    assert_eq!(
        vector.condition(),
        "The \"policy.open-cluster-management.io/encryption-iv\" annotation value is not a valid \
         initialization vector"
    );
}

#[test]
fn keys_are_not_printed() {
    let shown = format!("{:?}", Encryption::Encrypt(keys(OLD, Some(NEW))));
    assert_eq!(shown, "Encrypt(Keys { .. })");
}

#[test]
fn templates_are_noticed() {
    let (managed, hub) = (Delimiters::default(), Delimiters::hub());
    assert!(has_template("a {{ b", &managed, false));
    assert!(has_template("a {{hub b", &managed, false));
    assert!(!has_template("a {{ b", &hub, false));
    assert!(has_template("a {{hub b", &hub, false));
    assert!(!has_template("$ocm_encrypted:abc", &managed, false));
    assert!(has_template("$ocm_encrypted:abc", &managed, true));
    for (text, expected) in [
        ("{{hub fromSecret \"a\" \"b\" \"c\" hub}}", true),
        ("{{hub- copySecretData \"a\" \"b\" hub}}", true),
        ("{{hub .x | protect hub}}", true),
        ("{{hub .x | upper hub}}", false),
        ("{{ fromSecret \"a\" \"b\" \"c\" }}", false),
    ] {
        assert_eq!(uses_encryption(text, &hub), expected, "{text}");
    }
}
