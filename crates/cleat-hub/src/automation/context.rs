//! What a job is told beyond the names of its clusters: their violations, and the hub's domain.

use std::collections::BTreeMap;

use cleat_api::policy::{Policy as Replica, name::ROOT_POLICY};
use cleat_core::automation::{Context, Policy, violation};
use cleat_core::id::{Id, Target};
use cleat_core::write::Side;
use cleat_runtime::execute::{Executor, Read};
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt as _};
use serde_json::Value;

/// Up to so many replicas are asked for one by one; for more, all of the policy are listed.
const FEW: usize = 16;
const PAGE: u32 = 500;

pub(super) async fn read(
    executor: &Executor,
    hub_client: &Client,
    policy: &Policy,
    targets: &[String],
) -> Context {
    let hub_cluster = match executor.read(Side::Hub, &dns()).await {
        Read::Present(object) => {
            let domain = object.pointer("/spec/baseDomain").and_then(Value::as_str);
            domain.unwrap_or_default().to_owned()
        }
        Read::Absent | Read::NoSuchKind => String::new(),
        // Without the right to read it, a server says so before it says that there is no such kind.
        Read::Unknown { .. } if !serves_domains(hub_client).await => String::new(),
        Read::Unknown { message } => {
            return Context::Unreadable(format!(
                "the hub's domain (dnses.config.openshift.io cluster) cannot be read: {message}"
            ));
        }
    };
    match violations(hub_client, policy, targets).await {
        Ok(violations) => Context::Read { hub_cluster, violations },
        Err(error) => Context::Unreadable(format!(
            "what clusters say of policy {}/{} cannot be read: {error}",
            policy.namespace, policy.name
        )),
    }
}

/// Whether the hub may have such a domain; true if that cannot be found out.
async fn serves_domains(hub_client: &Client) -> bool {
    let groups = hub_client.list_api_groups().await;
    groups.map_or(true, |all| all.groups.iter().any(|group| group.name == "config.openshift.io"))
}

/// Where OpenShift keeps the hub's domain.
fn dns() -> Target {
    let id = Id {
        group: "config.openshift.io".to_owned(),
        resource: "dnses".to_owned(),
        namespace: String::new(),
        name: "cluster".to_owned(),
    };
    Target { version: "v1".to_owned(), id }
}

async fn violations(
    hub_client: &Client,
    policy: &Policy,
    targets: &[String],
) -> Result<BTreeMap<String, Value>, kube::Error> {
    let replicas = replicas(hub_client, policy, targets).await?;
    Ok(replicas.into_iter().map(|(name, one)| (name, violation(&one))).collect())
}

/// The copies of the policy for those clusters, of those that have one.
pub(super) async fn replicas(
    hub_client: &Client,
    policy: &Policy,
    targets: &[String],
) -> Result<BTreeMap<String, Replica>, kube::Error> {
    let name = format!("{}.{}", policy.namespace, policy.name);
    let of = |target: &String| policy.clusters.get(target).map(|cluster| cluster.namespace.clone());
    let mut told = BTreeMap::new();
    if targets.len() <= FEW {
        for target in targets {
            let Some(namespace) = of(target) else { continue };
            let replicas: Api<Replica> = Api::namespaced(hub_client.clone(), &namespace);
            if let Some(replica) = replicas.get_opt(&name).await? {
                told.insert(target.clone(), replica);
            }
        }
        return Ok(told);
    }
    let namespaces: BTreeMap<String, &String> =
        targets.iter().filter_map(|target| Some((of(target)?, target))).collect();
    let replicas: Api<Replica> = Api::all(hub_client.clone());
    let mut params = ListParams::default().labels(&format!("{ROOT_POLICY}={name}")).limit(PAGE);
    loop {
        let page = replicas.list(&params).await?;
        for replica in page.items {
            let namespace = replica.namespace().unwrap_or_default();
            if let Some(target) = namespaces.get(&namespace)
                && replica.name_any() == name
            {
                told.insert((*target).clone(), replica);
            }
        }
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(told),
        }
    }
}
