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
    /// Of a namespace, that it is going must not be a cache's word: another of its name may be there
    /// by now.
    pub objects: BTreeMap<Id, Sight>,
    pub tallies: BTreeMap<Criterion, Tally>,
}

/// What is known of one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sight {
    /// No cache has it, or none can tell. Proves nothing.
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
    /// No cache has any, or none can tell. Proves nothing.
    NotSeen,
    /// They were looked for after the request came, and there are none.
    None,
    Some {
        count: usize,
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
            // A subresource cannot delete anything but by deleting something else.
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
        return nobody_concerned(request, known);
    }
    if let Some(warning) = too_late(request, known, &concerned) {
        return Decision::Allow { warnings: alloc::vec![warning] };
    }
    let mut holds = Vec::new();
    let mut open = BTreeSet::new();
    let mut warnings = Vec::new();
    for (service, concern) in concerned {
        let mut weigh = Weigh { known, clauses: Vec::new(), open: &mut open };
        match concern {
            Concern::Provider => weigh.criteria(service),
            Concern::Namespace => weigh.namespace(service),
            Concern::Itself => weigh.itself(service),
            Concern::Definition => weigh.clauses.push(Clause::Remains(service.id())),
            Concern::Latched(criterion) => {
                weigh.clauses.push(Clause::Latched(criterion.clone(), service.provider.clone()))
            }
        }
        let clauses = weigh.clauses;
        if clauses.is_empty() {
            warnings.push(passes(request, service, concern));
        } else {
            holds.push(Hold { service: service.name.clone(), clauses });
        }
    }
    if !holds.is_empty() {
        return Decision::Deny(Denial { request: request.clone(), holds });
    }
    if !open.is_empty() {
        return Decision::Prove(open);
    }
    Decision::Allow { warnings }
}

/// That nothing protects an object is worth a look of its own: we are asked only about objects that
/// were protected a moment ago.
fn nobody_concerned(request: &Request, known: &Knowledge) -> Decision {
    if known.services_proven || request.operation != Operation::Delete {
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
) -> Option<String> {
    if request.operation != Operation::Delete || request.id.namespace.is_empty() {
        return None;
    }
    let namespace = known.objects.get(&namespace_id(&request.id.namespace));
    if !matches!(namespace, Some(Sight::Present { terminating: true, .. })) {
        return None;
    }
    let (service, _) = concerned.first()?;
    Some(format!(
        "{} is protected by CriticalService {}, but its namespace is already being deleted",
        request.id, service.name
    ))
}

/// What is said when a protected thing goes. It is also how a dry run shows that we were asked.
fn passes(request: &Request, service: &Service, concern: Concern<'_>) -> String {
    let name = &service.name;
    match concern {
        Concern::Provider if request.operation == Operation::Update => {
            format!("{SEEN} {name}: nothing needs its provider now")
        }
        Concern::Provider if request.orphans => format!(
            "{SEEN} {name}: nothing needs its provider now; what the provider owns stays behind, \
             as propagationPolicy Orphan asks"
        ),
        Concern::Provider | Concern::Namespace => {
            format!(
                "{SEEN} {name}: nothing needs its provider now, and no new consumers are let in"
            )
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
}

impl Weigh<'_> {
    fn criteria(&mut self, service: &Service) {
        for criterion in &service.criteria {
            self.criterion(criterion);
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
            },
            Criterion::Finalizer { .. } | Criterion::Any { .. } => {
                match self.known.tallies.get(criterion).unwrap_or(&Tally::NotSeen) {
                    Tally::None => {}
                    Tally::Some { count, samples } => self.clauses.push(Clause::Remain {
                        criterion: criterion.clone(),
                        count: *count,
                        samples: samples.clone(),
                    }),
                    Tally::Unknown(why) => self.clauses.push(unknown(why)),
                    Tally::NotSeen => drop(self.open.insert(Question::Tally(criterion.clone()))),
                }
            }
        }
    }

    /// A namespace may go if the provider in it may.
    fn namespace(&mut self, service: &Service) {
        let id = &service.provider;
        match self.known.objects.get(id).unwrap_or(&Sight::NotSeen) {
            Sight::Present { uid, terminating } => {
                if service.means(uid) && !terminating {
                    self.criteria(service);
                }
            }
            Sight::Absent => {}
            Sight::Unknown(why) => self.clauses.push(Clause::Unknown(id.to_string(), why.clone())),
            Sight::NotSeen => drop(self.open.insert(Question::Object(id.clone()))),
        }
    }

    /// A CriticalService may go when the incarnation of its provider that it is about is gone.
    fn itself(&mut self, service: &Service) {
        // What it says of itself may have changed since it was last heard of.
        let believe = |open: &mut BTreeSet<Question>| {
            if !self.known.services_proven {
                open.insert(Question::Services);
            }
        };
        if service.releases {
            return believe(self.open);
        }
        let id = &service.provider;
        match self.known.objects.get(id).unwrap_or(&Sight::NotSeen) {
            Sight::Present { uid, .. } if !service.means(uid) => {}
            // One that was made anew is not ours before it is on record.
            Sight::Present { uid, .. }
                if !service.recorded.is_empty() && service.recorded != *uid =>
            {
                believe(self.open);
            }
            Sight::Present { .. } => self.clauses.push(Clause::Provider(id.clone())),
            Sight::Absent => {}
            Sight::Unknown(why) => self.clauses.push(Clause::Unknown(id.to_string(), why.clone())),
            Sight::NotSeen => drop(self.open.insert(Question::Object(id.clone()))),
        }
    }
}
