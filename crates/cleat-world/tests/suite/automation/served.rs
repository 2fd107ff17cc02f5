//! Who serves AnsibleJobs: nobody yet, Cleat, or an automation platform. The server is one that no
//! other test needs jobs on, so its definition may come and change.

use anyhow::{Context as _, Result};
use cleat_api::policyautomation::condition;
use cleat_core::condition::find;
use cleat_hub::prepare;
use cleat_world::{World, ansible, eventually, within};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::runtime::wait::{await_condition, conditions};
use serde_json::{Value, json};

use super::BAD;
use super::hub::Hub;
use super::playbooks::{Runner, config, result};
use crate::{Place, delete, gone, make_namespace};

const JOBS: &str = "ansiblejobs.tower.ansible.com";
const AUTOMATIONS: &str = "policyautomations.policy.open-cluster-management.io";

async fn define(client: &Client, definition: &Value) -> Result<()> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let name = definition["metadata"]["name"].as_str().context("it has a name")?;
    let params = PatchParams::apply("cleat").force();
    definitions.patch(name, &params, &Patch::Apply(definition)).await?;
    let established = await_condition(definitions, name, conditions::is_crd_established());
    within("the definition to be established", established).await??;
    let all = objects(client, definition);
    eventually("the kind to be served", || async {
        Ok(all.list(&ListParams::default()).await.ok())
    })
    .await?;
    Ok(())
}

fn objects(client: &Client, definition: &Value) -> Api<DynamicObject> {
    let text = |path: &str| definition.pointer(path).and_then(Value::as_str).unwrap();
    let [group, version] = ["/spec/group", "/spec/versions/0/name"].map(text);
    let kind = GroupVersionKind::gvk(group, version, text("/spec/names/kind"));
    let plural = text("/spec/names/plural");
    Api::all_with(client.clone(), &ApiResource::from_gvk_with_plural(&kind, plural))
}

fn definition(name: &str) -> Result<Value> {
    let all = cleat_api::hub_definitions();
    let found = all.into_iter().find(|one| one.metadata.name.as_deref() == Some(name));
    Ok(serde_json::to_value(found.context("it is one of ours")?)?)
}

/// What OpenShift has, and where it says what the hub is called.
async fn name_the_hub(client: &Client) -> Result<()> {
    let open = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let version = json!({
        "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": open },
    });
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "dnses.config.openshift.io" },
        "spec": {
            "group": "config.openshift.io", "scope": "Cluster", "versions": [version],
            "names": { "plural": "dnses", "singular": "dns", "kind": "DNS", "listKind": "DNSList" },
        },
    });
    define(client, &definition).await?;
    let domain = json!({
        "apiVersion": "config.openshift.io/v1", "kind": "DNS", "metadata": { "name": "cluster" },
        "spec": { "baseDomain": "hub.example.com" },
    });
    let all = objects(client, &definition);
    all.patch("cluster", &PatchParams::apply("test").force(), &Patch::Apply(domain)).await?;
    Ok(())
}

/// A hub on that server, where nobody serves jobs.
async fn hub() -> Result<Hub> {
    let world = World::start().await?;
    let server = world.clusters.get(1).context("a world has two clusters")?;
    let (client, namespace) = (server.client(), world.unique("served"));
    make_namespace(server, &namespace).await?;
    prepare::prepare_cluster(&client).await?;
    define(&client, &definition(AUTOMATIONS)?).await?;
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    if let Some(found) = definitions.get_opt(JOBS).await? {
        delete(&definitions, JOBS).await?;
        gone(&definitions, &found).await?;
    }
    Hub::at(Place { world, client, namespace }, "served", 1).await
}

#[tokio::test]
async fn jobs_wait_until_they_are_served_and_a_platforms_are_left_to_it() -> Result<()> {
    let hub = hub().await?;
    let client = &hub.place.client;
    let folder = tempfile::tempdir()?;
    tokio::task::spawn_blocking(ansible::install).await??;

    // By nobody: the automation says so, and what it decided stays.
    let controllers = hub.run();
    hub.automate("served", json!({})).await?;
    hub.stand(&[BAD]).await?;
    let told = hub.told("served", |status| {
        let said = find(&status.conditions, condition::JOBS_CREATED);
        said.is_some_and(|said| said.message.contains("does not serve AnsibleJobs"))
    });
    let status = told.await?.status.unwrap();
    let said = find(&status.conditions, condition::JOBS_CREATED).unwrap();
    assert_eq!((&*said.status, &*said.reason), ("False", "Refused"));
    let [pending] = &status.pending_jobs[..] else { panic!("{:?}", status.pending_jobs) };
    let refused = Runner::start(&hub, config(&hub, folder.path())).await;
    let message = refused.err().unwrap().to_string();
    assert!(message.contains("does not serve AnsibleJobs"), "{message}");

    // By Cleat: it is made, under the name that was written down.
    name_the_hub(client).await?;
    define(client, &definition(JOBS)?).await?;
    let jobs = hub.jobs_when("served", |jobs| jobs.len() == 1).await?;
    let job = jobs.get(&pending.name).context("it has its name")?;
    assert_eq!(job.spec.extra_vars.as_ref().unwrap()["hub_cluster"], "hub.example.com");
    let noted = hub.noted("served", &[1]).await?.status.unwrap();
    assert_eq!(noted.recent_jobs.len(), 1);
    controllers.stop().await;

    // By a platform: the runner is off.
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let label = json!({ "app.kubernetes.io/managed-by": "aap" });
    let patch = Patch::Merge(json!({ "metadata": { "labels": label } }));
    definitions.patch(JOBS, &Default::default(), &patch).await?;
    // Making the hub ready again leaves another's definition alone. Real servers are shared.
    if hub.place.world.is_embedded() {
        prepare::prepare_hub(client).await?;
    }
    let refused = Runner::start(&hub, config(&hub, folder.path())).await;
    let message = refused.err().unwrap().to_string();
    assert!(message.contains("served by an automation platform"), "{message}");
    let job = hub.jobs().get(&pending.name).await?;
    assert_eq!(job.data.get("status"), None);
    let anyway = cleat_runner::Config { anyway: true, ..config(&hub, folder.path()) };
    let runner = Runner::start(&hub, anyway).await?;
    let ended = result(&hub, &pending.name).await?;
    assert!(ended["message"].as_str().unwrap().contains("there is no playbook"), "{ended}");
    runner.stop().await;
    Ok(())
}
