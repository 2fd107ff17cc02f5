//! Asking the server before anything is taken away: watches of several kinds tell in any order, and
//! one of them may be late.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cleat_api::placement::PLACEMENT_LABEL;
use cleat_core::propagation::{self as core, Asked, Binding, Observed, PolicySet, Root, Source};
use cleat_core::replicaset::Decided;
use cleat_core::write::Write;
use kube::Client;
use kube::api::{DynamicObject, ListParams};

use super::Propagation;
use super::follow::{BINDING, RULE, SET};
use crate::asked;
use crate::defined::{self, Unsure};
use crate::kinds::{self, Kind, every};

impl Propagation {
    /// The observation with what the server says now. An error: something could not be read, and
    /// nothing may be taken away.
    pub(super) async fn confirm(&self, seen: &Observed) -> Result<Observed, Unsure> {
        Server { hub_client: &self.hub_client }.confirm(seen).await
    }
}

/// Who is asked.
pub(super) struct Server<'a> {
    pub(super) hub_client: &'a Client,
}

impl Server<'_> {
    async fn confirm(&self, seen: &Observed) -> Result<Observed, Unsure> {
        let mut seen = seen.clone();
        let read = self.read(&mut seen).await;
        seen.asked = self.defined().await?;
        read?;
        Ok(seen)
    }

    /// Since when kinds are defined that decide what goes.
    pub(super) async fn defined(&self) -> Result<Asked, Unsure> {
        // After what was read: a definition that is whole now was so when its objects were told.
        let since = async |kind| defined::since(self.hub_client, kind).await;
        since(kinds::POLICY).await?;
        since(kinds::DECISION).await?;
        since(kinds::CLUSTER).await?;
        Ok(Asked::Since {
            bindings: since(BINDING).await?,
            sets: since(SET).await?,
            placements: since(kinds::PLACEMENT).await?,
            rules: defined::perhaps_since(self.hub_client, RULE).await?,
        })
    }

    async fn read(&self, seen: &mut Observed) -> Result<(), Unsure> {
        let (namespace, name) = seen.key.clone();
        let within = Some(namespace.clone());
        let root = every(self.hub_client, &within, kinds::POLICY).get_opt(&name).await?;
        seen.root = root.map(|root| Arc::new(Root::read(&root.metadata, &root.data)));
        if seen.root.as_ref().is_some_and(|root| root.is_spread()) {
            self.read_ways(seen, &namespace).await?;
        }
        // Whoever leaves in place of one that stays was not asked for yet.
        let mut asked = BTreeSet::new();
        loop {
            let new: BTreeSet<String> = loses(seen).difference(&asked).cloned().collect();
            if new.is_empty() {
                return Ok(());
            }
            self.read_clusters(seen, &new).await?;
            asked.extend(new);
        }
    }

    /// Bindings, sets and decisions.
    pub(super) async fn read_ways(
        &self,
        seen: &mut Observed,
        namespace: &str,
    ) -> Result<(), Unsure> {
        let all = self.list(namespace, BINDING).await?;
        seen.bindings =
            all.iter().map(|one| Arc::new(Binding::read(&one.metadata, &one.data))).collect();
        seen.sets.retain(|(of, _), _| of != namespace);
        for set in self.list(namespace, SET).await? {
            let set = PolicySet::read(&set.metadata, &set.data);
            seen.sets.insert((set.namespace.clone(), set.name.clone()), Arc::new(set));
        }
        let mut decided = BTreeMap::new();
        for source in seen.bindings.iter().filter_map(|binding| binding.source.clone()) {
            // One that cannot be read is a doubt of those who are bound to it, and of nobody else.
            let answer = self.ask(namespace, &source).await.unwrap_or_else(|error| {
                let error: &dyn std::error::Error = &error;
                tracing::debug!(error, source = source.name(), "what was decided is not known");
                Decided::Unknown
            });
            decided.insert(source, answer);
        }
        seen.decided = decided;
        Ok(())
    }

    pub(super) async fn read_clusters(
        &self,
        seen: &mut Observed,
        names: &BTreeSet<String>,
    ) -> Result<(), Unsure> {
        let asked = asked::clusters(self.hub_client, names).await?;
        seen.clusters.retain(|name, _| !asked.all && !names.contains(name));
        seen.clusters.extend(asked.clusters.into_iter().map(|one| (one.name.clone(), one)));
        Ok(())
    }

    pub(super) async fn list(
        &self,
        namespace: &str,
        kind: Kind,
    ) -> Result<Vec<DynamicObject>, Unsure> {
        let within = Some(namespace.to_owned());
        let all = every(self.hub_client, &within, kind).list(&ListParams::default()).await?;
        let alive = |one: &DynamicObject| one.metadata.deletion_timestamp.is_none();
        Ok(all.items.into_iter().filter(alive).collect())
    }

    /// Decisions first: where they go with their placement, the placement is gone by the time it is
    /// asked for.
    pub(super) async fn ask(&self, namespace: &str, source: &Source) -> Result<Decided, Unsure> {
        let within = Some(namespace.to_owned());
        match source {
            Source::Placement(name) => {
                let params = ListParams::default().labels(&format!("{PLACEMENT_LABEL}={name}"));
                let decisions =
                    every(self.hub_client, &within, kinds::DECISION).list(&params).await?;
                let placement =
                    every(self.hub_client, &within, kinds::PLACEMENT).get_opt(name).await?;
                Ok(Decided::read(
                    placement.as_ref().map(|placement| (&placement.metadata, &placement.data)),
                    decisions.items.iter().map(|decision| (&decision.metadata, &decision.data)),
                ))
            }
            Source::Rule(name) => {
                let rules = every(self.hub_client, &within, RULE);
                // A list fails where a get would only find nothing: when the kind is not served.
                rules.list_metadata(&ListParams::default().limit(1)).await?;
                let rule = rules.get_opt(name).await?;
                Ok(Source::of_rule(rule.as_ref().map(|rule| (&rule.metadata, &rule.data))))
            }
        }
    }
}

/// The clusters whose copy would go.
fn loses(seen: &Observed) -> BTreeSet<String> {
    let plan = core::plan(seen);
    let deletes =
        plan.iter().flatten().filter(|action| matches!(action.write, Write::Delete { .. }));
    deletes.map(|action| action.target.id.namespace.clone()).collect()
}
