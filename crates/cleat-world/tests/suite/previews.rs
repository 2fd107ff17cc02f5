//! What a removal would do, asked and answered through the hub; and then it does just that.

use anyhow::{Context as _, Result};
use cleat_agent::{preview, work};
use cleat_api::removalpreview::{PreviewVerdict, PreviewedObject, RemovalPreview};
use cleat_runtime::tasks::Tasks;
use cleat_world::Fleet;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::ResourceExt as _;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};

use crate::works::guard::Guard;
use crate::{create, seen};

/// A fleet whose agent answers questions.
struct Site {
    fleet: Fleet,
    tasks: Tasks,
}

impl Site {
    async fn start(topic: &str) -> Result<Self> {
        let fleet = Fleet::without_agent(topic).await?;
        let tasks = Tasks::new();
        let config = fleet.config();
        let hub_hash = work::hub_hash(&config.hub_address);
        let works = work::start(config, &tasks);
        let config = preview::Config {
            hub_client: fleet.hub.clone(),
            cluster_client: fleet.cluster.clone(),
            cluster: fleet.name.clone(),
            hub_hash,
            works,
        };
        preview::start(config, &tasks);
        Ok(Self { fleet, tasks })
    }

    /// The answer to a question.
    async fn answer(&self, name: &str, spec: Value) -> Result<RemovalPreview> {
        let questions: Api<RemovalPreview> =
            Api::namespaced(self.fleet.hub.clone(), &self.fleet.name);
        create(&questions, json!({ "metadata": { "name": name }, "spec": spec })).await?;
        seen(&questions, name, |one: &RemovalPreview| {
            one.status.as_ref().is_some_and(|status| status.answered_at.is_some())
        })
        .await
    }

    async fn end(self) -> Result<()> {
        self.tasks.shutdown().await;
        Ok(())
    }
}

fn object<'a>(answer: &'a RemovalPreview, name: &str) -> Result<&'a PreviewedObject> {
    let status = answer.status.as_ref().context("it was answered")?;
    status
        .objects
        .iter()
        .find(|one| one.name == name)
        .with_context(|| format!("{name}: {status:?}"))
}

#[tokio::test]
async fn a_preview_of_a_deletion_says_what_then_happens() -> Result<()> {
    let site = Site::start("preview-work").await?;
    let fleet = &site.fleet;
    let orphan = json!({ "deleteOption": { "propagationPolicy": "SelectivelyOrphan",
        "selectivelyOrphans": { "orphaningRules": [{
            "group": "", "resource": "configmaps", "namespace": fleet.name, "name": "stays",
        }] } } });
    let manifests = ["goes", "stays", "shared"].map(|name| fleet.map(name, "1")).to_vec();
    fleet.work("one", manifests, orphan).await?;
    fleet.told("one", "Applied", "True").await?;
    fleet.work("two", vec![fleet.map("shared", "1")], json!({})).await?;
    fleet.told("two", "Applied", "True").await?;

    let answer = site.answer("ask", json!({ "work": "one" })).await?;
    let goes = object(&answer, "goes")?;
    assert_eq!((goes.verdict, &*goes.decided_by), (PreviewVerdict::Delete, "spec.deleteOption"));
    assert_eq!(goes.blockers, [] as [String; 0]);
    let stays = object(&answer, "stays")?;
    assert_eq!((stays.verdict, &*stays.decided_by), (PreviewVerdict::Orphan, "spec.deleteOption"));
    assert_eq!((&*stays.why, stays.adopted), ("it is declared to stay", false));
    let shared = object(&answer, "shared")?;
    assert_eq!(shared.verdict, PreviewVerdict::Keep);
    assert_eq!(shared.why, "another work holds it as well");
    // Nothing happened by asking.
    assert_eq!(fleet.maps().get("goes").await?.uid().as_deref(), Some(&*goes.uid));

    fleet.end("one").await?;
    for one in answer.status.iter().flat_map(|status| &status.objects) {
        let still = fleet.maps().get_opt(&one.name).await?;
        let still = still.and_then(|map| map.uid()).is_some_and(|uid| uid == one.uid);
        assert_eq!(still, one.verdict != PreviewVerdict::Delete, "{one:?}");
    }
    site.end().await
}

#[tokio::test]
async fn a_preview_tells_what_would_stand_in_the_way() -> Result<()> {
    let site = Site::start("preview-blocked").await?;
    let fleet = &site.fleet;
    fleet.work("one", vec![fleet.map("held", "1"), fleet.map("guarded", "1")], json!({})).await?;
    fleet.told("one", "Applied", "True").await?;
    let finalizer = Patch::Merge(json!({ "metadata": { "finalizers": ["example.com/hold"] } }));
    fleet.maps().patch("held", &PatchParams::default(), &finalizer).await?;
    let guard = Guard::install(fleet).await?;
    guard.refuse("guarded", "still needed");

    let answer = site.answer("ask", json!({ "work": "one" })).await?;
    assert_eq!(object(&answer, "held")?.blockers, ["waits for finalizer example.com/hold"]);
    let [refused] = &*object(&answer, "guarded")?.blockers else { panic!("{answer:?}") };
    assert!(refused.starts_with("would be refused: "), "{refused}");
    assert!(refused.contains("still needed"), "{refused}");
    // It was only tried.
    assert!(fleet.maps().get("held").await?.metadata.deletion_timestamp.is_none());
    guard.remove().await?;
    let release = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    fleet.maps().patch("held", &PatchParams::default(), &release).await?;
    site.end().await
}

#[tokio::test]
async fn a_preview_of_a_namespace_says_what_it_takes_along() -> Result<()> {
    let site = Site::start("preview-along").await?;
    let fleet = &site.fleet;
    let inner = format!("{}-inner", fleet.name);
    let namespace =
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": inner } });
    fleet.work("one", vec![namespace], json!({})).await?;
    fleet.told("one", "Applied", "True").await?;
    let theirs: Api<ConfigMap> = Api::namespaced(fleet.cluster.clone(), &inner);
    create(&theirs, json!({ "metadata": { "name": "theirs" } })).await?;

    let answer = site.answer("ask", json!({ "work": "one" })).await?;
    let seen = object(&answer, &inner)?;
    assert_eq!((seen.verdict, seen.takes_along), (PreviewVerdict::Delete, 1));
    let expected = format!("takes along 1 object (configmaps {inner}/theirs) that no work lists");
    assert_eq!(seen.effects, [expected]);

    // A cluster that leaves with nothing keeps it, for the sake of what is in it.
    let answer = site.answer("leave", json!({ "leave": "Required" })).await?;
    let seen = object(&answer, &inner)?;
    assert_eq!((seen.verdict, &*seen.why), (PreviewVerdict::Keep, "it holds what is not ours"));
    // And one that leaves with everything keeps it anyway.
    let answer = site.answer("stay", json!({ "leave": "Needless" })).await?;
    let seen = object(&answer, &inner)?;
    assert_eq!(
        (seen.verdict, &*seen.decided_by),
        (PreviewVerdict::StripMarks, "spec.removeStrategy")
    );
    fleet.end("one").await?;
    let namespaces: Api<Namespace> = Api::all(fleet.cluster.clone());
    fleet.absent(&namespaces, &inner).await?;
    site.end().await
}

#[tokio::test]
async fn a_question_about_nothing_is_answered_with_what_is_wrong() -> Result<()> {
    let site = Site::start("preview-nothing").await?;
    let answer = site.answer("ask", json!({})).await?;
    let status = answer.status.context("it was answered")?;
    assert_eq!(status.problems, ["name either a work or a strategy to leave by"]);
    let answer = site.answer("other", json!({ "work": "no-such-work" })).await?;
    let status = answer.status.context("it was answered")?;
    assert_eq!((status.problems.len(), status.objects.len()), (0, 0));
    site.end().await
}
