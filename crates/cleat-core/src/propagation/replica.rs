//! A root's copy in the namespace of one cluster.
//!
//! Of what is there only digests are kept: a hub may hold a hundred thousand of them.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use cleat_api::configurationpolicy::ENCRYPTION_IV;
use cleat_api::policy::{GROUP, name};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

use super::content::{self, Content};
use super::replica_name;
use super::root::{Root, target};
use crate::digest::digest;
use crate::id::Target;
use crate::write::{Action, Propagation, Side, Write};

#[derive(Clone, Debug, PartialEq)]
pub struct Replica {
    /// Its namespace, which is the cluster's name.
    pub cluster: String,
    /// `<namespace>.<name>` of its root.
    pub name: String,
    pub uid: String,
    pub resource_version: String,
    pub deleting: bool,
    pub deleting_since: Option<Timestamp>,
    pub created: Option<Timestamp>,
    finalizers: Vec<String>,
    owners: Option<Value>,
    /// Of labels and annotations, without the vector.
    metadata: String,
    /// Of the objects of its templates.
    definitions: String,
    /// Of the spec without them.
    rest: String,
    /// The base64 of the vector its values are encrypted with.
    pub iv: Option<String>,
    /// How its cluster says it stands.
    pub compliant: Option<String>,
    /// What its cluster says of a template that is being removed and does not go.
    pub said: Option<String>,
}

/// How much is kept of what a cluster says.
const LONGEST_SAID: usize = 300;

impl Replica {
    /// `data`: the object without its metadata.
    pub fn read(metadata: &ObjectMeta, data: &Value) -> Self {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let mut annotations = metadata.annotations.clone().unwrap_or_default();
        let iv = annotations.remove(ENCRYPTION_IV);
        let spec = data.get("spec").cloned().unwrap_or_default();
        let compliant = data.pointer("/status/compliant").and_then(Value::as_str);
        let deleting = metadata.deletion_timestamp.is_some();
        let owners = metadata.owner_references.as_ref().filter(|owners| !owners.is_empty());
        Self {
            cluster: text(&metadata.namespace),
            name: text(&metadata.name),
            uid: text(&metadata.uid),
            resource_version: text(&metadata.resource_version),
            deleting,
            deleting_since: metadata.deletion_timestamp.as_ref().map(|time| time.0),
            created: metadata.creation_timestamp.as_ref().map(|time| time.0),
            finalizers: metadata.finalizers.clone().unwrap_or_default(),
            owners: owners.and_then(|owners| serde_json::to_value(owners).ok()),
            metadata: marks(&metadata.labels.clone().unwrap_or_default(), &annotations),
            definitions: content::definitions(&spec).1,
            rest: digest(&content::rest(&spec)),
            iv,
            compliant: compliant.filter(|text| !text.is_empty()).map(ToString::to_string),
            said: said(data),
        }
    }

    /// Whether its templates have this digest.
    pub fn has_definitions(&self, digest: &str) -> bool {
        self.definitions == digest
    }

    pub fn target(&self) -> Target {
        target(&self.cluster, &self.name)
    }

    pub(super) fn delete(&self) -> Action {
        let write = Write::Delete {
            uid: self.uid.clone(),
            resource_version: Some(self.resource_version.clone()),
            propagation: Propagation::Background,
        };
        Action { side: Side::Hub, target: self.target(), write }
    }
}

/// The newest message of a template that hangs.
fn said(data: &Value) -> Option<String> {
    let details = data.pointer("/status/details")?.as_array()?;
    let mut newest = details.iter().filter_map(|one| one.pointer("/history/0/message")?.as_str());
    let hangs = newest.find(|text| text.starts_with("Terminating"))?;
    Some(hangs.chars().take(LONGEST_SAID).collect())
}

fn marks(labels: &BTreeMap<String, String>, annotations: &BTreeMap<String, String>) -> String {
    digest(&json!({ "labels": labels, "annotations": annotations }))
}

/// What a replica is to be.
pub(super) struct Wanted<'a> {
    root: &'a Root,
    cluster: &'a str,
    content: Content<'a>,
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
    iv: Option<String>,
}

impl<'a> Wanted<'a> {
    pub(super) fn new(
        root: &'a Root,
        cluster: &'a str,
        content: Content<'a>,
        iv: Option<&str>,
    ) -> Self {
        let all = root.copies_metadata();
        let ours = |key: &str| key.split_once('/').is_some_and(|(group, _)| group == GROUP);
        let copied = |from: &BTreeMap<String, String>| {
            let some = from.iter().filter(|(key, _)| all || ours(key));
            some.map(|(key, value)| (key.clone(), value.clone())).collect::<BTreeMap<_, _>>()
        };
        let mut labels = copied(&root.labels);
        let key = (root.namespace.clone(), root.name.clone());
        let more = [
            (name::ROOT_POLICY, replica_name(&key)),
            (name::CLUSTER_NAME, cluster.to_string()),
            (name::CLUSTER_NAMESPACE, cluster.to_string()),
        ];
        labels.extend(more.map(|(key, value)| (key.to_string(), value)));
        let mut annotations = copied(&root.annotations);
        annotations.remove(name::TRIGGER_UPDATE);
        annotations.remove(ENCRYPTION_IV);
        annotations.insert(name::ARGO_COMPARE_OPTIONS.to_string(), "IgnoreExtraneous".to_string());
        let iv = iv.map(ToString::to_string);
        Self { root, cluster, content, labels, annotations, iv }
    }

    pub(super) fn differs(&self, replica: &Replica) -> bool {
        replica.definitions != self.content.digest
            || replica.rest != self.content.rest.1
            || replica.iv != self.iv
            || replica.metadata != marks(&self.labels, &self.annotations)
    }

    /// The whole of it. None if its content is not at hand.
    pub(super) fn object(&self) -> Option<Value> {
        let mut annotations = self.annotations.clone();
        if let Some(iv) = &self.iv {
            annotations.insert(ENCRYPTION_IV.to_string(), iv.clone());
        }
        let key = (self.root.namespace.clone(), self.root.name.clone());
        Some(json!({
            "apiVersion": alloc::format!("{GROUP}/v1"), "kind": "Policy",
            "metadata": {
                "name": replica_name(&key), "namespace": self.cluster,
                "labels": self.labels, "annotations": annotations,
            },
            "spec": self.content.spec()?,
        }))
    }

    /// None if its content is not at hand.
    pub(super) fn create(&self) -> Option<Action> {
        let key = (self.root.namespace.clone(), self.root.name.clone());
        let target = target(self.cluster, &replica_name(&key));
        Some(Action { side: Side::Hub, target, write: Write::Create(self.object()?) })
    }

    pub(super) fn replace(&self, replica: &Replica) -> Option<Action> {
        let mut object = self.object()?;
        let metadata = object.get_mut("metadata").and_then(Value::as_object_mut)?;
        metadata.insert("uid".to_string(), replica.uid.clone().into());
        metadata.insert("resourceVersion".to_string(), replica.resource_version.clone().into());
        // Others' holds on it are theirs.
        if !replica.finalizers.is_empty() {
            metadata.insert("finalizers".to_string(), json!(replica.finalizers));
        }
        if let Some(owners) = &replica.owners {
            metadata.insert("ownerReferences".to_string(), owners.clone());
        }
        let target = target(self.cluster, &replica.name);
        Some(Action { side: Side::Hub, target, write: Write::Replace(object) })
    }
}
