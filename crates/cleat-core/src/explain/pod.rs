//! Pods: why one does not run, and why one does not end.

use alloc::format;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::ago;
use super::object::{Thing, id, list, text};
use super::question::{Found, Look};
use super::tree::{Node, Reason, kubectl};

/// When the deletion of a pod was asked for. Its timestamp says when its grace ends.
pub(super) fn asked(thing: &Thing<'_>) -> Option<Timestamp> {
    let grace = thing.number("/metadata/deletionGracePeriodSeconds")?;
    thing.deleting()?.checked_sub(SignedDuration::from_secs(grace)).ok()
}

/// A pod ends when its node says so.
pub(super) fn going(look: &Look<'_>, thing: &Thing<'_>) -> Option<Node> {
    let until = thing.deleting()?;
    let node = thing.text("/spec/nodeName");
    if look.now < until {
        let left = until.duration_since(look.now).as_secs();
        let text = format!("its grace ends in {left}s");
        return Some(Node::blocks(Reason::GraceRunning, text).act(
            "its containers",
            "they were told to end; wait",
            None,
        ));
    }
    if node.is_empty() {
        return None;
    }
    let force = Some(kubectl(thing.place, "delete", &thing.id, "--force --grace-period=0"));
    let over = ago(until, look.now);
    let node_id = id("", "nodes", "", node);
    let (text, actor, what, command) = match look.object(thing.place, &node_id) {
        Found::Pending => return Some(Node::default()),
        Found::Absent => (
            format!("its grace ended {over} ago, and its node {node} is gone"),
            "you",
            "nobody is left to end it: delete it by force",
            force,
        ),
        Found::Present(object) => match silent(look, object) {
            Some(silence) => (
                format!("its grace ended {over} ago, and its node {node} is {silence}"),
                "whoever runs the node",
                "bring the node back; or, if it never comes back, delete the pod by force",
                force,
            ),
            None => (
                format!("its grace ended {over} ago; its node {node} runs and has not ended it"),
                "the kubelet of the node",
                "its log says what it waits for, often a volume or a container that cannot stop",
                None,
            ),
        },
        Found::NoSuchKind => return None,
        Found::Unread(unread) => return Some(Node::unread(&format!("node {node}"), unread)),
    };
    Some(Node::blocks(Reason::GraceRunning, text).act(actor, what, command))
}

/// Since when a node says nothing good.
fn silent(look: &Look<'_>, node: &Value) -> Option<alloc::string::String> {
    let ready =
        list(node, "/status/conditions").iter().find(|one| text(one, "/type") == "Ready")?;
    if text(ready, "/status") == "True" {
        return None;
    }
    let since = text(ready, "/lastTransitionTime").parse().ok();
    Some(match since {
        Some(since) => format!("not ready, for {}", ago(since, look.now)),
        None => "not ready".into(),
    })
}

/// Why it does not run.
pub(super) fn standing(look: &Look<'_>, thing: &Thing<'_>) -> Option<Node> {
    let phase = thing.text("/status/phase");
    let describe = Some(kubectl(thing.place, "describe", &thing.id, ""));
    let node = |text| Node::blocks(Reason::NotReady, text).about(thing.place, &thing.id);
    if let Some(since) = thing.deleting() {
        return Some(node(format!("it is being deleted, for {}", ago(since, look.now))));
    }
    for status in thing
        .list("/status/initContainerStatuses")
        .iter()
        .chain(thing.list("/status/containerStatuses"))
    {
        let container = text(status, "/name");
        let waiting = text(status, "/state/waiting/reason");
        if !waiting.is_empty() && !["ContainerCreating", "PodInitializing"].contains(&waiting) {
            let more = text(status, "/state/waiting/message");
            let colon = if more.is_empty() { "" } else { ": " };
            let text = format!("container {container} waits: {waiting}{colon}{more}");
            let logs = match waiting {
                "CrashLoopBackOff" => Some(kubectl(
                    thing.place,
                    "logs",
                    &thing.id,
                    &format!("-c {container} --previous"),
                )),
                _ => describe,
            };
            return Some(node(text).act("whoever runs it", "see why", logs));
        }
    }
    let unscheduled = thing
        .list("/status/conditions")
        .iter()
        .find(|one| text(one, "/type") == "PodScheduled" && text(one, "/status") == "False");
    if let Some(unscheduled) = unscheduled {
        let text = format!("no node takes it: {}", text(unscheduled, "/message"));
        return Some(node(text).act("whoever runs the cluster", "make room for it", describe));
    }
    match phase {
        "Running" => {
            let unready = thing
                .list("/status/conditions")
                .iter()
                .find(|one| text(one, "/type") == "Ready" && text(one, "/status") == "False")?;
            let text = format!("it runs and is not ready: {}", text(unready, "/message"));
            Some(node(text).act("whoever runs it", "see why its probes fail", describe))
        }
        "Succeeded" => None,
        "Failed" => {
            let why = thing.text("/status/reason");
            let text = format!("it failed{}{why}", if why.is_empty() { "" } else { ": " });
            Some(node(text).act("whoever runs it", "see why", describe))
        }
        "Pending" | "" => {
            Some(node("it has not begun to run".into()).act("its node", "see why", describe))
        }
        other => Some(node(format!("its phase is {other}"))),
    }
}
