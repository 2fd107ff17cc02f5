//! ConfigurationPolicies: looks whether objects of this cluster are as they must be, puts right what
//! is not, and lets go of what it made as declared.
//!
//! This is the whole IO half. Every pass reads everything anew (from watches, mostly), asks
//! [`cleat_core::policy`] what to do, has it done, and looks again until there is nothing left to do;
//! then users are told. Events only say which policy to look at. No hub is needed.

mod contents;
mod departure;
mod foresight;
pub(crate) mod kinds;
mod lists;
mod memory;
mod metrics;
mod observe;
mod outlook;
mod proposal;
mod records;
mod remarks;
mod sight;
mod spare;
mod subjects;
mod sweep;
pub mod templates;
pub mod trial;

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use cleat_core::id::{Id, Target};
use cleat_core::policy;
use cleat_core::policy::observed::{Observed, Subject, TerminatingNamespaces};
use cleat_core::write::{Action, Outcome, Plan, Propagation, Write};
use cleat_runtime::definitions;
use cleat_runtime::execute::{self, Executor};
use cleat_runtime::follow::{Follow, Scope};
use cleat_runtime::kinds::Kinds;
use cleat_runtime::mirror::Mirror;
use cleat_runtime::queue::{self, Queue, Wake};
use cleat_runtime::tasks::Tasks;
use jiff::Timestamp;
use kube::Client;
use serde_json::Value;
use tokio::time::Instant;

use self::contents::Contents;
use self::lists::Lists;
use self::memory::{Memory, held_back};
use self::observe::Waking;
use self::remarks::Remarks;
use self::sight::Fresh;
use self::subjects::Subjects;
use self::sweep::Sweeps;
use crate::leave::Presence;

pub use self::metrics::Metrics;
pub use self::outlook::{Onlooker, Policies};
pub(crate) use self::records::end_of;

/// Who writes, as servers are told.
pub const FIELD_MANAGER: &str = "config-policy-controller";

/// Who `managedFields` say wrote for a policy. It must be nobody else's, not even another policy's:
/// by it, the objects that a policy made are known again after a crash.
pub fn field_manager(policy: &str) -> String {
    format!("{FIELD_MANAGER}/{policy}")
}

/// Where policies may live that no hub sent.
pub const OWN_NAMESPACE: &str = "open-cluster-management-policies";

/// More rounds than any life of a policy needs; what is not done by then has another turn.
const MOST_ROUNDS: usize = 16;

/// How long passes wait for the first look at policies.
const FIRST_LOOK: Duration = Duration::from_secs(30);

/// What a controller of policies is told.
#[derive(Clone)]
pub struct Config {
    pub cluster_client: Client,
    /// Where policies are looked for. Empty: everywhere.
    pub namespaces: Vec<String>,
    /// What `terminatingInclusion: Default` stands for.
    pub terminating_namespaces: TerminatingNamespaces,
    /// Namespace and name of the Deployment this runs in, if it does: an annotation on it says that
    /// the controller is about to be taken away.
    pub deployment: Option<(String, String)>,
    /// The hub that sends policies to this cluster, if one does.
    pub fleet: Option<Fleet>,
    /// Template functions that may not be used.
    pub denied_functions: Vec<String>,
    /// What is told of policies in numbers.
    pub metrics: Metrics,
    /// The name of this process in events.
    pub instance: String,
    /// Policies under way at the same time.
    pub workers: usize,
    /// Requests under way at the same time.
    pub in_flight: usize,
}

impl Config {
    /// What `cleat policy controller` uses unless told otherwise.
    pub fn new(cluster_client: Client) -> Self {
        Self {
            cluster_client,
            namespaces: Vec::new(),
            terminating_namespaces: TerminatingNamespaces::Included,
            deployment: None,
            fleet: None,
            denied_functions: Vec::new(),
            metrics: Metrics::default(),
            instance: "cleat".to_owned(),
            workers: 32,
            in_flight: execute::IN_FLIGHT,
        }
    }

    /// For a member of a fleet: its own namespace, and that of policies no hub sent.
    pub fn of_member(cluster_client: Client, cluster: &str) -> Self {
        let namespaces = vec![cluster.to_owned(), OWN_NAMESPACE.to_owned()];
        Self { namespaces, ..Self::new(cluster_client) }
    }
}

/// Where a member of a fleet gets policies from.
#[derive(Clone)]
pub struct Fleet {
    pub hub_client: Client,
    /// The cluster's name, which is the namespace of what the hub sends.
    pub cluster: String,
    pub presence: Presence,
}

/// Namespace and name of a policy.
pub(crate) type Key = (String, String);

/// Everything a pass needs. Shared by all passes.
struct Context {
    config: Config,
    /// One per namespace, or one for all.
    policies: Vec<Follow>,
    /// The Deployment this runs in.
    deployment: Option<Follow>,
    namespaces: OnceLock<Follow>,
    mirror: Mirror,
    contents: Contents,
    sweeps: Sweeps,
    lists: Lists,
    kinds: Kinds,
    executor: Executor,
    remarks: Remarks,
    memory: Memory,
    subjects: Arc<Subjects>,
    queue: Queue<Key>,
    tasks: Tasks,
}

/// Starts the story; it runs until `tasks` are shut down.
pub fn start(config: Config, tasks: &Tasks) -> Policies {
    let queue: Queue<Key> = Queue::new();
    let subjects = Arc::new(Subjects::default());
    let namespaces: Vec<Option<String>> = match config.namespaces.as_slice() {
        [] => vec![None],
        some => {
            let distinct: BTreeSet<&String> = some.iter().collect();
            distinct.into_iter().map(|name| Some(name.clone())).collect()
        }
    };
    let policies: Vec<Follow> = namespaces
        .into_iter()
        .map(|namespace| {
            let queue = queue.clone();
            let scope = Scope { namespace, ..scope() };
            Follow::start(config.cluster_client.clone(), tasks, scope, move |namespace, name| {
                queue.add((namespace.to_owned(), name.to_owned()));
            })
        })
        .collect();
    config.metrics.about(&policies);
    let everyone = {
        let (queue, policies) = (queue.clone(), policies.clone());
        move || {
            for policy in policies.iter().flat_map(Follow::all) {
                queue.add((policy.namespace.to_string(), policy.name.to_string()));
            }
        }
    };
    let deployment = departure::follow(&config, tasks, everyone.clone());
    if let Some(fleet) = &config.fleet {
        fleet.presence.on_change(tasks, everyone.clone());
    }
    let mirror = {
        let (queue, subjects) = (queue.clone(), Arc::clone(&subjects));
        Mirror::handing_over(config.cluster_client.clone(), tasks, move |id: &Id| {
            if *id == departure::definition().id {
                everyone();
            }
            subjects.of(id, |key| queue.add(key.clone()));
        })
    };
    mirror.interest("definition", &[departure::definition()].into());
    let kinds = Kinds::new(config.cluster_client.clone());
    definitions::follow(&config.cluster_client, tasks, {
        let (queue, kinds, subjects) = (queue.clone(), kinds.clone(), Arc::clone(&subjects));
        let policies = policies.clone();
        move || {
            kinds.forget();
            policies.iter().filter(|policies| policies.trouble().is_some()).for_each(Follow::check);
            subjects.kinds_changed(|key| queue.add(key.clone()));
        }
    });
    let executor = Executor::new(execute::Config {
        hub: config.fleet.as_ref().map(|fleet| fleet.hub_client.clone()),
        cluster: Some(config.cluster_client.clone()),
        field_manager: Some(FIELD_MANAGER.to_owned()),
        user_agent: Some(FIELD_MANAGER.to_owned()),
        in_flight: config.in_flight,
    });
    let executor = executor.strict();
    let workers = config.workers;
    let lists = Lists::new(config.cluster_client.clone(), queue.clone(), Arc::clone(&subjects));
    let context = Arc::new(Context {
        config,
        policies,
        deployment,
        namespaces: OnceLock::new(),
        mirror,
        contents: Contents::default(),
        sweeps: Sweeps::default(),
        lists,
        kinds,
        remarks: Remarks::start(executor.clone(), tasks),
        executor,
        memory: Memory::default(),
        subjects,
        queue: queue.clone(),
        tasks: tasks.clone(),
    });
    let policies = Policies { context: Arc::clone(&context) };
    let mut stop = tasks.stop();
    tasks.spawn("policies", async move {
        let closing = context.queue.clone();
        let ending = Arc::clone(&context);
        let first_look = async {
            for policies in &context.policies {
                policies.until_synced().await;
            }
        };
        if stop.or(tokio::time::timeout(FIRST_LOOK, first_look)).await.is_none() {
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
        ending.lists.end().await;
    });
    policies
}

fn policy_target(namespace: &str, name: &str) -> Target {
    let Scope { group, version, resource, .. } = scope();
    let id = Id { group, resource, namespace: namespace.to_owned(), name: name.to_owned() };
    Target { version, id }
}

fn scope() -> Scope {
    Scope {
        group: cleat_api::configurationpolicy::GROUP.to_owned(),
        version: "v1".to_owned(),
        resource: "configurationpolicies".to_owned(),
        ..Scope::default()
    }
}

/// Looks, plans and acts until there is nothing left to do now; then tells.
#[tracing::instrument(level = "debug", skip(context))]
async fn reconcile(key: &Key, context: &Context) -> Wake {
    let begun = Instant::now();
    let mut waking = Waking::default();
    let mut held = None;
    for _ in 0..MOST_ROUNDS {
        let mut fresh = Fresh::Lately;
        let (seen, plan) = loop {
            let seen = match context.observe(key, &mut waking, fresh).await {
                Ok(seen) => seen,
                // Something was not read yet. Whoever reads it wakes us.
                Err(wake) => return wake,
            };
            // Outside of the memory, which all passes share.
            let plan = policy::plan(&seen);
            let (plan, until) = context.memory.with(key, |life| held_back(life, plan));
            held = until;
            if fresh == Fresh::Now || !policy::must_be_sure(&seen, &plan) {
                break (seen, plan);
            }
            fresh = Fresh::Now;
        };
        if !plan.is_empty() {
            context.execute(key, &seen, plan, &mut waking).await;
            continue;
        }
        if policy::is_due(&seen) {
            context.config.metrics.evaluated(key, begun.elapsed());
        }
        return context.tell(key, &seen, &mut waking, held).await;
    }
    let again = Timestamp::now().checked_add(jiff::SignedDuration::from_millis(100)).ok();
    let wake = [held, again].into_iter().flatten().min();
    wake.map_or(Wake::OnChange, |time| Wake::After(until(time)))
}

fn until(time: Timestamp) -> Duration {
    let left = time.duration_since(Timestamp::now());
    Duration::try_from(left).unwrap_or(Duration::ZERO)
}

impl Context {
    /// Says what there is to say, and when to look again.
    async fn tell(
        &self,
        key: &Key,
        seen: &Observed,
        waking: &mut Waking,
        held: Option<Timestamp>,
    ) -> Wake {
        if matches!(seen.policy, Subject::Absent) {
            self.forget(key);
            return Wake::OnChange;
        }
        let verdict = policy::report(seen);
        for text in &verdict.log {
            tracing::info!(namespace = %key.0, policy = %key.1, "{text}");
        }
        let told = self.execute(key, seen, verdict.publish, waking).await;
        let retry = self.memory.with(key, |life| {
            if told {
                let memory = std::mem::take(&mut life.memory).reported(&seen.cluster, seen.now);
                let namespaces = policy::namespaces(seen).or(memory.namespaces);
                life.memory = policy::Memory { namespaces, ..memory };
            }
            life.memory.troubles.values().map(|trouble| trouble.retry_at).min()
        });
        let soon = self.subjects.expects_a_kind(key, seen.now);
        let wake = [verdict.wake, retry, held, soon].into_iter().flatten().min();
        wake.map_or(Wake::OnChange, |time| Wake::After(until(time)))
    }

    /// Has a plan performed, and takes in what came of it. Whether all of it was done that matters to
    /// others than people.
    async fn execute(&self, key: &Key, seen: &Observed, plan: Plan, waking: &mut Waking) -> bool {
        if plan.is_empty() {
            return true;
        }
        let Subject::Policy(policy) = &seen.policy else { return false };
        let (plan, remarks) = policy::apart(plan);
        let manager = field_manager(&policy.uid);
        let outcomes = self.executor.named(manager.clone()).execute(&plan).await;
        let done = outcomes.iter().take_while(|step| step.iter().all(Outcome::is_done)).count();
        let now = Timestamp::now();
        let mut all = true;
        for (action, outcome) in plan.iter().flatten().zip(outcomes.iter().flatten()) {
            all &= outcome.is_done();
            self.absorb(&policy.uid, action, outcome);
            waking.forget(&action.target.id);
            self.memory.with(key, |life| life.happened(seen, action, outcome, now));
        }
        let actions = plan.iter().map(Vec::len).sum::<usize>();
        tracing::info!(namespace = %key.0, policy = %key.1, actions, all, "acted");
        let remarks = remarks.into_iter().filter(|remark| remark.after <= done);
        self.remarks.say(manager, remarks.map(|remark| remark.action).collect()).await;
        all
    }

    /// What we did is seen before any watch tells of it.
    fn absorb(&self, policy: &str, action: &Action, outcome: &Outcome) {
        let id = &action.target.id;
        if id.resource == "events" && id.group.is_empty() {
            return;
        }
        if id.group == scope().group && id.resource == scope().resource {
            let end = end_of(outcome).map(|uid| {
                // The server answers with the object that was; it is gone.
                let write = Write::Delete {
                    uid,
                    resource_version: None,
                    propagation: Propagation::Background,
                };
                Action { write, ..action.clone() }
            });
            for policies in &self.policies {
                match &end {
                    Some(end) => policies.wrote(end, &Outcome::Done(Value::Null)),
                    None => policies.wrote(action, outcome),
                }
            }
            return;
        }
        match (&action.write, outcome) {
            (Write::Create(_), Outcome::Done(object)) => {
                self.contents.made(id, object.clone(), policy);
            }
            (Write::Replace(_), Outcome::Done(object)) => {
                drop(self.contents.keep(id, object.clone()));
            }
            _ => self.contents.forget(id),
        }
        self.mirror.wrote(action, outcome);
        let definition = id.resource == "customresourcedefinitions" && outcome.is_done();
        if definition || *outcome == Outcome::NoSuchKind {
            self.kinds.forget();
        }
    }

    fn forget(&self, key: &Key) {
        self.care(key, &Default::default());
        self.memory.forget(key);
        self.config.metrics.forget(key);
    }
}
