//! What needs no server. The rest is in cleat-world's suite, on real ones.

use cleat_core::id::Id;
use cleat_core::write::Propagation;
use serde_json::json;

use super::*;

fn action(write: Write) -> Action {
    let id = Id {
        group: "apps".to_owned(),
        resource: "deployments".to_owned(),
        namespace: "n".to_owned(),
        name: "a".to_owned(),
    };
    Action { side: Side::Cluster, target: Target { version: "v1".to_owned(), id }, write }
}

fn sent(write: Write, asking: &Asking) -> String {
    let action = action(write);
    let request = request::write(&action, asking, Some("work-agent"), Some("agent/1"), false);
    let request = request.unwrap();
    let (head, body) = request.into_parts();
    let mut lines = format!("{} {}\n", head.method, head.uri);
    for (name, value) in &head.headers {
        lines += &format!("{name}: {}\n", value.to_str().unwrap());
    }
    lines + std::str::from_utf8(&body).unwrap()
}

#[test]
fn requests_say_exactly_what_actions_mean() {
    let plain = Asking::default();
    let head = |media| {
        format!(
            "\naccept: application/json\ncontent-type: application/{media}\nuser-agent: agent/1\n"
        )
    };
    let all = "/apis/apps/v1/namespaces/n/deployments";
    let ignore = "&fieldValidation=Ignore";
    let cases = [
        (
            Write::Create(json!({ "a": 1 })),
            format!("POST {all}?fieldManager=work-agent{ignore}"),
            "json",
        ),
        (
            Write::Replace(json!({ "a": 1 })),
            format!("PUT {all}/a?fieldManager=work-agent{ignore}"),
            "json",
        ),
        (
            Write::Merge(json!({ "a": 1 })),
            format!("PATCH {all}/a?fieldManager=work-agent{ignore}"),
            "merge-patch+json",
        ),
        (
            Write::MergeStatus(json!({ "a": 1 })),
            format!("PATCH {all}/a/status?fieldManager=work-agent{ignore}"),
            "merge-patch+json",
        ),
        (
            Write::ReplaceStatus(json!({ "a": 1 })),
            format!("PUT {all}/a/status?fieldManager=work-agent{ignore}"),
            "json",
        ),
        (
            Write::Apply { object: json!({ "a": 1 }), manager: "me & you".to_owned(), force: true },
            format!("PATCH {all}/a?fieldManager=me%20%26%20you&force=true"),
            "apply-patch+yaml",
        ),
    ];
    for (write, line, media) in cases {
        assert_eq!(sent(write, &plain), format!("{line}{}{{\"a\":1}}", head(media)));
    }
    let delete = Write::Delete {
        uid: "u".to_owned(),
        resource_version: Some("7".to_owned()),
        propagation: Propagation::Orphan,
    };
    let options = r#"{"apiVersion":"v1","kind":"DeleteOptions","preconditions":{"resourceVersion":"7","uid":"u"},"propagationPolicy":"Orphan"}"#;
    assert_eq!(sent(delete, &plain), format!("DELETE {all}/a{}{options}", head("json")));
}

#[test]
fn a_dry_run_in_anothers_name_says_both() {
    let impersonated = Some(Impersonated::service_account("n", "robot"));
    let text = sent(Write::Create(json!({})), &Asking { dry_run: true, impersonated });
    assert!(
        text.contains("?fieldManager=work-agent&dryRun=All&fieldValidation=Ignore\n"),
        "{text}"
    );
    assert!(text.contains("\nimpersonate-user: system:serviceaccount:n:robot\n"), "{text}");
    assert!(text.contains("\nimpersonate-group: system:serviceaccounts:n\n"), "{text}");
}

/// A server that is given options for a delete does not look at the query.
#[test]
fn a_dry_run_of_a_delete_was_meant() {
    let (uid, propagation) = ("u".to_owned(), Propagation::Background);
    let delete = Write::Delete { uid, resource_version: None, propagation };
    let text = sent(delete, &Asking { dry_run: true, ..Asking::default() });
    assert!(text.contains(r#""dryRun":["All"]"#), "{text}");
}

#[tokio::test]
async fn what_cannot_be_sent_is_refused_and_stops_the_rest() {
    let client = Client::new(
        tower::service_fn(|_: http::Request<kube::client::Body>| async {
            Err::<http::Response<kube::client::Body>, _>(std::io::Error::other("must not be asked"))
        }),
        "default",
    );
    let executor = Executor::new(Config { cluster: Some(client), ..Config::default() });
    let no_uid = Write::Delete {
        uid: String::new(),
        resource_version: None,
        propagation: Propagation::Background,
    };
    let mut nameless = action(Write::Merge(json!({})));
    nameless.target.id.name.clear();
    let next = action(Write::Create(json!({})));
    let outcomes = executor.execute(vec![vec![action(no_uid), nameless], vec![next]]).await;
    for outcome in &outcomes[0] {
        assert!(matches!(outcome, Outcome::Refused(Refusal { code: 400, .. })), "{outcome:?}");
    }
    assert_eq!(outcomes[1], [Outcome::NotTried]);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_stops_answering_ends_a_step_in_bounded_time() {
    let client = Client::new(
        tower::service_fn(|_: http::Request<kube::client::Body>| {
            std::future::pending::<Result<http::Response<kube::client::Body>, std::io::Error>>()
        }),
        "default",
    );
    let config = Config { cluster: Some(client), in_flight: 2, ..Config::default() };
    let executor = Executor::new(config);
    let step: Vec<_> = (0..100).map(|_| action(Write::Create(json!({})))).collect();
    let begin = tokio::time::Instant::now();
    let outcomes = executor.execute(vec![step]).await;
    assert!(begin.elapsed() <= 2 * wire::PATIENCE);
    let lost = outcomes[0].iter().filter(|one| matches!(one, Outcome::Lost(_))).count();
    assert_eq!(lost, 2);
    assert!(outcomes[0].iter().all(|one| matches!(one, Outcome::Lost(_) | Outcome::NotTried)));
}
