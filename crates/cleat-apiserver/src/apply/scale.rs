//! Managers of an object's number of replicas, seen through its `scale` subresource.
//!
//! A Scale has no managers of its own: who manages `spec.replicas` in it manages that field in the
//! object. What is written to the Scale is tracked there and carried back.

use serde_json::Value;

use super::element::Element;
use super::fields::FieldSet;
use super::managers::{Entry, Identity, Managers, Operation};

pub(crate) const SCALE_VERSION: &str = "autoscaling/v1";

/// Gives a Scale the managers of the object's replicas, which are at `path`.
pub(crate) fn lend_managers(parent: &Value, path: &[&str], scale: &mut Value) {
    let (there, here) = (elements(path), elements(&["spec", "replicas"]));
    let mut lent = Managers::default();
    for entry in Managers::of(parent).unwrap_or_default().iter() {
        if entry.fields.contains(&there) {
            lent.put(moved(entry, SCALE_VERSION, set(&here)));
        }
    }
    lent.write_to(scale);
}

/// Takes back into an object of `api_version` what became of the managers of its Scale.
pub(crate) fn return_managers(parent: &mut Value, path: &[&str], api_version: &str, scale: &Value) {
    let (there, here) = (elements(path), elements(&["spec", "replicas"]));
    let mut managers = Managers::of(parent).unwrap_or_default();
    let returned = Managers::of(scale).unwrap_or_default();
    let owners: Vec<Entry> = returned
        .iter()
        .filter(|entry| entry.fields.contains(&here))
        .map(|entry| moved(entry, api_version, set(&there)))
        .collect();
    // Who updates is known by a version too, and that of a Scale is another than the object's: only
    // who applies is recognized. Everybody else appears anew, and when they came is not passed on.
    let recognized = |entry: &Entry| {
        entry.identity.operation == Operation::Apply
            && owners.iter().any(|owner| owner.identity == entry.identity)
    };
    let known: Vec<Identity> =
        managers.iter().filter(|e| recognized(e)).map(|e| e.identity.clone()).collect();
    for entry in managers.iter_mut() {
        if !known.contains(&entry.identity) {
            entry.fields.subtract(&set(&there));
        }
    }
    managers.retain(|entry| !entry.fields.is_empty());
    for owner in owners {
        if !known.contains(&owner.identity) {
            managers.add(Entry { time: None, ..owner });
        }
    }
    managers.write_to(parent);
}

fn moved(entry: &Entry, api_version: &str, fields: FieldSet) -> Entry {
    let Identity { name, operation, subresource, .. } = &entry.identity;
    let version = match operation {
        Operation::Apply => "",
        Operation::Update => api_version,
    };
    let identity = Identity::new(name, *operation, version, subresource);
    Entry { identity, api_version: api_version.into(), time: entry.time.clone(), fields }
}

fn set(path: &[Element]) -> FieldSet {
    let mut set = FieldSet::default();
    set.insert_path(path);
    set
}

fn elements(path: &[&str]) -> Vec<Element> {
    path.iter().map(|name| Element::field(name)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn replicas_change_hands_and_the_rest_stays() {
        let entry = |manager: &str, subresource: &str, version: &str, fields: Value| {
            let mut entry = json!({ "manager": manager, "operation": "Update",
                "apiVersion": version, "fieldsType": "FieldsV1", "fieldsV1": fields });
            if !subresource.is_empty() {
                entry["subresource"] = json!(subresource);
            }
            entry
        };
        let replicas = json!({ "f:spec": { "f:replicas": {} } });
        let both = json!({ "f:spec": { "f:replicas": {}, "f:paused": {} } });
        let mut parent =
            json!({ "metadata": { "managedFields": [entry("a", "", "apps/v1", both)] } });
        let mut scale = json!({ "metadata": {} });
        lend_managers(&parent, &["spec", "replicas"], &mut scale);
        assert_eq!(
            scale["metadata"]["managedFields"],
            json!([entry("a", "", "autoscaling/v1", replicas.clone())])
        );
        let taken = entry("b", "scale", "autoscaling/v1", replicas.clone());
        scale["metadata"]["managedFields"] = json!([taken]);
        return_managers(&mut parent, &["spec", "replicas"], "apps/v1", &scale);
        let rest = json!({ "f:spec": { "f:paused": {} } });
        assert_eq!(
            parent["metadata"]["managedFields"],
            json!([entry("a", "", "apps/v1", rest), entry("b", "scale", "apps/v1", replicas)])
        );
    }
}
