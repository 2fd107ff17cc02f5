//! Roles and bindings, kept so that a decision touches only what concerns the user.
//!
//! Bindings are found by subject, so a decision's cost grows with the bindings of this user and
//! their groups, not with the number of bindings there are.

use std::{collections::BTreeMap, ops::ControlFlow, sync::Arc};

use serde_json::Value;

use super::{Attributes, Authorize, Decision, Rule, bootstrap, rule};
use crate::{
    quote::quoted,
    user::{MASTERS, User, service_account_name},
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

/// The bindings of one scope. Invariant: `users` and `groups` list exactly those of `all`, once
/// under each of their subjects.
#[derive(Clone, Debug, Default)]
struct Bindings {
    all: BTreeMap<Box<str>, Arc<Binding>>,
    users: BTreeMap<Box<str>, Vec<Arc<Binding>>>,
    groups: BTreeMap<Box<str>, Vec<Arc<Binding>>>,
}

#[derive(Clone, Debug)]
pub(crate) struct Binding {
    name: Box<str>,
    namespace: Box<str>,
    role: RoleRef,
    subjects: Vec<Subject>,
}

/// `roleRef`, whatever its group says: upstream looks at kind and name only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RoleRef {
    pub(crate) kind: Box<str>,
    pub(crate) name: Box<str>,
}

#[derive(Clone, Debug)]
struct Subject {
    kind: SubjectKind,
    name: Box<str>,
    /// The user or group it stands for.
    matches: Box<str>,
    namespace: Box<str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SubjectKind {
    User,
    Group,
    ServiceAccount,
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
                    if bindings.all.is_empty() {
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

impl Bindings {
    fn put(&mut self, binding: Binding) {
        self.remove(&binding.name);
        let binding = Arc::new(binding);
        for subject in &binding.subjects {
            let index = match subject.kind {
                SubjectKind::Group => &mut self.groups,
                SubjectKind::User | SubjectKind::ServiceAccount => &mut self.users,
            };
            let bindings = index.entry(subject.matches.clone()).or_default();
            if bindings.last().is_none_or(|last| !Arc::ptr_eq(last, &binding)) {
                bindings.push(binding.clone());
            }
        }
        self.all.insert(binding.name.clone(), binding);
    }

    fn remove(&mut self, name: &str) {
        let Some(binding) = self.all.remove(name) else { return };
        for subject in &binding.subjects {
            let index = match subject.kind {
                SubjectKind::Group => &mut self.groups,
                SubjectKind::User | SubjectKind::ServiceAccount => &mut self.users,
            };
            if let Some(bindings) = index.get_mut(&subject.matches) {
                bindings.retain(|other| !Arc::ptr_eq(other, &binding));
                if bindings.is_empty() {
                    index.remove(&subject.matches);
                }
            }
        }
    }

    /// Sorted by name, each once.
    fn of(&self, user: &User) -> Vec<&Binding> {
        let groups = user.groups.iter().filter_map(|group| self.groups.get(group.as_str()));
        let mut bindings: Vec<&Binding> = self
            .users
            .get(user.name.as_str())
            .into_iter()
            .chain(groups)
            .flatten()
            .map(|binding| &**binding)
            .collect();
        bindings.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        bindings.dedup_by(|a, b| a.name == b.name);
        bindings
    }
}

impl Binding {
    fn from_json(object: &Value, name: &str, namespace: &str) -> Self {
        let subjects = object.get("subjects").and_then(Value::as_array);
        Self {
            name: name.into(),
            namespace: namespace.into(),
            role: RoleRef::from_json(object),
            subjects: subjects
                .into_iter()
                .flatten()
                .filter_map(|subject| Subject::from_json(subject, namespace))
                .collect(),
        }
    }
}

impl RoleRef {
    /// Of a binding.
    pub(crate) fn from_json(binding: &Value) -> Self {
        Self {
            kind: text(binding, "/roleRef/kind").into(),
            name: text(binding, "/roleRef/name").into(),
        }
    }
}

impl Subject {
    /// `None` for one that stands for nobody.
    fn from_json(subject: &Value, binding_namespace: &str) -> Option<Self> {
        let name = text(subject, "/name");
        let (kind, matches, namespace) = match text(subject, "/kind") {
            "User" => (SubjectKind::User, name.to_owned(), ""),
            "Group" => (SubjectKind::Group, name.to_owned(), ""),
            "ServiceAccount" => {
                let namespace = match text(subject, "/namespace") {
                    "" => binding_namespace,
                    namespace => namespace,
                };
                if namespace.is_empty() {
                    return None;
                }
                (SubjectKind::ServiceAccount, service_account_name(namespace, name), namespace)
            }
            _ => return None,
        };
        Some(Self { kind, name: name.into(), matches: matches.into(), namespace: namespace.into() })
    }

    fn is(&self, user: &User) -> bool {
        match self.kind {
            SubjectKind::Group => user.in_group(&self.matches),
            SubjectKind::User | SubjectKind::ServiceAccount => *self.matches == *user.name,
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

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}
