//! What operators do with the servers of `cleat up`: back them up while they run, find them again
//! elsewhere, keep logs of what is asked of them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that is wrong must fail")]

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};

/// A running fleet; killed like a power cut when dropped.
struct Fleet(Child);

impl Fleet {
    fn start(dir: &Path, port: &str, more: &[&str]) -> Self {
        let process = Command::new(env!("CARGO_BIN_EXE_cleat"))
            .args(["up", "--bare", "--clusters", "1", "--port", port, "--dir"])
            .arg(dir)
            .args(more)
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let mut fleet = Self(process);
        let lines = BufReader::new(fleet.0.stdout.take().unwrap()).lines();
        for line in lines {
            if line.unwrap().starts_with("ready in") {
                return fleet;
            }
        }
        panic!("it ended before it was ready");
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn cleat(verb: &str, dir: &Path, flag: &str, other: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cleat"));
    command.args(["apiserver", verb, "--dir"]).arg(dir).arg(flag).arg(other);
    command.output().unwrap()
}

fn done(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

async fn config_maps(dir: &Path, context: &str) -> Api<ConfigMap> {
    let kubeconfig = Kubeconfig::read_from(dir.join("kubeconfig")).unwrap();
    let options = KubeConfigOptions { context: Some(context.to_owned()), ..Default::default() };
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
    Api::namespaced(Client::try_from(config).unwrap(), "default")
}

async fn create(maps: &Api<ConfigMap>, name: &str) -> ConfigMap {
    let map = serde_json::from_value(json!({ "metadata": { "name": name } })).unwrap();
    maps.create(&PostParams::default(), &map).await.unwrap()
}

fn revision(map: &ConfigMap) -> u64 {
    map.metadata.resource_version.as_deref().unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_there_when_it_was_taken_is_there_again() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (folder.path().join("first"), folder.path().join("second"));
    let (online, offline) = (folder.path().join("online"), folder.path().join("offline"));
    let fleet = Fleet::start(&first, "23550", &[]);
    for context in ["hub", "cluster1"] {
        create(&config_maps(&first, context).await, "before").await;
    }
    let printed = done(&cleat("backup", &first, "--to", &online));
    assert!(printed.contains("hub: ") && printed.contains("cluster1: "), "{printed}");
    let after = create(&config_maps(&first, "hub").await, "after").await;
    let again = cleat("backup", &first, "--to", &online);
    assert!(!again.status.success(), "a backup was replaced");
    drop(fleet);
    done(&cleat("backup", &first, "--to", &offline));

    assert!(!cleat("restore", &first, "--from", &online).status.success(), "a fleet was replaced");
    done(&cleat("restore", &second, "--from", &online));
    // The same keys: whoever trusted the first fleet trusts this one.
    let authority = |dir: &Path| std::fs::read(dir.join("pki/hub/ca.crt")).unwrap();
    assert_eq!(authority(&first), authority(&second));
    let _fleet = Fleet::start(&second, "23560", &[]);
    for context in ["hub", "cluster1"] {
        let maps = config_maps(&second, context).await;
        assert!(maps.get_opt("before").await.unwrap().is_some(), "{context}");
        assert!(maps.get_opt("after").await.unwrap().is_none(), "{context}");
    }
    let new = create(&config_maps(&second, "hub").await, "new").await;
    assert!(revision(&new) > revision(&after), "a revision came again");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_server_logs_who_asked_for_what() {
    let folder = tempfile::tempdir().unwrap();
    let (dir, policy) = (folder.path().join("fleet"), folder.path().join("policy.yaml"));
    let rules = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules:\n\
                 - {level: Request, verbs: [create], resources: [{resources: [configmaps]}]}\n";
    std::fs::write(&policy, rules).unwrap();
    let log = folder.path().join("audit.log");
    let flags = [
        "--audit-log-path",
        log.to_str().unwrap(),
        "--audit-policy-file",
        policy.to_str().unwrap(),
    ];
    let _fleet = Fleet::start(&dir, "23570", &flags);
    create(&config_maps(&dir, "cluster1").await, "logged").await;
    let events = |server: &str| -> Vec<Value> {
        let path = folder.path().join(format!("audit-{server}.log"));
        let text = std::fs::read_to_string(path).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let logged = events("cluster1");
    let event = logged.iter().find(|event| event["objectRef"]["name"] == "logged").unwrap();
    assert_eq!(event["user"]["username"], "kubernetes-admin");
    assert_eq!(event["sourceIPs"], json!(["127.0.0.1"]));
    assert_eq!(event["requestObject"]["metadata"]["name"], "logged");
    assert_eq!(event["responseStatus"]["code"], 201);
    assert!(events("hub").iter().all(|event| event["objectRef"]["name"] != "logged"));
}
