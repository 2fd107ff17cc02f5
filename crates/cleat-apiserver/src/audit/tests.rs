use std::sync::{Arc, Mutex};

use axum::body::Body;
use cleat_store::{Limits, Store};
use http::Request;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::policy::Extent;
use super::*;
use crate::admission::Admission;
use crate::authn::Authenticator;
use crate::path::{RequestInfo, request_info};
use crate::query::Query;
use crate::user::User;
use crate::{Config, Server};

#[derive(Default)]
struct Kept(Mutex<Vec<Value>>);

impl Sink for Kept {
    fn write(&self, event: &Value) -> Receipt {
        self.0.lock().unwrap().push(event.clone());
        Receipt::given()
    }
}

impl Kept {
    /// What was written since the last look.
    fn take(&self) -> Vec<Value> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

fn policy(rules: Value) -> Policy {
    let policy = json!({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": rules});
    Policy::parse(&policy.to_string()).unwrap()
}

fn info(method: &str, path: &str) -> RequestInfo {
    request_info(method, path, &Query::parse("")).unwrap()
}

#[test]
fn the_first_rule_that_fits_counts() {
    let ann = User::new("ann", ["people"]);
    let map = "/api/v1/namespaces/dev/configmaps/a";
    let log = "/api/v1/namespaces/dev/pods/a/log";
    for (rule, method, path, want) in [
        (json!({}), "GET", map, true),
        (json!({"users": ["ann"]}), "GET", map, true),
        (json!({"users": ["bob"]}), "GET", map, false),
        (json!({"userGroups": ["people"]}), "GET", map, true),
        (json!({"userGroups": ["robots"]}), "GET", map, false),
        (json!({"verbs": ["get"]}), "GET", map, true),
        (json!({"verbs": ["get"]}), "DELETE", map, false),
        (json!({"namespaces": ["dev"]}), "GET", map, true),
        (json!({"namespaces": ["prod"]}), "GET", map, false),
        (json!({"namespaces": [""]}), "GET", "/api/v1/nodes/a", true),
        (json!({"namespaces": ["dev"]}), "GET", "/healthz", false),
        (json!({"resources": [{"group": ""}]}), "GET", map, true),
        (json!({"resources": [{"group": "apps"}]}), "GET", map, false),
        (json!({"resources": [{"resources": ["configmaps"]}]}), "GET", map, true),
        (
            json!({"resources": [{"resources": ["configmaps"], "resourceNames": ["b"]}]}),
            "GET",
            map,
            false,
        ),
        (json!({"resources": [{"resources": ["pods"]}]}), "GET", log, false),
        (json!({"resources": [{"resources": ["pods/log"]}]}), "GET", log, true),
        (json!({"resources": [{"resources": ["pods/*"]}]}), "GET", log, true),
        (json!({"resources": [{"resources": ["*/log"]}]}), "GET", log, true),
        (json!({"resources": [{"resources": ["*"]}]}), "GET", log, true),
        (json!({"nonResourceURLs": ["/healthz*"]}), "GET", "/healthz/ping", true),
        (json!({"nonResourceURLs": ["/version"]}), "GET", "/healthz", false),
        (json!({"nonResourceURLs": ["*"]}), "GET", map, false),
    ] {
        let mut first = json!({"level": "Request"});
        json_patch::merge(&mut first, &rule);
        let policy = policy(json!([first, {"level": "Metadata"}]));
        let want = if want { Level::Request } else { Level::Metadata };
        assert_eq!(policy.extent(Some(&ann), &info(method, path)).level, want, "{rule} {path}");
    }
    let of_ann = policy(json!([{"level": "Request", "users": ["ann"]}]));
    assert_eq!(of_ann.extent(None, &info("GET", map)), Extent::default());
}

#[test]
fn what_is_no_policy_is_refused() {
    let whole = |kind: &str, rules: &str| {
        format!("apiVersion: audit.k8s.io/v1\nkind: {kind}\nrules: {rules}\n")
    };
    assert!(Policy::parse(&whole("Policy", "[{level: Metadata}]")).is_ok());
    for text in [
        whole("Policies", "[{level: Metadata}]"),
        whole("Policy", "[]"),
        whole("Policy", "[{level: Everything}]"),
        whole("Policy", "[{level: Metadata, user: [ann]}]"),
        whole("Policy", "[{level: Metadata, namespaces: [a], nonResourceURLs: [/a]}]"),
        "rules".to_owned(),
    ] {
        assert!(Policy::parse(&text).is_err(), "{text}");
    }
}

struct Logged {
    server: Server,
    kept: Arc<Kept>,
}

impl Logged {
    async fn start(rules: Value) -> Self {
        let kept = Arc::new(Kept::default());
        let config = Config {
            store: Store::in_memory(Limits::default()),
            authenticator: Authenticator::new(),
            authority: None,
            pretend_workloads: false,
            admission: Admission::default(),
            audit: Some(Audit::new(policy(rules), kept.clone())),
        };
        Self { server: Server::start(config).await.unwrap(), kept }
    }

    /// Sends a request as `ann` and gives its answer's code and what was logged.
    async fn send(&self, method: &str, uri: &str, body: Value) -> (u16, Vec<Value>) {
        self.kept.take();
        let user = User::new("ann", ["system:masters"]);
        let request = Request::builder().method(method).uri(uri).header("user-agent", "tests/1");
        let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
        let router = self.server.router_as(user);
        let response = router.oneshot(request.body(body).unwrap()).await.unwrap();
        let code = response.status().as_u16();
        assert!(response.headers().contains_key("audit-id"));
        response.into_body().collect().await.unwrap();
        (code, self.kept.take())
    }
}

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn map() -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}})
}

#[tokio::test]
async fn an_event_says_who_asked_for_what_and_what_came_of_it() {
    let logged = Logged::start(json!([{"level": "Metadata"}])).await;
    let (code, events) = logged.send("POST", &format!("{MAPS}?fieldManager=me"), map()).await;
    assert_eq!(code, 201);
    let [received, complete] = &*events else { panic!("{events:?}") };
    assert_eq!(received["stage"], "RequestReceived");
    assert_eq!(received.get("responseStatus"), None);
    let mut complete = complete.clone();
    assert_eq!(complete["auditID"], received["auditID"]);
    for volatile in ["auditID", "requestReceivedTimestamp", "stageTimestamp"] {
        assert!(complete.as_object_mut().unwrap().remove(volatile).unwrap().is_string());
    }
    let annotations = complete.as_object_mut().unwrap().remove("annotations").unwrap();
    assert_eq!(annotations["authorization.k8s.io/decision"], "allow");
    assert_eq!(
        complete,
        json!({
            "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "Metadata",
            "stage": "ResponseComplete", "verb": "create",
            "requestURI": "/api/v1/namespaces/default/configmaps?fieldManager=me",
            "user": {"username": "ann", "groups": ["system:masters"]},
            "userAgent": "tests/1",
            "objectRef": {"resource": "configmaps", "namespace": "default", "name": "a",
                          "apiVersion": "v1"},
            "responseStatus": {"metadata": {}, "code": 201},
        })
    );
    let (_, events) = logged.send("GET", &format!("{MAPS}/none"), Value::Null).await;
    let request = Request::builder().uri("/metrics").body(Body::empty()).unwrap();
    let page = logged.server.router().oneshot(request).await.unwrap().into_body();
    let page = page.collect().await.unwrap().to_bytes();
    // Both of both requests, and that of this one.
    assert!(str::from_utf8(&page).unwrap().contains("\napiserver_audit_event_total 5\n"));
    let status = &events[1]["responseStatus"];
    assert_eq!((&status["code"], &status["reason"]), (&json!(404), &json!("NotFound")));
}

#[tokio::test]
async fn a_token_was_readable_in_the_log() {
    let logged = Logged::start(json!([{ "level": "RequestResponse" }])).await;
    let review = json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
        "spec": { "token": "s3cret" },
    });
    let uri = "/apis/authentication.k8s.io/v1/tokenreviews";
    let (code, events) = logged.send("POST", uri, review).await;
    assert_eq!(code, 201);
    let text = json!(events).to_string();
    assert!(text.contains("(not logged)") && !text.contains("s3cret"), "{text}");
}

#[tokio::test]
async fn a_token_was_readable_in_the_log_where_its_review_did_not_say_that_it_is_one() {
    let logged = Logged::start(json!([{ "level": "RequestResponse" }])).await;
    for version in ["v1", "v1beta1"] {
        let uri = format!("/apis/authentication.k8s.io/{version}/tokenreviews");
        for review in [
            json!({ "spec": { "token": "s3cret" } }),
            json!({ "kind": "Other", "spec": { "token": "s3cret" } }),
        ] {
            let (_, events) = logged.send("POST", &uri, review).await;
            let text = json!(events).to_string();
            assert!(text.contains("(not logged)") && !text.contains("s3cret"), "{text}");
        }
    }
}

#[test]
fn what_is_given_in_a_token_request_is_hidden_by_its_path() {
    let path = "/api/v1/namespaces/a/serviceaccounts";
    assert!(record::of_tokens(&info("POST", &format!("{path}/b/token"))));
    let mut answer = json!({ "spec": { "audiences": ["x"] }, "status": { "token": "s3cret" } });
    record::hide_tokens(&mut answer, true);
    let shown = json!({ "spec": { "audiences": ["x"] }, "status": { "token": "(not logged)" } });
    assert_eq!(answer, shown);
    assert!(!record::of_tokens(&info("POST", path)));
}

#[tokio::test]
async fn levels_say_how_much_is_shown() {
    for (level, request, response) in
        [("Metadata", false, false), ("Request", true, false), ("RequestResponse", true, true)]
    {
        let logged = Logged::start(json!([{
            "level": level, "omitStages": ["RequestReceived"], "omitManagedFields": true,
        }]))
        .await;
        let (_, events) = logged.send("POST", MAPS, map()).await;
        let [event] = &*events else { panic!("{events:?}") };
        let sent = request.then(map);
        assert_eq!(event.get("requestObject"), sent.as_ref());
        assert_eq!(event.get("responseObject").is_some(), response);
        if response {
            assert_eq!(event["responseObject"]["data"]["k"], "v");
            assert_eq!(event["responseObject"]["metadata"].get("managedFields"), None);
        }
    }
}

#[tokio::test]
async fn what_the_policy_leaves_out_is_not_logged() {
    let only_writes = json!([{"level": "None", "verbs": ["get"]}, {"level": "Metadata"}]);
    let logged = Logged::start(only_writes).await;
    logged.kept.take();
    let request = Request::builder().uri(MAPS.to_owned() + "/a").body(Body::empty()).unwrap();
    logged.server.router().oneshot(request).await.unwrap();
    assert_eq!(logged.kept.take(), Vec::<Value>::new());
}

#[tokio::test(start_paused = true)]
async fn a_watch_is_logged_when_it_begins_and_when_it_ends() {
    let logged = Logged::start(json!([{"level": "RequestResponse"}])).await;
    let (code, events) =
        logged.send("GET", &format!("{MAPS}?watch=true&timeoutSeconds=1"), Value::Null).await;
    assert_eq!(code, 200);
    let stages: Vec<&str> =
        events.iter().map(|event| event["stage"].as_str().unwrap_or_default()).collect();
    assert_eq!(stages, ["RequestReceived", "ResponseStarted", "ResponseComplete"]);
    assert_eq!(events[2]["verb"], "watch");
    assert_eq!(events[2].get("responseObject"), None);
}

#[tokio::test]
async fn who_acts_for_another_is_logged_as_both() {
    let logged = Logged::start(json!([{"level": "Metadata"}])).await;
    logged.kept.take();
    let request = Request::builder().uri(MAPS).header("impersonate-user", "bob");
    let request = request.body(Body::empty()).unwrap();
    let response = logged.server.router().oneshot(request).await.unwrap();
    assert_eq!(response.status(), 403);
    let event = logged.kept.take().pop().unwrap();
    assert_eq!(event["user"]["username"], "system:admin");
    assert_eq!(event["impersonatedUser"]["username"], "bob");
    assert_eq!(event["annotations"]["authorization.k8s.io/decision"], "forbid");
    assert_eq!(event["responseStatus"]["reason"], "Forbidden");
}

#[test]
fn a_file_holds_one_event_per_line_and_is_continued() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.log");
    for text in ["one", "two\nlines"] {
        drop(LogFile::open(&path).unwrap().write(&json!({"verb": text})));
    }
    let written = std::fs::read_to_string(&path).unwrap();
    assert_eq!(written, "{\"verb\":\"one\"}\n{\"verb\":\"two\\nlines\"}\n");
}
