use std::pin::pin;

use axum::body::Body;
use cleat_store::{Expected, Limits, Store};
use http::Request;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::STEP;
use crate::admission::Admission;
use crate::authn::Authenticator;
use crate::{Config, Server};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
/// More than are looked at in one step, and not a multiple of it.
const OBJECTS: usize = 2 * STEP + 7;

/// A server with objects of which every third is marked.
async fn server(limits: Limits) -> (Server, Store) {
    let store = Store::in_memory(limits);
    for number in 0..OBJECTS {
        let name = format!("n{number:05}");
        let labels = json!({ "third": (number % 3 == 0).to_string() });
        let metadata = json!({ "name": name, "namespace": "default", "labels": labels });
        let stored = json!({ "metadata": metadata }).to_string();
        let key = format!("default/{name}");
        store.put("/configmaps", &key, Expected::Absent, |_| stored.into()).await.unwrap();
    }
    let config = Config {
        store: store.clone(),
        authenticator: Authenticator::new(),
        authority: None,
        pretend_workloads: false,
        admission: Admission::default(),
        audit: None,
    };
    (Server::start(config).await.unwrap(), store)
}

fn request(query: &str) -> Request<Body> {
    Request::builder().uri(format!("{MAPS}?{query}")).body(Body::empty()).unwrap()
}

async fn get(server: &Server, query: &str) -> Value {
    let response = server.router().oneshot(request(query)).await.unwrap();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    serde_json::from_slice(&body).unwrap()
}

fn names(list: &Value) -> Vec<String> {
    let items = list["items"].as_array().unwrap();
    items.iter().map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

fn marked() -> Vec<String> {
    (0..OBJECTS).filter(|number| number % 3 == 0).map(|number| format!("n{number:05}")).collect()
}

#[tokio::test]
async fn pages_of_what_is_selected_make_up_the_whole() {
    let (server, _) = server(Limits::default()).await;
    let whole = get(&server, "labelSelector=third%3Dtrue").await;
    assert_eq!(names(&whole), marked());
    for limit in [1, 100, STEP, OBJECTS] {
        let (mut found, mut next) = (Vec::new(), String::new());
        // A page of one is enough to see that it is one.
        for _ in 0..OBJECTS.div_ceil(limit).min(40) {
            let query = format!("labelSelector=third%3Dtrue&limit={limit}&continue={next}");
            let page = get(&server, &query).await;
            assert_eq!(page["metadata"].get("remainingItemCount"), None);
            found.extend(names(&page));
            next = page["metadata"]["continue"].as_str().unwrap_or_default().to_owned();
            if next.is_empty() {
                break;
            }
        }
        let want = marked();
        assert_eq!(found, want[..found.len()], "{limit}");
        assert_eq!(next.is_empty(), found.len() == want.len(), "{limit}");
    }
}

#[tokio::test]
async fn pages_of_everything_say_how_much_is_left() {
    let (server, _) = server(Limits::default()).await;
    let page = get(&server, "limit=10").await;
    assert_eq!(names(&page).len(), 10);
    assert_eq!(page["metadata"]["remainingItemCount"], OBJECTS - 10);
    let rest = page["metadata"]["continue"].as_str().unwrap();
    let rest = get(&server, &format!("limit={OBJECTS}&continue={rest}")).await;
    assert_eq!(names(&rest).len(), OBJECTS - 10);
    assert_eq!(rest["metadata"].get("continue"), None);
}

#[tokio::test]
async fn a_list_with_a_selector_kept_a_thread_until_it_had_read_everything() {
    let (server, _) = server(Limits::default()).await;
    let mut list = pin!(server.router().oneshot(request("labelSelector=third%3Dtrue&limit=1000")));
    assert!(futures::poll!(list.as_mut()).is_pending(), "others have their turn");
    assert_eq!(list.await.unwrap().status(), 200);
}

#[tokio::test]
async fn what_is_forgotten_while_a_selector_selects_is_not_the_clients_business() {
    let (server, store) = server(Limits { history_events: 10, ..Limits::default() }).await;
    let mut list = pin!(server.router().oneshot(request("labelSelector=third%3Dtrue")));
    assert!(futures::poll!(list.as_mut()).is_pending());
    for _ in 0..20 {
        store.put("/configmaps", "default/other", Expected::Any, |_| "{}".into()).await.unwrap();
    }
    let body = list.await.unwrap().into_body().collect().await.unwrap().to_bytes();
    let list: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(list["kind"], "ConfigMapList", "{list}");
    assert_eq!(names(&list), marked());
}
