//! Answers to questions that must be certain: asked of the server, after the request came.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use cleat_api::criticalservice::CriticalService;
use cleat_core::id::{Id, Target};
use cleat_core::protection::{Criterion, Knowledge, Question, Service, Sight, Tally};
use cleat_core::write::Side;
use cleat_runtime::census::{Proof, prove_none};
use cleat_runtime::execute::Read;
use cleat_runtime::kinds::Mapping;
use futures::future::join_all;
use kube::api::{Api, ListParams};
use serde_json::Value;

use crate::Context;
use crate::knowledge::{Kind, NOT_SERVED, definition_of, discovery_failed};

/// Less than the API server waits for us.
const PATIENCE: Duration = Duration::from_secs(8);
const PAGE: u32 = 500;

enum Answer {
    Services(Result<Arc<[Arc<Service>]>, String>),
    Object(Id, Sight),
    Tally(Criterion, Tally),
}

impl Context {
    /// Finds out all of it. `Err`: the CriticalServices cannot be known.
    pub(crate) async fn prove(
        &self,
        questions: &BTreeSet<Question>,
        known: &mut Knowledge,
    ) -> Result<(), String> {
        let answers = join_all(questions.iter().map(async |question| match question {
            Question::Services => Answer::Services(self.prove_services().await),
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
                Answer::Object(id, sight) => drop(known.objects.insert(id, sight)),
                Answer::Tally(criterion, tally) => drop(known.tallies.insert(criterion, tally)),
            }
        }
        Ok(())
    }

    async fn prove_services(&self) -> Result<Arc<[Arc<Service>]>, String> {
        let services: Api<CriticalService> = Api::all(self.config.client.clone());
        let mut all = Vec::new();
        let mut page = ListParams::default().limit(PAGE);
        page.label_selector.clone_from(&self.config.labels);
        loop {
            let list = match services.list(&page).await {
                Ok(list) => list,
                // Without the kind there is none.
                Err(kube::Error::Api(status)) if status.code == 404 => return Ok(Arc::default()),
                Err(error) => return Err(error.to_string()),
            };
            all.extend(list.items.iter().map(|one| Arc::new(Service::read(one))));
            match list.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => page = page.continue_token(&token),
                None => return Ok(all.into()),
            }
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
                Some(census) => census.prove_none(finalizer, PATIENCE).await,
                None => prove_none(&self.config.client, &mapped, finalizer, PATIENCE).await,
            },
            Mapping::NoSuchKind => Proof::NoSuchKind,
            Mapping::Unknown(why) => Proof::Unknown(discovery_failed(&why)),
        };
        match proof {
            Proof::None => Tally::None,
            Proof::Some(sample) => Tally::Some { count: 1, samples: vec![sample] },
            Proof::Unknown(why) => Tally::Unknown(why),
            Proof::NoSuchKind => match self.prove_undefined(group, resource).await {
                Ok(()) => Tally::None,
                Err(why) => Tally::Unknown(why),
            },
        }
    }

    /// That a kind does not exist, and so none of its objects. `Err`: it may.
    async fn prove_undefined(&self, group: &str, resource: &str) -> Result<(), String> {
        self.kinds.forget();
        match self.kinds.preferred(group, resource).await {
            Mapping::Unknown(why) => return Err(discovery_failed(&why)),
            // Discovery may tell of a kind for a moment after its definition went.
            Mapping::Mapped(_) if definition_of(group, resource).is_none() => {
                return Err("the kind came just now; repeat this".to_owned());
            }
            Mapping::Mapped(_) | Mapping::NoSuchKind => {}
        }
        // Only a kind with a definition can be served no more and have objects all the same.
        let Some(id) = definition_of(group, resource) else { return Ok(()) };
        let target = Target { version: "v1".to_owned(), id };
        match self.executor.read(Side::Cluster, &target).await {
            Read::Absent => Ok(()),
            Read::Present(_) => Err(NOT_SERVED.to_owned()),
            Read::NoSuchKind => Err("the server does not serve definitions".to_owned()),
            Read::Unknown { message } => Err(message),
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
