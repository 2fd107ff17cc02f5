//! A request under review, as far as protection is concerned. Read from an AdmissionReview of
//! `admission.k8s.io/v1`; nothing is believed that is not in it.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;

use serde_json::Value;

use crate::id::Id;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Operation {
    #[default]
    Delete,
    Create,
    Update,
}

impl Operation {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Delete => "DELETE",
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
        }
    }
}

/// What is to be done to which object, by whom.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    pub operation: Operation,
    /// Empty for the object itself.
    pub subresource: String,
    pub id: Id,
    pub uid: String,
    pub user: String,
    pub dry_run: bool,
    /// One of a collection that is deleted.
    pub collection: bool,
    pub orphans: bool,
    /// It is being deleted already.
    pub terminating: bool,
    /// `spec.replicas` before and after, where a change of it was asked for.
    pub replicas: Option<(i64, i64)>,
    /// Finalizers that the object did not have before.
    pub new_finalizers: Vec<String>,
}

const EVICTION: &str = "eviction";

impl Request {
    /// Whether it deletes a pod although it is not called so.
    pub fn evicts(&self) -> bool {
        self.operation == Operation::Create
            && self.subresource == EVICTION
            && self.id.group.is_empty()
            && self.id.resource == "pods"
    }

    /// `None`: not a request that could be understood. Such a one must not pass.
    pub fn read(request: &Value) -> Option<Self> {
        let text = |value: &Value, field: &str| -> String {
            value.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let operation = match request.get("operation")?.as_str()? {
            "DELETE" => Operation::Delete,
            "CREATE" => Operation::Create,
            "UPDATE" => Operation::Update,
            _ => return None,
        };
        let there = |field: &str| request.get(field).filter(|object| object.is_object());
        // The name in the request is empty for one of a collection; the object always has its own.
        let (object, old) = (there("object"), there("oldObject"));
        let shown = match operation {
            Operation::Delete => old?,
            Operation::Create | Operation::Update => object?,
        };
        let metadata = shown.get("metadata")?;
        let resource = request.get("resource")?;
        let asked_name = text(request, "name");
        let own_name = text(metadata, "name");
        let own_namespace = text(metadata, "namespace");
        let id = Id {
            group: text(resource, "group"),
            resource: text(resource, "resource"),
            namespace: match own_namespace.is_empty() {
                true if text(request, "subResource") == EVICTION => text(request, "namespace"),
                _ => own_namespace,
            },
            name: if own_name.is_empty() { asked_name.clone() } else { own_name },
        };
        if id.resource.is_empty() || (id.name.is_empty() && operation != Operation::Create) {
            return None;
        }
        let options = request.get("options").unwrap_or(&Value::Null);
        let user = request.get("userInfo").unwrap_or(&Value::Null);
        let finalizers = |object: Option<&Value>| -> Vec<String> {
            let list = object.and_then(|object| object.pointer("/metadata/finalizers"));
            let list = list.and_then(Value::as_array).into_iter().flatten();
            list.filter_map(Value::as_str).map(ToOwned::to_owned).collect()
        };
        let before = finalizers(old);
        let mut new_finalizers = match operation {
            Operation::Delete => Vec::new(),
            Operation::Create | Operation::Update => finalizers(object),
        };
        new_finalizers.retain(|finalizer| !before.contains(finalizer));
        Some(Self {
            operation,
            subresource: text(request, "subResource"),
            id,
            uid: match text(request, "subResource") == EVICTION {
                // What is shown is the eviction; which pod is meant it may say.
                true => shown
                    .pointer("/deleteOptions/preconditions/uid")
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    .to_owned(),
                false => text(metadata, "uid"),
            },
            user: text(user, "username"),
            dry_run: request.get("dryRun").and_then(Value::as_bool).unwrap_or_default(),
            collection: operation == Operation::Delete && asked_name.is_empty(),
            orphans: options.get("propagationPolicy").and_then(Value::as_str) == Some("Orphan")
                || options.get("orphanDependents").and_then(Value::as_bool) == Some(true),
            terminating: metadata.get("deletionTimestamp").is_some_and(Value::is_string),
            replicas: old.zip(object).and_then(|(old, new)| {
                // A scale that asks for none leaves the field out.
                let of = |object: &Value| {
                    object.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or_default()
                };
                let (old, new) = (of(old), of(new));
                (old != new).then_some((old, new))
            }),
            new_finalizers,
        })
    }
}
