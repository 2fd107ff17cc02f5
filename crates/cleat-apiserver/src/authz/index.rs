//! Roles and bindings, kept so that a decision touches only what concerns the user.
//!
//! Bindings are found by subject, so a decision's cost grows with the bindings of this user and
//! their groups, not with the number of bindings there are.

use std::{collections::BTreeMap, ops::ControlFlow, sync::Arc};

use serde_json::Value;

use super::{
    Attributes, Authorize, Decision, Rule,
    binding::{Binding, Bindings, RoleRef, Subject, SubjectKind},
    bootstrap, rule,
};
use crate::{
    quote::quoted,
    rules::read::text_at as text,
    user::{MASTERS, User},
};

/// The four kinds RBAC is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    ClusterRole,
    Role,
    ClusterRoleBinding,
    RoleBinding,
}

/// What each role of one scope allows, by name.
type Roles = BTreeMap<Box<str>, Arc<[Rule]>>;

/// Every role and binding of one server.
#[derive(Clone, Debug, Default)]
pub struct Rbac {
    cluster_roles: Roles,
    /// By namespace.
    roles: BTreeMap<Box<str>, Roles>,
    cluster_bindings: Bindings,
    bindings: BTreeMap<Box<str>, Bindings>,
}

/// A binding that concerns the user, and what its role grants.
pub(crate) struct Grant<'a> {
    binding: &'a Binding,
    subject: &'a Subject,
    pub(crate) rules: Result<&'a [Rule], Unresolved<'a>>,
}

/// Why a `roleRef` grants nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Unresolved<'a> {
    NoClusterRole(&'a str),
    NoRole(&'a str),
    Kind(&'a str),
}

impl Kind {
    /// By the plural name in the URL.
    pub fn of_resource(resource: &str) -> Option<Self> {
        Some(match resource {
            "clusterroles" => Self::ClusterRole,
            "roles" => Self::Role,
            "clusterrolebindings" => Self::ClusterRoleBinding,
            "rolebindings" => Self::RoleBinding,
            _ => return None,
        })
    }
}

impl Rbac {
    /// Takes in a new or changed object. One without a name is ignored.
    pub fn put(&mut self, kind: Kind, object: &Value) {
        let name = text(object, "/metadata/name");
        let namespace = text(object, "/metadata/namespace");
        if name.is_empty() {
            return;
        }
        match kind {
            Kind::ClusterRole => {
                let rules = bootstrap::shared(name, rule::rules_of(object));
                self.cluster_roles.insert(name.into(), rules);
            }
            Kind::Role => {
                let rules = rule::rules_of(object).into();
                self.roles.entry(namespace.into()).or_default().insert(name.into(), rules);
            }
            Kind::ClusterRoleBinding => {
                self.cluster_bindings.put(Binding::from_json(object, name, ""));
            }
            Kind::RoleBinding => {
                let bindings = self.bindings.entry(namespace.into()).or_default();
                bindings.put(Binding::from_json(object, name, namespace));
            }
        }
    }

    pub fn remove(&mut self, kind: Kind, namespace: &str, name: &str) {
        match kind {
            Kind::ClusterRole => {
                self.cluster_roles.remove(name);
            }
            Kind::Role => {
                if let Some(roles) = self.roles.get_mut(namespace) {
                    roles.remove(name);
                    if roles.is_empty() {
                        self.roles.remove(namespace);
                    }
                }
            }
            Kind::ClusterRoleBinding => self.cluster_bindings.remove(name),
            Kind::RoleBinding => {
                if let Some(bindings) = self.bindings.get_mut(namespace) {
                    bindings.remove(name);
                    if bindings.is_empty() {
                        self.bindings.remove(namespace);
                    }
                }
            }
        }
    }

    /// [`Authorize::authorize`] without saying why.
    pub fn allows(&self, user: &User, attributes: &Attributes<'_>) -> bool {
        user.in_group(MASTERS)
            || self.visit(user, attributes.namespace(), |grant| match grant.rules {
                Ok(rules) if rules.iter().any(|rule| rule.allows(attributes)) => {
                    ControlFlow::Break(())
                }
                _ => ControlFlow::Continue(()),
            })
    }

    /// Everything granted to the user there, and the bindings whose role is missing.
    pub(crate) fn grants(
        &self,
        user: &User,
        namespace: &str,
    ) -> (Vec<&[Rule]>, Vec<Unresolved<'_>>) {
        let (mut rules, mut missing) = (Vec::new(), Vec::new());
        self.visit(user, namespace, |grant| {
            match grant.rules {
                Ok(granted) => rules.push(granted),
                Err(unresolved) => missing.push(unresolved),
            }
            ControlFlow::Continue(())
        });
        (rules, missing)
    }

    pub(crate) fn resolve<'a>(
        &'a self,
        role: &'a RoleRef,
        namespace: &str,
    ) -> Result<&'a [Rule], Unresolved<'a>> {
        let name = &*role.name;
        match &*role.kind {
            "ClusterRole" => match self.cluster_roles.get(name) {
                Some(rules) => Ok(rules),
                None => Err(Unresolved::NoClusterRole(name)),
            },
            "Role" => match self.roles.get(namespace).and_then(|roles| roles.get(name)) {
                Some(rules) => Ok(rules),
                None => Err(Unresolved::NoRole(name)),
            },
            kind => Err(Unresolved::Kind(kind)),
        }
    }

    /// Calls `f` for each binding that concerns the user until it breaks; says whether it did.
    fn visit<'a>(
        &'a self,
        user: &User,
        namespace: &str,
        mut f: impl FnMut(Grant<'a>) -> ControlFlow<()>,
    ) -> bool {
        let local = if namespace.is_empty() { None } else { self.bindings.get(namespace) };
        for bindings in std::iter::once(&self.cluster_bindings).chain(local) {
            for binding in bindings.of(user) {
                let Some(subject) = binding.subjects.iter().find(|subject| subject.is(user)) else {
                    continue;
                };
                let rules = self.resolve(&binding.role, &binding.namespace);
                if f(Grant { binding, subject, rules }).is_break() {
                    return true;
                }
            }
        }
        false
    }
}

impl Authorize for Rbac {
    fn authorize(&self, user: &User, attributes: &Attributes<'_>) -> Decision {
        if user.in_group(MASTERS) {
            return Decision { allowed: true, reason: String::new() };
        }
        let mut allowed_by = None;
        let mut missing = Vec::new();
        self.visit(user, attributes.namespace(), |grant| match grant.rules {
            Ok(rules) if rules.iter().any(|rule| rule.allows(attributes)) => {
                allowed_by = Some(grant.describe());
                ControlFlow::Break(())
            }
            Ok(_) => ControlFlow::Continue(()),
            Err(unresolved) => {
                missing.push(unresolved.listed());
                ControlFlow::Continue(())
            }
        });
        match allowed_by {
            Some(by) => Decision { allowed: true, reason: format!("RBAC: allowed by {by}") },
            None if missing.is_empty() => Decision::default(),
            None => Decision { allowed: false, reason: format!("RBAC: {}", joined(&missing)) },
        }
    }
}

impl Grant<'_> {
    fn describe(&self) -> String {
        let Binding { name, namespace, role, .. } = self.binding;
        let (kind, name) = match &**namespace {
            "" => ("ClusterRoleBinding", quoted(name)),
            namespace => ("RoleBinding", quoted(&format!("{name}/{namespace}"))),
        };
        let subject = match self.subject.kind {
            SubjectKind::User => format!("User {}", quoted(&self.subject.name)),
            SubjectKind::Group => format!("Group {}", quoted(&self.subject.name)),
            SubjectKind::ServiceAccount => {
                let both = format!("{}/{}", self.subject.name, self.subject.namespace);
                format!("ServiceAccount {}", quoted(&both))
            }
        };
        format!("{kind} {name} of {} {} to {subject}", role.kind, quoted(&role.name))
    }
}

impl Unresolved<'_> {
    /// As the authorizer words it.
    pub(crate) fn listed(self) -> String {
        match self {
            Self::NoClusterRole(name) => {
                format!("clusterrole.rbac.authorization.k8s.io {} not found", quoted(name))
            }
            Self::NoRole(name) => {
                format!("role.rbac.authorization.k8s.io {} not found", quoted(name))
            }
            Self::Kind(kind) => format!("unsupported role reference kind: {}", quoted(kind)),
        }
    }
}

/// Several errors as one, as upstream prints its aggregates: each text once.
pub(crate) fn joined(errors: &[String]) -> String {
    let mut distinct: Vec<&str> = Vec::new();
    for error in errors {
        if !distinct.contains(&error.as_str()) {
            distinct.push(error);
        }
    }
    match distinct.as_slice() {
        [one] => (*one).to_owned(),
        many => format!("[{}]", many.join(", ")),
    }
}
