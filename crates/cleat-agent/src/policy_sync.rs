//! Policies that a hub sends: copies them to this cluster, makes objects of the templates in them,
//! and tells the hub how they stand.
//!
//! This is the whole IO half of [`cleat_core::policy_sync`]: three of OCM's controllers in one. What
//! the templates say is evaluated by [`crate::policy`], or by whoever else looks after their kinds.

mod encryption_key;
mod events;
mod observe;
mod proposal;
mod remains;
mod templates;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cleat_api::policy::GROUP;
use cleat_core::id::Id;
use cleat_core::leave::agent::Source;
use cleat_core::policy_sync::observed::Vanished;
use cleat_core::policy_sync::{self, Observed};
use cleat_core::work::trouble::Trouble;
use cleat_core::write::{Action, Outcome, Plan, Propagation, Side, Write};
use cleat_runtime::execute::{self, Executor};
use cleat_runtime::follow::{Follow, Scope};
use cleat_runtime::kinds::Kinds;
use cleat_runtime::queue::{self, Queue, Wake};
use cleat_runtime::tasks::Tasks;
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use serde_json::Value;

use self::events::Events;
pub(crate) use self::proposal::{Onlooker, without_blank_owner};
pub use self::remains::{marked_now, remains};
use self::templates::TemplateKinds;
use crate::leave::Presence;
use crate::policy::end_of;

/// Who `managedFields` say wrote.
pub const FIELD_MANAGER: &str = "policy-framework";

const MOST_ROUNDS: usize = 16;
const FIRST_LOOK: Duration = Duration::from_secs(30);
/// How soon to look whether the hub has heard what was handed over.
const HEARD: SignedDuration = SignedDuration::from_millis(500);

#[derive(Clone)]
pub struct Config {
    pub hub_client: Client,
    pub cluster_client: Client,
    /// The cluster's name, which is its namespace on the hub and on the cluster.
    pub cluster: String,
    /// How the cluster stands with its hub, where somebody says.
    pub presence: Option<Presence>,
    /// The name of this process in events.
    pub instance: String,
    /// Policies under way at the same time.
    pub workers: usize,
}

impl Config {
    pub fn new(hub_client: Client, cluster_client: Client, cluster: &str) -> Self {
        Self {
            hub_client,
            cluster_client,
            cluster: cluster.to_owned(),
            presence: None,
            instance: "cleat".to_owned(),
            workers: 16,
        }
    }
}

/// What is remembered of a policy between passes, and may be lost.
#[derive(Default)]
struct Life {
    troubles: BTreeMap<Id, Trouble>,
    /// Creating the copy showed that its namespace is not there.
    lacks_namespace: bool,
    /// The cluster did not store what was noted in the copy.
    forgets: bool,
    /// The hub does not have it any more.
    vanished: Option<Vanished>,
}

struct Context {
    config: Config,
    hub: Follow,
    local: Follow,
    events: Events,
    templates: TemplateKinds,
    kinds: Kinds,
    executor: Executor,
    lives: Mutex<BTreeMap<String, Life>>,
    dependents: Arc<Dependents>,
}

/// Which policies wait for which others, by kind and name.
#[derive(Default)]
pub(crate) struct Dependents {
    all: Mutex<BTreeMap<String, BTreeSet<(String, String)>>>,
}

impl Dependents {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, BTreeSet<(String, String)>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, policy: &str, on: BTreeSet<(String, String)>) {
        let mut all = self.lock();
        if on.is_empty() {
            all.remove(policy);
        } else {
            all.insert(policy.to_owned(), on);
        }
    }

    /// The policies that wait for this.
    fn of(&self, kind: &str, name: &str, mut tell: impl FnMut(&String)) {
        for (policy, on) in &*self.lock() {
            if on.iter().any(|(other, of)| other == kind && of == name) {
                tell(policy);
            }
        }
    }
}

/// Starts the story; it runs until `tasks` are shut down.
pub fn start(config: Config, tasks: &Tasks) {
    let queue: Queue<String> = Queue::new();
    let dependents = Arc::new(Dependents::default());
    let policies = |client: &Client, on_event: Box<dyn Fn(&str) + Send + Sync>| {
        let scope = Scope {
            group: GROUP.to_owned(),
            version: "v1".to_owned(),
            resource: "policies".to_owned(),
            namespace: Some(config.cluster.clone()),
            ..Scope::default()
        };
        Follow::start(client.clone(), tasks, scope, move |_, name| on_event(name))
    };
    let hub = {
        let queue = queue.clone();
        policies(&config.hub_client, Box::new(move |name| queue.add(name.to_owned())))
    };
    let local = {
        let (queue, dependents) = (queue.clone(), Arc::clone(&dependents));
        let on_event = move |name: &str| {
            queue.add(name.to_owned());
            dependents.of("Policy", name, |policy| queue.add(policy.clone()));
        };
        policies(&config.cluster_client, Box::new(on_event))
    };
    if let Some(presence) = &config.presence {
        let (queue, local, hub) = (queue.clone(), local.clone(), hub.clone());
        presence.on_change(tasks, move || {
            for policy in [&local, &hub].into_iter().flat_map(Follow::all) {
                queue.add(policy.name.to_string());
            }
        });
    }
    let events = Events::start(&config, tasks, queue.clone());
    let templates = TemplateKinds::start(&config, tasks, queue.clone(), Arc::clone(&dependents), {
        let (queue, local, hub) = (queue.clone(), local.clone(), hub.clone());
        move || {
            for follow in [&local, &hub] {
                if follow.trouble().is_some() {
                    follow.check();
                }
                follow.all().into_iter().for_each(|policy| queue.add(policy.name.to_string()));
            }
        }
    });
    let executor = Executor::new(execute::Config {
        hub: Some(config.hub_client.clone()),
        cluster: Some(config.cluster_client.clone()),
        field_manager: Some(FIELD_MANAGER.to_owned()),
        user_agent: Some(FIELD_MANAGER.to_owned()),
        in_flight: 0,
    });
    encryption_key::start(&config, &executor, tasks);
    let workers = config.workers;
    let kinds = Kinds::new(config.cluster_client.clone());
    let context = Arc::new(Context {
        config,
        hub,
        local,
        events,
        templates,
        kinds,
        executor: executor.strict(),
        lives: Mutex::default(),
        dependents,
    });
    let mut stop = tasks.stop();
    tasks.spawn("sent policies", async move {
        let (closing, ending) = (queue.clone(), Arc::clone(&context));
        let both = async {
            tokio::join!(context.hub.until_synced(), context.local.until_synced());
        };
        if stop.or(tokio::time::timeout(FIRST_LOOK, both)).await.is_none() {
            return closing.close();
        }
        let running = queue::run(queue, workers, move |name| {
            let context = Arc::clone(&context);
            async move { reconcile(&name, &context).await }
        });
        tokio::select! {
            () = running => {}
            // What is under way is abandoned as by a crash: every write is safe to repeat.
            () = stop.stopped() => closing.close(),
        }
        ending.templates.end().await;
    });
}

/// Looks, plans and acts until there is nothing left to do now; then tells.
#[tracing::instrument(level = "debug", skip(context))]
async fn reconcile(name: &str, context: &Context) -> Wake {
    let mut seen = context.observe(name).await;
    for _ in 0..MOST_ROUNDS {
        let plan = policy_sync::plan(&seen);
        if plan.is_empty() {
            break;
        }
        let outcomes = context.execute(name, &plan).await;
        context.announce(&policy_sync::announce(&seen, &plan, &outcomes)).await;
        seen = context.observe(name).await;
    }
    let verdict = policy_sync::report(&seen);
    context.execute(name, &verdict.publish).await;
    if let Some(vanished) = context.lock().get_mut(name).and_then(|life| life.vanished.as_mut()) {
        vanished.told = true;
    }
    if let Some(presence) = &context.config.presence {
        presence.set_mute(name, policy_sync::unsettled(&seen));
    }
    let handed = context.hand_over(name, &seen);
    if policy_sync::is_over(&seen) && handed.is_none() {
        context.lock().remove(name);
        context.dependents.set(name, BTreeSet::new());
        return Wake::OnChange;
    }
    let retry = context
        .lock()
        .get(name)
        .and_then(|life| life.troubles.values().map(|trouble| trouble.retry_at).min());
    let poll = context.polls(&seen);
    let wake = [verdict.wake, retry, poll, handed].into_iter().flatten().min();
    wake.map_or(Wake::OnChange, |time| {
        let left = time.duration_since(Timestamp::now());
        Wake::After(Duration::try_from(left).unwrap_or(Duration::ZERO))
    })
}

impl Context {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Life>> {
        self.lives.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn execute(&self, name: &str, plan: &Plan) -> Vec<Vec<Outcome>> {
        if plan.is_empty() {
            return Vec::new();
        }
        let outcomes = self.executor.execute(plan).await;
        let now = Timestamp::now();
        for (action, outcome) in plan.iter().flatten().zip(outcomes.iter().flatten()) {
            self.absorb(action, outcome);
            self.remember(name, action, outcome, now);
        }
        let actions = plan.iter().map(Vec::len).sum::<usize>();
        tracing::info!(policy = name, actions, "acted");
        outcomes
    }

    /// Says what was done. Who does not hear it can see it, so that it is not said twice.
    async fn announce(&self, events: &Plan) {
        if events.is_empty() {
            return;
        }
        let outcomes = self.executor.execute(events).await;
        let lost = outcomes.iter().flatten().filter(|outcome| !outcome.is_done()).count();
        if lost > 0 {
            tracing::debug!(lost, "events could not be written");
        }
    }

    fn remember(&self, name: &str, action: &Action, outcome: &Outcome, now: Timestamp) {
        let id = &action.target.id;
        let mut lives = self.lock();
        let life = lives.entry(name.to_owned()).or_default();
        // Where nothing can be created, what is not found is the namespace.
        let nowhere = match outcome {
            Outcome::NotFound => true,
            Outcome::Refused(refusal) => refusal.code == 404,
            _ => false,
        };
        let homeless = nowhere && matches!(action.write, Write::Create(_));
        if id.resource == "namespaces" {
            // Whoever made it first, it is there.
            let there = matches!(outcome, Outcome::Done(_) | Outcome::AlreadyExists);
            life.lacks_namespace &= !there;
        } else if homeless && id.group == GROUP && id.resource == "policies" {
            life.lacks_namespace = true;
        }
        if let Outcome::Done(answer) = outcome
            && policy_sync::is_forgotten(&action.write, answer)
            && action.side == Side::Cluster
        {
            tracing::warn!(
                policy = name,
                "the cluster does not store what its policy made: its definition of Policy has no \
                 status.objects"
            );
            life.forgets = true;
        }
        // Every event has a name of its own; that they cannot be written is one trouble.
        let about = match id.resource.as_str() {
            "events" => Id { name: String::new(), ..id.clone() },
            _ => id.clone(),
        };
        match Trouble::after(life.troubles.get(&about), &action.write, outcome, now) {
            Some(trouble) => drop(life.troubles.insert(about, trouble)),
            None => drop(life.troubles.remove(&about)),
        }
    }

    /// What we did is seen before any watch tells of it.
    fn absorb(&self, action: &Action, outcome: &Outcome) {
        let id = &action.target.id;
        let end = end_of(outcome).map(|uid| {
            // The server answers with the object that was; it is gone.
            let write =
                Write::Delete { uid, resource_version: None, propagation: Propagation::Background };
            (Action { write, ..action.clone() }, Outcome::Done(Value::Null))
        });
        let (action, outcome) = end.as_ref().map_or((action, outcome), |(a, o)| (a, o));
        match (id.group.as_str(), id.resource.as_str(), action.side) {
            ("", "events", _) => self.events.wrote(action, outcome),
            (GROUP, "policies", Side::Hub) => self.hub.wrote(action, outcome),
            (GROUP, "policies", Side::Cluster) => self.local.wrote(action, outcome),
            _ => self.templates.wrote(action, outcome),
        }
    }

    /// Hands what stays of a policy that the hub does not have to the leave, which tells the hub; says
    /// when to look whether it has heard.
    fn hand_over(&self, name: &str, seen: &Observed) -> Option<Timestamp> {
        let presence = self.config.presence.as_ref()?;
        presence.strand(Source::Policy(name.to_owned()), policy_sync::stranded(seen)?);
        let later = seen.now.checked_add(HEARD).ok();
        later.filter(|_| policy_sync::is_untold(seen))
    }

    /// Nobody tells when something changes that is waited for and is no kind of policy.
    fn polls(&self, seen: &Observed) -> Option<Timestamp> {
        let foreign = seen.states.keys().any(|one| !self.is_followed(&one.0));
        let later = seen.now.checked_add(SignedDuration::from_secs(10)).unwrap_or(seen.now);
        foreign.then_some(later)
    }
}
