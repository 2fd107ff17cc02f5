//! Servers that are a few objects, and what they do not tell.

use std::borrow::ToOwned;
use std::boxed::Box;
use std::collections::BTreeMap;
use std::string::{String, ToString as _};
use std::vec::Vec;

use serde_json::Value;

use crate::explain::object::{list, text};
use crate::explain::{Answer, Contents, Kind, Listed, Place, Question, Unread};
use crate::id::Id;
use crate::write::Refusal;

/// `apiVersion`'s group and kind, resource, and whether namespaces hold it.
const KINDS: &[(&str, &str, &str, bool)] = &[
    ("", "Namespace", "namespaces", false),
    ("", "Node", "nodes", false),
    ("", "Pod", "pods", true),
    ("", "ConfigMap", "configmaps", true),
    ("", "Service", "services", true),
    ("", "PersistentVolumeClaim", "persistentvolumeclaims", true),
    ("apps", "Deployment", "deployments", true),
    ("apps", "ReplicaSet", "replicasets", true),
    ("shop.example", "Widget", "widgets", true),
    ("apiextensions.k8s.io", "CustomResourceDefinition", "customresourcedefinitions", false),
    ("apiregistration.k8s.io", "APIService", "apiservices", false),
    (
        "admissionregistration.k8s.io",
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
        false,
    ),
    ("certificates.k8s.io", "CertificateSigningRequest", "certificatesigningrequests", false),
    ("coordination.k8s.io", "Lease", "leases", true),
    ("cluster.open-cluster-management.io", "ManagedCluster", "managedclusters", false),
    ("cluster.open-cluster-management.io", "Placement", "placements", true),
    ("cluster.open-cluster-management.io", "PlacementDecision", "placementdecisions", true),
    ("work.open-cluster-management.io", "ManifestWork", "manifestworks", true),
    ("work.open-cluster-management.io", "AppliedManifestWork", "appliedmanifestworks", false),
    ("work.open-cluster-management.io", "ManifestWorkReplicaSet", "manifestworkreplicasets", true),
    ("policy.open-cluster-management.io", "Policy", "policies", true),
    ("policy.open-cluster-management.io", "ConfigurationPolicy", "configurationpolicies", true),
    ("policy.open-cluster-management.io", "PolicyAutomation", "policyautomations", true),
    ("protection.open-cluster-management.io", "CriticalService", "criticalservices", false),
];

#[derive(Clone, Default)]
pub(super) struct Servers {
    objects: Vec<(Place, Id, Value)>,
    refusals: BTreeMap<Id, Answer>,
    unread: Vec<(String, Unread)>,
}

impl Servers {
    /// Puts YAML documents on a server.
    pub(super) fn with(mut self, place: Place, yaml: &str) -> Self {
        for document in yaml.split("\n---\n") {
            let object: Value = serde_saphyr::from_str(document).unwrap();
            let api_version = text(&object, "/apiVersion");
            let group = api_version.split_once('/').map_or("", |(group, _)| group);
            let kind = text(&object, "/kind");
            let (_, _, resource, _) = KINDS
                .iter()
                .find(|(g, k, _, _)| *g == group && *k == kind)
                .unwrap_or_else(|| panic!("{group} {kind}"));
            let id = crate::explain::object::id_of(group, resource, &object);
            self.objects.push((place, id, object));
        }
        self
    }

    /// A delete of this is refused.
    pub(super) fn refuses(mut self, id: Id, code: u16, message: &str) -> Self {
        let answer = match code {
            500 => Answer::Unread(Unread { why: message.to_owned(), forbidden: false }),
            code => Answer::Refused(Refusal {
                code,
                reason: "Forbidden".to_owned(),
                message: message.to_owned(),
            }),
        };
        self.refusals.insert(id, answer);
        self
    }

    /// Nothing is told of this resource.
    pub(super) fn hides(mut self, resource: &str, why: &str, forbidden: bool) -> Self {
        self.unread.push((resource.to_owned(), Unread { why: why.to_owned(), forbidden }));
        self
    }

    fn hidden(&self, resource: &str) -> Option<Answer> {
        let found = self.unread.iter().find(|(hidden, _)| hidden == resource);
        found.map(|(_, unread)| Answer::Unread(unread.clone()))
    }

    pub(super) fn answer(&self, question: &Question) -> Answer {
        match question {
            Question::Object { place, id } => {
                if let Some(hidden) = self.hidden(&id.resource) {
                    return hidden;
                }
                let mut objects = self.objects.iter();
                let found = objects.find(|(at, one, _)| at == place && one == id);
                match found {
                    Some((_, _, object)) => Answer::Object(Box::new(object.clone())),
                    None if served(&id.group, &id.resource) => Answer::Absent,
                    None => Answer::NoSuchKind,
                }
            }
            Question::Kind { place: _, group, kind } => {
                let found = KINDS.iter().find(|(g, k, _, _)| g == group && k == kind);
                found.map_or(Answer::NoSuchKind, |(_, _, resource, namespaced)| {
                    Answer::Kind(Kind { resource: (*resource).to_owned(), namespaced: *namespaced })
                })
            }
            Question::List { place, group, resource, namespace, labels } => {
                if let Some(hidden) = self.hidden(resource) {
                    return hidden;
                }
                if !served(group, resource)
                    && !["statefulsets", "daemonsets"].contains(&&**resource)
                {
                    return Answer::NoSuchKind;
                }
                let chosen = self.objects.iter().filter(|(at, id, object)| {
                    at == place
                        && id.group == *group
                        && id.resource == *resource
                        && (namespace.is_empty() || id.namespace == *namespace)
                        && labels.split(',').filter(|one| !one.is_empty()).all(|label| {
                            let (key, value) = label.split_once('=').unwrap();
                            let labels = object.pointer("/metadata/labels");
                            let has = labels.and_then(|all| all.get(key));
                            has.and_then(Value::as_str) == Some(value)
                        })
                });
                let items = chosen.map(|(_, _, object)| object.clone()).collect();
                Answer::Listed(Listed { items, more: false })
            }
            Question::Contents { place, namespace } => {
                let inside = self.objects.iter().filter(|(at, id, _)| {
                    at == place && (namespace.is_empty() || id.namespace == *namespace)
                });
                let items = inside.map(|(_, id, object)| (id.clone(), object.clone())).collect();
                let unread = self.unread.iter().map(|(what, one)| (what.clone(), one.why.clone()));
                Answer::Contents(Contents { items, more: Vec::new(), unread: unread.collect() })
            }
            Question::Rehearsal { id, .. } => {
                self.refusals.get(id).cloned().unwrap_or(Answer::Passed)
            }
        }
    }
}

fn served(group: &str, resource: &str) -> bool {
    KINDS.iter().any(|(g, _, r, _)| *g == group && *r == resource)
}

/// Everything in the fixtures that has finalizers says who set them, or deliberately does not.
#[test]
fn fixtures_are_what_servers_would_store() {
    for case in super::cases::all() {
        for (_, id, object) in &case.servers.objects {
            let finalizers = list(object, "/metadata/finalizers");
            let going = !text(object, "/metadata/deletionTimestamp").is_empty();
            let ends = id.resource == "pods" || id.resource == "namespaces";
            let (name, id) = (case.name, id.to_string());
            assert!(!going || ends || !finalizers.is_empty(), "{name}: {id} would be gone");
            assert!(!text(object, "/metadata/uid").is_empty(), "{name}: {id} has no uid");
        }
    }
}
