//! The namespace that all things are in, where the policy lists it: deleting it takes everything along,
//! and a cluster that leaves keeps it for what others have in it.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::vec::Vec;

use cleat_api::leftoverrecord::LeftObject;
use serde_json::json;

use super::world::{Answerable, Checked, World, kind};
use crate::id::Target;
use crate::policy::observed::{Cluster, Kind, KindName, ListOf, Policy};
use crate::policy::spare::judge;
use crate::work::contents::{Found, HOLDS_FOREIGN};

pub(super) const SPACE: &str = "n";

/// Where the object of that name is.
pub(super) fn target_of(name: &str) -> Target {
    match name {
        SPACE => ListOf::namespaces().kind.target("", SPACE),
        thing => kind().target(SPACE, thing),
    }
}

impl World {
    /// The policy made the namespace at some time, or found it there.
    pub(super) fn lists_space(&mut self, answerable: Answerable) {
        self.meddle(SPACE, 0);
        let Some(space) = self.objects.get_mut(SPACE) else { return };
        space.answerable = answerable;
        let entry = json!({
            "object": { "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": SPACE } },
            "compliant": "Compliant",
            "reason": "Resource found as expected",
            "properties": {
                "createdByPolicy": answerable == Answerable::Policy,
                "uid": format!("u{}", space.uid),
            },
        });
        self.status.related_objects.push(serde_json::from_value(entry).unwrap());
    }

    /// Everything in the namespace.
    pub(super) fn inside(&self) -> Vec<Found> {
        let things = self.objects.iter().filter(|(name, _)| *name != SPACE);
        let found = things.map(|(name, thing)| Found {
            id: target_of(name).id,
            uid: format!("u{}", thing.uid),
            terminating: thing.dying.is_some(),
            owners: Vec::new(),
            account: None,
            above: BTreeMap::new(),
            labels: BTreeMap::new(),
            finalizers: Vec::new(),
        });
        found.collect()
    }

    /// What a look at the namespace shows, and what the hub has heard of it.
    pub(super) fn look_into_space(&self, policy: &Policy, cluster: &mut Cluster) {
        let name = KindName { api_version: "v1".into(), kind: "Namespace".into() };
        cluster.kinds.insert(name, Kind::Served(ListOf::namespaces().kind));
        cluster.contents.insert(target_of(SPACE).id, judge(self.inside(), policy, &[]));
        let kept = policy.status.related_objects.iter();
        let kept = kept.filter(|entry| entry.reason.starts_with(HOLDS_FOREIGN));
        cluster.heard = kept
            .map(|entry| LeftObject {
                resource: "namespaces".into(),
                name: entry.object.metadata.name.clone(),
                uid: entry.properties.as_ref().map(|known| known.uid.clone()).unwrap_or_default(),
                ..LeftObject::default()
            })
            .collect();
    }

    /// Whether the namespace may be deleted as far as what is in it is concerned.
    pub(super) fn may_take_along(&self, name: &str) -> Checked {
        let stays =
            self.objects.iter().find(|(inside, one)| *inside != SPACE && one.dying.is_none());
        match stays {
            Some((thing, _)) if name == SPACE && self.emptying => {
                Err(format!("{thing} would go along with its namespace"))
            }
            _ => Ok(()),
        }
    }
}
