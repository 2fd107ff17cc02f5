//! Random sequences of requests, played on two embedded servers: alike when the servers are, and
//! found and made small when one of them is wrong. `cargo xtask conformance sequences` compares with
//! a real kube-apiserver.

use std::time::Duration;

use anyhow::Result;
use bytes::Bytes;
use cleat_world::conformance::sequences::{Options, Outcome, Shrunk, Side, compare};
use cleat_world::conformance::{Suite, embedded};
use cleat_world::server::{Body, Caller, Server};
use futures::future::BoxFuture;
use http::{Method, Request, Response, StatusCode};

fn fleeting(server: &dyn Server) -> Side<'_> {
    Side { server, fleeting: true }
}

fn options(count: u64) -> Options {
    Options {
        seed: 1,
        first: 0,
        count,
        run: "tests".to_owned(),
        patience: Duration::from_secs(60),
        shrunk: 1,
    }
}

/// What tells one answer from another must be the server, not the day, the second or the order in
/// which sequences were played.
#[tokio::test(flavor = "multi_thread")]
async fn two_servers_of_one_kind_answer_alike() {
    let (one, first) = embedded().await.unwrap();
    let (other, second) = embedded().await.unwrap();
    let outcome =
        compare(&Suite::folder(), &options(60), fleeting(&first), fleeting(&second)).await.unwrap();
    one.stop().await;
    other.stop().await;
    println!("{outcome}");
    assert!(outcome.passed(), "{outcome}");
    let Outcome { compared, requests, accepted, events, .. } = outcome;
    assert_eq!(compared, 60);
    // Sequences that are all refused, or never, would compare nothing worth comparing.
    assert!(accepted * 4 > requests && accepted < requests, "{accepted} of {requests}");
    assert!(events > 120, "{events}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_answer_is_found_and_made_small() {
    let (one, right) = embedded().await.unwrap();
    let (other, wrong) = embedded().await.unwrap();
    let wrong = Wrong(wrong);
    let outcome =
        compare(&Suite::folder(), &options(60), fleeting(&right), fleeting(&wrong)).await.unwrap();
    one.stop().await;
    other.stop().await;
    assert!(!outcome.passed());
    let [finding] = outcome.findings.as_slice() else { panic!("{outcome}") };
    assert_eq!(finding.mark, "DELETE json configmaps/* at /code");
    let Shrunk::To(smallest) = &finding.shrunk else { panic!("{outcome}") };
    assert_eq!(smallest.steps, 2, "{outcome}");
    assert!(smallest.case.starts_with("about: "), "{outcome}");
}

/// A server that says 202 where it should say 200: when a config map is deleted.
struct Wrong<S>(S);

impl<S: Server> Server for Wrong<S> {
    fn send(
        &self,
        caller: Caller,
        request: Request<Bytes>,
    ) -> BoxFuture<'_, Result<Response<Body>>> {
        let meant =
            request.method() == Method::DELETE && request.uri().path().contains("/configmaps/");
        Box::pin(async move {
            let mut response = self.0.send(caller, request).await?;
            if meant && response.status() == StatusCode::OK {
                *response.status_mut() = StatusCode::ACCEPTED;
            }
            Ok(response)
        })
    }
}
