//! Lookups of templates, answered from what the policy is tried on.

use cleat_core::policy::dryrun::World;
use cleat_core::policy::observed::{Kind, KindName, ListOf, Seen, Served};
use cleat_template::{LookupError, Lookups, Query, Scope};
use serde_json::Value;

pub(super) struct From<'a>(pub(super) &'a dyn World);

impl From<'_> {
    fn served(&self, api_version: &str, kind: &str) -> Result<Served, LookupError> {
        let name = KindName { api_version: api_version.to_owned(), kind: kind.to_owned() };
        match self.0.kind(&name) {
            Kind::Served(served) => Ok(served),
            Kind::Absent => Err(LookupError::MissingApi),
            Kind::Unknown(why) => Err(LookupError::Failed(why)),
        }
    }
}

impl Lookups for From<'_> {
    fn get(&self, query: &Query) -> Result<Value, LookupError> {
        let served = self.served(&query.api_version, &query.kind)?;
        let namespace = match (served.namespaced, query.namespace.as_str()) {
            (false, _) => "",
            (true, "") => {
                let kind = &query.kind;
                let message = format!("the namespace of the {kind} must be specified");
                return Err(LookupError::Refused(message));
            }
            (true, namespace) => namespace,
        };
        match self.0.object(&served.target(namespace, &query.name)) {
            Seen::Present(present) => Ok((*present.object).clone()),
            Seen::Absent => {
                let kind = match served.group.as_str() {
                    "" => served.resource,
                    group => format!("{}.{group}", served.resource),
                };
                Err(LookupError::NotFound(format!("{kind} \"{}\" not found", query.name)))
            }
            Seen::Unknown(why) => Err(LookupError::Failed(why)),
            Seen::Unwatchable => {
                Err(LookupError::Failed("watch not supported on this resource".to_owned()))
            }
        }
    }

    fn list(&self, query: &Query) -> Result<Vec<Value>, LookupError> {
        let kind = self.served(&query.api_version, &query.kind)?;
        let labels = query.selector.clone();
        cleat_core::selector::parsed(&labels).map_err(LookupError::Refused)?;
        let namespace = if kind.namespaced { query.namespace.clone() } else { String::new() };
        let found = self.0.list(&ListOf { kind, namespace, labels });
        let found = found.map_err(LookupError::Failed)?;
        let mut found: Vec<Value> = found.iter().map(|object| (**object).clone()).collect();
        found.sort_by(|one, other| place(one).cmp(&place(other)));
        Ok(found)
    }

    fn scope(&self, api_version: &str, kind: &str) -> Result<Scope, LookupError> {
        let served = self.served(api_version, kind)?;
        Ok(if served.namespaced { Scope::Namespaced } else { Scope::Cluster })
    }
}

fn place(object: &Value) -> (&str, &str) {
    let field = |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    (field("/metadata/namespace"), field("/metadata/name"))
}
