//! What somebody thinks of removing or applying.

use std::fmt;

use anyhow::Result;
use cleat_api::managedcluster::RemoveStrategy;
use cleat_core::digest::digest;
use cleat_core::id::Id;
use cleat_core::number::number;
use kube::Client;
use serde_json::Value;

use super::How;
use crate::explain::locate;
use crate::{Misunderstood, Refused};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    Work {
        cluster: String,
        name: String,
    },
    ReplicaSet {
        namespace: String,
        name: String,
    },
    /// A root policy.
    Policy {
        namespace: String,
        name: String,
    },
    /// A ConfigurationPolicy: on the server that is asked, or on the cluster that its namespace is
    /// named after.
    Template {
        namespace: String,
        name: String,
    },
    Binding {
        namespace: String,
        name: String,
    },
    Placement {
        namespace: String,
        name: String,
    },
    Leave {
        cluster: String,
        /// `None`: the one the cluster has.
        strategy: Option<RemoveStrategy>,
    },
    /// What a file says, given to the hub. All documents have a namespace.
    Apply {
        documents: Vec<Value>,
        how: How,
    },
    /// Any object on the server that is asked.
    Object {
        /// As it was typed.
        kind: String,
        /// What the server calls it, as `resource.group`, once it was asked: people may type it in
        /// many ways.
        served: Option<String>,
        namespace: Option<String>,
        name: String,
    },
}

const WORK: &str = "work.open-cluster-management.io";
const POLICY: &str = "policy.open-cluster-management.io";
const CLUSTER: &str = "cluster.open-cluster-management.io";

impl Subject {
    /// From what `kubectl` users would type.
    pub(crate) fn parse(what: &str, namespace: Option<&str>) -> Result<Self> {
        let (typed, name) = typed(what)?;
        let lower = typed.to_ascii_lowercase();
        let (kind, group) = lower.split_once('.').unwrap_or((&lower, ""));
        let group = without_version(group);
        let of = |wanted: &str| group.is_empty() || group == wanted;
        let name = name.to_owned();
        let there = || match namespace {
            Some(namespace) if !namespace.is_empty() => Ok(namespace.to_owned()),
            _ => Err(Refused(format!("{kind} {name} lives in a namespace; say which with -n"))),
        };
        Ok(match kind {
            "manifestwork" | "manifestworks" | "mw" if of(WORK) => {
                Self::Work { cluster: there()?, name }
            }
            "manifestworkreplicaset" | "manifestworkreplicasets" | "mwrs" if of(WORK) => {
                Self::ReplicaSet { namespace: there()?, name }
            }
            "policy" | "policies" | "plc" if of(POLICY) => {
                Self::Policy { namespace: there()?, name }
            }
            "configurationpolicy" | "configurationpolicies" if of(POLICY) => {
                Self::Template { namespace: there()?, name }
            }
            "placementbinding" | "placementbindings" | "pb" if of(POLICY) => {
                Self::Binding { namespace: there()?, name }
            }
            "placement" | "placements" if of(CLUSTER) => {
                Self::Placement { namespace: there()?, name }
            }
            "managedcluster" | "managedclusters" | "mcl" | "mcls" if of(CLUSTER) => {
                let hint = format!("clusters leave: see `cleat preview unjoin {name}`");
                return Err(Refused(hint).into());
            }
            _ => {
                let namespace = namespace.map(ToOwned::to_owned);
                Self::Object { kind: typed.to_owned(), served: None, namespace, name }
            }
        })
    }
}

/// The kind and the name that were typed: whether they can be is known before any server is asked.
pub(crate) fn typed(what: &str) -> Result<(&str, &str)> {
    let named =
        |(kind, name): &(&str, &str)| !kind.is_empty() && !name.is_empty() && !name.contains('/');
    match what.split_once('/').filter(named) {
        Some(typed) => Ok(typed),
        None => Err(Misunderstood(format!("{what:?} is not KIND/NAME")).into()),
    }
}

/// Kinds may be typed with their version, as in `manifestworks.v1.work.open-cluster-management.io`.
fn without_version(group: &str) -> &str {
    let is_version = |label: &str| {
        let rest = label.strip_prefix('v').unwrap_or_default();
        let digits = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        digits.len() < rest.len() && (digits.is_empty() || digits.starts_with(['a', 'b']))
    };
    match group.split_once('.') {
        Some((version, rest)) if is_version(version) => rest,
        None if is_version(group) => "",
        _ => group,
    }
}

impl Subject {
    /// The same as the server calls it, and without a namespace if it lives in none, whatever was typed
    /// or is usual.
    pub(crate) async fn placed(self, client: &Client) -> Result<Self> {
        let Self::Object { kind, served: None, namespace, name } = self else { return Ok(self) };
        let typed = namespace.as_deref().unwrap_or_default();
        let Id { group, resource, namespace, .. } = locate(client, &kind, &name, typed).await?.id;
        let served = match group.as_str() {
            "" => resource,
            group => format!("{resource}.{group}"),
        };
        let namespace = Some(namespace).filter(|namespace| !namespace.is_empty());
        Ok(Self::Object { kind, served: Some(served), namespace, name })
    }

    /// What somebody tried who looked at it.
    pub(super) fn purpose(&self) -> String {
        match self {
            Self::Apply { .. } => format!("foresee what becomes of {self}"),
            _ => format!("foresee the end of {self}"),
        }
    }

    /// What plans of it are told apart by from those of anything else.
    pub(super) fn seal(&self) -> String {
        match self {
            Self::Apply { documents, how } => {
                format!("{self} {how:?} {}", digest(&documents.as_slice().into()))
            }
            Self::Object { served: Some(served), namespace, name, .. } => {
                format!("{served} {}/{name}", namespace.as_deref().unwrap_or_default())
            }
            _ => self.to_string(),
        }
    }

    /// How a plan of it is called on the questions that belong to it. A plan to apply something is
    /// never the approval to delete something, and bears a name that cannot be one.
    pub(super) fn label(&self, plan: &str) -> String {
        match self {
            Self::Apply { .. } => format!("apply-{plan}"),
            _ => plan.to_owned(),
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, namespace, name) = match self {
            Self::Leave { cluster, .. } => return write!(f, "cluster {cluster}"),
            Self::Apply { documents, .. } => {
                return write!(f, "{} to apply", number(documents.len(), "object", "objects"));
            }
            Self::Object { kind, namespace: None, name, .. } => return write!(f, "{kind} {name}"),
            Self::Work { cluster, name } => ("manifestwork", cluster, name),
            Self::ReplicaSet { namespace, name } => ("manifestworkreplicaset", namespace, name),
            Self::Policy { namespace, name } => ("policy", namespace, name),
            Self::Template { namespace, name } => ("configurationpolicy", namespace, name),
            Self::Binding { namespace, name } => ("placementbinding", namespace, name),
            Self::Placement { namespace, name } => ("placement", namespace, name),
            Self::Object { kind, namespace: Some(namespace), name, .. } => {
                (&**kind, namespace, name)
            }
        };
        write!(f, "{kind} {namespace}/{name}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MISUNDERSTOOD, exit_code};

    #[test]
    fn a_work_typed_with_its_version_was_looked_at_as_if_it_were_any_object() {
        let typed = "manifestworks.v1.work.open-cluster-management.io/shop";
        let work = Subject::Work { cluster: "c1".to_owned(), name: "shop".to_owned() };
        assert_eq!(Subject::parse(typed, Some("c1")).unwrap(), work);
        let typed = "managedclusters.v1.cluster.open-cluster-management.io/c1";
        assert!(Subject::parse(typed, None).unwrap_err().to_string().contains("unjoin c1"));
        for (group, expected) in [
            ("v1beta1.work.open-cluster-management.io", "work.open-cluster-management.io"),
            ("v2alpha1.example.com", "example.com"),
            ("vault.example.com", "vault.example.com"),
            ("v.example.com", "v.example.com"),
            ("v1", ""),
            ("apps", "apps"),
        ] {
            assert_eq!(without_version(group), expected);
        }
    }

    #[test]
    fn kinds_are_taken_as_kubectl_takes_them_and_nonsense_is_refused() {
        let (cluster, name) = ("c1".to_owned(), "shop".to_owned());
        let work = Subject::Work { cluster: cluster.clone(), name: name.clone() };
        for what in
            ["manifestwork/shop", "mw/shop", "ManifestWorks.work.open-cluster-management.io/shop"]
        {
            assert_eq!(Subject::parse(what, Some("c1")).unwrap(), work);
        }
        let namespace = Some(cluster);
        for kind in ["pod", "policies.example.com", "placements.example.com"] {
            let object = Subject::Object {
                kind: kind.to_owned(),
                served: None,
                namespace: namespace.clone(),
                name: name.clone(),
            };
            assert_eq!(Subject::parse(&format!("{kind}/shop"), Some("c1")).unwrap(), object);
        }
        let apply = |name: &str| Subject::Apply {
            documents: vec![serde_json::json!({ "a": name })],
            how: How::Apply,
        };
        assert_eq!(apply("x").to_string(), apply("y").to_string());
        assert_ne!(apply("x").seal(), apply("y").seal());
        assert_ne!(apply("x").label("12"), work.label("12"));
        let policy = Subject::parse("plc/shop", Some("c1")).unwrap();
        assert_eq!(policy.to_string(), "policy c1/shop");
        for what in ["shop", "manifestwork/", "/shop", "pod/a/b"] {
            let error = Subject::parse(what, Some("c1")).unwrap_err();
            assert_eq!(exit_code(&error), MISUNDERSTOOD, "{what}");
        }
        assert!(Subject::parse("managedcluster/c1", None).unwrap_err().is::<Refused>());
        for what in ["policy/shop", "mw/shop", "placement/shop"] {
            let refused = Subject::parse(what, None).unwrap_err();
            assert!(refused.to_string().contains("say which with -n"), "{refused}");
        }
    }
}
