//! Something is stuck, and `cleat explain` says why, from the hub to a deployment on a cluster: the
//! binary, real sockets and TLS.
//!
//! What people see is compared with `docs/sessions/explain.txt`; `CLEAT_RECORD=1` writes it anew. Ages
//! and uids are masked.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that is wrong must fail")]

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use cleat_api::manifestwork::ManifestWork;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::wait::{await_condition, conditions};
use kube::{Client, Config};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// A running process; killed when dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn cleat() -> Command {
    Command::new(env!("CARGO_BIN_EXE_cleat"))
}

/// `cleat up` with a hub and a cluster, ready.
fn up(dir: &Path) -> Running {
    let mut command = cleat();
    command.args(["up", "--clusters", "1", "--port", "23650", "--dir"]).arg(dir);
    let mut running = Running(command.stdout(Stdio::piped()).spawn().unwrap());
    let lines = BufReader::new(running.0.stdout.take().unwrap()).lines();
    let ready = lines.map(Result::unwrap).any(|line| line.starts_with("ready in"));
    assert!(ready, "it ended before it was ready");
    running
}

async fn client(dir: &Path, context: &str) -> Client {
    let read = Kubeconfig::read_from(dir.join("kubeconfig")).unwrap();
    let options =
        KubeConfigOptions { context: Some(context.to_owned()), ..KubeConfigOptions::default() };
    let config = Config::from_custom_kubeconfig(read, &options).await;
    Client::try_from(config.unwrap()).unwrap()
}

fn parse<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

/// What people typed and saw.
struct Session {
    dir: PathBuf,
    text: String,
}

impl Session {
    fn note(&mut self, text: &str) {
        let _ = write!(self.text, "\n# {text}\n");
    }

    fn saw(&mut self, arguments: &[&str]) -> i32 {
        let _ = writeln!(self.text, "$ cleat {}", arguments.join(" "));
        let mut command = cleat();
        command.args(arguments).env("KUBECONFIG", self.dir.join("kubeconfig"));
        let output = command.output().unwrap();
        for bytes in [&output.stdout, &output.stderr] {
            for line in String::from_utf8_lossy(bytes).lines() {
                let _ = writeln!(self.text, "{}", masked(line));
            }
        }
        let code = output.status.code().unwrap();
        let _ = writeln!(self.text, "[exit code {code}]");
        code
    }
}

/// Ages and hashes differ from run to run.
fn masked(line: &str) -> String {
    let word = |word: &str| {
        let plain = word.trim_matches([',', ')', '(', ';', ':']);
        let age = plain.strip_suffix(['s', 'm', 'h']);
        let digits = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
        match age.is_some_and(digits) {
            true => word.replace(plain, "1s"),
            false => word.to_owned(),
        }
    };
    line.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

async fn in_time<T>(what: &str, waiting: impl Future<Output = T>) -> T {
    let patience = std::time::Duration::from_secs(180);
    tokio::time::timeout(patience, waiting).await.unwrap_or_else(|_| panic!("waited for {what}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stuck_work_is_explained_as_people_see_it() {
    let dir = tempfile::tempdir().unwrap();
    let _up = up(dir.path());
    let (hub, cluster) = (client(dir.path(), "hub").await, client(dir.path(), "cluster1").await);
    let mut session = Session { dir: dir.path().to_owned(), text: String::new() };

    let post = PostParams::default();
    let namespaces: Api<Namespace> = Api::all(cluster.clone());
    for name in ["shop", "audit"] {
        let namespace = parse(json!({ "metadata": { "name": name } }));
        namespaces.create(&post, &namespace).await.unwrap();
    }
    let labels = json!({ "app": "auditor" });
    let deployments: Api<Deployment> = Api::namespaced(cluster.clone(), "audit");
    let auditor = parse(json!({
        "metadata": { "name": "auditor" },
        "spec": {
            "replicas": 0,
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": { "containers": [{
                    "name": "main", "image": "registry.example/audit-controller:v2",
                }] },
            },
        },
    }));
    deployments.create(&post, &auditor).await.unwrap();
    let works: Api<ManifestWork> = Api::namespaced(hub.clone(), "cluster1");
    let orders = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "orders", "namespace": "shop" },
    });
    let work = parse(json!({
        "apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
        "metadata": { "name": "shop" }, "spec": { "workload": { "manifests": [orders] } },
    }));
    works.create(&post, &work).await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(cluster.clone(), "shop");
    let made = await_condition(maps.clone(), "orders", |map: Option<&ConfigMap>| map.is_some());
    in_time("the object", made).await.unwrap();
    let manager = Some("audit-controller".to_owned());
    let params = PatchParams { field_manager: manager, ..PatchParams::default() };
    let held = json!({ "metadata": { "finalizers": ["audit.example/archive"] } });
    maps.patch("orders", &params, &Patch::Merge(held)).await.unwrap();
    let applied = await_condition(works.clone(), "shop", |work: Option<&ManifestWork>| {
        let conditions =
            work.and_then(|work| work.status.as_ref()).map(|status| &status.conditions);
        conditions.is_some_and(|all| {
            all.iter().any(|one| one.type_ == "Available" && one.status == "True")
        })
    });
    let work = in_time("the work", applied).await.unwrap().unwrap();

    session.note("on the hub, where all is well");
    assert_eq!(session.saw(&["explain", "manifestwork/shop", "-n", "cluster1"]), 0);
    works.delete("shop", &DeleteParams::default()).await.unwrap();
    let going =
        |map: Option<&ConfigMap>| map.is_some_and(|map| map.metadata.deletion_timestamp.is_some());
    in_time("the deletion", await_condition(maps.clone(), "orders", going)).await.unwrap();
    let told = await_condition(works.clone(), "shop", |work: Option<&ManifestWork>| {
        let conditions =
            work.and_then(|work| work.status.as_ref()).map(|status| &status.conditions);
        let mut all = conditions.into_iter().flatten();
        all.any(|one| one.type_ == "Deleting" && one.message.contains("audit.example/archive"))
    });
    in_time("the agent to say what it waits for", told).await.unwrap();

    session.note(
        "the work was deleted, and does not go; the agent says what it waits for, the cluster why",
    );
    assert_eq!(session.saw(&["explain", "manifestwork/shop", "-n", "cluster1"]), 4);
    session.note("somebody deletes the namespace on the cluster as well");
    namespaces.delete("shop", &DeleteParams::default()).await.unwrap();
    let emptied = await_condition(namespaces.clone(), "shop", |namespace: Option<&Namespace>| {
        let status = namespace.and_then(|namespace| namespace.status.as_ref());
        let mut conditions =
            status.and_then(|status| status.conditions.as_ref()).into_iter().flatten();
        conditions.any(|one| one.type_ == "NamespaceFinalizersRemaining" && one.status == "True")
    });
    in_time("the namespace to say what is left", emptied).await.unwrap();
    assert_eq!(session.saw(&["explain", "ns/shop", "--context", "cluster1"]), 4);

    session.note("the controller is scaled up, and does its work");
    let scale = Patch::Merge(json!({ "spec": { "replicas": 1 } }));
    deployments.patch("auditor", &PatchParams::default(), &scale).await.unwrap();
    let released = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    maps.patch("orders", &PatchParams::default(), &released).await.unwrap();
    let uid = work.metadata.uid.unwrap();
    let gone = await_condition(works.clone(), "shop", conditions::is_deleted(&uid));
    in_time("the end of the work", gone).await.unwrap();
    assert_eq!(session.saw(&["explain", "manifestwork/shop", "-n", "cluster1"]), 3);
    session.note("what does not exist is not explained");
    assert_eq!(session.saw(&["explain", "manifestworkz/shop"]), 3);
    assert_eq!(session.saw(&["explain", "shop"]), 2);

    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/sessions/explain.txt");
    if std::env::var_os("CLEAT_RECORD").is_some() {
        std::fs::write(&recorded, &session.text).unwrap();
    }
    assert_eq!(session.text, std::fs::read_to_string(&recorded).unwrap(), "see {recorded:?}");
}
