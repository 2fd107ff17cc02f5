//! Policies that a leaving cluster has not let go of yet: on the hub those that are held, on the
//! cluster the copies and what their templates became.

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use cleat_api::configurationpolicy::POLICY_TYPE_LABEL;
use cleat_api::policy::Policy;
use cleat_api::policy::name::PARENT_POLICY;
use cleat_core::policy_sync::HOLD;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, ApiResource, DynamicObject, ListParams, PartialObjectMeta};
use kube::core::GroupVersionKind;
use kube::{Client, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;

use crate::leave::Remains;

/// Looks at the servers themselves, both of them.
pub fn remains(hub_client: Client, cluster_client: Client, cluster: &str) -> Arc<dyn Remains> {
    Arc::new(Held { hub_client, cluster_client, cluster: cluster.to_owned() })
}

struct Held {
    hub_client: Client,
    cluster_client: Client,
    cluster: String,
}

impl Remains for Held {
    fn remains(&self) -> Pin<Box<dyn Future<Output = Result<Option<String>, String>> + Send + '_>> {
        Box::pin(async move {
            let sent: Api<Policy> = Api::namespaced(self.hub_client.clone(), &self.cluster);
            let sent = all(&sent, "").await.map_err(|error| format!("on the hub, {error}"))?;
            let held = sent.iter().filter(|one| one.finalizers().iter().any(|f| f == HOLD)).count();
            let copies: Api<Policy> = Api::namespaced(self.cluster_client.clone(), &self.cluster);
            let copies = all(&copies, "").await?;
            // A cluster that is its own hub has no copies; no two servers give the same uid.
            let theirs: BTreeSet<Option<String>> = sent.iter().map(|one| one.uid()).collect();
            let copies = copies.iter().filter(|one| !theirs.contains(&one.uid())).count();
            let templates = self.templates().await?;
            let counted = [(held, "policies"), (copies, "copies"), (templates, "templates")];
            let counted = counted.into_iter().filter(|(count, _)| *count > 0);
            let what: Vec<String> = counted
                .map(|(count, what)| match what {
                    "policies" if count == 1 => "1 policy".to_owned(),
                    "policies" => format!("{count} policies"),
                    what => format!("{count} {what} of policies"),
                })
                .collect();
            Ok((!what.is_empty()).then(|| what.join(", ")))
        })
    }
}

impl Held {
    /// How many objects on the cluster are marked as templates of a policy.
    async fn templates(&self) -> Result<usize, String> {
        let mut count = 0;
        for kind in template_kinds(&self.cluster_client).await? {
            let api: Api<DynamicObject> =
                Api::namespaced_with(self.cluster_client.clone(), &self.cluster, &kind);
            count += all(&api, PARENT_POLICY).await?.len();
        }
        Ok(count)
    }
}

/// The kinds that may stand in policies.
pub(super) async fn template_kinds(client: &Client) -> Result<Vec<ApiResource>, String> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let kinds = ListParams::default().labels(&format!("{POLICY_TYPE_LABEL}=template"));
    let kinds = definitions.list(&kinds).await;
    let kinds = kinds.map_err(|error| format!("definitions cannot be listed: {error}"))?;
    let mut all = Vec::new();
    for spec in kinds.items.into_iter().map(|kind| kind.spec) {
        let version = spec.versions.iter().find(|version| version.served);
        let Some(version) = version.filter(|_| spec.scope == "Namespaced") else { continue };
        let kind = GroupVersionKind::gvk(&spec.group, &version.name, &spec.names.kind);
        all.push(ApiResource::from_gvk_with_plural(&kind, &spec.names.plural));
    }
    Ok(all)
}

/// Everything on a cluster that is marked as a template of this policy, or of any if none is named, as
/// the server says now.
pub async fn marked_now(
    client: &Client,
    cluster: &str,
    policy: Option<&str>,
) -> Result<Vec<(ApiResource, ObjectMeta)>, String> {
    let label = match policy {
        Some(policy) => format!("{PARENT_POLICY}={policy}"),
        None => PARENT_POLICY.to_owned(),
    };
    let mut marked = Vec::new();
    for kind in template_kinds(client).await? {
        let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), cluster, &kind);
        let found = all(&api, &label).await?;
        marked.extend(found.into_iter().map(|one| (kind.clone(), one.metadata)));
    }
    Ok(marked)
}

/// All objects of a kind that have a label, if one is given. A server without the kind has none.
async fn all<K>(api: &Api<K>, label: &str) -> Result<Vec<PartialObjectMeta<K>>, String>
where
    K: Resource + Clone + std::fmt::Debug + DeserializeOwned,
{
    match api.list_metadata(&ListParams::default().labels(label)).await {
        Ok(all) => Ok(all.items),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(Vec::new()),
        Err(error) => Err(format!("policies cannot be listed: {error}")),
    }
}
