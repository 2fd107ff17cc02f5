use std::pin::pin;

use axum::body::Body;
use axum::response::Response;
use cleat_store::{Limits, Store};
use futures::poll;
use http::Request;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tower::ServiceExt as _;

use super::*;
use crate::admission::{Admission, Handler};
use crate::authn::Authenticator;
use crate::path::request_info;
use crate::query::Query;
use crate::user::{ANONYMOUS, AUTHENTICATED};
use crate::{Config, Server};

const BOUNDS: Bounds =
    Bounds { reading: 4, writing: 4, queue: 3, patience: Duration::from_secs(15) };

fn client(name: &str) -> User {
    User::new(name, [AUTHENTICATED])
}

fn info(method: &str, path: &str) -> RequestInfo {
    request_info(method, path, &Query::parse("")).unwrap()
}

fn reading(name: &str) -> Option<Claim> {
    Claim::of(&client(name), &info("GET", "/api/v1/nodes"))
}

/// How many reading requests have a seat, and how many wait for one.
fn readers(priority: &Priority) -> (usize, usize) {
    let [_, level] = priority.levels();
    (level.executing, level.waiting)
}

#[test]
fn who_needs_a_seat() {
    let map = "/api/v1/namespaces/dev/configmaps/a";
    let (ann, root) = (client("ann"), User::new("root", [MASTERS]));
    let nobody = User::anonymous();
    let (reads, writes) = (Some(Kind::Reading), Some(Kind::Writing));
    for (user, method, path, want) in [
        (&ann, "GET", map, reads),
        (&ann, "HEAD", "/version", reads),
        (&ann, "GET", "/api/v1/watch/pods", reads),
        (&ann, "GET", "/metrics", reads),
        (&ann, "GET", "/apis/healthz/v1/things", reads),
        (&ann, "POST", "/api/v1/namespaces/dev/configmaps", writes),
        (&ann, "PUT", map, writes),
        (&ann, "PATCH", map, writes),
        (&ann, "DELETE", map, writes),
        (&ann, "BREW", map, writes),
        (&nobody, "GET", "/version", reads),
        (&nobody, "GET", "/livez/ping", None),
        (&ann, "GET", "/healthz", None),
        (&root, "DELETE", map, None),
        (&root, "GET", "/metrics", None),
    ] {
        let claim = Claim::of(user, &info(method, path));
        assert_eq!(claim.as_ref().map(|claim| claim.kind), want, "{} {method} {path}", user.name);
        assert!(claim.is_none_or(|claim| *claim.flow == *user.name));
    }
    assert_eq!(nobody.name, ANONYMOUS);
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_ever() {
    let priority = Priority::new(&Bounds { reading: 1, ..BOUNDS });
    let held = priority.seat(reading("slow")).await.ok();
    let begun = Instant::now();
    let refusal = priority.seat(reading("other")).await.err().unwrap();
    assert_eq!(begun.elapsed().as_secs(), BOUNDS.patience.as_secs());
    assert_eq!((refusal.code, &*refusal.reason), (429, "TooManyRequests"));
    assert_eq!(refusal.details.retry_after_seconds, 1);
    assert_eq!(readers(&priority), (1, 0));
    drop(held);
    assert!(priority.seat(reading("other")).await.is_ok());
    assert_eq!(readers(&priority), (0, 0));
    let [_, level] = priority.levels();
    assert_eq!(level.tally.rejections(), [("cancelled", 0), ("queue-full", 0), ("time-out", 1)]);
}

#[tokio::test]
async fn whoever_stops_waiting_takes_nothing_along() {
    let priority = Priority::new(&Bounds { reading: 1, ..BOUNDS });
    let held = priority.seat(reading("slow")).await.ok();
    {
        let mut gone = pin!(priority.seat(reading("gone")));
        assert!(poll!(gone.as_mut()).is_pending());
        assert_eq!(readers(&priority), (1, 1));
    }
    assert_eq!(readers(&priority), (1, 0));
    let mut last = pin!(priority.seat(reading("last")));
    {
        let mut called = pin!(priority.seat(reading("called")));
        assert!(poll!(called.as_mut()).is_pending());
        assert!(poll!(last.as_mut()).is_pending());
        drop(held);
        // It goes away after it was given the seat and before it knew.
        assert_eq!(readers(&priority), (1, 1));
    }
    let seat = last.await.ok();
    assert_eq!(readers(&priority), (1, 0));
    drop(seat);
    assert_eq!(readers(&priority), (0, 0));
    // Nor does one who goes away before work begins.
    {
        let mut eager = pin!(priority.seat(reading("eager")));
        assert!(poll!(eager.as_mut()).is_pending());
        assert_eq!(readers(&priority), (1, 0));
    }
    assert_eq!(readers(&priority), (0, 0));
    let [_, level] = priority.levels();
    assert_eq!(level.tally.rejections(), [("cancelled", 1), ("queue-full", 0), ("time-out", 0)]);
}

/// A server on which `noisy` and `quiet` may do anything.
async fn server(bounds: &Bounds, admission: Admission) -> Server {
    let config = Config {
        store: Store::in_memory(Limits::default()),
        authenticator: Authenticator::new(),
        authority: None,
        pretend_workloads: false,
        admission,
        audit: None,
    };
    let server = Server::start_within(config, bounds).await.unwrap();
    let group = "rbac.authorization.k8s.io";
    let binding = json!({
        "apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding",
        "metadata": { "name": "clients" },
        "roleRef": { "apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin" },
        "subjects": [
            { "apiGroup": group, "kind": "User", "name": "noisy" },
            { "apiGroup": group, "kind": "User", "name": "quiet" },
        ],
    });
    let path = format!("/apis/{group}/v1/clusterrolebindings");
    assert_eq!(send(server.router(), "POST", &path, binding).await.status(), 201);
    server
}

async fn send(router: axum::Router, method: &str, path: &str, body: Value) -> Response {
    let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
    let request = Request::builder().method(method).uri(path).body(body).unwrap();
    router.oneshot(request).await.unwrap()
}

async fn text(response: Response) -> String {
    let body = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(body.to_vec()).unwrap()
}

async fn page(server: &Server) -> String {
    text(send(server.router(), "GET", "/metrics", Value::Null).await).await
}

async fn nobody_is_left(server: &Server) {
    let page = page(server).await;
    for level in ["mutating", "readOnly"] {
        for what in ["executing", "inqueue"] {
            let line = format!(
                "apiserver_flowcontrol_current_{what}_requests\
                 {{flow_schema=\"clients\",priority_level=\"{level}\"}} 0"
            );
            assert!(page.lines().any(|other| other == line), "{line} is not in\n{page}");
        }
    }
}

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn map(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name } })
}

/// Asked about every ConfigMap, and answers for `noisy` only once `open` says so.
fn slow_for_noisy(open: &watch::Receiver<bool>) -> Admission {
    let admission = Admission::default();
    let open = open.clone();
    let handler: Handler = Arc::new(move |_, review: Value| {
        let mut open = open.clone();
        Box::pin(async move {
            if review["request"]["userInfo"]["username"] == "noisy" {
                open.wait_for(|open| *open).await.map_err(|error| error.to_string())?;
            }
            Ok(json!({
                "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
                "response": { "uid": review["request"]["uid"], "allowed": true },
            }))
        })
    });
    admission.serve_url("https://slow.example.com/", handler);
    admission
}

async fn ask_the_slow_one(server: &Server) {
    let rule = json!({ "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
        "resources": ["configmaps"] });
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": { "name": "slow" },
        "webhooks": [{
            "name": "slow.example.com", "rules": [rule], "sideEffects": "None",
            "clientConfig": { "url": "https://slow.example.com/ask" },
            "admissionReviewVersions": ["v1"], "timeoutSeconds": 30,
        }],
    });
    let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    assert_eq!(send(server.router(), "POST", path, configuration).await.status(), 201);
}

#[tokio::test]
async fn a_flood_of_slow_writes_keeps_nobody_else_waiting() {
    let (opening, open) = watch::channel(false);
    let server = server(&BOUNDS, slow_for_noisy(&open)).await;
    ask_the_slow_one(&server).await;
    let noisy = server.router_as(client("noisy"));
    let mut flood = JoinSet::new();
    for number in 0..20 {
        let noisy = noisy.clone();
        flood
            .spawn(async move { send(noisy, "POST", MAPS, map(&format!("noisy-{number}"))).await });
    }
    // Two have a seat, three wait; the others are told so while nothing else moves.
    for _ in 0..15 {
        let refused = flood.join_next().await.unwrap().unwrap();
        assert_eq!(refused.status(), 429);
        assert_eq!(refused.headers()["retry-after"], "1");
        let status: Value = serde_json::from_str(&text(refused).await).unwrap();
        assert_eq!(
            status,
            json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                "message": "Too many requests, please try again later.",
                "reason": "TooManyRequests", "details": { "retryAfterSeconds": 1 }, "code": 429,
            })
        );
    }
    let quiet = server.router_as(client("quiet"));
    for number in 0..10 {
        let made = send(quiet.clone(), "POST", MAPS, map(&format!("quiet-{number}"))).await;
        assert_eq!(made.status(), 201);
        assert_eq!(send(quiet.clone(), "GET", MAPS, Value::Null).await.status(), 200);
    }
    // Nor does it hinder the noisy one's own reading, and an administrator waits for nobody.
    assert_eq!(send(noisy, "GET", MAPS, Value::Null).await.status(), 200);
    assert_eq!(send(server.router(), "POST", MAPS, map("root")).await.status(), 201);

    let rows = "flow_schema=\"clients\",priority_level=\"mutating\"";
    let page = page(&server).await;
    for line in [
        "apiserver_flowcontrol_nominal_limit_seats{priority_level=\"mutating\"} 4".to_owned(),
        format!("apiserver_flowcontrol_current_executing_requests{{{rows}}} 2"),
        format!("apiserver_flowcontrol_current_inqueue_requests{{{rows}}} 3"),
        format!("apiserver_flowcontrol_rejected_requests_total{{{rows},reason=\"queue-full\"}} 15"),
        format!(
            "apiserver_flowcontrol_request_wait_duration_seconds_count\
             {{execute=\"true\",{rows}}} 12"
        ),
    ] {
        assert!(page.lines().any(|other| other == line), "{line} is not in\n{page}");
    }

    opening.send_replace(true);
    for _ in 0..5 {
        let made = flood.join_next().await.unwrap().unwrap();
        assert_eq!(made.status(), 201);
    }
    assert!(flood.join_next().await.is_none());
    nobody_is_left(&server).await;
    server.stop().await;
}

#[tokio::test]
async fn a_flood_of_reads_is_seen_before_it_is_served() {
    let server = server(&BOUNDS, Admission::default()).await;
    let noisy = server.router_as(client("noisy"));
    let mut flood = JoinSet::new();
    for _ in 0..500 {
        let noisy = noisy.clone();
        flood.spawn(async move { send(noisy, "GET", MAPS, Value::Null).await.status() });
    }
    let quiet = server.router_as(client("quiet"));
    let asking = tokio::spawn(send(quiet, "GET", MAPS, Value::Null));
    assert_eq!(asking.await.unwrap().status(), 200);
    let mut served = 0;
    while let Some(code) = flood.join_next().await {
        match code.unwrap().as_u16() {
            200 => served += 1,
            429 => {}
            other => panic!("{other}"),
        }
    }
    // Reading never waits, so each would have been done with before the next was looked at.
    assert!((5..250).contains(&served), "{served} of 500 were served");
    server.stop().await;
}

#[tokio::test]
async fn a_watch_holds_its_seat_only_to_begin() {
    let server = server(&BOUNDS, Admission::default()).await;
    let noisy = server.router_as(client("noisy"));
    let mut watches = Vec::new();
    for _ in 0..20 {
        let watch = send(noisy.clone(), "GET", &format!("{MAPS}?watch=true"), Value::Null).await;
        assert_eq!(watch.status(), 200);
        watches.push(watch);
    }
    nobody_is_left(&server).await;
    drop(watches);
    server.stop().await;
}
