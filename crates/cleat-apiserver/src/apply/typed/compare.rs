//! What changed from one object to another, field by field.

use serde_json::Value;

use super::{elements_in, fields_in, identify};
use crate::apply::element::{Element, equal};
use crate::apply::fields::{FieldSet, Node};
use crate::apply::shape::{Form, ListForm, MapForm, Shape};

/// Which fields appeared, changed and went. No field is in two of them.
#[derive(Debug, Default)]
pub(in crate::apply) struct Comparison {
    pub(in crate::apply) added: FieldSet,
    pub(in crate::apply) modified: FieldSet,
    pub(in crate::apply) removed: FieldSet,
}

impl Comparison {
    /// What the author of the change now owns.
    pub(in crate::apply) fn into_written(self) -> FieldSet {
        self.added.union(self.modified)
    }

    pub(in crate::apply) fn without(self, paths: &[&[&str]]) -> Self {
        paths.iter().fold(self, |all, path| Self {
            added: all.added.without(path),
            modified: all.modified.without(path),
            removed: all.removed.without(path),
        })
    }
}

/// Compares two objects of the same type.
pub(in crate::apply) fn compare(old: &Value, new: &Value, shape: Shape<'_>) -> Comparison {
    let Difference { added, modified, removed } = difference(Some(old), Some(new), shape);
    Comparison { added: added.children, modified: modified.children, removed: removed.children }
}

#[derive(Default)]
struct Difference {
    added: Node,
    modified: Node,
    removed: Node,
}

impl Difference {
    fn put_below(self, element: Element, parent: &mut Self) {
        // Most fields differ in nothing, and those that do in one way only.
        if !self.added.is_empty() {
            parent.added.children.insert(element.clone(), self.added);
        }
        if !self.modified.is_empty() {
            parent.modified.children.insert(element.clone(), self.modified);
        }
        if !self.removed.is_empty() {
            parent.removed.children.insert(element, self.removed);
        }
    }
}

fn difference(old: Option<&Value>, new: Option<&Value>, shape: Shape<'_>) -> Difference {
    let mut found = Difference::default();
    let mut leaf = false;
    let (before, after) = (shape.form(old), shape.form(new));
    match (old, new) {
        (None, None) => return found,
        (_, None) => leaf |= differ_as(before, old, new, &mut found),
        (None, _) => leaf |= differ_as(after, old, new, &mut found),
        (Some(_), Some(_)) => {
            if !before.is_like(after) {
                differ_as(before, old, new, &mut found);
            }
            leaf |= differ_as(after, old, new, &mut found);
        }
    }
    if !leaf {
        found.added.member |= old.is_none();
        found.removed.member |= new.is_none();
    }
    found
}

/// Compares two values as being of one form. Returns whether they were taken as leaves.
fn differ_as(
    form: Form<'_>,
    old: Option<&Value>,
    new: Option<&Value>,
    found: &mut Difference,
) -> bool {
    match form {
        Form::List(form) if !form.is_atomic() => {
            let (left, right) = (elements_in(old), elements_in(new));
            if !left.is_empty() || !right.is_empty() {
                differ_in_elements(form, left, right, found);
                return false;
            }
        }
        // Two empty values are leaves, so that null and empty are told apart.
        Form::Map(form)
            if !(form.atomic || fields_in(old).is_empty() && fields_in(new).is_empty()) =>
        {
            differ_in_fields(form, old, new, found);
            return false;
        }
        _ => {}
    }
    match (old, new) {
        (None, _) => found.added.member = true,
        (_, None) => found.removed.member = true,
        (Some(old), Some(new)) => found.modified.member |= !equal(old, new),
    }
    true
}

fn differ_in_fields(
    form: MapForm<'_>,
    old: Option<&Value>,
    new: Option<&Value>,
    found: &mut Difference,
) {
    let is_map = |side: Option<&Value>| side.is_some_and(Value::is_object);
    let (was_map, is_map) = (is_map(old), is_map(new));
    let (left, right) = (fields_in(old), fields_in(new));
    let mut visit = |name: &str, old: Option<&Value>, new: Option<&Value>| {
        let (old, new) = match (old, new) {
            (None, Some(_)) if was_map => (form.stand_in(name, new), new),
            (Some(_), None) if is_map => (old, form.stand_in(name, old)),
            both => both,
        };
        let shape = form.field_or_other(name).unwrap_or(Shape::Opaque);
        let below = difference(old, new, shape);
        below.put_below(Element::field(name), found);
    };
    let mut rest = right.iter().peekable();
    for (name, value) in left {
        while let Some((earlier, value)) = rest.next_if(|(other, _)| *other < name) {
            visit(earlier, None, Some(value));
        }
        let same = rest.next_if(|(other, _)| *other == name);
        visit(name, Some(value), same.map(|(_, value)| value));
    }
    for (name, value) in rest {
        visit(name, None, Some(value));
    }
}

fn differ_in_elements(form: ListForm<'_>, old: &[Value], new: &[Value], found: &mut Difference) {
    let old = by_identity(form, old);
    let new = by_identity(form, new);
    let mut rest = new.into_iter().peekable();
    let mut visit = |element: Element, old: &[&Value], new: &[&Value]| {
        let mut below = Difference::default();
        match (old, new) {
            ([], [] | [_]) | ([_], [] | [_]) => {
                below = difference(old.first().copied(), new.first().copied(), form.element);
            }
            // Repeated elements count as one leaf.
            ([_, _, ..], [_, _, ..]) => {
                let same = old.len() == new.len()
                    && old.iter().zip(new).all(|(left, right)| equal(left, right));
                below.modified.member = !same;
            }
            ([_, _, ..], _) => {
                if let [only] = new {
                    below = difference(None, Some(only), form.element);
                }
                below.removed.member = true;
            }
            (_, [_, _, ..]) => {
                if let [only] = old {
                    below = difference(Some(only), None, form.element);
                }
                below.added.member = true;
            }
        }
        below.put_below(element, found);
    };
    for (element, values) in old {
        while let Some((earlier, values)) = rest.next_if(|(other, _)| *other < element) {
            visit(earlier, &[], &values);
        }
        let same = rest.next_if(|(other, _)| *other == element);
        visit(element, &values, &same.map(|(_, values)| values).unwrap_or_default());
    }
    for (element, values) in rest {
        visit(element, &[], &values);
    }
}

/// The elements of a list, sorted by identity, equals in their order.
fn by_identity<'v>(form: ListForm<'_>, list: &'v [Value]) -> Vec<(Element, Vec<&'v Value>)> {
    let mut named: Vec<(Element, &Value)> =
        list.iter().filter_map(|item| Some((identify(item, form).ok()?, item))).collect();
    named.sort_by(|(left, _), (right, _)| left.cmp(right));
    let mut grouped: Vec<(Element, Vec<&Value>)> = Vec::with_capacity(named.len());
    for (element, item) in named {
        match grouped.last_mut() {
            Some((last, items)) if *last == element => items.push(item),
            _ => grouped.push((element, vec![item])),
        }
    }
    grouped
}
