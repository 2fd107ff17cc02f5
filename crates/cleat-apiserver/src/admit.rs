//! What admission needs to know about this server, and the asking itself.

use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::sync::Arc;

use crate::admission::{
    Admission, GroupVersionKind, GroupVersionResource, Phase, Request, Surroundings, Verdict,
};
use crate::follow::Digest;
use crate::object;
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

    /// Asks those who may only refuse.
    pub(crate) async fn validate(&self, request: &Request<'_>) -> Verdict {
        self.admission().validate(request, self).await
    }
}

impl Surroundings for Inner {
    fn namespace_labels(&self, namespace: &str) -> Option<Map<String, Value>> {
        let found = self.objects.get(&self.namespaces, "v1", "", namespace).ok().flatten()?;
        Some(object::labels(&found.value).cloned().unwrap_or_default())
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

    fn condition(&self, expression: &str, request: &Value) -> Result<bool, String> {
        let (mut asked, null) = (request.clone(), Value::Null);
        let members = asked.as_object_mut();
        let (object, old) =
            members.map(|map| (map.remove("object"), map.remove("oldObject"))).unwrap_or_default();
        let variables = [
            ("object", object.as_ref().unwrap_or(&null)),
            ("oldObject", old.as_ref().unwrap_or(&null)),
            ("request", &asked),
        ];
        cel::matches(&cel::condition(expression, &VARIABLES)?, &variables)
    }
}
