//! Server-side apply, and who manages which fields.
//!
//! Two entry points, one for each way of writing: [`track_update`] for objects written whole, and
//! [`server_side_apply`] for configurations. Both are pure: the time comes with the request. They
//! neither default nor validate, and do not know how objects are stored.
//!
//! The behaviour is that of structured-merge-diff and of apimachinery's managedfields; the design
//! is not. All versions of an object are taken to have the same fields, which holds for everything
//! served here.

mod configuration;
mod conflict;
mod element;
mod fields;
mod last_applied;
mod managers;
mod scale;
mod shape;
#[cfg(test)]
mod tests;
mod typed;

use std::sync::LazyLock;

use serde_json::{Map, Value};

pub(crate) use self::scale::{SCALE_VERSION, lend_managers, return_managers};

use self::conflict::Conflict;
use self::element::{Element, equal};
use self::fields::FieldSet;
use self::managers::{Entry, Identity, Managers, Operation};
use self::shape::Shape;
use self::typed::Comparison;

use crate::schema::Schema;
use crate::status::Status;

const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// Who writes, through what, and when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manager<'a> {
    /// From `fieldManager`, or else the user agent.
    pub(crate) name: &'a str,
    /// Empty for the object itself.
    pub(crate) subresource: &'a str,
    /// `apps/v1`
    pub(crate) api_version: &'a str,
    /// RFC 3339 in UTC, to the second.
    pub(crate) time: &'a str,
}

/// What is written to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target<'a> {
    pub(crate) kind: &'a str,
    pub(crate) schema: Option<Schema<'a>>,
    /// Fields that this endpoint never changes, so that nobody comes to manage them through it:
    /// `status` of an object that has such a subresource, `metadata` and `spec` for that.
    pub(crate) reset: &'a [&'a [&'a str]],
    /// Every apiVersion the kind has. Managers of others are forgotten. Empty: all are known.
    pub(crate) api_versions: &'a [&'a str],
}

/// Records in `new.metadata.managedFields` what a create, update or patch changed.
///
/// `new` is the object as the client wants it, defaulted, before the server fills in what it does
/// on its own. If the client set managedFields, that is where the record starts; an empty list, or
/// a list of one empty entry, forgets it.
pub(crate) fn track_update(
    live: Option<&Value>,
    new: &mut Value,
    target: &Target<'_>,
    manager: &Manager<'_>,
) {
    let mut managers = match starting_point(live, new, manager) {
        Some(managers) => managers,
        // Not tracked so far, and an update is no reason to begin.
        None => return Managers::default().write_to(new),
    };
    Managers::default().write_to(new);
    let nothing = Value::Object(Map::new());
    let shape = Shape::root(target.schema);
    managers.settle(target, shape);
    let changed = typed::compare(live.unwrap_or(&nothing), new, shape).without(target.reset);
    managers.yield_fields(&changed);
    let written = without_identity(changed.into_written());
    if !written.is_empty() {
        let identity = manager.identity(Operation::Update);
        let before = managers.remove(&identity).map(|entry| entry.fields).unwrap_or_default();
        managers.put(manager.entry(identity, written.union(before)));
    }
    managers.cap_updaters();
    managers.write_to(new);
}

/// Merges a configuration into an object, or makes one of it, and records who manages what.
///
/// Errors: 400 if the configuration is not one for this kind, 409 if it would change fields that
/// others manage and `force` is not set, 500 (with upstream's text) if it is not of its type.
pub(crate) fn server_side_apply(
    live: Option<&Value>,
    config: &Value,
    target: &Target<'_>,
    manager: &Manager<'_>,
    force: bool,
) -> Result<Value, Status> {
    configuration::check(config, target, manager)?;
    let nothing = Value::Object(Map::new());
    let object = live.unwrap_or(&nothing);
    let mut managers = Managers::of(object).map_err(|error| {
        Status::new(500, "", format!("failed to decode managed fields: {error}"))
    })?;
    let shape = Shape::root(target.schema);
    if managers.is_empty() && live.is_some() {
        let found = typed::compare(&nothing, object, shape).without(target.reset);
        let fields = without_identity(found.into_written());
        let before = Manager { name: BEFORE_FIRST_APPLY, ..*manager };
        managers.put(before.entry(before.identity(Operation::Update), fields));
    }
    managers.settle(target, shape);
    let excuse =
        |conflicts: Vec<Conflict>| match last_applied::still_in_effect(object, shape, manager) {
            Some(set) => {
                conflicts.into_iter().filter(|conflict| !set.contains(&conflict.path)).collect()
            }
            None => conflicts,
        };
    let merge = configuration::Merge { live: object, config, shape, target, manager };
    let mut merged = merge.run(managers, force, excuse)?;
    last_applied::renew(&mut merged, config, manager);
    Ok(merged)
}

/// Takes back new times in managedFields if nothing else changed, so that writing the same again
/// is no write.
pub(crate) fn keep_times_if_unchanged(live: &Value, new: &mut Value) {
    let list = |object: &Value| -> Option<Vec<Value>> {
        let list = object.get("metadata")?.get("managedFields")?.as_array()?;
        Some(list.iter().map(without_time).collect())
    };
    let (Some(before), Some(after)) = (list(live), list(new)) else { return };
    if before != after || !same_but_for_managers(live, new) {
        return;
    }
    let old = live.get("metadata").and_then(|metadata| metadata.get("managedFields"));
    if let Some(metadata) = new.get_mut("metadata")
        && let (Some(field), Some(old)) = (metadata.get_mut("managedFields"), old)
    {
        *field = old.clone();
    }
}

impl Manager<'_> {
    fn identity(&self, operation: Operation) -> Identity {
        let name = if self.name.is_empty() { "unknown" } else { self.name };
        Identity::new(name, operation, self.api_version, self.subresource)
    }

    fn entry(&self, identity: Identity, fields: FieldSet) -> Entry {
        let time = Some(self.time.into());
        Entry { identity, api_version: self.api_version.into(), time, fields }
    }
}

impl Managers {
    /// Brings the record up to date with the kind: without versions it no longer has, and with
    /// what has become atomic owned whole.
    fn settle(&mut self, target: &Target<'_>, shape: Shape<'_>) {
        if !target.api_versions.is_empty() {
            self.retain(|entry| target.api_versions.contains(&&*entry.api_version));
        }
        for entry in self.iter_mut() {
            typed::settle(&mut entry.fields, Some(shape));
        }
    }

    /// Everyone loses what was changed or removed; the author is not among them.
    fn yield_fields(&mut self, changed: &Comparison) {
        for entry in self.iter_mut() {
            for lost in [&changed.added, &changed.modified, &changed.removed] {
                entry.fields.subtract(lost);
            }
        }
        self.retain(|entry| !entry.fields.is_empty());
    }
}

/// The managers before an update. `None` if the object is not tracked.
fn starting_point(live: Option<&Value>, new: &Value, manager: &Manager<'_>) -> Option<Managers> {
    let of_live = || live.and_then(|live| Managers::of(live).ok()).unwrap_or_default();
    let managers = if manager.subresource.is_empty() {
        match new.get("metadata").and_then(|metadata| metadata.get("managedFields")) {
            Some(Value::Array(list)) if is_reset(list) => Managers::default(),
            _ => match Managers::of(new) {
                Ok(managers) if !managers.is_empty() => managers,
                _ => of_live(),
            },
        }
    } else {
        of_live()
    };
    (live.is_none() || !managers.is_empty()).then_some(managers)
}

fn is_reset(list: &[Value]) -> bool {
    match list {
        [] => true,
        [only] => only.as_object().is_some_and(Map::is_empty),
        _ => false,
    }
}

/// Without the fields that nobody can manage: what an object is called, and the server's own.
fn without_identity(fields: FieldSet) -> FieldSet {
    static NOBODYS: LazyLock<FieldSet> = LazyLock::new(|| {
        let mut nobodys = FieldSet::default();
        for top in ["apiVersion", "kind", "metadata"] {
            nobodys.insert_path(&[Element::field(top)]);
        }
        for name in [
            "clusterName",
            "creationTimestamp",
            "generation",
            "managedFields",
            "name",
            "namespace",
            "resourceVersion",
            "selfLink",
            "uid",
        ] {
            nobodys.insert_path(&[Element::field("metadata"), Element::field(name)]);
        }
        nobodys
    });
    fields.difference(&NOBODYS)
}

fn without_time(entry: &Value) -> Value {
    let mut entry = entry.clone();
    if let Some(entry) = entry.as_object_mut() {
        entry.remove("time");
    }
    entry
}

/// Whether two objects are the same apart from `metadata.managedFields`.
fn same_but_for_managers(left: &Value, right: &Value) -> bool {
    match (left.get("metadata"), right.get("metadata")) {
        (Some(a), Some(b)) => {
            same_but_for("metadata", left, right) && same_but_for("managedFields", a, b)
        }
        _ => equal(left, right),
    }
}

fn same_but_for(omitted: &str, left: &Value, right: &Value) -> bool {
    let (Some(left), Some(right)) = (left.as_object(), right.as_object()) else { return false };
    let relevant = |map: &'_ Map<String, Value>| map.len() - usize::from(map.contains_key(omitted));
    relevant(left) == relevant(right)
        && left
            .iter()
            .filter(|(key, _)| *key != omitted)
            .all(|(key, value)| right.get(key).is_some_and(|other| equal(value, other)))
}
