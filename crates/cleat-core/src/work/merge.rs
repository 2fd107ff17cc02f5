//! The `Update` strategy: whether an object says what a manifest says, and if not, what to put.
//!
//! **The rule.** A manifest owns what it states; everything else on the object belongs to others.
//!
//! *Same or not.* Every stated field must be on the object with an equal value. Maps may hold more
//! than was stated, because servers default fields and controllers fill them; lists are taken as a
//! whole, element by element. Servers write some things differently than they were sent (`1000m`
//! becomes `1`, zero values vanish, secrets are encoded), and those count as equal. So what a server
//! makes of a manifest always compares as [`Merge::Same`], or an agent would write for ever. Of a few
//! kinds it is known what servers add; there, anything else that was not stated is a difference too
//! (see [`kinds`]).
//!
//! *What to put.* The object as it is, with what the manifest states laid over it, and without
//! - what the manifest stated when it was last applied (`previous`) and states no longer;
//! - what nobody but this agent has set, as `metadata.managedFields` tell: those are defaults, which
//!   the server derives afresh from the new manifest, or what an earlier manifest stated.
//!
//! So a volume changes its type and a probe its handler without a remnant of the old one, and the
//! replicas that an autoscaler has set stay. Replicas stay even if we have set them: who removes them
//! from a manifest means to hand them over, not to go back to one.
//!
//! *Metadata.* Labels and annotations are laid over, and a key that ends in `-` removes. Owner
//! references in a manifest are ignored ([`own`] is for ours), finalizers and everything else in
//! metadata stay as they are, and so does status.
//!
//! **What the caller owes.** `previous` is what was applied before `wanted`, and only until a write
//! of `wanted` was answered: afterwards it is `wanted`. And a webhook or a pruning schema may undo
//! what was put. Then this says [`Merge::Replace`] for the same object again and again, so a caller
//! remembers the [`fingerprint`] of the object its write was answered with, and does not ask about
//! an object that still has it.

mod compare;
mod kinds;
mod lay;
mod managed;
mod metadata;
mod own;
mod prepare;
mod quantity;
#[cfg(test)]
mod tests;

use alloc::string::{String, ToString as _};

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use self::compare::Comparison;
use self::kinds::{Kind, Treatment};
use self::lay::Laying;
use self::managed::Managed;
pub use self::own::own;

/// What an object needs to say what the manifest says.
#[derive(Clone, Debug, PartialEq)]
pub enum Merge {
    /// Nothing.
    Same,
    /// The whole object to put; its resource version is that of the object compared.
    Replace(Value),
    /// Something else was stated of a field that never changes: the object must be deleted and made
    /// anew.
    Recreate,
}

/// Compares an object with the manifest, and lays the manifest over it if they differ.
///
/// `previous` is the manifest that was last applied, if it is known.
pub fn update(existing: &Value, wanted: &Value, previous: Option<&Value>) -> Merge {
    merge(existing, wanted, previous, false)
}

/// As [`update`], for when the manifest may have changed while nobody looked: what is ours on the
/// object and not in the manifest is a difference too.
///
/// Defaults are such. The server derives them again and nothing changes, but this says
/// [`Merge::Replace`] every time, so it is for one pass after a manifest of unknown history changed.
pub fn restate(existing: &Value, wanted: &Value) -> Merge {
    merge(existing, wanted, None, true)
}

/// The object to create from a manifest.
pub fn fresh(manifest: &Value) -> Value {
    let mut object = manifest.clone();
    let Some(entries) = object.as_object_mut() else { return object };
    entries.remove("status");
    if let Some(Value::Object(metadata)) = entries.get_mut("metadata") {
        metadata::freshen(metadata);
    }
    object
}

/// Stands for everything about an object that [`update`] looks at, and for nothing else.
pub fn fingerprint(object: &Value) -> u64 {
    let mut hash = Sha256::new();
    let mut add = |key: &str, value: &Value| {
        for text in [key, &value.to_string()] {
            hash.update(text);
            hash.update([0]);
        }
    };
    for field in ["labels", "annotations"] {
        if let Some(value) = object.get("metadata").and_then(|metadata| metadata.get(field)) {
            add(field, value);
        }
    }
    for (key, value) in object.as_object().into_iter().flat_map(body) {
        add(key, value);
    }
    hash.finalize().iter().take(8).fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

fn merge(existing: &Value, wanted: &Value, previous: Option<&Value>, restate: bool) -> Merge {
    let (Some(object), Some(manifest)) = (existing.as_object(), wanted.as_object()) else {
        return Merge::Same;
    };
    let metadata = metadata::lay(existing, wanted, previous);
    let replaced = |body: Option<Map<_, _>>| {
        if metadata.is_none() && body.is_none() {
            return Merge::Same;
        }
        let mut whole = match body {
            None => object.clone(),
            Some(body) => object
                .iter()
                .filter(|(key, _)| !is_body(key))
                .map(|(key, value)| (key.clone(), value.clone()))
                .chain(body)
                .collect(),
        };
        if let Some(metadata) = &metadata {
            whole.insert("metadata".to_string(), Value::Object(metadata.clone()));
        }
        // The server keeps its own account of who set what.
        if let Some(Value::Object(metadata)) = whole.get_mut("metadata") {
            metadata.remove("managedFields");
        }
        Merge::Replace(Value::Object(whole))
    };
    let kind = Kind::of(wanted);
    if kind.treatment() == Treatment::MetadataOnly {
        return replaced(None);
    }
    let manifest = prepare::prepared(kind, manifest, object);
    let previous = previous.and_then(Value::as_object);
    let previous = previous.map(|previous| prepare::prepared(kind, previous, object));
    let previous = previous.as_deref();
    let comparison = Comparison::of(kind);
    if kind.must_be_made_anew(comparison, object, &manifest) {
        return Merge::Recreate;
    }
    if !restate
        && comparison.covers(object, &manifest)
        && !previous.is_some_and(|previous| comparison.lingers(object, &manifest, previous))
    {
        return replaced(None);
    }
    let laid = Laying::of(kind).over(object, &manifest, previous, &Managed::of(existing));
    let different = !laid.iter().eq(body(object));
    replaced(different.then_some(laid))
}

/// What of an object is neither its identity nor its metadata nor its status.
fn body(object: &Map<String, Value>) -> impl Iterator<Item = (&String, &Value)> {
    object.iter().filter(|(key, _)| is_body(key))
}

fn is_body(key: &str) -> bool {
    !matches!(key, "apiVersion" | "kind" | "metadata" | "status")
}
