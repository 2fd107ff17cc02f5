use bytes::Bytes;
use cleat_core::id::Id;
use cleat_core::write::{Propagation, Refusal, Side};
use serde_json::json;

use super::*;

fn action(write: Write) -> Action {
    let id = Id {
        group: String::new(),
        resource: "configmaps".to_owned(),
        namespace: "n".to_owned(),
        name: "a".to_owned(),
    };
    Action { side: Side::Cluster, target: Target { version: "v1".to_owned(), id }, write }
}

fn delete() -> Action {
    let (uid, propagation) = ("u".to_owned(), Propagation::Background);
    action(Write::Delete { uid, resource_version: None, propagation })
}

fn create() -> Action {
    action(Write::Create(json!({})))
}

fn apply() -> Action {
    let manager = "work-agent".to_owned();
    action(Write::Apply { object: json!({}), manager, force: false })
}

fn answer(code: u16, body: &Value) -> Answer {
    Answer { code, body: Bytes::from(body.to_string()) }
}

fn status(code: u16, reason: &str, message: &str, details: Value) -> Answer {
    let body = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
        "reason": reason, "message": message, "details": details,
    });
    answer(code, &body)
}

fn refused(code: u16, reason: &str, message: &str) -> Outcome {
    let (reason, message) = (reason.to_owned(), message.to_owned());
    Outcome::Refused(Refusal { code, reason, message })
}

#[test]
fn a_delete_leaves_what_still_waits() {
    let gone = json!({ "kind": "Status", "status": "Success" });
    assert_eq!(outcome(&delete(), &answer(200, &gone)), Outcome::Done(Value::Null));
    let last = json!({ "kind": "Service", "metadata": { "name": "a" } });
    assert_eq!(outcome(&delete(), &answer(200, &last)), Outcome::Done(Value::Null));
    let waits = json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" } });
    assert_eq!(outcome(&delete(), &answer(202, &waits)), Outcome::Done(waits.clone()));
    assert_eq!(outcome(&create(), &answer(201, &last)), Outcome::Done(last));
}

#[test]
fn only_a_server_that_knows_the_kind_can_say_that_an_object_is_absent() {
    let target = create().target;
    let named = json!({ "name": "a", "kind": "configmaps" });
    let object = status(404, "NotFound", "configmaps \"a\" not found", named);
    assert_eq!(read(&target, &object), Read::Absent);
    assert_eq!(outcome(&delete(), &object), Outcome::NotFound);

    let unserved = "the server could not find the requested resource";
    let nothing_named = [
        status(404, "NotFound", unserved, json!({})),
        Answer { code: 404, body: Bytes::from_static(b"404 page not found\n") },
        Answer { code: 404, body: Bytes::new() },
    ];
    for no_kind in nothing_named {
        assert_eq!(read(&target, &no_kind), Read::NoSuchKind);
        assert_eq!(outcome(&delete(), &no_kind), Outcome::NoSuchKind);
        assert_eq!(outcome(&create(), &no_kind), Outcome::NoSuchKind);
    }

    for code in [400, 401, 403, 410, 429, 500, 502, 503, 504] {
        let no = status(code, "Whatever", "no", json!({ "name": "a", "kind": "configmaps" }));
        assert!(matches!(read(&target, &no), Read::Unknown { .. }), "{code}");
    }
}

#[test]
fn a_namespace_that_is_missing_is_not_the_object() {
    for name in ["n", "a"] {
        let details = json!({ "name": name, "kind": "namespaces" });
        let message = "namespaces \"n\" not found";
        let no = status(404, "NotFound", message, details);
        assert_eq!(outcome(&create(), &no), refused(404, "NotFound", message));
    }
    let mut namespace = create().target;
    namespace.id.resource = "namespaces".to_owned();
    let details = json!({ "name": "a", "kind": "namespaces" });
    assert_eq!(read(&namespace, &status(404, "NotFound", "", details)), Read::Absent);
}

#[test]
fn conflicts_are_told_apart() {
    let exists = status(409, "AlreadyExists", "exists", json!({ "name": "a" }));
    assert_eq!(outcome(&create(), &exists), Outcome::AlreadyExists);
    let stale = status(409, "Conflict", "Precondition failed", json!({ "name": "a" }));
    assert_eq!(outcome(&delete(), &stale), Outcome::Conflict("Precondition failed".to_owned()));
    let causes = json!({ "causes": [{ "reason": "FieldManagerConflict", "field": ".data.a" }] });
    let managers = status(409, "Conflict", "Apply failed with 1 conflict", causes);
    let no = refused(409, "Conflict", "Apply failed with 1 conflict");
    assert_eq!(outcome(&apply(), &managers), no);
}

#[test]
fn a_webhook_does_not_choose_what_its_denial_means() {
    let message = "admission webhook \"w\" denied the request: no";
    for (code, reason) in [(404, "NotFound"), (409, "AlreadyExists"), (409, "Conflict"), (504, "")]
    {
        let denial = status(code, reason, message, json!({ "name": "a", "kind": "configmaps" }));
        assert_eq!(outcome(&delete(), &denial), refused(code, reason, message));
    }
}

#[test]
fn what_may_have_happened_is_lost() {
    for code in [503, 504] {
        let open = status(code, "ServiceUnavailable", "try again", json!({}));
        assert_eq!(outcome(&create(), &open), Outcome::Lost("try again".to_owned()));
    }
    let storage = status(500, "InternalError", "etcdserver: request timed out", json!({}));
    assert!(matches!(outcome(&create(), &storage), Outcome::Lost(_)));
    let garbled = Answer { code: 200, body: Bytes::from_static(b"{\"metadata\":") };
    assert!(matches!(outcome(&create(), &garbled), Outcome::Lost(_)));
    let webhook = status(500, "InternalError", "failed calling webhook \"w\"", json!({}));
    assert!(matches!(outcome(&create(), &webhook), Outcome::Refused(_)));
    let busy = status(429, "TooManyRequests", "later", json!({ "retryAfterSeconds": 1 }));
    assert_eq!(outcome(&create(), &busy), refused(429, "TooManyRequests", "later"));
}

#[test]
fn messages_are_bounded_and_never_empty() {
    let Outcome::Refused(no) = outcome(&create(), &Answer { code: 418, body: Bytes::new() }) else {
        panic!("a refusal");
    };
    assert_eq!(no.message, "the server answered 418");
    let long = status(403, "Forbidden", &"é".repeat(9_000), json!({}));
    let Outcome::Refused(no) = outcome(&create(), &long) else { panic!("a refusal") };
    assert!(no.message.len() < 1_100);
}
