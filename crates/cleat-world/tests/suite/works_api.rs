//! The kinds of works as servers know them from our definitions.

use anyhow::Result;
use cleat_api::appliedmanifestwork::AppliedManifestWork;
use cleat_api::manifestwork::{DeleteOption, Keep, ManifestWork, OrphanRule};
use cleat_api::manifestworkreplicaset::ManifestWorkReplicaSet;
use cleat_api::placement::{Placement, PlacementDecision};
use cleat_hub::prepare::{prepare_cluster, prepare_hub};
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::{CustomResourceExt, Resource as _};
use serde_json::{Value, json};

use crate::{Place, create, delete, parse, refusal};

/// A place on a hub that knows works.
pub(super) async fn place(topic: &str) -> Result<Place> {
    let place = Place::new(topic).await?;
    prepare_hub(&place.client).await?;
    Ok(place)
}

/// Objects of a kind of ours as plain JSON, so that a test can send what no type would.
pub(super) fn raw<K: CustomResourceExt>(place: &Place) -> Api<DynamicObject> {
    Api::namespaced_with(place.client.clone(), &place.namespace, &K::api_resource())
}

pub(super) fn config_map(name: &str) -> Value {
    let metadata = json!({ "name": name, "namespace": "default" });
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": { "a": "b" } })
}

pub(super) fn object(resource: &ApiResource, name: &str, spec: Value) -> DynamicObject {
    parse(json!({
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": { "name": name },
        "spec": spec,
    }))
}

/// The spec of a work with one manifest and `more`.
pub(super) fn spec(more: Value) -> Value {
    let mut spec = json!({ "workload": { "manifests": [config_map("a")] } });
    let fields = spec.as_object_mut().unwrap();
    fields.extend(more.as_object().cloned().unwrap_or_default());
    spec
}

async fn make(place: &Place, name: &str, spec: Value) -> Result<Value> {
    let work = object(&ManifestWork::api_resource(), name, spec);
    let mut made = raw::<ManifestWork>(place).create(&PostParams::default(), &work).await?;
    Ok(made.data["spec"].take())
}

#[tokio::test]
async fn works_get_their_defaults_and_keep_their_manifests() -> Result<()> {
    let place = place("works-api").await?;
    let identifier = json!({ "resource": "configmaps", "name": "*" });
    let made = make(
        &place,
        "w",
        spec(json!({
            "deleteOption": {},
            "unknown": 1,
            "manifestConfigs": [{
                "resourceIdentifier": identifier,
                "updateStrategy": { "serverSideApply": { "ignoreFields": [{ "jsonPaths": [".a"] }] } },
            }],
        })),
    )
    .await?;
    let expected = spec(json!({
        // Nothing is filled in here: rules without a policy must stay recognizable.
        "deleteOption": {},
        "manifestConfigs": [{
            "resourceIdentifier": identifier,
            "feedbackScrapeType": "Poll",
            "updateStrategy": {
                "type": "Update",
                "serverSideApply": {
                    "fieldManager": "work-agent",
                    "ignoreFields": [{ "condition": "OnSpokePresent", "jsonPaths": [".a"] }],
                },
            },
        }],
    }));
    assert_eq!(made, expected);
    let typed: Api<ManifestWork> = place.api();
    assert_eq!(serde_json::to_value(typed.get("w").await?.spec)?, expected);
    Ok(())
}

#[tokio::test]
async fn every_spelling_of_orphaning_rules_is_kept() -> Result<()> {
    let place = place("works-api").await?;
    let policy = "SelectivelyOrphan";
    let options = [
        json!({ "propagationPolicy": policy, "selectivelyOrphans": { "orphaningRules": [
            { "resource": "configmaps", "namespace": "default", "name": "a" },
        ] } }),
        json!({ "propagationPolicy": policy, "selectivelyOrphans": { "orphaningRules": [
            { "group": "", "resource": "configmaps", "resourceNamespace": "default", "resourceName": "a" },
        ] } }),
        json!({ "propagationPolicy": policy, "selectivelyOrphan": [
            { "group": "", "resource": "configmaps", "resourceNamespace": "default", "resourceName": "a" },
        ] }),
    ];
    let kept = OrphanRule {
        group: String::new(),
        resource: "configmaps".to_owned(),
        namespace: "default".to_owned(),
        name: "a".to_owned(),
    };
    for (index, option) in options.into_iter().enumerate() {
        let made =
            make(&place, &format!("w{index}"), spec(json!({ "deleteOption": option }))).await?;
        assert_eq!(made["deleteOption"], option);
        let read: DeleteOption = parse(option);
        assert_eq!(read.parse(), Ok(Keep::Listed(vec![kept.clone()])));
    }
    Ok(())
}

#[tokio::test]
async fn works_that_break_the_schema_are_refused() -> Result<()> {
    let place = place("works-api").await?;
    let rule = json!({ "resource": "configmaps", "name": "a" });
    let config = |config: Value| {
        let mut config = config;
        config["resourceIdentifier"] = json!({ "resource": "configmaps", "name": "a" });
        spec(json!({ "manifestConfigs": [config] }))
    };
    let option = |option: Value| spec(json!({ "deleteOption": option }));
    let account = |name: &str| {
        let account = json!({ "namespace": "n", "name": name });
        let subject = json!({ "type": "ServiceAccount", "serviceAccount": account });
        spec(json!({ "executor": { "subject": subject } }))
    };
    let cases = [
        (option(json!({ "propagationPolicy": "Background" })), "supported values: \"Foreground\""),
        (
            option(json!({ "selectivelyOrphans": { "orphaningRules": [rule] } })),
            "orphaning rules have an effect only with propagationPolicy: SelectivelyOrphan",
        ),
        (
            option(json!({ "propagationPolicy": "Foreground", "selectivelyOrphan": [rule] })),
            "orphaning rules have an effect only with propagationPolicy: SelectivelyOrphan",
        ),
        (
            option(json!({ "propagationPolicy": "Orphan", "selectivelyOrphan": [rule] })),
            "orphaning rules have an effect only with propagationPolicy: SelectivelyOrphan",
        ),
        (
            option(json!({
                "propagationPolicy": "SelectivelyOrphan",
                "selectivelyOrphan": [{ "resource": "configmaps" }],
            })),
            "name is required",
        ),
        (
            option(json!({
                "propagationPolicy": "SelectivelyOrphan",
                "selectivelyOrphan": [{ "name": "a" }],
            })),
            "spec.deleteOption.selectivelyOrphan[0].resource: Required value",
        ),
        (
            config(json!({ "updateStrategy": { "type": "Replace" } })),
            "supported values: \"Update\"",
        ),
        (
            config(json!({ "updateStrategy": {
                "type": "ServerSideApply",
                "serverSideApply": { "fieldManager": "me" },
            } })),
            "should match '^work-agent'",
        ),
        (
            config(json!({ "conditionRules": [{ "condition": "", "type": "CEL" }] })),
            "Condition is required for CEL rules",
        ),
        (config(json!({ "conditionRules": [{ "type": "CEL" }] })), "condition: Required value"),
        (
            config(json!({ "feedbackRules": [{ "type": "JSONPaths", "jsonPaths": [
                { "name": "n", "path": ".a" }, { "name": "n", "path": ".b" },
            ] }] })),
            "Duplicate value",
        ),
        (account("Not_A_Name"), "spec.executor.subject.serviceAccount.name"),
        (account(&"a".repeat(254)), "spec.executor.subject.serviceAccount.name"),
        (
            json!({ "workload": { "manifests": [{ "metadata": { "name": "a" } }] } }),
            "spec.workload.manifests[0].apiVersion",
        ),
    ];
    for (spec, expected) in cases {
        let work = object(&ManifestWork::api_resource(), "w", spec.clone());
        let answer = raw::<ManifestWork>(&place).create(&PostParams::default(), &work).await;
        let status = refusal(answer);
        assert_eq!((status.code, &*status.reason), (422, "Invalid"), "{spec}: {}", status.message);
        assert!(status.message.contains(expected), "{spec}: {}", status.message);
    }
    Ok(())
}

#[tokio::test]
async fn a_record_remembers_what_it_claims() -> Result<()> {
    let place = Place::new("works-api").await?;
    let cluster = place.world.clusters[0].client();
    prepare_cluster(&cluster).await?;
    let records: Api<AppliedManifestWork> = Api::all(cluster);
    let name = place.world.unique("record");
    let claims = json!([
        { "resource": "configmaps", "namespace": "default", "names": ["a", "c"], "origin": "Created" },
        { "resource": "configmaps", "namespace": "default", "name": "d", "origin": "Created" },
        { "group": "apps", "resource": "deployments", "namespace": "n", "name": "b", "origin": "Adopted" },
    ]);
    let spec = json!({ "hubHash": "h", "agentID": "i", "manifestWorkName": "w", "claims": claims });
    let made = create(&records, json!({ "metadata": { "name": name }, "spec": spec })).await?;
    assert_eq!(serde_json::to_value(&made.spec)?, spec);
    let applied = json!([{ "version": "v1", "resource": "configmaps", "name": "a", "uid": "u" }]);
    let status =
        json!({ "appliedResources": applied, "evictionStartTime": "2026-01-01T00:00:00Z" });
    let patch = Patch::Merge(json!({ "status": status }));
    let stated = records.patch_status(&name, &PatchParams::default(), &patch).await?;
    assert_eq!(serde_json::to_value(stated.status)?, status);
    delete(&records, &name).await
}

#[tokio::test]
async fn sets_and_placements_get_their_defaults() -> Result<()> {
    let place = place("works-api").await?;
    let made = raw::<ManifestWorkReplicaSet>(&place)
        .create(
            &PostParams::default(),
            &object(
                &ManifestWorkReplicaSet::api_resource(),
                "s",
                json!({ "manifestWorkTemplate": spec(json!({})), "placementRefs": [{ "name": "p" }] }),
            ),
        )
        .await?;
    let strategy = json!({
        "type": "All",
        "all": { "progressDeadline": "None", "minSuccessTime": "0", "maxFailures": 0 },
    });
    assert_eq!(made.data["spec"]["placementRefs"][0]["rolloutStrategy"], strategy);
    assert_eq!(made.data["spec"]["cascadeDeletionPolicy"], "Background");
    let sets: Api<ManifestWorkReplicaSet> = place.api();
    assert_eq!(sets.get("s").await?.spec.placement_refs.len(), 1);

    let placements: Api<Placement> = place.api();
    let groups = json!({ "groupStrategy": {} });
    let wish = json!({ "decisionStrategy": groups, "tolerations": [{ "key": "k" }] });
    let asked = object(&Placement::api_resource(), "p", wish);
    let made = raw::<Placement>(&place).create(&PostParams::default(), &asked).await?;
    let grouped = &made.data["spec"]["decisionStrategy"]["groupStrategy"];
    assert_eq!(grouped["clustersPerDecisionGroup"], "100%");
    assert_eq!(made.data["spec"]["tolerations"][0]["operator"], "Equal");
    assert_eq!(placements.get("p").await?.meta().name.as_deref(), Some("p"));

    let decisions: Api<PlacementDecision> = place.api();
    create(&decisions, json!({ "metadata": { "name": "p-decision-1" } })).await?;
    let chosen = json!({ "decisions": [{ "clusterName": "c", "reason": "" }] });
    let patch = Patch::Merge(json!({ "status": chosen }));
    let stated = decisions.patch_status("p-decision-1", &PatchParams::default(), &patch).await?;
    assert_eq!(serde_json::to_value(stated.status)?, chosen);
    Ok(())
}

#[tokio::test]
async fn preparing_twice_changes_nothing() -> Result<()> {
    let place = place("works-api").await?;
    let definitions = Api::<DynamicObject>::all_with(
        place.client.clone(),
        &ApiResource::erase::<
            k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
        >(&()),
    );
    let version = |object: DynamicObject| object.metadata.resource_version;
    let before = version(definitions.get(ManifestWork::crd_name()).await?);
    prepare_hub(&place.client).await?;
    assert_eq!(version(definitions.get(ManifestWork::crd_name()).await?), before);
    Ok(())
}
