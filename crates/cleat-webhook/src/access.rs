//! Asking the hub whether somebody has a right: to let works use a service account's, to accept
//! clusters, to move them between sets, to use a set's.

use std::collections::BTreeMap;

use cleat_api::admission::Review;
use cleat_api::manifestwork::{EXECUTE_AS, GROUP};
use cleat_core::registration::admission::Right;
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
    right: ResourceAttributes,
) -> kube::Result<bool> {
    let UserInfo { username, uid, groups, extra } =
        UserInfo::deserialize(user).map_err(kube::Error::SerdeError)?;
    let question = SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            user: Some(username),
            uid: Some(uid).filter(|uid| !uid.is_empty()),
            groups: Some(groups),
            extra: Some(extra),
            resource_attributes: Some(right),
            ..Default::default()
        },
        ..Default::default()
    };
    let reviews: Api<SubjectAccessReview> = Api::all(hub_client.clone());
    let answer = reviews.create(&PostParams::default(), &question).await?;
    Ok(answer.status.is_some_and(|status| status.allowed && !status.denied.unwrap_or_default()))
}

/// The right to let works use an account's rights.
pub(crate) fn execute_as(review: &Review) -> ResourceAttributes {
    ResourceAttributes {
        group: Some(GROUP.to_owned()),
        resource: Some("manifestworks".to_owned()),
        verb: Some(EXECUTE_AS.to_owned()),
        namespace: Some(review.namespace.clone()),
        name: Some(review.name.clone()),
        ..Default::default()
    }
}

/// The group of clusters and their sets.
const CLUSTERS: &str = "cluster.open-cluster-management.io";

/// A right about clusters.
pub(crate) fn about_clusters(right: &Right) -> ResourceAttributes {
    let Right { verb, resource, subresource, name } = right;
    ResourceAttributes {
        group: Some(CLUSTERS.to_owned()),
        resource: Some((*resource).to_owned()),
        subresource: Some((*subresource).to_owned()),
        verb: Some((*verb).to_owned()),
        name: Some(name.clone()),
        ..Default::default()
    }
}

/// What to tell somebody who lacks one of those.
pub(crate) fn denial_about_clusters(user: &Value, right: &Right) -> String {
    let user = user.get("username").and_then(Value::as_str).unwrap_or_default();
    let Right { verb, resource, subresource, name } = right;
    format!(
        "user {user} may not do this to {name}: it needs the verb {verb} on \
         {resource}/{subresource}.{CLUSTERS} with that resource name; ask for a role that grants it"
    )
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
