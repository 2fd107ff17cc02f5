//! Watches AnsibleJobs and runs those that nobody else does.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cleat_api::ansiblejob::AnsibleJob;
use cleat_api::policyautomation::PolicyAutomation;
use cleat_core::ansiblejob::{self as core, Ending, Next, Runner};
use cleat_core::write::{Action, Outcome};
use cleat_runtime::clock::Clock;
use cleat_runtime::execute::{self, Executor};
use cleat_runtime::queue::{self, Queue, Wake};
use cleat_runtime::tasks::{Stop, Tasks};
use futures::StreamExt as _;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, ApiResource, DynamicObject};
use kube::core::GroupVersionKind;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, ResourceExt as _};
use serde_json::Value;

use crate::claim::{Served, served_by};
use crate::credentials::Credentials;
use crate::playbook::{Playbook, Playbooks};
use crate::process::{self, Order};
use crate::{family, variables};

/// What a runner is told.
#[derive(Clone)]
pub struct Config {
    pub hub_client: Client,
    /// Run only the jobs of this namespace; all of them without.
    pub namespace: Option<String>,
    pub playbooks: Playbooks,
    /// The program, `ansible-playbook` by any path.
    pub program: PathBuf,
    /// The program that stands guard over playbooks, and its arguments: one that calls
    /// [`stand_guard`](crate::stand_guard) and ends with its code.
    pub guard: Vec<OsString>,
    /// The hosts of playbooks; without it there is this one.
    pub inventory: Option<PathBuf>,
    /// Who this runner is, to those who ask what became of a job.
    pub name: String,
    pub timeout: Duration,
    pub at_once: usize,
    /// Variables that automations pass on may be templates.
    pub trust_variables: bool,
    /// Run jobs also where a platform serves them.
    pub anyway: bool,
    pub clock: Clock,
}

impl Config {
    pub fn new(hub_client: Client, playbooks: Playbooks) -> Self {
        Self {
            hub_client,
            namespace: None,
            playbooks,
            program: PathBuf::from("ansible-playbook"),
            guard: Vec::new(),
            inventory: None,
            name: "cleat".to_owned(),
            timeout: Duration::from_secs(60 * 60),
            at_once: 4,
            trust_variables: false,
            anyway: false,
            clock: Clock::system(),
        }
    }
}

/// Why jobs are not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("{program} cannot be run; install ansible-core, or name the program")]
    Program {
        program: String,
        #[source]
        source: std::io::Error,
    },
    #[error("{program} --version failed: {message}")]
    Version { program: String, message: String },
    #[error("{path} is no directory with playbooks")]
    Directory {
        path: String,
        #[source]
        source: std::io::Error,
    },
    #[error("there is no inventory {path}")]
    Inventory {
        path: String,
        #[source]
        source: std::io::Error,
    },
    #[error(
        "this Ansible evaluates templates in variables that are marked as unsafe, so what clusters say \
         could run commands here; use ansible-core 2.19 or later: {message}"
    )]
    Unsafe { message: String },
    #[error("who serves AnsibleJobs cannot be found out")]
    Definition(#[source] Box<kube::Error>),
    #[error("the hub does not serve AnsibleJobs; `cleat init` gives it the definition")]
    NotServed,
    #[error(
        "AnsibleJobs are served by an automation platform ({why}), so this runner is off; --anyway \
         runs them here too"
    )]
    Platform { why: String },
}

/// Namespace and name.
type Key = (String, String);

struct Context {
    config: Config,
    runner: Runner,
    executor: Executor,
    stop: Stop,
    /// The jobs that were begun here, by their uids. Whatever else happens, none of them is begun
    /// again.
    begun: Mutex<BTreeMap<Key, String>>,
    /// Where playbooks are begun, and no others than so many at once.
    runs: Queue<Key>,
}

/// Playbooks take their time, so what may be run and what has been run are looked at apart.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Desk {
    Runs,
    Chores,
}

/// As whom runners write.
const MANAGER: &str = "cleat-ansible-runner";

/// How long the first playbook may take, which does nothing.
const PROBE_PATIENCE: Duration = Duration::from_secs(120);

/// When to look again at what could not be read or written.
const RETRY: Duration = Duration::from_secs(5);

/// Checks that jobs can be run here, and begins to.
pub async fn start(mut config: Config, tasks: &Tasks) -> Result<(), Error> {
    // A path is of where the runner was started; playbooks run elsewhere.
    if config.program.components().count() > 1
        && let Ok(full) = std::path::absolute(&config.program)
    {
        config.program = full;
    }
    if let Some(path) = &mut config.inventory
        && !path.to_string_lossy().contains(',')
    {
        let shown = path.display().to_string();
        let full = path.canonicalize();
        *path = full.map_err(|source| Error::Inventory { path: shown, source })?;
    }
    check(&config.program).await?;
    if let Playbooks::Directory(path) = &mut config.playbooks {
        let shown = path.display().to_string();
        let full = path.canonicalize();
        *path = full.map_err(|source| Error::Directory { path: shown, source })?;
    }
    match served_by(&config.hub_client).await {
        Ok(Served::ByCleat) => {}
        Ok(Served::ByNobody) => return Err(Error::NotServed),
        Ok(Served::ByPlatform(_)) if config.anyway => {}
        Ok(Served::ByPlatform(why)) => return Err(Error::Platform { why }),
        Err(source) => return Err(Error::Definition(Box::new(source))),
    }
    tokio::task::spawn_blocking(|| match family::tidy(&std::env::temp_dir()) {
        Ok(0) => {}
        Ok(found) => tracing::warn!(found, "what dead runners had left was ended and removed"),
        Err(error) => tracing::warn!(%error, "what dead runners left cannot be found out"),
    })
    .await
    .unwrap_or_default();
    probe(&config, &tasks.stop()).await?;
    let runner = Runner {
        name: config.name.clone(),
        session: uuid::Uuid::new_v4().to_string(),
        timeout: SignedDuration::try_from(config.timeout).unwrap_or(SignedDuration::MAX),
    };
    let executor = Executor::new(execute::Config {
        hub: Some(config.hub_client.clone()),
        field_manager: Some(MANAGER.to_owned()),
        ..execute::Config::default()
    });
    let (runs, chores): (Queue<Key>, Queue<Key>) = (Queue::new(), Queue::new());
    let events = jobs(&config.hub_client, config.namespace.as_deref());
    let (closing, mut stop) = ([runs.clone(), chores.clone()], tasks.stop());
    tasks.spawn("jobs: end", async move {
        stop.stopped().await;
        closing.iter().for_each(Queue::close);
    });
    let at_once = config.at_once;
    let begun = Mutex::default();
    let stop = tasks.stop();
    let cx = Arc::new(Context { config, runner, executor, stop, begun, runs: runs.clone() });
    tasks.spawn("follow jobs", follow(Arc::clone(&cx), events, chores.clone(), tasks.stop()));
    let also = Arc::clone(&cx);
    let run = move |key| pass(Arc::clone(&cx), key, Desk::Runs);
    tasks.spawn("jobs", queue::run(runs, at_once, run));
    let look = move |key| pass(Arc::clone(&also), key, Desk::Chores);
    tasks.spawn("job chores", queue::run(chores, 2, look));
    Ok(())
}

/// What no Ansible may do with a variable that is marked as unsafe.
const PROBE: &str = "- hosts: localhost
  gather_facts: false
  tasks:
    - ansible.builtin.assert:
        that: probe | length == 11
";

/// Tries with something harmless whether this Ansible leaves alone what is marked as unsafe.
async fn probe(config: &Config, stop: &Stop) -> Result<(), Error> {
    let broken = |message: String| Error::Unsafe { message };
    let vars = [("probe".to_owned(), Value::from("{{ 40+2 }}x"))].into_iter().collect();
    let variables = variables::file(&vars, false).map_err(|error| broken(error.to_string()))?;
    let order = Order {
        guard: config.guard.clone(),
        program: config.program.clone(),
        playbook: Playbook::Text(PROBE.to_owned()),
        directory: None,
        inventory: None,
        variables,
        credentials: Credentials::default(),
        timeout: PROBE_PATIENCE,
    };
    let outcome = process::run(order, &mut stop.clone(), std::future::pending()).await;
    if outcome.exit_code == Some(0) {
        return Ok(());
    }
    let said: String = outcome.log.lines().rev().take(6).collect::<Vec<_>>().join(" | ");
    Err(broken(format!("{} {said}", outcome.message)))
}

async fn check(program: &PathBuf) -> Result<(), Error> {
    let shown = program.display().to_string();
    let output = tokio::process::Command::new(program).arg("--version").output().await;
    let output = output.map_err(|source| Error::Program { program: shown.clone(), source })?;
    if output.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&output.stderr).chars().take(400).collect();
    Err(Error::Version { program: shown, message })
}

fn jobs(hub_client: &Client, namespace: Option<&str>) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("tower.ansible.com", "v1alpha1", "AnsibleJob");
    let kind = ApiResource::from_gvk_with_plural(&kind, "ansiblejobs");
    match namespace {
        Some(namespace) => Api::namespaced_with(hub_client.clone(), namespace, &kind),
        None => Api::all_with(hub_client.clone(), &kind),
    }
}

async fn follow(cx: Arc<Context>, api: Api<DynamicObject>, chores: Queue<Key>, mut stop: Stop) {
    let mut events = pin!(watcher(api, watcher::Config::default()).default_backoff());
    while let Some(Some(event)) = stop.or(events.next()).await {
        match event {
            Ok(Event::Apply(job) | Event::InitApply(job)) => {
                let key = (job.namespace().unwrap_or_default(), job.name_any());
                let told = job.data.get("status").and_then(Value::as_object);
                if told.is_none_or(|told| told.is_empty()) {
                    cx.runs.add(key)
                } else {
                    chores.add(key)
                }
            }
            Ok(Event::Delete(job)) => {
                cx.begun().remove(&(job.namespace().unwrap_or_default(), job.name_any()));
            }
            Ok(Event::Init | Event::InitDone) => {}
            Err(error) => tracing::warn!(%error, "a watch failed and is begun again"),
        }
    }
}

#[tracing::instrument(skip_all, fields(job = %format!("{}/{}", key.0, key.1)))]
async fn pass(cx: Arc<Context>, key: Key, desk: Desk) -> Wake {
    let found = match jobs(&cx.config.hub_client, Some(&key.0)).get_opt(&key.1).await {
        Ok(Some(found)) => found,
        Ok(None) => {
            cx.begun().remove(&key);
            return Wake::OnChange;
        }
        Err(error) => {
            tracing::warn!(%error, "a job could not be read");
            return Wake::After(RETRY);
        }
    };
    let status = found.data.get("status").cloned().unwrap_or_default();
    let job: AnsibleJob = match serde_json::to_value(found).and_then(serde_json::from_value) {
        Ok(job) => job,
        Err(error) => {
            tracing::warn!(%error, "a job is not understood and left alone");
            return Wake::OnChange;
        }
    };
    let now = cx.config.clock.now();
    match core::next(&job, &status, &cx.runner, now) {
        Next::Leave => Wake::OnChange,
        // It is under way, or the answer to our claim was lost.
        Next::Ours if desk == Desk::Runs => cx.begin(&job, None, now).await,
        Next::Ours => {
            if !cx.is_begun(&job) {
                cx.runs.add(key);
            }
            Wake::OnChange
        }
        Next::Wait(until) => {
            Wake::After(Duration::try_from(until.duration_since(now)).unwrap_or_default())
        }
        Next::Claim(claim) if desk == Desk::Runs => cx.begin(&job, Some(&claim), now).await,
        Next::Claim(_) => {
            cx.runs.add(key);
            Wake::OnChange
        }
        Next::GiveUp(action) => {
            tracing::warn!("the runner of a job is gone; it is not run again");
            cx.write(&action).await
        }
        Next::Delete(action) => match cx.is_noted(&job, &status).await {
            true => {
                tracing::info!("a job that ended is deleted");
                cx.write(&action).await
            }
            false => Wake::After(RETRY),
        },
    }
}

impl Context {
    fn begun(&self) -> MutexGuard<'_, BTreeMap<Key, String>> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_begun(&self, job: &AnsibleJob) -> bool {
        let key = (job.namespace().unwrap_or_default(), job.name_any());
        self.begun().get(&key) == job.uid().as_ref()
    }

    /// Whether its automation knows how it ended. That nobody can be asked says nothing.
    async fn is_noted(&self, job: &AnsibleJob, status: &Value) -> bool {
        let Some((name, uid)) = core::automation_of(job) else { return true };
        let namespace = job.namespace().unwrap_or_default();
        let automations: Api<PolicyAutomation> =
            Api::namespaced(self.config.hub_client.clone(), &namespace);
        match automations.get_opt(name).await {
            Ok(found) => {
                let found = found.filter(|found| found.uid().as_deref() == Some(uid));
                core::is_noted(job, status, found.as_ref())
            }
            Err(error) => {
                tracing::warn!(%error, "a job stays: its automation cannot be read");
                false
            }
        }
    }

    /// Says again and again that the job is under way. Returns when that cannot be said in time, or
    /// when somebody else has taken it for lost.
    async fn renew(&self, job: &AnsibleJob, mut said: Timestamp) {
        let pause = Duration::try_from(core::RENEW).unwrap_or(RETRY);
        let mut wait = pause;
        loop {
            tokio::time::sleep(wait).await;
            let now = self.config.clock.now();
            let done = self.executor.execute([vec![core::renew(job, now)]]).await;
            match done.into_iter().flatten().next() {
                Some(Outcome::Done(after)) => {
                    let status = after.get("status").cloned().unwrap_or_default();
                    if !core::is_ours(&status, &self.runner) {
                        return;
                    }
                    (said, wait) = (now, pause);
                }
                // Deleted while it runs: it is run to its end, and nobody asks how that was.
                Some(Outcome::NotFound) => return std::future::pending().await,
                _ if self.config.clock.now() >= core::fence(said) => return,
                _ => wait = RETRY,
            }
        }
    }

    async fn write(&self, action: &Action) -> Wake {
        let done = self.executor.execute([vec![action.clone()]]).await;
        match done.into_iter().flatten().next() {
            Some(Outcome::Done(_) | Outcome::NotFound | Outcome::Conflict(_)) | None => {
                Wake::OnChange
            }
            Some(other) => {
                tracing::warn!(outcome = ?other, "a job could not be written");
                Wake::After(RETRY)
            }
        }
    }

    /// Claims it unless that is done, runs it and says how it ended.
    async fn begin(&self, job: &AnsibleJob, claim: Option<&Action>, started: Timestamp) -> Wake {
        // A platform may have come since.
        let served = match served_by(&self.config.hub_client).await {
            Ok(served) => served,
            Err(error) => {
                tracing::warn!(%error, "who serves AnsibleJobs cannot be found out");
                return Wake::After(RETRY);
            }
        };
        if served != Served::ByCleat && !self.config.anyway {
            tracing::warn!(?served, "jobs are left alone: a platform serves them");
            return Wake::OnChange;
        }
        let key = (job.namespace().unwrap_or_default(), job.name_any());
        let uid = job.uid().unwrap_or_default();
        if self.begun().insert(key.clone(), uid.clone()) == Some(uid) {
            return Wake::OnChange;
        }
        if let Some(claim) = claim {
            let done = self.executor.execute([vec![claim.clone()]]).await;
            match done.into_iter().flatten().next() {
                Some(Outcome::Done(_)) => {}
                other => {
                    self.begun().remove(&key);
                    tracing::debug!(outcome = ?other, "a job could not be claimed");
                    return Wake::After(RETRY);
                }
            }
        }
        tracing::info!(template = job.spec.job_template_name, "a job begins");
        let outcome = self.run(job, started).await;
        let process::Outcome { result, exit_code, message, log } = outcome;
        let finished = self.config.clock.now();
        tracing::info!(?result, exit_code, message, "a job ended");
        let ending = Ending { result, exit_code, message, log, finished };
        self.tell(&core::ended(job, started, &ending)).await;
        Wake::OnChange
    }

    /// In a task of its own: whatever goes wrong in here, the job says that it has ended.
    async fn run(&self, job: &AnsibleJob, started: Timestamp) -> process::Outcome {
        let order = match self.order(job).await {
            Ok(order) => order,
            Err(message) => return process::broken(message),
        };
        let (mut stop, (gone, heard)) = (self.stop.clone(), tokio::sync::oneshot::channel::<()>());
        let lost = async move {
            let _ = heard.await;
        };
        let running = tokio::spawn(async move { process::run(order, &mut stop, lost).await });
        let mut running = std::pin::pin!(running);
        let ended = tokio::select! {
            ended = &mut running => ended,
            () = self.renew(job, started) => {
                drop(gone);
                running.await
            }
        };
        ended.unwrap_or_else(|_| process::broken("the runner failed while it ran".to_owned()))
    }

    /// Until it is told, or the job is gone. One that is stopped before says so in its next life.
    async fn tell(&self, action: &Action) {
        let mut stop = self.stop.clone();
        while let Wake::After(pause) = self.write(action).await {
            if stop.or(tokio::time::sleep(pause)).await.is_none() {
                break;
            }
        }
    }

    async fn order(&self, job: &AnsibleJob) -> Result<Order, String> {
        let Config { hub_client, playbooks, program, guard, inventory, timeout, .. } = &self.config;
        let Some(template) = &job.spec.job_template_name else {
            return Err("the job names no job_template_name".to_owned());
        };
        let playbook = playbooks.find(hub_client, template).await.map_err(|error| chain(&error))?;
        let vars = job.spec.extra_vars.clone().unwrap_or_default();
        let variables = variables::file(&vars, self.config.trust_variables);
        Ok(Order {
            guard: guard.clone(),
            program: program.clone(),
            playbook,
            directory: playbooks.directory().map(ToOwned::to_owned),
            inventory: inventory.clone(),
            variables: variables.map_err(|error| error.to_string())?,
            credentials: self.credentials(job).await?,
            timeout: *timeout,
        })
    }

    async fn credentials(&self, job: &AnsibleJob) -> Result<Credentials, String> {
        let Some(name) = &job.spec.tower_auth_secret else { return Ok(Credentials::default()) };
        let namespace = job.namespace().unwrap_or_default();
        let secrets: Api<Secret> = Api::namespaced(self.config.hub_client.clone(), &namespace);
        match secrets.get_opt(name).await {
            Ok(Some(secret)) => {
                let data = secret.data.unwrap_or_default();
                Credentials::read(&data).map_err(|error| error.to_string())
            }
            Ok(None) => Err(format!(
                "there is no Secret {namespace}/{name}: create it, empty if the playbook needs none"
            )),
            Err(error) => Err(format!("the Secret {namespace}/{name} cannot be read: {error}")),
        }
    }
}

/// An error and what caused it, in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}
