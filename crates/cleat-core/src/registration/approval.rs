//! Who gets a certificate, of those who ask.
//!
//! A cluster's first certificate is a person's decision; this only says which requests a person
//! should see. Those that follow are the hub's: an agent may have a new certificate for its old
//! one, with exactly the same names in it.

use alloc::borrow::ToOwned as _;
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use serde_json::{Value, json};

use super::identity::{AGENTS, Agent, SIGNER, Subject, bootstrap_user, parse_user};
use crate::id::{Id, Target};
use crate::write::{Action, Side, Write};

/// The reason of an approval by the hub. Clients match on it.
pub const APPROVED: &str = "AutoApprovedByHubCSRApprovingController";
pub const DENIED: &str = "DeniedByHub";

/// A request, as far as it matters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub name: String,
    pub uid: String,
    pub resource_version: String,
    /// Who asks, as the hub knows them.
    pub username: String,
    pub groups: Vec<String>,
    pub signer: String,
    pub usages: Vec<String>,
    /// The cluster its label names.
    pub label: Option<String>,
    /// What it asks for; the error says why that cannot be read.
    pub subject: Result<Subject, String>,
    /// Somebody has decided already.
    pub decided: bool,
}

/// What is known about the cluster a request names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// Accepted, and not refused by the hub.
    pub accepted: bool,
    /// Whether the requester may renew this cluster's certificates; nothing if nobody knows.
    pub may_renew: Option<bool>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// None of ours, or settled.
    Ignore,
    /// A person decides: `cleat accept`.
    Ask(Agent),
    /// Something has to be known first.
    Later,
    Approve,
    Deny(String),
}

/// Which cluster the request is about, so that the caller can look it up.
pub fn cluster(request: &Request) -> Option<Agent> {
    let subject = request.subject.as_ref().ok()?;
    (request.signer == SIGNER).then(|| parse_user(&subject.common_name)).flatten()
}

/// `cluster` is the hub's cluster of the name in the request, if there is one.
pub fn judge(request: &Request, cluster: Option<Cluster>) -> Judgement {
    if request.decided || request.signer != SIGNER {
        return Judgement::Ignore;
    }
    let from_agent = request.groups.iter().any(|group| group == AGENTS);
    let from_bootstrap = request.username == bootstrap_user();
    let agent = match asked(request) {
        Ok(agent) => agent,
        // Whoever else asks for something odd answers to somebody else.
        Err(why) if from_agent || from_bootstrap => return Judgement::Deny(why),
        Err(_) => return Judgement::Ignore,
    };
    if !from_agent {
        return Judgement::Ask(agent);
    }
    if request.username != agent.user() {
        return Judgement::Deny(format!(
            "{} may ask only for a certificate of its own, not for one of {}",
            request.username,
            agent.user()
        ));
    }
    match cluster {
        Some(Cluster { accepted: true, may_renew: Some(true) }) => Judgement::Approve,
        Some(Cluster { accepted: true, may_renew: None }) => Judgement::Later,
        Some(Cluster { accepted: true, may_renew: Some(false) }) => Judgement::Deny(format!(
            "{} has no right to renew certificates of {}",
            request.username, agent.cluster
        )),
        Some(Cluster { accepted: false, .. }) => {
            Judgement::Deny(format!("the hub does not accept the cluster {}", agent.cluster))
        }
        None => Judgement::Deny(format!("there is no cluster {}", agent.cluster)),
    }
}

/// Whose certificate it would be, if it is exactly one of an agent.
fn asked(request: &Request) -> Result<Agent, String> {
    let subject = request.subject.as_ref().map_err(Clone::clone)?;
    let Some(agent) = parse_user(&subject.common_name) else {
        return Err(format!("{:?} is not the name of an agent", short(&subject.common_name)));
    };
    let mut organizations = subject.organizations.clone();
    organizations.sort();
    if organizations != agent.groups() {
        return Err(format!(
            "a certificate of {} has exactly the organisations {}",
            agent.user(),
            agent.groups().join(" and ")
        ));
    }
    if let Some(other) = subject.others.first() {
        return Err(format!("a certificate of an agent has no {}", short(other)));
    }
    if request.label.as_ref().is_some_and(|label| *label != agent.cluster) {
        return Err(format!("the label of the request does not name {}", agent.cluster));
    }
    const USAGES: [&str; 3] = ["client auth", "digital signature", "key encipherment"];
    let usages = &request.usages;
    if !usages.iter().any(|usage| usage == "client auth")
        || !usages.iter().all(|usage| USAGES.contains(&usage.as_str()))
    {
        return Err("a certificate of an agent is for `client auth` only".to_owned());
    }
    Ok(agent)
}

fn short(text: &str) -> String {
    text.chars().take(120).collect()
}

/// The write that makes a judgement known, if it is one.
pub fn decide(request: &Request, judgement: &Judgement) -> Option<Action> {
    let (kind, reason, message) = match judgement {
        Judgement::Approve => {
            ("Approved", APPROVED, "The agent renews its own certificate.".to_string())
        }
        Judgement::Deny(why) => ("Denied", DENIED, why.clone()),
        Judgement::Ignore | Judgement::Ask(_) | Judgement::Later => return None,
    };
    Some(decision(request, kind, reason, &message))
}

/// A person's approval.
pub fn approve(request: &Request, message: &str) -> Action {
    decision(request, "Approved", "ClusterAccepted", message)
}

fn decision(request: &Request, kind: &str, reason: &str, message: &str) -> Action {
    let condition: Value =
        json!({ "type": kind, "status": "True", "reason": reason, "message": message });
    let id = Id {
        group: "certificates.k8s.io".to_string(),
        resource: "certificatesigningrequests".to_string(),
        namespace: String::new(),
        name: request.name.clone(),
    };
    // Only what was judged is decided: another request under the same name is another request.
    let patch = json!({
        "metadata": { "uid": request.uid, "resourceVersion": request.resource_version },
        "status": { "conditions": [condition] },
    });
    let target = Target { version: "v1".to_string(), id };
    Action { side: Side::Hub, target, write: Write::MergeApproval(patch) }
}

#[cfg(test)]
mod tests;
