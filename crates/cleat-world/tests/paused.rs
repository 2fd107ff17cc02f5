//! Hours pass at once. Runs on embedded servers only: nobody can pause the time of another process.

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result};
use cleat_core::id::{Id, Target};
use cleat_runtime::follow::{Follow, Scope};
use cleat_runtime::mirror::{Look, Mirror, Reason};
use cleat_runtime::tasks::Tasks;
use cleat_world::world::Cluster;
use cleat_world::{World, within};
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::authentication::v1::{SelfSubjectReview, TokenRequest};
use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
use kube::api::{Api, PostParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Client, ResourceExt as _};
use serde_json::json;
use tokio::sync::{Notify, watch};
use tower::ServiceExt as _;

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

/// A client whose requests are noted, and whose connections can all be ended: between it and the
/// server is nothing but this.
#[derive(Clone, Default)]
struct Tap {
    requests: Arc<Mutex<Vec<String>>>,
    cut: Arc<watch::Sender<bool>>,
}

impl Tap {
    fn client(&self, cluster: &Cluster) -> Result<Client> {
        let router = cluster.server().context("an embedded server")?.router();
        let tap = self.clone();
        let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
            let (tap, router) = (tap.clone(), router.clone());
            async move {
                tap.note(format!("{} {}", request.method(), request.uri()));
                if *tap.cut.borrow() {
                    return Err(std::io::Error::other("no route"));
                }
                let request = request.map(axum::body::Body::new);
                let response = router.oneshot(request).await.map_err(std::io::Error::other)?;
                let mut cut = tap.cut.subscribe();
                let end = async move { cut.wait_for(|cut| *cut).await.map(|_| ()) };
                let body = |body: axum::body::Body| {
                    axum::body::Body::from_stream(body.into_data_stream().take_until(Box::pin(end)))
                };
                Ok(response.map(body))
            }
        });
        Ok(Client::new(service, "default"))
    }

    fn note(&self, request: String) {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).push(request);
    }

    fn noted(&self) -> Vec<String> {
        std::mem::take(&mut self.requests.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn a_map() -> Target {
    let [resource, namespace, name] = ["configmaps", "default", "a"].map(ToOwned::to_owned);
    Target { version: "v1".to_owned(), id: Id { group: String::new(), resource, namespace, name } }
}

async fn make_a_map(client: Client) -> Result<()> {
    let map: ConfigMap = serde_json::from_value(json!({ "metadata": { "name": "a" } }))?;
    Api::default_namespaced(client).create(&PostParams::default(), &map).await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn on_embedded_servers_who_watches_asks_for_nothing_else_when_nothing_happens() -> Result<()>
{
    let world = World::start().await?;
    make_a_map(world.hub.client()).await?;
    let tap = Tap::default();
    let (tasks, bell) = (Tasks::new(), Arc::new(Notify::new()));
    let ring = Arc::clone(&bell);
    let client = tap.client(&world.hub)?;
    let mirror = Mirror::new(client.clone(), &tasks, move |_| ring.notify_one());
    mirror.interest("work", &BTreeSet::from([a_map()]));
    within("the mirror", bell.notified()).await?;
    let scope =
        Scope { version: "v1".to_owned(), resource: "secrets".to_owned(), ..Scope::default() };
    let follow = Follow::start(client, &tasks, scope, |_, _| ());
    within("the follower", follow.until_synced()).await?;
    tap.noted();
    tokio::time::sleep(HOUR).await;
    let noted = tap.noted();
    assert!(noted.iter().all(|request| request.contains("watch=true")), "{noted:#?}");
    assert!(noted.len() <= 2 * 16, "{} watches in an hour", noted.len());
    // Whom nobody cares about is not watched.
    mirror.interest("work", &BTreeSet::new());
    tokio::time::sleep(HOUR).await;
    let noted = tap.noted();
    let still = noted.iter().filter(|request| request.contains("configmaps")).count();
    assert!(still <= 1, "{noted:#?}");
    tasks.shutdown().await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn on_embedded_servers_a_long_silence_is_told_when_it_is_long() -> Result<()> {
    let world = World::start().await?;
    make_a_map(world.hub.client()).await?;
    let (tap, target) = (Tap::default(), a_map());
    let (tasks, bell) = (Tasks::new(), Arc::new(Notify::new()));
    let ring = Arc::clone(&bell);
    let mirror = Mirror::new(tap.client(&world.hub)?, &tasks, move |_| ring.notify_one());
    mirror.interest("work", &BTreeSet::from([target.clone()]));
    within("the mirror", bell.notified()).await?;
    let look = || mirror.look(&target.id);
    assert!(matches!(look(), Look::Present(_)));

    tap.cut.send_replace(true);
    let begun = tokio::time::Instant::now();
    within("the silence to be told", bell.notified()).await?;
    assert!(matches!(look(), Look::Unknown(Reason::Unreachable { .. })), "{:?}", look());
    let after = begun.elapsed().as_secs();
    assert!((30..=35).contains(&after), "told after {after} s");
    tap.cut.send_replace(false);
    within("the end of the silence", bell.notified()).await?;
    assert!(matches!(look(), Look::Present(_)), "{:?}", look());
    let noted = tap.noted();
    assert!(noted.len() < 40, "{noted:#?}");
    tasks.shutdown().await;
    Ok(())
}
