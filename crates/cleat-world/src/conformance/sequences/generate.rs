//! Draws sequences: the same seed and number always give the same requests.
//!
//! A request may use what an earlier answer said (`<s3/metadata/uid>`). Nothing here knows what a
//! server answers: a request whose value is missing is not sent, on either side.
//!
//! What would make two runs of one server differ is left out: waiting for what a server does by and
//! by, except where the next step waits for its end; reads that may be stale; two faults in one
//! request.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::dice::Dice;
use super::fault;
use super::kind::{HOLD, Kind, NAMES, object};
use super::sequence::{Sequence, Watching, holds, request};
use crate::conformance::case::Step;

/// How clients ask for tables, or for metadata alone.
const FORMS: [&str; 2] = [
    "application/json;as=Table;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
];

/// Seconds that the garbage collector may take to let go of an object.
const COLLECTED: u64 = 60;

/// The sequence with this number in the run of this seed.
pub(crate) fn sequence(seed: u64, index: u64) -> Sequence {
    let mut dice = Dice::new(seed, index);
    let mut kinds = vec![dice.of(&Kind::ALL)];
    if dice.one_in(2) {
        let other = dice.of(&Kind::ALL);
        if !kinds.contains(&other) {
            kinds.push(other);
        }
    }
    let length = 6 + dice.roll(15);
    let mut draft = Draft {
        dice,
        kinds: kinds.clone(),
        steps: Vec::new(),
        shown: BTreeMap::new(),
        held: BTreeSet::new(),
    };
    draft.beginning();
    while draft.steps.len() < length {
        draft.any();
    }
    let watching = draft.dice.of(&Watching::ALL);
    let name = format!("sequences/{seed}-{index}");
    Sequence { name, watched: kinds, watching, steps: draft.steps }
}

/// An object of the sequence.
type Which = (Kind, &'static str);

struct Draft {
    dice: Dice,
    kinds: Vec<Kind>,
    steps: Vec<Step>,
    /// Steps whose answer is the object, if all is well.
    shown: BTreeMap<Which, Vec<String>>,
    /// Objects that may have had a finalizer.
    held: BTreeSet<Which>,
}

impl Draft {
    /// Something must be there to begin with.
    fn beginning(&mut self) {
        for kind in self.kinds.clone() {
            let name = self.dice.of(&NAMES);
            if self.dice.one_in(3) { self.apply((kind, name)) } else { self.create((kind, name)) }
        }
    }

    fn any(&mut self) {
        let which = (self.dice.of(&self.kinds), self.dice.of(&NAMES));
        match self.dice.roll(100) {
            0..=14 => self.create(which),
            15..=19 => self.get(which),
            20..=27 => self.list(which.0),
            28..=39 => self.update(which),
            40..=47 => self.merge(which),
            48..=54 => self.json(which),
            55..=60 => self.strategic(which),
            61..=73 => self.apply(which),
            74..=81 => self.delete(which),
            82..=83 => self.delete_collection(which.0),
            84..=88 => self.status(which),
            89..=90 => self.scale(which),
            91..=93 => self.release(which),
            _ => {
                let step = fault::step(which.0, which.1, &mut self.dice);
                self.push(which, step, Answer::Other);
            }
        }
    }

    fn create(&mut self, which: Which) {
        let body = which.0.whole(which.1, &mut self.dice);
        let options = self.writing();
        let post = Some(with(which.0.path(), &options));
        self.push(which, Step { post, body: Some(body), ..Step::default() }, Answer::Object);
    }

    fn get(&mut self, which: Which) {
        let below = if which.0.subresources() && self.dice.one_in(6) { "/status" } else { "" };
        let get = Some(format!("{}{below}", object_path(which)));
        self.push(which, Step { get, ..Step::default() }, Answer::Object);
    }

    fn list(&mut self, kind: Kind) {
        let mut options = Vec::new();
        match self.dice.roll(6) {
            0 => options.push("labelSelector=tier=web".to_owned()),
            1 => options.push("labelSelector=tier%20in%20(web,db),!env".to_owned()),
            2 => options.push("labelSelector=tier,env!=prod".to_owned()),
            3 => options.push("fieldSelector=metadata.name=a".to_owned()),
            4 => options.push("fieldSelector=metadata.name!=a".to_owned()),
            _ => {}
        }
        if kind == Kind::ConfigMap && !options.iter().any(|option| option.contains("tier")) {
            // The control plane's own config map is not this sequence's business.
            options = vec!["fieldSelector=metadata.name!=kube-root-ca.crt".to_owned()];
        }
        let mut headers = BTreeMap::new();
        if self.dice.one_in(8) {
            headers.insert("accept".to_owned(), self.dice.of(&FORMS).to_owned());
        }
        match self.dice.roll(5) {
            0 | 1 => {
                let limit = format!("limit={}", 1 + self.dice.roll(2));
                options.push(limit);
                let first = self.next_name();
                let get = Some(with(kind.path(), &options));
                let page = Step { get, headers: headers.clone(), ..Step::default() };
                self.push((kind, ""), page, Answer::Other);
                options.push(format!("continue=<{first}/metadata/continue>"));
            }
            2 => {
                let which = (kind, self.dice.of(&NAMES));
                if let Some(revision) = self.reference(which, "resourceVersion") {
                    options.push(format!("resourceVersionMatch=Exact&resourceVersion={revision}"));
                }
            }
            _ => {}
        }
        let get = Some(with(kind.path(), &options));
        self.push((kind, ""), Step { get, headers, ..Step::default() }, Answer::Other);
    }

    fn update(&mut self, which: Which) {
        let mut body = which.0.whole(which.1, &mut self.dice);
        // A custom object is never updated without a revision.
        let insisting = if which.0.custom() { self.dice.roll(5) > 0 } else { self.dice.one_in(2) };
        if insisting {
            self.insist(which, &mut body);
        }
        let options = self.writing();
        let put = Some(with(&object_path(which), &options));
        self.push(which, Step { put, body: Some(body), ..Step::default() }, Answer::Object);
    }

    /// Says which state, or which incarnation, of an object is meant.
    fn insist(&mut self, which: Which, body: &mut Value) {
        let field = if self.dice.one_in(5) { "uid" } else { "resourceVersion" };
        let Some(value) = self.reference(which, field) else { return };
        if let Value::Object(fields) = body {
            let metadata = fields.entry("metadata").or_insert_with(|| json!({}));
            if let Value::Object(metadata) = metadata {
                metadata.insert(field.to_owned(), json!(value));
            }
        }
    }

    fn merge(&mut self, which: Which) {
        let mut part = which.0.part(&mut self.dice);
        if self.dice.one_in(3) {
            let nothing = match (which.0, self.dice.roll(3)) {
                (_, 0) => json!({"metadata": {"labels": {"tier": null}}}),
                (Kind::ConfigMap | Kind::Secret, 1) => json!({"data": {"k": null}}),
                (Kind::ConfigMap | Kind::Secret, _) => json!({"data": null}),
                (Kind::StatefulSet, _) => json!({"spec": {"replicas": null}}),
                (Kind::Widget, 1) => json!({"spec": {"size": null}}),
                (Kind::Widget, _) => json!({"spec": {"color": null, "parts": null}}),
            };
            part.extend(object(nothing));
        }
        let mut body = Value::Object(part);
        if self.dice.one_in(6) {
            self.insist(which, &mut body);
        }
        self.patch(which, "merge", body);
    }

    fn json(&mut self, which: Which) {
        let count = 1 + self.dice.roll(2);
        let body: Value = (0..count).map(|_| self.operation(which.0)).collect();
        self.patch(which, "json-patch", body);
    }

    fn operation(&mut self, kind: Kind) -> Value {
        let (path, value) = kind.place(&mut self.dice);
        match self.dice.roll(10) {
            0..=3 => json!({"op": "add", "path": path, "value": value}),
            4 | 5 => json!({"op": "replace", "path": path, "value": value}),
            6 | 7 => json!({"op": "remove", "path": path}),
            8 => json!({"op": "test", "path": path, "value": value}),
            _ => {
                let op = self.dice.of(&["copy", "move"]);
                json!({"op": op, "from": "/metadata/labels/tier", "path": "/metadata/labels/env"})
            }
        }
    }

    fn strategic(&mut self, which: Which) {
        let body = match (which.0, self.dice.roll(6)) {
            (_, 0) => json!({"metadata": {"labels": {"$patch": "replace", "env": "test"}}}),
            (_, 1) => json!({"metadata": {"$deleteFromPrimitiveList/finalizers": [HOLD]}}),
            (Kind::StatefulSet, 2) => json!({"spec": {"template": {"spec": {"containers": [
                {"name": "side", "$patch": "delete"}]}}}}),
            (Kind::StatefulSet, 3) => json!({"spec": {"template": {"spec": {
                "$setElementOrder/containers": [{"name": "side"}, {"name": "main"}],
                "containers": [{"name": "side", "image": "three"}]}}}}),
            (Kind::ConfigMap | Kind::Secret, 2) => json!({"data": {"k": null}}),
            (kind, _) => Value::Object(kind.part(&mut self.dice)),
        };
        self.patch(which, "strategic", body);
    }

    fn patch(&mut self, which: Which, media: &str, body: Value) {
        let options = self.writing();
        let step = Step {
            patch: Some(with(&object_path(which), &options)),
            media: Some(media.to_owned()),
            body: Some(body),
            ..Step::default()
        };
        self.push(which, step, Answer::Object);
    }

    fn apply(&mut self, which: Which) {
        // Without a whole one, no stateful set is ever made by applying.
        let sides = if which.0 == Kind::StatefulSet { 2 } else { 3 };
        let body = if self.dice.one_in(sides) {
            which.0.whole(which.1, &mut self.dice)
        } else {
            let mut part = which.0.part(&mut self.dice);
            let mut whole = which.0.identity(which.1);
            if let (Some(Value::Object(marks)), Some(Value::Object(metadata))) =
                (part.remove("metadata"), whole.get_mut("metadata"))
            {
                metadata.extend(marks);
            }
            whole.extend(part);
            Value::Object(whole)
        };
        self.applied(which, "", body);
    }

    fn applied(&mut self, which: Which, below: &str, body: Value) {
        let mut options = vec![format!("fieldManager={}", self.dice.of(&["alice", "bob"]))];
        if self.dice.one_in(3) {
            options.push("force=true".to_owned());
        }
        if self.dice.one_in(10) {
            options.push("dryRun=All".to_owned());
        }
        let step = Step {
            patch: Some(with(&format!("{}{below}", object_path(which)), &options)),
            media: Some("apply".to_owned()),
            body: Some(body),
            // Which of several managers is named first is left to chance.
            sort: [("/details/causes".to_owned(), "/message".to_owned())].into(),
            ..Step::default()
        };
        self.push(which, step, Answer::Object);
    }

    fn delete(&mut self, which: Which) {
        let path = object_path(which);
        // Custom kinds are new to the real collector for half a minute, and what a finalizer holds
        // would not go.
        if self.dice.one_in(6) && !which.0.custom() && !self.held.contains(&which) {
            return self.delete_and_wait(which, &path);
        }
        let body = match self.dice.roll(6) {
            0 => Some(json!({"propagationPolicy": "Background"})),
            1 => self.reference(which, "uid").map(|uid| json!({"preconditions": {"uid": uid}})),
            2 => self
                .reference(which, "resourceVersion")
                .map(|revision| json!({"preconditions": {"resourceVersion": revision}})),
            3 => {
                Some(json!({"gracePeriodSeconds": 5, "apiVersion": "v1", "kind": "DeleteOptions"}))
            }
            _ => None,
        };
        let options = if self.dice.one_in(10) { vec!["dryRun=All".to_owned()] } else { Vec::new() };
        let delete = Some(with(&path, &options));
        self.push(which, Step { delete, body, ..Step::default() }, Answer::Other);
    }

    /// A deletion that the garbage collector ends; the next request comes when it has.
    fn delete_and_wait(&mut self, which: Which, path: &str) {
        let policy = self.dice.of(&["Foreground", "Orphan"]);
        let delete = Some(format!("{path}?propagationPolicy={policy}"));
        self.push(which, Step { delete, ..Step::default() }, Answer::Other);
        let wait = Step {
            get: Some(path.to_owned()),
            until: Some([("/code".to_owned(), json!(404))].into()),
            within: Some(COLLECTED),
            ..Step::default()
        };
        self.push(which, wait, Answer::Other);
    }

    fn delete_collection(&mut self, kind: Kind) {
        let selector = match self.dice.roll(3) {
            0 => "labelSelector=tier=web",
            1 => "labelSelector=env",
            _ => "fieldSelector=metadata.name!=kube-root-ca.crt",
        };
        let delete = Some(format!("{}?{selector}", kind.path()));
        self.push((kind, ""), Step { delete, ..Step::default() }, Answer::Other);
    }

    fn status(&mut self, which: Which) {
        let mut whole = which.0.identity(which.1);
        let status = which.0.status(&mut self.dice);
        let path = format!("{}/status", object_path(which));
        match self.dice.roll(4) {
            0 => {
                let mut body = which.0.whole(which.1, &mut self.dice);
                self.insist(which, &mut body);
                if let Value::Object(fields) = &mut body {
                    fields.insert("status".to_owned(), status);
                }
                let step = Step { put: Some(path), body: Some(body), ..Step::default() };
                self.push(which, step, Answer::Object);
            }
            1 => {
                whole.insert("status".to_owned(), status);
                self.applied(which, "/status", Value::Object(whole));
            }
            _ => {
                let mut body = Map::new();
                body.insert("status".to_owned(), status);
                if self.dice.one_in(3) {
                    body.extend(which.0.part(&mut self.dice));
                }
                let step = Step {
                    patch: Some(path),
                    media: Some("merge".to_owned()),
                    body: Some(Value::Object(body)),
                    ..Step::default()
                };
                self.push(which, step, Answer::Object);
            }
        }
    }

    fn scale(&mut self, which: Which) {
        let path = format!("{}/scale", object_path(which));
        let step = if self.dice.one_in(3) {
            Step { get: Some(path), ..Step::default() }
        } else {
            Step {
                patch: Some(path),
                media: Some("merge".to_owned()),
                body: Some(json!({"spec": {"replicas": self.dice.roll(5)}})),
                ..Step::default()
            }
        };
        self.push(which, step, Answer::Other);
    }

    fn release(&mut self, which: Which) {
        let held: Vec<Which> = self.held.iter().copied().collect();
        let which = if held.is_empty() { which } else { self.dice.of(&held) };
        self.patch(which, "merge", json!({"metadata": {"finalizers": null}}));
    }

    /// Options that every write may have.
    fn writing(&mut self) -> Vec<String> {
        let mut options = Vec::new();
        if self.dice.one_in(10) {
            options.push("dryRun=All".to_owned());
        }
        if self.dice.one_in(3) {
            options.push(format!("fieldManager={}", self.dice.of(&["alice", "bob"])));
        }
        if self.dice.one_in(10) {
            let validation = self.dice.of(&["Strict", "Warn", "Ignore"]);
            options.push(format!("fieldValidation={validation}"));
        }
        options
    }

    /// A template for what an answer said of the object: mostly the last one, else any.
    fn reference(&mut self, which: Which, field: &str) -> Option<String> {
        let shown = self.shown.get(&which)?;
        let step = match shown.last() {
            Some(last) if self.dice.roll(4) > 0 => last.clone(),
            _ => self.dice.of(shown),
        };
        Some(format!("<{step}/metadata/{field}>"))
    }

    fn next_name(&self) -> String {
        format!("s{}", self.steps.len() + 1)
    }

    fn push(&mut self, which: Which, mut step: Step, answer: Answer) {
        let name = self.next_name();
        step.name = Some(name.clone());
        let tried = request(&step).is_some_and(|(_, path)| path.contains("dryRun=All"));
        if tried && answer == Answer::Object {
            // Nobody ever sees again what a tried creation made up.
            step.drop.push("/metadata/uid".to_owned());
        } else if answer == Answer::Object {
            self.shown.entry(which).or_default().push(name);
        }
        if step.body.as_ref().is_some_and(holds) {
            self.held.insert(which);
        }
        self.steps.push(step);
    }
}

/// What a step's answer is, if all is well.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answer {
    Object,
    Other,
}

fn object_path((kind, name): Which) -> String {
    format!("{}/{name}", kind.path())
}

fn with(path: &str, options: &[String]) -> String {
    if options.is_empty() { path.to_owned() } else { format!("{path}?{}", options.join("&")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_and_a_number_always_give_the_same_sequence() {
        for index in 0..50 {
            assert_eq!(sequence(7, index), sequence(7, index));
        }
        assert_ne!(sequence(7, 0).steps, sequence(7, 1).steps);
        assert_ne!(sequence(7, 0).steps, sequence(8, 0).steps);
    }

    #[test]
    fn every_step_is_one_request_about_a_watched_kind() {
        for index in 0..500 {
            let sequence = sequence(3, index);
            for step in &sequence.steps {
                assert!(step.action().is_ok(), "{step:?}");
                let path = request(step).map(|(_, path)| path.as_str()).unwrap();
                let (kind, _) = Kind::of(path).unwrap();
                assert!(sequence.watched.contains(&kind), "{path}");
            }
        }
    }

    #[test]
    fn every_verb_on_every_kind_is_drawn() {
        let mut drawn = BTreeSet::new();
        for index in 0..2000 {
            for step in sequence(1, index).steps {
                let (method, path) = request(&step).unwrap();
                let (kind, _) = Kind::of(path).unwrap();
                drawn.insert((kind, method, step.media.clone().unwrap_or_default()));
            }
        }
        for kind in Kind::ALL {
            for (method, media) in [
                ("GET", ""),
                ("POST", ""),
                ("PUT", ""),
                ("DELETE", ""),
                ("PATCH", "merge"),
                ("PATCH", "json-patch"),
                ("PATCH", "strategic"),
                ("PATCH", "apply"),
            ] {
                let wanted = (kind, method, media.to_owned());
                assert!(drawn.contains(&wanted), "no {method} {media} of {kind:?}");
            }
        }
    }
}
