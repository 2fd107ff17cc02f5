//! What kube-apiserver refuses in built-in kinds beyond their schemas, in its words and order.
//!
//! Metadata is validated elsewhere, before these errors; so are custom resources,
//! CustomResourceDefinitions and webhook configurations. What single kinds leave out is said at the
//! top of their files.

mod autoscaler;
mod batch;
mod check;
mod container;
mod core;
mod cron;
mod ephemeral;
mod net;
mod networking;
mod other;
mod placement;
mod pod;
mod quota;
mod rbac;
mod security;
mod service;
mod volume;
mod workloads;

pub(crate) use core::{emptied, left_empty, with_empty_labels};

use serde_json::Value;

use self::check::Errors;
use super::read::Read;
use super::strategy;
use crate::resource::ResourceType;
use crate::status::FieldError;

/// The errors of a new object, after `prepare_create`.
pub(crate) fn validate_create(ty: &ResourceType, object: &Value) -> Vec<FieldError> {
    let mut errors = Errors::default();
    if !strategy::builtin(ty) {
        return errors.0;
    }
    let all = &mut errors;
    match (&*ty.group, &*ty.plural) {
        ("", "pods") => pod::create(all, object),
        ("apps", "statefulsets") => workloads::stateful_set(all, object, true),
        ("batch", "jobs") => batch::job(all, object),
        ("", "persistentvolumeclaims") => core::claim_spec(all, "spec", object.at("spec")),
        ("", "nodes") => core::node(all, object),
        ("scheduling.k8s.io", "priorityclasses") => other::priority_class(all, object),
        ("storage.k8s.io", "storageclasses") => other::storage_class(all, object),
        ("node.k8s.io", "runtimeclasses") => other::runtime_class(all, object),
        ("certificates.k8s.io", "certificatesigningrequests") => {
            other::certificate_request(all, object);
        }
        ("", "namespaces") => core::namespace(all, object),
        _ => always(all, ty, object, None),
    }
    errors.0
}

/// The errors of an update, after `prepare_update`.
pub(crate) fn validate_update(
    ty: &ResourceType,
    subresource: Option<&str>,
    old: &Value,
    new: &Value,
) -> Vec<FieldError> {
    let mut errors = Errors::default();
    if !strategy::builtin(ty) {
        return errors.0;
    }
    let all = &mut errors;
    match (&*ty.group, &*ty.plural, subresource) {
        ("certificates.k8s.io", "certificatesigningrequests", subresource) => {
            other::certificate_request_update(all, subresource, old, new);
        }
        ("", "namespaces", Some("status")) => core::namespace_status(all, new),
        ("", "namespaces", Some("finalize")) => core::namespace(all, new),
        ("", "services", Some("status")) => service::status(all, new),
        ("", "resourcequotas", Some("status")) => quota::resource_quota_status(all, new),
        ("", "pods", Some("ephemeralcontainers")) => pod::ephemeral_update(all, old, new),
        ("", "pods", Some("resize")) => pod::whole(all, new),
        ("networking.k8s.io", "ingresses", Some("status")) => {
            net::load_balancer(all, "status.loadBalancer.ingress", new);
        }
        ("policy", "poddisruptionbudgets", Some("status")) => {
            let counts = ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"];
            all.not_negative("status", new.at("status"), &counts);
        }
        (_, plural, Some("status")) => workloads::status(all, plural, new),
        (_, _, Some(_)) => {}
        ("", "pods", None) => pod::update(all, old, new),
        ("", "configmaps", None) => {
            core::sealed(all, old, new, &["data", "binaryData"]);
            core::config_map(all, new);
        }
        ("", "secrets", None) => {
            all.immutable("", old, new, &["type"]);
            core::sealed(all, old, new, &["data"]);
            core::secret(all, new);
        }
        ("", "services", None) => {
            service::update(all, old, new);
            service::service(all, new);
        }
        ("", "persistentvolumeclaims", None) => {
            core::claim_spec(all, "spec", new.at("spec"));
            core::claim_update(all, old, new);
        }
        ("", "persistentvolumes", None) => {
            core::persistent_volume(all, new);
            core::persistent_volume_update(all, old, new);
            all.immutable("", old.at("spec"), new.at("spec"), &["volumeMode"]);
        }
        ("", "resourcequotas", None) => {
            quota::resource_quota(all, new);
            all.immutable("spec", old.at("spec"), new.at("spec"), &["scopes"]);
        }
        ("", "nodes", None) => {
            core::node_update(all, old, new);
            core::node(all, new);
        }
        ("apps", "daemonsets", None) => {
            all.immutable("spec", old.at("spec"), new.at("spec"), &["selector"]);
            always(all, ty, new, Some(old));
        }
        ("apps", "deployments" | "replicasets", None) => {
            always(all, ty, new, Some(old));
            all.immutable("spec", old.at("spec"), new.at("spec"), &["selector"]);
        }
        ("apps", "statefulsets", None) => {
            workloads::stateful_set(all, new, false);
            workloads::stateful_set_update(all, old, new);
        }
        ("apps", "controllerrevisions", None) => {
            workloads::controller_revision(all, new);
            all.immutable("", old, new, &["data"]);
        }
        ("events.k8s.io", "events", None) => other::event_update(all, old, new),
        ("batch", "jobs", None) => batch::job_update(all, old, new),
        ("rbac.authorization.k8s.io", "rolebindings" | "clusterrolebindings", None) => {
            always(all, ty, new, Some(old));
            rbac::binding_update(all, old, new);
        }
        ("scheduling.k8s.io", "priorityclasses", None) => {
            other::priority_class_update(all, old, new);
        }
        ("storage.k8s.io", "storageclasses", None) => {
            let fixed = ["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"];
            all.immutable("", old, new, &fixed);
        }
        ("storage.k8s.io", "volumeattachments", None) => {
            other::volume_attachment_update(all, old, new);
        }
        ("storage.k8s.io", "csidrivers", None) => {
            other::csi_driver(all, new);
            other::csi_driver_update(all, old, new);
        }
        ("networking.k8s.io", "ingressclasses", None) => {
            all.immutable("spec", old.at("spec"), new.at("spec"), &["controller"]);
            always(all, ty, new, Some(old));
        }
        ("node.k8s.io", "runtimeclasses", None) => all.immutable("", old, new, &["handler"]),
        ("discovery.k8s.io", "endpointslices", None) => {
            other::endpoint_slice(all, new, old.text("addressType"));
            all.immutable("", old, new, &["addressType"]);
        }
        _ => always(all, ty, new, Some(old)),
    }
    errors.0
}

/// What holds for new and changed objects alike.
fn always(errors: &mut Errors, ty: &ResourceType, object: &Value, old: Option<&Value>) {
    match (&*ty.group, &*ty.plural) {
        ("", "configmaps") => core::config_map(errors, object),
        ("", "endpoints") => core::endpoints(errors, object),
        ("", "events") => other::event(errors, object, true),
        ("", "limitranges") => quota::limit_range(errors, object),
        ("", "persistentvolumes") => core::persistent_volume(errors, object),
        ("", "podtemplates") => pod::template(errors, "template", object.at("template")),
        ("", "replicationcontrollers") => workloads::replication_controller(errors, object),
        ("", "resourcequotas") => quota::resource_quota(errors, object),
        ("", "secrets") => core::secret(errors, object),
        ("", "services") => service::service(errors, object),
        ("apps", "controllerrevisions") => workloads::controller_revision(errors, object),
        ("apps", "daemonsets") => workloads::daemon_set(errors, object),
        ("apps", "deployments") => workloads::deployment(errors, object),
        ("apps", "replicasets") => workloads::replica_set(errors, object),
        ("autoscaling", "horizontalpodautoscalers") => autoscaler::autoscaler(errors, object),
        ("batch", "cronjobs") => batch::cron_job(errors, object, old),
        ("coordination.k8s.io", "leases") => other::lease(errors, object),
        ("discovery.k8s.io", "endpointslices") => {
            other::endpoint_slice(errors, object, object.text("addressType"))
        }
        ("events.k8s.io", "events") if old.is_none() => other::event(errors, object, false),
        ("networking.k8s.io", "ingressclasses") => other::ingress_class(errors, object),
        ("networking.k8s.io", "ingresses") => networking::ingress(errors, object),
        ("networking.k8s.io", "ipaddresses") => networking::ip_address(errors, object),
        ("networking.k8s.io", "servicecidrs") => networking::service_range(errors, object),
        ("networking.k8s.io", "networkpolicies") => networking::network_policy(errors, object),
        ("policy", "poddisruptionbudgets") => other::disruption_budget(errors, object),
        ("rbac.authorization.k8s.io", "roles") => rbac::role(errors, object, true),
        ("rbac.authorization.k8s.io", "clusterroles") => rbac::role(errors, object, false),
        ("rbac.authorization.k8s.io", "rolebindings") => rbac::binding(errors, object, true),
        ("rbac.authorization.k8s.io", "clusterrolebindings") => {
            rbac::binding(errors, object, false);
        }
        ("storage.k8s.io", "csidrivers") => other::csi_driver(errors, object),
        ("storage.k8s.io", "csinodes") => other::csi_node(errors, object),
        ("storage.k8s.io", "volumeattachments") => other::volume_attachment(errors, object),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
