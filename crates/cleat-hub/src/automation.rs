//! The IO half of a PolicyAutomation's story: looks, and has done what `cleat-core` decides.
//!
//! What was written down is always read back before a job is made for it, and a job is made only
//! from a state of the automation that a server just gave.

mod context;
mod view;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cleat_api::policyautomation::{AUTOMATION_LABEL, PolicyAutomation};
use cleat_core::automation::{
    self as core, Context, Job, Observed, Setback, Sight, Sighting, Told,
};
use cleat_core::id::{Id, Target};
use cleat_core::propagation::Root;
use cleat_core::write::{Action, Outcome, Side, Write};
use cleat_runtime::clock::Clock;
use cleat_runtime::execute::{self, Executor, Read};
use cleat_runtime::queue::{self, Queue, Wake};
use cleat_runtime::tasks::Tasks;
use kube::api::{Api, DynamicObject, ListParams};
use kube::{Client, ResourceExt as _};

use self::view::{Automation, AutomationJob, key_of};
use crate::followed::{Followed, Key};
use crate::kinds::{AUTOMATION, JOB, POLICY, every};
use crate::propagation::view::Policy;

/// What automations are looked after with.
pub struct Config {
    pub hub_client: Client,
    /// Look only after the automations of this namespace; all of them without.
    pub namespace: Option<String>,
    pub clock: Clock,
}

const MANAGER: &str = "cleat-hub";

/// How many automations are looked after at the same time.
const AT_ONCE: usize = 8;

/// How many steps one pass takes at most; a story that goes on is taken up again soon.
const ROUNDS: usize = 24;
/// So many jobs are asked for by name; if more are written down, they are listed.
const FEW: usize = 32;
const PAGE: u32 = 500;
const SOON: Duration = Duration::from_secs(1);

/// What passes share.
struct Automations {
    executor: Executor,
    hub_client: Client,
    clock: Clock,
    automations: Followed<Automation>,
    policies: Followed<Policy>,
    /// How often they were listed: what they were in between is known only to clusters.
    listings: AtomicU64,
    /// How often clusters said that they complied.
    hints: AtomicU64,
    jobs: Followed<AutomationJob>,
    memory: Mutex<BTreeMap<Key, Memory>>,
}

/// What is known of one automation until this process ends.
#[derive(Clone, Default)]
struct Memory {
    setback: Option<Setback>,
    /// Clusters that complied at that version of the policy.
    glimpses: BTreeMap<String, u64>,
    /// Clusters that said so, by the number of the hint.
    hints: BTreeMap<String, u64>,
    /// Up to which listing clusters were asked what went unheard before it.
    listened: u64,
    /// Something of that could not be read.
    deaf: bool,
}

/// Starts looking after automations, until `tasks` end.
pub fn start(config: Config, tasks: &Tasks) {
    let (policies, all) = (Followed::new(), every(&config.hub_client, &None, POLICY));
    let heard = start_beside(config, policies.clone(), tasks);
    tasks.spawn("follow policies", policies.follow(all, tasks.stop(), heard));
}

/// The same beside somebody else who follows policies, and tells what comes back of every change.
pub(crate) fn start_beside(
    config: Config,
    policies: Followed<Policy>,
    tasks: &Tasks,
) -> impl Fn(Option<&Policy>, Option<&Policy>) + Send + use<> {
    let Config { hub_client, namespace, clock } = config;
    let executor = Executor::new(execute::Config {
        hub: Some(hub_client.clone()),
        field_manager: Some(MANAGER.to_owned()),
        ..execute::Config::default()
    });
    let cx = Arc::new(Automations {
        executor,
        hub_client: hub_client.clone(),
        clock,
        automations: Followed::new(),
        policies,
        listings: AtomicU64::new(0),
        hints: AtomicU64::new(0),
        jobs: Followed::new(),
        memory: Mutex::default(),
    });
    let queue: Queue<Key> = Queue::new();

    let adding = queue.clone();
    let following = cx.automations.clone().follow(
        every(&hub_client, &namespace, AUTOMATION),
        tasks.stop(),
        move |old: Option<&Automation>, new: Option<&Automation>| {
            new.or(old).iter().for_each(|one| adding.add(one.key()));
        },
    );
    tasks.spawn("follow automations", following);

    let (adding, looking) = (queue.clone(), Arc::clone(&cx));
    let following = cx.jobs.clone().follow(
        every(&hub_client, &namespace, JOB),
        tasks.stop(),
        move |old: Option<&AutomationJob>, new: Option<&AutomationJob>| match new.or(old) {
            Some(job) => adding.add(job.automation.clone()),
            None => looking.automations.every(|one| adding.add(one.key())),
        },
    );
    tasks.spawn("follow jobs", following);

    let (closing, mut stop) = (queue.clone(), tasks.stop());
    tasks.spawn("automations: end", async move {
        stop.stopped().await;
        closing.close();
    });
    let (adding, hearing) = (queue.clone(), Arc::clone(&cx));
    let passes = queue::run(queue, AT_ONCE, move |key| pass(Arc::clone(&cx), key));
    tasks.spawn("automations", passes);
    move |old: Option<&Policy>, new: Option<&Policy>| match (old, new) {
        (None, None) => {
            hearing.listings.fetch_add(1, Ordering::SeqCst);
            hearing.automations.every(|one| adding.add(one.key()));
        }
        _ => hearing.hear(old, new).into_iter().for_each(|key| adding.add(key)),
    }
}

#[tracing::instrument(skip_all, fields(automation = %format!("{}/{}", key.0, key.1)))]
async fn pass(cx: Arc<Automations>, key: Key) -> Wake {
    let Some(followed) = cx.automations.get(&key) else {
        cx.memory().remove(&key);
        return Wake::OnChange;
    };
    // The end of the listing looks at every automation again.
    if !cx.policies.is_listed() {
        return Wake::OnChange;
    }
    let until = cx.until();
    let mut automation = followed.0.clone();
    let mut fresh = false;
    for _ in 0..ROUNDS {
        let seen = cx.observe(&key, automation, until).await;
        let plan = core::plan(&seen);
        let makes = plan.iter().flatten().any(|action| matches!(action.write, Write::Create(_)));
        if makes && !fresh {
            let Some(found) = cx.read(&key).await else { return Wake::After(SOON) };
            (automation, fresh) = (found, true);
            continue;
        }
        let done = if plan.is_empty() { Vec::new() } else { cx.executor.execute(&plan).await };
        log(&plan, &done);
        let setback = core::judge(&seen, &plan, &done);
        let settled = plan.is_empty();
        cx.memory().entry(key.clone()).or_default().setback = setback.clone();
        let next = match done.into_iter().flatten().next() {
            None => Next::End,
            Some(Outcome::Done(_) | Outcome::AlreadyExists) if makes => Next::Same,
            Some(Outcome::Done(object)) => match serde_json::from_value(object) {
                Ok(object) => Next::Changed(Box::new(object)),
                Err(_) => Next::End,
            },
            Some(Outcome::Conflict(_)) => Next::Read,
            Some(_) => Next::End,
        };
        automation = match next {
            Next::Same => seen.automation,
            // A server that took a change and shows none has dropped it.
            Next::Changed(after)
                if after.metadata.resource_version == seen.automation.metadata.resource_version =>
            {
                return cx.end(&key, Observed { setback, ..seen }, until, settled).await;
            }
            Next::Changed(after) => {
                fresh = true;
                *after
            }
            Next::Read => {
                let Some(found) = cx.read(&key).await else { return Wake::After(SOON) };
                fresh = true;
                found
            }
            Next::End => return cx.end(&key, Observed { setback, ..seen }, until, settled).await,
        };
    }
    Wake::After(SOON)
}

/// What of it was heard when a pass began.
#[derive(Clone, Copy)]
struct Until {
    listings: u64,
    hints: u64,
}

/// From what the next round begins.
enum Next {
    Same,
    Changed(Box<PolicyAutomation>),
    Read,
    End,
}

impl Automations {
    fn memory(&self) -> MutexGuard<'_, BTreeMap<Key, Memory>> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn until(&self) -> Until {
        // Hints are counted and noted at once.
        let _memory = self.memory();
        let [listings, hints] =
            [&self.listings, &self.hints].map(|count| count.load(Ordering::SeqCst));
        Until { listings, hints }
    }

    /// The automations of a policy.
    fn of(&self, (namespace, name): &Key) -> Vec<Key> {
        let automations = self.automations.group(&key_of(namespace, name));
        automations.iter().map(|one| one.key()).collect()
    }

    /// Notes who recovered, for every automation of the policy, and says which those are.
    fn hear(&self, old: Option<&Policy>, new: Option<&Policy>) -> Vec<Key> {
        if let Some(Policy::Replica { root, replica, complied }) = new {
            let before = match old {
                Some(Policy::Replica { complied, .. }) => Some(complied),
                _ => None,
            };
            if before.is_none_or(|before| before == complied) {
                return Vec::new();
            }
            let keys = self.of(root);
            let mut memory = self.memory();
            let hint = self.hints.fetch_add(1, Ordering::SeqCst).saturating_add(1);
            for key in &keys {
                let hints = &mut memory.entry(key.clone()).or_default().hints;
                hints.insert(replica.cluster.clone(), hint);
            }
            return keys;
        }
        let [old, new] = [old, new].map(|one| one.and_then(Policy::as_root));
        let Some(root) = new.or(old) else { return Vec::new() };
        let keys = self.of(&(root.namespace.clone(), root.name.clone()));
        if let (Some(old), Some(new), false) = (old, new, keys.is_empty())
            && let (Sight::Present(old), Sight::Present(new)) = (view::sight(old), view::sight(new))
            && let Some(version) = new.version()
        {
            let recovered: Vec<&str> = old.recovered(&new).collect();
            let mut memory = self.memory();
            for key in keys.iter().filter(|_| !recovered.is_empty()) {
                let glimpses = &mut memory.entry(key.clone()).or_default().glimpses;
                glimpses.extend(recovered.iter().map(|name| ((*name).to_owned(), version)));
            }
        }
        keys
    }

    async fn observe(&self, key: &Key, automation: PolicyAutomation, until: Until) -> Observed {
        let memory = self.memory().get(key).cloned().unwrap_or_default();
        let Memory { setback, glimpses, hints, listened, deaf: _ } = memory;
        let policy = self.policy(&automation).await;
        let jobs = self.jobs(key, &automation).await;
        let missing = core::unsettled(&automation);
        let missing = missing
            .iter()
            .any(|name| matches!(jobs.get(name), Some(Sighting::Absent | Sighting::NotServed)));
        let context = match &policy {
            Sight::Present(policy) if missing => {
                let targets = core::targets(&automation);
                context::read(&self.executor, &self.hub_client, policy, &targets).await
            }
            _ => Context::NotAsked,
        };
        let (now, told) = (self.clock.now(), BTreeMap::new());
        let hints = hints.into_keys().collect();
        let seen =
            Observed { now, automation, policy, jobs, glimpses, hints, told, context, setback };
        let asks = core::asks(&seen, listened < until.listings);
        let Sight::Present(policy) = &seen.policy else { return seen };
        let told = match context::replicas(&self.hub_client, policy, &asks).await {
            Ok(replicas) => replicas,
            Err(error) => {
                tracing::warn!(%error, "what clusters say of a policy could not be read");
                self.memory().entry(key.clone()).or_default().deaf = true;
                return seen;
            }
        };
        let told = told.into_iter().filter_map(|(name, one)| Some((name, Told::read(&one)?)));
        Observed { told: told.collect(), ..seen }
    }

    /// The policy as a watch told it, or, where somebody else has seen a later state of it, as the
    /// server says.
    async fn policy(&self, automation: &PolicyAutomation) -> Sight {
        let namespace = automation.metadata.namespace.clone().unwrap_or_default();
        let name = automation.spec.policy_ref.clone();
        let found = self.policies.get(&(namespace.clone(), name.clone()));
        let Some(root) = found.as_ref().and_then(|found| found.as_root()) else {
            return Sight::Absent;
        };
        let version = |text: &str| text.parse::<u64>().ok();
        let observed = automation.status.as_ref().and_then(|told| told.observed_policy.as_ref());
        let observed = observed.filter(|observed| observed.uid == root.uid);
        let later = observed.and_then(|observed| version(&observed.resource_version));
        let here = version(&root.resource_version);
        if later.is_none_or(|later| here.is_none_or(|here| here >= later)) {
            return view::sight(root);
        }
        let policies = every(&self.hub_client, &Some(namespace), POLICY);
        match policies.get_opt(&name).await {
            Ok(Some(found)) => view::sight(&Root::read(&found.metadata, &found.data)),
            Ok(None) => Sight::Absent,
            Err(error) => {
                tracing::warn!(%error, "the policy of an automation could not be read");
                Sight::Unknown
            }
        }
    }

    async fn jobs(&self, key: &Key, automation: &PolicyAutomation) -> BTreeMap<String, Sighting> {
        let mut jobs = BTreeMap::new();
        let recent = automation.status.iter().flat_map(|status| &status.recent_jobs);
        if self.jobs.is_listed() {
            jobs.extend(recent.map(|job| (job.name.clone(), Sighting::Absent)));
        }
        for job in self.jobs.group(&key_of(&key.0, &core::label_value(&key.1))) {
            jobs.insert(job.job.name.clone(), Sighting::Present(job.job.clone()));
        }
        let unsettled = core::unsettled(automation);
        let mut listed = BTreeMap::new();
        if unsettled.len() > FEW {
            match self.list_jobs(key).await {
                Ok(found) => listed = found,
                Err(error) => {
                    tracing::warn!(%error, "jobs could not be listed");
                    jobs.extend(unsettled.into_iter().map(|name| (name, Sighting::Unknown)));
                    return jobs;
                }
            }
        }
        let mut asked = 0;
        for name in unsettled {
            let sighting = match listed.remove(&name) {
                Some(object) => present(object, automation),
                // Those that are made next are asked for by name: what is not labelled is not listed.
                None if asked < FEW => {
                    asked += 1;
                    self.job(key, &name, automation).await
                }
                None => Sighting::Absent,
            };
            jobs.insert(name, sighting);
        }
        jobs
    }

    async fn job(&self, key: &Key, name: &str, automation: &PolicyAutomation) -> Sighting {
        match self.executor.read(Side::Hub, &job_target(&key.0, name)).await {
            Read::Present(object) => match serde_json::from_value(object) {
                Ok(object) => present(object, automation),
                Err(_) => Sighting::Unknown,
            },
            Read::Absent => Sighting::Absent,
            Read::NoSuchKind => Sighting::NotServed,
            Read::Unknown { message } => {
                tracing::warn!(name, message, "a job could not be read");
                Sighting::Unknown
            }
        }
    }

    /// The automation's jobs as the server says.
    async fn list_jobs(&self, key: &Key) -> Result<BTreeMap<String, DynamicObject>, kube::Error> {
        let api = every(&self.hub_client, &Some(key.0.clone()), JOB);
        let label = format!("{AUTOMATION_LABEL}={}", core::label_value(&key.1));
        let mut params = ListParams::default().labels(&label).limit(PAGE);
        let mut found = BTreeMap::new();
        loop {
            let page = api.list(&params).await?;
            found.extend(page.items.into_iter().map(|job| (job.name_any(), job)));
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params = params.continue_token(&token),
                None => return Ok(found),
            }
        }
    }

    /// The automation as the server says; nothing if it does not, or there is none.
    async fn read(&self, (namespace, name): &Key) -> Option<PolicyAutomation> {
        let api: Api<PolicyAutomation> = Api::namespaced(self.hub_client.clone(), namespace);
        match api.get_opt(name).await {
            Ok(found) => found,
            Err(error) => {
                tracing::warn!(%error, "an automation could not be read");
                None
            }
        }
    }

    /// Says what there is to say, and forgets what was glimpsed and has had its effect: nothing, as
    /// long as a write that may be owed to it did not succeed.
    async fn end(&self, key: &Key, seen: Observed, until: Until, settled: bool) -> Wake {
        if let Sight::Present(policy) = &seen.policy
            && settled
            && let Some(version) = policy.version()
            && let Some(memory) = self.memory().get_mut(key)
        {
            let promised = core::targets(&seen.automation);
            memory.glimpses.retain(|name, at| *at > version || promised.contains(name));
        }
        let verdict = core::report(&seen);
        let mut wake = verdict.wake.and_then(|after| Duration::try_from(after).ok());
        if let Some(memory) = self.memory().get_mut(key) {
            match std::mem::take(&mut memory.deaf) {
                true => wake = Some(wake.unwrap_or(10 * SOON).min(10 * SOON)),
                false if settled && matches!(seen.policy, Sight::Present(_)) => {
                    memory.listened = until.listings;
                    let promised = core::targets(&seen.automation);
                    memory.hints.retain(|name, at| *at > until.hints || promised.contains(name));
                }
                false => {}
            }
        }
        if let Some(status) = verdict.status {
            match self.executor.execute([vec![status]]).await.into_iter().flatten().next() {
                // After a conflict the newer state is on its way to us.
                Some(Outcome::Done(_) | Outcome::Conflict(_) | Outcome::NotFound) | None => {}
                Some(other) => {
                    tracing::warn!(outcome = ?other, "the status could not be written");
                    wake = Some(wake.unwrap_or(10 * SOON).min(10 * SOON));
                }
            }
        }
        wake.map_or(Wake::OnChange, Wake::After)
    }
}

fn job_target(namespace: &str, name: &str) -> Target {
    let [group, version, _, resource] = JOB;
    let id = Id {
        group: group.to_owned(),
        resource: resource.to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    };
    Target { version: version.to_owned(), id }
}

/// A job of that name that is somebody else's is not ours to count, and not ours to replace.
fn present(object: DynamicObject, automation: &PolicyAutomation) -> Sighting {
    let owners = object.metadata.owner_references.iter().flatten();
    if !owners.into_iter().any(|owner| Some(&owner.uid) == automation.metadata.uid.as_ref()) {
        return Sighting::Foreign;
    }
    Sighting::Present(Job::read(&object.metadata, &object.data))
}

/// One line for a step that did something.
fn log(plan: &[Vec<Action>], done: &[Vec<Outcome>]) {
    for (action, outcome) in plan.iter().flatten().zip(done.iter().flatten()) {
        match (&action.write, outcome) {
            (Write::Create(_), Outcome::Done(_)) => {
                tracing::info!(job = action.target.id.name, "a job was made");
            }
            (_, Outcome::Done(_) | Outcome::Conflict(_) | Outcome::AlreadyExists) => {}
            (_, other) => tracing::warn!(id = %action.target.id, outcome = ?other, "not written"),
        }
    }
}
