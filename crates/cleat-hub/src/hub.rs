//! The hub's controllers, run together: one watch per kind, shared by the stories that need it.
//!
//! Nothing here asks a server for anything at intervals: watches and the times that plans name are
//! all that starts a pass. Several hubs may run side by side; they do the same twice, and no harm.

use cleat_runtime::clock::Clock;
use cleat_runtime::execute::{self, Executor};
use cleat_runtime::queue::{self, Queue};
use cleat_runtime::tasks::{Stop, Tasks};
use kube::Client;

use crate::automation;
use crate::followed::{Followed, Key};
use crate::kinds::{DECISION, PLACEMENT, PREVIEW, SET, WORK, every};
use crate::metrics::Metrics;
use crate::placement::{self, Placements};
use crate::previews::{self, Question};
use crate::propagation::{self, Propagation, rotation};
use crate::replicaset::{self, Replicasets};
use crate::view::{Decision, Placement, Set, Work};
use crate::{stranded, ttl};

/// As whom the hub's controllers write.
const MANAGER: &str = "cleat-hub";

/// What the hub's controllers are made from.
pub struct Config {
    pub hub_client: Client,
    /// Look only after the sets of this namespace; all of them without.
    pub namespace: Option<String>,
    /// Functions that the templates of policies may not use on the hub.
    pub denied_functions: Vec<String>,
    /// What is told of policies in numbers.
    pub metrics: Metrics,
}

impl Config {
    /// What `cleat hub` uses unless told otherwise.
    pub fn new(hub_client: Client) -> Self {
        Self {
            hub_client,
            namespace: None,
            denied_functions: Vec::new(),
            metrics: Metrics::default(),
        }
    }
}

/// How many sets are looked after at the same time.
const SETS_AT_ONCE: usize = 8;
const FINISHED_AT_ONCE: usize = 4;
const STRANDED_AT_ONCE: usize = 4;
/// One after the other, so that each knows what those before it chose.
const PLACEMENTS_AT_ONCE: usize = 1;
const POLICIES_AT_ONCE: usize = 8;
const POLICY_SETS_AT_ONCE: usize = 2;
const KEYS_AT_ONCE: usize = 4;

/// Runs the hub's controllers until `stop` says so; then what is under way ends, and no more begins.
pub async fn run(config: Config, mut stop: Stop) {
    let Config { hub_client, namespace, denied_functions, metrics } = config;
    let executor = Executor::new(execute::Config {
        hub: Some(hub_client.clone()),
        field_manager: Some(MANAGER.to_owned()),
        ..execute::Config::default()
    });
    let sets: Queue<Key> = Queue::new();
    let finished: Queue<Key> = Queue::new();
    let leaving: Queue<Key> = Queue::new();
    let works: Followed<Work> = Followed::new();
    let tasks = Tasks::new();
    let placing = Placements::new(executor.clone(), hub_client.clone());
    let cx = Replicasets {
        executor: executor.clone(),
        hub_client: hub_client.clone(),
        sets: Followed::new(),
        works: works.clone(),
        placements: placing.placements.clone(),
        decisions: placing.decisions.clone(),
        clusters: placing.clusters.clone(),
        placing: placing.clone(),
        setbacks: Default::default(),
    };
    let spreading = Propagation::new(
        executor.clone(),
        hub_client.clone(),
        namespace.clone(),
        denied_functions,
        &placing,
        &tasks,
    );
    metrics.about(&spreading.policies);
    let keys = rotation::Keys::follow(&spreading, &tasks);
    let (to_spread, all_works, waits) = (spreading.clone(), works.clone(), leaving.clone());
    let queue = sets.clone();
    placing.follow(&namespace, &tasks, move |cluster, alike| {
        if !alike {
            to_spread.look_at_all();
            let there = cluster.map(|cluster| all_works.in_namespace(&cluster.seen.name));
            there.iter().flatten().filter_map(|work| work.set()).for_each(|set| queue.add(set));
        }
        let silent = cluster.filter(|cluster| cluster.silent.is_some());
        let there = silent.map(|cluster| all_works.in_namespace(&cluster.seen.name));
        for work in there.iter().flatten().filter_map(|work| work.leaving()) {
            waits.add((work.namespace.clone(), work.name.clone()));
        }
    });
    let (beside, clock) = (spreading.policies.clone(), Clock::system());
    let automating =
        automation::Config { hub_client: hub_client.clone(), namespace: namespace.clone(), clock };
    spreading.follow(&tasks, automation::start_beside(automating, beside, &tasks));

    let queue = sets.clone();
    let following = cx.sets.clone().follow(
        every(&hub_client, &namespace, SET),
        tasks.stop(),
        move |old: Option<&Set>, new: Option<&Set>| {
            new.or(old).iter().for_each(|set| queue.add(set.key()));
        },
    );
    tasks.spawn("follow sets", following);

    let (queue, due, cx_sets) = (sets.clone(), finished.clone(), cx.sets.clone());
    let waits = leaving.clone();
    let following = works.clone().follow(
        every(&hub_client, &None, WORK),
        tasks.stop(),
        move |old: Option<&Work>, new: Option<&Work>| {
            if old.is_none() && new.is_none() {
                return cx_sets.every(|set| queue.add(set.key()));
            }
            for set in [old, new].into_iter().flatten().filter_map(Work::set) {
                queue.add(set);
            }
            if let Some(work) = new.and_then(Work::finished) {
                due.add((work.namespace.clone(), work.name.clone()));
            }
            if let Some(work) = new.and_then(Work::leaving) {
                waits.add((work.namespace.clone(), work.name.clone()));
            }
        },
    );
    tasks.spawn("follow works", following);

    let (queue, cx_sets, to_place) = (sets.clone(), cx.sets.clone(), placing.clone());
    let to_spread = spreading.clone();
    let following = cx.placements.clone().follow(
        every(&hub_client, &namespace, PLACEMENT),
        tasks.stop(),
        move |old: Option<&Placement>, new: Option<&Placement>| {
            let key = new.or(old).map(Placement::key);
            match &key {
                Some(key) => {
                    to_place.queue.add(key.clone());
                    to_spread.decided_again(key, false);
                }
                None => {
                    to_place.look_at_all();
                    to_spread.look_at_all();
                }
            }
            cx_sets.every(|set| {
                if set.looks_at(key.as_ref()) {
                    queue.add(set.key())
                }
            });
        },
    );
    tasks.spawn("follow placements", following);

    let (queue, cx_sets, to_place) = (sets.clone(), cx.sets.clone(), placing.clone());
    let to_spread = spreading.clone();
    let following = cx.decisions.clone().follow(
        every(&hub_client, &namespace, DECISION),
        tasks.stop(),
        move |old: Option<&Decision>, new: Option<&Decision>| {
            if old.is_none() && new.is_none() {
                to_place.look_at_all();
                to_spread.look_at_all();
                return cx_sets.every(|set| queue.add(set.key()));
            }
            for key in [old, new].into_iter().flatten().map(Decision::placement) {
                to_place.queue.add(key.clone());
                to_spread.decided_again(&key, false);
                cx_sets.every(|set| {
                    if set.looks_at(Some(&key)) {
                        queue.add(set.key())
                    }
                });
            }
        },
    );
    tasks.spawn("follow decisions", following);

    let (cx, due) = (std::sync::Arc::new(cx), finished.clone());
    let passes = queue::run(sets.clone(), SETS_AT_ONCE, move |key| {
        replicaset::pass(std::sync::Arc::clone(&cx), key)
    });
    tasks.spawn("sets", passes);
    let (stranded_executor, stranded_works) = (executor.clone(), works.clone());
    let clusters = placing.clusters.clone();
    let passes = queue::run(leaving.clone(), STRANDED_AT_ONCE, move |key| {
        stranded::pass(stranded_executor.clone(), stranded_works.clone(), clusters.clone(), key)
    });
    tasks.spawn("stranded works", passes);
    let (expiring, expiring_executor) = (Queue::<Key>::new(), executor.clone());
    let (questions, queue) = (Followed::<Question>::new(), expiring.clone());
    let following = questions.clone().follow(
        every(&hub_client, &None, PREVIEW),
        tasks.stop(),
        move |_: Option<&Question>, new: Option<&Question>| {
            new.iter().for_each(|question| queue.add(question.key()));
        },
    );
    tasks.spawn("follow previews", following);
    let passes = queue::run(expiring.clone(), FINISHED_AT_ONCE, move |key| {
        previews::pass(expiring_executor.clone(), questions.clone(), key)
    });
    tasks.spawn("previews", passes);
    let passes = queue::run(due, FINISHED_AT_ONCE, move |key| {
        ttl::pass(executor.clone(), works.clone(), key)
    });
    tasks.spawn("finished works", passes);

    let (to_place, placements) = (placing.clone(), placing.queue.clone());
    let passes = queue::run(placements.clone(), PLACEMENTS_AT_ONCE, move |key| {
        placement::pass(to_place.clone(), key)
    });
    tasks.spawn("placements", passes);

    let (cx, roots) = (spreading.clone(), spreading.roots.clone());
    let passes =
        queue::run(roots.clone(), POLICIES_AT_ONCE, move |key| propagation::pass(cx.clone(), key));
    tasks.spawn("policies", passes);
    let (cx, policy_sets) = (spreading.clone(), spreading.sets_due.clone());
    let passes = queue::run(policy_sets.clone(), POLICY_SETS_AT_ONCE, move |key| {
        propagation::pass_set(cx.clone(), key)
    });
    tasks.spawn("policy sets", passes);
    let (cx, exchanges) = (keys.clone(), keys.queue.clone());
    let passes =
        queue::run(exchanges.clone(), KEYS_AT_ONCE, move |key| rotation::pass(cx.clone(), key));
    tasks.spawn("encryption keys", passes);

    stop.stopped().await;
    roots.close();
    exchanges.close();
    policy_sets.close();
    placements.close();
    sets.close();
    finished.close();
    expiring.close();
    leaving.close();
    tasks.shutdown().await;
}
