//! Sets of fields: a trie of path elements, some of whose nodes are members.
//!
//! A member does not imply its parent or its children; managedFields records each for itself. The
//! operations are upstream's, including where they surprise: [`FieldSet::subtract`] leaves the
//! children of what it removes, [`FieldSet::without`] takes them too.

use std::cmp::Ordering;

use serde_json::{Map, Value, json};
use thiserror::Error;

use super::element::{Element, Unreadable};

/// Deeper sets are refused: no object that deep can be read either.
const DEEPEST: usize = 128;

/// A set of fields of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldSet {
    /// Sorted by element; none without a member in it.
    nodes: Vec<(Element, Node)>,
}

/// What a set knows about one field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) member: bool,
    pub(super) children: FieldSet,
}

/// Why a document is not fieldsV1.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("not a set of fields")]
pub(crate) struct NotFields;

impl Node {
    pub(super) fn member() -> Self {
        Self { member: true, children: FieldSet::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.member && self.children.is_empty()
    }
}

impl FieldSet {
    pub(crate) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// No node may be emptied.
    pub(super) fn nodes_mut(&mut self) -> impl Iterator<Item = (&Element, &mut Node)> {
        self.nodes.iter_mut().map(|(element, node)| (&*element, node))
    }

    pub(super) fn get(&self, element: &Element) -> Option<&Node> {
        let place = self.nodes.binary_search_by(|(other, _)| other.cmp(element)).ok()?;
        self.nodes.get(place).map(|(_, node)| node)
    }

    pub(super) fn get_field(&self, name: &str) -> Option<&Node> {
        let order = |element: &Element| match element {
            Element::Field(other) => (**other).cmp(name),
            _ => Ordering::Greater,
        };
        let place = self.nodes.binary_search_by(|(element, _)| order(element)).ok()?;
        self.nodes.get(place).map(|(_, node)| node)
    }

    /// Adds a node, cheapest in ascending order. An element already there is united with it.
    pub(super) fn insert(&mut self, element: Element, node: Node) {
        if node.is_empty() {
            return;
        }
        if self.nodes.last().is_none_or(|(last, _)| *last < element) {
            self.nodes.push((element, node));
            return;
        }
        match self.nodes.binary_search_by(|(other, _)| other.cmp(&element)) {
            Err(place) => self.nodes.insert(place, (element, node)),
            Ok(place) => {
                if let Some((_, known)) = self.nodes.get_mut(place) {
                    known.member |= node.member;
                    known.children = std::mem::take(&mut known.children).union(node.children);
                }
            }
        }
    }

    pub(super) fn insert_path(&mut self, path: &[Element]) {
        if let [first, rest @ ..] = path {
            let mut node = Node { member: rest.is_empty(), children: Self::default() };
            node.children.insert_path(rest);
            self.insert(first.clone(), node);
        }
    }

    pub(super) fn contains(&self, path: &[Element]) -> bool {
        match path {
            [] => false,
            [last] => self.get(last).is_some_and(|node| node.member),
            [first, rest @ ..] => self.get(first).is_some_and(|node| node.children.contains(rest)),
        }
    }

    /// Whether every member of this set is one of `other`.
    pub(super) fn is_subset(&self, other: &Self) -> bool {
        self.nodes.iter().all(|(element, node)| {
            other.get(element).is_some_and(|theirs| {
                (theirs.member || !node.member) && node.children.is_subset(&theirs.children)
            })
        })
    }

    pub(super) fn union(self, other: Self) -> Self {
        if self.is_empty() {
            return other;
        }
        if other.is_empty() {
            return self;
        }
        let mut nodes = Vec::with_capacity(self.nodes.len().max(other.nodes.len()));
        let mut theirs = other.nodes.into_iter().peekable();
        for (element, mut node) in self.nodes {
            while let Some(earlier) = theirs.next_if(|(other, _)| *other < element) {
                nodes.push(earlier);
            }
            if let Some((_, same)) = theirs.next_if(|(other, _)| *other == element) {
                node.member |= same.member;
                node.children = node.children.union(same.children);
            }
            nodes.push((element, node));
        }
        nodes.extend(theirs);
        Self { nodes }
    }

    /// Members of both.
    pub(super) fn intersection(&self, other: &Self) -> Self {
        self.map_nodes(|element, node| {
            other.get(element).map_or_else(Node::default, |theirs| Node {
                member: node.member && theirs.member,
                children: node.children.intersection(&theirs.children),
            })
        })
    }

    /// Takes out the members of `other`. Children stay although their parent is removed.
    pub(super) fn subtract(&mut self, other: &Self) {
        for (element, theirs) in &other.nodes {
            let Ok(place) = self.nodes.binary_search_by(|(ours, _)| ours.cmp(element)) else {
                continue;
            };
            if let Some((_, node)) = self.nodes.get_mut(place) {
                node.member &= !theirs.member;
                node.children.subtract(&theirs.children);
                if node.is_empty() {
                    self.nodes.remove(place);
                }
            }
        }
    }

    /// Members of this set that are not members of `other`.
    pub(super) fn difference(mut self, other: &Self) -> Self {
        self.subtract(other);
        self
    }

    /// This set without a field and everything below it.
    pub(super) fn without(mut self, path: &[&str]) -> Self {
        if let [first, rest @ ..] = path {
            let element = Element::field(first);
            if let Ok(place) = self.nodes.binary_search_by(|(other, _)| other.cmp(&element)) {
                if rest.is_empty() {
                    self.nodes.remove(place);
                } else if let Some((_, node)) = self.nodes.get_mut(place) {
                    node.children = std::mem::take(&mut node.children).without(rest);
                    if node.is_empty() {
                        self.nodes.remove(place);
                    }
                }
            }
        }
        self
    }

    /// Every node replaced by what `change` makes of it.
    pub(super) fn map_nodes(&self, mut change: impl FnMut(&Element, &Node) -> Node) -> Self {
        let mut nodes = Vec::with_capacity(self.nodes.len());
        for (element, node) in &self.nodes {
            let node = change(element, node);
            if !node.is_empty() {
                nodes.push((element.clone(), node));
            }
        }
        Self { nodes }
    }

    /// Every member's path, the shallow ones of each level first.
    pub(super) fn paths(&self) -> Vec<Vec<Element>> {
        let mut found = Vec::new();
        self.collect_paths(&mut Vec::new(), &mut found);
        found
    }

    fn collect_paths(&self, prefix: &mut Vec<Element>, found: &mut Vec<Vec<Element>>) {
        for (element, node) in &self.nodes {
            if node.member {
                let mut path = prefix.clone();
                path.push(element.clone());
                found.push(path);
            }
        }
        for (element, node) in &self.nodes {
            if !node.children.is_empty() {
                prefix.push(element.clone());
                node.children.collect_paths(prefix, found);
                prefix.pop();
            }
        }
    }

    /// The document managedFields holds under `fieldsV1`.
    pub(crate) fn to_json(&self) -> Value {
        let mut fields = Map::new();
        for (element, node) in &self.nodes {
            let mut below = node.children.to_json();
            if let (true, false, Value::Object(below)) =
                (node.member, node.children.is_empty(), &mut below)
            {
                below.insert(".".to_owned(), json!({}));
            }
            fields.insert(element.encode(), below);
        }
        Value::Object(fields)
    }

    /// Reads what managedFields holds under `fieldsV1`.
    pub(crate) fn from_json(document: &Value) -> Result<Self, NotFields> {
        Ok(read(document, 0)?.children)
    }
}

fn read(document: &Value, depth: usize) -> Result<Node, NotFields> {
    let fields = match document {
        Value::Object(fields) if depth < DEEPEST => fields,
        Value::Null => return Ok(Node::member()),
        _ => return Err(NotFields),
    };
    let mut node = Node::default();
    for (key, below) in fields {
        if key == "." {
            node.member = true;
            continue;
        }
        match Element::parse(key) {
            Ok(element) => node.children.insert(element, read(below, depth + 1)?),
            Err(Unreadable::Unknown) => {}
            Err(Unreadable::Malformed) => return Err(NotFields),
        }
    }
    if node.children.is_empty() {
        node.member = true;
    }
    Ok(node)
}
