//! A ValidatingAdmissionPolicy refuses what its expressions do not hold of, where it is bound.

use anyhow::Result;
use cleat_world::eventually;
use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::{Place, create, delete, parse, refusal, refused};

/// Has a policy judge config maps of the place alone, and waits until it does. Every policy here has
/// to refuse what is labelled `probe`.
async fn install(place: &Place, spec: Value, binding: Value) -> Result<()> {
    let name = &place.namespace;
    let policies: Api<ValidatingAdmissionPolicy> = Api::all(place.client.clone());
    let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(place.client.clone());
    let mut spec = spec;
    spec["matchConstraints"] = json!({ "resourceRules": [{
        "operations": ["CREATE", "UPDATE"],
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "resources": ["configmaps"],
    }] });
    if let Some(validations) = spec["validations"].as_array_mut() {
        validations.push(json!({
            "expression": "!has(object.metadata.labels) || !('probe' in object.metadata.labels)",
        }));
    }
    create(&policies, json!({ "metadata": { "name": name }, "spec": spec })).await?;
    let mut bound = binding;
    bound["policyName"] = json!(name);
    let only_here = json!({ "kubernetes.io/metadata.name": name });
    bound["matchResources"] = json!({ "namespaceSelector": { "matchLabels": only_here } });
    create(&bindings, json!({ "metadata": { "name": name }, "spec": bound })).await?;
    let maps: Api<ConfigMap> = place.api();
    let probe: ConfigMap =
        parse(json!({ "metadata": { "generateName": "probe-", "labels": { "probe": "" } } }));
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    eventually("the policy to be heeded", || async {
        Ok(maps.create(&dry, &probe).await.is_err().then_some(()))
    })
    .await
}

async fn uninstall(place: &Place) -> Result<()> {
    let policies: Api<ValidatingAdmissionPolicy> = Api::all(place.client.clone());
    let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(place.client.clone());
    delete(&bindings, &place.namespace).await?;
    delete(&policies, &place.namespace).await
}

fn sized(name: &str, size: &str) -> Value {
    json!({ "metadata": { "name": name }, "data": { "size": size } })
}

#[tokio::test]
async fn what_does_not_hold_is_refused_however_it_is_written() -> Result<()> {
    let place = Place::new("policies").await?;
    let maps: Api<ConfigMap> = place.api();
    let spec = json!({
        "variables": [{ "name": "size", "expression": "has(object.data) && has(object.data.size) ? object.data.size : '0'" }],
        "validations": [{
            "expression": "int(variables.size) <= 3",
            "messageExpression": "'at most 3, not ' + variables.size",
            "reason": "Forbidden",
        }],
    });
    install(&place, spec, json!({ "validationActions": ["Deny"] })).await?;
    create(&maps, sized("a", "3")).await?;
    let status = refused(&maps, sized("b", "4")).await;
    assert_eq!((status.code, &*status.reason), (403, "Forbidden"));
    let expected = format!(
        "configmaps \"b\" is forbidden: ValidatingAdmissionPolicy '{0}' with binding '{0}' denied \
         request: at most 3, not 4",
        place.namespace
    );
    assert_eq!(status.message, expected);
    let grow = Patch::Merge(json!({ "data": { "size": "5" } }));
    let status = refusal(maps.patch("a", &PatchParams::default(), &grow).await);
    assert!(status.message.ends_with("at most 3, not 5"), "{}", status.message);
    let status = refusal(maps.replace("a", &PostParams::default(), &parse(sized("a", "6"))).await);
    assert_eq!(status.code, 403);
    assert_eq!(maps.get("a").await?.data.unwrap()["size"], "3");
    assert!(maps.get_opt("b").await?.is_none());
    uninstall(&place).await
}

#[tokio::test]
async fn what_cannot_be_evaluated_is_refused() -> Result<()> {
    let place = Place::new("policies").await?;
    let maps: Api<ConfigMap> = place.api();
    let spec = json!({ "validations": [{ "expression": "object.data.size == '1'" }] });
    install(&place, spec, json!({ "validationActions": ["Deny"] })).await?;
    let status = refused(&maps, json!({ "metadata": { "name": "a" } })).await;
    assert_eq!((status.code, &*status.reason), (422, "Invalid"));
    assert!(status.message.contains("resulted in error: no such key: data"), "{}", status.message);
    create(&maps, sized("a", "1")).await?;
    uninstall(&place).await
}

#[tokio::test]
async fn parameters_are_those_of_the_namespace() -> Result<()> {
    let place = Place::new("policies").await?;
    let maps: Api<ConfigMap> = place.api();
    create(&maps, json!({ "metadata": { "name": "limit" }, "data": { "most": "2" } })).await?;
    let spec = json!({
        "paramKind": { "apiVersion": "v1", "kind": "ConfigMap" },
        "matchConditions": [{ "name": "sized", "expression":
            "has(object.data) && has(object.data.size) || has(object.metadata.labels)" }],
        "validations": [{
            "expression": "!has(object.data) || int(object.data.size) <= int(params.data.most)",
        }],
    });
    let binding = json!({
        "validationActions": ["Deny"],
        "paramRef": { "name": "limit", "parameterNotFoundAction": "Deny" },
    });
    install(&place, spec, binding).await?;
    create(&maps, sized("a", "2")).await?;
    let status = refused(&maps, sized("b", "3")).await;
    assert_eq!(status.code, 422);
    let most = Patch::Merge(json!({ "data": { "most": "3" } }));
    maps.patch("limit", &PatchParams::default(), &most).await?;
    eventually("the new limit to count", || async {
        Ok(maps.create(&PostParams::default(), &parse(sized("b", "3"))).await.ok())
    })
    .await?;
    delete(&maps, "limit").await?;
    let message = eventually("the limit to be missed", || async {
        let dry = PostParams { dry_run: true, ..PostParams::default() };
        let answer = maps.create(&dry, &parse(sized("c", "1"))).await;
        Ok(answer.is_err().then(|| refusal(answer).message))
    })
    .await?;
    let expected = "no params found for policy binding with `Deny` parameterNotFoundAction";
    assert!(message.ends_with(expected), "{message}");
    uninstall(&place).await
}
