//! Containers that are added to a running pod to look into it.

use std::collections::BTreeSet;

use serde_json::Value;

use super::check::Errors;
use super::container;
use crate::quote::quoted;
use crate::rules::read::Read;

/// What such a container cannot have: nobody waits for it, restarts it or reserves anything for it.
const NEVER: [&str; 7] = [
    "lifecycle",
    "livenessProbe",
    "ports",
    "readinessProbe",
    "resizePolicy",
    "resources",
    "startupProbe",
];

pub(super) fn containers(errors: &mut Errors, path: &str, spec: &Value, volumes: &BTreeSet<&str>) {
    let others: BTreeSet<&str> = ["containers", "initContainers"]
        .into_iter()
        .flat_map(|list| spec.list(list))
        .map(|container| container.text("name"))
        .collect();
    let mut seen = others.clone();
    for (index, one) in spec.list("ephemeralContainers").iter().enumerate() {
        let path = format!("{path}[{index}]");
        container::common(errors, &path, one, volumes);
        let name = one.text("name");
        if !name.is_empty() && !seen.insert(name) {
            errors.duplicate(format!("{path}.name"), name);
        }
        let target = one.text("targetContainerName");
        if !target.is_empty() && !others.contains(target) {
            errors.not_found(format!("{path}.targetContainerName"), target);
        }
        for field in NEVER {
            let given = match one.at(field) {
                Value::Object(map) => !map.is_empty(),
                Value::Array(items) => !items.is_empty(),
                other => !other.is_null(),
            };
            if given {
                let why = "cannot be set for an Ephemeral Container";
                errors.forbidden(format!("{path}.{field}"), why);
            }
        }
    }
}

/// What is there stays, as it is.
pub(super) fn update(errors: &mut Errors, old: &Value, new: &Value) {
    const PATH: &str = "spec.ephemeralContainers";
    let now = new.at("spec").list("ephemeralContainers");
    for before in old.at("spec").list("ephemeralContainers") {
        let name = quoted(before.text("name"));
        match now.iter().find(|one| one.text("name") == before.text("name")) {
            None => {
                let why = format!("existing ephemeral containers {name} may not be removed\n");
                errors.forbidden(PATH, why);
            }
            Some(one) if one != before => {
                let why = format!("existing ephemeral containers {name} may not be changed\n");
                errors.forbidden(PATH, why);
            }
            Some(_) => {}
        }
    }
}
