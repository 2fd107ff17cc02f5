use std::collections::BTreeSet;

use axum::body::Body;
use cleat_store::{Limits, Store};
use http::Request;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::admission::Admission;
use crate::authn::Authenticator;
use crate::{Config, Server};

async fn server() -> Server {
    let config = Config {
        store: Store::in_memory(Limits::default()),
        authenticator: Authenticator::new(),
        authority: None,
        pretend_workloads: false,
        admission: Admission::default(),
        audit: None,
    };
    Server::start(config).await.unwrap()
}

async fn send(router: axum::Router, method: &str, uri: &str, body: Value) -> (u16, String) {
    let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
    let request = Request::builder().method(method).uri(uri).body(body).unwrap();
    let response = router.oneshot(request).await.unwrap();
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (code, String::from_utf8(body.to_vec()).unwrap())
}

/// What the page says, without what it says about the process.
async fn page(server: &Server) -> Vec<String> {
    let (code, text) = send(server.router(), "GET", "/metrics", Value::Null).await;
    assert_eq!(code, 200);
    text.lines().map(str::to_owned).collect()
}

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const MAP_LABELS: &str = "component=\"apiserver\",dry_run=\"\",group=\"\",resource=\"configmaps\",\
                          scope=\"resource\",subresource=\"\",verb=\"POST\",version=\"v1\"";

#[tokio::test]
async fn requests_are_counted_by_what_dashboards_ask_for() {
    let server = server().await;
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
    for want in [201, 409] {
        assert_eq!(send(server.router(), "POST", MAPS, map.clone()).await.0, want);
    }
    let page = page(&server).await;
    for line in [
        format!("apiserver_request_total{{code=\"201\",{MAP_LABELS}}} 1"),
        format!("apiserver_request_total{{code=\"409\",{MAP_LABELS}}} 1"),
        format!("apiserver_request_duration_seconds_bucket{{{MAP_LABELS},le=\"60\"}} 2"),
        format!("apiserver_request_duration_seconds_bucket{{{MAP_LABELS},le=\"+Inf\"}} 2"),
        format!("apiserver_request_duration_seconds_count{{{MAP_LABELS}}} 2"),
        "apiserver_current_inflight_requests{request_kind=\"mutating\"} 0".to_owned(),
        "apiserver_current_inflight_requests{request_kind=\"readOnly\"} 1".to_owned(),
    ] {
        assert!(page.contains(&line), "{line} is not in\n{}", page.join("\n"));
    }
    let stored = "apiserver_storage_objects{resource=\"configmaps\"} ";
    assert!(page.iter().any(|line| line.starts_with(stored)), "{}", page.join("\n"));
    let series: Vec<&str> = page
        .iter()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.rsplit_once(' '))
        .map(|(series, _)| series)
        .collect();
    let distinct: BTreeSet<&str> = series.iter().copied().collect();
    assert_eq!(series.len(), distinct.len(), "a series is there twice:\n{}", page.join("\n"));
}

#[tokio::test]
async fn what_clients_make_up_makes_no_rows() {
    let server = server().await;
    let nobody = server.router_as(crate::user::User::new("nobody", []));
    for uri in ["/api/v1/one", "/apis/x%22y/v1/two", "/apis/z/v9/three/a/b", "/four"] {
        for method in ["GET", "BREW"] {
            send(nobody.clone(), method, uri, Value::Null).await;
        }
    }
    let page = page(&server).await.join("\n");
    for made_up in ["one", "x\"y", "two", "three", "four", "BREW", "brew"] {
        assert!(!page.contains(&format!("\"{made_up}\"")), "{made_up} is in\n{page}");
    }
}

#[tokio::test]
async fn dashboards_find_the_process_the_build_and_what_watches_were_told() {
    let server = server().await;
    let request = Request::builder().uri(format!("{MAPS}?watch=true")).body(Body::empty());
    let mut watch = server.router().oneshot(request.unwrap()).await.unwrap().into_body();
    for name in ["a", "b"] {
        let map = json!({"metadata": {"name": name}});
        assert_eq!(send(server.router(), "POST", MAPS, map).await.0, 201);
        watch.frame().await.unwrap().unwrap();
    }
    let page = page(&server).await;
    let told = "apiserver_watch_events_total{group=\"\",resource=\"configmaps\",version=\"v1\"} 2";
    assert!(page.contains(&told.to_owned()), "{}", page.join("\n"));
    let build = page.iter().find(|line| line.starts_with("kubernetes_build_info{")).unwrap();
    assert!(build.contains("git_version=\"v1.36.") && build.ends_with("} 1"), "{build}");
    if cfg!(target_os = "linux") {
        let value = |name: &str| -> f64 {
            let line = page.iter().find_map(|line| line.strip_prefix(&format!("{name} ")));
            line.unwrap_or_else(|| panic!("{name} is not in\n{}", page.join("\n"))).parse().unwrap()
        };
        assert!(value("process_cpu_seconds_total") >= 0.0);
        let begun = value("process_start_time_seconds");
        assert!((1.6e9..jiff::Timestamp::now().as_second() as f64 + 60.0).contains(&begun));
        assert!((3.0..value("process_max_fds")).contains(&value("process_open_fds")));
        assert!(value("process_resident_memory_bytes") > 1e6);
    }
}

#[tokio::test]
async fn rows_of_kinds_that_went_stayed_for_ever() {
    let server = server().await;
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let schema = json!({ "openAPIV3Schema": { "type": "object" } });
    let mut rows = Vec::new();
    for number in 0..3 {
        let plural = format!("kind{number}s");
        let names = json!({ "plural": plural, "kind": format!("Kind{number}") });
        let version = json!({ "name": "v1", "served": true, "storage": true, "schema": schema });
        let definition = json!({ "metadata": { "name": format!("{plural}.a.b") }, "spec": {
            "group": "a.b", "scope": "Cluster", "names": names, "versions": [version] } });
        assert_eq!(send(server.router(), "POST", definitions, definition).await.0, 201);
        while send(server.router(), "GET", &format!("/apis/a.b/v1/{plural}"), Value::Null).await.0
            != 200
        {
            tokio::task::yield_now().await;
        }
        let now = page(&server).await.join("\n");
        assert!(now.contains(&format!("resource=\"{plural}\"")), "{now}");
        let uri = format!("{definitions}/{plural}.a.b");
        send(server.router(), "DELETE", &uri, Value::Null).await;
        while send(server.router(), "GET", &uri, Value::Null).await.0 != 404 {
            tokio::task::yield_now().await;
        }
        rows.push(plural);
    }
    let now = page(&server).await.join("\n");
    for plural in rows {
        assert!(!now.contains(&plural), "{plural} is in\n{now}");
    }
    assert!(now.contains("resource=\"customresourcedefinitions\""), "{now}");
}

#[tokio::test(start_paused = true)]
async fn a_long_list_was_counted_before_it_was_made() {
    let data = json!({ "filler": "x".repeat(10_000) });
    let labels = "component=\"apiserver\",dry_run=\"\",group=\"\",resource=\"configmaps\",\
                  scope=\"namespace\",subresource=\"\",verb=\"LIST\",version=\"v1\"";
    let in_flight = |count: u64| {
        format!("apiserver_current_inflight_requests{{request_kind=\"readOnly\"}} {count}")
    };
    let counted = format!("apiserver_request_duration_seconds_count{{{labels}}} 1");
    for read in [true, false] {
        let server = server().await;
        for number in 0..20 {
            let map = json!({"metadata": {"name": format!("map-{number}")}, "data": data});
            assert_eq!(send(server.router(), "POST", MAPS, map).await.0, 201);
        }
        let request = Request::builder().uri(MAPS).body(Body::empty()).unwrap();
        let list = server.router().oneshot(request).await.unwrap();
        let now = page(&server).await;
        assert!(now.contains(&in_flight(2)) && !now.contains(&counted), "{}", now.join("\n"));
        tokio::time::advance(std::time::Duration::from_secs(3)).await;
        match read {
            true => drop(list.into_body().collect().await.unwrap()),
            false => drop(list),
        }
        let now = page(&server).await;
        assert!(now.contains(&in_flight(1)) && now.contains(&counted), "{}", now.join("\n"));
        let quick = format!("apiserver_request_duration_seconds_bucket{{{labels},le=\"2\"}} 0");
        assert!(now.contains(&quick), "{}", now.join("\n"));
    }
}

#[tokio::test]
async fn a_watch_is_counted_as_long_as_it_lasts() {
    let server = server().await;
    let open = "apiserver_longrunning_requests{component=\"apiserver\",dry_run=\"\",group=\"\",\
                resource=\"configmaps\",scope=\"namespace\",subresource=\"\",verb=\"WATCH\",\
                version=\"v1\"}";
    let uri = format!("{MAPS}?watch=true");
    let request = Request::builder().uri(uri).body(Body::empty()).unwrap();
    let watch = server.router().oneshot(request).await.unwrap();
    assert!(page(&server).await.contains(&format!("{open} 1")));
    let read_only = "apiserver_current_inflight_requests{request_kind=\"readOnly\"} 1".to_owned();
    assert!(page(&server).await.contains(&read_only));
    drop(watch);
    assert!(page(&server).await.contains(&format!("{open} 0")));
}
