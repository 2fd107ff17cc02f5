//! Answers to questions that must be certain: asked of the server, after the request came.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use cleat_api::criticalservice::{CriticalService, GROUP, RESOURCE, VERSION};
use cleat_core::id::{Id, Target};
use cleat_core::protection::{
    Criterion, Knowledge, Question, Request, Service, Sight, Tally, Whereabouts, definition_id,
    whereabouts,
};
use cleat_core::write::Side;
use cleat_runtime::census::{Counted, Proof, prove_none};
use cleat_runtime::execute::Read;
use cleat_runtime::kinds::Mapping;
use futures::future::join_all;
use kube::api::{Api, ListParams};
use kube::core::PartialObjectMeta;
use serde_json::Value;

use crate::Context;
use crate::knowledge::{Kind, NOT_SERVED, discovery_failed};
use crate::services::understood;

/// Less than a review may take.
const PATIENCE: Duration = Duration::from_secs(7);
/// How many CriticalServices are read at the same time.
const AT_ONCE: usize = 32;

enum Answer {
    Services(Result<Arc<[Arc<Service>]>, String>),
    Object(Id, Sight),
    Tally(Criterion, Tally),
}

impl Context {
    /// Finds out all of it. `Err`: the CriticalServices cannot be known.
    pub(crate) async fn prove(
        &self,
        request: &Request,
        questions: &BTreeSet<Question>,
        known: &mut Knowledge,
    ) -> Result<(), String> {
        let answers = join_all(questions.iter().map(async |question| match question {
            Question::Services => Answer::Services(self.prove_services_of(request).await),
            Question::Object(id) => Answer::Object(id.clone(), self.prove_object(id).await),
            Question::Tally(criterion) => {
                Answer::Tally(criterion.clone(), self.prove_tally(criterion).await)
            }
        }));
        for answer in answers.await {
            match answer {
                Answer::Services(services) => {
                    known.services = services?;
                    known.services_proven = true;
                }
                Answer::Object(id, sight) => {
                    known.objects_proven.insert(id.clone());
                    known.objects.insert(id, sight);
                }
                Answer::Tally(criterion, tally) => drop(known.tallies.insert(criterion, tally)),
            }
        }
        Ok(())
    }

    /// All CriticalServices that a request could be about, now.
    async fn prove_services_of(&self, request: &Request) -> Result<Arc<[Arc<Service>]>, String> {
        let Some(places) = whereabouts(request) else { return self.prove_services().await };
        let mut all = Vec::new();
        for found in join_all(places.iter().map(|place| self.list_services(Some(place)))).await {
            match found {
                Ok(found) => all.extend(found),
                // An older definition cannot be selected by.
                Err(kube::Error::Api(status)) if status.code == 400 => {
                    return self.prove_services().await;
                }
                Err(error) => return self.no_services(error).await,
            }
        }
        self.read_changed(all).await
    }

    /// All CriticalServices, now.
    pub(crate) async fn prove_services(&self) -> Result<Arc<[Arc<Service>]>, String> {
        match self.list_services(None).await {
            Ok(all) => self.read_changed(all).await,
            Err(error) => self.no_services(error).await,
        }
    }

    async fn list_services(
        &self,
        place: Option<&Whereabouts>,
    ) -> kube::Result<Vec<PartialObjectMeta<CriticalService>>> {
        let services: Api<CriticalService> = Api::all(self.config.client.clone());
        let mut page = ListParams::default();
        page.label_selector.clone_from(&self.config.labels);
        page.field_selector = place.map(Whereabouts::field_selector);
        Ok(services.list_metadata(&page).await?.items)
    }

    /// A cache is right about those that have the revision that the server has; only others are
    /// read.
    async fn read_changed(
        &self,
        live: Vec<PartialObjectMeta<CriticalService>>,
    ) -> Result<Arc<[Arc<Service>]>, String> {
        let cached = self.services.revisions();
        let mut all = Vec::with_capacity(live.len());
        let mut changed = Vec::new();
        for one in live {
            let name = one.metadata.name.unwrap_or_default();
            match cached.get(&name) {
                Some((revision, service)) if one.metadata.resource_version == *revision => {
                    all.push(Arc::clone(service));
                }
                _ => changed.push(name),
            }
        }
        for names in changed.chunks(AT_ONCE) {
            for one in join_all(names.iter().map(|name| self.prove_service(name))).await {
                all.extend(one?);
            }
        }
        all.sort_by(|one, other| one.name.cmp(&other.name));
        // One may be about a request in two ways.
        all.dedup_by(|one, other| one.name == other.name);
        Ok(all.into())
    }

    /// That they cannot be listed does not mean that there are none.
    async fn no_services(&self, error: kube::Error) -> Result<Arc<[Arc<Service>]>, String> {
        match error {
            kube::Error::Api(status) if status.code == 404 => {
                self.prove_undefined(GROUP, RESOURCE).await.map(|()| Arc::default())
            }
            error => Err(error.to_string()),
        }
    }

    async fn prove_service(&self, name: &str) -> Result<Option<Arc<Service>>, String> {
        let id = Service { name: name.to_owned(), ..Service::default() }.id();
        let target = Target { version: VERSION.to_owned(), id };
        match self.executor.read(Side::Cluster, &target).await {
            Read::Present(object) => match understood(&object) {
                Some(service) => Ok(Some(Arc::new(service))),
                None => {
                    let last = self.services.revisions().remove(name).map(|(_, service)| service);
                    last.map(Some)
                        .ok_or_else(|| format!("CriticalService {name} is not understood"))
                }
            },
            Read::Absent => Ok(None),
            Read::NoSuchKind => Err(NOT_SERVED.to_owned()),
            Read::Unknown { message } => Err(message),
        }
    }

    pub(crate) async fn prove_object(&self, id: &Id) -> Sight {
        let version = match self.version(id).await {
            Ok(version) => version,
            Err(_) => match self.prove_undefined(&id.group, &id.resource).await {
                Ok(()) => return Sight::Absent,
                Err(why) => return Sight::Unknown(why),
            },
        };
        let target = Target { version, id: id.clone() };
        match self.executor.read(Side::Cluster, &target).await {
            Read::Present(object) => present(&object),
            Read::Absent => Sight::Absent,
            Read::NoSuchKind => match self.prove_undefined(&id.group, &id.resource).await {
                Ok(()) => Sight::Absent,
                Err(why) => Sight::Unknown(why),
            },
            Read::Unknown { message } => Sight::Unknown(message),
        }
    }

    pub(crate) async fn prove_tally(&self, criterion: &Criterion) -> Tally {
        let (kind, finalizer): (Kind, _) = match criterion {
            Criterion::Finalizer { group, resource, finalizer } => {
                ((group.clone(), resource.clone()), Some(finalizer.as_str()))
            }
            Criterion::Any { group, resource } => ((group.clone(), resource.clone()), None),
            Criterion::Object(_) | Criterion::Unreadable(_) => {
                return Tally::Unknown("not a criterion that counts".to_owned());
            }
        };
        let (group, resource) = &kind;
        let proof = match self.kinds.preferred(group, resource).await {
            Mapping::Mapped(mapped) => match self.knowers.census(&kind) {
                Some(census) => census.prove_none(finalizer, &self.turns, PATIENCE).await,
                None => {
                    let client = &self.config.client;
                    prove_none(client, &mapped, finalizer, &self.turns, PATIENCE).await
                }
            },
            Mapping::NoSuchKind => Proof::NoSuchKind,
            Mapping::Unknown(why) => Proof::Unknown(discovery_failed(&why)),
        };
        match proof {
            Proof::None => Tally::None,
            Proof::Some(sample) => self.with_others(&kind, finalizer, sample),
            Proof::Unknown(why) => Tally::Unknown(why),
            Proof::NoSuchKind => match self.prove_undefined(group, resource).await {
                Ok(()) => Tally::None,
                Err(why) => Tally::Unknown(why),
            },
        }
    }

    /// One is certainly there; a watch may know of more.
    fn with_others(&self, kind: &Kind, finalizer: Option<&str>, found: String) -> Tally {
        match self.knowers.census(kind).map(|census| census.count(finalizer)) {
            Some(Counted::Known { count, mut samples }) => {
                let exact = count > 0;
                if !samples.contains(&found) && samples.len() >= count {
                    samples.push(found);
                }
                Tally::Some { count: count.max(samples.len()), exact, samples }
            }
            _ => Tally::Some { count: 1, exact: false, samples: vec![found] },
        }
    }

    /// That a kind does not exist, and so none of its objects. `Err`: it may.
    async fn prove_undefined(&self, group: &str, resource: &str) -> Result<(), String> {
        self.kinds.forget();
        let found = self.kinds.preferred(group, resource).await;
        match &found {
            Mapping::Unknown(why) => return Err(discovery_failed(why)),
            // Discovery may tell of a kind for a moment after its definition went.
            Mapping::Mapped(_) if definition_id(group, resource).is_none() => {
                return Err("the kind came just now; repeat this".to_owned());
            }
            Mapping::Mapped(_) | Mapping::NoSuchKind => {}
        }
        // Only a kind with a definition can be served no more and have objects all the same.
        let Some(id) = definition_id(group, resource) else { return Ok(()) };
        let target = Target { version: "v1".to_owned(), id };
        match self.executor.read(Side::Cluster, &target).await {
            Read::Absent => self.served_here(&found).await,
            Read::Present(_) => Err(NOT_SERVED.to_owned()),
            Read::NoSuchKind => Err("the server does not serve definitions".to_owned()),
            Read::Unknown { message } => Err(message),
        }
    }

    /// A kind without a definition that discovery tells of may be another server's, which answers
    /// what it likes. `Err`: it is, or may be.
    pub(crate) async fn served_here(&self, found: &Mapping) -> Result<(), String> {
        let Mapping::Mapped(mapped) = found else { return Ok(()) };
        match self.is_aggregated(&mapped.group, &mapped.version).await? {
            true => Err("another server serves the kind, and does not tell of it now".to_owned()),
            false => Ok(()),
        }
    }
}

fn present(object: &Value) -> Sight {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    Sight::Present {
        uid: text("/metadata/uid").unwrap_or_default().to_owned(),
        terminating: text("/metadata/deletionTimestamp").is_some(),
    }
}
