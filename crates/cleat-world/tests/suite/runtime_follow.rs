//! Whole objects kept up to date.

use std::sync::Arc;

use anyhow::Result;
use cleat_core::id::{Id, Target};
use cleat_core::write::{Action, Outcome, Side, Write};
use cleat_runtime::connect::connect;
use cleat_runtime::execute::{Config, Executor};
use cleat_runtime::follow::{Follow, Held, Scope};
use cleat_runtime::mirror::Reason;
use cleat_runtime::tasks::Tasks;
use cleat_world::within;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;
use tokio::sync::Notify;

use crate::{Place, create, delete};

struct Followed {
    follow: Follow,
    bell: Arc<Notify>,
    namespace: String,
    tasks: Tasks,
}

impl Followed {
    fn new(place: &Place, client: Client, labels: Option<&str>) -> Self {
        let (tasks, bell) = (Tasks::new(), Arc::new(Notify::new()));
        let ring = Arc::clone(&bell);
        let namespace = place.namespace.clone();
        let scope = Scope {
            version: "v1".to_owned(),
            resource: "configmaps".to_owned(),
            namespace: Some(namespace.clone()),
            labels: labels.map(ToOwned::to_owned),
            ..Scope::default()
        };
        let follow = Follow::start(client, &tasks, scope, move |_, _| ring.notify_one());
        Self { follow, bell, namespace, tasks }
    }

    fn get(&self, name: &str) -> Held {
        self.follow.get(&self.namespace, name)
    }

    async fn until(&self, name: &str, holds: impl Fn(&Held) -> bool) -> Result<()> {
        let waiting = async {
            while !holds(&self.get(name)) {
                self.bell.notified().await;
            }
        };
        within("the follower", waiting).await
    }

    async fn until_data(&self, name: &str, value: &str) -> Result<()> {
        self.until(name, |held| data(held).as_deref() == Some(value)).await
    }
}

fn data(held: &Held) -> Option<String> {
    let Held::Present(object) = held else { return None };
    let map: ConfigMap = object.parse().ok()?;
    map.data?.remove("k")
}

async fn set(maps: &Api<ConfigMap>, name: &str, value: &str) -> Result<()> {
    let patch = Patch::Merge(json!({ "data": { "k": value } }));
    maps.patch(name, &PatchParams::default(), &patch).await?;
    Ok(())
}

#[tokio::test]
async fn it_holds_what_is_there_and_knows_what_is_not() -> Result<()> {
    let place = Place::new("follow").await?;
    let maps: Api<ConfigMap> = place.api();
    let labelled = |name: &str| {
        json!({
            "metadata": { "name": name, "labels": { "mine": "yes" } }, "data": { "k": "1" },
        })
    };
    create(&maps, labelled("a")).await?;
    place.config_map("not-mine").await?;
    let followed = Followed::new(&place, place.client.clone(), Some("mine=yes"));
    within("the list", followed.follow.until_synced()).await?;
    assert_eq!(data(&followed.get("a")).as_deref(), Some("1"));
    assert_eq!(followed.get("b"), Held::Absent);
    assert_eq!(followed.get("not-mine"), Held::Absent);
    let Held::Present(object) = followed.get("a") else { panic!("it is there") };
    let whole: serde_json::Value = object.parse().unwrap();
    assert_eq!(whole.pointer("/metadata/managedFields"), None);

    create(&maps, labelled("b")).await?;
    set(&maps, "a", "2").await?;
    followed.until_data("b", "1").await?;
    followed.until_data("a", "2").await?;
    delete(&maps, "a").await?;
    followed.until("a", |held| *held == Held::Absent).await?;
    let names: Vec<_> = followed.follow.all().iter().map(|one| one.name.to_string()).collect();
    assert_eq!(names, ["b"]);
    assert!(followed.follow.trouble().is_none() && followed.follow.last_contact().is_some());
    within("the end", followed.tasks.shutdown()).await
}

#[tokio::test]
async fn own_writes_are_seen_at_once_and_lost_ones_are_read() -> Result<()> {
    let place = Place::new("follow").await?;
    let maps: Api<ConfigMap> = place.api();
    place.config_map("a").await?;
    let followed = Followed::new(&place, place.client.clone(), None);
    within("the list", followed.follow.until_synced()).await?;
    let executor =
        Executor::new(Config { cluster: Some(place.client.clone()), ..Config::default() });
    let id = Id {
        resource: "configmaps".to_owned(),
        namespace: place.namespace.clone(),
        name: "a".to_owned(),
        ..Id::default()
    };
    let target = Target { version: "v1".to_owned(), id };
    for round in 0..20 {
        let write = Write::Merge(json!({ "data": { "k": round.to_string() } }));
        let action = Action { side: Side::Cluster, target: target.clone(), write };
        let outcome = executor.perform(&action, &Default::default()).await;
        followed.follow.wrote(&action, &outcome);
        assert_eq!(data(&followed.get("a")), Some(round.to_string()));
    }
    set(&maps, "a", "unseen").await?;
    let action = Action { side: Side::Cluster, target, write: Write::Merge(json!({})) };
    followed.follow.wrote(&action, &Outcome::Lost("cut".to_owned()));
    followed.until_data("a", "unseen").await
}

#[tokio::test]
async fn a_cut_connection_leaves_what_was_seen_and_says_so() -> Result<()> {
    let place = Place::new("follow").await?;
    let maps: Api<ConfigMap> = place.api();
    place.config_map("a").await?;
    let (link, config) = place.world.hub.link().await?;
    link.cut();
    let followed = Followed::new(&place, connect(config, "work-agent")?, None);
    assert!(matches!(followed.get("a"), Held::Unknown(_)));
    assert!(!followed.follow.synced());
    link.restore();
    within("the list", followed.follow.until_synced()).await?;
    set(&maps, "a", "1").await?;
    followed.until_data("a", "1").await?;
    link.cut();
    set(&maps, "a", "2").await?;
    assert_eq!(data(&followed.get("a")).as_deref(), Some("1"));
    cleat_world::eventually("the cut to be noticed", || async {
        Ok(matches!(followed.follow.trouble(), Some(Reason::Unreachable { .. })).then_some(()))
    })
    .await?;
    link.restore();
    followed.until_data("a", "2").await?;
    assert!(followed.follow.trouble().is_none());
    Ok(())
}
