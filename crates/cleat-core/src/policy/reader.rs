//! Looking things up in an observation, and noting what was asked for.
//!
//! What was asked for is what the policy depends on: it is read first and watched later.

use alloc::borrow::ToOwned as _;
use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::sync::Arc;

use serde_json::Value;

use super::observed::{
    Cluster, Kind, KindName, ListOf, Namespace, Pick, Read, Resolution, Seen, Trial,
};
use crate::id::Target;
use crate::work::contents::Contents;

/// What an answer is not, yet or at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Gap {
    /// Nobody looked.
    Unread,
    /// Somebody looked in vain.
    Failed(String),
}

/// A write of which it is not known what the server would make of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    pub target: Target,
    pub object: Arc<Value>,
    pub of: Tried,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tried {
    Update,
    /// The object is without a name, because it is tried while there is one of that name.
    Creation,
}

pub(crate) struct Reader<'a> {
    cluster: &'a Cluster,
    /// All that was asked for, whether or not it was known.
    pub(crate) asked: BTreeSet<Read>,
    /// What was asked for and not known.
    pub(crate) unread: BTreeSet<Read>,
    pub(crate) questions: alloc::vec::Vec<Question>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(cluster: &'a Cluster) -> Self {
        Self {
            cluster,
            asked: BTreeSet::new(),
            unread: BTreeSet::new(),
            questions: alloc::vec::Vec::new(),
        }
    }

    /// Whether everything that was asked for is known.
    pub(crate) fn is_complete(&self) -> bool {
        self.unread.is_empty() && self.questions.is_empty()
    }

    fn note(&mut self, read: Read, known: bool) {
        if !known {
            self.unread.insert(read.clone());
        }
        self.asked.insert(read);
    }

    /// `None`: nobody looked.
    pub(crate) fn kind(&mut self, api_version: &str, kind: &str) -> Option<&'a Kind> {
        let name = KindName { api_version: api_version.to_owned(), kind: kind.to_owned() };
        let found = self.cluster.kinds.get(&name);
        self.note(Read::Kind(name), found.is_some());
        found
    }

    pub(crate) fn namespaces(&mut self) -> Result<&'a [Namespace], Gap> {
        let found = self.cluster.namespaces.as_ref();
        self.note(Read::Namespaces, found.is_some());
        match found {
            None => Err(Gap::Unread),
            Some(Err(problem)) => Err(Gap::Failed(problem.clone())),
            Some(Ok(all)) => Ok(all),
        }
    }

    /// `None`: nobody looked.
    pub(crate) fn object(&mut self, target: &Target) -> Option<&'a Seen> {
        let found = self.cluster.objects.get(&target.id);
        self.note(Read::Object(target.clone()), found.is_some());
        found
    }

    /// The same of one that is let go of, which has to be seen whether or not it can be watched.
    pub(crate) fn leaver(&mut self, target: &Target) -> Option<&'a Seen> {
        let found = self.object(target)?;
        if !matches!(found, Seen::Unwatchable) {
            return Some(found);
        }
        let found = self.cluster.unwatched.get(&target.id);
        self.note(Read::Unwatched(target.clone()), found.is_some());
        found
    }

    pub(crate) fn list(&mut self, of: ListOf) -> Result<&'a [Arc<Value>], Gap> {
        let found = self.cluster.lists.get(&of);
        self.note(Read::List(of), found.is_some());
        match found {
            None => Err(Gap::Unread),
            Some(Err(problem)) => Err(Gap::Failed(problem.clone())),
            Some(Ok(all)) => Ok(all),
        }
    }

    /// What a namespace or a definition holds. `None`: nobody looked.
    pub(crate) fn contents(&mut self, target: &Target) -> Option<&'a Contents> {
        let found = self.cluster.contents.get(&target.id);
        self.note(Read::Contents(target.clone()), found.is_some());
        found
    }

    /// `None`: nobody resolved it.
    pub(crate) fn resolution<'r>(
        &mut self,
        index: usize,
        pick: Pick,
        found: Option<&'r Resolution>,
    ) -> Option<&'r Resolution> {
        self.note(Read::Resolution { index, pick }, found.is_some());
        found
    }

    /// What the server would make of this update. `None`: nobody asked it.
    pub(crate) fn trial(&mut self, target: &Target, object: &Value) -> Option<&'a Trial> {
        let found = self.cluster.trials.get(&target.id).filter(|trial| *trial.asked == *object);
        if found.is_none() {
            self.question(target, object.clone(), Tried::Update);
        }
        found
    }

    /// What the server would make of this object if it were new. `None`: nobody asked it.
    pub(crate) fn creation(&mut self, target: &Target, definition: &Value) -> Option<&'a Trial> {
        let object = unnamed(definition);
        let found = self.cluster.creations.get(&target.id).filter(|trial| *trial.asked == object);
        if found.is_none() {
            self.question(target, object, Tried::Creation);
        }
        found
    }

    fn question(&mut self, target: &Target, object: Value, of: Tried) {
        let question = Question { target: target.clone(), object: Arc::new(object), of };
        if !self.questions.contains(&question) {
            self.questions.push(question);
        }
    }
}

/// The object under whatever name the server gives it.
fn unnamed(definition: &Value) -> Value {
    let mut object = definition.clone();
    let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
    if let Some(metadata) = metadata
        && let Some(Value::String(name)) = metadata.remove("name")
    {
        metadata.insert("generateName".to_owned(), Value::String(alloc::format!("{name}-")));
    }
    object
}
