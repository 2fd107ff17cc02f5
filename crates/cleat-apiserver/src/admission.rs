//! Webhooks that have a say in what is written: which concern a request, what they are asked, and
//! what their answers mean.
//!
//! Everything up to the calls is pure. Mutating webhooks are asked one after another (`mutation`),
//! validating ones all at once (`call`).

mod call;
mod configuration;
mod https;
mod matching;
mod mutation;
mod policy;
mod review;
mod tally;
mod transport;
mod validation;

pub use mutation::Mutated;
pub(crate) use mutation::PATCH_NOTES;
pub use policy::{Policies, validate_binding, validate_policy};
pub(crate) use tally::{ANSWERS, Row};
pub use transport::{Handler, NoServices, ServiceResolver};
pub use validation::{validate_configuration, validate_configuration_update};

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, PoisonError, RwLock},
};

use serde_json::{Map, Value};

use crate::{metrics::Durations, status::Status, user::User};
use configuration::Webhook;
use transport::Transport;

#[cfg(test)]
mod nonsense;
#[cfg(test)]
mod tests;

/// When a webhook is asked: while the object may still be changed, or when it is what it will be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    Mutating,
    Validating,
}

/// What is done to the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Create,
    Update,
    Delete,
    Connect,
}

/// A kind in one version, such as `apps/v1, Kind=Deployment`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct GroupVersionKind {
    pub group: String,
    pub version: String,
    pub kind: String,
}

/// A resource in one version, such as `apps/v1, Resource=deployments`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct GroupVersionResource {
    pub group: String,
    pub version: String,
    pub resource: String,
}

/// A write about to happen.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    pub operation: Operation,
    pub kind: GroupVersionKind,
    pub resource: GroupVersionResource,
    pub subresource: &'a str,
    /// Empty when a collection is deleted, object by object.
    pub name: &'a str,
    /// For a namespace itself, its own name.
    pub namespace: &'a str,
    pub user: &'a User,
    /// `None` on delete.
    pub object: Option<&'a Value>,
    /// `None` on create.
    pub old_object: Option<&'a Value>,
    /// `CreateOptions`, `UpdateOptions`, `DeleteOptions`, …
    pub options: Option<&'a Value>,
    pub dry_run: bool,
}

/// What matching must know beyond the request.
pub trait Surroundings {
    /// The labels of a namespace; `None` when there is no such namespace.
    fn namespace_labels(&self, namespace: &str) -> Option<Map<String, Value>>;

    /// The other versions (and groups) in which the same objects are served.
    fn equivalents(
        &self,
        _: &GroupVersionResource,
        _subresource: &str,
    ) -> Vec<(GroupVersionResource, GroupVersionKind)> {
        Vec::new()
    }

    /// The object as that kind; the error is the reason it cannot be.
    fn convert(&self, object: &Value, to: &GroupVersionKind) -> Result<Value, String> {
        let mut object = object.clone();
        if let Some(map) = object.as_object_mut() {
            map.insert("apiVersion".into(), to.api_version().into());
            map.insert("kind".into(), to.kind.clone().into());
        }
        Ok(object)
    }

    /// A namespace; `None` when there is no such namespace.
    fn namespace(&self, _name: &str) -> Option<Value> {
        None
    }

    /// Whether objects of a kind lie in namespaces; `None` when there is no such kind.
    fn is_namespaced(&self, _api_version: &str, _kind: &str) -> Option<bool> {
        None
    }

    /// An object that policies take for their parameters, if there is one. `namespace` is empty for
    /// kinds without.
    fn parameter(
        &self,
        _api_version: &str,
        _kind: &str,
        _namespace: &str,
        _name: &str,
    ) -> Result<Option<Value>, String> {
        Ok(None)
    }

    /// All objects of a kind in a namespace.
    fn parameters(
        &self,
        _api_version: &str,
        _kind: &str,
        _namespace: &str,
    ) -> Result<Vec<Value>, String> {
        Ok(Vec::new())
    }

    /// A match condition that is beyond this module, which knows `object`, `oldObject` and
    /// `request` but no `authorizer`. `request` is the `AdmissionRequest` with both objects.
    fn condition(&self, _expression: &str, _request: &Value) -> Result<bool, String> {
        Err("the expression cannot be compiled".to_owned())
    }
}

/// What the webhooks said.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    pub result: Result<(), Status>,
    /// For `Warning` headers, of refusals too.
    pub warnings: Vec<String>,
    /// For the audit log.
    pub annotations: BTreeMap<String, String>,
}

/// Webhooks by configuration, since they count in the order of its name.
type Configurations = BTreeMap<Box<str>, Vec<Arc<Webhook>>>;

/// The webhooks of one server and the ways to reach them.
#[derive(Default)]
pub struct Admission {
    mutating: RwLock<Arc<Configurations>>,
    validating: RwLock<Arc<Configurations>>,
    transport: Arc<Transport>,
}

impl fmt::Debug for Admission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admission").finish_non_exhaustive()
    }
}

impl Admission {
    /// Finds the services of `clientConfig.service` with `services`.
    pub fn new(services: Arc<dyn ServiceResolver>) -> Self {
        Self { transport: Arc::new(Transport::new(services)), ..Self::default() }
    }

    /// Takes in a new or changed MutatingWebhookConfiguration or ValidatingWebhookConfiguration.
    pub fn put(&self, phase: Phase, configuration: &Value) {
        let Some(name) = configuration.pointer("/metadata/name").and_then(Value::as_str) else {
            return;
        };
        let hooks = configuration::webhooks(configuration);
        let mut all = self.configured(phase).write().unwrap_or_else(PoisonError::into_inner);
        Arc::make_mut(&mut all).insert(name.into(), hooks);
    }

    pub fn remove(&self, phase: Phase, name: &str) {
        let mut all = self.configured(phase).write().unwrap_or_else(PoisonError::into_inner);
        Arc::make_mut(&mut all).remove(name);
    }

    fn configured(&self, phase: Phase) -> &RwLock<Arc<Configurations>> {
        match phase {
            Phase::Mutating => &self.mutating,
            Phase::Validating => &self.validating,
        }
    }

    /// The webhooks that may be asked about objects of a kind, in the order in which they count.
    fn hooks(&self, phase: Phase, kind: &GroupVersionKind) -> Vec<Arc<Webhook>> {
        let all = self.configured(phase).read().unwrap_or_else(PoisonError::into_inner);
        if all.is_empty() || is_exempt(kind) {
            return Vec::new();
        }
        all.values().flatten().cloned().collect()
    }

    /// Answers in this process what would be sent to URLs that begin with `prefix`.
    pub fn serve_url(&self, prefix: &str, handler: Handler) {
        self.transport.serve_url(prefix, handler);
    }

    /// Answers in this process what would be sent to a service.
    pub fn serve_service(&self, namespace: &str, name: &str, handler: Handler) {
        self.transport.serve_service(namespace, name, handler);
    }

    /// How long webhooks took to answer.
    pub(crate) fn answers(&self) -> BTreeMap<Row, Durations<{ ANSWERS.len() }>> {
        self.transport.tally.rows()
    }

    /// Whether any mutating webhook may be asked about objects of a kind.
    pub fn mutates(&self, kind: &GroupVersionKind) -> bool {
        !self.hooks(Phase::Mutating, kind).is_empty()
    }

    /// Lets every mutating webhook that is concerned change the object, one after another.
    /// `reshape` brings what a patch left into the shape of its kind, with defaults.
    pub async fn mutate(
        &self,
        request: &Request<'_>,
        around: &(dyn Surroundings + Sync),
        reshape: &(dyn Fn(Value) -> Result<Value, Status> + Sync),
    ) -> Mutated {
        let hooks = self.hooks(Phase::Mutating, &request.kind);
        mutation::run(&self.transport, &hooks, request, around, reshape).await
    }

    /// Asks every validating webhook that is concerned, all at once.
    pub async fn validate(
        &self,
        request: &Request<'_>,
        around: &(dyn Surroundings + Sync),
    ) -> Verdict {
        let mut calls = Vec::new();
        for hook in self.hooks(Phase::Validating, &request.kind) {
            match matching::invocation(&hook, request, around) {
                Ok(None) => {}
                Ok(Some(invocation)) => calls.push((hook, invocation)),
                Err(status) => return Verdict::refused(status),
            }
        }
        call::all(&self.transport, request, calls).await
    }
}

/// Webhooks have no say in what configures admission, lest a bad one could never be removed.
fn is_exempt(kind: &GroupVersionKind) -> bool {
    kind.group == "admissionregistration.k8s.io"
        && [
            "ValidatingWebhookConfiguration",
            "MutatingWebhookConfiguration",
            "ValidatingAdmissionPolicy",
            "ValidatingAdmissionPolicyBinding",
            "MutatingAdmissionPolicy",
            "MutatingAdmissionPolicyBinding",
        ]
        .contains(&kind.kind.as_str())
}

impl Verdict {
    fn allowed() -> Self {
        Self { result: Ok(()), warnings: Vec::new(), annotations: BTreeMap::new() }
    }

    fn refused(status: Status) -> Self {
        Self { result: Err(status), ..Self::allowed() }
    }
}

impl Operation {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

impl GroupVersionKind {
    pub fn api_version(&self) -> String {
        match self.group.as_str() {
            "" => self.version.clone(),
            group => format!("{group}/{}", self.version),
        }
    }
}

impl fmt::Display for GroupVersionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}, Kind={}", self.group, self.version, self.kind)
    }
}
