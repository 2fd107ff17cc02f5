//! Clients share a server: whatever one asks for, others are served.

use anyhow::Result;
use cleat_world::{eventually, within};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::api::{Api, ListParams};
use serde_json::json;
use tokio::task::JoinSet;

use crate::access::account;
use crate::{Place, create};

/// Lets the accounts `noisy` and `quiet` do with ConfigMaps what they like.
async fn let_both(place: &Place) -> Result<()> {
    let rule = json!({ "apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"] });
    create(&place.api::<Role>(), json!({ "metadata": { "name": "both" }, "rules": [rule] }))
        .await?;
    let namespace = &place.namespace;
    let subject =
        |name: &str| json!({ "kind": "ServiceAccount", "name": name, "namespace": namespace });
    let binding = json!({
        "metadata": { "name": "both" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "both" },
        "subjects": [subject("noisy"), subject("quiet")],
    });
    create(&place.api::<RoleBinding>(), binding).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_floods_a_server_starves_nobody() -> Result<()> {
    let place = Place::new("sharing").await?;
    for number in 0..50 {
        place.config_map(&format!("map-{number}")).await?;
    }
    let maps = |client| -> Api<ConfigMap> { Api::namespaced(client, &place.namespace) };
    let noisy = maps(account(&place, "noisy").await?);
    let quiet = maps(account(&place, "quiet").await?);
    let_both(&place).await?;
    for maps in [&noisy, &quiet] {
        eventually("the role to count", || async {
            Ok(maps.list(&ListParams::default()).await.ok())
        })
        .await?;
    }
    let mut flood = JoinSet::new();
    for _ in 0..150 {
        let noisy = noisy.clone();
        flood.spawn(async move { noisy.list(&ListParams::default()).await.map(drop) });
    }
    for number in 0..20 {
        let name = format!("quiet-{number}");
        let map = json!({ "metadata": { "name": name } });
        within(&name, create(&quiet, map)).await??;
    }
    while let Some(answer) = within("the end of the flood", flood.join_next()).await? {
        match answer? {
            Ok(()) => {}
            Err(kube::Error::Api(status)) if status.code == 429 => {}
            Err(error) => return Err(error.into()),
        }
    }
    // Clients repeat what was refused, so that a refusal does not show. There was none.
    let request = http::Request::get("/metrics").body(Vec::new())?;
    let page = place.client.request_text(request).await?;
    let refused = page.lines().find(|line| {
        ["apiserver_request_total{", "code=\"429\"", "resource=\"configmaps\"", "verb=\"POST\""]
            .iter()
            .all(|part| line.contains(part))
    });
    assert_eq!(refused, None);
    Ok(())
}
