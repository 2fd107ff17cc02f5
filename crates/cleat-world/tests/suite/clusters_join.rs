//! Joining a hub, from a bootstrap token to a certificate of one's own; and who may not.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use anyhow::{Context as _, Result};
use cleat_agent::registration::{Error, cluster_id, enrol};
use cleat_api::managedcluster::{ManagedCluster, RemoveStrategy, taint};
use cleat_core::registration::access::Part;
use cleat_core::registration::agent::Application;
use cleat_core::registration::join::Refusal;
use cleat_core::write::Side;
use cleat_world::eventually;
use futures::future::BoxFuture;
use http::{Request, Response};
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use k8s_openapi::api::rbac::v1::{ClusterRole, RoleBinding};
use kube::Client;
use kube::api::{Api, Patch};
use kube::client::Body;
use serde_json::json;
use tokio::sync::Notify;
use tower::{BoxError, Service};

use crate::clusters::{Fleet, Joining, condition, executor};
use crate::{create, delete, gone, seen};

#[tokio::test]
async fn a_cluster_joins_with_a_certificate_of_its_own() -> Result<()> {
    let fleet = Fleet::new("join").await?;
    let name = fleet.world.unique("c");
    let application =
        Application { remove_strategy: RemoveStrategy::Required, ..fleet.application(&name) };
    let mut joining = fleet.join(application).await?;
    let request = joining.request().await?;
    // Nobody has accepted: there is nothing for it, and no certificate.
    let cluster = seen(&fleet.clusters(), &name, |one| !one.spec.taints.is_empty()).await?;
    assert_eq!(cluster.spec.taints[0].key, taint::UNREACHABLE);
    assert!(cluster.spec.taints[0].time_added.is_some());
    assert_eq!(cluster.spec.remove_strategy, RemoveStrategy::Required);
    assert!(condition(&cluster, "HubAcceptedManagedCluster").is_none());
    let namespaces: Api<Namespace> = Api::all(fleet.hub.clone());
    assert!(namespaces.get_opt(&name).await?.is_none());
    let status = fleet.requests().get(&request).await?.status;
    assert!(status.and_then(|status| status.certificate).is_none());

    fleet.accept(&mut joining).await?;
    let credentials = joining.end().await??;
    let accepted = fleet.until(&name, "HubAcceptedManagedCluster", "True").await?;
    let said = condition(&accepted, "HubAcceptedManagedCluster").context("it is accepted")?;
    assert_eq!(said.reason, "HubClusterAdminAccepted");
    namespaces.get(&name).await?;
    for part in [Part::Registration, Part::Work] {
        let bindings: Api<RoleBinding> = Api::namespaced(fleet.hub.clone(), &name);
        bindings.get(&part.target(&name).id.name).await?;
    }

    let (tasks, agent) = fleet.run(credentials).await?;
    let cluster = fleet.until(&name, "ManagedClusterConditionAvailable", "True").await?;
    assert!(condition(&cluster, "ManagedClusterJoined").is_some_and(|one| one.status == "True"));
    let status = cluster.status.context("it says how it is")?;
    assert!(status.version.kubernetes.starts_with('v'), "{:?}", status.version);
    let claims: Vec<_> = status.cluster_claims.iter().map(|one| one.name.as_str()).collect();
    assert!(claims.contains(&"id.k8s.io"), "{claims:?}");
    seen(&fleet.clusters(), &name, |one: &ManagedCluster| one.spec.taints.is_empty()).await?;
    fleet.until(&name, "ManagedClusterConditionClockSynced", "True").await?;
    let leases: Api<Lease> = Api::namespaced(fleet.hub.clone(), &name);
    seen(&leases, "managed-cluster-lease", |lease: &Lease| {
        lease.spec.as_ref().is_some_and(|spec| spec.renew_time.is_some())
    })
    .await?;

    let review = create(&Api::<SelfSubjectReview>::all(agent), json!({})).await?;
    let user = review.status.and_then(|status| status.user_info).context("somebody")?;
    assert_eq!(user.username, Some(format!("system:open-cluster-management:{name}:agent")));
    let secrets: Api<Secret> = Api::namespaced(fleet.cluster_client(), &format!("agent-{name}"));
    let kept = secrets.get("hub-kubeconfig-secret").await?.data.context("it has data")?;
    let files: Vec<_> = kept.keys().map(String::as_str).collect();
    assert_eq!(files, ["agent-name", "cluster-name", "kubeconfig", "tls.crt", "tls.key"]);
    tasks.shutdown().await;
    fleet.tasks.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn what_a_cluster_has_is_put_right_and_goes_when_it_leaves() -> Result<()> {
    let fleet = Fleet::new("join").await?;
    let joined = fleet.joined("c").await?;
    let name = &joined.name;
    let roles: Api<ClusterRole> = Api::all(fleet.hub.clone());
    let role = Part::Role.target(name).id.name;
    let greedy = json!({ "rules": [{ "apiGroups": ["*"], "resources": ["*"], "verbs": ["*"] }] });
    roles.patch(&role, &Default::default(), &Patch::Merge(greedy)).await?;
    seen(&roles, &role, |role: &ClusterRole| {
        role.rules.iter().flatten().all(|rule| !rule.verbs.contains(&"*".to_owned()))
    })
    .await?;
    let cluster = fleet.clusters().get(name).await?;
    joined.tasks.shutdown().await;
    delete(&fleet.clusters(), name).await?;
    gone(&fleet.clusters(), &cluster).await?;
    assert!(roles.get_opt(&role).await?.is_none());
    Ok(())
}

/// Joins and expects to be refused.
async fn refused(fleet: &Fleet, application: Application, again: bool) -> Result<Refusal> {
    let mut enrolment = fleet.enrolment(application).await?;
    enrolment.again = again;
    match enrol(&enrolment, |_| {}).await {
        Err(Error::Refused(refusal)) => Ok(refusal),
        other => anyhow::bail!("expected a refusal, got {other:?}"),
    }
}

#[tokio::test]
async fn who_has_joined_does_not_join_again_by_accident() -> Result<()> {
    let fleet = Fleet::new("join").await?;
    let joined = fleet.joined("c").await?;
    let name = joined.name.clone();
    let twice = refused(&fleet, fleet.application(&name), false).await?;
    assert!(matches!(twice, Refusal::AlreadyJoined { .. }), "{twice}");

    // The cluster remembers its name, whatever the hub shows to strangers.
    let other = fleet.world.unique("other");
    let mut enrolment = fleet.enrolment(fleet.application(&other)).await?;
    enrolment.keep = fleet.keep(&name);
    match enrol(&enrolment, |_| {}).await {
        Err(Error::Refused(Refusal::OtherName { name: known, .. })) => assert_eq!(known, name),
        unexpected => panic!("{unexpected:?}"),
    }

    // The hub knows whose name it is, even if the cluster has forgotten.
    let mut forgetful = fleet.enrolment(fleet.application(&name)).await?;
    forgetful.keep = fleet.keep(&other);
    let answer = enrol(&forgetful, |_| {}).await;
    assert!(matches!(answer, Err(Error::Refused(Refusal::AlreadyJoined { .. }))), "{answer:?}");
    let stranger = Application { cluster_id: "another".to_owned(), ..fleet.application(&name) };
    forgetful.application = stranger;
    let answer = enrol(&forgetful, |_| {}).await;
    assert!(matches!(answer, Err(Error::Refused(Refusal::NameTaken { .. }))), "{answer:?}");
    joined.tasks.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn the_same_cluster_under_another_name_is_refused_by_the_hub() -> Result<()> {
    let fleet = Fleet::new("join").await?;
    let joined = fleet.joined("c").await?;
    let second = fleet.world.unique("second");
    let application = Application {
        cluster_id: fleet.application(&joined.name).cluster_id,
        ..fleet.application(&second)
    };
    let mut joining = fleet.join(application).await?;
    joining.request().await?;
    fleet.set_accepted(&second, true).await?;
    let answer = joining.end().await?;
    match answer {
        Err(Error::RefusedByHub(message)) => {
            assert!(message.contains(&joined.name), "{message}");
        }
        other => panic!("{other:?}"),
    }
    let namespaces: Api<Namespace> = Api::all(fleet.hub.clone());
    assert!(namespaces.get_opt(&second).await?.is_none());
    joined.tasks.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn the_hub_does_not_join_itself() -> Result<()> {
    let fleet = Fleet::new("join").await?;
    let name = fleet.world.unique("c");
    let hub_id = cluster_id(&executor(Some(fleet.hub.clone()), None), Side::Hub).await?;
    let own = Application { cluster_id: hub_id, ..fleet.application(&name) };
    let refusal = refused(&fleet, own.clone(), false).await?;
    assert_eq!(refusal, Refusal::IsHub);
    // Not even if somebody makes the cluster by hand.
    let object = json!({
        "metadata": {
            "name": name, "labels": own.labels,
            "annotations": { "cleat.dev/cluster-id": own.cluster_id },
        },
        "spec": { "hubAcceptsClient": true },
    });
    create(&fleet.clusters(), with_kind(object)).await?;
    let cluster = fleet.until(&name, "HubAcceptedManagedCluster", "False").await?;
    let said = condition(&cluster, "HubAcceptedManagedCluster").context("it is told")?;
    assert_eq!(said.reason, "Refused");
    Ok(())
}

#[tokio::test]
async fn nobody_takes_the_name_of_a_cluster_that_is_leaving() -> Result<()> {
    let fleet = Fleet::new("join").await?;
    let name = fleet.world.unique("c");
    let object = json!({
        "metadata": { "name": name, "finalizers": ["cleat.dev/test"] }, "spec": {},
    });
    let old = create(&fleet.clusters(), with_kind(object)).await?;
    delete(&fleet.clusters(), &name).await?;
    let refusal = refused(&fleet, fleet.application(&name), true).await?;
    assert_eq!(refusal, Refusal::Leaving { name: name.clone() });
    fleet.patch(&name, json!({ "metadata": { "finalizers": [] } })).await?;
    gone(&fleet.clusters(), &old).await?;
    let mut joining = fleet.join(fleet.application(&name)).await?;
    joining.request().await?;
    Ok(())
}

#[tokio::test]
async fn a_denied_request_and_a_removed_cluster_end_the_wait() -> Result<()> {
    let fleet = Fleet::new("join").await?;
    let name = fleet.world.unique("c");
    let mut joining = fleet.join(fleet.application(&name)).await?;
    let request = joining.request().await?;
    let no = json!({ "status": { "conditions": [{
        "type": "Denied", "status": "True", "reason": "No", "message": "not today",
    }] } });
    fleet.requests().patch_approval(&request, &Default::default(), &Patch::Merge(no)).await?;
    match joining.end().await? {
        Err(Error::Denied { message, .. }) => assert_eq!(message, "not today"),
        other => panic!("{other:?}"),
    }
    let mut joining = fleet.join(fleet.application(&name)).await?;
    joining.request().await?;
    delete(&fleet.clusters(), &name).await?;
    let answer = joining.end().await?;
    assert!(matches!(answer, Err(Error::Removed { .. })), "{answer:?}");
    Ok(())
}

/// A client of which one answer is lost, when somebody wants it: a look at a cluster.
#[derive(Clone)]
struct Losing {
    through: Client,
    loses: Arc<AtomicBool>,
    lost: Arc<Notify>,
}

impl Service<Request<Body>> for Losing {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let Self { through, loses, lost } = self.clone();
        Box::pin(async move {
            let looks = request.uri().path().contains("/managedclusters/");
            if looks && loses.swap(false, Ordering::SeqCst) {
                lost.notify_one();
                return Err("the connection was reset".into());
            }
            Ok(through.send(request).await?)
        })
    }
}

#[tokio::test]
async fn one_lost_answer_ended_the_wait_for_acceptance() -> Result<()> {
    let fleet = Fleet::new("join").await?;
    let name = fleet.world.unique("c");
    let losing =
        Losing { through: fleet.bootstrap().await?, loses: Arc::default(), lost: Arc::default() };
    let mut enrolment = fleet.enrolment(fleet.application(&name)).await?;
    let client = Client::new(losing.clone(), "default");
    enrolment.executor = executor(Some(client), Some(fleet.cluster_client()));
    let mut joining = Joining::begin(enrolment);
    joining.request().await?;
    losing.loses.store(true, Ordering::SeqCst);
    cleat_world::within("an answer to be lost", losing.lost.notified()).await?;
    fleet.accept(&mut joining).await?;
    joining.end().await??;
    Ok(())
}

#[tokio::test]
async fn an_agent_that_was_started_anew_while_it_waited_asked_with_another_key() -> Result<()> {
    let fleet = Fleet::new("join").await?;
    let name = fleet.world.unique("c");
    let mut joining = fleet.join(fleet.application(&name)).await?;
    let request = joining.request().await?;
    joining.kill().await;
    let mut joining = fleet.join(fleet.application(&name)).await?;
    assert_eq!(joining.request().await?, request);
    fleet.accept(&mut joining).await?;
    joining.end().await??;
    // What was denied is asked for anew.
    let other = fleet.world.unique("denied");
    let mut denied = fleet.join(fleet.application(&other)).await?;
    let request = denied.request().await?;
    let no = json!({ "status": { "conditions": [{
        "type": "Denied", "status": "True", "reason": "No", "message": "not today",
    }] } });
    fleet.requests().patch_approval(&request, &Default::default(), &Patch::Merge(no)).await?;
    assert!(matches!(denied.end().await?, Err(Error::Denied { .. })));
    let mut again = fleet.join(fleet.application(&other)).await?;
    assert_ne!(again.request().await?, request);
    again.kill().await;
    Ok(())
}

#[tokio::test]
async fn joining_a_second_hub_overwrote_the_credentials_for_the_first() -> Result<()> {
    let fleet = Fleet::new("join").await?;
    let joined = fleet.joined("c").await?;
    let other = fleet.world.unique("second");
    let mut enrolment = fleet.enrolment(fleet.application(&other)).await?;
    enrolment.keep = fleet.keep(&joined.name);
    enrolment.hub.server = "https://second.hub.example".to_owned();
    let answer = enrol(&enrolment, |_| {}).await;
    assert!(matches!(answer, Err(Error::Refused(Refusal::OtherHub { .. }))), "{answer:?}");
    let kept = fleet.keep(&joined.name).load(&enrolment.executor).await?;
    assert_eq!(kept.map(|kept| kept.hub.server), Some(joined.credentials.hub.server));
    joined.tasks.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn a_hub_has_its_sets_and_counts_them() -> Result<()> {
    use cleat_api::managedclusterset::ManagedClusterSet;
    use cleat_api::managedclustersetbinding::ManagedClusterSetBinding;
    let fleet = Fleet::new("sets").await?;
    let sets: Api<ManagedClusterSet> = Api::all(fleet.hub.clone());
    eventually("the sets of every hub", || async {
        Ok(sets.get_opt("global").await?.and(sets.get_opt("default").await?))
    })
    .await?;
    let name = fleet.world.unique("set");
    let kind = |kind: &str, spec: serde_json::Value| {
        json!({
            "apiVersion": "cluster.open-cluster-management.io/v1beta2", "kind": kind,
            "metadata": { "name": name }, "spec": spec,
        })
    };
    crate::make_namespace(&fleet.world.hub, &name).await?;
    let bindings: Api<ManagedClusterSetBinding> = Api::namespaced(fleet.hub.clone(), &name);
    create(&bindings, kind("ManagedClusterSetBinding", json!({ "clusterSet": name }))).await?;
    let bound = |wanted: &'static str| {
        move |one: &ManagedClusterSetBinding| {
            let conditions = one.status.iter().flat_map(|status| &status.conditions);
            conditions.into_iter().any(|one| one.reason == wanted)
        }
    };
    seen(&bindings, &name, bound("ClusterSetNotFound")).await?;
    create(&sets, kind("ManagedClusterSet", json!({}))).await?;
    seen(&bindings, &name, bound("ClusterSetBound")).await?;
    let says = |wanted: &'static str| {
        move |one: &ManagedClusterSet| {
            let conditions = one.status.iter().flat_map(|status| &status.conditions);
            conditions.into_iter().any(|one| one.reason == wanted)
        }
    };
    // On a shared hub another test's part for clusters counts what it sees, which is none of these.
    if fleet.world.is_embedded() {
        seen(&sets, &name, says("NoClusterMatched")).await?;
        let cluster = fleet.world.unique("c");
        let joining = fleet.join(fleet.application(&cluster)).await?;
        seen(&fleet.clusters(), &cluster, |one: &ManagedCluster| {
            one.metadata.labels.iter().flatten().any(|(_, value)| value == "default")
        })
        .await?;
        let label = json!({ "cluster.open-cluster-management.io/clusterset": name });
        fleet.patch(&cluster, json!({ "metadata": { "labels": label } })).await?;
        seen(&sets, &name, says("ClustersSelected")).await?;
        drop(joining);
    }
    Ok(())
}

fn with_kind(mut object: serde_json::Value) -> serde_json::Value {
    object["apiVersion"] = json!("cluster.open-cluster-management.io/v1");
    object["kind"] = json!("ManagedCluster");
    object
}
