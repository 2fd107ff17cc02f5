//! CriticalServices: what they protect, and who needs it.

use alloc::format;
use alloc::vec::Vec;

use cleat_api::criticalservice::{DEFINITION, GROUP, RESOURCE, condition};
use serde_json::Value;

use super::object::{self, Thing, Trail, id, id_of, list, text};
use super::question::{Found, Look, Place};
use super::tree::{Node, Reason, kubectl};
use super::{Wish, conditions};

/// How many consumers are named.
const SAMPLES: usize = 3;

/// The CriticalServices that keep an object.
pub(super) fn protecting(look: &Look<'_>, thing: &Thing<'_>, trail: &Trail) -> Vec<Node> {
    let services = look.list(thing.place, (GROUP, RESOURCE), ("", ""));
    let mut children = Vec::new();
    if let Some(unread) = services.unread {
        children.push(Node::unread(RESOURCE, unread));
    }
    for service in services.items.iter().filter(|service| protects(service, thing)) {
        let service_id = id_of(GROUP, RESOURCE, service);
        let provider = provider(service);
        let says = if thing.is(GROUP, RESOURCE) {
            format!("{service_id} stays while its provider {provider} is there")
        } else {
            format!("{service_id} protects {provider}")
        };
        let node = Node::blocks(Reason::ProtectedBy, says).about(thing.place, &service_id);
        let mut unmet = unmet(look, thing.place, service, trail);
        if unmet.is_empty() {
            let what = "all criteria are met by now; try again";
            let mut done = Node::note("nothing needs it, as the service's status says");
            done = done.act("whoever deletes it", what, None);
            unmet.push(done);
        }
        children.push(node.with(unmet));
    }
    children
}

fn provider(service: &Value) -> crate::id::Id {
    let field = |name: &str| text(service, &format!("/spec/provider/{name}"));
    id(field("group"), field("resource"), field("namespace"), field("name"))
}

fn protects(service: &Value, thing: &Thing<'_>) -> bool {
    let provider = provider(service);
    let home = thing.is("", "namespaces") && thing.id.name == provider.namespace;
    let itself = thing.is(GROUP, RESOURCE) && text(service, "/metadata/name") == thing.id.name;
    let definition = thing.is("apiextensions.k8s.io", "customresourcedefinitions")
        && thing.id.name == DEFINITION;
    provider == thing.id || home || itself || definition
}

/// The criteria that are not met, with those who stand against them.
fn unmet(look: &Look<'_>, place: Place, service: &Value, trail: &Trail) -> Vec<Node> {
    let told = list(service, "/status/criteria").iter();
    let wanted = list(service, "/spec/criteria").iter();
    let mut children = Vec::new();
    for (told, wanted) in told.zip(wanted) {
        let subject = text(told, "/subject");
        match text(told, "/state") {
            "Satisfied" => {}
            "Unsatisfied" => {
                let count = told.get("count").and_then(Value::as_i64).unwrap_or_default();
                let finalizer = text(wanted, "/finalizer/finalizerName");
                let says = match text(told, "/type") {
                    "Finalizer" => format!("{count} {subject} have finalizer {finalizer}"),
                    "SpecificResource" => format!("{subject} is there"),
                    _ => format!("{count} {subject} are there"),
                };
                let node = Node::blocks(Reason::ProtectedBy, says);
                children.push(node.with(consumers(look, place, told, wanted, trail)));
            }
            _ => {
                let why = text(told, "/message").into();
                let unread = super::Unread { why, forbidden: false };
                children.push(Node::unread(&format!("criterion {subject}"), &unread));
            }
        }
    }
    children
}

/// Some of those that need the provider: each has to go, or is going.
fn consumers(
    look: &Look<'_>,
    place: Place,
    told: &Value,
    wanted: &Value,
    trail: &Trail,
) -> Vec<Node> {
    let field = ["/finalizer", "/anyInstance", "/specificResource"]
        .into_iter()
        .find_map(|field| wanted.pointer(field));
    let Some(field) = field else { return Vec::new() };
    let (group, resource) = (text(field, "/group"), text(field, "/resource"));
    let mut ids = Vec::new();
    for sample in list(told, "/samples").iter().filter_map(Value::as_str).take(SAMPLES) {
        let (namespace, name) = sample.split_once('/').unwrap_or(("", sample));
        ids.push(id(group, resource, namespace, name));
    }
    if wanted.get("specificResource").is_some() {
        ids = [id(group, resource, text(field, "/namespace"), text(field, "/name"))].into();
    }
    ids.iter()
        .map(|id| match look.object(place, id) {
            Found::Present(object) if text(object, "/metadata/deletionTimestamp").is_empty() => {
                Node::blocks(Reason::ProtectedBy, format!("{id} is there and not being deleted"))
                    .about(place, id)
                    .act(
                        "whoever owns it",
                        "delete it while the provider runs",
                        Some(kubectl(place, "delete", id, "")),
                    )
            }
            _ => object::tell(look, place, id, Wish::Gone, trail),
        })
        .collect()
}

/// Whether it protects, and what is odd about it.
pub(super) fn standing(look: &Look<'_>, thing: &Thing<'_>, trail: &Trail) -> Vec<Node> {
    let mut children = Vec::new();
    match conditions::find(thing, condition::EFFECTIVE) {
        Some(one) if text(one, "/status") == "True" => {}
        Some(one) => children.push(conditions::said(look, thing, one)),
        None => children.push(Node::blocks(Reason::NotObserved, "nobody has looked at it").act(
            "cleat webhook",
            "see that it runs on this cluster",
            None,
        )),
    }
    for kind in [condition::SELF_CONTAINED, condition::CYCLIC, condition::STRANDED] {
        let found = conditions::find(thing, kind).filter(|one| text(one, "/status") == "True");
        children.extend(found.map(|one| conditions::said(look, thing, one)));
    }
    for mut one in unmet(look, thing.place, thing.object, trail) {
        // That somebody needs it is what it is for.
        one.weight = super::Weight::Note;
        one.children.clear();
        children.push(one);
    }
    children
}
