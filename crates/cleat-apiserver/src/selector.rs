//! Label and field selectors: which objects a list, a watch or a rule is about.
//!
//! Parsing and refusals follow Kubernetes; matching works on the JSON of an object and allocates
//! nothing, because it runs once per object and watcher. Sets of labels that are no objects, such
//! as a namespace's, are matched through [`LabelSelector::matches_labels`].

mod fields;
mod labels;
mod lex;
mod object;
mod parse;
mod selectable;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

pub use fields::{FieldSelector, FieldTerm};
pub use labels::{LabelSelector, Operator, Requirement};

/// Both selectors of a request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selector {
    pub labels: LabelSelector,
    pub fields: FieldSelector,
}

impl Selector {
    pub fn matches(&self, object: &Value) -> bool {
        self.fields.matches(object) && self.labels.matches(object)
    }

    /// True when nothing is left out, so that no object need be looked at.
    pub fn is_everything(&self) -> bool {
        self.labels.is_everything() && self.fields.is_everything()
    }

    /// The one name that can match, if the fields say so.
    pub fn single_name(&self) -> Option<&str> {
        self.fields.exact("metadata.name")
    }
}

/// The labels of an object.
fn labels_of(object: &Value) -> Option<&Map<String, Value>> {
    object.get("metadata")?.get("labels")?.as_object()
}
