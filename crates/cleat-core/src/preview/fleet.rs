//! Whether clusters may lose something when a plain object goes.
//!
//! Nobody here looks at what that is: whoever deletes such an object is told that it is unknown.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString as _};
use alloc::vec;
use alloc::vec::Vec;

use super::Inquiry;
use crate::id::Id;

/// That clusters may lose something with one of these objects: it is of the fleet itself, it defines a
/// kind that is, or it takes along or owns something that is.
pub fn unlooked_at(inquiries: &BTreeMap<Id, Inquiry>) -> Vec<String> {
    match inquiries.iter().any(|(id, inquiry)| concerns_the_fleet(id, inquiry)) {
        true => vec!["what clusters lose when it goes was not looked at".to_string()],
        false => Vec::new(),
    }
}

fn concerns_the_fleet(id: &Id, inquiry: &Inquiry) -> bool {
    let defined: Option<&str> = match (id.group.as_str(), id.resource.as_str()) {
        ("apiextensions.k8s.io", "customresourcedefinitions") => {
            id.name.split_once('.').map(|(_, group)| group)
        }
        _ => None,
    };
    let inside = inquiry.inside.iter().flatten().flatten().map(|one| &one.id);
    let owned = inquiry.owned.iter().flatten();
    let along = inside.chain(owned).map(|id| id.group.as_str());
    along.chain(defined).chain([id.group.as_str()]).any(is_of_the_fleet)
}

/// Whether objects of this group choose what others send, or are somebody's record of what was sent.
fn is_of_the_fleet(group: &str) -> bool {
    const FLEET: &str = "open-cluster-management.io";
    group.strip_suffix(FLEET).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work::contents::Found;

    fn id(group: &str, resource: &str, name: &str) -> Id {
        Id {
            group: group.into(),
            resource: resource.into(),
            namespace: String::new(),
            name: name.into(),
        }
    }

    fn found(id: Id) -> Found {
        Found {
            id,
            uid: "1".into(),
            terminating: false,
            owners: vec![],
            account: None,
            above: BTreeMap::new(),
            labels: BTreeMap::new(),
            finalizers: vec![],
        }
    }

    /// Only the object's own group was looked at, so that a definition took every policy of the fleet
    /// along without a question.
    #[test]
    fn a_definition_of_the_fleet_went_like_any_object() {
        const POLICY: &str = "policy.open-cluster-management.io";
        let told = |id: Id, inquiry: Inquiry| unlooked_at(&[(id, inquiry)].into()).len();
        let definition = |name: &str| {
            let id = id("apiextensions.k8s.io", "customresourcedefinitions", name);
            told(id, Inquiry::default())
        };
        assert_eq!(definition("policies.policy.open-cluster-management.io"), 1);
        assert_eq!(definition("widgets.example.com"), 0);
        assert_eq!(definition("widgets.notopen-cluster-management.io"), 0);
        let namespace = |held: Id| {
            let inside = Some(Ok(vec![found(held)]));
            told(id("", "namespaces", "shop"), Inquiry { inside, ..Inquiry::default() })
        };
        assert_eq!(namespace(id(POLICY, "policies", "baseline")), 1);
        assert_eq!(namespace(id("", "configmaps", "prices")), 0);
        let owner = |owned: Id| {
            let inquiry = Inquiry { owned: Ok(vec![owned]), ..Inquiry::default() };
            told(id("", "configmaps", "owner"), inquiry)
        };
        assert_eq!(owner(id("cluster.open-cluster-management.io", "placements", "all")), 1);
        assert_eq!(owner(id("", "configmaps", "child")), 0);
        assert_eq!(told(id(POLICY, "policysets", "all"), Inquiry::default()), 1);
    }
}
