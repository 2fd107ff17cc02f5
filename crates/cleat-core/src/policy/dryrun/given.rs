//! Objects that stand for a cluster.

use alloc::borrow::ToOwned as _;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use serde_json::Value;

use super::World;
use crate::id::{Id, Target};
use crate::policy::desired::{field, metadata};
use crate::policy::observed::{
    Kind, KindName, ListOf, Namespace, Present, Seen, Served, TrialAnswer,
};
use crate::policy::reader::Question;
use crate::selector;

/// Objects and kinds, and nothing else: a kind that is not among them is not served, and an object
/// that is not among them is not there. Of two that are the same, the first counts.
pub struct Given<'a> {
    pub objects: &'a [Value],
    pub kinds: &'a BTreeMap<KindName, Served>,
    /// Namespaces that are there, although there may be no object that says so.
    pub namespaces: &'a [String],
}

impl Given<'_> {
    fn id(&self, object: &Value) -> Option<Id> {
        let name = KindName {
            api_version: field(object, "apiVersion").to_owned(),
            kind: field(object, "kind").to_owned(),
        };
        let served = self.kinds.get(&name)?;
        let namespace = match (served.namespaced, metadata(object, "namespace")) {
            (false, _) => "",
            (true, "") => "default",
            (true, namespace) => namespace,
        };
        Some(served.target(namespace, metadata(object, "name")).id)
    }
}

impl World for Given<'_> {
    fn kind(&self, name: &KindName) -> Kind {
        self.kinds.get(name).map_or(Kind::Absent, |served| Kind::Served(served.clone()))
    }

    fn object(&self, target: &Target) -> Seen {
        let found = self.objects.iter().find(|object| self.id(object).as_ref() == Some(&target.id));
        found.map_or(Seen::Absent, |object| {
            Seen::Present(Present { object: Arc::new(object.clone()), writers: Vec::new() })
        })
    }

    /// Those among the objects, those that objects are in, and those that are spelled out.
    fn namespaces(&self) -> Result<Vec<Namespace>, String> {
        let mut all: BTreeMap<String, Namespace> = BTreeMap::new();
        for object in self.objects {
            if field(object, "kind") == "Namespace" && field(object, "apiVersion") == "v1" {
                let name = metadata(object, "name");
                let mut namespace = bare(name);
                namespace.labels.extend(labels(object));
                all.entry(name.to_owned()).or_insert(namespace);
            }
        }
        let inside = self.objects.iter().map(|object| metadata(object, "namespace"));
        let said = self.namespaces.iter().map(String::as_str);
        for name in inside.chain(said).filter(|name| !name.is_empty()) {
            all.entry(name.to_owned()).or_insert_with(|| bare(name));
        }
        Ok(all.into_values().collect())
    }

    fn list(&self, of: &ListOf) -> Result<Vec<Arc<Value>>, String> {
        let selector = selector::parsed(&of.labels)?;
        let mut found: BTreeMap<Id, Arc<Value>> = BTreeMap::new();
        for object in self.objects {
            let Some(id) = self.id(object) else { continue };
            let is_meant = id.group == of.kind.group
                && id.resource == of.kind.resource
                && (of.namespace.is_empty() || id.namespace == of.namespace);
            if is_meant && selector::selects(&selector, &labels(object)) {
                found.entry(id).or_insert_with(|| Arc::new(object.clone()));
            }
        }
        Ok(found.into_values().collect())
    }

    /// Nothing defaults it, and nothing refuses it.
    fn trial(&self, question: &Question) -> TrialAnswer {
        TrialAnswer::Accepted(Arc::clone(&question.object))
    }
}

fn bare(name: &str) -> Namespace {
    let own = ("kubernetes.io/metadata.name".to_owned(), name.to_owned());
    Namespace { name: name.to_owned(), labels: [own].into(), terminating: false }
}

fn labels(object: &Value) -> BTreeMap<String, String> {
    let all = object.get("metadata").and_then(|metadata| metadata.get("labels"));
    let all = all.and_then(Value::as_object).into_iter().flatten();
    all.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}
