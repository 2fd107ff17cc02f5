//! Which webhooks a request concerns, and as what it is shown to them.

use serde_json::Value;

use super::{
    GroupVersionKind, GroupVersionResource, Operation, Request, Surroundings,
    configuration::{self, Condition, Rule, Webhook},
    review,
};
use crate::{
    schema::cel::Scope,
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
    let namespace = match_namespace(&hook.namespace_selector, request, around);
    let object = match_object(&hook.object_selector, request);
    if matches!(namespace, Ok(false)) || matches!(object, Ok(false)) {
        return Ok(None);
    }
    let matched = match_rules(hook.rules.iter(), hook.matches_equivalents, request, around);
    let Some((resource, kind)) = matched else { return Ok(None) };
    // What went wrong above only matters to a webhook that is concerned.
    namespace?;
    object?;
    let invocation = shown_as(kind, resource, request, around)?;
    Ok(match_conditions(hook, request, &invocation, around)?.then_some(invocation))
}

/// The request with its objects as a kind.
pub(super) fn shown_as(
    kind: GroupVersionKind,
    resource: GroupVersionResource,
    request: &Request<'_>,
    around: &dyn Surroundings,
) -> Result<Invocation, Status> {
    let convert = |object: Option<&Value>| match object {
        Some(object) if kind != request.kind => {
            around.convert(object, &kind).map(Some).map_err(Status::internal)
        }
        _ => Ok(None),
    };
    Ok(Invocation {
        object: convert(request.object)?,
        old_object: convert(request.old_object)?,
        kind,
        resource,
    })
}

/// Cluster-scoped objects are never exempt, and a namespace counts by its own labels.
pub(super) fn match_namespace(
    selector: &Result<LabelSelector, String>,
    request: &Request<'_>,
    around: &dyn Surroundings,
) -> Result<bool, Status> {
    let is_namespace = request.resource.resource == "namespaces";
    if request.namespace.is_empty() && !is_namespace {
        return Ok(true);
    }
    let selector = selector.as_ref().map_err(Status::internal)?;
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

pub(super) fn match_object(
    selector: &Result<LabelSelector, String>,
    request: &Request<'_>,
) -> Result<bool, Status> {
    let selector = selector.as_ref().map_err(Status::internal)?;
    Ok(selector.is_everything()
        || [request.object, request.old_object]
            .into_iter()
            .flatten()
            .any(|object| selector.matches(object)))
}

pub(super) fn match_rules<'r>(
    mut rules: impl Iterator<Item = &'r Rule> + Clone,
    equivalents_too: bool,
    request: &Request<'_>,
    around: &dyn Surroundings,
) -> Option<(GroupVersionResource, GroupVersionKind)> {
    if rules.clone().any(|rule| rule.matches(request, &request.resource)) {
        return Some((request.resource.clone(), request.kind.clone()));
    }
    if !equivalents_too {
        return None;
    }
    let equivalents = around.equivalents(&request.resource, request.subresource);
    // An earlier rule counts more than an earlier version.
    rules.find_map(|rule| {
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
    let scope = scope(request, invocation);
    let outcome = all_hold(&hook.conditions, |condition| match &condition.compiled {
        Some(compiled) => scope.holds(compiled),
        None => around.condition(&condition.source, &review::request("", request, invocation)),
    });
    match outcome {
        Ok(matches) => Ok(matches),
        Err(_) if !hook.fails_closed => Ok(false),
        Err(why) => {
            let GroupVersionResource { group, resource, .. } = &request.resource;
            Err(Status::forbidden(GroupResource { group, resource }, request.name, why))
        }
    }
}

/// What expressions about a request may speak of: `object`, `oldObject` and `request`.
pub(super) fn scope(request: &Request<'_>, invocation: &Invocation) -> Scope {
    let mut bare = review::request("", request, invocation);
    let mut take = |key: &str| {
        let members = bare.as_object_mut();
        members.and_then(|members| members.remove(key)).unwrap_or(Value::Null)
    };
    let (object, old) = (take("object"), take("oldObject"));
    let mut scope = Scope::default();
    scope.set("object", &object);
    scope.set("oldObject", &old);
    scope.set("request", &bare);
    scope
}

/// Whether all conditions hold. One that does not outweighs any that failed.
pub(super) fn all_hold(
    conditions: &[Condition],
    holds: impl Fn(&Condition) -> Result<bool, String>,
) -> Result<bool, String> {
    let mut errors = Vec::new();
    for condition in conditions {
        match holds(condition) {
            Ok(true) => {}
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
    match errors.as_slice() {
        [] => Ok(true),
        [one] => Err(one.clone()),
        many => Err(format!("[{}]", many.join(", "))),
    }
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
            configuration::Scope::All => true,
            configuration::Scope::Cluster => cluster,
            configuration::Scope::Namespaced => !cluster,
            configuration::Scope::Unknown => false,
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
