//! Makes an API server ready to be a hub or a managed cluster: our kinds, and who judges them.
//!
//! Doing it again changes nothing, and doing it with a later version brings what is there up to
//! date. Nothing is ever removed here.

use std::sync::LazyLock;
use std::time::Duration;

use cleat_core::id::{Id, Target};
use cleat_core::write::{Action, Outcome, Side, Write};
use cleat_runtime::execute::{self, Asking, Executor};
use futures::future::try_join_all;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, ListParams};
use kube::core::GroupVersionKind;
use kube::runtime::wait::{Condition as _, await_condition, conditions};
use tokio::time::{interval, timeout};

/// As whom definitions and configurations are applied.
const FIELD_MANAGER: &str = "cleat";

/// How long a server may take to serve a kind that it has accepted.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often a server is asked whether it serves a kind yet; no watch tells.
const PAUSE: Duration = Duration::from_millis(20);

/// How often something is applied while others write it too.
const MOST_TRIES: u32 = 5;

/// An API server could not be made ready.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("failed to apply {what}: {why}")]
    Apply { what: String, why: String },
    #[error("failed to read the definition {name}")]
    Read {
        name: String,
        #[source]
        source: Box<kube::Error>,
    },
    #[error("failed to follow the definition {name}")]
    Follow {
        name: String,
        #[source]
        source: Box<kube::runtime::wait::Error>,
    },
    #[error("failed to list the objects of the definition {name}")]
    List {
        name: String,
        #[source]
        source: Box<kube::Error>,
    },
    #[error("the server accepted the definition {name} but does not serve it; see its conditions")]
    NotServed { name: String },
}

/// Gives a hub the kinds it serves. Returns when requests for them are answered.
pub async fn prepare_hub(hub_client: &Client) -> Result<(), Error> {
    static KINDS: LazyLock<Vec<CustomResourceDefinition>> =
        LazyLock::new(cleat_api::hub_definitions);
    define(hub_client, &KINDS).await
}

/// Gives a managed cluster the kinds it serves. Returns when requests for them are answered.
pub async fn prepare_cluster(cluster_client: &Client) -> Result<(), Error> {
    // A process may run thousands of clusters; the schemas are made once for all.
    static KINDS: LazyLock<Vec<CustomResourceDefinition>> =
        LazyLock::new(cleat_api::cluster_definitions);
    define(cluster_client, &KINDS).await
}

/// Gives any cluster the kind that delete protection is asked for with. Returns when requests for it
/// are answered.
pub async fn prepare_protection(client: &Client) -> Result<(), Error> {
    define(client, &cleat_api::protection_definitions()).await
}

/// Lets a hub ask a webhook, or several, as `configuration` says.
pub async fn install_webhooks(
    hub_client: &Client,
    configuration: &ValidatingWebhookConfiguration,
) -> Result<(), Error> {
    let name = configuration.metadata.name.as_deref().unwrap_or_default();
    let target = target("admissionregistration.k8s.io", "validatingwebhookconfigurations", name);
    apply(hub_client, target, configuration).await?;
    Ok(())
}

async fn define(client: &Client, all: &[CustomResourceDefinition]) -> Result<(), Error> {
    try_join_all(all.iter().map(|definition| define_one(client, definition))).await?;
    Ok(())
}

async fn define_one(client: &Client, definition: &CustomResourceDefinition) -> Result<(), Error> {
    let name = definition.metadata.name.clone().unwrap_or_default();
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let found = definitions.get_opt(&name).await;
    let found = found
        .map_err(|source| Error::Read { name: name.clone(), source: Box::new(source) })?
        .filter(|found| is_current(found, definition) || is_anothers(found));
    let applied = match found {
        Some(found) => found,
        None => {
            let target = target("apiextensions.k8s.io", "customresourcedefinitions", &name);
            apply(client, target, definition).await?
        }
    };
    let established = conditions::is_crd_established();
    let late = |_| Error::NotServed { name: name.clone() };
    if !established.matches_object(Some(&applied)) {
        let waiting = await_condition(definitions, &name, established);
        timeout(PATIENCE, waiting)
            .await
            .map_err(late)?
            .map_err(|source| Error::Follow { name: name.clone(), source: Box::new(source) })?;
    }
    timeout(PATIENCE, served(client, definition, &name)).await.map_err(late)?
}

/// Whether what is served is what we would have served. Comparing is cheaper than applying, for a
/// server that starts with a thousand clusters.
///
/// The versions are compared whole: a default or a field that somebody else added changes what
/// users' objects mean.
fn is_current(found: &CustomResourceDefinition, wanted: &CustomResourceDefinition) -> bool {
    let (found, wanted) = (&found.spec, &wanted.spec);
    found.versions == wanted.versions
        && found.scope == wanted.scope
        && found.names.kind == wanted.names.kind
        && found.names.short_names == wanted.names.short_names
}

/// An automation platform brings its own definition of jobs, which is not ours to replace.
fn is_anothers(found: &CustomResourceDefinition) -> bool {
    found.spec.group == "tower.ansible.com" && cleat_api::ansiblejob::is_anothers(found).is_some()
}

/// A kube-apiserver says that a definition is established a moment before it answers for it.
async fn served(
    client: &Client,
    definition: &CustomResourceDefinition,
    name: &str,
) -> Result<(), Error> {
    let spec = &definition.spec;
    let Some(version) = spec.versions.first() else { return Ok(()) };
    let kind = GroupVersionKind::gvk(&spec.group, &version.name, &spec.names.kind);
    let resource = ApiResource::from_gvk_with_plural(&kind, &spec.names.plural);
    let objects: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let mut pause = interval(PAUSE);
    loop {
        pause.tick().await;
        match objects.list_metadata(&ListParams::default().limit(1)).await {
            Ok(_) => return Ok(()),
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(source) => {
                return Err(Error::List { name: name.to_owned(), source: Box::new(source) });
            }
        }
    }
}

fn target(group: &str, resource: &str, name: &str) -> Target {
    let (group, resource, name) = (group.to_owned(), resource.to_owned(), name.to_owned());
    Target { version: "v1".to_owned(), id: Id { group, resource, namespace: String::new(), name } }
}

/// What others set is taken over: two versions of a definition cannot both hold.
async fn apply<K>(client: &Client, target: Target, object: &K) -> Result<K, Error>
where
    K: serde::Serialize + serde::de::DeserializeOwned,
{
    let failed = |why: String| Error::Apply { what: target.id.name.clone(), why };
    let object = serde_json::to_value(object).map_err(|error| failed(error.to_string()))?;
    let write = Write::Apply { object, manager: FIELD_MANAGER.to_owned(), force: true };
    let action = Action { side: Side::Cluster, target: target.clone(), write };
    let executor =
        Executor::new(execute::Config { cluster: Some(client.clone()), ..Default::default() });
    let mut tries = 0;
    loop {
        tries += 1;
        match executor.perform(&action, &Asking::default()).await {
            Outcome::Done(applied) => {
                return serde_json::from_value(applied).map_err(|error| failed(error.to_string()));
            }
            // By force there is no conflict of fields: somebody else wrote at the same moment.
            Outcome::Conflict(_) if tries < MOST_TRIES => {}
            Outcome::Refused(refusal) => return Err(failed(refusal.message)),
            Outcome::Lost(message) => return Err(failed(message)),
            other => return Err(failed(format!("{other:?}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// OCM's definition fills in a policy, and orphaning rules without one would be ignored.
    #[test]
    fn a_definition_with_a_default_of_somebody_else_is_not_current() {
        let all = cleat_api::hub_definitions();
        for wanted in &all {
            assert!(is_current(wanted, wanted));
        }
        let wanted = all.iter().find(|one| one.spec.names.kind == "ManifestWork").unwrap();
        let mut other: Value = serde_json::to_value(wanted).unwrap();
        let schema = "/spec/versions/0/schema/openAPIV3Schema";
        let field = "/properties/spec/properties/deleteOption/properties/propagationPolicy";
        other.pointer_mut(&format!("{schema}{field}")).unwrap()["default"] = json!("Foreground");
        let other = serde_json::from_value(other).unwrap();
        assert!(!is_current(&other, wanted));
    }
}
