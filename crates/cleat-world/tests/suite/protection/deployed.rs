//! What deploy/protection gives a webhook is enough, and keeps it in place.

use anyhow::Result;
use kube::api::{DeleteParams, PostParams};
use kube::client::Body;
use serde_json::{Value, json};

use super::*;
use crate::delete;

/// The documents of the manifest, with everything in them called otherwise.
fn manifest(name: &str) -> Result<Vec<Value>> {
    let text = include_str!("../../../../../deploy/protection/protection.yaml");
    let text = text.replace("cleat-protection", name);
    let documents = text.split("\n---\n").map(|one| Ok(serde_saphyr::from_str::<Value>(one)?));
    documents.collect()
}

fn of_kind(documents: &[Value], kind: &str) -> Vec<Value> {
    documents.iter().filter(|one| one["kind"] == kind).cloned().collect()
}

fn api(client: &Client, group: &str, kind: &str, plural: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk(group, "v1", kind);
    Api::all_with(client.clone(), &ApiResource::from_gvk_with_plural(&kind, plural))
}

/// The same server, asked by somebody else.
fn somebody(client: &Client, user: &str) -> Client {
    let user = http::HeaderValue::from_str(user).unwrap();
    let client = client.clone();
    let service = tower::service_fn(move |mut request: http::Request<Body>| {
        let client = client.clone();
        request.headers_mut().insert("impersonate-user", user.clone());
        async move { client.send(request).await }
    });
    Client::new(service, "default")
}

/// Somebody who has the rights of the manifest and a few more.
struct Lent {
    client: Client,
    roles: Api<DynamicObject>,
    bindings: Api<DynamicObject>,
}

impl Lent {
    /// Whoever uses the manifest adds the kinds that the CriticalServices name.
    async fn new(guarded: &Guarded, more: Option<Value>) -> Result<Self> {
        let mut rules: Vec<Value> = Vec::new();
        for role in of_kind(&manifest(&guarded.name)?, "ClusterRole") {
            rules.extend(role["rules"].as_array().cloned().unwrap_or_default());
        }
        rules.extend(more);
        let rbac = "rbac.authorization.k8s.io";
        let roles = api(&guarded.client, rbac, "ClusterRole", "clusterroles");
        let bindings = api(&guarded.client, rbac, "ClusterRoleBinding", "clusterrolebindings");
        let named = json!({ "name": guarded.name });
        let version = format!("{rbac}/v1");
        let role = json!({
            "apiVersion": version, "kind": "ClusterRole", "metadata": named, "rules": rules,
        });
        create(&roles, role).await?;
        let user = format!("user-of-{}", guarded.name);
        create(
            &bindings,
            json!({
                "apiVersion": version, "kind": "ClusterRoleBinding", "metadata": named,
                "roleRef": { "apiGroup": rbac, "kind": "ClusterRole", "name": guarded.name },
                "subjects": [{ "apiGroup": rbac, "kind": "User", "name": user }],
            }),
        )
        .await?;
        let client = somebody(&guarded.client, &user);
        eventually("the rights", || async {
            let services: Api<CriticalService> = Api::all(client.clone());
            Ok(services.list(&Default::default()).await.ok().map(drop))
        })
        .await?;
        Ok(Self { client, roles, bindings })
    }

    async fn give_back(self, name: &str) -> Result<()> {
        delete(&self.bindings, name).await?;
        delete(&self.roles, name).await
    }
}

/// The same site, without anybody who protects it.
async fn unprotected(topic: &str) -> Result<Guarded> {
    let guarded = Guarded::new(topic).await?;
    guarded.tasks.shutdown().await;
    uninstall(&guarded.client, &guarded.name).await?;
    Ok(guarded)
}

#[tokio::test]
async fn the_rights_in_the_manifest_are_enough() -> Result<()> {
    let guarded = unprotected("rights").await?;
    let cools = json!({
        "apiGroups": [group(&guarded.name)], "resources": ["cools"],
        "verbs": ["get", "list", "watch"],
    });
    let lent = Lent::new(&guarded, Some(cools)).await?;
    guarded.define().await?;
    guarded.provider().await?;
    guarded.consumer("one").await?;
    let (_, _, tasks) = protect(&lent.client, &guarded.name).await?;
    guarded.service(json!({})).await?;
    guarded.refused().await;
    delete(&guarded.definitions(), &definition_name(&guarded.name)).await?;
    guarded.set_finalizers("one", json!(null)).await?;
    guarded.passes().await?;
    guarded.told(|status| status.latch.is_some()).await?;
    tasks.shutdown().await;
    lent.give_back(&guarded.name).await?;
    guarded.end().await
}

/// (6) A list that is refused is not a list without objects.
#[tokio::test]
async fn what_may_not_be_listed_is_unknown() -> Result<()> {
    let guarded = unprotected("unlisted").await?;
    let lent = Lent::new(&guarded, None).await?;
    guarded.define().await?;
    guarded.provider().await?;
    let (_, _, tasks) = protect(&lent.client, &guarded.name).await?;
    let finalizer = json!({ "criteria": [{ "type": "Finalizer", "finalizer": {
        "group": group(&guarded.name), "resource": "cools", "finalizerName": FINALIZER } }] });
    guarded.service(finalizer).await?;
    let status = guarded.refused().await;
    assert!(status.message.contains("cannot be told: not allowed to look"), "{}", status.message);
    guarded.told(|status| states(status) == [CriterionState::Unknown]).await?;
    tasks.shutdown().await;
    lent.give_back(&guarded.name).await?;
    guarded.end().await
}

/// (17) API servers keep what they ask, and let it go when they do not ask it any more.
#[tokio::test]
async fn what_answers_is_kept_while_it_is_asked() -> Result<()> {
    let guarded = Guarded::all("kept").await?;
    if guarded.world.is_embedded() {
        // It stores such policies and does not heed them.
        return guarded.end().await;
    }
    let documents = manifest(&guarded.name)?;
    let group = "admissionregistration.k8s.io";
    let policies =
        api(&guarded.client, group, "ValidatingAdmissionPolicy", "validatingadmissionpolicies");
    let bindings = api(
        &guarded.client,
        group,
        "ValidatingAdmissionPolicyBinding",
        "validatingadmissionpolicybindings",
    );
    for policy in of_kind(&documents, "ValidatingAdmissionPolicy") {
        create(&policies, policy).await?;
    }
    for binding in of_kind(&documents, "ValidatingAdmissionPolicyBinding") {
        create(&bindings, binding).await?;
    }
    let mut webhook = deployment(&guarded.name);
    webhook["metadata"]["name"] = json!(guarded.name);
    let deployments: Api<Deployment> = Api::namespaced(guarded.client.clone(), &guarded.name);
    deployments.create(&PostParams::default(), &crate::parse(webhook)).await?;
    let dry = DeleteParams { dry_run: true, ..DeleteParams::default() };
    let status = eventually("the policy to be heeded", || async {
        let answer = deployments.delete(&guarded.name, &dry).await;
        Ok(answer.is_err().then(|| refusal(answer)))
    })
    .await?;
    assert!(status.message.contains("cleat webhook --unprotect"), "{}", status.message);
    let status = refusal(guarded.namespaces().delete(&guarded.name, &dry).await);
    assert!(status.message.contains("cleat webhook --unprotect"), "{}", status.message);
    uninstall(&guarded.client, &guarded.name).await?;
    eventually("it to be let go", || async {
        let answer = deployments.delete(&guarded.name, &DeleteParams::default()).await;
        Ok(answer.ok().map(drop))
    })
    .await?;
    for binding in of_kind(&documents, "ValidatingAdmissionPolicyBinding") {
        delete(&bindings, binding["metadata"]["name"].as_str().unwrap()).await?;
    }
    for policy in of_kind(&documents, "ValidatingAdmissionPolicy") {
        delete(&policies, policy["metadata"]["name"].as_str().unwrap()).await?;
    }
    guarded.end().await
}
