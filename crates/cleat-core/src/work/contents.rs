//! What a namespace or a definition holds that is about to go because its cluster leaves.
//!
//! Deleting a namespace takes along whatever is in it, and deleting a definition every object of its
//! kind, so somebody must have looked: everything that is neither ours nor made by Kubernetes for every
//! namespace is foreign, and foreign things stay. Nothing is read here.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::observed::Owner;
use crate::id::Id;

/// What a namespace or a definition holds, as far as deleting it is concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Contents {
    /// Nothing but what comes with every namespace, or goes with what is ours.
    Ours,
    /// What is on its way out, or another work of ours still holds.
    Waiting(String),
    /// What others brought; the first few.
    Foreign(Vec<Id>),
    /// It could not be looked into.
    Unknown(String),
}

/// One object in a namespace, or of a definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub id: Id,
    pub uid: String,
    pub terminating: bool,
    pub owners: Vec<Owner>,
    /// How its owners stand, and theirs, by uid: as far as they are not among what was found, and no
    /// ledgers.
    pub above: BTreeMap<String, Above>,
    /// The service account a token is for.
    pub account: Option<String>,
    pub labels: BTreeMap<String, String>,
    /// What would hold it up if it were to go.
    pub finalizers: Vec<String>,
}

/// An owner that is not among what was found: it is elsewhere, or without a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Above {
    /// The collector is on its way to what it owned.
    Gone,
    There {
        terminating: bool,
        owners: Vec<Owner>,
    },
    Unknown(String),
}

impl Found {
    /// As it is once these incarnations are on their way out.
    #[must_use]
    pub fn once_going(mut self, is_going: impl Fn(&str) -> bool) -> Self {
        self.terminating |= is_going(&self.uid);
        for (uid, above) in &mut self.above {
            if let Above::There { terminating, .. } = above {
                *terminating |= is_going(uid);
            }
        }
        self
    }
}

/// Begins every account of why a namespace or a definition stays.
pub(crate) const HOLDS_FOREIGN: &str = "it holds what is not ours";

/// How many foreign objects are named.
const NAMED: usize = 5;

pub(crate) fn is_namespace(id: &Id) -> bool {
    id.group.is_empty() && id.resource == "namespaces"
}

/// What to make of everything in a namespace or of a definition. `hub_hash` is that of our hub's address.
pub fn judge(found: &[Found], hub_hash: &str) -> Contents {
    judge_beside(found, &BTreeSet::new(), hub_hash)
}

/// The same where these incarnations do not count: whoever asks takes them along.
pub fn judge_beside(found: &[Found], own: &BTreeSet<&str>, hub_hash: &str) -> Contents {
    let others = || found.iter().filter(|one| !own.contains(one.uid.as_str()));
    let sight = Sight { here: others().map(|one| one.uid.as_str()).collect(), own, hub_hash };
    let mut foreign = Vec::new();
    let mut unknown: Option<String> = None;
    let mut waiting: Option<&Id> = None;
    for one in others().filter(|one| !comes_with_every_namespace(one)) {
        match sight.standing(one) {
            Standing::Foreign => foreign.push(one.id.clone()),
            Standing::Unknown(why) => {
                let why = format!("whose {} is cannot be told: {why}", one.id);
                unknown = Some(unknown.map_or(why.clone(), |other| other.min(why)));
            }
            Standing::Waiting => waiting = Some(waiting.map_or(&one.id, |id| id.min(&one.id))),
            Standing::Follows => {}
        }
    }
    if !foreign.is_empty() {
        foreign.sort();
        foreign.truncate(NAMED);
        return Contents::Foreign(foreign);
    }
    match (unknown, waiting) {
        (Some(why), _) => Contents::Unknown(why),
        (None, Some(id)) => Contents::Waiting(id.to_string()),
        (None, None) => Contents::Ours,
    }
}

/// In the order in which one of several owners decides.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Standing {
    /// It goes, or is judged, with an owner that is here as well or is ours.
    Follows,
    Waiting,
    Unknown(String),
    Foreign,
}

struct Sight<'a> {
    here: BTreeSet<&'a str>,
    own: &'a BTreeSet<&'a str>,
    hub_hash: &'a str,
}

impl Sight<'_> {
    fn standing(&self, one: &Found) -> Standing {
        if one.terminating {
            return Standing::Waiting;
        }
        match self.is_held(&one.owners) {
            Some(true) => Standing::Waiting,
            Some(false) => Standing::Foreign,
            None => self.by_owners(one),
        }
    }

    /// Whether ledgers are among the owners, and all of them are of our hub.
    fn is_held(&self, owners: &[Owner]) -> Option<bool> {
        let mut ledgers = owners.iter().filter(|owner| owner.is_ledger()).peekable();
        ledgers.peek()?;
        Some(ledgers.all(|owner| owner.is_of_hub(self.hub_hash)))
    }

    /// What belongs to something foreign that lives is foreign, and so is what belongs to nobody, or only
    /// to things that own each other.
    fn by_owners(&self, one: &Found) -> Standing {
        let mut open: Vec<&Owner> = one.owners.iter().collect();
        let mut passed = BTreeSet::new();
        let mut standing = None;
        while let Some(owner) = open.pop() {
            if !passed.insert(owner.uid.as_str()) {
                continue;
            }
            match self.by_owner(owner, one) {
                Ok(decided) => standing = standing.max(Some(decided)),
                Err(owners) => open.extend(owners),
            }
        }
        standing.unwrap_or(Standing::Foreign)
    }

    /// What one owner decides, or else who owns that.
    fn by_owner<'a>(&self, owner: &Owner, one: &'a Found) -> Result<Standing, &'a [Owner]> {
        let uid = owner.uid.as_str();
        if self.own.contains(uid) {
            return Ok(Standing::Waiting);
        }
        if self.here.contains(uid) {
            return Ok(Standing::Follows);
        }
        let told = |why: &str| format!("its owner {} {} {why}", owner.kind, owner.name);
        Ok(match one.above.get(uid) {
            None => Standing::Unknown(told("was not looked for")),
            Some(Above::Unknown(why)) => Standing::Unknown(told(&format!("cannot be seen: {why}"))),
            Some(Above::Gone) => Standing::Waiting,
            // It may be spared yet, and goes last if it goes.
            Some(Above::There { .. }) if is_holder(owner) => Standing::Foreign,
            Some(Above::There { terminating: true, .. }) => Standing::Waiting,
            Some(Above::There { owners, .. }) => match self.is_held(owners) {
                // What is ours goes with the cluster, and what belongs to it follows.
                Some(true) => Standing::Follows,
                Some(false) => Standing::Foreign,
                None if owners.is_empty() => Standing::Foreign,
                None => return Err(owners),
            },
        })
    }
}

/// Whether an owner is a namespace or a definition.
fn is_holder(owner: &Owner) -> bool {
    let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
    matches!(
        (group, owner.kind.as_str()),
        ("", "Namespace") | ("apiextensions.k8s.io", "CustomResourceDefinition")
    )
}

pub(crate) fn comes_with_every_namespace(one: &Found) -> bool {
    let Id { group, resource, name, .. } = &one.id;
    match (group.as_str(), resource.as_str()) {
        // What happened there is not worth a namespace; and endpoints follow their services.
        ("" | "events.k8s.io", "events") | ("", "endpoints") | ("metrics.k8s.io", _) => true,
        ("", "configmaps") => name == "kube-root-ca.crt" || name == "openshift-service-ca.crt",
        ("", "serviceaccounts") => is_everywhere(name),
        ("", "secrets") => one.account.as_deref().is_some_and(is_everywhere),
        // OpenShift binds its builders and deployers in every namespace.
        ("rbac.authorization.k8s.io" | "authorization.openshift.io", "rolebindings") => {
            matches!(&**name, "system:deployers" | "system:image-builders" | "system:image-pullers")
        }
        _ => false,
    }
}

/// Service accounts that every namespace has, the latter two where OpenShift runs.
fn is_everywhere(account: &str) -> bool {
    matches!(account, "default" | "builder" | "deployer")
}

impl Contents {
    /// Why a namespace or a definition stays, for people.
    pub(crate) fn why_kept(&self) -> Option<String> {
        let Self::Foreign(ids) = self else { return None };
        let names: Vec<String> = ids.iter().map(ToString::to_string).collect();
        Some(format!("{HOLDS_FOREIGN}: {}", names.join(", ")))
    }
}

#[cfg(test)]
mod tests;
