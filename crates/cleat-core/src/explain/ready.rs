//! Claims and jobs: kinds whose waiting has a shape of its own.

use alloc::format;

use super::object::{Thing, id, text};
use super::question::{Found, Look};
use super::tree::{Node, Reason, kubectl};

/// A claim that has no volume.
pub(super) fn claim(look: &Look<'_>, thing: &Thing<'_>) -> Option<Node> {
    if thing.text("/status/phase") != "Pending" {
        return None;
    }
    let class = thing.text("/spec/storageClassName");
    let describe = Some(kubectl(thing.place, "describe", &thing.id, ""));
    if class.is_empty() {
        let text = "it has no volume yet, and names no storage class";
        return Some(Node::blocks(Reason::NotReady, text).act(
            "you",
            "make a volume that fits it, or name a class",
            describe,
        ));
    }
    let class_id = id("storage.k8s.io", "storageclasses", "", class);
    match look.object(thing.place, &class_id) {
        Found::Absent => {
            Some(
                Node::blocks(Reason::Missing, format!("its storage class {class} is not there"))
                    .act("whoever runs the cluster", "make the class, or name another", describe),
            )
        }
        Found::Present(object) if text(object, "/volumeBindingMode") == "WaitForFirstConsumer" => {
            let text = format!("class {class} waits for the first pod that uses the claim");
            Some(Node::note(text))
        }
        Found::Present(object) => {
            let provisioner = text(object, "/provisioner");
            let text = format!("{provisioner} has not made a volume for it yet");
            Some(Node::blocks(Reason::NotReady, text).act(provisioner, "see its events", describe))
        }
        Found::Unread(unread) => Some(Node::unread(&format!("storage class {class}"), unread)),
        Found::Pending | Found::NoSuchKind => None,
    }
}

/// A job that failed or is suspended.
pub(super) fn job(thing: &Thing<'_>) -> Option<Node> {
    if thing.object.pointer("/spec/suspend").and_then(serde_json::Value::as_bool) == Some(true) {
        let command =
            kubectl(thing.place, "patch", &thing.id, "-p '{\"spec\":{\"suspend\":false}}'");
        return Some(Node::blocks(Reason::Suspended, "it is suspended").act(
            "whoever suspended it",
            "let it run",
            Some(command),
        ));
    }
    let failed = thing
        .list("/status/conditions")
        .iter()
        .find(|one| text(one, "/type") == "Failed" && text(one, "/status") == "True")?;
    let text = format!("it failed: {}", text(failed, "/message"));
    let command = Some(kubectl(thing.place, "logs", &thing.id, ""));
    Some(Node::blocks(Reason::NotReady, text).act("whoever runs it", "see why", command))
}
