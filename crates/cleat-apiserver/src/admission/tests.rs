use std::{
    convert::Infallible,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use bytes::Bytes;
use futures::FutureExt as _;
use http::Response;
use http_body_util::{BodyExt as _, Full};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use tokio::{net::TcpListener, time::Instant};
use tower::service_fn;

use super::*;
use crate::{
    certificates::Authority,
    tls::{ServeOptions, ServerCertificate, ServerTls, serve},
};

pub(super) struct Around;

impl Surroundings for Around {
    fn namespace_labels(&self, namespace: &str) -> Option<Map<String, Value>> {
        let labels = match namespace {
            "prod" => json!({"env": "prod"}),
            "dev" => json!({}),
            _ => return None,
        };
        labels.as_object().cloned()
    }

    fn equivalents(
        &self,
        resource: &GroupVersionResource,
        _: &str,
    ) -> Vec<(GroupVersionResource, GroupVersionKind)> {
        let kind = |version: &str| GroupVersionKind {
            group: "apps".into(),
            version: version.into(),
            kind: "Deployment".into(),
        };
        ["v1", "v1beta1"]
            .map(|version| {
                (
                    GroupVersionResource { version: version.into(), ..resource.clone() },
                    kind(version),
                )
            })
            .into()
    }

    fn condition(&self, expression: &str, request: &Value) -> Result<bool, String> {
        assert!(expression.contains("authorizer"), "{expression}");
        Ok(request["operation"] == "DELETE")
    }
}

/// `OPERATION group/version/resource[/sub][@namespace]`
fn parts(text: &str) -> (Operation, GroupVersionResource, String, String) {
    let (operation, rest) = text.split_once(' ').unwrap();
    let operation = match operation {
        "CREATE" => Operation::Create,
        "UPDATE" => Operation::Update,
        _ => Operation::Delete,
    };
    let (rest, namespace) = rest.split_once('@').unwrap_or((rest, ""));
    let mut parts = rest.splitn(4, '/').map(str::to_owned);
    let mut next = || parts.next().unwrap_or_default();
    let resource = GroupVersionResource { group: next(), version: next(), resource: next() };
    (operation, resource, next(), namespace.to_owned())
}

pub(super) fn hook(change: Value) -> Value {
    let mut hook = json!({
        "name": "a.b.c",
        "rules": [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"],
                   "resources": ["*"], "scope": "*"}],
        "failurePolicy": "Fail", "matchPolicy": "Exact", "sideEffects": "None",
        "admissionReviewVersions": ["v1"], "timeoutSeconds": 5,
        "namespaceSelector": {}, "objectSelector": {},
        "clientConfig": {"url": "https://in.process/check"},
    });
    json_patch::merge(&mut hook, &change);
    hook
}

fn admission(hooks: Vec<Value>) -> Admission {
    let admission = Admission::default();
    let configuration = json!({"metadata": {"name": "one"}, "webhooks": hooks});
    admission.put(Phase::Validating, &configuration);
    admission
}

async fn ask(admission: &Admission, what: &str, object: &Value, dry_run: bool) -> Verdict {
    let (operation, resource, subresource, namespace) = parts(what);
    let kind = match resource.resource.as_str() {
        "deployments" => "Deployment",
        "namespaces" => "Namespace",
        "validatingwebhookconfigurations" => "ValidatingWebhookConfiguration",
        _ => "Thing",
    };
    let user = User::new("ann", ["g"]);
    let deleted = operation == Operation::Delete;
    let request = Request {
        operation,
        kind: GroupVersionKind {
            group: resource.group.clone(),
            version: resource.version.clone(),
            kind: kind.to_owned(),
        },
        resource,
        subresource: &subresource,
        name: "x",
        namespace: &namespace,
        user: &user,
        object: (!deleted).then_some(object),
        old_object: deleted.then_some(object),
        options: None,
        dry_run,
    };
    admission.validate(&request, &Around).await
}

/// Refuses everything, saying which kind it was shown.
fn refuse_all(admission: &Admission) {
    admission.serve_url(
        "https://in.process/",
        Arc::new(|_, review| {
            let uid = review["request"]["uid"].clone();
            let kind = &review["request"]["kind"];
            let shown =
                format!("{} {}", kind["version"], review["request"]["object"]["apiVersion"]);
            let response = json!({"uid": uid, "allowed": false, "status": {"message": shown}});
            let answer = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
                                "response": response});
            async move { Ok(answer) }.boxed()
        }),
    );
}

#[tokio::test]
async fn only_the_concerned_are_asked() {
    let rule = |rule: Value| {
        let mut all = hook(json!({}))["rules"][0].clone();
        json_patch::merge(&mut all, &rule);
        json!({"rules": [all]})
    };
    let cases = [
        (rule(json!({})), "CREATE apps/v1/deployments@dev", true),
        (rule(json!({})), "UPDATE apps/v1/deployments/scale@dev", false),
        (rule(json!({"resources": ["*/*"]})), "UPDATE apps/v1/deployments/scale@dev", true),
        (
            rule(json!({"resources": ["deployments/*"]})),
            "UPDATE apps/v1/deployments/scale@dev",
            true,
        ),
        (rule(json!({"resources": ["deployments/*"]})), "UPDATE apps/v1/deployments@dev", true),
        (rule(json!({"resources": ["*/scale"]})), "UPDATE apps/v1/deployments/scale@dev", true),
        (rule(json!({"resources": ["*/scale"]})), "UPDATE apps/v1/deployments/status@dev", false),
        (rule(json!({"operations": ["DELETE"]})), "CREATE apps/v1/deployments@dev", false),
        (rule(json!({"operations": ["DELETE"]})), "DELETE apps/v1/deployments@dev", true),
        (rule(json!({"apiGroups": [""]})), "CREATE apps/v1/deployments@dev", false),
        (rule(json!({"scope": "Cluster"})), "CREATE apps/v1/deployments@dev", false),
        (rule(json!({"scope": "Namespaced"})), "CREATE apps/v1/deployments@dev", true),
        (rule(json!({"scope": "Cluster"})), "CREATE /v1/namespaces@dev", true),
        (rule(json!({"scope": "Namespaced"})), "CREATE /v1/namespaces@dev", false),
        (rule(json!({"apiVersions": ["v1beta1"]})), "CREATE apps/v1/deployments@dev", false),
        (
            json!({"namespaceSelector": {"matchLabels": {"env": "prod"}}}),
            "CREATE /v1/pods@prod",
            true,
        ),
        (
            json!({"namespaceSelector": {"matchLabels": {"env": "prod"}}}),
            "CREATE /v1/pods@dev",
            false,
        ),
        (json!({"namespaceSelector": {"matchLabels": {"env": "prod"}}}), "CREATE /v1/nodes", true),
        (
            json!({"namespaceSelector": {"matchLabels": {"app": "web"}}}),
            "CREATE /v1/namespaces@new",
            true,
        ),
        (
            json!({"namespaceSelector": {"matchLabels": {"env": "prod"}}}),
            "DELETE /v1/namespaces@prod",
            true,
        ),
        (json!({"objectSelector": {"matchLabels": {"app": "web"}}}), "DELETE /v1/pods@dev", true),
        (json!({"objectSelector": {"matchLabels": {"app": "db"}}}), "DELETE /v1/pods@dev", false),
        (
            json!({"matchConditions": [{"name": "a", "expression": "request.operation == 'DELETE'"}]}),
            "DELETE /v1/pods@dev",
            true,
        ),
        (
            json!({"matchConditions": [{"name": "a", "expression": "request.operation == 'DELETE'"}]}),
            "CREATE /v1/pods@dev",
            false,
        ),
        (
            json!({"matchConditions": [{"name": "b", "expression": "object.nope == 1"}, {"name": "a", "expression": "request.operation == 'DELETE'"}]}),
            "CREATE /v1/pods@dev",
            false,
        ),
        (
            json!({"failurePolicy": "Ignore", "matchConditions": [{"name": "b", "expression": "object.nope == 1"}]}),
            "CREATE /v1/pods@dev",
            false,
        ),
        (
            json!({"matchConditions": [{"name": "a", "expression": "object == null && oldObject.metadata.labels.app == 'web'"}]}),
            "DELETE /v1/pods@dev",
            true,
        ),
        (
            json!({"matchConditions": [{"name": "a", "expression": "authorizer.group('').resource('pods').check('get').allowed()"}]}),
            "CREATE /v1/pods@dev",
            false,
        ),
        (
            json!({}),
            "CREATE admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
            false,
        ),
    ];
    let object = json!({"apiVersion": "v1", "metadata": {"labels": {"app": "web"}}});
    for (change, what, want) in cases {
        let admission = admission(vec![hook(change.clone())]);
        refuse_all(&admission);
        let verdict = ask(&admission, what, &object, false).await;
        assert_eq!(verdict.result.is_err(), want, "{change} {what} {verdict:?}");
    }
}

#[tokio::test]
async fn matching_errors_end_the_request() {
    let object = json!({});
    let bad = admission(vec![hook(
        json!({"matchConditions": [{"name": "b", "expression": "object.nope == 1"}]}),
    )]);
    let status =
        ask(&bad, "CREATE apps/v1/deployments@dev", &object, false).await.result.unwrap_err();
    assert_eq!(
        status.message,
        "deployments.apps \"x\" is forbidden: expression 'object.nope == 1' resulted in error: no such key: nope"
    );
    let selects = json!({"namespaceSelector": {"matchLabels": {"env": "prod"}}});
    let nowhere = admission(vec![hook(selects)]);
    let status = ask(&nowhere, "CREATE /v1/pods@none", &object, false).await.result.unwrap_err();
    assert_eq!(status.message, "namespaces \"none\" not found");
}

#[tokio::test]
async fn equivalent_versions_are_shown_as_the_rule_wants_them() {
    let rules = json!([{"operations": ["*"], "apiGroups": ["apps"], "apiVersions": ["v1beta1"],
                        "resources": ["deployments"]}]);
    let admission = admission(vec![hook(json!({"matchPolicy": "Equivalent", "rules": rules}))]);
    refuse_all(&admission);
    let object = json!({"apiVersion": "apps/v1", "kind": "Deployment"});
    let verdict = ask(&admission, "CREATE apps/v1/deployments@dev", &object, false).await;
    let message = verdict.result.unwrap_err().message;
    assert!(message.ends_with("\"v1beta1\" \"apps/v1beta1\""), "{message}");
}

/// What one answer comes to.
async fn answer(change: Value, dry_run: bool, reply: Result<Value, String>) -> Verdict {
    let admission = admission(vec![hook(change)]);
    admission.serve_url(
        "https://in.process/check",
        Arc::new(move |path, review| {
            assert_eq!(path, "/check");
            let reply = reply.clone().map(|mut reply| {
                if reply["response"]["uid"] == "same" {
                    reply["response"]["uid"] = review["request"]["uid"].clone();
                }
                reply
            });
            async move { reply }.boxed()
        }),
    );
    ask(&admission, "CREATE /v1/pods@dev", &json!({}), dry_run).await
}

pub(super) fn reply(response: Value) -> Result<Value, String> {
    let mut whole = json!({"uid": "same"});
    json_patch::merge(&mut whole, &response);
    Ok(json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": whole}))
}

#[tokio::test]
async fn answers_mean_what_upstream_makes_of_them() {
    let denied = "admission webhook \"a.b.c\" denied the request";
    let failed = "Internal error occurred: failed calling webhook \"a.b.c\"";
    for (given, code, reason, message) in [
        (json!({}), 400, "", format!("{denied} without explanation")),
        (
            json!({"status": {"code": 200, "reason": "Nope"}}),
            400,
            "Nope",
            format!("{denied}: Nope"),
        ),
        (
            json!({"status": {"code": 403, "reason": "Forbidden", "message": "no"}}),
            403,
            "Forbidden",
            format!("{denied}: no"),
        ),
        (
            json!({"uid": "other"}),
            500,
            "InternalError",
            format!("{failed}: received invalid webhook response: expected response.uid="),
        ),
        (
            json!({"patchType": "JSONPatch"}),
            500,
            "InternalError",
            format!(
                "{failed}: received invalid webhook response: validating webhook may not return response.patchType"
            ),
        ),
    ] {
        let status = answer(json!({}), false, reply(given)).await.result.unwrap_err();
        assert!(status.message.starts_with(&message), "{}", status.message);
        assert_eq!((status.code, &*status.reason), (code, reason));
    }
    let bare = Ok(json!({"response": {"uid": "same", "allowed": true}}));
    let status = answer(json!({}), false, bare).await.result.unwrap_err();
    assert!(status.message.ends_with(
        "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /, Kind="
    ));
    let none = Ok(json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}));
    let status = answer(json!({}), false, none).await.result.unwrap_err();
    assert!(
        status.message.ends_with("received invalid webhook response: webhook response was absent")
    );
    let whole = |kind: &str, version: &str, allowed: Value| {
        Ok(json!({"apiVersion": version, "kind": kind,
                  "response": {"uid": "same", "allowed": allowed}}))
    };
    let v1 = "admission.k8s.io/v1";
    for (given, want) in [
        (
            whole("AdmissionReview", "admission.k8s.io/v1beta1", true.into()),
            "converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion",
        ),
        (
            whole("Foo", v1, true.into()),
            "no kind \"Foo\" is registered for version \"admission.k8s.io/v1\" in scheme \"pkg/runtime/scheme.go:111\"",
        ),
        (
            whole("AdmissionReview", v1, "yes".into()),
            "json: cannot unmarshal string into Go struct field AdmissionResponse.response.allowed of type bool",
        ),
    ] {
        let status = answer(json!({}), false, given).await.result.unwrap_err();
        assert_eq!(status.message, format!("{failed}: failed to call webhook: {want}"));
    }
    let details = json!({"status": {"code": 403, "message": "no", "details": {
        "causes": [{"reason": "FieldValueInvalid", "message": "m", "field": "spec.x"}],
        "retryAfterSeconds": 5}}});
    let status = answer(json!({}), false, reply(details.clone())).await.result.unwrap_err();
    assert_eq!(status.to_json()["details"], details["status"]["details"]);
}

#[tokio::test]
async fn answers_bring_warnings_and_annotations() {
    let given = json!({"allowed": true, "warnings": ["w"], "auditAnnotations": {"k": "v"}});
    let verdict = answer(json!({}), false, reply(given)).await;
    assert_eq!(verdict.result, Ok(()));
    assert_eq!(verdict.warnings, ["w"]);
    assert_eq!(verdict.annotations["a.b.c/k"], "v");
    let refused = answer(json!({}), false, reply(json!({"warnings": ["w"]}))).await;
    assert_eq!(refused.warnings, ["w"]);
}

#[tokio::test]
async fn failures_follow_the_policy() {
    let broken = || Err("connection refused".to_owned());
    let status = answer(json!({}), false, broken()).await.result.unwrap_err();
    assert_eq!(status.code, 500);
    assert_eq!(
        status.message,
        "Internal error occurred: failed calling webhook \"a.b.c\": failed to call webhook: connection refused"
    );
    let ignored = answer(json!({"failurePolicy": "Ignore"}), false, broken()).await;
    assert_eq!(ignored.result, Ok(()));
    assert_eq!(
        ignored.annotations["failed-open.validating.webhook.admission.k8s.io/round_0_index_0"],
        "a.b.c"
    );
    let refusal = answer(json!({"failurePolicy": "Ignore"}), false, reply(json!({}))).await;
    assert!(refusal.result.is_err());
}

#[tokio::test]
async fn how_long_webhooks_took_is_told_by_name_and_by_whether_they_refused() {
    let admission = admission(vec![hook(json!({}))]);
    refuse_all(&admission);
    for what in ["CREATE /v1/pods@dev", "CREATE /v1/pods@dev", "DELETE /v1/pods@dev"] {
        assert!(ask(&admission, what, &json!({}), false).await.result.is_err());
    }
    let told: Vec<(String, u64)> = admission
        .answers()
        .into_iter()
        .map(|(row, durations)| {
            let Row { webhook, phase, operation, rejected } = row;
            (format!("{webhook} {phase:?} {operation} {rejected}"), durations.count())
        })
        .collect();
    let rows = [("a.b.c Validating CREATE true", 2), ("a.b.c Validating DELETE true", 1)];
    assert_eq!(told, rows.map(|(row, count)| (row.to_owned(), count)));
}

#[tokio::test]
async fn dry_runs_reach_only_those_without_side_effects() {
    let allowed = || reply(json!({"allowed": true}));
    for effects in ["None", "NoneOnDryRun"] {
        let verdict = answer(json!({"sideEffects": effects}), true, allowed()).await;
        assert_eq!(verdict.result, Ok(()));
    }
    let some = json!({"sideEffects": "Some", "failurePolicy": "Ignore"});
    let status = answer(some.clone(), true, allowed()).await.result.unwrap_err();
    assert_eq!(status.code, 400);
    assert_eq!(status.message, "admission webhook \"a.b.c\" does not support dry run");
    assert_eq!(answer(some, false, allowed()).await.result, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn all_are_asked_at_once_and_none_for_longer_than_its_limit() {
    let names = ["first.b.c", "second.b.c", "third.b.c"];
    let hooks = names.map(|name| hook(json!({"name": name, "timeoutSeconds": 3})));
    let admission = admission(hooks.into());
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    admission.serve_url(
        "https://in.process/",
        Arc::new(move |_, _| {
            count.fetch_add(1, Ordering::SeqCst);
            std::future::pending().boxed()
        }),
    );
    let start = Instant::now();
    let verdict = ask(&admission, "CREATE /v1/pods@dev", &json!({}), false).await;
    assert_eq!(start.elapsed().as_secs(), 3);
    assert_eq!(asked.load(Ordering::SeqCst), 3);
    assert_eq!(
        verdict.result.unwrap_err().message,
        "Internal error occurred: failed calling webhook \"first.b.c\": failed to call webhook: \
         Post \"https://in.process/check?timeout=3s\": context deadline exceeded"
    );
}

#[tokio::test]
async fn services_are_found_in_process_or_not_at_all() {
    let service = json!({"clientConfig": {"url": null,
        "service": {"namespace": "ns", "name": "svc", "path": "/p", "port": 443}}});
    let admission = admission(vec![hook(service)]);
    let status =
        ask(&admission, "CREATE /v1/pods@dev", &json!({}), false).await.result.unwrap_err();
    assert!(
        status.message.ends_with(
            "failed to call webhook: Post \"https://svc.ns.svc:443/p?timeout=5s\": service \"svc\" not found"
        ),
        "{}",
        status.message
    );
    admission.serve_service(
        "ns",
        "svc",
        Arc::new(|path, review| {
            let uid = review["request"]["uid"].clone();
            async move {
                assert_eq!(path, "/p");
                reply(json!({"uid": uid, "allowed": true}))
            }
            .boxed()
        }),
    );
    let verdict = ask(&admission, "CREATE /v1/pods@dev", &json!({}), false).await;
    assert_eq!(verdict.result, Ok(()));
    admission.remove(Phase::Validating, "one");
    admission.put(Phase::Validating, &json!({"metadata": {"name": "empty"}}));
    assert_eq!(ask(&admission, "CREATE /v1/pods@dev", &json!({}), false).await, Verdict::allowed());
}

#[tokio::test]
async fn real_servers_are_called_over_kept_connections() {
    let authority = Authority::generate("hooks", Timestamp::now()).unwrap();
    let day = SignedDuration::from_hours(24);
    let issued = authority.issue_server("hook", &["127.0.0.1"], Timestamp::now(), day).unwrap();
    let tls = ServerTls::new(
        ServerCertificate::new(&issued).unwrap(),
        &[authority.certificate().clone()],
    );
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let peers = Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = peers.clone();
    let service = service_fn(move |request: http::Request<hyper::body::Incoming>| {
        let seen = seen.clone();
        async move {
            let peer = request.extensions().get::<Arc<crate::tls::Peer>>().unwrap().address;
            seen.lock().unwrap().push(peer);
            let target = request.uri().to_string();
            let body = request.into_body().collect().await.unwrap().to_bytes();
            let mut answer = Response::new(Full::<Bytes>::default());
            if target.starts_with("/broken") {
                *answer.status_mut() = http::StatusCode::INTERNAL_SERVER_ERROR;
                *answer.body_mut() = Full::from("boom\n");
                return Ok::<_, Infallible>(answer);
            }
            let review: Value = serde_json::from_slice(&body).unwrap();
            assert_eq!(target, "/ok?timeout=5s");
            let uid = review["request"]["uid"].clone();
            let answered = reply(json!({"uid": uid, "allowed": true})).unwrap();
            *answer.body_mut() = Full::from(answered.to_string());
            Ok(answer)
        }
    });
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let server = tokio::spawn(serve(
        listener,
        Some(tls.unwrap()),
        service,
        ServeOptions { drain_timeout: Duration::from_secs(2), ..ServeOptions::default() },
        async move { drop(stopped.await) },
    ));
    let bundle = BASE64.encode(authority.certificate_pem());
    let at = |path: &str, bundle: &str| json!({"clientConfig": {"url": format!("https://{address}/{path}"), "caBundle": bundle}});
    let good = admission(vec![hook(at("ok", &bundle))]);
    for _ in 0..3 {
        let verdict = ask(&good, "CREATE /v1/pods@dev", &json!({}), false).await;
        assert_eq!(verdict.result, Ok(()));
    }
    let first = peers.lock().unwrap().clone();
    assert!(first.len() == 3 && first.iter().all(|peer| *peer == first[0]), "{first:?}");

    let message = async |change: Value| {
        let admission = admission(vec![hook(change)]);
        let verdict = ask(&admission, "CREATE /v1/pods@dev", &json!({}), false).await;
        verdict.result.unwrap_err().message
    };
    let prefix =
        "Internal error occurred: failed calling webhook \"a.b.c\": failed to call webhook: ";
    assert_eq!(
        message(at("broken", &bundle)).await,
        format!(
            "{prefix}an error on the server (\"boom\") has prevented the request from succeeding"
        )
    );
    assert_eq!(
        message(at("ok", "")).await,
        format!(
            "{prefix}Post \"https://{address}/ok?timeout=5s\": tls: failed to verify certificate: \
             x509: certificate signed by unknown authority"
        )
    );
    assert_eq!(
        message(at("ok", &BASE64.encode("junk"))).await,
        "Internal error occurred: failed calling webhook \"a.b.c\": could not get REST client: \
         unable to load root certificates: unable to parse bytes as PEM block"
    );
    let mut elsewhere = at("ok", &bundle);
    elsewhere["clientConfig"]["url"] = format!("https://localhost:{}/ok", address.port()).into();
    let elsewhere = message(elsewhere).await;
    assert!(
        elsewhere.ends_with(
            "x509: certificate is not valid for any names, but wanted to match localhost"
        ),
        "{elsewhere}"
    );
    stop.send(()).unwrap();
    server.await.unwrap();
    // The kept connection is closed now, and a new one is refused.
    let verdict = ask(&good, "CREATE /v1/pods@dev", &json!({}), false).await;
    assert_eq!(
        verdict.result.unwrap_err().message,
        format!(
            "{prefix}Post \"https://{address}/ok?timeout=5s\": dial tcp {address}: connect: connection refused"
        )
    );
}

#[test]
fn the_question_has_every_member() {
    let user = User::new("ann", ["g"]);
    let kind = GroupVersionKind { group: "".into(), version: "v1".into(), kind: "Pod".into() };
    let resource =
        GroupVersionResource { group: "".into(), version: "v1".into(), resource: "pods".into() };
    let old = json!({"kind": "Pod"});
    let request = Request {
        operation: Operation::Delete,
        kind: kind.clone(),
        resource: resource.clone(),
        subresource: "",
        name: "",
        namespace: "dev",
        user: &user,
        object: None,
        old_object: Some(&old),
        options: None,
        dry_run: true,
    };
    let shown = matching::Invocation { kind, resource, object: None, old_object: None };
    assert_eq!(
        review::request("u", &request, &shown),
        json!({
            "uid": "u",
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "requestKind": {"group": "", "version": "v1", "kind": "Pod"},
            "requestResource": {"group": "", "version": "v1", "resource": "pods"},
            "namespace": "dev", "operation": "DELETE",
            "userInfo": {"username": "ann", "groups": ["g"]},
            "object": null, "oldObject": {"kind": "Pod"}, "dryRun": true, "options": null,
        })
    );
}

#[test]
fn configurations_are_validated() {
    let check = |change: Value| {
        let hooks = json!({"webhooks": [hook(change)]});
        let errors =
            validate_configuration(&hooks, &|text| (text == "(").then(|| "bad".to_owned()));
        errors.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert!(check(json!({})).is_empty());
    for (change, want) in [
        (json!({"name": ""}), "webhooks[0].name: Required value"),
        (
            json!({"name": "a.b"}),
            "webhooks[0].name: Invalid value: \"a.b\": should be a domain with at least three segments separated by dots",
        ),
        (
            json!({"sideEffects": null}),
            "webhooks[0].sideEffects: Required value: must specify one of None, NoneOnDryRun",
        ),
        (
            json!({"sideEffects": "Some"}),
            "webhooks[0].sideEffects: Unsupported value: \"Some\": supported values: \"None\", \"NoneOnDryRun\"",
        ),
        (
            json!({"failurePolicy": "x"}),
            "webhooks[0].failurePolicy: Unsupported value: \"x\": supported values: \"Fail\", \"Ignore\"",
        ),
        (
            json!({"timeoutSeconds": 31}),
            "webhooks[0].timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds",
        ),
        (
            json!({"clientConfig": {"url": null}}),
            "webhooks[0].clientConfig: Required value: exactly one of url or service is required",
        ),
        (
            json!({"clientConfig": {"url": "http://x/y"}}),
            "webhooks[0].clientConfig.url: Invalid value: \"http\": 'https' is the only allowed URL scheme; desired format: https://host[/path]",
        ),
        (
            json!({"clientConfig": {"url": "https://x:y/"}}),
            "webhooks[0].clientConfig.url: Required value: url must be a valid URL: parse \"https://x:y/\": invalid port \":y\" after host; desired format: https://host[/path]",
        ),
        (
            json!({"clientConfig": {"url": null, "service": {"namespace": "n", "name": "s", "path": "x", "port": 1}}}),
            "webhooks[0].clientConfig.service.path: Invalid value: \"x\": must start with a '/'",
        ),
        (
            json!({"admissionReviewVersions": null}),
            "webhooks[0].admissionReviewVersions: Required value: must specify one of v1, v1beta1",
        ),
        (
            json!({"admissionReviewVersions": ["v9"]}),
            "webhooks[0].admissionReviewVersions: Invalid value: [\"v9\"]: must include at least one of v1, v1beta1",
        ),
        (
            json!({"rules": [{"operations": ["*", "CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}]}),
            "webhooks[0].rules[0].operations: Invalid value: [\"*\",\"CREATE\"]: if '*' is present, must not specify other operations",
        ),
        (
            json!({"rules": [{"operations": ["READ"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}]}),
            "webhooks[0].rules[0].operations[0]: Unsupported value: \"READ\": supported values: \"*\", \"CONNECT\", \"CREATE\", \"DELETE\", \"UPDATE\"",
        ),
        (
            json!({"rules": [{"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods/*", "pods/log"]}]}),
            "webhooks[0].rules[0].resources[1]: Invalid value: \"pods/log\": if 'pods/*' is present, must not specify pods/log",
        ),
        (
            json!({"matchConditions": [{"name": "a", "expression": "("}]}),
            "webhooks[0].matchConditions[0].expression: Invalid value: \"(\": bad",
        ),
    ] {
        let errors = check(change.clone());
        assert_eq!(errors.first().map(String::as_str), Some(want), "{change}");
    }
    let twice = json!({"webhooks": [hook(json!({})), hook(json!({}))]});
    let errors = validate_configuration(&twice, &|_| None);
    assert_eq!(errors[0].to_string(), "webhooks[1].name: Duplicate value: \"a.b.c\"");
    assert!(validate_configuration_update(&twice, &twice, &|_| None).is_empty());
}
