//! Definitions on a cluster that leaves: one of which others have objects stays, as a namespace does in
//! which they have something.

use anyhow::{Context as _, Result};
use cleat_api::managedcluster::RemoveStrategy::Required;
use cleat_api::removalpreview::PreviewVerdict;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::ResourceExt as _;
use kube::api::{Api, ApiResource, DynamicObject};
use kube::core::GroupVersionKind;
use serde_json::json;

use super::party::Party;
use super::policies::template;
use super::required::{definition, gear};
use crate::{create, delete};

/// What a test makes of gears.
struct Workshop {
    group: String,
    definitions: Api<CustomResourceDefinition>,
    gears: Api<DynamicObject>,
}

impl Workshop {
    fn of(party: &Party) -> Self {
        let group = format!("{}.example", party.name);
        let kind = GroupVersionKind::gvk(&group, "v1", "Gear");
        let kind = ApiResource::from_gvk_with_plural(&kind, "gears");
        Self {
            group,
            definitions: Api::all(party.cluster.clone()),
            gears: Api::namespaced_with(party.cluster.clone(), &party.name, &kind),
        }
    }

    fn definition(&self) -> String {
        format!("gears.{}", self.group)
    }

    fn why(&self, party: &Party) -> String {
        format!("it holds what is not ours: gears.{} {}/g", self.group, party.name)
    }

    /// The gear and its definition are as they were, and bear no mark of ours.
    async fn still_has(&self, gear: &DynamicObject) -> Result<()> {
        let definition = self.definitions.get(&self.definition()).await;
        let definition = definition.context("somebody has objects of it")?;
        assert_eq!(definition.metadata.deletion_timestamp, None);
        assert_eq!(definition.owner_references(), []);
        let live = self.gears.get("g").await.context("it went with its definition")?;
        assert_eq!((live.uid(), &live.metadata.deletion_timestamp), (gear.uid(), &None));
        assert_eq!(live.owner_references(), []);
        Ok(())
    }

    /// Tests share real servers.
    async fn close(&self) -> Result<()> {
        delete(&self.definitions, &self.definition()).await
    }
}

/// The work that keeps it goes first, since it needs what the other brings, and its ledger with it.
#[tokio::test]
async fn what_a_work_kept_went_with_the_definition_that_another_brought() -> Result<()> {
    let mut party = Party::new("definer", Required).await?;
    let shop = Workshop::of(&party);
    party.work("ground", vec![definition(&shop.group)], json!({})).await?;
    let orphan = json!({ "deleteOption": { "propagationPolicy": "Orphan" } });
    party.work("gears", vec![gear(&shop.group, &party.name)], orphan).await?;
    let kept = shop.gears.get("g").await?;
    let foreseen = party.foreseen("Required").await?;
    let told: Vec<_> = foreseen.iter().map(|one| (&*one.name, one.verdict)).collect();
    let definition = shop.definition();
    let expected = [("g", PreviewVerdict::Orphan), (&*definition, PreviewVerdict::Keep)];
    assert!(expected.iter().all(|one| told.contains(one)) && told.len() == 2, "{foreseen:?}");
    party.leave().await?;
    party.left().await?;
    party.no_ledgers().await?;
    shop.still_has(&kept).await?;
    let left = party.on_record().await?;
    let mut listed: Vec<_> = left.iter().map(|one| (&*one.name, &*one.why)).collect();
    listed.sort();
    let why = shop.why(&party);
    assert_eq!(listed, [("g", "kept by deleteOption"), (&*definition, &*why)]);
    party.stop_agent().await;
    shop.close().await
}

#[tokio::test]
async fn what_people_had_made_of_a_definition_went_with_the_policy_that_brought_it() -> Result<()> {
    let mut party = Party::new("definep", Required).await?;
    let shop = Workshop::of(&party);
    let brings = template("definition", "DeleteIfCreated", definition(&shop.group));
    party.enforced(party.replica_of("root.p", vec![brings])).await?;
    let theirs = create(&shop.gears, gear(&shop.group, &party.name)).await?;
    let (definition, why) = (shop.definition(), shop.why(&party));
    let foreseen = party.foreseen("Required").await?;
    let told: Vec<_> = foreseen.iter().map(|one| (&*one.name, one.verdict, &*one.why)).collect();
    assert_eq!(told, [(&*definition, PreviewVerdict::Keep, &*why)]);
    party.leave().await?;
    party.left().await?;
    party.no_policies().await?;
    shop.still_has(&theirs).await?;
    let left = party.on_record().await?;
    let left = left.iter().filter(|one| one.part.is_none());
    let listed: Vec<_> = left.map(|one| (&*one.name, &*one.why)).collect();
    assert_eq!(listed, [(&*definition, &*why)]);
    party.stop_agent().await;
    shop.close().await
}

#[tokio::test]
async fn what_people_had_made_of_a_definition_went_when_its_record_was_worked_off() -> Result<()> {
    let mut party = Party::new("definec", Required).await?;
    let shop = Workshop::of(&party);
    party.work("ground", vec![definition(&shop.group), party.map("m")], json!({})).await?;
    party.lose().await?;
    let theirs = create(&shop.gears, gear(&shop.group, &party.name)).await?;
    let report = party.clean(false).await?;
    assert_eq!((report.gone, report.stays.len(), report.stuck), (1, 1, vec![]));
    shop.still_has(&theirs).await?;
    party.absent("m").await?;
    party.no_ledgers().await?;
    shop.close().await
}
