//! `cleat policy …` beside a cluster, as people run it: the binary as a process. On embedded servers and,
//! with `cargo xtask kubernetes test`, on real ones.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that is wrong about its surroundings must fail"
)]

use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use anyhow::{Context as _, Result};
use cleat_api::configurationpolicy::ConfigurationPolicy;
use cleat_hub::prepare::prepare_cluster;
use cleat_world::world::WORLD;
use cleat_world::{Link, World, within};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, DeleteParams, PostParams};
use kube::runtime::wait::{await_condition, conditions};
use kube::{Client, ResourceExt as _};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// A cluster, and a way for processes to it. Everything is in the namespace `name`.
struct Site {
    _world: World,
    _link: Option<Link>,
    cluster: Client,
    name: String,
    folder: tempfile::TempDir,
    kubeconfig: PathBuf,
}

/// A running process; killed when dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

async fn create<K>(api: &Api<K>, object: Value) -> Result<K>
where
    K: Clone + serde::Serialize + DeserializeOwned + std::fmt::Debug,
{
    Ok(api.create(&PostParams::default(), &serde_json::from_value(object)?).await?)
}

impl Site {
    async fn new(topic: &str) -> Result<Self> {
        let world = World::with_clusters(1).await?;
        let first = world.clusters.first().context("a world has a cluster")?;
        let cluster = first.client();
        prepare_cluster(&cluster).await?;
        let name = world.unique(topic);
        let all: Api<Namespace> = Api::all(cluster.clone());
        create(&all, json!({ "metadata": { "name": name } })).await?;
        let folder = tempfile::tempdir()?;
        let mut kubeconfig = folder.path().join("kubeconfig");
        let mut link = None;
        match std::env::var_os(WORLD) {
            Some(path) => kubeconfig = path.into(),
            None => {
                let (kept, config) = first.link().await?;
                link = Some(kept);
                let file = json!({
                    "apiVersion": "v1", "kind": "Config", "current-context": "cluster1",
                    "clusters": [{
                        "name": "cluster1",
                        "cluster": { "server": config.cluster_url.to_string() },
                    }],
                    "users": [{ "name": "cluster1", "user": {} }],
                    "contexts": [{
                        "name": "cluster1",
                        "context": { "cluster": "cluster1", "user": "cluster1" },
                    }],
                });
                std::fs::write(&kubeconfig, file.to_string())?;
            }
        }
        Ok(Self { _world: world, _link: link, cluster, name, folder, kubeconfig })
    }

    /// `cleat policy …`, told of the cluster.
    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cleat"));
        command.arg("policy").args(args).stdin(Stdio::null());
        command.arg("--kubeconfig").arg(&self.kubeconfig).args(["--context", "cluster1"]);
        command
    }

    /// Runs it without holding up the server, which may be in this process.
    async fn saw(&self, args: &[&str]) -> Result<Output> {
        let mut command = self.command(args);
        Ok(tokio::task::spawn_blocking(move || command.output()).await??)
    }

    fn file(&self, name: &str, content: &str) -> Result<String> {
        let path = self.folder.path().join(name);
        std::fs::write(&path, content)?;
        Ok(path.to_str().context("a path is text")?.to_owned())
    }

    fn maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.cluster.clone(), &self.name)
    }

    fn map(&self, name: &str, value: &str) -> Value {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": name, "namespace": self.name }, "data": { "key": value },
        })
    }

    /// A policy that wants these maps.
    fn policy(&self, maps: Vec<Value>) -> Value {
        let musthave = |map: Value| {
            json!({
                "complianceType": "musthave", "recordDiff": "InStatus", "objectDefinition": map,
            })
        };
        json!({
            "apiVersion": "policy.open-cluster-management.io/v1", "kind": "ConfigurationPolicy",
            "metadata": { "name": "p", "namespace": self.name },
            "spec": {
                "remediationAction": "enforce", "pruneObjectBehavior": "DeleteAll",
                "object-templates": maps.into_iter().map(musthave).collect::<Vec<Value>>(),
            },
        })
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_is_tried_on_a_cluster_which_stays_as_it_is() -> Result<()> {
    let site = Site::new("tried").await?;
    let before = create(&site.maps(), site.map("a", "1")).await?;
    let mut fixed = site.map("fixed", "1");
    fixed["immutable"] = json!(true);
    create(&site.maps(), fixed).await?;
    let copied = format!("{{{{ fromConfigMap \"{}\" \"a\" \"key\" }}}}", site.name);
    let holds = site.policy(vec![site.map("a", "1"), site.map("fixed", &copied)]);
    let holds = site.file("holds.yaml", &holds.to_string())?;
    let log = site.file("log", "before\n")?;
    let output = site.saw(&["dryrun", "--from-cluster", "--log-path", &log, "-p", &holds]).await?;
    let (out, errors) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{out}{errors}");
    assert!(out.contains("configmaps [a] found as specified"), "{out}");
    let said = std::fs::read_to_string(&log)?;
    assert!(said.starts_with("before\npolicy p\n") && said.contains("/a: found\n"), "{said}");
    let differs =
        site.policy(vec![site.map("a", "2"), site.map("none", "1"), site.map("fixed", "2")]);
    let differs = site.file("differs.yaml", &differs.to_string())?;
    let output =
        site.saw(&["dryrun", "--from-cluster", "--log-path", &log, "-p", &differs]).await?;
    let (out, errors) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(2), "{out}{errors}");
    assert!(out.contains("-  key: \"1\"\n+  key: \"2\""), "{out}");
    for said in [
        "configmaps [a] found but not as specified",
        "configmaps [none] not found",
        "configmaps [fixed] found but not as specified",
    ] {
        assert!(out.contains(said), "{said}: {out}");
    }
    let said = std::fs::read_to_string(&log)?;
    let asked = said.lines().find(|line| line.starts_with("dry run of the update of"));
    assert!(asked.is_some(), "{said}");
    // Only the server knows that it would not take it.
    assert!(said.contains("/fixed: invalid: "), "{said}");
    assert_eq!(site.maps().get("a").await?, before, "nothing is changed");
    assert!(site.maps().get_opt("none").await?.is_none());
    let nowhere = json!({ "apiVersion": "v1", "kind": "Config" });
    let nowhere = site.file("nowhere", &nowhere.to_string())?;
    let output = Command::new(env!("CARGO_BIN_EXE_cleat"))
        .args(["policy", "dryrun", "--from-cluster", "-p", &holds, "--kubeconfig", &nowhere])
        .output()?;
    assert_eq!(output.status.code(), Some(1));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_kinds_of_a_cluster_are_enough_to_try_a_policy_without_it() -> Result<()> {
    let site = Site::new("kinds").await?;
    let output = site.saw(&["dryrun", "generate"]).await?;
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let kinds = text(&output.stdout);
    let services = "- group: apiregistration.k8s.io\n  kind: APIService\n  plural: apiservices\n  scope: root\n  singular: apiservice\n  version: v1\n";
    assert!(kinds.contains(services), "{kinds}");
    let kinds = site.file("kinds.yaml", &kinds)?;
    let policy = site.file("policy.yaml", &site.policy(vec![site.map("a", "1")]).to_string())?;
    let objects = site.file("objects.yaml", &site.map("a", "1").to_string())?;
    let output = Command::new(env!("CARGO_BIN_EXE_cleat"))
        .args(["policy", "dryrun", "-p", &policy, "--mappings-file", &kinds, &objects])
        .output()?;
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    Ok(())
}

/// The seed: nothing is pruned because its controller is uninstalled.
#[tokio::test(flavor = "multi_thread")]
async fn a_controller_is_uninstalled_with_one_command_and_prunes_nothing() -> Result<()> {
    let site = Site::new("uninstalled").await?;
    let deployments: Api<Deployment> = Api::namespaced(site.cluster.clone(), &site.name);
    let labels = json!({ "app": "controller" });
    let deployment = json!({
        "metadata": { "name": "controller" },
        "spec": {
            "replicas": 0, "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": { "containers": [{ "name": "c", "image": "example.com/c" }] },
            },
        },
    });
    create(&deployments, deployment).await?;
    let own = format!("{}/controller", site.name);
    let args = ["controller", "--namespace", &site.name, "--deployment", &own];
    let controller = Running(site.command(&args).stderr(Stdio::null()).spawn()?);
    let policies: Api<ConfigurationPolicy> = Api::namespaced(site.cluster.clone(), &site.name);
    create(&policies, site.policy(vec![site.map("a", "1")])).await?;
    let stands = |policy: Option<&ConfigurationPolicy>| {
        let status = policy.and_then(|policy| policy.status.as_ref());
        status.is_some_and(|status| status.compliant.as_deref() == Some("Compliant"))
    };
    within("the policy to hold", await_condition(policies.clone(), "p", stands)).await??;
    assert!(!policies.get("p").await?.finalizers().is_empty());
    let uninstall = |deployment: &'static str| {
        [
            "trigger-uninstall",
            "--deployment-namespace",
            &site.name,
            "--deployment-name",
            deployment,
            "--policy-namespace",
            &site.name,
        ]
    };
    let output = site.saw(&uninstall("none")).await?;
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stdout));
    let output = site.saw(&uninstall("controller")).await?;
    let printed = format!(
        "no policy is held any more; the Deployment {}/controller may be deleted\n",
        site.name
    );
    assert_eq!(text(&output.stdout), printed, "{}", text(&output.stderr));
    assert_eq!(output.status.code(), Some(0));
    drop(controller);
    let policy = policies.get("p").await?;
    assert!(policy.finalizers().is_empty() && policy.metadata.deletion_timestamp.is_none());
    policies.delete("p", &DeleteParams::default()).await?;
    let uid = policy.metadata.uid.unwrap_or_default();
    let gone = conditions::is_deleted(&uid);
    within("the policy to go", await_condition(policies, "p", gone)).await??;
    assert!(site.maps().get_opt("a").await?.is_some(), "pruned by an uninstallation");
    Ok(())
}
