//! The small universe that sequences are about: four kinds, and what is in their objects.
//!
//! Deliberately absent: kinds that a real cluster's controllers write to (deployments, jobs, services
//! with their few addresses). What they do comes at its own time, and no two runs would be alike.

use serde_json::{Map, Value, json};

use super::dice::Dice;

/// What keeps an object until somebody removes it.
pub(crate) const HOLD: &str = "example.com/hold";

/// Names of objects; more often the first, so that requests meet.
pub(crate) const NAMES: [&str; 6] = ["a", "a", "a", "b", "b", "c"];

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    #[default]
    ConfigMap,
    Secret,
    StatefulSet,
    /// The custom kind of `shared/widgets.yaml`, with schema, defaults, status and scale.
    Widget,
}

impl Kind {
    pub(crate) const ALL: [Self; 4] =
        [Self::ConfigMap, Self::Secret, Self::StatefulSet, Self::Widget];

    /// The kind that a path is about, and what follows the path of its collection.
    pub(crate) fn of(path: &str) -> Option<(Self, &str)> {
        Self::ALL.into_iter().find_map(|kind| Some((kind, path.strip_prefix(kind.path())?)))
    }

    /// The collection, as a template.
    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::ConfigMap => "<core>/configmaps",
            Self::Secret => "<core>/secrets",
            Self::StatefulSet => "<apps>/statefulsets",
            Self::Widget => "<widgets>",
        }
    }

    pub(crate) fn plural(self) -> &'static str {
        match self {
            Self::ConfigMap => "configmaps",
            Self::Secret => "secrets",
            Self::StatefulSet => "statefulsets",
            Self::Widget => "widgets",
        }
    }

    pub(crate) fn custom(self) -> bool {
        self == Self::Widget
    }

    /// Whether its objects have the subresources `status` and `scale`.
    pub(crate) fn subresources(self) -> bool {
        matches!(self, Self::StatefulSet | Self::Widget)
    }

    /// What every body says: which version of which kind, and which object.
    pub(crate) fn identity(self, name: &str) -> Map<String, Value> {
        let (version, kind) = match self {
            Self::ConfigMap => ("v1", "ConfigMap"),
            Self::Secret => ("v1", "Secret"),
            Self::StatefulSet => ("apps/v1", "StatefulSet"),
            Self::Widget => ("<api>", "Widget"),
        };
        object(json!({"apiVersion": version, "kind": kind, "metadata": {"name": name}}))
    }

    /// A whole object without any fault.
    pub(crate) fn whole(self, name: &str, dice: &mut Dice) -> Value {
        let mut whole = self.identity(name);
        if let Some(Value::Object(metadata)) = whole.get_mut("metadata") {
            metadata.extend(marks(dice));
        }
        whole.extend(match self {
            Self::StatefulSet => stateful_set(dice),
            other => other.content(dice),
        });
        Value::Object(whole)
    }

    /// Some of an object, without its identity: what a patch may say, or somebody apply.
    pub(crate) fn part(self, dice: &mut Dice) -> Map<String, Value> {
        let mut part = self.content(dice);
        let marks = marks(dice);
        if !marks.is_empty() {
            part.insert("metadata".to_owned(), Value::Object(marks));
        }
        part
    }

    /// The smallest object there is.
    pub(crate) fn smallest(self, name: &str) -> Value {
        let mut smallest = self.identity(name);
        if self == Self::StatefulSet {
            smallest.extend(object(json!({"spec": {
                "serviceName": "s",
                "selector": {"matchLabels": {"app": "x"}},
                "template": {"metadata": {"labels": {"app": "x"}},
                    "spec": {"containers": [{"name": "main", "image": "one"}]}},
            }})));
        }
        Value::Object(smallest)
    }

    fn content(self, dice: &mut Dice) -> Map<String, Value> {
        match self {
            Self::ConfigMap => config_map(dice),
            Self::Secret => secret(dice),
            Self::StatefulSet => stateful_set_part(dice),
            Self::Widget => widget(dice),
        }
    }

    /// What its status may say.
    pub(crate) fn status(self, dice: &mut Dice) -> Value {
        let replicas = dice.roll(4);
        match self {
            Self::Widget => match dice.roll(3) {
                0 => json!({"phase": dice.of(&["Good", "Bad"])}),
                1 => json!({"phase": "Good", "replicas": replicas}),
                _ => json!({"replicas": replicas, "selector": "app=x"}),
            },
            _ => match dice.roll(3) {
                0 => json!({"replicas": replicas}),
                1 => json!({"replicas": replicas, "observedGeneration": 1}),
                _ => json!({"replicas": replicas, "conditions": [
                    {"type": dice.of(&["Fine", "Known"]), "status": dice.of(&["True", "False"])}]}),
            },
        }
    }

    /// A place for JSON patches, and what may be put there.
    pub(crate) fn place(self, dice: &mut Dice) -> (&'static str, Value) {
        let common = [
            ("/metadata/labels/tier", json!("db")),
            ("/metadata/labels", json!({"env": "prod"})),
            ("/metadata/annotations", json!({"note": "one"})),
        ];
        let own = match self {
            Self::ConfigMap => [
                ("/data/k", json!("patched")),
                ("/data", json!({"l": "patched"})),
                ("/binaryData", json!({"b": "AAE="})),
                ("/immutable", json!(true)),
            ],
            Self::Secret => [
                ("/data/k", json!("cGF0Y2hlZA==")),
                ("/data", json!({"l": "cGF0Y2hlZA=="})),
                ("/type", json!("example.com/kind")),
                ("/immutable", json!(true)),
            ],
            Self::StatefulSet => [
                ("/spec/replicas", json!(2)),
                ("/spec/template/spec/containers/0/image", json!("patched")),
                ("/spec/template/spec/containers/-", json!({"name": "more", "image": "two"})),
                ("/spec/template/spec/containers/0/env", json!([{"name": "A", "value": "1"}])),
            ],
            Self::Widget => [
                ("/spec/color", json!("blue")),
                ("/spec/tags/-", json!("patched")),
                ("/spec/parts/0", json!({"name": "wheel", "count": 4})),
                ("/spec/free/x", json!({"y": [1, 2]})),
            ],
        };
        if dice.one_in(3) { dice.of(&common) } else { dice.of(&own) }
    }
}

/// Labels, annotations and a finalizer, or none of them.
fn marks(dice: &mut Dice) -> Map<String, Value> {
    let mut marks = Map::new();
    if dice.one_in(2) {
        let mut labels = Map::new();
        labels.insert("tier".to_owned(), json!(dice.of(&["web", "db"])));
        if dice.one_in(2) {
            labels.insert("env".to_owned(), json!(dice.of(&["prod", "test"])));
        }
        marks.insert("labels".to_owned(), Value::Object(labels));
    }
    if dice.one_in(5) {
        marks.insert("annotations".to_owned(), json!({"note": dice.of(&["one", "two"])}));
    }
    if dice.one_in(10) {
        marks.insert("finalizers".to_owned(), json!([HOLD]));
    }
    marks
}

/// Some of the keys with one of the values each.
fn entries(dice: &mut Dice, keys: &[&str], values: &[&str]) -> Value {
    let mut entries = Map::new();
    for key in keys {
        if dice.one_in(2) {
            entries.insert((*key).to_owned(), json!(dice.of(values)));
        }
    }
    Value::Object(entries)
}

fn config_map(dice: &mut Dice) -> Map<String, Value> {
    let mut content = Map::new();
    content.insert("data".to_owned(), entries(dice, &["k", "l", "m"], &["v", "w", "x"]));
    if dice.one_in(8) {
        content.insert("binaryData".to_owned(), json!({"b": "AAE="}));
    }
    if dice.one_in(16) {
        content.insert("immutable".to_owned(), json!(true));
    }
    content
}

fn secret(dice: &mut Dice) -> Map<String, Value> {
    let mut content = Map::new();
    content.insert("data".to_owned(), entries(dice, &["k", "l", "m"], &["dg==", "dw==", "eA=="]));
    if dice.one_in(4) {
        content.insert("stringData".to_owned(), entries(dice, &["l", "n"], &["v", "w"]));
    }
    if dice.one_in(6) {
        content.insert("type".to_owned(), json!(dice.of(&["Opaque", "example.com/kind"])));
    }
    if dice.one_in(16) {
        content.insert("immutable".to_owned(), json!(true));
    }
    content
}

fn stateful_set(dice: &mut Dice) -> Map<String, Value> {
    let mut spec = Map::new();
    spec.insert("serviceName".to_owned(), json!("s"));
    spec.insert("selector".to_owned(), json!({"matchLabels": {"app": "x"}}));
    spec.insert(
        "template".to_owned(),
        json!({"metadata": {"labels": {"app": "x"}}, "spec": {"containers": containers(dice)}}),
    );
    if dice.one_in(2) {
        spec.insert("replicas".to_owned(), json!(dice.roll(4)));
    }
    if dice.one_in(6) {
        spec.insert("minReadySeconds".to_owned(), json!(5));
    }
    if dice.one_in(8) {
        spec.insert("updateStrategy".to_owned(), json!({"type": "OnDelete"}));
    }
    object(json!({"spec": spec}))
}

fn stateful_set_part(dice: &mut Dice) -> Map<String, Value> {
    object(match dice.roll(4) {
        0 => json!({"spec": {"replicas": dice.roll(4)}}),
        1 => json!({"spec": {"minReadySeconds": dice.roll(10)}}),
        2 => json!({"spec": {"template": {"metadata": {"annotations": {
            "note": dice.of(&["one", "two"])}}}}}),
        _ => json!({"spec": {"template": {"spec": {"containers": containers(dice)}}}}),
    })
}

fn containers(dice: &mut Dice) -> Value {
    let mut main = object(json!({"name": "main", "image": dice.of(&["one", "two"])}));
    if dice.one_in(3) {
        let name = dice.of(&["A", "B"]);
        main.insert("env".to_owned(), json!([{"name": name, "value": dice.of(&["1", "2"])}]));
    }
    if dice.one_in(4) {
        let port = if dice.one_in(2) { 80 } else { 8080 };
        main.insert("ports".to_owned(), json!([{"containerPort": port}]));
    }
    if dice.one_in(3) { json!([main, {"name": "side", "image": "two"}]) } else { json!([main]) }
}

fn widget(dice: &mut Dice) -> Map<String, Value> {
    let mut spec = Map::new();
    let mut maybe = |dice: &mut Dice, sides: usize, name: &str, value: Value| {
        if dice.one_in(sides) {
            spec.insert(name.to_owned(), value);
        }
    };
    let color = json!(dice.of(&["red", "green", "blue"]));
    maybe(dice, 2, "color", color);
    let size = json!(1 + dice.roll(100));
    maybe(dice, 3, "size", size);
    let replicas = json!(dice.roll(4));
    maybe(dice, 4, "replicas", replicas);
    let tags = dice.of(&[json!(["x"]), json!(["y", "x"]), json!([])]);
    maybe(dice, 4, "tags", tags);
    let parts = dice.of(&[
        json!([{"name": "wheel"}]),
        json!([{"name": "wheel", "count": 3}, {"name": "door"}]),
        json!([]),
    ]);
    maybe(dice, 4, "parts", parts);
    let pair = dice.of(&[json!({"left": "l"}), json!({"left": "m", "right": "r"})]);
    maybe(dice, 5, "pair", pair);
    let free = dice.of(&[json!({"x": 1}), json!({"x": {"y": null}, "z": []})]);
    maybe(dice, 6, "free", free);
    object(json!({"spec": spec}))
}

/// The fields of what is written as an object.
pub(crate) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}
