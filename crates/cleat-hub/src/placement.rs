//! The IO half of a Placement's story: looks, and has done what `cleat-core` decides.

mod confirm;
mod expressions;
pub mod outlook;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use cleat_api::placement::ScoreCoordinateType;
use cleat_core::placement::{
    self as core, Defined, Misconfigured, Observed, Selection, Sightings, Unfit, Wish,
};
use cleat_core::write::Outcome;
use cleat_runtime::execute::Executor;
use cleat_runtime::queue::{Queue, Wake};
use cleat_runtime::tasks::Tasks;
use kube::Client;

use self::expressions::Expressions;
use crate::followed::{Followed, Key};
use crate::kinds::{self, every};
use crate::sightings::Watched;
use crate::view::{Cluster, ClusterSet, Decision, Placement, Scores, SetBinding};

/// What passes share. Its clones are the same.
#[derive(Clone)]
pub(crate) struct Placements {
    pub(crate) executor: Executor,
    hub_client: Client,
    pub(crate) queue: Queue<Key>,
    pub(crate) placements: Followed<Placement>,
    pub(crate) decisions: Followed<Decision>,
    pub(crate) clusters: Followed<Cluster>,
    sets: Followed<ClusterSet>,
    bindings: Followed<SetBinding>,
    scores: Followed<Scores>,
    expressions: Arc<Expressions>,
    watched: Watched,
}

/// When to look again at a placement whose status could not be written.
const AFTER_STATUS: Duration = Duration::from_secs(5);

impl Placements {
    pub(crate) fn new(executor: Executor, hub_client: Client) -> Self {
        Self {
            executor,
            hub_client,
            queue: Queue::new(),
            placements: Followed::new(),
            decisions: Followed::new(),
            clusters: Followed::new(),
            sets: Followed::new(),
            bindings: Followed::new(),
            scores: Followed::new(),
            expressions: Arc::default(),
            watched: Watched::new(),
        }
    }

    /// Follows what placements choose by. Clusters are of interest to others as well: `cluster` is
    /// told of every change, and whether all that is carried there is the same after it.
    pub(crate) fn follow(
        &self,
        namespace: &Option<String>,
        tasks: &Tasks,
        cluster: impl Fn(Option<&Cluster>, bool) + Send + Sync + 'static,
    ) {
        let client = &self.hub_client;
        let all = self.clone();
        let following = self.clusters.clone().follow(
            every(client, &None, kinds::CLUSTER),
            tasks.stop(),
            move |old: Option<&Cluster>, new: Option<&Cluster>| {
                if old.is_some() && old.map(|old| &old.seen) == new.map(|new| &new.seen) {
                    return;
                }
                let both = old.zip(new);
                let alike = both.is_some_and(|(old, new)| old.seen.carries_like(&new.seen));
                all.watched.saw(old.map(|old| &*old.seen), new.map(|new| &*new.seen));
                // Who takes from clusters that are not chosen waits for those who choose.
                all.look_at_all();
                cluster(new, alike);
            },
        );
        tasks.spawn("follow clusters", following);
        let all = self.clone();
        let following = self.sets.clone().follow(
            every(client, &None, kinds::CLUSTER_SET),
            tasks.stop(),
            move |old: Option<&ClusterSet>, new: Option<&ClusterSet>| {
                if old.map(|old| &old.0.spec) != new.map(|new| &new.0.spec) || old.is_none() {
                    all.look_at_all();
                }
            },
        );
        tasks.spawn("follow cluster sets", following);
        let all = self.clone();
        let following = self.bindings.clone().follow(
            every(client, namespace, kinds::SET_BINDING),
            tasks.stop(),
            move |_: Option<&SetBinding>, _: Option<&SetBinding>| all.look_at_all(),
        );
        tasks.spawn("follow cluster set bindings", following);
        let all = self.clone();
        let following = self.scores.clone().follow(
            every(client, &None, kinds::SCORE),
            tasks.stop(),
            move |_: Option<&Scores>, _: Option<&Scores>| {
                all.placements.every(|placement| {
                    if uses_scores(&placement.wish) {
                        all.queue.add(placement.key());
                    }
                });
            },
        );
        tasks.spawn("follow scores", following);
    }

    pub(crate) fn look_at_all(&self) {
        self.placements.every(|placement| self.queue.add(placement.key()));
    }

    /// What was seen of clusters, and of the placements of a namespace that are decided here.
    pub(crate) fn sightings(&self, namespace: &str) -> Sightings {
        let all = self.placements.in_namespace(namespace);
        let ours = all.iter().filter(|one| !one.wish.elsewhere && !one.wish.deleting);
        self.watched.of(ours.map(|placement| placement.key()))
    }

    /// None if there is no such placement, or too little is known to say anything.
    fn observe(&self, key: &Key) -> Option<Observed> {
        let wish = self.placements.get(key)?.wish.clone();
        let known = self.clusters.is_listed()
            && self.sets.is_listed()
            && self.bindings.is_listed()
            && self.decisions.is_listed()
            && (self.scores.is_listed() || !uses_scores(&wish));
        if !known {
            return None;
        }
        let (mut bound, mut lost) = (Vec::new(), Vec::new());
        for binding in self.bindings.group(&wish.namespace) {
            match self.sets.get(&(String::new(), binding.set.clone())) {
                Some(set) => bound.push(Arc::clone(&set.0)),
                None => lost.push(binding.set.clone()),
            }
        }
        let mut clusters = Vec::new();
        self.clusters.every(|cluster| clusters.push(Arc::clone(&cluster.seen)));
        let mut scores = BTreeMap::new();
        if uses_scores(&wish) {
            self.scores.every(|one| {
                scores.insert((one.0.cluster.clone(), one.0.name.clone()), Arc::clone(&one.0));
            });
        }
        let mut elsewhere = BTreeMap::new();
        self.decisions.every(|decision| {
            if decision.placement() != *key {
                for cluster in decision.decision.clusters() {
                    *elsewhere.entry(cluster.to_owned()).or_default() += 1;
                }
            }
        });
        let decisions = self.decisions.group(&Decision::group_of(&key.0, &key.1));
        let decisions = decisions.iter().map(|one| Arc::clone(&one.decision)).collect();
        let now = jiff::Timestamp::now();
        let defined = Defined::Unasked;
        Some(Observed { now, wish, bound, lost, clusters, scores, elsewhere, decisions, defined })
    }

    fn choose(&self, seen: &Observed) -> Result<Selection, Misconfigured> {
        core::choose(seen, &holds(&self.expressions, seen))
    }

    /// The choice. Every cluster that it takes out of a decision was asked for; where that could not
    /// be done the observation says so, and nothing comes of it.
    async fn settle(&self, seen: &mut Observed) -> Result<Selection, Misconfigured> {
        let mut asked: BTreeSet<String> = BTreeSet::new();
        loop {
            let selection = self.choose(seen)?;
            let taken = core::taken_out(seen, &selection).into_iter();
            let new: BTreeSet<String> =
                taken.filter(|name| !asked.contains(*name)).map(str::to_owned).collect();
            if new.is_empty() || matches!(seen.defined, Defined::Gone(_)) {
                return Ok(selection);
            }
            if let Err(error) = self.confirm(seen, &new).await {
                let error: &dyn std::error::Error = &error;
                tracing::warn!(error, "no cluster is taken out, for something is not known");
                seen.defined = Defined::Unasked;
                return Ok(selection);
            }
            asked.extend(new);
        }
    }
}

/// Answers for expressions, with what add-ons say of clusters.
fn holds<'a>(
    expressions: &'a Expressions,
    seen: &'a Observed,
) -> impl Fn(&str, &core::Cluster) -> Result<bool, Unfit> + 'a {
    move |expression: &str, cluster: &core::Cluster| {
        let of = seen.scores.range((cluster.name.clone(), String::new())..);
        let of = of.take_while(|((name, _), _)| *name == cluster.name);
        let scores: Vec<&core::Scores> = of.map(|(_, scores)| &**scores).collect();
        expressions.holds(expression, cluster, &scores)
    }
}

/// Whether what add-ons say matters to it.
fn uses_scores(wish: &Wish) -> bool {
    let Ok(spec) = &wish.spec else { return false };
    let configurations = spec.prioritizer_policy.iter().flat_map(|all| &all.configurations);
    let mut coordinates = configurations.map(|one| &one.score_coordinate);
    let selectors = spec.predicates.iter().filter_map(|one| one.required_cluster_selector.as_ref());
    let expressions = selectors.filter_map(|one| one.cel_selector.as_ref());
    coordinates.any(|one| one.type_ == ScoreCoordinateType::AddOn)
        || expressions.flat_map(|all| &all.cel_expressions).any(|one| one.contains("scores"))
}

#[tracing::instrument(skip_all, fields(placement = %format!("{}/{}", key.0, key.1)))]
pub(crate) async fn pass(cx: Placements, key: Key) -> Wake {
    let began = cx.watched.begin();
    let Some(mut seen) = cx.observe(&key) else {
        cx.watched.forget(&key);
        return Wake::OnChange;
    };
    if seen.wish.elsewhere || seen.wish.deleting {
        return Wake::OnChange;
    }
    let selection = cx.settle(&mut seen).await;
    let plan = selection.as_ref().map(|chosen| core::plan(&seen, chosen)).unwrap_or_default();
    let done = cx.executor.execute(&plan).await;
    let failed = done.iter().flatten().filter(|outcome| !outcome.is_done()).count();
    if !plan.is_empty() {
        let clusters = selection.as_ref().map(|chosen| chosen.len()).unwrap_or_default();
        let writes = plan.iter().flatten().count();
        tracing::info!(clusters, writes, failed, "decisions written");
    }
    let verdict = core::report(&seen, selection.as_ref(), &plan, &done);
    if verdict.settled {
        cx.watched.looked(key, began);
    }
    let mut wake = verdict.wake.and_then(|after| Duration::try_from(after).ok());
    if let Some(status) = verdict.status {
        match cx.executor.execute([vec![status]]).await.into_iter().flatten().next() {
            // After a conflict the newer state is on its way to us.
            Some(Outcome::Done(_) | Outcome::Conflict(_) | Outcome::NotFound) | None => {}
            Some(other) => {
                tracing::warn!(outcome = ?other, "the status of the placement was not written");
                wake = Some(wake.map_or(AFTER_STATUS, |wake| wake.min(AFTER_STATUS)));
            }
        }
    }
    wake.map_or(Wake::OnChange, Wake::After)
}
