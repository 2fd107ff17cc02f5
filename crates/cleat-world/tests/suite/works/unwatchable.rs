//! Kinds that a server serves and does not watch, as some that are served by others are.

use anyhow::Result;
use cleat_agent::work::Config;
use cleat_world::fleet::{Fleet, condition_of};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::policies::unwatchable::Unwatched;

/// They could be neither applied nor let go of: what cannot be watched was not looked at.
#[tokio::test]
async fn what_cannot_be_watched_is_applied_kept_right_and_let_go_of() -> Result<()> {
    let mut fleet = Fleet::without_agent("unwatched-work").await?;
    let cluster_client = Client::new(Unwatched { through: fleet.cluster.clone() }, "default");
    let status_interval = jiff::SignedDuration::from_millis(100);
    fleet.start_agent(Config { cluster_client, status_interval, ..fleet.config() });
    let rule = json!([{
        "condition": "Mine", "type": "CEL", "celExpressions": [{ "expression": "object.data.key == '2'" }],
    }]);
    let identifier = json!({ "resource": "configmaps", "namespace": fleet.name, "name": "a" });
    let configs = json!([{ "resourceIdentifier": identifier, "conditionRules": rule }]);
    let spec = json!({ "manifestConfigs": configs });
    fleet.work("one", vec![fleet.map("a", "1"), fleet.map("b", "1")], spec).await?;
    let work = fleet.told("one", "Applied", "True").await?;
    assert_eq!(condition_of(&work, "Available").unwrap().status, "True");
    fleet.told("one", "Mine", "False").await?;
    let change = Patch::Merge(json!({ "data": { "key": "3" } }));
    fleet.maps().patch("b", &PatchParams::default(), &change).await?;
    let is_right = |map: &ConfigMap| map.data.as_ref().is_some_and(|data| data["key"] == "1");
    fleet.seen(&fleet.maps(), "b", is_right).await?;
    // What leaves the manifests goes, and what a finalizer holds is waited for.
    fleet.rewrite("one", vec![fleet.map("a", "2")]).await?;
    fleet.told("one", "Mine", "True").await?;
    fleet.absent(&fleet.maps(), "b").await?;
    let held = |finalizers| Patch::Merge(json!({ "metadata": { "finalizers": finalizers } }));
    let hold = held(json!(["example.com/hold"]));
    fleet.maps().patch("a", &PatchParams::default(), &hold).await?;
    fleet.delete("one").await?;
    fleet.says("one", "Deleting", "waiting for finalizer example.com/hold").await?;
    fleet.maps().patch("a", &PatchParams::default(), &held(json!(null))).await?;
    fleet.absent(&fleet.works(), "one").await?;
    assert!(fleet.maps().get_opt("a").await?.is_none());
    Ok(())
}
