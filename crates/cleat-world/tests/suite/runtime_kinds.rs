//! Kinds and the resources that serve them, as discovery tells.

use anyhow::Result;
use cleat_runtime::kinds::{Kinds, Mapped, Mapping};
use cleat_world::eventually;
use kube::ResourceExt as _;

use crate::{Place, definitions, delete};

fn mapped(group: &str, version: &str, resource: &str, namespaced: bool) -> Mapping {
    let [group, version, resource] = [group, version, resource].map(ToOwned::to_owned);
    Mapping::Mapped(Mapped { group, version, resource, namespaced })
}

#[tokio::test]
async fn built_in_kinds_have_their_resources() -> Result<()> {
    let place = Place::new("kinds").await?;
    let kinds = Kinds::new(place.client.clone());
    assert_eq!(kinds.map("v1", "ConfigMap").await, mapped("", "v1", "configmaps", true));
    assert_eq!(kinds.map("v1", "Namespace").await, mapped("", "v1", "namespaces", false));
    assert_eq!(kinds.map("apps/v1", "Deployment").await, mapped("apps", "v1", "deployments", true));
    assert_eq!(kinds.map("apps/v1", "Deploymint").await, Mapping::NoSuchKind);
    assert_eq!(kinds.map("apps/v0", "Deployment").await, Mapping::NoSuchKind);
    let rbac = "rbac.authorization.k8s.io";
    assert_eq!(kinds.preferred(rbac, "roles").await, mapped(rbac, "v1", "roles", true));
    assert_eq!(kinds.preferred(rbac, "rolls").await, Mapping::NoSuchKind);
    Ok(())
}

#[tokio::test]
async fn a_definition_is_found_and_lost_as_soon_as_somebody_says_so() -> Result<()> {
    let place = Place::new("kinds").await?;
    let kinds = Kinds::new(place.client.clone());
    assert!(matches!(kinds.map("v1", "Pod").await, Mapping::Mapped(_)));
    let kind = definitions::define(&place).await?;
    let group = kind.api_version.split('/').next().unwrap();
    let found = eventually("the kind in discovery", || async {
        kinds.forget();
        let mapping = kinds.map(&kind.api_version, "Widget").await;
        Ok((mapping != Mapping::NoSuchKind).then_some(mapping))
    })
    .await?;
    assert_eq!(found, mapped(group, "v1", "widgets", true));
    delete(&kind.definitions, &kind.definition.name_any()).await?;
    eventually("the kind out of discovery", || async {
        kinds.forget();
        let mapping = kinds.map(&kind.api_version, "Widget").await;
        Ok((mapping == Mapping::NoSuchKind).then_some(()))
    })
    .await
}

#[tokio::test]
async fn a_server_that_cannot_be_asked_says_nothing_about_kinds() -> Result<()> {
    // Nothing listens there.
    let config = kube::Config::new("http://127.0.0.1:9".parse()?);
    let kinds = Kinds::new(cleat_runtime::connect::connect(config, "work-agent")?);
    assert!(matches!(kinds.map("v1", "Pod").await, Mapping::Unknown(_)));
    assert!(matches!(kinds.preferred("apps", "deployments").await, Mapping::Unknown(_)));
    Ok(())
}
