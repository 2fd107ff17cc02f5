//! Reading everything a pass may look at. Only reads; whole objects only when something about them
//! changed since they were last found to be as wanted, and no list just told of them.

mod imagine;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cleat_api::manifestwork::ManifestWorkSpec;
use cleat_core::id::{Id, Target};
use cleat_core::work::converge::{self, Need};
use cleat_core::work::observed::{
    Agent, Book, Content, Hub, Ledger, Observed, Owner, Place, Present, Previous, Seen, Strategy,
    Wanted, Work,
};
use cleat_core::work::ownership;
use cleat_core::work::retire;
use cleat_core::work::wanted::{self, Mapping};
use cleat_core::write::Side;
use cleat_runtime::execute::Read;
use cleat_runtime::follow::Held;
use cleat_runtime::kinds;
use cleat_runtime::mirror::{Look, Meta, Reason};
use futures::StreamExt as _;
use jiff::Timestamp;
use serde_json::Value;

use super::memory::{Life, Verified};
use super::records;
use super::{Context, Key};
use crate::protected;

/// Whole objects read at the same time in one pass.
const READS: usize = 16;

/// As whom a work cares about objects.
pub(super) fn owner(key: &Key) -> String {
    match key {
        Key::Work(name) => format!("work {name}"),
        Key::Stray(name) => format!("ledger {name}"),
    }
}

impl Context {
    pub(super) async fn observe(&self, key: &Key) -> Observed {
        let now = Timestamp::now();
        let (hub, spec) = self.hub(key);
        let (agent, name, ledger) = self.ledger(key);
        let (hub, leaving) = self.leaving(key, hub, &ledger).await;
        let (hub, ledger) = self.confirmed(&agent, &name, hub, ledger, now).await;
        let own = ownership::ledger_target(&agent.hub_hash, &name).id.name;
        let kept_elsewhere = self.kept_elsewhere(&ledger, leaving, &own);
        let mut seen = Observed {
            now,
            agent,
            name,
            hub,
            ledger,
            wanted: Vec::new(),
            live: BTreeMap::new(),
            versions: BTreeMap::new(),
            pauses: BTreeMap::new(),
            quarrels: BTreeMap::new(),
            troubles: BTreeMap::new(),
            leaving,
            contents: BTreeMap::new(),
            told: self.told(),
            kept_elsewhere,
        };
        if let Some(spec) = &spec {
            let mappings = self.mappings(spec).await;
            if let Hub::Work(work) = &seen.hub {
                seen.wanted = wanted::wanted(spec.clone(), &work.status, &mappings);
            }
        }
        let targets = self.targets(&seen).await;
        if let (Hub::Work(work), Some(spec)) = (&mut seen.hub, &spec) {
            work.read_only = wanted::read_only(&spec.manifest_configs, targets.keys());
        }
        self.remember(key, &mut seen, &targets);
        self.care(key, &seen, &targets);
        let services = protected::services(&seen.troubles);
        let heard = self.memory.with(key, |life| life.protections.clone());
        let heard = protected::anew(&heard, &services, &self.mirror, &self.executor).await;
        self.memory.with(key, |life| {
            life.protections.heed(heard, &mut life.troubles, seen.now);
            seen.troubles.clone_from(&life.troubles);
        });
        let mut looks = BTreeMap::new();
        for id in targets.keys() {
            looks.insert(id.clone(), self.mirror.look_served(id, &self.kinds).await);
        }
        let unwatched = self.unwatched(key, &targets, &mut looks, seen.now).await;
        seen.contents = self.contents(&seen, &looks).await;
        let mut reads = self.reads(key, &seen, spec.as_ref(), &looks);
        reads.extend(self.last_reads(&seen, &looks));
        reads.retain(|id| !unwatched.contains_key(id));
        let mut contents = self.read(&targets, reads).await;
        contents.extend(unwatched);
        self.ask_what_holds(&targets, &looks, &mut contents).await;
        seen.live =
            looks.iter().map(|(id, look)| (id.clone(), sight(look, contents.get(id)))).collect();
        seen.versions = targets.into_iter().collect();
        self.compare(key, &mut seen, &looks);
        if let Some(spec) = &spec {
            self.judge(key, &mut seen, spec, &contents);
            self.permit(Some(key), &mut seen, spec).await;
        }
        seen
    }

    fn hub(&self, key: &Key) -> (Hub, Option<ManifestWorkSpec>) {
        match key {
            Key::Work(name) => {
                match (self.works.get(&self.config.cluster, name), self.works.trouble()) {
                    // It was not there when the hub was last heard; that is no news of now.
                    (Held::Absent, Some(reason)) => (Hub::Unknown(reason.to_string()), None),
                    (held, _) => records::hub(&held),
                }
            }
            // Whether the hub can be reached decides nothing about another hub's ledger, but while
            // ours cannot be reached nothing should be taken for gone.
            Key::Stray(_) => match self.works.trouble() {
                None if !self.works.synced() => (Hub::Unknown("not read yet".to_owned()), None),
                None => (Hub::Absent, None),
                Some(reason) => (Hub::Unknown(reason.to_string()), None),
            },
        }
    }

    fn ledger(&self, key: &Key) -> (Agent, String, Ledger) {
        match key {
            Key::Work(name) => {
                let ledger = cleat_api::appliedmanifestwork::name(&self.agent.hub_hash, name);
                let ledger = match (self.ledgers.get("", &ledger), self.ledgers.trouble()) {
                    // It was not there when the cluster was last heard; that is no news of now.
                    (Held::Absent, Some(reason)) => Ledger::Unknown(reason.to_string()),
                    (held, _) => records::ledger(&held),
                };
                (self.agent.clone(), name.clone(), ledger)
            }
            Key::Stray(ledger) => {
                let ledger = records::ledger(&self.ledgers.get("", ledger));
                let (hub_hash, name) = match &ledger {
                    Ledger::Present(book) => (book.hub_hash.clone(), book.work_name.clone()),
                    Ledger::Absent | Ledger::Unknown(_) | Ledger::NotYet => Default::default(),
                };
                (Agent { hub_hash, ..self.agent.clone() }, name, ledger)
            }
        }
    }

    /// What cannot be undone is not decided from watches alone, which may be behind: that a deleting
    /// work has no ledger, and that the work of a ledger is gone from the hub for good.
    async fn confirmed(
        &self,
        agent: &Agent,
        name: &str,
        hub: Hub,
        ledger: Ledger,
        now: Timestamp,
    ) -> (Hub, Ledger) {
        let due = |book: &Book| {
            let end = book.eviction_start.zip(agent.eviction_grace);
            end.is_some_and(|(start, grace)| now.duration_since(start) >= grace)
        };
        match (&hub, &ledger) {
            (Hub::Work(work), Ledger::Absent) if work.deleting && work.has_finalizer() => {
                let target = ownership::ledger_target(&agent.hub_hash, name);
                let read = self.executor.read(Side::Cluster, &target).await;
                (hub, records::ledger_of(read))
            }
            (Hub::Absent, Ledger::Present(book))
                if due(book) && !book.deleting && agent.hub_hash == self.agent.hub_hash =>
            {
                let id = Id {
                    group: ownership::GROUP.to_owned(),
                    resource: "manifestworks".to_owned(),
                    namespace: self.config.cluster.clone(),
                    name: name.to_owned(),
                };
                let target = Target { version: "v1".to_owned(), id };
                match self.executor.read(Side::Hub, &target).await {
                    Read::Absent => (Hub::Absent, ledger),
                    _ => (
                        Hub::Unknown("whether the hub has the work is not clear".to_owned()),
                        ledger,
                    ),
                }
            }
            _ => (hub, ledger),
        }
    }

    /// What the kinds of the manifests are, each asked once.
    async fn mappings(&self, spec: &ManifestWorkSpec) -> BTreeMap<(String, String), Mapping> {
        let asked = spec.workload.manifests.iter().filter_map(|m| wanted::ask(&m.0).ok());
        let kinds: BTreeSet<(String, String)> =
            asked.map(|asked| (asked.api_version, asked.kind)).collect();
        let mut mappings = BTreeMap::new();
        for (api_version, kind) in kinds {
            let mapping = match self.kinds.map(&api_version, &kind).await {
                kinds::Mapping::Mapped(mapped) => Mapping::Mapped {
                    group: mapped.group,
                    version: mapped.version,
                    resource: mapped.resource,
                    namespaced: mapped.namespaced,
                },
                kinds::Mapping::NoSuchKind => Mapping::NoSuchKind,
                kinds::Mapping::Unknown(message) => Mapping::Unknown(message),
            };
            mappings.insert((api_version, kind), mapping);
        }
        mappings
    }

    /// Everything to look at, and in which version.
    async fn targets(&self, seen: &Observed) -> BTreeMap<Id, String> {
        let mut targets = BTreeMap::new();
        if let Ledger::Present(book) = &seen.ledger
            && (book.agent_id == self.agent.id
                || seen.hub.work().is_some()
                || seen.leaving.is_some())
        {
            targets = self.recorded(book).await;
        }
        for wanted in &seen.wanted {
            if let Place::At(target) = &wanted.place {
                targets.insert(target.id.clone(), target.version.clone());
            }
        }
        if let (Hub::Work(work), Ledger::Present(book)) = (&seen.hub, &seen.ledger) {
            let named = ownership::kept_by_name(work).filter(|id| retire::is_held(book, id));
            for id in named {
                if targets.contains_key(&id) {
                    continue;
                }
                let version = match self.kinds.preferred(&id.group, &id.resource).await {
                    kinds::Mapping::Mapped(mapped) => mapped.version,
                    kinds::Mapping::NoSuchKind => continue,
                    kinds::Mapping::Unknown(_) => "v1".to_owned(),
                };
                targets.insert(id, version);
            }
        }
        targets
    }

    /// Everything that is on record, and in which version to look at it.
    pub(super) async fn recorded(&self, book: &Book) -> BTreeMap<Id, String> {
        let mut targets = BTreeMap::new();
        for id in book.ids() {
            let recorded = book.applied.get(id).map(|applied| applied.version.clone());
            let version = match self.kinds.preferred(&id.group, &id.resource).await {
                kinds::Mapping::Mapped(mapped) => mapped.version,
                _ => recorded.unwrap_or_else(|| "v1".to_owned()),
            };
            targets.insert(id.clone(), version);
        }
        targets
    }

    fn care(&self, key: &Key, seen: &Observed, targets: &BTreeMap<Id, String>) {
        let homeless =
            |wanted: &Wanted| matches!(wanted.place, Place::Nowhere { .. } | Place::Unknown { .. });
        let lacks_a_kind = seen.wanted.iter().any(homeless);
        let targets: BTreeSet<Target> = targets
            .iter()
            .map(|(id, version)| Target { version: version.clone(), id: id.clone() })
            // Who keeps something of it says when that changes.
            .chain(protected::services(&seen.troubles))
            .collect();
        if self.subjects.set(key, &targets, lacks_a_kind) {
            self.mirror.interest(&owner(key), &targets);
        }
    }

    fn remember(&self, key: &Key, seen: &mut Observed, targets: &BTreeMap<Id, String>) {
        let own = ownership::ledger_target(&seen.agent.hub_hash, &seen.name).id;
        self.memory.with(key, |life| {
            let generation = seen.hub.work().map(|work| work.generation);
            if generation.is_some() && life.generation != generation {
                // What was refused may be asked for differently now.
                life.troubles.clear();
                life.objects.values_mut().for_each(|object| object.permission = None);
                life.generation = generation;
            }
            let hubs = ["manifestworks", "manifestworks/status"];
            let known = |id: &Id| {
                targets.contains_key(id) || *id == own || hubs.contains(&id.resource.as_str())
            };
            life.troubles.retain(|id, _| known(id));
            life.objects.retain(|id, _| targets.contains_key(id));
            if let Ledger::Present(book) = &mut seen.ledger {
                for (id, object) in &mut life.objects {
                    object.made = object.made.take().filter(|_| book.recorded_uid(id).is_none());
                    book.made
                        .extend(object.made.as_deref().map(|uid| (id.clone(), uid.to_owned())));
                }
            }
            seen.troubles.clone_from(&life.troubles);
            life.wake = None;
            let asked: BTreeMap<&Id, u64> = seen
                .wanted
                .iter()
                .filter_map(|wanted| Some((wanted.place.id()?, wanted.digest)))
                .collect();
            for (id, object) in &life.objects {
                let until = object.repairs.and_then(|repairs| repairs.not_before());
                // A quarrel is about what was asked for then; a new wish is not held back by it.
                let digest = object.verified.as_ref().map(|verified| verified.digest);
                let same = digest.is_some() && asked.get(id).copied() == digest;
                seen.pauses.extend(until.filter(|_| same).map(|until| (id.clone(), until)));
                let quarrel = object.repairs.and_then(|repairs| repairs.quarrel_until());
                seen.quarrels.extend(quarrel.filter(|_| same).map(|until| (id.clone(), until)));
            }
            drop(asked);
            recall(Some(&*life), seen);
        });
    }

    /// What nobody can watch is read in every pass, and looked at again after a while.
    async fn unwatched(
        &self,
        key: &Key,
        targets: &BTreeMap<Id, String>,
        looks: &mut BTreeMap<Id, Look>,
        now: Timestamp,
    ) -> BTreeMap<Id, Read> {
        let is_unwatched = |look: &Look| *look == Look::Unknown(Reason::Unwatchable);
        let ids = looks.iter().filter(|(_, look)| is_unwatched(look)).map(|(id, _)| id.clone());
        let ids: Vec<Id> = ids.collect();
        if ids.is_empty() {
            return BTreeMap::new();
        }
        let next = now.checked_add(self.config.status_interval).unwrap_or(now);
        self.memory.with(key, |life| {
            life.wake = Some(life.wake.map_or(next, |wake| wake.min(next)));
        });
        let reads = self.read(targets, ids).await;
        for (id, read) in &reads {
            let look = match read {
                Read::Present(object) => self.mirror.meta_of(object).map(Look::Present),
                Read::Absent => Some(Look::Absent),
                Read::NoSuchKind | Read::Unknown { .. } => None,
            };
            looks.extend(look.map(|look| (id.clone(), look)));
        }
        reads
    }

    /// What a namespace that is going waits for is in its status alone. Without an answer it is known
    /// to be going all the same.
    async fn ask_what_holds(
        &self,
        targets: &BTreeMap<Id, String>,
        looks: &BTreeMap<Id, Look>,
        contents: &mut BTreeMap<Id, Read>,
    ) {
        let is_going = |look: &Look| {
            matches!(look, Look::Present(meta)
                if meta.deletion_timestamp.is_some() && meta.finalizers.is_empty())
        };
        let is_namespace = |id: &Id| id.group.is_empty() && id.resource == "namespaces";
        let going = looks.iter().filter(|(id, look)| is_namespace(id) && is_going(look));
        let unread = going.map(|(id, _)| id).filter(|id| !contents.contains_key(*id)).cloned();
        let unread: Vec<Id> = unread.collect();
        let answers = self.read(targets, unread).await.into_iter();
        contents
            .extend(answers.filter(|(_, read)| matches!(read, Read::Present(_) | Read::Absent)));
    }

    /// The objects whose content has to be read in this pass.
    fn reads(
        &self,
        key: &Key,
        seen: &Observed,
        spec: Option<&ManifestWorkSpec>,
        looks: &BTreeMap<Id, Look>,
    ) -> Vec<Id> {
        let (Hub::Work(work), Ledger::Present(book), Some(spec)) = (&seen.hub, &seen.ledger, spec)
        else {
            return Vec::new();
        };
        if work.deleting || book.deleting {
            return Vec::new();
        }
        // Of a completed work only what is told is looked at.
        let complete = work.is_complete();
        let mut reads = Vec::new();
        for (id, wanted) in seen.wanted_by_id() {
            // Applying cannot be told to make something new only, so it is looked for once more.
            let applies = matches!(wanted.strategy, Strategy::ServerSideApply { .. });
            if let (Some(Look::Absent), true, false) = (looks.get(id), applies, complete) {
                reads.push(id.clone());
            }
            let Some(Look::Present(meta)) = looks.get(id) else { continue };
            let rules = wanted::rules(&spec.manifest_configs, id);
            if (!complete && self.is_unverified(key, wanted, id, meta))
                || self.is_due(key, id, meta, &rules, seen.now)
            {
                reads.push(id.clone());
            }
        }
        reads
    }

    fn is_unverified(&self, key: &Key, wanted: &Wanted, id: &Id, meta: &Meta) -> bool {
        let compares =
            matches!(wanted.strategy, Strategy::Update | Strategy::ServerSideApply { .. });
        compares
            && !wanted.complete
            && meta.deletion_timestamp.is_none()
            && !self.memory.with(key, |life| {
                let object = life.objects.get(id);
                let verified = object.and_then(|object| object.verified.as_ref());
                verified.is_some_and(|verified| verified.holds(wanted.digest, meta))
            })
    }

    async fn read(&self, targets: &BTreeMap<Id, String>, ids: Vec<Id>) -> BTreeMap<Id, Read> {
        let reads = ids.into_iter().filter_map(|id| {
            let target = Target { version: targets.get(&id)?.clone(), id };
            Some(async move {
                let read = match self.mirror.take(&target) {
                    Some(object) => Read::Present(object),
                    None => self.executor.read(Side::Cluster, &target).await,
                };
                (target.id, read)
            })
        });
        futures::stream::iter(reads).buffer_unordered(READS).collect().await
    }

    /// Marks what is known to be as wanted, so that it is not compared again.
    fn compare(&self, key: &Key, seen: &mut Observed, looks: &BTreeMap<Id, Look>) {
        let digests: Vec<(Id, u64)> = seen
            .wanted_by_id()
            .into_iter()
            .map(|(id, wanted)| (id.clone(), wanted.digest))
            .collect();
        self.memory.with(key, |life| {
            for (id, digest) in digests {
                let Some(Look::Present(meta)) = looks.get(&id) else { continue };
                let object = life.objects.get_mut(&id);
                let verified = object.and_then(|object| object.verified.as_mut());
                let Some(verified) = verified else { continue };
                verified.complete(meta);
                if verified.holds(digest, meta)
                    && let Some(Seen::Present(present)) = seen.live.get_mut(&id)
                    && *present.uid == *meta.uid
                    && *present.resource_version == *meta.resource_version
                    && present.terminating.is_none()
                {
                    present.content = Content::AsWanted;
                }
            }
        });
    }

    /// Remembers which of the objects that were read are as wanted.
    pub(super) fn verified(&self, key: &Key, seen: &Observed) {
        let (Hub::Work(work), Ledger::Present(book)) = (&seen.hub, &seen.ledger) else { return };
        let was_read =
            |live: &Seen| matches!(live, Seen::Present(p) if matches!(p.content, Content::Read(_)));
        if !seen.live.values().any(was_read) {
            return;
        }
        for (target, wanted, need) in converge::needs(seen, work, book) {
            let Some(Seen::Present(present)) = seen.live.get(&target.id) else { continue };
            let (Need::Nothing, Content::Read(object)) = (&need, &present.content) else {
                continue;
            };
            let verified = match self.mirror.look(&target.id) {
                Look::Present(meta) if *meta.resource_version == *present.resource_version => {
                    Some(Verified::of(wanted.digest, &meta))
                }
                _ => Verified::of_answer(wanted.digest, object),
            };
            self.memory.with(key, |life| {
                life.objects.entry(target.id.clone()).or_default().verified = verified;
            });
        }
    }
}

/// Whether each manifest is the one that was applied last, as far as that is remembered.
fn recall(life: Option<&Life>, seen: &mut Observed) {
    let applied_now = seen.hub.work().is_some_and(is_applied);
    for wanted in &mut seen.wanted {
        let object = wanted.place.id().and_then(|id| life?.objects.get(id));
        let verified = object.and_then(|object| object.verified.as_ref());
        let same = match verified {
            Some(verified) => verified.digest == wanted.digest,
            None => applied_now,
        };
        wanted.previous = if same { Previous::Same } else { Previous::Unknown };
    }
}

/// Whether the hub was told that all of the work as it is now is applied.
pub(super) fn is_applied(work: &Work) -> bool {
    let applied = |c: &&records::Condition| c.type_ == cleat_api::manifestwork::condition::APPLIED;
    let applied = work.status.conditions.iter().find(applied);
    applied.is_some_and(|c| c.status == "True" && c.observed_generation == Some(work.generation))
}

/// What is known of an object, from its metadata and, if it was read, from the object itself.
fn sight(look: &Look, read: Option<&Read>) -> Seen {
    match (look, read) {
        (_, Some(Read::Present(object))) => match present(object) {
            Some(present) => Seen::Present(present),
            None => {
                Seen::Unknown("the server answered with something that is no object".to_owned())
            }
        },
        (_, Some(Read::Absent)) => Seen::Absent,
        (_, Some(Read::Unknown { message })) => Seen::Unknown(message.clone()),
        (_, Some(Read::NoSuchKind)) | (Look::NoSuchKind, None) => {
            Seen::Unknown("the cluster does not serve this kind now".to_owned())
        }
        (Look::Absent, None) => Seen::Absent,
        (Look::Unknown(Reason::NotReadYet), None) => Seen::NotYet,
        (Look::Unknown(reason), None) => Seen::Unknown(reason.to_string()),
        (Look::Present(meta), None) => Seen::Present(Present {
            uid: meta.uid.to_string(),
            resource_version: meta.resource_version.to_string(),
            terminating: meta
                .deletion_timestamp
                .map(|_| meta.finalizers.iter().map(ToString::to_string).collect()),
            owners: meta
                .owner_references
                .iter()
                .map(|owner| Owner {
                    api_version: owner.api_version.to_string(),
                    kind: owner.kind.to_string(),
                    name: owner.name.to_string(),
                    uid: owner.uid.to_string(),
                    controller: owner.controller,
                    block_owner_deletion: owner.block_owner_deletion,
                })
                .collect(),
            content: Content::Unread,
        }),
    }
}

fn present(object: &Value) -> Option<Present> {
    let metadata = object.get("metadata")?;
    let text =
        |value: &Value, field: &str| value.get(field).and_then(Value::as_str).map(str::to_owned);
    let list =
        |field: &str| metadata.get(field).and_then(Value::as_array).cloned().unwrap_or_default();
    let finalizers =
        || list("finalizers").iter().filter_map(|f| Some(f.as_str()?.to_owned())).collect();
    let flag = |value: &Value, field: &str| value.get(field).and_then(Value::as_bool);
    Some(Present {
        uid: text(metadata, "uid")?,
        resource_version: text(metadata, "resourceVersion")?,
        terminating: metadata
            .get("deletionTimestamp")
            .filter(|t| !t.is_null())
            .map(|_| finalizers()),
        owners: list("ownerReferences")
            .iter()
            .map(|owner| Owner {
                api_version: text(owner, "apiVersion").unwrap_or_default(),
                kind: text(owner, "kind").unwrap_or_default(),
                name: text(owner, "name").unwrap_or_default(),
                uid: text(owner, "uid").unwrap_or_default(),
                controller: flag(owner, "controller"),
                block_owner_deletion: flag(owner, "blockOwnerDeletion"),
            })
            .collect(),
        content: Content::Read(Arc::new(object.clone())),
    })
}
