//! What server-side apply does with an object and its type: list its fields, compare it with
//! another, merge a configuration into it, take fields out of it, and check it.
//!
//! All of it is driven by [`Shape`]; none of it knows who manages what. Values that do not fit
//! their type are treated as leaves rather than refused: only [`check`] refuses.

mod check;
mod compare;
mod merge;
mod remove;

use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde_json::{Map, Value};

pub(super) use self::check::check;
pub(super) use self::compare::{Comparison, compare};
pub(super) use self::merge::merge_objects;
pub(super) use self::remove::remove;
use super::element::Element;
use super::fields::{FieldSet, Node};
use super::shape::{Form, Forms, Identity, ListForm, MapForm, Shape};
use crate::quote;

/// Every field an object mentions: its leaves, and all elements of lists and undeclared fields.
pub(super) fn fields_of(value: &Value, shape: Shape<'_>) -> FieldSet {
    node_of(value, shape).children
}

fn node_of(value: &Value, shape: Shape<'_>) -> Node {
    match (shape.form(Some(value)), value) {
        (Form::Scalar(_), _) => Node::member(),
        (Form::List(form), _) if form.is_atomic() => Node::member(),
        (Form::Map(form), _) if form.atomic => Node::member(),
        (Form::List(form), Value::Array(items)) => {
            Node { member: false, children: fields_of_list(items, form) }
        }
        (Form::Map(form), Value::Object(map)) => {
            let mut children = FieldSet::default();
            for (name, value) in map {
                children.insert(Element::field(name), field_node(name, value, form));
            }
            Node { member: false, children }
        }
        _ => Node::default(),
    }
}

fn field_node(name: &str, value: &Value, form: MapForm<'_>) -> Node {
    let declared = form.field(name);
    let Some(shape) = declared.or_else(|| form.field_or_other(name)) else {
        return Node::member();
    };
    let mut node = node_of(value, shape);
    let empty = value.is_null() || value.as_object().is_some_and(Map::is_empty);
    node.member |= empty || declared.is_none();
    node
}

fn fields_of_list(items: &[Value], form: ListForm<'_>) -> FieldSet {
    let named: Vec<(Element, &Value)> =
        items.iter().filter_map(|item| Some((identify(item, form).ok()?, item))).collect();
    let mut seen = BTreeSet::new();
    let mut repeated = BTreeSet::new();
    for (element, _) in &named {
        if !seen.insert(element) {
            repeated.insert(element);
        }
    }
    let mut children = FieldSet::default();
    for (element, item) in &named {
        // Of elements that cannot be told apart only their presence is known.
        let mut node =
            if repeated.contains(element) { Node::default() } else { node_of(item, form.element) };
        node.member = true;
        children.insert(element.clone(), node);
    }
    children
}

/// The fields of what may be a map.
fn fields_in(value: Option<&Value>) -> &Map<String, Value> {
    static NOTHING: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);
    value.and_then(Value::as_object).unwrap_or(&NOTHING)
}

/// The elements of what may be a list.
fn elements_in(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// What tells an element of a list from its siblings, or why nothing does.
fn identify(item: &Value, form: ListForm<'_>) -> Result<Element, String> {
    let keys = match form.identity {
        Identity::Atomic => return Err("invalid indexing of non-associative list".to_owned()),
        Identity::Itself => return identify_by_itself(item),
        Identity::Keys(keys) => keys,
    };
    let map = match item {
        Value::Object(map) => map,
        Value::Null => {
            return Err("associative list with keys may not have a null element".to_owned());
        }
        _ => return Err("associative list with keys may not have non-map elements".to_owned()),
    };
    let mut found: Vec<(Box<str>, Value)> = keys
        .iter()
        .filter_map(|key| {
            let value = map.get(&**key).cloned().or_else(|| form.key_default(key))?;
            Some((key.clone(), value))
        })
        .collect();
    if found.is_empty() {
        let keys: Vec<String> = keys.iter().map(|key| quote::quoted(key)).collect();
        return Err(format!(
            "associative list with keys has an element that omits all key fields [{}] (and doesn't \
             have default values for any key fields)",
            keys.join(" ")
        ));
    }
    found.sort_by(|(left, _), (right, _)| left.cmp(right));
    Ok(Element::Key(found.into()))
}

fn identify_by_itself(item: &Value) -> Result<Element, String> {
    match item {
        Value::Object(_) => {
            Err("associative list without keys has an element that's a map type".to_owned())
        }
        Value::Array(_) => Err("not supported: associative list with lists as elements".to_owned()),
        Value::Null => {
            Err("associative list without keys has an element that's an explicit null".to_owned())
        }
        scalar => Ok(Element::Item(scalar.clone())),
    }
}

/// The type of what an element of a set leads to.
fn below<'a>(element: &Element, forms: &Forms<'a>) -> Option<Shape<'a>> {
    match element {
        Element::Field(name) => forms.map?.field_or_other(name),
        Element::Key(_) => Some(forms.list?.element),
        _ => None,
    }
}

/// The set with all declared fields on the way to a member as members themselves. Sets as recorded
/// leave them out, because their presence follows from their children's.
pub(super) fn with_declared_parents(set: &FieldSet, shape: Option<Shape<'_>>) -> FieldSet {
    let forms = shape.map(Shape::forms);
    set.map_nodes(|element, node| {
        let declared = match (element, forms.and_then(|forms| forms.map)) {
            (Element::Field(name), Some(form)) => form.field(name).is_some(),
            _ => false,
        };
        let shape = forms.and_then(|forms| below(element, &forms));
        Node {
            member: node.member || (declared && !node.children.is_empty()),
            children: with_declared_parents(&node.children, shape),
        }
    })
}

/// Turns ownership of parts into ownership of the whole where a field was granular when the set
/// was recorded and no longer is.
pub(super) fn settle(set: &mut FieldSet, shape: Option<Shape<'_>>) {
    let Some(forms) = shape.map(Shape::forms) else { return };
    for (element, node) in set.nodes_mut() {
        if node.children.is_empty() {
            continue;
        }
        let Some(shape) = below(element, &forms) else { continue };
        match shape.form(None) {
            Form::Map(form) if form.is_deduced() => {}
            Form::Map(form) if form.atomic => *node = Node::member(),
            Form::List(form) if form.is_atomic() => *node = Node::member(),
            Form::Scalar(_) => {}
            Form::Map(_) | Form::List(_) => settle(&mut node.children, Some(shape)),
        }
    }
}
