//! Lists come in pages that belong together.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, ListParams};
use serde_json::json;

use crate::{Place, create, refusal, seen};

/// A namespace with `count` labelled objects; real servers put more into each.
async fn filled(count: usize) -> Result<(Place, Api<ConfigMap>, ListParams)> {
    let place = Place::new("lists").await?;
    let maps: Api<ConfigMap> = place.api();
    for number in 0..count {
        let name = format!("map-{number}");
        let labels = json!({ "kind": "counted" });
        create(&maps, json!({ "metadata": { "name": name, "labels": labels } })).await?;
    }
    Ok((place, maps, ListParams::default().labels("kind=counted")))
}

#[tokio::test]
async fn pages_show_everything_once_as_it_was_at_the_first() -> Result<()> {
    let (place, maps, mut params) = filled(5).await?;
    params = params.limit(2);
    let first = maps.list(&params).await?;
    let version = first.metadata.resource_version.clone().context("lists have a version")?;
    // The later pages must not notice these.
    maps.delete("map-4", &DeleteParams::default()).await?;
    place.config_map("map-9").await?;
    let mut names: BTreeSet<String> = first.items.iter().map(ConfigMap::name_any).collect();
    let mut next = first.metadata.continue_;
    while let Some(token) = next.filter(|token| !token.is_empty()) {
        let page = maps.list(&params.clone().continue_token(&token)).await?;
        assert_eq!(page.metadata.resource_version.as_ref(), Some(&version));
        assert!(page.items.len() <= 2);
        for item in page.items {
            assert!(names.insert(item.name_any()), "{} twice", item.name_any());
        }
        next = page.metadata.continue_;
    }
    let all: BTreeSet<String> = (0..5).map(|number| format!("map-{number}")).collect();
    assert_eq!(names, all);
    Ok(())
}

#[tokio::test]
async fn a_page_says_how_many_are_left() -> Result<()> {
    let place = Place::new("lists").await?;
    for number in 0..5 {
        place.config_map(&format!("map-{number}")).await?;
    }
    let maps: Api<ConfigMap> = place.api();
    // What every namespace is given must not come between the two lists.
    seen(&maps, "kube-root-ca.crt", |_| true).await?;
    let total = maps.list(&ListParams::default()).await?.items.len();
    let page = maps.list(&ListParams::default().limit(2)).await?;
    assert_eq!(page.items.len(), 2);
    assert_eq!(page.metadata.remaining_item_count, Some(i64::try_from(total)? - 2));
    Ok(())
}

#[tokio::test]
async fn rubbish_does_not_continue_a_list() -> Result<()> {
    let (_place, maps, params) = filled(1).await?;
    let status = refusal(maps.list(&params.limit(1).continue_token("rubbish")).await);
    assert_eq!((status.code, &*status.reason), (400, "BadRequest"));
    Ok(())
}

#[tokio::test]
async fn fields_select_too() -> Result<()> {
    let (place, maps, _) = filled(3).await?;
    let one = maps.list(&ListParams::default().fields("metadata.name=map-1")).await?;
    assert_eq!(one.items.iter().map(ConfigMap::name_any).collect::<Vec<_>>(), ["map-1"]);
    let everywhere: Api<ConfigMap> = Api::all(place.client.clone());
    let here = format!("metadata.namespace={},metadata.name!=map-1", place.namespace);
    let params = ListParams::default().fields(&here).labels("kind=counted");
    assert_eq!(everywhere.list(&params).await?.items.len(), 2);
    let wrong = maps.list(&ListParams::default().fields("data.x=1")).await;
    assert_eq!(refusal(wrong).code, 400);
    Ok(())
}

#[tokio::test]
async fn deleting_a_collection_takes_what_is_selected() -> Result<()> {
    let (place, maps, params) = filled(3).await?;
    place.config_map("spared").await?;
    maps.delete_collection(&DeleteParams::default(), &params).await?;
    assert!(maps.list(&params).await?.items.is_empty());
    assert!(maps.get_opt("spared").await?.is_some());
    Ok(())
}
