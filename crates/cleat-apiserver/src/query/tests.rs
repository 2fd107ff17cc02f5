use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::resource::{Origin, ResourceType};
use crate::status::Status;

fn configmaps() -> ResourceType {
    ResourceType {
        group: "".into(),
        plural: "configmaps".into(),
        singular: "configmap".into(),
        kind: "ConfigMap".into(),
        list_kind: "ConfigMapList".into(),
        short_names: Vec::new(),
        categories: Vec::new(),
        namespaced: true,
        versions: Vec::new(),
        storage_version: "v1".into(),
        origin: Origin::Builtin,
    }
}

fn list(query: &str) -> Result<ListOptions, Status> {
    ListOptions::checked(&Query::parse(query), false, &configmaps(), "v1")
}

fn refusal<T: std::fmt::Debug>(result: Result<T, Status>) -> String {
    let status = result.unwrap_err();
    format!("{} {}", status.code, status.message)
}

#[test]
fn queries_are_decoded() {
    let query = Query::parse("a=1&a=2&b=x+y%2Bz&c&d;e=1&f=%zz&&=g");
    assert_eq!(query.all("a").collect::<Vec<_>>(), ["1", "2"]);
    assert_eq!(query.get("b"), Some("x y+z"));
    assert_eq!(query.get("c"), Some(""));
    assert_eq!((query.get("d;e"), query.get("f")), (None, None));
    assert_eq!((query.flag("a"), query.flag("c"), query.flag("x")), (Some(true), Some(true), None));
}

#[test]
fn list_options_are_read() {
    let options = list("limit=5&continue=x&labelSelector=a%3Db&timeoutSeconds=3").unwrap();
    assert_eq!((options.limit, &*options.continue_token), (5, "x"));
    assert_eq!(options.timeout_seconds, Some(3));
    assert_eq!(options.selector.labels.to_string(), "a=b");
    let options = list("watch=1&allowWatchBookmarks=true").unwrap();
    assert_eq!(options.send_initial_events, Some(true));
    let options = list("watch=1&resourceVersion=7").unwrap();
    assert_eq!(options.send_initial_events, None);
    let options = list("fieldSelector=metadata.name%3Dx").unwrap();
    assert_eq!(options.selector.single_name(), Some("x"));
}

#[test]
fn list_options_are_refused_in_kubernetes_words() {
    let invalid = "422 ListOptions.meta.k8s.io \"\" is invalid: ";
    for (query, expected) in [
        ("limit=x", "400 strconv.ParseInt: parsing \"x\": invalid syntax".to_owned()),
        (
            "limit=99999999999999999999",
            "400 strconv.ParseInt: parsing \"99999999999999999999\": value out of range".to_owned(),
        ),
        ("labelSelector=a,", "400 found '', expected: identifier after ','".to_owned()),
        (
            "fieldSelector=spec.x%3D1",
            "400 \"spec.x\" is not a known field selector: only \"metadata.name\", \
             \"metadata.namespace\""
                .to_owned(),
        ),
        (
            "resourceVersionMatch=Exact",
            format!(
                "{invalid}resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden \
                 unless resourceVersion is provided"
            ),
        ),
        (
            "resourceVersionMatch=Near&resourceVersion=1",
            format!(
                "{invalid}resourceVersionMatch: Unsupported value: \"Near\": supported values: \
                 \"Exact\", \"NotOlderThan\", \"\""
            ),
        ),
        (
            "resourceVersionMatch=Exact&resourceVersion=0",
            format!(
                "{invalid}resourceVersionMatch: Forbidden: resourceVersionMatch \"exact\" is \
                 forbidden for resourceVersion \"0\""
            ),
        ),
        (
            "sendInitialEvents=true",
            format!(
                "{invalid}sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list"
            ),
        ),
        (
            "watch=1&sendInitialEvents=true",
            format!(
                "{invalid}resourceVersionMatch: Forbidden: sendInitialEvents requires setting \
                 resourceVersionMatch to NotOlderThan"
            ),
        ),
    ] {
        assert_eq!(refusal(list(query)), expected, "{query}");
    }
    assert_eq!(
        resource_version("+1").unwrap_err().to_string(),
        "resourceVersion: Invalid value: \"+1\": strconv.ParseUint: parsing \"+1\": invalid syntax"
    );
    assert_eq!(resource_version(""), Ok(0));
    assert_eq!(resource_version("12"), Ok(12));
}

#[test]
fn write_options_are_checked() {
    let options =
        WriteOptions::patch(&Query::parse("fieldManager=me&force=true&dryRun=All"), true).unwrap();
    assert!(options.force && options.dry_run);
    assert_eq!(options.field_validation, FieldValidation::Warn);
    assert_eq!(
        refusal(WriteOptions::patch(&Query::parse("force=1"), true)),
        "422 PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required \
         for apply patch"
    );
    assert_eq!(
        refusal(WriteOptions::patch(&Query::parse("force=1"), false)),
        "422 PatchOptions.meta.k8s.io \"\" is invalid: force: Forbidden: may not be specified for \
         non-apply patch"
    );
    assert_eq!(
        refusal(WriteOptions::create(&Query::parse("dryRun=Some&fieldValidation=Maybe"))),
        "422 CreateOptions.meta.k8s.io \"\" is invalid: [dryRun: Unsupported value: [\"Some\"]: \
         supported values: \"All\", fieldValidation: Unsupported value: \"Maybe\": supported \
         values: \"\", \"Ignore\", \"Strict\", \"Warn\"]"
    );
    assert_eq!(
        refusal(WriteOptions::update(&Query::parse("fieldManager=a%07b"))),
        "422 UpdateOptions.meta.k8s.io \"\" is invalid: fieldManager: Invalid value: \"a\\ab\": \
         invalid character U+0007 (at position 1)"
    );
    assert!(
        WriteOptions::update(&Query::parse(&format!("fieldManager={}", "x".repeat(129)))).is_err()
    );
    assert_eq!(field_manager("", "kubectl/v1.36 (linux)"), "kubectl");
    assert_eq!(field_manager("me", "kubectl/v1.36"), "me");
}

#[test]
fn delete_options_come_from_query_or_body() {
    let query = Query::parse("gracePeriodSeconds=0&propagationPolicy=Foreground&dryRun=All");
    let options = DeleteOptions::from_query(&query).unwrap();
    assert_eq!(options.propagation, Some(Propagation::Foreground));
    let body = json!({
        "kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0,
        "propagationPolicy": "Foreground", "dryRun": ["All"],
    });
    assert_eq!(DeleteOptions::from_body(&body).unwrap(), options);
    let body = json!({"preconditions": {"uid": "u", "resourceVersion": "7"}});
    let options = DeleteOptions::from_body(&body).unwrap();
    assert_eq!(
        (options.uid.as_deref(), options.resource_version.as_deref()),
        (Some("u"), Some("7"))
    );
    assert_eq!(
        refusal(DeleteOptions::from_body(&json!({"propagationPolicy": "Gone"}))),
        "422 DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Unsupported value: \
         \"Gone\": supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\""
    );
    assert_eq!(
        refusal(DeleteOptions::from_body(
            &json!({"propagationPolicy": "Orphan", "orphanDependents": true})
        )),
        "422 DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Invalid value: \
         \"Orphan\": orphanDependents and deletionPropagation cannot be both set"
    );
    assert!(
        refusal(DeleteOptions::from_body(&json!({"gracePeriodSeconds": "x"}))).starts_with("400")
    );
}

#[test]
fn continue_tokens_are_read_back() {
    let token = ContinueToken { revision: 42, start: "ns/name\0".to_owned() };
    assert_eq!(ContinueToken::decode(&token.encode()), Ok(token));
    let encoded =
        |revision, start: &str| ContinueToken { revision, start: start.to_owned() }.encode();
    for (text, expected) in [
        ("!".to_owned(), "continue key is not valid: illegal base64 data at input byte 0"),
        (
            encoded(0, "a"),
            "continue key is not valid: incorrect encoded start resourceVersion (version \
             meta.k8s.io/v1)",
        ),
        (
            encoded(1, ""),
            "continue key is not valid: encoded start key empty (version meta.k8s.io/v1)",
        ),
        (encoded(1, "../secrets"), "continue key is not valid: ../secrets"),
    ] {
        assert_eq!(ContinueToken::decode(&text).unwrap_err().to_string(), expected);
    }
}

proptest! {
    #[test]
    fn no_query_breaks_the_options(
        query in "((limit|watch|labelSelector|dryRun|fieldManager|resourceVersionMatch)=[a-z0-9%=]{0,4}&?){0,4}|.*"
    ) {
        let query = Query::parse(&query);
        let _ = ListOptions::checked(&query, false, &configmaps(), "v1");
        let _ = WriteOptions::patch(&query, true);
        let _ = DeleteOptions::from_query(&query);
        let _ = include_object(&query);
    }

    #[test]
    fn no_token_breaks_the_decoder(text in "[A-Za-z0-9_-]*|.*", revision: i64, start in ".*") {
        let _ = ContinueToken::decode(&text);
        let _ = ContinueToken::decode(&ContinueToken { revision, start }.encode());
    }
}
