//! A manifest laid over an object.

use alloc::string::String;
use alloc::vec::Vec;

use serde_json::{Map, Value};

use super::body;
use super::compare::{Comparison, Place};
use super::kinds::{self, Kind, Treatment};
use super::managed::Managed;

#[derive(Clone, Copy)]
pub(super) struct Laying<'a> {
    kind: Kind<'a>,
    comparison: Comparison,
}

/// One place in an object, and what is said of it.
struct Layers<'a, T: ?Sized> {
    place: Place<'a>,
    existing: &'a T,
    wanted: &'a T,
    previous: Option<&'a T>,
    managed: Managed<'a>,
}

impl<'a> Laying<'a> {
    pub(super) fn of(kind: Kind<'a>) -> Self {
        Self { kind, comparison: Comparison::of(kind) }
    }

    /// The body of the object to put.
    pub(super) fn over(
        self,
        existing: &Map<String, Value>,
        wanted: &Map<String, Value>,
        previous: Option<&Map<String, Value>>,
        managed: &Managed<'_>,
    ) -> Map<String, Value> {
        let of = |object: &Map<String, Value>| -> Map<String, Value> {
            body(object).map(|(key, value)| (key.clone(), value.clone())).collect()
        };
        if let Treatment::Closed(_) = self.kind.treatment() {
            return of(wanted);
        }
        let mut laid = self.map(Layers {
            place: self.comparison.root(),
            existing: &of(existing),
            wanted: &of(wanted),
            previous: previous.map(of).as_ref(),
            managed: managed.clone(),
        });
        if self.kind.is("", "Service") {
            service(&mut laid, wanted);
        }
        laid
    }

    fn map(self, layers: Layers<'_, Map<String, Value>>) -> Map<String, Value> {
        let Layers { place, existing, wanted, previous, managed } = layers;
        let stated = |key: &str| wanted.get(key).is_some_and(|value| !value.is_null());
        let mut laid = Map::new();
        for (key, value) in existing.iter().filter(|(key, _)| !stated(key)) {
            let before = previous.and_then(|previous| previous.get(key));
            let lingers = before.is_some_and(|before| {
                self.comparison.remains(place.field(key), Some(value), None, before)
            });
            let ours = managed.only_ours(key) && key != "replicas" && !self.kind.keeps(key);
            if !lingers && !ours {
                laid.insert(key.clone(), value.clone());
            }
        }
        for (key, wanted) in wanted.iter().filter(|(key, _)| stated(key)) {
            let value = match existing.get(key) {
                None | Some(Value::Null) => wanted.clone(),
                Some(existing) => self.value(Layers {
                    place: place.field(key),
                    existing,
                    wanted,
                    previous: previous.and_then(|previous| previous.get(key)),
                    managed: managed.field(key),
                }),
            };
            laid.insert(key.clone(), value);
        }
        laid
    }

    fn value(self, layers: Layers<'_, Value>) -> Value {
        let Layers { place, existing, wanted, previous, managed } = layers;
        match (existing, wanted) {
            (Value::Object(existing), Value::Object(wanted))
                if !kinds::is_whole(place.is_typed(), place.key) =>
            {
                let previous = previous.and_then(Value::as_object);
                Value::Object(self.map(Layers { place, existing, wanted, previous, managed }))
            }
            (Value::Array(existing), Value::Array(wanted)) => {
                let (existing, wanted) = (existing.as_slice(), wanted.as_slice());
                let previous = previous.and_then(Value::as_array).map(Vec::as_slice);
                Value::Array(self.list(Layers { place, existing, wanted, previous, managed }))
            }
            _ if self.stays(place, existing, wanted, previous) => existing.clone(),
            _ => wanted.clone(),
        }
    }

    /// The list as stated. An element that is as stated stays as it is, with what the server has
    /// added to it; one that is not is stated afresh, but for containers, which others have a say in.
    fn list(self, layers: Layers<'_, [Value]>) -> Vec<Value> {
        let Layers { place, existing, wanted, previous, managed } = layers;
        let place = place.element();
        let containers = place.is_typed()
            && matches!(place.key, "containers" | "initContainers" | "ephemeralContainers");
        let mut laid = Vec::with_capacity(wanted.len());
        for (index, wanted) in wanted.iter().enumerate() {
            let name = wanted.get("name").and_then(Value::as_str);
            let before = previous.and_then(|previous| counterpart(previous, index, name));
            laid.push(match (counterpart(existing, index, name), wanted, name) {
                (Some(Value::Object(existing)), Value::Object(wanted), Some(name))
                    if containers =>
                {
                    let (previous, managed) =
                        (before.and_then(Value::as_object), managed.named(name));
                    Value::Object(self.map(Layers { place, existing, wanted, previous, managed }))
                }
                (Some(existing), wanted, _) if self.stays(place, existing, wanted, before) => {
                    existing.clone()
                }
                _ => wanted.clone(),
            });
        }
        laid
    }

    fn stays(
        self,
        place: Place<'_>,
        existing: &Value,
        wanted: &Value,
        previous: Option<&Value>,
    ) -> bool {
        self.comparison.equal(place, existing, wanted)
            && !previous.is_some_and(|before| {
                self.comparison.remains(place, Some(existing), Some(wanted), before)
            })
    }
}

/// The element of the same name, or without names the one in the same place.
fn counterpart<'v>(list: &'v [Value], index: usize, name: Option<&str>) -> Option<&'v Value> {
    match name {
        None => list.get(index),
        Some(name) => list.iter().find(|other| other.get("name").is_some_and(|it| it == name)),
    }
}

/// Settings of an affinity that is no longer there would be refused.
fn service(laid: &mut Map<String, Value>, wanted: &Map<String, Value>) {
    let stated = wanted.get("spec").and_then(|spec| spec.get("sessionAffinityConfig"));
    let Some(Value::Object(spec)) = laid.get_mut("spec") else { return };
    if stated.is_none() && spec.get("sessionAffinity").is_some_and(|kind| kind == "None") {
        spec.remove("sessionAffinityConfig");
    }
}
