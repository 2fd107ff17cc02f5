//! What a policy on the hub says to keep of what it made on a cluster.
//!
//! The agent tells the same of each object as it was when it was heard last; the policy may have said
//! to keep something since. Which template made an object nobody tells: where none names it, one that
//! keeps what it made keeps all.

use alloc::vec::Vec;

use cleat_api::leftoverrecord::{LeftObject, Stays};
use cleat_api::policy::PolicySpec;
use serde_json::Value;

/// Whether an object stays by what its policy says now. A policy that cannot be read may say so.
pub(super) fn declared(spec: Option<&PolicySpec>, object: &LeftObject) -> Option<Stays> {
    let Some(spec) = spec else { return Some(Stays::Declared) };
    let all: Vec<&Value> = spec.policy_templates.iter().map(|one| &one.object_definition).collect();
    let named: Vec<&Value> = all.iter().copied().filter(|one| is_about(one, object)).collect();
    let makers = if named.is_empty() { all } else { named };
    let kept = makers.into_iter().any(|template| !prunes(spec, template));
    kept.then_some(Stays::Declared)
}

/// Whether a template, once it is on the cluster, takes what it made with it.
fn prunes(spec: &PolicySpec, template: &Value) -> bool {
    let behavior = text(template, "/spec/pruneObjectBehavior");
    enforces(spec, template) && matches!(behavior, "DeleteAll" | "DeleteIfCreated")
}

/// Whether a template, once it is on the cluster, makes what it wants.
pub(super) fn enforces(spec: &PolicySpec, template: &Value) -> bool {
    let own = text(template, "/spec/remediationAction");
    // The policy's word counts, except for a template that is never to change anything.
    let action = match spec.remediation_action.as_deref() {
        Some(action) if !action.is_empty() && !own.eq_ignore_ascii_case("informonly") => action,
        _ => own,
    };
    action.eq_ignore_ascii_case("enforce")
}

/// Whether a template names an object. A name that is made on the cluster is not known here.
fn is_about(template: &Value, object: &LeftObject) -> bool {
    let wanted = template.pointer("/spec/object-templates").and_then(Value::as_array);
    let mut wanted = wanted.into_iter().flatten().filter_map(|one| one.get("objectDefinition"));
    wanted.any(|wanted| {
        let group = text(wanted, "/apiVersion").split_once('/').map_or("", |(group, _)| group);
        let namespace = text(wanted, "/metadata/namespace");
        // Where it says none, a selector does.
        let beside = [object.namespace.as_str(), namespace].contains(&"");
        group == object.group
            && is_plural(&object.resource, text(wanted, "/kind"))
            && text(wanted, "/metadata/name") == object.name
            && (beside || namespace == object.namespace)
    })
}

/// Whether a resource may be that of a kind. Only its server knows; one that looks different is named
/// by nobody, which keeps it.
pub(super) fn is_plural(resource: &str, kind: &str) -> bool {
    let kind = kind.to_ascii_lowercase();
    let stem = kind.get(..kind.len().saturating_sub(1)).unwrap_or_default();
    !stem.is_empty() && resource.starts_with(stem) && resource.len() <= kind.len() + 2
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}
