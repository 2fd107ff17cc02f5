//! What somebody thinks of removing.

use std::fmt;

use anyhow::Result;
use cleat_api::managedcluster::RemoveStrategy;

use crate::Refused;

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
    Leave {
        cluster: String,
        /// `None`: the one the cluster has.
        strategy: Option<RemoveStrategy>,
    },
}

impl Subject {
    /// From what `kubectl` users would type.
    pub(crate) fn parse(what: &str, namespace: &str) -> Result<Self> {
        let Some((kind, name)) = what.split_once('/').filter(|(_, name)| !name.is_empty()) else {
            return Err(Refused(format!("{what:?} is not KIND/NAME")).into());
        };
        let kind = kind.to_ascii_lowercase();
        let kind = kind.strip_suffix(".work.open-cluster-management.io").unwrap_or(&kind);
        let (namespace, name) = (namespace.to_owned(), name.to_owned());
        match kind {
            "manifestwork" | "manifestworks" | "mw" => Ok(Self::Work { cluster: namespace, name }),
            "manifestworkreplicaset" | "manifestworkreplicasets" | "mwrs" => {
                Ok(Self::ReplicaSet { namespace, name })
            }
            other => Err(Refused(format!(
                "the end of a {other} cannot be foreseen; that of a manifestwork or a \
                 manifestworkreplicaset can"
            ))
            .into()),
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Work { cluster, name } => write!(f, "manifestwork {cluster}/{name}"),
            Self::ReplicaSet { namespace, name } => {
                write!(f, "manifestworkreplicaset {namespace}/{name}")
            }
            Self::Leave { cluster, .. } => write!(f, "cluster {cluster}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_taken_as_kubectl_takes_them_and_others_are_refused() {
        let work = Subject::Work { cluster: "c1".to_owned(), name: "shop".to_owned() };
        for what in
            ["manifestwork/shop", "mw/shop", "ManifestWorks.work.open-cluster-management.io/shop"]
        {
            assert_eq!(Subject::parse(what, "c1").unwrap(), work);
        }
        for what in ["shop", "manifestwork/", "pod/shop"] {
            assert!(Subject::parse(what, "c1").unwrap_err().is::<Refused>(), "{what}");
        }
    }
}
