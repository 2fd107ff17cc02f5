//! Whether a request may pass.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::sync::Arc;
use alloc::vec::Vec;

use cleat_api::criticalservice::DEFINITION;
use jiff::Timestamp;

use super::denial::{Clause, Denial, Hold};
use super::latch;
use super::request::{Operation, Request};
use super::service::{Criterion, Service, namespace_id};
use crate::id::Id;

/// All that a decision may look at.
#[derive(Clone, Debug, Default)]
pub struct Knowledge {
    pub services: Arc<[Arc<Service>]>,
    /// Whether that is all of them as of this request, and not only as of some time before.
    pub services_proven: bool,
    pub objects: BTreeMap<Id, Sight>,
    /// Of which of these it is known as of this request. Of the others a cache told, and another of
    /// the same name may be there by now.
    pub objects_proven: BTreeSet<Id>,
    pub tallies: BTreeMap<Criterion, Tally>,
}

/// What is known of one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sight {
    /// No cache can tell.
    NotReady,
    /// No cache has it. Proves nothing.
    NotSeen,
    /// It was looked for after the request came, and is not there.
    Absent,
    Present {
        uid: String,
        terminating: bool,
    },
    /// It was looked for, and nobody could say.
    Unknown(String),
}

/// How many objects stand against a criterion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tally {
    /// No cache can tell.
    NotReady,
    /// No cache has any. Proves nothing.
    NotSeen,
    /// They were looked for after the request came, and there are none.
    None,
    Some {
        count: usize,
        /// Whether that is all of them.
        exact: bool,
        samples: Vec<String>,
    },
    /// They were looked for, and nobody could say.
    Unknown(String),
}

/// What must be found out before a request may pass.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Question {
    /// All CriticalServices, now.
    Services,
    /// Whether an object is there, now.
    Object(Id),
    /// How many stand against a criterion, now.
    Tally(Criterion),
}

#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "there is one per review")]
pub enum Decision {
    Allow {
        warnings: Vec<String>,
    },
    Deny(Denial),
    /// Ask again with the answers.
    Prove(BTreeSet<Question>),
}

/// The services that a request is about, and how.
pub fn concerned<'a>(
    request: &Request,
    services: &'a [Arc<Service>],
    now: Timestamp,
) -> Vec<(&'a Service, Concern<'a>)> {
    let Request { operation, id, .. } = request;
    let mut found = Vec::new();
    for service in services.iter().map(Arc::as_ref).filter(|service| service.protects()) {
        let of_provider = service.provider == *id && service.means(&request.uid);
        let concern = match operation {
            // An eviction names the pod, and need not say which incarnation.
            Operation::Create if request.evicts() => (service.provider == *id
                && (request.uid.is_empty() || service.means(&request.uid)))
            .then_some(Concern::Provider),
            // No other subresource deletes anything but by deleting something else.
            Operation::Delete if !request.subresource.is_empty() => None,
            Operation::Delete if of_provider => Some(Concern::Provider),
            Operation::Delete if *id == service.id() => Some(Concern::Itself),
            Operation::Delete if is_definition(id) => Some(Concern::Definition),
            Operation::Delete
                if !id.name.is_empty()
                    && service.provider.namespace == id.name
                    && *id == namespace_id(&id.name) =>
            {
                Some(Concern::Namespace)
            }
            Operation::Delete if service.provider_definition().as_ref() == Some(id) => {
                Some(Concern::Kind)
            }
            Operation::Update
                if of_provider
                    && service.guards_scale
                    && matches!(request.replicas, Some((1.., 0))) =>
            {
                Some(Concern::Provider)
            }
            Operation::Create | Operation::Update if latch::is_closed(service, now) => {
                latch::broken(service, request).map(Concern::Latched)
            }
            Operation::Delete | Operation::Create | Operation::Update => None,
        };
        found.extend(concern.map(|concern| (service, concern)));
    }
    found
}

/// How a service is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Concern<'a> {
    /// Its provider would go.
    Provider,
    /// The namespace of its provider would go.
    Namespace,
    /// The definition of its provider's kind would go, and the provider with it, unasked.
    Kind,
    /// The CriticalService would go.
    Itself,
    /// The definition of all CriticalServices would go.
    Definition,
    /// Its provider is going, and somebody new would come to need it.
    Latched(&'a Criterion),
}

fn is_definition(id: &Id) -> bool {
    id.group == "apiextensions.k8s.io"
        && id.resource == "customresourcedefinitions"
        && id.name == DEFINITION
}

/// Total: every request and every knowledge gives a decision.
pub fn decide(request: &Request, known: &Knowledge, now: Timestamp) -> Decision {
    // What is going already can only be held up by a refusal, not saved.
    if request.operation == Operation::Delete && request.terminating {
        return Decision::Allow { warnings: Vec::new() };
    }
    let concerned = concerned(request, &known.services, now);
    if concerned.is_empty() {
        return nobody_concerned(known);
    }
    if let Some(decision) = too_late(request, known, &concerned) {
        return decision;
    }
    let mut holds = Vec::new();
    let (mut open, mut unread) = (BTreeSet::new(), BTreeSet::new());
    let mut warnings = Vec::new();
    for (service, concern) in concerned {
        let mut weigh = Weigh { known, clauses: Vec::new(), open: &mut open, unread: &mut unread };
        match concern {
            Concern::Provider => weigh.criteria(service, None),
            Concern::Namespace => weigh.around(service, None),
            // Were the definition itself a criterion, neither could ever go.
            Concern::Kind => weigh.around(service, Some(&request.id)),
            Concern::Itself => weigh.itself(service),
            Concern::Definition => weigh.clauses.push(Clause::Remains(service.id())),
            Concern::Latched(criterion) => {
                weigh.clauses.push(Clause::Latched(criterion.clone(), service.provider.clone()))
            }
        }
        let mut clauses = weigh.clauses;
        let of_provider = matches!(concern, Concern::Provider | Concern::Namespace | Concern::Kind);
        // Whoever lets go of both may let go of this one first, and need not know what it says.
        if of_provider && service.releases && !clauses.is_empty() {
            clauses.push(Clause::Released(service.id()));
        }
        if clauses.is_empty() {
            warnings.push(passes(request, service, concern));
        } else {
            holds.push(Hold { service: service.name.clone(), clauses });
        }
    }
    if !holds.is_empty() {
        // Whoever is refused is told everything; what no cache can tell is looked at for that.
        if !unread.is_empty() {
            return Decision::Prove(unread);
        }
        return Decision::Deny(Denial { request: request.clone(), holds });
    }
    open.append(&mut unread);
    if !known.services_proven {
        // Another CriticalService, or another criterion of this one, may have come just now.
        open.insert(Question::Services);
    }
    if !open.is_empty() {
        return Decision::Prove(open);
    }
    Decision::Allow { warnings }
}

/// That nothing speaks against a request is worth a look of its own: we are asked only about what a
/// CriticalService, or its latch, named a moment ago.
fn nobody_concerned(known: &Knowledge) -> Decision {
    if known.services_proven {
        return Decision::Allow { warnings: Vec::new() };
    }
    Decision::Prove(BTreeSet::from([Question::Services]))
}

/// In a namespace that is going nothing can be kept. A refusal would only leave the namespace
/// hanging, without the rights that could repair it.
fn too_late(
    request: &Request,
    known: &Knowledge,
    concerned: &[(&Service, Concern<'_>)],
) -> Option<Decision> {
    let deletes = request.operation == Operation::Delete || request.evicts();
    if !deletes || request.id.namespace.is_empty() {
        return None;
    }
    let namespace = namespace_id(&request.id.namespace);
    if !matches!(known.objects.get(&namespace), Some(Sight::Present { terminating: true, .. })) {
        return None;
    }
    if !known.objects_proven.contains(&namespace) {
        return Some(Decision::Prove(BTreeSet::from([Question::Object(namespace)])));
    }
    let (service, _) = concerned.first()?;
    let warning = format!(
        "{} is protected by CriticalService {}, but its namespace is already being deleted",
        request.id, service.name
    );
    Some(Decision::Allow { warnings: alloc::vec![warning] })
}

/// What is said when a protected thing goes. It is also how a dry run shows that we were asked.
fn passes(request: &Request, service: &Service, concern: Concern<'_>) -> String {
    let name = &service.name;
    match concern {
        Concern::Provider if request.orphans => format!(
            "{SEEN} {name}: nothing needs its provider now; what the provider owns stays behind, \
             as propagationPolicy Orphan asks"
        ),
        Concern::Provider | Concern::Namespace | Concern::Kind => {
            format!("{SEEN} {name}: nothing needs its provider now")
        }
        Concern::Itself if service.releases => {
            format!("{SEEN} {name}: its provider is not protected any more, as onDelete asks")
        }
        Concern::Itself | Concern::Definition | Concern::Latched(_) => {
            format!("{SEEN} {name}: its provider is gone")
        }
    }
}

/// How every such warning begins.
pub const SEEN: &str = "seen by CriticalService";

/// Gathers what stands against one service's consent, and what is not known well enough.
struct Weigh<'a> {
    known: &'a Knowledge,
    clauses: Vec<Clause>,
    open: &'a mut BTreeSet<Question>,
    unread: &'a mut BTreeSet<Question>,
}

impl Weigh<'_> {
    fn criteria(&mut self, service: &Service, except: Option<&Id>) {
        for criterion in &service.criteria {
            if !matches!(criterion, Criterion::Object(id) if Some(id) == except) {
                self.criterion(criterion);
            }
        }
    }

    fn criterion(&mut self, criterion: &Criterion) {
        let unknown = |why: &str| Clause::Unknown(criterion.to_string(), why.to_string());
        match criterion {
            Criterion::Unreadable(why) => self.clauses.push(unknown(why)),
            Criterion::Object(id) => match self.known.objects.get(id).unwrap_or(&Sight::NotSeen) {
                Sight::Absent => {}
                Sight::Present { .. } => self.clauses.push(Clause::Remains(id.clone())),
                Sight::Unknown(why) => self.clauses.push(unknown(why)),
                Sight::NotSeen => drop(self.open.insert(Question::Object(id.clone()))),
                Sight::NotReady => drop(self.unread.insert(Question::Object(id.clone()))),
            },
            Criterion::Finalizer { .. } | Criterion::Any { .. } => {
                match self.known.tallies.get(criterion).unwrap_or(&Tally::NotSeen) {
                    Tally::None => {}
                    Tally::Some { count, exact, samples } => self.clauses.push(Clause::Remain {
                        criterion: criterion.clone(),
                        count: *count,
                        exact: *exact,
                        samples: samples.clone(),
                    }),
                    Tally::Unknown(why) => self.clauses.push(unknown(why)),
                    Tally::NotSeen => drop(self.open.insert(Question::Tally(criterion.clone()))),
                    Tally::NotReady => drop(self.unread.insert(Question::Tally(criterion.clone()))),
                }
            }
        }
    }

    /// What a provider is in may go if the provider may.
    fn around(&mut self, service: &Service, except: Option<&Id>) {
        let id = &service.provider;
        match self.known.objects.get(id).unwrap_or(&Sight::NotSeen) {
            Sight::Present { uid, terminating: false } if service.means(uid) => {
                self.criteria(service, except);
            }
            Sight::Present { .. } | Sight::Absent => self.certain(id),
            Sight::Unknown(why) => self.clauses.push(Clause::Unknown(id.to_string(), why.clone())),
            Sight::NotSeen => drop(self.open.insert(Question::Object(id.clone()))),
            Sight::NotReady => drop(self.unread.insert(Question::Object(id.clone()))),
        }
    }

    /// What is known of an object lets a request pass, so it must be known now.
    fn certain(&mut self, id: &Id) {
        if !self.known.objects_proven.contains(id) {
            self.open.insert(Question::Object(id.clone()));
        }
    }

    /// A CriticalService may go when the incarnation of its provider that it is about is gone.
    fn itself(&mut self, service: &Service) {
        if service.releases {
            return;
        }
        let id = &service.provider;
        match self.known.objects.get(id).unwrap_or(&Sight::NotSeen) {
            Sight::Present { uid, .. } if !service.means(uid) => self.certain(id),
            // One that was made anew is not ours before it is on record, unless it is the one asked
            // for.
            Sight::Present { uid, .. }
                if service.pin.is_empty()
                    && !service.recorded.is_empty()
                    && service.recorded != *uid =>
            {
                self.certain(id);
            }
            Sight::Present { .. } => self.clauses.push(Clause::Provider(id.clone())),
            Sight::Absent => self.certain(id),
            Sight::Unknown(why) => self.clauses.push(Clause::Unknown(id.to_string(), why.clone())),
            Sight::NotSeen => drop(self.open.insert(Question::Object(id.clone()))),
            Sight::NotReady => drop(self.unread.insert(Question::Object(id.clone()))),
        }
    }
}
