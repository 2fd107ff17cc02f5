//! In which order kinds come and go.
//!
//! What others need comes first and leaves last. It is an order of writing, not of waiting: nothing
//! here says that one kind must be ready before the next is touched.

use cleat_api::criticalservice;

/// The rank of every kind that has no place in the table.
pub const OTHERS: u16 = 1000;

/// When a kind is applied: lower ranks first.
pub fn rank(group: &str, kind: &str) -> u16 {
    PLACES
        .iter()
        .find(|place| place.kind == kind && place.group == group)
        .map_or(OTHERS, |place| place.rank)
}

/// When objects of a resource are removed: lower ranks first.
///
/// Objects of kinds that are not Kubernetes' own go first, while what serves their finalizers is
/// still there. Then the table from its end. Definitions go after everything they could define, and
/// namespaces at the very end: removing one would take along what others still hold. Only protection
/// stays longer, or nothing would be protected while the rest is removed.
pub fn removal_rank(group: &str, resource: &str) -> u16 {
    if group == criticalservice::GROUP && resource == criticalservice::RESOURCE {
        return LAST + 3;
    }
    match PLACES.iter().find(|place| place.resource == resource && place.group == group) {
        None => 0,
        Some(Place { group: "", kind: "Namespace", .. }) => LAST + 2,
        Some(Place { kind: "CustomResourceDefinition", .. }) => LAST + 1,
        Some(place) => LAST.saturating_sub(place.rank),
    }
}

/// The rank at which the first kinds to come would leave, if definitions and namespaces were not
/// among them.
const LAST: u16 = 7;

struct Place {
    rank: u16,
    group: &'static str,
    kind: &'static str,
    resource: &'static str,
}

const fn place(
    rank: u16,
    group: &'static str,
    kind: &'static str,
    resource: &'static str,
) -> Place {
    Place { rank, group, kind, resource }
}

const ADMISSION: &str = "admissionregistration.k8s.io";
const RBAC: &str = "rbac.authorization.k8s.io";

const PLACES: &[Place] = &[
    place(0, "scheduling.k8s.io", "PriorityClass", "priorityclasses"),
    place(0, "", "Namespace", "namespaces"),
    place(0, "apiextensions.k8s.io", "CustomResourceDefinition", "customresourcedefinitions"),
    place(0, "storage.k8s.io", "StorageClass", "storageclasses"),
    place(0, "", "PersistentVolume", "persistentvolumes"),
    place(0, "policy", "PodSecurityPolicy", "podsecuritypolicies"),
    place(0, "extensions", "PodSecurityPolicy", "podsecuritypolicies"),
    place(1, RBAC, "ClusterRole", "clusterroles"),
    place(1, RBAC, "ClusterRoleBinding", "clusterrolebindings"),
    place(1, RBAC, "Role", "roles"),
    place(1, RBAC, "RoleBinding", "rolebindings"),
    place(2, "networking.k8s.io", "NetworkPolicy", "networkpolicies"),
    place(2, "extensions", "NetworkPolicy", "networkpolicies"),
    place(2, "", "ResourceQuota", "resourcequotas"),
    place(2, "", "LimitRange", "limitranges"),
    place(2, "policy", "PodDisruptionBudget", "poddisruptionbudgets"),
    place(2, "", "ServiceAccount", "serviceaccounts"),
    place(3, "", "Secret", "secrets"),
    place(3, "", "ConfigMap", "configmaps"),
    place(3, "", "PersistentVolumeClaim", "persistentvolumeclaims"),
    place(4, "", "Service", "services"),
    place(5, "apps", "DaemonSet", "daemonsets"),
    place(5, "", "Pod", "pods"),
    place(5, "", "ReplicationController", "replicationcontrollers"),
    place(5, "apps", "ReplicaSet", "replicasets"),
    place(5, "apps", "Deployment", "deployments"),
    place(5, "autoscaling", "HorizontalPodAutoscaler", "horizontalpodautoscalers"),
    place(5, "apps", "StatefulSet", "statefulsets"),
    place(5, "batch", "Job", "jobs"),
    place(5, "batch", "CronJob", "cronjobs"),
    place(6, "apiregistration.k8s.io", "APIService", "apiservices"),
    place(6, ADMISSION, "MutatingWebhookConfiguration", "mutatingwebhookconfigurations"),
    place(6, ADMISSION, "ValidatingWebhookConfiguration", "validatingwebhookconfigurations"),
    place(6, ADMISSION, "ValidatingAdmissionPolicy", "validatingadmissionpolicies"),
    place(6, ADMISSION, "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn what_others_need_comes_first() {
        for (group, kind, expected) in [
            ("", "Namespace", 0),
            ("apiextensions.k8s.io", "CustomResourceDefinition", 0),
            (RBAC, "RoleBinding", 1),
            ("", "ServiceAccount", 2),
            ("", "Secret", 3),
            ("", "Service", 4),
            ("batch", "CronJob", 5),
            (ADMISSION, "ValidatingWebhookConfiguration", 6),
            ("example.com", "Widget", OTHERS),
            // Somebody else's kind of the same name has no place in the table.
            ("serving.knative.dev", "Service", OTHERS),
        ] {
            assert_eq!(rank(group, kind), expected, "{group} {kind}");
        }
    }

    #[test]
    fn what_others_need_leaves_last() {
        let order = [
            ("example.com", "widgets"),
            (ADMISSION, "validatingwebhookconfigurations"),
            ("apps", "deployments"),
            ("", "services"),
            ("", "configmaps"),
            ("", "serviceaccounts"),
            (RBAC, "roles"),
            ("", "persistentvolumes"),
            ("apiextensions.k8s.io", "customresourcedefinitions"),
            ("", "namespaces"),
            (criticalservice::GROUP, criticalservice::RESOURCE),
        ];
        let ranks: Vec<u16> =
            order.iter().map(|(group, resource)| removal_rank(group, resource)).collect();
        assert!(ranks.is_sorted_by(|one, next| one < next), "{ranks:?}");
    }
}
