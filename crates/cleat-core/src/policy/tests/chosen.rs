//! Templates that name no object: those about all objects of a kind, and those about the objects
//! with certain labels. What they choose is never theirs to prune.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use cleat_api::configurationpolicy::ObjectTemplate;
use serde_json::{Value, json};

use super::space::{SPACE, target_of};
use super::world::{BAD, Checked, Object, Sight, World, content, kind};
use crate::policy::observed::*;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Chosen {
    /// All things must (not) have one of this content; that is only looked at.
    pub(super) unnamed: Option<(bool, u8)>,
    /// Things of the team must be so labelled, or must not be bad.
    pub(super) selected: Option<bool>,
    /// They stand before those with names.
    pub(super) first: bool,
}

const LABELS: &str = "team=a";

fn list(labels: &str) -> ListOf {
    ListOf { kind: kind(), namespace: "n".into(), labels: labels.into() }
}

impl World {
    pub(super) fn chosen_templates(&self) -> Vec<Template> {
        let Chosen { unnamed, selected, first: _ } = self.chosen;
        let template = |must: bool, definition: Value, selector: Option<Value>| Template {
            spec: ObjectTemplate {
                compliance_type: if must { "musthave" } else { "mustnothave" }.into(),
                object_definition: definition,
                object_selector: selector.map(|one| serde_json::from_value(one).unwrap()),
                ..ObjectTemplate::default()
            },
            definition: Definition::Plain,
        };
        let with = |content: u8| {
            json!({
                "apiVersion": "v1", "kind": "Thing", "metadata": { "namespace": "n" },
                "data": { "content": alloc::format!("{content}") },
            })
        };
        let labelled = json!({
            "apiVersion": "v1", "kind": "Thing",
            "metadata": { "namespace": "n", "labels": { "team": "a" } },
        });
        let team = json!({ "matchLabels": { "team": "a" } });
        let unnamed = unnamed.map(|(must, content)| template(must, with(content), None));
        let selected = selected.map(|must| match must {
            true => template(true, labelled, Some(team)),
            false => template(false, with(BAD), Some(team)),
        });
        unnamed.into_iter().chain(selected).collect()
    }

    pub(super) fn lists(&self, sight: &Sight, cluster: &mut Cluster) {
        let bodies = |all: bool| {
            let things = self.objects.iter().filter(|(name, _)| *name != SPACE);
            let some = things.filter(move |(_, object)| all || object.labelled);
            some.map(|(name, object)| Arc::new(Self::body(name, object))).collect::<Vec<_>>()
        };
        for (labels, all, visible) in [("", true, sight.lists.0), (LABELS, false, sight.lists.1)] {
            let found = if visible { Ok(bodies(all)) } else { Err(String::from("it is dark")) };
            cluster.lists.insert(list(labels), found);
        }
    }

    /// Whether some list that decides what the policy is about could not be read.
    pub(super) fn was_blind(&self, seen: &Observed) -> bool {
        let failed = |labels: &str| matches!(seen.cluster.lists.get(&list(labels)), Some(Err(_)));
        self.chosen.unnamed.is_some() && failed("")
            || self.chosen.selected.is_some() && failed(LABELS)
    }

    /// Whether templates without a name still chose the object when it was looked at.
    pub(super) fn was_chosen(&self, seen: &Observed, name: &str) -> bool {
        let listed = |labels: &str| match seen.cluster.lists.get(&list(labels)) {
            Some(Ok(all)) => all.iter().any(|one| one["metadata"]["name"] == json!(name)),
            _ => false,
        };
        self.chosen.unnamed.is_some() && listed("")
            || self.chosen.selected.is_some() && listed(LABELS)
    }

    /// Whether the object was what must not be there when it was looked at.
    pub(super) fn was_bad(&self, seen: &Observed, name: &str) -> bool {
        let Some(Seen::Present(then)) = seen.cluster.objects.get(&target_of(name).id) else {
            return false;
        };
        self.chosen.selected == Some(false)
            && then.object["metadata"]["labels"]["team"] == json!("a")
            && content(&then.object) == BAD
    }

    /// What must not be there is deleted only as it was when that was found.
    pub(super) fn may_go(name: &str, object: &Object) -> Checked {
        match object.labelled && object.content == BAD {
            true => Ok(()),
            false => Err(alloc::format!("{name} deleted though it is not bad any more")),
        }
    }

    /// Somebody else changes an object.
    pub(super) fn change(&mut self, name: &str, content: u8) {
        if let Some(object) = self.objects.get_mut(name) {
            object.version += 1;
            object.content = content;
        }
    }

    /// Somebody else gives an object to the team, or takes it from it.
    pub(super) fn relabel(&mut self, name: &str) {
        if let Some(object) = self.objects.get_mut(name) {
            object.version += 1;
            object.labelled = !object.labelled;
        }
    }
}
