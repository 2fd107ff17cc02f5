//! An agent that runs in its cluster takes itself away: its Deployment, its rights, its namespace. It has
//! the rights that it takes away, and no others.

use anyhow::{Context as _, Result};
use cleat_agent::registration::Keep;
use cleat_api::managedcluster::RemoveStrategy::Required;
use cleat_api::managedcluster::{AGENT_NAMESPACE_CLAIM, ManagedCluster};
use cleat_core::leave::clean::id;
use cleat_core::leave::parts::{BOOTSTRAP, CREDENTIALS, NAME, binding_name, namespace_on_record};
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
use crate::clusters::executor;
use crate::{create, parse, seen};

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
        self.without_parts().await?;
        let namespaces: Api<Namespace> = Api::all(self.agent.clone());
        eventually("the agent's rights to end", || async {
            Ok(namespaces.get_opt("default").await.is_err().then_some(()))
        })
        .await?;
        self.party.stop_agent().await;
        Ok(())
    }

    /// Nothing of the agent but its namespace is there.
    async fn without_parts(&self) -> Result<()> {
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
        .await
    }
}

#[tokio::test]
async fn the_agent_of_a_lost_cluster_was_on_no_record() -> Result<()> {
    let mut deployed = Deployed::new("lostagent").await?;
    let home = deployed.home.clone();
    seen(&deployed.party.fleet.clusters(), &deployed.party.name, |one: &ManagedCluster| {
        let mut claims = one.status.iter().flat_map(|status| &status.cluster_claims);
        claims.any(|claim| claim.name == AGENT_NAMESPACE_CLAIM && claim.value == home)
    })
    .await
    .context("the hub was not told where the agent lives")?;
    deployed.party.lose().await?;
    let binding = binding_name(&home);
    let own = [
        format!("secrets {home}/{BOOTSTRAP}"),
        format!("secrets {home}/{CREDENTIALS}"),
        format!("serviceaccounts {home}/{NAME}"),
        format!("namespaces {home}"),
        format!("deployments.apps {home}/{NAME}"),
        format!("clusterrolebindings.rbac.authorization.k8s.io {binding}"),
    ];
    let left = deployed.party.on_record().await?;
    let left: Vec<String> = left.iter().map(|one| id(one).to_string()).collect();
    assert!(own.iter().all(|one| left.contains(one)) && left.len() == own.len(), "{left:?}");
    let report = deployed.party.clean(false).await?;
    let there: Vec<String> = report.agent.iter().map(ToString::to_string).collect();
    assert!(own.iter().all(|one| there.contains(one)), "{there:?}");
    assert_eq!((report.stays, report.stuck), (vec![], vec![]));
    deployed.all::<Deployment>().get(NAME).await.context("nobody asked for it")?;
    let [status, said] = deployed.party.cleaned().await?.context("nobody said how far it got")?;
    assert_eq!(status, "False");
    assert!(own.iter().all(|one| said.contains(one)), "it is said to be gone: {said}");
    // As `--agent` does, with what is on record.
    let records = deployed.party.records().await?;
    let namespace = namespace_on_record(&records).context("where does it live?")?.to_owned();
    let report = deployed.party.clean_with(true, Some(Keep::Secret { namespace })).await?;
    assert_eq!((report.agent, report.stays, report.stuck), (vec![], vec![], vec![]));
    let namespaces: Api<Namespace> = Api::all(deployed.party.cluster.clone());
    assert!(namespaces.get_opt(&home).await?.is_none(), "it was said to be gone");
    let said = deployed.party.cleaned().await?.context("nobody said how far it got")?;
    assert_eq!(said, ["True", "Everything is gone."]);
    deployed.without_parts().await
}

#[tokio::test]
async fn cleaning_took_the_agent_of_a_cluster_away_that_had_joined_again() -> Result<()> {
    let mut deployed = Deployed::new("againagent").await?;
    deployed.party.lose().await?;
    deployed.party.join_again(Required).await?;
    let party = &deployed.party;
    party.work("w", vec![party.map("m")], json!({})).await?;
    let keep = Keep::Secret { namespace: deployed.home.clone() };
    let refused = party.clean_with(false, Some(keep)).await.err().context("it was not refused")?;
    let expected = format!("this cluster is joined as {}, and --agent would", party.name);
    assert!(refused.to_string().starts_with(&expected), "{refused}");
    assert_eq!(party.cleaned().await?, None, "nothing was done");
    deployed.all::<Deployment>().get(NAME).await?;
    deployed.all::<ServiceAccount>().get(NAME).await?;
    deployed.bindings().get(&binding_name(&deployed.home)).await?;
    party.maps().get("m").await?;
    deployed.party.stop_agent().await;
    Ok(())
}

/// It was declared destroyed, came back, and joined another hub in the same place.
#[tokio::test]
async fn cleaning_took_the_agent_of_another_hub_away() -> Result<()> {
    let mut deployed = Deployed::new("theiragent").await?;
    deployed.party.lose().await?;
    let party = &deployed.party;
    let mut theirs = party.credentials.clone().context("it joined")?;
    theirs.hub.server = "https://hub.of.others".to_owned();
    let keep = Keep::Secret { namespace: deployed.home.clone() };
    keep.save(&executor(None, Some(party.cluster.clone())), &theirs).await?;
    let refused = party.clean_with(false, Some(keep)).await.err().context("it was not refused")?;
    let refused = refused.to_string();
    let expected =
        format!("the namespace {} of this cluster is the agent of https://hub.of.o", deployed.home);
    assert!(refused.contains(&expected) && refused.contains("--agent-namespace"), "{refused}");
    assert_eq!(party.cleaned().await?, None, "nothing was done");
    deployed.all::<Secret>().get(CREDENTIALS).await?;
    deployed.all::<Deployment>().get(NAME).await?;
    deployed.bindings().get(&binding_name(&deployed.home)).await?;
    // Nothing of its own is left for the record to wait for.
    let report = party.clean(false).await?;
    assert!(report.agent.is_empty() && report.stuck.is_empty(), "{report:?}");
    assert!(
        report.stays.iter().all(|(_, why)| why.contains("https://hub.of.others")),
        "{report:?}"
    );
    let [status, _] = party.cleaned().await?.context("nobody said how far it got")?;
    assert_eq!(status, "True");
    Ok(())
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
