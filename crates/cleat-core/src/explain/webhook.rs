//! Admission webhooks: who asks them, who serves them, and whether that runs.

use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

use serde_json::Value;

use super::object::{id, list, text};
use super::question::{Found, Look, Place};
use super::tree::Node;
use super::workload;

const GROUP: &str = "admissionregistration.k8s.io";

/// From a webhook's name to what serves it.
pub(super) fn chain(look: &Look<'_>, place: Place, webhook: &str) -> Vec<Node> {
    let mut children = Vec::new();
    for resource in ["validatingwebhookconfigurations", "mutatingwebhookconfigurations"] {
        let all = look.list(place, (GROUP, resource), ("", ""));
        if let Some(unread) = all.unread {
            children.push(Node::unread(resource, unread));
        }
        for configuration in all.items {
            let hooks = list(configuration, "/webhooks").iter();
            for hook in hooks.filter(|hook| text(hook, "/name") == webhook) {
                children.push(served(look, place, resource, configuration, hook));
            }
        }
    }
    children
}

fn served(
    look: &Look<'_>,
    place: Place,
    resource: &str,
    configuration: &Value,
    hook: &Value,
) -> Node {
    let id = super::object::id_of(GROUP, resource, configuration);
    let url = text(hook, "/clientConfig/url");
    if !url.is_empty() {
        return Node::note(format!("it is of {id}, and served at {url}")).about(place, &id);
    }
    let field = |name: &str| text(hook, &format!("/clientConfig/service/{name}"));
    let service = self::id("", "services", field("namespace"), field("name"));
    let text = format!("it is of {id}, and served by {service}");
    let node = Node::note(text).about(place, &id);
    node.with(behind(look, place, &service))
}

/// The workloads that a service leads to.
pub(super) fn behind(look: &Look<'_>, place: Place, service: &crate::id::Id) -> Vec<Node> {
    let object = match look.object(place, service) {
        Found::Present(object) => object,
        Found::Absent => {
            let text = format!("{service} is not there");
            return vec![Node::blocks(super::Reason::Missing, text).about(place, service).act(
                "whoever installed it",
                "make the service, or remove what names it",
                None,
            )];
        }
        Found::Unread(unread) => return vec![Node::unread(&format!("{service}"), unread)],
        Found::Pending | Found::NoSuchKind => return Vec::new(),
    };
    let Some(selector) = object.pointer("/spec/selector") else { return Vec::new() };
    let all = workload::all(look, place);
    let chosen: Vec<Node> = all
        .items
        .iter()
        .filter(|one| one.thing.id.namespace == service.namespace && one.is_chosen(selector))
        .take(3)
        .map(|one| workload::health(look, &one.thing))
        .collect();
    if !chosen.is_empty() {
        return chosen;
    }
    if !all.unread.is_empty() {
        return all.unread;
    }
    let text = format!("no workload in {} has the pods that {service} chooses", service.namespace);
    vec![Node::blocks(super::Reason::Missing, text).act(
        "whoever installed it",
        "start it, or remove what names it",
        None,
    )]
}
