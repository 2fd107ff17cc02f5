//! The tree that is told, and how it looks.

use alloc::borrow::ToOwned as _;
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use serde::Serialize;

use super::question::{Place, Unread};
use crate::id::Id;

/// Why something waits. Clients match on these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Reason {
    /// A finalizer whose controller was not found.
    FinalizerNoOwner,
    /// A finalizer whose controller does not run.
    FinalizerOwnerUnhealthy,
    /// A finalizer whose controller runs and has not removed it yet.
    FinalizerOwnerWorking,
    WebhookUnavailable,
    WebhookDenied,
    #[serde(rename = "CRDTerminating")]
    CrdTerminating,
    DiscoveryFailed,
    NamespaceContent,
    OwnerForeground,
    GraceRunning,
    ClusterUnreachable,
    CredentialInvalid,
    ProtectedBy,
    ApprovalPending,
    /// It could not be read, so nothing is known of it.
    Unreadable,
    /// A request failed and is made again.
    Backoff,
    /// Nobody has acted on the latest change.
    NotObserved,
    /// A condition says that it is not as it should be.
    NotReady,
    PlacementEmpty,
    RolloutWaiting,
    NonCompliant,
    /// A removal that has begun and has not ended.
    RemovalPending,
    /// It should be there and is not.
    Missing,
    Suspended,
}

/// How much a node counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Weight {
    /// Good to know.
    #[default]
    Note,
    /// It may stand in the way; it could not be read.
    Unread,
    /// It stands in the way.
    Blocks,
}

/// What somebody can do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Act {
    pub actor: String,
    pub what: String,
    /// How that is typed, where it can be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ObjectRef {
    pub server: Place,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    pub resource: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    pub name: String,
}

/// One thing, and what it waits for.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Node {
    pub text: String,
    pub weight: Weight,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<ObjectRef>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<Act>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<Node>,
}

impl Node {
    pub(super) fn note(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    pub(super) fn blocks(reason: Reason, text: impl Into<String>) -> Self {
        let (text, reason) = (text.into(), Some(reason));
        Self { text, reason, weight: Weight::Blocks, ..Self::default() }
    }

    /// What could not be read is told, with why.
    pub(super) fn unread(what: &str, unread: &Unread) -> Self {
        let Unread { why, forbidden } = unread;
        let reason = if *forbidden { Reason::CredentialInvalid } else { Reason::Unreadable };
        let text = format!("{what} cannot be read: {why}");
        let node = Self { text, reason: Some(reason), weight: Weight::Unread, ..Self::default() };
        if *forbidden {
            return node.act("you", "ask as somebody who may read it", None);
        }
        node.act("you", "see to that, and ask again", None)
    }

    #[must_use]
    pub(super) fn about(mut self, place: Place, id: &Id) -> Self {
        let Id { group, resource, namespace, name } = id.clone();
        self.object = Some(ObjectRef { server: place, group, resource, namespace, name });
        self
    }

    #[must_use]
    pub(super) fn act(mut self, actor: &str, what: &str, command: Option<String>) -> Self {
        self.action = Some(Act { actor: actor.to_owned(), what: what.to_owned(), command });
        self
    }

    #[must_use]
    pub(super) fn with(mut self, children: Vec<Self>) -> Self {
        self.children.extend(children);
        self
    }

    /// Whether it or anything under it stands in the way.
    pub(super) fn is_blocking(&self) -> bool {
        self.weight == Weight::Blocks || self.children.iter().any(Self::is_blocking)
    }
}

/// A thing by how people would look for it; what is on the cluster says so.
pub(super) fn name(place: Place, id: &Id) -> String {
    match place {
        Place::Here => id.to_string(),
        Place::Cluster => format!("{id} (on the cluster)"),
    }
}

/// How commands on the cluster begin while nobody says by which context it is reached.
const ON_CLUSTER: &str = "kubectl --context CLUSTER ";

/// How a command begins on either server.
pub(super) fn begun(place: Place) -> &'static str {
    match place {
        Place::Here => "kubectl ",
        Place::Cluster => ON_CLUSTER,
    }
}

/// `kubectl VERB resource.group name -n namespace`, as it works on either server.
pub(super) fn kubectl(place: Place, verb: &str, id: &Id, rest: &str) -> String {
    let Id { group, resource, namespace, name } = id;
    let mut command = begun(place).to_owned();
    if !namespace.is_empty() {
        command.push_str(&format!("-n {namespace} "));
    }
    command.push_str(&format!("{verb} {resource}"));
    if !group.is_empty() {
        command.push_str(&format!(".{group}"));
    }
    command.push_str(&format!("/{name}"));
    if !rest.is_empty() {
        command.push_str(&format!(" {rest}"));
    }
    command
}

/// The contexts by which whoever asks reaches the servers, where that is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contexts {
    /// Of the server that is asked, unless it is the one that is chosen anyway.
    pub here: Option<String>,
    pub cluster: Option<String>,
}

impl Contexts {
    /// The tree with commands that can be typed as they are.
    pub fn in_commands(&self, tree: &mut Node) {
        let command = tree.action.as_mut().and_then(|action| action.command.as_mut());
        if let Some(command) = command {
            match (command.strip_prefix(ON_CLUSTER), command.strip_prefix("kubectl ")) {
                (Some(rest), _) => {
                    if let Some(context) = &self.cluster {
                        *command = format!("kubectl --context {context} {rest}");
                    }
                }
                (None, Some(rest)) => {
                    if let Some(context) = &self.here {
                        *command = format!("kubectl --context {context} {rest}");
                    }
                }
                (None, None) => {
                    if let (Some(context), true) =
                        (&self.here, command.starts_with("cleat explain "))
                    {
                        *command = format!("{command} --context {context}");
                    }
                }
            }
        }
        for child in &mut tree.children {
            self.in_commands(child);
        }
    }
}

/// Whether it is for a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    Plain,
    Colour,
}

impl Style {
    fn paint(self, code: &str, text: &str) -> String {
        match self {
            Self::Plain => text.to_owned(),
            Self::Colour => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
        }
    }
}

/// The tree as people read it.
pub fn text(tree: &Node, style: Style) -> String {
    let mut text = String::new();
    write(tree, "", "", style, &mut text);
    text
}

fn write(node: &Node, first: &str, rest: &str, style: Style, text: &mut String) {
    let code = match node.weight {
        Weight::Note => "0",
        Weight::Unread => "33",
        Weight::Blocks => "31",
    };
    // What servers say may have lines of its own, and anything in them that a terminal obeys.
    let clean = |line: &str| -> String { line.chars().filter(|c| !c.is_control()).collect() };
    let mut lines = node.text.lines().map(clean);
    let mut head = style.paint(code, &lines.next().unwrap_or_default());
    if let Some(reason) = node.reason {
        head.push_str(&style.paint("2", &format!("  [{}]", spelt(reason))));
    }
    text.push_str(&format!("{first}{head}\n"));
    let bar = if node.children.is_empty() { "   " } else { "│  " };
    for line in lines {
        text.push_str(&format!("{rest}{bar}{line}\n"));
    }
    if let Some(Act { actor, what, command }) = &node.action {
        let arrow = style.paint("32", &format!("→ {}: {}", clean(actor), clean(what)));
        text.push_str(&format!("{rest}{bar}{arrow}\n"));
        if let Some(command) = command {
            text.push_str(&format!("{rest}{bar}  {}\n", style.paint("36", &clean(command))));
        }
    }
    let count = node.children.len();
    for (index, child) in node.children.iter().enumerate() {
        let last = index + 1 == count;
        let (branch, space) = if last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        write(child, &format!("{rest}{branch}"), &format!("{rest}{space}"), style, text);
    }
}

/// As in JSON.
fn spelt(reason: Reason) -> String {
    match reason {
        Reason::CrdTerminating => "CRDTerminating".to_owned(),
        other => format!("{other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_name_the_contexts_that_are_known() {
        let id = Id { resource: "pods".to_owned(), name: "a".to_owned(), ..Id::default() };
        let told = |contexts: &Contexts, place: Place| {
            let command = Some(kubectl(place, "delete", &id, ""));
            let child = Node::note("child").act("you", "delete it", command);
            let mut tree = Node::note("root").with(alloc::vec![child]);
            contexts.in_commands(&mut tree);
            tree.children.remove(0).action.unwrap().command.unwrap()
        };
        let known = Contexts { here: Some("hub".to_owned()), cluster: Some("cluster1".to_owned()) };
        let nothing = Contexts::default();
        assert_eq!(told(&known, Place::Here), "kubectl --context hub delete pods/a");
        assert_eq!(told(&known, Place::Cluster), "kubectl --context cluster1 delete pods/a");
        assert_eq!(told(&nothing, Place::Here), "kubectl delete pods/a");
        assert_eq!(told(&nothing, Place::Cluster), "kubectl --context CLUSTER delete pods/a");
    }
}
