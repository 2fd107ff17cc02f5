//! What a removal would do, asked and answered through the hub; and then it does just that.

use std::time::Duration;

use anyhow::{Context as _, Result};
use cleat_agent::{preview, work};
use cleat_api::removalpreview::{PreviewVerdict, PreviewedObject, RemovalPreview};
use cleat_cli::Refused;
use cleat_cli::preview::foresee;
use cleat_runtime::tasks::Tasks;
use cleat_world::world::Credentials;
use cleat_world::{Fleet, eventually};
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};

use crate::access::{let_robots, robot};
use crate::definitions::define;
use crate::works::guard::Guard;
use crate::{Place, create, delete, parse, seen};

/// A fleet whose agent answers questions.
pub(crate) struct Site {
    pub(crate) fleet: Fleet,
    tasks: Tasks,
}

impl Site {
    pub(crate) async fn start(topic: &str) -> Result<Self> {
        let fleet = Fleet::without_agent(topic).await?;
        let cluster_client = fleet.cluster.clone();
        Ok(Self::of(fleet, cluster_client))
    }

    /// One that answers with the rights of this client on the cluster.
    fn of(fleet: Fleet, cluster_client: Client) -> Self {
        let tasks = Tasks::new();
        let config = fleet.config();
        let hub_hash = work::hub_hash(&config.hub_address);
        let works = work::start(config, &tasks);
        let config = preview::Config {
            hub_client: fleet.hub.clone(),
            cluster_client,
            cluster: fleet.name.clone(),
            hub_hash,
            works,
            policies: None,
        };
        preview::start(config, &tasks);
        Self { fleet, tasks }
    }

    /// The answer to a question.
    async fn answer(&self, name: &str, spec: Value) -> Result<RemovalPreview> {
        let questions: Api<RemovalPreview> =
            Api::namespaced(self.fleet.hub.clone(), &self.fleet.name);
        create(&questions, json!({ "metadata": { "name": name }, "spec": spec })).await?;
        seen(&questions, name, |one: &RemovalPreview| {
            one.status.as_ref().is_some_and(|status| status.answered_at.is_some())
        })
        .await
    }

    pub(crate) async fn end(self) -> Result<()> {
        self.tasks.shutdown().await;
        Ok(())
    }
}

fn object<'a>(answer: &'a RemovalPreview, name: &str) -> Result<&'a PreviewedObject> {
    let status = answer.status.as_ref().context("it was answered")?;
    status
        .objects
        .iter()
        .find(|one| one.name == name)
        .with_context(|| format!("{name}: {status:?}"))
}

#[tokio::test]
async fn a_preview_of_a_deletion_says_what_then_happens() -> Result<()> {
    let site = Site::start("preview-work").await?;
    let fleet = &site.fleet;
    let orphan = json!({ "deleteOption": { "propagationPolicy": "SelectivelyOrphan",
        "selectivelyOrphans": { "orphaningRules": [{
            "group": "", "resource": "configmaps", "namespace": fleet.name, "name": "stays",
        }] } } });
    let manifests = ["goes", "stays", "shared"].map(|name| fleet.map(name, "1")).to_vec();
    fleet.work("one", manifests, orphan).await?;
    fleet.told("one", "Applied", "True").await?;
    fleet.work("two", vec![fleet.map("shared", "1")], json!({})).await?;
    fleet.told("two", "Applied", "True").await?;

    let answer = site.answer("ask", json!({ "work": "one" })).await?;
    let goes = object(&answer, "goes")?;
    assert_eq!((goes.verdict, &*goes.decided_by), (PreviewVerdict::Delete, "spec.deleteOption"));
    assert_eq!(goes.blockers, [] as [String; 0]);
    let stays = object(&answer, "stays")?;
    assert_eq!((stays.verdict, &*stays.decided_by), (PreviewVerdict::Orphan, "spec.deleteOption"));
    assert_eq!((&*stays.why, stays.adopted), ("it is declared to stay", false));
    let shared = object(&answer, "shared")?;
    assert_eq!(shared.verdict, PreviewVerdict::Keep);
    assert_eq!(shared.why, "another work holds it as well");
    // Nothing happened by asking.
    assert_eq!(fleet.maps().get("goes").await?.uid().as_deref(), Some(&*goes.uid));

    fleet.end("one").await?;
    for one in answer.status.iter().flat_map(|status| &status.objects) {
        let still = fleet.maps().get_opt(&one.name).await?;
        let still = still.and_then(|map| map.uid()).is_some_and(|uid| uid == one.uid);
        assert_eq!(still, one.verdict != PreviewVerdict::Delete, "{one:?}");
    }
    site.end().await
}

#[tokio::test]
async fn a_preview_tells_what_would_stand_in_the_way() -> Result<()> {
    let site = Site::start("preview-blocked").await?;
    let fleet = &site.fleet;
    fleet.work("one", vec![fleet.map("held", "1"), fleet.map("guarded", "1")], json!({})).await?;
    fleet.told("one", "Applied", "True").await?;
    let finalizer = Patch::Merge(json!({ "metadata": { "finalizers": ["example.com/hold"] } }));
    fleet.maps().patch("held", &PatchParams::default(), &finalizer).await?;
    let guard = Guard::install(fleet).await?;
    guard.refuse("guarded", "still needed");

    let answer = site.answer("ask", json!({ "work": "one" })).await?;
    let [waits] = &*object(&answer, "held")?.blockers else { panic!("{answer:?}") };
    assert!(waits.starts_with("waits for finalizer example.com/hold, set by "), "{waits}");
    assert!(waits.contains(": no workload here serves it: start its controller, or "), "{waits}");
    let [refused] = &*object(&answer, "guarded")?.blockers else { panic!("{answer:?}") };
    assert!(refused.starts_with("would be refused: "), "{refused}");
    assert!(refused.contains("still needed"), "{refused}");
    // It was only tried.
    assert!(fleet.maps().get("held").await?.metadata.deletion_timestamp.is_none());
    guard.remove().await?;
    let release = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    fleet.maps().patch("held", &PatchParams::default(), &release).await?;
    site.end().await
}

/// A client on the cluster of a fleet that may read everything, and change nothing.
async fn reader(fleet: &Fleet) -> Result<Client> {
    let accounts: Api<ServiceAccount> = fleet.there();
    create(&accounts, json!({ "metadata": { "name": "reader" } })).await?;
    let rules = json!([{
        "apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"],
    }]);
    let metadata = json!({ "name": fleet.name });
    let roles: Api<ClusterRole> = Api::all(fleet.cluster.clone());
    create(&roles, json!({ "metadata": metadata, "rules": rules })).await?;
    let bindings: Api<ClusterRoleBinding> = Api::all(fleet.cluster.clone());
    let binding = json!({
        "metadata": metadata,
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": fleet.name,
        },
        "subjects": [{ "kind": "ServiceAccount", "name": "reader", "namespace": fleet.name }],
    });
    create(&bindings, binding).await?;
    let request: TokenRequest = parse(json!({ "spec": { "expirationSeconds": 600 } }));
    let params = PostParams::default();
    let issued: TokenRequest =
        accounts.create_subresource("token", "reader", &params, &request).await?;
    let token = issued.status.and_then(|status| status.token).context("a token was issued")?;
    let cluster = fleet.world.clusters.first().context("a fleet has a cluster")?;
    let client = cluster.client_with(Credentials::Token(token)).await?;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &fleet.name);
    let may = || async { Ok(maps.list(&ListParams::default()).await.ok()) };
    eventually("the role to count", may).await?;
    Ok(client)
}

#[tokio::test]
async fn a_preview_tells_that_the_agent_may_not_delete() -> Result<()> {
    let fleet = Fleet::without_agent("preview-rights").await?;
    let client = reader(&fleet).await?;
    let site = Site::of(fleet, client);
    let fleet = &site.fleet;
    fleet.work("one", vec![fleet.map("goes", "1")], json!({})).await?;
    fleet.told("one", "Applied", "True").await?;
    let answer = site.answer("ask", json!({ "work": "one" })).await?;
    let seen = object(&answer, "goes")?;
    assert_eq!(seen.verdict, PreviewVerdict::Delete);
    let [refused] = &*seen.blockers else { panic!("{seen:?}") };
    assert!(refused.starts_with("would be refused: "), "{refused}");
    assert!(refused.contains("cannot delete resource"), "{refused}");
    fleet.end("one").await?;
    delete(&Api::<ClusterRoleBinding>::all(fleet.cluster.clone()), &fleet.name).await?;
    delete(&Api::<ClusterRole>::all(fleet.cluster.clone()), &fleet.name).await?;
    site.end().await
}

#[tokio::test]
async fn a_preview_of_a_namespace_says_what_it_takes_along() -> Result<()> {
    let site = Site::start("preview-along").await?;
    let fleet = &site.fleet;
    let inner = format!("{}-inner", fleet.name);
    let namespace =
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": inner } });
    fleet.work("one", vec![namespace], json!({})).await?;
    fleet.told("one", "Applied", "True").await?;
    let theirs: Api<ConfigMap> = Api::namespaced(fleet.cluster.clone(), &inner);
    create(&theirs, json!({ "metadata": { "name": "theirs" } })).await?;

    let answer = site.answer("ask", json!({ "work": "one" })).await?;
    let seen = object(&answer, &inner)?;
    assert_eq!((seen.verdict, seen.takes_along), (PreviewVerdict::Delete, 1));
    let expected = format!("takes along 1 object (configmaps {inner}/theirs) that nobody lists");
    assert_eq!(seen.effects, [expected]);

    // As many go along as before, and not the same: that is not what somebody agreed to.
    let before = seen.along_digest.clone();
    delete(&theirs, "theirs").await?;
    create(&theirs, json!({ "metadata": { "name": "theirs" } })).await?;
    let answer = site.answer("again", json!({ "work": "one" })).await?;
    let seen = object(&answer, &inner)?;
    assert_eq!(seen.takes_along, 1);
    assert_ne!(seen.along_digest, before);

    // A cluster that leaves with nothing keeps it, for the sake of what is in it.
    let answer = site.answer("leave", json!({ "leave": "Required" })).await?;
    let seen = object(&answer, &inner)?;
    assert_eq!((seen.verdict, &*seen.why), (PreviewVerdict::Keep, "it holds what is not ours"));
    // And one that leaves with everything keeps it anyway.
    let answer = site.answer("stay", json!({ "leave": "Needless" })).await?;
    let seen = object(&answer, &inner)?;
    assert_eq!(
        (seen.verdict, &*seen.decided_by),
        (PreviewVerdict::StripMarks, "spec.removeStrategy")
    );
    fleet.end("one").await?;
    let namespaces: Api<Namespace> = Api::all(fleet.cluster.clone());
    fleet.absent(&namespaces, &inner).await?;
    site.end().await
}

#[tokio::test]
async fn a_question_about_nothing_is_answered_with_what_is_wrong() -> Result<()> {
    let site = Site::start("preview-nothing").await?;
    let answer = site.answer("ask", json!({})).await?;
    let status = answer.status.context("it was answered")?;
    assert_eq!(
        status.problems,
        ["name one of a work, a policy, a configurationPolicy or a strategy to leave by"]
    );
    let answer = site.answer("other", json!({ "work": "no-such-work" })).await?;
    let status = answer.status.context("it was answered")?;
    assert_eq!((status.problems.len(), status.objects.len()), (0, 0));
    site.end().await
}

/// What `cleat preview delete` says of one object on the very server that is asked.
async fn foreseen(client: &Client, what: &str, namespace: Option<&str>) -> Result<PreviewedObject> {
    let value = foresee(client, what, namespace, Duration::from_secs(30)).await?;
    let objects = &value["clusters"][0]["answer"]["objects"];
    serde_json::from_value(objects[0].clone()).context(value.to_string())
}

#[tokio::test]
async fn any_object_is_previewed_where_it_is() -> Result<()> {
    let place = Place::new("preview-object").await?;
    let (client, namespace) = (&place.client, place.namespace.as_str());
    let maps: Api<ConfigMap> = place.api();
    let owned_by = |api_version: &str, kind: &str, name: &str, uid: Option<String>| json!([{ "apiVersion": api_version, "kind": kind, "name": name, "uid": uid }]);
    let owner = create(&maps, json!({ "metadata": { "name": "owner" } })).await?;
    let owners = owned_by("v1", "ConfigMap", "owner", owner.uid());
    create(&maps, json!({ "metadata": { "name": "child", "ownerReferences": owners } })).await?;
    let held = json!({ "name": "held", "finalizers": ["example.com/hold"] });
    create(&maps, json!({ "metadata": held })).await?;

    let seen = foreseen(client, "cm/owner", Some(namespace)).await?;
    assert_eq!((seen.verdict, Some(seen.uid)), (PreviewVerdict::Delete, owner.uid()));
    let follows = format!("is followed by 1 object (configmaps {namespace}/child) that it owns");
    assert_eq!(seen.effects, [follows]);
    let seen = foreseen(client, "configmaps/held", Some(namespace)).await?;
    let [waits] = &*seen.blockers else { panic!("{seen:?}") };
    assert!(waits.starts_with("waits for finalizer example.com/hold, set by "), "{waits}");
    assert!(waits.contains(": no workload here serves it: start its controller, or "), "{waits}");
    let seen = foreseen(client, &format!("ns/{namespace}"), None).await?;
    assert_eq!((seen.takes_along, seen.followed), (2, 1), "{seen:?}");
    let [waits] = &*seen.blockers else { panic!("{seen:?}") };
    let stuck =
        format!("configmaps {namespace}/held waits for finalizer example.com/hold, set by ");
    assert!(waits.starts_with(&stuck), "{waits}");

    // What is in no namespace may own things in any.
    let roles: Api<ClusterRole> = Api::all(client.clone());
    let name = place.world.unique("preview-owner");
    let role = create(&roles, json!({ "metadata": { "name": name } })).await?;
    let owners = owned_by("rbac.authorization.k8s.io/v1", "ClusterRole", &name, role.uid());
    create(&maps, json!({ "metadata": { "name": "far", "ownerReferences": owners } })).await?;
    let seen = foreseen(client, &format!("clusterrole/{name}"), None).await?;
    let follows = format!("is followed by 1 object (configmaps {namespace}/far) that it owns");
    assert_eq!(seen.effects, [follows]);

    // Nothing happened by asking, and nonsense is told from failure.
    assert!(maps.get("owner").await?.metadata.deletion_timestamp.is_none());
    for (what, namespace, hint) in [
        ("cm/none", Some(namespace), "there is no cm"),
        ("cm/owner", None, "say which with -n"),
        ("gadget/x", None, "this server serves no kind gadget"),
    ] {
        let error = foresee(client, what, namespace, Duration::from_secs(30)).await.unwrap_err();
        assert!(error.is::<Refused>() && error.to_string().contains(hint), "{what}: {error:#}");
    }
    let release = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    maps.patch("held", &PatchParams::default(), &release).await?;
    delete(&roles, &name).await?;
    Ok(())
}

/// It looked free, and would have hung.
#[tokio::test]
async fn a_definition_whose_object_nobody_lets_go_of_is_foreseen_to_wait() -> Result<()> {
    let place = Place::new("preview-held-kind").await?;
    let kind = define(&place).await?;
    let held = json!({
        "apiVersion": kind.api_version, "kind": "Widget",
        "metadata": { "name": "held", "finalizers": ["example.com/hold"] },
        "spec": { "size": 1 },
    });
    kind.objects.create(&PostParams::default(), &parse(held)).await?;
    let name = kind.definition.name_any();
    let seen = foreseen(&place.client, &format!("crd/{name}"), None).await?;
    assert_eq!((seen.verdict, seen.takes_along), (PreviewVerdict::Delete, 1));
    let stuck = format!("{name} {}/held waits for finalizer example.com/hold, ", place.namespace);
    assert!(seen.blockers.iter().any(|one| one.starts_with(&stuck)), "{seen:?}");
    let release = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    kind.objects.patch("held", &PatchParams::default(), &release).await?;
    delete(&kind.definitions, &name).await
}

/// Only the group of the object itself was looked at.
#[tokio::test]
async fn a_definition_of_the_fleet_went_without_a_question() -> Result<()> {
    let site = Site::start("preview-fleet").await?;
    let hub = &site.fleet.hub;
    let unknown = "what clusters lose when it goes was not looked at";
    for what in
        ["crd/manifestworks.work.open-cluster-management.io", "crd/removalpreviews.cleat.dev"]
    {
        let seen = foresee(hub, what, None, Duration::from_secs(30)).await?;
        let problems = seen["clusters"][0]["answer"]["problems"].as_array().cloned();
        let told = problems.unwrap_or_default().iter().any(|one| one == unknown);
        assert_eq!(told, what.ends_with("open-cluster-management.io"), "{what}: {seen}");
    }
    // A namespace with a work in it is as much of the fleet as the work is.
    site.fleet.work("one", vec![site.fleet.map("a", "1")], json!({})).await?;
    let what = format!("ns/{}", site.fleet.name);
    let seen = foresee(hub, &what, None, Duration::from_secs(30)).await?;
    assert_eq!(seen["clusters"][0]["answer"]["problems"][0], unknown, "{seen}");
    site.fleet.end("one").await?;
    site.end().await
}

/// Each work was asked as if the other stayed.
#[tokio::test]
async fn what_two_works_of_a_leaving_cluster_hold_was_foreseen_to_stay() -> Result<()> {
    let site = Site::start("preview-shared").await?;
    let fleet = &site.fleet;
    for name in ["one", "two"] {
        fleet.work(name, vec![fleet.map("shared", "1")], json!({})).await?;
        fleet.told(name, "Applied", "True").await?;
    }
    let answer = site.answer("leave", json!({ "leave": "Required" })).await?;
    let status = answer.status.context("it was answered")?;
    let told: Vec<(&str, PreviewVerdict)> =
        status.objects.iter().map(|one| (&*one.source, one.verdict)).collect();
    assert_eq!(told, [("one", PreviewVerdict::Delete), ("two", PreviewVerdict::Delete)]);
    let answer = site.answer("alone", json!({ "work": "one" })).await?;
    assert_eq!(object(&answer, "shared")?.verdict, PreviewVerdict::Keep);
    for name in ["one", "two"] {
        fleet.end(name).await?;
    }
    site.end().await
}

#[tokio::test]
async fn what_somebody_may_not_see_was_taken_for_nothing_where_no_agent_was_asked() -> Result<()> {
    let place = Place::new("preview-unseen").await?;
    let maps: Api<ConfigMap> = place.api();
    create(&maps, json!({ "metadata": { "name": "owner" } })).await?;
    let robot = robot(&place).await?;
    let rule = json!({ "apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"] });
    let_robots(&place, json!([rule])).await?;
    let theirs: Api<ConfigMap> = Api::namespaced(robot.clone(), &place.namespace);
    eventually("the role to count", || async { Ok(theirs.get("owner").await.ok()) }).await?;
    let patience = Duration::from_secs(30);
    let seen = foresee(&robot, "configmaps/owner", Some(&place.namespace), patience).await?;
    let problems = &seen["clusters"][0]["answer"]["problems"];
    let said = format!("what goes along with configmaps {}/owner cannot be seen", place.namespace);
    let first = problems[0].as_str().context(seen.to_string())?;
    assert!(first.starts_with(&said), "{problems}");
    Ok(())
}
