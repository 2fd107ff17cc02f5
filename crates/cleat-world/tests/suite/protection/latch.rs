//! Nobody comes to need a provider that is going.

use anyhow::Result;
use kube::api::PostParams;
use serde_json::json;

use super::*;

#[tokio::test]
async fn a_consumer_that_comes_too_late_is_refused_or_on_record() -> Result<()> {
    let guarded = Guarded::new("late").await?;
    guarded.define().await?;
    guarded.provider().await?;
    let finalizer = json!({ "criteria": [{ "type": "Finalizer", "finalizer": {
        "group": group(&guarded.name), "resource": "cools", "finalizerName": FINALIZER } }] });
    guarded.service(finalizer).await?;
    guarded.passes().await?;
    guarded.told(|status| status.latch.is_some()).await?;
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    let late = crate::parse::<DynamicObject>(consumer(&guarded.name, "late"));
    let status = eventually("the latch to be heeded", || async {
        let answer = guarded.consumers().create(&dry_run, &late).await;
        Ok(answer.is_err().then(|| refusal(answer)))
    })
    .await?;
    assert!(status.message.contains("which is going or gone"), "{}", status.message);
    // One without the finalizer needs nobody.
    let mut free = late.clone();
    free.metadata.finalizers = None;
    guarded.consumers().create(&dry_run, &free).await?;
    // Past the latch, as if the server had not heard of it yet.
    guarded.tasks.shutdown().await;
    uninstall(&guarded.client, &guarded.name).await?;
    eventually("a way past the latch", || async {
        Ok(guarded.consumers().create(&PostParams::default(), &late).await.ok().map(drop))
    })
    .await?;
    let (_, _, tasks) = protect(&guarded.client, &guarded.name).await?;
    let stranded = |status: &CriticalServiceStatus| {
        status.conditions.iter().any(|one| one.type_ == "Stranded" && one.status == "True")
    };
    let told = guarded.told(stranded).await?;
    let latch = told.status.unwrap().latch.unwrap();
    assert!(latch.late.iter().any(|late| late.ends_with("/late")), "{:?}", latch.late);
    tasks.shutdown().await;
    guarded.end().await
}
