//! No input makes access decisions panic: objects, answers, tokens and certificates of any shape.

use std::sync::LazyLock;

use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{
    Phase, Policies, configuration, review, validate_binding, validate_configuration,
    validate_configuration_update, validate_policy,
};
use crate::{
    authn::{Authenticator, Credentials, PeerIdentity, ServiceAccountTokens, SigningKey},
    authz::{self, Attributes, Authorize as _, BindingWrite, Kind, Rbac, RoleWrite},
    certificates::CertificateRequest,
    schema::arbitrary::value,
    user::User,
};

const KEYS: [&str; 24] = [
    "metadata",
    "name",
    "namespace",
    "labels",
    "webhooks",
    "rules",
    "operations",
    "apiGroups",
    "apiVersions",
    "resources",
    "clientConfig",
    "service",
    "url",
    "path",
    "port",
    "matchConditions",
    "expression",
    "namespaceSelector",
    "subjects",
    "roleRef",
    "kind",
    "aggregationRule",
    "clusterRoleSelectors",
    "response",
];

/// One for all cases, since making one takes longer than a case does.
static KEY: LazyLock<String> =
    LazyLock::new(|| SigningKey::generate().unwrap().to_pem().to_owned());

/// Objects with the right names and any content.
fn object() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![value(), any::<String>().prop_map(Value::from)];
    leaf.prop_recursive(4, 48, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((prop::sample::select(&KEYS[..]), inner), 0..6).prop_map(
                |members| {
                    members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
                }
            ),
        ]
    })
}

proptest! {
    #[test]
    fn objects(a in object(), b in object()) {
        configuration::webhooks(&a);
        configuration::webhooks(&json!({"webhooks": [a.clone(), b.clone()]}));
        validate_configuration(&json!({"webhooks": [a.clone()]}), &|_| None);
        validate_configuration_update(&a, &b, &|_| None);
        for phase in [Phase::Mutating, Phase::Validating] {
            let v1 = configuration::ReviewVersion::V1;
            let _ = review::answer(phase, v1, "u", &a);
            let _ = review::answer(phase, v1, "u", &json!({"response": b.clone()}));
        }
        review::refusal("w", Some(&a));
        let mut policies = Policies::default();
        for object in [&a, &json!({"spec": a.clone()}), &json!({"spec": b.clone()})] {
            validate_policy(object);
            validate_binding(object);
            policies.put_policy(object);
            policies.put_binding(object);
        }
        let mut rbac = Rbac::default();
        for kind in [Kind::ClusterRole, Kind::Role, Kind::ClusterRoleBinding, Kind::RoleBinding] {
            rbac.put(kind, &a);
            rbac.put(kind, &json!({"metadata": {"name": "n"}, "rules": a, "subjects": b}));
        }
        let user = User::new("u", ["g"]);
        rbac.authorize(&user, &Attributes::resource("get", "", "pods"));
        let write = RoleWrite { namespace: "", url_name: "", old: Some(&a), new: &b };
        let _ = rbac.check_role(&user, &write);
        let _ = rbac.check_binding(&user, &BindingWrite { namespace: "n", old: Some(&a), new: &b });
        authz::aggregated_rules(&a, [&b, &a].into_iter());
        authz::reconciled_bootstrap_object(&a, &b);
        let _ = authz::subject_access_review(a.clone(), &rbac);
        let _ = authz::local_subject_access_review(a.clone(), "n", &rbac);
        let _ = authz::self_subject_rules_review(&a, &user, &rbac);
        let _ = authz::token_review(a, |_, _| Err(String::new()));
    }

    #[test]
    fn bytes(bytes in prop::collection::vec(any::<u8>(), 0..200), header in any::<String>()) {
        PeerIdentity::from_der(&bytes, true);
        let _ = CertificateRequest::from_pem(&bytes);
        let key = SigningKey::from_pem(&KEY).unwrap();
        let auth = Authenticator::new().with_service_accounts(ServiceAccountTokens::new(key, "i"));
        let nothing = |_: &'static str, _: &str, _: &str| None;
        let credentials = Credentials { peer: None, authorization: Some(&header) };
        let _ = auth.authenticate(credentials, Timestamp::UNIX_EPOCH, &nothing);
        let _ = auth.authenticate_token(&header, &[], Timestamp::UNIX_EPOCH, &nothing);
    }
}
