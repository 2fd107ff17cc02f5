use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use http::{HeaderMap, HeaderName, HeaderValue};
use jiff::SignedDuration;
use serde_json::json;

use super::*;
use crate::authz::{Attributes, Kind, Rbac};

const ISSUER: &str = "https://kubernetes.default.svc";

fn now() -> Timestamp {
    "2026-01-02T03:04:05Z".parse().unwrap()
}

fn later(seconds: i64) -> Timestamp {
    now() + SignedDuration::from_secs(seconds)
}

fn objects(resource: &'static str, namespace: &str, name: &str) -> Option<Arc<Value>> {
    let object = match (resource, namespace, name) {
        ("serviceaccounts", "ns", "bot") => {
            json!({"metadata": {"name": "bot", "namespace": "ns", "uid": "u1"}})
        }
        ("serviceaccounts", "ns", "gone") => json!({"metadata": {
            "name": "gone", "namespace": "ns", "uid": "u1",
            "deletionTimestamp": "2026-01-02T03:00:00Z"}}),
        ("pods", "ns", "p") => json!({"metadata": {"name": "p", "uid": "pu"},
            "spec": {"serviceAccountName": "bot", "nodeName": "n1"}}),
        ("secrets", "kube-system", "bootstrap-token-abcdef") => json!({
            "type": "bootstrap.kubernetes.io/token",
            "data": {
                "token-id": BASE64.encode("abcdef"),
                "token-secret": BASE64.encode("0123456789abcdef"),
                "expiration": BASE64.encode("2026-01-03T00:00:00Z"),
                "usage-bootstrap-authentication": BASE64.encode("true"),
                "auth-extra-groups": BASE64.encode("system:bootstrappers:ours"),
            },
        }),
        _ => return None,
    };
    Some(Arc::new(object))
}

fn authenticator() -> Authenticator {
    let tokens = ServiceAccountTokens::new(SigningKey::generate().unwrap(), ISSUER);
    Authenticator::new()
        .with_static_token("s3cret", User::new("admin", ["system:masters"]))
        .with_service_accounts(tokens)
}

fn bearer(auth: &Authenticator, token: &str, at: Timestamp) -> Result<User, Status> {
    let header = format!("Bearer {token}");
    let credentials = Credentials { peer: None, authorization: Some(&header) };
    auth.authenticate(credentials, at, &objects)
}

fn ask(name: &'static str, bound: Option<Bound>) -> TokenAsk<'static> {
    TokenAsk { namespace: "ns", name, uid: "u1", audiences: &[], seconds: 600, bound }
}

#[test]
fn without_credentials_is_anonymous_and_bad_ones_are_refused() {
    let auth = authenticator();
    let none = Credentials::default();
    assert_eq!(auth.authenticate(none, now(), &objects), Ok(User::anonymous()));
    for header in ["Basic YTpi", "Bearer", "Bearer  x", ""] {
        let credentials = Credentials { authorization: Some(header), ..none };
        assert_eq!(auth.authenticate(credentials, now(), &objects), Ok(User::anonymous()));
    }
    for token in ["wrong", "a.b.c", "abcdef.0123456789abcdee", "zzzzzz.0123456789abcdef"] {
        assert_eq!(bearer(&auth, token, now()), Err(Status::unauthorized()), "{token}");
    }
    let strict = authenticator().without_anonymous();
    assert_eq!(strict.authenticate(none, now(), &objects), Err(Status::unauthorized()));
}

#[test]
fn static_tokens() {
    let user = bearer(&authenticator(), "s3cret", now()).unwrap();
    assert_eq!(user, User::new("admin", ["system:masters", AUTHENTICATED]));
}

#[test]
fn bootstrap_tokens() {
    let auth = authenticator();
    let user = bearer(&auth, "abcdef.0123456789abcdef", now()).unwrap();
    assert_eq!(user.name, "system:bootstrap:abcdef");
    assert_eq!(user.groups, ["system:bootstrappers", "system:bootstrappers:ours", AUTHENTICATED]);
    let expired = bearer(&auth, "abcdef.0123456789abcdef", later(86_400));
    assert_eq!(expired, Err(Status::unauthorized()));
}

#[test]
fn service_account_tokens() {
    let auth = authenticator();
    let tokens = auth.service_accounts().unwrap();
    let token = tokens.issue(&ask("bot", None), now()).unwrap();
    let user = bearer(&auth, &token, later(599)).unwrap();
    assert_eq!(user.name, "system:serviceaccount:ns:bot");
    assert_eq!(user.uid, "u1");
    assert_eq!(user.groups, ["system:serviceaccounts", "system:serviceaccounts:ns", AUTHENTICATED]);
    let id = &user.extra[crate::user::CREDENTIAL_ID][0];
    assert!(id.starts_with("JTI=") && id.len() == 40, "{id}");

    let error = |token: &str, audiences: &[String], at| {
        let error = auth.authenticate_token(token, audiences, at, &objects).unwrap_err();
        let error = error.strip_prefix("[invalid bearer token, ").unwrap();
        error.strip_suffix(']').unwrap().to_owned()
    };
    assert_eq!(error(&token, &[], later(700)), "service account token has expired");
    assert_eq!(error(&token, &[], later(-100)), "service account token is not valid yet");
    assert_eq!(
        error(&token, &["other".to_owned()], now()),
        r#"token audiences ["https://kubernetes.default.svc"] is invalid for the target audiences ["other"]"#
    );
    let stranger = SigningKey::generate().unwrap();
    let forged = ServiceAccountTokens::new(stranger, ISSUER).issue(&ask("bot", None), now());
    assert_eq!(error(&forged.unwrap(), &[], now()), "invalid signature, no keys found");
    let mut changed = token.clone();
    changed.replace_range(changed.len() - 4.., "AAAA");
    assert_eq!(error(&changed, &[], now()), "go-jose/go-jose: error in cryptographic primitive");
    let gone = tokens.issue(&ask("gone", None), now()).unwrap();
    assert_eq!(error(&gone, &[], now()), "service account ns/gone has been deleted");
    let absent = tokens.issue(&ask("absent", None), now()).unwrap();
    assert_eq!(error(&absent, &[], now()), "serviceaccounts \"absent\" not found");
    let reborn = TokenAsk { uid: "u0", ..ask("bot", None) };
    let reborn = tokens.issue(&reborn, now()).unwrap();
    assert_eq!(error(&reborn, &[], now()), "service account UID (u1) does not match claim (u0)");
}

#[test]
fn bound_tokens_die_with_their_object() {
    let auth = authenticator();
    let tokens = auth.service_accounts().unwrap();
    let account = objects("serviceaccounts", "ns", "bot").unwrap();
    let request =
        json!({"spec": {"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "p"}}});
    let answer = token_request(request, &account, tokens, now(), &objects).unwrap();
    assert_eq!(answer["status"]["expirationTimestamp"], "2026-01-02T04:04:05Z");
    assert_eq!(answer["spec"]["expirationSeconds"], 3600);
    assert_eq!(answer["spec"]["audiences"], json!([ISSUER]));
    let token = answer["status"]["token"].as_str().unwrap();
    let user = bearer(&auth, token, now()).unwrap();
    assert_eq!(user.extra["authentication.kubernetes.io/pod-name"], ["p"]);
    assert_eq!(user.extra["authentication.kubernetes.io/pod-uid"], ["pu"]);
    assert_eq!(user.extra["authentication.kubernetes.io/node-name"], ["n1"]);
    let bare = |resource: &'static str, namespace: &str, name: &str| match resource {
        "pods" => None,
        _ => objects(resource, namespace, name),
    };
    let error = auth.authenticate_token(token, &[], now(), &bare).unwrap_err();
    assert_eq!(error, "[invalid bearer token, service account token has been invalidated]");

    let short = json!({"spec": {"expirationSeconds": 10}});
    let status = token_request(short, &account, tokens, now(), &objects).unwrap_err();
    assert_eq!(
        status.message,
        "TokenRequest.authentication.k8s.io \"\" is invalid: spec.expirationSeconds: \
         Invalid value: 10: may not specify a duration less than 10 minutes"
    );
}

#[test]
fn keys_survive_pem() {
    let key = SigningKey::generate().unwrap();
    let again = SigningKey::from_pem(key.to_pem()).unwrap();
    let token = key.sign(&json!({"a": 1})).unwrap();
    assert_eq!(again.verify(&token), Ok(json!({"a": 1})));
    assert_eq!(key.jwks(), again.jwks());
    assert!(SigningKey::from_pem("nonsense").is_err());
}

fn impersonation_world() -> Rbac {
    let mut rbac = Rbac::default();
    let rules = |name: &str, rules: Value| {
        json!({"metadata": {"name": name}, "rules": rules,
               "roleRef": {"kind": "ClusterRole", "name": name},
               "subjects": [{"kind": "User", "name": name}]})
    };
    for object in [
        rules(
            "old",
            json!([{"apiGroups": [""], "resources": ["users", "groups", "serviceaccounts"],
                             "verbs": ["impersonate"]}]),
        ),
        rules(
            "new",
            json!([
                {"apiGroups": ["authentication.k8s.io"], "resources": ["users"],
                 "resourceNames": ["ann"], "verbs": ["impersonate:user-info"]},
                {"apiGroups": [""], "resources": ["pods"], "verbs": ["impersonate-on:user-info:list"]},
            ]),
        ),
    ] {
        rbac.put(Kind::ClusterRole, &object);
        rbac.put(Kind::ClusterRoleBinding, &object);
    }
    rbac
}

fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        headers.append(
            HeaderName::from_bytes(name.as_bytes()).unwrap(),
            HeaderValue::from_str(value).unwrap(),
        );
    }
    headers
}

#[test]
fn impersonation() {
    let rbac = impersonation_world();
    let list = Attributes::resource("list", "", "pods");
    let run = |who: &str, pairs: &[(&str, &str)]| {
        impersonate(&headers(pairs), &User::new(who, []), &list, &rbac, &Habits::default())
    };
    assert_eq!(run("old", &[]), Ok(None));
    assert_eq!(
        run("old", &[("Impersonate-User", "ann")]),
        Ok(Some(User::new("ann", [AUTHENTICATED])))
    );
    assert_eq!(
        run("old", &[("Impersonate-User", "ann"), ("Impersonate-Group", "g")]),
        Ok(Some(User::new("ann", ["g", AUTHENTICATED])))
    );
    assert_eq!(
        run("old", &[("Impersonate-User", "system:serviceaccount:ns:bot")]),
        Ok(Some(User::new(
            "system:serviceaccount:ns:bot",
            ["system:serviceaccounts", "system:serviceaccounts:ns", AUTHENTICATED]
        )))
    );
    assert_eq!(
        run("old", &[("Impersonate-User", "system:anonymous")]),
        Ok(Some(User::anonymous()))
    );
    assert_eq!(
        run("new", &[("Impersonate-User", "ann")]),
        Ok(Some(User::new("ann", [AUTHENTICATED])))
    );
    for (who, pairs, message) in [
        (
            "nobody",
            &[("Impersonate-User", "ann")][..],
            r#"pods is forbidden: User "nobody" cannot impersonate-on:user-info:list resource "pods" in API group "" at the cluster scope"#,
        ),
        (
            "new",
            &[("Impersonate-User", "bob")],
            r#"users.authentication.k8s.io "bob" is forbidden: User "new" cannot impersonate:user-info resource "users" in API group "authentication.k8s.io" at the cluster scope"#,
        ),
        (
            "old",
            &[("Impersonate-User", "ann"), ("Impersonate-Extra-Scopes%2fx", "v")],
            r#"pods is forbidden: User "old" cannot impersonate-on:user-info:list resource "pods" in API group "" at the cluster scope"#,
        ),
        (
            "old",
            &[("Impersonate-Group", "g")],
            r#"requested &user.DefaultInfo{Name:"", UID:"", Groups:[]string{"g"}, Extra:map[string][]string(nil)} without impersonating a user name"#,
        ),
    ] {
        assert_eq!(run(who, pairs).unwrap_err().message, message);
    }
}

#[test]
fn a_refusal_is_of_the_permission_that_was_enough_before() {
    let rbac = impersonation_world();
    let list = Attributes::resource("list", "", "pods");
    let habits = Habits::default();
    let refusal = |pairs: &[(&str, &str)]| {
        impersonate(&headers(pairs), &User::new("old", []), &list, &rbac, &habits)
            .map(|_| ())
            .map_err(|refused| refused.message)
    };
    let with_extra = [("Impersonate-User", "ann"), ("Impersonate-Extra-Scopes", "v")];
    let narrow = refusal(&with_extra).unwrap_err();
    assert!(narrow.contains("impersonate-on:user-info:list"), "{narrow}");
    refusal(&[("Impersonate-User", "ann")]).unwrap();
    let plain = refusal(&with_extra).unwrap_err();
    assert!(plain.contains("cannot impersonate resource \"userextras/scopes\""), "{plain}");
}
