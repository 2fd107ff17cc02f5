//! Asking whether the kinds that decide something are still defined. Nobody took an object away
//! whose kind was taken away.

use jiff::Timestamp;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::Api;
use kube::core::PartialObjectMeta;

use crate::kinds::Kind;

/// Why nothing may be taken away.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unsure {
    #[error("the server did not say")]
    Read(#[source] Box<kube::Error>),
    #[error("the definition {0} is going or gone, and its objects with it")]
    Undefined(String),
}

impl From<kube::Error> for Unsure {
    fn from(error: kube::Error) -> Self {
        Self::Read(Box::new(error))
    }
}

/// Since when the kind is defined.
pub(crate) async fn since(client: &Client, kind: Kind) -> Result<Timestamp, Unsure> {
    let since = perhaps_since(client, kind).await?;
    since.ok_or_else(|| Unsure::Undefined(definition(kind)))
}

/// The same of a kind that a hub may do without. None: its definition is going or gone.
pub(crate) async fn perhaps_since(
    client: &Client,
    kind: Kind,
) -> Result<Option<Timestamp>, Unsure> {
    let name = definition(kind);
    let definitions: Api<PartialObjectMeta<CustomResourceDefinition>> = Api::all(client.clone());
    let found = definitions.get_metadata_opt(&name).await?;
    let whole = found.filter(|found| found.metadata.deletion_timestamp.is_none());
    Ok(whole.map(|found| found.metadata.creation_timestamp.map_or(Timestamp::MIN, |time| time.0)))
}

/// What the definition of a kind is called.
fn definition(kind: Kind) -> String {
    let [group, _, _, plural] = kind;
    format!("{plural}.{group}")
}
