//! The policy of an automation, read once into what its story needs.

use alloc::borrow::ToOwned as _;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

use cleat_api::policy as api;
use cleat_api::policyautomation::{ObservedPolicy, PolicyAutomation};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use crate::propagation::Root;

/// What is known of the policy that an automation names.
#[derive(Clone, Debug, PartialEq)]
pub enum Sight {
    Unknown,
    Absent,
    Present(Policy),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    pub namespace: String,
    pub name: String,
    pub uid: String,
    pub resource_version: String,
    pub disabled: bool,
    /// Whether it was ever said how it stands anywhere.
    pub told: bool,
    pub clusters: BTreeMap<String, Cluster>,
    /// The sets through which it is bound.
    pub sets: BTreeSet<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    pub namespace: String,
    pub compliance: Compliance,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compliance {
    NonCompliant,
    Compliant,
    /// Nobody knows, or it waits for something else.
    Unclear,
}

/// How a cluster stands to an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    Violated,
    /// It complies, or the policy does not concern it.
    Over,
    Unclear,
}

impl Policy {
    /// None of one whose status is not understood.
    pub fn read(root: &Root) -> Option<Self> {
        let status: Option<api::PolicyStatus> = serde_json::from_value(root.status.clone()).ok()?;
        let told = status.is_some();
        let status = status.unwrap_or_default();
        let clusters = status.status.into_iter().filter(|one| !one.cluster_name.is_empty());
        let clusters = clusters.map(|one| {
            let compliance = match one.compliant.as_deref() {
                Some("NonCompliant") => Compliance::NonCompliant,
                Some("Compliant") => Compliance::Compliant,
                _ => Compliance::Unclear,
            };
            let namespace = match &*one.cluster_namespace {
                "" => one.cluster_name.clone(),
                namespace => namespace.to_owned(),
            };
            (one.cluster_name, Cluster { namespace, compliance })
        });
        let sets = status.placement.into_iter().map(|one| one.policy_set);
        Some(Self {
            namespace: root.namespace.clone(),
            name: root.name.clone(),
            uid: root.uid.clone(),
            resource_version: root.resource_version.clone(),
            disabled: root.disabled,
            told,
            clusters: clusters.collect(),
            sets: sets.filter(|name| !name.is_empty()).collect(),
        })
    }

    /// None where the server's versions are not numbers.
    pub fn version(&self) -> Option<u64> {
        self.resource_version.parse().ok()
    }

    /// In order.
    pub fn noncompliant(&self) -> impl Iterator<Item = &str> {
        let all = self.clusters.iter();
        all.filter(|(_, one)| one.compliance == Compliance::NonCompliant).map(|(name, _)| &**name)
    }

    /// The clusters that are known to comply in `later`, or to be none of the policy's concern, and
    /// were not in `self`.
    pub fn recovered<'a>(&'a self, later: &'a Self) -> impl Iterator<Item = &'a str> {
        let names = self.clusters.keys().map(|name| &**name);
        names.filter(|name| {
            self.standing(name) != Standing::Over && later.standing(name) == Standing::Over
        })
    }

    /// Whether the policy concerns it, and shows that it complies.
    pub(super) fn complies(&self, cluster: &str) -> bool {
        let shown = self.clusters.get(cluster).map(|cluster| cluster.compliance);
        !self.disabled && shown == Some(Compliance::Compliant)
    }

    /// Whether it is known to comply, or to be none of the policy's concern.
    pub(super) fn is_well(&self, cluster: &str) -> bool {
        match self.clusters.get(cluster) {
            Some(cluster) => cluster.compliance == Compliance::Compliant,
            None => self.told,
        }
    }

    pub(super) fn standing(&self, cluster: &str) -> Standing {
        if self.disabled {
            return Standing::Over;
        }
        match self.clusters.get(cluster).map(|cluster| cluster.compliance) {
            Some(Compliance::NonCompliant) => Standing::Violated,
            Some(Compliance::Compliant) => Standing::Over,
            Some(Compliance::Unclear) => Standing::Unclear,
            // What was never told of anybody says nothing of this one.
            None if self.told => Standing::Over,
            None => Standing::Unclear,
        }
    }

    pub(super) fn observed(&self) -> ObservedPolicy {
        ObservedPolicy { uid: self.uid.clone(), resource_version: self.resource_version.clone() }
    }

    /// The owners that the automation should have, if the policy is not among them: it goes when
    /// the policy goes. Other owners stay; an earlier policy, of this name or another, does not.
    pub(super) fn owners_to_be(
        &self,
        automation: &PolicyAutomation,
    ) -> Option<Vec<OwnerReference>> {
        let owners = automation.metadata.owner_references.clone().unwrap_or_default();
        let group = alloc::format!("{}/", api::GROUP);
        let earlier = |owner: &OwnerReference| {
            owner.kind == "Policy" && owner.api_version.starts_with(&group) && owner.uid != self.uid
        };
        let owned = owners.iter().any(|owner| owner.uid == self.uid);
        if owned && !owners.iter().any(earlier) {
            return None;
        }
        let stays = |owner: &OwnerReference| owner.uid != self.uid && !earlier(owner);
        let mut owners: Vec<_> = owners.into_iter().filter(stays).collect();
        let controller = !owners.iter().any(|owner| owner.controller == Some(true));
        owners.push(OwnerReference {
            api_version: alloc::format!("{}/v1", api::GROUP),
            kind: "Policy".to_owned(),
            name: self.name.clone(),
            uid: self.uid.clone(),
            controller: Some(controller),
            block_owner_deletion: Some(true),
        });
        Some(owners)
    }
}
