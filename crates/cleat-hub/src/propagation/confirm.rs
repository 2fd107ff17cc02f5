//! Asking the server before anything is taken away: watches of several kinds tell in any order, and
//! one of them may be late.

use std::collections::BTreeMap;
use std::sync::Arc;

use cleat_api::placement::PLACEMENT_LABEL;
use cleat_core::propagation::{Binding, Observed, PolicySet, Root, Source};
use cleat_core::replicaset::Decided;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DynamicObject, ListParams};
use kube::core::PartialObjectMeta;

use super::Propagation;
use super::follow::{BINDING, POLICY, RULE, SET};
use crate::kinds::{self, Kind, every};

/// Why nothing may be taken away.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unsure {
    #[error("the server did not say")]
    Read(#[from] Box<kube::Error>),
    #[error("the definition {0} is going or gone, and its objects with it")]
    Undefined(String),
}

impl From<kube::Error> for Unsure {
    fn from(error: kube::Error) -> Self {
        Self::Read(Box::new(error))
    }
}

/// What decides where a policy goes. Nobody took it away whose kind was taken away.
const DECISIVE: [Kind; 5] = [POLICY, BINDING, SET, kinds::PLACEMENT, kinds::DECISION];

impl Propagation {
    /// Puts what the server says now into the observation. An error: something could not be read,
    /// and nothing may be taken away.
    pub(super) async fn confirm(&self, seen: &mut Observed) -> Result<(), Unsure> {
        for [group, _, _, plural] in DECISIVE {
            self.defined(format!("{plural}.{group}")).await?;
        }
        let (namespace, name) = seen.key.clone();
        let within = Some(namespace.clone());
        let root = every(&self.hub_client, &within, POLICY).get_opt(&name).await?;
        seen.root = root.map(|root| Arc::new(Root::read(&root.metadata, &root.data)));
        if !seen.root.as_ref().is_some_and(|root| root.is_spread()) {
            return Ok(());
        }
        let all = self.list(&namespace, BINDING).await?;
        seen.bindings =
            all.iter().map(|one| Arc::new(Binding::read(&one.metadata, &one.data))).collect();
        for set in self.list(&namespace, SET).await? {
            let set = PolicySet::read(&set.metadata, &set.data);
            seen.sets.insert((set.namespace.clone(), set.name.clone()), Arc::new(set));
        }
        let mut decided = BTreeMap::new();
        for source in seen.bindings.iter().filter_map(|binding| binding.source.clone()) {
            let answer = self.ask(&namespace, &source).await?;
            decided.insert(source, answer);
        }
        seen.decided = decided;
        Ok(())
    }

    async fn defined(&self, name: String) -> Result<(), Unsure> {
        let definitions: Api<PartialObjectMeta<CustomResourceDefinition>> =
            Api::all(self.hub_client.clone());
        let found = definitions.get_opt(&name).await?;
        match found.filter(|found| found.metadata.deletion_timestamp.is_none()) {
            Some(_) => Ok(()),
            None => Err(Unsure::Undefined(name)),
        }
    }

    async fn list(&self, namespace: &str, kind: Kind) -> Result<Vec<DynamicObject>, Unsure> {
        let within = Some(namespace.to_owned());
        let all = every(&self.hub_client, &within, kind).list(&ListParams::default()).await?;
        let alive = |one: &DynamicObject| one.metadata.deletion_timestamp.is_none();
        Ok(all.items.into_iter().filter(alive).collect())
    }

    /// Decisions first: where they go with their placement, the placement is gone by the time it is
    /// asked for.
    async fn ask(&self, namespace: &str, source: &Source) -> Result<Decided, Unsure> {
        let within = Some(namespace.to_owned());
        match source {
            Source::Placement(name) => {
                let params = ListParams::default().labels(&format!("{PLACEMENT_LABEL}={name}"));
                let decisions =
                    every(&self.hub_client, &within, kinds::DECISION).list(&params).await?;
                let placement =
                    every(&self.hub_client, &within, kinds::PLACEMENT).get_opt(name).await?;
                Ok(Decided::read(
                    placement.as_ref().map(|placement| (&placement.metadata, &placement.data)),
                    decisions.items.iter().map(|decision| (&decision.metadata, &decision.data)),
                ))
            }
            Source::Rule(name) => {
                let rules = every(&self.hub_client, &within, RULE);
                // A list fails where a get would only find nothing: when the kind is not served.
                rules.list_metadata(&ListParams::default().limit(1)).await?;
                let rule = rules.get_opt(name).await?;
                Ok(Source::of_rule(rule.as_ref().map(|rule| (&rule.metadata, &rule.data))))
            }
        }
    }
}
