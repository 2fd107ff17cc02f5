//! Who an agent is to the hub: the names in its certificate.

use alloc::borrow::ToOwned as _;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::name;

/// Every agent is in this group.
pub const AGENTS: &str = "system:open-cluster-management:managed-clusters";

/// Who signs certificates with which a client is known to a kube-apiserver.
pub const SIGNER: &str = "kubernetes.io/kube-apiserver-client";

/// Where the service account lives with which agents first come.
pub const BOOTSTRAP_NAMESPACE: &str = "open-cluster-management";
pub const BOOTSTRAP_ACCOUNT: &str = "agent-registration-bootstrap";

const PREFIX: &str = "system:open-cluster-management:";

/// The user name of that service account.
pub fn bootstrap_user() -> String {
    format!("system:serviceaccount:{BOOTSTRAP_NAMESPACE}:{BOOTSTRAP_ACCOUNT}")
}

/// All agents of one cluster are in this group, and nobody else.
pub fn group(cluster: &str) -> String {
    format!("{PREFIX}{cluster}")
}

/// Whether a cluster may have this name: it is that of a namespace, and its agents' group is not the
/// one that every agent is in.
pub fn is_cluster_name(called: &str) -> bool {
    name::is_label(called) && group(called) != AGENTS
}

/// One agent of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    pub cluster: String,
    pub agent: String,
}

impl Agent {
    pub fn new(cluster: &str, agent: &str) -> Self {
        Self { cluster: cluster.to_owned(), agent: agent.to_owned() }
    }

    /// What its certificate calls it.
    pub fn user(&self) -> String {
        format!("{PREFIX}{}:{}", self.cluster, self.agent)
    }

    /// The organisations in its certificate, sorted.
    pub fn groups(&self) -> [String; 2] {
        let mut groups = [group(&self.cluster), AGENTS.to_owned()];
        groups.sort();
        groups
    }

    pub fn subject(&self) -> Subject {
        Subject {
            common_name: self.user(),
            organizations: self.groups().into(),
            others: Vec::new(),
        }
    }
}

/// Whom a certificate is for, as a request for one says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    pub common_name: String,
    pub organizations: Vec<String>,
    /// Whatever else it names: other attributes, other names, other extensions.
    pub others: Vec<String>,
}

/// Who a user name is, if it is an agent's.
pub fn parse_user(user: &str) -> Option<Agent> {
    let (cluster, agent) = user.strip_prefix(PREFIX)?.split_once(':')?;
    // A further part is an add-on's name, which is none of ours.
    let plain = !agent.is_empty() && !agent.contains(':') && is_cluster_name(cluster);
    plain.then(|| Agent::new(cluster, agent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        let agent = Agent::new("cluster1", "a1");
        assert_eq!(agent.user(), "system:open-cluster-management:cluster1:a1");
        assert_eq!(parse_user(&agent.user()), Some(agent.clone()));
        assert_eq!(
            agent.groups(),
            [
                "system:open-cluster-management:cluster1",
                "system:open-cluster-management:managed-clusters"
            ]
        );
        for stranger in [
            "",
            "admin",
            "system:open-cluster-management:",
            "system:open-cluster-management:c1",
            "system:open-cluster-management:c1:",
            "system:open-cluster-management::a",
            "system:open-cluster-management:Bad:a",
            "system:open-cluster-management:managed-clusters:a",
            "system:open-cluster-management:cluster:c1:addon:x:agent:y",
        ] {
            assert_eq!(parse_user(stranger), None, "{stranger}");
        }
    }

    #[test]
    fn a_cluster_named_like_the_group_of_all_agents_was_open_to_them_all() {
        assert_eq!(group("managed-clusters"), AGENTS);
        assert!(!is_cluster_name("managed-clusters"));
        assert!(is_cluster_name("managed-clusters-1") && !is_cluster_name("Bad"));
    }
}
