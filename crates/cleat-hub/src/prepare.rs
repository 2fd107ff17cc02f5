//! Makes an API server ready to be a hub or a managed cluster: our kinds, and who judges them.
//!
//! Everything is applied, so that doing it again changes nothing and doing it with a later version
//! brings what is there up to date. Nothing is ever removed here.

use std::time::Duration;

use futures::future::try_join_all;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, ListParams, Patch, PatchParams};
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
    #[error("failed to apply {what}")]
    Apply {
        what: String,
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
    define(hub_client, cleat_api::hub_definitions()).await
}

/// Gives a managed cluster the kinds it serves. Returns when requests for them are answered.
pub async fn prepare_cluster(cluster_client: &Client) -> Result<(), Error> {
    define(cluster_client, cleat_api::cluster_definitions()).await
}

/// Lets a hub ask a webhook, or several, as `configuration` says.
pub async fn install_webhooks(
    hub_client: &Client,
    configuration: &ValidatingWebhookConfiguration,
) -> Result<(), Error> {
    let name = configuration.metadata.name.as_deref().unwrap_or_default();
    let configurations: Api<ValidatingWebhookConfiguration> = Api::all(hub_client.clone());
    apply(&configurations, name, configuration).await?;
    Ok(())
}

async fn define(client: &Client, all: Vec<CustomResourceDefinition>) -> Result<(), Error> {
    try_join_all(all.iter().map(|definition| define_one(client, definition))).await?;
    Ok(())
}

async fn define_one(client: &Client, definition: &CustomResourceDefinition) -> Result<(), Error> {
    let name = definition.metadata.name.clone().unwrap_or_default();
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let applied = apply(&definitions, &name, definition).await?;
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

/// What others set is taken over: two versions of a definition cannot both hold.
async fn apply<K>(api: &Api<K>, name: &str, object: &K) -> Result<K, Error>
where
    K: Clone + std::fmt::Debug + serde::Serialize + serde::de::DeserializeOwned,
{
    let parameters = PatchParams::apply(FIELD_MANAGER).force();
    let mut tries = 0;
    loop {
        tries += 1;
        match api.patch(name, &parameters, &Patch::Apply(object)).await {
            Ok(applied) => return Ok(applied),
            // By force there is no conflict of fields: somebody else wrote at the same moment.
            Err(kube::Error::Api(status)) if status.code == 409 && tries < MOST_TRIES => {}
            Err(source) => {
                return Err(Error::Apply { what: name.to_owned(), source: Box::new(source) });
            }
        }
    }
}
