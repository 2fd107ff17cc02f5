//! A cluster joins, cannot leave because of one object, and leaves; it joins again, is lost, and what
//! it kept is cleaned when it is back: the binary, real sockets, TLS and certificates.
//!
//! What people see is compared with `docs/sessions/leave.txt`; `CLEAT_RECORD=1` writes it anew. Keys,
//! uids, ages and addresses are masked, and lines that only tell how far it got are left out.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that is wrong must fail")]

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use cleat_api::manifestwork::ManifestWork;
use cleat_world::Webhook;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Api, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::wait::await_condition;
use kube::{Client, Config};
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

/// `cleat up` in a directory of its own, ready.
fn up(dir: &Path, port: &str) -> Running {
    let mut command = cleat();
    command.args(["up", "--clusters", "0", "--port", port, "--dir"]).arg(dir);
    let mut running = Running(command.stdout(Stdio::piped()).spawn().unwrap());
    let lines = BufReader::new(running.0.stdout.take().unwrap()).lines();
    let ready = lines.map(Result::unwrap).any(|line| line.starts_with("ready in"));
    assert!(ready, "it ended before it was ready");
    running
}

async fn client(dir: &Path) -> Client {
    let read = Kubeconfig::read_from(dir.join("kubeconfig")).unwrap();
    let config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await;
    Client::try_from(config.unwrap()).unwrap()
}

/// What people typed and saw.
struct Session {
    hub: PathBuf,
    far: PathBuf,
    text: String,
}

impl Session {
    fn note(&mut self, text: &str) {
        let _ = write!(self.text, "\n# {text}\n");
    }

    /// A command on the hub, and how it ended.
    fn hub(&mut self, arguments: &[&str]) -> i32 {
        let mut command = cleat();
        command.args(arguments).arg("--kubeconfig").arg(self.hub.join("kubeconfig"));
        if arguments.contains(&"clean") {
            command.arg("--cluster-kubeconfig").arg(self.far.join("kubeconfig"));
        }
        let output = command.output().unwrap();
        let _ = writeln!(self.text, "$ cleat {}", arguments.join(" "));
        self.saw(&output)
    }

    fn saw(&mut self, output: &Output) -> i32 {
        for bytes in [&output.stdout, &output.stderr] {
            for line in String::from_utf8_lossy(bytes).lines() {
                if !line.starts_with("far: ") && !line.starts_with("waits for ") {
                    let _ = writeln!(self.text, "{}", masked(line));
                }
            }
        }
        let code = output.status.code().unwrap();
        if code != 0 {
            let _ = writeln!(self.text, "[exit code {code}]");
        }
        code
    }
}

fn masked(line: &str) -> String {
    let word = |word: &str| {
        let hex = |text: &str, least| {
            text.len() >= least && text.chars().all(|c| c.is_ascii_hexdigit() || ":-.".contains(c))
        };
        let plain = word.trim_matches([',', ')', '(', ';']);
        let age = plain.strip_suffix(['s', 'm', 'h']);
        if age.is_some_and(|n| !n.is_empty() && n.chars().all(|c| c.is_ascii_digit())) {
            return word.replace(plain, "1s");
        }
        match plain {
            _ if plain.starts_with("far.") => word.replace(plain, "far.<uid>.0"),
            _ if plain.starts_with("cleat-far-") || plain.starts_with("far-") => {
                word.replace(plain, "<request>")
            }
            _ if plain.starts_with("20") && plain.contains('T') && plain.contains(':') => {
                word.replace(plain.trim_end_matches('.'), "<time>")
            }
            _ if plain.starts_with("https://") => word.replace(plain, "<hub>"),
            _ if plain.contains(':') && hex(plain, 20) => word.replace(plain, "<key>"),
            _ if plain.contains('-') && hex(plain, 20) => word.replace(plain, "<uid>"),
            _ => word.to_owned(),
        }
    };
    let indent: String = line.chars().take_while(|c| *c == ' ').collect();
    // Columns are as wide as what is in them, which is masked.
    let columns = line.trim().split("   ").filter(|one| !one.is_empty());
    let columns: Vec<String> =
        columns.map(|one| one.trim().split(' ').map(word).collect::<Vec<_>>().join(" ")).collect();
    format!("{indent}{}", columns.join("   "))
}

/// Asks again until it is so; whoever is asked takes its time, so nothing else waits here.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = std::time::Instant::now();
    while !holds() {
        assert!(begun.elapsed().as_secs() < 120, "waited for {what}");
    }
}

fn work(name: &str, maps: &[&str]) -> ManifestWork {
    let manifest = |name: &&str| {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": name, "namespace": "default" },
        })
    };
    let manifests: Vec<Value> = maps.iter().map(manifest).collect();
    serde_json::from_value(json!({
        "apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
        "metadata": { "name": name }, "spec": { "workload": { "manifests": manifests } },
    }))
    .unwrap()
}

async fn carry(hub: &Client, works: &[(&str, &[&str])]) {
    let api: Api<ManifestWork> = Api::namespaced(hub.clone(), "far");
    for (name, maps) in works {
        api.create(&PostParams::default(), &work(name, maps)).await.unwrap();
    }
    for (name, _) in works {
        let applied = |work: Option<&ManifestWork>| {
            let status = work.and_then(|work| work.status.as_ref());
            let manifests = status.map(|status| &status.resource_status.manifests);
            manifests.is_some_and(|all| {
                !all.is_empty() && all.iter().all(|one| !one.resource_meta.uid.is_empty())
            })
        };
        let waiting = await_condition(api.clone(), name, applied);
        tokio::time::timeout(std::time::Duration::from_secs(240), waiting).await.unwrap().unwrap();
    }
}

/// A webhook on the cluster that refuses the deletion of `orders` while it is told to.
async fn guard(far: &Client) -> Arc<AtomicBool> {
    let refuses = Arc::new(AtomicBool::new(true));
    let wish = Arc::clone(&refuses);
    let webhook = Webhook::start(move |request| {
        let orders = request.get("name").and_then(Value::as_str) == Some("orders");
        match orders && wish.load(Ordering::SeqCst) {
            true => Err("orders are open".to_owned()),
            false => Ok(()),
        }
    })
    .await
    .unwrap();
    let configurations: Api<ValidatingWebhookConfiguration> = Api::all(far.clone());
    let configuration = serde_json::from_value(json!({
        "metadata": { "name": "guard" },
        "webhooks": [{
            "name": "guard.shop.example", "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "clientConfig": { "url": webhook.url, "caBundle": BASE64.encode(&webhook.authority) },
            "rules": [{
                "operations": ["DELETE"], "apiGroups": [""], "apiVersions": ["v1"],
                "resources": ["configmaps"],
            }],
        }],
    }))
    .unwrap();
    configurations.create(&PostParams::default(), &configuration).await.unwrap();
    refuses
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_leaves_as_people_see_it() {
    let dir = tempfile::tempdir().unwrap();
    let (hub_dir, far_dir) = (dir.path().join("hub"), dir.path().join("far"));
    let _hub = up(&hub_dir, "23610");
    let _far = up(&far_dir, "23630");
    let (hub, far) = (client(&hub_dir).await, client(&far_dir).await);
    let mut session = Session { hub: hub_dir.clone(), far: far_dir.clone(), text: String::new() };

    let kubeconfig = hub_dir.join("kubeconfig");
    let init = cleat().args(["init", "-o", "json", "--kubeconfig"]).arg(&kubeconfig).output();
    let init = init.unwrap();
    let way: Value = serde_json::from_slice(&init.stdout).unwrap();
    let field = |name: &str| way.get(name).and_then(Value::as_str).unwrap().to_owned();
    let authority = dir.path().join("ca.crt");
    std::fs::write(&authority, field("certificateAuthority")).unwrap();
    let join = |session: &mut Session| {
        session.note("on the cluster");
        let typed = "cleat join far --remove-strategy Required --hub-server … --hub-token …";
        let _ = writeln!(session.text, "$ {typed}");
        let mut command = cleat();
        command.args(["join", "far", "--remove-strategy", "Required"]);
        command.args(["--hub-server", &field("server"), "--hub-token", &field("token")]);
        command.arg("--hub-ca").arg(&authority);
        command.arg("--cluster-kubeconfig").arg(far_dir.join("kubeconfig"));
        let mut agent = Running(command.stderr(Stdio::piped()).spawn().unwrap());
        let mut said = BufReader::new(agent.0.stderr.take().unwrap()).lines();
        let asked = said.by_ref().map(Result::unwrap).find(|line| line.contains("waiting for"));
        let _ = writeln!(session.text, "{}", masked(&asked.unwrap()));
        session.note("on the hub");
        assert_eq!(session.hub(&["accept", "far"]), 0);
        let looks = said.by_ref().map(Result::unwrap).any(|line| line.contains("looking after"));
        assert!(looks, "the agent ended");
        until("the cluster to be available", || {
            let shown = cleat().args(["clusters", "--kubeconfig"]).arg(&kubeconfig).output();
            let shown = shown.unwrap().stdout;
            let shown = String::from_utf8_lossy(&shown).into_owned();
            let line = shown.lines().find(|line| line.starts_with("far"));
            line.is_some_and(|line| line.matches("True").count() == 3)
        });
        (agent, said)
    };

    let (mut agent, said) = join(&mut session);
    carry(&hub, &[("shop", &["orders", "prices"]), ("web", &["pages"])]).await;
    let refuses = guard(&far).await;
    session.note("two works are there by now; a webhook of the cluster protects one object");
    assert_eq!(session.hub(&["clusters"]), 0);
    assert_eq!(session.hub(&["unjoin", "far"]), 4);
    refuses.store(false, Ordering::SeqCst);
    session.note("the orders are closed");
    assert_eq!(session.hub(&["unjoin", "far"]), 0);
    let maps: Api<ConfigMap> = Api::namespaced(far.clone(), "default");
    for name in ["orders", "prices", "pages"] {
        assert!(maps.get_opt(name).await.unwrap().is_none(), "{name} is left");
    }
    let ended: Vec<String> = said.map(Result::unwrap).collect();
    assert!(ended.iter().any(|line| line.contains("far has left")), "{ended:?}");
    assert!(agent.0.wait().unwrap().success());
    let secrets: Api<Secret> = Api::namespaced(far.clone(), "open-cluster-management-agent");
    assert!(secrets.get_opt("hub-kubeconfig-secret").await.unwrap().is_none());
    assert_eq!(session.hub(&["clusters"]), 0);
    assert_eq!(session.hub(&["leftovers"]), 0);

    session.note("it joins again, and its machine is lost");
    let (agent, _said) = join(&mut session);
    carry(&hub, &[("web", &["pages"])]).await;
    drop(agent);
    session.note("on the hub");
    assert_eq!(session.hub(&["unjoin", "far", "--cluster-destroyed"]), 3);
    assert_eq!(session.hub(&["unjoin", "far", "--cluster-destroyed", "--yes"]), 0);
    assert_eq!(session.hub(&["leftovers", "show", "far"]), 0);
    maps.get("pages").await.unwrap();
    session.note("the machine is found again");
    assert_eq!(session.hub(&["leftovers", "clean", "far"]), 0);
    assert!(maps.get_opt("pages").await.unwrap().is_none());
    assert_eq!(session.hub(&["leftovers"]), 0);
    assert_eq!(session.hub(&["leftovers", "clean", "far", "--agent"]), 0);
    assert!(secrets.get_opt("hub-kubeconfig-secret").await.unwrap().is_none());

    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/sessions/leave.txt");
    if std::env::var_os("CLEAT_RECORD").is_some() {
        std::fs::write(&recorded, &session.text).unwrap();
    }
    assert_eq!(session.text, std::fs::read_to_string(&recorded).unwrap(), "see {recorded:?}");
}
