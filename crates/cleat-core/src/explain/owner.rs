//! Owners: who waits for whom when a deletion goes from the outside in.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use serde_json::Value;

use super::namespace::grouped;
use super::object::{Thing, Trail, list, text};
use super::question::{Answer, Found, Look, Question};
use super::tree::{Node, Reason};
use crate::id::Id;

/// What holds an owner that is deleted in the foreground: those of its dependents that say so.
pub(super) fn foreground(look: &Look<'_>, thing: &Thing<'_>, trail: &Trail) -> Node {
    let says = "it was deleted in the foreground, so its dependents go first";
    let node = Node::blocks(Reason::OwnerForeground, says);
    // What a namespace does not hold may own things anywhere.
    let question = Question::Contents { place: thing.place, namespace: thing.id.namespace.clone() };
    let contents = match look.ask(question) {
        Some(Answer::Contents(contents)) => contents,
        Some(Answer::Unread(unread)) => {
            return node.with(vec![Node::unread("what it owns", unread)]);
        }
        _ => return node,
    };
    let blocks = |object: &Value| {
        list(object, "/metadata/ownerReferences").iter().any(|owner| {
            let holds = owner.get("blockOwnerDeletion").and_then(Value::as_bool) == Some(true);
            text(owner, "/uid") == thing.uid() && holds
        })
    };
    let dependents: Vec<(Id, &Value)> = contents
        .items
        .iter()
        .filter(|(_, object)| blocks(object))
        .map(|(id, object)| (id.clone(), object))
        .collect();
    let mut children = grouped(look, thing.place, &dependents, trail);
    for (resource, why) in &contents.unread {
        let unread = super::Unread { why: why.clone(), forbidden: false };
        children.push(Node::unread(resource, &unread));
    }
    if !contents.more.is_empty() {
        let why = "there are more than are read at once".to_owned();
        let unread = super::Unread { why, forbidden: false };
        children.push(Node::unread(&format!("all of {}", contents.more.join(", ")), &unread));
    }
    if children.is_empty() {
        let text = "none of them is left; the garbage collector lets it go by itself";
        children.push(Node::note(text).act("kube-controller-manager", "see that it runs", None));
    }
    node.with(children)
}

/// Owners of something that stays which are going, or gone: it may be deleted with them.
pub(super) fn going(look: &Look<'_>, thing: &Thing<'_>) -> Vec<Node> {
    let mut children = Vec::new();
    for owner in thing.list("/metadata/ownerReferences").iter().take(5) {
        let (kind, name) = (text(owner, "/kind"), text(owner, "/name"));
        let group = text(owner, "/apiVersion").split_once('/').map_or("", |(group, _)| group);
        let question =
            Question::Kind { place: thing.place, group: group.to_owned(), kind: kind.to_owned() };
        let Some(Answer::Kind(found)) = look.ask(question) else { continue };
        let namespace = if found.namespaced { thing.id.namespace.clone() } else { String::new() };
        let [group, name] = [group, name].map(ToOwned::to_owned);
        let id = Id { group, resource: found.resource.clone(), namespace, name };
        match look.object(thing.place, &id) {
            Found::Absent => children.push(
                Node::note(format!("its owner {id} is gone; the garbage collector takes it along"))
                    .about(thing.place, &id),
            ),
            Found::Present(object) if text(object, "/metadata/uid") != text(owner, "/uid") => {
                let text = format!("its owner {id} was made anew and is not the one it names");
                children.push(Node::note(text).about(thing.place, &id));
            }
            Found::Present(object) if !text(object, "/metadata/deletionTimestamp").is_empty() => {
                let text = format!("its owner {id} is being deleted, and takes it along");
                children.push(Node::note(text).about(thing.place, &id));
            }
            _ => {}
        }
    }
    children
}
