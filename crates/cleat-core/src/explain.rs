//! Why something is stuck: a chain from what people ask about to somebody who can do something.
//!
//! Nothing is read here. [`explain`] either asks for what it has to know next, or tells; whoever
//! calls it answers and calls again. The same answers always give the same tree, and what could not
//! be read is told as such: it never counts as absent.

mod cluster;
mod conditions;
mod critical;
mod denial;
mod finalizer;
mod foretell;
mod namespace;
mod object;
mod owner;
mod pod;
mod policy;
mod question;
mod ready;
mod set;
mod tree;
mod webhook;
mod work;
mod workload;

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;

use jiff::Timestamp;
use serde::Serialize;

pub use self::foretell::{Foretold, foretell};
pub use self::question::{Answer, Contents, Kind, Listed, Place, Question, Seen, Unread};
pub use self::tree::{Act, Contexts, Node, ObjectRef, Reason, Style, Weight, text};
use crate::id::Id;

/// What people ask about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    pub id: Id,
    pub wish: Wish,
    /// Which cluster is asked as [`Place::Cluster`], if one is.
    pub cluster: Option<String>,
}

/// What is wanted of an object that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Nothing that is known: it is judged by what it says of itself.
    Whatever,
    /// That it is deleted.
    Gone,
    /// That it is there and as it should be.
    There,
}

/// Whether anything stands in the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Verdict {
    /// Nothing does.
    Fine,
    /// Something does, and is named.
    Blocked,
    /// Nothing was found, but not everything could be read.
    Unknown,
    /// There is no such object.
    Absent,
}

/// All there is to say.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    pub verdict: Verdict,
    pub tree: Node,
    /// What would help, each once, in the order of the tree.
    pub actions: Vec<Act>,
}

/// How far an explanation got.
#[derive(Clone, Debug, PartialEq)]
pub enum Progress {
    /// This has to be known first.
    Asks(BTreeSet<Question>),
    Told(Box<Explanation>),
}

/// Explains the subject from what was seen, or asks.
pub fn explain(subject: &Subject, seen: &Seen, now: Timestamp) -> Progress {
    let look = question::Look::new(seen, Some(&subject.id), subject.cluster.as_deref(), now);
    let absent = matches!(look.object(Place::Here, &subject.id), question::Found::Absent);
    let trail = object::Trail::default();
    let tree = if absent {
        object::absent(&look, &subject.id)
    } else {
        object::tell(&look, Place::Here, &subject.id, subject.wish, &trail)
    };
    let missing = look.missing();
    if !missing.is_empty() {
        return Progress::Asks(missing);
    }
    let verdict = if absent { Verdict::Absent } else { verdict(&tree) };
    let mut actions = Vec::new();
    collect(&tree, &mut actions);
    Progress::Told(Box::new(Explanation { verdict, tree, actions }))
}

fn verdict(tree: &Node) -> Verdict {
    let mut heaviest = tree.weight;
    let mut nodes: Vec<&Node> = tree.children.iter().collect();
    while let Some(node) = nodes.pop() {
        heaviest = heaviest.max(node.weight);
        nodes.extend(&node.children);
    }
    match heaviest {
        Weight::Note => Verdict::Fine,
        Weight::Unread => Verdict::Unknown,
        Weight::Blocks => Verdict::Blocked,
    }
}

fn collect(node: &Node, actions: &mut Vec<Act>) {
    for act in node.action.iter().filter(|_| node.weight != Weight::Note) {
        if !actions.contains(act) {
            actions.push(act.clone());
        }
    }
    for child in &node.children {
        collect(child, actions);
    }
}

/// How long ago, as `kubectl` writes it.
fn ago(since: Timestamp, now: Timestamp) -> String {
    let seconds = now.duration_since(since).as_secs().max(0);
    match seconds {
        0..120 => alloc::format!("{seconds}s"),
        120..7200 => alloc::format!("{}m", seconds / 60),
        7200..172_800 => alloc::format!("{}h", seconds / 3600),
        _ => alloc::format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests;
