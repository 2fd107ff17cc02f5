//! Bindings: who holds which role, found by who.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;

use crate::{
    rules::read::text_at as text,
    user::{User, service_account_name},
};

/// The bindings of one scope. Invariant: `users` and `groups` list exactly those of `all`, once
/// under each of their subjects.
#[derive(Clone, Debug, Default)]
pub(super) struct Bindings {
    all: BTreeMap<Box<str>, Arc<Binding>>,
    users: BTreeMap<Box<str>, Vec<Arc<Binding>>>,
    groups: BTreeMap<Box<str>, Vec<Arc<Binding>>>,
}

#[derive(Clone, Debug)]
pub(crate) struct Binding {
    pub(super) name: Box<str>,
    pub(super) namespace: Box<str>,
    pub(super) role: RoleRef,
    pub(super) subjects: Vec<Subject>,
}

/// `roleRef`, whatever its group says: upstream looks at kind and name only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RoleRef {
    pub(crate) kind: Box<str>,
    pub(crate) name: Box<str>,
}

#[derive(Clone, Debug)]
pub(crate) struct Subject {
    pub(super) kind: SubjectKind,
    pub(super) name: Box<str>,
    /// The user or group it stands for.
    matches: Box<str>,
    pub(super) namespace: Box<str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SubjectKind {
    User,
    Group,
    ServiceAccount,
}

impl Bindings {
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(super) fn put(&mut self, binding: Binding) {
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

    pub(super) fn remove(&mut self, name: &str) {
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
    pub(super) fn of(&self, user: &User) -> Vec<&Binding> {
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
    pub(super) fn from_json(object: &Value, name: &str, namespace: &str) -> Self {
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

    pub(super) fn is(&self, user: &User) -> bool {
        match self.kind {
            SubjectKind::Group => user.in_group(&self.matches),
            SubjectKind::User | SubjectKind::ServiceAccount => *self.matches == *user.name,
        }
    }
}
