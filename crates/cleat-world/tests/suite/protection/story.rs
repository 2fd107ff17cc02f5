//! The proposal's story: everything is deleted at the same time, in any order, and goes in the one
//! order in which nothing gets stuck, although nobody coordinates.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use anyhow::Result;
use cleat_world::{Fleet, within};
use futures::StreamExt as _;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, WatchEvent, WatchParams};
use serde_json::json;
use tokio::task::{AbortHandle, JoinSet};

use super::*;

/// Serves the finalizer for as long as its deployment is there, as a real one would, and then takes
/// its leave: the deployment has a finalizer of its own.
struct StandIn(AbortHandle);

/// Held by the deployment until the stand-in has shut down.
const SHUTDOWN: &str = "cleat.example/shutdown";

/// When a stand-in shuts down.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Leaves {
    /// As soon as its deployment is deleted.
    AtOnce,
    /// Not before its namespace is deleted as well.
    WithNamespace,
}

impl StandIn {
    fn start(client: &Client, name: &str, home: &str, leaves: Leaves) -> Self {
        let deployments: Api<Deployment> = Api::namespaced(client.clone(), home);
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let (consumers, home) = (consumers(client, name), home.to_owned());
        let task = tokio::spawn(async move {
            let mut turn = tokio::time::interval(std::time::Duration::from_millis(30));
            loop {
                turn.tick().await;
                shut_down(&deployments, &namespaces, &home, leaves).await;
                let Ok(all) = consumers.list(&ListParams::default()).await else { continue };
                for one in all {
                    let Some(name) = one.metadata.name else { continue };
                    let running = matches!(deployments.get_opt("server").await, Ok(Some(_)));
                    if running && one.metadata.deletion_timestamp.is_some() {
                        let off = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
                        consumers.patch(&name, &PatchParams::default(), &off).await.ok();
                    }
                }
            }
        });
        Self(task.abort_handle())
    }
}

/// Lets the deployment go, if it is time.
async fn shut_down(
    deployments: &Api<Deployment>,
    namespaces: &Api<Namespace>,
    home: &str,
    leaves: Leaves,
) {
    let Ok(Some(deployment)) = deployments.get_opt("server").await else { return };
    let namespace = namespaces.get_opt(home).await.ok().flatten();
    let going = namespace.is_some_and(|one| one.metadata.deletion_timestamp.is_some());
    if deployment.metadata.deletion_timestamp.is_some() && (going || leaves == Leaves::AtOnce) {
        let off = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
        deployments.patch("server", &PatchParams::default(), &off).await.ok();
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The proposal's steps, by number, each with the revision at which it happened.
#[derive(Clone, Default)]
struct Trace {
    steps: Arc<Mutex<BTreeMap<u8, u64>>>,
}

const STEPS: [&str; 9] = [
    "crd is deleted, but waits to be finalized",
    "instance is deleted, but waits to be finalized",
    "instance is finalized",
    "crd is finalized",
    "deployment is deleted, but waits to be finalized",
    "namespace is deleted, but waits to be finalized",
    "deployment is finalized",
    "namespace is finalized",
    "criticalservice is deleted",
];

/// What the proposal's reasons say: a definition goes after its instances, the provider and its
/// namespace after both, the CriticalService after its provider. Between 1 and 2, 5 and 6, 6 and 7,
/// and 8 and 9 nothing decides but who asks first.
const ORDER: [(u8, u8); 9] =
    [(1, 4), (2, 3), (3, 4), (4, 5), (4, 6), (5, 7), (6, 8), (7, 8), (7, 9)];

/// An agent adds that it asks for the namespace after what is in it, and for the CriticalService at
/// the end.
const OF_AGENTS: [(u8, u8); 2] = [(5, 6), (8, 9)];

/// One after the other.
const STRICT: [(u8, u8); 8] = [(1, 2), (2, 3), (3, 4), (4, 5), (5, 6), (6, 7), (7, 8), (8, 9)];

impl Trace {
    /// Watches one object: `begun` and `ended` are the steps of its going.
    async fn watch(
        &self,
        api: Api<DynamicObject>,
        object: &str,
        begun: u8,
        ended: u8,
    ) -> Result<()> {
        let only = format!("metadata.name={object}");
        let list = api.list_metadata(&ListParams::default().fields(&only)).await?;
        let from = list.metadata.resource_version.unwrap_or_default();
        let params = WatchParams::default().fields(&only).timeout(290);
        let mut events = api.watch_metadata(&params, &from).await?.boxed();
        let steps = Arc::clone(&self.steps);
        tokio::spawn(async move {
            while let Some(Ok(event)) = events.next().await {
                let (object, gone) = match event {
                    WatchEvent::Modified(object) | WatchEvent::Added(object) => (object, false),
                    WatchEvent::Deleted(object) => (object, true),
                    WatchEvent::Bookmark(_) | WatchEvent::Error(_) => continue,
                };
                let revision = object.metadata.resource_version.unwrap_or_default();
                let revision: u64 = revision.parse().unwrap_or_default();
                let mut steps = steps.lock().unwrap();
                if gone || object.metadata.deletion_timestamp.is_some() {
                    steps.entry(begun).or_insert(revision);
                }
                if gone {
                    steps.entry(ended).or_insert(revision);
                }
            }
        });
        Ok(())
    }

    /// Returns when every step was seen, and tells them in the order in which they happened.
    async fn told(&self, title: &str, also: &[(u8, u8)]) -> Result<()> {
        eventually("every step", || async {
            Ok((self.steps.lock().unwrap().len() == STEPS.len()).then_some(()))
        })
        .await?;
        let steps = self.steps.lock().unwrap().clone();
        let mut order: Vec<(u64, u8)> = steps.iter().map(|(step, at)| (*at, *step)).collect();
        order.sort_unstable();
        println!("{title}");
        for (revision, step) in order {
            println!("  {step}. {:50} revision {revision}", STEPS[usize::from(step) - 1]);
        }
        for (first, then) in ORDER.iter().chain(also) {
            assert!(steps[first] < steps[then], "{title}: {then} did not come after {first}");
        }
        Ok(())
    }
}

fn dynamic(client: &Client, group: &str, version: &str, kind: &str, plural: &str) -> ApiResource {
    let _ = client;
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural)
}

/// Begins to trace everything of the story.
async fn trace(client: &Client, name: &str, home: &str) -> Result<Trace> {
    let trace = Trace::default();
    let everywhere = |group: &str, version: &str, kind: &str, plural: &str| -> Api<DynamicObject> {
        Api::all_with(client.clone(), &dynamic(client, group, version, kind, plural))
    };
    let definitions = everywhere(
        "apiextensions.k8s.io",
        "v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
    );
    trace.watch(definitions, &definition_name(name), 1, 4).await?;
    trace.watch(consumers(client, name), "one", 2, 3).await?;
    let deployments = Api::namespaced_with(
        client.clone(),
        home,
        &dynamic(client, "apps", "v1", "Deployment", "deployments"),
    );
    trace.watch(deployments, "server", 5, 7).await?;
    trace.watch(everywhere("", "v1", "Namespace", "namespaces"), home, 6, 8).await?;
    let services = everywhere(
        "protection.open-cluster-management.io",
        "v1alpha1",
        "CriticalService",
        "criticalservices",
    );
    trace.watch(services, name, 9, 9).await?;
    Ok(trace)
}

fn held_deployment(home: &str) -> serde_json::Value {
    let mut deployment = deployment(home);
    deployment["metadata"]["finalizers"] = json!([SHUTDOWN]);
    deployment
}

impl Guarded {
    /// The deployment waits to be finalized, as the proposal's does.
    async fn hold(&self) -> Result<()> {
        let held = Patch::Merge(json!({ "metadata": { "finalizers": [SHUTDOWN] } }));
        self.deployments().patch("server", &PatchParams::default(), &held).await?;
        Ok(())
    }
}

/// A fleet whose cluster is protected, and the names of what a story is about.
struct Stage {
    fleet: Fleet,
    protection: (Protection, Arc<Mutex<Vec<serde_json::Value>>>, Tasks),
    home: String,
    _turn: Option<tokio::sync::MutexGuard<'static, ()>>,
}

impl Stage {
    async fn set(topic: &str) -> Result<Self> {
        let fleet = Fleet::start(topic).await?;
        let turn = super::turn(&fleet.world).await;
        let protection = protect(&fleet.cluster, &fleet.name).await?;
        let home = format!("{}-provider", fleet.name);
        Ok(Self { fleet, protection, home, _turn: turn })
    }

    fn manifests(&self) -> [serde_json::Value; 5] {
        let name = &self.fleet.name;
        let namespace = json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": self.home },
        });
        [
            service(name, &self.home),
            namespace,
            held_deployment(&self.home),
            definition(name),
            consumer(name, "one"),
        ]
    }

    /// Returns when protection is proven, and begins to trace.
    async fn ready(&self) -> Result<(Trace, StandIn)> {
        let (cluster, name) = (&self.fleet.cluster, &self.fleet.name);
        let services: Api<CriticalService> = Api::all(cluster.clone());
        let effective = |one: &CriticalService| {
            one.status.as_ref().is_some_and(|status| {
                effective(status) == "True"
                    && states(status).iter().all(|one| *one == CriterionState::Unsatisfied)
                    && status.criteria.len() == 2
            })
        };
        seen(&services, name, effective).await?;
        let trace = trace(cluster, name, &self.home).await?;
        Ok((trace, StandIn::start(cluster, name, &self.home, Leaves::AtOnce)))
    }

    async fn end(self) -> Result<()> {
        self.protection.2.shutdown().await;
        Ok(uninstall(&self.fleet.cluster, &self.fleet.name).await?)
    }
}

async fn three_works(order: [usize; 3]) -> Result<()> {
    let stage = Stage::set("story3").await?;
    let [service, namespace, deployment, definition, consumer] = stage.manifests();
    let works = [
        ("finalizer", vec![service, namespace, deployment]),
        ("crd", vec![definition]),
        ("cr", vec![consumer]),
    ];
    for (name, manifests) in works.clone() {
        stage.fleet.work(name, manifests, json!({})).await?;
    }
    let (trace, _stand_in) = stage.ready().await?;
    let names: Vec<&str> = order.iter().map(|index| works[*index].0).collect();
    for name in &names {
        stage.fleet.delete(name).await?;
    }
    for name in &names {
        stage.fleet.absent(&stage.fleet.works(), name).await?;
    }
    trace.told(&format!("three works, deleted as {}", names.join(", ")), &OF_AGENTS).await?;
    stage.end().await
}

#[tokio::test]
async fn three_works_go_in_one_order_however_they_are_deleted() -> Result<()> {
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        three_works(order).await?;
    }
    Ok(())
}

#[tokio::test]
async fn one_work_goes_in_that_order_too() -> Result<()> {
    let stage = Stage::set("story1").await?;
    stage.fleet.work("all", stage.manifests().to_vec(), json!({})).await?;
    let (trace, _stand_in) = stage.ready().await?;
    stage.fleet.delete("all").await?;
    stage.fleet.absent(&stage.fleet.works(), "all").await?;
    trace.told("one work", &OF_AGENTS).await?;
    stage.end().await
}

/// The agent says who keeps an object, and tries again when that changes, not when a pause ends.
#[tokio::test]
async fn a_work_tells_who_protects_its_objects() -> Result<()> {
    let stage = Stage::set("storytold").await?;
    let [service, namespace, deployment, definition, consumer] = stage.manifests();
    let fleet = &stage.fleet;
    fleet.work("finalizer", vec![service, namespace, deployment], json!({})).await?;
    fleet.work("rest", vec![definition, consumer], json!({})).await?;
    let (_trace, _stand_in) = stage.ready().await?;
    fleet.delete("finalizer").await?;
    let work = fleet.says("finalizer", "Deleting", "ProtectedBy").await?;
    let condition = cleat_world::fleet::condition_of(&work, "Deleting").unwrap();
    assert_eq!(condition.reason, "ProtectedBy");
    let expected = format!("ProtectedBy CriticalService {}: ", fleet.name);
    assert!(condition.message.contains(&expected), "{}", condition.message);
    fleet.end("rest").await?;
    fleet.absent(&fleet.works(), "finalizer").await?;
    stage.end().await
}

/// Five people with kubectl, who only repeat what was refused.
#[tokio::test]
async fn plain_clients_that_only_repeat_themselves_get_there() -> Result<()> {
    let guarded = Guarded::all("storyplain").await?;
    guarded.hold().await?;
    let (name, home) = (guarded.name.clone(), guarded.home());
    let trace = trace(&guarded.client, &name, &home).await?;
    let _stand_in = StandIn::start(&guarded.client, &name, &home, Leaves::AtOnce);
    let mut people = JoinSet::new();
    macro_rules! deletes {
        ($api:expr, $name:expr) => {{
            let (api, name) = ($api, $name.to_owned());
            people.spawn(async move {
                let mut turn = tokio::time::interval(std::time::Duration::from_millis(40));
                loop {
                    turn.tick().await;
                    match api.delete(&name, &DeleteParams::default()).await {
                        Err(kube::Error::Api(status)) if status.code == 404 => return,
                        _ => {}
                    }
                }
            });
        }};
    }
    deletes!(guarded.services(), name);
    deletes!(guarded.namespaces(), home);
    deletes!(guarded.deployments(), "server");
    deletes!(guarded.definitions(), definition_name(&name));
    deletes!(guarded.consumers(), "one");
    while let Some(one) = within("all of them", people.join_next()).await? {
        one?;
    }
    trace.told("five clients at once", &[]).await?;
    guarded.end().await
}

/// One client that goes down the proposal's list, begins again where it was refused, and lets go of
/// the CriticalService when the rest is gone, as kubectl waits for what it deletes.
#[tokio::test]
async fn the_nine_steps_come_in_the_order_of_the_proposal() -> Result<()> {
    let guarded = Guarded::all("storynine").await?;
    guarded.hold().await?;
    let (name, home) = (guarded.name.clone(), guarded.home());
    let trace = trace(&guarded.client, &name, &home).await?;
    let _stand_in = StandIn::start(&guarded.client, &name, &home, Leaves::WithNamespace);
    let params = DeleteParams::default();
    macro_rules! asks {
        ($what:literal, $api:expr, $name:expr) => {
            eventually($what, || async {
                match $api.delete(&$name, &params).await {
                    Ok(_) => Ok(Some(())),
                    Err(kube::Error::Api(status)) if matches!(status.code, 403 | 404) => {
                        Ok((status.code == 404).then_some(()))
                    }
                    Err(error) => Err(error.into()),
                }
            })
            .await?
        };
    }
    // Everything is refused that would come too early.
    guarded.refused().await;
    refusal(guarded.namespaces().delete(&home, &params).await);
    refusal(guarded.services().delete(&name, &params).await);
    asks!("the definition", guarded.definitions(), definition_name(&name));
    asks!("the instance", guarded.consumers(), "one");
    asks!("the deployment", guarded.deployments(), "server");
    refusal(guarded.services().delete(&name, &params).await);
    asks!("the namespace", guarded.namespaces(), home);
    eventually("the namespace to be gone", || async {
        Ok(guarded.namespaces().get_opt(&home).await?.is_none().then_some(()))
    })
    .await?;
    asks!("the CriticalService", guarded.services(), name);
    trace.told("one client, in the proposal's order", &STRICT).await?;
    guarded.end().await
}
