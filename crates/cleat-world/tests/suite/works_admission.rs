//! Works that a hub must not take, asked of the real webhook by real and embedded servers.

use anyhow::Result;
use cleat_api::admission::Rules;
use cleat_api::manifestwork::ManifestWork;
use cleat_api::manifestworkreplicaset::ManifestWorkReplicaSet;
use cleat_hub::prepare::install_webhooks;
use cleat_webhook::{Judge, Reach, configuration};
use cleat_world::eventually;
use cleat_world::webhook::serve;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use kube::CustomResourceExt;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::Status;
use serde_json::{Value, json};

use crate::access::{let_robots, robot};
use crate::works_api::{config_map, object, place, raw, spec};
use crate::{Place, delete, gone, parse, refusal};

/// A place whose works are judged by a webhook of its own, and by nobody else's.
async fn judged(rules: Rules) -> Result<Place> {
    let place = place("works-admission").await?;
    let served = serve(Judge::new(place.client.clone(), rules).router()).await?;
    install(&place, Some(&served.authority), &served.url).await?;
    eventually("the webhook to be asked", || async {
        let asked = try_create::<ManifestWork>(&place, "probe", json!({})).await;
        Ok(asked.err().filter(|status| status.message.contains("is empty")))
    })
    .await?;
    Ok(place)
}

async fn install(place: &Place, authority: Option<&str>, url: &str) -> Result<()> {
    let mut here = configuration(authority, &Reach::Url(url.to_owned()));
    here.metadata.name = Some(place.namespace.clone());
    let only_here = json!({ "matchLabels": { "kubernetes.io/metadata.name": place.namespace } });
    // Clusters are in no namespace, so those of other tests would be judged here as well.
    here.webhooks.iter_mut().for_each(|all| all.retain(|one| one.name.starts_with("manifestwork")));
    for webhook in here.webhooks.iter_mut().flatten() {
        webhook.namespace_selector = Some(parse(only_here.clone()));
    }
    Ok(install_webhooks(&place.client, &here).await?)
}

async fn uninstall(place: &Place) -> Result<()> {
    let configurations: Api<ValidatingWebhookConfiguration> = Api::all(place.client.clone());
    delete(&configurations, &place.namespace).await
}

/// Asks without storing anything.
async fn try_create<K: CustomResourceExt>(
    place: &Place,
    name: &str,
    spec: Value,
) -> Result<DynamicObject, Status> {
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    let asked = object(&K::api_resource(), name, spec);
    match raw::<K>(place).create(&dry_run, &asked).await {
        Ok(made) => Ok(made),
        Err(error) => Err(refusal::<DynamicObject>(Err(error))),
    }
}

async fn refused<K: CustomResourceExt>(place: &Place, name: &str, spec: Value, expected: &str) {
    let status = try_create::<K>(place, name, spec).await.unwrap_err();
    let message = &status.message;
    assert_eq!((status.code, &*status.reason), (400, "BadRequest"), "{message}");
    assert!(message.contains("denied the request: "), "{message}");
    assert!(message.contains(expected), "{expected} is not in: {message}");
}

#[tokio::test]
async fn bad_works_are_refused() -> Result<()> {
    let place = judged(Rules::default()).await?;
    let manifests = |manifests: Value| json!({ "workload": { "manifests": manifests } });
    let nameless = |metadata: Value| {
        manifests(json!([{ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata }]))
    };
    let big = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "big" },
        "data": { "a": "x".repeat(500 * 1024) },
    });
    let cases = [
        (json!({}), "spec.workload.manifests is empty"),
        (manifests(json!([])), "spec.workload.manifests is empty"),
        (nameless(json!({})), "spec.workload.manifests[0] has no metadata.name"),
        (nameless(json!({ "generateName": "a-" })), "has metadata.generateName"),
        (
            manifests(json!([config_map("a"), config_map("b"), config_map("a")])),
            "spec.workload.manifests[2] is the same object as spec.workload.manifests[0], v1 ConfigMap default/a",
        ),
        (manifests(json!([big])), "the limit is 512000"),
        (
            spec(json!({ "deleteOption": {
                "propagationPolicy": "SelectivelyOrphan",
                "selectivelyOrphans": { "orphaningRules": [{ "resource": "configmaps", "name": "a" }] },
                "selectivelyOrphan": [{ "resource": "configmaps", "name": "b" }],
            } })),
            "name different objects; keep one of the two lists",
        ),
        (
            spec(json!({ "deleteOption": {
                "propagationPolicy": "SelectivelyOrphan",
                "selectivelyOrphan": [{ "resource": "configmaps", "name": "a", "resourceName": "b" }],
            } })),
            "has different values for name and resourceName",
        ),
        (
            spec(json!({ "deleteOption": {
                "propagationPolicy": "SelectivelyOrphan",
                "selectivelyOrphan": [{ "resource": "", "name": "a" }],
            } })),
            "spec.deleteOption.selectivelyOrphan[0] has no resource",
        ),
        (
            spec(json!({ "executor": { "subject": { "type": "ServiceAccount" } } })),
            "executor.subject.serviceAccount is not given",
        ),
    ];
    for (spec, expected) in cases {
        refused::<ManifestWork>(&place, "w", spec, expected).await;
    }
    let long = "w".repeat(189);
    refused::<ManifestWork>(&place, &long, spec(json!({})), "metadata.name has 189").await;
    let longest = "w".repeat(188);
    assert!(try_create::<ManifestWork>(&place, &longest, spec(json!({}))).await.is_ok());
    uninstall(&place).await
}

#[tokio::test]
async fn the_limit_of_manifests_can_be_set() -> Result<()> {
    let place = judged(Rules { manifest_bytes: 10, ..Rules::default() }).await?;
    refused::<ManifestWork>(&place, "w", spec(json!({})), "the limit is 10; divide").await;
    uninstall(&place).await
}

#[tokio::test]
async fn bad_sets_are_refused() -> Result<()> {
    let place = judged(Rules::default()).await?;
    let set = |template: Value| json!({ "manifestWorkTemplate": template, "placementRefs": [{ "name": "p" }] });
    let good = set(spec(json!({})));
    assert!(try_create::<ManifestWorkReplicaSet>(&place, "s", good.clone()).await.is_ok());
    let empty = "spec.manifestWorkTemplate.workload.manifests is empty";
    refused::<ManifestWorkReplicaSet>(&place, "s", set(json!({})), empty).await;
    let twice = set(spec(json!({ "deleteOption": {
        "propagationPolicy": "SelectivelyOrphan",
        "selectivelyOrphan": [{ "resource": "configmaps", "name": "a", "resourceName": "b" }],
    } })));
    let expected = "spec.manifestWorkTemplate.deleteOption.selectivelyOrphan[0] has different";
    refused::<ManifestWorkReplicaSet>(&place, "s", twice, expected).await;
    let long = "s".repeat(63 - place.namespace.len());
    let expected = "<namespace>.<name> has 64 characters";
    refused::<ManifestWorkReplicaSet>(&place, &long, good, expected).await;
    uninstall(&place).await
}

fn merge(patch: Value) -> Patch<Value> {
    Patch::Merge(patch)
}

#[tokio::test]
async fn delete_option_is_settled_when_the_deletion_begins() -> Result<()> {
    let place = judged(Rules::default()).await?;
    let works = raw::<ManifestWork>(&place);
    let option = json!({
        "propagationPolicy": "SelectivelyOrphan",
        "selectivelyOrphans": { "orphaningRules": [{ "resource": "configmaps", "name": "a" }] },
    });
    let mut work =
        object(&ManifestWork::api_resource(), "w", spec(json!({ "deleteOption": option })));
    work.metadata.finalizers = Some(vec!["cleat.example/hold".to_owned()]);
    let made = works.create(&PostParams::default(), &work).await?;
    let change = |option: Value| merge(json!({ "spec": { "deleteOption": option } }));
    let params = PatchParams::default();
    works.patch("w", &params, &change(json!({ "ttlSecondsAfterFinished": 60 }))).await?;
    delete(&works, "w").await?;
    let changes = [
        json!({ "ttlSecondsAfterFinished": null }),
        json!({ "propagationPolicy": "Orphan", "selectivelyOrphans": null }),
        json!({ "selectivelyOrphans": { "orphaningRules": [{ "resource": "configmaps", "name": "b" }] } }),
    ];
    for patch in changes {
        let status = refusal(works.patch("w", &params, &change(patch)).await);
        assert_eq!(status.code, 400, "{}", status.message);
        let expected = "spec.deleteOption cannot change while the work is being deleted";
        assert!(status.message.contains(expected), "{}", status.message);
    }
    // The same said in other words, and everything else, is still possible.
    let other_words = json!({
        "selectivelyOrphans": null,
        "selectivelyOrphan": [{ "resource": "configmaps", "resourceName": "a" }],
    });
    works.patch("w", &params, &change(other_words)).await?;
    let more =
        json!({ "spec": { "workload": { "manifests": [config_map("a"), config_map("b")] } } });
    works.patch("w", &params, &merge(more)).await?;
    works.patch("w", &params, &merge(json!({ "metadata": { "finalizers": null } }))).await?;
    gone(&works, &made).await?;
    uninstall(&place).await
}

/// What was stored before there was a webhook may be wrong, and the webhook may be down.
#[tokio::test]
async fn a_wrong_work_can_lose_its_finalizer_whatever_becomes_of_the_webhook() -> Result<()> {
    let place = place("works-admission").await?;
    let works = raw::<ManifestWork>(&place);
    let mut work = object(&ManifestWork::api_resource(), "w", json!({}));
    work.metadata.finalizers = Some(vec!["cleat.example/hold".to_owned()]);
    let made = works.create(&PostParams::default(), &work).await?;
    install(&place, None, "https://127.0.0.1:1/").await?;
    let params = PatchParams::default();
    let dry_run = PatchParams { dry_run: true, ..params.clone() };
    let change = merge(json!({ "spec": { "workload": { "manifests": [config_map("a")] } } }));
    eventually("the webhook to be missed", || async {
        Ok(works.patch("w", &dry_run, &change).await.is_err().then_some(()))
    })
    .await?;
    works.patch("w", &params, &merge(json!({ "metadata": { "labels": { "a": "b" } } }))).await?;
    let stated = merge(json!({ "status": { "conditions": [] } }));
    works.patch_status("w", &params, &stated).await?;
    delete(&works, "w").await?;
    works.patch("w", &params, &merge(json!({ "metadata": { "finalizers": null } }))).await?;
    gone(&works, &made).await?;
    uninstall(&place).await
}

#[tokio::test]
async fn an_executor_takes_the_right_to_name_it() -> Result<()> {
    let place = judged(Rules::default()).await?;
    let robot = robot(&place).await?;
    let group = "work.open-cluster-management.io";
    let write = json!({ "apiGroups": [group], "resources": ["manifestworks"], "verbs": ["create", "patch", "get"] });
    let execute = json!({
        "apiGroups": [group],
        "resources": ["manifestworks"],
        "verbs": ["execute-as"],
        "resourceNames": ["system:serviceaccount:apps:deployer"],
    });
    let_robots(&place, json!([write, execute])).await?;
    let resource = ManifestWork::api_resource();
    let works: Api<DynamicObject> = Api::namespaced_with(robot, &place.namespace, &resource);
    let executed_by = |name: &str| {
        let account = json!({ "namespace": "apps", "name": name });
        json!({ "subject": { "type": "ServiceAccount", "serviceAccount": account } })
    };
    let work = |name: &str, executor: Value| {
        object(&resource, name, spec(json!({ "executor": executor })))
    };
    let params = PostParams::default();
    eventually("the role to count", || async {
        Ok(works.create(&params, &work("granted", executed_by("deployer"))).await.ok())
    })
    .await?;
    let status = refusal(works.create(&params, &work("other", executed_by("admin"))).await);
    assert_eq!((status.code, &*status.reason), (403, "Forbidden"), "{}", status.message);
    let expected = format!(
        "user system:serviceaccount:{0}:robot may not let works use the rights of \
         system:serviceaccount:apps:admin: it needs the verb execute-as on manifestworks.{group} \
         with that resource name in namespace {0}",
        place.namespace
    );
    assert!(status.message.contains(&expected), "{}", status.message);
    let change = |executor: Value| merge(json!({ "spec": { "executor": executor } }));
    let patch = PatchParams::default();
    let status = refusal(works.patch("granted", &patch, &change(executed_by("admin"))).await);
    assert_eq!(status.code, 403, "{}", status.message);
    // Who may not name an executor may still change the work of one that others named.
    let admin = raw::<ManifestWork>(&place);
    admin.patch("granted", &patch, &change(executed_by("admin"))).await?;
    let more = json!({ "workload": { "manifests": [config_map("b")] } });
    works.patch("granted", &patch, &merge(json!({ "spec": more }))).await?;
    uninstall(&place).await
}
