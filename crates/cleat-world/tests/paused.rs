//! Hours pass at once. Runs on embedded servers only: nobody can pause the time of another process.

use std::pin::pin;
use std::time::Duration;

use anyhow::{Context as _, Result};
use cleat_world::{World, within};
use futures::TryStreamExt as _;
use k8s_openapi::api::authentication::v1::{SelfSubjectReview, TokenRequest};
use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
use kube::api::{Api, PostParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Client, ResourceExt as _};
use serde_json::json;

const HOUR: Duration = Duration::from_secs(60 * 60);

#[tokio::test(start_paused = true)]
async fn on_embedded_servers_a_watcher_outlives_a_day() -> Result<()> {
    let begun = std::time::Instant::now();
    let world = World::start().await?;
    let maps: Api<ConfigMap> = Api::default_namespaced(world.hub.client());
    let events = watcher(maps.clone(), watcher::Config::default()).applied_objects();
    let mut events = pin!(events);
    let mut names = Vec::new();
    for number in 0..24 {
        let map: ConfigMap =
            serde_json::from_value(json!({ "metadata": { "name": format!("map-{number:02}") } }))?;
        let writing = async {
            tokio::time::sleep(HOUR).await;
            maps.create(&PostParams::default(), &map).await
        };
        let reading = async {
            loop {
                let seen =
                    within_a_day(events.try_next()).await??.context("watchers do not end")?;
                if seen.name_any().starts_with("map-") {
                    return anyhow::Ok(seen.name_any());
                }
            }
        };
        let (written, read) = tokio::join!(writing, reading);
        let written = written?;
        assert_eq!(read?, written.name_any());
        names.push(written);
    }
    let time = |map: &ConfigMap| map.creation_timestamp().map(|time| time.0.as_second());
    let (first, last) = (time(&names[0]).unwrap(), time(&names[23]).unwrap());
    assert!((23 * 3600..23 * 3600 + 60).contains(&(last - first)), "{}", last - first);
    assert!(begun.elapsed() < Duration::from_secs(60));
    Ok(())
}

async fn within_a_day<T>(future: impl Future<Output = T>) -> Result<T> {
    Ok(tokio::time::timeout(24 * HOUR, future).await?)
}

#[tokio::test(start_paused = true)]
async fn on_embedded_servers_a_token_expires_in_its_time() -> Result<()> {
    let world = World::start().await?;
    let accounts: Api<ServiceAccount> = Api::default_namespaced(world.hub.client());
    let found = kube::runtime::wait::await_condition(
        accounts.clone(),
        "default",
        |account: Option<&ServiceAccount>| account.is_some(),
    );
    within("the default account", found).await??;
    let request: TokenRequest =
        serde_json::from_value(json!({ "spec": { "expirationSeconds": 3600 } }))?;
    let issued: TokenRequest =
        accounts.create_subresource("token", "default", &PostParams::default(), &request).await?;
    let token = issued.status.and_then(|status| status.token).context("a token")?;
    let server = world.hub.server().context("this needs an embedded server")?;
    let client = Client::new(server.public_router(), "default");
    let who = || async {
        let request = http::Request::post("/apis/authentication.k8s.io/v1/selfsubjectreviews")
            .header("authorization", format!("Bearer {token}"))
            .header("content-type", "application/json")
            .body(b"{}".to_vec())?;
        anyhow::Ok(client.request::<SelfSubjectReview>(request).await)
    };
    who().await??;
    tokio::time::sleep(HOUR / 2).await;
    who().await??;
    // Clocks may differ by a minute.
    tokio::time::sleep(HOUR / 2 + Duration::from_secs(120)).await;
    match who().await? {
        Err(kube::Error::Api(status)) => assert_eq!(status.code, 401),
        other => panic!("{other:?}"),
    }
    Ok(())
}
