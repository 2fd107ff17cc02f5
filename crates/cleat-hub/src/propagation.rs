//! The IO half of a root policy's story, and of a set of policies': looks, and has done what
//! `cleat-core` decides.

mod confirm;
mod follow;
pub mod outlook;
pub(crate) mod rotation;
mod templates;
pub(crate) mod view;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cleat_core::propagation::{
    self as core, Asked, Observed, Setbacks, Source, Spent, Standing, Told,
};
use cleat_core::replicaset::Decided;
use cleat_core::write::{Action, Outcome};
use cleat_runtime::execute::Executor;
use cleat_runtime::queue::{Queue, Wake};
use kube::Client;

use self::templates::{Purpose, Resolver, Templates};
use self::view::{Policy, PolicyBinding, Rule, Set};
use crate::followed::{Followed, Key};
use crate::placement::Placements;
use crate::view::{Cluster, Decision, Placement};
use crate::written;

/// What passes share. Its clones are the same.
#[derive(Clone)]
pub(crate) struct Propagation {
    pub(crate) executor: Executor,
    pub(crate) hub_client: Client,
    pub(crate) namespace: Option<String>,
    pub(crate) roots: Queue<Key>,
    pub(crate) sets_due: Queue<Key>,
    pub(crate) policies: Followed<Policy>,
    bindings: Followed<PolicyBinding>,
    sets: Followed<Set>,
    rules: Followed<Rule>,
    placing: Placements,
    placements: Followed<Placement>,
    decisions: Followed<Decision>,
    clusters: Followed<Cluster>,
    templates: Arc<Templates>,
    memories: Arc<Mutex<BTreeMap<Key, Memory>>>,
}

/// What is remembered of a root from pass to pass.
#[derive(Clone, Default)]
struct Memory {
    setbacks: Setbacks,
    unsure_since: Option<jiff::Timestamp>,
    told: Told,
    spent: Spent,
}

/// When to look again at what could not be read or told.
const AFTER_FAILURE: Duration = Duration::from_secs(5);

impl Propagation {
    pub(crate) fn new(
        executor: Executor,
        hub_client: Client,
        namespace: Option<String>,
        denied_functions: Vec<String>,
        placing: &Placements,
        tasks: &cleat_runtime::tasks::Tasks,
    ) -> Self {
        let roots = Queue::new();
        let resolver = Resolver::new(hub_client.clone(), executor.clone(), Purpose::Use);
        let resolver = resolver.denying(denied_functions);
        Self {
            templates: Templates::new(resolver, roots.clone(), tasks),
            executor,
            hub_client,
            namespace,
            roots,
            sets_due: Queue::new(),
            policies: Followed::new(),
            bindings: Followed::new(),
            sets: Followed::new(),
            rules: Followed::new(),
            placing: placing.clone(),
            placements: placing.placements.clone(),
            decisions: placing.decisions.clone(),
            clusters: placing.clusters.clone(),
            memories: Arc::default(),
        }
    }

    fn memories(&self) -> MutexGuard<'_, BTreeMap<Key, Memory>> {
        self.memories.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_ready(&self) -> bool {
        self.policies.is_listed()
            && self.bindings.is_listed()
            && self.sets.is_listed()
            && self.clusters.is_listed()
            && self.placements.is_listed()
            && self.decisions.is_listed()
    }

    fn is_ours(&self, key: &Key) -> bool {
        self.namespace.as_ref().is_none_or(|namespace| *namespace == key.0)
    }

    fn root(&self, key: &Key) -> Option<Arc<core::Root>> {
        self.policies.get(key)?.as_root().cloned()
    }

    fn bindings_of(&self, namespace: &str) -> Vec<Arc<core::Binding>> {
        self.bindings.group(namespace).iter().map(|one| Arc::clone(&one.0)).collect()
    }

    fn replicas_of(&self, key: &Key) -> BTreeMap<String, Arc<core::Replica>> {
        let all = self.policies.group(&core::replica_name(key));
        let replicas = all.iter().filter_map(|one| match &**one {
            Policy::Replica { replica, .. } => Some((replica.cluster.clone(), Arc::clone(replica))),
            Policy::Root { .. } => None,
        });
        replicas.collect()
    }

    fn decided(&self, namespace: &str, source: &Source) -> Decided {
        match source {
            Source::Placement(name) => {
                let placement = self.placements.get(&(namespace.to_owned(), name.clone()));
                let decisions = self.decisions.group(&Decision::group_of(namespace, name));
                Decided::read(
                    placement.as_ref().map(|placement| (&placement.metadata, &placement.data)),
                    decisions.iter().map(|decision| (&decision.metadata, &decision.data)),
                )
            }
            Source::Rule(name) => {
                if !self.rules.is_listed() {
                    return Decided::Unknown;
                }
                let rule = self.rules.get(&(namespace.to_owned(), name.clone()));
                rule.map_or(Decided::NoPlacement, |rule| rule.decided.clone())
            }
        }
    }

    fn decided_all(
        &self,
        namespace: &str,
        bindings: &[Arc<core::Binding>],
    ) -> BTreeMap<Source, Decided> {
        let sources = bindings.iter().filter_map(|binding| binding.source.clone());
        sources.map(|source| (source.clone(), self.decided(namespace, &source))).collect()
    }

    /// None while too little is known.
    fn observe(&self, key: &Key) -> Option<Observed> {
        if !self.is_ready() {
            return None;
        }
        let sightings = self.placing.sightings(&key.0);
        let root = self.root(key);
        let bindings = self.bindings_of(&key.0);
        let mut sets = BTreeMap::new();
        for set in self.sets.group(&key.0) {
            sets.insert(set.key(), Arc::clone(&set.0));
        }
        for key in root.iter().flat_map(|root| core::sets_depended_on(&key.0, &root.spec)) {
            if let Some(set) = self.sets.get(&key) {
                sets.insert(key, Arc::clone(&set.0));
            }
        }
        let mut clusters = BTreeMap::new();
        self.clusters.every(|cluster| {
            clusters.insert(cluster.seen.name.clone(), Arc::clone(&cluster.seen));
        });
        let Memory { setbacks, unsure_since, told, .. } =
            self.memories().get(key).cloned().unwrap_or_default();
        Some(Observed {
            now: jiff::Timestamp::now(),
            key: key.clone(),
            decided: self.decided_all(&key.0, &bindings),
            replicas: self.replicas_of(key),
            root,
            bindings,
            sets,
            clusters,
            sightings,
            resolved: BTreeMap::new(),
            asked: Asked::NotYet,
            unsure_since,
            setbacks,
            told,
        })
    }

    /// Tells those of the events that there is room for. Answers when to come back for the rest.
    async fn tell_events(
        &self,
        seen: &Observed,
        events: Vec<core::Event>,
        told: &mut Told,
    ) -> Option<Duration> {
        if events.is_empty() {
            return None;
        }
        let few = {
            let mut memories = self.memories();
            let spent = &mut memories.entry(seen.key.clone()).or_default().spent;
            core::few(events, told, spent, seen.now)
        };
        let actions = core::events(seen, &few.events);
        let done: Vec<Outcome> =
            self.executor.execute([actions]).await.into_iter().flatten().collect();
        for outcome in done.iter().filter(|outcome| !outcome.is_done()) {
            tracing::debug!(?outcome, "an event was not told");
        }
        let again = core::written(told, &few.events, &done);
        [few.again, again].into_iter().flatten().min().and_then(|after| after.try_into().ok())
    }
}

#[tracing::instrument(skip_all, fields(policy = %format!("{}/{}", key.0, key.1)))]
pub(crate) async fn pass(cx: Propagation, key: Key) -> Wake {
    if !cx.is_ours(&key) {
        return Wake::OnChange;
    }
    let Some(mut seen) = cx.observe(&key) else { return Wake::OnChange };
    if seen.root.is_none() && seen.replicas.is_empty() {
        cx.memories().remove(&key);
        cx.templates.forget(&key);
        return Wake::OnChange;
    }
    let again = cx.templates.resolve(&mut seen).await;
    let mut plan = core::plan(&seen);
    if core::removes(&plan) {
        match cx.confirm(&seen).await {
            Ok(asked) => seen = asked,
            // What is to be made or changed is, and the status says what is not.
            Err(error) => {
                seen.asked = Asked::Failed(error.to_string());
                let error: &dyn std::error::Error = &error;
                tracing::warn!(error, "nothing is removed, for something is not known");
            }
        }
        plan = core::plan(&seen);
    }
    let done = cx.executor.execute(&plan).await;
    written::log("copies", &plan, &done);
    let mut verdict = core::report(&seen, &plan, &done);
    let mut wake = verdict.wake.and_then(|after| Duration::try_from(after).ok());
    let mut sooner = |after: Duration| wake = Some(wake.map_or(after, |wake| wake.min(after)));
    if let Some(after) = again {
        sooner(after);
    }
    // Before the status says so: what it says is not told again after a restart.
    if let Some(after) = cx.tell_events(&seen, verdict.events, &mut verdict.told).await {
        sooner(after);
    }
    if let Some(status) = verdict.status
        && !tell(&cx.executor, status).await
    {
        sooner(AFTER_FAILURE);
    }
    {
        let mut memories = cx.memories();
        let memory = memories.entry(key.clone()).or_default();
        memory.setbacks = verdict.setbacks;
        memory.unsure_since = verdict.unsure_since;
        memory.told = verdict.told;
    }
    wake.map_or(Wake::OnChange, Wake::After)
}

/// How a set of policies stands.
#[tracing::instrument(skip_all, fields(set = %format!("{}/{}", key.0, key.1)))]
pub(crate) async fn pass_set(cx: Propagation, key: Key) -> Wake {
    if !cx.is_ours(&key) || !cx.is_ready() {
        return Wake::OnChange;
    }
    let Some(set) = cx.sets.get(&key) else { return Wake::OnChange };
    let bindings = cx.bindings_of(&key.0);
    let decided = cx.decided_all(&key.0, &bindings);
    let mut standings = BTreeMap::new();
    for name in &set.0.policies {
        let root = (key.0.clone(), name.clone());
        let standing = match cx.root(&root) {
            None => Standing::Gone,
            Some(found) if found.disabled => Standing::Disabled,
            Some(_) => {
                let replicas = cx.replicas_of(&root).into_values();
                let says =
                    replicas.filter_map(|one| Some((one.cluster.clone(), one.compliant.clone()?)));
                Standing::Spread(says.collect())
            }
        };
        standings.insert(name.clone(), standing);
    }
    if let Some(status) = core::report_set(&set.0, &bindings, &decided, &standings)
        && !tell(&cx.executor, status).await
    {
        return Wake::After(AFTER_FAILURE);
    }
    Wake::OnChange
}

/// Whether it was told, or is about to be by a pass after this one.
async fn tell(executor: &Executor, status: Action) -> bool {
    match executor.execute([vec![status]]).await.into_iter().flatten().next() {
        // After a conflict the newer state is on its way to us.
        Some(Outcome::Done(_) | Outcome::Conflict(_) | Outcome::NotFound) | None => true,
        Some(other) => {
            tracing::warn!(outcome = ?other, "a status could not be written");
            false
        }
    }
}
