//! What lost people's objects elsewhere: a read that failed, and an object that is another by the time
//! its deletion arrives.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context as Polling, Poll};

use anyhow::{Context as _, Result};
use cleat_agent::policy;
use cleat_world::eventually;
use cleat_world::world::Credentials;
use futures::future::BoxFuture;
use http::{Method, Request, Response};
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::Client;
use kube::api::{Api, DeleteParams, ListParams, Patch, PostParams};
use kube::client::Body;
use serde_json::{Value, json};
use tower::{BoxError, Service};

use super::{Site, enforce, is_created, musthave, pruning, related};
use crate::{create, delete, parse, seen};

impl Site {
    /// A client that may do all that a controller does, and read the ConfigMaps of these names.
    async fn reader(&self, names: &[&str]) -> Result<Client> {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.cluster.clone(), &self.name);
        create(&accounts, json!({ "metadata": { "name": "reader" } })).await?;
        let roles: Api<ClusterRole> = Api::all(self.cluster.clone());
        create(&roles, json!({ "metadata": { "name": self.name }, "rules": rules(names) })).await?;
        let bindings: Api<ClusterRoleBinding> = Api::all(self.cluster.clone());
        let group = "rbac.authorization.k8s.io";
        let binding = json!({
            "metadata": { "name": self.name },
            "roleRef": { "apiGroup": group, "kind": "ClusterRole", "name": self.name },
            "subjects": [{ "kind": "ServiceAccount", "name": "reader", "namespace": self.name }],
        });
        create(&bindings, binding).await?;
        let request: TokenRequest = parse(json!({ "spec": { "expirationSeconds": 3600 } }));
        let params = PostParams::default();
        let issued: TokenRequest =
            accounts.create_subresource("token", "reader", &params, &request).await?;
        let token = issued.status.and_then(|status| status.token).context("a token was issued")?;
        let cluster = self.world.clusters.first().context("a world has a cluster")?;
        let reader = cluster.client_with(Credentials::Token(token)).await?;
        let maps: Api<ConfigMap> = Api::namespaced(reader.clone(), &self.name);
        eventually("the role to be known", || async {
            Ok(maps.list(&ListParams::default()).await.ok())
        })
        .await?;
        Ok(reader)
    }

    /// Returns when the reader may read these, and `a` only if it is among them.
    async fn may_read(&self, reader: &Client, names: &[&str]) -> Result<()> {
        let roles: Api<ClusterRole> = Api::all(self.cluster.clone());
        let patch = Patch::Merge(json!({ "rules": rules(names) }));
        roles.patch(&self.name, &Default::default(), &patch).await?;
        let maps: Api<ConfigMap> = Api::namespaced(reader.clone(), &self.name);
        let expected = names.contains(&"a");
        eventually("the right to read a to be as it is said", || async {
            // Whoever may read it may be told that it is gone by now.
            let refused =
                matches!(maps.get("a").await, Err(kube::Error::Api(no)) if no.code == 403);
            Ok((refused != expected).then_some(()))
        })
        .await
    }

    /// Returns when the reader may list what it may read, or may not any more.
    async fn may_list(&self, reader: &Client, may: bool) -> Result<()> {
        let roles: Api<ClusterRole> = Api::all(self.cluster.clone());
        let mut rules = rules(&["theirs"]);
        if !may {
            rules[2]["verbs"] = json!(["create", "update", "patch", "delete"]);
        }
        let patch = Patch::Merge(json!({ "rules": rules }));
        roles.patch(&self.name, &Default::default(), &patch).await?;
        let maps: Api<ConfigMap> = Api::namespaced(reader.clone(), &self.name);
        eventually("the right to list to be as it is said", || async {
            Ok((maps.list(&ListParams::default()).await.is_ok() == may).then_some(()))
        })
        .await
    }

    async fn forget_reader(&self) -> Result<()> {
        let roles: Api<ClusterRole> = Api::all(self.cluster.clone());
        let bindings: Api<ClusterRoleBinding> = Api::all(self.cluster.clone());
        delete(&bindings, &self.name).await?;
        delete(&roles, &self.name).await
    }
}

fn rules(names: &[&str]) -> Value {
    let all = ["*"];
    let groups = ["policy.open-cluster-management.io", "apiextensions.k8s.io", "events.k8s.io"];
    json!([
        { "apiGroups": groups, "resources": all, "verbs": all },
        { "apiGroups": [""], "resources": ["namespaces", "events"], "verbs": all },
        {
            "apiGroups": [""], "resources": ["configmaps"],
            "verbs": ["list", "watch", "create", "update", "patch", "delete"],
        },
        {
            "apiGroups": [""], "resources": ["configmaps"], "resourceNames": names,
            "verbs": ["get"],
        },
    ])
}

/// §2.12: an object that could not be read was missing from the new list, and deleted.
#[tokio::test]
async fn a_named_object_that_cannot_be_read_is_not_pruned() -> Result<()> {
    let mut site = Site::without_controller("prune-unread").await?;
    let (seeing, blind) = (["a", "b", "c", "other"], ["b", "c", "other"]);
    let reader = site.reader(&seeing).await?;
    let namespaces = vec![site.name.clone()];
    site.run(policy::Config { namespaces, ..policy::Config::new(reader.clone()) });
    let templates = vec![musthave(site.map("a", "1")), musthave(site.map("b", "1"))];
    site.policy("p", pruning(enforce(templates), "DeleteAll")).await?;
    site.stands("p", "Compliant").await?;
    site.may_read(&reader, &blind).await?;
    // Somebody changes it, so that it has to be read again; and at the same time b leaves.
    let touched = Patch::Merge(json!({ "metadata": { "labels": { "touched": "yes" } } }));
    site.maps().patch("a", &Default::default(), &touched).await?;
    let templates = vec![musthave(site.map("a", "1")), musthave(site.map("c", "1"))];
    site.patch("p", json!({ "spec": { "object-templates": templates } })).await?;
    site.says("p", "forbidden").await?;
    // What certainly left goes.
    site.absent(&site.maps(), "b").await?;
    site.passes("other").await?;
    let map = site.maps().get("a").await?;
    assert_eq!(map.metadata.deletion_timestamp, None, "pruned over a failed read");
    let policy = site.policies().get("p").await?;
    assert_eq!(is_created(&policy, "a"), Some(true), "ownership is not forgotten");
    site.may_read(&reader, &seeing).await?;
    let policy = site.stands("p", "Compliant").await?;
    assert!(related(&policy, "b").is_none() && related(&policy, "a").is_some());
    // Nor does a policy end before it knows of all of its objects.
    site.may_read(&reader, &blind).await?;
    let touched = Patch::Merge(json!({ "metadata": { "labels": { "touched": "again" } } }));
    site.maps().patch("a", &Default::default(), &touched).await?;
    site.says("p", "forbidden").await?;
    delete(&site.policies(), "p").await?;
    site.stands("p", "Terminating").await?;
    assert_eq!(site.maps().get("a").await?.metadata.deletion_timestamp, None);
    site.may_read(&reader, &seeing).await?;
    site.absent(&site.policies(), "p").await?;
    assert!(site.maps().get_opt("a").await?.is_none());
    site.stop().await;
    site.forget_reader().await
}

/// §2.12: what a selector chose was pruned when it could not be listed.
#[tokio::test]
async fn a_list_that_is_refused_prunes_nothing_that_a_selector_chose() -> Result<()> {
    let mut site = Site::without_controller("prune-unlisted").await?;
    let reader = site.reader(&["theirs"]).await?;
    let namespaces = vec![site.name.clone()];
    let config = policy::Config { namespaces, ..policy::Config::new(reader.clone()) };
    let labels = json!({ "team": "a" });
    let theirs = json!({ "metadata": { "name": "theirs", "labels": labels } });
    let theirs = create(&site.maps(), theirs).await?;
    let mut chosen = musthave(site.map("", "1"));
    chosen["objectDefinition"]["metadata"] = json!({ "namespace": site.name });
    chosen["objectSelector"] = json!({ "matchLabels": labels });
    site.policy("p", pruning(enforce(vec![chosen]), "DeleteAll")).await?;
    site.run(config.clone());
    site.stands("p", "Compliant").await?;
    // A watch that is open would go on telling.
    site.stop().await;
    site.may_list(&reader, false).await?;
    site.run(config);
    let policy = site.says("p", "Error listing resources with provided objectSelector").await?;
    assert!(related(&policy, "theirs").is_some(), "forgotten");
    assert_eq!(site.maps().get("theirs").await?.metadata.deletion_timestamp, None);
    site.may_list(&reader, true).await?;
    site.stands("p", "Compliant").await?;
    assert_eq!(site.maps().get("theirs").await?.metadata.uid, theirs.metadata.uid);
    site.stop().await;
    site.forget_reader().await
}

/// Has somebody else make an object anew just before its deletion arrives.
#[derive(Clone)]
struct Meddler {
    through: Client,
    maps: Api<ConfigMap>,
    anew: Value,
    done: Arc<AtomicBool>,
    answers: Arc<Mutex<Vec<u16>>>,
}

impl Service<Request<Body>> for Meddler {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Polling<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let meddler = self.clone();
        Box::pin(async move {
            let prunes = request.method() == Method::DELETE && request.uri().path().ends_with("/a");
            if !prunes {
                return Ok(meddler.through.send(request).await?);
            }
            if !meddler.done.swap(true, Ordering::SeqCst) {
                meddler.maps.delete("a", &DeleteParams::default()).await?;
                meddler.maps.create(&PostParams::default(), &parse(meddler.anew.clone())).await?;
            }
            let answer = meddler.through.send(request).await?;
            meddler.answers.lock().unwrap().push(answer.status().as_u16());
            Ok(answer)
        })
    }
}

/// §2.11: the check of the uid and the deletion are one, or whoever came in between loses theirs.
#[tokio::test]
async fn an_object_that_is_made_anew_while_it_is_pruned_stays() -> Result<()> {
    let mut site = Site::without_controller("prune-uid").await?;
    let meddler = Meddler {
        through: site.cluster.clone(),
        maps: site.maps(),
        anew: site.map("a", "theirs"),
        done: Arc::default(),
        answers: Arc::default(),
    };
    let namespaces = vec![site.name.clone()];
    let client = Client::new(meddler.clone(), "default");
    site.run(policy::Config { namespaces, ..policy::Config::new(client) });
    let spec = pruning(enforce(vec![musthave(site.map("a", "1"))]), "DeleteIfCreated");
    site.policy("p", spec).await?;
    site.stands("p", "Compliant").await?;
    let ours = site.maps().get("a").await?;
    site.end("p").await?;
    let theirs = seen(&site.maps(), "a", |_: &ConfigMap| true).await?;
    assert_ne!(theirs.metadata.uid, ours.metadata.uid);
    assert_eq!(theirs.metadata.deletion_timestamp, None);
    assert_eq!(*meddler.answers.lock().unwrap(), [409], "one deletion, of the one that was ours");
    Ok(())
}
