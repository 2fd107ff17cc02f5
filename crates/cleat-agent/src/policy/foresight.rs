//! What policies are obviously about, before the first of them is looked at: so that everything is
//! listed once, rather than whenever another policy turns up.
//!
//! It decides nothing. What a pass then finds to matter takes the place of this.

use cleat_api::configurationpolicy::ConfigurationPolicy;
use cleat_core::id::Target;
use cleat_core::policy::observed::Served;
use cleat_runtime::kinds::Mapping;
use serde_json::Value;

use super::subjects::Needs;
use super::{Context, templates};

impl Context {
    /// Cares about every object that some policy names outright, about all of them at once: what is
    /// listed first is listed for all.
    pub(super) async fn foresee(&self) {
        let mut all = Vec::new();
        for object in self.policies.iter().flat_map(|policies| policies.all()) {
            let Ok(policy) = object.parse::<ConfigurationPolicy>() else { continue };
            let mut needs = Needs::default();
            for template in policy.spec.object_templates.iter().flatten() {
                needs.targets.extend(self.named(&template.object_definition).await);
            }
            let key = (object.namespace.to_string(), object.name.to_string());
            if !needs.targets.is_empty() {
                all.push((key, needs));
            }
        }
        self.care_first(&all);
    }

    /// The object, if the definition leaves no doubt which it is.
    async fn named(&self, definition: &Value) -> Option<Target> {
        let field = |pointer: &str| {
            let text = definition.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            (!text.contains("{{")).then_some(text)
        };
        let (namespace, name) = (field("/metadata/namespace")?, field("/metadata/name")?);
        let kind = templates::kind_of(definition)?;
        let Mapping::Mapped(mapped) = self.kinds.map(&kind.api_version, &kind.kind).await else {
            return None;
        };
        let served = Served {
            group: mapped.group,
            version: mapped.version,
            resource: mapped.resource,
            namespaced: mapped.namespaced,
        };
        if name.is_empty() || served.namespaced == namespace.is_empty() {
            return None;
        }
        Some(served.target(namespace, name))
    }
}
