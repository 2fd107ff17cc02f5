//! Who holds an object: owner references to ledgers.
//!
//! Our reference on an object is written by the same request as its content, so an object that
//! bears it was ours at that moment. Several works may hold one object; the first of them decides
//! its content, and the last of them to let go deletes it.

use alloc::string::String;
use alloc::vec::Vec;

use cleat_api::leftoverrecord::Stays;
use cleat_api::manifestwork::{KEEP_ADOPTED, Keep, ManifestWork};
use serde_json::{Map, Value, json};

use super::observed::{Book, Observed, Origin, Owner, Present, Work};
use super::wanted::is_read_only;
use crate::id::{Id, Target};

pub const GROUP: &str = "work.open-cluster-management.io";
pub(crate) const API_VERSION: &str = "work.open-cluster-management.io/v1";
pub const LEDGER_KIND: &str = "AppliedManifestWork";

impl Owner {
    pub fn is_ledger(&self) -> bool {
        self.kind == LEDGER_KIND && self.api_version.starts_with(GROUP)
    }

    /// Whether it is the ledger of a work of this hub.
    pub(crate) fn is_of_hub(&self, hub_hash: &str) -> bool {
        let rest = self.name.strip_prefix(hub_hash);
        self.is_ledger() && rest.is_some_and(|rest| rest.starts_with('-'))
    }

    fn is(&self, ledger: &str) -> bool {
        self.is_ledger() && self.name == ledger
    }

    pub(crate) fn to_json(&self) -> Value {
        let mut reference = Map::new();
        reference.insert("apiVersion".into(), self.api_version.as_str().into());
        reference.insert("kind".into(), self.kind.as_str().into());
        reference.insert("name".into(), self.name.as_str().into());
        reference.insert("uid".into(), self.uid.as_str().into());
        if let Some(controller) = self.controller {
            reference.insert("controller".into(), controller.into());
        }
        if let Some(block) = self.block_owner_deletion {
            reference.insert("blockOwnerDeletion".into(), block.into());
        }
        Value::Object(reference)
    }
}

/// The ledger of a work, as requests name it.
pub fn ledger_target(hub_hash: &str, work: &str) -> Target {
    ledger_named(alloc::format!("{hub_hash}-{work}"))
}

pub(crate) fn ledger_named(name: String) -> Target {
    let id = Id {
        group: GROUP.into(),
        resource: "appliedmanifestworks".into(),
        namespace: String::new(),
        name,
    };
    Target { version: "v1".into(), id }
}

/// Our reference on an object.
pub(crate) fn reference(ledger: &str, uid: &str) -> Value {
    json!({ "apiVersion": API_VERSION, "kind": LEDGER_KIND, "name": ledger, "uid": uid })
}

impl Present {
    /// Whether it bears the reference to this very ledger.
    pub(crate) fn is_held_by(&self, book: &Book) -> bool {
        self.owners.iter().any(|owner| owner.is_ledger() && owner.uid == book.uid)
    }

    /// Another work, ours or another agent's, that holds it as well.
    pub(crate) fn other_holder(&self, ledger: &str) -> Option<&Owner> {
        self.owners.iter().find(|owner| owner.is_ledger() && !owner.is(ledger))
    }

    /// Whether other works hold it, all of them of this hub.
    pub(crate) fn is_shared_within(&self, hub_hash: &str, ledger: &str) -> bool {
        let others = || self.owners.iter().filter(|owner| owner.is_ledger() && !owner.is(ledger));
        others().next().is_some() && others().all(|owner| owner.is_of_hub(hub_hash))
    }

    /// The owner references without those to ledgers of this hub; `None` if there are none.
    pub(crate) fn references_without(&self, hub_hash: &str) -> Option<Value> {
        let (ours, others): (Vec<&Owner>, Vec<&Owner>) =
            self.owners.iter().partition(|owner| owner.is_of_hub(hub_hash));
        let others = others.into_iter().map(Owner::to_json).collect();
        (!ours.is_empty()).then_some(Value::Array(others))
    }

    /// The work that decides the content, when that is another one: the first that took hold.
    pub(crate) fn governed_by_other(&self, ledger: &str) -> Option<&Owner> {
        self.owners.iter().find(|owner| owner.is_ledger()).filter(|first| !first.is(ledger))
    }

    /// The owner references as they must be, or `None` when they are.
    ///
    /// A reference to a ledger of the same name and another uid is a leftover of an earlier ledger
    /// and is replaced.
    pub(crate) fn references(&self, ledger: &str, book: &Book, owned: bool) -> Option<Value> {
        let ours = |owner: &&Owner| owner.is(ledger);
        let right = match self.owners.iter().filter(ours).count() {
            0 => !owned,
            1 => owned && self.is_held_by(book),
            _ => false,
        };
        if right {
            return None;
        }
        let others = self.owners.iter().filter(|owner| !owner.is(ledger));
        let mut references: Vec<Value> = others.map(Owner::to_json).collect();
        if owned {
            // In the place of the leftover, if there is one: taking hold again is not taking hold
            // later.
            let position = self.owners.iter().position(|owner| owner.is(ledger));
            let position = position.unwrap_or(references.len()).min(references.len());
            references.insert(position, reference(ledger, &book.uid));
        }
        Some(Value::Array(references))
    }
}

/// How a present object came, or would come, to be ours.
///
/// Without our reference and with another uid than the recorded one it is somebody else's, even if
/// we once meant to create it.
pub(crate) fn origin(book: &Book, id: &Id, present: &Present) -> Origin {
    let known = book.origin(id).unwrap_or(Origin::Created);
    match book.recorded_uid(id) {
        Some(uid) if uid == present.uid => known,
        Some(_) => Origin::Adopted,
        None if present.is_held_by(book) => known,
        // What is made to stay bears no reference from the first.
        None if book.made.get(id) == Some(&present.uid) => known,
        None => Origin::Adopted,
    }
}

/// Whether an object is to go with the work or to stay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ownership {
    Owned,
    /// Stays, and the field that says so.
    Kept(&'static str),
    /// The work contradicts itself, so neither is done.
    Undecided(String),
}

pub(crate) fn ownership(work: &Work, id: &Id, origin: Origin) -> Ownership {
    if work.read_only.0.contains(id) {
        return Ownership::Kept("updateStrategy ReadOnly");
    }
    if work.keep_adopted && origin == Origin::Adopted {
        return Ownership::Kept("annotation cleat.dev/keep-adopted");
    }
    match &work.keep {
        Err(problem) => Ownership::Undecided(problem.clone()),
        Ok(keep) if keep.keeps(&id.group, &id.resource, &id.namespace, &id.name) => {
            Ownership::Kept("deleteOption")
        }
        Ok(_) => Ownership::Owned,
    }
}

/// What the work's rules keep by name, whether or not it is still among the manifests.
pub fn kept_by_name(work: &Work) -> impl Iterator<Item = Id> + '_ {
    let rules = match &work.keep {
        Ok(Keep::Listed(rules)) => rules.as_slice(),
        _ => &[],
    };
    rules.iter().map(|rule| Id {
        group: rule.group.clone(),
        resource: rule.resource.clone(),
        namespace: rule.namespace.clone(),
        name: rule.name.clone(),
    })
}

/// Whether an object made for the work would go with it.
pub fn would_own(work: &Work, id: &Id) -> bool {
    ownership(work, id, Origin::Created) == Ownership::Owned
}

/// What a work on the hub declares about an object of its cluster that nobody can look at. A work
/// that contradicts itself must not be the reason to delete anything.
pub(crate) fn declared(work: &ManifestWork, id: &Id) -> Option<Stays> {
    if is_read_only(&work.spec.manifest_configs, id) {
        return Some(Stays::NotOurs);
    }
    let kept = work.spec.delete_option.as_ref().is_some_and(|option| match option.parse() {
        Ok(keep) => keep.keeps(&id.group, &id.resource, &id.namespace, &id.name),
        Err(_) => true,
    });
    if kept {
        return Some(Stays::Declared);
    }
    let annotations = work.metadata.annotations.as_ref();
    let keeps_adopted =
        annotations.and_then(|all| all.get(KEEP_ADOPTED)).is_some_and(|v| v == "true");
    keeps_adopted.then_some(Stays::IfAdopted)
}

impl Observed {
    /// The ledger's own name.
    pub fn ledger_name(&self) -> String {
        ledger_target(&self.agent.hub_hash, &self.name).id.name
    }
}
