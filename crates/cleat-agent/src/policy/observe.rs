//! Reading everything a pass may look at. Only reads; whole objects only when something about them
//! changed.
//!
//! What has to be read shows step by step: a template says which objects it is about only once its
//! lookups were answered. So the planner is asked again what it lacks, until it lacks nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use cleat_api::configurationpolicy::reason;
use cleat_core::id::Id;
use cleat_core::policy::observed::{
    Cluster, Controller, Definition, Departure, Kind, KindName, ListOf, Namespace, Observed, Pick,
    Policy, Read, Resolution, Subject, Template, Templates, Trial,
};
use cleat_core::policy::{self, Reads};
use cleat_runtime::follow::{Follow, Held, Scope};
use cleat_runtime::queue::Wake;
use futures::StreamExt as _;
use jiff::Timestamp;

use super::sight::Fresh;
use super::subjects::Needs;
use super::templates::Answers;
use super::{Context, Key, records, templates};
use crate::protected;

/// Objects read at the same time in one pass.
pub(super) const READS: usize = 16;
/// Reading one thing may show that another has to be read; more rounds than these, nothing needs.
const ROUNDS: usize = 32;
/// How long until something is looked for again of which no watch tells that it was read.
const SOON: Duration = Duration::from_millis(500);

/// What holds for all passes of one waking.
#[derive(Default)]
pub(super) struct Waking {
    pub(super) trials: BTreeMap<Id, Trial>,
    pub(super) creations: BTreeMap<Id, Trial>,
}

impl Waking {
    /// What was said of this object does not hold any more.
    pub(super) fn forget(&mut self, id: &Id) {
        self.trials.remove(id);
        self.creations.remove(id);
    }
}

impl Context {
    /// Everything about a policy. `Err`: something was not read yet; when to look again.
    pub(super) async fn observe(
        &self,
        key: &Key,
        waking: &mut Waking,
        fresh: Fresh,
    ) -> Result<Observed, Wake> {
        let (subject, annotations) = self.subject(key);
        let mut seen = Observed {
            now: Timestamp::now(),
            controller: Controller {
                departure: Departure::Staying,
                terminating_namespaces: self.config.terminating_namespaces,
                instance: self.config.instance.clone(),
                say: templates::say,
            },
            policy: subject,
            // It is replaced before anything depends on it.
            templates: Templates::Failed {
                reason: reason::TEMPLATE_ERROR,
                message: "the templates were not looked at".to_owned(),
                passing: true,
            },
            cluster: Cluster {
                trials: waking.trials.clone(),
                creations: waking.creations.clone(),
                ..Cluster::default()
            },
            memory: policy::Memory::default(),
        };
        let policy = match &seen.policy {
            Subject::Policy(policy) => policy.clone(),
            Subject::Absent => return Ok(seen),
            Subject::Unknown(_) => return Err(Wake::After(SOON * 10)),
        };
        seen.memory = self.memory.with(key, |life| life.of(&policy.uid, policy.generation));
        if fresh == Fresh::Now && !self.is_current(&policy).await {
            return Err(Wake::After(SOON));
        }
        let fresh = match fresh {
            Fresh::Lately if policy::looks_by_itself(&policy) => Fresh::AtTimes,
            fresh => fresh,
        };
        seen.controller.departure = self.departure(&policy).await;
        if seen.controller.departure == Departure::Emptying && policy::spare::keeps(&policy) {
            seen.cluster.heard = self.heard(&policy).await;
        }
        let before = self.subjects.needs(key);
        let mut look = Looking {
            key,
            fresh,
            needs: Needs::default(),
            before,
            answers: Answers::default(),
            seed: policy.uid.clone(),
            watched: true,
        };
        // Who keeps something of it says when that changes.
        look.needs.targets = protected::services(&seen.memory.troubles);
        if !look.needs.targets.is_empty() {
            self.care_more(&look);
        }
        let heard = self.memory.with(key, |life| life.protections.clone());
        let heard =
            protected::anew(&heard, &look.needs.targets, &self.mirror, &self.executor).await;
        seen.memory = self.memory.with(key, |life| {
            life.protections.heed(heard, &mut life.memory.troubles, seen.now);
            life.memory.clone()
        });
        if !policy.spec.namespace_selector.is_empty() && !policy.deleting {
            look.needs.namespaces = true;
            self.care_more(&look);
            seen.cluster.namespaces = Some(self.namespaces(fresh).await.ok_or(Wake::After(SOON))?);
        }
        if !policy::is_due(&seen) {
            if !policy.deleting {
                return Ok(seen);
            }
        } else {
            let templates = self.templates(&policy, &annotations, &mut look).await;
            seen.templates = templates.ok_or(Wake::After(SOON))?;
        }
        self.fill(&policy, &mut seen, look, waking).await?;
        Ok(seen)
    }

    fn subject(&self, key: &Key) -> (Subject, BTreeMap<String, String>) {
        let (namespace, name) = key;
        let mut unknown = None;
        for policies in &self.policies {
            match policies.get(namespace, name) {
                Held::Absent => {}
                Held::Unknown(reason) => unknown = Some(Held::Unknown(reason)),
                held @ Held::Present(_) => return records::subject(&held),
            }
        }
        records::subject(&unknown.unwrap_or(Held::Absent))
    }

    /// Until all is known, what mattered before may still matter.
    pub(super) fn care_more(&self, look: &Looking<'_>) {
        if !look.watched {
            return;
        }
        self.care(look.key, &look.needs.clone().and(&look.before));
    }

    /// Reads until the planner lacks nothing.
    async fn fill(
        &self,
        policy: &Policy,
        seen: &mut Observed,
        mut look: Looking<'_>,
        waking: &mut Waking,
    ) -> Result<(), Wake> {
        for _ in 0..ROUNDS {
            let Reads { all, missing, questions } = policy::reads(seen);
            for read in &all {
                look.needs.note(read, seen);
            }
            if missing.is_empty() && questions.is_empty() {
                self.care(look.key, &look.needs);
                return Ok(());
            }
            self.care_more(&look);
            let before = missing.len();
            let left = self.learn(policy, seen, &mut look, missing).await;
            if left > 0 && left == before {
                return Err(Wake::After(SOON));
            }
            if left == 0 && !questions.is_empty() {
                self.try_out(look.key, seen, questions, waking).await;
            }
        }
        Err(Wake::After(SOON))
    }

    /// Reads what is missing. How much of it was not read yet.
    pub(super) async fn learn(
        &self,
        policy: &Policy,
        seen: &mut Observed,
        look: &mut Looking<'_>,
        missing: BTreeSet<Read>,
    ) -> usize {
        let mut left = 0;
        let mut objects = Vec::new();
        for read in missing {
            let known = match read {
                Read::Object(target) => {
                    objects.push(target);
                    continue;
                }
                Read::Unwatched(target) => {
                    let found = self.read(&target).await;
                    seen.cluster.unwatched.insert(target.id, found).is_none()
                }
                Read::Kind(name) => {
                    let wanted = !policy.deleting && may_want(&seen.templates, &name);
                    let kind = self.kind(&name, policy, wanted).await;
                    look.needs.lacks_a_kind |= !matches!(kind, Kind::Served(_));
                    let absent = kind == Kind::Absent;
                    seen.cluster.kinds.insert(name.clone(), kind);
                    !absent || self.skips(&name, seen, look).await
                }
                Read::Namespaces => {
                    seen.cluster.namespaces = self.namespaces(look.fresh).await;
                    seen.cluster.namespaces.is_some()
                }
                Read::List(of) => match self.list(&of, look.fresh).await {
                    Some(all) => seen.cluster.lists.insert(of, all).is_none(),
                    None => false,
                },
                Read::Contents(holder) => {
                    let held = self.holds(policy, &holder).await;
                    seen.cluster.contents.insert(holder.id, held).is_none()
                }
                Read::Resolution { index, pick } => {
                    let template = template_at(&seen.templates, index);
                    let found = match template {
                        Some(template) => {
                            let template = template.clone();
                            self.resolution(&template, &pick, seen, look).await
                        }
                        None => None,
                    };
                    match (found, resolved_at(&mut seen.templates, index)) {
                        (Some(found), Some(resolved)) => {
                            resolved.insert(pick, found);
                            true
                        }
                        _ => false,
                    }
                }
            };
            left += usize::from(!known);
        }
        self.sweep(&objects).await;
        let fresh = look.fresh;
        let sights = objects.into_iter().map(|target| async move {
            let sight = self.sight(&target, fresh).await;
            let unwatched = fresh == Fresh::Now && self.is_unwatchable(&target).await;
            (target.id, sight, unwatched)
        });
        let sights: Vec<_> = futures::stream::iter(sights).buffer_unordered(READS).collect().await;
        for (id, sight, unwatched) in sights {
            if let Some(sight) = sight.as_ref().filter(|_| unwatched) {
                seen.cluster.unwatched.insert(id.clone(), sight.clone());
            }
            match sight {
                Some(sight) => drop(seen.cluster.objects.insert(id, sight)),
                None => left += 1,
            }
        }
        left
    }

    /// A template may say to skip its object where there is no such kind. `false`: what it needs for
    /// that was not read yet.
    async fn skips(&self, name: &KindName, seen: &mut Observed, look: &mut Looking<'_>) -> bool {
        let Templates::Known(all) = &seen.templates else { return true };
        let of_kind = all.iter().enumerate().filter(|(_, template)| {
            let definition = &template.spec.object_definition;
            matches!(template.definition, Definition::Templated { .. })
                && templates::kind_of(definition).as_ref() == Some(name)
                && definition.to_string().contains("skipObject")
        });
        let of_kind: Vec<(usize, Template)> =
            of_kind.map(|(index, template)| (index, template.clone())).collect();
        for (index, template) in of_kind {
            let pick = Pick::default();
            let Some(found) = self.resolution(&template, &pick, seen, look).await else {
                seen.cluster.kinds.remove(name);
                return false;
            };
            if let Some(resolved) = resolved_at(&mut seen.templates, index) {
                resolved.insert(pick, found);
            }
        }
        true
    }

    /// All namespaces. `None`: they were not read yet.
    pub(super) async fn namespaces(&self, fresh: Fresh) -> Option<Result<Vec<Namespace>, String>> {
        if fresh == Fresh::Now {
            let all = self.list_now(&ListOf::namespaces()).await;
            return Some(all.map(|all| all.iter().map(|one| Namespace::read(one)).collect()));
        }
        let follow = self.namespaces.get_or_init(|| {
            let scope = Scope {
                version: "v1".to_owned(),
                resource: "namespaces".to_owned(),
                ..Scope::default()
            };
            let (queue, subjects) = (self.queue.clone(), self.subjects.clone());
            let client = self.config.cluster_client.clone();
            Follow::start(client, &self.tasks, scope, move |_, _| {
                subjects.of_namespaces(|key| queue.add(key.clone()));
            })
        });
        if let Some(reason) = follow.trouble() {
            return Some(Err(reason.to_string()));
        }
        if !follow.synced() {
            return None;
        }
        let all = follow
            .all()
            .into_iter()
            .map(|object| Namespace::read(&object.parse().unwrap_or_default()));
        Some(Ok(all.collect()))
    }
}

/// One look at a policy's world.
pub(super) struct Looking<'a> {
    pub(super) key: &'a Key,
    pub(super) fresh: Fresh,
    pub(super) needs: Needs,
    pub(super) before: Needs,
    pub(super) answers: Answers,
    /// What random choices of its templates follow from.
    pub(super) seed: String,
    /// What is found to matter is watched from then on.
    pub(super) watched: bool,
}

impl Needs {
    fn note(&mut self, read: &Read, seen: &Observed) {
        match read {
            Read::Object(target) => drop(self.targets.insert(target.clone())),
            Read::List(of) => drop(self.lists.insert(of.clone())),
            Read::Namespaces => self.namespaces = true,
            Read::Kind(name) => {
                let kind = seen.cluster.kinds.get(name);
                self.lacks_a_kind |= matches!(kind, Some(Kind::Absent | Kind::Unknown(_)));
            }
            // It was asked for as an object as well.
            Read::Unwatched(_) | Read::Contents(_) | Read::Resolution { .. } => {}
        }
    }
}

/// Whether a template may be about a kind in this version.
fn may_want(templates: &Templates, name: &KindName) -> bool {
    match templates {
        Templates::Known(all) => all.iter().any(|template| {
            templates::kind_of(&template.spec.object_definition).is_none_or(|kind| kind == *name)
        }),
        Templates::Failed { .. } => true,
    }
}

fn template_at(templates: &Templates, index: usize) -> Option<&Template> {
    match templates {
        Templates::Known(all) => all.get(index),
        Templates::Failed { .. } => None,
    }
}

fn resolved_at(templates: &mut Templates, index: usize) -> Option<&mut BTreeMap<Pick, Resolution>> {
    let Templates::Known(all) = templates else { return None };
    match all.get_mut(index) {
        Some(Template { definition: Definition::Templated { resolved, .. }, .. }) => Some(resolved),
        _ => None,
    }
}
