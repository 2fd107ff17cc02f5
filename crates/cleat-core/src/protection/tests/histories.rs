//! Deletes and creates that race, caches that lag, proofs that fail, decisions that take effect
//! late: no provider is lost while a consumer that was there at the decision needs it, and in the
//! end everything that was asked to go is gone. Planted faults must be found.

use alloc::sync::Arc;
use std::collections::{BTreeMap, BTreeSet};
use std::format;
use std::string::{String, ToString as _};
use std::vec::Vec;

use cleat_api::criticalservice::CriticalService;
use jiff::Timestamp;
use serde_json::json;

use super::{definition, finalizer, id, provider, review};
use crate::id::Id;
use crate::protection::{
    Decision, Knowledge, Probe, Question, Request, Seen, Service, Sight, Tally, decide,
    namespace_id, report, whereabouts,
};
use crate::write::Write;

/// A mistake somebody could make in the decision or in the IO half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    CachesProve,
    UnknownIsNone,
    ErrorsAllow,
    NamespaceIgnored,
    ItselfIgnored,
    FinalizersIgnored,
    DefinitionIgnored,
    UidIgnored,
    LatchIgnored,
    TerminatingNamespaceRefuses,
    LateOnesNotRecorded,
    StaleNamespaceBelieved,
    ServicesNotProven,
    StaleProviderBelieved,
}

const FAULTS: [Fault; 14] = [
    Fault::CachesProve,
    Fault::UnknownIsNone,
    Fault::ErrorsAllow,
    Fault::NamespaceIgnored,
    Fault::ItselfIgnored,
    Fault::FinalizersIgnored,
    Fault::DefinitionIgnored,
    Fault::UidIgnored,
    Fault::LatchIgnored,
    Fault::TerminatingNamespaceRefuses,
    Fault::LateOnesNotRecorded,
    Fault::StaleNamespaceBelieved,
    Fault::ServicesNotProven,
    Fault::StaleProviderBelieved,
];

/// A small generator: the same seed gives the same history.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

#[derive(Clone, Debug)]
struct Thing {
    uid: String,
    terminating: bool,
    born: u64,
}

#[derive(Clone, Debug)]
struct Consumer {
    terminating: bool,
    /// When it came to have the finalizer.
    needs_since: Option<u64>,
}

/// What an API server holds.
#[derive(Clone, Debug, Default)]
struct State {
    provider: Option<Thing>,
    namespace: Option<Thing>,
    definition: Option<Thing>,
    service: Option<CriticalService>,
    consumers: BTreeMap<u64, Consumer>,
}

/// A request that was let through and has not taken effect yet.
struct Passed {
    what: What,
    uid: String,
    /// The incarnation of the provider that was on record then.
    recorded: String,
    decided: Decided,
}

/// When a request was let through, and whether anything protected the provider then.
#[derive(Clone, Copy, Debug, Default)]
struct Decided {
    at: u64,
    guarded: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Provider,
    Namespace,
    Definition,
    Service,
}

struct World {
    fault: Fault,
    time: u64,
    next: u64,
    live: State,
    /// What watches have told so far.
    cache: State,
    /// Proofs about objects fail, and perhaps those about CriticalServices too.
    blind: bool,
    blind_to_services: bool,
    passed: Vec<Passed>,
    /// When the namespace was let go of.
    namespace: Decided,
    /// The same of a provider that takes its time.
    provider: Decided,
    late: bool,
    /// Since when the definition is a criterion, beside the finalizer.
    with_definition: Option<u64>,
}

impl State {
    fn sight(thing: &Option<Thing>) -> Option<Sight> {
        thing
            .as_ref()
            .map(|thing| Sight::Present { uid: thing.uid.clone(), terminating: thing.terminating })
    }

    fn objects(&self) -> BTreeMap<Id, Sight> {
        let all = [
            (provider(), &self.provider),
            (namespace_id("web"), &self.namespace),
            (definition(), &self.definition),
        ];
        all.into_iter().filter_map(|(id, thing)| Some((id, Self::sight(thing)?))).collect()
    }

    fn tally(&self) -> Option<Tally> {
        let names: Vec<String> = self
            .consumers
            .iter()
            .filter(|(_, consumer)| consumer.needs_since.is_some())
            .map(|(name, _)| format!("a/{name}"))
            .collect();
        (!names.is_empty()).then_some(Tally::Some {
            count: names.len(),
            exact: true,
            samples: names,
        })
    }

    fn services(&self) -> Arc<[Arc<Service>]> {
        self.service.iter().map(|one| Arc::new(Service::read(one))).collect()
    }
}

type Found = Result<(), String>;

impl World {
    fn new(fault: Fault, with_definition: bool) -> Self {
        let mut world = Self {
            fault,
            time: 1,
            next: 0,
            live: State::default(),
            cache: State::default(),
            blind: false,
            blind_to_services: false,
            passed: Vec::new(),
            namespace: Decided::default(),
            provider: Decided::default(),
            late: false,
            with_definition: with_definition.then_some(0),
        };
        world.live.namespace = Some(world.thing());
        world.live.provider = Some(world.thing());
        world.live.definition = Some(world.thing());
        world.make_service();
        world.cache = world.live.clone();
        world.tell();
        world.cache = world.live.clone();
        world
    }

    fn thing(&mut self) -> Thing {
        self.next += 1;
        Thing { uid: format!("u{}", self.next), terminating: false, born: self.time }
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_second(1_000_000 + i64::try_from(self.time).unwrap()).unwrap()
    }

    fn make_service(&mut self) {
        self.next += 1;
        let mut service = json!({
            "metadata": { "name": "for-server", "uid": format!("u{}", self.next), "generation": 1 },
            "spec": {
                "provider": { "group": "apps", "resource": "deployments", "namespace": "web",
                              "name": "server" },
                "criteria": [
                    { "type": "Finalizer", "finalizer": { "group": "my.group", "resource": "cools",
                      "finalizerName": "my.group/clean" } },
                    { "type": "SpecificResource", "specificResource": {
                      "group": "apiextensions.k8s.io", "resource": "customresourcedefinitions",
                      "name": "cools.my.group" } },
                ],
            },
        });
        if self.with_definition.is_none() {
            service["spec"]["criteria"].as_array_mut().unwrap().truncate(1);
        }
        self.live.service = Some(serde_json::from_value(service).unwrap());
    }

    /// Somebody adds a criterion to the CriticalService that is there.
    fn ask_for_more(&mut self) {
        let Some(service) = &mut self.live.service else { return };
        if self.with_definition.is_some() {
            return;
        }
        let more = json!({ "type": "SpecificResource", "specificResource": {
            "group": "apiextensions.k8s.io", "resource": "customresourcedefinitions",
            "name": "cools.my.group" } });
        service.spec.criteria.push(serde_json::from_value(more).unwrap());
        self.with_definition = Some(self.time);
    }

    /// The controller writes the status, from what is there.
    fn tell(&mut self) {
        let mut seen = Seen { probe: Probe::Refused, ..Seen::default() };
        for id in [provider(), definition(), namespace_id("web")] {
            seen.known.objects.insert(id, Sight::Absent);
        }
        seen.known.objects.extend(self.live.objects());
        seen.known.tallies.insert(finalizer(), self.live.tally().unwrap_or(Tally::None));
        let at = self.now();
        let Some(service) = &mut self.live.service else { return };
        if let Some(action) = report(service, &seen, at) {
            let Write::MergeStatus(patch) = action.write else { panic!("not a status") };
            service.status = serde_json::from_value(super::patched(&patch["status"])).unwrap();
            if self.fault == Fault::LateOnesNotRecorded
                && let Some(latch) = service.status.as_mut().and_then(|s| s.latch.as_mut())
            {
                latch.late.clear();
            }
        }
    }

    /// Whether a request passes, as a webhook would answer.
    fn asks(&self, request: &Request) -> bool {
        let mut known = Knowledge {
            services: self.cache.services(),
            objects: self.cache.objects(),
            ..Knowledge::default()
        };
        known.tallies.extend(self.cache.tally().map(|tally| (finalizer(), tally)));
        // That a namespace is going is looked at anew: another of its name may be there by now.
        let namespace = namespace_id("web");
        if self.fault != Fault::StaleNamespaceBelieved {
            let sight = State::sight(&self.live.namespace).filter(|_| !self.blind);
            known.objects.insert(namespace.clone(), sight.unwrap_or(Sight::NotSeen));
        }
        known.objects_proven.insert(namespace.clone());
        known.services_proven = self.fault == Fault::ServicesNotProven;
        if self.fault == Fault::StaleProviderBelieved {
            known.objects_proven.insert(provider());
        }
        if self.fault == Fault::TerminatingNamespaceRefuses {
            known.objects.remove(&namespace);
        }
        let on = |resource: &str| request.id.resource == resource;
        match self.fault {
            Fault::NamespaceIgnored if on("namespaces") => return true,
            Fault::ItselfIgnored if on("criticalservices") => return true,
            Fault::LatchIgnored if on("cools") => return true,
            _ => {}
        }
        for _ in 0..6 {
            match decide(request, &known, self.now()) {
                Decision::Allow { .. } => return true,
                Decision::Deny(_) => return false,
                Decision::Prove(questions) => {
                    if self.prove(request, &questions, &mut known).is_err() {
                        return self.fault == Fault::ErrorsAllow;
                    }
                }
            }
        }
        false
    }

    fn prove(
        &self,
        request: &Request,
        questions: &BTreeSet<Question>,
        known: &mut Knowledge,
    ) -> Result<(), ()> {
        if self.blind && self.fault == Fault::ErrorsAllow {
            return Err(());
        }
        let state = if self.fault == Fault::CachesProve { &self.cache } else { &self.live };
        for question in questions {
            match question {
                Question::Services if self.blind && self.blind_to_services => return Err(()),
                Question::Services => {
                    // No more are read than the request could be about.
                    let places = whereabouts(request);
                    let is_near = |one: &&Arc<Service>| match &places {
                        Some(places) => places.iter().any(|place| place.has(one)),
                        None => true,
                    };
                    known.services = state.services().iter().filter(is_near).cloned().collect();
                    known.services_proven = true;
                }
                Question::Object(id) => {
                    let sight = match state.objects().remove(id) {
                        _ if self.blind && self.fault == Fault::UnknownIsNone => Sight::Absent,
                        _ if self.blind => Sight::Unknown("blind".into()),
                        _ if self.fault == Fault::DefinitionIgnored && *id == definition() => {
                            Sight::Absent
                        }
                        found => found.unwrap_or(Sight::Absent),
                    };
                    known.objects.insert(id.clone(), sight);
                    known.objects_proven.insert(id.clone());
                }
                Question::Tally(criterion) => {
                    let tally = match state.tally() {
                        _ if self.fault == Fault::FinalizersIgnored => Tally::None,
                        _ if self.blind && self.fault == Fault::UnknownIsNone => Tally::None,
                        _ if self.blind => Tally::Unknown("blind".into()),
                        found => found.unwrap_or(Tally::None),
                    };
                    known.tallies.insert(criterion.clone(), tally);
                }
            }
        }
        Ok(())
    }

    /// Asks for a deletion. What passes takes effect later.
    fn delete(&mut self, what: What) {
        let (id, thing) = match what {
            What::Provider => (provider(), self.live.provider.clone()),
            What::Namespace => (namespace_id("web"), self.live.namespace.clone()),
            What::Definition => (definition(), self.live.definition.clone()),
            What::Service => {
                let Some(service) = &self.live.service else { return };
                let uid = service.metadata.uid.clone().unwrap();
                let thing = Thing { uid, terminating: false, born: 0 };
                (Service::read(service).id(), Some(thing))
            }
        };
        let Some(thing) = thing.filter(|thing| !thing.terminating) else { return };
        let request = Request::read(&review("DELETE", &id, &thing.uid)).unwrap();
        // Nobody protects a definition here, so nobody asks.
        if what == What::Definition || self.asks(&request) {
            // In a namespace that is going, the decision was made with that about the namespace.
            let going = self.live.namespace.as_ref().is_some_and(|one| one.terminating);
            let now = Decided { at: self.time, guarded: self.live.service.is_some() };
            let decided = if what == What::Provider && going { self.namespace } else { now };
            let recorded = self.live.service.as_ref().map(|one| Service::read(one).recorded);
            let recorded = recorded.unwrap_or_default();
            self.passed.push(Passed { what, uid: thing.uid, recorded, decided });
        }
    }

    /// The oldest that passed takes effect, if it is still about the same incarnation.
    fn take_effect(&mut self) -> Found {
        if self.passed.is_empty() {
            return Ok(());
        }
        let Passed { what, uid, recorded, decided } = self.passed.remove(0);
        let is = |thing: &Option<Thing>| thing.as_ref().is_some_and(|thing| thing.uid == uid);
        match what {
            What::Provider if is(&self.live.provider) && self.time.is_multiple_of(2) => {
                if let Some(provider) = &mut self.live.provider {
                    provider.terminating = true;
                    self.provider = decided;
                }
            }
            What::Provider if is(&self.live.provider) => self.lose_provider(decided)?,
            // A server that is told which incarnation is meant leaves this one alone.
            What::Provider if self.fault == Fault::UidIgnored => {
                if self.live.provider.is_some() && self.live.service.is_some() {
                    return Err("another incarnation of the provider was lost".to_string());
                }
            }
            What::Namespace if is(&self.live.namespace) => {
                if let Some(namespace) = &mut self.live.namespace {
                    namespace.terminating = true;
                    self.namespace = decided;
                }
            }
            What::Definition if is(&self.live.definition) => {
                if let Some(definition) = &mut self.live.definition {
                    definition.terminating = true;
                }
            }
            What::Service => {
                let same = |one: &CriticalService| one.metadata.uid.as_deref() == Some(&uid);
                if self.live.service.as_ref().is_some_and(same) {
                    if let Some(provider) = &self.live.provider
                        && provider.uid == recorded
                        && provider.born < decided.at
                    {
                        return Err("a CriticalService went before its provider".to_string());
                    }
                    self.live.service = None;
                }
            }
            What::Provider | What::Namespace | What::Definition => {}
        }
        Ok(())
    }

    fn lose_provider(&mut self, Decided { at, guarded }: Decided) -> Found {
        let Some(provider) = self.live.provider.take() else { return Ok(()) };
        // What came after the decision about its namespace was not part of it.
        if self.live.service.is_none() || !guarded || provider.born >= at {
            return Ok(());
        }
        for consumer in self.live.consumers.values() {
            if consumer.needs_since.is_some_and(|since| since < at) {
                return Err("a provider was lost that a consumer needed".to_string());
            }
            self.late |= consumer.needs_since.is_some();
        }
        let defined = self.live.definition.as_ref().is_some_and(|one| one.born < at);
        if defined && self.with_definition.is_some_and(|since| since < at) {
            return Err("a provider was lost before the definition".to_string());
        }
        Ok(())
    }

    /// What a control plane and the provider do by themselves.
    fn housekeeping(&mut self) -> Found {
        if self.live.definition.as_ref().is_some_and(|one| one.terminating) {
            self.live.consumers.values_mut().for_each(|consumer| consumer.terminating = true);
            if self.live.consumers.is_empty() {
                self.live.definition = None;
            }
        }
        if self.live.provider.is_some() {
            self.live.consumers.retain(|_, consumer| !consumer.terminating);
        } else {
            let stuck = |consumer: &Consumer| consumer.needs_since.is_some();
            self.live.consumers.retain(|_, consumer| !consumer.terminating || stuck(consumer));
        }
        if self.live.provider.as_ref().is_some_and(|one| one.terminating) {
            self.lose_provider(self.provider)?;
        }
        if self.live.namespace.as_ref().is_some_and(|one| one.terminating) {
            match &self.live.provider {
                None => self.live.namespace = None,
                Some(thing) => {
                    let request = review("DELETE", &provider(), &thing.uid);
                    if self.asks(&Request::read(&request).unwrap()) {
                        self.lose_provider(self.namespace)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn make_consumer(&mut self) -> Found {
        if self.live.definition.as_ref().is_none_or(|one| one.terminating) {
            return Ok(());
        }
        self.next += 1;
        let name = self.next;
        let mut asked = review("CREATE", &id("my.group", "cools", "a", &name.to_string()), "");
        asked["object"]["metadata"]["finalizers"] = json!(["my.group/clean"]);
        if self.asks(&Request::read(&asked).unwrap()) {
            let closed = self.live.service.as_ref().map(Service::read);
            let closed = closed.and_then(|one| one.latch).is_some_and(|l| self.now() < l.expires.0);
            if closed {
                return Err("a consumer came in through a closed latch".to_string());
            }
            let needs_since = Some(self.time);
            self.late |= self.live.provider.is_none();
            self.live.consumers.insert(name, Consumer { terminating: false, needs_since });
        }
        Ok(())
    }

    fn step(&mut self, dice: &mut Dice) -> Found {
        self.time += 1;
        match dice.roll(17) {
            0 | 1 => self.delete(What::Provider),
            2 => self.delete(What::Namespace),
            3 => self.delete(What::Definition),
            4 => self.delete(What::Service),
            5 | 6 => self.take_effect()?,
            7 | 8 => self.make_consumer()?,
            9 => {
                let names: Vec<u64> = self.live.consumers.keys().copied().collect();
                if !names.is_empty() {
                    let chosen = dice.roll(names.len() as u64);
                    let name = names[usize::try_from(chosen).unwrap()];
                    self.live.consumers.get_mut(&name).unwrap().terminating = true;
                }
            }
            10 => self.housekeeping()?,
            11 | 12 => self.cache = self.live.clone(),
            13 => self.tell(),
            14 => {
                self.blind = !self.blind;
                self.blind_to_services = self.time.is_multiple_of(2);
            }
            15 => self.ask_for_more(),
            _ => self.make_anew(),
        }
        Ok(())
    }

    fn make_anew(&mut self) {
        if self.live.namespace.is_none() {
            self.live.namespace = Some(self.thing());
        }
        if self.live.definition.is_none() {
            self.live.definition = Some(self.thing());
        }
        let usable = self.live.namespace.as_ref().is_some_and(|one| !one.terminating);
        if self.live.provider.is_none() && usable {
            self.live.provider = Some(self.thing());
        }
        if self.live.service.is_none() {
            self.make_service();
            self.tell();
        }
    }

    /// A quiet world in which everything is asked to go ends empty.
    fn settle(&mut self) -> Found {
        self.blind = false;
        let going = |state: &State| state.namespace.as_ref().is_some_and(|one| one.terminating);
        for _ in 0..3 {
            self.cache = self.live.clone();
            if going(&self.live) {
                self.housekeeping()?;
            }
        }
        if going(&self.live) {
            return Err("a namespace hangs although nothing but protection holds it".to_string());
        }
        for _ in 0..60 {
            self.time += 1;
            self.tell();
            if let Some(service) = self.live.service.as_ref().filter(|_| self.late) {
                let status = service.status.as_ref().unwrap();
                // One that never saw a provider has nothing to say of it.
                let knew = !Service::read(service).recorded.is_empty();
                let stuck = self.live.provider.is_none() && self.live.tally().is_some() && knew;
                let written = status.latch.as_ref().is_some_and(|latch| !latch.late.is_empty());
                if stuck && !written {
                    return Err("a consumer came too late and no record says so".to_string());
                }
            }
            if self.live.provider.is_none() {
                // As the record advises.
                self.live.consumers.clear();
            }
            self.cache = self.live.clone();
            self.live.consumers.values_mut().for_each(|consumer| consumer.terminating = true);
            for what in [What::Service, What::Namespace, What::Provider, What::Definition] {
                self.delete(what);
            }
            while !self.passed.is_empty() {
                self.take_effect()?;
            }
            self.housekeeping()?;
            let State { provider, namespace, definition, service, consumers } = &self.live;
            let empty = provider.is_none()
                && namespace.is_none()
                && definition.is_none()
                && service.is_none()
                && consumers.is_empty();
            if empty {
                return Ok(());
            }
        }
        Err(format!("it did not end: {:?}", self.live))
    }
}

fn history(fault: Fault, seed: u64) -> Found {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut world = World::new(fault, seed.is_multiple_of(2));
    for _ in 0..dice.roll(80) {
        world.step(&mut dice)?;
    }
    world.settle()
}

#[test]
fn every_history_ends_well() {
    for seed in 0..4000 {
        if let Err(found) = history(Fault::None, seed) {
            panic!("seed {seed}: {found}");
        }
    }
}

#[test]
fn every_planted_fault_is_found() {
    for fault in FAULTS {
        let found = (0..4000).find_map(|seed| history(fault, seed).err());
        assert!(found.is_some(), "{fault:?} was not found");
    }
}
