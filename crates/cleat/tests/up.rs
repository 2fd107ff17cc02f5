//! `cleat up` as people run it: the binary, real sockets, TLS, and sudden death.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that is wrong must fail")]

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use cleat_api::appliedmanifestwork::AppliedManifestWork;
use cleat_api::managedclustersetbinding::ManagedClusterSetBinding;
use cleat_api::manifestwork::{Manifest, ManifestWork, ManifestWorkSpec, ManifestsTemplate};
use cleat_api::manifestworkreplicaset::ManifestWorkReplicaSet;
use cleat_api::placement::Placement;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ListParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::wait::await_condition;
use kube::{Client, Config};
use serde_json::json;

/// A running fleet; killed like a power cut when dropped.
struct Fleet {
    process: Child,
    table: Vec<String>,
}

impl Fleet {
    /// Starts the binary and reads what it prints until it says that it is ready.
    fn start(dir: &Path) -> Self {
        let process = Command::new(env!("CARGO_BIN_EXE_cleat"))
            .args(["up", "--clusters", "2", "--port", "23450", "--dir"])
            .arg(dir)
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let mut fleet = Self { process, table: Vec::new() };
        for line in BufReader::new(fleet.process.stdout.take().unwrap()).lines() {
            let line = line.unwrap();
            let ready = line.starts_with("ready in");
            fleet.table.push(line);
            if ready {
                return fleet;
            }
        }
        let table = &fleet.table;
        panic!("it ended before it was ready: {table:?}");
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

async fn client(dir: &Path, context: &str) -> Client {
    let kubeconfig = Kubeconfig::read_from(dir.join("kubeconfig")).unwrap();
    let options = KubeConfigOptions { context: Some(context.to_owned()), ..Default::default() };
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
    Client::try_from(config).unwrap()
}

async fn config_maps(dir: &Path, context: &str) -> Api<ConfigMap> {
    Api::namespaced(client(dir, context).await, "default")
}

/// The answer to a work with these manifests, which is not stored.
async fn offer(hub_client: &Client, manifests: Vec<Manifest>) -> Result<ManifestWork, String> {
    let works: Api<ManifestWork> = Api::namespaced(hub_client.clone(), "default");
    let workload = ManifestsTemplate { manifests };
    let work = ManifestWork::new("w", ManifestWorkSpec { workload, ..Default::default() });
    let dry_run = PostParams { dry_run: true, ..Default::default() };
    works.create(&dry_run, &work).await.map_err(|error| error.to_string())
}

fn manifest() -> Manifest {
    let metadata = json!({ "name": "a", "namespace": "default" });
    Manifest(json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata }))
}

#[tokio::test]
async fn what_was_answered_is_there_after_kill_and_a_second_start() {
    let dir = tempfile::tempdir().unwrap();
    let fleet = Fleet::start(dir.path());
    for name in ["hub", "cluster1", "cluster2"] {
        let row = fleet.table.iter().find(|line| line.starts_with(name));
        assert!(row.is_some_and(|row| row.contains("https://")), "{:?}", fleet.table);
    }
    let map = ConfigMap {
        metadata: kube::core::ObjectMeta { name: Some("kept".to_owned()), ..Default::default() },
        ..Default::default()
    };
    let made = config_maps(dir.path(), "cluster1").await;
    let made = made.create(&PostParams::default(), &map).await.unwrap();
    drop(fleet);

    let _again = Fleet::start(dir.path());
    let found = config_maps(dir.path(), "cluster1").await.get("kept").await.unwrap();
    assert_eq!(found.metadata.uid, made.metadata.uid);
    let elsewhere = config_maps(dir.path(), "cluster2").await.get_opt("kept").await.unwrap();
    assert!(elsewhere.is_none(), "clusters share a file, not their objects");
}

#[test]
fn a_directory_has_one_owner() {
    let dir = tempfile::tempdir().unwrap();
    let _fleet = Fleet::start(dir.path());
    let second = Command::new(env!("CARGO_BIN_EXE_cleat"))
        .args(["up", "--dir"])
        .arg(dir.path())
        .output()
        .unwrap();
    assert!(!second.status.success());
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(said.contains("in use by another process"), "{said}");
}

#[test]
fn an_interrupt_ends_it_cleanly() {
    let dir = tempfile::tempdir().unwrap();
    let mut fleet = Fleet::start(dir.path());
    let interrupt =
        Command::new("kill").args(["-INT", &fleet.process.id().to_string()]).status().unwrap();
    assert!(interrupt.success());
    let ended = fleet.process.wait().unwrap();
    assert!(ended.success(), "{ended}");
}

#[tokio::test]
async fn hub_and_clusters_know_works_and_the_hub_judges_them() {
    let dir = tempfile::tempdir().unwrap();
    // The second start finds everything prepared, and must judge all the same.
    for _ in 0..2 {
        let _fleet = Fleet::start(dir.path());
        let hub_client = client(dir.path(), "hub").await;
        offer(&hub_client, vec![manifest()]).await.unwrap();
        let why = offer(&hub_client, vec![]).await.unwrap_err();
        assert!(why.contains("spec.workload.manifests is empty"), "{why}");
        let records: Api<AppliedManifestWork> = Api::all(client(dir.path(), "cluster2").await);
        assert!(records.list(&ListParams::default()).await.unwrap().items.is_empty());
    }
}

/// A process that is killed like a power cut when dropped.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn a_webhook_of_its_own_judges_until_it_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let _fleet = Fleet::start(dir.path());
    let hub_client = client(dir.path(), "hub").await;
    let mut webhook = Process(
        Command::new(env!("CARGO_BIN_EXE_cleat"))
            .args(["webhook", "--install", "--port", "0", "--manifest-limit", "20"])
            .args(["--context", "hub", "--kubeconfig"])
            .arg(dir.path().join("kubeconfig"))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap(),
    );
    let mut said = String::new();
    BufReader::new(webhook.0.stdout.take().unwrap()).read_line(&mut said).unwrap();
    assert!(said.starts_with("judging works on https://127.0.0.1:"), "{said}");
    let why = offer(&hub_client, vec![manifest()]).await.unwrap_err();
    assert!(why.contains("the limit is 20"), "{why}");
    drop(webhook);
    let why = offer(&hub_client, vec![manifest()]).await.unwrap_err();
    assert!(why.contains("failed calling webhook"), "{why}");
}

/// From a set to an object on a cluster, by what `cleat up` runs; with `cleat hub` beside it, which
/// ends cleanly too.
#[tokio::test]
async fn a_set_reaches_its_cluster_and_a_second_hub_does_no_harm() {
    let dir = tempfile::tempdir().unwrap();
    let _fleet = Fleet::start(dir.path());
    let kubeconfig = dir.path().join("kubeconfig");
    let mut beside = Command::new(env!("CARGO_BIN_EXE_cleat"))
        .args(["hub", "--context", "hub", "--kubeconfig"])
        .arg(&kubeconfig)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(beside.stderr.take().unwrap()).lines();
    let ready = said.next().unwrap().unwrap();
    assert!(ready.starts_with("looking after https://"), "{ready}");

    let hub = client(dir.path(), "hub").await;
    let bindings: Api<ManagedClusterSetBinding> = Api::namespaced(hub.clone(), "default");
    let binding = parse("{metadata: {name: global}, spec: {clusterSet: global}}");
    bindings.create(&PostParams::default(), &binding).await.unwrap();
    let placements: Api<Placement> = Api::namespaced(hub.clone(), "default");
    let placement = parse("{metadata: {name: all}, spec: {}}");
    placements.create(&PostParams::default(), &placement).await.unwrap();
    let sets: Api<ManifestWorkReplicaSet> = Api::namespaced(hub.clone(), "default");
    let map = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: default}}";
    let set = parse(&format!(
        "{{metadata: {{name: web}}, spec: {{placementRefs: [{{name: all}}], \
         manifestWorkTemplate: {{workload: {{manifests: [{map}]}}}}}}}}"
    ));
    sets.create(&PostParams::default(), &set).await.unwrap();
    let rolled_out = |set: Option<&ManifestWorkReplicaSet>| {
        let mut told =
            set.iter().filter_map(|set| set.status.as_ref()).flat_map(|at| &at.conditions);
        told.any(|told| told.type_ == "PlacementRolledOut" && told.status == "True")
    };
    let there = |map: Option<&ConfigMap>| map.is_some();
    let maps = config_maps(dir.path(), "cluster1").await;
    await_condition(maps, "a", there).await.unwrap();
    await_condition(sets, "web", rolled_out).await.unwrap();
    let works: Api<ManifestWork> = Api::namespaced(hub, "cluster1");
    assert_eq!(works.list(&ListParams::default()).await.unwrap().items.len(), 1);

    let interrupt = Command::new("kill").args(["-INT", &beside.id().to_string()]).status();
    assert!(interrupt.unwrap().success());
    assert!(beside.wait().unwrap().success());
}

fn parse<T: serde::de::DeserializeOwned>(yaml: &str) -> T {
    serde_saphyr::from_str(yaml).unwrap()
}
