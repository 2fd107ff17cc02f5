//! What a cluster holds, as far as somebody cares, through one watch of metadata per kind.
//!
//! Who cares says so by [`Mirror::interest`]; objects nobody cares about are dropped as they arrive,
//! but for a number made from their name. That number is what lets a new interest in an object that
//! is not there be answered at once: asking the server before every create would double the cost of
//! creating. Whole objects are not kept; who needs one reads it when its revision changed. Only those
//! that a first list tells of anyway may be had from here, once ([`Mirror::take`]).

mod carry;
mod handover;
mod kind;
mod meta;
mod names;
mod pages;
mod reading;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cleat_core::id::{Id, Target};
use cleat_core::write::{Action, Outcome, Write};
use jiff::Timestamp;
use kube::Client;
use serde_json::Value;
use tokio::time::Instant;

use self::handover::Handover;
use self::kind::{Kind, KindName, Settling};
use self::meta::Owners;
pub use self::meta::{Meta, OwnerReference};
use crate::kinds::{Kinds, Mapping};
use crate::queue::Queue;
use crate::tasks::Tasks;

/// What is known of an object now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Look {
    Absent,
    Present(Arc<Meta>),
    /// The server does not serve the kind. This does not prove that the object is gone: only that
    /// its definition is absent does, which must be looked at by itself.
    NoSuchKind,
    Unknown(Reason),
}

/// Why nothing can be said of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Nobody said that they care, or the answer is not here yet.
    NotReadYet,
    /// The kind cannot be watched.
    Unwatchable,
    Forbidden(String),
    /// The server did not answer since then, beyond what is normal.
    Unreachable {
        since: Timestamp,
        message: String,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotReadYet => f.write_str("not read yet"),
            Self::Unwatchable => f.write_str("watch not supported on this resource"),
            Self::Forbidden(message) => write!(f, "not allowed to look: {message}"),
            Self::Unreachable { since, message } => {
                write!(f, "unreachable since {since:.0}: {message}")
            }
        }
    }
}

/// How long a connection may be gone before what was seen through it counts for nothing.
pub const GRACE: Duration = Duration::from_secs(30);
/// How long a kind is still watched after the last interest in it ended.
const LINGER: Duration = Duration::from_secs(60);
/// How many objects are read at the same time.
const READERS: usize = 8;
/// How much of whole objects is kept for whoever asks first, of all kinds together, in bytes.
const HANDED_OVER: usize = 16 << 20;
/// How long after a list they are kept.
const UNCLAIMED: Duration = Duration::from_secs(30);
/// Who cares about the definitions of kinds that are not served.
const DEFINITIONS: &str = "\u{0}definitions";

/// A mirror of one cluster. Its clones are the same.
#[derive(Clone)]
pub struct Mirror {
    shared: Arc<Shared>,
}

type OnChange = Box<dyn Fn(&Id) + Send + Sync>;

struct Shared {
    client: Client,
    tasks: Tasks,
    on_change: OnChange,
    state: Mutex<State>,
    chores: Queue<Chore>,
}

#[derive(Default)]
struct State {
    kinds: BTreeMap<Arc<KindName>, Kind>,
    interests: BTreeMap<Box<str>, Vec<Arc<Id>>>,
    owners: Owners,
    handover: Handover,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Chore {
    /// Read one object.
    Read(Arc<Id>),
    /// Tell that a kind is not known any more, if it is still so.
    Tell(Arc<KindName>),
    /// Forget what a list of a kind told of and nobody took.
    Forget(Arc<KindName>),
}

impl Mirror {
    /// `on_change` is called whenever [`look`](Self::look) would give something else for an object
    /// of interest. It must not block, and may be called for what did not change.
    pub fn new(
        client: Client,
        tasks: &Tasks,
        on_change: impl Fn(&Id) + Send + Sync + 'static,
    ) -> Self {
        Self::keeping(0, client, tasks, Box::new(on_change))
    }

    /// The same, for somebody who is going to need the objects themselves: what is listed is listed
    /// whole where most of it is of interest, and can be [taken](Self::take).
    pub fn handing_over(
        client: Client,
        tasks: &Tasks,
        on_change: impl Fn(&Id) + Send + Sync + 'static,
    ) -> Self {
        Self::keeping(HANDED_OVER, client, tasks, Box::new(on_change))
    }

    fn keeping(most: usize, client: Client, tasks: &Tasks, on_change: OnChange) -> Self {
        let state = State { handover: Handover::new(most), ..State::default() };
        let shared = Arc::new(Shared {
            client,
            tasks: tasks.clone(),
            on_change,
            state: Mutex::new(state),
            chores: Queue::new(),
        });
        reading::start(&shared);
        Self { shared }
    }

    /// Replaces what `owner` cares about. Nothing: it does not care any more.
    pub fn interest(&self, owner: &str, targets: &BTreeSet<Target>) {
        self.shared.interest([(owner, targets)]);
    }

    /// The same for many at once: a kind that nobody cared about before is listed when all of them
    /// have said what they care about.
    pub fn interests<'a>(&self, all: impl IntoIterator<Item = (&'a str, &'a BTreeSet<Target>)>) {
        self.shared.interest(all);
    }

    /// The object itself, if a list told of it and it is still as [`look`](Self::look) says now. Only
    /// the first who asks gets it. None says nothing about the object: it has to be read.
    pub fn take(&self, target: &Target) -> Option<Value> {
        let kept = {
            let mut state = self.shared.lock();
            let now = state.look(&target.id);
            state.handover.take(target, &now)?
        };
        kept.object()
    }

    /// Whether [`take`](Self::take) would give it.
    pub fn hands_over(&self, target: &Target) -> bool {
        let state = self.shared.lock();
        state.handover.has(target, &state.look(&target.id))
    }

    /// What would be kept of an object that somebody read, as of a kind that cannot be watched.
    pub fn meta_of(&self, object: &Value) -> Option<Arc<Meta>> {
        self.shared.lock().owners.meta_of_value(object)
    }

    pub fn look(&self, id: &Id) -> Look {
        self.shared.lock().look(id)
    }

    /// The same; but an object whose kind has neither a definition nor a server any more is gone.
    pub async fn look_served(&self, id: &Id, kinds: &Kinds) -> Look {
        let look = self.look(id);
        if look != Look::NoSuchKind {
            return look;
        }
        let name = KindName::of(id);
        let definition = Id {
            group: carry::DEFINITION_GROUP.to_owned(),
            resource: "customresourcedefinitions".to_owned(),
            namespace: String::new(),
            name: carry::definition_of(&name),
        };
        // Kinds of groups without a dot are Kubernetes' own and have no definition.
        let builtin = !id.group.contains('.');
        let undefined = builtin || self.look(&definition) == Look::Absent;
        let unserved = kinds.preferred(&id.group, &id.resource).await == Mapping::NoSuchKind;
        if undefined && unserved { Look::Absent } else { look }
    }

    /// What came of a write of ours, so that it is seen before a watch tells of it.
    pub fn wrote(&self, action: &Action, outcome: &Outcome) {
        self.shared.wrote(action, outcome);
    }

    /// The same, of a whole plan.
    pub fn wrote_all(&self, plan: &[Vec<Action>], outcomes: &[Vec<Outcome>]) {
        for (action, outcome) in plan.iter().flatten().zip(outcomes.iter().flatten()) {
            self.wrote(action, outcome);
        }
    }
}

impl State {
    fn look(&self, id: &Id) -> Look {
        let kind = self.kinds.get(&KindName::of(id));
        kind.map_or(Look::Unknown(Reason::NotReadYet), |kind| kind.look(id, Instant::now()))
    }

    fn interest(
        &mut self,
        owner: &str,
        targets: &BTreeSet<Target>,
        new_kinds: &mut Vec<Arc<KindName>>,
        touched: &mut BTreeSet<KindName>,
    ) {
        let before = self.interests.remove(owner).unwrap_or_default();
        let mut now = Vec::with_capacity(targets.len());
        for Target { version, id } in targets {
            let name = KindName::of(id);
            let kind = match self.kinds.get_mut(&name) {
                Some(kind) => kind,
                None => {
                    let name = Arc::new(name.clone());
                    new_kinds.push(Arc::clone(&name));
                    self.kinds.entry(name).or_insert_with(Kind::new)
                }
            };
            now.push(kind.care(id, version));
            touched.insert(name);
        }
        for id in before {
            let kind = self.kinds.get_mut(&KindName::of(&id));
            if kind.is_none_or(|kind| kind.care_less(&id)) {
                self.handover.forget(&id);
            }
        }
        if !now.is_empty() {
            self.interests.insert(owner.into(), now);
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Never under the lock: whoever is told may look at once.
    fn tell(&self, ids: &[Arc<Id>]) {
        for id in ids {
            // Kinds that are not served are worth another look when their definition changes.
            if id.group == carry::DEFINITION_GROUP {
                let mut state = self.lock();
                for (name, kind) in &mut state.kinds {
                    if kind.is_unserved() && carry::definition_of(name) == id.name {
                        kind.check();
                    }
                }
            }
            (self.on_change)(id);
        }
    }

    /// What a list told of these is not needed, or not right any more.
    fn forget(&self, ids: &[Arc<Id>]) {
        let mut state = self.lock();
        for id in ids {
            state.handover.forget(id);
        }
    }

    fn interest<'a>(
        self: &Arc<Self>,
        all: impl IntoIterator<Item = (&'a str, &'a BTreeSet<Target>)>,
    ) {
        let mut new_kinds = Vec::new();
        let mut settlings = Vec::new();
        {
            let mut state = self.lock();
            let mut touched = BTreeSet::new();
            for (owner, targets) in all {
                state.interest(owner, targets, &mut new_kinds, &mut touched);
            }
            for name in touched {
                settlings.extend(state.kinds.get_mut(&name).map(Kind::settle));
            }
        }
        for name in new_kinds {
            carry::start(self, name);
        }
        for settling in settlings {
            self.settle(settling);
        }
    }

    fn settle(&self, settling: Settling) {
        for id in settling.read {
            self.chores.add(Chore::Read(id));
        }
    }

    fn wrote(&self, action: &Action, outcome: &Outcome) {
        let id = &action.target.id;
        let (changed, read) = {
            let mut state = self.lock();
            let State { kinds, interests: _, owners, handover } = &mut *state;
            let Some(kind) = kinds.get_mut(&KindName::of(id)) else { return };
            // Whatever came of it, what a list told is from before.
            handover.forget(id);
            let changed = match outcome {
                Outcome::Done(Value::Null) => {
                    let Write::Delete { uid, .. } = &action.write else { return };
                    kind.gone(id, uid)
                }
                Outcome::Done(object) => match owners.meta_of_value(object) {
                    Some(meta) => kind.wrote(id, meta),
                    None => kind.doubt(id),
                },
                // What is known is out of date, or will be: the server knows better.
                Outcome::NotFound
                | Outcome::AlreadyExists
                | Outcome::Conflict(_)
                | Outcome::Lost(_) => kind.doubt(id),
                Outcome::NoSuchKind => {
                    kind.check();
                    None
                }
                Outcome::Refused(_) | Outcome::NotTried => None,
            };
            (changed, kind.unsettled(id))
        };
        if let Some((id, _)) = read {
            self.chores.add(Chore::Read(id));
        }
        self.tell(changed.as_slice());
    }
}
