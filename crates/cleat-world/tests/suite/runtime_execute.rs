//! What the executor says of a server's answers, on servers that give them.

use anyhow::{Context as _, Result};
use cleat_core::id::{Id, Target};
use cleat_core::write::{Action, Outcome, Propagation, Side, Write};
use cleat_runtime::execute::{Asking, Config, Executor, Impersonated, Read};
use cleat_world::{Webhook, eventually};
use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
use kube::ResourceExt as _;
use kube::api::Api;
use serde_json::{Value, json};

use crate::webhooks::{guard, install, kept, uninstall};
use crate::{Place, access, create, definitions, delete};

fn executor(place: &Place) -> Executor {
    Executor::new(Config {
        cluster: Some(place.client.clone()),
        field_manager: Some("work-agent".to_owned()),
        ..Config::default()
    })
}

fn map(place: &Place, name: &str) -> Target {
    let (resource, namespace, name) =
        ("configmaps".to_owned(), place.namespace.clone(), name.to_owned());
    Target { version: "v1".to_owned(), id: Id { group: String::new(), resource, namespace, name } }
}

fn object(name: &str) -> Value {
    let metadata = json!({ "name": name });
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": { "k": "0" } })
}

fn act(target: Target, write: Write) -> Action {
    Action { side: Side::Cluster, target, write }
}

fn deletion(object: &Value) -> Write {
    let uid = object["metadata"]["uid"].as_str().unwrap().to_owned();
    Write::Delete { uid, resource_version: None, propagation: Propagation::Background }
}

async fn one(executor: &Executor, target: Target, write: Write) -> Outcome {
    let outcomes = executor.execute(vec![vec![act(target, write)]]).await;
    outcomes.into_iter().flatten().next().unwrap()
}

fn done(outcome: Outcome) -> Value {
    match outcome {
        Outcome::Done(value) => value,
        other => panic!("it was not done: {other:?}"),
    }
}

#[tokio::test]
async fn every_write_does_what_it_says() -> Result<()> {
    let place = Place::new("executor").await?;
    let executor = executor(&place);
    let a = || map(&place, "a");

    let mut made = done(one(&executor, a(), Write::Create(object("a"))).await);
    assert_eq!(one(&executor, a(), Write::Create(object("a"))).await, Outcome::AlreadyExists);
    let stale = made.clone();
    made["data"] = json!({ "k": "1" });
    let replaced = done(one(&executor, a(), Write::Replace(made)).await);
    assert_eq!(replaced["data"]["k"], "1");
    assert!(matches!(
        one(&executor, a(), Write::Replace(stale.clone())).await,
        Outcome::Conflict(_)
    ));

    let merge = json!({ "metadata": { "uid": stale["metadata"]["uid"] }, "data": { "k": "2" } });
    let merged = done(one(&executor, a(), Write::Merge(merge)).await);
    assert_eq!(merged["data"]["k"], "2");
    let version = &stale["metadata"]["resourceVersion"];
    let old = json!({ "metadata": { "resourceVersion": version }, "data": { "k": "3" } });
    assert!(matches!(one(&executor, a(), Write::Merge(old)).await, Outcome::Conflict(_)));
    for entry in merged["metadata"]["managedFields"].as_array().context("it is managed")? {
        assert_eq!(entry["manager"], "work-agent");
    }

    let mut wanted = object("a");
    wanted["data"] = json!({ "k": "mine" });
    let apply = |force| Write::Apply { object: wanted.clone(), manager: "m".to_owned(), force };
    match one(&executor, a(), apply(false)).await {
        Outcome::Refused(no) => assert_eq!((no.code, no.reason.as_str()), (409, "Conflict")),
        other => panic!("another manager has the field, and yet {other:?}"),
    }
    assert_eq!(done(one(&executor, a(), apply(true)).await)["data"]["k"], "mine");

    assert_eq!(executor.read(Side::Cluster, &map(&place, "b")).await, Read::Absent);
    let Read::Present(read) = executor.read(Side::Cluster, &a()).await else { panic!("there") };
    assert_eq!(read["data"]["k"], "mine");
    Ok(())
}

#[tokio::test]
async fn a_delete_takes_only_the_incarnation_it_means() -> Result<()> {
    let place = Place::new("executor").await?;
    let executor = executor(&place);
    let a = || map(&place, "a");
    let first = done(one(&executor, a(), Write::Create(object("a"))).await);
    assert_eq!(one(&executor, a(), deletion(&first)).await, Outcome::Done(Value::Null));
    assert_eq!(one(&executor, a(), deletion(&first)).await, Outcome::NotFound);
    let second = done(one(&executor, a(), Write::Create(object("a"))).await);
    assert!(matches!(one(&executor, a(), deletion(&first)).await, Outcome::Conflict(_)));

    let mut state = deletion(&second);
    if let Write::Delete { resource_version, .. } = &mut state {
        *resource_version = Some("1".to_owned());
    }
    assert!(matches!(one(&executor, a(), state).await, Outcome::Conflict(_)));

    let hold = json!({ "metadata": { "finalizers": ["cleat.example/hold"] } });
    done(one(&executor, a(), Write::Merge(hold)).await);
    let waits = done(one(&executor, a(), deletion(&second)).await);
    assert!(waits["metadata"]["deletionTimestamp"].is_string());
    let release = json!({ "metadata": { "finalizers": null } });
    done(one(&executor, a(), Write::Merge(release)).await);
    assert_eq!(executor.read(Side::Cluster, &a()).await, Read::Absent);
    Ok(())
}

#[tokio::test]
async fn a_step_tries_everything_and_what_failed_stops_the_next() -> Result<()> {
    let place = Place::new("executor").await?;
    let executor = executor(&place);
    place.config_map("b").await?;
    let new = |name: &str| act(map(&place, name), Write::Create(object(name)));
    let gone = Write::Delete {
        uid: "none".to_owned(),
        resource_version: None,
        propagation: Propagation::Background,
    };
    let plan = vec![
        vec![act(map(&place, "never"), gone)],
        vec![new("a"), new("b"), new("c")],
        vec![new("d")],
    ];
    let outcomes = executor.execute(&plan).await;
    assert_eq!(outcomes[0], [Outcome::NotFound]);
    assert!(outcomes[1][0].is_done() && outcomes[1][2].is_done());
    assert_eq!(outcomes[1][1], Outcome::AlreadyExists);
    assert_eq!(outcomes[2], [Outcome::NotTried]);
    assert_eq!(executor.read(Side::Cluster, &map(&place, "d")).await, Read::Absent);
    Ok(())
}

#[tokio::test]
async fn an_unserved_kind_is_no_missing_object_and_neither_is_a_namespace() -> Result<()> {
    let place = Place::new("executor").await?;
    let executor = executor(&place);
    for (group, resource) in [("nowhere.cleat.example", "widgets"), ("", "widgets"), ("apps", "x")]
    {
        let mut target = map(&place, "a");
        target.id.group = group.to_owned();
        target.id.resource = resource.to_owned();
        assert_eq!(executor.read(Side::Cluster, &target).await, Read::NoSuchKind, "{resource}");
        let created = one(&executor, target.clone(), Write::Create(object("a"))).await;
        assert_eq!(created, Outcome::NoSuchKind, "{group}");
        let uid = json!({ "metadata": { "uid": "u" } });
        assert_eq!(one(&executor, target, deletion(&uid)).await, Outcome::NoSuchKind);
    }
    let mut elsewhere = map(&place, "a");
    elsewhere.id.namespace = format!("{}-none", place.namespace);
    match one(&executor, elsewhere.clone(), Write::Create(object("a"))).await {
        Outcome::Refused(no) => assert_eq!((no.code, no.reason.as_str()), (404, "NotFound")),
        other => panic!("its namespace is missing, and yet {other:?}"),
    }
    assert_eq!(executor.read(Side::Cluster, &elsewhere).await, Read::Absent);
    Ok(())
}

#[tokio::test]
async fn a_definition_that_went_takes_the_proof_of_absence_with_it() -> Result<()> {
    let place = Place::new("executor").await?;
    let executor = executor(&place);
    let kind = definitions::define(&place).await?;
    let mut target = map(&place, "a");
    target.id.group = kind.api_version.split('/').next().unwrap().to_owned();
    target.id.resource = "widgets".to_owned();
    eventually("the kind to be served", || async {
        Ok((executor.read(Side::Cluster, &target).await == Read::Absent).then_some(()))
    })
    .await?;
    delete(&kind.definitions, &kind.definition.name_any()).await?;
    eventually("the kind not to be served", || async {
        Ok((executor.read(Side::Cluster, &target).await == Read::NoSuchKind).then_some(()))
    })
    .await
}

#[tokio::test]
async fn a_webhook_that_says_no_is_heard() -> Result<()> {
    let place = Place::new("executor").await?;
    let executor = executor(&place);
    let maps: Api<ConfigMap> = place.api();
    let made: ConfigMap = create(&maps, kept("a")).await?;
    let webhook = Webhook::start(guard).await?;
    install(&place, &webhook, json!(["DELETE"])).await?;
    let outcome = one(&executor, map(&place, "a"), deletion(&serde_json::to_value(&made)?)).await;
    let Outcome::Refused(no) = outcome else { panic!("it is kept, and yet {outcome:?}") };
    assert_eq!(no.code, 403);
    assert!(no.message.ends_with("denied the request: it is kept"), "{}", no.message);
    uninstall(&place).await
}

#[tokio::test]
async fn a_dry_run_as_somebody_else_shows_what_they_may() -> Result<()> {
    let place = Place::new("executor").await?;
    let executor = executor(&place);
    let accounts: Api<ServiceAccount> = place.api();
    create(&accounts, json!({ "metadata": { "name": "robot" } })).await?;
    let impersonated = Some(Impersonated::service_account(&place.namespace, "robot"));
    let asking = Asking { dry_run: true, impersonated };
    let action = act(map(&place, "a"), Write::Create(object("a")));
    let Outcome::Refused(no) = executor.perform(&action, &asking).await else {
        panic!("robots may nothing")
    };
    assert_eq!((no.code, no.reason.as_str()), (403, "Forbidden"));
    let rules = json!([{ "apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"] }]);
    access::let_robots(&place, rules).await?;
    eventually("robots to be allowed", || async {
        Ok(executor.perform(&action, &asking).await.is_done().then_some(()))
    })
    .await?;
    assert_eq!(executor.read(Side::Cluster, &map(&place, "a")).await, Read::Absent);
    Ok(())
}

#[tokio::test]
async fn a_review_is_a_create_with_an_answer() -> Result<()> {
    let place = Place::new("executor").await?;
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": "nobody-we-know",
            "resourceAttributes": { "verb": "get", "resource": "secrets", "namespace": "default" },
        },
    });
    let mut target = Target { version: "v1".to_owned(), id: Id::default() };
    target.id.group = "authorization.k8s.io".to_owned();
    target.id.resource = "subjectaccessreviews".to_owned();
    let answer = done(one(&executor(&place), target, Write::Create(review)).await);
    assert_eq!(answer["status"]["allowed"], false);
    Ok(())
}
