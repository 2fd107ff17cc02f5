//! Merging lists: by key, or as sets of primitives, and putting the outcome in order.
//!
//! Order follows upstream: what the patch names stands in the patch's order (or that of its
//! `$setElementOrder`), the rest in the server's, and the two are interleaved by where the server
//! had them.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::refusal::Refusal;
use super::{DIRECTIVE, Field, Strategy, merge_maps, plain};
use crate::quote;

/// Unsorted leftovers are only put in upstream's peculiar order up to this many.
const MOST_INSERTED: usize = 1_000;

/// What the elements of two lists are. Mixed lists are refused.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Elements {
    Maps,
    Primitives,
}

/// Merges two lists whose field has the merge strategy.
pub(super) fn merge(
    original: Vec<Value>,
    patch: Vec<Value>,
    field: Field<'_>,
) -> Result<Vec<Value>, Refusal> {
    if original.is_empty() && patch.is_empty() {
        return Ok(original);
    }
    match elements(&original, &patch)? {
        Elements::Primitives => {
            let mut merged = original.clone();
            merged.extend(patch.iter().cloned());
            deduplicate(&mut merged);
            arrange(merged, &patch, &original, field.merge_key.unwrap_or_default())
        }
        Elements::Maps => {
            let Some(key) = field.merge_key else {
                return Err(Refusal::Other(
                    "cannot merge lists without merge key for struct".into(),
                ));
            };
            let (original, patch) = obey_directives(original, patch, key)?;
            let server_order = keys_of(&original, key);
            let patch_order = keys_of(&patch, key);
            let merged = merge_by_key(original, patch, key, field)?;
            arrange(merged, &patch_order, &server_order, key)
        }
    }
}

/// Merges a list that comes with an explicit order. `None` if there is no such list at all.
pub(super) fn merge_in_order(
    original: Option<Vec<Value>>,
    patch: Option<Vec<Value>>,
    order: &[Value],
    field: Field<'_>,
) -> Result<Option<Vec<Value>>, Refusal> {
    let key = field.merge_key.unwrap_or_default();
    check_order(patch.as_deref().unwrap_or_default(), order, key)?;
    if original.is_none() && patch.is_none() {
        return Ok(None);
    }
    let kind =
        elements(original.as_deref().unwrap_or_default(), patch.as_deref().unwrap_or_default())?;
    let server_order = match (&original, kind) {
        (None, _) => Vec::new(),
        (Some(list), Elements::Primitives) => list.clone(),
        (Some(list), Elements::Maps) => keys_of(list, key),
    };
    let merged = match (original, patch) {
        (Some(original), None) => original,
        (None, Some(patch)) => patch.into_iter().filter_map(plain).collect(),
        (Some(original), Some(patch)) if field.strategy == Strategy::Merge => {
            merge(original, patch, field)?
        }
        (_, patch) => patch.unwrap_or_default(),
    };
    arrange(merged, order, &server_order, key).map(Some)
}

/// Takes the primitives in `doomed` out of a list.
pub(super) fn delete(
    current: &mut Vec<Value>,
    doomed: &[Value],
    field: Field<'_>,
) -> Result<(), Refusal> {
    if current.is_empty() && doomed.is_empty() {
        return Ok(());
    }
    match elements(current, doomed)? {
        Elements::Primitives => {
            let doomed = Places::of(doomed, "");
            current.retain(|value| doomed.find(value).is_none());
        }
        Elements::Maps => {
            *current = merge(std::mem::take(current), doomed.to_vec(), field)?;
        }
    }
    Ok(())
}

/// Carries out `$patch: delete` and `replace` elements and returns what is left to merge.
fn obey_directives(
    mut original: Vec<Value>,
    patch: Vec<Value>,
    key: &str,
) -> Result<(Vec<Value>, Vec<Value>), Refusal> {
    let mut ordinary = Vec::with_capacity(patch.len());
    let mut doomed = Vec::new();
    let mut replace = false;
    for element in patch {
        let map = as_map(&element)?;
        match map.get(DIRECTIVE) {
            None => ordinary.push(element),
            Some(directive) => match directive.as_str() {
                Some("delete") => match map.get(key) {
                    Some(value) => doomed.push(value.clone()),
                    None => return Err(Refusal::no_merge_key(map, key)),
                },
                Some("replace") => replace = true,
                Some("merge") => {
                    let why = "merging lists cannot yet be specified in the patch";
                    return Err(Refusal::Other(why.into()));
                }
                _ => return Err(Refusal::unknown_directive(directive, map)),
            },
        }
    }
    if replace {
        return Ok((ordinary, Vec::new()));
    }
    let doomed = Places::of(&doomed, "");
    original.retain(|element| element.get(key).is_none_or(|value| doomed.find(value).is_none()));
    Ok((original, ordinary))
}

fn merge_by_key(
    mut original: Vec<Value>,
    patch: Vec<Value>,
    key: &str,
    field: Field<'_>,
) -> Result<Vec<Value>, Refusal> {
    let mut places = Places::of(&original, key);
    for element in patch {
        let map = as_map(&element)?;
        let value = map.get(key).ok_or_else(|| Refusal::no_merge_key(map, key))?;
        let place = places.find(value);
        match (place.and_then(|place| original.get_mut(place)), element) {
            (Some(Value::Object(current)), Value::Object(change)) => {
                merge_maps(current, change, field.content)?;
            }
            (_, element) => {
                places.insert(element.get(key), original.len());
                original.push(element);
            }
        }
    }
    Ok(original)
}

/// Sorts `merged`: elements named in `order` by it, the rest by `server_order`, interleaved.
fn arrange(
    merged: Vec<Value>,
    order: &[Value],
    server_order: &[Value],
    key: &str,
) -> Result<Vec<Value>, Refusal> {
    if !key.is_empty() {
        for element in merged.iter().chain(order).chain(server_order) {
            let map = as_map(element)?;
            if !map.contains_key(key) {
                return Err(Refusal::no_merge_key(map, key));
            }
        }
    }
    let named = Places::of(order, key);
    let server = Places::of(server_order, key);
    let identity = |element: &Value| element.get(key).cloned();
    let place = |places: &Places, element: &Value| match key {
        "" => places.find(element),
        _ => identity(element).and_then(|value| places.find(&value)),
    };
    let (from_patch, server_only): (Vec<Value>, Vec<Value>) =
        merged.into_iter().partition(|element| place(&named, element).is_some());
    let from_patch = sort_by_place(from_patch, |element| place(&named, element));
    let server_only = sort_by_place(server_only, |element| place(&server, element));

    let mut out = Vec::with_capacity(from_patch.len() + server_only.len());
    let mut waiting = server_only.into_iter().peekable();
    for element in from_patch {
        let here = place(&server, &element);
        while let Some(earlier) = waiting.next_if(
            |candidate| matches!((place(&server, candidate), here), (Some(l), Some(r)) if l < r),
        ) {
            out.push(earlier);
        }
        out.push(element);
    }
    out.extend(waiting);
    Ok(out)
}

/// Sorts by place. Elements without one move ahead of whatever stands before them, as upstream's
/// comparison makes its insertion sort do.
fn sort_by_place(list: Vec<Value>, place: impl Fn(&Value) -> Option<usize>) -> Vec<Value> {
    let mut placed: Vec<(Option<usize>, Value)> =
        list.into_iter().map(|element| (place(&element), element)).collect();
    if placed.iter().all(|(place, _)| place.is_some()) {
        placed.sort_by_key(|(place, _)| *place);
    } else if placed.len() <= MOST_INSERTED {
        for unsorted in 1..placed.len() {
            let mut at = unsorted;
            while at > 0 && comes_first(&placed, at, at - 1) {
                placed.swap(at, at - 1);
                at -= 1;
            }
        }
    }
    placed.into_iter().map(|(_, element)| element).collect()
}

fn comes_first(placed: &[(Option<usize>, Value)], left: usize, right: usize) -> bool {
    let at = |index: usize| placed.get(index).and_then(|(place, _)| *place);
    match (at(left), at(right)) {
        (Some(left), Some(right)) => left < right,
        _ => true,
    }
}

/// The patch's elements must come in the order that the `$setElementOrder` beside it gives.
fn check_order(patch: &[Value], order: &[Value], key: &str) -> Result<(), Refusal> {
    if patch.is_empty() || order.is_empty() {
        return Ok(());
    }
    if !key.is_empty() {
        patch.iter().try_for_each(|element| as_map(element).map(drop))?;
    }
    // Elements to be deleted have no place. Other directives have none either, but one that is still
    // left when the order is used up is one too many.
    let deleted = |element: &&Value| element.get(DIRECTIVE).is_some_and(|kind| kind == "delete");
    let mut left = patch.iter().filter(|element| !deleted(element)).peekable();
    for expected in order {
        while left.next_if(|element| element.get(DIRECTIVE).is_some()).is_some() {}
        let Some(next) = left.peek() else { break };
        if same(next, expected, key)? {
            left.next();
        }
    }
    if left.peek().is_some() {
        let list = |items: &[Value]| quote::plain(&Value::Array(items.to_vec()));
        return Err(Refusal::Other(format!(
            "The order in patch list:\n{}\n doesn't match {} list:\n{}\n",
            list(patch),
            super::SET_ORDER,
            list(order)
        )));
    }
    Ok(())
}

fn same(left: &Value, right: &Value, key: &str) -> Result<bool, Refusal> {
    if key.is_empty() {
        return Ok(left == right);
    }
    let value = |element| {
        let map = as_map(element)?;
        map.get(key).ok_or_else(|| Refusal::no_merge_key(map, key))
    };
    Ok(value(left)? == value(right)?)
}

fn elements(original: &[Value], patch: &[Value]) -> Result<Elements, Refusal> {
    let mut all = original.iter().chain(patch);
    let Some(first) = all.next() else {
        return Err(Refusal::Other("no elements in any of the given slices".into()));
    };
    if first.is_array() {
        return Err(Refusal::ListOfLists);
    }
    let kind = std::mem::discriminant(first);
    if all.any(|element| std::mem::discriminant(element) != kind) {
        let both = Value::Array(vec![original.to_vec().into(), patch.to_vec().into()]);
        let why = format!("list element types are not identical: {}", quote::plain(&both));
        return Err(Refusal::Other(why));
    }
    Ok(if first.is_object() { Elements::Maps } else { Elements::Primitives })
}

fn as_map(element: &Value) -> Result<&Map<String, Value>, Refusal> {
    element.as_object().ok_or_else(|| Refusal::not_a_map(element))
}

/// Elements reduced to their key, so that an order can be remembered while they are merged.
fn keys_of(list: &[Value], key: &str) -> Vec<Value> {
    list.iter()
        .map(|element| match element.get(key) {
            Some(value) => Value::Object(Map::from_iter([(key.to_owned(), value.clone())])),
            None => element.clone(),
        })
        .collect()
}

fn deduplicate(list: &mut Vec<Value>) {
    let mut seen = Places::default();
    list.retain(|value| {
        let first = seen.find(value).is_none();
        seen.insert(Some(value), 0);
        first
    });
}

/// Where in a list an element stands, by its key, or by itself when there is none.
#[derive(Default)]
struct Places(BTreeMap<String, usize>);

impl Places {
    fn of(list: &[Value], key: &str) -> Self {
        let mut places = Self::default();
        for (place, element) in list.iter().enumerate() {
            places.insert(if key.is_empty() { Some(element) } else { element.get(key) }, place);
        }
        places
    }

    /// The first of equals keeps its place.
    fn insert(&mut self, identity: Option<&Value>, place: usize) {
        if let Some(identity) = identity {
            self.0.entry(identity.to_string()).or_insert(place);
        }
    }

    fn find(&self, identity: &Value) -> Option<usize> {
        self.0.get(&identity.to_string()).copied()
    }
}
