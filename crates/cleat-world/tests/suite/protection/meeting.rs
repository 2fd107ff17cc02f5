//! Whoever deletes for others meets refusals: they keep the object, say who protects it, and try again
//! when that changes. Works here; policies and leaving clusters beside their own tests.

use anyhow::Result;
use cleat_world::Fleet;
use cleat_world::fleet::condition_of;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::DeleteParams;
use serde_json::json;

use super::*;
use crate::delete;

/// A CriticalService that keeps the config map `kept` for as long as `needer` is there, both in the
/// namespace that is called as it is.
pub(crate) struct Kept {
    client: Client,
    name: String,
    tasks: Tasks,
    _turn: Option<tokio::sync::MutexGuard<'static, ()>>,
}

/// A map in the test's namespace, as a CriticalService names it.
fn map(name: &str, map: &str) -> Value {
    json!({ "resource": "configmaps", "namespace": name, "name": map })
}

fn keeping(name: &str, needer: &Value) -> Value {
    json!({
        "apiVersion": "protection.open-cluster-management.io/v1alpha1",
        "kind": "CriticalService",
        "metadata": { "name": name, "labels": { LABEL: name } },
        "spec": {
            "provider": map(name, "kept"),
            "criteria": [{ "type": "SpecificResource", "specificResource": needer }],
        },
    })
}

/// Returns when the CriticalService is proven to keep its provider.
async fn kept(services: &Api<CriticalService>, name: &str) -> Result<()> {
    let keeps = |service: &CriticalService| {
        service.status.as_ref().is_some_and(|status| {
            effective(status) == "True" && states(status) == [CriterionState::Unsatisfied]
        })
    };
    seen(services, name, keeps).await.map(drop)
}

impl Kept {
    /// Returns when `kept`, which is there already, is proven to be protected.
    pub(crate) async fn start(world: &World, client: &Client, name: &str) -> Result<Self> {
        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), name);
        create(&maps, json!({ "metadata": { "name": "needer" } })).await?;
        Self::needed_by(&map(name, "needer"), world, client, name).await
    }

    /// The same, where something else needs it that is there already.
    pub(crate) async fn needed_by(
        needer: &Value,
        world: &World,
        client: &Client,
        name: &str,
    ) -> Result<Self> {
        let turn = turn(world).await;
        let (_, _, tasks) = protect(client, name).await?;
        let services: Api<CriticalService> = Api::all(client.clone());
        create(&services, keeping(name, needer)).await?;
        kept(&services, name).await?;
        Ok(Self { client: client.clone(), name: name.to_owned(), tasks, _turn: turn })
    }

    /// What a refusal begins with.
    pub(crate) fn says(&self) -> String {
        format!("ProtectedBy CriticalService {}: ", self.name)
    }

    /// Nothing needs it any more.
    pub(crate) async fn release(&self) -> Result<()> {
        delete(&Api::<ConfigMap>::namespaced(self.client.clone(), &self.name), "needer").await
    }

    pub(crate) async fn end(self) -> Result<()> {
        self.tasks.shutdown().await;
        uninstall(&self.client, &self.name).await?;
        let services: Api<CriticalService> = Api::all(self.client.clone());
        services.delete(&self.name, &DeleteParams::default()).await?;
        Ok(())
    }
}

#[tokio::test]
async fn a_living_work_tells_who_keeps_what_left_it() -> Result<()> {
    let fleet = Fleet::start("leftwork").await?;
    let (kept, other) = (fleet.map("kept", "1"), fleet.map("other", "1"));
    fleet.work("w", vec![kept, other.clone()], json!({})).await?;
    fleet.told("w", "Applied", "True").await?;
    let protected = Kept::start(&fleet.world, &fleet.cluster, &fleet.name).await?;
    fleet.rewrite("w", vec![other]).await?;
    let work = fleet.says("w", "Removed", &protected.says()).await?;
    let condition = condition_of(&work, "Removed").unwrap();
    assert_eq!((&*condition.status, &*condition.reason), ("False", "ProtectedBy"));
    assert!(fleet.maps().get_opt("kept").await?.is_some());
    protected.release().await?;
    fleet.absent(&fleet.maps(), "kept").await?;
    fleet.seen(&fleet.works(), "w", |work| condition_of(work, "Removed").is_none()).await?;
    fleet.end("w").await?;
    protected.end().await
}

/// The proposal's open question: what is stuck can be let go of after its deletion began.
#[tokio::test]
async fn a_release_after_the_deletion_began_lets_a_work_go() -> Result<()> {
    let fleet = Fleet::start("freedwork").await?;
    let _turn = turn(&fleet.world).await;
    let (_, _, tasks) = protect(&fleet.cluster, &fleet.name).await?;
    create(&fleet.maps(), json!({ "metadata": { "name": "needer" } })).await?;
    let manifests = vec![fleet.map("kept", "1"), keeping(&fleet.name, &map(&fleet.name, "needer"))];
    fleet.work("w", manifests, json!({})).await?;
    let services: Api<CriticalService> = Api::all(fleet.cluster.clone());
    kept(&services, &fleet.name).await?;
    fleet.delete("w").await?;
    fleet.says("w", "Deleting", "ProtectedBy CriticalService").await?;
    let release = Patch::Merge(json!({ "spec": { "onDelete": "Release" } }));
    services.patch(&fleet.name, &PatchParams::default(), &release).await?;
    fleet.absent(&fleet.works(), "w").await?;
    assert!(fleet.maps().get_opt("kept").await?.is_none());
    assert!(fleet.maps().get_opt("needer").await?.is_some());
    tasks.shutdown().await;
    Ok(uninstall(&fleet.cluster, &fleet.name).await?)
}
