//! Which webhooks a request concerns, and as what it is shown to them.

use serde_json::Value;

use super::{
    GroupVersionKind, GroupVersionResource, Operation, Request, Surroundings,
    configuration::{Rule, Scope, Webhook},
    review,
};
use crate::{
    schema::cel,
    selector::LabelSelector,
    status::{GroupResource, Status},
};

/// The request as one webhook wants to see it.
pub(super) struct Invocation {
    pub(super) kind: GroupVersionKind,
    pub(super) resource: GroupVersionResource,
    /// `None` when shown as it came.
    pub(super) object: Option<Value>,
    pub(super) old_object: Option<Value>,
}

/// `None` when the webhook is not concerned. An error is one in matching, and ends the request.
pub(super) fn invocation(
    hook: &Webhook,
    request: &Request<'_>,
    around: &dyn Surroundings,
) -> Result<Option<Invocation>, Status> {
    let namespace = match_namespace(hook, request, around);
    let object = match_object(hook, request);
    if matches!(namespace, Ok(false)) || matches!(object, Ok(false)) {
        return Ok(None);
    }
    let Some((resource, kind)) = match_rules(hook, request, around) else { return Ok(None) };
    // What went wrong above only matters to a webhook that is concerned.
    namespace?;
    object?;
    let convert = |object: Option<&Value>| match object {
        Some(object) if kind != request.kind => {
            around.convert(object, &kind).map(Some).map_err(Status::internal)
        }
        _ => Ok(None),
    };
    let invocation = Invocation {
        object: convert(request.object)?,
        old_object: convert(request.old_object)?,
        kind,
        resource,
    };
    Ok(match_conditions(hook, request, &invocation, around)?.then_some(invocation))
}

/// Cluster-scoped objects are never exempt, and a namespace counts by its own labels.
fn match_namespace(
    hook: &Webhook,
    request: &Request<'_>,
    around: &dyn Surroundings,
) -> Result<bool, Status> {
    let is_namespace = request.resource.resource == "namespaces";
    if request.namespace.is_empty() && !is_namespace {
        return Ok(true);
    }
    let selector = hook.namespace_selector.as_ref().map_err(Status::internal)?;
    if selector.is_everything() {
        return Ok(true);
    }
    let written = matches!(request.operation, Operation::Create | Operation::Update);
    if is_namespace && request.subresource.is_empty() && written {
        return Ok(request.object.is_some_and(|object| selector.matches(object)));
    }
    match around.namespace_labels(request.namespace) {
        Some(labels) => Ok(selector.matches_labels(Some(&labels))),
        None => {
            let what = GroupResource { group: "", resource: "namespaces" };
            Err(Status::not_found(what, request.namespace))
        }
    }
}

fn match_object(hook: &Webhook, request: &Request<'_>) -> Result<bool, Status> {
    let selector: &LabelSelector = hook.object_selector.as_ref().map_err(Status::internal)?;
    Ok(selector.is_everything()
        || [request.object, request.old_object]
            .into_iter()
            .flatten()
            .any(|object| selector.matches(object)))
}

fn match_rules(
    hook: &Webhook,
    request: &Request<'_>,
    around: &dyn Surroundings,
) -> Option<(GroupVersionResource, GroupVersionKind)> {
    if hook.rules.iter().any(|rule| rule.matches(request, &request.resource)) {
        return Some((request.resource.clone(), request.kind.clone()));
    }
    if !hook.matches_equivalents {
        return None;
    }
    let equivalents = around.equivalents(&request.resource, request.subresource);
    // An earlier rule counts more than an earlier version.
    hook.rules.iter().find_map(|rule| {
        equivalents
            .iter()
            .find(|(resource, _)| *resource != request.resource && rule.matches(request, resource))
            .cloned()
    })
}

fn match_conditions(
    hook: &Webhook,
    request: &Request<'_>,
    invocation: &Invocation,
    around: &dyn Surroundings,
) -> Result<bool, Status> {
    if hook.conditions.is_empty() {
        return Ok(true);
    }
    let shown = review::request("", request, invocation);
    let none = Value::Null;
    let object = |key: &str| shown.get(key).unwrap_or(&none);
    let mut bare = shown.clone();
    if let Some(bare) = bare.as_object_mut() {
        bare.retain(|key, _| key != "object" && key != "oldObject");
    }
    let variables =
        [("object", object("object")), ("oldObject", object("oldObject")), ("request", &bare)];
    let mut errors = Vec::new();
    for condition in &hook.conditions {
        let outcome = match &condition.compiled {
            Some(compiled) => cel::matches(compiled, &variables),
            None => around.condition(&condition.source, &shown),
        };
        match outcome {
            Ok(true) => {}
            // One that is false outweighs any that failed.
            Ok(false) => return Ok(false),
            Err(why) => {
                let source = &condition.source;
                let error = format!("expression '{source}' resulted in error: {why}");
                if !errors.contains(&error) {
                    errors.push(error);
                }
            }
        }
    }
    let why = match errors.as_slice() {
        [] => return Ok(true),
        _ if !hook.fails_closed => return Ok(false),
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    };
    let GroupVersionResource { group, resource, .. } = &request.resource;
    Err(Status::forbidden(GroupResource { group, resource }, request.name, why))
}

impl Rule {
    fn matches(&self, request: &Request<'_>, resource: &GroupVersionResource) -> bool {
        let listed = |items: &[Box<str>], wanted: &str| {
            items.iter().any(|item| **item == *"*" || **item == *wanted)
        };
        let is_namespace = resource.group.is_empty()
            && resource.version == "v1"
            && resource.resource == "namespaces";
        let cluster = is_namespace || request.namespace.is_empty();
        let scope = match self.scope {
            Scope::All => true,
            Scope::Cluster => cluster,
            Scope::Namespaced => !cluster,
            Scope::Unknown => false,
        };
        scope
            && listed(&self.operations, request.operation.as_str())
            && listed(&self.groups, &resource.group)
            && listed(&self.versions, &resource.version)
            && self.resources.iter().any(|(rule, sub)| {
                (**rule == *"*" || **rule == *resource.resource)
                    && (**sub == *"*" || **sub == *request.subresource)
            })
    }
}
