//! Deleting what was looked at, and nothing else. These tests answer in the agent's place, so they
//! decide what happens between the look and the deletion.

use std::time::Duration;

use anyhow::{Context as _, Result};
use cleat_api::manifestwork::ManifestWork;
use cleat_api::removalpreview::RemovalPreview;
use cleat_cli::delete::agreed;
use cleat_cli::preview::foresee;
use cleat_cli::{PlanChanged, REFUSED, exit_code};
use cleat_hub::prepare::prepare_hub;
use cleat_world::eventually;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt as _;
use kube::api::{Api, ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::{Place, create, delete};

const PATIENCE: Duration = Duration::from_secs(30);
/// For a question of which it is known that nobody answers.
const SHORT: Duration = Duration::from_secs(1);
const WORK: &str = "manifestwork/shop";

/// A hub with one work, and nobody on its cluster.
struct Site {
    place: Place,
}

impl Site {
    async fn start(topic: &str) -> Result<Self> {
        let place = Place::new(topic).await?;
        prepare_hub(&place.client).await?;
        let map = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": "prices", "namespace": "default" },
        });
        let spec = json!({ "workload": { "manifests": [map] } });
        let work = json!({ "metadata": { "name": "shop" }, "spec": spec });
        create::<ManifestWork>(&place.api(), work).await?;
        Ok(Self { place })
    }

    fn works(&self) -> Api<ManifestWork> {
        self.place.api()
    }

    fn questions(&self) -> Api<RemovalPreview> {
        self.place.api()
    }

    /// The name of the one question that was not answered yet.
    async fn asked(&self) -> Result<String> {
        eventually("a question", || async {
            let all = self.questions().list(&ListParams::default()).await?;
            let open = |one: &&RemovalPreview| one.status.is_none() && one.labels().is_empty();
            Ok(all.items.iter().find(open).map(|one| one.name_any()))
        })
        .await
    }

    async fn answer(&self, question: &str) -> Result<()> {
        let object = json!({
            "version": "v1", "resource": "configmaps", "namespace": "default", "name": "prices",
            "uid": "1", "verdict": "Delete",
        });
        let answer = json!({ "status": {
            "answeredAt": "2026-01-01T00:00:00Z", "objects": [object],
        } });
        let patch = Patch::Merge(answer);
        self.questions().patch_status(question, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    async fn look(&self) -> Result<String> {
        let answering = async { self.answer(&self.asked().await?).await };
        let namespace = Some(&*self.place.namespace);
        let looking = foresee(&self.place.client, WORK, namespace, PATIENCE);
        let (foreseen, answered) = tokio::join!(looking, answering);
        answered?;
        plan(&foreseen?)
    }

    async fn look_in_vain(&self) -> Result<String> {
        let namespace = Some(&*self.place.namespace);
        plan(&foresee(&self.place.client, WORK, namespace, SHORT).await?)
    }

    /// Deletes it by a plan, with something happening before the cluster answers.
    async fn delete(&self, plan: &str, between: impl Future<Output = Result<()>>) -> Result<()> {
        let namespace = Some(&*self.place.namespace);
        let deleting = agreed(&self.place.client, WORK, namespace, plan, PATIENCE);
        let answering = async {
            let question = self.asked().await?;
            between.await?;
            self.answer(&question).await
        };
        let (deleted, answered) = tokio::join!(deleting, answering);
        answered?;
        deleted
    }

    async fn refused(&self, deleted: Result<()>, why: &str) -> Result<()> {
        let error = deleted.err().context("it was deleted")?;
        let told = format!("{error:#}");
        assert_eq!(exit_code(&error), REFUSED, "{told}");
        assert!(error.is::<PlanChanged>() && told.contains("PlanChanged: "), "{told}");
        assert!(told.contains(why), "{told}");
        let work = self.works().get("shop").await?;
        assert_eq!(work.metadata.deletion_timestamp, None);
        Ok(())
    }
}

fn plan(foreseen: &Value) -> Result<String> {
    Ok(foreseen["plan"].as_str().context("a plan has a hash")?.to_owned())
}

async fn nothing() -> Result<()> {
    Ok(())
}

#[tokio::test]
async fn what_changed_between_the_look_and_the_deletion_was_deleted_all_the_same() -> Result<()> {
    let site = Site::start("preview-bound").await?;
    let works = site.works();
    let plan = site.look().await?;
    let change = async {
        let spec = json!({ "spec": { "deleteOption": { "propagationPolicy": "Orphan" } } });
        works.patch("shop", &PatchParams::default(), &Patch::Merge(spec)).await?;
        Ok(())
    };
    let deleted = site.delete(&plan, change).await;
    site.refused(deleted, "changed while it was looked at (spec.deleteOption)").await?;

    // What an agent reports meanwhile is no change of what was agreed to.
    let report = async {
        let condition = json!({
            "type": "Applied", "status": "True", "reason": "Reported", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        });
        let status = Patch::Merge(json!({ "status": { "conditions": [condition] } }));
        works.patch_status("shop", &PatchParams::default(), &status).await?;
        Ok(())
    };
    site.delete(&plan, report).await?;
    assert!(works.get_opt("shop").await?.is_none());
    Ok(())
}

#[tokio::test]
async fn a_plan_made_while_a_cluster_was_silent_is_not_the_one_in_which_it_answers() -> Result<()> {
    let site = Site::start("preview-silent").await?;
    let blind = site.look_in_vain().await?;
    let deleted = site.delete(&blind, nothing()).await;
    site.refused(deleted, "did not answer then, and does now").await?;

    // Nor does it become that by an answer that nobody saw.
    let late = site.questions().list(&ListParams::default()).await?;
    let late = late.items.iter().find(|one| one.status.is_none()).context("an open question")?;
    site.answer(&late.name_any()).await?;
    let deleted = site.delete(&blind, nothing()).await;
    site.refused(deleted, "did not answer then, and does now").await?;

    let seen = site.look().await?;
    assert_ne!(seen, blind);
    let client = &site.place.client;
    let deleted = agreed(client, WORK, Some(&site.place.namespace), &seen, SHORT).await;
    site.refused(deleted, "answered then, and does not now").await?;

    // What the hub believes to be there counts as well.
    let condition = json!({
        "type": "Applied", "status": "True", "reason": "Applied", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    let applied = json!({
        "resourceMeta": {
            "ordinal": 0, "group": "", "version": "v1", "kind": "ConfigMap",
            "resource": "configmaps", "namespace": "default", "name": "prices",
        },
        "conditions": [condition], "statusFeedback": {},
    });
    let more = Patch::Merge(json!({ "status": { "resourceStatus": { "manifests": [applied] } } }));
    assert_eq!(site.look_in_vain().await?, blind);
    site.works().patch_status("shop", &PatchParams::default(), &more).await?;
    let deleted = agreed(client, WORK, Some(&site.place.namespace), &blind, SHORT).await;
    site.refused(deleted, "the hub believes other objects to be there").await?;

    let now = site.look_in_vain().await?;
    agreed(client, WORK, Some(&site.place.namespace), &now, SHORT).await?;
    assert!(site.works().get_opt("shop").await?.is_none());
    Ok(())
}

#[tokio::test]
async fn a_plain_object_that_was_looked_at_could_not_be_deleted() -> Result<()> {
    let place = Place::new("preview-plain").await?;
    let (client, namespace) = (&place.client, Some(&*place.namespace));
    let maps: Api<ConfigMap> = place.api();
    create(&maps, json!({ "metadata": { "name": "plain" } })).await?;
    let before = plan(&foresee(client, "cm/plain", namespace, PATIENCE).await?)?;

    // Another of the same name is not what somebody looked at.
    delete(&maps, "plain").await?;
    create(&maps, json!({ "metadata": { "name": "plain" } })).await?;
    let refused = agreed(client, "cm/plain", namespace, &before, PATIENCE).await.unwrap_err();
    assert_eq!(exit_code(&refused), REFUSED, "{refused:#}");
    assert!(refused.is::<PlanChanged>(), "{refused:#}");
    assert!(refused.to_string().contains("now it is: 1 to delete on 1 cluster"), "{refused:#}");
    assert!(maps.get_opt("plain").await?.is_some());

    // However its kind is typed, it is the same object, and the same plan.
    let now = plan(&foresee(client, "cm/plain", namespace, PATIENCE).await?)?;
    agreed(client, "ConfigMap/plain", namespace, &now, PATIENCE).await?;
    assert!(maps.get_opt("plain").await?.is_none());
    Ok(())
}
