//! Deletes that would be refused, as a dry run told: by a webhook, by protection, or for want of
//! rights.

use alloc::borrow::ToOwned as _;
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec;
use alloc::vec::Vec;

use super::critical;
use super::object::{Thing, Trail};
use super::question::{Answer, Look, Question, Unread};
use super::tree::{Node, Reason, Weight};
use super::webhook;
use crate::preview::guard;
use crate::work::trouble::LONGEST_PAUSE;

/// What a dry run of the deletion says. `weight`: whether anybody wants it deleted.
pub(super) fn of_delete(
    look: &Look<'_>,
    thing: &Thing<'_>,
    weight: Weight,
    trail: &Trail,
) -> Vec<Node> {
    let uid = thing.uid();
    if uid.is_empty() {
        return Vec::new();
    }
    let question =
        Question::Rehearsal { place: thing.place, id: thing.id.clone(), uid: uid.to_owned() };
    let node = match look.ask(question) {
        None => return Vec::new(),
        Some(Answer::Refused(refusal)) => {
            refused(look, thing, refusal.code, &refusal.message, trail)
        }
        Some(Answer::Unread(unread)) => match quoted(&unread.why, "failed calling webhook ") {
            Some(hook) => unavailable(look, thing, &hook, &unread.why),
            None => Node::unread("whether a delete would pass", unread),
        },
        // Whoever asks for the deletion has not come to it yet.
        Some(_) if weight == Weight::Blocks => {
            let text = "nothing refuses its deletion, as a dry run shows; it was not asked for yet";
            return vec![Node::note(text)];
        }
        Some(_) => return Vec::new(),
    };
    match weight {
        Weight::Blocks => vec![node],
        // Nobody has asked for it: that it would be refused, or may not be asked, is good to know.
        Weight::Note | Weight::Unread => match node.weight {
            Weight::Blocks => {
                vec![lighten(Node { text: format!("if deleted: {}", node.text), ..node })]
            }
            Weight::Note | Weight::Unread => Vec::new(),
        },
    }
}

/// What is only good to know stands in nobody's way.
fn lighten(mut node: Node) -> Node {
    node.weight = Weight::Note;
    node.children = node.children.into_iter().map(lighten).collect();
    node
}

fn refused(look: &Look<'_>, thing: &Thing<'_>, code: u16, message: &str, trail: &Trail) -> Node {
    if message.ends_with("does not support dry run") {
        let unread = Unread { why: message.to_string(), forbidden: false };
        return Node::unread("whether a webhook refuses a delete", &unread);
    }
    if let Some(hook) = quoted(message, "failed calling webhook ") {
        return unavailable(look, thing, &hook, message);
    }
    let protectors = critical::protecting(look, thing, trail);
    if let Some(hook) = quoted(message, "admission webhook ") {
        if !protectors.is_empty() {
            return Node::blocks(Reason::ProtectedBy, said(message)).with(protectors);
        }
        if let Some(node) = unapproved(message) {
            return node;
        }
        let text = format!("webhook {hook} refuses its deletion: {}", said(message));
        let what = "do what it says, or ask whoever runs the webhook";
        return Node::blocks(Reason::WebhookDenied, text)
            .act("whoever deletes it", what, None)
            .with(webhook::chain(look, thing.place, &hook));
    }
    if matches!(code, 401 | 403) {
        let unread = Unread { why: message.to_string(), forbidden: true };
        return Node::unread("whether a delete would pass", &unread);
    }
    // Whoever deletes for a work or a policy tries again by itself.
    let pause = LONGEST_PAUSE.as_secs();
    let text = format!(
        "the server refuses its deletion: {message}; an agent that deletes it tries again after at most \
         {pause}s"
    );
    let node = Node::blocks(Reason::Backoff, text);
    node.act("whoever deletes it", "do what it says", None).with(protectors)
}

/// A hub that insists on plans waits for somebody to agree to one.
fn unapproved(message: &str) -> Option<Node> {
    let look = guard::awaited(message)?;
    let node = Node::blocks(Reason::ApprovalPending, said(message));
    let what = "look at what would go, and agree to it";
    Some(node.act("whoever deletes it", what, Some(look.to_owned())))
}

fn unavailable(look: &Look<'_>, thing: &Thing<'_>, hook: &str, message: &str) -> Node {
    let why = message.strip_prefix("Internal error occurred: ").unwrap_or(message);
    let text = format!("its deletion needs webhook {hook}, which does not answer: {why}");
    let chain = webhook::chain(look, thing.place, hook);
    let node = Node::blocks(Reason::WebhookUnavailable, text);
    let node = match chain.iter().any(Node::is_blocking) {
        true => node,
        false => node.act(
            &format!("whoever runs {hook}"),
            "make it answer; or delete its configuration if it is not needed any more",
            None,
        ),
    };
    node.with(chain)
}

/// A webhook refused something, in words of somebody else's: who, and who is behind it.
pub(super) fn by_message(look: &Look<'_>, thing: &Thing<'_>, message: &str) -> Option<Node> {
    if let Some(hook) = quoted(message, "failed calling webhook ") {
        return Some(unavailable(look, thing, &hook, message));
    }
    let hook = quoted(message, "admission webhook ")?;
    if let Some(node) = unapproved(message) {
        return Some(node);
    }
    let text = format!("webhook {hook} refuses: {}", said(message));
    let what = "do what it says, or ask whoever runs the webhook";
    let node = Node::blocks(Reason::WebhookDenied, text);
    let node = node.act("whoever deletes it", what, None);
    Some(node.with(webhook::chain(look, thing.place, &hook)))
}

/// The text in quotes after some words.
pub(super) fn quoted(message: &str, before: &str) -> Option<String> {
    let (_, rest) = message.split_once(before)?;
    let rest = rest.strip_prefix('"')?;
    Some(rest.split_once('"')?.0.to_string())
}

/// What the webhook itself said.
fn said(message: &str) -> String {
    let (_, said) = message.split_once("denied the request: ").unwrap_or(("", message));
    said.to_string()
}
