//! What admission needs to know about this server, and the asking itself.

use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::sync::Arc;

use crate::admission::{
    Admission, GroupVersionKind, GroupVersionResource, Phase, Policies, Request, Surroundings,
    Verdict,
};
use crate::follow::Digest;
use crate::object;
use crate::resource::ResourceType;
use crate::schema::cel;
use crate::server::Inner;

/// What a match condition may speak of.
const VARIABLES: [&str; 3] = ["object", "oldObject", "request"];

/// What is wrong with a match condition, if anything.
pub(crate) fn condition_error(expression: &str) -> Option<String> {
    cel::condition(expression, &VARIABLES).err()
}

/// Keeps [`Admission`] told of the stored webhook configurations.
pub(crate) struct Configurations {
    admission: Arc<Admission>,
    names: BTreeSet<(Phase, Box<str>)>,
}

impl Configurations {
    pub(crate) const BUCKETS: [&'static str; 2] = [
        "admissionregistration.k8s.io/mutatingwebhookconfigurations",
        "admissionregistration.k8s.io/validatingwebhookconfigurations",
    ];

    pub(crate) fn of(admission: Arc<Admission>) -> Self {
        Self { admission, names: BTreeSet::new() }
    }

    pub(crate) fn admission(&self) -> Arc<Admission> {
        Arc::clone(&self.admission)
    }
}

impl Digest for Configurations {
    fn clear(&mut self) {
        for (phase, name) in std::mem::take(&mut self.names) {
            self.admission.remove(phase, &name);
        }
    }

    fn take(&mut self, bucket: &str, key: &str, value: Option<&[u8]>) {
        let phase = match bucket.ends_with("/mutatingwebhookconfigurations") {
            true => Phase::Mutating,
            false => Phase::Validating,
        };
        match value.and_then(|bytes| serde_json::from_slice::<Value>(bytes).ok()) {
            Some(configuration) => {
                self.admission.put(phase, &configuration);
                self.names.insert((phase, key.into()));
            }
            None => self.admission.remove(phase, key),
        }
    }
}

impl Inner {
    /// The webhooks, as they are configured at this moment.
    pub(crate) fn admission(&self) -> Arc<Admission> {
        self.webhooks.read(self.objects.store(), Configurations::admission)
    }

    /// Asks those who may only refuse: policies, then webhooks.
    pub(crate) async fn validate(&self, request: &Request<'_>) -> Verdict {
        let policies = self.policies.read(self.objects.store(), PolicyDigest::policies);
        let mut verdict = policies.judge(request, self);
        if verdict.result.is_err() {
            return verdict;
        }
        let Verdict { result, warnings, annotations } =
            self.admission().validate(request, self).await;
        verdict.result = result;
        verdict.warnings.extend(warnings);
        verdict.annotations.extend(annotations);
        verdict
    }

    /// The kind of object that policies take for parameters.
    fn parameter_kind(&self, api_version: &str, kind: &str) -> Option<(Arc<ResourceType>, String)> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let types = self.types();
        let found = types.all().iter().find(|ty| {
            *ty.group == *group
                && *ty.kind == *kind
                && ty.version(version).is_some_and(|version| version.served)
        });
        Some((Arc::clone(found?), version.to_owned()))
    }
}

/// Policies and their bindings, as they are stored.
#[derive(Default)]
pub(crate) struct PolicyDigest(Arc<Policies>);

impl PolicyDigest {
    const POLICIES: &'static str = "admissionregistration.k8s.io/validatingadmissionpolicies";
    pub(crate) const BUCKETS: [&'static str; 2] =
        [Self::POLICIES, "admissionregistration.k8s.io/validatingadmissionpolicybindings"];

    fn policies(&self) -> Arc<Policies> {
        Arc::clone(&self.0)
    }
}

impl Digest for PolicyDigest {
    fn clear(&mut self) {
        self.0 = Arc::default();
    }

    fn take(&mut self, bucket: &str, key: &str, value: Option<&[u8]>) {
        // A judgement under way keeps what it began with.
        let policies = Arc::make_mut(&mut self.0);
        let object = value.and_then(|bytes| serde_json::from_slice::<Value>(bytes).ok());
        match (bucket == Self::POLICIES, object) {
            (true, Some(policy)) => policies.put_policy(&policy),
            (true, None) => policies.remove_policy(key),
            (false, Some(binding)) => policies.put_binding(&binding),
            (false, None) => policies.remove_binding(key),
        }
    }
}

impl Surroundings for Inner {
    fn namespace_labels(&self, namespace: &str) -> Option<Map<String, Value>> {
        let found = self.objects.get(&self.namespaces, "v1", "", namespace).ok().flatten()?;
        Some(object::labels(&found.value).cloned().unwrap_or_default())
    }

    fn namespace(&self, name: &str) -> Option<Value> {
        let found = self.objects.get(&self.namespaces, "v1", "", name).ok().flatten()?;
        Some(found.value)
    }

    fn is_namespaced(&self, api_version: &str, kind: &str) -> Option<bool> {
        self.parameter_kind(api_version, kind).map(|(ty, _)| ty.namespaced)
    }

    fn parameter(
        &self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Value>, String> {
        let Some((ty, version)) = self.parameter_kind(api_version, kind) else { return Ok(None) };
        let found = self.objects.get(&ty, &version, namespace, name);
        found.map(|found| found.map(|stored| stored.value)).map_err(|status| status.message)
    }

    fn parameters(
        &self,
        api_version: &str,
        kind: &str,
        namespace: &str,
    ) -> Result<Vec<Value>, String> {
        let Some((ty, version)) = self.parameter_kind(api_version, kind) else {
            return Ok(Vec::new());
        };
        self.objects.all(&ty, &version, namespace).map_err(|status| status.message)
    }

    fn equivalents(
        &self,
        resource: &GroupVersionResource,
        _subresource: &str,
    ) -> Vec<(GroupVersionResource, GroupVersionKind)> {
        let types = self.types();
        let Some(ty) = types.get(&resource.group, &resource.resource) else { return Vec::new() };
        let others = ty
            .versions
            .iter()
            .filter(|version| version.served && *version.name != *resource.version);
        others
            .map(|version| {
                let other =
                    GroupVersionResource { version: version.name.to_string(), ..resource.clone() };
                let kind = GroupVersionKind {
                    group: resource.group.clone(),
                    version: version.name.to_string(),
                    kind: ty.kind.to_string(),
                };
                (other, kind)
            })
            .collect()
    }

    fn condition(&self, expression: &str, _request: &Value) -> Result<bool, String> {
        // It did not compile when it was configured, and does not now; this says why.
        match cel::condition(expression, &VARIABLES) {
            Ok(_) => Err("the expression cannot be compiled".to_owned()),
            Err(why) => Err(why),
        }
    }
}
