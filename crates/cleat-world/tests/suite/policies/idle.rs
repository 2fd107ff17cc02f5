//! What costs nothing: a policy that holds.

use anyhow::Result;
use cleat_agent::policy;
use serde_json::json;

use super::{Site, enforce, musthave};
use crate::counting::Counting;

async fn counted(topic: &str) -> Result<(Site, Counting)> {
    let mut site = Site::without_controller(topic).await?;
    let counting = Counting::default();
    site.run(policy::Config { cluster_client: counting.client(&site.cluster), ..site.config() });
    Ok((site, counting))
}

fn about(asked: Vec<String>, name: &str) -> Vec<String> {
    asked.into_iter().filter(|request| request.contains(name)).collect()
}

#[tokio::test]
async fn a_policy_that_holds_is_not_asked_about() -> Result<()> {
    let (site, counting) = counted("policy-idle").await?;
    let templates = vec![musthave(site.map("still-1", "1")), musthave(site.map("still-2", "1"))];
    site.policy("still", enforce(templates)).await?;
    site.settles("still").await?;
    site.passes("first").await?;
    counting.take();
    site.passes("second").await?;
    assert_eq!(about(counting.take(), "still"), [] as [String; 0]);
    Ok(())
}

#[tokio::test]
async fn only_what_changed_is_read_again() -> Result<()> {
    let (site, counting) = counted("policy-one").await?;
    let names: Vec<String> = (0..5).map(|number| format!("part-{number}")).collect();
    let templates = names.iter().map(|name| musthave(site.map(name, "1"))).collect();
    site.policy("whole", enforce(templates)).await?;
    site.settles("whole").await?;
    site.passes("first").await?;
    counting.take();
    let patch = kube::api::Patch::Merge(json!({ "data": { "key": "2" } }));
    site.maps().patch("part-3", &Default::default(), &patch).await?;
    let right = |map: &k8s_openapi::api::core::v1::ConfigMap| {
        map.data.as_ref().is_some_and(|data| data["key"] == "1")
    };
    crate::seen(&site.maps(), "part-3", right).await?;
    site.passes("second").await?;
    let asked = counting.take();
    let reads: Vec<&String> =
        asked.iter().filter(|one| one.starts_with("GET") && one.contains("part-")).collect();
    assert_eq!(reads.len(), 1, "{reads:?}");
    assert!(reads[0].contains("part-3"), "{reads:?}");
    Ok(())
}

#[tokio::test]
async fn a_new_controller_writes_nothing_when_nothing_changed() -> Result<()> {
    let mut site = Site::start("policy-restart").await?;
    site.policy("still", enforce(vec![musthave(site.map("still", "1"))])).await?;
    site.settles("still").await?;
    site.passes("first").await?;
    site.stop().await;
    let before = site.policies().get("still").await?.metadata.resource_version;
    let counting = Counting::default();
    site.run(policy::Config { cluster_client: counting.client(&site.cluster), ..site.config() });
    site.passes("second").await?;
    let asked = about(counting.take(), "still");
    let writes: Vec<&String> = asked.iter().filter(|one| !one.starts_with("GET")).collect();
    assert_eq!(writes, [] as [&String; 0]);
    assert_eq!(site.policies().get("still").await?.metadata.resource_version, before);
    Ok(())
}
