use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{Thing, whole};
use crate::apply::fields::FieldSet;
use crate::apply::last_applied;

fn text() -> impl Strategy<Value = Value> {
    "[a-c]".prop_map(Value::from)
}

fn object<S: Strategy<Value = Value> + 'static>(
    fields: Vec<(&'static str, S)>,
) -> impl Strategy<Value = Value> {
    let fields: Vec<_> =
        fields.into_iter().map(|(name, value)| (Just(name), proptest::option::of(value))).collect();
    fields.prop_map(|fields| {
        let present = fields.into_iter().filter_map(|(name, value)| Some((name.into(), value?)));
        Value::Object(present.collect::<Map<_, _>>())
    })
}

/// A spec that is of its type.
pub(super) fn spec() -> impl Strategy<Value = Value> {
    let port = (1i64..3, proptest::option::of(prop_oneof!["TCP", "UDP"]), text()).prop_map(
        |(port, protocol, name)| match protocol {
            Some(protocol) => json!({"port": port, "protocol": protocol, "name": name}),
            None => json!({"port": port, "name": name}),
        },
    );
    let unique = |list: Vec<Value>, key: fn(&Value) -> String| {
        let mut seen = std::collections::BTreeSet::new();
        list.into_iter().filter(|item| seen.insert(key(item))).collect::<Vec<_>>()
    };
    let ports = proptest::collection::vec(port, 0..3).prop_map(move |ports| {
        Value::from(unique(ports, |port| {
            format!("{}{}", port["port"], port.get("protocol").unwrap_or(&json!("TCP")))
        }))
    });
    let item = ("[m-p]", proptest::option::of(text()), proptest::option::of(ports)).prop_map(
        |(name, value, ports)| {
            let mut item = json!({"name": name});
            if let Some(value) = value {
                item["value"] = value;
            }
            if let Some(ports) = ports {
                item["ports"] = ports;
            }
            item
        },
    );
    let items = proptest::collection::vec(item, 0..4)
        .prop_map(move |items| Value::from(unique(items, |item| item["name"].to_string())));
    let set = proptest::collection::vec(text(), 0..4)
        .prop_map(move |set| Value::from(unique(set, Value::to_string)));
    let list = proptest::collection::vec(text(), 0..3).prop_map(Value::from);
    let map = proptest::collection::btree_map("[k-m]", text(), 0..3)
        .prop_map(|map| Value::Object(map.into_iter().collect()));
    let pair = || object(vec![("a", text().boxed()), ("b", text().boxed())]).boxed();
    let maps = proptest::collection::btree_map("[k-m]", pair(), 0..3)
        .prop_map(|map| Value::Object(map.into_iter().collect()));
    object(vec![
        ("text", text().boxed()),
        ("count", (0i64..3).prop_map(Value::from).boxed()),
        ("either", prop_oneof![text(), Just(json!(1))].boxed()),
        ("items", items.boxed()),
        ("set", set.boxed()),
        ("list", list.boxed()),
        ("atom", pair()),
        ("map", map.boxed()),
        ("maps", maps.boxed()),
        ("nested", object(vec![("inner", pair())]).boxed()),
        ("any", anything(false).boxed()),
    ])
}

/// Any JSON at all, or only such as looks like an object of our kind.
fn anything(names: bool) -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-2i64..3).prop_map(Value::from),
        text(),
    ];
    let key = if names {
        let known = [
            "spec",
            "metadata",
            "items",
            "set",
            "ports",
            "name",
            "port",
            "map",
            "maps",
            "atom",
            "labels",
            "annotations",
            "managedFields",
            "ownerReferences",
            "status",
        ];
        proptest::sample::select(known.to_vec()).prop_map(str::to_owned).boxed()
    } else {
        "[a-d]".boxed()
    };
    leaf.prop_recursive(4, 32, 4, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map(key.clone(), inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// A value without nulls, empty maps and empty lists, and without order in lists: nobody manages an
/// empty list, what loses its last field becomes null, and an older order may prevail.
fn bare(value: &Value) -> Value {
    let hollow = |value: &Value| match value {
        Value::Null => true,
        Value::Object(map) => map.is_empty(),
        Value::Array(list) => list.is_empty(),
        _ => false,
    };
    match value {
        Value::Object(map) => map
            .iter()
            .map(|(key, value)| (key.clone(), bare(value)))
            .filter(|(_, value)| !hollow(value))
            .collect(),
        Value::Array(list) => {
            let mut list: Vec<Value> = list.iter().map(bare).collect();
            list.sort_by_key(Value::to_string);
            list.into()
        }
        scalar => scalar.clone(),
    }
}

fn fields() -> impl Strategy<Value = Value> {
    let key = prop_oneof![
        "f:[a-c]{0,2}",
        Just("k:{\"name\":\"a\"}".to_owned()),
        Just("k:{\"port\":1,\"protocol\":\"TCP\"}".to_owned()),
        Just("v:\"a\"".to_owned()),
        Just("v:1".to_owned()),
        "i:[0-9]",
    ];
    let leaf = Just(json!({}));
    leaf.prop_recursive(4, 32, 4, move |inner| {
        (proptest::collection::btree_map(key.clone(), inner, 1..4), any::<bool>()).prop_map(
            |(map, member)| {
                let mut map: Map<String, Value> = map.into_iter().collect();
                if member {
                    map.insert(".".to_owned(), json!({}));
                }
                Value::Object(map)
            },
        )
    })
    .prop_map(|mut set| {
        // The whole object is nobody's.
        set.as_object_mut().unwrap().remove(".");
        set
    })
}

proptest! {
    #[test]
    fn sets_round_trip(document in fields()) {
        let set = FieldSet::from_json(&document).unwrap();
        prop_assert_eq!(set.to_json(), document);
    }

    #[test]
    fn set_algebra_holds(a in fields(), b in fields()) {
        let (a, b) = (FieldSet::from_json(&a).unwrap(), FieldSet::from_json(&b).unwrap());
        let both = a.clone().union(b.clone());
        prop_assert!(a.is_subset(&both) && b.is_subset(&both));
        prop_assert_eq!(&both, &b.clone().union(a.clone()));
        let common = a.intersection(&b);
        prop_assert!(common.is_subset(&a) && common.is_subset(&b));
        prop_assert_eq!(a.clone().difference(&b).union(common), a.clone());
        prop_assert!(a.clone().difference(&a).is_empty());
        prop_assert!(both.paths().iter().all(|path| both.contains(path)));
    }

    #[test]
    fn applying_twice_is_applying_once(other in spec(), config in spec(), force in any::<bool>()) {
        let mut thing = Thing::new();
        thing.update("u", other);
        if thing.try_apply("a", config.clone(), force).is_ok() {
            let once = thing.live.clone();
            thing.apply("a", config);
            prop_assert_eq!(thing.live, once);
        }
    }

    #[test]
    fn disjoint_configurations_commute(a in spec(), b in spec()) {
        // Everything the one leaves out is for the other.
        let b: Map<String, Value> = b.as_object().unwrap().iter()
            .filter(|(key, _)| a.get(key).is_none())
            .map(|(key, value)| (key.clone(), value.clone())).collect();
        let (mut one, mut other) = (Thing::new(), Thing::new());
        one.apply("a", a.clone());
        one.apply("b", Value::Object(b.clone()));
        other.apply("b", Value::Object(b));
        other.apply("a", a);
        prop_assert_eq!(one.spec(), other.spec());
        prop_assert_eq!(one.managed("a"), other.managed("a"));
        prop_assert_eq!(one.managed("b"), other.managed("b"));
    }

    #[test]
    fn a_sole_applier_gets_what_it_asks_for(first in spec(), second in spec()) {
        let mut thing = Thing::new();
        thing.apply("a", first);
        thing.apply("a", second.clone());
        let (live, wanted) = (json!({"spec": thing.spec()}), json!({"spec": second}));
        prop_assert_eq!(bare(&live), bare(&wanted));
    }

    #[test]
    fn nothing_panics(live in anything(true), new in anything(true), config in anything(true)) {
        for mut thing in [Thing::new(), Thing::schemaless()] {
            thing.live = live.is_object().then(|| whole(live.clone()));
            if new.is_object() {
                thing.update_object("u", "", whole(new.clone()));
            } else {
                thing.update_object("u", "", new.clone());
            }
            if config.is_object() {
                let _ = thing.try_apply_object("kubectl", &whole(config.clone()), true);
            }
            let _ = thing.try_apply_object("a", &config, false);
        }
        let mut object = new;
        let manager = crate::apply::Manager {
            name: "kubectl", subresource: "", api_version: "v1", time: super::TIME,
        };
        last_applied::renew(&mut object, &config, &manager);
    }
}
