//! How a refusal is worded.

use super::{Attributes, ResourceTarget, Target};
use crate::{
    quote::quoted,
    status::{GroupResource, Status},
    user::User,
};

/// The `Forbidden` a user gets for what they may not do.
pub fn forbidden(user: &User, attributes: &Attributes<'_>, reason: &str) -> Status {
    // Upstream keeps its own part of the message from looking like HTML.
    let mut why =
        sentence(user, attributes).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    if !reason.is_empty() {
        why = format!("{why}: {reason}");
    }
    match attributes.target {
        Target::Resource(target) if !target.resource.is_empty() => {
            let what = GroupResource { group: target.group, resource: target.resource };
            Status::forbidden(what, target.name, why)
        }
        _ => Status::new(403, "Forbidden", format!("forbidden: {why}")).with_details(),
    }
}

fn sentence(user: &User, attributes: &Attributes<'_>) -> String {
    let who = quoted(&user.name);
    let verb = attributes.verb;
    match attributes.target {
        Target::Path(path) => format!("User {who} cannot {verb} path {}", quoted(path)),
        Target::Resource(ResourceTarget { group, resource, subresource, namespace, .. }) => {
            let resource = match subresource {
                "" => quoted(resource),
                subresource => quoted(&format!("{resource}/{subresource}")),
            };
            let scope = match namespace {
                "" => "at the cluster scope".to_owned(),
                namespace => format!("in the namespace {}", quoted(namespace)),
            };
            let group = quoted(group);
            format!("User {who} cannot {verb} resource {resource} in API group {group} {scope}")
        }
    }
}
