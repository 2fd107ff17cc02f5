//! Templates that are resolved on the hub, for each cluster by itself.
//!
//! What a template read is watched, and a change of it wakes the policies that used it. Results are
//! remembered only as digests: the same question is not asked again until something it depends on
//! changed.

pub(super) mod keys;
mod read;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cleat_core::digest::digest;
use cleat_core::id::{Id, Target};
use cleat_core::placement::Cluster;
use cleat_core::propagation::{
    Observed, Replica, Resolved, Root, definitions, has_hub_templates, placed_clusters, unresolved,
};
use cleat_core::write::Side;
use cleat_runtime::execute::{Executor, Read};
use cleat_runtime::kinds::Kinds;
use cleat_runtime::mirror::Mirror;
use cleat_runtime::queue::Queue;
use cleat_runtime::tasks::Tasks;
use cleat_template::{
    ClusterScoped, Context, Delimiters, Encryption, LookupError, ResolveOptions, Source,
    TemplateError, resolve, uses_encryption,
};
use kube::Client;
use serde_json::{Value, json};

use self::read::Answers;
use crate::followed::Key;

/// How often lists are read again, for which no watch tells of them; and kinds that are not served,
/// for not every kind has a definition, and a server may serve one a moment after it is defined.
const UNHEARD: Duration = Duration::from_secs(30);

/// When to look again at what changed while it was read.
const SOON: Duration = Duration::from_millis(100);

/// How many lookups one template may make.
const MOST_LOOKUPS: usize = 200;

pub(super) struct Templates {
    resolver: Resolver,
    mirror: Mirror,
    state: Arc<Mutex<State>>,
}

/// Whoever resolves templates, with what it reads from the hub.
pub(super) struct Resolver {
    hub_client: Client,
    executor: Executor,
    kinds: Kinds,
    purpose: Purpose,
    /// Functions that templates may not use.
    denied: Vec<String>,
}

/// What templates are resolved for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// For clusters, with the hub's rights.
    Use,
    /// For somebody who only looks, perhaps with fewer rights: what they may not read is not known,
    /// and nothing is made for it.
    Show,
}

#[derive(Default)]
struct State {
    /// What was found, by root and cluster.
    found: BTreeMap<(Key, String), Found>,
    /// Who used an object.
    users: BTreeMap<Id, BTreeSet<Key>>,
    /// How many changes were told, and the last one of each object.
    changes: u64,
    changed_at: BTreeMap<Id, u64>,
}

struct Found {
    /// Of everything but the objects that were read.
    inputs: String,
    digest: String,
    iv: Option<String>,
    problem: Option<String>,
    used: BTreeSet<Target>,
    /// It depends on something that no watch tells of.
    unheard: bool,
    /// A kind is not served.
    lacks_kind: bool,
}

impl State {
    /// Something that was read may be another now.
    fn changed(&mut self, id: &Id) -> BTreeSet<Key> {
        self.changes += 1;
        self.changed_at.insert(id.clone(), self.changes);
        let users = self.users.get(id).cloned().unwrap_or_default();
        self.found.retain(|(root, _), found| {
            !users.contains(root) || !found.used.iter().any(|target| target.id == *id)
        });
        users
    }

    /// What is served may be something else now.
    fn kinds_changed(&mut self) -> BTreeSet<Key> {
        let lacking = self.found.extract_if(.., |_, found| found.lacks_kind);
        lacking.map(|((root, _), _)| root).collect()
    }

    fn changed_since(&self, began: u64, used: &BTreeSet<Target>) -> bool {
        let mut all = used.iter().filter_map(|target| self.changed_at.get(&target.id));
        all.any(|at| *at > began)
    }
}

/// One cluster's part in the resolution of a root.
struct Case<'a> {
    root: &'a Root,
    cluster: &'a Cluster,
    /// What the cluster has.
    replica: Option<&'a Replica>,
    account: Option<&'a str>,
}

impl Templates {
    pub(super) fn new(resolver: Resolver, roots: Queue<Key>, tasks: &Tasks) -> Arc<Self> {
        let hub_client = resolver.hub_client.clone();
        let state: Arc<Mutex<State>> = Arc::default();
        let (changing, waiting) = (Arc::clone(&state), roots.clone());
        let mirror = Mirror::new(hub_client.clone(), tasks, move |id| {
            let mut state = changing.lock().unwrap_or_else(PoisonError::into_inner);
            state.changed(id).into_iter().for_each(|root| roots.add(root));
        });
        let (changing, kinds) = (Arc::clone(&state), resolver.kinds.clone());
        cleat_runtime::definitions::follow(&hub_client, tasks, move || {
            kinds.forget();
            let mut state = changing.lock().unwrap_or_else(PoisonError::into_inner);
            state.kinds_changed().into_iter().for_each(|root| waiting.add(root));
        });
        Arc::new(Self { resolver, mirror, state })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn forget(&self, root: &Key) {
        let mut state = self.state();
        state.found.retain(|(of, _), _| of != root);
        state.users.retain(|_, users| {
            users.remove(root);
            !users.is_empty()
        });
        drop(state);
        self.mirror.interest(&owner(root), &BTreeSet::new());
    }

    /// Resolves the root's templates for every cluster it goes to. Answers when to look again even
    /// if nothing is heard of.
    pub(super) async fn resolve(&self, seen: &mut Observed) -> Option<Duration> {
        let root = seen.root.clone().filter(|root| has_hub_templates(&root.spec))?;
        let account = account(&root);
        let mut answers = Answers::new(&root.namespace, account, Purpose::Use);
        let (mut unheard, mut stale) = (false, false);
        let mut targets = BTreeSet::new();
        for cluster in placed_clusters(seen) {
            let Some(facts) = seen.clusters.get(&cluster).cloned() else { continue };
            let replica = seen.replicas.get(&cluster).cloned();
            let case = Case { root: &root, cluster: &facts, replica: replica.as_deref(), account };
            let inputs = case.inputs();
            let at = (seen.key.clone(), cluster.clone());
            let known = self.state().found.get(&at).and_then(|found| {
                let same = found.inputs == inputs && !found.unheard;
                let there = replica.as_ref().is_some_and(|one| one.has_definitions(&found.digest));
                targets.extend(found.used.iter().filter(|_| same && there).cloned());
                (same && there).then(|| Resolved::Known {
                    definitions: None,
                    digest: found.digest.clone(),
                    iv: found.iv.clone(),
                    problem: found.problem.clone(),
                })
            });
            let resolved = match known {
                Some(known) => known,
                None => {
                    let began = self.state().changes;
                    let (resolved, used) = self.resolver.one(&case, &mut answers).await;
                    unheard |= used.lists || used.lacks_kind;
                    targets.extend(used.targets.iter().cloned());
                    if let Resolved::Known { digest, iv, problem, .. } = &resolved {
                        let found = Found {
                            inputs,
                            digest: digest.clone(),
                            iv: iv.clone(),
                            problem: problem.clone(),
                            used: used.targets,
                            unheard: used.lists || used.lacks_kind,
                            lacks_kind: used.lacks_kind,
                        };
                        // What changed while it was read may have been read before it did.
                        let mut state = self.state();
                        match state.changed_since(began, &found.used) {
                            true => stale = true,
                            false => drop(state.found.insert(at, found)),
                        }
                    }
                    resolved
                }
            };
            seen.resolved.insert(cluster, resolved);
        }
        self.watch(&seen.key, &targets);
        if stale { Some(SOON) } else { unheard.then_some(UNHEARD) }
    }

    fn watch(&self, root: &Key, targets: &BTreeSet<Target>) {
        let mut state = self.state();
        for users in state.users.values_mut() {
            users.remove(root);
        }
        state.users.retain(|_, users| !users.is_empty());
        for target in targets {
            state.users.entry(target.id.clone()).or_default().insert(root.clone());
        }
        let State { users, changed_at, .. } = &mut *state;
        changed_at.retain(|id, _| users.contains_key(id));
        drop(state);
        self.mirror.interest(&owner(root), targets);
    }
}

/// Whose rights templates are resolved with, if not the hub's.
fn account(root: &Root) -> Option<&str> {
    let account = root.spec.pointer("/hubTemplateOptions/serviceAccountName");
    account.and_then(Value::as_str).filter(|name| !name.is_empty())
}

impl Resolver {
    pub(super) fn new(hub_client: Client, executor: Executor, purpose: Purpose) -> Self {
        let kinds = Kinds::new(hub_client.clone());
        Self { kinds, hub_client, executor, purpose, denied: Vec::new() }
    }

    pub(super) fn denying(self, denied: Vec<String>) -> Self {
        Self { denied, ..self }
    }

    /// Resolves the root's templates for every cluster it goes to, once.
    pub(super) async fn resolve(&self, seen: &mut Observed) {
        let Some(root) = seen.root.clone().filter(|root| has_hub_templates(&root.spec)) else {
            return;
        };
        let account = account(&root);
        let mut answers = Answers::new(&root.namespace, account, self.purpose);
        for cluster in placed_clusters(seen) {
            let Some(facts) = seen.clusters.get(&cluster).cloned() else { continue };
            let replica = seen.replicas.get(&cluster).cloned();
            let case = Case { root: &root, cluster: &facts, replica: replica.as_deref(), account };
            let (resolved, _) = self.one(&case, &mut answers).await;
            seen.resolved.insert(cluster, resolved);
        }
    }

    async fn one(&self, case: &Case<'_>, answers: &mut Answers) -> (Resolved, Used) {
        let mut used = Used::default();
        if let Some(name) = case.account {
            match self.account_exists(&case.root.namespace, name, answers, &mut used).await {
                Ok(true) => {}
                Ok(false) => {
                    let problem = format!(
                        "the service account in hubTemplateOptions.serviceAccountName ({}/{name}) \
                         does not exist",
                        case.root.namespace
                    );
                    let (raw, _) = definitions(&case.root.spec);
                    let templated =
                        raw.iter().enumerate().filter(|(_, one)| has_hub_templates(one));
                    let broken = templated.map(|(index, _)| (index, problem.clone())).collect();
                    return (self.keep(case, raw, broken, None).await, used);
                }
                Err(why) => return (Resolved::Unknown(why), used),
            }
        }
        let (mut objects, _) = definitions(&case.root.spec);
        let text = Value::Array(objects.clone()).to_string();
        let encrypts = uses_encryption(&text, &Delimiters::hub());
        let mut options = case.options();
        options.denied.clone_from(&self.denied);
        let mut vector = case.replica.and_then(|replica| replica.iv.clone());
        if encrypts {
            match self.keys(&case.cluster.name, vector.take()).await {
                Ok((keys, iv)) => {
                    options.encryption = Encryption::Encrypt(keys);
                    vector = Some(iv);
                    used.targets.insert(keys::target(&case.cluster.name));
                }
                Err(why) => return (Resolved::Unknown(why), used),
            }
        }
        let context = case.context();
        let mut broken = BTreeMap::new();
        for (index, object) in objects.iter_mut().enumerate() {
            if !has_hub_templates(object) {
                continue;
            }
            match self.template(object, &context, &options, answers, &mut used).await {
                Ok(resolved) => *object = resolved,
                Err(Trouble::Passing(why)) => return (Resolved::Unknown(why), used),
                Err(Trouble::Lasting(why)) => {
                    broken.insert(index, why);
                }
            }
        }
        if broken.is_empty() {
            return (known(objects, vector, None), used);
        }
        (self.keep(case, objects, broken, vector).await, used)
    }

    /// The objects, with those that could not be resolved as the cluster has them.
    async fn keep(
        &self,
        case: &Case<'_>,
        mut objects: Vec<Value>,
        broken: BTreeMap<usize, String>,
        vector: Option<String>,
    ) -> Resolved {
        let mut before = Vec::new();
        if let Some(replica) = case.replica {
            match self.executor.read(Side::Hub, &replica.target()).await {
                Read::Present(found) => {
                    before = found.get("spec").map(|spec| definitions(spec).0).unwrap_or_default();
                }
                Read::Absent | Read::NoSuchKind => {}
                Read::Unknown { message } => return Resolved::Unknown(message),
            }
        }
        let (raw, _) = definitions(&case.root.spec);
        for (index, why) in &broken {
            if let Some(object) = objects.get_mut(*index) {
                *object = unresolved(&raw, *index, &before, why);
            }
        }
        let problem = broken.into_values().next();
        known(objects, vector, problem)
    }

    async fn template(
        &self,
        object: &Value,
        context: &Context,
        options: &ResolveOptions,
        answers: &mut Answers,
        used: &mut Used,
    ) -> Result<Value, Trouble> {
        for _ in 0..MOST_LOOKUPS {
            let error: TemplateError =
                match resolve(Source::Object(object), context, answers, options) {
                    Ok(resolution) => {
                        used.note(&resolution.used, answers);
                        return Ok(resolution.value);
                    }
                    Err(error) => error,
                };
            if let Some(queries) = error.used() {
                used.note(queries, answers);
            }
            match error.unread().cloned() {
                Some(query) => answers.read(&self.hub_client, &self.kinds, query).await,
                None if error.is_transient() => return Err(Trouble::Passing(error.message())),
                None if matches!(error.lookup(), Some((_, LookupError::MissingApi))) => {
                    used.lacks_kind = true;
                    return Err(Trouble::Lasting(error.condition()));
                }
                None => return Err(Trouble::Lasting(error.condition())),
            }
        }
        Err(Trouble::Lasting(format!("the template makes more than {MOST_LOOKUPS} lookups")))
    }

    async fn account_exists(
        &self,
        namespace: &str,
        name: &str,
        answers: &mut Answers,
        used: &mut Used,
    ) -> Result<bool, String> {
        let (target, exists) = answers.account(&self.hub_client, namespace, name).await?;
        used.targets.insert(target);
        Ok(exists)
    }
}

/// Why a template has no result.
enum Trouble {
    /// Something could not be read; nothing is wrong with the template.
    Passing(String),
    Lasting(String),
}

/// What was read.
#[derive(Default)]
struct Used {
    targets: BTreeSet<Target>,
    lists: bool,
    /// A kind is not served.
    lacks_kind: bool,
}

impl Used {
    fn note(&mut self, queries: &BTreeSet<cleat_template::Query>, answers: &Answers) {
        for query in queries {
            self.lists |= query.is_list();
            self.targets.extend(answers.target(query));
        }
    }
}

impl Case<'_> {
    fn inputs(&self) -> String {
        let Root { uid, generation, labels, annotations, .. } = self.root;
        digest(&json!([uid, generation, labels, annotations, self.cluster.labels, self.account]))
    }

    fn context(&self) -> Context {
        let Root { namespace, name, labels, annotations, .. } = self.root;
        let metadata = json!({
            "annotations": annotations, "labels": labels, "name": name, "namespace": namespace,
        });
        Context::empty()
            .text("ManagedClusterName", &self.cluster.name)
            .labels("ManagedClusterLabels", &self.cluster.labels)
            .object("PolicyMetadata", &metadata)
    }

    fn options(&self) -> ResolveOptions {
        let restricted = if self.account.is_some() { "" } else { &*self.root.namespace };
        let mut options = ResolveOptions::hub(jiff::Timestamp::now(), restricted);
        options.seed = Some(format!("{}/{}", self.root.uid, self.cluster.name));
        options.cluster_scoped = vec![ClusterScoped {
            group: "cluster.open-cluster-management.io".to_owned(),
            kind: "ManagedCluster".to_owned(),
            name: self.cluster.name.clone(),
        }];
        options
    }
}

fn known(objects: Vec<Value>, iv: Option<String>, problem: Option<String>) -> Resolved {
    let digest = digest(&Value::Array(objects.clone()));
    Resolved::Known { definitions: Some(objects), digest, iv, problem }
}

fn owner(root: &Key) -> String {
    format!("{}/{}", root.0, root.1)
}
