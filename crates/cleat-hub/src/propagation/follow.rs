//! What wakes the story of policies, and whom it concerns.

use cleat_core::propagation::Source;
use cleat_runtime::tasks::Tasks;

use super::Propagation;
use super::view::{Policy, PolicyBinding, Rule, Set};
use crate::followed::Key;
use crate::kinds::{Kind, POLICY, every};
use crate::served::while_served;

pub(super) const BINDING: Kind =
    ["policy.open-cluster-management.io", "v1", "PlacementBinding", "placementbindings"];
pub(super) const SET: Kind =
    ["policy.open-cluster-management.io", "v1beta1", "PolicySet", "policysets"];
pub(super) const RULE: Kind =
    ["apps.open-cluster-management.io", "v1", "PlacementRule", "placementrules"];

impl Propagation {
    /// `also` is told of policies too.
    pub(crate) fn follow(
        &self,
        tasks: &Tasks,
        also: impl Fn(Option<&Policy>, Option<&Policy>) + Send + 'static,
    ) {
        let (client, all) = (&self.hub_client, self.clone());
        let following = self.policies.clone().follow(
            every(client, &None, POLICY),
            tasks.stop(),
            move |old: Option<&Policy>, new: Option<&Policy>| {
                all.heard_policy(old, new);
                also(old, new);
            },
        );
        tasks.spawn("follow policies", following);
        let all = self.clone();
        let following = self.bindings.clone().follow(
            every(client, &self.namespace, BINDING),
            tasks.stop(),
            move |old: Option<&PolicyBinding>, new: Option<&PolicyBinding>| match new.or(old) {
                Some(binding) => all.look_at_namespace(&binding.0.namespace),
                None => all.look_at_all(),
            },
        );
        tasks.spawn("follow placement bindings", following);
        let all = self.clone();
        let following = self.sets.clone().follow(
            every(client, &None, SET),
            tasks.stop(),
            move |old: Option<&Set>, new: Option<&Set>| all.heard_set(old, new),
        );
        tasks.spawn("follow policy sets", following);
        let all = self.clone();
        let api = every(client, &self.namespace, RULE);
        let rules = self.rules.clone();
        let stop = tasks.stop();
        let following = while_served(client.clone(), RULE, tasks.stop(), move || {
            let all = all.clone();
            rules.clone().follow(
                api.clone(),
                stop.clone(),
                move |old: Option<&Rule>, new: Option<&Rule>| match new.or(old) {
                    Some(rule) => all.decided_again(&rule.key(), true),
                    None => all.look_at_all(),
                },
            )
        });
        tasks.spawn("follow placement rules", following);
    }

    fn heard_policy(&self, old: Option<&Policy>, new: Option<&Policy>) {
        if old.is_none() && new.is_none() {
            return self.look_at_all();
        }
        for policy in [old, new].into_iter().flatten() {
            let root = policy.root();
            let sets = self.sets.group(&root.0);
            for set in sets.iter().filter(|set| set.0.policies.contains(&root.1)) {
                self.sets_due.add(set.key());
            }
            self.roots.add(root);
        }
    }

    fn heard_set(&self, old: Option<&Set>, new: Option<&Set>) {
        let Some(one) = new.or(old) else { return self.look_at_all() };
        let key = one.key();
        let what =
            |set: Option<&Set>| set.map(|set| (set.0.policies.clone(), set.0.exclusions.clone()));
        self.sets_due.add(key.clone());
        // Its status is nobody's business but ours.
        if what(old) == what(new) {
            return;
        }
        let policies = [old, new].into_iter().flatten().flat_map(|set| &set.0.policies);
        for name in policies {
            self.roots.add((key.0.clone(), name.clone()));
        }
        self.policies.every(|policy| {
            if let Policy::Root { depends, .. } = policy
                && depends.contains(&key)
            {
                self.roots.add(policy.root());
            }
        });
    }

    /// A placement or a placement rule decided, or is gone.
    pub(crate) fn decided_again(&self, placement: &Key, rule: bool) {
        let (namespace, name) = placement;
        let source =
            if rule { Source::Rule(name.clone()) } else { Source::Placement(name.clone()) };
        for binding in self.bindings.group(namespace) {
            if binding.0.source.as_ref() != Some(&source) {
                continue;
            }
            for policy in &binding.0.policies {
                self.roots.add((namespace.clone(), policy.clone()));
            }
            for name in &binding.0.sets {
                let key = (namespace.clone(), name.clone());
                let set = self.sets.get(&key);
                for policy in set.iter().flat_map(|set| &set.0.policies) {
                    self.roots.add((namespace.clone(), policy.clone()));
                }
                self.sets_due.add(key);
            }
        }
    }

    fn look_at_namespace(&self, namespace: &str) {
        for policy in self.policies.group(namespace) {
            self.roots.add(policy.root());
        }
        for set in self.sets.group(namespace) {
            self.sets_due.add(set.key());
        }
    }

    pub(crate) fn look_at_all(&self) {
        self.policies.every(|policy| self.roots.add(policy.root()));
        self.sets.every(|set| self.sets_due.add(set.key()));
    }
}
