//! Who serves AnsibleJobs on a hub: only where it is Cleat does a runner touch any.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::Api;

const DEFINITION: &str = "ansiblejobs.tower.ansible.com";

/// Who gave the hub its definition of AnsibleJobs. An automation platform's operator brings its own,
/// and Cleat never replaces it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Served {
    ByCleat,
    /// By somebody else, as this label of the definition, or the lack of Cleat's, says.
    ByPlatform(String),
    ByNobody,
}

pub async fn served_by(hub_client: &Client) -> Result<Served, kube::Error> {
    let definitions: Api<CustomResourceDefinition> = Api::all(hub_client.clone());
    let found = definitions.get_opt(DEFINITION).await?;
    Ok(found.map_or(Served::ByNobody, |found| judge(&found)))
}

fn judge(definition: &CustomResourceDefinition) -> Served {
    cleat_api::ansiblejob::is_anothers(definition).map_or(Served::ByCleat, Served::ByPlatform)
}
