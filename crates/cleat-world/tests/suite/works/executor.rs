//! A work with an executor is applied only if that service account could have done it.

use anyhow::Result;
use cleat_world::fleet::{Fleet, manifest_condition};
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use serde_json::{Value, json};

use crate::create;

/// Makes an account that may do this in the fleet's namespace, and the spec that works as it.
async fn account(fleet: &Fleet, name: &str, rules: Value) -> Result<Value> {
    create(&fleet.there::<ServiceAccount>(), json!({ "metadata": { "name": name } })).await?;
    let role = json!({ "metadata": { "name": name }, "rules": rules });
    create(&fleet.there::<Role>(), role).await?;
    let binding = json!({
        "metadata": { "name": name },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name },
        "subjects": [{ "kind": "ServiceAccount", "name": name, "namespace": fleet.name }],
    });
    create(&fleet.there::<RoleBinding>(), binding).await?;
    Ok(executor(&fleet.name, name))
}

fn executor(namespace: &str, name: &str) -> Value {
    let account = json!({ "namespace": namespace, "name": name });
    json!({ "executor": { "subject": { "type": "ServiceAccount", "serviceAccount": account } } })
}

#[tokio::test]
async fn an_account_without_rights_is_named_with_what_it_lacks() -> Result<()> {
    let fleet = Fleet::start("rightless").await?;
    let rules = json!([{ "apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"] }]);
    let spec = account(&fleet, "robot", rules).await?;
    fleet.work("one", vec![fleet.map("a", "1")], spec).await?;
    let who = format!("system:serviceaccount:{}:robot", fleet.name);
    let expected = format!(
        "Failed to apply manifest: {who} is not allowed to create, update, patch, delete \
         configmaps {}/a",
        fleet.name
    );
    let told = |work: &cleat_api::manifestwork::ManifestWork| {
        manifest_condition(work, 0, "Applied") == ("False".to_owned(), expected.clone())
    };
    fleet.seen(&fleet.works(), "one", told).await?;
    assert!(fleet.maps().get_opt("a").await?.is_none());
    fleet.end("one").await?;
    Ok(())
}

#[tokio::test]
async fn an_account_with_rights_gets_its_objects_and_loses_them() -> Result<()> {
    let fleet = Fleet::start("rightful").await?;
    let all = ["create", "update", "patch", "get", "delete"];
    let rules = json!([{ "apiGroups": [""], "resources": ["configmaps"], "verbs": all }]);
    let spec = account(&fleet, "robot", rules).await?;
    fleet.work("one", vec![fleet.map("a", "1")], spec).await?;
    fleet.told("one", "Applied", "True").await?;
    // Rights lost later do not keep a work from going.
    crate::delete(&fleet.there::<RoleBinding>(), "robot").await?;
    fleet.end("one").await?;
    assert!(fleet.maps().get_opt("a").await?.is_none());
    Ok(())
}

#[tokio::test]
async fn an_account_that_gets_its_rights_later_gets_its_objects_then() -> Result<()> {
    let fleet = Fleet::start("rightful-later").await?;
    let spec = account(&fleet, "robot", json!([])).await?;
    fleet.work("one", vec![fleet.map("a", "1")], spec).await?;
    fleet.told("one", "Applied", "False").await?;
    let all = ["create", "update", "patch", "get", "delete"];
    let rules = json!([{ "apiGroups": [""], "resources": ["configmaps"], "verbs": all }]);
    let patch = kube::api::Patch::Merge(json!({ "rules": rules }));
    fleet.there::<Role>().patch("robot", &Default::default(), &patch).await?;
    // Whoever gave the right and does not want to wait a minute edits the work.
    fleet.rewrite("one", vec![fleet.map("a", "2")]).await?;
    fleet.told("one", "Applied", "True").await?;
    assert!(fleet.maps().get_opt("a").await?.is_some());
    fleet.end("one").await?;
    Ok(())
}

#[tokio::test]
async fn another_account_without_rights_is_told_though_nothing_has_to_be_written() -> Result<()> {
    let fleet = Fleet::start("rightless-later").await?;
    let all = ["create", "update", "patch", "get", "delete"];
    let rules = json!([{ "apiGroups": [""], "resources": ["configmaps"], "verbs": all }]);
    let spec = account(&fleet, "robot", rules).await?;
    let weak = account(&fleet, "weakling", json!([])).await?;
    fleet.work("one", vec![fleet.map("a", "1")], spec.clone()).await?;
    fleet.told("one", "Applied", "True").await?;
    fleet.patch("one", json!({ "spec": weak })).await?;
    let work = fleet.told("one", "Applied", "False").await?;
    let (_, message) = manifest_condition(&work, 0, "Applied");
    assert!(message.contains("weakling is not allowed to create"), "{message}");
    assert!(fleet.maps().get_opt("a").await?.is_some());
    fleet.patch("one", json!({ "spec": spec })).await?;
    fleet.told("one", "Applied", "True").await?;
    Ok(())
}

#[tokio::test]
async fn what_is_to_stay_needs_no_right_to_delete() -> Result<()> {
    let fleet = Fleet::start("no-delete").await?;
    let most = ["create", "update", "patch", "get"];
    let rules = json!([{ "apiGroups": [""], "resources": ["configmaps"], "verbs": most }]);
    let mut spec = account(&fleet, "robot", rules).await?;
    spec["deleteOption"] = json!({ "propagationPolicy": "Orphan" });
    fleet.work("one", vec![fleet.map("a", "1")], spec).await?;
    fleet.told("one", "Applied", "True").await?;
    Ok(())
}

#[tokio::test]
async fn nobody_gives_rights_they_do_not_have() -> Result<()> {
    let fleet = Fleet::start("escalates").await?;
    let all = ["create", "update", "patch", "get", "delete"];
    let rules = json!([
        { "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "verbs": all },
        { "apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"] },
    ]);
    let spec = account(&fleet, "robot", rules).await?;
    let role = |name: &str, resource: &str| {
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "Role",
            "metadata": { "name": name, "namespace": fleet.name },
            "rules": [{ "apiGroups": [""], "resources": [resource], "verbs": ["get"] }],
        })
    };
    let manifests = vec![role("modest", "configmaps"), role("greedy", "secrets")];
    fleet.work("one", manifests, spec).await?;
    let told = |work: &cleat_api::manifestwork::ManifestWork| {
        manifest_condition(work, 0, "Applied").0 == "True"
            && manifest_condition(work, 1, "Applied").1.contains("attempting to grant")
    };
    fleet.seen(&fleet.works(), "one", told).await?;
    assert!(fleet.there::<Role>().get_opt("greedy").await?.is_none());
    Ok(())
}
