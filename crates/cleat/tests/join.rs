//! A cluster joins a hub as people do it: the binary, real sockets, TLS and certificates.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that is wrong must fail")]

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

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

/// `cleat up` in a directory of its own, ready.
fn up(dir: &Path, clusters: &str, port: &str) -> Running {
    let child = cleat()
        .args(["up", "--clusters", clusters, "--port", port, "--dir"])
        .arg(dir)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut running = Running(child);
    let lines = BufReader::new(running.0.stdout.take().unwrap()).lines();
    let ready = lines.map(Result::unwrap).any(|line| line.starts_with("ready in"));
    assert!(ready, "it ended before it was ready");
    running
}

struct Hub {
    kubeconfig: PathBuf,
    server: String,
    token: String,
    authority: PathBuf,
}

impl Hub {
    /// A command on the hub.
    fn run(&self, verb: &str, arguments: &[&str]) -> Output {
        let mut command = cleat();
        command.arg(verb).args(arguments).arg("--kubeconfig").arg(&self.kubeconfig);
        command.output().unwrap()
    }

    /// A cluster asks to join.
    fn join(&self, name: &str, cluster: &Path) -> Command {
        let mut command = cleat();
        command.args(["join", name, "--hub-server", &self.server, "--hub-token", &self.token]);
        command.arg("--hub-ca").arg(&self.authority);
        command.arg("--cluster-kubeconfig").arg(cluster);
        command
    }

    fn row(&self, name: &str) -> Vec<String> {
        let shown = text(&self.run("clusters", &[]).stdout);
        let row = shown.lines().find(|line| line.split_whitespace().next() == Some(name));
        row.unwrap_or_default().split_whitespace().map(ToOwned::to_owned).collect()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Asks again until it is so; whoever is asked takes its time, so nothing else waits here.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = std::time::Instant::now();
    while !holds() {
        assert!(begun.elapsed().as_secs() < 90, "waited for {what}");
    }
}

fn refused(output: &Output, hint: &str) {
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains(hint), "{said}");
}

#[test]
fn a_cluster_joins_is_accepted_and_is_not_joined_twice() {
    let dir = tempfile::tempdir().unwrap();
    let (hub_dir, far_dir) = (dir.path().join("hub"), dir.path().join("far"));
    let _hub = up(&hub_dir, "1", "23510");
    let _far = up(&far_dir, "0", "23530");
    let (kubeconfig, far) = (hub_dir.join("kubeconfig"), far_dir.join("kubeconfig"));
    let init =
        cleat().args(["init", "-o", "json", "--kubeconfig"]).arg(&kubeconfig).output().unwrap();
    assert!(init.status.success(), "{}", text(&init.stderr));
    let way: serde_json::Value = serde_json::from_slice(&init.stdout).unwrap();
    let field = |name: &str| way.get(name).and_then(|one| one.as_str()).unwrap().to_owned();
    assert!(field("command").starts_with("cleat join NAME --hub-server https://"));
    let authority = dir.path().join("ca.crt");
    std::fs::write(&authority, field("certificateAuthority")).unwrap();
    let hub = Hub { kubeconfig, server: field("server"), token: field("token"), authority };

    refused(&hub.run("accept", &["far"]), "nobody asked to join");
    let _agent =
        Running(hub.join("far", &far).args(["--remove-strategy", "Required"]).spawn().unwrap());
    until("the request to be certified", || {
        text(&hub.run("accept", &["far"]).stdout).contains("is certified")
    });
    until("the cluster to be available", || {
        hub.row("far").get(1..4) == Some(&["True", "True", "True"].map(str::to_owned))
    });
    assert_eq!(hub.row("far").get(4).map(String::as_str), Some("Required"));
    assert_eq!(hub.row("cluster1").get(1).map(String::as_str), Some("True"));
    let names = text(&hub.run("clusters", &["-o", "name"]).stdout);
    assert_eq!(names.lines().count(), 2, "{names}");
    let listed = hub.run("clusters", &["-o", "json", "far"]).stdout;
    let listed: serde_json::Value = serde_json::from_slice(&listed).unwrap();
    assert_eq!(listed.pointer("/items/0/spec/removeStrategy").unwrap(), "Required");

    let output = |mut command: Command| command.output().unwrap();
    refused(&output(hub.join("far", &far)), "already joined");
    refused(&output(hub.join("other", &far)), "`cleat unjoin far`");
    refused(&output(hub.join("itself", &hub.kubeconfig)), "the hub itself");
    refused(&output(hub.join("Not_A_Name", &far)), "lower-case letters");
    let mut nameless = hub.join("far2", &far);
    nameless.arg("--credentials-dir").arg(dir.path().join("elsewhere"));
    let mut waiting = Running(nameless.stderr(Stdio::piped()).spawn().unwrap());
    until("the second name to be refused", || {
        let accepted = hub.run("accept", &["far2"]);
        assert!(!accepted.status.success());
        text(&accepted.stderr).contains("already joined as far")
    });
    refused(&hub.run("accept", &["far2"]), "has one name");
    let _ = waiting.0.kill();

    let mut printed = hub.join("far", &far);
    let printed = printed.args(["--deploy", "--dry-run"]).output().unwrap();
    assert!(text(&printed.stdout).contains("kind: Deployment"), "{}", text(&printed.stderr));
    let usage = cleat().args(["join"]).output().unwrap();
    assert_eq!(usage.status.code(), Some(2));
}
