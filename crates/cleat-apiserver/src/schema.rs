//! OpenAPI v3 schemas as Kubernetes uses them: one arena of nodes, shared by everything that needs
//! to know the shape of an object.
//!
//! Built-in kinds and custom resources end up in the same form: pruning, defaulting, validation,
//! server-side apply, strategic merge and the published OpenAPI documents all read it. The arena
//! only holds shapes; what to do with them lives in the modules beside it.

#[cfg(test)]
pub(crate) mod arbitrary;
pub mod cel;
pub mod coerce;
pub mod decode;
pub mod default;
mod emit;
mod load;
mod pattern;
pub mod prune;
pub(crate) mod repeats;
pub mod strict;
pub mod validate;

use std::{collections::BTreeMap, sync::OnceLock};

use regex::Regex;
use serde_json::Value;

pub use load::LoadError;

/// A set of schemas that may refer to each other, even in circles.
#[derive(Clone, Debug, Default)]
pub struct Schemas {
    nodes: Vec<Node>,
    /// Definitions by name, such as `io.k8s.api.core.v1.Pod`.
    names: BTreeMap<Box<str>, Id>,
}

/// A node's place in its arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(u32);

/// A node together with the arena its children live in. Cheap to copy.
#[derive(Clone, Copy, Debug)]
pub struct Schema<'a> {
    arena: &'a Schemas,
    id: Id,
}

/// One schema. Children are [`Id`]s in the same arena; walk them through [`Schema`].
#[derive(Clone, Debug, Default)]
pub struct Node {
    pub kind: Option<Type>,
    pub format: Option<Box<str>>,
    pub title: Option<Box<str>>,
    pub description: Option<Box<str>>,
    pub nullable: bool,
    pub default: Option<Value>,
    pub example: Option<Value>,
    pub enumeration: Option<Vec<Value>>,
    pub bounds: Bounds,
    pub pattern: Option<Box<str>>,
    pub unique_items: bool,
    pub required: Vec<Box<str>>,
    pub properties: BTreeMap<Box<str>, Id>,
    pub additional: Additional,
    pub items: Option<Id>,
    pub all_of: Vec<Id>,
    pub any_of: Vec<Id>,
    pub one_of: Vec<Id>,
    pub not: Option<Id>,
    pub int_or_string: bool,
    pub preserve_unknown_fields: bool,
    pub embedded_resource: bool,
    pub list_type: Option<ListType>,
    pub list_map_keys: Vec<Box<str>>,
    /// `x-kubernetes-map-type: atomic`.
    pub atomic_map: bool,
    /// `x-kubernetes-patch-strategy`, split at commas: `merge`, `replace`, `retainKeys`.
    pub patch_strategy: Vec<Box<str>>,
    pub patch_merge_key: Option<Box<str>>,
    /// What properties say beside the reference they consist of, by name.
    pub refined: BTreeMap<Box<str>, Refined>,
    /// `x-kubernetes-validations`, as written.
    pub rules: Vec<Value>,
    /// `x-kubernetes-group-version-kind`, as written.
    pub group_version_kinds: Vec<Value>,
    /// The definition this node is, or stands for.
    pub name: Option<Box<str>>,
    /// What of this node takes work to prepare, made when first needed.
    prepared: OnceLock<Box<Prepared>>,
}

/// Whether a pattern compiles; the error says why not.
pub(crate) fn check_pattern(pattern: &str) -> Result<(), String> {
    pattern::compile(pattern).map(drop)
}

/// A node's pattern and rules, compiled.
#[derive(Clone, Debug)]
struct Prepared {
    pattern: Option<Result<Regex, String>>,
    rules: Vec<cel::Rule>,
}

impl Node {
    fn prepared(&self) -> &Prepared {
        self.prepared.get_or_init(|| {
            let pattern = self.pattern.as_deref().map(pattern::compile);
            let rules = if self.rules.is_empty() { Vec::new() } else { cel::compile(&self.rules) };
            Box::new(Prepared { pattern, rules })
        })
    }

    fn compiled_pattern(&self) -> Option<&Result<Regex, String>> {
        self.pattern.as_ref().and_then(|_| self.prepared().pattern.as_ref())
    }

    fn compiled_rules(&self) -> &[cel::Rule] {
        if self.rules.is_empty() { &[] } else { &self.prepared().rules }
    }
}

/// What stands beside a reference to a definition and holds for that one property only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refined {
    /// The definition is held by value (it has an empty default): upstream never sees it absent,
    /// only empty.
    pub by_value: bool,
    /// `x-kubernetes-map-type`, where it departs from the definition's.
    pub atomic_map: Option<bool>,
    pub patch_strategy: Vec<Box<str>>,
}

/// JSON types a schema may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
}

impl Type {
    /// As it stands in a schema.
    pub fn name(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
        }
    }
}

/// Numeric, length and count limits.
#[derive(Clone, Debug, Default)]
pub struct Bounds {
    pub minimum: Option<f64>,
    pub maximum: Option<f64>,
    pub exclusive_minimum: bool,
    pub exclusive_maximum: bool,
    pub multiple_of: Option<f64>,
    pub min_length: Option<u64>,
    pub max_length: Option<u64>,
    pub min_items: Option<u64>,
    pub max_items: Option<u64>,
    pub min_properties: Option<u64>,
    pub max_properties: Option<u64>,
}

/// What `additionalProperties` says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Additional {
    /// Not given.
    #[default]
    Absent,
    Boolean(bool),
    Schema(Id),
}

/// `x-kubernetes-list-type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListType {
    Atomic,
    Set,
    Map,
}

impl Schemas {
    /// The definition of that name.
    pub fn named(&self, name: &str) -> Option<Schema<'_>> {
        self.names.get(name).map(|id| self.at(*id))
    }

    /// All definitions in order of name.
    pub fn definitions(&self) -> impl Iterator<Item = (&str, Schema<'_>)> {
        self.names.iter().map(|(name, id)| (&**name, self.at(*id)))
    }

    /// `id` must come from this arena.
    pub fn at(&self, id: Id) -> Schema<'_> {
        Schema { arena: self, id }
    }

    fn push(&mut self, node: Node) -> Id {
        let id = Id(u32::try_from(self.nodes.len()).unwrap_or(u32::MAX));
        self.nodes.push(node);
        id
    }
}

/// What stands in for an id of another arena: it allows everything and knows nothing.
static ANYTHING: Node = Node {
    kind: None,
    format: None,
    title: None,
    description: None,
    nullable: true,
    default: None,
    example: None,
    enumeration: None,
    bounds: Bounds {
        minimum: None,
        maximum: None,
        exclusive_minimum: false,
        exclusive_maximum: false,
        multiple_of: None,
        min_length: None,
        max_length: None,
        min_items: None,
        max_items: None,
        min_properties: None,
        max_properties: None,
    },
    pattern: None,
    unique_items: false,
    required: Vec::new(),
    properties: BTreeMap::new(),
    additional: Additional::Absent,
    items: None,
    all_of: Vec::new(),
    any_of: Vec::new(),
    one_of: Vec::new(),
    not: None,
    int_or_string: false,
    preserve_unknown_fields: true,
    embedded_resource: false,
    list_type: None,
    list_map_keys: Vec::new(),
    atomic_map: false,
    patch_strategy: Vec::new(),
    patch_merge_key: None,
    refined: BTreeMap::new(),
    rules: Vec::new(),
    group_version_kinds: Vec::new(),
    name: None,
    prepared: OnceLock::new(),
};

impl<'a> Schema<'a> {
    pub fn id(self) -> Id {
        self.id
    }

    pub fn node(self) -> &'a Node {
        self.arena.nodes.get(self.id.0 as usize).unwrap_or(&ANYTHING)
    }

    /// The schema of one of the children listed in [`Schema::node`].
    pub fn child(self, id: Id) -> Schema<'a> {
        Schema { arena: self.arena, id }
    }

    /// The schema for the value under `key`: a property, or else what additional ones must be.
    pub fn property(self, key: &str) -> Option<Schema<'a>> {
        let node = self.node();
        match (node.properties.get(key).copied(), node.additional) {
            (Some(id), _) | (None, Additional::Schema(id)) => Some(self.child(id)),
            (None, _) => None,
        }
    }

    /// The schema of every element of a list.
    pub fn items(self) -> Option<Schema<'a>> {
        self.node().items.map(|id| self.child(id))
    }
}
