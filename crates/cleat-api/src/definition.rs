//! The CustomResourceDefinitions of our kinds, made from their types.
//!
//! Nothing is sent anywhere from here; `cargo xtask generate` writes them to `deploy/crds`.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use kube_core::CustomResourceExt;
use serde_json::Value;

use crate::addonplacementscore::AddOnPlacementScore;
use crate::ansiblejob::{self, AnsibleJob};
use crate::appliedmanifestwork::AppliedManifestWork;
use crate::clusterclaim::ClusterClaim;
use crate::configurationpolicy::{self, ConfigurationPolicy};
use crate::criticalservice::CriticalService;
use crate::leftoverrecord::LeftoverRecord;
use crate::managedcluster::ManagedCluster;
use crate::managedclusterset::ManagedClusterSet;
use crate::managedclustersetbinding::ManagedClusterSetBinding;
use crate::manifestwork::ManifestWork;
use crate::manifestworkreplicaset::ManifestWorkReplicaSet;
use crate::placement::{Placement, PlacementDecision};
use crate::placementbinding::{self, PlacementBinding};
use crate::policy::{self, Policy};
use crate::policyautomation::PolicyAutomation;
use crate::policyset::PolicySet;
use crate::removalpreview::RemovalPreview;

/// Every kind, sorted by name.
pub fn definitions() -> Vec<CustomResourceDefinition> {
    sorted(hub_definitions().into_iter().chain(cluster_definitions()).collect())
}

/// The kinds a hub serves, sorted by name.
pub fn hub_definitions() -> Vec<CustomResourceDefinition> {
    sorted(vec![
        definition::<AddOnPlacementScore>(),
        ansible_job(),
        definition::<LeftoverRecord>(),
        definition::<ManagedCluster>(),
        definition::<ManagedClusterSet>(),
        definition::<ManagedClusterSetBinding>(),
        definition::<ManifestWork>(),
        definition::<ManifestWorkReplicaSet>(),
        definition::<Placement>(),
        placement_binding(),
        definition::<PlacementDecision>(),
        policy(),
        definition::<PolicyAutomation>(),
        definition::<PolicySet>(),
        definition::<RemovalPreview>(),
    ])
}

/// What delete protection needs, on a cluster that may be part of no fleet.
pub fn protection_definitions() -> Vec<CustomResourceDefinition> {
    vec![definition::<CriticalService>()]
}

/// The kinds a managed cluster serves, sorted by name.
pub fn cluster_definitions() -> Vec<CustomResourceDefinition> {
    vec![
        definition::<AppliedManifestWork>(),
        definition::<ClusterClaim>(),
        configuration_policy(),
        definition::<CriticalService>(),
        policy(),
    ]
}

fn sorted(mut all: Vec<CustomResourceDefinition>) -> Vec<CustomResourceDefinition> {
    all.sort_by(|one, other| one.metadata.name.cmp(&other.metadata.name));
    // Policies are served on both sides.
    all.dedup_by(|one, other| one.metadata.name == other.metadata.name);
    all
}

fn ansible_job() -> CustomResourceDefinition {
    let mut definition = definition::<AnsibleJob>();
    let (key, value) = ansiblejob::OURS;
    definition.metadata.labels = Some([(key.to_owned(), value.to_owned())].into());
    definition
}

fn configuration_policy() -> CustomResourceDefinition {
    let mut definition = definition::<ConfigurationPolicy>();
    one_of(&mut definition, &["spec"], configurationpolicy::spec_alternatives());
    definition
}

fn policy() -> CustomResourceDefinition {
    let mut definition = definition::<Policy>();
    for path in
        [&["spec", "dependencies"][..], &["spec", "policy-templates", "extraDependencies"][..]]
    {
        one_of(&mut definition, path, policy::dependency_alternatives());
    }
    definition
}

fn placement_binding() -> CustomResourceDefinition {
    let mut definition = definition::<PlacementBinding>();
    one_of(&mut definition, &["placementRef"], placementbinding::reference_alternatives());
    definition
}

/// Says that a field, or each item of a list, is one of several. The derived schema cannot: its
/// alternatives may not speak of fields that are there anyway.
fn one_of(definition: &mut CustomResourceDefinition, path: &[&str], alternatives: Value) {
    for version in &mut definition.spec.versions {
        let root = version.schema.as_mut().and_then(|all| all.open_api_v3_schema.as_mut());
        let found = path.iter().try_fold(root, |here, step| {
            let below = here?.properties.as_mut()?.get_mut(*step)?;
            Some(if below.items.is_some() { items(below) } else { Some(below) })
        });
        if let Some(Some(found)) = found {
            found.one_of = serde_json::from_value(alternatives.clone()).ok();
        }
    }
}

fn items(list: &mut JSONSchemaProps) -> Option<&mut JSONSchemaProps> {
    match &mut list.items {
        Some(JSONSchemaPropsOrArray::Schema(items)) => Some(items),
        _ => None,
    }
}

fn definition<K: CustomResourceExt>() -> CustomResourceDefinition {
    let mut definition = K::crd();
    let names = &mut definition.spec.names;
    names.list_kind = Some(format!("{}List", names.kind));
    for version in &mut definition.spec.versions {
        if let Some(root) =
            version.schema.as_mut().and_then(|schema| schema.open_api_v3_schema.as_mut())
        {
            root.title = None;
            refuse_null(root);
        }
    }
    definition
}

/// Takes away the `nullable` that every optional field gets from its Rust type.
///
/// Absent is the only way to say nothing: a server drops a `null` where none is allowed, but would
/// store one that is, and shipped clients do not expect to read one.
fn refuse_null(schema: &mut JSONSchemaProps) {
    schema.nullable = None;
    for property in schema.properties.iter_mut().flat_map(|all| all.values_mut()) {
        refuse_null(property);
    }
    match &mut schema.items {
        Some(JSONSchemaPropsOrArray::Schema(items)) => refuse_null(items),
        Some(JSONSchemaPropsOrArray::Schemas(items)) => items.iter_mut().for_each(refuse_null),
        None => {}
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut schema.additional_properties {
        refuse_null(values);
    }
}

#[cfg(test)]
mod tests;
