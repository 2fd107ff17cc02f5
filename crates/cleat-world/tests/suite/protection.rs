//! Delete protection, asked by real and embedded servers over HTTPS.

mod bypasses;
mod deciding;
mod deployed;
mod kinds;
mod latch;
mod meeting;
mod proof;
mod races;
mod serving;
mod story;

use std::sync::{Arc, Mutex};

use anyhow::{Context as _, Result};
use axum::Router;
use axum::body::Bytes;
use cleat_api::criticalservice::{CriterionState, CriticalService, CriticalServiceStatus};
use cleat_core::protection::rules::Place;
use cleat_hub::prepare::prepare_protection;
use cleat_protection::{Protection, begin_again, start, uninstall};
use cleat_runtime::tasks::Tasks;
use cleat_webhook::{Reach, client_config};
use cleat_world::webhook::{Served, serve};
use cleat_world::{World, eventually};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind, Status};
use kube::runtime::wait::{await_condition, conditions};
use serde_json::{Value, json};
use tokio::sync::watch;

pub(crate) use self::meeting::Kept;
use crate::{create, refusal, seen};

/// The finalizer that consumers have.
const FINALIZER: &str = "cleat.example/clean-up";
/// What keeps the CriticalServices of tests on shared servers apart.
const LABEL: &str = "cleat.example/test";

/// A cluster whose CriticalServices of this test, and no others, are heeded.
struct Guarded {
    world: World,
    client: Client,
    /// Unique; also the namespace of provider and consumers, and part of the consumers' group.
    name: String,
    protection: Protection,
    asked: Arc<Mutex<Vec<Value>>>,
    tasks: Tasks,
    _turn: Option<tokio::sync::MutexGuard<'static, ()>>,
}

/// A real server takes a while to heed a changed webhook configuration, and longer when many change:
/// on shared servers these tests take turns.
async fn turn(world: &World) -> Option<tokio::sync::MutexGuard<'static, ()>> {
    static ONE_AT_A_TIME: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
    if world.is_embedded() { None } else { Some(ONE_AT_A_TIME.lock().await) }
}

impl Guarded {
    async fn new(topic: &str) -> Result<Self> {
        let world = World::with_clusters(1).await?;
        let turn = turn(&world).await;
        let client = world.clusters.first().context("there is a cluster")?.client();
        let name = world.unique(topic);
        let namespaces: Api<Namespace> = Api::all(client.clone());
        for namespace in [name.clone(), format!("{name}-provider")] {
            create(&namespaces, json!({ "metadata": { "name": namespace } })).await?;
        }
        let (protection, asked, tasks) = protect(&client, &name).await?;
        Ok(Self { world, client, name, protection, asked, tasks, _turn: turn })
    }

    /// The namespace of the provider.
    fn home(&self) -> String {
        format!("{}-provider", self.name)
    }

    fn services(&self) -> Api<CriticalService> {
        Api::all(self.client.clone())
    }

    fn deployments(&self) -> Api<Deployment> {
        Api::namespaced(self.client.clone(), &self.home())
    }

    fn namespaces(&self) -> Api<Namespace> {
        Api::all(self.client.clone())
    }

    fn definitions(&self) -> Api<CustomResourceDefinition> {
        Api::all(self.client.clone())
    }

    fn consumers(&self) -> Api<DynamicObject> {
        consumers(&self.client, &self.name)
    }

    /// Defines the consumers' kind, and returns when it is served.
    async fn define(&self) -> Result<()> {
        create(&self.definitions(), definition(&self.name)).await?;
        let name = definition_name(&self.name);
        await_condition(self.definitions(), &name, conditions::is_crd_established()).await?;
        eventually("consumers to be served", || async {
            Ok(self.consumers().list(&Default::default()).await.ok().map(drop))
        })
        .await
    }

    async fn provider(&self) -> Result<Deployment> {
        create(&self.deployments(), deployment(&self.home())).await
    }

    async fn consumer(&self, name: &str) -> kube::Result<DynamicObject> {
        let object =
            serde_json::from_value(consumer(&self.name, name)).map_err(kube::Error::SerdeError)?;
        self.consumers().create(&Default::default(), &object).await
    }

    async fn set_finalizers(&self, consumer: &str, finalizers: Value) -> Result<()> {
        let patch = Patch::Merge(json!({ "metadata": { "finalizers": finalizers } }));
        self.consumers().patch(consumer, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// A CriticalService of the proposal's form, and waits until it is proven to protect.
    async fn service(&self, more: Value) -> Result<CriticalService> {
        let mut service = service(&self.name, &self.home());
        if let (Some(spec), Value::Object(more)) = (service["spec"].as_object_mut(), more) {
            spec.extend(more);
        }
        create(&self.services(), service).await?;
        self.told(|status| effective(status) == "True").await
    }

    /// The CriticalService as soon as its status is so.
    async fn told(
        &self,
        holds: impl Fn(&CriticalServiceStatus) -> bool,
    ) -> Result<CriticalService> {
        seen(&self.services(), &self.name, |service| service.status.as_ref().is_some_and(&holds))
            .await
    }

    /// Provider, kind, one consumer and the CriticalService: everything of the proposal's story.
    async fn all(topic: &str) -> Result<Self> {
        let guarded = Self::new(topic).await?;
        guarded.define().await?;
        guarded.provider().await?;
        guarded.consumer("one").await?;
        guarded.service(json!({})).await?;
        guarded.told(|status| states(status)[0] == CriterionState::Unsatisfied).await?;
        Ok(guarded)
    }

    /// Asks for the deletion of the provider, and expects that it is refused.
    async fn refused(&self) -> Status {
        refusal(self.deployments().delete("server", &DeleteParams::default()).await)
    }

    /// The same as soon as it is not.
    async fn passes(&self) -> Result<()> {
        eventually("the provider's deletion to pass", || async {
            match self.deployments().delete("server", &DeleteParams::default()).await {
                Ok(_) => Ok(Some(())),
                Err(kube::Error::Api(status)) if status.code == 403 => Ok(None),
                Err(error) => Err(error.into()),
            }
        })
        .await
    }

    fn reviews(&self) -> usize {
        self.asked.lock().unwrap().len()
    }

    /// Leaves nothing behind that would be in others' way.
    async fn end(self) -> Result<()> {
        self.tasks.shutdown().await;
        uninstall(&self.client, &self.name).await?;
        let dry = PatchParams::default();
        let off = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
        if let Ok(all) = self.consumers().list(&Default::default()).await {
            for one in all.into_iter().filter(|one| one.metadata.finalizers.is_some()) {
                let name = one.metadata.name.unwrap_or_default();
                self.consumers().patch(&name, &dry, &off).await.ok();
            }
        }
        let params = DeleteParams::default();
        self.services().delete(&self.name, &params).await.ok();
        self.definitions().delete(&definition_name(&self.name), &params).await.ok();
        for namespace in [self.name.clone(), self.home()] {
            self.namespaces().delete(&namespace, &params).await.ok();
        }
        drop(self.world);
        Ok(())
    }
}

/// Protects a cluster for the CriticalServices with the test's label.
async fn protect(
    client: &Client,
    name: &str,
) -> Result<(Protection, Arc<Mutex<Vec<Value>>>, Tasks)> {
    protect_as(client, name, name).await
}

/// The same, by a configuration of another name.
async fn protect_as(
    client: &Client,
    name: &str,
    configuration: &str,
) -> Result<(Protection, Arc<Mutex<Vec<Value>>>, Tasks)> {
    prepare_protection(client).await?;
    begin_again(client, configuration).await?;
    let asked: Arc<Mutex<Vec<Value>>> = Arc::default();
    let answerer: Arc<std::sync::OnceLock<Protection>> = Arc::default();
    let router = {
        let (asked, answerer) = (Arc::clone(&asked), Arc::clone(&answerer));
        Router::new().fallback(move |body: Bytes| {
            let (asked, answerer) = (Arc::clone(&asked), Arc::clone(&answerer));
            async move {
                let review: Value = serde_json::from_slice(&body).unwrap();
                asked.lock().unwrap().push(review["request"].clone());
                let answer = answerer.get().unwrap().answer(&review).await.unwrap();
                ([(http::header::CONTENT_TYPE, "application/json")], answer.to_string())
            }
        })
    };
    let served = serve(router).await?;
    let (protection, tasks) = start_protection(client, name, configuration, &served);
    answerer.get_or_init(|| protection.clone());
    protection.until_ready().await;
    Ok((protection, asked, tasks))
}

fn start_protection(
    client: &Client,
    name: &str,
    configuration: &str,
    served: &Served,
) -> (Protection, Tasks) {
    let reach = Reach::Url(served.url.clone());
    let place = Place {
        name: configuration.to_owned(),
        client: client_config(Some(&served.authority), &reach, cleat_protection::PATH),
        own_namespace: None,
    };
    let tasks = Tasks::new();
    let config = cleat_protection::Config {
        client: client.clone(),
        place: watch::Sender::new(place).subscribe(),
        labels: Some(format!("{LABEL}={name}")),
    };
    (start(config, &tasks), tasks)
}

fn group(name: &str) -> String {
    format!("{name}.cleat.example")
}

fn definition_name(name: &str) -> String {
    format!("cools.{}", group(name))
}

fn consumers(client: &Client, name: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk(&group(name), "v1", "Cool");
    let resource = ApiResource::from_gvk_with_plural(&kind, "cools");
    Api::namespaced_with(client.clone(), name, &resource)
}

fn definition(name: &str) -> Value {
    let schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": definition_name(name) },
        "spec": {
            "group": group(name),
            "scope": "Namespaced",
            "names": { "plural": "cools", "singular": "cool", "kind": "Cool" },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": schema },
            }],
        },
    })
}

fn consumer(name: &str, consumer: &str) -> Value {
    json!({
        "apiVersion": format!("{}/v1", group(name)),
        "kind": "Cool",
        "metadata": { "namespace": name, "name": consumer, "finalizers": [FINALIZER] },
    })
}

fn deployment(namespace: &str) -> Value {
    let labels = json!({ "app": "server" });
    let containers = json!([{ "name": "server", "image": "example.com/server" }]);
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "namespace": namespace, "name": "server" },
        "spec": {
            "replicas": 1,
            "selector": { "matchLabels": labels },
            "template": { "metadata": { "labels": labels }, "spec": { "containers": containers } },
        },
    })
}

fn service(name: &str, home: &str) -> Value {
    json!({
        "apiVersion": "protection.open-cluster-management.io/v1alpha1",
        "kind": "CriticalService",
        "metadata": { "name": name, "labels": { LABEL: name } },
        "spec": {
            "provider": {
                "group": "apps", "resource": "deployments", "namespace": home, "name": "server",
            },
            "criteria": [
                { "type": "Finalizer", "finalizer": {
                    "group": group(name), "resource": "cools", "finalizerName": FINALIZER } },
                { "type": "SpecificResource", "specificResource": {
                    "group": "apiextensions.k8s.io", "resource": "customresourcedefinitions",
                    "name": definition_name(name) } },
            ],
        },
    })
}

fn effective(status: &CriticalServiceStatus) -> &str {
    let found = status.conditions.iter().find(|condition| condition.type_ == "Effective");
    found.map(|found| found.status.as_str()).unwrap_or_default()
}

fn states(status: &CriticalServiceStatus) -> Vec<CriterionState> {
    status.criteria.iter().map(|one| one.state).collect()
}
