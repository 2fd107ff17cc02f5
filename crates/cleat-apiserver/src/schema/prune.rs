//! Removing what a structural schema does not know.
//!
//! The metadata of an object, and of the objects embedded in it, is not described by the schema:
//! it stays here and is checked by [`crate::metadata`]. Built-in kinds go through
//! [`super::decode`] instead, which knows the types behind them.

use serde_json::Value;

use super::{Additional, Node, Schema};

/// Fields every object has, whatever its schema says.
const META: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Removes the fields of a whole object that `schema` does not know, and returns their paths in
/// order. Pruning twice removes nothing more.
pub fn prune(value: &mut Value, schema: Schema<'_>) -> Vec<String> {
    let mut pruning = Pruning::default();
    pruning.value(value, Some(schema), true);
    pruning.removed.sort_unstable();
    pruning.removed
}

/// [`prune`] for a value that is no whole object.
pub(crate) fn prune_part(value: &mut Value, schema: Schema<'_>) {
    Pruning::default().value(value, Some(schema), false);
}

#[derive(Default)]
struct Pruning {
    path: String,
    removed: Vec<String>,
}

impl Pruning {
    /// `root` makes the metadata fields known, as `x-kubernetes-embedded-resource` does.
    fn value(&mut self, value: &mut Value, schema: Option<Schema<'_>>, root: bool) {
        let node = schema.map(Schema::node);
        if node.is_some_and(|node| node.preserve_unknown_fields) {
            self.preserving(value, schema, root);
            return;
        }
        let length = self.path.len();
        match value {
            Value::Object(map) => map.retain(|key, value| {
                let embedded = root || node.is_some_and(|node| node.embedded_resource);
                if embedded && META.contains(&key.as_str()) {
                    return true;
                }
                let Some(below) = child(schema, key) else {
                    if length > 0 || !META.contains(&key.as_str()) {
                        self.key(key);
                        self.removed.push(self.path.clone());
                        self.path.truncate(length);
                    }
                    return false;
                };
                self.key(key);
                self.value(value, below, false);
                self.path.truncate(length);
                true
            }),
            Value::Array(items) => {
                let below = schema.and_then(Schema::items);
                for (index, item) in items.iter_mut().enumerate() {
                    self.index(index);
                    self.value(item, below, false);
                    self.path.truncate(length);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// Keeps unknown fields, but prunes below the known ones.
    fn preserving(&mut self, value: &mut Value, schema: Option<Schema<'_>>, root: bool) {
        let Some(node) = schema.map(Schema::node) else { return };
        let length = self.path.len();
        match value {
            Value::Object(map) => {
                for (key, value) in map {
                    if (root || node.embedded_resource) && META.contains(&key.as_str()) {
                        continue;
                    }
                    if let Some(below) = child(schema, key) {
                        self.key(key);
                        self.value(value, below, false);
                        self.path.truncate(length);
                    }
                }
            }
            Value::Array(items) => {
                let below = schema.and_then(Schema::items);
                for (index, item) in items.iter_mut().enumerate() {
                    self.index(index);
                    self.preserving(item, below, false);
                    self.path.truncate(length);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn key(&mut self, key: &str) {
        if !self.path.is_empty() {
            self.path.push('.');
        }
        self.path.push_str(key);
    }

    fn index(&mut self, index: usize) {
        self.path.push_str(&format!("[{index}]"));
    }
}

/// What is known of the value under `key`: nothing (`None`), that it may be there (`Some(None)`),
/// or its schema.
fn child<'a>(schema: Option<Schema<'a>>, key: &str) -> Option<Option<Schema<'a>>> {
    let schema = schema?;
    let Node { properties, additional, .. } = schema.node();
    match (properties.get(key), additional) {
        (Some(id), _) | (None, Additional::Schema(id)) => Some(Some(schema.child(*id))),
        (None, Additional::Boolean(_)) => Some(None),
        (None, Additional::Absent) => None,
    }
}

#[cfg(test)]
mod tests;
