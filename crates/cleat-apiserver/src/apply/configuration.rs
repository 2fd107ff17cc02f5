//! One configuration on its way into one object: is it one, what does it change, whose is that, and
//! what did it give up.

use serde_json::Value;

use super::conflict::{self, Conflict};
use super::fields::FieldSet;
use super::managers::{Identity, Managers, Operation};
use super::shape::Shape;
use super::typed::{self, Comparison};
use super::{Manager, Target, same_but_for_managers, without_identity};
use crate::status::Status;

/// Refuses what is not a configuration for this kind.
pub(super) fn check(
    config: &Value,
    target: &Target<'_>,
    manager: &Manager<'_>,
) -> Result<(), Status> {
    let text = |key: &str| config.get(key).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    if api_version != manager.api_version || kind != target.kind {
        let found = group_version_kind(api_version, kind);
        return Err(Status::bad_request(format!("invalid object type: {found}")));
    }
    let metadata = config.get("metadata");
    if metadata.and_then(|metadata| metadata.get("managedFields")).is_some_and(Value::is_array) {
        return Err(Status::bad_request("metadata.managedFields must be nil"));
    }
    if let Some(problem) = typed::check(config, Shape::root(target.schema)) {
        let part = |key: &str| {
            metadata.and_then(|metadata| metadata.get(key)).and_then(Value::as_str).unwrap_or("")
        };
        let message = format!(
            "failed to create typed patch object ({}/{}; {}): {problem}",
            part("namespace"),
            part("name"),
            group_version_kind(api_version, kind)
        );
        return Err(Status::new(500, "", message));
    }
    Ok(())
}

/// One configuration on its way into one object.
pub(super) struct Merge<'a> {
    pub(super) live: &'a Value,
    pub(super) config: &'a Value,
    pub(super) shape: Shape<'a>,
    pub(super) target: &'a Target<'a>,
    pub(super) manager: &'a Manager<'a>,
}

impl Merge<'_> {
    /// The object with the configuration in it. `excuse` says which conflicts do not count.
    pub(super) fn run(
        &self,
        mut managers: Managers,
        force: bool,
        excuse: impl Fn(Vec<Conflict>) -> Vec<Conflict>,
    ) -> Result<Value, Status> {
        let identity = self.manager.identity(Operation::Apply);
        let mut merged = typed::merge_objects(self.live, self.config, self.shape);
        let fields = self
            .target
            .reset
            .iter()
            .fold(typed::fields_of(self.config, self.shape), |fields, path| fields.without(path));
        let before = managers.remove(&identity);
        let mut entry = self.manager.entry(identity.clone(), fields);
        entry.time = before.as_ref().and_then(|before| before.time.clone());
        if let Some(before) = before
            && !before.fields.is_subset(&entry.fields)
        {
            let others = managers.iter().map(|entry| entry.fields.clone());
            let managed = others.fold(entry.fields.clone(), FieldSet::union);
            prune(&mut merged, &before.fields, managed, self.shape);
        }
        if !managers.is_empty() {
            let changed = typed::compare(self.live, &merged, self.shape).without(self.target.reset);
            if !force {
                let conflicts = conflicts(&managers, &changed);
                let conflicts = if conflicts.is_empty() { conflicts } else { excuse(conflicts) };
                if !conflicts.is_empty() {
                    return Err(conflict::refusal(&conflicts));
                }
            }
            managers.yield_fields(&changed);
        }
        if !same_but_for_managers(self.live, &merged) {
            entry.time = Some(self.manager.time.into());
        }
        entry.fields = without_identity(entry.fields);
        managers.put(entry);
        managers.write_to(&mut merged);
        Ok(merged)
    }
}

fn conflicts(managers: &Managers, changed: &Comparison) -> Vec<Conflict> {
    let mut found = Vec::new();
    for entry in managers.iter() {
        let modified = entry.fields.intersection(&changed.modified);
        let taken = modified.union(entry.fields.intersection(&changed.added));
        found.extend(
            taken
                .paths()
                .into_iter()
                .map(|path| Conflict { manager: entry.identity.clone(), path }),
        );
    }
    // Of a manager's entries those for a subresource come first.
    found.sort_by_cached_key(|conflict| {
        let Identity { name, operation, api_version, subresource } = conflict.manager.clone();
        (name, operation, api_version, subresource.is_empty(), subresource)
    });
    found
}

/// Takes out what the applier had before, has no longer, and nobody else manages.
fn prune(merged: &mut Value, before: &FieldSet, managed: FieldSet, shape: Shape<'_>) {
    let named = |set: &FieldSet| typed::with_declared_parents(set, Some(shape));
    let fields = |object: &Value| named(&typed::fields_of(object, shape));
    let before = named(before);
    let all = fields(merged);
    let mut pruned = merged.clone();
    typed::remove(&mut pruned, &before, shape);
    let kept = fields(&pruned).union(named(&managed));
    let mut pruned = merged.clone();
    typed::remove(&mut pruned, &all.clone().difference(&kept), shape);
    // What was removed only because a parent was is not the applier's to remove.
    let gone = all.difference(&fields(&pruned)).intersection(&before);
    typed::remove(merged, &gone, shape);
}

/// `apps/v1, Kind=Deployment`; the core group is empty.
fn group_version_kind(api_version: &str, kind: &str) -> String {
    let slash = if api_version.contains('/') { "" } else { "/" };
    format!("{slash}{api_version}, Kind={kind}")
}
