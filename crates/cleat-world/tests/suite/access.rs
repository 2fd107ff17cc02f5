//! Who may do what: service accounts with tokens of their own, roles, and nobody.

use anyhow::{Context as _, Result};
use cleat_world::eventually;
use cleat_world::world::Credentials;
use k8s_openapi::api::authentication::v1::{SelfSubjectReview, TokenRequest};
use k8s_openapi::api::authorization::v1::SelfSubjectAccessReview;
use k8s_openapi::api::core::v1::{ConfigMap, Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::Client;
use kube::api::{Api, ListParams, PostParams};
use serde_json::{Value, json};

use crate::{Place, create, delete, parse, refusal};

/// A client that is the service account `robot` of the place.
pub(super) async fn robot(place: &Place) -> Result<Client> {
    account(place, "robot").await
}

/// A client that is a new service account of the place.
pub(super) async fn account(place: &Place, name: &str) -> Result<Client> {
    let accounts: Api<ServiceAccount> = place.api();
    create(&accounts, json!({ "metadata": { "name": name } })).await?;
    let request: TokenRequest = parse(json!({ "spec": { "expirationSeconds": 600 } }));
    let params = PostParams::default();
    let issued: TokenRequest =
        accounts.create_subresource("token", name, &params, &request).await?;
    let token = issued.status.and_then(|status| status.token).context("a token was issued")?;
    place.world.hub.client_with(Credentials::Token(token)).await
}

pub(super) async fn let_robots(place: &Place, rules: Value) -> Result<()> {
    create(&place.api::<Role>(), json!({ "metadata": { "name": "robots" }, "rules": rules }))
        .await?;
    let binding = json!({
        "metadata": { "name": "robots" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "robots" },
        "subjects": [{ "kind": "ServiceAccount", "name": "robot", "namespace": place.namespace }],
    });
    create(&place.api::<RoleBinding>(), binding).await?;
    Ok(())
}

#[tokio::test]
async fn a_token_is_its_service_account() -> Result<()> {
    let place = Place::new("access").await?;
    let reviews: Api<SelfSubjectReview> = Api::all(robot(&place).await?);
    let review = create(&reviews, json!({})).await?;
    let user = review.status.and_then(|status| status.user_info).context("somebody")?;
    let name = format!("system:serviceaccount:{}:robot", place.namespace);
    assert_eq!(user.username, Some(name));
    let groups = [
        "system:serviceaccounts".to_owned(),
        format!("system:serviceaccounts:{}", place.namespace),
        "system:authenticated".to_owned(),
    ];
    assert_eq!(user.groups, Some(groups.to_vec()));
    Ok(())
}

#[tokio::test]
async fn a_role_allows_what_it_says_and_no_more() -> Result<()> {
    let place = Place::new("access").await?;
    place.config_map("a").await?;
    let robot = robot(&place).await?;
    let maps: Api<ConfigMap> = Api::namespaced(robot.clone(), &place.namespace);
    let status = refusal(maps.get("a").await);
    assert_eq!((status.code, &*status.reason), (403, "Forbidden"));
    let who = format!("system:serviceaccount:{}:robot", place.namespace);
    assert!(status.message.contains(&who), "{}", status.message);

    let verbs = json!(["get", "list"]);
    let_robots(&place, json!([{ "apiGroups": [""], "resources": ["configmaps"], "verbs": verbs }]))
        .await?;
    eventually("the role to count", || async { Ok(maps.get("a").await.ok()) }).await?;
    maps.list(&ListParams::default()).await?;
    assert_eq!(refusal(maps.delete("a", &Default::default()).await).code, 403);
    let secrets: Api<Secret> = Api::namespaced(robot.clone(), &place.namespace);
    assert_eq!(refusal(secrets.list(&ListParams::default()).await).code, 403);
    let everywhere: Api<ConfigMap> = Api::all(robot.clone());
    assert_eq!(refusal(everywhere.list(&ListParams::default()).await).code, 403);

    let reviews: Api<SelfSubjectAccessReview> = Api::all(robot);
    for (verb, allowed) in [("get", true), ("delete", false)] {
        let attributes =
            json!({ "namespace": place.namespace, "verb": verb, "resource": "configmaps" });
        let ask = json!({ "spec": { "resourceAttributes": attributes } });
        let review = create(&reviews, ask).await?;
        assert_eq!(review.status.map(|status| status.allowed), Some(allowed), "{verb}");
    }

    delete(&place.api::<RoleBinding>(), "robots").await?;
    eventually("the role to count no more", || async {
        Ok(maps.get("a").await.is_err().then_some(()))
    })
    .await
}

#[tokio::test]
async fn nobody_grants_what_they_do_not_have() -> Result<()> {
    let place = Place::new("access").await?;
    let robot = robot(&place).await?;
    let group = "rbac.authorization.k8s.io";
    let rules = json!([
        { "apiGroups": [group], "resources": ["roles"], "verbs": ["create"] },
        { "apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"] },
    ]);
    let_robots(&place, rules).await?;
    let roles: Api<Role> = Api::namespaced(robot, &place.namespace);
    let role = |name: &str, verb: &str| -> Role {
        let rule = json!({ "apiGroups": [""], "resources": ["configmaps"], "verbs": [verb] });
        parse(json!({ "metadata": { "name": name }, "rules": [rule] }))
    };
    eventually("the role to count", || async {
        Ok(roles.create(&PostParams::default(), &role("allowed", "get")).await.ok())
    })
    .await?;
    let status = refusal(roles.create(&PostParams::default(), &role("greedy", "delete")).await);
    assert_eq!((status.code, &*status.reason), (403, "Forbidden"));
    assert!(status.message.contains("attempting to grant RBAC permissions"), "{}", status.message);
    Ok(())
}

#[tokio::test]
async fn tokens_die_with_their_account() -> Result<()> {
    let place = Place::new("access").await?;
    let robot = robot(&place).await?;
    let reviews: Api<SelfSubjectReview> = Api::all(robot);
    create(&reviews, json!({})).await?;
    delete(&place.api::<ServiceAccount>(), "robot").await?;
    let refused = eventually("the token to be refused", || async {
        let answer = reviews.create(&PostParams::default(), &parse(json!({}))).await;
        Ok(answer.is_err().then(|| refusal(answer)))
    })
    .await?;
    assert_eq!((refused.code, &*refused.reason), (401, "Unauthorized"));
    Ok(())
}

#[tokio::test]
async fn strangers_may_ask_for_the_version_and_little_else() -> Result<()> {
    let place = Place::new("access").await?;
    let nobody = place.world.hub.client_with(Credentials::Nobody).await?;
    nobody.apiserver_version().await?;
    let maps: Api<ConfigMap> = Api::namespaced(nobody, &place.namespace);
    let status = refusal(maps.list(&ListParams::default()).await);
    assert_eq!(status.code, 403);
    assert!(
        status.message.contains(r#"User "system:anonymous" cannot list"#),
        "{}",
        status.message
    );
    let rubbish = Credentials::Token("rubbish".to_owned());
    let rubbish = place.world.hub.client_with(rubbish).await?;
    assert_eq!(refusal(rubbish.apiserver_version().await).code, 401);
    Ok(())
}
