//! What an agent may do on the hub with its certificate: what belongs to its cluster, and nothing
//! else.

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use cleat_api::managedcluster::ManagedCluster;
use cleat_api::manifestwork::ManifestWork;
use cleat_world::eventually;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, RoleBinding};
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, Resource};
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::clusters::{Fleet, Joined};
use crate::{create, refusal, seen};

const WORK: &str = "work.open-cluster-management.io/v1";

fn work(name: &str) -> Value {
    let manifest = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "x", "namespace": "default" } });
    json!({
        "apiVersion": WORK, "kind": "ManifestWork", "metadata": { "name": name },
        "spec": { "workload": { "manifests": [manifest] } },
    })
}

fn merge(patch: Value) -> Patch<Value> {
    Patch::Merge(patch)
}

struct Two {
    fleet: Fleet,
    a: Joined,
    b: Joined,
}

async fn two() -> Result<Two> {
    let fleet = Fleet::new("access").await?;
    let (a, b) = (fleet.joined("a").await?, fleet.joined("b").await?);
    Ok(Two { fleet, a, b })
}

#[tokio::test]
async fn an_agent_looks_after_what_is_its_own() -> Result<()> {
    let Two { fleet, a, .. } = two().await?;
    let own: Api<ManifestWork> = Api::namespaced(fleet.hub.clone(), &a.name);
    create(&own, work("w")).await?;
    let works: Api<ManifestWork> = Api::namespaced(a.agent.clone(), &a.name);
    eventually("the rights to count", || async {
        Ok(works.list(&ListParams::default()).await.ok())
    })
    .await?;
    let params = PatchParams::default();
    let finalizers = json!({ "metadata": { "finalizers": ["cleat.dev/test"] } });
    works.patch("w", &params, &merge(finalizers)).await?;
    let condition = json!({
        "type": "Applied", "status": "True", "reason": "T", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    works
        .patch_status("w", &params, &merge(json!({ "status": { "conditions": [condition] } })))
        .await?;
    works.patch("w", &params, &merge(json!({ "metadata": { "finalizers": [] } }))).await?;
    let clusters: Api<ManagedCluster> = Api::all(a.agent.clone());
    clusters.get(&a.name).await?;
    let leases: Api<Lease> = Api::namespaced(a.agent.clone(), &a.name);
    leases.get("managed-cluster-lease").await?;
    Ok(())
}

/// Everything one could do to objects of a kind is forbidden.
async fn forbidden<K>(api: Api<K>, name: &str, object: Value) -> Result<()>
where
    K: Resource + Clone + DeserializeOwned + serde::Serialize + std::fmt::Debug,
{
    let params = PatchParams::default();
    let named = json!({ "metadata": { "name": name } });
    let mut whole = object;
    whole["metadata"]["name"] = named["metadata"]["name"].clone();
    let object: K = serde_json::from_value(whole)?;
    let what = std::any::type_name::<K>();
    let answers = [
        ("get", api.get(name).await.err()),
        ("list", api.list(&ListParams::default()).await.err()),
        ("create", api.create(&PostParams::default(), &object).await.err()),
        ("patch", api.patch(name, &params, &merge(named)).await.err()),
        ("delete", api.delete(name, &Default::default()).await.err()),
    ];
    for (verb, answer) in answers {
        match answer {
            Some(kube::Error::Api(status)) => {
                assert_eq!(status.code, 403, "{verb} {what}: {status:?}")
            }
            other => panic!("{verb} {what} in another's place: {other:?}"),
        }
    }
    Ok(())
}

#[tokio::test]
async fn an_agent_may_nothing_in_the_place_of_another() -> Result<()> {
    let Two { fleet, a, b } = two().await?;
    let theirs: Api<ManifestWork> = Api::namespaced(fleet.hub.clone(), &b.name);
    create(&theirs, work("w")).await?;
    let agent = || a.agent.clone();
    let lease = json!({ "metadata": {}, "spec": {} });
    let map = json!({ "metadata": {} });
    forbidden(Api::<ManifestWork>::namespaced(agent(), &b.name), "w", work("w")).await?;
    forbidden(Api::<Lease>::namespaced(agent(), &b.name), "managed-cluster-lease", lease.clone())
        .await?;
    forbidden(Api::<ConfigMap>::namespaced(agent(), &b.name), "m", map.clone()).await?;
    forbidden(Api::<Secret>::namespaced(agent(), &b.name), "m", map.clone()).await?;
    let cluster = json!({
        "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
        "metadata": {}, "spec": {},
    });
    forbidden(Api::<ManagedCluster>::all(agent()), &b.name, cluster).await?;
    let clusters: Api<ManagedCluster> = Api::all(agent());
    let status = json!({ "status": { "version": { "kubernetes": "v0" } } });
    let answer = clusters.patch_status(&b.name, &PatchParams::default(), &merge(status)).await;
    assert_eq!(refusal(answer).code, 403);

    // Nor, beyond its works, in its own.
    forbidden(Api::<ConfigMap>::namespaced(agent(), &a.name), "m", map.clone()).await?;
    forbidden(Api::<Secret>::namespaced(agent(), &a.name), "m", map.clone()).await?;
    forbidden(Api::<Lease>::namespaced(agent(), &a.name), "other-lease", lease).await?;
    let works: Api<ManifestWork> = Api::namespaced(agent(), &a.name);
    let make: ManifestWork = serde_json::from_value(work("new"))?;
    assert_eq!(refusal(works.create(&PostParams::default(), &make).await).code, 403);

    // Nor anywhere else.
    forbidden(Api::<Namespace>::all(agent()), "kube-system", json!({ "metadata": {} })).await?;
    let everywhere: Api<ManifestWork> = Api::all(agent());
    assert_eq!(refusal(everywhere.list(&ListParams::default()).await).code, 403);
    let role = json!({ "metadata": {}, "rules": [] });
    forbidden(Api::<ClusterRole>::all(agent()), "cluster-admin", role).await?;
    let binding = json!({
        "metadata": {},
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin" },
    });
    forbidden(Api::<RoleBinding>::namespaced(agent(), &a.name), "mine", binding).await?;
    forbidden(Api::<ServiceAccount>::namespaced(agent(), &a.name), "default", map).await?;
    Ok(())
}

#[tokio::test]
async fn an_agent_says_what_its_cluster_is_not_what_it_should_be() -> Result<()> {
    let Two { a, .. } = two().await?;
    let clusters: Api<ManagedCluster> = Api::all(a.agent.clone());
    for patch in [
        json!({ "spec": { "hubAcceptsClient": true } }),
        json!({ "spec": { "removeStrategy": "Needless" } }),
        json!({ "spec": { "taints": [] } }),
        json!({ "metadata": { "labels": { "cluster.open-cluster-management.io/clusterset": "x" } } }),
    ] {
        let answer = clusters.patch(&a.name, &PatchParams::default(), &merge(patch)).await;
        assert_eq!(refusal(answer).code, 403);
    }
    Ok(())
}

/// Asks for a certificate with these names in it.
async fn ask(
    client: &Client,
    cluster: &str,
    user: &str,
    groups: [&str; 2],
    unit: Option<&str>,
) -> Result<String> {
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    let types = [DnType::OrganizationName, DnType::CustomDnType(vec![2, 5, 4, 10])];
    for (kind, group) in types.into_iter().zip(groups) {
        params.distinguished_name.push(kind, group);
    }
    if let Some(unit) = unit {
        params.distinguished_name.push(DnType::OrganizationalUnitName, unit);
    }
    params.distinguished_name.push(DnType::CommonName, user);
    let pem = params.serialize_request(&key)?.pem()?;
    let requests: Api<CertificateSigningRequest> = Api::all(client.clone());
    let made = create(
        &requests,
        json!({
            "metadata": {
                "generateName": format!("{cluster}-"),
                "labels": { "open-cluster-management.io/cluster-name": cluster },
            },
            "spec": {
                "request": BASE64.encode(pem),
                "signerName": "kubernetes.io/kube-apiserver-client",
                "usages": ["client auth"],
            },
        }),
    )
    .await?;
    made.metadata.name.context("it has a name")
}

#[tokio::test]
async fn certificates_are_given_only_for_oneself_and_exactly() -> Result<()> {
    let Two { fleet, a, b } = two().await?;
    let user =
        |cluster: &str, agent: &str| format!("system:open-cluster-management:{cluster}:{agent}");
    let group = |cluster: &str| format!("system:open-cluster-management:{cluster}");
    let all = "system:open-cluster-management:managed-clusters";
    let (own, theirs) = (group(&a.name), group(&b.name));
    let cases = [
        (a.name.as_str(), user(&b.name, "agent"), [theirs.as_str(), all], None),
        (&a.name, user(&b.name, "agent"), [own.as_str(), all], None),
        (&a.name, user(&a.name, "agent"), [theirs.as_str(), all], None),
        (&a.name, user(&a.name, "agent"), [own.as_str(), &theirs], None),
        (&a.name, user(&a.name, "agent"), [own.as_str(), "system:nodes"], None),
        (&a.name, user(&a.name, "other"), [own.as_str(), all], None),
        (&a.name, "admin".to_owned(), [own.as_str(), all], None),
        (&b.name, user(&a.name, "agent"), [own.as_str(), all], None),
        (&a.name, user(&a.name, "agent"), [own.as_str(), all], Some("unit")),
    ];
    let bootstrap = fleet.bootstrap().await?;
    for (label, user, groups, unit) in &cases {
        let request = ask(&a.agent, label, user, *groups, *unit).await?;
        let decided = seen(&fleet.requests(), &request, |one: &CertificateSigningRequest| {
            one.status.as_ref().is_some_and(|status| status.conditions.is_some())
        })
        .await?;
        let status = decided.status.context("it was decided")?;
        let kinds: Vec<_> =
            status.conditions.iter().flatten().map(|one| one.type_.as_str()).collect();
        assert_eq!(kinds, ["Denied"], "{user} {groups:?}");
        assert!(status.certificate.is_none());
    }
    // A stranger's request for an accepted cluster waits for a person, it is not the hub's to grant.
    let request = ask(&bootstrap, &a.name, &user(&a.name, "agent"), [&own, all], None).await?;
    let renewal = ask(&a.agent, &a.name, &user(&a.name, "agent"), [&own, all], None).await?;
    seen(&fleet.requests(), &renewal, |one: &CertificateSigningRequest| {
        one.status.as_ref().is_some_and(|status| status.certificate.is_some())
    })
    .await?;
    let status = fleet.requests().get(&request).await?.status.unwrap_or_default();
    assert!(status.conditions.is_none() && status.certificate.is_none());

    // Nobody finds what others asked for.
    let requests: Api<CertificateSigningRequest> = Api::all(a.agent.clone());
    assert_eq!(refusal(requests.list(&ListParams::default()).await).code, 403);
    // And nobody decides for themselves.
    let yes = json!({ "status": { "conditions": [{
        "type": "Approved", "status": "True", "reason": "Me", "message": "",
    }] } });
    let answer = requests.patch_approval(&request, &PatchParams::default(), &merge(yes)).await;
    assert_eq!(refusal(answer).code, 403);
    Ok(())
}

#[tokio::test]
async fn a_bootstrap_token_lets_ask_and_no_more() -> Result<()> {
    let Two { fleet, a, .. } = two().await?;
    let stranger = fleet.bootstrap().await?;
    forbidden(Api::<ManifestWork>::namespaced(stranger.clone(), &a.name), "w", work("w")).await?;
    let clusters: Api<ManagedCluster> = Api::all(stranger.clone());
    assert_eq!(refusal(clusters.list(&ListParams::default()).await).code, 403);
    for patch in [json!({ "spec": { "hubAcceptsClient": true } }), json!({ "metadata": {} })] {
        let answer = clusters.patch(&a.name, &PatchParams::default(), &merge(patch)).await;
        assert_eq!(refusal(answer).code, 403);
    }
    assert_eq!(refusal(clusters.delete(&a.name, &Default::default()).await).code, 403);
    let secrets: Api<Secret> = Api::all(stranger);
    assert_eq!(refusal(secrets.list(&ListParams::default()).await).code, 403);
    Ok(())
}
