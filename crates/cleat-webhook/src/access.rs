//! Asking the hub whether somebody may let works use a service account's rights.

use std::collections::BTreeMap;

use cleat_api::admission::Review;
use cleat_api::manifestwork::{EXECUTE_AS, GROUP};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::api::{Api, PostParams};
use serde::Deserialize;
use serde_json::Value;

/// Who asks, as an AdmissionReview says it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct UserInfo {
    username: String,
    uid: String,
    groups: Vec<String>,
    extra: BTreeMap<String, Vec<String>>,
}

/// Whether `user`, the `userInfo` of a review, has the right.
pub(crate) async fn allowed(
    hub_client: &kube::Client,
    user: &Value,
    review: &Review,
) -> kube::Result<bool> {
    let UserInfo { username, uid, groups, extra } =
        UserInfo::deserialize(user).map_err(kube::Error::SerdeError)?;
    let question = SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            user: Some(username),
            uid: Some(uid).filter(|uid| !uid.is_empty()),
            groups: Some(groups),
            extra: Some(extra),
            resource_attributes: Some(ResourceAttributes {
                group: Some(GROUP.to_owned()),
                resource: Some("manifestworks".to_owned()),
                verb: Some(EXECUTE_AS.to_owned()),
                namespace: Some(review.namespace.clone()),
                name: Some(review.name.clone()),
                ..Default::default()
            }),
            ..Default::default()
        },
        ..Default::default()
    };
    let reviews: Api<SubjectAccessReview> = Api::all(hub_client.clone());
    let answer = reviews.create(&PostParams::default(), &question).await?;
    Ok(answer.status.is_some_and(|status| status.allowed && !status.denied.unwrap_or_default()))
}

/// What to tell somebody who has not.
pub(crate) fn denial(user: &Value, review: &Review) -> String {
    let user = user.get("username").and_then(Value::as_str).unwrap_or_default();
    let Review { namespace, name } = review;
    let place = match namespace.as_str() {
        "" => "every namespace".to_owned(),
        namespace => format!("namespace {namespace}"),
    };
    format!(
        "user {user} may not let works use the rights of {name}: it needs the verb {EXECUTE_AS} \
         on manifestworks.{GROUP} with that resource name in {place}; ask for a role that grants \
         it, or leave the executor as it was"
    )
}
