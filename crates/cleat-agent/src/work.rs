//! Works: carries the manifests of ManifestWorks to this cluster, keeps them there, and lets go of
//! them as declared.
//!
//! This is the whole IO half. Every pass reads everything anew (from watches, mostly), asks
//! [`cleat_core::work`] what to do, has it done, and looks again until there is nothing left to do;
//! then the hub is told. Events only say which work to look at.

mod foresight;
mod judge;
mod kept;
mod leaving;
mod memory;
mod observe;
mod permission;
mod questions;
mod records;
mod subjects;

use std::sync::Arc;
use std::time::Duration;

use cleat_api::managedcluster::RemoveStrategy;
use cleat_core::id::Id;
use cleat_core::leave::agent::Standing;
use cleat_core::work;
use cleat_core::work::observed::{Agent, Hub, Ledger, Observed};
use cleat_core::work::trouble::Trouble;
use cleat_core::write::{Action, Outcome, Plan, Propagation, Write};
use cleat_runtime::definitions;
use cleat_runtime::execute::{self, Executor};
use cleat_runtime::follow::{Follow, Scope};
use cleat_runtime::kinds::Kinds;
use cleat_runtime::mirror::Mirror;
use cleat_runtime::queue::{self, Queue, Wake};
use cleat_runtime::tasks::{Stop, Tasks};
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use serde_json::Value;

pub use self::questions::Works;

use self::kept::Kept;
use self::memory::Memory;
use self::questions::Questions;
use self::subjects::Subjects;
use crate::leave::Presence;

/// Who `managedFields` on the cluster say wrote; tools and tests of OCM look for it.
pub const FIELD_MANAGER: &str = "work-agent";

/// More rounds than any life of a work needs; what is not done by then has another turn.
const MOST_ROUNDS: usize = 32;

/// How long passes wait for the first look at works and ledgers; then they say that they cannot
/// see.
const FIRST_LOOK: Duration = Duration::from_secs(30);

const BETWEEN_TELLINGS: SignedDuration = SignedDuration::from_secs(1);

/// What an agent for works is told.
#[derive(Clone)]
pub struct Config {
    pub hub_client: Client,
    pub cluster_client: Client,
    /// The cluster's name, which is its namespace on the hub.
    pub cluster: String,
    /// The hub's address exactly as it was given; ledgers are named after its hash.
    pub hub_address: String,
    /// Empty: the hash of the hub's address.
    pub agent_id: String,
    /// How long a ledger may be without its work before its objects go. `None`: for ever.
    pub eviction_grace: Option<SignedDuration>,
    /// The least time between two reports of an object's state, where a work asks for polling.
    pub status_interval: SignedDuration,
    /// Whether feedback may be lists and objects, as JSON text, and not only single values.
    pub report_structures: bool,
    /// How the cluster stands with its hub, where it has joined one. Without it the cluster never
    /// leaves, and works are all there is to go by.
    pub presence: Option<Presence>,
    /// Works under way at the same time.
    pub workers: usize,
    /// Requests under way at the same time, on each side.
    pub in_flight: usize,
}

impl Config {
    /// What `cleat agent` uses unless told otherwise.
    pub fn new(
        hub_client: Client,
        cluster_client: Client,
        cluster: &str,
        hub_address: &str,
    ) -> Self {
        Self {
            hub_client,
            cluster_client,
            cluster: cluster.to_owned(),
            hub_address: hub_address.to_owned(),
            agent_id: String::new(),
            eviction_grace: None,
            status_interval: SignedDuration::from_secs(10),
            report_structures: false,
            presence: None,
            workers: 32,
            in_flight: execute::IN_FLIGHT,
        }
    }
}

/// Which life to look at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    /// A work of our hub, by name.
    Work(String),
    /// A ledger of ours that was written for another hub, by its own name.
    Stray(String),
}

/// Everything a pass needs. Shared by all passes.
struct Context {
    config: Config,
    agent: Agent,
    works: Follow,
    ledgers: Follow,
    mirror: Mirror,
    kinds: Kinds,
    executor: Executor,
    memory: Memory,
    kept: Arc<Kept>,
    subjects: Arc<Subjects>,
    questions: Questions,
    queue: Queue<Key>,
}

/// Starts the story; it runs until `tasks` are shut down.
pub fn start(config: Config, tasks: &Tasks) -> Works {
    let queue: Queue<Key> = Queue::new();
    let subjects = Arc::new(Subjects::default());
    let hub_hash = hub_hash(&config.hub_address);
    let id = if config.agent_id.is_empty() { hub_hash.clone() } else { config.agent_id.clone() };
    let agent = Agent { hub_hash, id, eviction_grace: config.eviction_grace };
    let works = {
        let queue = queue.clone();
        let scope = Scope { namespace: Some(config.cluster.clone()), ..scope("manifestworks") };
        Follow::start(config.hub_client.clone(), tasks, scope, move |_, name| {
            queue.add(Key::Work(name.to_owned()));
        })
    };
    let kept = Arc::new(Kept::default());
    let ledgers = {
        let (queue, agent, kept) = (queue.clone(), agent.clone(), Arc::clone(&kept));
        let scope = scope("appliedmanifestworks");
        Follow::start(config.cluster_client.clone(), tasks, scope, move |_, name| {
            let key = records::ledger_key(&agent, name);
            if matches!(key, Key::Work(_)) {
                kept.changed(name);
            }
            queue.add(key);
        })
    };
    let mirror = {
        let (queue, subjects) = (queue.clone(), Arc::clone(&subjects));
        Mirror::handing_over(config.cluster_client.clone(), tasks, move |id: &Id| {
            subjects.of(id, |key| queue.add(key.clone()));
        })
    };
    let kinds = Kinds::new(config.cluster_client.clone());
    definitions::follow(&config.cluster_client, tasks, {
        let (queue, kinds, subjects) = (queue.clone(), kinds.clone(), Arc::clone(&subjects));
        move || {
            kinds.forget();
            subjects.without_a_kind(|key| queue.add(key.clone()));
        }
    });
    let executor = Executor::new(execute::Config {
        hub: Some(config.hub_client.clone()),
        cluster: Some(config.cluster_client.clone()),
        field_manager: Some(FIELD_MANAGER.to_owned()),
        user_agent: Some(FIELD_MANAGER.to_owned()),
        in_flight: config.in_flight,
    });
    let workers = config.workers;
    let memory = Memory::default();
    let context = Arc::new(Context {
        config,
        agent,
        works,
        ledgers,
        mirror,
        kinds,
        executor,
        memory,
        kept,
        subjects,
        questions: Questions::default(),
        queue: queue.clone(),
    });
    let works = Works { context: Arc::clone(&context) };
    if let Some(presence) = &context.config.presence {
        let (changes, context) = (presence.subscribe(), Arc::clone(&context));
        tasks.spawn("works: standing", follow_standing(context, changes, tasks.stop()));
    }
    let mut stop = tasks.stop();
    tasks.spawn("works", async move {
        let closing = context.queue.clone();
        let (works, ledgers) = (context.works.clone(), context.ledgers.clone());
        // A pass that cannot tell what is missing from what was not read yet is of no use.
        let both = async { tokio::join!(works.until_synced(), ledgers.until_synced()) };
        let first_look = tokio::time::timeout(FIRST_LOOK, both);
        if stop.or(first_look).await.is_none() {
            return closing.close();
        }
        if stop.or(tokio::time::timeout(FIRST_LOOK, context.foresee())).await.is_none() {
            return closing.close();
        }
        let running = queue::run(queue, workers, move |key| {
            let context = Arc::clone(&context);
            async move { reconcile(&key, &context).await }
        });
        tokio::select! {
            () = running => {}
            // What is under way is abandoned as by a crash: every write is safe to repeat.
            () = stop.stopped() => closing.close(),
        }
    });
    works
}

/// How the cluster stands with its hub concerns every work.
async fn follow_standing(
    context: Arc<Context>,
    mut changes: tokio::sync::watch::Receiver<Standing>,
    mut stop: Stop,
) {
    while let Some(Ok(())) = stop.or(changes.changed()).await {
        let standing = changes.borrow_and_update().clone();
        let declared = context.config.presence.as_ref().and_then(Presence::strategy);
        if matches!(standing, Standing::Unrecognized(_))
            && context.agent.eviction_grace.is_some()
            && declared != Some(RemoveStrategy::Required)
        {
            tracing::info!(
                declared = declared.map_or("nothing", RemoveStrategy::as_str),
                "nothing is evicted: this cluster was not known to be one to be emptied"
            );
        }
        for work in context.works.all() {
            context.queue.add(Key::Work(work.name.to_string()));
        }
        for ledger in context.ledgers.all() {
            context.queue.add(records::ledger_key(&context.agent, &ledger.name));
        }
    }
}

fn scope(resource: &str) -> Scope {
    Scope {
        group: work::ownership::GROUP.to_owned(),
        version: "v1".to_owned(),
        resource: resource.to_owned(),
        ..Scope::default()
    }
}

/// SHA-256 of the hub's address, in hex.
pub fn hub_hash(address: &str) -> String {
    use sha2::Digest as _;
    let digest = sha2::Sha256::digest(address.as_bytes());
    digest.iter().fold(String::with_capacity(64), |mut text, byte| {
        use std::fmt::Write as _;
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Looks, plans and acts until there is nothing left to do now; then tells.
#[tracing::instrument(level = "debug", skip(context))]
async fn reconcile(key: &Key, context: &Context) -> Wake {
    let mut seen = context.observe(key).await;
    for _ in 0..MOST_ROUNDS {
        let plan = work::plan(&seen);
        if plan.is_empty() {
            break;
        }
        if is_bookkeeping(&plan) && context.puts_off(key) {
            return Wake::After(Duration::ZERO);
        }
        // What a list handed over is handed over once; the next look is not to read it again.
        context.verified(key, &seen);
        context.execute(key, &seen, &plan).await;
        seen = context.observe(key).await;
    }
    context.verified(key, &seen);
    context.questions.answer(key, &seen);
    let handed = context.hand_over(key, &seen);
    let verdict = work::report(&seen);
    let mut unheard = None;
    let publish = verdict.publish.filter(|_| context.may_tell(key, &seen));
    if let Some(publish) = publish {
        let about = Trouble::about(&publish);
        let plan = vec![vec![publish]];
        context.execute(key, &seen, &plan).await;
        unheard = context.memory.with(key, |life| life.troubles.get(&about).map(|t| t.retry_at));
    }
    if let (Hub::Absent, Ledger::Absent) = (&seen.hub, &seen.ledger) {
        context.forget(key);
        return Wake::OnChange;
    }
    let soon = context.subjects.expects_a_kind(key, seen.now);
    // More to do than one pass may take.
    let soon_again = seen.now.checked_add(SignedDuration::from_millis(100)).ok();
    let more = soon_again.filter(|_| !work::plan(&seen).is_empty());
    let remembered = context.memory.wake(key, seen.now);
    let wakes = [verdict.wake, remembered, soon, unheard, handed, more];
    let wake = wakes.into_iter().flatten().min();
    wake.map_or(Wake::OnChange, |time| Wake::After(until(time)))
}

/// Which incarnation ended, if the answer to a patch is of one that nothing holds any more.
fn end_of(outcome: &Outcome) -> Option<String> {
    let Outcome::Done(object) = outcome else { return None };
    let metadata = object.get("metadata")?;
    metadata.get("deletionTimestamp").filter(|time| time.is_string())?;
    let held =
        metadata.get("finalizers").and_then(Value::as_array).is_some_and(|all| !all.is_empty());
    if held { None } else { Some(metadata.get("uid")?.as_str()?.to_owned()) }
}

/// Whether all that is left is to write down what was seen.
fn is_bookkeeping(plan: &Plan) -> bool {
    plan.iter().flatten().all(|action| matches!(action.write, Write::MergeStatus(_)))
}

fn until(time: Timestamp) -> Duration {
    let left = time.duration_since(Timestamp::now());
    Duration::try_from(left).unwrap_or(Duration::ZERO)
}

impl Context {
    /// Has a plan performed, and takes in what came of it.
    async fn execute(&self, key: &Key, seen: &Observed, plan: &Plan) {
        let outcomes = self.executor.execute(plan).await;
        let now = Timestamp::now();
        let wanted = seen.wanted_by_id();
        for (action, outcome) in plan.iter().flatten().zip(outcomes.iter().flatten()) {
            self.absorb(action, outcome);
            let unwritten = records::claims_were_pruned(action, outcome);
            let outcome = unwritten.as_ref().unwrap_or(outcome);
            let id = &action.target.id;
            let wanted = wanted.get(id).map(|wanted| (wanted.digest, seen.is_as_wanted(id)));
            self.memory.happened(key, action, outcome, wanted, now);
        }
        tracing::info!(work = %seen.name, actions = plan.iter().map(Vec::len).sum::<usize>(), "acted");
    }

    /// While others wait to be applied, a work's bookkeeping goes behind them in the queue, once: so
    /// that many works are all there sooner, and each is told of all the same.
    fn puts_off(&self, key: &Key) -> bool {
        let others_wait = self.queue.busy() > self.config.workers;
        self.memory.with(key, |life| {
            life.put_off = others_wait && !life.put_off;
            life.put_off
        })
    }

    /// What we did is seen before any watch tells of it.
    fn absorb(&self, action: &Action, outcome: &Outcome) {
        let id = &action.target.id;
        if id.group == work::ownership::GROUP && id.resource == "manifestworks" {
            self.works.wrote(action, outcome);
        } else if id.group == work::ownership::GROUP && id.resource == "appliedmanifestworks" {
            match end_of(outcome) {
                // The server answers with the object that was; it is gone.
                Some(uid) => {
                    let write = Write::Delete {
                        uid,
                        resource_version: None,
                        propagation: Propagation::Background,
                    };
                    let end = Action { write, ..action.clone() };
                    self.ledgers.wrote(&end, &Outcome::Done(Value::Null));
                }
                None => self.ledgers.wrote(action, outcome),
            }
        } else {
            self.mirror.wrote(action, outcome);
            if id.resource == "customresourcedefinitions" && outcome.is_done() {
                self.kinds.forget();
            }
            if *outcome == Outcome::NoSuchKind {
                self.kinds.forget();
            }
        }
    }

    /// Whether the hub is told now. How a deletion goes changes with every object that ends, so it is
    /// told at most once a second.
    fn may_tell(&self, key: &Key, seen: &Observed) -> bool {
        if !seen.hub.work().is_some_and(|work| work.deleting) {
            return true;
        }
        self.memory.with(key, |life| {
            let next = life.told.and_then(|told| told.checked_add(BETWEEN_TELLINGS).ok());
            match next.filter(|next| *next > seen.now) {
                None => {
                    life.told = Some(seen.now);
                    true
                }
                Some(next) => {
                    life.wake = Some(life.wake.map_or(next, |wake| wake.min(next)));
                    false
                }
            }
        })
    }

    fn forget(&self, key: &Key) {
        self.mirror.interest(&observe::owner(key), &Default::default());
        self.subjects.set(key, &Default::default(), false);
        self.memory.forget(key);
    }
}
