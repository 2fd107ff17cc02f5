//! A cluster that cannot leave: what `cleat preview` says before, and `cleat explain` while it is stuck.
//! The binary as a process, on embedded servers and, with `cargo xtask kubernetes test`, on real ones.
//!
//! What people see is the same on both, and is compared with `docs/sessions/stuck-unjoin.txt`;
//! `CLEAT_RECORD=1` writes it anew. Ages and hashes are masked.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that is wrong must fail")]

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use cleat_api::manifestwork::ManifestWork;
use cleat_world::world::WORLD;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::wait::await_condition;
use kube::{Client, Config};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// On the cluster; no other test uses it.
const SHOP: &str = "stuck-shop";
const AUDIT: &str = "stuck-audit";

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

/// Waits until a process has said this.
fn said(output: impl std::io::Read, what: &str) {
    let mut lines = BufReader::new(output).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.contains(what)), "it ended before it said {what:?}");
}

fn parse<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

/// A hub with its controllers, and a cluster that has joined it as cluster1.
struct Fleet {
    kubeconfig: PathBuf,
    /// The agent first: it ends before the hub does.
    _processes: Vec<Running>,
}

impl Fleet {
    fn start(dir: &Path) -> Self {
        match std::env::var_os(WORLD) {
            Some(kubeconfig) => Self::real(dir, kubeconfig.into()),
            None => Self::embedded(dir),
        }
    }

    fn embedded(dir: &Path) -> Self {
        let mut command = cleat();
        command.args(["up", "--clusters", "1", "--port", "23670", "--dir"]).arg(dir);
        let mut up = Running(command.stdout(Stdio::piped()).spawn().unwrap());
        said(up.0.stdout.take().unwrap(), "ready in");
        Self { kubeconfig: dir.join("kubeconfig"), _processes: vec![up] }
    }

    fn real(dir: &Path, kubeconfig: PathBuf) -> Self {
        let on_hub = |arguments: &[&str]| {
            let mut command = cleat();
            command.args(arguments).args(["--context", "hub", "--kubeconfig"]).arg(&kubeconfig);
            command
        };
        let init = on_hub(&["init", "-o", "json"]).output().unwrap();
        assert!(init.status.success(), "{}", String::from_utf8_lossy(&init.stderr));
        let way: Value = serde_json::from_slice(&init.stdout).unwrap();
        let field = |name: &str| way.get(name).and_then(Value::as_str).unwrap().to_owned();
        let authority = dir.join("ca.crt");
        std::fs::write(&authority, field("certificateAuthority")).unwrap();
        let mut hub = Running(on_hub(&["hub"]).stderr(Stdio::piped()).spawn().unwrap());
        let mut hub_says = BufReader::new(hub.0.stderr.take().unwrap());
        let mut first = String::new();
        hub_says.read_line(&mut first).unwrap();
        // Somebody has to go on reading, or it would not go on writing.
        std::thread::spawn(move || hub_says.lines().for_each(drop));
        let mut join = cleat();
        join.args(["join", "cluster1", "--hub-server", &field("server")]);
        join.args(["--hub-token", &field("token"), "--hub-ca"]).arg(&authority);
        join.args(["--cluster-context", "cluster1", "--cluster-kubeconfig"]).arg(&kubeconfig);
        let mut agent = Running(join.stderr(Stdio::piped()).spawn().unwrap());
        let mut says = BufReader::new(agent.0.stderr.take().unwrap()).lines().map(Result::unwrap);
        assert!(says.any(|line| line.contains("waiting for")), "the agent ended");
        assert!(on_hub(&["accept", "cluster1"]).status().unwrap().success());
        assert!(says.any(|line| line.contains("looking after")), "the agent ended");
        std::thread::spawn(move || says.for_each(drop));
        until("the cluster to be available", || {
            let shown = on_hub(&["clusters"]).output().unwrap().stdout;
            let shown = String::from_utf8_lossy(&shown).into_owned();
            let line = shown.lines().find(|line| line.starts_with("cluster1 "));
            line.is_some_and(|line| line.matches("True").count() == 3)
        });
        Self { kubeconfig, _processes: vec![agent, hub] }
    }

    async fn client(&self, context: &str) -> Client {
        let read = Kubeconfig::read_from(&self.kubeconfig).unwrap();
        let context = Some(context.to_owned());
        let options = KubeConfigOptions { context, ..KubeConfigOptions::default() };
        let config = Config::from_custom_kubeconfig(read, &options).await;
        Client::try_from(config.unwrap()).unwrap()
    }

    /// A command on the hub.
    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = cleat();
        command.args(arguments).args(["--context", "hub"]).env("KUBECONFIG", &self.kubeconfig);
        command.output().unwrap()
    }
}

/// Asks again until it is so; whoever is asked takes its time, so nothing else waits here.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = std::time::Instant::now();
    while !holds() {
        assert!(begun.elapsed().as_secs() < 180, "waited for {what}");
    }
}

/// What people typed and saw.
#[derive(Default)]
struct Session {
    text: String,
}

impl Session {
    fn note(&mut self, text: &str) {
        let _ = write!(self.text, "\n# {text}\n");
    }

    fn saw(&mut self, arguments: &[&str], output: &Output) {
        let _ = writeln!(self.text, "$ cleat {}", arguments.join(" "));
        for bytes in [&output.stdout, &output.stderr] {
            for line in String::from_utf8_lossy(bytes).lines() {
                // How far it got is told whenever it changes, which differs from run to run.
                if !line.starts_with("cluster1: ") && !line.starts_with("waits for ") {
                    let _ = writeln!(self.text, "{}", masked(line));
                }
            }
        }
        let _ = writeln!(self.text, "[exit code {}]", output.status.code().unwrap());
    }
}

fn masked(line: &str) -> String {
    let word = |word: &str| {
        let plain = word.trim_matches([',', ')', '(', ';', ':']);
        let digits = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
        let hash = plain.len() >= 16 && plain.chars().all(|c| c.is_ascii_hexdigit());
        match plain.strip_suffix(['s', 'm', 'h']) {
            Some(age) if digits(age) => word.replace(plain, "1s"),
            _ if hash => word.replace(plain, "<hash>"),
            _ => word.to_owned(),
        }
    };
    line.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

async fn in_time<T>(what: &str, waiting: impl Future<Output = T>) -> T {
    let patience = std::time::Duration::from_secs(180);
    tokio::time::timeout(patience, waiting).await.unwrap_or_else(|_| panic!("waited for {what}"))
}

/// A work whose object waits for a controller that does not run.
async fn load(hub: &Client, cluster: &Client) -> Api<ConfigMap> {
    let post = PostParams::default();
    let namespaces: Api<Namespace> = Api::all(cluster.clone());
    for name in [SHOP, AUDIT] {
        let namespace = parse(json!({ "metadata": { "name": name } }));
        namespaces.create(&post, &namespace).await.unwrap();
    }
    let labels = json!({ "app": "auditor" });
    let deployments: Api<Deployment> = Api::namespaced(cluster.clone(), AUDIT);
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
    let manifest = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "orders", "namespace": SHOP },
    });
    let works: Api<ManifestWork> = Api::namespaced(hub.clone(), "cluster1");
    let work = parse(json!({
        "apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
        "metadata": { "name": "shop" }, "spec": { "workload": { "manifests": [manifest] } },
    }));
    works.create(&post, &work).await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(cluster.clone(), SHOP);
    let made = await_condition(maps.clone(), "orders", |map: Option<&ConfigMap>| map.is_some());
    in_time("the object", made).await.unwrap();
    hold(&maps, json!(["audit.example/archive"])).await;
    let applied = await_condition(works, "shop", |work: Option<&ManifestWork>| {
        let status = work.and_then(|work| work.status.as_ref());
        status.is_some_and(|status| {
            let mut conditions = status.conditions.iter();
            conditions.any(|one| one.type_ == "Available" && one.status == "True")
        })
    });
    in_time("the work", applied).await.unwrap();
    maps
}

async fn hold(maps: &Api<ConfigMap>, finalizers: Value) {
    let manager = Some("audit-controller".to_owned());
    let params = PatchParams { field_manager: manager, ..PatchParams::default() };
    let held = json!({ "metadata": { "finalizers": finalizers } });
    maps.patch("orders", &params, &Patch::Merge(held)).await.unwrap();
}

/// Whoever watches sees it again when something else stands in the way, and ends it with Ctrl-C.
async fn watched(fleet: &Fleet, maps: &Api<ConfigMap>) {
    let mut command = cleat();
    command.args(["preview", "unjoin", "cluster1", "--remove-strategy", "Required", "--watch"]);
    command.args(["--context", "hub"]).env("KUBECONFIG", &fleet.kubeconfig);
    let mut watching = Running(command.stdout(Stdio::piped()).spawn().unwrap());
    let mut lines = BufReader::new(watching.0.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut look = || -> Vec<String> {
        let mut shown = Vec::new();
        for line in lines.by_ref() {
            let last = line.starts_with("plan ");
            shown.push(line);
            if last {
                return shown;
            }
        }
        panic!("it ended: {shown:?}");
    };
    let waits = |shown: &[String]| shown.iter().any(|line| line.contains("waits for finalizer"));
    let first = look();
    assert!(waits(&first), "{first:?}");
    hold(maps, json!(null)).await;
    let second = look();
    assert!(!waits(&second), "{second:?}");
    // Obstacles are no part of the plan.
    assert_eq!(first.last(), second.last());
    hold(maps, json!(["audit.example/archive"])).await;
    let third = look();
    assert_eq!(third, first);
    let id = watching.0.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    assert!(watching.0.wait().unwrap().success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_that_cannot_leave_is_foreseen_and_explained() {
    let dir = tempfile::tempdir().unwrap();
    let fleet = Fleet::start(dir.path());
    let (hub, cluster) = (fleet.client("hub").await, fleet.client("cluster1").await);
    let maps = load(&hub, &cluster).await;
    let mut session = Session::default();

    session.note("before: what would go, and what would stand in the way");
    let preview = ["preview", "unjoin", "cluster1", "--remove-strategy", "Required"];
    let output = fleet.run(&preview);
    session.saw(&preview, &output);
    assert!(output.status.success());

    watched(&fleet, &maps).await;

    session.note("nobody is there to be asked whether that is too much");
    let ask = ["unjoin", "cluster1", "--remove-strategy", "Required", "--ask-above-objects", "0"];
    let output = fleet.run(&ask);
    session.saw(&ask, &output);
    assert_eq!(output.status.code(), Some(3));

    session.note("it leaves, and does not get far");
    let begin = ["unjoin", "cluster1", "--remove-strategy", "Required", "--no-wait"];
    let output = fleet.run(&begin);
    session.saw(&begin, &output);
    assert!(output.status.success());
    let explain = ["explain", "managedcluster/cluster1"];
    let mut explained = None;
    until("the cause to be found", || {
        let output = fleet.run(&explain);
        // The agent and the hub tell of it one after the other.
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let all = ["has 0 replicas", "1 object remains", "Not everything is removed"];
        explained = Some(output);
        all.iter().all(|part| text.contains(part))
    });
    let output = explained.unwrap();
    session.saw(&explain, &output);
    assert_eq!(output.status.code(), Some(4));

    session.note("the controller does its work, and the cluster leaves");
    let released = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    maps.patch("orders", &PatchParams::default(), &released).await.unwrap();
    let end = ["unjoin", "cluster1"];
    let output = fleet.run(&end);
    session.saw(&end, &output);
    assert!(output.status.success());
    assert!(maps.get_opt("orders").await.unwrap().is_none());
    let namespaces: Api<Namespace> = Api::all(cluster);
    for name in [SHOP, AUDIT] {
        namespaces.delete(name, &DeleteParams::default()).await.unwrap();
    }

    let sessions = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/sessions");
    let recorded = sessions.join("stuck-unjoin.txt");
    if std::env::var_os("CLEAT_RECORD").is_some() {
        std::fs::write(&recorded, &session.text).unwrap();
    }
    assert_eq!(session.text, std::fs::read_to_string(&recorded).unwrap(), "see {recorded:?}");
}
