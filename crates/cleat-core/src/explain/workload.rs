//! Workloads: which of them runs something, and whether it runs.

use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use serde_json::Value;

use super::ago;
use super::object::{Thing, id_of, list, text};
use super::pod;
use super::question::{Look, Place};
use super::tree::{Node, Reason, kubectl};

/// The resources of `apps` that controllers run as.
const RESOURCES: [&str; 3] = ["deployments", "statefulsets", "daemonsets"];

pub(super) struct Workload<'a> {
    pub(super) thing: Thing<'a>,
}

/// All workloads of a server, as far as they could be read.
pub(super) struct All<'a> {
    pub(super) items: Vec<Workload<'a>>,
    /// What was not read.
    pub(super) unread: Vec<Node>,
}

pub(super) fn all<'a>(look: &Look<'a>, place: Place) -> All<'a> {
    let mut all = All { items: Vec::new(), unread: Vec::new() };
    for resource in RESOURCES {
        let found = look.list(place, ("apps", resource), ("", ""));
        if let Some(unread) = found.unread {
            all.unread.push(Node::unread(&format!("{resource}.apps"), unread));
        } else if found.more {
            let why = "there are more than are read at once".to_string();
            let unread = super::Unread { why, forbidden: false };
            all.unread.push(Node::unread(&format!("all {resource}.apps"), &unread));
        }
        all.items.extend(found.items.iter().map(|object| Workload {
            thing: Thing { place, id: id_of("apps", resource, object), object },
        }));
    }
    all
}

impl Workload<'_> {
    /// Whether it runs something of one of these names, and by what that is known; nothing more has
    /// to be said where its own name is that.
    pub(super) fn runs(&self, names: &[&str]) -> Option<String> {
        let named = |name: &str| !name.is_empty() && names.contains(&name);
        if named(&self.thing.id.name) {
            return Some(String::new());
        }
        for label in ["app.kubernetes.io~1name", "app", "k8s-app", "control-plane"] {
            let value = self.thing.text(&format!("/spec/template/metadata/labels/{label}"));
            if named(value) {
                return Some(format!("its pods are labelled {value}"));
            }
        }
        for container in self.thing.list("/spec/template/spec/containers") {
            // A field manager that nobody chose is the name of the program.
            let first = |field: &str| list(container, field).first().and_then(Value::as_str);
            let program = first("/command").map(last_segment).unwrap_or_default();
            if named(program) {
                return Some(format!("it runs {program}"));
            }
            let image = text(container, "/image");
            let image = last_segment(image).split(['@', ':']).next().unwrap_or_default();
            if named(image) {
                return Some(format!("its image is {image}"));
            }
            if named(text(container, "/name")) {
                return Some(format!("its container is {}", text(container, "/name")));
            }
        }
        None
    }

    /// Whether a service's selector chooses its pods.
    pub(super) fn is_chosen(&self, selector: &Value) -> bool {
        let Some(selector) = selector.as_object().filter(|all| !all.is_empty()) else {
            return false;
        };
        let labels = self.thing.object.pointer("/spec/template/metadata/labels");
        selector.iter().all(|(key, value)| labels.and_then(|all| all.get(key)) == Some(value))
    }
}

fn last_segment(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// How a workload is, down to the pod that does not run.
pub(super) fn health(look: &Look<'_>, thing: &Thing<'_>) -> Node {
    let daemons = thing.id.resource == "daemonsets";
    let (wanted, ready) = if daemons {
        (thing.number("/status/desiredNumberScheduled"), thing.number("/status/numberReady"))
    } else {
        (Some(thing.number("/spec/replicas").unwrap_or(1)), thing.number("/status/readyReplicas"))
    };
    let (wanted, ready) = (wanted.unwrap_or_default(), ready.unwrap_or_default());
    let name = thing.name();
    let reason = Reason::NotReady;
    if let Some(since) = thing.deleting() {
        let text = format!("{name} is being deleted, for {}", ago(since, look.now));
        return Node::blocks(reason, text).about(thing.place, &thing.id).act(
            "whoever deleted it",
            "it must run until it has let go of what it holds: make it anew",
            None,
        );
    }
    if wanted == 0 && daemons {
        return Node::blocks(reason, format!("{name} runs on no node"))
            .about(thing.place, &thing.id)
            .act("whoever runs it", "see which nodes its selector and tolerations choose", None);
    }
    if wanted == 0 {
        return Node::blocks(reason, format!("{name} has 0 replicas"))
            .about(thing.place, &thing.id)
            .act(
                "whoever runs it",
                "scale it up",
                Some(kubectl(thing.place, "scale", &thing.id, "--replicas=1")),
            );
    }
    if ready < wanted {
        let node = Node::blocks(reason, format!("{name} has {ready} of {wanted} replicas ready"))
            .about(thing.place, &thing.id);
        let pods = pods(look, thing);
        if pods.is_empty() {
            let what = "see why it has no pods";
            let command = Some(kubectl(thing.place, "describe", &thing.id, ""));
            return node.act("whoever runs it", what, command);
        }
        return node.with(pods);
    }
    let text = format!("{name} runs: {ready} of {wanted} replicas are ready");
    Node::note(text).about(thing.place, &thing.id)
}

/// Those of its pods that do not run, and why.
fn pods(look: &Look<'_>, thing: &Thing<'_>) -> Vec<Node> {
    let labels = thing.object.pointer("/spec/selector/matchLabels").and_then(Value::as_object);
    let Some(labels) = labels.filter(|labels| !labels.is_empty()) else { return Vec::new() };
    let labels: Vec<String> = labels
        .iter()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    let found = look.list(thing.place, ("", "pods"), (&thing.id.namespace, &labels.join(",")));
    if let Some(unread) = found.unread {
        return [Node::unread("its pods", unread)].into();
    }
    let pods = found.items.iter().map(|object| Thing {
        place: thing.place,
        id: id_of("", "pods", object),
        object,
    });
    pods.filter_map(|pod| {
        let why = pod::standing(look, &pod)?;
        Some(Node { text: format!("{}: {}", pod.name(), why.text), ..why })
    })
    .take(3)
    .collect()
}
