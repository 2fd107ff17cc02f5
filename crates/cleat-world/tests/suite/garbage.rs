//! Dependents follow their owners, in the way the deletion asked for.

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use kube::{Resource as _, ResourceExt as _};
use serde_json::{Value, json};

use crate::{Place, create, gone, seen};

/// A reference to `owner` that foreground deletion waits for.
fn owned_by(owner: &ConfigMap) -> Value {
    let mut reference = json!(owner.owner_ref(&()).unwrap());
    reference["blockOwnerDeletion"] = json!(true);
    reference
}

/// An owner, and a dependent that somebody holds or not.
async fn family(place: &Place, finalizers: Value) -> Result<(ConfigMap, ConfigMap)> {
    let owner = place.config_map("owner").await?;
    let metadata = json!({
        "name": "dependent",
        "ownerReferences": [owned_by(&owner)],
        "finalizers": finalizers,
    });
    let dependent = create(&place.api(), json!({ "metadata": metadata })).await?;
    Ok((owner, dependent))
}

async fn release(maps: &Api<ConfigMap>, name: &str) -> Result<()> {
    let none = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    maps.patch(name, &PatchParams::default(), &none).await?;
    Ok(())
}

#[tokio::test]
async fn in_the_background_the_owner_goes_first() -> Result<()> {
    let place = Place::new("garbage").await?;
    let maps: Api<ConfigMap> = place.api();
    let (owner, dependent) = family(&place, json!(["cleat.example/hold"])).await?;
    maps.delete("owner", &DeleteParams::background()).await?;
    gone(&maps, &owner).await?;
    let leaving = |map: &ConfigMap| map.metadata.deletion_timestamp.is_some();
    seen(&maps, "dependent", leaving).await?;
    release(&maps, "dependent").await?;
    gone(&maps, &dependent).await
}

#[tokio::test]
async fn in_the_foreground_the_owner_waits() -> Result<()> {
    let place = Place::new("garbage").await?;
    let maps: Api<ConfigMap> = place.api();
    let (owner, dependent) = family(&place, json!(["cleat.example/hold"])).await?;
    maps.delete("owner", &DeleteParams::foreground()).await?;
    let leaving = |map: &ConfigMap| map.metadata.deletion_timestamp.is_some();
    seen(&maps, "dependent", leaving).await?;
    let waiting = maps.get("owner").await?;
    assert_eq!(waiting.finalizers(), ["foregroundDeletion"]);
    assert!(waiting.metadata.deletion_timestamp.is_some());
    release(&maps, "dependent").await?;
    gone(&maps, &dependent).await?;
    gone(&maps, &owner).await
}

#[tokio::test]
async fn orphans_stay_and_forget_their_owner() -> Result<()> {
    let place = Place::new("garbage").await?;
    let maps: Api<ConfigMap> = place.api();
    let (owner, dependent) = family(&place, json!(null)).await?;
    maps.delete("owner", &DeleteParams::orphan()).await?;
    gone(&maps, &owner).await?;
    let orphan = seen(&maps, "dependent", |map| map.owner_references().is_empty()).await?;
    assert_eq!(orphan.uid(), dependent.uid());
    assert_eq!(orphan.metadata.deletion_timestamp, None);
    Ok(())
}

#[tokio::test]
async fn one_of_two_owners_keeps_a_dependent() -> Result<()> {
    let place = Place::new("garbage").await?;
    let maps: Api<ConfigMap> = place.api();
    let one = place.config_map("one").await?;
    let two = place.config_map("two").await?;
    let owners = json!([owned_by(&one), owned_by(&two)]);
    let metadata = json!({ "name": "dependent", "ownerReferences": owners });
    let dependent = create(&maps, json!({ "metadata": metadata })).await?;
    maps.delete("one", &DeleteParams::background()).await?;
    let left = seen(&maps, "dependent", |map| map.owner_references().len() == 1).await?;
    let left = left.owner_references().first().context("one owner is left")?;
    assert_eq!(left.name, "two");
    maps.delete("two", &DeleteParams::background()).await?;
    gone(&maps, &dependent).await
}

#[tokio::test]
async fn who_claims_an_owner_that_never_was_goes() -> Result<()> {
    let place = Place::new("garbage").await?;
    let maps: Api<ConfigMap> = place.api();
    let owner = place.config_map("owner").await?;
    let mut reference = owned_by(&owner);
    reference["uid"] = json!("00000000-0000-4000-8000-000000000000");
    let metadata = json!({ "name": "dependent", "ownerReferences": [reference] });
    let dependent = create(&maps, json!({ "metadata": metadata })).await?;
    gone(&maps, &dependent).await?;
    assert_eq!(maps.get("owner").await?.uid(), owner.uid());
    Ok(())
}
