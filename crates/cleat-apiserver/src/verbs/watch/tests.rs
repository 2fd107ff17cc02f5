use axum::body::Body;
use cleat_store::{Expected, Limits, Range, Store};
use http::Request;
use http_body_util::BodyExt as _;
use tower::ServiceExt as _;

use super::initial::PAGE;
use super::*;
use crate::admission::Admission;
use crate::authn::Authenticator;
use crate::{Config, Server};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A server that remembers so many events of each kind.
async fn server(history_events: usize) -> Server {
    let config = Config {
        store: Store::in_memory(Limits { history_events, ..Limits::default() }),
        authenticator: Authenticator::new(),
        authority: None,
        pretend_workloads: false,
        admission: Admission::default(),
        audit: None,
    };
    Server::start(config).await.unwrap()
}

async fn send(server: &Server, method: &str, uri: &str, body: &Value) -> Body {
    let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
    let request = Request::builder().method(method).uri(uri).body(body).unwrap();
    let response = server.router().oneshot(request).await.unwrap();
    assert!(response.status().is_success(), "{}: {method} {uri}", response.status());
    response.into_body()
}

async fn make(server: &Server, name: &str, bytes: usize) {
    let data = json!({ "filler": "x".repeat(bytes) });
    let map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name },
        "data": data });
    drop(send(server, "POST", MAPS, &map).await);
}

/// A client that reads only when it is told to.
struct Client(Body);

impl Client {
    async fn watch(server: &Server, options: &str) -> Self {
        Self(send(server, "GET", &format!("{MAPS}?watch=true{options}"), &Value::Null).await)
    }

    /// The next piece of the answer; nothing after its end.
    async fn piece(&mut self) -> Option<Bytes> {
        let frame = self.0.frame().await?.unwrap();
        Some(frame.into_data().unwrap())
    }

    /// The events of the next piece.
    async fn events(&mut self) -> Option<Vec<(String, Value)>> {
        Some(events(&self.piece().await?))
    }
}

/// Each event as its type and what it is about.
fn events(piece: &[u8]) -> Vec<(String, Value)> {
    let lines = piece.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let events = lines.map(|line| {
        let mut event: Value = serde_json::from_slice(line).unwrap();
        (event["type"].as_str().unwrap().to_owned(), event["object"].take())
    });
    events.collect()
}

fn names(events: &[(String, Value)], wanted: &str) -> Vec<String> {
    let wanted = events.iter().filter(|(kind, _)| kind == wanted);
    wanted.map(|(_, object)| object::name(object).to_owned()).collect()
}

async fn revision(server: &Server) -> String {
    let list = send(server, "GET", MAPS, &Value::Null).await;
    let list = list.collect().await.unwrap().to_bytes();
    let list: Value = serde_json::from_slice(&list).unwrap();
    list["metadata"]["resourceVersion"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn an_answer_is_made_piece_by_piece() {
    let server = server(10_000).await;
    let from = revision(&server).await;
    let all: Vec<String> = (0..300).map(|number| format!("map-{number:03}")).collect();
    for name in &all {
        make(&server, name, 4 << 10).await;
    }
    let streamed = "&sendInitialEvents=true&allowWatchBookmarks=true\
                    &resourceVersionMatch=NotOlderThan";
    for options in [
        "",
        streamed,
        &format!("&resourceVersion={from}"),
        &format!("&allowWatchBookmarks=true&resourceVersion={from}"),
    ] {
        let mut client = Client::watch(&server, options).await;
        let mut told = Vec::new();
        while told.len() < all.len() {
            let piece = client.piece().await.unwrap();
            assert!(piece.len() < CHUNK + (8 << 10), "a piece of {} bytes", piece.len());
            told.extend(names(&events(&piece), "ADDED"));
        }
        assert_eq!(told, all, "{options}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_watch_that_selects_nothing_read_the_whole_history_in_one_go() {
    let server = server(10_000).await;
    let from = revision(&server).await;
    for number in 0..3 * AT_ONCE {
        make(&server, &format!("map-{number}"), 10).await;
    }
    let nothing = format!("&labelSelector=none&resourceVersion={from}");
    let mut client = Client::watch(&server, &format!("{nothing}&allowWatchBookmarks=true")).await;
    let mut bookmark = std::pin::pin!(client.events());
    for _ in 0..3 {
        assert!(futures::poll!(bookmark.as_mut()).is_pending());
    }
    assert_eq!(bookmark.await.unwrap()[0].0, "BOOKMARK");
    // The same without a bookmark to come; only what is selected at last is told.
    let mut client = Client::watch(&server, &nothing).await;
    let mut event = std::pin::pin!(client.events());
    for _ in 0..3 {
        assert!(futures::poll!(event.as_mut()).is_pending());
    }
    let map = json!({ "metadata": { "name": "seen", "labels": { "none": "" } } });
    drop(send(&server, "POST", MAPS, &map).await);
    assert_eq!(names(&event.await.unwrap(), "ADDED"), ["seen"]);
    server.stop().await;
}

#[tokio::test]
async fn who_does_not_keep_up_is_told_so_and_nobody_else_notices() {
    let server = server(20).await;
    let from = format!("&resourceVersion={}", revision(&server).await);
    let mut slow = Client::watch(&server, &from).await;
    let mut quick = Client::watch(&server, &from).await;
    for number in 0..100 {
        let name = format!("map-{number}");
        make(&server, &name, 10).await;
        assert_eq!(names(&quick.events().await.unwrap(), "ADDED"), [name]);
    }
    let told = slow.events().await.unwrap();
    let [(kind, status)] = told.as_slice() else { panic!("{told:?}") };
    assert_eq!(
        (&**kind, &status["code"], &status["reason"]),
        ("ERROR", &json!(410), &json!("Expired"))
    );
    assert_eq!(slow.events().await, None);
    server.stop().await;
}

#[tokio::test]
async fn who_does_not_keep_up_with_what_was_there_is_told_so() {
    let server = server(20).await;
    for number in 0..PAGE + 200 {
        make(&server, &format!("map-{number}"), 10).await;
    }
    let mut slow = Client::watch(&server, "").await;
    let mut told = slow.events().await.unwrap();
    for number in 0..100 {
        make(&server, &format!("new-{number}"), 10).await;
    }
    while let Some(events) = slow.events().await {
        told.extend(events);
    }
    // A page at a time is all that is kept of what has been forgotten.
    assert_eq!(names(&told, "ADDED").len(), PAGE);
    let (kind, status) = told.last().unwrap();
    assert_eq!((&**kind, &status["code"]), ("ERROR", &json!(410)));
    server.stop().await;
}

#[tokio::test]
async fn what_was_there_is_read_as_of_one_moment() {
    let store = Store::in_memory(Limits::default());
    let key = |number: usize| format!("in/{number:05}");
    let put = async |key: String, value: &'static str| {
        store.put("things", &key, Expected::Any, |_| value.into()).await.unwrap();
    };
    for number in 0..2 * PAGE + 500 {
        put(key(number), "then").await;
    }
    put("out/1".to_owned(), "elsewhere").await;
    let at = store.revision();
    let mut initial = Initial::new("things", "in/", at, true);
    assert_eq!(initial.marked_end(), Some(at));
    let mut seen = 0;
    while let Some(value) = initial.next(&store).unwrap() {
        assert_eq!(value, "then");
        seen += 1;
        if seen == PAGE / 2 {
            // Before and after the place that was reached.
            for number in [1, PAGE + 1, 2 * PAGE + 1] {
                put(key(number), "now").await;
                let gone = key(number + 1);
                store.delete("things", &gone, Expected::Any, |_| "gone".into()).await.unwrap();
                put(format!("{}-new", key(number)), "now").await;
            }
        }
    }
    assert_eq!(seen, 2 * PAGE + 500);
    let range = Range { bucket: "things", prefix: "in/", ..Range::default() };
    assert_eq!(store.list(range).unwrap().entries.len(), seen);
}
