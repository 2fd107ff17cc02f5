//! Records of lost clusters, worked off when the cluster is back.

use anyhow::{Context as _, Result};
use cleat_agent::leave::clean::{Clean, clean};
use cleat_agent::registration::Keep;
use cleat_agent::work::hub_hash;
use cleat_api::appliedmanifestwork::AppliedManifestWork;
use cleat_api::leftoverrecord::LeftoverRecord;
use cleat_api::managedcluster::RemoveStrategy::{Needless, Required};
use cleat_core::leave::clean::Report;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::ResourceExt as _;
use kube::api::{Api, ListParams, Patch};
use serde_json::{Value, json};

use super::party::Party;
use super::required::{definition, gear};
use crate::protection::Kept;
use crate::{create, delete, gone};

impl Party {
    /// The cluster is lost, and said to be.
    pub(super) async fn lose(&mut self) -> Result<()> {
        self.stop_agent().await;
        let declare = json!({ "metadata": { "annotations": {
            "cleat.dev/cluster-destroyed": self.name,
        } } });
        self.fleet.patch(&self.name, declare).await?;
        self.leave().await?;
        self.left().await
    }

    pub(super) async fn records(&self) -> Result<Vec<LeftoverRecord>> {
        let records: Api<LeftoverRecord> = Api::all(self.fleet.hub.clone());
        let all = records.list(&ListParams::default()).await?.items;
        Ok(all.into_iter().filter(|one| one.spec.cluster == self.name).collect())
    }

    /// The cluster is back, and its record is worked off.
    pub(super) async fn clean(&self, include_kept: bool) -> Result<Report> {
        self.clean_with(include_kept, None).await
    }

    /// With its agent, if it has its credentials somewhere.
    pub(super) async fn clean_with(
        &self,
        include_kept: bool,
        agent: Option<Keep>,
    ) -> Result<Report> {
        let job = Clean {
            hub_client: self.fleet.hub.clone(),
            cluster_client: self.cluster.clone(),
            cluster_id: format!("id-of-{}", self.name),
            records: self.records().await?,
            include_kept,
            // Its ledgers are named after another address than its credentials.
            hub_server: self.credentials.as_ref().map(|kept| kept.hub.server.clone()),
            agent,
        };
        Ok(clean(job, |_, _| {}).await?)
    }

    /// What the record says of how far it was worked off.
    pub(super) async fn cleaned(&self) -> Result<Option<[String; 2]>> {
        let records = self.records().await?;
        let said = records.into_iter().filter_map(|one| one.status).flat_map(|one| one.conditions);
        let mut said = said.filter(|one| one.type_ == "Cleaned");
        Ok(said.next().map(|one| [one.status, one.message]))
    }

    fn ledgers(&self) -> Api<AppliedManifestWork> {
        Api::all(self.cluster.clone())
    }

    fn ledger(&self, work: &str) -> String {
        format!("{}-{work}", hub_hash(&self.address()))
    }
}

fn stays(report: &Report) -> Vec<String> {
    report.stays.iter().map(|(id, _)| id.name.clone()).collect()
}

#[tokio::test]
async fn what_a_work_declared_to_keep_was_deleted_because_the_cluster_was_declared_destroyed()
-> Result<()> {
    let mut party = Party::new("declared", Required).await?;
    let orphan = json!({ "deleteOption": { "propagationPolicy": "Orphan" } });
    party.work("data", vec![party.map("kept")], orphan).await?;
    party.work("web", vec![party.map("goes")], json!({})).await?;
    party.lose().await?;
    assert_eq!(party.records().await?[0].spec.hub_hash, hub_hash(&party.address()));
    let report = party.clean(false).await?;
    assert_eq!((stays(&report), report.stuck), (vec!["kept".to_owned()], vec![]));
    party.maps().get("kept").await.context("its work said to keep it")?;
    assert!(party.maps().get_opt("goes").await?.is_none());
    party.no_ledgers().await?;
    let said = party.cleaned().await?.context("nobody said how far it got")?;
    assert_eq!(said, ["True", "Everything is gone but one object, which stays."]);
    // Whoever wants it gone says so.
    let report = party.clean(true).await?;
    assert_eq!((report.stays, report.stuck), (vec![], vec![]));
    party.absent("kept").await
}

#[tokio::test]
async fn a_silent_cluster_of_which_nothing_was_to_be_removed_was_emptied_later() -> Result<()> {
    let mut party = Party::new("silently", Needless).await?;
    party.work("web", vec![party.map("m")], json!({})).await?;
    party.link.cut();
    party.leave().await?;
    party.left().await?;
    party.stop_agent().await;
    let report = party.clean(false).await?;
    assert_eq!((stays(&report), report.stuck), (vec!["m".to_owned()], vec![]));
    let kept = party.maps().get("m").await.context("nothing was to be removed")?;
    assert_eq!(kept.metadata.owner_references.unwrap_or_default(), []);
    party.no_ledgers().await
}

#[tokio::test]
async fn closing_a_ledger_that_was_going_gave_the_collector_a_namespace_with_foreign_content()
-> Result<()> {
    let mut party = Party::new("collected", Required).await?;
    let inner = format!("{}-in", party.name);
    let namespace =
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": inner } });
    let mut ours = party.map("ours");
    ours["metadata"]["namespace"] = json!(inner);
    party.work("ground", vec![namespace, ours], json!({})).await?;
    party.stop_agent().await;
    // As if the agent had begun to remove it.
    delete(&party.ledgers(), &party.ledger("ground")).await?;
    party.lose().await?;
    let maps: Api<ConfigMap> = Api::namespaced(party.cluster.clone(), &inner);
    create(&maps, json!({ "metadata": { "name": "theirs" } })).await?;
    let ledger = party.ledgers().get(&party.ledger("ground")).await?;
    let report = party.clean(false).await?;
    assert_eq!((stays(&report), report.stuck), (vec![inner.clone()], vec![]));
    gone(&party.ledgers(), &ledger).await?;
    assert!(maps.get_opt("ours").await?.is_none());
    maps.get("theirs").await.context("it is not ours")?;
    let namespaces: Api<Namespace> = Api::all(party.cluster.clone());
    let kept = namespaces.get(&inner).await?;
    assert_eq!(kept.metadata.owner_references.unwrap_or_default(), []);
    assert!(kept.metadata.deletion_timestamp.is_none());
    Ok(())
}

#[tokio::test]
async fn a_ledger_of_another_hub_with_a_work_of_the_same_name_was_closed_with_ours() -> Result<()> {
    let mut party = Party::new("neighbour", Required).await?;
    party.work("web", vec![party.map("shared"), party.map("own")], json!({})).await?;
    let shared = party.maps().get("shared").await?;
    let hash = hub_hash(&format!("https://other.hub.of.{}", party.name));
    let theirs = create(
        &party.ledgers(),
        json!({
            "apiVersion": "work.open-cluster-management.io/v1", "kind": "AppliedManifestWork",
            "metadata": { "name": format!("{hash}-web") },
            "spec": { "hubHash": hash, "agentID": "other", "manifestWorkName": "web" },
        }),
    )
    .await?;
    let listed = json!({ "status": { "appliedResources": [{
        "version": "v1", "resource": "configmaps", "namespace": party.name, "name": "shared",
        "uid": shared.uid(),
    }] } });
    let name = theirs.name_any();
    party.ledgers().patch_status(&name, &Default::default(), &Patch::Merge(listed)).await?;
    let owners = serde_json::to_value(shared.metadata.owner_references)?;
    let mut owners: Vec<Value> = owners.as_array().cloned().unwrap_or_default();
    owners.push(json!({
        "apiVersion": "work.open-cluster-management.io/v1", "kind": "AppliedManifestWork",
        "name": name, "uid": theirs.metadata.uid,
    }));
    let patch = json!({ "metadata": { "ownerReferences": owners } });
    party.maps().patch("shared", &Default::default(), &Patch::Merge(patch)).await?;
    party.lose().await?;
    let report = party.clean(false).await?;
    assert_eq!((stays(&report), report.stuck), (vec!["shared".to_owned()], vec![]));
    let shared = party.maps().get("shared").await.context("the other hub holds it")?;
    let owners = shared.metadata.owner_references.unwrap_or_default();
    assert_eq!(owners.iter().map(|one| &*one.name).collect::<Vec<_>>(), [&*name]);
    assert!(party.maps().get_opt("own").await?.is_none());
    let theirs = party.ledgers().get(&name).await.context("it is another hub's")?;
    assert!(theirs.metadata.deletion_timestamp.is_none());
    party.no_ledgers().await?;
    delete(&party.ledgers(), &name).await
}

#[tokio::test]
async fn a_record_with_a_definition_and_its_resource_never_came_to_an_end() -> Result<()> {
    let mut party = Party::new("defined", Required).await?;
    let group = format!("{}.example", party.name);
    party.work("ground", vec![definition(&group)], json!({})).await?;
    party.work("gears", vec![gear(&group, &party.name)], json!({})).await?;
    party.lose().await?;
    let report = party.clean(false).await?;
    assert_eq!((report.gone, report.stays, report.stuck), (2, vec![], vec![]));
    let definitions: Api<CustomResourceDefinition> = Api::all(party.cluster.clone());
    assert!(definitions.get_opt(&format!("gears.{group}")).await?.is_none());
    party.no_ledgers().await
}

#[tokio::test]
async fn a_definition_that_was_gone_before_kept_the_rest_of_a_record_for_ever() -> Result<()> {
    let mut party = Party::new("undefine", Required).await?;
    let group = format!("{}.example", party.name);
    party.work("ground", vec![definition(&group)], json!({})).await?;
    party.work("gears", vec![gear(&group, &party.name), party.map("m")], json!({})).await?;
    party.lose().await?;
    let definitions: Api<CustomResourceDefinition> = Api::all(party.cluster.clone());
    let crd = definitions.get(&format!("gears.{group}")).await?;
    delete(&definitions, &crd.name_any()).await?;
    gone(&definitions, &crd).await?;
    let report = party.clean(false).await?;
    assert_eq!((report.gone, report.stays, report.stuck), (3, vec![], vec![]));
    party.absent("m").await?;
    party.no_ledgers().await
}

#[tokio::test]
async fn a_record_with_a_provider_and_what_it_waits_for_never_came_to_an_end() -> Result<()> {
    let mut party = Party::new("provider", Required).await?;
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": { "name": "needer", "namespace": party.name }, "rules": [],
    });
    party.work("w", vec![party.map("kept"), role], json!({})).await?;
    // Roles go after config maps, and this config map goes after a role.
    let needer = json!({
        "group": "rbac.authorization.k8s.io", "resource": "roles", "namespace": party.name,
        "name": "needer",
    });
    let protected =
        Kept::needed_by(&needer, &party.fleet.world, &party.cluster, &party.name).await?;
    party.lose().await?;
    let report = party.clean(false).await?;
    assert_eq!((report.gone, report.stays, report.stuck), (2, vec![], vec![]));
    party.absent("kept").await?;
    party.no_ledgers().await?;
    protected.end().await
}
