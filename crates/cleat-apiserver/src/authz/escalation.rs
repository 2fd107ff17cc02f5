//! Nobody grants what they do not hold: checks on writes of roles and bindings.
//!
//! The plain permission to write the object is checked before, like for any other.

use serde_json::Value;

use super::{
    Attributes, Rbac, ResourceTarget, Rule, Target,
    binding::RoleRef,
    index::{Unresolved, joined},
    rule,
};
use crate::{
    quote::{quoted, quoted_list},
    status::{GroupResource, Status},
    user::{MASTERS, User},
};

const GROUP: &str = "rbac.authorization.k8s.io";

/// A create or update of a role or cluster role.
#[derive(Clone, Copy, Debug)]
pub struct RoleWrite<'a> {
    /// Of the URL; empty for cluster roles.
    pub namespace: &'a str,
    /// Of the URL; empty on POST.
    pub url_name: &'a str,
    pub old: Option<&'a Value>,
    pub new: &'a Value,
}

/// A create or update of a role binding or cluster role binding.
#[derive(Clone, Copy, Debug)]
pub struct BindingWrite<'a> {
    /// Of the URL; empty for cluster role bindings.
    pub namespace: &'a str,
    pub old: Option<&'a Value>,
    pub new: &'a Value,
}

impl Rbac {
    /// Refuses a role that allows more than the user may do, unless they may `escalate`.
    pub fn check_role(&self, user: &User, write: &RoleWrite<'_>) -> Result<(), Status> {
        let resource = if write.namespace.is_empty() { "clusterroles" } else { "roles" };
        let escalate = ResourceTarget {
            group: GROUP,
            resource,
            namespace: write.namespace,
            name: write.url_name,
            ..ResourceTarget::default()
        };
        let escalate = Attributes { verb: "escalate", target: Target::Resource(escalate) };
        if user.in_group(MASTERS)
            || self.allows(user, &escalate)
            || write.old.is_some_and(|old| only_collector_fields_differ(old, write.new))
        {
            return Ok(());
        }
        let refuse = |why: &str| {
            let what = GroupResource { group: GROUP, resource };
            Status::forbidden(what, name_of(write.new), why)
        };
        self.confirm_held(user, write.namespace, resource, &rule::rules_of(write.new))
            .map_err(|why| refuse(&why))?;
        // An aggregated role can come to hold anything later.
        let aggregates = std::iter::once(write.new).chain(write.old).any(has_aggregation_rule);
        if resource == "clusterroles" && aggregates {
            self.confirm_held(user, write.namespace, resource, &everything()).map_err(|_| {
                refuse("must have cluster-admin privileges to use the aggregationRule")
            })?;
        }
        Ok(())
    }

    /// Refuses a binding to a role that allows more than the user may do, unless they may `bind`.
    pub fn check_binding(&self, user: &User, write: &BindingWrite<'_>) -> Result<(), Status> {
        let role = RoleRef::from_json(write.new);
        if user.in_group(MASTERS)
            || write.old.is_some_and(|old| only_collector_fields_differ(old, write.new))
            || self.may_bind(user, &role, write)
        {
            return Ok(());
        }
        let resource = match write.namespace {
            "" => "clusterrolebindings",
            _ => "rolebindings",
        };
        let what = GroupResource { group: GROUP, resource };
        let rules = match self.resolve(&role, write.namespace) {
            Ok(rules) => rules,
            // Upstream names the resource of the request, not that of the role.
            Err(Unresolved::NoClusterRole(name) | Unresolved::NoRole(name)) => {
                return Err(Status::not_found(what, name));
            }
            Err(unresolved @ Unresolved::Kind(_)) => {
                return Err(Status::internal(unresolved.listed()));
            }
        };
        self.confirm_held(user, write.namespace, resource, rules)
            .map_err(|why| Status::forbidden(what, name_of(write.new), why))
    }

    fn may_bind(&self, user: &User, role: &RoleRef, write: &BindingWrite<'_>) -> bool {
        let resource = match &*role.kind {
            "ClusterRole" => "clusterroles",
            "Role" => "roles",
            _ => return false,
        };
        let target = ResourceTarget {
            group: write.new.pointer("/roleRef/apiGroup").and_then(Value::as_str).unwrap_or(GROUP),
            resource,
            namespace: write.namespace,
            name: &role.name,
            ..ResourceTarget::default()
        };
        self.allows(user, &Attributes { verb: "bind", target: Target::Resource(target) })
    }

    /// The error is the sentence that says what is missing. `resource` is that of the request.
    fn confirm_held(
        &self,
        user: &User,
        namespace: &str,
        resource: &str,
        wanted: &[Rule],
    ) -> Result<(), String> {
        let (held, unresolved) = self.grants(user, namespace);
        let missing = rule::uncovered(held.iter().copied().flatten(), wanted);
        if missing.is_empty() {
            return Ok(());
        }
        let mut lines: Vec<String> = rule::compacted(missing).iter().map(Rule::compact).collect();
        lines.sort();
        lines.dedup();
        let mut why = format!(
            "user {} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
            quoted(&user.name),
            quoted_list(&user.groups),
            lines.join("\n")
        );
        if !unresolved.is_empty() {
            let errors: Vec<String> =
                unresolved.into_iter().map(|role| stored(role, resource)).collect();
            why.push_str(&format!("; resolution errors: [{}]", joined(&errors)));
        }
        Err(why)
    }
}

/// As the storage words it, which takes the role for one of the request's own resource.
fn stored(unresolved: Unresolved<'_>, resource: &str) -> String {
    match unresolved {
        Unresolved::NoClusterRole(name) | Unresolved::NoRole(name) => {
            format!("{resource}.{GROUP} {} not found", quoted(name))
        }
        Unresolved::Kind(_) => unresolved.listed(),
    }
}

/// `*` on `*.*` and on every path.
fn everything() -> [Rule; 2] {
    let star = || vec!["*".into()];
    [
        Rule { verbs: star(), api_groups: star(), resources: star(), ..Rule::default() },
        Rule { verbs: star(), non_resource_urls: star(), ..Rule::default() },
    ]
}

/// The garbage collector changes these on objects whose rights it does not hold.
fn only_collector_fields_differ(old: &Value, new: &Value) -> bool {
    const FIELDS: [&str; 4] = ["ownerReferences", "finalizers", "selfLink", "managedFields"];
    let (Some(old), Some(new)) = (old.as_object(), new.as_object()) else { return false };
    let rest = |object: &serde_json::Map<String, Value>| {
        let metadata = object.get("metadata").and_then(Value::as_object).cloned();
        let mut metadata = metadata.unwrap_or_default();
        metadata.retain(|key, _| !FIELDS.contains(&key.as_str()));
        metadata
    };
    let same_keys = |a: &serde_json::Map<String, Value>, b: &serde_json::Map<String, Value>| {
        a.iter().all(|(key, value)| key == "metadata" || b.get(key) == Some(value))
    };
    same_keys(old, new) && same_keys(new, old) && rest(old) == rest(new)
}

fn has_aggregation_rule(role: &Value) -> bool {
    let selectors = role.pointer("/aggregationRule/clusterRoleSelectors");
    selectors.and_then(Value::as_array).is_some_and(|selectors| !selectors.is_empty())
}

fn name_of(object: &Value) -> &str {
    object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default()
}
