//! The ValidatingWebhookConfiguration by which an API server finds us, as data.

use cleat_api::managedcluster::CLUSTER_NAME_LABEL;
use cleat_api::{manifestwork, policy};
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{
    MatchCondition, RuleWithOperations, ServiceReference, ValidatingWebhook,
    ValidatingWebhookConfiguration, WebhookClientConfig,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{
    LabelSelector, LabelSelectorRequirement, ObjectMeta,
};

use crate::{
    GUARD_PATH, MANAGED_CLUSTER_PATH, MANAGED_CLUSTER_SET_BINDING_PATH, MANIFEST_WORK_PATH,
    MANIFEST_WORK_REPLICA_SET_PATH, POLICY_PATH, POLICY_SET_PATH,
};

/// The name of the configuration.
const NAME: &str = "cleat-works";

/// How an API server reaches the webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// `https://host:port`, without a path.
    Url(String),
    /// A service in the API server's own cluster.
    Service { namespace: String, name: String, port: u16 },
}

/// Has everything that is created, and every change of a spec, judged before it is stored.
///
/// `authority` is the PEM of who signed the webhook's certificate; without it the API server's own
/// authorities count.
///
/// Other updates are not even asked about: the generation of an object changes with its spec. So a
/// webhook that is down keeps new works away, but no work from losing its finalizer. It keeps no
/// policy away: what is wrong with one is told in its status as well.
pub fn configuration(authority: Option<&str>, reach: &Reach) -> ValidatingWebhookConfiguration {
    let judged = |one: &Judged| ValidatingWebhook {
        name: format!("{}.{}", one.resource, one.group),
        admission_review_versions: vec!["v1".to_owned()],
        client_config: client_config(authority, reach, one.path),
        failure_policy: Some(one.down.to_owned()),
        match_policy: Some("Equivalent".to_owned()),
        side_effects: "None".to_owned(),
        timeout_seconds: Some(10),
        rules: Some(vec![RuleWithOperations {
            api_groups: Some(vec![one.group.to_owned()]),
            api_versions: Some(vec![one.version.to_owned()]),
            operations: Some(vec!["CREATE".to_owned(), "UPDATE".to_owned()]),
            resources: Some(vec![one.resource.to_owned()]),
            scope: Some(one.scope.to_owned()),
        }]),
        match_conditions: Some(vec![MatchCondition {
            name: "spec-is-new".to_owned(),
            expression: one.changed.to_owned(),
        }]),
        ..Default::default()
    };
    ValidatingWebhookConfiguration {
        metadata: ObjectMeta { name: Some(NAME.to_owned()), ..Default::default() },
        webhooks: Some(JUDGED.iter().map(judged).collect()),
    }
}

/// The name of the configuration for deletions.
const GUARD_NAME: &str = "cleat-guard";

/// Has deletions judged, of what may be large, and changes that come to the same. Whoever does not ask for
/// it has none of it.
///
/// A webhook that is down holds up no deletion: the hub's own controllers delete as well.
pub fn guard_configuration(
    authority: Option<&str>,
    reach: &Reach,
) -> ValidatingWebhookConfiguration {
    let guarded = |one: &Guarded| ValidatingWebhook {
        name: format!("deletions.{}.{}", one.resource, one.belongs_to),
        admission_review_versions: vec!["v1".to_owned()],
        client_config: client_config(authority, reach, GUARD_PATH),
        failure_policy: Some("Ignore".to_owned()),
        match_policy: Some("Equivalent".to_owned()),
        side_effects: "None".to_owned(),
        timeout_seconds: Some(10),
        rules: Some(vec![RuleWithOperations {
            api_groups: Some(vec![one.group.to_owned()]),
            api_versions: Some(vec!["*".to_owned()]),
            operations: Some(one.operations.iter().map(|one| (*one).to_owned()).collect()),
            resources: Some(vec![one.resource.to_owned()]),
            scope: Some("*".to_owned()),
        }]),
        object_selector: one.label.map(|label| LabelSelector {
            match_expressions: Some(vec![LabelSelectorRequirement {
                key: label.to_owned(),
                operator: "Exists".to_owned(),
                values: None,
            }]),
            match_labels: None,
        }),
        match_conditions: one.when.map(|expression| {
            let name = "deletes".to_owned();
            vec![MatchCondition { name, expression: expression.to_owned() }]
        }),
        ..Default::default()
    };
    ValidatingWebhookConfiguration {
        metadata: ObjectMeta { name: Some(GUARD_NAME.to_owned()), ..Default::default() },
        webhooks: Some(GUARDED.iter().map(guarded).collect()),
    }
}

/// A kind of which deletions are judged.
struct Guarded {
    group: &'static str,
    resource: &'static str,
    /// Ends the name of its webhook.
    belongs_to: &'static str,
    operations: &'static [&'static str],
    /// Only objects that bear this.
    label: Option<&'static str>,
    /// Only requests of which this holds.
    when: Option<&'static str>,
}

impl Guarded {
    const fn of(group: &'static str, resource: &'static str) -> Self {
        let operations = &["DELETE"];
        Self { group, resource, belongs_to: group, operations, label: None, when: None }
    }
}

const GUARDED: [Guarded; 7] = [
    Guarded::of(manifestwork::GROUP, "manifestworks"),
    Guarded::of(manifestwork::GROUP, "manifestworkreplicasets"),
    Guarded {
        operations: &["DELETE", "UPDATE"],
        when: Some(DELETES),
        ..Guarded::of(CLUSTERS, "managedclusters")
    },
    Guarded::of(policy::GROUP, "policies"),
    Guarded::of(policy::GROUP, "placementbindings"),
    Guarded::of(CLUSTERS, "placements"),
    // Those of clusters: with one goes everything that is carried there.
    Guarded {
        belongs_to: CLUSTERS,
        label: Some(CLUSTER_NAME_LABEL),
        ..Guarded::of("", "namespaces")
    },
];

/// It is a deletion, or has a cluster that leaves begin to be emptied.
const DELETES: &str = "request.operation == 'DELETE' \
    || (has(object.metadata.deletionTimestamp) \
        && has(object.spec.removeStrategy) && object.spec.removeStrategy == 'Required' \
        && !(has(oldObject.spec.removeStrategy) && oldObject.spec.removeStrategy == 'Required'))";

/// A kind that is judged.
struct Judged {
    group: &'static str,
    version: &'static str,
    resource: &'static str,
    scope: &'static str,
    path: &'static str,
    /// Which changes are.
    changed: &'static str,
    /// What happens to writes while nobody answers.
    down: &'static str,
}

impl Judged {
    const fn namespaced(
        [group, version, resource]: [&'static str; 3],
        path: &'static str,
        down: &'static str,
    ) -> Self {
        Self { group, version, resource, scope: "Namespaced", path, changed: SPEC_IS_NEW, down }
    }
}

const CLUSTERS: &str = "cluster.open-cluster-management.io";

const JUDGED: [Judged; 6] = [
    Judged::namespaced([manifestwork::GROUP, "v1", "manifestworks"], MANIFEST_WORK_PATH, "Fail"),
    Judged::namespaced(
        [manifestwork::GROUP, "v1alpha1", "manifestworkreplicasets"],
        MANIFEST_WORK_REPLICA_SET_PATH,
        "Fail",
    ),
    Judged {
        group: CLUSTERS,
        version: "v1",
        resource: "managedclusters",
        scope: "Cluster",
        path: MANAGED_CLUSTER_PATH,
        changed: SPEC_OR_SET_IS_NEW,
        down: "Fail",
    },
    Judged::namespaced(
        [CLUSTERS, "v1beta2", "managedclustersetbindings"],
        MANAGED_CLUSTER_SET_BINDING_PATH,
        "Fail",
    ),
    Judged::namespaced([policy::GROUP, "v1", "policies"], POLICY_PATH, "Ignore"),
    Judged::namespaced([policy::GROUP, "v1beta1", "policysets"], POLICY_SET_PATH, "Ignore"),
];

/// The API server sets the generation itself, before it asks; no client can hide a change.
const SPEC_IS_NEW: &str = "request.operation != 'UPDATE' \
    || !has(object.metadata.generation) || !has(oldObject.metadata.generation) \
    || object.metadata.generation != oldObject.metadata.generation";

/// The same, or the label that says in which set a cluster is.
const SPEC_OR_SET_IS_NEW: &str = "request.operation != 'UPDATE' \
    || !has(object.metadata.generation) || !has(oldObject.metadata.generation) \
    || object.metadata.generation != oldObject.metadata.generation \
    || (has(object.metadata.labels) \
        && 'cluster.open-cluster-management.io/clusterset' in object.metadata.labels \
        ? object.metadata.labels['cluster.open-cluster-management.io/clusterset'] : '') \
    != (has(oldObject.metadata.labels) \
        && 'cluster.open-cluster-management.io/clusterset' in oldObject.metadata.labels \
        ? oldObject.metadata.labels['cluster.open-cluster-management.io/clusterset'] : '')";

/// Where an API server sends its questions.
pub fn client_config(authority: Option<&str>, reach: &Reach, path: &str) -> WebhookClientConfig {
    let (url, service) = match reach {
        Reach::Url(base) => (Some(format!("{}{path}", base.trim_end_matches('/'))), None),
        Reach::Service { namespace, name, port } => {
            let service = ServiceReference {
                namespace: namespace.clone(),
                name: name.clone(),
                path: Some(path.to_owned()),
                port: Some(i32::from(*port)),
            };
            (None, Some(service))
        }
    };
    let ca_bundle = authority.map(|pem| ByteString(pem.as_bytes().to_vec()));
    WebhookClientConfig { ca_bundle, service, url }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_fails_closed_but_for_policies_and_has_no_side_effects() {
        let reach = Reach::Url("https://127.0.0.1:9443/".to_owned());
        let webhooks = configuration(Some("pem"), &reach).webhooks.unwrap();
        let urls: Vec<_> =
            webhooks.iter().filter_map(|one| one.client_config.url.clone()).collect();
        assert_eq!(
            urls,
            [
                "https://127.0.0.1:9443/validate-manifestwork",
                "https://127.0.0.1:9443/validate-manifestworkreplicaset",
                "https://127.0.0.1:9443/validate-managedcluster",
                "https://127.0.0.1:9443/validate-managedclustersetbinding",
                "https://127.0.0.1:9443/validate-policy-open-cluster-management-io-v1-policy",
                "https://127.0.0.1:9443/validate-policy-open-cluster-management-io-v1beta1-policyset",
            ]
        );
        for webhook in webhooks {
            let policies = webhook.name.ends_with(".policy.open-cluster-management.io");
            let expected = if policies { "Ignore" } else { "Fail" };
            assert_eq!(webhook.failure_policy.as_deref(), Some(expected));
            assert_eq!(webhook.side_effects, "None");
            assert!(webhook.name.split('.').count() >= 3);
        }
    }

    #[test]
    fn only_what_may_delete_is_asked_about() {
        let reach = Reach::Url("https://127.0.0.1:9443".to_owned());
        let webhooks = guard_configuration(None, &reach).webhooks.unwrap();
        for webhook in &webhooks {
            assert_eq!(webhook.failure_policy.as_deref(), Some("Ignore"));
            let operations = webhook.rules.as_ref().unwrap()[0].operations.clone().unwrap();
            let changes = operations.iter().any(|one| one == "UPDATE");
            assert_eq!(changes, webhook.match_conditions.is_some(), "{}", webhook.name);
        }
        let namespaces = webhooks.iter().find(|one| one.name.contains(".namespaces.")).unwrap();
        assert!(namespaces.object_selector.is_some(), "no namespace but those of clusters");
    }

    #[test]
    fn a_service_is_named_with_path_and_port() {
        let reach = Reach::Service { namespace: "n".to_owned(), name: "s".to_owned(), port: 8443 };
        let webhooks = configuration(None, &reach).webhooks.unwrap();
        let service = webhooks[0].client_config.service.clone().unwrap();
        assert_eq!((service.path.as_deref(), service.port), (Some(MANIFEST_WORK_PATH), Some(8443)));
        assert!(webhooks[0].client_config.ca_bundle.is_none());
    }
}
