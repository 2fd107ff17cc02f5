//! An agent that runs in its cluster takes itself away: its Deployment, its rights, its namespace. It has
//! the rights that it takes away, and no others.

use anyhow::{Context as _, Result};
use cleat_api::managedcluster::RemoveStrategy::Required;
use cleat_core::leave::parts::{BOOTSTRAP, CREDENTIALS, NAME, binding_name};
use cleat_world::world::Credentials;
use cleat_world::{eventually, within};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::Client;
use kube::api::{Api, PostParams};
use serde_json::json;

use super::party::Party;
use crate::{create, parse};

/// What `cleat join --deploy` puts on the cluster, as far as it is to be taken away again.
struct Deployed {
    party: Party,
    home: String,
    /// Somebody with the agent's own token.
    agent: Client,
}

impl Deployed {
    async fn new(topic: &str) -> Result<Self> {
        let party = Party::with_own_rights(topic, Required).await?;
        let home = format!("agent-{}", party.name);
        let agent = party.cluster.clone();
        let mut deployed = Self { party, home, agent };
        create(&deployed.all::<ServiceAccount>(), json!({ "metadata": { "name": NAME } })).await?;
        create(&deployed.all::<Secret>(), json!({ "metadata": { "name": BOOTSTRAP } })).await?;
        create(
            &deployed.bindings(),
            json!({
                "metadata": { "name": binding_name(&deployed.home) },
                "roleRef": {
                    "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                    "name": "cluster-admin",
                },
                "subjects": [
                    { "kind": "ServiceAccount", "name": NAME, "namespace": deployed.home },
                ],
            }),
        )
        .await?;
        let marks = json!({ "app": NAME });
        let containers = json!([{ "name": "agent", "image": "example.com/cleat" }]);
        let pod = json!({ "metadata": { "labels": marks }, "spec": { "containers": containers } });
        create(
            &deployed.all::<Deployment>(),
            json!({
                "metadata": { "name": NAME },
                "spec": { "replicas": 1, "selector": { "matchLabels": marks }, "template": pod },
            }),
        )
        .await?;
        deployed.become_itself().await?;
        Ok(deployed)
    }

    /// From now on the agent is its service account.
    async fn become_itself(&mut self) -> Result<()> {
        let request: TokenRequest = parse(json!({ "spec": { "expirationSeconds": 600 } }));
        let accounts = self.all::<ServiceAccount>();
        let params = PostParams::default();
        let issued: TokenRequest =
            accounts.create_subresource("token", NAME, &params, &request).await?;
        let token = issued.status.and_then(|status| status.token).context("a token was issued")?;
        let cluster = &self.party.fleet.world.clusters[0];
        self.agent = cluster.client_with(Credentials::Token(token)).await?;
        // A server may hear of rights a moment later.
        let namespaces: Api<Namespace> = Api::all(self.agent.clone());
        eventually("the agent's rights", || async {
            Ok(namespaces.get_opt(&self.home).await.ok().flatten())
        })
        .await?;
        self.party.stop_agent().await;
        self.party.start_agent_on(self.agent.clone());
        Ok(())
    }

    fn all<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = kube::core::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.party.cluster.clone(), &self.home)
    }

    fn bindings(&self) -> Api<ClusterRoleBinding> {
        Api::all(self.party.cluster.clone())
    }

    /// Leaves, and waits until nothing of the agent but its namespace can be there.
    async fn leave(&mut self) -> Result<()> {
        self.party.leave().await?;
        self.party.left().await?;
        within("the agent to end", self.party.presence.until_left()).await?;
        eventually("the agent's parts to go", || async {
            let parts = [
                self.all::<Secret>().get_opt(CREDENTIALS).await?.is_some(),
                self.all::<Secret>().get_opt(BOOTSTRAP).await?.is_some(),
                self.all::<Deployment>().get_opt(NAME).await?.is_some(),
                self.all::<ServiceAccount>().get_opt(NAME).await?.is_some(),
                self.bindings().get_opt(&binding_name(&self.home)).await?.is_some(),
            ];
            Ok((parts == [false; 5]).then_some(()))
        })
        .await?;
        let namespaces: Api<Namespace> = Api::all(self.agent.clone());
        eventually("the agent's rights to end", || async {
            Ok(namespaces.get_opt("default").await.is_err().then_some(()))
        })
        .await?;
        self.party.stop_agent().await;
        Ok(())
    }
}

#[tokio::test]
async fn a_deployed_agent_takes_itself_away() -> Result<()> {
    let mut deployed = Deployed::new("deployed").await?;
    let party = &deployed.party;
    party.work("w", vec![party.map("a")], json!({})).await?;
    deployed.leave().await?;
    assert!(deployed.party.maps().get_opt("a").await?.is_none());
    let namespaces: Api<Namespace> = Api::all(deployed.party.cluster.clone());
    eventually("its namespace to go", || async {
        Ok(namespaces.get_opt(&deployed.home).await?.is_none().then_some(()))
    })
    .await
}

#[tokio::test]
async fn a_deployed_agent_leaves_a_namespace_in_which_others_have_something() -> Result<()> {
    let mut deployed = Deployed::new("lodger").await?;
    create(&deployed.all::<ConfigMap>(), json!({ "metadata": { "name": "theirs" } })).await?;
    deployed.leave().await?;
    deployed.all::<ConfigMap>().get("theirs").await?;
    let namespaces: Api<Namespace> = Api::all(deployed.party.cluster.clone());
    let home = namespaces.get(&deployed.home).await?;
    assert_eq!(home.metadata.deletion_timestamp, None);
    Ok(())
}
